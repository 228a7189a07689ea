//! Columns of a recording: what of a counter was measured, sample by sample.

use counters::{Counter, EntityId};

use crate::{Measured, numbers::median};

/// The column of a counter; empty where the source does not have it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Column<'a>(&'a [f64]);

impl<'a> Column<'a> {
    /// The column of a counter of an object.
    #[must_use]
    pub fn of(recording: &'a Measured, entity: EntityId, counter: Counter) -> Self {
        Self(recording.series(entity, counter).unwrap_or_default())
    }

    /// One value; `None` where it was not measured.
    #[must_use]
    pub fn at(&self, sample: usize) -> Option<f64> {
        self.0.get(sample).copied().filter(|value| !value.is_nan())
    }

    /// Whether the source has the counter.
    #[must_use]
    pub const fn is_there(self) -> bool {
        !self.0.is_empty()
    }

    /// All its values.
    pub fn every(self) -> impl Iterator<Item = f64> + 'a {
        self.0.iter().copied().filter(|value| !value.is_nan())
    }

    /// The values at those samples that have one.
    pub fn over(self, samples: &[usize]) -> impl Iterator<Item = f64> {
        samples.iter().filter_map(move |&sample| self.at(sample))
    }
}

/// The limit in force in most samples: a mean of limits would be none that ever was.
#[must_use]
pub fn usual(limit: Column<'_>, samples: &[usize]) -> Option<f64> {
    median(limit.over(samples))
}
