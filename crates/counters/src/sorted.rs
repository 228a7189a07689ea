//! Order without a copy of the library's sort for each type: that is 3 to 8 KB of the program, a hundred times. Where
//! few things are put in order, and seldom, one sort of their places serves all.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::cmp::Ordering;

/// Maps and sets of what an iterator gives, by an insertion for each. What the library collects it puts in order first, by a
/// sort for each type and iterator.
pub trait Ordered: Iterator + Sized {
    /// What it gives, by key; of equal keys the last.
    fn into_map<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: Iterator<Item = (K, V)>,
    {
        let mut map = BTreeMap::new();
        map.extend(self);
        map
    }

    /// What it gives, each once.
    fn into_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }
}

impl<I: Iterator> Ordered for I {}

/// Puts items in order; equals stay as they were.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, Ord::cmp);
}

/// Puts items in the order of a key; equals stay as they were.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |one, other| key(one).cmp(&key(other)));
}

/// Puts items in the order that `compare` says; equals stay as they were.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let places = places(items.len(), &|one, other| compare(&items[one], &items[other]));
    for (place, came_from) in places.into_iter().enumerate() {
        items.swap(place, came_from);
    }
}

/// With what the item of each place is swapped, one after the other, to put all in order.
fn places(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|&one, &other| compare(one, other));
    for place in 0..len {
        // What lay in a place before this one was swapped to where that one's item came from.
        while order[place] < place {
            order[place] = order[order[place]];
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_order_of_the_library() {
        let mut state = 1_u64;
        for len in 0..40 {
            let draw = |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 60, state)
            };
            let items: Vec<(u64, u64)> = (0..len).map(draw).collect();
            let [mut ours, mut theirs] = [items.clone(), items.clone()];
            sort_by_key(&mut ours, |item| item.0);
            theirs.sort_by_key(|item| item.0);
            assert_eq!(ours, theirs);
            sort(&mut ours);
            theirs.sort_unstable();
            assert_eq!(ours, theirs);
        }
    }
}
