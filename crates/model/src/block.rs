//! The block layer of a Linux guest: what stands between its applications and its virtual disk, and
//! makes of their I/Os the commands that the VMkernel sees.
//!
//! ```text
//!   I/O -> [plug: one system call] -> [scheduler: nr_requests] -> [depth of the disk] -> virtual disk
//!            adjacent ones merge        adjacent ones merge
//! ```
//!
//! An I/O larger than the guest's commands are is cut; one that begins where a waiting request ends,
//! or ends where it begins, becomes a part of that. What is under way at the disk takes nothing in,
//! so nothing merges while the disk has room [BLK].

use alloc::{collections::BTreeMap, collections::VecDeque, vec::Vec};

use counters::{MILLISECOND, Occupancy, Op, SECOND, Time};

use crate::request::{Io, SECTOR};

/// Who decides which request is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoScheduler {
    /// `none`: the order of arrival.
    None,
    /// `mq-deadline`: by place, in batches, reads before writes, none for too long.
    MqDeadline,
}

/// The block layer of a disk, by the names of `/sys/block/DISK/queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockConfig {
    /// `scheduler`.
    pub scheduler: IoScheduler,
    /// `nr_requests`: the requests that wait or are under way, 4 to 65,536.
    pub requests_max: u32,
    /// `max_sectors_kb`, and what the adapter takes: bytes of a request, whole sectors, at least a page.
    pub bytes_max: u32,
    /// Whether anything merges: `nomerges` is 0.
    pub merges: bool,
    /// I/Os that an application hands over in a system call: fio's `iodepth_batch`, 1 to 65,536.
    pub batch: u32,
}

/// Requests of a plug, from which it is let go [BLK: `BLK_MAX_REQUEST_COUNT`].
const PLUG_REQUESTS: usize = 32;
/// Bytes of the last request in a plug, from which it is let go when another one comes [BLK: `BLK_PLUG_FLUSH_SIZE`].
const PLUG_BYTES: u32 = 128 << 10;
/// Requests of a software queue that an I/O is held against, the newest first [BLK: `blk_bio_list_merge`].
const CHECKED: usize = 8;
/// Requests of one direction in a row [BLK: `fifo_batch`].
const BATCH: u32 = 16;
/// How often reads go before a write that waits [BLK: `writes_starved`].
const WRITES_STARVED: u32 = 2;
/// How long a read and a write wait before they go first [BLK: `read_expire`, `write_expire`].
const EXPIRE_NS: [u64; 2] = [SECOND / 2, 5_000 * MILLISECOND];

/// A command for the virtual disk.
#[derive(Clone, Debug)]
pub struct BlockRequest {
    /// What it does.
    pub op: Op,
    /// Its first sector of 512 bytes.
    pub lba: u64,
    /// Its size in bytes.
    pub bytes: u32,
    /// Nanoseconds that the first of its I/Os had waited in the application when it came.
    waited_ns: u64,
    /// When that one came.
    since: Time,
    /// The I/Os of which it has all or a piece.
    tags: Vec<u32>,
}

/// The block layer of a virtual disk.
#[derive(Clone, Debug)]
pub struct Block {
    config: BlockConfig,
    /// I/Os of the system call under way, and the requests that they have become.
    plugged_ios: u32,
    plug: Vec<BlockRequest>,
    /// What found no request free, in the order of arrival.
    blocked: VecDeque<BlockRequest>,
    /// What waits for the disk in the order of arrival: reads and writes apart under `mq-deadline`.
    waiting: [VecDeque<BlockRequest>; 2],
    /// What is under way at the disk, by its slot, and the slots that are free.
    slots: Vec<Option<BlockRequest>>,
    free: Vec<u32>,
    /// Pieces that are left of I/Os which were cut.
    pieces: BTreeMap<u32, u32>,
    deadline: Deadline,
    /// What waits here.
    occupancy: Occupancy,
    ios: u64,
    merged: u64,
}

/// What `mq-deadline` remembers.
#[derive(Clone, Copy, Debug, Default)]
struct Deadline {
    /// The side that was served last, and where that one began.
    last: Option<(usize, u64)>,
    /// Requests in a row.
    batch: u32,
    /// How often reads went before writes that waited.
    starved: u32,
}

impl BlockRequest {
    fn end(&self) -> u64 {
        self.lba + u64::from(self.bytes / SECTOR)
    }

    /// Reads, and all else.
    const fn side(&self) -> usize {
        !matches!(self.op, Op::Read) as usize
    }

    /// Takes another one in, if it is adjacent, does the same, and both are no larger than `bytes_max`.
    fn merge(&mut self, other: &Self, bytes_max: u32) -> bool {
        let is_data = matches!(self.op, Op::Read | Op::Write) && self.op == other.op;
        let (behind, before) = (self.end() == other.lba, other.end() == self.lba);
        if !is_data || !(behind || before) || self.bytes + other.bytes > bytes_max {
            return false;
        }
        self.lba = self.lba.min(other.lba);
        self.bytes += other.bytes;
        self.tags.extend(&other.tags);
        true
    }
}

impl Block {
    /// A block layer with nothing in it.
    #[must_use]
    pub const fn new(config: BlockConfig) -> Self {
        Self {
            config,
            plugged_ios: 0,
            plug: Vec::new(),
            blocked: VecDeque::new(),
            waiting: [VecDeque::new(), VecDeque::new()],
            slots: Vec::new(),
            free: Vec::new(),
            pieces: BTreeMap::new(),
            deadline: Deadline { last: None, batch: 0, starved: 0 },
            occupancy: Occupancy::of_parts((0, 0)),
            ios: 0,
            merged: 0,
        }
    }

    /// Commands that wait here.
    #[must_use]
    pub const fn waiting(&self) -> Occupancy {
        self.occupancy
    }

    /// I/Os that applications issued.
    #[must_use]
    pub const fn ios(&self) -> u64 {
        self.ios
    }

    /// I/Os that became a part of another one's command.
    #[must_use]
    pub const fn merged(&self) -> u64 {
        self.merged
    }

    /// An application issues an I/O. Its system call is over with the last of a batch, or with
    /// [`Block::unplug`].
    pub fn submit(&mut self, now: Time, io: &Io) {
        let Io { op, bytes, lba, waited_ns, tag } = *io;
        let most = self.config.bytes_max;
        let pieces =
            if matches!(op, Op::Read | Op::Write) { bytes.div_ceil(most).max(1) } else { 1 };
        if pieces > 1 {
            self.pieces.insert(tag, pieces);
        }
        for piece in 0..pieces {
            let begins = piece * most;
            let bytes = if pieces > 1 { most.min(bytes - begins) } else { bytes };
            let lba = lba + u64::from(begins / SECTOR);
            self.add(BlockRequest { op, lba, bytes, waited_ns, since: now, tags: [tag].into() });
        }
        self.ios += 1;
        self.plugged_ios += 1;
        if self.plugged_ios >= self.config.batch {
            self.unplug();
        }
    }

    /// It becomes a part of what waits, or a request of its own.
    fn add(&mut self, new: BlockRequest) {
        if self.config.merges && self.is_taken_in(&new) {
            self.merged += 1;
            return;
        }
        self.occupancy.enter(new.since);
        if self.plug.len() >= PLUG_REQUESTS
            || self.plug.last().is_some_and(|last| last.bytes >= PLUG_BYTES)
        {
            self.let_go();
        }
        self.plug.push(new);
    }

    /// Whether the last request of the plug, or one that waits, takes it in.
    fn is_taken_in(&mut self, new: &BlockRequest) -> bool {
        let most = self.config.bytes_max;
        if self.plug.last_mut().is_some_and(|last| last.merge(new, most)) {
            return true;
        }
        let (side, checked) = match self.config.scheduler {
            IoScheduler::None => (0, CHECKED),
            IoScheduler::MqDeadline => (new.side(), usize::MAX),
        };
        self.waiting[side].iter_mut().rev().take(checked).any(|waiting| waiting.merge(new, most))
    }

    /// The system call is over: its requests go to the scheduler.
    pub fn unplug(&mut self) {
        self.plugged_ios = 0;
        self.let_go();
    }

    fn let_go(&mut self) {
        self.blocked.extend(self.plug.drain(..));
        self.admit();
    }

    /// Requests that were blocked go to the scheduler, while there are some free.
    fn admit(&mut self) {
        let allocated = self.waiting[0].len() + self.waiting[1].len() + self.under_way();
        for _ in allocated..self.config.requests_max as usize {
            let Some(request) = self.blocked.pop_front() else { return };
            let side = match self.config.scheduler {
                IoScheduler::None => 0,
                IoScheduler::MqDeadline => request.side(),
            };
            self.waiting[side].push_back(request);
        }
    }

    /// Requests under way at the disk.
    fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The next command for a disk that takes `depth` at a time: the slot by which [`Block::complete`]
    /// knows it, the command, and the nanoseconds that it has waited.
    pub fn dispatch(&mut self, now: Time, depth: u32) -> Option<(u32, &BlockRequest, u64)> {
        if self.under_way() >= depth as usize {
            return None;
        }
        let (side, place) = match self.config.scheduler {
            IoScheduler::None => (0, 0),
            IoScheduler::MqDeadline => self.deadline.next(now, &self.waiting)?,
        };
        let request = self.waiting[side].remove(place)?;
        Some(self.send(now, request))
    }

    /// The same where the guest goes down: one after the other all that is here, in no order.
    pub fn give_up(&mut self, now: Time) -> Option<(u32, &BlockRequest, u64)> {
        self.unplug();
        let [one, other] = &mut self.waiting;
        let next = one.pop_front().or_else(|| other.pop_front());
        let request = next.or_else(|| self.blocked.pop_front())?;
        Some(self.send(now, request))
    }

    fn send(&mut self, now: Time, request: BlockRequest) -> (u32, &BlockRequest, u64) {
        self.occupancy.leave(now);
        let waited_ns = request.waited_ns + (now - request.since);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        (slot, self.slots[slot as usize].insert(request), waited_ns)
    }

    /// The command of a slot ended: the tags of the I/Os that ended with it.
    ///
    /// # Panics
    /// When nothing is under way by that slot.
    pub fn complete(&mut self, slot: u32) -> Vec<u32> {
        let mut request = self.slots[slot as usize].take().expect("a command ends once");
        self.free.push(slot);
        request.tags.retain(|tag| match self.pieces.get_mut(tag) {
            None => true,
            Some(left) if *left > 1 => {
                *left -= 1;
                false
            }
            Some(_) => self.pieces.remove(tag).is_some(),
        });
        self.admit();
        request.tags
    }
}

impl Deadline {
    /// The side and place of the request that is next, if any waits.
    fn next(&mut self, now: Time, waiting: &[VecDeque<BlockRequest>; 2]) -> Option<(usize, usize)> {
        let following =
            self.last.and_then(|(side, lba)| Some((side, following(&waiting[side], lba)?)));
        let (side, place) = match following.filter(|_| self.batch < BATCH) {
            Some(found) => found,
            None => {
                let side = self.side(waiting)?;
                self.batch = 0;
                let expired = now - waiting[side][0].since >= EXPIRE_NS[side];
                let following = following.filter(|(on, _)| *on == side && !expired);
                (side, following.map_or(0, |(_, place)| place))
            }
        };
        self.batch += 1;
        self.last = Some((side, waiting[side][place].lba));
        Some((side, place))
    }

    /// Whose turn it is, reads' or writes', where anything waits.
    fn side(&mut self, [reads, writes]: &[VecDeque<BlockRequest>; 2]) -> Option<usize> {
        let turns_to_writes = reads.is_empty() || {
            let is_over = !writes.is_empty() && self.starved >= WRITES_STARVED;
            self.starved += u32::from(!writes.is_empty());
            is_over
        };
        if turns_to_writes {
            self.starved = 0;
            return (!writes.is_empty()).then_some(1);
        }
        Some(0)
    }
}

/// The place of the request that is next in order of place.
fn following(waiting: &VecDeque<BlockRequest>, lba: u64) -> Option<usize> {
    let ahead = waiting.iter().enumerate().filter(|(_, request)| request.lba >= lba);
    ahead.min_by_key(|(_, request)| request.lba).map(|(place, _)| place)
}
