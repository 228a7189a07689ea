//! What goes on at a device that no model here follows: what moves its queue, depths that no row shows, commands that
//! other hosts hold up.

use std::slice;

use diagnose::Facts;
use knobs::{DSNRO, Setting};

use crate::{observe::Device, question::depth_asked};

/// That of a device over a window, in a sentence; nothing where a model follows it. `is_restless` is whether
/// something moves its queue.
pub(crate) fn of(
    device: &Device<'_>,
    (facts, settings, window): (&Facts, &[Setting], &[usize]),
    is_restless: bool,
) -> Option<String> {
    let name = &device.name;
    if is_restless {
        return Some(format!(
            "Something moves DQLEN of {name} (adaptive throttling, Storage I/O Control, or settings that were \
             changed meanwhile)"
        ));
    }
    let facts = facts.devices.get(name);
    let known = facts.and_then(|facts| facts.dsnro);
    let asked = settings.iter().filter_map(|set| depth_asked(slice::from_ref(set), name)).min();
    // A depth that stays above all that DSNRO may have been is one that was seen.
    let is_less = asked.map(f64::from) < device.mean_depth(window);
    let is_hidden =
        device.hides_dsnro(window) || asked.is_some() && is_less && device.may_be_lowered(window);
    if known.is_none() && is_hidden {
        return Some(format!(
            "VMs compete for {name} in bursts, and DQLEN was seen between them, so what DSNRO held it to is not \
             known (`esxcli storage core device list -d {name}`, --esxcli FILE, says it)"
        ));
    }
    let dsnro = known.unwrap_or(DSNRO.default);
    let is_open = facts.is_none_or(|facts| facts.max_queue_depth.is_none()) && asked.is_some();
    if is_open && device.hides_who_competes(window, dsnro) {
        return Some(format!(
            "Without rows of VMs nothing tells whether several compete for {name}, and so whether the DQLEN of \
             {dsnro} that it is full at is DSNRO or its own depth (`esxcli storage core device list -d {name}`, \
             --esxcli FILE, says both)"
        ));
    }
    let refused = device.refused(window)?;
    Some(format!(
        "{refused:.0} commands a second on {name} meet SCSI reservations of other hosts and wait to be tried again"
    ))
}
