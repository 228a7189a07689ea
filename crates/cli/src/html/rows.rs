//! What a report needs of a recording beside its columns: who belongs to a device, and which
//! samples are in a window.

use counters::sorted::sort_by;
use counters::{Entity, EntityId, Kind};
use diagnose::{Object, ObjectKind, Verdict};
use levels::{Flow, Measured};

/// A number of a row in a sample.
pub(super) type Figure<'a> = fn(&Flow<'a>, usize) -> Option<f64>;

/// Devices and NFS volumes that completed a command: those that were judged, then those with a
/// load that is not worth it (a CD-ROM); of each the one with most commands outstanding first.
pub(super) fn devices(recording: &Measured, verdict: &Verdict) -> Vec<EntityId> {
    let is_judged = |name: &str| verdict.profiles.iter().any(|profile| profile.device == name);
    let rank = |(id, entity): (EntityId, &Entity)| {
        let load = Flow::of(recording, id).load(recording.len())?;
        Some((id, is_judged(&entity.name), load))
    };
    let of = |kind| recording.of_kind(kind);
    let mut devices: Vec<_> =
        of(Kind::Device).chain(of(Kind::NfsVolume)).filter_map(rank).collect();
    devices.retain(|(_, _, load)| *load > 0.0);
    sort_by(&mut devices, |a, b| b.1.cmp(&a.1).then(b.2.total_cmp(&a.2)));
    devices.into_iter().map(|(id, ..)| id).collect()
}

/// The samples between two instants; a sample bears the instant at which its interval ends.
pub(super) fn samples(recording: &Measured, from_ms: i64, to_ms: i64) -> Vec<usize> {
    let inside = |(_, time): &(usize, &i64)| from_ms < **time && **time <= to_ms;
    recording.times_ms.iter().enumerate().filter(inside).map(|(sample, _)| sample).collect()
}

/// The device that an object is, is on, or leads to: of several the one with most load, which
/// comes first in `devices`. An object without a command is found by what it is.
pub(super) fn device_of(
    recording: &Measured,
    devices: &[EntityId],
    object: &Object,
) -> Option<EntityId> {
    match object.kind {
        ObjectKind::Row(kind @ (Kind::Device | Kind::NfsVolume)) => {
            recording.find(kind, &object.name)
        }
        ObjectKind::Row(Kind::Adapter) => {
            let adapter = recording.find(Kind::Adapter, &object.name);
            let paths = recording.of_kind(Kind::Path).filter(|(_, path)| path.adapter == adapter);
            let behind: Vec<_> = paths.filter_map(|(_, path)| path.device).collect();
            devices.iter().copied().find(|device| behind.contains(device))
        }
        _ => {
            let rows = recording.entities().iter().filter(|entity| is_about(object, entity));
            let on: Vec<_> = rows.filter_map(|entity| entity.device).collect();
            devices.iter().copied().find(|device| on.contains(device))
        }
    }
}

/// What a button and the charts call the object of a finding.
pub(super) fn key(at: &Object) -> String {
    format!("{} {}", at.kind.name(), at.name)
}

/// Whether a row is of an object: a virtual adapter has those of its disks, a VM those of its own.
pub(super) fn is_about(object: &Object, row: &Entity) -> bool {
    let is_of = |name: &str| {
        let rest = row.name.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
        row.kind == Kind::VirtualDisk && rest.is_some()
    };
    match object.kind {
        ObjectKind::VirtualAdapter | ObjectKind::Row(Kind::Vm) => is_of(&object.name),
        ObjectKind::Row(kind) => object.is_row(row.kind, &row.name) && kind == row.kind,
        ObjectKind::Array => false,
    }
}

/// The mean of a number over those samples that have it; `None` over none.
pub(super) fn mean(samples: &[usize], value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    levels::mean(samples.iter().map(|&sample| value(sample)))
}
