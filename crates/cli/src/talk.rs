//! What is said beside the data, on standard error: warnings, refusals, how far it is. Where it cannot be
//! written (closed, a full disk) nothing else can be said either, and the command goes on: the
//! macros of `std` and `anstream` would panic (`clippy.toml`).

use std::io::{self, IsTerminal, Write};

/// Says a line.
pub(crate) fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Tells a terminal how far it is, in place of what it was told before; an empty text clears it.
pub(crate) fn progress(text: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(anstream::stderr(), "\r{text}\x1b[K");
    }
}
