//! Captures without a trouble, most of which look like one to a reader of single counters
//! (esxtop-captures.md section 4, point 2).

use crate::corpus::independent::host::{Controller, Demand, Media};
use crate::corpus::independent::plan::Plan;

use super::paths::multipath;

/// Daily load, idle hosts among it.
pub(super) fn load(plan: &mut Plan) {
    if plan.random.chance(0.2) {
        plan.host.flows.iter_mut().for_each(|flow| flow.now.demand = Demand::Open(0.2));
    }
}

/// A backup: few threads of large commands, below every source's latency.
pub(super) fn backup(plan: &mut Plan) {
    let device = plan.deep_device(Media::Flash, 128);
    let rows = plan.window(2);
    let flow = plan.flows(device, Controller::Pvscsi, &[Demand::Open(0.0)])[0];
    plan.host.flows[flow].now.kib = plan.random.pick(&[256.0, 512.0, 1024.0]);
    let threads = plan.random.between(1.0, 12.0).round();
    plan.load(rows.clone(), flow, Demand::Closed(threads));
    let service_ms = plan.random.between(1.0, 2.5);
    plan.host.devices[device].service_ms = service_ms;
}

/// A CD-ROM or a sleeping disk: late, at less than one command a second ([CAP-A]: 0.38 a second at
/// 32 ms).
pub(super) fn trickle(plan: &mut Plan) {
    let device = plan.device(Media::Spindle);
    let nouns = &mut plan.host.devices[device];
    nouns.name = format!("mpx.vmhba0:C0:T{device}:L0");
    nouns.service_ms = plan.random.between(15.0, 60.0);
    nouns.depth = 31;
    plan.flows(device, Controller::Lsi, &[Demand::Open(0.38)]);
}

/// Deep queues in which nothing waits, of load generators with steady or moving threads.
pub(super) fn deep(plan: &mut Plan) {
    let device = plan.deep_device(Media::Flash, 256);
    let vms = plan.random.within(1..4);
    for _ in 0..vms {
        let controller = plan.random.pick(&[Controller::Pvscsi, Controller::Nvme]);
        let threads = plan.random.between(4.0, 50.0).round();
        let flow = plan.flows(device, controller, &[Demand::Closed(threads)])[0];
        plan.host.flows[flow].varies = plan.random.pick(&[0.0, 0.1, 0.3]);
    }
    let nouns = &mut plan.host.devices[device];
    (nouns.service_ms, nouns.servers) = (plan.random.between(0.15, 0.4), 130.0);
}

/// An application that asks at a steady rate, or one thread that waits for each answer: a flat rate
/// that nobody limits.
pub(super) fn steady(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.deep_device(media, 128);
    let demand = if plan.random.chance(0.5) {
        Demand::Closed(1.0)
    } else {
        Demand::Open(plan.random.pick(&[100.0, 500.0, 1000.0, 1500.0]))
    };
    let flow = plan.flows(device, Controller::Pvscsi, &[demand])[0];
    plan.host.flows[flow].varies = 0.0;
}

/// Several VMs on a device cut to DSNRO that still has slots to spare.
pub(super) fn shared(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.device(media);
    let nouns = &plan.host.devices[device];
    let vms = 4;
    let iops = 6.0 / vms as f64 / nouns.service_ms * 1e3;
    for flow in plan.flows(device, Controller::Pvscsi, &vec![Demand::Open(iops); vms]) {
        plan.host.flows[flow].varies = plan.random.between(0.02, 0.2);
    }
}

/// Paths that never carried anything: standby, or behind a fixed policy (section 1.6).
pub(super) fn paths(plan: &mut Plan) {
    let device = multipath(plan, 4);
    let robin = plan.random.chance(0.5);
    plan.host.devices[device].round_robin = robin;
    if robin {
        let standby = plan.random.chance(0.5);
        let rows = 0..plan.host.rows;
        plan.during(rows, move |_, moment| {
            let shares = if standby { [0.5, 0.5, 0.0, 0.0] } else { [0.25; 4] };
            moment.devices[device].shares = shares.to_vec();
        });
    }
}
