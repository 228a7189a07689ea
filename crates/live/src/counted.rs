//! A host whose counters can be read: who is who there, and the components that count.

use std::{
    mem,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    time::Duration,
};

use control::{VscsiDisk, VscsiOrder};
use counters::{HostSnapshot, Inventory, VdiskId};
use scenario::Components;

use crate::{
    export::Export,
    ids::Ids,
    mailbox::{Letter, Mailbox, Reading},
    vscsi,
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
            parts.push(ask(mailbox, |to| Letter::Counters(Reading::default(), to))?);
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

    /// Has the components do what somebody wants of `vscsiStats`; what the disks that it is of have
    /// counted.
    pub(crate) fn vscsi(&self, order: &VscsiOrder) -> Result<Vec<VscsiDisk>, String> {
        let of_it = |(_, disk): &(usize, VscsiDisk)| {
            order.world.is_none_or(|world| world == disk.world)
                && order.handle.is_none_or(|handle| handle == disk.handle)
        };
        let mut disks: Vec<_> = self.doors().filter(of_it).collect();
        if disks.is_empty() && !self.inventory.vdisks.is_empty() {
            let known = self.doors().map(|(_, disk)| format!("{}/{}", disk.world, disk.handle));
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(format!("no disk is of that world group and handle; there are {known}"));
        }
        for (part, mailbox) in self.mailboxes.iter().enumerate() {
            let is_own =
                |(place, _): &&mut (usize, VscsiDisk)| self.components.vdisks[*place] == part;
            let own: Vec<_> = disks.iter_mut().filter(is_own).collect();
            if own.is_empty() {
                continue;
            }
            let ids = own.iter().map(|(place, _)| VdiskId::new(self.ids.vdisks.get(*place)));
            let ids = ids.collect();
            let said = ask(mailbox, |to| Letter::Vscsi(order.act, ids, to))?;
            for ((_, disk), stats) in own.into_iter().zip(said) {
                disk.histograms = stats.iter().flat_map(|stats| vscsi::counts(stats)).collect();
            }
        }
        Ok(disks.into_iter().map(|(_, disk)| disk).collect())
    }

    /// The disks, by their places, and nothing that they counted.
    fn doors(&self) -> impl Iterator<Item = (usize, VscsiDisk)> + '_ {
        self.inventory.vdisks.iter().enumerate().map(|(place, disk)| {
            let vm = &self.inventory.vms[disk.vm.index()];
            let disk = VscsiDisk {
                vm: vm.name.clone(),
                world: vm.world,
                handle: VscsiDisk::FIRST_HANDLE + self.ids.vdisks.get(place) as u64,
                name: disk.name.clone(),
                histograms: Vec::new(),
            };
            (place, disk)
        })
    }

    /// The size of a disk that is served.
    pub(crate) fn bytes(&self, disk: usize) -> u64 {
        let disk = self.ids.vdisks.get(disk);
        let export = self.exports.iter().find(|export| export.vdisk.index() == disk);
        export.map_or(0, |export| export.bytes)
    }
}

/// What a component answers to a letter.
fn ask<T>(mailbox: &Mailbox, letter: impl FnOnce(Sender<T>) -> Letter) -> Result<T, String> {
    let (sender, receiver) = channel();
    mailbox.send(letter(sender));
    receiver.recv_timeout(PATIENCE).map_err(|_| "a component does not answer".into())
}
