//! Sockets with a file.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
};

use nix::sys::stat::{Mode, umask};

/// A Unix socket that only its owner may open. One that nobody listens on any more is replaced.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    if UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
        fs::remove_file(path)?;
    }
    let before = umask(Mode::S_IRWXG | Mode::S_IRWXO | Mode::S_IXUSR);
    let listener = UnixListener::bind(path);
    umask(before);
    listener
}
