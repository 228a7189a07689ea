//! Writes the journal of engines at work.

use std::io::Write;

use counters::{HostSnapshot, SECOND, Time};
use engine::{HostConfig, Input, Output};

use crate::{
    Error, MAGIC, VERSION,
    codec::{Choice, Field, put_code},
    digest::{self, Outputs},
    frame::Writer,
};

/// The code of the record that says which host those after it are of.
pub(crate) const HOST: u8 = 0;
/// The code of the record with which a journal ends before its run.
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
/// behind, or has reached its cap, the journal ends there, and says how much it does not have.
pub struct Journal<W> {
    frames: Writer<W>,
    cap_bytes: u64,
    gap: Option<Gap>,
    hosts: Vec<HostLog>,
    /// Whose records are written now.
    host: usize,
    last_at: Time,
    /// When the frame is written, full or not.
    due: Time,
}

/// What a journal of real time keeps to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The wall-clock time of its beginning, in milliseconds since 1970-01-01 UTC.
    pub epoch_ms: u64,
    /// The most bytes that it has, but for a few of its end.
    pub cap_bytes: u64,
}

/// Why a journal ends before its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The file did not keep up.
    TooSlow,
    /// It had reached its cap.
    Cap,
}

/// What a journal does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Why.
    pub why: Why,
    /// The time of the first input that is not recorded, and of the last.
    pub from: Time,
    /// The last.
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
    /// When `out` cannot be written.
    pub fn new<'a>(
        out: W,
        name: &str,
        hosts: impl IntoIterator<Item = &'a HostConfig>,
    ) -> Result<Self, Error> {
        Self::begin(out, name, hosts, None)
    }

    /// The same in real time, where nothing waits for `out`.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn of_real_time<'a>(
        out: W,
        name: &str,
        hosts: impl IntoIterator<Item = &'a HostConfig>,
        limits: Limits,
    ) -> Result<Self, Error> {
        Self::begin(out, name, hosts, Some(limits))
    }

    fn begin<'a>(
        out: W,
        name: &str,
        hosts: impl IntoIterator<Item = &'a HostConfig>,
        limits: Option<Limits>,
    ) -> Result<Self, Error> {
        let head = [MAGIC.as_slice(), &[VERSION]].concat();
        let mut frames = Writer::new(out, &head, limits.is_none())?;
        let payload = frames.payload();
        payload.put_text(name);
        limits.map(|limits| limits.epoch_ms).put(payload);
        let mut logs = Vec::new();
        for host in hosts {
            host.put(payload);
            logs.push(HostLog::default());
        }
        frames.write();
        let (last_at, due) = (Time::ZERO, Time(FRAME_NS));
        let cap_bytes = limits.map_or(u64::MAX, |limits| limits.cap_bytes);
        Ok(Self { frames, cap_bytes, gap: None, hosts: logs, host: 0, last_at, due })
    }

    /// Records an input of the engine of host `host`, before the engine takes it. A file that cannot
    /// be written ends the journal; [`Self::finish`] says so.
    #[inline]
    pub fn input(&mut self, host: usize, at: Time, input: &Input) {
        if self.gap.is_some() {
            return self.miss(at);
        }
        if host != self.host {
            self.host = host;
            put_code(HOST, host as u64, self.frames.payload());
        }
        let log = &mut self.hosts[host];
        let payload = self.frames.payload();
        input.put_below(log.fresh, payload);
        payload.put_number(at - self.last_at);
        if log.fresh > 0 {
            payload.put_mark(log.outputs.mark());
            log.fresh = 0;
        }
        self.last_at = at;
        if self.frames.is_full() || at >= self.due {
            self.flush();
        }
    }

    /// Records an output that was polled from it.
    #[inline]
    pub fn output(&mut self, host: usize, output: &Output) {
        let log = &mut self.hosts[host];
        log.outputs.add(output);
        log.fresh += 1;
    }

    #[cold]
    fn flush(&mut self) {
        self.due = self.last_at + FRAME_NS;
        let why = match self.frames.bytes() < self.cap_bytes {
            true if self.frames.write() => return,
            true => Why::TooSlow,
            false => Why::Cap,
        };
        self.gap = Some(Gap { why, from: Time::NEVER, to: self.last_at, inputs: 0 });
    }

    #[cold]
    fn miss(&mut self, at: Time) {
        if let Some(gap) = &mut self.gap {
            gap.from = gap.from.min(at);
            gap.to = at;
            gap.inputs += 1;
        }
    }

    /// What it does not have so far.
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
        let payload = self.frames.payload();
        if let Some(Gap { why, from, to, inputs }) = self.gap.filter(|gap| gap.inputs > 0) {
            put_code(GAP, why as u64, payload);
            payload.put_number(from - self.last_at);
            payload.put_number(to - from);
            payload.put_number(inputs);
            return Ok(self.frames.finish()?);
        }
        put_code(END, 0, payload);
        for log in &self.hosts {
            let Outputs { count, digest } = log.outputs;
            count.put(payload);
            payload.extend(&digest.to_le_bytes());
            for digests in &log.counters {
                payload.put_number(digests.len() as u64);
                digests.iter().for_each(|digest| payload.extend(&digest.to_le_bytes()));
            }
        }
        Ok(self.frames.finish()?)
    }
}
