//! What a command counts as before a limit, a reservation and shares.

use crate::Advanced;

/// I/Os that a command of so many bytes counts as: one for each begun unit of its data, of `unit` bytes and not 0
/// [LAMW, API], and one where it moves none (ruling).
#[inline]
#[must_use]
pub const fn cost_units(bytes: u32, unit: u32) -> u32 {
    if bytes <= unit { 1 } else { bytes.div_ceil(unit) }
}

/// The default of that unit, `Disk.SchedCostUnit`, in KiB: for who does not know a host's own.
#[must_use]
pub fn default_cost_unit_kib() -> f64 {
    f64::from(Advanced::SchedCostUnit.info().default) / 1024.0
}
