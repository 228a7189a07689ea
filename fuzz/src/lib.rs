//! What every fuzz target does with its bytes, and what must hold afterwards.
//!
//! A target in `targets/` is one call of a function here. The ordinary tests of the command line
//! call the same functions with seeds and with damaged seeds, so that they cannot fall behind the
//! code; see `docs/internals/fuzzing.md`.

mod recording;
mod seeds;

use std::{
    io::{Cursor, Write},
    sync::LazyLock,
};

use arbitrary::{Arbitrary, Unstructured};
use capture::{Cut, Input, Limits, ReadOptions, Substitutes, read_inputs};
use control::Said;
use counters::Recording;
use levels::Measured;
use scenario::Scenario;
use twox_hash::XxHash3_64;

use self::recording::{Host, Loose, SECRET, Strange, described};
pub use self::seeds::seeds;

/// A target: its name and what it does with its bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 15] = [
    ("reader", reader),
    ("compressed", compressed),
    ("esxcli", esxcli),
    ("vscsistats", vscsistats),
    ("writer", writer),
    ("anonymize", anonymize),
    ("diagnose", diagnose),
    ("scenario", scenario),
    ("knob_line", knob_line),
    ("parameter_file", parameter_file),
    ("journal", journal),
    ("nbd", nbd),
    ("virtio", virtio),
    ("vhost_user", vhost_user),
    ("control", control),
];

/// A site for command lines and parameter files.
const SITE: &str = r#"
title = "a site"
duration = "10s"
[array.a]
servers = 8
service = "1ms"
[host.esx]
count = 2
[host.esx.adapter.vmhba1]
driver = "fnic"
[host.esx.adapter.vmhba64]
driver = "iscsi_vmk"
[datastore.d]
device = "naa.600a0b80001111550000f35b93e19350"
[vm.v]
[vm.v.disk."scsi0:1"]
datastore = "d"
"#;

/// As little as a run of the fuzzer should ever take.
fn options() -> ReadOptions {
    let limits = Limits {
        line_bytes: 1 << 20,
        inflated_bytes: 32 << 20,
        idle_bytes: 16 << 20,
        values: 1 << 20,
    };
    ReadOptions { limits, threads: std::num::NonZeroUsize::MIN, ..ReadOptions::default() }
}

fn read(inputs: Vec<Input>) -> Option<capture::Capture> {
    match read_inputs(inputs, &options(), &mut |_, _| ()) {
        Ok(capture) => Some(capture),
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            None
        }
    }
}

/// Times ascend and every column has a value for each of them.
fn assert_sound(recording: &Recording) {
    assert!(recording.times_ms.is_sorted_by(|a, b| a < b));
    for (id, _, values) in recording.columns() {
        assert!((id.0 as usize) < recording.entities().len());
        assert_eq!(values.len(), recording.len());
    }
}

/// Any bytes as a capture: read, described, judged, cut and written again.
pub fn reader(bytes: &[u8]) {
    let input = || Input::from_bytes("fuzz.csv", bytes.to_vec());
    let _ =
        capture::cut(input(), &Cut::default(), &options().limits, &mut Vec::new(), &mut |_, _| ());
    let Some(capture) = read(vec![input()]) else { return };
    capture.recordings.iter().for_each(assert_sound);
    let _ = capture::info(&capture);
    for recording in &capture.recordings {
        judged(recording.clone());
        let written = written(recording);
        // What has no disk column is no capture.
        if let Some(again) = read(vec![Input::from_bytes("again.csv", written)]) {
            again.recordings.iter().for_each(assert_sound);
        }
    }
}

/// A compressed capture, as it is or made here, the bytes damaged or sound.
pub fn compressed(bytes: &[u8]) {
    let Some((&form, bytes)) = bytes.split_first() else { return };
    let inputs = match form % 4 {
        0 => Input::stream("fuzz", Cursor::new(bytes.to_vec())).map(|input| vec![input]),
        1 => Input::stream("fuzz.gz", Cursor::new(gzip(bytes))).map(|input| vec![input]),
        2 => from_file(&zip(bytes)),
        _ => from_file(bytes),
    };
    if let Some(capture) = inputs.ok().and_then(read) {
        capture.recordings.iter().for_each(assert_sound);
    }
}

fn from_file(bytes: &[u8]) -> Result<Vec<Input>, capture::Error> {
    let mut file = tempfile::NamedTempFile::new().expect("room for a file");
    file.write_all(bytes).expect("room for a file");
    Input::open(file.path())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).expect("memory");
    gzip.finish().expect("memory")
}

fn zip(bytes: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("a.csv", zip::write::SimpleFileOptions::default()).expect("memory");
    zip.write_all(bytes).expect("memory");
    zip.finish().expect("memory").into_inner()
}

/// Any text as the output of an `esxcli` command.
pub fn esxcli(bytes: &[u8]) {
    let _ = capture::parse_esxcli("fuzz.txt", &String::from_utf8_lossy(bytes));
}

/// Any text as the output of `vscsiStats -c`.
pub fn vscsistats(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for histogram in capture::parse_vscsistats("fuzz.csv", &text).unwrap_or_default() {
        assert!((0.0..=1.0).contains(&histogram.share_above(0)));
    }
}

/// A host written as `esxtop -b` would is read back equal, lines of nonsense between the rows are
/// counted, and an end cut off costs a row at most.
pub fn writer(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    let (Ok(host), Ok(nonsense)) = (Host::arbitrary(&mut bytes), Vec::arbitrary(&mut bytes)) else {
        return;
    };
    let (host, nonsense) = (host.recording(), self::recording::nonsense(nonsense));
    let file = written(&host);
    let damaged = self::recording::spoilt(&file, &nonsense);
    let capture = read(vec![Input::from_bytes("fuzz.csv", damaged)]).expect("it has disk columns");
    let report = &capture.report.files[0];
    assert_eq!(report.damaged_rows, nonsense.len() as u64);
    assert_eq!((report.bad_cells, report.rows), (0, host.len() + 1));
    assert_eq!(described(&capture.recordings[0]), described(&host));
    let shorter = file[..file.len() - 2].to_vec();
    let capture = read(vec![Input::from_bytes("fuzz.csv", shorter)]).expect("it has a header");
    assert!(capture.recordings[0].len() + 1 >= host.len());
}

/// No name of a host is found in its capture once it is anonymous, and no value has changed.
pub fn anonymize(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    let (Ok(host), Ok(strange)) = (Host::arbitrary(&mut bytes), Strange::arbitrary(&mut bytes))
    else {
        return;
    };
    let file = strange.beside(&written(&host.secret()));
    let mut out = Vec::new();
    let input = Input::from_bytes("fuzz.csv", file.clone());
    let mut names = Substitutes::default();
    let report = capture::anonymize(input, &mut names, &options().limits, &mut out, &mut |_, _| ())
        .expect("it has a header");
    let text = String::from_utf8(out).expect("substitutes are ASCII");
    assert!(!text.to_lowercase().contains(SECRET), "{text}");
    let dropped: usize = report.dropped.values().sum();
    let header = |text: &str| text.lines().next().map_or(0, |line| line.matches("\",").count());
    assert_eq!(header(&text) + dropped, header(&String::from_utf8_lossy(&file)));
    assert_eq!((report.copy.damaged_rows, report.emptied_cells), (0, 0));
}

/// A recording of any shape, links to nowhere and numbers that are none included, has a verdict.
pub fn diagnose(bytes: &[u8]) {
    if let Ok(loose) = Loose::arbitrary(&mut Unstructured::new(bytes)) {
        judged(loose.recording());
    }
}

fn judged(recording: Recording) {
    let verdict =
        diagnose::diagnose(&Measured::of(recording), &Default::default(), &Default::default());
    for finding in &verdict.findings {
        assert!((0.0..=1.0).contains(&finding.confidence), "{finding:?}");
    }
    let text = diagnose::render_text(&verdict);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
}

fn written(recording: &Recording) -> Vec<u8> {
    let mut bytes = Vec::new();
    capture::write_esxtop(recording, &mut bytes).expect("memory");
    bytes
}

/// Any text as a scenario file.
pub fn scenario(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = Scenario::parse("fuzz.toml", &text, &mut |_| Err("there is none".into()));
}

/// Any line as one of esxcli's or of a guest's driver.
pub fn knob_line(bytes: &[u8]) {
    let line = String::from_utf8_lossy(bytes);
    let mut site = Scenario::parse("site.toml", SITE, &mut |_| Err("there is none".into()))
        .expect("the site is sound");
    let _ = scenario::parse_knob(&line, &site);
    let _ = site.set(&line);
}

/// Any text as a job file of fio and as a parameter file of Vdbench.
pub fn parameter_file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for tool in ["fio", "vdbench"] {
        let site = format!("{SITE}[[workload]]\nvm = \"v\"\n{tool} = \"file\"\n");
        let _ = Scenario::parse("site.toml", &site, &mut |_| Ok(text.to_string()));
    }
}

/// Any bytes as what stands in the frames of a journal, whose lengths and checksums are sound: the
/// first four say how long the first frame is, which has the hosts.
pub fn journal(bytes: &[u8]) {
    if let Some(journal) = framed(bytes) {
        let _ = journal::replay(journal.as_slice());
    }
}

/// Bytes of a frame of a journal, besides those that it carries: length and checksums.
const FRAME: usize = 16;
/// What stands before the frames: the mark and the version of the format, as a journal is written today.
static BEFORE_FRAMES: LazyLock<[u8; 9]> = LazyLock::new(|| {
    let empty = journal::Journal::new(Vec::new(), "", []).and_then(journal::Journal::finish);
    *empty.expect("memory").first_chunk().expect("a journal has a beginning")
});

/// Bytes as a journal of two frames, as `journal` describes them.
fn framed(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, payload) = bytes.split_first_chunk()?;
    let hosts = (u32::from_le_bytes(*length) as usize).min(payload.len());
    let (hosts, records) = payload.split_at(hosts);
    let mut journal = BEFORE_FRAMES.to_vec();
    let mut chain = 0;
    for payload in [hosts, records] {
        let length = (payload.len() as u32).to_le_bytes();
        let check = XxHash3_64::oneshot_with_seed(chain, &length) as u32;
        chain = XxHash3_64::oneshot_with_seed(chain, payload);
        journal.extend(length);
        journal.extend(check.to_le_bytes());
        journal.extend(chain.to_le_bytes());
        journal.extend(payload);
    }
    Some(journal)
}

/// Any bytes as a line of a control socket, from either side: what is taken holds together, and what is
/// refused is so in a line.
pub fn control(bytes: &[u8]) {
    let refusals = [control::read_ask(bytes).err(), control::read_answer(bytes).err()];
    refusals.iter().flatten().for_each(|line| assert!(!line.contains('\n'), "{line}"));
    if let Ok(Said::Layout(layout)) = control::read_answer(bytes)
        && let Some((mut recording, columns)) = layout.recording()
    {
        recording.times_ms.push(0);
        for (entity, counter) in columns {
            recording.set_column(entity, counter, vec![1.0]);
        }
        let _ = Measured::of(recording);
    }
}

/// Any bytes as the memory of a guest with a ring in it.
pub fn virtio(bytes: &[u8]) {
    let _ = live::rings(bytes);
}

/// Any bytes as what a front end of vhost-user says.
pub fn vhost_user(bytes: &[u8]) {
    let _ = live::messages(bytes);
}

/// Any bytes as what a client of NBD says.
pub fn nbd(bytes: &[u8]) {
    let _ = live::talk(bytes);
}
