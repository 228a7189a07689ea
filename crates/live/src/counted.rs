//! A host whose counters can be read: who is who there, and the components that count.

use std::{
    mem,
    sync::{Arc, mpsc::channel},
    time::Duration,
};

use counters::{HostSnapshot, Inventory};
use scenario::Components;

use crate::{
    export::Export,
    ids::Ids,
    mailbox::{Letter, Mailbox, Reading},
};

/// How long a component may take to answer: it is at work, or stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// A host whose counters can be read.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) inventory: Inventory,
    pub(crate) components: Components,
    /// What its parts are in the engines of the components.
    pub(crate) ids: Ids,
    pub(crate) mailboxes: Vec<Arc<Mailbox>>,
    pub(crate) exports: Vec<Export>,
    pub(crate) epoch_ms: i64,
}

impl Counted {
    /// What the host has counted so far: of each object what its component says.
    pub(crate) fn read(&self) -> Result<Reading, String> {
        let mut parts = Vec::new();
        for mailbox in &self.mailboxes {
            let (sender, receiver) = channel();
            mailbox.send(Letter::Counters(Reading::default(), sender));
            let part = receiver.recv_timeout(PATIENCE);
            parts.push(part.map_err(|_| "a component does not answer")?);
        }
        let mut whole = HostSnapshot::default();
        let mut usable = Vec::new();
        let Components { vdisks, devices, paths, adapters, .. } = &self.components;
        whole.at = parts.iter().map(|part| part.counters.at).max().unwrap_or_default();
        let ids = &self.ids;
        for (id, part) in vdisks.iter().enumerate() {
            whole.vdisks.push(mem::take(&mut parts[*part].counters.vdisks[ids.vdisks.get(id)]));
        }
        for (id, part) in devices.iter().enumerate() {
            whole.devices.push(mem::take(&mut parts[*part].counters.devices[ids.devices.get(id)]));
        }
        for (id, part) in paths.iter().enumerate() {
            let own = ids.paths.get(id);
            whole.paths.push(mem::take(&mut parts[*part].counters.paths[own]));
            usable.push(parts[*part].usable[own]);
        }
        for (id, part) in adapters.iter().enumerate() {
            whole
                .adapters
                .push(mem::take(&mut parts[*part].counters.adapters[ids.adapters.get(id)]));
        }
        Ok(Reading { counters: whole, usable })
    }

    /// The size of a disk that is served.
    pub(crate) fn bytes(&self, disk: usize) -> u64 {
        let disk = self.ids.vdisks.get(disk);
        let export = self.exports.iter().find(|export| export.vdisk.index() == disk);
        export.map_or(0, |export| export.bytes)
    }
}
