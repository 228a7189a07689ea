//! Where a daemon at work is found: the option that commands have in common.

use counters::sorted::sort;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

use clap::Args;
use control::Client;

use crate::Result;

/// The variable of the environment that names the socket.
const VARIABLE: &str = "KAVG_LIVE";
/// Where sockets are that nobody names, and how their names end: as the unit for systemd has it.
const DIRECTORY: &str = "/run/kavg";
const ENDING: &str = "ctl";

/// A daemon at work.
#[derive(Args, Clone)]
pub(crate) struct Live {
    /// The control socket of the daemon; KAVG_LIVE in the environment names it as well, otherwise it is
    /// the one in /run/kavg
    #[arg(long, value_name = "SOCKET")]
    pub(crate) live: Option<PathBuf>,
    /// Of which of its hosts, where it has several
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
}

impl Live {
    /// Connects to it.
    pub(crate) fn connect(&self) -> Result<Client> {
        let named = self.live.clone().or_else(|| env::var_os(VARIABLE).map(PathBuf::from));
        let path = named.map_or_else(|| only(Path::new(DIRECTORY)), Ok)?;
        Ok(Client::connect(&path, self.host.clone())?)
    }
}

/// The control socket of a directory that has one.
fn only(directory: &Path) -> std::result::Result<PathBuf, String> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten().map(|file| file.path());
    let mut found: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == ENDING)).collect();
    sort(&mut found);
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => {
            Err(format!("no daemon has its socket in {}: name it by --live", directory.display()))
        }
        several => {
            let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
            Err(format!("--live is one of {}", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_is_alone_needs_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let refusal = || only(directory.path()).unwrap_err();
        assert!(refusal().starts_with("no daemon has its socket in "), "{}", refusal());
        let make = |name: &str| fs::write(directory.path().join(name), "").unwrap();
        make("a.ctl");
        make("a.settings");
        assert_eq!(only(directory.path()), Ok(directory.path().join("a.ctl")));
        make("b.ctl");
        assert!(refusal().contains("a.ctl, ") && refusal().ends_with("b.ctl"), "{}", refusal());
    }
}
