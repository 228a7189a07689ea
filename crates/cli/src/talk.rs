//! What is said beside the data, on standard error: warnings, refusals, how far it is. Where it cannot be
//! written (closed, a full disk) nothing else can be said either, and the command goes on: the
//! macros of `std` and `anstream` would panic (`clippy.toml`).

use std::{
    io::{self, IsTerminal, Write},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

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

/// Does work that may take long and does not say how far it is: a terminal is told twice a second how
/// long it has taken.
pub(crate) fn wait_for<T>(what: &str, work: impl FnOnce() -> T) -> T {
    const EVERY: Duration = Duration::from_millis(500);
    let (start, (working, done)) = (Instant::now(), mpsc::channel::<()>());
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut is_told = false;
            while done.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                progress(&format!("{what} for {} s", start.elapsed().as_secs()));
                is_told = true;
            }
            if is_told {
                progress("");
            }
        });
        let result = work();
        drop(working);
        result
    })
}
