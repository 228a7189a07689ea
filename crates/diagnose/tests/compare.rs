//! Before and after, and several hosts on one device, on recordings made by hand.

use counters::{Counter, Entity, Kind, Recording};
use diagnose::{
    Comparison, Facts, Judged, SharedKind, Thresholds, Trend, compare, diagnose, render_comparison,
    render_comparison_markdown,
};
use levels::Measured;

/// What a VM does on a device.
#[derive(Clone, Copy)]
struct Load {
    iops: f64,
    kib: f64,
    davg: f64,
    kavg: f64,
    depth: f64,
    /// By how much every number goes up and down, as a part of it.
    unrest: f64,
}

const LOAD: Load =
    Load { iops: 20_000.0, kib: 8.0, davg: 0.5, kavg: 0.0, depth: 64.0, unrest: 0.02 };
const FULL: Load = Load { davg: 1.6, kavg: 3.2, depth: 32.0, ..LOAD };
const DEVICE: &str = "naa.600000000000000000000000000000a1";

/// A number between -1 and 1 that looks random.
fn wobble(seed: usize, sample: usize) -> f64 {
    let mixed = (seed * 7_919 + sample * 104_729 + sample * sample * 31) % 1_000;
    mixed as f64 / 500.0 - 1.0
}

/// A device, a VM on it, and what that does in each sample.
type Use<'a> = (&'a str, &'a str, &'a dyn Fn(usize) -> Load);

/// A host, its samples every 5 s from `from_s` on; a VM with one disk on each device.
fn host(name: &str, from_s: i64, samples: usize, vms: &[Use<'_>]) -> Recording {
    let mut recording = Recording::new(name.into());
    recording.times_ms = (0..samples as i64).map(|i| 1_000 * (from_s + 5 * (i + 1))).collect();
    for (index, (device, vm, load)) in vms.iter().enumerate() {
        let kind = if device.starts_with("nfs") { Kind::NfsVolume } else { Kind::Device };
        let row = recording.add_entity(Entity::new(kind, (*device).into()));
        let owner = recording.add_entity(Entity::new(Kind::Vm, (*vm).into()));
        let mut disk = Entity::new(Kind::VirtualDisk, format!("{vm}:scsi0:0"));
        (disk.device, disk.vm) = (Some(row), Some(owner));
        let disk = recording.add_entity(disk);
        let mut world = Entity::new(Kind::World, format!("{device}-{index}"));
        (world.device, world.vm) = (Some(row), Some(owner));
        let world = recording.add_entity(world);
        let seed = from_s as usize + index;
        let mut column = |objects: &[_], counter, value: &dyn Fn(&Load) -> f64| {
            for object in objects {
                let values = (0..samples).map(|sample| {
                    let load = load(sample);
                    value(&load) * (1.0 + load.unrest * wobble(seed, sample))
                });
                recording.set_column(*object, counter, values.collect());
            }
        };
        column(&[row, world, disk], Counter::Commands, &|load| load.iops);
        column(&[row, world, disk], Counter::Reads, &|load| load.iops);
        column(&[row, world, disk], Counter::MbRead, &|load| load.iops * load.kib / 1024.0);
        column(&[row, world], Counter::GuestLatency, &|load| load.davg + load.kavg);
        column(&[disk], Counter::VdiskReadLatency, &|load| load.davg + load.kavg);
        if kind == Kind::Device {
            column(&[row, world], Counter::DriverLatency, &|load| load.davg);
            column(&[row, world], Counter::KernelLatency, &|load| load.kavg);
            column(&[row, world], Counter::QueueLatency, &|load| load.kavg);
            let depths = (0..samples).map(|sample| load(sample).depth).collect();
            recording.set_column(row, Counter::DeviceQDepth, depths);
        }
    }
    recording
}

/// One VM on one device at a steady load.
fn steady(name: &str, from_s: i64, load: Load) -> Recording {
    host(name, from_s, 24, &[(DEVICE, "sql01", &|_| load)])
}

fn compared(before: &[Recording], after: &[Recording]) -> Comparison {
    let measured = |side: &[Recording]| side.iter().cloned().map(Measured::of).collect::<Vec<_>>();
    let (before, after) = (measured(before), measured(after));
    let judge = |recording| diagnose(recording, &Thresholds::default(), &Facts::default());
    let [was, is] = [&before, &after].map(|side| side.iter().map(judge).collect::<Vec<_>>());
    let before: Vec<_> =
        before.iter().zip(&was).map(|(recording, verdict)| Judged { recording, verdict }).collect();
    let after: Vec<_> =
        after.iter().zip(&is).map(|(recording, verdict)| Judged { recording, verdict }).collect();
    compare(&before, &after)
}

fn before_after(before: Load, after: Load) -> Comparison {
    compared(&[steady("esx01", 0, before)], &[steady("esx01", 3_600, after)])
}

#[test]
fn a_full_queue_that_was_deepened_is_told_as_text_and_as_markdown() {
    let comparison = before_after(FULL, Load { davg: 1.5, kavg: 0.0, depth: 128.0, ..FULL });
    insta::assert_snapshot!("text", render_comparison(&comparison));
    insta::assert_snapshot!("markdown", render_comparison_markdown(&comparison));
}

#[test]
fn the_load_decides_whether_latency_may_be_compared() {
    let slow = Load { davg: 2.0, ..LOAD };
    let cases: &[(&str, Load, Load, Trend)] = &[
        ("the same", LOAD, LOAD, Trend::Same),
        ("quicker at the same load", slow, LOAD, Trend::Better),
        ("slower at the same load", LOAD, slow, Trend::Worse),
        ("quicker with more to do", slow, Load { iops: 40_000.0, ..LOAD }, Trend::Better),
        ("slower with less to do", LOAD, Load { iops: 10_000.0, ..slow }, Trend::Worse),
        ("quicker with less to do", slow, Load { iops: 10_000.0, ..LOAD }, Trend::LoadDiffers),
        ("slower with more to do", LOAD, Load { iops: 40_000.0, ..slow }, Trend::LoadDiffers),
        ("quicker with smaller I/Os", slow, Load { kib: 4.0, ..LOAD }, Trend::LoadDiffers),
        ("slower with larger I/Os", LOAD, Load { kib: 64.0, ..slow }, Trend::LoadDiffers),
        ("quicker with larger I/Os", slow, Load { kib: 16.0, ..LOAD }, Trend::Better),
        ("as quick with twice to do", LOAD, Load { iops: 40_000.0, ..LOAD }, Trend::Same),
        ("nothing to do any more", LOAD, Load { iops: 0.2, ..LOAD }, Trend::Unknown),
        (
            "within the noise",
            Load { unrest: 0.9, ..LOAD },
            Load { davg: 0.6, unrest: 0.9, ..LOAD },
            Trend::Same,
        ),
    ];
    for (name, before, after, expected) in cases {
        let comparison = before_after(*before, *after);
        let device = &comparison.hosts[0].objects[0];
        assert_eq!(device.trend, *expected, "{name}: {}", device.sentence);
        let warns =
            comparison.cautions.iter().any(|caution| caution.contains("under the same load"));
        assert_eq!(warns, *expected == Trend::LoadDiffers, "{name}: {:?}", comparison.cautions);
    }
}

#[test]
fn what_is_far_apart_in_uneven_samples_is_not_the_same() {
    let now_and_then = |sample| Load { davg: if sample % 8 == 0 { 8.0 } else { 0.3 }, ..LOAD };
    let after = host("esx01", 3_600, 24, &[(DEVICE, "sql01", &now_and_then)]);
    let comparison = compared(&[steady("esx01", 0, LOAD)], &[after]);
    let device = &comparison.hosts[0].objects[0];
    assert_eq!(device.trend, Trend::Unknown, "{}", device.sentence);
    let expected =
        "was 0.5 and is 1.24 ms, on samples too few or too uneven to tell that from chance";
    assert!(device.sentence.contains(expected), "{}", device.sentence);
}

#[test]
fn a_wait_that_only_moved_to_the_array_is_told_so() {
    let comparison = before_after(FULL, Load { davg: 4.8, kavg: 0.0, depth: 128.0, ..FULL });
    assert!(
        comparison.headline.contains("the wait went from the host to the array"),
        "{}",
        comparison.headline
    );
}

#[test]
fn what_stands_against_the_numbers_is_said() {
    let recording = |from_s| steady("esx01", from_s, LOAD);
    let few = |from_s| host("esx01", from_s, 3, &[(DEVICE, "sql01", &|_| LOAD)]);
    let nameless = |from_s| steady("localhost", from_s, LOAD);
    let cases: Vec<(Recording, Recording, &str)> = vec![
        (recording(0), recording(0), "Both sides of esx01 are the same samples."),
        (recording(0), recording(60), "esx01: the two sides overlap in time."),
        (recording(3_600), recording(0), "esx01: the second side was recorded before the first."),
        (few(0), recording(3_600), "3 samples before and 24 after are too few"),
        (nameless(0), nameless(3_600), "Every host without a name is called localhost"),
    ];
    for (before, after, expected) in cases {
        let comparison = compared(&[before], &[after]);
        let text = render_comparison(&comparison);
        assert!(comparison.cautions.iter().any(|c| c.contains(expected)), "{expected}: {text}");
    }
    assert!(compared(&[recording(0)], &[recording(3_600)]).cautions.is_empty());
}

#[test]
fn a_side_without_samples_is_told_and_nothing_else() {
    let empty = host("esx01", 0, 0, &[(DEVICE, "sql01", &|_| LOAD)]);
    let full = steady("esx01", 0, LOAD);
    let pairs = [(&empty, &full, "before"), (&full, &empty, "after"), (&empty, &empty, "before")];
    for (before, after, side) in pairs {
        let comparison = compared(std::slice::from_ref(before), std::slice::from_ref(after));
        let expected = format!("There is nothing to compare: esx01 has no samples {side}.");
        assert_eq!(comparison.headline, expected);
        assert!(comparison.hosts[0].objects.is_empty() && comparison.cautions.is_empty());
        assert!(render_comparison(&comparison).contains("no samples\n"));
    }
}

#[test]
fn hosts_go_by_the_first_part_of_their_name_and_the_others_are_listed() {
    let before = [steady("esx01.site.example", 0, LOAD), steady("esx02", 0, LOAD)];
    let after = [steady("ESX01", 3_600, LOAD), steady("esx03", 3_600, LOAD)];
    let comparison = compared(&before, &after);
    assert_eq!(comparison.hosts.len(), 1);
    assert_eq!(comparison.only_before, ["esx02"]);
    assert_eq!(comparison.only_after, ["esx03"]);
    let device = &comparison.shared[0];
    let mut hosts: Vec<_> = device.hosts.iter().map(|host| host.host.as_str()).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["ESX01", "esx02", "esx03"]);
    for [a, b] in [["10.0.0.1", "10.0.0.2"], ["esx01.a", "esx01.b"], ["", "esx01"]] {
        let comparison = compared(&[steady(a, 0, LOAD)], &[steady(b, 3_600, LOAD)]);
        assert!(comparison.hosts.is_empty(), "{a} {b}");
    }
}

#[test]
fn what_is_on_one_side_alone_is_listed() {
    let steady = |_: usize| LOAD;
    let other = "naa.600000000000000000000000000000b2";
    let before = host("esx01", 0, 12, &[(DEVICE, "sql01", &steady), (other, "old", &steady)]);
    let after = host("esx01", 3_600, 12, &[(DEVICE, "sql01", &steady), ("nfs-1", "new", &steady)]);
    let comparison = compared(&[before], &[after]);
    let names = |objects: &[diagnose::ObjectName]| {
        let names = objects.iter().map(|object| format!("{} {}", object.kind.name(), object.name));
        names.collect::<Vec<_>>()
    };
    let host = &comparison.hosts[0];
    let expected = [format!("device {other}"), "vm old".into(), "virtual disk old:scsi0:0".into()];
    assert_eq!(names(&host.only_before), expected);
    assert_eq!(names(&host.only_after), ["nfs volume nfs-1", "vm new", "virtual disk new:scsi0:0"]);
}

#[test]
fn nothing_in_common_is_said_in_one_sentence() {
    let other = host("esx02", 0, 12, &[("mpx.vmhba0:C0:T0:L0", "sql01", &|_| LOAD)]);
    let local = host("esx01", 0, 12, &[("mpx.vmhba0:C0:T0:L0", "sql01", &|_| LOAD)]);
    for (before, after) in [(vec![local], vec![other]), (vec![], vec![])] {
        let comparison = compared(&before, &after);
        assert!(comparison.headline.starts_with("There is nothing to compare"));
        assert!(comparison.shared.is_empty() && comparison.hosts.is_empty());
    }
}

/// Two hosts of which the first is loud for a third of the time, and the second pays.
fn loud_and_quiet(from_s: i64) -> [Recording; 2] {
    let is_loud = |sample: usize| sample % 12 >= 8;
    let loud =
        move |sample| Load { iops: if is_loud(sample) { 60_000.0 } else { 2_000.0 }, ..LOAD };
    let quiet =
        move |sample| Load { iops: 1_000.0, davg: if is_loud(sample) { 6.0 } else { 0.5 }, ..LOAD };
    [
        host(
            "esx01",
            0,
            48,
            &[(DEVICE, "batch", &move |sample| Load { depth: 128.0, ..loud(sample) })],
        ),
        host("esx02", from_s, 48, &[(DEVICE, "shop", &quiet)]),
    ]
}

#[test]
fn hosts_on_one_device_are_told_as_text_and_as_markdown() {
    let comparison = compared(&loud_and_quiet(0), &[]);
    insta::assert_snapshot!("hosts_text", render_comparison(&comparison));
    insta::assert_snapshot!("hosts_markdown", render_comparison_markdown(&comparison));
}

fn notes(comparison: &Comparison) -> Vec<SharedKind> {
    let of_devices = comparison.shared.iter().flat_map(|device| &device.notes);
    of_devices.chain(&comparison.notes).map(|note| note.kind).collect()
}

#[test]
fn who_takes_the_array_is_told_where_the_clocks_overlap() {
    let [loud, quiet] = loud_and_quiet(0);
    // One side each is as good as both on one.
    for comparison in [compared(&[loud.clone(), quiet.clone()], &[]), compared(&[loud], &[quiet])] {
        assert_eq!(notes(&comparison), [SharedKind::TakesTheArray, SharedKind::UnequalDepths]);
        let sentence = &comparison.shared[0].notes[0].sentence;
        assert!(sentence.starts_with("esx01 takes the array from esx02"), "{sentence}");
    }
    let apart = compared(&loud_and_quiet(86_400), &[]);
    assert_eq!(notes(&apart), [SharedKind::UnequalDepths, SharedKind::ClocksApart]);
    assert_eq!(apart.shared[0].common, None);
}

#[test]
fn equal_hosts_at_a_steady_load_are_fine() {
    let hosts: Vec<_> = (0..3).map(|i| steady(&format!("esx0{i}"), i, LOAD)).collect();
    let comparison = compared(&hosts, &[]);
    assert_eq!(notes(&comparison), []);
    let total = &comparison.shared[0].total;
    assert!(total.iops.is_some_and(|iops| (iops - 60_000.0).abs() < 1_000.0), "{total:?}");
    assert_eq!(total.dqlen, Some(192.0));
    let shares = comparison.shared[0].hosts.iter().map(|host| host.share_percent);
    assert!((shares.sum::<Option<f64>>().unwrap() - 100.0).abs() < 1e-9);
}

#[test]
fn depths_that_add_up_to_an_array_port_are_told() {
    let deep = Load { depth: 512.0, ..LOAD };
    let hosts: Vec<_> = (0..4).map(|i| steady(&format!("esx0{i}"), 0, deep)).collect();
    let comparison = compared(&hosts, &[]);
    assert_eq!(notes(&comparison), [SharedKind::DepthsAddUp]);
    assert!(comparison.notes[0].sentence.contains("2,048 commands"));
}

#[test]
fn an_nfs_volume_is_shared_by_its_name_and_has_no_depth() {
    let hosts = ["esx01", "esx02"].map(|name| host(name, 0, 12, &[("nfs-1", "vm", &|_| LOAD)]));
    let comparison = compared(&hosts, &[]);
    assert_eq!(comparison.shared[0].name, "nfs-1");
    assert_eq!(comparison.shared[0].total.dqlen, None);
    assert!(comparison.shared[0].hosts.iter().all(|host| host.davg_ms > Some(0.4)));
}

#[test]
fn what_one_host_does_not_measure_is_no_zero_and_the_total_goes_by_the_others() {
    let mut hosts = ["esx01", "esx02"].map(|name| steady(name, 0, LOAD));
    let device = hosts[0].find(Kind::Device, DEVICE).unwrap();
    let measured = compared(&hosts, &[]).shared.remove(0);
    for counter in
        [Counter::KernelLatency, Counter::GuestLatency, Counter::MbRead, Counter::MbWritten]
    {
        let none = vec![f64::NAN; hosts[0].len()];
        hosts[0].set_column(device, counter, none);
    }
    let comparison = compared(&hosts, &[]);
    let device = &comparison.shared[0];
    let of = |name: &str| device.hosts.iter().find(|host| host.host == name).unwrap();
    assert_eq!((of("esx01").kavg_ms, of("esx01").mib_per_s), (None, None));
    assert_eq!(device.total.kavg_ms, of("esx02").kavg_ms);
    assert_eq!((device.total.mib_per_s, device.total.iops), (None, measured.total.iops));
    assert!(
        render_comparison(&comparison)
            .lines()
            .any(|line| line.trim().starts_with("esx01") && line.ends_with(" -"))
    );
}
