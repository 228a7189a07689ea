//! What a front end has agreed on and handed over, message by message.

use std::{io, os::fd::OwnedFd, sync::Arc};

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};

use super::{
    RINGS_MAX, channel,
    config::{self, Features},
    inflight,
    memory::{Memory, PARTS_MAX},
    ring::{Broken, ENTRIES_MAX, Ring},
    wire::{self, Addresses, Can, Config, InflightArea, Message, Region, RingFile, Vring},
};
use crate::export::Export;

/// What of the protocol can be agreed on.
const PROTOCOL: u64 = Can::MQ
    | Can::REPLY_ACK
    | Can::BACKEND_REQ
    | Can::CONFIG
    | Can::INFLIGHT_SHMFD
    | Can::RESET_DEVICE
    | Can::CONFIGURE_MEM_SLOTS;

/// What is known of a front end and its guest.
#[derive(Debug)]
pub(super) struct Terms {
    features: Features,
    /// Features of the protocol.
    agreed: u64,
    pub(super) memory: Arc<Memory>,
    pub(super) rings: Vec<Ring>,
    /// How many of the rings have to be looked at: those that have a kick are among the first.
    pub(super) width: usize,
    /// Where it is told something; User-Mode Linux gives a disk up whose back end closes it.
    backend_req: Option<OwnedFd>,
    writeback: bool,
    /// Whether the guest has put something into a ring that makes no sense.
    pub(super) is_broken: bool,
    /// Why the guest's memory cannot be read, until that is told.
    pub(super) unmapped: Option<String>,
}

/// What a message leads to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is done.
    Done,
    Reply(Vec<u8>),
    /// The same, with a file.
    Inflight(Vec<u8>, OwnedFd),
    /// It is done when the requests of a ring, or of all rings, are.
    Drain(Option<usize>),
    /// It cannot be done.
    Refused,
}

impl From<io::Error> for Outcome {
    fn from(_: io::Error) -> Self {
        Self::Refused
    }
}

impl From<Broken> for Outcome {
    fn from(_: Broken) -> Self {
        Self::Refused
    }
}

/// Who wants to know of kicks, and the key of the first ring's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kicks<'a> {
    pub(super) epoll: &'a Epoll,
    pub(super) first: u64,
    /// From the key of a ring to that of the next one.
    pub(super) step: u64,
}

impl Kicks<'_> {
    fn add(self, ring: usize, kick: &OwnedFd) -> io::Result<()> {
        let key = self.first + self.step * ring as u64;
        // Each kick is an edge, so that it need not be read.
        let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, key);
        Ok(self.epoll.add(kick, event)?)
    }

    /// The front end has the same file, so that it would be waited for even when it is closed here.
    fn remove(self, kick: Option<OwnedFd>) {
        if let Some(kick) = kick {
            let _ = self.epoll.delete(kick);
        }
    }
}

impl Terms {
    pub(super) fn new() -> Self {
        Self {
            features: Features::default(),
            agreed: 0,
            memory: Arc::default(),
            rings: (0..RINGS_MAX).map(|_| Ring::new()).collect(),
            width: 0,
            backend_req: None,
            writeback: true,
            is_broken: false,
            unmapped: None,
        }
    }

    /// Finds out how many of the rings have to be looked at.
    pub(super) fn measure(&mut self) {
        let has_kick = |ring: &Ring| ring.kick.is_some();
        self.width = self.rings.iter().rposition(has_kick).map_or(0, |last| last + 1);
    }

    /// Tells a front end that wants to know it that the configuration of its disk has changed. One that
    /// does not take it reads it when it begins anew.
    pub(super) fn tell_of_config(&self) {
        const NEEDED: u64 = Can::BACKEND_REQ | Can::CONFIG;
        if let (Some(socket), NEEDED) = (&self.backend_req, self.agreed & NEEDED) {
            let _ = channel::send(socket, &wire::config_changed(), None);
        }
    }

    /// Whether each write is to be durable.
    pub(super) const fn writes_through(&self) -> bool {
        !(self.writeback && self.features.flush())
    }

    /// Everything that a guest has set up is forgotten.
    pub(super) fn reset(&mut self, kicks: Kicks<'_>) {
        for ring in &mut self.rings {
            ring.stop();
            kicks.remove(ring.kick.take());
            if let Some(notes) = &mut ring.notes {
                notes.forget();
            }
            let notes = ring.notes.take();
            *ring = Ring::new();
            ring.notes = notes;
        }
        (self.features, self.writeback, self.is_broken) = (Features::default(), true, false);
    }

    /// The front end goes; what was in flight stays noted.
    pub(super) fn end(&mut self, kicks: Kicks<'_>) {
        self.rings.iter_mut().for_each(|ring| kicks.remove(ring.kick.take()));
        *self = Self::new();
    }

    /// A ring that was asked to stop has: where it is.
    pub(super) fn stopped(&mut self, ring: usize, kicks: Kicks<'_>) -> Vec<u8> {
        let stopped = &mut self.rings[ring];
        kicks.remove(stopped.kick.take());
        stopped.set_call(None);
        stopped.leave();
        Vring { ring: ring as u32, value: stopped.base().into() }.bytes().to_vec()
    }

    /// Does what a message says.
    pub(super) fn take(
        &mut self,
        message: Message,
        files: Vec<OwnedFd>,
        export: &Export,
        kicks: Kicks<'_>,
    ) -> Outcome {
        let word = |word: u64| Outcome::Reply(word.to_ne_bytes().to_vec());
        let done = match message {
            Message::GetFeatures => return word(Features::offered(export).0),
            Message::GetProtocolFeatures => return word(PROTOCOL),
            Message::GetQueueNum => return word(RINGS_MAX as u64),
            Message::GetMaxMemSlots => return word(PARTS_MAX as u64),
            Message::GetConfig(config) => return self.get_config(config, export),
            Message::GetInflight(area) => return get_inflight(area).unwrap_or_else(Outcome::from),
            Message::GetVringBase(ring) => return self.stop(ring),
            Message::ResetDevice | Message::ResetOwner => {
                self.rings.iter_mut().for_each(Ring::stop);
                return Outcome::Drain(None);
            }
            Message::SetOwner => Ok(()),
            Message::SetFeatures(features) => self.set_features(features, export),
            Message::SetProtocolFeatures(features) => {
                self.agreed = features;
                if features & !PROTOCOL == 0 { Ok(()) } else { Err(Outcome::Refused) }
            }
            Message::SetMemTable(regions) => self.set_memory(regions, files),
            Message::AddMemReg(region) => self.add_memory(region, files),
            Message::RemMemReg(region) => self.remove_memory(region),
            Message::SetVringNum(Vring { ring, value }) => {
                self.on(ring, |ring| Ok(ring.set_entries(value)?))
            }
            Message::SetVringBase(Vring { ring, value }) => self.on(ring, |ring| {
                ring.set_base(value);
                Ok(())
            }),
            Message::SetVringAddr(addresses) => self.set_addresses(addresses),
            Message::SetVringEnable(Vring { ring, value }) => self.on(ring, |ring| {
                ring.is_enabled = value != 0;
                Ok(())
            }),
            Message::SetVringKick(of) => self.set_kick(of, files, kicks),
            Message::SetVringCall(of) => self.on(of.ring, |ring| {
                ring.set_call(of.file(files));
                Ok(())
            }),
            Message::SetVringErr(of) => self.on(of.ring, |ring| {
                ring.err = of.file(files);
                Ok(())
            }),
            Message::SetBackendReq => {
                self.backend_req = files.into_iter().next();
                Ok(())
            }
            Message::SetConfig(config, bytes) => self.set_config(config, &bytes),
            Message::SetInflight(area) => self.set_inflight(area, files),
        };
        done.err().unwrap_or(Outcome::Done)
    }

    fn on(
        &mut self,
        ring: u32,
        change: impl FnOnce(&mut Ring) -> Result<(), Outcome>,
    ) -> Result<(), Outcome> {
        change(self.rings.get_mut(ring as usize).ok_or(Outcome::Refused)?)
    }

    fn set_features(&mut self, features: u64, export: &Export) -> Result<(), Outcome> {
        if features & !Features::offered(export).0 != 0 {
            return Err(Outcome::Refused);
        }
        self.features = Features(features);
        self.is_broken = false;
        // Who knows of no features of the protocol enables no rings.
        let is_enabled = !self.features.protocol();
        self.rings.iter_mut().for_each(|ring| ring.is_enabled |= is_enabled);
        Ok(())
    }

    fn set_memory(&mut self, regions: Vec<Region>, files: Vec<OwnedFd>) -> Result<(), Outcome> {
        if regions.len() != files.len() {
            return Err(Outcome::Refused);
        }
        self.put_mapped(Memory::new(regions.into_iter().zip(files).collect()))
    }

    fn add_memory(&mut self, region: Region, files: Vec<OwnedFd>) -> Result<(), Outcome> {
        let file = files.into_iter().next().ok_or(Outcome::Refused)?;
        self.put_mapped(self.memory.with(region, file))
    }

    fn remove_memory(&mut self, region: Region) -> Result<(), Outcome> {
        let memory = self.memory.without(region)?;
        self.put_memory(memory)
    }

    fn put_mapped(&mut self, memory: io::Result<Memory>) -> Result<(), Outcome> {
        let memory = memory.inspect_err(|error| self.unmapped = Some(error.to_string()))?;
        self.put_memory(memory)
    }

    /// Rings find their places in another table of memory.
    fn put_memory(&mut self, memory: Memory) -> Result<(), Outcome> {
        self.memory = Arc::new(memory);
        let (memory, event_idx) = (&self.memory, self.features.event_idx());
        let at_work = self.rings.iter_mut().filter(|ring| ring.is_at_work());
        for ring in at_work {
            if ring.settle(memory, event_idx).is_err() {
                // One that lies in memory that has gone does no harm until it is stopped.
                self.is_broken = true;
            }
        }
        Ok(())
    }

    fn set_addresses(&mut self, addresses: Addresses) -> Result<(), Outcome> {
        let ring = self.rings.get_mut(addresses.ring as usize).ok_or(Outcome::Refused)?;
        ring.set_addresses(addresses);
        self.settle(addresses.ring as usize)
    }

    fn set_kick(
        &mut self,
        of: RingFile,
        files: Vec<OwnedFd>,
        kicks: Kicks<'_>,
    ) -> Result<(), Outcome> {
        let ring = self.rings.get_mut(of.ring as usize).ok_or(Outcome::Refused)?;
        // One without a file would have to be looked at all the time.
        let kick = of.file(files).ok_or(Outcome::Refused)?;
        kicks.remove(ring.kick.take());
        kicks.add(of.ring as usize, &kick)?;
        ring.kick = Some(kick);
        self.settle(of.ring as usize)
    }

    /// A ring finds its place in the guest's memory. A front end whose memory is not shared hands over none, and fails
    /// here.
    fn settle(&mut self, ring: usize) -> Result<(), Outcome> {
        let settled = self.rings[ring].settle(&self.memory, self.features.event_idx());
        if settled.is_err() && self.memory.is_empty() {
            self.unmapped = Some("it has handed over none".into());
        }
        Ok(settled?)
    }

    fn stop(&mut self, ring: u32) -> Outcome {
        let place = ring as usize;
        let Some(ring) = self.rings.get_mut(place) else { return Outcome::Refused };
        ring.stop();
        Outcome::Drain(Some(place))
    }

    fn get_config(&self, config: Config, export: &Export) -> Outcome {
        let Config { offset, bytes, flags } = config;
        let space = config::space(export, self.writeback);
        let head = [offset, bytes, flags].into_iter().flat_map(u32::to_ne_bytes);
        let part = &space[offset as usize..][..bytes as usize];
        Outcome::Reply(head.chain(part.iter().copied()).collect())
    }

    /// A guest changes only whether it flushes.
    fn set_config(&mut self, config: Config, bytes: &[u8]) -> Result<(), Outcome> {
        match (config.offset, bytes) {
            (config::WRITEBACK, [writeback @ 0..=1, ..]) => {
                self.writeback = *writeback == 1;
                Ok(())
            }
            _ => Err(Outcome::Refused),
        }
    }

    fn set_inflight(&mut self, area: InflightArea, files: Vec<OwnedFd>) -> Result<(), Outcome> {
        check(area)?;
        let file = files.into_iter().next().ok_or(Outcome::Refused)?;
        let notes = inflight::open(area, file)?;
        for (ring, notes) in self.rings.iter_mut().zip(notes) {
            ring.notes = Some(notes);
        }
        Ok(())
    }
}

fn check(area: InflightArea) -> Result<(), Outcome> {
    let is_good = (1..=RINGS_MAX).contains(&area.rings.into()) && area.entries <= ENTRIES_MAX;
    if is_good { Ok(()) } else { Err(Outcome::Refused) }
}

fn get_inflight(area: InflightArea) -> Result<Outcome, Outcome> {
    check(area)?;
    let (area, file) = inflight::create(area.rings, area.entries)?;
    Ok(Outcome::Inflight(area.bytes(), file))
}

impl RingFile {
    fn file(self, files: Vec<OwnedFd>) -> Option<OwnedFd> {
        files.into_iter().next().filter(|_| self.has_file)
    }
}
