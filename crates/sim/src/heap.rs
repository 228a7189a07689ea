//! The event list: a 4-ary heap of packed keys.
//!
//! A key is (time, class, entity): the order of what happens at the same nanosecond is part of
//! the model, not of the list, so no other list, thread count or split of the scenario changes a
//! single bit of a result.

/// Children of a node.
const ARITY: usize = 4;

/// A min-heap that puts off removing its top: what handles an event mostly adds one, and the new
/// event then takes the place of the old one in a single pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap {
    keys: Vec<u128>,
    /// Whether the top has been taken and not yet been replaced.
    hole: bool,
}

impl Heap {
    /// Adds a key.
    #[inline]
    pub(crate) fn push(&mut self, key: u128) {
        if self.hole {
            self.hole = false;
            self.sift_down(key);
        } else {
            self.keys.push(key);
            self.sift_up(self.keys.len() - 1, key);
        }
    }

    /// Takes the least key if it is below `limit`.
    #[inline]
    pub(crate) fn pop_below(&mut self, limit: u128) -> Option<u128> {
        if self.hole {
            self.hole = false;
            let last = self.keys.pop()?;
            if !self.keys.is_empty() {
                self.sift_down(last);
            }
        }
        let top = *self.keys.first().filter(|&&top| top < limit)?;
        self.hole = true;
        Some(top)
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, key: u128) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[at] = self.keys[parent];
            at = parent;
        }
        self.keys[at] = key;
    }

    /// Puts `key` where the top was.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let keys = self.keys.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let least = match keys.get(first..first + ARITY) {
                Some(children) => first + least_of_four(children),
                None if first < keys.len() => first + least_of_few(&keys[first..]),
                None => break,
            };
            if key <= keys[least] {
                break;
            }
            keys[at] = keys[least];
            at = least;
        }
        keys[at] = key;
    }
}

/// The position of the least of four keys. The comparisons add up to an index, because branches
/// on them would be mispredicted half of the time.
#[inline]
fn least_of_four(keys: &[u128]) -> usize {
    let low = usize::from(keys[1] < keys[0]);
    let high = 2 + usize::from(keys[3] < keys[2]);
    low + (high - low) * usize::from(keys[high] < keys[low])
}

fn least_of_few(keys: &[u128]) -> usize {
    keys.iter().enumerate().min_by_key(|(_, key)| **key).map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small linear congruential generator: enough to shuffle keys.
    fn numbers(seed: u64) -> impl Iterator<Item = u128> {
        let mut state = seed;
        std::iter::from_fn(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            Some(u128::from(state >> 40))
        })
    }

    #[test]
    fn keys_come_out_in_order_whether_or_not_they_replace_the_top() {
        let mut heap = Heap::default();
        let mut expected = std::collections::BTreeMap::<u128, u32>::new();
        for (step, number) in numbers(1).take(20_000).enumerate() {
            if step % 3 == 0 || expected.is_empty() {
                heap.push(number);
                *expected.entry(number).or_default() += 1;
                continue;
            }
            let mut least = expected.first_entry().unwrap();
            assert_eq!(heap.pop_below(u128::MAX), Some(*least.key()));
            *least.get_mut() -= 1;
            if *least.get() == 0 {
                least.remove();
            }
        }
    }

    #[test]
    fn a_key_at_the_limit_stays() {
        let mut heap = Heap::default();
        heap.push(7);
        assert_eq!(heap.pop_below(7), None);
        assert_eq!(heap.pop_below(8), Some(7));
        assert_eq!(heap.pop_below(u128::MAX), None);
    }
}
