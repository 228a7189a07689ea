//! The journal of a run: every input of every host's engine with its time, and a digest of what
//! came out. It is what keeps the engine honest: [`replay`](crate::replay()) feeds the inputs to
//! fresh engines, and what comes out must be the same bit for bit.
//!
//! It is the same whatever the pace of the run. It belongs beside the readers of captures, but it
//! knows the engine's inputs, which `capture` does not see; until there is a second driver that
//! writes one, it lives with the first.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `KAVGJRNL` |
//! | 1 | version of the format: 2 |
//! | rest | blocks (see `blocks.rs`) |
//!
//! In the blocks, with `n` and `t` as in `codec.rs`:
//!
//! * the scenario file's name `t` and text `t`; the number `n` of its parameter files, and of each
//!   name `t` and text `t`; the number `n` of settings, and each as a line `t`;
//! * records, each beginning with one more than the host's index `n` and a code `b`. Codes from 1 on are
//!   inputs: fields as in `codec.rs`, then nanoseconds since the input before `n`. Code 0 stands
//!   for the outputs of the host that were polled since its last record: their number `n`, and of
//!   each the two low bytes of the digest of all outputs up to it;
//! * a 0 instead of a host, and then of each host the number `n` of outputs, their digest in 8 bytes, and for
//!   virtual disks, devices, paths and adapters their number `n` and a digest of the counters of
//!   each in 8 bytes. Nothing follows.

use std::io::Write;

use counters::{HostSnapshot, Time};
use engine::{Input, Output};

use crate::{
    Error, Outcome, Source, Watch,
    blocks::{Writer, put, put_text},
    codec,
    digest::{self, Outputs},
};

pub(crate) const MAGIC: &[u8; 8] = b"KAVGJRNL";
/// The version of the format.
pub(crate) const VERSION: u8 = 2;
/// What stands in the place of a host where the records end.
pub(crate) const END: u64 = 0;
/// The code of a record of outputs.
pub(crate) const OUTPUTS: u8 = 0;

/// Writes the journal of a run that it watches. Memory does not grow with the run.
pub struct Journal<W> {
    blocks: Writer<W>,
    hosts: Vec<HostLog>,
    last_at: Time,
    failed: Option<std::io::Error>,
}

/// What came out of a host.
#[derive(Default)]
struct HostLog {
    outputs: Outputs,
    /// The marks of those that are in no record yet.
    marks: Vec<[u8; 2]>,
}

impl<W: Write> Journal<W> {
    /// Begins the journal of a run of that many hosts made from `source`.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn new(mut out: W, source: &Source, hosts: usize) -> Result<Self, Error> {
        out.write_all(MAGIC).and_then(|()| out.write_all(&[VERSION])).map_err(unwritten)?;
        let mut blocks = Writer::new(out);
        put_source(&mut blocks.pending, source);
        let hosts = (0..hosts).map(|_| HostLog::default()).collect();
        Ok(Self { blocks, hosts, last_at: Time::ZERO, failed: None })
    }

    /// Ends the journal of a run that ended, and hands back what it was written to.
    ///
    /// # Errors
    /// When something could not be written, now or during the run.
    pub fn finish(mut self, outcome: &Outcome) -> Result<W, Error> {
        if let Some(error) = self.failed.take() {
            return Err(unwritten(error));
        }
        (0..self.hosts.len()).for_each(|host| self.record_outputs(host));
        put(&mut self.blocks.pending, END);
        let finals = outcome.windows.first().into_iter().flatten().map(|view| &view.counters);
        for (host, counters) in self.hosts.iter().zip(finals) {
            put_final(&mut self.blocks.pending, &host.outputs, counters);
        }
        self.blocks.finish().map_err(unwritten)
    }

    fn record_outputs(&mut self, host: usize) {
        let marks = &mut self.hosts[host].marks;
        if marks.is_empty() {
            return;
        }
        let bytes = &mut self.blocks.pending;
        put(bytes, host as u64 + 1);
        put(bytes, OUTPUTS.into());
        put(bytes, marks.len() as u64);
        bytes.extend(marks.drain(..).flatten());
    }
}

impl<W: Write> Watch for Journal<W> {
    fn input(&mut self, host: usize, at: Time, input: &Input) {
        if self.failed.is_some() {
            return;
        }
        self.record_outputs(host);
        let bytes = &mut self.blocks.pending;
        put(bytes, host as u64 + 1);
        codec::put_input(bytes, input);
        put(bytes, at - self.last_at);
        self.last_at = at;
        self.failed = self.blocks.flush_full().err();
    }

    fn output(&mut self, host: usize, _at: Time, output: &Output) {
        if self.failed.is_some() {
            return;
        }
        let log = &mut self.hosts[host];
        log.outputs.add(output);
        log.marks.push(log.outputs.mark());
    }
}

fn put_source(bytes: &mut Vec<u8>, source: &Source) {
    put_text(bytes, &source.file);
    put_text(bytes, &source.text);
    put(bytes, source.includes.len() as u64);
    for (name, text) in &source.includes {
        put_text(bytes, name);
        put_text(bytes, text);
    }
    put(bytes, source.settings.len() as u64);
    source.settings.iter().for_each(|line| put_text(bytes, line));
}

fn put_final(bytes: &mut Vec<u8>, outputs: &Outputs, counters: &HostSnapshot) {
    put(bytes, outputs.count);
    bytes.extend(outputs.digest.to_le_bytes());
    for digests in digest::of_counters(counters) {
        put(bytes, digests.len() as u64);
        bytes.extend(digests.iter().flat_map(|digest| digest.to_le_bytes()));
    }
}

fn unwritten(error: std::io::Error) -> Error {
    Error::File { file: "the journal".into(), error }
}
