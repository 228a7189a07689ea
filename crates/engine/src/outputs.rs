//! What has been decided and not yet handed to the driver, in the order of the decisions.

use alloc::vec::Vec;

use crate::Output;

/// A list that is written while an input is handled and then read to its end. Emptied as a whole,
/// it is cheaper than a ring, and no larger as long as it is read to its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outputs {
    decided: Vec<Output>,
    handed_over: usize,
}

impl Outputs {
    #[inline]
    pub(crate) fn push(&mut self, output: Output) {
        self.decided.push(output);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Output> {
        let Some(&output) = self.decided.get(self.handed_over) else {
            self.decided.clear();
            self.handed_over = 0;
            return None;
        };
        self.handed_over += 1;
        Some(output)
    }
}
