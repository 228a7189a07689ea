//! A disk of a test, with a cache that is lost when the power is: what was written and not made durable
//! is there afterwards or not, sector by sector, in any of the versions it had, and what was under way is
//! torn. It also errs, moves less than asked for, answers out of order, and is silent, as it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    ops::Range,
};

use nix::errno::Errno;

use crate::{
    buffer::Data,
    work::{Call, Job, Returned},
};

/// The unit that is stored as a whole.
pub(crate) const SECTOR: usize = counters::SECTOR as usize;

/// A generator of numbers, the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below another.
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

/// Of which calls the next fails, and how.
pub(crate) type Fault = (fn(Call) -> bool, Errno);

/// The disk.
#[derive(Debug)]
pub(crate) struct Medium {
    pub(crate) dice: Dice,
    /// Bytes of an image, which are one behind the other.
    pub(crate) each: usize,
    /// What a power cut leaves for sure.
    pub(crate) stored: Vec<u8>,
    /// Of each sector what was written since, the last last.
    cache: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    under_way: Vec<Job>,
    /// What the next calls of a kind fail with.
    pub(crate) faults: VecDeque<Fault>,
    /// Whether calls that do not move the whole of their range are made.
    pub(crate) is_short: bool,
    /// Images that do not answer.
    pub(crate) silent: Vec<usize>,
    /// Whether a sync says success and does nothing: what the tests have to find out.
    pub(crate) lies: bool,
}

impl Medium {
    pub(crate) fn new(seed: u64, stored: Vec<u8>) -> Self {
        Self {
            dice: Dice(seed | 1),
            each: stored.len(),
            stored,
            cache: BTreeMap::new(),
            under_way: Vec::new(),
            faults: VecDeque::new(),
            is_short: false,
            silent: Vec::new(),
            lies: false,
        }
    }

    pub(super) fn submit(&mut self, job: Job) {
        self.under_way.push(job);
    }

    /// One of the calls that are under way, whichever.
    pub(super) fn reap(&mut self) -> Option<Returned> {
        let speaks = |at: &usize| !self.silent.contains(&self.under_way[*at].work.image);
        let ready: Vec<_> = (0..self.under_way.len()).filter(speaks).collect();
        // Now and then nothing has come back.
        if ready.is_empty() || self.dice.roll(8) == 0 {
            return None;
        }
        let at = ready[self.dice.roll(ready.len() as u64) as usize];
        let mut job = self.under_way.swap_remove(at);
        let result = self.perform(&mut job);
        Some((job, result))
    }

    fn perform(&mut self, job: &mut Job) -> io::Result<u32> {
        let call = job.call;
        if let Some((_, error)) = self.faults.pop_front_if(|(is_it, _)| is_it(call)) {
            return Err(io::Error::from_raw_os_error(error as i32));
        }
        let (at, mut range) = job.range();
        let at = at as usize + job.work.image * self.each;
        if self.is_short && range.len() > SECTOR && self.dice.roll(4) == 0 {
            range.end = range.start + range.len() / SECTOR / 2 * SECTOR;
        }
        let moved = range.len() as u32;
        assert!(at.is_multiple_of(SECTOR) && range.len().is_multiple_of(SECTOR), "{call:?} {at}");
        match call {
            Call::Read => {
                let bytes = self.read(at, range.len());
                job.buffer().expect("a read has one").copy_from(range.start, &bytes);
            }
            Call::Write { .. } | Call::Fill => {
                let bytes = copied(job.buffer().expect("a write has one"), range);
                self.write(at, &bytes);
                if call == (Call::Write { durable: true }) {
                    self.store(at, bytes.len());
                }
            }
            Call::Punch | Call::Zero => self.write(at, &vec![0; job.bytes as usize]),
            Call::Look => return Ok(job.bytes),
            Call::Sync => self.store(0, self.stored.len()),
        }
        Ok(moved)
    }

    /// What is read there now.
    pub(crate) fn read(&self, at: usize, bytes: usize) -> Vec<u8> {
        let sectors = (at..at + bytes).step_by(SECTOR);
        let sector = |at: usize| match self.cache.get(&at) {
            Some(versions) => versions.last().expect("one at least").as_slice(),
            None => &self.stored[at..at + SECTOR],
        };
        sectors.flat_map(|at| sector(at).iter().copied()).collect()
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        for (sector, bytes) in (at..).step_by(SECTOR).zip(bytes.chunks_exact(SECTOR)) {
            let versions = self.cache.entry(sector).or_default();
            versions.push(bytes.try_into().expect("a sector"));
        }
    }

    /// What was written there is durable.
    fn store(&mut self, at: usize, bytes: usize) {
        if self.lies {
            return;
        }
        let sectors: Vec<_> = self.cache.range(at..at + bytes).map(|(at, _)| *at).collect();
        for at in sectors {
            let versions = self.cache.remove(&at).expect("it is there");
            let last = versions.last().expect("one at least");
            self.stored[at..at + SECTOR].copy_from_slice(last);
        }
    }

    /// The power fails: what is found when it is back.
    pub(crate) fn cut(mut self) -> Vec<u8> {
        for mut job in std::mem::take(&mut self.under_way) {
            let (at, range) = job.range();
            if let (Call::Write { .. } | Call::Fill, Some(buffer)) = (job.call, job.buffer()) {
                self.write(at as usize, &copied(buffer, range));
            }
        }
        for (at, versions) in std::mem::take(&mut self.cache) {
            let version = self.dice.roll(versions.len() as u64 + 1) as usize;
            if let Some(version) = versions.get(version) {
                self.stored[at..at + SECTOR].copy_from_slice(version);
            }
        }
        self.stored
    }
}

fn copied(data: &Data, range: Range<usize>) -> Vec<u8> {
    let mut bytes = vec![0; range.len()];
    data.copy_to(range.start, &mut bytes);
    bytes
}
