//! What is looked at: the counters that the diagnosis and its reports need.

use counters::Counter;
use counters::sorted::sort;

use crate::{Cause, Device, lacks};

/// What the comparison, what-if and the reports look at beside the rules: the mix of reads and
/// writes, the array's latency of each, and kavg's own means of ACTV and QUED.
const REPORTED: &[Counter] = &[
    Counter::Reads,
    Counter::Writes,
    Counter::DriverLatencyRead,
    Counter::DriverLatencyWrite,
    Counter::MeanActive,
    Counter::MeanQueued,
];

/// The counters that are looked at, in the order of their table: those of every rule, those without
/// which nothing is judged, and those of the reports. A capture that is read to be diagnosed needs no others.
#[must_use]
pub fn needed() -> Vec<Counter> {
    let of_rules = Cause::ALL.iter().flat_map(|cause| cause.rule().reads.iter().copied());
    let of_lacks = lacks::NEEDED.iter().map(|(_, counters)| *counters);
    let all = of_rules.chain(of_lacks).chain([Device::COUNTERS, REPORTED]);
    let mut needed: Vec<Counter> = all.flatten().copied().collect();
    sort(&mut needed);
    needed.dedup();
    needed
}
