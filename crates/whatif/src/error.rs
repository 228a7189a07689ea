//! Why there is no answer, in one line.

use std::fmt;

/// What is wrong with the recording or the question, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// The first names of many.
pub(crate) fn some<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match (names.is_empty(), more) {
        (true, _) => "none".into(),
        (false, 0) => shown,
        _ => format!("{shown} and {more} more"),
    }
}
