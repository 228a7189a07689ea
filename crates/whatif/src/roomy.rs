//! Slots that are never short: that there are more of them changes nothing, whatever array and guests are.
//!
//! A queue of which half is free at all times makes nobody wait, and who waits above it waits for a limit of its own,
//! which another depth leaves as it is. The same holds of a driver that lets through more than its guest ever has.

use counters::Controller;
use diagnose::Simulated;
use knobs::{Advanced, Setting, disk_depths};

use crate::{
    DeviceCalibration, GuestCalibration,
    observe::{Device, Tenant},
    question::depth_asked,
    rows::{ROUNDING_MS, Row},
    run::Key,
    said::Verdict,
    unmoved::{Still, unmoved},
};

/// Part of the slots that is in use at most where none is ever short.
const USED: f64 = 0.5;

/// The part of a latency that may be a wait for slots, where nothing but more of them is asked for and none is ever
/// short; none where more of them may change something.
pub(crate) fn untouched(
    (devices, calibrated): (&[Device<'_>], &[DeviceCalibration]),
    settings: &[Setting],
    window: &[usize],
) -> Option<f64> {
    let is_of_guests = |set: &&Setting| matches!(set, Setting::Pvscsi { .. });
    let of_queues: Vec<Setting> =
        settings.iter().filter(|set| !is_of_guests(set)).cloned().collect();
    if settings.is_empty() || !of_queues.iter().all(is_of_queues) {
        return None;
    }
    let each = || devices.iter().zip(calibrated);
    let mut waits = 0.0_f64;
    for (device, of) in each() {
        if let Some(slots) = depth_asked(&of_queues, &device.name) {
            waits = waits.max(waits_of(device, of, f64::from(slots), window)?);
        }
        let mut guests = device.tenants.iter().zip(&of.guests);
        let has_room = |(tenant, guest): (&Tenant<'_>, &GuestCalibration)| {
            let own = || settings.iter().filter(|set| is_meant(set, &guest.vm));
            own().next().is_none() || is_below(tenant, guest, own(), window)
        };
        if !guests.all(has_room) {
            return None;
        }
    }
    Some(waits)
}

/// Whether a setting is of how many commands a device has.
const fn is_of_queues(setting: &Setting) -> bool {
    matches!(
        setting,
        Setting::SchedNumReqOutstanding { .. }
            | Setting::MaxQueueDepth { .. }
            | Setting::ModuleDepth { .. }
            | Setting::Advanced { option: Advanced::SchedNumReqOutstanding, .. }
    )
}

/// Whether a setting is of a VM's driver.
fn is_meant(setting: &Setting, vm: &str) -> bool {
    match setting {
        Setting::Pvscsi { vm: meant, .. } => meant.vm.as_deref().is_none_or(|meant| meant == vm),
        _ => false,
    }
}

/// The part of their latency that those wait for slots who are held to no limit, where a device has half of its slots
/// free at all times and is to have no fewer; none where it may be short of some, or is to have fewer.
fn waits_of(
    device: &Device<'_>,
    of: &DeviceCalibration,
    slots: f64,
    window: &[usize],
) -> Option<f64> {
    /// Part of a latency that is no wait.
    const NO_WAIT: f64 = 0.01;
    let busy = device.busy(window);
    let is_roomy = |&s: &usize| {
        device.depth_at(s).is_some_and(|depth| depth <= slots) && device.has_free(s, USED)
    };
    let is_free = !device.is_nfs && device.flaps_to().is_none() && device.resting.is_empty();
    if !is_free || !busy.iter().all(is_roomy) {
        return None;
    }
    let wait = |(tenant, guest): (&Tenant<'_>, &GuestCalibration)| {
        if guest.is_held_surely {
            return Some(0.0);
        }
        let world = tenant.world.as_ref()?;
        let of = |latency| world.per_command(&busy, latency);
        let (Some(kavg), Some(gavg)) = (of(Row::kavg), of(Row::gavg)) else {
            return (world.mean_rate(&busy) == Some(0.0)).then_some(0.0);
        };
        (kavg <= NO_WAIT * gavg + ROUNDING_MS).then(|| (kavg / gavg.max(1e-9)).min(0.5))
    };
    let waits = device.tenants.iter().zip(&of.guests).map(wait);
    waits.collect::<Option<Vec<f64>>>().map(|all| all.into_iter().fold(0.0, f64::max))
}

/// Whether a guest never has about as many commands as its driver lets through, today and with these settings.
fn is_below<'s>(
    tenant: &Tenant<'_>,
    guest: &GuestCalibration,
    mut settings: impl Iterator<Item = &'s Setting>,
    window: &[usize],
) -> bool {
    /// Part of the depth up to which a guest does not reach it.
    const BELOW: f64 = 0.8;
    let [stands, present] =
        [Row::outstanding, Row::present].map(|of| tenant.row.largest(window, of));
    let Some(most) = stands.map(|stands| stands.max(present.unwrap_or_default())) else {
        return false;
    };
    let usual = disk_depths(guest.controller.unwrap_or(Controller::Pvscsi)).into_iter().min();
    let is_free = |depth: u32| most <= BELOW * f64::from(depth);
    let is_deep = |set: &Setting| match set {
        Setting::Pvscsi { depth: Some(depth), .. } => is_free(*depth),
        _ => false,
    };
    guest.capped_at.is_none()
        && guest.bursts.is_none()
        && usual.is_some_and(is_free)
        && settings.all(is_deep)
}

/// Why that needs no model.
pub(crate) const REASON: &str = "what is never short of a slot gains nothing by more of them";

/// The answer where that is so: all stays as it is but the depths, of which `ends` are those after the change.
pub(crate) fn answer(
    keys: &[Key],
    ends: &dyn Fn(usize) -> [f64; 2],
    waits: f64,
    doubts: Vec<String>,
) -> (Simulated, Verdict) {
    const WHY: &str = " No command is short of a slot today, so none is quicker for more of them.";
    let depth = |key: &Key| keys.iter().position(|other| other == key).map(ends);
    unmoved(keys, &Still { vm: None, waits, is_of_limit: false, depth: &depth }, WHY, doubts)
}
