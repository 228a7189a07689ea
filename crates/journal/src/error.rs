//! What makes a journal unusable: one line each.

use std::{fmt, io};

/// A journal that cannot be written, read or trusted.
#[derive(Debug)]
pub enum Error {
    /// It cannot be read or written.
    File(io::Error),
    /// A host that no journal can be kept of: what of it nothing has.
    Host(&'static str),
    /// What should be a journal begins with something else.
    NotAJournal,
    /// A journal of another version of the format.
    Version {
        /// Its version.
        version: u8,
        /// The version that is read here.
        allowed: u8,
    },
    /// A journal that is cut before it says which hosts it is about.
    Cut {
        /// Where it ends, in bytes.
        at: u64,
    },
    /// A journal with bytes that nobody wrote.
    Damaged {
        /// The beginning of the damaged frame, in bytes.
        at: u64,
        /// What does not fit.
        what: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => write!(f, "the journal: {error}"),
            Self::Host(what) => write!(f, "no journal of this host could be read again: {what}"),
            Self::NotAJournal => f.write_str("this is no journal of kavg"),
            Self::Version { version, allowed } => {
                write!(f, "the journal has version {version} of the format; allowed is {allowed}")
            }
            Self::Cut { at } => {
                write!(f, "the journal is cut: it ends at byte {at}, before its hosts are told")
            }
            Self::Damaged { at, what } => {
                write!(f, "the journal is damaged in the frame at byte {at}: {what}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}
