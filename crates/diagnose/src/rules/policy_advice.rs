//! What helps where an array holds a volume to a rate.

use super::changes;
use crate::Change;

/// What tells whether a policy holds a volume.
pub(super) const TELLS: &str =
    "The array's policy for this volume, if it has one, and its QoS counters";

/// What tells a policy from saturation.
pub(super) fn look_at_use() -> Change {
    changes::look(
        "Look at the utilization of the array and of the links to it first: where they are saturated, \
         only less load or more of them helps. Where they are not, a policy holds the volume.",
        Vec::new(),
    )
}

/// What helps where the policies of an array allow more than it has.
pub(super) fn ask_less_of_all(array: &str) -> Change {
    changes::look(
        format!(
            "Give array {array} more of what its policies share (nodes), or ask less of it: lower the max of volumes that \
             matter less. To raise this volume's policy takes it from the others."
        ),
        Vec::new(),
    )
    .risking("Whoever gets less is slower.", "Set the policies back")
}

pub(super) fn raise_policy() -> Change {
    changes::look(
        "Raise the volume's policy on the array, or lower the demand. Policies count normalised \
         I/Os: a large I/O costs as much as many of 4 KiB, and one that is split costs a little \
         more.",
        Vec::new(),
    )
    .risking("The other volumes of the array get less of it.", "Set the policy back")
}
