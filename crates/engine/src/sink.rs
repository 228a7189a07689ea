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

/// Keeps outputs until they are asked for. Mostly there is one at a time, which has a place of its own.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    next: Option<Output>,
    /// Those behind it, and how many of them were next since there are any.
    others: Vec<Output>,
    moved: usize,
}

impl Sink for Outputs {
    type Again<'a> = &'a mut Self;

    #[inline]
    fn put(&mut self, output: Output) {
        if self.next.is_none() {
            self.next = Some(output);
        } else {
            self.others.push(output);
        }
    }

    #[inline]
    fn again(&mut self) -> &mut Self {
        self
    }
}

impl Outputs {
    /// The next one, in the order in which they came.
    #[inline]
    #[must_use]
    pub const fn first(&self) -> Option<&Output> {
        self.next.as_ref()
    }

    /// It is done. Whoever has looked at the first and drops it has read no more of it than was wanted.
    #[inline]
    pub fn drop_first(&mut self) {
        self.next = None;
        if !self.others.is_empty() {
            self.move_up();
        }
    }

    #[cold]
    fn move_up(&mut self) {
        self.next = self.others.get(self.moved).copied();
        self.moved += 1;
        if self.moved == self.others.len() {
            self.others.clear();
            self.moved = 0;
        }
    }

    /// Takes the next one.
    #[inline]
    pub fn pop(&mut self) -> Option<Output> {
        let next = self.next?;
        self.drop_first();
        Some(next)
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
            for id in decided {
                let output = Some(Output::Reset { device: DeviceId(id) });
                assert_eq!((outputs.first().copied(), outputs.pop()), (output, output));
            }
            assert_eq!((outputs.first().copied(), outputs.pop()), (None, None));
            told += count;
        }
    }
}
