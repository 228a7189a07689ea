//! The families: each plants one trouble in many forms, or a load that only looks like one. What a
//! family calls certain has its source beside it.

mod array;
mod failures;
mod guests;
mod healthy;
mod neighbours;
mod paths;
mod queues;
mod throttles;

use super::plan::Plan;

/// Plants into a host.
pub(super) type Plant = fn(&mut Plan);

/// Each family with its name; those of a cause bear its key.
pub(super) const FAMILIES: &[(&str, Plant)] = &[
    ("silence", failures::silence),
    ("path-down", paths::path_down),
    ("aborts", failures::aborts),
    ("reservation-conflicts", failures::reservation_conflicts),
    ("array-qos", array::qos),
    ("array-slow", array::slow),
    ("noisy-neighbour", neighbours::noisy),
    ("dsnro", queues::dsnro),
    ("device-depth", queues::device_depth),
    ("adaptive-throttling", throttles::adaptive),
    ("sioc", throttles::sioc),
    ("adapter-queue", queues::adapter),
    ("iops-limit", guests::iops_limit),
    ("virtual-disk-cap", guests::virtual_disk),
    ("virtual-adapter-cap", guests::virtual_adapter),
    ("splitting", paths::splitting),
    ("host-wait", guests::host_wait),
    ("healthy-load", healthy::load),
    ("healthy-backup", healthy::backup),
    ("healthy-trickle", healthy::trickle),
    ("healthy-deep", healthy::deep),
    ("healthy-steady", healthy::steady),
    ("healthy-shared", healthy::shared),
    ("healthy-paths", healthy::paths),
    ("two", two),
    ("failed-commands", failures::failed),
    ("path-thrash", paths::path_thrash),
    ("refused", array::refused),
    ("qos-peer", array::qos_peer),
];

/// The families of a cause that `two` draws from: they come first.
const CAUSES: usize = 17;

/// Two troubles at once, each on a device of its own.
fn two(plan: &mut Plan) {
    let first = plan.random.within(0..CAUSES);
    let second = (first + plan.random.within(1..CAUSES)) % CAUSES;
    FAMILIES[first].1(plan);
    FAMILIES[second].1(plan);
}
