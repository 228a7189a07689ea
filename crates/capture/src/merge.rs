//! Several files of one host become one recording, in the order of time.

use counters::sorted::sort_by_key;
use std::collections::{BTreeMap, BTreeSet};

use counters::{Counter, Entity, EntityId, Kind, Recording};

use crate::slice;

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
    let mut hosts: Vec<Vec<Recording>> = Vec::new();
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for recording in recordings {
        let known = by_name.entry(recording.host.clone()).or_default();
        match known.iter().find(|&&host| hosts[host].iter().any(|r| is_same_host(r, &recording))) {
            Some(&host) => hosts[host].push(recording),
            None => {
                known.push(hosts.len());
                hosts.push(vec![recording]);
            }
        }
    }
    hosts.into_iter().map(join).map(sorted).collect()
}

/// Whether two recordings of hosts with the same name are of the same host. Where the name says
/// nothing, at least half of the worlds on devices must be the same.
pub(crate) fn is_same_host(a: &Recording, b: &Recording) -> bool {
    let first = a.host.split('.').next().unwrap_or_default();
    if !NAMELESS.contains(&first) {
        return true;
    }
    fn worlds(recording: &Recording) -> BTreeSet<&str> {
        recording.of_kind(Kind::World).map(|(_, world)| world.name.as_str()).collect()
    }
    let (a, b) = (worlds(a), worlds(b));
    2 * a.intersection(&b).count() >= a.len().min(b.len())
}

/// The pieces of a column, and the rows where they begin.
type Pieces<'a> = Vec<(usize, &'a [f64])>;

/// One recording with the samples of all, in the order given.
fn join(mut parts: Vec<Recording>) -> Recording {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let samples = parts.iter().map(Recording::len).sum();
    let mut joined = Recording::new(parts[0].host.clone());
    let mut index: BTreeMap<(Kind, String), EntityId> = BTreeMap::new();
    let mut columns: BTreeMap<(EntityId, Counter), Pieces<'_>> = BTreeMap::new();
    for part in &parts {
        let new = |entity: &Entity| Entity {
            called: entity.called.clone(),
            ..Entity::new(entity.kind, entity.name.clone())
        };
        let ids: Vec<EntityId> = part
            .entities()
            .iter()
            .map(|entity| {
                let known = index.entry((entity.kind, entity.name.clone()));
                *known.or_insert_with(|| joined.add_entity(new(entity)))
            })
            .collect();
        for (entity, &id) in part.entities().iter().zip(&ids) {
            link(joined.entity_mut(id), entity, &ids);
        }
        for (entity, counter, values) in part.columns() {
            let pieces = columns.entry((ids[entity.0 as usize], counter)).or_default();
            pieces.push((joined.len(), values));
        }
        joined.times_ms.extend(&part.times_ms);
    }
    for ((entity, counter), pieces) in columns {
        let mut values = vec![f64::NAN; samples];
        for (row, piece) in pieces {
            values[row..row + piece.len()].copy_from_slice(piece);
        }
        joined.set_column(entity, counter, values);
    }
    joined
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
fn sorted(recording: Recording) -> (Recording, usize) {
    if recording.times_ms.is_sorted_by(|a, b| a < b) {
        return (recording, 0);
    }
    let mut order: Vec<usize> = (0..recording.len()).collect();
    sort_by_key(&mut order, |&sample| recording.times_ms[sample]);
    order.dedup_by_key(|sample| recording.times_ms[*sample]);
    (slice::samples(&recording, &order), recording.len() - order.len())
}
