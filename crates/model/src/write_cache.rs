//! Writes that are kept until the spindles have nothing else to do (reference `array-and-control.md`, section 7.2).
//!
//! ```text
//!   write --> behind already? -- yes --> acknowledged at once; what is behind is written once
//!        \--> room? -- yes --> acknowledged at once, and put behind its spindles
//!                \---- no ---> written through, before all that is behind
//!   read  --> all of it behind? -- yes --> read from the cache
//! ```
//!
//! A spindle serves reads and what is written through in the order of arrival, and what is behind between them; it
//! ends what it has begun. So a spindle's free instant is still all there is to know: what was done since is made up
//! for when the next command looks at it. That reads go before, and what a full cache does, are rulings: no source
//! has how arrays destage.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    vec,
    vec::Vec,
};
use core::mem;

use counters::{Op, Time};

use crate::{
    command::{BLOCK, Command},
    random::Random,
};

/// The part of a command that is one spindle's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) spindle: usize,
    /// Where on it and where on the array, in blocks, and how much.
    pub(crate) place: u64,
    pub(crate) block: u64,
    pub(crate) bytes: u64,
    pub(crate) is_write: bool,
    /// Bytes that are kept until the spindle takes it: of the copies of what is written only one counts.
    pub(crate) kept: u64,
}

/// What is behind a cache.
pub(crate) trait Spindles {
    /// When all are through that have a part of a command, which take it as it comes.
    fn serve(&mut self, arrive: Time, command: &Command, random: &mut Random) -> Time;
    /// How many there are.
    fn count(&self) -> usize;
    /// The parts of a command.
    fn cut(&self, command: &Command, random: &mut Random, pieces: &mut Vec<Piece>);
    /// When a spindle has done all that it took.
    fn free(&self, spindle: usize) -> Time;
    /// It takes a piece not before `at`: when it is through with it.
    fn work(&mut self, at: Time, piece: &Piece, random: &mut Random) -> Time;
}

/// The cache.
#[derive(Clone, Debug)]
pub(crate) struct WriteCache {
    ack_ns: u64,
    bytes: u64,
    kept: u64,
    /// Of each spindle what is to be written, and since when.
    behind: Box<[VecDeque<(Time, Piece)>]>,
    /// Of how many of them a block of the array is a part.
    dirty: BTreeMap<u64, u32>,
    /// Kept for its room.
    pieces: Vec<Piece>,
}

impl WriteCache {
    pub(crate) fn new(ack_ns: u64, bytes: u64, spindles: &impl Spindles) -> Self {
        let behind = vec![VecDeque::new(); spindles.count()].into();
        Self { ack_ns, bytes, kept: 0, behind, dirty: BTreeMap::new(), pieces: Vec::new() }
    }

    /// When a command is served, or acknowledged.
    pub(crate) fn serve(
        &mut self,
        arrive: Time,
        command: &Command,
        spindles: &mut impl Spindles,
        random: &mut Random,
    ) -> Time {
        if self.has_all(arrive, command, spindles, random) {
            return arrive + self.ack_ns;
        }
        let is_kept =
            command.is_write() && self.has_room(arrive, u64::from(command.bytes), spindles, random);
        let mut pieces = mem::take(&mut self.pieces);
        spindles.cut(command, random, &mut pieces);
        let mut done = arrive;
        for piece in pieces.drain(..) {
            self.make_up(piece.spindle, arrive, spindles, random);
            if is_kept {
                self.keep(&piece);
                self.behind[piece.spindle].push_back((arrive, piece));
            } else {
                done = done.max(spindles.work(arrive, &piece, random));
            }
        }
        self.pieces = pieces;
        if is_kept { arrive + self.ack_ns } else { done }
    }

    /// Whether all that a command reads or writes is behind still, a block that it touches as a whole.
    fn has_all(
        &mut self,
        now: Time,
        command: &Command,
        spindles: &mut impl Spindles,
        random: &mut Random,
    ) -> bool {
        let Command { op, block, bytes, .. } = *command;
        if self.dirty.is_empty() || !matches!(op, Op::Read | Op::Write | Op::WriteFua) {
            return false;
        }
        let blocks = block..block.saturating_add(u64::from(bytes).div_ceil(BLOCK));
        let has_all =
            |dirty: &BTreeMap<u64, u32>| blocks.clone().all(|block| dirty.contains_key(&block));
        if !has_all(&self.dirty) {
            return false;
        }
        self.make_up_all(now, spindles, random);
        has_all(&self.dirty)
    }

    fn keep(&mut self, piece: &Piece) {
        self.kept += piece.kept;
        for block in piece.kept_blocks() {
            *self.dirty.entry(block).or_default() += 1;
        }
    }

    fn let_go(&mut self, piece: &Piece) {
        self.kept -= piece.kept;
        for block in piece.kept_blocks() {
            let left = self.dirty.get_mut(&block).map(|pieces| {
                *pieces -= 1;
                *pieces
            });
            if left == Some(0) {
                self.dirty.remove(&block);
            }
        }
    }

    fn has_room(
        &mut self,
        now: Time,
        bytes: u64,
        spindles: &mut impl Spindles,
        random: &mut Random,
    ) -> bool {
        if self.kept.saturating_add(bytes) > self.bytes {
            self.make_up_all(now, spindles, random);
        }
        self.kept.saturating_add(bytes) <= self.bytes
    }

    fn make_up_all(&mut self, now: Time, spindles: &mut impl Spindles, random: &mut Random) {
        for spindle in 0..self.behind.len() {
            self.make_up(spindle, now, spindles, random);
        }
    }

    /// What a spindle has begun before `now` of all that is behind.
    fn make_up(
        &mut self,
        spindle: usize,
        now: Time,
        spindles: &mut impl Spindles,
        random: &mut Random,
    ) {
        while let Some(&(since, piece)) = self.behind[spindle].front() {
            let begin = spindles.free(spindle).max(since);
            if begin >= now {
                return;
            }
            spindles.work(begin, &piece, random);
            self.let_go(&piece);
            self.behind[spindle].pop_front();
        }
    }
}

impl Piece {
    /// The blocks of the array that the cache keeps of it.
    fn kept_blocks(&self) -> impl Iterator<Item = u64> + use<> {
        self.block..self.block.saturating_add(self.kept.div_ceil(BLOCK))
    }
}
