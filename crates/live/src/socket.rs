//! Sockets with a file, and who may open them.

use std::{
    fs::{self, Permissions},
    io::{self, ErrorKind},
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt, chown},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use nix::sys::stat::{Mode, umask};
use scenario::Sockets;

/// Where the numbers of groups are.
pub(crate) const GROUPS: &str = "/etc/group";

/// The file of a socket, which goes with this: before the listener does, for then another may be bound there.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// What tells it from another that somebody put in its place: its filesystem and its number there.
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    fn of(path: &Path) -> Self {
        Self { path: path.to_path_buf(), identity: identity(path) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nobody has removed it.
    pub(crate) fn is_there(&self) -> bool {
        self.identity.is_some() && identity(&self.path) == self.identity
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// A Unix socket that only its owner may open. One that nobody listens on any more is replaced; what is no
/// socket is left as it is.
pub(crate) fn bind(path: &Path) -> io::Result<(SocketFile, UnixListener)> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
        return Err(io::Error::other("a file is there that is no socket, and it is left as it is"));
    }
    if UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
        fs::remove_file(path)?;
    }
    let before = umask(Mode::S_IRWXG | Mode::S_IRWXO | Mode::S_IXUSR);
    let listener = UnixListener::bind(path);
    umask(before);
    listener.map(|listener| (SocketFile::of(path), listener))
}

/// Binds a socket anew whose file somebody has removed, and hands it to who accepts there; a line that says how
/// it went.
pub(crate) fn renew(
    path: &Path,
    sockets: &Sockets,
    take: impl FnOnce(SocketFile, UnixListener) -> io::Result<()>,
) -> String {
    let bound = bind(path).and_then(|(file, listener)| take(file, listener));
    let name = path.display();
    match bound.map_err(|error| error.to_string()).and_then(|()| share(path, sockets)) {
        Ok(()) => format!("{name} was removed, and is made again"),
        Err(error) => format!("{name} was removed, and cannot be made again: {error}"),
    }
}

/// Lets those open a socket whom the file says.
///
/// # Errors
/// What is wrong with the group.
pub(crate) fn share(path: &Path, sockets: &Sockets) -> Result<(), String> {
    if let Some((name, id)) = group_of(sockets)? {
        let given = chown(path, None, Some(id));
        given.map_err(|error| {
            format!("`group`: {error} for `{name}`; the daemon has to be in it")
        })?;
    }
    let given = fs::set_permissions(path, Permissions::from_mode(sockets.mode));
    given.map_err(|error| format!("`mode`: {error}"))
}

/// The group that sockets belong to, with its number; nothing where the file says none.
///
/// # Errors
/// That there is none of that name.
pub fn group_of(sockets: &Sockets) -> Result<Option<(&str, u32)>, String> {
    let Some(name) = &sockets.group else { return Ok(None) };
    let id = group_id(name).ok_or_else(|| format!("`group`: there is no group `{name}`"))?;
    Ok(Some((name, id)))
}

/// The number of a group, by its name or as a number itself. The file is read here: a static program has no
/// means to ask anybody else.
fn group_id(name: &str) -> Option<u32> {
    let groups = fs::read_to_string(GROUPS).unwrap_or_default();
    let fields = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let named = |fields: Vec<&str>| (fields[0] == name).then(|| fields.get(2)?.parse().ok())?;
    fields.filter_map(named).next().or_else(|| name.parse().ok())
}
