//! Why a setting is refused: one line.

use alloc::string::String;
use core::fmt;

/// Why a setting, or a line that sets one, is refused: one line, and nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl From<String> for Refusal {
    fn from(line: String) -> Self {
        Self(line)
    }
}

impl From<&str> for Refusal {
    fn from(line: &str) -> Self {
        Self(line.into())
    }
}

impl From<Refusal> for String {
    fn from(refusal: Refusal) -> Self {
        refusal.0
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Refusal {}
