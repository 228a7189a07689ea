//! Where a daemon at work is found: the option that commands have in common.

use std::{env, path::PathBuf};

use clap::Args;
use control::Client;

use crate::Result;

/// The variable of the environment that names the socket.
const VARIABLE: &str = "KAVG_LIVE";
/// Where the socket is when nobody names one.
const DEFAULT: &str = "/run/kavg/control.sock";

/// A daemon at work.
#[derive(Args, Clone)]
pub(crate) struct Live {
    /// The control socket of the daemon; KAVG_LIVE in the environment names it as well, otherwise it is
    /// /run/kavg/control.sock
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
        let path = named.unwrap_or_else(|| PathBuf::from(DEFAULT));
        Ok(Client::connect(&path, self.host.clone())?)
    }
}
