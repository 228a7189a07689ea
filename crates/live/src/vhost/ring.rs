//! A ring of a device: requests that a guest has made available, and those that are used.
//!
//! ```text
//!   stopped --addresses, kick and enabled--> at work --GET_VRING_BASE--> (drained) --> stopped
//! ```
//!
//! While the component looks at the ring anyway the guest need not kick; before the component sleeps the
//! ring is at rest, and the guest kicks.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{Ordering, fence},
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::write,
};
use virtio_bindings::virtio_ring::VRING_AVAIL_F_NO_INTERRUPT;
use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, GuestAddress, VolatileMemory, VolatileSlice};

use super::{
    chain::DESCRIPTOR,
    inflight::Notes,
    memory::{Area, Memory},
    wire::Addresses,
};

/// Places in an available ring and in a used one: behind flags and index.
const ENTRIES_AT: usize = 4;
const INDEX_AT: usize = 2;
/// Bytes of an entry of each.
const AVAILABLE: usize = 2;
const USED: usize = 8;
/// Behind the entries of both there is from where on the other side is to notify.
const EVENT: usize = 2;

/// Entries of a ring at most.
pub(super) const ENTRIES_MAX: u16 = 1_024;

/// A guest has put something into a ring or its memory that makes no sense.
#[derive(Debug)]
pub(super) struct Broken;

/// A ring.
#[derive(Debug)]
pub(super) struct Ring {
    queue: Queue,
    addresses: Option<Addresses>,
    /// Where it is in the guest's memory, once it has been at work.
    areas: Option<Areas>,
    pub(super) kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
    pub(super) err: Option<OwnedFd>,
    pub(super) is_enabled: bool,
    pub(super) notes: Option<Notes>,
    is_at_work: bool,
    /// What was in flight when the daemon before this one went.
    resumed: VecDeque<u16>,
    pub(super) in_flight: u16,
    /// Up to where the guest has made requests available, as far as that is known.
    available: u16,
    /// Where the used ring was when the guest was called last, or needed not to be.
    called: u16,
    /// Whether the guest is to be called in any case: it may have missed a call of the daemon before.
    must_call: bool,
    /// Whether the guest kicks for what it makes available.
    is_at_rest: bool,
}

/// The three parts of a ring, each in one part of the guest's memory: so they are looked up once, and not for each
/// word.
#[derive(Debug)]
struct Areas {
    descriptors: Area,
    available: Area,
    used: Area,
}

impl Areas {
    fn of(queue: &Queue, memory: &Memory) -> Option<Self> {
        let entries = usize::from(queue.size());
        let area = |at, bytes| memory.area(GuestAddress(at), bytes);
        Some(Self {
            descriptors: area(queue.desc_table(), DESCRIPTOR * entries)?,
            available: area(queue.avail_ring(), ENTRIES_AT + AVAILABLE * entries + EVENT)?,
            used: area(queue.used_ring(), ENTRIES_AT + USED * entries + EVENT)?,
        })
    }
}

impl Ring {
    pub(super) fn new() -> Self {
        Self {
            // A power of two.
            queue: Queue::new(ENTRIES_MAX).unwrap_or_default(),
            addresses: None,
            areas: None,
            kick: None,
            call: None,
            err: None,
            is_enabled: false,
            notes: None,
            is_at_work: false,
            resumed: VecDeque::new(),
            in_flight: 0,
            available: 0,
            called: 0,
            must_call: false,
            is_at_rest: false,
        }
    }

    pub(super) fn set_entries(&mut self, entries: u32) -> Result<(), Broken> {
        let entries = u16::try_from(entries).map_err(|_| Broken)?;
        self.queue.try_set_size(entries).map_err(|_| Broken)
    }

    pub(super) const fn set_addresses(&mut self, addresses: Addresses) {
        self.addresses = Some(addresses);
    }

    pub(super) fn set_base(&mut self, base: u32) {
        self.queue.set_next_avail(base as u16);
        self.available = base as u16;
    }

    /// Where the ring is: what is available from there on was not taken.
    pub(super) fn base(&self) -> u16 {
        self.queue.next_avail()
    }

    /// How the guest is called. Whoever has the other end may have filled it: that is not waited for.
    pub(super) fn set_call(&mut self, call: Option<OwnedFd>) {
        if let Some(call) = &call {
            let flags =
                fcntl(call, FcntlArg::F_GETFL).map_or(OFlag::empty(), OFlag::from_bits_retain);
            // What has no such flag takes what it can.
            let _ = fcntl(call, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK));
        }
        self.call = call;
        self.must_call = self.is_at_work;
    }

    /// Begins to work once all that is needed for that is there, or finds its place in another table of
    /// memory.
    pub(super) fn settle(&mut self, memory: &Memory, event_idx: bool) -> Result<(), Broken> {
        let Some(addresses) = self.addresses.filter(|_| self.kick.is_some()) else { return Ok(()) };
        self.areas = None;
        let guest = |user| memory.guest(user).ok_or(Broken);
        let wrong = |_| Broken;
        let Addresses { descriptors, used, available, .. } = addresses;
        self.queue.try_set_desc_table_address(guest(descriptors)?).map_err(wrong)?;
        self.queue.try_set_avail_ring_address(guest(available)?).map_err(wrong)?;
        self.queue.try_set_used_ring_address(guest(used)?).map_err(wrong)?;
        self.queue.set_event_idx(event_idx);
        self.queue.set_ready(true);
        // Address 0 stands for a ring that is not there.
        if self.queue.avail_ring() == 0 || !self.queue.is_valid(memory.map()) {
            return Err(Broken);
        }
        self.areas = Some(Areas::of(&self.queue, memory).ok_or(Broken)?);
        if !self.is_at_work {
            self.begin(memory)?;
        }
        Ok(())
    }

    fn begin(&mut self, memory: &Memory) -> Result<(), Broken> {
        let used = self.queue.used_idx(memory.map(), Ordering::Acquire).map_err(|_| Broken)?.0;
        self.queue.set_next_used(used);
        self.called = used;
        if let Some(notes) = &mut self.notes {
            self.resumed = notes.resume(used).into();
            self.queue.set_next_avail(used.wrapping_add(self.resumed.len() as u16));
        }
        self.available = self.queue.next_avail();
        (self.is_at_work, self.is_at_rest, self.must_call) = (true, false, true);
        Ok(())
    }

    /// It takes no more; what it has is told.
    pub(super) fn stop(&mut self) {
        self.is_at_work = false;
        self.queue.set_ready(false);
        self.resumed.clear();
    }

    /// All that it had is told, and it needs its memory no longer.
    pub(super) fn leave(&mut self) {
        self.areas = None;
    }

    pub(super) const fn is_at_work(&self) -> bool {
        self.is_at_work
    }

    /// Whether it may be looked at.
    pub(super) fn is_open(&self) -> bool {
        self.is_at_work && self.is_enabled && self.in_flight < self.queue.size()
    }

    fn areas(&self) -> Result<&Areas, Broken> {
        self.areas.as_ref().ok_or(Broken)
    }

    /// The table of descriptors.
    pub(super) fn table(&self) -> Option<VolatileSlice<'_>> {
        self.areas.as_ref()?.descriptors.slice()
    }

    /// Takes the next request: the first of its descriptors.
    pub(super) fn take(&mut self, memory: &Memory) -> Result<Option<u16>, Broken> {
        let head = match self.resumed.pop_front() {
            Some(head) => head,
            None => {
                let Some(head) = self.next_available()? else { return Ok(None) };
                if let Some(notes) = self.notes.as_mut().filter(|_| head < self.queue.size()) {
                    notes.begin(head);
                }
                head
            }
        };
        if self.is_at_rest {
            self.is_at_rest = false;
            self.queue.disable_notification(memory.map()).map_err(|_| Broken)?;
        }
        self.in_flight += 1;
        Ok(Some(head))
    }

    /// The next entry of the available ring. How far that goes is asked once for all that are there,
    /// because the guest writes it all the time.
    fn next_available(&mut self) -> Result<Option<u16>, Broken> {
        let area = &self.areas.as_ref().ok_or(Broken)?.available;
        // A power of two: no other number of entries is taken.
        let (next, entries) = (self.queue.next_avail(), self.queue.size());
        if next == self.available {
            let available = area.load(INDEX_AT, Ordering::Acquire).ok_or(Broken)?;
            let available = u16::from_le(available);
            if available.wrapping_sub(next) > entries {
                return Err(Broken);
            }
            self.available = available;
        }
        if next == self.available {
            return Ok(None);
        }
        let at = ENTRIES_AT + AVAILABLE * usize::from(next & (entries - 1));
        let head = area.load(at, Ordering::Relaxed).ok_or(Broken)?;
        self.queue.set_next_avail(next.wrapping_add(1));
        Ok(Some(u16::from_le(head)))
    }

    /// A request has ended: so many bytes were written for it. The guest is told at once, and called if it
    /// sleeps: it wakes, and asks for more, while the others end. To tell it of 16 at a time was half as fast.
    pub(super) fn give(&mut self, head: u16, bytes: u32) -> Result<(), Broken> {
        self.in_flight -= 1;
        if let Some(notes) = &mut self.notes {
            notes.ends(head);
        }
        let (used, entries) = (self.queue.next_used(), self.queue.size());
        if head >= entries {
            return Err(Broken);
        }
        let area = self.areas()?.used.slice().ok_or(Broken)?;
        let entry = (u64::from(head) | u64::from(bytes) << 32).to_le();
        let at = ENTRIES_AT + USED * usize::from(used & (entries - 1));
        area.get_ref(at).map_err(|_| Broken)?.store(entry);
        let used = used.wrapping_add(1);
        area.store(used.to_le(), INDEX_AT, Ordering::Release).map_err(|_| Broken)?;
        self.queue.set_next_used(used);
        if let Some(notes) = &mut self.notes {
            notes.ended(1, used);
        }
        self.call()
    }

    /// Calls the guest if it was told something and wants to be called.
    pub(super) fn call(&mut self) -> Result<(), Broken> {
        if self.called == self.queue.next_used() && !self.must_call {
            return Ok(());
        }
        let is_wanted = self.is_call_wanted()? | std::mem::take(&mut self.must_call);
        if let Some(call) = self.call.as_ref().filter(|_| is_wanted) {
            ring_bell(call);
        }
        Ok(())
    }

    fn is_call_wanted(&mut self) -> Result<bool, Broken> {
        let used = self.queue.next_used();
        let new = used.wrapping_sub(std::mem::replace(&mut self.called, used));
        // What was told is seen before what the guest wants is looked at.
        fence(Ordering::SeqCst);
        let area = &self.areas()?.available;
        let word = |at| area.load::<u16>(at, Ordering::Relaxed).ok_or(Broken);
        if !self.queue.event_idx_enabled() {
            let flags = word(0)?;
            return Ok(flags & (VRING_AVAIL_F_NO_INTERRUPT as u16).to_le() == 0);
        }
        let event = word(ENTRIES_AT + AVAILABLE * usize::from(self.queue.size()));
        let event = u16::from_le(event?);
        Ok(used.wrapping_sub(event).wrapping_sub(1) < new)
    }

    /// The guest is to kick from now on; whether something is there already.
    pub(super) fn rest(&mut self, memory: &Memory) -> Result<bool, Broken> {
        if !self.is_open() || self.is_at_rest {
            return Ok(false);
        }
        self.is_at_rest = true;
        self.queue.enable_notification(memory.map()).map_err(|_| Broken)
    }
}

/// Adds one to what may be an eventfd.
pub(super) fn ring_bell(bell: &OwnedFd) {
    let _ = write(bell.as_fd(), &1_u64.to_ne_bytes());
}
