//! Devices that do not answer, commands that are given up, and reservations that collide.

use crate::corpus::independent::host::{Controller, Demand};
use crate::corpus::independent::plan::Plan;
use crate::corpus::independent::truth::{Claim, Measure};
use crate::corpus::score::Sure;

/// Virtual machines that use a device.
fn used_device(plan: &mut Plan) -> usize {
    let media = plan.media();
    let device = plan.deep_device(media, 256);
    let vms = plan.random.within(1..4);
    for flow in plan.flows(device, Controller::Pvscsi, &vec![Demand::Open(0.0); vms]) {
        let demand = if plan.random.chance(0.5) {
            Demand::Closed(plan.random.between(2.0, 20.0).round())
        } else {
            Demand::Open(plan.random.between(60.0, 400.0))
        };
        plan.host.flows[flow].now.demand = demand;
        plan.host.flows[flow].varies = plan.random.between(0.02, 0.2);
    }
    device
}

/// Commands are out and none comes back: all paths down (VMs' I/O "goes on being retried", section
/// 12), or a failover that "may pause 30 to 60 s". Two samples of it are certain; of one, the late
/// answers afterwards tell.
pub(super) fn silence(plan: &mut Plan) {
    let device = used_device(plan);
    plan.host.rows = plan.host.rows.max(7);
    let most = (120 / plan.host.interval_s as usize).clamp(1, plan.host.rows - 4);
    let length = plan.random.within(1..most + 1);
    let start = plan.random.within(2..plan.host.rows - length + 1);
    let rows = start..start + length;
    let pause_s = length as f64 * f64::from(plan.host.interval_s);
    plan.during(rows.clone(), move |_, moment| moment.devices[device].silent = true);
    let late = plan.random.between(1.0, 20.0).round();
    plan.during(rows.end..rows.end + 1, move |_, moment| {
        moment.devices[device].late = (late, pause_s * 1e3);
    });
    let places = plan.host.places(device);
    let sure = if length >= 2 || pause_s >= 5.0 { Sure::Certain } else { Sure::May };
    let severity = format!("{pause_s} s without an answer");
    plan.claim(Claim {
        causes: vec!["silence"],
        places: places.clone(),
        rows: rows.clone(),
        severity,
        measure: Measure::Stated(sure),
    });
    // What the sources would also say: late answers after it, and perhaps the paths.
    let rows = rows.start..(rows.end + 1).min(plan.host.rows);
    let causes = vec!["array-slow", "path-down", "aborts", "device-depth", "dsnro"];
    plan.claim(Claim {
        causes,
        places,
        rows,
        severity: "beside the silence".to_owned(),
        measure: Measure::Stated(Sure::May),
    });
}

/// Commands given up by the guest: ABRTS/s above 1 for [ELA 6.4] and [DRILL]; rarer ones may be named.
/// A guest gives up after 10 to 180 s (section 12), so answers are late as well.
pub(super) fn aborts(plan: &mut Plan) {
    plan.all_counters();
    let device = used_device(plan);
    let rows = plan.window(2);
    let per_s = plan.random.log_between(0.1, 40.0);
    let resets = if plan.random.chance(0.4) { per_s * plan.random.between(0.05, 0.5) } else { 0.0 };
    let late_ms = plan.random.log_between(30.0, 2000.0);
    let late = plan.random.chance(0.7);
    plan.during(rows.clone(), move |_, moment| {
        let now = &mut moment.devices[device];
        (now.aborts, now.resets) = (per_s, resets);
        if late {
            now.service_ms = late_ms;
        }
    });
    let places = plan.host.places(device);
    let sure = if per_s > 1.5 { Sure::Certain } else { Sure::May };
    let severity = format!("{per_s:.1} aborts and {resets:.1} resets a second");
    plan.claim(Claim {
        causes: vec!["aborts"],
        places: places.clone(),
        rows: rows.clone(),
        severity,
        measure: Measure::Stated(sure),
    });
    if late {
        let severity = format!("DAVG {late_ms:.0} ms");
        plan.claim(Claim {
            causes: vec!["array-slow"],
            places,
            rows,
            severity,
            measure: Measure::Answer(device),
        });
    }
}

/// The device answers with errors: FCMDS/s (esxi-host-stack.md, table of esxtop's columns). No source
/// gives a number; where two thirds or more of all commands fail nobody would call it well.
pub(super) fn failed(plan: &mut Plan) {
    plan.all_counters();
    let device = used_device(plan);
    let rows = plan.window(2);
    let part = plan.random.between(0.2, 1.0);
    plan.during(rows.clone(), move |_, moment| moment.devices[device].failed = part);
    let places = plan.host.places(device);
    let sure = if part > 0.66 { Sure::Certain } else { Sure::May };
    plan.claim(Claim {
        causes: vec!["failed-commands"],
        places,
        rows,
        severity: format!("{:.0} % of the commands fail", 100.0 * part),
        measure: Measure::Stated(sure),
    });
}

/// Another host reserves the LUN: CONS/s above 20 (Yellow-Bricks) or 32 and 64 ([DRILL]), where 1 is
/// noticed. Retries wait in the VMkernel (KAVG, [ELA 2012-08]); "a slow array with conflicts shows
/// DAVG, not KAVG" (array-and-control.md 7.4), so both forms are planted.
pub(super) fn reservation_conflicts(plan: &mut Plan) {
    plan.all_counters();
    let device = used_device(plan);
    let rows = plan.window(2);
    let per_s = plan.random.log_between(3.0, 400.0);
    let kernel_ms = if plan.random.chance(0.6) { plan.random.log_between(2.0, 60.0) } else { 0.0 };
    let davg_ms = if plan.random.chance(0.3) { plan.random.between(10.0, 60.0) } else { 0.0 };
    plan.during(rows.clone(), move |_, moment| {
        let now = &mut moment.devices[device];
        (now.conflicts, now.reserves, now.kernel_ms) = (per_s, per_s / 20.0, kernel_ms);
        now.service_ms = f64::max(now.service_ms, davg_ms);
    });
    let places = plan.host.places(device);
    let sure = if per_s > 35.0 { Sure::Certain } else { Sure::May };
    let severity = format!("{per_s:.1} conflicts a second, KAVG {kernel_ms:.1} ms");
    plan.claim(Claim {
        causes: vec!["reservation-conflicts"],
        places,
        rows,
        severity,
        measure: Measure::Stated(sure),
    });
}
