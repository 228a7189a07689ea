//! The manual of a form of line. The forms stand beside what reads them.

use alloc::{format, string::String};
use core::ops::RangeInclusive;

use crate::Effect;

/// A form of line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manual {
    /// The line, with what is to be filled in in capitals.
    pub line: &'static str,
    /// When it acts; `None` is as the option says.
    pub effect: Option<Effect>,
    /// What it sets, what is allowed, and the source.
    pub what: String,
}

pub(crate) fn range(range: RangeInclusive<u32>) -> String {
    format!("{} to {}", range.start(), range.end())
}
