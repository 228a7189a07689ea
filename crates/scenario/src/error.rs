//! The one error of the crate: a line that names the place, the key, what is wrong and what is
//! allowed.

use std::fmt;

/// Why a scenario, a parameter file or a command line is refused: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    place: Option<Place>,
    message: String,
}

/// Where in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    file: String,
    line: usize,
    column: usize,
}

impl Error {
    /// A refusal that has no place in a file.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { place: None, message: one_line(&message.into()) }
    }

    /// The same of a text that is in no file.
    pub(crate) fn without_place(self) -> Self {
        Self { place: None, ..self }
    }

    /// A refusal of what stands at that byte of a file's text.
    pub(crate) fn at(file: &str, text: &str, byte: usize, message: &str) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { place: Some(Place { file: file.into(), line, column }), message: one_line(message) }
    }
}

/// Outside text may carry line breaks into a message; a refusal stays one line.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { file, line, column }) = &self.place {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
