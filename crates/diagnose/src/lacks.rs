//! What a recording lacks, so that an all-clear would be a guess: columns that were cut off, VMs
//! that were cut out, counters that were not recorded.
//!
//! esxtop's rows add up: the commands of a device are those of its worlds, those of the adapters
//! are those of the devices behind them, and no virtual disk has commands that no device has
//! [CAP-A]. A file in which they do not, by far, is a part of one.

use counters::{Counter, Kind};
use levels::Measured;

use crate::{Column, Device, Host, Lack, Lacking, ROUNDED, Threshold, number, quantile};

/// The line to type for a capture that lacks nothing: every field, for an hour.
pub const RECORD_LINE: &str = "esxtop -b -a -d 5 -n 720 > FILE.csv";

/// The share of a whole from which its parts count as all there.
const ALL: f64 = 0.9;

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
    let found = devices(host).into_iter().chain(counters).chain(worlds(host));
    found.chain(latencies(recording, host)).collect()
}

/// The counters without which a fault may go unseen: what is aborted or refused need not be slow, nor
/// what an adapter holds be its device's. NFS has none of them.
pub(crate) fn counters_of_faults(host: &Host<'_>) -> Option<Lack> {
    let scsi: Vec<&Device<'_>> = host.devices.iter().filter(|device| !device.is_nfs).collect();
    let lacks = |has: &dyn Fn(&Device<'_>) -> bool| !scsi.iter().any(|device| has(device));
    let all = [
        ("AQLEN", !host.adapters.iter().any(|adapter| adapter.aqlen.is_there())),
        ("aborts and resets", lacks(&|device| device.faults.aborts.is_there())),
        ("reservation conflicts", lacks(&|device| device.faults.conflicts.is_there())),
    ];
    let lacking: Vec<&str> =
        all.iter().filter(|(_, lacks)| *lacks).map(|(what, _)| *what).collect();
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

/// The median share of a whole that parts have, so that rows of garbage do not count.
fn share(
    samples: &[usize],
    parts: impl Fn(usize) -> Option<f64>,
    whole: impl Fn(usize) -> Option<f64>,
) -> Option<f64> {
    quantile(samples.iter().map(|&sample| Some(parts(sample)? / whole(sample)?)), 0.5)
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

/// Objects of a kind that have no value of a counter. A device with load has slots, so a DQLEN of 0
/// is none.
fn without(recording: &Measured, host: &Host<'_>, kind: Kind, counter: Counter) -> Option<Lack> {
    let has_slots =
        |id| counter == Counter::DeviceQDepth && host.busy_devices().any(|device| device.id == id);
    let lacks = |id| {
        let mut values = Column::of(recording, id, counter).every();
        !values.any(|value| value > 0.0 || !has_slots(id))
    };
    let all = recording.of_kind(kind).count();
    let mut lacking = recording.of_kind(kind).filter(|(id, _)| lacks(*id)).map(|(_, of)| &of.name);
    let first = lacking.next()?;
    let more = lacking.count();
    let whose = match more + 1 {
        number if number == all => format!("any {}", kind.name()),
        1 => first.clone(),
        _ => format!("{first} and {more} more"),
    };
    let name = counter.info().batch_name;
    let sentence = format!("There is no \"{name}\" of {whose} in this file.");
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
