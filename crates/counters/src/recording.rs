//! A recording: who is who on one host, and a row of counters for every sample.
//!
//! Simulation, daemon and captures of real hosts all end here; diagnosis, screens, reports and
//! the CSV writer all start here.

use alloc::{collections::BTreeMap, string::String, sync::Arc, vec, vec::Vec};

use crate::{Counter, Kind, interval_s};

/// The type of a virtual storage adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// VMware Paravirtual.
    Pvscsi,
    /// LSI Logic SAS.
    LsiSas,
    /// LSI Logic Parallel.
    LsiParallel,
    /// BusLogic Parallel.
    BusLogic,
    /// AHCI (SATA).
    Ahci,
    /// Virtual NVMe.
    Nvme,
    /// IDE.
    Ide,
}

impl Controller {
    /// Every type.
    pub const ALL: [Self; 7] = [
        Self::Pvscsi,
        Self::LsiSas,
        Self::LsiParallel,
        Self::BusLogic,
        Self::Ahci,
        Self::Nvme,
        Self::Ide,
    ];

    /// Its name, as people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pvscsi => "PVSCSI",
            Self::LsiSas => "LSI Logic SAS",
            Self::LsiParallel => "LSI Logic Parallel",
            Self::BusLogic => "BusLogic",
            Self::Ahci => "AHCI",
            Self::Nvme => "virtual NVMe",
            Self::Ide => "IDE",
        }
    }
}

/// The position of an object in [`Recording::entities`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u32);

/// An object with counters, and what it belongs to as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// What it is.
    pub kind: Kind,
    /// Its name as esxtop prints it in the parentheses of a column.
    pub name: String,
    /// The device of a path, world, partition or virtual disk.
    pub device: Option<EntityId>,
    /// The adapter of a path.
    pub adapter: Option<EntityId>,
    /// The virtual machine of a virtual disk, or of a world that is one's.
    pub vm: Option<EntityId>,
    /// The virtual adapter of a virtual disk.
    pub controller: Option<Controller>,
    /// What a world is when it is no VM's: the name of the system process.
    pub process: Option<String>,
    /// What a VM is called where others of its host are called so too: its own name has its group behind that.
    pub called: Option<String>,
}

impl Entity {
    /// An object that belongs to nothing yet.
    #[must_use]
    pub const fn new(kind: Kind, name: String) -> Self {
        Self {
            kind,
            name,
            device: None,
            adapter: None,
            vm: None,
            controller: None,
            process: None,
            called: None,
        }
    }
}

/// Samples of one host: a column of values for each counter of each object, one value a sample.
///
/// Every column is as long as [`Recording::times_ms`]. A value that a source could not give is
/// NaN; a counter that it does not have at all has no column. What was read from a file is set column
/// by column, what is sampled comes row by row.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The host's name as the source gives it.
    pub host: String,
    /// The instants of the samples, in milliseconds since 1970-01-01 UTC, ascending.
    pub times_ms: Vec<i64>,
    /// The instant at which the interval of the first sample begins, where the source tells.
    pub begin_ms: Option<i64>,
    layout: Arc<Layout>,
    /// Of every column, or of none while all come row by row.
    columns: Vec<Values>,
    rows: Rows,
    /// Columns of one value throughout, by its bits and their length.
    constants: BTreeMap<(u64, usize), Arc<[f64]>>,
}

/// Who is who, and what each column is. Recordings of one host share it until one is changed.
#[derive(Clone, Debug, Default)]
struct Layout {
    entities: Vec<Entity>,
    columns: Vec<Column>,
    /// The column that each object got last, or [`NONE`].
    latest: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    entity: EntityId,
    counter: Counter,
    /// The one that the object got before it, or [`NONE`].
    earlier: u32,
}

/// No column.
const NONE: u32 = u32::MAX;

impl Layout {
    /// The columns of an object, with their places, the last one first.
    fn of(&self, entity: EntityId) -> impl Iterator<Item = (usize, &Column)> {
        let at = |place: u32| self.columns.get(place as usize).map(|it| (place as usize, it));
        let latest = self.latest.get(entity.0 as usize).and_then(|place| at(*place));
        core::iter::successors(latest, move |(_, column)| at(column.earlier))
    }

    /// The column of a counter. An object has few: they are walked.
    fn find(&self, entity: EntityId, counter: Counter) -> Option<usize> {
        self.of(entity).find(|(_, column)| column.counter == counter).map(|(place, _)| place)
    }

    fn add(&mut self, entity: EntityId, counter: Counter) {
        let next = u32::try_from(self.columns.len()).expect("more columns than can be numbered");
        let earlier = core::mem::replace(&mut self.latest[entity.0 as usize], next);
        self.columns.push(Column { entity, counter, earlier });
    }
}

/// The values of a column that was set. Most columns of a real host never change [CAP-A]; those of the
/// same value share their memory.
#[derive(Clone, Debug)]
enum Values {
    Own(Vec<f64>),
    Shared(Arc<[f64]>),
}

impl Values {
    fn as_slice(&self) -> &[f64] {
        match self {
            Self::Own(values) => values,
            Self::Shared(values) => values,
        }
    }
}

/// Values that come row by row: those of a column side by side, each with room for as many.
#[derive(Clone, Debug, Default)]
struct Rows {
    values: Vec<f64>,
    len: usize,
    room: usize,
}

impl Rows {
    fn column(&self, index: usize) -> &[f64] {
        &self.values[index * self.room..][..self.len]
    }

    /// One row more, of so many columns: its values, to be filled in.
    fn push(&mut self, columns: usize) -> impl Iterator<Item = &mut f64> {
        if self.len == self.room {
            let room = (2 * self.room).max(1);
            let mut values = vec![f64::NAN; columns * room];
            for (index, column) in values.chunks_exact_mut(room).enumerate() {
                column[..self.len].copy_from_slice(self.column(index));
            }
            (self.values, self.room) = (values, room);
        }
        self.len += 1;
        let last = self.len - 1;
        self.values.chunks_exact_mut(self.room).map(move |column| &mut column[last])
    }
}

impl Recording {
    /// An empty recording of `host`.
    #[must_use]
    pub fn new(host: String) -> Self {
        Self { host, ..Self::default() }
    }

    /// Adds an object.
    ///
    /// # Panics
    /// When there are more than 4,294,967,295 objects.
    pub fn add_entity(&mut self, entity: Entity) -> EntityId {
        let layout = Arc::make_mut(&mut self.layout);
        let id = u32::try_from(layout.entities.len()).expect("more objects than can be named");
        layout.entities.push(entity);
        layout.latest.push(NONE);
        EntityId(id)
    }

    /// Sets the column of a counter; one that is there already is replaced.
    pub fn set_column(&mut self, entity: EntityId, counter: Counter, values: Vec<f64>) {
        match values.as_slice() {
            [first, rest @ ..] if rest.iter().all(|value| value.to_bits() == first.to_bits()) => {
                self.set_constant(entity, counter, *first, values.len());
            }
            _ => self.set_values(entity, counter, Values::Own(values)),
        }
    }

    /// Sets the column of a counter that has the same value in every one of `samples`. It takes
    /// no memory of its own.
    pub fn set_constant(&mut self, entity: EntityId, counter: Counter, value: f64, samples: usize) {
        let same = || core::iter::repeat_n(value, samples).collect();
        let values = self.constants.entry((value.to_bits(), samples)).or_insert_with(same);
        let values = Values::Shared(Arc::clone(values));
        self.set_values(entity, counter, values);
    }

    fn set_values(&mut self, entity: EntityId, counter: Counter, values: Values) {
        let (layout, rows) = (Arc::make_mut(&mut self.layout), core::mem::take(&mut self.rows));
        let sampled = self.columns.len()..layout.columns.len();
        self.columns.extend(sampled.map(|column| Values::Own(rows.column(column).to_vec())));
        match layout.find(entity, counter) {
            Some(column) => self.columns[column] = values,
            None => {
                layout.add(entity, counter);
                self.columns.push(values);
            }
        }
    }

    /// Adds a column to a recording without a row, for rows to come.
    pub(crate) fn add_column(&mut self, entity: EntityId, counter: Counter) {
        Arc::make_mut(&mut self.layout).add(entity, counter);
    }

    /// Nothing is added any more but rows: what was kept free for it is given back.
    pub(crate) fn close_layout(&mut self) {
        let layout = Arc::make_mut(&mut self.layout);
        layout.entities.shrink_to_fit();
        layout.columns.shrink_to_fit();
        layout.latest.shrink_to_fit();
    }

    /// Adds a row: the values of all columns, to be filled in, in the order in which the columns were
    /// added.
    pub(crate) fn add_row(&mut self, from_ms: i64, at_ms: i64) -> impl Iterator<Item = &mut f64> {
        self.begin_ms.get_or_insert(from_ms);
        self.times_ms.push(at_ms);
        self.rows.push(self.layout.columns.len())
    }

    fn values(&self, column: usize) -> &[f64] {
        self.columns.get(column).map_or_else(|| self.rows.column(column), Values::as_slice)
    }

    /// Samples in the recording.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times_ms.len()
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times_ms.is_empty()
    }

    /// The length of a sample's interval in seconds; `None` where nothing tells it.
    #[must_use]
    pub fn interval_s(&self, sample: usize) -> Option<f64> {
        let first = self.begin_ms.zip(self.times_ms.first()).filter(|_| sample == 0);
        let first = first.and_then(|(from, to)| interval_s(&[from, *to], 1));
        first.or_else(|| interval_s(&self.times_ms, sample))
    }

    /// Every object, in the order in which the source named them.
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        &self.layout.entities
    }

    /// The object of that id.
    #[must_use]
    pub fn entity(&self, id: EntityId) -> &Entity {
        &self.layout.entities[id.0 as usize]
    }

    /// The object of that id, to add what it belongs to.
    pub fn entity_mut(&mut self, id: EntityId) -> &mut Entity {
        &mut Arc::make_mut(&mut self.layout).entities[id.0 as usize]
    }

    /// Every object of one kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (EntityId, &Entity)> {
        (0..)
            .map(EntityId)
            .zip(&self.layout.entities)
            .filter(move |(_, entity)| entity.kind == kind)
    }

    /// The object of that kind and name.
    #[must_use]
    pub fn find(&self, kind: Kind, name: &str) -> Option<EntityId> {
        self.of_kind(kind).find(|(_, entity)| entity.name == name).map(|(id, _)| id)
    }

    /// Every column, in the order in which they were added.
    pub fn columns(&self) -> impl Iterator<Item = (EntityId, Counter, &[f64])> {
        let columns = self.layout.columns.iter().enumerate();
        columns.map(|(index, column)| (column.entity, column.counter, self.values(index)))
    }

    /// Every column of an object, the last one first.
    pub fn columns_of(&self, entity: EntityId) -> impl Iterator<Item = (Counter, &[f64])> {
        self.layout.of(entity).map(|(place, column)| (column.counter, self.values(place)))
    }

    /// The values of a counter, one a sample; `None` when the source does not have it.
    #[must_use]
    pub fn series(&self, entity: EntityId, counter: Counter) -> Option<&[f64]> {
        self.layout.find(entity, counter).map(|column| self.values(column))
    }

    /// One value; `None` when the source does not have it or could not give it.
    #[must_use]
    pub fn value(&self, entity: EntityId, counter: Counter, sample: usize) -> Option<f64> {
        let value = *self.series(entity, counter)?.get(sample)?;
        (!value.is_nan()).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_column_is_found_by_object_and_counter() {
        let mut recording = Recording::new("esx01".into());
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        recording.set_column(device, Counter::Load, vec![1.97, f64::NAN]);
        assert_eq!(recording.find(Kind::Device, "naa.1"), Some(device));
        assert_eq!(recording.value(device, Counter::Load, 0), Some(1.97));
        assert_eq!(recording.value(device, Counter::Load, 1), None);
        assert_eq!(recording.value(device, Counter::Load, 2), None);
        assert_eq!(recording.series(device, Counter::Commands), None);
    }

    #[test]
    fn columns_of_one_value_share_it() {
        let mut recording = Recording::new("esx01".into());
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        recording.set_column(device, Counter::Aborts, vec![0.0, 0.0]);
        recording.set_constant(device, Counter::Resets, 0.0, 2);
        recording.set_column(device, Counter::Load, vec![0.0, -0.0]);
        let of = |counter| recording.series(device, counter).unwrap().as_ptr();
        assert_eq!(of(Counter::Aborts), of(Counter::Resets));
        assert_ne!(of(Counter::Aborts), of(Counter::Load));
    }

    #[test]
    fn a_column_set_twice_is_replaced() {
        let mut recording = Recording::new("esx01".into());
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        recording.set_column(device, Counter::Load, vec![1.0]);
        recording.set_column(device, Counter::Load, vec![2.0]);
        assert_eq!(recording.columns().count(), 1);
        assert_eq!(recording.value(device, Counter::Load, 0), Some(2.0));
    }

    #[test]
    fn the_first_interval_is_as_long_as_it_is_known_to_be() {
        let mut recording = Recording::new("esx01".into());
        let _ = recording.add_row(1_500, 2_000);
        assert_eq!([0, 1].map(|sample| recording.interval_s(sample)), [Some(0.5), None]);
        let _ = recording.add_row(2_000, 3_000);
        assert_eq!([0, 1].map(|sample| recording.interval_s(sample)), [Some(0.5), Some(1.0)]);
        recording.begin_ms = None;
        assert_eq!(recording.interval_s(0), Some(1.0), "that of the second");
    }

    #[test]
    fn rows_are_columns_and_may_be_set_anew() {
        let mut recording = Recording::new("esx01".into());
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        let counters = [Counter::Load, Counter::Aborts, Counter::Resets];
        counters.into_iter().for_each(|counter| recording.add_column(device, counter));
        for row in 0..5 {
            let values = recording.add_row(1_000 * (row - 1), 1_000 * row);
            values
                .zip(0..)
                .for_each(|(value, column)| *value = f64::from(10 * row as i32 + column));
        }
        let column = |of: i32| (0..5).map(|row| f64::from(10 * row + of)).collect::<Vec<_>>();
        for (counter, of) in counters.into_iter().zip(0..) {
            assert_eq!(recording.series(device, counter), Some(column(of).as_slice()));
        }
        let before = recording.clone();
        recording.set_column(device, Counter::Aborts, vec![7.0; 5]);
        assert_eq!(recording.series(device, Counter::Aborts), Some([7.0; 5].as_slice()));
        assert_eq!(recording.series(device, Counter::Resets), Some(column(2).as_slice()));
        assert_eq!(before.series(device, Counter::Aborts), Some(column(1).as_slice()));
        assert_eq!(recording.columns().count(), 3);
    }
}
