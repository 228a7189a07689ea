//! What a rate may come to beside those of the levels above and below it in its row: a number that
//! stands alone there, and in its column too, was not measured.
//!
//! The commands of a device are those of its worlds and those of its paths, those of an adapter are
//! those of its paths, and all are reads and writes [CAP-A]. A burst shows on every level; a counter
//! that was read while it moved shows on one. What was cut out of a file is no witness against: its
//! rates agree with those of most other rows.

use std::collections::HashMap;

use counters::{Counter, EntityId, Kind, Recording};

use crate::numbers::median;

/// The rates that add up from level to level.
const RATES: [Counter; 7] = [
    Counter::Commands,
    Counter::Reads,
    Counter::Writes,
    Counter::MbRead,
    Counter::MbWritten,
    Counter::FailedCommands,
    Counter::Conflicts,
];
/// What of a rate another level must have to bear it out.
const MOST: f64 = 0.5;
/// Beyond how many times the median of its column a rate stands alone.
const ALONE: f64 = 2.0;
/// Below this nothing is made of a rate.
const FEW: f64 = 8.0;

/// Those that have parts of what an object does, and those of which it has a part.
#[derive(Default)]
struct Kin {
    /// The worlds of a device.
    worlds: Vec<EntityId>,
    /// The paths of a device or an adapter.
    paths: Vec<EntityId>,
    /// The device and the adapter.
    wholes: Vec<EntityId>,
}

/// The columns that hold rates which nothing bears out, without them.
pub(crate) fn without_lone(recording: &Recording) -> Vec<(EntityId, Counter, Vec<f64>)> {
    let mut cleaned = Vec::new();
    for (id, kin) in kin(recording) {
        for counter in RATES {
            let Some(values) = recording.series(id, counter) else { continue };
            if values.iter().any(|value| *value > FEW) {
                let witnesses = Witnesses::of(recording, id, &kin, counter);
                cleaned.extend(witnesses.without_lone(values).map(|left| (id, counter, left)));
            }
        }
    }
    cleaned
}

/// Every object that has any, with its kin.
fn kin(recording: &Recording) -> HashMap<EntityId, Kin> {
    let mut all: HashMap<EntityId, Kin> = HashMap::new();
    for kind in [Kind::World, Kind::Path, Kind::VirtualDisk] {
        for (id, entity) in recording.of_kind(kind) {
            let wholes: Vec<EntityId> = entity.device.into_iter().chain(entity.adapter).collect();
            for whole in &wholes {
                let kin = all.entry(*whole).or_default();
                match kind {
                    Kind::World => kin.worlds.push(id),
                    Kind::Path => kin.paths.push(id),
                    _ => {}
                }
            }
            all.entry(id).or_default().wholes = wholes;
        }
    }
    all
}

/// The columns that bear a rate out, or do not: each is a sum.
struct Witnesses<'a> {
    sums: Vec<Vec<&'a [f64]>>,
    /// How many of them must be against it.
    enough: usize,
}

impl<'a> Witnesses<'a> {
    fn of(recording: &'a Recording, id: EntityId, kin: &Kin, counter: Counter) -> Self {
        let all = |ids: &[EntityId]| -> Option<Vec<&'a [f64]>> {
            ids.iter().map(|id| recording.series(*id, counter)).collect()
        };
        let own = |counters: &[Counter]| -> Option<Vec<&'a [f64]>> {
            counters.iter().map(|counter| recording.series(id, *counter)).collect()
        };
        let own = match counter {
            Counter::Commands => own(&[Counter::Reads, Counter::Writes]),
            Counter::Reads | Counter::Writes => own(&[Counter::Commands]),
            _ => None,
        };
        let wholes = kin.wholes.iter().map(|whole| all(&[*whole]));
        let sums = wholes.chain([all(&kin.worlds), all(&kin.paths), own]).flatten();
        // What fails need not be counted on every level.
        let is_fault = matches!(counter, Counter::FailedCommands | Counter::Conflicts);
        let sums = sums.filter(|sum| !sum.is_empty()).collect();
        Self { sums, enough: if is_fault { 2 } else { 1 } }
    }

    fn without_lone(&self, values: &[f64]) -> Option<Vec<f64>> {
        let cells = || values.iter().enumerate();
        let mut lone: Vec<usize> = cells().filter(|cell| self.deny(*cell)).map(|at| at.0).collect();
        if lone.is_empty() {
            return None;
        }
        let usual = median(values.iter().copied().filter(|rate| !rate.is_nan()))?;
        lone.retain(|&sample| values[sample] > ALONE * usual);
        let left = |(sample, value): (usize, &f64)| {
            if lone.contains(&sample) { f64::NAN } else { *value }
        };
        (!lone.is_empty()).then(|| cells().map(left).collect())
    }

    /// Whether more of those that were measured in a sample are against the value there than for it.
    fn deny(&self, (sample, value): (usize, &f64)) -> bool {
        if value.is_nan() || *value <= FEW {
            return false;
        }
        let sum = |columns: &Vec<&[f64]>| -> Option<f64> {
            columns.iter().map(|column| column.get(sample).filter(|rate| !rate.is_nan())).sum()
        };
        let (mut bear_out, mut deny) = (0, 0);
        for sum in self.sums.iter().filter_map(sum) {
            *(if sum >= MOST * value { &mut bear_out } else { &mut deny }) += 1;
        }
        deny > bear_out && deny >= self.enough
    }
}

#[cfg(test)]
mod tests {
    use counters::Entity;

    use super::*;
    use crate::{Column, Measured};

    /// A device of two worlds, one of them alone at work, and two paths, of which one is idle: 400 reads
    /// a second, but for a burst of 9,000 in the thirtieth sample; and one number put into one column.
    fn host(number: f64, at: &[usize], into: (Kind, &str, Counter)) -> (Measured, EntityId) {
        let mut recording = Recording::new("esx".into());
        recording.times_ms = (0..40).map(|sample| 5_000 * sample).collect();
        let adapter = recording.add_entity(Entity::new(Kind::Adapter, "vmhba1".into()));
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        let part = |recording: &mut Recording, kind, name: &str| {
            let adapter = (kind == Kind::Path).then_some(adapter);
            let of_device = Entity { device: Some(device), ..Entity::new(kind, name.into()) };
            recording.add_entity(Entity { adapter, ..of_device })
        };
        let world = part(&mut recording, Kind::World, "busy");
        let path = part(&mut recording, Kind::Path, "used");
        let idle = [(Kind::World, "still"), (Kind::Path, "idle")];
        let idle = idle.map(|(kind, name)| part(&mut recording, kind, name));
        let rate = |sample| if sample == 30 { 9_000.0 } else { 400.0 };
        for (ids, share) in [(&[adapter, device, world, path][..], 1.0), (&idle[..], 0.0)] {
            for &id in ids {
                for counter in [Counter::Commands, Counter::Reads] {
                    let values = (0..40).map(|sample| share * rate(sample)).collect();
                    recording.set_column(id, counter, values);
                }
                for counter in [Counter::Writes, Counter::FailedCommands, Counter::Conflicts] {
                    recording.set_constant(id, counter, 0.0, 40);
                }
            }
        }
        let id = recording.find(into.0, into.1).expect("the object is there");
        let mut values = recording.series(id, into.2).expect("the column is there").to_vec();
        at.iter().for_each(|&sample| values[sample] = number);
        recording.set_column(id, into.2, values);
        (Measured::of(recording), id)
    }

    #[test]
    fn a_number_that_stands_alone_was_not_measured() {
        let objects = [
            (Kind::Path, "idle"),
            (Kind::Path, "used"),
            (Kind::World, "still"),
            (Kind::World, "busy"),
            (Kind::Device, "naa.1"),
        ];
        let rates = [Counter::Commands, Counter::Reads, Counter::FailedCommands];
        for number in [65_535.0, 70_000.0, 1e6] {
            for (kind, name) in objects {
                for counter in rates
                    .into_iter()
                    .filter(|counter| kind == Kind::Device || *counter != Counter::FailedCommands)
                {
                    let (recording, id) = host(number, &[7, 19, 20], (kind, name, counter));
                    let column = Column::of(&recording, id, counter);
                    assert_eq!(column.every().count(), 37, "{name} {counter:?} {number}");
                    assert_eq!(column.at(19), None, "{name} {counter:?} {number}");
                }
            }
        }
    }

    #[test]
    fn a_burst_that_every_level_has_was_measured() {
        let (recording, device) = host(0.0, &[], (Kind::Device, "naa.1", Counter::Commands));
        for (id, counter, values) in recording.columns() {
            assert!(values.iter().all(|value| !value.is_nan()), "{id:?} {counter:?}");
        }
        assert_eq!(Column::of(&recording, device, Counter::Commands).at(30), Some(9_000.0));
    }

    #[test]
    fn what_the_device_lacks_in_one_row_is_no_fault_of_its_world() {
        let into = (Kind::Device, "naa.1", Counter::Commands);
        for number in [0.0, 3.0, f64::NAN] {
            let (recording, _) = host(number, &[30], into);
            let world = recording.find(Kind::World, "busy").expect("the world is there");
            assert_eq!(Column::of(&recording, world, Counter::Commands).at(30), Some(9_000.0));
        }
    }
}
