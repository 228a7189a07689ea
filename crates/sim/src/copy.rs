//! A virtual disk that is copied to another datastore while its VM runs: Storage vMotion's data mover, and what
//! becomes of the guest's writes meanwhile [SVM].
//!
//! ```text
//!   copied            under way    not yet
//!   [===============][- - - - - -][                    ]
//!   a write: both     it waits     the source alone
//! ```
//!
//! The data mover reads a chunk and writes it, or has the array copy it, several at a time, once from beginning to end. A write that goes to both
//! places has ended when both have it; the data mover takes it to the second (ruling: so the VM's disk counts it once, and
//! what it waits there longer counts as waiting above the disk). What fails in the copy, or in the second place, gives the
//! copy up.

use std::collections::{BTreeMap, VecDeque};

use counters::{Direction, Occupancy, Op, SECTOR, Status, Time, VdiskCounters, VdiskId};
use engine::Request;
use scenario::CopyConfig;

/// In the tag of a write in the second place: slots of block layers are smaller.
const SECOND: u32 = 1 << 31;

/// A virtual disk on its way.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) from: VdiskId,
    pub(crate) to: VdiskId,
    /// The data mover's disks in the two places.
    pub(crate) mover: [VdiskId; 2],
    config: CopyConfig,
    begun: Time,
    /// How it has ended; what is left then is under way in both places.
    end: Option<CopyEnd>,
    /// Whether that was said.
    is_told: bool,
    /// The first byte for which no chunk was begun.
    reached: u64,
    /// Where the chunks begin that are under way.
    chunks: Vec<Option<u64>>,
    /// Writes that are under way in two places, by their tags.
    halves: BTreeMap<u32, Half>,
    /// Writes that only the second place has not ended yet.
    waiting: Occupancy,
    /// Nanoseconds for which those waited that have ended.
    waited_ns: u64,
    /// Writes to what is under way, and when they came.
    held: Vec<(Time, Request)>,
}

/// Which half of a write has ended.
#[derive(Clone, Copy, Debug)]
enum Half {
    Neither,
    First(Status, Time),
    Second,
}

/// How a copy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyEnd {
    /// All was copied after so many nanoseconds, and the disk goes on there.
    Copied(u64),
    /// Something failed, or the VM or its host went down: the disk stays where it was.
    GivenUp,
    /// The run is over, and so many bytes are not copied.
    Unfinished(u64),
}

/// What the end of a command in a place of a copy means.
pub(crate) enum Ended {
    /// It is none of the copy.
    Other,
    /// Nothing for the guest.
    Nothing,
    /// The guest's write of that tag has ended.
    Write(u32, Status),
}

impl Copy {
    /// It begins with so many chunks.
    pub(crate) fn begin(
        now: Time,
        [from, to]: [VdiskId; 2],
        mover: [VdiskId; 2],
        config: CopyConfig,
        requests: &mut VecDeque<Request>,
    ) -> Self {
        let mut copy = Self {
            from,
            to,
            mover,
            config,
            begun: now,
            end: None,
            is_told: false,
            reached: 0,
            chunks: vec![None; config.outstanding as usize],
            halves: BTreeMap::new(),
            waiting: Occupancy::default(),
            waited_ns: 0,
            held: Vec::new(),
        };
        (0..copy.chunks.len()).for_each(|slot| copy.read(slot, requests));
        copy
    }

    /// Whether it is from or to one of these disks.
    pub(crate) fn is_of(&self, disks: &[VdiskId]) -> bool {
        [self.from, self.to].iter().any(|disk| disks.contains(disk))
    }

    /// Whether nothing of it is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_told && self.halves.is_empty() && self.chunks.iter().all(Option::is_none)
    }

    /// Whether it has ended, and was not asked before.
    pub(crate) fn has_just_ended(&mut self) -> bool {
        self.end.is_some() && !core::mem::replace(&mut self.is_told, self.end.is_some())
    }

    /// Adds to the counters of the disk what the guest's writes waited for the second place alone.
    pub(crate) fn count(&self, into: &mut VdiskCounters) {
        into.guest_queued.add(&self.waiting);
        into.io[Direction::Write as usize].guest_ns += self.waited_ns;
        into.total_ns += self.waited_ns;
    }

    /// Bytes that are not copied yet; what is under way is none of those that are.
    pub(crate) fn left(&self) -> u64 {
        let begun = self.chunks.iter().flatten();
        let under_way: u64 = begun.map(|begins| u64::from(self.chunk_bytes(*begins))).sum();
        self.config.bytes.saturating_sub(self.reached) + under_way
    }

    /// Bytes of the chunk that begins there.
    fn chunk_bytes(&self, begins: u64) -> u32 {
        u64::from(self.config.chunk_bytes).min(self.config.bytes - begins) as u32
    }

    pub(crate) const fn end(&self) -> Option<CopyEnd> {
        self.end
    }

    /// No more is copied; what was held goes to the source.
    pub(crate) fn give_up(&mut self, now: Time, requests: &mut VecDeque<Request>) {
        self.end.get_or_insert(CopyEnd::GivenUp);
        self.let_go(now, requests);
    }

    /// The data mover begins with another chunk in a slot.
    fn read(&mut self, slot: usize, requests: &mut VecDeque<Request>) {
        if self.reached < self.config.bytes {
            self.chunks[slot] = Some(self.reached);
            let first = if self.config.may_offload { (1, Op::Copy) } else { (0, Op::Read) };
            requests.push_back(self.chunk(first, self.reached, slot));
            self.reached += u64::from(self.config.chunk_bytes);
        }
    }

    /// A command of the data mover for the chunk that begins there.
    fn chunk(&self, (place, op): (usize, Op), begins: u64, slot: usize) -> Request {
        let bytes = self.chunk_bytes(begins);
        let (vdisk, lba) = (self.mover[place], begins / SECTOR);
        Request { vdisk, op, lba, bytes, waited_ns: 0, tag: slot as u32 }
    }

    /// Sends a request of the guest where it is to go.
    pub(crate) fn send(&mut self, now: Time, request: Request, requests: &mut VecDeque<Request>) {
        let is_change = !matches!(request.op, Op::Read | Op::Reserve | Op::Release);
        if !is_change || self.end.is_some() {
            return requests.push_back(request);
        }
        let begins = request.lba * SECTOR;
        let ends = begins + u64::from(request.bytes);
        let is_hit =
            |chunk: &u64| *chunk < ends && begins < chunk + u64::from(self.config.chunk_bytes);
        if request.bytes > 0 && self.chunks.iter().flatten().any(is_hit) {
            return self.held.push((now, request));
        }
        requests.push_back(request);
        if begins < self.reached {
            self.halves.insert(request.tag, Half::Neither);
            let (vdisk, tag) = (self.mover[1], request.tag | SECOND);
            requests.push_back(Request { vdisk, tag, ..request });
        }
    }

    /// What was held, and is not any more.
    pub(crate) fn held(&mut self, now: Time) -> impl Iterator<Item = Request> + use<> {
        let held = core::mem::take(&mut self.held).into_iter();
        held.map(move |(since, held)| Request {
            waited_ns: held.waited_ns + now.since(since),
            ..held
        })
    }

    /// What was held goes on, if it is not in the way of another chunk.
    fn let_go(&mut self, now: Time, requests: &mut VecDeque<Request>) {
        self.held(now).for_each(|request| self.send(now, request, requests));
    }

    /// A command has ended.
    pub(crate) fn ended(
        &mut self,
        now: Time,
        (vdisk, tag, status): (VdiskId, u32, Status),
        requests: &mut VecDeque<Request>,
    ) -> Ended {
        let (place, own) = (self.mover.iter().position(|own| *own == vdisk), tag & !SECOND);
        let is_second = place.is_some() && tag != own;
        if let (Some(place), false) = (place, is_second) {
            self.moved(now, place, tag as usize, status, requests);
            return Ended::Nothing;
        }
        let half = self.halves.get_mut(&own).filter(|_| is_second || vdisk == self.from);
        let Some(half) = half else { return Ended::Other };
        let before = *half;
        *half = if is_second { Half::Second } else { Half::First(status, now) };
        if is_second && status != Status::Good {
            self.give_up(now, requests);
        }
        let status = match before {
            Half::Neither if is_second => return Ended::Nothing,
            Half::Neither => {
                self.waiting.enter(now);
                return Ended::Nothing;
            }
            Half::First(first, since) => {
                self.waiting.leave(now);
                self.waited_ns += now.since(since);
                first
            }
            Half::Second => status,
        };
        self.halves.remove(&own);
        Ended::Write(own, status)
    }

    /// A command of the data mover has ended.
    fn moved(
        &mut self,
        now: Time,
        place: usize,
        slot: usize,
        status: Status,
        requests: &mut VecDeque<Request>,
    ) {
        let Some(begins) = self.chunks[slot].take() else { return };
        match (self.end, status, place) {
            (Some(_), ..) => {}
            (None, Status::Good, 0) => {
                self.chunks[slot] = Some(begins);
                requests.push_back(self.chunk((1, Op::Write), begins, slot));
            }
            (None, Status::Good, _) => {
                self.read(slot, requests);
                self.let_go(now, requests);
                if self.chunks.iter().all(Option::is_none) {
                    self.end = Some(CopyEnd::Copied(now.since(self.begun)));
                }
            }
            (None, ..) => self.give_up(now, requests),
        }
    }
}
