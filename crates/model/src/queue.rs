//! A queue with a limit: that of a target port, or that of a volume.
//!
//! A command is in it from its arrival until the answer goes out, so while answers and the next commands
//! travel a place is free, and whoever comes first has it. When it leaves is known as it
//! comes: nobody has to say that it left.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use counters::Time;

#[derive(Clone, Debug)]
pub(crate) struct Queue {
    limit: usize,
    leaves: BinaryHeap<Reverse<Time>>,
}

impl Queue {
    pub(crate) fn new(limit: u32) -> Self {
        Self { limit: limit as usize, leaves: BinaryHeap::new() }
    }

    /// Whether it has no place for a command that arrives then, which is never before the last one did.
    pub(crate) fn is_full(&mut self, arrives: Time) -> bool {
        while self.leaves.peek().is_some_and(|Reverse(at)| *at <= arrives) {
            self.leaves.pop();
        }
        self.leaves.len() >= self.limit
    }

    /// Takes a command in until then.
    pub(crate) fn enter(&mut self, leaves: Time) {
        self.leaves.push(Reverse(leaves));
    }
}
