//! Values turned from rows to columns, block by block, so that nothing is held twice.
//!
//! Most columns of a real capture never change [CAP-A]: errors, splits, copies, idle objects. One
//! that has not changed so far is a single number here, and takes no memory in the recording.

use counters::{Counter, EntityId, Recording};

/// Columns that are filled together when rows are turned: their values share a cache line.
const TILE: usize = 8;

/// The columns of one file, as far as it was read.
pub(crate) struct Columns {
    columns: Vec<Column>,
    rows: usize,
}

#[derive(Clone)]
enum Column {
    /// The same value in every row so far.
    Same(f64),
    Moving(Vec<f64>),
}

/// What a block adds to the columns.
struct Added<'a> {
    /// Values row by row, part by part.
    parts: &'a [&'a [f64]],
    /// Values of a row.
    width: usize,
    /// Rows before these.
    before: usize,
    /// Rows that a column which needs memory gets room for.
    room: usize,
}

impl Columns {
    pub(crate) fn new(width: usize) -> Self {
        Self { columns: vec![Column::Same(f64::NAN); width], rows: 0 }
    }

    /// Columns, with or without rows.
    pub(crate) const fn width(&self) -> usize {
        self.columns.len()
    }

    /// Adds rows. A column that needs memory gets room for `room` rows.
    pub(crate) fn append(&mut self, parts: &[&[f64]], room: usize, threads: usize) {
        let width = self.columns.len();
        let first = parts.iter().find_map(|part| part.get(..width));
        let Some(first) = first.filter(|row| !row.is_empty()) else { return };
        if self.rows == 0 {
            self.columns = first.iter().copied().map(Column::Same).collect();
        }
        let added = Added { parts, width, before: self.rows, room };
        let share = width.div_ceil(threads).next_multiple_of(TILE).max(TILE);
        std::thread::scope(|scope| {
            let mut shares = self.columns.chunks_mut(share).enumerate();
            let mine = shares.next();
            for (index, columns) in shares {
                let added = &added;
                scope.spawn(move || added.turn(columns, index * share));
            }
            if let Some((_, columns)) = mine {
                added.turn(columns, 0);
            }
        });
        self.rows += parts.iter().map(|part| part.len() / width).sum::<usize>();
    }

    /// Gives every column to the recording, object and counter that it belongs to.
    pub(crate) fn hand_over(
        self,
        places: &[(usize, EntityId, Counter)],
        recordings: &mut [&mut Recording],
    ) {
        for (column, &(host, entity, counter)) in self.columns.into_iter().zip(places) {
            let recording = &mut recordings[host];
            match column {
                Column::Same(value) => recording.set_constant(entity, counter, value, self.rows),
                Column::Moving(values) => recording.set_column(entity, counter, values),
            }
        }
    }
}

impl Added<'_> {
    /// Adds to the columns from `first` on.
    fn turn(&self, columns: &mut [Column], first: usize) {
        for (tile, columns) in columns.chunks_mut(TILE).enumerate() {
            let from = first + tile * TILE;
            let differs = self.differences(columns, from);
            for ((place, column), differs) in (from..).zip(columns).zip(differs) {
                if let (Column::Same(value), true) = (&*column, differs != 0) {
                    let mut values = Vec::with_capacity(self.room);
                    values.resize(self.before, *value);
                    *column = Column::Moving(values);
                }
                if let Column::Moving(values) = column {
                    self.add(values, place);
                }
            }
        }
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.parts.iter().flat_map(|part| part.chunks_exact(self.width))
    }

    /// Of each column of a tile, the bits in which its values differ from the one so far.
    fn differences(&self, columns: &[Column], from: usize) -> [u64; TILE] {
        let mut known = [0; TILE];
        for (known, column) in known.iter_mut().zip(columns) {
            if let Column::Same(value) = column {
                *known = value.to_bits();
            }
        }
        let mut differs = [0; TILE];
        for row in self.rows() {
            if let Some(tile) = row[from..].first_chunk::<TILE>() {
                for place in 0..TILE {
                    differs[place] |= tile[place].to_bits() ^ known[place];
                }
            } else {
                for (place, value) in row[from..].iter().enumerate() {
                    differs[place] |= value.to_bits() ^ known[place];
                }
            }
        }
        differs
    }

    fn add(&self, values: &mut Vec<f64>, place: usize) {
        let added = self.parts.iter().map(|part| part.len() / self.width).sum::<usize>();
        if values.capacity() - values.len() < added {
            values.reserve_exact(self.room.saturating_sub(values.len()).max(added));
        }
        // Part by part, so that the number of rows is known and none is checked for room.
        for part in self.parts {
            values.extend(part.chunks_exact(self.width).map(|row| row[place]));
        }
    }
}
