//! Directories in which a daemon may find at work what was not there at its start: it gives up all others.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use scenario::{Backend, Scenario};

/// Directories in which there may be something at work that was not there at the start.
#[derive(Debug)]
pub(crate) struct Folders {
    pub(crate) images: BTreeSet<PathBuf>,
    pub(crate) sockets: BTreeSet<PathBuf>,
}

impl Folders {
    /// Those of the images and sockets that a scenario names; a block device stands for itself.
    pub(crate) fn of(scenario: &Scenario, base: &Path) -> Self {
        let mut folders = Self { images: BTreeSet::new(), sockets: BTreeSet::new() };
        for image in scenario.hosts.iter().flat_map(|host| host.images.iter().flatten()) {
            if let Backend::File(path) = &image.backend {
                let path = base.join(path);
                if path.is_file() || !path.exists() {
                    folders.images.insert(parent(&path));
                }
            }
            let socket = image.vhost_user.as_ref().map(|socket| parent(&base.join(socket)));
            folders.sockets.extend(socket);
        }
        folders
    }
}

/// The directory of a file.
pub(crate) fn parent(path: &Path) -> PathBuf {
    path.parent().filter(|it| !it.as_os_str().is_empty()).map_or(".".into(), Path::to_path_buf)
}
