//! Where it goes what the engine decides: to whoever takes it at once, or to a queue.

use alloc::vec::Vec;

use crate::Output;

/// Takes what the engine decides while an input is handled, in the order of the decisions. It is
/// not given the engine, so it cannot answer before the input has had all its effect.
pub trait Sink {
    /// Itself, as [`Sink::again`] hands it on.
    type Again<'a>: Sink
    where
        Self: 'a;

    /// Takes the next decision.
    fn put(&mut self, output: Output);

    /// Itself once more, for whoever is called rarely: what is called so has a copy of its own, and the sink of all
    /// others need not lie in memory for it.
    fn again(&mut self) -> Self::Again<'_>;
}

/// Nobody wants to know.
impl Sink for () {
    type Again<'a> = ();

    fn put(&mut self, _output: Output) {}

    fn again(&mut self) {}
}

impl<S: Sink> Sink for &mut S {
    type Again<'a>
        = &'a mut S
    where
        Self: 'a;

    #[inline]
    fn put(&mut self, output: Output) {
        (**self).put(output);
    }

    #[inline]
    fn again(&mut self) -> &mut S {
        self
    }
}

/// Keeps outputs until they are asked for. It is written while inputs are handled and then read to
/// its end. Emptied as a whole, it is cheaper than a ring, and no larger as long as it is read to
/// its end. Mostly there is one at a time, which has a place of its own.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    first: Option<Output>,
    /// Those behind the first.
    others: Vec<Output>,
    /// How many were decided, and how many of them handed over; 0 once those are all.
    decided: usize,
    handed_over: usize,
}

impl Sink for Outputs {
    type Again<'a> = &'a mut Self;

    #[inline]
    fn put(&mut self, output: Output) {
        if self.decided == 0 {
            self.first = Some(output);
            self.others.clear();
        } else {
            self.others.push(output);
        }
        self.decided += 1;
    }

    #[inline]
    fn again(&mut self) -> &mut Self {
        self
    }
}

impl Outputs {
    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.decided == 0
    }

    /// The next one, in the order in which they came. It stays where it is, so that only what is
    /// wanted of it is read.
    #[inline]
    pub fn pop(&mut self) -> Option<&Output> {
        if self.decided == 0 {
            return None;
        }
        let next = self.handed_over;
        self.handed_over = next + 1;
        if self.handed_over == self.decided {
            (self.decided, self.handed_over) = (0, 0);
        }
        if next == 0 { self.first.as_ref() } else { self.others.get(next - 1) }
    }
}

#[cfg(test)]
mod tests {
    use counters::DeviceId;

    use super::*;

    #[test]
    fn outputs_come_in_the_order_in_which_they_were_decided() {
        let mut outputs = Outputs::default();
        let mut told = 0;
        for count in [1, 3, 0, 2] {
            let decided = told..told + count;
            decided.clone().for_each(|id| outputs.put(Output::Reset { device: DeviceId(id) }));
            assert_eq!(outputs.is_empty(), count == 0);
            for id in decided {
                assert_eq!(outputs.pop(), Some(&Output::Reset { device: DeviceId(id) }));
            }
            assert!(outputs.is_empty() && outputs.pop().is_none());
            told += count;
        }
    }
}
