//! What is left to do where an array, or the link to it, has no more to give: to ask less of it.

use super::{changes, number};
use crate::{ArrayFacts, Change};

/// What is left where an array, or the link to it, has little more to give.
pub(super) fn of_known(array: &ArrayFacts, samples: &[usize]) -> Change {
    if array.own_work(samples).is_some() {
        let what = "Have the array do its own work (a rebuild, a scrub, a copy) more slowly, or when less is asked of \
                    it: how fast it goes is set there.";
        return changes::look(what, Vec::new()).risking(
            "It takes longer; until a rebuild is over a further disk may not fail.",
            "Set it back",
        );
    }
    if let Some((full, both)) = array.full_controller(samples) {
        let what = format!(
            "Move volumes to the other controller of array {}, which works {} % of the time: make it their owner, or \
             put VMs on a volume that it owns.",
            array.name,
            number(100.0 * both[2 - full])
        );
        return changes::look(what, Vec::new())
            .risking("While a volume goes over its commands wait.", "Move it back");
    }
    match array.is_held_by_its_link(samples) {
        false => of_array(),
        true => limiting(
            "Ask less of the link to the array, or widen it: move or limit the VMs that move most \
             bytes, or add links.",
        ),
    }
}

/// What is left where an array has no more to give.
pub(super) fn of_array() -> Change {
    limiting(
        "Ask less of the array, or give it more: move or limit the busiest VMs, or add what it \
         lacks (disks, controllers).",
    )
}

fn limiting(what: &str) -> Change {
    changes::look(what, Vec::new()).risking("Whoever is limited is slower.", "Lift the limit again")
}
