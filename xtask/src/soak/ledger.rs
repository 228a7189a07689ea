//! What goes into an engine and comes out of it, booked by somebody else: the engine's counters
//! have to agree with it.

use std::collections::BTreeMap;

use counters::{HostSnapshot, IoId, PathId, Time, VdiskId};
use engine::{Engine, HostConfig};

/// How many are somewhere, and the time that they and those who left have been there.
#[derive(Clone, Copy, Default)]
struct Stay {
    inside: u64,
    since: u64,
    over_ns: u64,
}

impl Stay {
    fn enter(&mut self, at: Time) {
        self.inside += 1;
        self.since += at.0;
    }

    fn leave(&mut self, entered: Time, at: Time) {
        self.inside -= 1;
        self.since -= entered.0;
        self.over_ns += at - entered;
    }

    fn total_ns(&self, now: Time) -> u64 {
        self.over_ns + self.inside * now.0 - self.since
    }
}

/// A command with the driver.
#[derive(Clone, Copy)]
struct Command {
    adapter: usize,
    sent: Time,
    pieces: u32,
    is_recalled: bool,
}

/// The books of one host.
pub(crate) struct Ledger {
    /// I/Os under way by tag: virtual disk and time of submission.
    alive: BTreeMap<u32, (VdiskId, Time)>,
    /// By [`IoId`].
    commands: Vec<Option<Command>>,
    adapters: Vec<Stay>,
    devices: Vec<Stay>,
    /// Devices of which some I/O was cut by its guest: it ends once and is several inside.
    is_cut: Vec<bool>,
    seen: HostSnapshot,
}

impl Ledger {
    pub(crate) fn new(config: &HostConfig) -> Self {
        Self {
            alive: BTreeMap::new(),
            commands: Vec::new(),
            adapters: vec![Stay::default(); config.adapters.len()],
            devices: vec![Stay::default(); config.devices.len()],
            is_cut: vec![false; config.devices.len()],
            seen: HostSnapshot::default(),
        }
    }

    pub(crate) fn under_way(&self) -> usize {
        self.alive.len()
    }

    /// One of those under way, from the `nth` place on.
    pub(crate) fn nth(&self, tag: u32) -> Option<(u32, VdiskId)> {
        self.alive.range(tag..).next().map(|(tag, (vdisk, _))| (*tag, *vdisk))
    }

    /// Whether an answer to it is awaited.
    pub(crate) fn is_out(&self, io: IoId) -> bool {
        self.commands.get(io.0 as usize).is_some_and(Option::is_some)
    }

    pub(crate) fn submitted(&mut self, config: &HostConfig, request: &engine::Request, at: Time) {
        let disk = &config.vdisks[request.vdisk.index()];
        let device = disk.device.index();
        self.alive.insert(request.tag, (request.vdisk, at));
        self.devices[device].enter(at);
        self.is_cut[device] |= request.bytes > config.vscsi[disk.vscsi.index()].max_transfer;
    }

    pub(crate) fn completed(
        &mut self,
        config: &HostConfig,
        vdisk: VdiskId,
        tag: u32,
        at: Time,
    ) -> Result<(), String> {
        let Some((disk, since)) = self.alive.remove(&tag) else {
            return Err(format!("I/O {tag} completed twice, or was never submitted"));
        };
        if disk != vdisk {
            return Err(format!("I/O {tag} of {disk:?} completed on {vdisk:?}"));
        }
        self.devices[config.vdisks[vdisk.index()].device.index()].leave(since, at);
        Ok(())
    }

    pub(crate) fn dispatched(&mut self, config: &HostConfig, io: IoId, path: PathId, at: Time) {
        let index = io.0 as usize;
        if self.commands.len() <= index {
            self.commands.resize(index + 1, None);
        }
        let adapter = config.paths[path.index()].adapter.index();
        let command = self.commands[index].get_or_insert_with(|| {
            self.adapters[adapter].enter(at);
            Command { adapter, sent: at, pieces: 0, is_recalled: false }
        });
        command.pieces += 1;
    }

    pub(crate) fn answered(&mut self, io: IoId, at: Time) {
        let slot = &mut self.commands[io.0 as usize];
        let Some(command) = slot else { return };
        command.pieces -= 1;
        if command.pieces == 0 {
            if !command.is_recalled {
                self.adapters[command.adapter].leave(command.sent, at);
            }
            *slot = None;
        }
    }

    pub(crate) fn recalled(&mut self, io: IoId, at: Time) -> Result<(), String> {
        let Some(Some(command)) = self.commands.get_mut(io.0 as usize) else {
            return Err(format!("{io:?} is recalled and is not with the driver"));
        };
        command.is_recalled = true;
        self.adapters[command.adapter].leave(command.sent, at);
        Ok(())
    }

    /// Holds the counters against the books.
    pub(crate) fn check(
        &mut self,
        config: &HostConfig,
        engine: &Engine,
        now: Time,
    ) -> Result<(), String> {
        engine.snapshot(now, &mut self.seen);
        for (id, (booked, seen)) in self.adapters.iter().zip(&self.seen.adapters).enumerate() {
            let counted = (u64::from(seen.active.now()), seen.active.integral(now));
            same("adapter", id, counted, (booked.inside, booked.total_ns(now)))?;
        }
        for (id, (booked, seen)) in self.devices.iter().zip(&self.seen.devices).enumerate() {
            if self.is_cut[id] {
                continue;
            }
            let mut all = seen.held;
            let disks = config.vdisks.iter().zip(&self.seen.vdisks);
            for (_, disk) in disks.filter(|(disk, _)| disk.device.index() == id) {
                [disk.guest_queued, disk.queued, disk.slots].iter().for_each(|part| all.add(part));
            }
            let counted = (u64::from(all.now()), all.integral(now));
            same("device", id, counted, (booked.inside, booked.total_ns(now)))?;
        }
        Ok(())
    }
}

fn same(what: &str, id: usize, counted: (u64, u64), booked: (u64, u64)) -> Result<(), String> {
    if counted == booked {
        return Ok(());
    }
    Err(format!("{what} {id}: (inside, nanoseconds) are counted as {counted:?}, booked {booked:?}"))
}
