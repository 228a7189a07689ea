//! What goes wrong around a run: one line each.

use std::fmt;

/// A scenario or a pace that cannot be used.
#[derive(Debug)]
pub enum Error {
    /// The scenario is refused.
    Scenario(scenario::Error),
    /// The file of a scenario cannot be read: the line that says so.
    Text(String),
    /// A pace that there is not.
    Pace(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(error) => error.fmt(f),
            Self::Text(line) => f.write_str(line),
            Self::Pace(text) => write!(
                f,
                "`{text}` is no pace: allowed are `virtual`, `real`, `step`, and a factor such as \
                 `10x` or `0.5x` (0.001x to 1000000x)"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<scenario::Error> for Error {
    fn from(error: scenario::Error) -> Self {
        Self::Scenario(error)
    }
}
