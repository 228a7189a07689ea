//! What goes wrong around a run: one line each.

use std::{fmt, io};

/// A scenario, a pace or a journal that cannot be used.
#[derive(Debug)]
pub enum Error {
    /// The scenario is refused.
    Scenario(scenario::Error),
    /// The file of a scenario cannot be read: the line that says so.
    Text(String),
    /// A file cannot be read or written.
    File {
        /// Its name, or what it is.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// A pace that there is not.
    Pace(String),
    /// What should be a journal begins with something else.
    NotAJournal,
    /// A journal of another version of the format.
    JournalVersion {
        /// Its version.
        version: u8,
        /// The version that is read here.
        allowed: u8,
    },
    /// A journal that ends before its end.
    JournalCut {
        /// Where it ends, in bytes.
        at: u64,
    },
    /// A journal with bytes that no run wrote.
    JournalDamaged {
        /// The beginning of the damaged block, in bytes.
        at: u64,
        /// What does not fit.
        what: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(error) => error.fmt(f),
            Self::Text(line) => f.write_str(line),
            Self::File { file, error } => write!(f, "{file}: {error}"),
            Self::Pace(text) => write!(
                f,
                "`{text}` is no pace: allowed are `virtual`, `real`, `step`, and a factor such as \
                 `10x` or `0.5x` (0.001x to 1000000x)"
            ),
            Self::NotAJournal => f.write_str("this is no journal of kavg"),
            Self::JournalVersion { version, allowed } => {
                write!(f, "the journal has version {version} of the format; allowed is {allowed}")
            }
            Self::JournalCut { at } => {
                write!(f, "the journal is cut: it ends at byte {at}, before the end of its run")
            }
            Self::JournalDamaged { at, what } => {
                write!(f, "the journal is damaged in the block at byte {at}: {what}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<scenario::Error> for Error {
    fn from(error: scenario::Error) -> Self {
        Self::Scenario(error)
    }
}
