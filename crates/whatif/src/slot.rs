//! Where a virtual disk hangs (`scsi0:1`), as a scenario names it.

use std::collections::BTreeSet;

use counters::Controller;
use knobs::disk_depths;

/// A slot that the VM has not used yet: the one wanted, or the next one.
pub(crate) fn free_slot(
    taken: &mut BTreeSet<(String, String)>,
    vm: &str,
    wanted: Option<String>,
) -> String {
    let mut slot = wanted.filter(|slot| is_slot(slot)).unwrap_or_else(|| "scsi0:0".into());
    let mut next = 0;
    while !taken.insert((vm.to_owned(), slot.clone())) {
        // 15 units on each of 4 adapters, without the adapter's own.
        let (adapter, unit) = (next / 15 % 4, next % 15);
        slot = format!("scsi{adapter}:{}", if unit >= 7 { unit + 1 } else { unit });
        next += 1;
        if next > 60 {
            break;
        }
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
        number(adapter).is_some_and(|n| n < 4)
            && number(unit).is_some_and(|n| n < 15 && (*bus != "scsi" || n != 7))
    })
}
