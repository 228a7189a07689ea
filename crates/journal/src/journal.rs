//! Writes the journal of engines at work.

use std::{
    io::{self, Write},
    sync::Arc,
};

use counters::{HostSnapshot, SECOND, Time};
use engine::{
    Engine, HostConfig, Input, Output,
    codec::{Choice, Field, Put, put_code},
};

use crate::{
    Error,
    digest::{self, Outputs},
    frame::{GoOn, Writer},
    segment::{Journalled, Next},
};

/// The code of the record that says which host those after it are of.
pub(crate) const HOST: u8 = 0;
/// The code of the record with which a segment ends, and another one goes on where it ends.
pub(crate) const GOES_ON: u8 = 29;
/// The code of the record with which a segment ends where inputs are missing.
pub(crate) const GAP: u8 = 30;
/// The code of the record with which a journal ends.
pub(crate) const END: u8 = 31;
/// No frame holds more of an engine's time: a journal that is cut has all but the last of it.
const FRAME_NS: u64 = SECOND;

/// Writes the journal of the engines of one or more hosts. Memory does not grow with the run.
///
/// What was handed over reaches the file a frame at a time, by a thread of its own: once it is 64 KiB,
/// or a second of the engines' time. The rest is lost with the process, and nothing else.
///
/// In virtual time a file that is slow holds up the run. In real time nothing may: where the file is 4 MiB
/// behind, nothing is recorded until it has caught up. Then another segment begins, with the engines as
/// they are by then, as it does when a segment has the size that it may have.
pub struct Journal<W> {
    frames: Writer<W>,
    of: Arc<Journalled>,
    segment_bytes: u64,
    /// The number of the segment.
    number: u64,
    /// Whether the next one is to begin before another input.
    is_full: bool,
    gap: Option<Gap>,
    hosts: Vec<HostLog>,
    /// Whose records are written now.
    host: usize,
    last_at: Time,
    /// When the frame is written, full or not.
    due: Time,
}

/// A place for segments, a file each.
pub trait Files: Write {
    /// Ends a file, and begins that of the segment `number`, which what is written from now on is for.
    ///
    /// # Errors
    /// When that cannot be, which ends the journal.
    fn go_on(&mut self, number: u64) -> io::Result<()>;
}

/// What a journal of real time keeps to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The wall-clock time of its beginning, in milliseconds since 1970-01-01 UTC.
    pub epoch_ms: u64,
    /// The bytes from which on a segment ends: it has a frame more at most, and the state that it begins
    /// with.
    pub segment_bytes: u64,
}

/// What a journal does not have, because its file did not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The time of the first input that is not recorded.
    pub from: Time,
    /// That of the last.
    pub to: Time,
    /// How many they are.
    pub inputs: u64,
}

/// What came out of a host.
#[derive(Default)]
struct HostLog {
    outputs: Outputs,
    /// Those that are in no record yet.
    fresh: u64,
    /// The digest of what it had counted at its end.
    counters: [Vec<u64>; 4],
}

impl<W: Write + Send + 'static> Journal<W> {
    /// Begins the journal `name` of engines that were built from `hosts`.
    ///
    /// # Errors
    /// When `out` cannot be written, or a host could not be built by who reads it: an engine takes more than any ESXi has.
    pub fn new<'a>(
        out: W,
        name: &str,
        hosts: impl IntoIterator<Item = &'a HostConfig>,
    ) -> Result<Self, Error> {
        let of = Journalled::new(name, None, hosts);
        of.check()?;
        Self::begin(out, of, true, u64::MAX, |_, _| Ok(()))
    }

    /// The same without a look at the hosts.
    pub(crate) fn begin(
        out: W,
        of: Journalled,
        waits: bool,
        segment_bytes: u64,
        go_on: GoOn<W>,
    ) -> Result<Self, Error> {
        let mut frames = Writer::new(out, waits, go_on)?;
        of.put_first(frames.payload());
        frames.write();
        Ok(Self {
            frames,
            segment_bytes,
            number: 0,
            is_full: false,
            gap: None,
            hosts: (0..of.hosts()).map(|_| HostLog::default()).collect(),
            of: Arc::new(of),
            host: 0,
            last_at: Time::ZERO,
            due: Time(FRAME_NS),
        })
    }

    /// Records an input of the engine of host `host`, before the engine takes it. A file that cannot
    /// be written ends the journal; [`Self::finish`] says so.
    #[inline(always)]
    pub fn input(&mut self, host: usize, at: Time, input: &Input) {
        if self.gap.is_some() {
            return self.miss(at);
        }
        if host != self.host {
            self.host = host;
            put_code(HOST, host as u64, self.frames.payload());
        }
        let log = &mut self.hosts[host];
        let mut record = self.frames.payload().begin_record();
        input.put_below(log.fresh, &mut record);
        record.put_number(at - self.last_at);
        if log.fresh > 0 {
            record.put_mark(log.outputs.mark());
            log.fresh = 0;
        }
        record.end();
        self.last_at = at;
        if self.frames.is_full() || at >= self.due {
            self.flush();
        }
    }

    /// Records an output that was polled from it.
    #[inline(always)]
    pub fn output(&mut self, host: usize, output: &Output) {
        let log = &mut self.hosts[host];
        log.outputs.add(output);
        log.fresh += 1;
    }

    #[cold]
    fn flush(&mut self) {
        self.due = self.last_at + FRAME_NS;
        self.is_full = self.frames.bytes() >= self.segment_bytes;
        if !self.is_full && !self.frames.write() {
            self.lose();
        }
    }

    /// Nothing is recorded from now on.
    fn lose(&mut self) {
        self.gap = Some(Gap { from: Time::NEVER, to: self.last_at, inputs: 0 });
    }

    #[cold]
    fn miss(&mut self, at: Time) {
        if let Some(gap) = &mut self.gap {
            gap.from = gap.from.min(at);
            gap.to = at;
            gap.inputs += 1;
        }
    }

    /// To be called before each input of a journal of real time, with the engines of all hosts as they
    /// are then, and nothing left to poll of them: where a segment is full, or a gap can end, the next
    /// one begins with them.
    #[inline]
    pub fn go_on<'a>(&mut self, engines: impl IntoIterator<Item = &'a Engine>) {
        if self.is_full || self.gap.is_some() {
            self.try_go_on(engines.into_iter());
        }
    }

    #[cold]
    fn try_go_on<'a>(&mut self, engines: impl Iterator<Item = &'a Engine>) {
        match self.gap {
            Some(_) if !self.frames.is_idle() => return,
            Some(Gap { inputs: 0, .. }) => return self.gap = None,
            Some(gap) => {
                self.put_gap(gap);
                self.last_at = gap.to;
            }
            None if !self.frames.has_room() => {
                self.is_full = false;
                return self.lose();
            }
            None => {
                put_code(GOES_ON, 0, self.frames.payload());
                self.hosts.iter().for_each(|log| log.outputs.put(self.frames.payload()));
            }
        }
        self.number += 1;
        let outputs = self.hosts.iter().map(|log| log.outputs);
        self.frames.write_last(Next {
            of: Arc::clone(&self.of),
            number: self.number,
            at: self.last_at,
            states: outputs.zip(engines.cloned()).collect(),
        });
        (self.gap, self.is_full, self.host) = (None, false, 0);
        self.due = self.last_at + FRAME_NS;
        self.hosts.iter_mut().for_each(|log| log.fresh = 0);
    }

    fn put_gap(&mut self, Gap { from, to, inputs }: Gap) {
        let payload = self.frames.payload();
        put_code(GAP, 0, payload);
        payload.put_number(from - self.last_at);
        payload.put_number(to - from);
        payload.put_number(inputs);
    }

    /// What it does not have at present; `None` where it has it all, or has gone on.
    pub const fn gap(&self) -> Option<Gap> {
        self.gap
    }

    /// Takes what the engine of host `host` has counted at its end: the engine alone, for a replay
    /// knows of no application.
    pub fn counted(&mut self, host: usize, counters: &HostSnapshot) {
        self.hosts[host].counters = digest::of_counters(counters);
    }

    /// Ends the journal, and hands back what it was written to.
    ///
    /// # Errors
    /// When something could not be written, now or before.
    pub fn finish(mut self) -> Result<W, Error> {
        if let Some(gap) = self.gap.filter(|gap| gap.inputs > 0) {
            self.put_gap(gap);
            return Ok(self.frames.finish()?);
        }
        let payload = self.frames.payload();
        put_code(END, 0, payload);
        for log in &self.hosts {
            log.outputs.put(payload);
            for digests in &log.counters {
                payload.put_number(digests.len() as u64);
                digests.iter().for_each(|digest| payload.extend(&digest.to_le_bytes()));
            }
        }
        Ok(self.frames.finish()?)
    }
}

impl<W: Files + Send + 'static> Journal<W> {
    /// Begins the same in real time, where nothing waits for `out`, whose first file is made.
    ///
    /// # Errors
    /// As [`Journal::new`].
    pub fn of_real_time<'a>(
        out: W,
        name: &str,
        hosts: impl IntoIterator<Item = &'a HostConfig>,
        Limits { epoch_ms, segment_bytes }: Limits,
    ) -> Result<Self, Error> {
        let of = Journalled::new(name, Some(epoch_ms), hosts);
        of.check()?;
        Self::begin(out, of, false, segment_bytes, W::go_on)
    }

    /// The hosts have more parts than they were built with, and are told with all their parts: who reads
    /// the journal knows what they are called. Another segment begins before the next input.
    pub fn has_more<'a>(&mut self, hosts: impl IntoIterator<Item = &'a HostConfig>) {
        self.of = Arc::new(self.of.of_hosts(hosts));
        self.is_full = true;
    }
}
