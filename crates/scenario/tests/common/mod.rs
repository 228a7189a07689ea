//! What the tests of scenario files share.

use scenario::{Error, Scenario};

/// A scenario that names no other files.
pub(crate) fn parse(file: &str, text: &str) -> Result<Scenario, Error> {
    Scenario::parse(file, text, &mut |_| Err("there are no files".into()))
}
