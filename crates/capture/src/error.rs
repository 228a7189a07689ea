//! What can go wrong with a file from outside: one line that names the file and the line, what
//! is wrong there and what is expected.

use std::{fmt, io};

/// Why a file was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file as the user named it.
    pub file: String,
    /// The line it is about, from 1; `None` when it is about the file as a whole.
    pub line: Option<u64>,
    /// What is wrong and what is expected.
    pub what: String,
    /// What kind of error of the system it is, where the output could not be written.
    pub not_written: Option<io::ErrorKind>,
}

impl Error {
    pub(crate) fn new(file: &str, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, what: what.into(), not_written: None }
    }

    /// A copy of a file that the system does not let be written.
    pub(crate) fn not_written(file: &str, error: &io::Error) -> Self {
        let what = format!("its copy cannot be written: {error}");
        Self { not_written: Some(error.kind()), ..Self::new(file, what) }
    }

    /// A file or stream that the system does not let be read.
    pub(crate) fn unreadable(file: &str, error: &io::Error) -> Self {
        Self::new(file, format!("cannot be read: {error}"))
    }

    pub(crate) fn at(file: &str, line: u64, what: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::new(file, what) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

impl std::error::Error for Error {}
