//! Journals read: fed to the engine, segment after segment, and made a recording meanwhile, as `esxtop -b`
//! makes one of a host.

use std::{
    error::Error,
    fmt::Display,
    fs::{self, File},
    io::{self, BufReader, Read},
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use counters::{
    DeviceId, DeviceKind, HostSnapshot, MILLISECOND, Recording, SECOND, SHORTEST_INTERVAL_S,
    Sampler, Time,
};
use diagnose::Facts;
use engine::{Engine, HostConfig, Input};
use journal::{Look, Replay, Report};
use levels::Measured;

use crate::{Result, captures};

/// No more values are kept of a host: a GiB.
const VALUES_MAX: u64 = 1 << 27;
/// Nanoseconds of a row: the least of `esxtop -b`.
const ROW_NS: u64 = SHORTEST_INTERVAL_S as u64 * SECOND;

/// Whether what is named is a journal, or a directory, and no capture.
pub(crate) fn is_journal(path: &Path) -> bool {
    let mut head = [0; 8];
    let file = || File::open(path)?.read_exact(&mut head);
    path.is_dir() || path.is_file() && { file }().is_ok() && journal::is_journal(&head)
}

/// Feeds each of the journals that are named, whose segments may be many files; what was found, and who
/// looked on.
pub(crate) fn replay<L: Look>(
    named: &[PathBuf],
    mut look: impl FnMut() -> L,
) -> Result<Vec<(Report, L)>> {
    let files = files(named)?;
    captures::told(|progress| {
        let bytes = |file: &PathBuf| fs::metadata(file).map_or(0, |known| known.len());
        let (mut done, total) = (0, files.iter().map(bytes).sum());
        let mut told = |read| {
            done += read;
            progress(done, total);
        };
        let feed = |segments| {
            let mut look = look();
            Ok((feed(segments, &mut told, &mut look)?, look))
        };
        series(&files).map(feed).collect()
    })
}

/// What is named, and what directories have, in the order of names: that of segments.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries =
            fs::read_dir(path).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let entries = entries.map_err(|error| at(path, &error))?;
        let before = files.len();
        let journals = entries.into_iter().map(|entry| entry.path());
        files.extend(journals.filter(|path| path.extension().is_some_and(|it| it == "journal")));
        if files.len() == before {
            return Err(at(path, &"no journal is in this directory"));
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn at(path: &Path, what: &dyn Display) -> Box<dyn Error> {
    format!("{}: {what}", path.display()).into()
}

/// The files of each journal.
fn series(files: &[PathBuf]) -> impl Iterator<Item = &[PathBuf]> {
    files.chunk_by(|a, b| journal_of(a).is_some_and(|of| Some(of) == journal_of(b)))
}

/// The journal of which a file is a segment, by its name.
fn journal_of(file: &Path) -> Option<&str> {
    let (of, number) = file.to_str()?.strip_suffix(".journal")?.rsplit_once('-')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(of)
}

fn feed(segments: &[PathBuf], told: &mut dyn FnMut(u64), look: &mut dyn Look) -> Result<Report> {
    let mut replay = Replay::default();
    for path in segments {
        let file = File::open(path).map_err(|error| at(path, &error))?;
        let counted = Counted { file, told: &mut *told };
        let fed = replay.segment(BufReader::with_capacity(1 << 20, counted), look);
        fed.map_err(|error| at(path, &error))?;
    }
    Ok(replay.report())
}

/// A file that tells how much of it is read.
struct Counted<'a> {
    file: File,
    told: &'a mut dyn FnMut(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        (self.told)(read as u64);
        Ok(read)
    }
}

/// What was recorded of a host, as a capture would have it.
pub(crate) struct Recorded {
    pub(crate) recording: Measured,
    /// What esxcli would say of its devices.
    pub(crate) facts: Facts,
}

/// The journals that are named, as recordings of their hosts from one instant to another.
///
/// A journal that replays to something else than it recorded, and one without two rows there, are refused.
pub(crate) fn record(
    named: &[PathBuf],
    (from_ms, to_ms): (Option<i64>, Option<i64>),
) -> Result<Vec<Recorded>> {
    let span = (from_ms.unwrap_or(i64::MIN), to_ms.unwrap_or(i64::MAX));
    let mut all = Vec::new();
    for (report, recorder) in replay(named, || Recorder { span, hosts: Vec::new() })? {
        if let Some(difference) = report.difference {
            return Err(
                format!("{}: it replays to something else: {difference}", report.name).into()
            );
        }
        for host in recorder.hosts {
            all.push(host.end(&report.name)?);
        }
    }
    Ok(all)
}

/// Samples engines while they are fed.
struct Recorder {
    /// Milliseconds since 1970: rows between them are kept.
    span: (i64, i64),
    hosts: Vec<OfHost>,
}

/// What of a host is kept.
struct OfHost {
    config: HostConfig,
    epoch_ms: i64,
    sampler: Sampler,
    recording: Recording,
    /// Rows that it may have.
    rows_max: u64,
    /// The last sample, and room for the next.
    before: HostSnapshot,
    after: HostSnapshot,
    /// When the next is due.
    due: Time,
    facts: Facts,
}

impl Look for Recorder {
    fn begin(&mut self, epoch_ms: Option<u64>, at: Time, hosts: &[(&HostConfig, &Engine)]) {
        let epoch_ms = epoch_ms.map_or(sim::EPOCH_MS, |epoch_ms| epoch_ms as i64);
        if self.hosts.is_empty() {
            self.hosts = hosts.iter().map(|(config, _)| OfHost::new(config, epoch_ms)).collect();
        }
        for (host, (_, engine)) in self.hosts.iter_mut().zip(hosts) {
            engine.snapshot(at, &mut host.before);
            host.due = at + ROW_NS;
        }
    }

    fn input(&mut self, host: usize, at: Time, _: &Input, engine: &Engine) {
        let Some(host) = self.hosts.get_mut(host) else { return };
        while host.due <= at {
            host.sample(engine, self.span);
        }
    }
}

impl OfHost {
    fn new(config: &HostConfig, epoch_ms: i64) -> Self {
        let inventory = config.inventory();
        let rows_max = VALUES_MAX / inventory.values_max().max(1);
        let sampler = Sampler::new(inventory, epoch_ms, Arc::default());
        Self {
            config: config.clone(),
            epoch_ms,
            recording: sampler.recording(),
            sampler,
            rows_max,
            before: HostSnapshot::default(),
            after: HostSnapshot::default(),
            due: Time::NEVER,
            facts: Facts { esxi_version: Some(config.version), ..Facts::default() },
        }
    }

    /// Adds a row, if it is asked for and there is room.
    fn sample(&mut self, engine: &Engine, (from_ms, to_ms): (i64, i64)) {
        engine.snapshot(self.due, &mut self.after);
        let at_ms = self.epoch_ms.saturating_add((self.due.0 / MILLISECOND) as i64);
        if (from_ms..=to_ms).contains(&at_ms) && self.recording.len() as u64 <= self.rows_max {
            self.sampler.add_row(&self.before, &self.after, &mut self.recording);
            self.learn(engine);
        }
        mem::swap(&mut self.before, &mut self.after);
        self.due = self.due + ROW_NS;
    }

    /// What esxcli would say by now.
    fn learn(&mut self, engine: &Engine) {
        for (id, device) in self.config.devices.iter().enumerate() {
            let Some(limits) = engine.device_limits(DeviceId::new(id)) else { continue };
            if device.kind != DeviceKind::Nfs {
                let known = self.facts.devices.entry(device.name.clone()).or_default();
                known.max_queue_depth = Some(limits.max_queue_depth);
                known.driver_depth = Some(limits.driver_depth);
                known.dsnro = Some(limits.dsnro);
                known.has_no_sioc = true;
            }
        }
    }

    fn end(self, name: &str) -> Result<Recorded> {
        let rows = self.recording.len() as u64;
        let what = match rows {
            0..2 => "which is too little to tell from",
            _ if rows > self.rows_max => "and no more fit: name a part of it with --from and --to",
            _ => {
                let recording = Measured::of(self.recording);
                return Ok(Recorded { recording, facts: self.facts });
            }
        };
        Err(format!("{name}: it has {rows} rows of {SHORTEST_INTERVAL_S} s there, {what}").into())
    }
}
