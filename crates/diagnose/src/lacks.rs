//! What a recording lacks, so that an all-clear would be a guess: rows that are missing, columns that
//! were cut off, VMs that were cut out, counters that were not recorded.
//!
//! esxtop's rows add up: the commands of a device are those of its worlds, those of the adapters
//! are those of the devices behind them, and no virtual disk has commands that no device has
//! [CAP-A]. A file in which they do not, by far, is a part of one.

use counters::{Counter, Kind, holes};
use levels::Measured;

use crate::{Column, Device, Host, Lack, Lacking, ROUNDED, Threshold, World, median, number, span};

/// The line to type for a capture that lacks nothing: every field, for an hour.
pub const RECORD_LINE: &str = "esxtop -b -a -d 5 -n 720 > FILE.csv";

/// The share of a whole from which its parts count as all there.
const ALL: f64 = 0.9;

/// The share of the rows with load that must tell a counter.
const MOST: f64 = 0.75;

/// What nothing can be said of a device without.
pub(crate) const NEEDED: [(Kind, &[Counter]); 2] = [
    (
        Kind::Device,
        &[Counter::Commands, Counter::DriverLatency, Counter::KernelLatency, Counter::DeviceQDepth],
    ),
    (Kind::NfsVolume, &[Counter::Commands, Counter::GuestLatency]),
];

/// What the recording of a host lacks.
pub(crate) fn of(recording: &Measured, host: &Host<'_>) -> Vec<Lack> {
    let counters = NEEDED.iter().flat_map(|(kind, needed)| {
        needed.iter().filter_map(|counter| without(recording, host, *kind, *counter))
    });
    let rows = hole(host).into_iter().chain(untold(host));
    let found = rows.chain(devices(host)).chain(counters).chain(worlds(host));
    found.chain(latencies(recording, host)).collect()
}

/// The first span in which rows are missing, and how many more there are.
fn hole(host: &Host<'_>) -> Option<Lack> {
    let mut all = holes(host.times_ms, (1000.0 * host.usual_s) as i64);
    let (from_ms, to_ms) = all.next()?;
    let more = match all.count() {
        0 => String::new(),
        more => format!(", nor in {more} more such spans"),
    };
    let sentence = format!(
        "There is no row for {} s, from {}{more}, in a recording of a row every {} s: what happened \
         then is not known.",
        number(to_ms.saturating_sub(from_ms) as f64 / 1000.0),
        span(from_ms, to_ms),
        number(host.usual_s)
    );
    Some(Lack { what: Lacking::Rows, sentence })
}

/// Rows after load in which a device, or several, may have given no answer: what would tell is missing.
fn untold(host: &Host<'_>) -> Option<Lack> {
    const LASTING: usize = 2;
    let is_untold = |device: &Device<'_>, sample: usize| match device.flow.rate(sample) {
        None => device.worlds.iter().all(|world| world.flow.rate(sample).unwrap_or(0.0) <= 0.0),
        Some(0.0) => {
            let columns = [device.queue.actv, device.queue.qued];
            columns.iter().all(|column| column.is_there())
                && columns.iter().any(|column| column.at(sample).is_none())
        }
        Some(_) => false,
    };
    let first = |device: &Device<'_>| {
        let samples: Vec<usize> = (*device.busy.first()?..host.times_ms.len()).collect();
        let mut runs = samples.chunk_by(|a, b| is_untold(device, *a) == is_untold(device, *b));
        let run = runs.find(|run| run.len() >= LASTING && is_untold(device, run[0]))?;
        Some((
            device.flow.name.to_owned(),
            host.begin_ms(run[0]),
            host.times_ms[run[run.len() - 1]],
            run.len(),
        ))
    };
    let mut all = host.busy_devices().filter_map(first);
    let (name, from_ms, to_ms, rows) = all.next()?;
    let more = match all.count() {
        0 => String::new(),
        more => format!(", and the same holds for {more} more"),
    };
    let sentence = format!(
        "In {rows} rows, {}, commands, ACTV or QUED of {name} were not measured{more}: whether it \
         answered then is not known.",
        span(from_ms, to_ms)
    );
    Some(Lack { what: Lacking::Rows, sentence })
}

/// Commands of a device, or of several, that wait all the while and none of which completes: a silent device, or a few rows
/// of one whose commands take long.
pub(crate) fn unanswered(host: &Host<'_>) -> Option<Lack> {
    const OUTSTANDING: f64 = 2.0;
    let every = host.every_sample();
    let waits = |device: &&Device<'_>| {
        // In the first row nothing is outstanding where esxtop has just begun.
        let is_out = |&s: &usize| device.queue.sampled(s) >= Some(OUTSTANDING);
        every.iter().all(|&s| device.flow.rate(s).is_none_or(|rate| rate == 0.0))
            && every.iter().any(|&s| device.flow.rate(s).is_some())
            && every.len() > 1
            && every[1..].iter().all(is_out)
    };
    let mut all = host.devices.iter().filter(waits);
    let name = all.next()?.flow.name;
    let more = match all.count() {
        0 => String::new(),
        more => format!(", and of {more} more"),
    };
    let sentence = format!(
        "Commands of {name}{more} are outstanding all the while and none completes: a longer recording tells \
         whether it does not answer."
    );
    Some(Lack { what: Lacking::Rows, sentence })
}

/// What a fault may go unseen without: what is aborted or refused need not be slow, nor what an adapter holds be
/// its device's, nor what waits above the devices be theirs. NFS has none of them.
pub(crate) fn counters_of_faults(host: &Host<'_>) -> Option<Lack> {
    let scsi: Vec<&Device<'_>> = host.devices.iter().filter(|device| !device.is_nfs).collect();
    let busy = || scsi.iter().filter(|device| !device.busy.is_empty());
    // Cells that are empty or impossible are no column: what is measured in one is missing there as well.
    let lacks = |column: &dyn for<'a> Fn(&Device<'a>) -> Column<'a>| {
        !scsi.iter().any(|device| column(device).is_there())
            || busy().any(|device| is_untold(&device.busy, |s| column(device).at(s)))
    };
    let of_data = |device: &&Device<'_>| is_untold(&device.busy, |s| device.flow.mib_per_s(s));
    let has_data =
        |device: &&Device<'_>| device.busy.iter().any(|&s| device.flow.mib_per_s(s).is_some());
    let has = |column: &dyn for<'a> Fn(&Device<'a>) -> Column<'a>| {
        scsi.iter().any(|device| column(device).every().next().is_some())
    };
    let of_paths = |device: &&Device<'_>| {
        device.paths.iter().any(|path| is_untold(&device.busy, |s| path.flow.rate(s)))
    };
    let of_commands = |device: &&Device<'_>| match device.busy[..] {
        [first, .., last] => is_untold(&Vec::from_iter(first..=last), |s| device.flow.rate(s)),
        _ => false,
    };
    let every = host.every_sample();
    let of_adapters =
        || host.adapters.iter().any(|adapter| is_untold(&every, |s| adapter.flow.rate(s)));
    let are_blank = are_blank(host);
    let has_worlds = host.devices.iter().any(|device| device.worlds.iter().any(|w| !w.is_system));
    let has_names = host.vms().any(|(vm, _)| host.has_world_of(vm));
    let diskless = without_disks(host).filter(|_| has_names);
    let of_one = diskless.map(|vm| format!("virtual disks of {vm}"));
    let part = |what: &str, has_some: bool| match has_some {
        true => format!("{what} in enough rows"),
        false => what.to_owned(),
    };
    let of = |what: &'static str, column: &dyn for<'a> Fn(&Device<'a>) -> Column<'a>| {
        (part(what, has(column)), lacks(column))
    };
    let all = [
        ("virtual disks".into(), has_worlds && host.vdisks.is_empty()),
        (of_one.clone().unwrap_or_default(), of_one.is_some()),
        ("names of VMs".into(), has_worlds && !host.vdisks.is_empty() && !has_names),
        of("ACTV", &|device| device.queue.actv),
        of("QUED", &|device| device.queue.qued),
        (part("data (MBREAD/s, MBWRTN/s)", busy().any(has_data)), busy().any(of_data)),
        ("commands in some rows".into(), busy().any(of_commands)),
        ("paths".into(), busy().any(|device| device.paths.is_empty())),
        ("commands of paths".into(), busy().any(of_paths)),
        ("commands of adapters".into(), of_adapters()),
        ("QAVG of adapters".into(), are_blank[0]),
        ("reads, writes or latencies of virtual disks".into(), are_blank[1]),
        ("AQLEN".into(), !host.adapters.iter().any(|adapter| adapter.aqlen.is_there())),
        of("aborts and resets", &|device| device.faults.aborts),
        of("failed commands", &|device| device.faults.failed),
        of("reservation conflicts", &|device| device.faults.conflicts),
    ];
    let lacking: Vec<&str> =
        all.iter().filter(|(_, lacks)| *lacks).map(|(what, _)| what.as_str()).collect();
    let sentence = || {
        format!(
            "No {} in this recording, so nothing is said about them: `{RECORD_LINE}` records \
             everything for an hour.",
            lacking.join(", no ")
        )
    };
    (!scsi.is_empty() && !lacking.is_empty())
        .then(|| Lack { what: Lacking::Counters, sentence: sentence() })
}

/// Whether the wait at an adapter is blank under load, and how long a virtual disk takes then.
fn are_blank(host: &Host<'_>) -> [bool; 2] {
    let least = host.limits.get(Threshold::BusyIops);
    type Values<'a> = &'a dyn Fn(usize) -> Option<f64>;
    let is_blank = |rate: Values<'_>, value: Values<'_>| {
        let mut at_load = host.every_sample();
        at_load.retain(|&sample| rate(sample) >= Some(least));
        is_untold(&at_load, value)
    };
    let mut flows = host.adapters.iter().map(|adapter| &adapter.flow);
    let mut disks = host.vdisks.iter();
    [
        flows.any(|flow| is_blank(&|s| flow.rate(s), &|s| flow.own_wait_ms(s))),
        disks.any(|disk| is_blank(&|s| disk.rate(s), &|s| disk.outstanding(s))),
    ]
}

/// Whether most of some samples do not tell a value.
fn is_untold(samples: &[usize], value: impl Fn(usize) -> Option<f64>) -> bool {
    let told = samples.iter().filter(|sample| value(**sample).is_some()).count();
    (told as f64) < MOST * samples.len() as f64
}

/// The first VM with load on a device that has no virtual disk.
fn without_disks<'a>(host: &Host<'a>) -> Option<&'a str> {
    let least = host.limits.get(Threshold::BusyIops);
    host.busy_devices().find_map(|device| {
        let is_bare = |world: &&World<'_>| {
            !world.is_system
                && !host.has_disks_of(world.owner)
                && world.flow.mean_rate(&device.busy) >= Some(least)
        };
        device.worlds.iter().find(is_bare).map(|world| world.owner)
    })
}

/// The median share of a whole that parts have, so that rows of garbage do not count.
fn share(
    samples: &[usize],
    parts: impl Fn(usize) -> Option<f64>,
    whole: impl Fn(usize) -> Option<f64>,
) -> Option<f64> {
    median(samples.iter().map(|&sample| Some(parts(sample)? / whole(sample)?)))
}

/// Devices that must be there, because adapters or virtual disks have their commands.
fn devices(host: &Host<'_>) -> Option<Lack> {
    let sentence = if host.devices.is_empty() {
        "There are no devices in this file.".to_owned()
    } else {
        beyond_devices(host)?
    };
    Some(Lack { what: Lacking::Devices, sentence })
}

fn beyond_devices(host: &Host<'_>) -> Option<String> {
    let rate_of = |is_nfs: bool| {
        move |sample| -> Option<f64> {
            let devices = host.devices.iter().filter(|device| is_nfs || !device.is_nfs);
            devices.map(|device| device.flow.rate(sample)).sum()
        }
    };
    type Sum<'a> = &'a dyn Fn(usize) -> Option<f64>;
    let adapters = |sample| host.adapters.iter().map(|adapter| adapter.flow.rate(sample)).sum();
    let disks = |sample| host.vdisks.iter().map(|disk| disk.rate(sample)).sum();
    let told = |what: &str, whole: Sum<'_>, parts: Sum<'_>| {
        let least = host.limits.get(Threshold::BusyIops);
        let all = 0..host.times_ms.len();
        let samples: Vec<usize> = all.filter(|sample| whole(*sample) >= Some(least)).collect();
        let share = share(&samples, parts, whole).filter(|share| *share < ALL)?;
        Some(format!(
            "{what} do more than the devices in this file, which have {} % of it: the others are \
             cut out.",
            number(100.0 * share)
        ))
    };
    told("The adapters", &adapters, &rate_of(false))
        .or_else(|| told("The virtual disks", &disks, &rate_of(true)))
}

/// Objects of a kind that have no value of a counter, or none in more than a quarter of the rows with
/// load. A device with load has slots, so a DQLEN of 0 is none.
fn without(recording: &Measured, host: &Host<'_>, kind: Kind, counter: Counter) -> Option<Lack> {
    let has_slots =
        |id| counter == Counter::DeviceQDepth && host.busy_devices().any(|device| device.id == id);
    let least = host.limits.get(Threshold::BusyIops);
    let is_told = |id, value: f64| value > 0.0 || !has_slots(id);
    let is_there = |id| Column::of(recording, id, counter).every().any(|value| is_told(id, value));
    let lacks = |id| {
        let column = |counter| Column::of(recording, id, counter);
        let is_busy = |sample: &usize| column(Counter::Commands).at(*sample) >= Some(least);
        let at_load: Vec<usize> = (0..recording.len()).filter(is_busy).collect();
        let told = |sample| column(counter).at(sample).filter(|value| is_told(id, *value));
        !is_there(id) || is_untold(&at_load, told)
    };
    let all = recording.of_kind(kind).count();
    let mut lacking = recording.of_kind(kind).filter(|(id, _)| lacks(*id));
    let (id, first) = lacking.next()?;
    let more = lacking.count();
    let whose = match more + 1 {
        number if number == all => format!("any {}", kind.name()),
        1 => first.name.clone(),
        _ => format!("{} and {more} more", first.name),
    };
    let name = counter.info().batch_name;
    let rows = if is_there(id) { "many rows of " } else { "" };
    let sentence = format!("There is no \"{name}\" of {whose} in {rows}this file.");
    Some(Lack { what: Lacking::Counters, sentence })
}

/// Devices with load of which the worlds are missing, or some of them: the first, and how many.
fn worlds(host: &Host<'_>) -> Vec<Lack> {
    let scsi = || host.busy_devices().filter(|device| !device.is_nfs);
    let none: Vec<_> = scsi().filter(|d| d.hidden_share(&d.busy).is_none()).collect();
    let some: Vec<_> = scsi().filter(|device| device.hides_worlds(&device.busy)).collect();
    let more = |devices: &[&Device<'_>]| match devices.len() {
        0 | 1 => String::new(),
        several => format!(", and the same holds for {} more", several - 1),
    };
    let none_at_all = none.first().map(|device| {
        format!(
            "There are no {} {}{}: which VMs share a device is not known.",
            if device.worlds.is_empty() { "worlds of" } else { "credible rates of the worlds of" },
            device.flow.name,
            more(&none)
        )
    });
    let not_all = some.first().map(|device| {
        format!(
            "The worlds in this file do as little as {} % of the commands of {}{}: other VMs are \
             cut out.",
            number(100.0 * (1.0 - device.hidden_share(&device.busy).unwrap_or(0.0))),
            device.flow.name,
            more(&some)
        )
    });
    let lack = |sentence| Lack { what: Lacking::Worlds, sentence };
    none_at_all.into_iter().chain(not_all).map(lack).collect()
}

/// GAVG that is not DAVG + KAVG, or worlds that do more than their device.
fn latencies(recording: &Measured, host: &Host<'_>) -> Option<Lack> {
    let is_off = |share: f64| !(ALL..=1.0 / ALL).contains(&share);
    let broken = |device: &&Device<'_>| {
        let gavg = Column::of(recording, device.id, Counter::GuestLatency);
        let known: Vec<usize> = device
            .busy
            .iter()
            .copied()
            .filter(|&s| gavg.at(s).is_some_and(|gavg| gavg * (1.0 - ALL) >= ROUNDED))
            .collect();
        let parts = |sample| Some(device.flow.davg(sample)? + device.flow.kavg(sample)?);
        share(&known, parts, |sample| gavg.at(sample)).is_some_and(is_off)
    };
    let more = |device: &&Device<'_>| {
        device.hidden_share(&device.busy).is_some_and(|share| share < 1.0 - 1.0 / ALL)
    };
    let scsi = || host.busy_devices().filter(|device| !device.is_nfs);
    let sentence = if let Some(device) = scsi().find(broken) {
        format!("GAVG is not DAVG + KAVG on {}: columns or rows are mixed up.", device.flow.name)
    } else {
        let device = scsi().find(more)?;
        format!("The worlds on {} do more than the device: rows are missing.", device.flow.name)
    };
    Some(Lack { what: Lacking::Sums, sentence })
}

#[cfg(test)]
mod tests {
    use counters::{Counter, EntityId, Kind, Recording};
    use levels::Measured;

    use crate::{Facts, Lacking, Outcome, Thresholds, diagnose, fixture::Bench};

    /// A VM at 500 commands a second that pauses for eight rows.
    fn paused() -> (Recording, EntityId) {
        let mut bench = Bench::new(40);
        let vm = bench.device("naa.1", 64).vm("a").davg(0.5);
        vm.iops_when(|s| if (20..28).contains(&s) { 0.0 } else { 500.0 }).sampled(|_| 0);
        let recording = bench.recording();
        let device = recording.find(Kind::Device, "naa.1").expect("the device is there");
        (recording, device)
    }

    /// How a recording is judged, and what it is said first to lack.
    fn judged(recording: Recording) -> (Outcome, Option<Lacking>) {
        let verdict = diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default());
        (verdict.outcome, verdict.lacks.first().map(|lack| lack.what))
    }

    #[test]
    fn forty_seconds_without_a_row_are_no_all_clear() {
        let (mut recording, _) = paused();
        assert_eq!(judged(recording.clone()), (Outcome::Healthy, None));
        recording.times_ms.iter_mut().skip(20).for_each(|time| *time += 40_000);
        assert_eq!(judged(recording), (Outcome::CannotTell, Some(Lacking::Rows)));
    }

    #[test]
    fn commands_that_wait_in_a_few_rows_without_one_that_completes_are_no_all_clear() {
        let found = |samples, out: u32| {
            let mut bench = Bench::new(samples);
            bench.device("naa.1", 64).vm("a").sampled(move |_| out);
            judged(bench.recording())
        };
        assert_eq!(found(2, 129), (Outcome::CannotTell, Some(Lacking::Rows)));
        assert_eq!(found(8, 129), (Outcome::Problem, None));
        assert_eq!(found(2, 1), (Outcome::Idle, None));
    }

    #[test]
    fn rows_without_what_tells_an_outage_from_a_pause_are_no_all_clear() {
        let counters = [Counter::Commands, Counter::ActiveCommands, Counter::QueuedCommands];
        for counter in counters {
            let (mut recording, device) = paused();
            let mut values = recording.series(device, counter).expect("a column").to_vec();
            // esxtop's first row is before those of the bench.
            values[21..29].fill(f64::NAN);
            recording.set_column(device, counter, values);
            let expected = (Outcome::CannotTell, Some(Lacking::Rows));
            assert_eq!(judged(recording), expected, "{counter:?}");
        }
    }

    #[test]
    fn latencies_that_are_missing_at_load_are_no_all_clear() {
        let (mut recording, device) = paused();
        let whole = recording.clone();
        for counter in [Counter::DriverLatency, Counter::KernelLatency, Counter::GuestLatency] {
            recording.set_constant(device, counter, 0.0, whole.len());
        }
        recording.set_constant(device, Counter::ActiveCommands, 8.0, whole.len());
        let (outcome, lack) = judged(recording);
        assert_eq!(lack, Some(Lacking::Counters));
        assert_ne!(outcome, Outcome::Healthy);
    }

    #[test]
    fn columns_of_empty_cells_are_as_missing_as_those_that_are_not_there() {
        let told = |kind: Kind, counter: Counter| {
            let mut bench = Bench::new(12);
            bench.device("naa.1", 64).vm("a").iops_when(|s| 900.0 + (s % 3) as f64).davg(0.5);
            let mut recording = bench.recording();
            let rows: Vec<_> = recording.of_kind(kind).map(|(id, _)| id).collect();
            rows.into_iter().for_each(|id| recording.set_constant(id, counter, f64::NAN, 12));
            diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default()).outcome
        };
        assert_eq!(told(Kind::World, Counter::Load), Outcome::Healthy);
        for (kind, counter) in [
            (Kind::Device, Counter::MbRead),
            (Kind::Device, Counter::Aborts),
            (Kind::Device, Counter::FailedCommands),
            (Kind::Device, Counter::Conflicts),
            (Kind::Path, Counter::Commands),
            (Kind::Adapter, Counter::Commands),
            (Kind::VirtualDisk, Counter::Reads),
            (Kind::VirtualDisk, Counter::VdiskReadLatency),
        ] {
            assert_eq!(told(kind, counter), Outcome::CannotTell, "{counter:?}");
        }
    }
}
