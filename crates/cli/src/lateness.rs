//! By how much a run by the wall clock was late: its histogram, in quantiles.

use counters::{Histogram, MICROSECOND};
use serde::Serialize;

use crate::{
    table::Table,
    text::{BOLD, styled, whole},
};

/// The shares of events of which the lateness is told.
const SHARES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];

/// How late the best `share` of the events was at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Quantile {
    share: f64,
    micros: f64,
}

/// The quantiles of a histogram of lateness.
pub(crate) fn quantiles(lateness: &Histogram) -> Vec<Quantile> {
    let of = |share| {
        let nanos = lateness.quantile(share)?;
        Some(Quantile { share, micros: nanos as f64 / MICROSECOND as f64 })
    };
    SHARES.into_iter().filter_map(of).collect()
}

/// A line for each quantile.
pub(crate) fn render(lateness: &Histogram) -> String {
    let mut table = Table::new(&["of the events", "late by at most"]);
    for Quantile { share, micros } in quantiles(lateness) {
        table.row(vec![format!("{} %", 100.0 * share), format!("{micros:.1} us")]);
    }
    let events = whole(lateness.count() as f64);
    format!("{}\n{}", styled(BOLD, &format!("Lateness of {events} events")), table.render())
}
