//! A depth that cuts bursts which are shorter than a sample: single instants of a VM show more commands than it would
//! let through, while the mean, of which a model is made, stays below it.
//!
//! Who sends in bursts has what a depth leaves of them at least (see `bursts`), and by Little's law its commands are
//! no longer under way in the host than all of a burst takes behind that depth.

use counters::Counter;
use diagnose::SimulatedRow;
use knobs::Setting;
use levels::little;

use crate::{
    DeviceCalibration, GuestCalibration,
    apart::LEFT,
    question::depth_asked,
    ranges::{LEVEL, place_in},
    run::Key,
};

/// A VM whose bursts a depth cuts.
#[derive(Clone, Copy, Debug)]
struct Cut<'a> {
    guest: &'a GuestCalibration,
    /// The most commands that an instant showed of it.
    seen: f64,
    /// The depth that is asked for.
    depth: u32,
    /// The part of its commands that is left at least.
    left: f64,
}

/// Whose bursts are cut on a device.
fn of<'a>(device: &'a DeviceCalibration, settings: &[Setting]) -> Vec<Cut<'a>> {
    let slots = depth_asked(settings, &device.device);
    // Who else has a burst at that time has as many of the slots.
    let vms = device.vms();
    let cut = |guest: &'a GuestCalibration| {
        let own = settings.iter().filter_map(|setting| match setting {
            Setting::Pvscsi { vm, depth, .. } => {
                depth.filter(|_| vm.vm.as_deref().is_none_or(|vm| vm == guest.vm))
            }
            _ => None,
        });
        let bursts = guest.bursts?;
        let (depth, share) = match slots {
            Some(depth) => (depth, f64::from(depth) / vms),
            None => own.min().map(|depth| (depth, f64::from(depth)))?,
        };
        let seen = bursts.seen.filter(|seen| *seen > f64::from(depth))?;
        let left = (share / bursts.most).min(1.0);
        Some(Cut { guest, seen, depth, left })
    };
    device.guests.iter().filter_map(cut).collect()
}

/// Whether that is so of some VM, whatever the simulated commands notice.
pub(crate) fn cuts(calibrated: &[DeviceCalibration], settings: &[Setting]) -> bool {
    calibrated.iter().any(|device| !of(device, settings).is_empty())
}

/// What is left of them at least, and of their neighbours.
pub(crate) fn hold(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    settings: &[Setting],
    rows: &mut [SimulatedRow],
) {
    for device in calibrated {
        let cuts = of(device, settings);
        let Some(most) = cuts.iter().map(|cut| cut.left).reduce(f64::min) else { continue };
        // In the queue of a device all wait behind a burst.
        let waits = depth_asked(settings, &device.device).is_some();
        let behind = if waits { most } else { 1.0 };
        let left = |guest: &GuestCalibration| cut_of(&cuts, guest).map_or(behind, |cut| cut.left);
        let sum =
            |of: &dyn Fn(&GuestCalibration) -> f64| -> f64 { device.guests.iter().map(of).sum() };
        let whole = sum(&|guest| guest.iops * left(guest)) / sum(&|guest| guest.iops).max(1e-9);
        // Those of which commands are gone leave their part of the array to the others.
        let gone = sum(&|guest| {
            cut_of(&cuts, guest).map_or(0.0, |cut| guest.outstanding * (1.0 - cut.left))
        });
        let quicker = (1.0 - gone / sum(&|guest| guest.outstanding).max(1e-9)).max(LEFT);
        widen(keys, (true, &device.device), (whole, quicker), waits, rows);
        for guest in &device.guests {
            let is_its = cut_of(&cuts, guest).is_some();
            widen(keys, (false, &guest.vm), (left(guest), quicker), waits, rows);
            let rate = place_in(keys, (false, &guest.vm), Counter::Commands).filter(|_| !is_its);
            if let Some(row) = rate.map(|at| &mut rows[at]) {
                row.high = row.high.max(guest.iops / quicker);
            }
        }
    }
}

fn cut_of<'c, 'a>(cuts: &'c [Cut<'a>], guest: &GuestCalibration) -> Option<&'c Cut<'a>> {
    cuts.iter().find(|cut| std::ptr::eq(cut.guest, guest))
}

/// Widens the rows of a device or VM to the part of its commands that is `left`, and to an array that is quicker; the
/// rest waits in the host, where `waits` says so.
fn widen(
    keys: &[Key],
    of: (bool, &str),
    (left, quicker): (f64, f64),
    waits: bool,
    rows: &mut [SimulatedRow],
) {
    let with = |counter| {
        let at = place_in(keys, of, counter)?;
        Some((at, keys[at].captured?))
    };
    for (counter, part) in [(Counter::Commands, left), (Counter::MeanActive, left * quicker)] {
        let Some((at, was)) = with(counter) else { continue };
        rows[at].low = rows[at].low.min(was * part * (1.0 - keys[at].chance - LEVEL));
    }
    for counter in [Counter::GuestLatency, Counter::DriverLatency] {
        let Some((at, was)) = with(counter) else { continue };
        rows[at].low = rows[at].low.min(was * quicker * (1.0 - keys[at].chance - LEVEL));
    }
    let (Some((_, was)), Some((gavg, took)), true) =
        (with(Counter::Commands), with(Counter::GuestLatency), waits)
    else {
        return;
    };
    let longest_ms = took / left * (1.0 + keys[gavg].chance + LEVEL);
    rows[gavg].high = rows[gavg].high.max(longest_ms);
    let waits_ms = longest_ms - took;
    for (counter, most) in
        [(Counter::KernelLatency, waits_ms), (Counter::MeanQueued, little(was, waits_ms))]
    {
        if let Some((at, was)) = with(counter) {
            rows[at].high = rows[at].high.max(was + most);
        }
    }
}

/// Who it is, in sentences.
pub(crate) fn doubts(calibrated: &[DeviceCalibration], settings: &[Setting]) -> Vec<String> {
    let of_one = |cut: Cut<'_>| {
        format!(
            "{} sends in bursts that are shorter than a sample: at an instant {:.0} of its commands were there, and \
             {:.1} on average. A depth of {} cuts such bursts, and how long they are no sample tells: a recording of \
             shorter ones would (`esxtop -b -a -d 2`), or the depth tried.",
            cut.guest.vm, cut.seen, cut.guest.outstanding, cut.depth
        )
    };
    calibrated.iter().flat_map(|device| of(device, settings)).map(of_one).collect()
}
