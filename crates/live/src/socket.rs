//! Sockets with a file, and who may open them.

use std::{
    fs::{self, Permissions},
    io::{self, ErrorKind},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::Path,
};

use nix::{
    sys::stat::{Mode, umask},
    unistd::{Group, chown},
};
use scenario::Sockets;

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

/// Lets those open a socket whom the file says.
///
/// # Errors
/// What is wrong with the group.
pub(crate) fn share(path: &Path, sockets: &Sockets) -> Result<(), String> {
    if let Some(name) = &sockets.group {
        let group = Group::from_name(name).ok().flatten();
        let group = group.ok_or_else(|| format!("`group`: there is no group `{name}`"))?;
        let given = chown(path, None, Some(group.gid));
        given.map_err(|error| {
            format!("`group`: {} for `{name}`; the daemon has to be in it", error.desc())
        })?;
    }
    let given = fs::set_permissions(path, Permissions::from_mode(sockets.mode));
    given.map_err(|error| format!("`mode`: {error}"))
}
