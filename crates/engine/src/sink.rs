//! Where it goes what the engine decides: to whoever takes it at once, or to a queue.

use alloc::vec::Vec;

use crate::Output;

/// Takes what the engine decides while an input is handled, in the order of the decisions. It is
/// not given the engine, so it cannot answer before the input has had all its effect.
pub trait Sink {
    /// Takes the next decision.
    fn put(&mut self, output: Output);
}

/// Nobody wants to know.
impl Sink for () {
    fn put(&mut self, _output: Output) {}
}

/// Keeps outputs until they are asked for. It is written while inputs are handled and then read to
/// its end. Emptied as a whole, it is cheaper than a ring, and no larger as long as it is read to
/// its end.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    decided: Vec<Output>,
    handed_over: usize,
}

impl Sink for Outputs {
    #[inline]
    fn put(&mut self, output: Output) {
        self.decided.push(output);
    }
}

impl Outputs {
    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.handed_over == self.decided.len()
    }

    /// The next one, in the order in which they came. It stays where it is, so that only what is
    /// wanted of it is read.
    #[inline]
    pub fn pop(&mut self) -> Option<&Output> {
        let next = self.handed_over;
        if next == self.decided.len() {
            self.decided.clear();
            self.handed_over = 0;
            return None;
        }
        self.handed_over += 1;
        self.decided.get(next)
    }
}
