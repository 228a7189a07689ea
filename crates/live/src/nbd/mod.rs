//! NBD: a disk over a socket, for any client that speaks it [NBD].
//!
//! ```text
//!   listener (a thread of the host): accept -> handshake -> Arrived --> the component of the disk
//!   component: Connection: requests in, replies out
//! ```
//!
//! `handshake.rs` and `wire.rs` are functions of bytes; `connection.rs` has the socket of a client that
//! is at work.

mod connection;
mod handshake;
mod listener;
mod stream;
mod talk;
mod wire;

#[cfg(test)]
use std::os::unix::net::UnixStream;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use counters::VdiskId;

pub(crate) use connection::Connection;
use handshake::Agreed;
pub(crate) use listener::{Door, Listener, Listening};
use stream::Stream;
pub use talk::talk;

use crate::export::Export;

/// Connections to a host at a time. Each holds at most 32 MiB of data, and one request beyond that.
const CONNECTIONS_MAX: usize = 64;

/// A client that has agreed on an export.
#[derive(Debug)]
pub(crate) struct Arrived {
    stream: Stream,
    exports: Arc<[Export]>,
    agreed: Agreed,
    /// What it had sent after that.
    early: Vec<u8>,
    seat: Seat,
}

impl Arrived {
    /// The disk that it has agreed on.
    pub(crate) fn vdisk(&self) -> VdiskId {
        self.exports[self.agreed.export].vdisk
    }
}

#[cfg(test)]
impl Arrived {
    /// A client that has agreed on one of these, in simple replies.
    pub(crate) fn on(export: usize, exports: Arc<[Export]>, stream: UnixStream) -> Self {
        let agreed = Agreed { export, structured: false, context: false };
        let seat = Seat::take(&Arc::default()).expect("the first one");
        Self { stream: Stream::Unix(stream), exports, agreed, early: Vec::new(), seat }
    }
}

/// One of the [`CONNECTIONS_MAX`].
#[derive(Debug)]
struct Seat(Arc<AtomicUsize>);

impl Seat {
    /// One, if there is one left.
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |taken| (taken < CONNECTIONS_MAX).then_some(taken + 1);
        let is_free = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        is_free.then(|| Self(Arc::clone(taken)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
