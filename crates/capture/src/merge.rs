//! Several files of one host become one recording, in the order of time.

use counters::{Counter, Entity, EntityId, Kind, Recording};
use std::collections::BTreeMap;

/// Hosts that never got a name; recordings of them are told apart by what they hold [CAP].
const NAMELESS: [&str; 2] = ["localhost", "local"];

/// Joins the recordings of the same host and puts the samples of each in the order of time.
/// Where two hold the same instant, the first one's sample is kept.
#[must_use]
pub fn merge(recordings: Vec<Recording>) -> Vec<Recording> {
    merge_counted(recordings).into_iter().map(|(recording, _)| recording).collect()
}

/// Like [`merge`], with the number of samples of each host that were dropped because there was
/// one of the same instant.
pub(crate) fn merge_counted(recordings: Vec<Recording>) -> Vec<(Recording, usize)> {
    let mut merged: Vec<Recording> = Vec::new();
    for recording in recordings {
        match merged.iter_mut().find(|known| is_same_host(known, &recording)) {
            Some(known) => append(known, recording),
            None => merged.push(recording),
        }
    }
    let sorted = |mut recording: Recording| {
        let samples = recording.len();
        sort(&mut recording);
        let dropped = samples - recording.len();
        (recording, dropped)
    };
    merged.into_iter().map(sorted).collect()
}

/// The same name; and where that says nothing, at least half of the worlds on devices.
fn is_same_host(a: &Recording, b: &Recording) -> bool {
    if a.host != b.host {
        return false;
    }
    let first = a.host.split('.').next().unwrap_or_default();
    if !NAMELESS.contains(&first) {
        return true;
    }
    let names = |recording: &Recording| -> Vec<String> {
        recording.of_kind(Kind::World).map(|(_, world)| world.name.clone()).collect()
    };
    let (a, b) = (names(a), names(b));
    let shared = a.iter().filter(|name| b.contains(name)).count();
    2 * shared >= a.len().min(b.len())
}

/// Adds the samples of `later` after those of `recording`.
fn append(recording: &mut Recording, later: Recording) {
    let (before, added) = (recording.len(), later.len());
    let mut index: BTreeMap<(Kind, String), EntityId> = BTreeMap::new();
    for (id, entity) in (0..).map(EntityId).zip(recording.entities()) {
        index.insert((entity.kind, entity.name.clone()), id);
    }
    let ids: Vec<EntityId> = later
        .entities()
        .iter()
        .map(|entity| {
            *index.entry((entity.kind, entity.name.clone())).or_insert_with(|| {
                recording.add_entity(Entity::new(entity.kind, entity.name.clone()))
            })
        })
        .collect();
    for (entity, &id) in later.entities().iter().zip(&ids) {
        link(recording.entity_mut(id), entity, &ids);
    }
    let mut columns: BTreeMap<(EntityId, Counter), Vec<f64>> = BTreeMap::new();
    for (entity, counter, values) in recording.columns() {
        let mut values = values.to_vec();
        values.resize(before + added, f64::NAN);
        columns.insert((entity, counter), values);
    }
    for (entity, counter, values) in later.columns() {
        let column = columns
            .entry((ids[entity.0 as usize], counter))
            .or_insert_with(|| vec![f64::NAN; before + added]);
        column[before..].copy_from_slice(values);
    }
    for ((entity, counter), values) in columns {
        recording.set_column(entity, counter, values);
    }
    recording.times_ms.extend(later.times_ms);
}

/// Gives an object the links that it has in another recording, of which `ids` are the objects.
fn link(entity: &mut Entity, other: &Entity, ids: &[EntityId]) {
    let id = |id: Option<EntityId>| id.and_then(|id| ids.get(id.0 as usize).copied());
    entity.device = entity.device.or(id(other.device));
    entity.adapter = entity.adapter.or(id(other.adapter));
    entity.vm = entity.vm.or(id(other.vm));
    entity.controller = entity.controller.or(other.controller);
    if entity.process.is_none() {
        entity.process.clone_from(&other.process);
    }
}

/// Puts samples in the order of time, and drops those of an instant that is there already.
fn sort(recording: &mut Recording) {
    if recording.times_ms.is_sorted_by(|a, b| a < b) {
        return;
    }
    let mut order: Vec<usize> = (0..recording.len()).collect();
    order.sort_by_key(|&sample| recording.times_ms[sample]);
    order.dedup_by_key(|sample| recording.times_ms[*sample]);
    *recording = crate::slice::samples(recording, &order);
}
