//! What the tests of several crates share: how one says that it skips, and where real captures lie.
//!
//! It stands beside the stack: only tests use it, and nothing that ships.

pub mod callgrind;
pub mod fleet;

use std::{env, fmt::Display, io::Write, path::PathBuf};

/// How a line begins that says that a test was skipped. `cargo xtask test` looks for it.
pub const SKIPPED: &str = "skipped: ";

/// Says why a test skips. The line goes past the test harness, which hides what passing tests
/// print, so that `cargo xtask test` can end with a list.
pub fn skipped(why: impl Display) {
    // The harness may have begun a line of its own.
    let line = format!("\n{SKIPPED}{why}\n");
    let _ = std::io::stdout().write_all(line.as_bytes());
}

/// The captures of real hosts. They are not part of the project: they are looked for in
/// `KAVG_CAPTURES`, else beside the repository.
#[must_use]
pub fn real_captures() -> PathBuf {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    env::var_os("KAVG_CAPTURES").map_or_else(beside, PathBuf::from)
}

/// One of the captures of real hosts, or `None` after saying that the test skips.
#[must_use]
pub fn real_capture(name: &str) -> Option<PathBuf> {
    let path = real_captures().join(name);
    let found = path.exists();
    if !found {
        skipped(format_args!(
            "no capture of a real host: {} (KAVG_CAPTURES names their folder)",
            path.display()
        ));
    }
    found.then_some(path)
}
