//! Where a virtual disk hangs (`scsi0:1`), as a scenario names it.

use std::collections::BTreeSet;

use counters::Controller;
use knobs::{GuestOs, disk_depths, limits_of};

/// Adapters of one kind that a VM has at most, as a scenario numbers them.
const ADAPTERS: u32 = 4;
/// The most disks on one of them, and the highest unit: the adapter itself is among the units.
const DISKS: u32 = limits_of(Controller::Pvscsi, GuestOs::Linux).disks_max;
/// The unit of the adapter itself.
const ITSELF: u32 = 7;
/// The most disks of a VM.
pub(crate) const DISKS_OF_VM: u32 = ADAPTERS * DISKS;

/// A slot that the VM has not used yet: the one wanted, or the next one.
pub(crate) fn free_slot(
    taken: &mut BTreeSet<(String, String)>,
    vm: &str,
    wanted: Option<String>,
) -> String {
    let mut slot = wanted.filter(|slot| is_slot(slot)).unwrap_or_else(|| "scsi0:0".into());
    let mut next = 0;
    while !taken.insert((vm.to_owned(), slot.clone())) && next < DISKS_OF_VM {
        let (adapter, unit) = (next / DISKS, next % DISKS);
        slot = format!("scsi{adapter}:{}", if unit >= ITSELF { unit + 1 } else { unit });
        next += 1;
    }
    slot
}

/// Whether a disk of that slot has so many commands outstanding.
pub(crate) fn fits(slot: &str, outstanding: f64) -> bool {
    let sata = || disk_depths(Controller::Ahci).into_iter().all(|n| outstanding <= f64::from(n));
    slot.starts_with("scsi") || slot.starts_with("sata") && sata()
}

fn is_slot(slot: &str) -> bool {
    let Some(bus) = ["scsi", "sata", "nvme", "ide"].iter().find(|bus| slot.starts_with(**bus))
    else {
        return false;
    };
    let parts = slot[bus.len()..].split_once(':');
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| n.to_string() == text);
    parts.is_some_and(|(adapter, unit)| {
        number(adapter).is_some_and(|n| n < ADAPTERS)
            && number(unit).is_some_and(|n| n <= DISKS && (*bus != "scsi" || n != ITSELF))
    })
}
