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
/// The code of the record with which a journal ends.
pub(crate) const END: u8 = 31;
/// No frame holds more of an engine's time: a journal that is cut has all but the last of it.
const FRAME_NS: u64 = SECOND;

/// Writes the journal of the engines of one or more hosts. Memory does not grow with the run.
///
/// What was handed over reaches the file a frame at a time, by a thread of its own: once it is 64 KiB,
/// or a second of the engines' time. The rest is lost with the process, and nothing else.
pub struct Journal<W> {
    frames: Writer<W>,
    hosts: Vec<HostLog>,
    /// Whose records are written now.
    host: usize,
    last_at: Time,
    /// When the frame is written, full or not.
    due: Time,
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
        let mut frames = Writer::new(out, &[MAGIC.as_slice(), &[VERSION]].concat())?;
        let payload = frames.payload();
        payload.put_text(name);
        let mut logs = Vec::new();
        for host in hosts {
            host.put(payload);
            logs.push(HostLog::default());
        }
        frames.write();
        let (last_at, due) = (Time::ZERO, Time(FRAME_NS));
        Ok(Self { frames, hosts: logs, host: 0, last_at, due })
    }

    /// Records an input of the engine of host `host`, before the engine takes it. A file that cannot
    /// be written ends the journal; [`Self::finish`] says so.
    #[inline]
    pub fn input(&mut self, host: usize, at: Time, input: &Input) {
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
        self.frames.write();
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
