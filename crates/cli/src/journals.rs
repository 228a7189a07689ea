//! Journals read: fed to the engine, segment after segment, and made a recording meanwhile, as `esxtop -b`
//! makes one of a host.

use counters::sorted::{sort, sort_by};
use std::{
    collections::BTreeMap,
    error::Error,
    fmt::Display,
    fs::{self, File},
    io::{self, BufReader, Read},
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use capture::merge;
use counters::{
    DeviceId, DeviceKind, HostSnapshot, MILLISECOND, Recording, SECOND, SHORTEST_INTERVAL_S,
    Sampler, Time, VdiskId,
};
use diagnose::Facts;
use engine::{DeviceLimits, Engine, HostConfig, Input};
use journal::{Look, Replay, Report};
use knobs::Knob;
use levels::Measured;

use crate::{
    Result, captures,
    facts::{self, Limited, in_force},
    given::{Given, Told},
    talk::say,
    text::{clean, seconds, whole},
};

/// No more values are kept of a host: a GiB.
const VALUES_MAX: u64 = 1 << 27;
/// Nanoseconds of a row: the least of `esxtop -b`.
const ROW_NS: u64 = SHORTEST_INTERVAL_S as u64 * SECOND;
/// The same in milliseconds.
pub(crate) const ROW_MS: i64 = (ROW_NS / MILLISECOND).cast_signed();

/// Whether what is named is a journal, or a directory, and no capture.
pub(crate) fn is_journal(path: &Path) -> bool {
    path.is_dir() || path.is_file() && File::open(path).is_ok_and(journal::is_journal)
}

/// Whether a name is that of a segment of a journal.
fn is_named_so(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == journal::EXTENSION)
}

/// Feeds each of the journals of these files, of which a journal may have many; what was found, and who
/// looked on.
pub(crate) fn replay<L: Look>(
    files: &[PathBuf],
    mut look: impl FnMut() -> L,
) -> Result<Vec<(Report, L)>> {
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
        series(files).map(feed).collect()
    })
}

/// The same without what is called as a segment in a directory and is none, which keeps nobody from the journals
/// beside it: it is told, and whether there is any.
pub(crate) fn true_files(named: &[PathBuf]) -> Result<(Vec<PathBuf>, bool)> {
    // One that goes on may be cut as early as before its first byte.
    let goes_on = |path: &Path| {
        path.to_str().and_then(journal::of_file).is_some_and(|(_, number)| number > 0)
            && File::open(path).is_ok_and(journal::may_be_journal)
    };
    let may_be = |path: &PathBuf| named.contains(path) || is_journal(path) || goes_on(path);
    let (files, others): (Vec<_>, Vec<_>) = files(named)?.into_iter().partition(may_be);
    for other in &others {
        say(&clean(&format!("{}: it is no journal, and left out", other.display())));
    }
    Ok((files, !others.is_empty()))
}

/// What is named, and what directories have, in the order of names: that of segments.
pub(crate) fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
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
        files.extend(journals.filter(|path| path.is_file() && is_named_so(path)));
        if files.len() == before {
            return Err(at(path, &"no journal is in this directory"));
        }
    }
    sort(&mut files);
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
    journal::of_file(file.to_str()?).map(|(of, _)| of)
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
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) recording: Measured,
    /// What esxcli would say of its devices.
    pub(crate) facts: Facts,
    /// What was set to something else, in the order of times; of a capture nobody knows.
    pub(crate) turned: Vec<Turned>,
}

/// That Device Max Queue Depth or DSNRO of a device, or an IOPS limit on it, was set to something else.
#[derive(Debug, PartialEq)]
pub(crate) struct Turned {
    /// By which row, in milliseconds since 1970.
    pub(crate) by_ms: i64,
    pub(crate) device: String,
    /// The two depths before it, unless it was a limit.
    was: Option<[u32; 2]>,
}

impl Recorded {
    /// With the depths that there were at its end, for who asks what comes after.
    pub(crate) fn by_end(self) -> Self {
        let facts = self.facts_by(i64::MAX);
        Self { facts, ..self }
    }

    /// The facts with the depths that there were by a moment.
    pub(crate) fn facts_by(&self, at_ms: i64) -> Facts {
        let mut facts = self.facts.clone();
        for known in facts.devices.values_mut() {
            [known.max_queue_depth, known.dsnro] = known.last_depths();
            (known.max_queue_depth_at_end, known.dsnro_at_end) = (None, None);
        }
        for later in self.turned.iter().rev().take_while(|turned| turned.by_ms > at_ms) {
            let known = facts.devices.get_mut(&later.device);
            if let Some((known, [max_queue_depth, dsnro])) = known.zip(later.was) {
                (known.max_queue_depth, known.dsnro) = (Some(max_queue_depth), Some(dsnro));
            }
        }
        facts
    }
}

/// What there is of each host in captures or in journals, with what esxcli says of those, and the files that
/// say so.
///
/// # Errors
/// One line, when one of them cannot be read, and when both kinds are given.
pub(crate) fn recorded(
    named: &[PathBuf],
    esxcli: &[Given],
) -> Result<(Vec<Recorded>, Vec<PathBuf>)> {
    let journals = named.iter().filter(|path| is_journal(path)).count();
    let is_none = |path: &&PathBuf| is_named_so(path) && !is_journal(path);
    if let Some(path) = named.iter().find(is_none).filter(|path| path.is_file()) {
        return Err(at(path, &"it is no journal: it does not begin as one"));
    }
    if journals == 0 {
        let told = Told::read(esxcli)?;
        let (recordings, _) = captures::read_needed(named)?;
        let facts = told.of(recordings.iter())?.each(&recordings);
        let each = recordings.into_iter().zip(facts);
        let sources =
            each.map(|(recording, facts)| Recorded { recording, facts, turned: Vec::new() });
        return Ok((sources.collect(), named.to_owned()));
    }
    if journals < named.len() {
        return Err("captures and journals in one question: ask about one of them".into());
    }
    if !esxcli.is_empty() {
        return Err("--esxcli: a journal says itself what esxcli would".into());
    }
    let (files, _) = true_files(named)?;
    let sources = record(&files)?;
    say(&format!(
        "replayed to the same, and taken as esxtop would have recorded it every \
         {SHORTEST_INTERVAL_S} s"
    ));
    Ok((sources, files))
}

/// The journals of these files, as recordings of their hosts: those of one component, whose daemon began
/// anew, are one.
///
/// A journal that replays to something else than it recorded is refused, and so are those that have not two
/// rows.
fn record(files: &[PathBuf]) -> Result<Vec<Recorded>> {
    let mut components: Vec<(String, Vec<OfHost>)> = Vec::new();
    for (report, recorder) in replay(files, Recorder::default)? {
        if let Some(difference) = report.difference {
            let name = clean(&report.name);
            return Err(format!("{name}: it replays to something else: {difference}").into());
        }
        recorder.hosts.iter().for_each(|host| host.complain(&report.name));
        for host in recorder.before.into_iter().chain(recorder.hosts) {
            let is_same = |(name, known): &&mut (String, Vec<OfHost>)| {
                *name == report.name && known[0].config.name == host.config.name
            };
            match components.iter_mut().find(is_same) {
                Some((_, known)) => known.push(host),
                None => components.push((report.name.clone(), vec![host])),
            }
        }
    }
    let mut recorded = Vec::new();
    for (name, hosts) in components {
        recorded.extend(end(&name, hosts)?);
    }
    if recorded.is_empty() {
        let what = format!("not two rows of {SHORTEST_INTERVAL_S} s are in it to tell from");
        return Err(at(files.first().map_or(Path::new(""), |path| path), &what));
    }
    Ok(recorded)
}

/// What there is of a component; nothing of one that did nothing then.
fn end(name: &str, hosts: Vec<OfHost>) -> Result<Option<Recorded>> {
    let mut facts = Facts::default();
    let (mut depths, mut turned) = (BTreeMap::new(), Vec::new());
    let mut recordings = Vec::new();
    for host in hosts {
        if host.is_full() {
            let rows = whole(host.rows_max as f64);
            let name = clean(name);
            return Err(
                format!("{name}: more than {rows} rows: name a part of its segments").into()
            );
        }
        facts.esxi_version = Some(host.config.version);
        for (name, (first, last)) in host.depths {
            let (_, before) = depths.entry(name.clone()).or_insert((first, first));
            let begin = host.recording.times_ms.first();
            turned.extend(begin.and_then(|begin| Turned::by(*begin, &name, [before, &first])));
            *before = last;
        }
        turned.extend(host.turned);
        facts.devices.extend(host.facts.devices);
        let [now, lowest] = host.limits.map(|disks| in_force(facts.esxi_version, &disks));
        Arc::make_mut(&mut facts.limits).extend(facts::lowest(now, lowest));
        recordings.push(host.recording);
    }
    for (name, (first, last)) in depths {
        let known = facts.devices.remove(&name).unwrap_or_default();
        facts.devices.insert(name, facts::with_depths(known, &first, &last));
    }
    let span =
        |recording: &Recording| Some((*recording.times_ms.first()?, *recording.times_ms.last()?));
    let mut spans: Vec<_> = recordings.iter().filter_map(span).collect();
    sort(&mut spans);
    if spans.windows(2).any(|two| two[1].0 < two[0].1) {
        let name = clean(name);
        return Err(format!(
            "{name}: several of its journals are of one time: name those of one daemon"
        )
        .into());
    }
    sort_by(&mut turned, |a, b| a.by_ms.cmp(&b.by_ms));
    let recording = merge(recordings).into_iter().find(|recording| recording.len() > 1);
    Ok(recording.map(|recording| Recorded { recording: Measured::of(recording), facts, turned }))
}

impl Turned {
    /// Where what can be set of the depths of a device is another than before.
    fn by(by_ms: i64, device: &str, limits: [&DeviceLimits; 2]) -> Option<Self> {
        let [was, is] = limits.map(|limits| [limits.max_queue_depth, limits.dsnro]);
        (was != is).then(|| Self { by_ms, device: device.to_owned(), was: Some(was) })
    }
}

/// Samples engines while they are fed.
#[derive(Default)]
struct Recorder {
    hosts: Vec<OfHost>,
    /// Those that have more parts now.
    before: Vec<OfHost>,
}

/// What of a host is kept.
struct OfHost {
    config: HostConfig,
    sampler: Sampler,
    recording: Recording,
    /// Rows that it may have.
    rows_max: usize,
    /// The last sample, and the one before it.
    last: HostSnapshot,
    before: HostSnapshot,
    /// When the next is due.
    due: Time,
    /// From when on it had parts of which nobody knows the name.
    changed: Option<Time>,
    facts: Facts,
    /// The depths of its devices, at its first row and at its last.
    depths: BTreeMap<String, (DeviceLimits, DeviceLimits)>,
    /// When these, or limits, became others.
    turned: Vec<Turned>,
    /// The limits of its virtual disks as they are, and the lowest of each.
    limits: [Vec<Limited>; 2],
    /// By device how often the array had refused a command when it began.
    refused: Vec<u64>,
}

impl Look for Recorder {
    fn begin(&mut self, epoch_ms: Option<u64>, at: Time, hosts: &[(&HostConfig, &Engine)]) {
        let epoch_ms = epoch_ms.map_or(sim::EPOCH_MS, |epoch_ms| epoch_ms.cast_signed());
        let is_same =
            self.hosts.iter().map(|host| &host.config).eq(hosts.iter().map(|host| host.0));
        if !is_same {
            let begun = hosts.iter().map(|(config, _)| OfHost::new(config, epoch_ms)).collect();
            self.before.extend(mem::replace(&mut self.hosts, begun));
        }
        for (host, (_, engine)) in self.hosts.iter_mut().zip(hosts) {
            engine.snapshot(at, &mut host.last);
            // Behind a hole it goes on from what it was before that.
            if host.refused.is_empty() {
                host.refused = host.last.devices.iter().map(|device| device.queue_full).collect();
            }
            host.due = at + ROW_NS;
            host.check(at);
        }
    }

    fn input(&mut self, host: usize, at: Time, engine: &Engine) {
        let Some(host) = self.hosts.get_mut(host) else { return };
        while host.due <= at {
            host.sample(engine);
        }
    }

    fn taken(&mut self, host: usize, _: Time, input: &Input) {
        let Input::Set(Knob::Allocation { vdisk, allocation }) = *input else { return };
        let Some(host) = self.hosts.get_mut(host) else { return };
        let [now, lowest] = &mut host.limits;
        let disk = now.get_mut(vdisk.index()).zip(lowest.get_mut(vdisk.index()));
        let Some((now, lowest)) = disk else { return };
        // The row that ends next is of both.
        if let Some(last) =
            host.recording.times_ms.last().filter(|_| now.iops != allocation.limit_iops)
        {
            let device = host.config.devices[now.world.1 as usize].name.clone();
            host.turned.push(Turned { by_ms: last + ROW_MS, device, was: None });
        }
        now.iops = allocation.limit_iops;
        lowest.iops = lowest.iops.into_iter().chain(now.iops).min();
    }
}

impl OfHost {
    fn new(config: &HostConfig, epoch_ms: i64) -> Self {
        let inventory = config.inventory();
        let rows_max = VALUES_MAX / inventory.values_max().max(1);
        let mut nothing = HostSnapshot::default();
        Engine::new(config).snapshot(Time::ZERO, &mut nothing);
        let sampler = Sampler::new(inventory, epoch_ms, Arc::new(nothing));
        let limited = config.vdisks.iter().enumerate().map(|(id, disk)| Limited {
            name: config.disk_name(VdiskId::new(id)),
            world: (disk.vm.0.into(), disk.device.0.into()),
            iops: disk.allocation.limit_iops,
            policy: None,
        });
        let limited: Vec<_> = limited.collect();
        Self {
            limits: [limited.clone(), limited],
            refused: Vec::new(),
            config: config.clone(),
            recording: sampler.recording(),
            sampler,
            rows_max: usize::try_from(rows_max).unwrap_or(usize::MAX),
            last: HostSnapshot::default(),
            before: HostSnapshot::default(),
            due: Time::NEVER,
            changed: None,
            facts: Facts::default(),
            depths: BTreeMap::new(),
            turned: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.recording.len() > self.rows_max
    }

    fn sample(&mut self, engine: &Engine) {
        let at = self.due;
        mem::swap(&mut self.before, &mut self.last);
        engine.snapshot(at, &mut self.last);
        self.due = at + ROW_NS;
        if self.check(at) {
            self.sampler.add_row(&self.before, &self.last, &mut self.recording);
            self.learn(engine);
        }
        if self.is_full() {
            self.due = Time::NEVER;
        }
    }

    /// Whether the last sample is of the parts that the host is known to have. What came later has no name
    /// before the next segment, and without it the sums of devices and adapters are none.
    fn check(&mut self, at: Time) -> bool {
        let (config, sample) = (&self.config, &self.last);
        let is_same = sample.vdisks.len() == config.vdisks.len()
            && sample.devices.len() == config.devices.len()
            && sample.paths.len() == config.paths.len()
            && sample.adapters.len() == config.adapters.len();
        if !is_same {
            self.changed.get_or_insert(at);
            self.due = Time::NEVER;
        }
        is_same
    }

    /// What esxcli would say by now.
    fn learn(&mut self, engine: &Engine) {
        for (id, device) in self.config.devices.iter().enumerate() {
            let Some(limits) = engine.device_limits(DeviceId::new(id)) else { continue };
            if device.kind != DeviceKind::Nfs {
                let known = self.facts.devices.entry(device.name.clone()).or_default();
                known.finds_depth |= limits.finds_depth;
                let sample_size = known.queue_full_sample_size.unwrap_or_default();
                known.queue_full_sample_size = Some(limits.queue_full_sample_size.max(sample_size));
                let (_, last) = self.depths.entry(device.name.clone()).or_insert((limits, limits));
                let row = self.recording.times_ms.last();
                let by = |at: &i64| Turned::by(*at, &device.name, [last, &limits]);
                self.turned.extend(row.and_then(by));
                *last = limits;
                let before = self.refused.get(id).copied().unwrap_or_default();
                known.refusals = Some(self.last.devices[id].queue_full.saturating_sub(before));
                known.sioc = Some(known.sioc == Some(true) || limits.congestion_us.is_some());
                let congestion_ms = limits.congestion_us.map(|micros| f64::from(micros) / 1000.0);
                known.congestion_ms = congestion_ms.or(known.congestion_ms);
            }
        }
    }

    fn complain(&self, name: &str) {
        let Some(at) = self.changed else { return };
        let (name, at) = (clean(name), seconds(at));
        say(&format!(
            "{name}: parts that were added by {at} have no name in it: told is until then"
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use counters::{Counter, Kind, MILLISECOND, Op, Status, VdiskId, VscsiId};
    use engine::{Output, Part, Request, VdiskConfig};
    use journal::{Files, Journal, Limits};
    use knobs::{Allocation, PVSCSI_MAX_TRANSFER};
    use scenario::Scenario;
    use tempfile::TempDir;

    use super::*;

    const HOST: &str = r#"
title = "t"
duration = "1s"
[array.a]
servers = 1
service = "1ms"
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.d]
array = "a"
[vm.v.disk."scsi0:0"]
datastore = "d"
"#;
    const EPOCH_MS: u64 = 1_700_000_000_000;
    const DEVICE: DeviceId = DeviceId(0);
    const DISK: VdiskId = VdiskId(0);

    /// The segments of a component, a file each.
    struct Segments {
        of: PathBuf,
        file: File,
    }

    impl Write for Segments {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.file.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.file.flush()
        }
    }

    impl Files for Segments {
        fn go_on(&mut self, number: u64) -> io::Result<()> {
            self.file = File::create_new(segment(&self.of, number))?;
            Ok(())
        }
    }

    fn segment(of: &Path, number: u64) -> PathBuf {
        journal::file_name(of.to_str().unwrap(), number).into()
    }

    /// A command each millisecond, which takes one, for so many seconds: of a daemon that began so many
    /// seconds later than the first; what else is put in, and at which second. Its segments have 2 s each.
    fn serve(directory: &TempDir, name: &str, times: (u64, u64), also: &[(u64, Input)]) {
        serve_more(directory, name, times, also, None);
    }

    fn host() -> HostConfig {
        let scenario = Scenario::parse("h", HOST, &mut |_| Err(String::new()));
        scenario.unwrap().hosts.remove(0).config
    }

    /// The same where the journal is told what the host is made of when a part comes.
    fn serve_more(
        directory: &TempDir,
        name: &str,
        (begin_s, run_s): (u64, u64),
        also: &[(u64, Input)],
        more: Option<&HostConfig>,
    ) {
        let config = host();
        let epoch_ms = EPOCH_MS + begin_s * 1000;
        let of = directory.path().join(format!("{name}-{epoch_ms}"));
        let files = Segments { file: File::create_new(segment(&of, 0)).unwrap(), of };
        let limits = Limits { epoch_ms, segment_bytes: 32 << 10 };
        let mut journal = Journal::of_real_time(files, name, [&config], limits).unwrap();
        let (mut engine, mut out, mut also) = (Engine::new(&config), None, also.iter());
        let mut next = also.next();
        for step in 0..run_s * 1000 {
            let at = Time(step * MILLISECOND);
            let request = Request {
                vdisk: DISK,
                op: Op::Read,
                lba: step,
                bytes: 4096,
                waited_ns: 0,
                tag: step as u32,
            };
            let done = |io| Input::Done { io, status: Status::Good, array_ns: MILLISECOND };
            let mut inputs: Vec<Input> = out.take().map(done).into_iter().collect();
            while let Some((_, input)) = next.filter(|(at_s, _)| at_s * 1000 <= step) {
                inputs.push(*input);
                next = also.next();
            }
            inputs.push(Input::Submit(request));
            for input in inputs {
                journal.go_on([&engine]);
                journal.input(0, at, &input);
                engine.handle_input(at, input).unwrap();
                while let Some(output) = engine.poll_output() {
                    journal.output(0, &output);
                    if let Output::Dispatch(dispatch) = output {
                        out = Some(dispatch.io);
                    }
                }
                if matches!(input, Input::Attach(_)) {
                    more.into_iter().for_each(|more| journal.has_more([more]));
                }
            }
        }
        let mut counters = HostSnapshot::default();
        engine.snapshot(Time(run_s * SECOND), &mut counters);
        journal.counted(0, &counters);
        journal.finish().unwrap();
    }

    fn recorded(directory: &TempDir) -> Recorded {
        let mut recorded = record(&files(&[directory.path().into()]).unwrap()).unwrap();
        assert_eq!(recorded.len(), 1);
        recorded.remove(0)
    }

    /// The seconds after the first daemon's begin at which there are rows; each has the load.
    fn rows(recorded: &Recorded) -> Vec<u64> {
        let recording = &recorded.recording;
        let device = recording.of_kind(Kind::Device).next().unwrap().0;
        let commands = recording.series(device, Counter::Commands).unwrap();
        assert!(commands.iter().all(|rate| (rate - 1000.0).abs() <= 0.5), "{commands:?}");
        recording.times_ms.iter().map(|at_ms| (at_ms.cast_unsigned() - EPOCH_MS) / 1000).collect()
    }

    #[test]
    fn a_journal_has_the_rows_of_a_capture_and_what_esxcli_says_by_then() {
        let directory = tempfile::tempdir().unwrap();
        let set = Input::Set(Knob::SchedNumReqOutstanding { device: DEVICE, value: 7 });
        serve(&directory, "h-0", (0, 11), &[(5, set)]);
        let recorded = recorded(&directory);
        assert_eq!(rows(&recorded), [2, 4, 6, 8, 10]);
        assert_eq!(recorded.recording.host, "esx");
        let (name, facts) = recorded.facts.devices.iter().next().unwrap();
        assert!(recorded.recording.find(Kind::Device, name).is_some());
        assert_eq!((facts.dsnro, facts.dsnro_at_end), (None, Some(7)));
        assert_eq!((facts.max_queue_depth, facts.driver_depth), (Some(64), Some(64)));
        assert_eq!(facts.queue_full_sample_size, Some(0), "nothing throttles");
        let at_ms = recorded.recording.times_ms[2];
        let turned = Turned { by_ms: at_ms, device: name.clone(), was: Some([64, 32]) };
        assert_eq!(recorded.turned, [turned]);
        let dsnro = |facts: &Facts| facts.devices.values().next().unwrap().dsnro;
        assert_eq!(dsnro(&recorded.facts_by(at_ms - 1)), Some(32));
        assert_eq!(dsnro(&recorded.facts_by(at_ms)), Some(7));
        assert_eq!(dsnro(&recorded.by_end().facts), Some(7));
    }

    #[test]
    fn what_is_missing_is_in_no_row() {
        let directory = tempfile::tempdir().unwrap();
        serve(&directory, "h-0", (0, 25), &[]);
        let named = files(&[directory.path().into()]).unwrap();
        let segments = named.len();
        assert!(segments > 8, "{segments}");
        let all = rows(&recorded(&directory));
        for gone in [&named[..1], &named[4..5], &named[segments - 1..]] {
            let apart = tempfile::tempdir().unwrap();
            for path in gone {
                fs::rename(path, apart.path().join(path.file_name().unwrap())).unwrap();
            }
            let left = rows(&recorded(&directory));
            assert!(left.len() > 3 && left.len() <= all.len() && left.is_sorted(), "{left:?}");
            for path in gone {
                fs::rename(apart.path().join(path.file_name().unwrap()), path).unwrap();
            }
        }
    }

    #[test]
    fn daemons_one_after_the_other_are_one_host_and_who_did_nothing_says_nothing() {
        let directory = tempfile::tempdir().unwrap();
        serve(&directory, "h-0", (100, 5), &[]);
        serve(&directory, "h-0", (0, 7), &[]);
        serve(&directory, "h-1", (0, 1), &[]);
        assert_eq!(rows(&recorded(&directory)), [2, 4, 6, 102, 104]);
        serve(&directory, "h-2", (0, 7), &[]);
        assert_eq!(record(&files(&[directory.path().into()]).unwrap()).unwrap().len(), 2);
    }

    fn disk() -> Input {
        Input::Attach(Part::Vdisk {
            id: VdiskId(1),
            vscsi: VscsiId(0),
            device: DEVICE,
            depth: 32,
            max_transfer: PVSCSI_MAX_TRANSFER,
            allocation: Allocation::default(),
            powered_on: true,
            system: false,
            timeout_ns: None,
        })
    }

    #[test]
    fn rows_go_on_where_something_comes_that_has_a_name() {
        let mut more = host();
        more.vdisks.push(VdiskConfig { name: "scsi0:1".into(), ..more.vdisks[0].clone() });
        let directory = tempfile::tempdir().unwrap();
        serve_more(&directory, "h-0", (0, 15), &[(7, disk())], Some(&more));
        let of_disk = |recorded: &Recorded| {
            let recording = &recorded.recording;
            recording.find(Kind::VirtualDisk, "v:scsi0:1").map(|_| recording.len())
        };
        let recorded = recorded(&directory);
        assert_eq!(rows(&recorded), [2, 4, 6, 9, 11, 13]);
        assert_eq!(of_disk(&recorded), Some(6));
        // Its name is in each segment that begins later.
        let named = files(&[directory.path().into()]).unwrap();
        let last = record(&named[named.len() - 3..]).unwrap();
        assert!(of_disk(&last[0]).is_some_and(|rows| rows >= 2), "{last:?}");
    }

    #[test]
    fn rows_end_where_something_comes_that_has_no_name_in_it() {
        let directory = tempfile::tempdir().unwrap();
        serve(&directory, "h-0", (0, 15), &[(7, disk())]);
        assert_eq!(rows(&recorded(&directory)), [2, 4, 6]);
        // Nor are there any in segments that begin later.
        let named = files(&[directory.path().into()]).unwrap();
        let line = record(&named[named.len() - 4..]).unwrap_err().to_string();
        assert!(line.ends_with("not two rows of 2 s are in it to tell from"), "{line}");
    }
}
