//! What goes into an engine and comes out of it, booked by somebody else: the engine's counters
//! have to agree with it.

use std::collections::BTreeMap;

use counters::{HostSnapshot, IoId, Time, VdiskId};
use engine::{Dispatch, Engine, HostConfig};

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

/// An I/O with the driver: a guest's request, or the part of it that begins there in units of the
/// largest transfer. It may be cut again, into pieces.
type Io = (IoId, u32);

/// Where it is, and how many pieces of it.
struct WithDriver {
    adapter: usize,
    sent: Time,
    pieces: u32,
}

/// A request that a guest waits for.
struct Request {
    vdisk: VdiskId,
    since: Time,
    tag: u32,
    /// Commands of it that the driver has.
    out: u32,
}

/// The books of one host.
pub(crate) struct Ledger {
    /// Requests under way, by id.
    alive: BTreeMap<IoId, Request>,
    /// The commands that the driver has, and what they belong to.
    commands: BTreeMap<IoId, Io>,
    ios: BTreeMap<Io, WithDriver>,
    last_ended: Option<IoId>,
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
            commands: BTreeMap::new(),
            ios: BTreeMap::new(),
            last_ended: None,
            adapters: vec![Stay::default(); config.adapters.len()],
            devices: vec![Stay::default(); config.devices.len()],
            is_cut: vec![false; config.devices.len()],
            seen: HostSnapshot::default(),
        }
    }

    pub(crate) fn under_way(&self) -> usize {
        self.alive.len()
    }

    /// One of those under way, chosen by the number: its disk and its tag.
    pub(crate) fn nth(&self, nth: usize) -> Option<(VdiskId, u32)> {
        let chosen = self.alive.values().nth(nth % self.alive.len().max(1))?;
        Some((chosen.vdisk, chosen.tag))
    }

    /// Whether it is the last one that was answered.
    pub(crate) fn has_just_ended(&self, io: IoId) -> bool {
        self.last_ended == Some(io)
    }

    /// Whether an answer to it is awaited.
    pub(crate) fn is_out(&self, io: IoId) -> bool {
        self.commands.contains_key(&io)
    }

    pub(crate) fn submitted(
        &mut self,
        config: &HostConfig,
        request: &engine::Request,
        id: IoId,
        at: Time,
    ) {
        let engine::Request { vdisk, tag, bytes, .. } = *request;
        let disk = &config.vdisks[vdisk.index()];
        let device = disk.device.index();
        self.alive.insert(id, Request { vdisk, since: at, tag, out: 0 });
        self.devices[device].enter(at);
        self.is_cut[device] |= bytes > config.vscsi[disk.vscsi.index()].max_transfer;
    }

    pub(crate) fn completed(
        &mut self,
        config: &HostConfig,
        id: IoId,
        tag: u32,
        at: Time,
    ) -> Result<(), String> {
        let Some(request) = self.alive.remove(&id) else {
            return Err(format!("request {id} completed twice, or was never submitted"));
        };
        if request.tag != tag {
            return Err(format!("request {id} of tag {} completed as {tag}", request.tag));
        }
        if request.out > 0 {
            return Err(format!("request {id} completed while its buffer is with the driver"));
        }
        let device = config.vdisks[request.vdisk.index()].device;
        self.devices[device.index()].leave(request.since, at);
        Ok(())
    }

    pub(crate) fn dispatched(
        &mut self,
        config: &HostConfig,
        sent: &Dispatch,
        at: Time,
    ) -> Result<(), String> {
        let Some(request) = self.alive.get_mut(&sent.request) else {
            return Err(format!(
                "{} of request {} is sent, which has ended",
                sent.io, sent.request
            ));
        };
        request.out += 1;
        let ring = config.vdisks[sent.vdisk.index()].vscsi;
        let io = (sent.request, sent.offset / config.vscsi[ring.index()].max_transfer);
        if self.commands.insert(sent.io, io).is_some() {
            return Err(format!("{} is sent twice", sent.io));
        }
        let adapter = config.paths[sent.path.index()].adapter.index();
        let with_driver = self.ios.entry(io).or_insert_with(|| {
            self.adapters[adapter].enter(at);
            WithDriver { adapter, sent: at, pieces: 0 }
        });
        with_driver.pieces += 1;
        Ok(())
    }

    /// The driver has answered a command, or let it go; `true` when that was awaited.
    pub(crate) fn answered(&mut self, id: IoId, at: Time) -> bool {
        let Some(io) = self.commands.remove(&id) else { return false };
        self.last_ended = Some(id);
        if let Some(request) = self.alive.get_mut(&io.0) {
            request.out -= 1;
        }
        if let Some(with_driver) = self.ios.get_mut(&io) {
            with_driver.pieces -= 1;
            if with_driver.pieces == 0 {
                self.adapters[with_driver.adapter].leave(with_driver.sent, at);
                self.ios.remove(&io);
            }
        }
        true
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
            // What is written off is with the driver and holds no slot of the adapter.
            if config.adapters[id].timeout_ns.is_some() {
                continue;
            }
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
