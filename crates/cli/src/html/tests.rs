//! The page as a whole: a small host in full, and names that try to be more than names.

use counters::{Controller, Counter as C, Entity, EntityId, Kind, Recording};
use diagnose::{
    Cause, Change, Evidence, Facts, Finding, Object, Outcome, Party, Profile, ProfileChoice,
    Simulated, SimulatedRow, Step, Thresholds, Verdict, Window, diagnose,
};
use knobs::{Advanced, Line, Setting};
use levels::Measured;

use super::{Host, Page, body, charts::Charts, write};

/// Samples of the small host, five seconds apart.
const SAMPLES: usize = 6;

/// A host with one device, on which two VMs compete for 32 slots.
fn recording(host: &str, vms: [&str; 2]) -> Recording {
    let mut recording = Recording::new(host.into());
    recording.times_ms = (1..=SAMPLES as i64).map(|n| 1_767_225_600_000 + n * 5_000).collect();
    let add = |recording: &mut Recording, kind, name: &str| {
        recording.add_entity(Entity::new(kind, name.into()))
    };
    let adapter = add(&mut recording, Kind::Adapter, "vmhba1");
    let device = add(&mut recording, Kind::Device, "naa.6001");
    let path = add(&mut recording, Kind::Path, "vmhba1:C0:T0:L1");
    recording.entity_mut(path).device = Some(device);
    recording.entity_mut(path).adapter = Some(adapter);
    set(&mut recording, adapter, &[(C::AdapterQDepth, 2048.0)]);
    fill(&mut recording, adapter, 64_000.0, 0.0);
    fill(&mut recording, path, 64_000.0, 0.0);
    fill(&mut recording, device, 64_000.0, 0.5);
    let queue = [(C::ActiveCommands, 32.0), (C::QueuedCommands, 32.0)];
    set(&mut recording, device, &queue);
    let depth = [128.0, 32.0, 32.0, 32.0, 32.0, 32.0];
    recording.set_column(device, C::DeviceQDepth, depth.into());
    for (number, name) in vms.into_iter().enumerate() {
        let vm = add(&mut recording, Kind::Vm, name);
        let world = add(&mut recording, Kind::World, &format!("naa.6001-{number}"));
        let disk = add(&mut recording, Kind::VirtualDisk, &format!("{name}:scsi0:0"));
        for part in [world, disk] {
            recording.entity_mut(part).vm = Some(vm);
            recording.entity_mut(part).device = Some(device);
        }
        recording.entity_mut(disk).controller = Some(Controller::Pvscsi);
        fill(&mut recording, world, 32_000.0, 0.5);
        let latencies = [(C::Reads, 32_000.0), (C::VdiskReadLatency, 1.0)];
        set(&mut recording, disk, &latencies);
    }
    recording
}

/// A row at a rate, with DAVG of 0.5 ms and a wait.
fn fill(recording: &mut Recording, row: EntityId, rate: f64, wait: f64) {
    let latencies =
        [(C::KernelLatency, wait), (C::QueueLatency, wait), (C::GuestLatency, 0.5 + wait)];
    set(recording, row, &[(C::Commands, rate), (C::DriverLatency, 0.5), (C::MbRead, rate / 256.0)]);
    set(recording, row, &latencies);
}

fn set(recording: &mut Recording, row: EntityId, values: &[(C, f64)]) {
    for (counter, value) in values {
        recording.set_column(row, *counter, vec![*value; SAMPLES]);
    }
}

fn judge(recording: &Measured) -> Verdict {
    diagnose(recording, &Thresholds::default(), &Facts::default())
}

fn page<'a>(recording: &'a Measured, verdict: &'a Verdict) -> Page<'a> {
    Page {
        hosts: vec![Host::new(recording, verdict, "")],
        comparison: None,
        remarks: vec!["esx01.csv:7: 3 of 9 cells; 1 row left out in all".into()],
        run: None,
    }
}

/// The file, and the same without what it carries with it.
fn written(page: &Page<'_>) -> (String, String) {
    let mut file = Vec::new();
    write(page, &mut file).unwrap();
    let body = body(page, &Charts::of(page)).into_string();
    (
        String::from_utf8(file).unwrap(),
        body.replace("><", ">\n<").replace(env!("CARGO_PKG_VERSION"), "VERSION"),
    )
}

/// A simulation by hand.
fn simulated() -> Simulated {
    let row = |counter, unit, captured, today, (low, high)| SimulatedRow {
        object: "naa.6001".into(),
        counter,
        unit,
        captured,
        today,
        low,
        high,
    };
    Simulated {
        sentence: "GAVG falls from 1 ms to between 0.5 and 0.7 ms.".into(),
        identified: false,
        doubts: vec!["The load never fell in this capture.".into()],
        rows: vec![
            row("GAVG/cmd", "ms", Some(1.0), 0.98, (0.5, 0.7)),
            row("QUED", "", None, 31.0, (0.0, 0.0)),
        ],
    }
}

/// A verdict by hand on the small host.
fn verdict() -> Verdict {
    let window = Window { from_ms: 1_767_225_605_000, to_ms: 1_767_225_630_000, samples: 5, of: 6 };
    let party = |name: &str| Party {
        name: name.into(),
        iops: 32_000.0,
        gavg_ms: Some(1.0),
        slots: 16.0,
        waiting: Some(16.0),
    };
    Verdict {
        host: "esx01".into(),
        outcome: Outcome::Problem,
        lacks: Vec::new(),
        headline: "Two VMs compete.".into(),
        advice: Some("Raise `DSNRO`.".into()),
        window,
        findings: vec![Finding {
            cause: Cause::Dsnro,
            at: Object::row(Kind::Device, "naa.6001"),
            also: Vec::new(),
            datastore: Some("gold".into()),
            sentence: "Two VMs compete on `naa.6001`.".into(),
            window,
            standing: 32.0,
            limit: Some(32.0),
            evidence: vec![Evidence { label: "DQLEN".into(), value: 32.0, unit: "" }],
            confidence: 0.95,
            raise_confidence: vec!["the output of `esxcli`".into()],
            sufferers: vec![party("sql01"), party("web01")],
            causers: vec![party("web01"), party("backup01")],
            changes: vec![change(), Change { esxcli: Vec::new(), ..change() }],
            do_not: vec!["Do not raise the depth of the guest.".into()],
            caution: Some("Leave depths alone."),
        }],
        evidence: Vec::new(),
        profiles: vec![ProfileChoice {
            device: "naa.6001".into(),
            profile: Profile::Flash,
            why: "asked for".into(),
        }],
        disagreements: Vec::new(),
        missing: vec!["No AQLEN: `esxtop -b -a` records it.".into()],
        names: [("naa.6001".into(), "gold".into())].into(),
    }
}

fn change() -> Change {
    Change {
        what: "Raise DSNRO from 32 to 64.".into(),
        esxcli: vec!["esxcli storage core device set -d naa.6001 -O 64".into()],
        powercli: vec!["$esxcli.storage.core.device.set.Invoke(@{device='naa.6001'})".into()],
        guest: vec!["a line for the guest".into()],
        effect: knobs::Effect::AtOnce,
        risk: "VMs take more from each other.".into(),
        undo: "Set what was, and reboot the host".into(),
        simulated: Some(simulated()),
        steps: vec![Step { host: None, set: dsnro(64), undo: Some(dsnro(32)) }],
    }
}

const fn dsnro(value: u32) -> Setting {
    Setting::Advanced { option: Advanced::SchedNumReqOutstanding, value: Some(value) }
}

#[test]
fn what_is_copied_to_undo_is_a_line_and_nothing_else() {
    let (_, body) =
        written(&page(&Measured::of(recording("esx01", ["sql01", "web01"])), &verdict()));
    let undo = body.split("<dt>Undo</dt>").nth(1).unwrap().split("</dl>").next().unwrap();
    assert!(undo.contains("and reboot the host"), "{undo}");
    let copied: Vec<_> = undo.split("<code>").skip(1).collect();
    assert_eq!(copied.len(), 1, "{undo}");
    let line = copied[0].split("</code>").next().unwrap().trim();
    assert_eq!(line.parse::<Line>().unwrap().settings, [dsnro(32)]);
}

#[test]
fn a_small_host_in_full() {
    let recording = Measured::of(recording("esx01", ["sql01", "web01"]));
    let verdict = verdict();
    let (_, body) = written(&page(&recording, &verdict));
    insta::assert_snapshot!(body);
}

#[test]
fn nothing_wrong_is_a_page_with_its_proof_and_its_charts() {
    let mut recording = recording("esx01", ["sql01", "web01"]);
    let rows: Vec<EntityId> = (0..).map(EntityId).take(recording.entities().len()).collect();
    for row in rows
        .iter()
        .filter(|row| recording.series(**row, C::QueueLatency).is_some())
        .copied()
        .collect::<Vec<_>>()
    {
        let is_world = recording.entity(row).kind == Kind::World;
        fill(&mut recording, row, if is_world { 50.0 } else { 100.0 }, 0.0);
    }
    let device = recording.find(Kind::Device, "naa.6001").unwrap();
    set(&mut recording, device, &[(C::QueuedCommands, 0.0), (C::ActiveCommands, 1.0)]);
    set(&mut recording, device, &[(C::Aborts, 0.0), (C::FailedCommands, 0.0), (C::Conflicts, 0.0)]);
    for disk in ["sql01:scsi0:0", "web01:scsi0:0"] {
        let disk = recording.find(Kind::VirtualDisk, disk).unwrap();
        set(&mut recording, disk, &[(C::Reads, 50.0)]);
    }
    let recording = Measured::of(recording);
    let verdict = judge(&recording);
    let (file, body) = written(&page(&recording, &verdict));
    assert_eq!(verdict.findings, [], "{}", verdict.headline);
    for expected in
        ["No storage problem", "highest mean KAVG", "class=\"charts\"", "What was looked at"]
    {
        assert!(body.contains(expected), "{expected}: {body}");
    }
    assert!(file.contains("\"title\":\"Latency by layer\""));
}

#[test]
fn a_recording_without_samples_or_devices_is_a_page_too() {
    let empty = Measured::of(Recording::new("esx01".into()));
    let verdict = judge(&empty);
    let (file, body) = written(&page(&empty, &verdict));
    assert!(body.contains("Cannot tell"), "{body}");
    assert!(file.contains("{\"hosts\":[{\"bucket\":1,\"times\":[],\"objects\":[],"), "{file}");
}

#[test]
fn names_are_names_whatever_they_contain() {
    let names = ["</script><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>"];
    let host = "esx\u{202e}\u{2028}\0\x1b[2J<!--";
    let recording = Measured::of(recording(host, names));
    let verdict = judge(&recording);
    let (file, body) = written(&page(&recording, &verdict));
    assert!(!verdict.findings.is_empty());
    for tag in ["<script>alert", "<img", "<!--"] {
        assert!(!file.contains(tag), "{tag}");
    }
    assert_eq!(file.matches("</script>").count(), 3);
    assert!(body.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    let data = data(&file);
    let vms = &data["hosts"][0]["objects"][0]["charts"][3]["series"];
    let mut shown = [0, 1].map(|vm| vms[vm]["name"].as_str().unwrap());
    shown.sort_unstable();
    assert_eq!(shown, [names[1], names[0]]);
    let steers = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{2028}".contains(c);
    assert!(!file.contains(steers));
}

#[test]
fn the_policy_names_every_script_and_style_and_nothing_else() {
    let recording = Measured::of(recording("esx01", ["sql01", "web01"]));
    let verdict = judge(&recording);
    let (file, _) = written(&page(&recording, &verdict));
    let (_, policy) = file.split_once("Content-Security-Policy\" content=\"").unwrap();
    let policy = policy.split_once('"').unwrap().0;
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert_eq!(policy.matches("'sha256-").count(), 4);
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    assert_eq!((file.matches("<script>").count(), file.matches("<style>").count()), (2, 2));
    assert!(!file.contains(" style=\"") && !file.contains(" onclick="));
}

#[test]
fn a_long_recording_is_reduced_and_says_so() {
    let mut recording = recording("esx01", ["sql01", "web01"]);
    let samples = 10_000;
    let columns: Vec<(EntityId, C, f64)> =
        recording.columns().map(|(row, counter, values)| (row, counter, values[1])).collect();
    recording.times_ms = (0..samples as i64).map(|n| n * 2_000).collect();
    for (row, counter, value) in columns {
        recording.set_column(row, counter, vec![value; samples]);
    }
    let device = recording.find(Kind::Device, "naa.6001").unwrap();
    let mut davg: Vec<f64> = (0..samples).map(|n| 0.5 + (n % 7) as f64 / 100.0).collect();
    davg[7_777] = 0.95;
    recording.set_column(device, C::DriverLatency, davg);
    let recording = Measured::of(recording);
    let verdict = judge(&recording);
    let (file, body) = written(&page(&recording, &verdict));
    assert!(body.contains("Of each 10 of the 10,000 samples the least and the largest"), "{body}");
    assert!(file.contains("0.95,"), "the peak stays");
    assert!(file.len() < 300_000, "{}", file.len());
}

/// The data that the script is given.
fn data(file: &str) -> serde_json::Value {
    let (_, data) = file.split_once("type=\"application/json\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_finding_about_a_virtual_disk_shows_the_disk_and_its_limit() {
    let recording = Measured::of(recording("esx01", ["sql01", "web01"]));
    let mut verdict = verdict();
    let finding = &mut verdict.findings[0];
    finding.cause = Cause::VirtualDiskCap;
    finding.at = Object::row(Kind::VirtualDisk, "web01:scsi0:0");
    finding.limit = Some(64.0);
    let (file, body) = written(&page(&recording, &verdict));
    let data = data(&file);
    let host = &data["hosts"][0];
    assert_eq!(host["places"], serde_json::json!([["virtual disk web01:scsi0:0", 0]]));
    let kinds = [0, 1].map(|object| host["objects"][object]["kind"].as_str().unwrap());
    assert_eq!(kinds, ["virtual disk", "device"]);
    assert_eq!(host["objects"][1]["windows"][0][2], 1);
    let (_, adapter) = body.split_once(">virtual disk<").unwrap();
    assert!(adapter.split_once(">world<").unwrap().0.contains(">64<"), "{adapter}");
}

#[test]
fn an_nfs_volume_has_gavg_alone() {
    let mut recording = Recording::new("esx01".into());
    recording.times_ms = (1..=SAMPLES as i64).map(|n| n * 5_000).collect();
    let volume = recording.add_entity(Entity::new(Kind::NfsVolume, "nfs01".into()));
    set(&mut recording, volume, &[(C::Commands, 500.0), (C::GuestLatency, 4.0)]);
    let recording = Measured::of(recording);
    let verdict = judge(&recording);
    let (file, body) = written(&page(&recording, &verdict));
    assert!(body.contains("nfs01, NFS: GAVG alone"), "{body}");
    let latencies = &data(&file)["hosts"][0]["objects"][0]["charts"][0]["series"];
    assert_eq!((latencies.as_array().unwrap().len(), &latencies[0]["name"]), (1, &"GAVG".into()));
}
