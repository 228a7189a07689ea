//! Limits above the device: of a virtual disk, of a virtual adapter, and the administrator's own.

use crate::corpus::independent::host::{Controller, Demand};
use crate::corpus::independent::plan::Plan;
use crate::corpus::independent::truth::{Claim, Measure};
use crate::corpus::score::Sure;

/// An IOPS limit on a virtual disk: "enforced even when uncongested" (array-and-control.md section
/// 3). Commands are held while the device has free slots, at a rate that stays: QUED above 0 without
/// a full queue (section 9, invariants). Certain where the hold is beyond what any source calls
/// healthy, and lasts.
pub(super) fn iops_limit(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.deep_device(media, 256);
    let rows = plan.window(3);
    let limit = plan.random.pick(&[100.0, 250.0, 500.0, 700.0, 1000.0, 1500.0, 2000.0, 3000.0]);
    let flow = plan.flows(device, Controller::Pvscsi, &[Demand::Open(0.0)])[0];
    let service_ms = plan.host.devices[device].service_ms;
    let alone = limit * service_ms * 1.5 / 1e3;
    let threads = (alone * plan.random.between(1.5, 6.0) + plan.random.between(1.0, 12.0)).ceil();
    let backlog = plan.random.chance(0.3);
    let demand = if backlog {
        Demand::Open(limit * plan.random.between(1.1, 3.0))
    } else {
        Demand::Closed(threads)
    };
    plan.load(rows.clone(), flow, demand);
    let quiet = plan.random.chance(0.4);
    plan.host.flows[flow].varies = if quiet { 0.0 } else { plan.random.between(0.02, 0.15) };
    // The limit is there all the time; it acts where the load is above it.
    plan.host.flows[flow].now.limit_iops = Some(limit);
    if plan.random.chance(0.5) {
        let neighbour = plan.flows(device, Controller::Pvscsi, &[Demand::Open(60.0)])[0];
        plan.host.flows[neighbour].varies = 0.2;
    }
    let severity = format!("{limit}/s");
    let places = vec![plan.host.disk(flow), plan.host.vms[plan.host.flows[flow].vm].name.clone()];
    let measure = Measure::Hold(flow);
    plan.claim(Claim { causes: vec!["iops-limit"], places, rows, severity, measure });
}

/// A virtual disk whose depth is used up: 64 of PVSCSI, 32 of LSI, 254 of the Linux driver (section
/// 1.2), on a device with room. "Up to 64 I/Os are getting out at once as shown by adding ACTV and
/// QUED" [S0]. A guest that only just fills it can't be told from one that wants more.
pub(super) fn virtual_disk(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.deep_device(media, 300);
    let controller = plan.random.pick(&[Controller::Pvscsi, Controller::Pvscsi, Controller::Lsi]);
    if plan.random.chance(0.15) {
        let nouns = &mut plan.host.devices[device];
        nouns.name = format!("nfs-datastore-{device}");
        nouns.nfs = true;
        nouns.depth = 65_536;
        nouns.paths.clear();
    }
    let rows = plan.window(3);
    let flow = plan.flows(device, controller, &[Demand::Open(0.0)])[0];
    if controller == Controller::Pvscsi && plan.random.chance(0.25) {
        plan.host.flows[flow].now.limit = 254.0;
    }
    let limit = plan.host.flows[flow].now.limit;
    let over = plan.random.between(1.0, 4.0);
    plan.load(rows.clone(), flow, Demand::Closed((limit * over).round()));
    let old = plan.host.old && controller == Controller::Lsi;
    let places = vec![plan.host.disk(flow), plan.host.vms[plan.host.flows[flow].vm].name.clone()];
    let severity = format!("{limit} slots, {:.0} wanted", limit * over);
    // 32 without the world that names the controller is any guest with 32 threads.
    let sure = if over > 1.3 && !old { Sure::Certain } else { Sure::May };
    plan.claim(Claim {
        causes: vec!["virtual-disk-cap"],
        places,
        rows,
        severity,
        measure: Measure::Stated(sure),
    });
}

/// All virtual disks of a controller share its slots: 254 of PVSCSI, 128 of LSI (section 1.2). Their
/// sum stays while each of them moves.
pub(super) fn virtual_adapter(plan: &mut Plan) {
    let media = plan.media();
    let controller = plan.random.pick(&[Controller::Pvscsi, Controller::Lsi]);
    let (slots, each, disks) = match controller {
        Controller::Lsi => (128.0, 32.0, plan.random.within(5..9)),
        _ => (254.0, 64.0, plan.random.within(5..9)),
    };
    let rows = plan.window(3);
    let vm = plan.vm_with(controller);
    let mut flows = Vec::new();
    for _ in 0..disks {
        let device = plan.deep_device(media, 128);
        let flow = plan.flow(vm, device, Demand::Open(0.0));
        plan.host.flows[flow].varies = 0.0;
        plan.load(rows.clone(), flow, Demand::Closed(each));
        flows.push(flow);
    }
    let spread = plan.random.between(0.02, 0.3);
    let parts: Vec<Vec<f64>> =
        rows.clone().map(|_| split(slots, each, disks, spread, plan)).collect();
    let start = rows.start;
    let taken = flows.clone();
    plan.during(rows.clone(), move |row, moment| {
        for (flow, part) in taken.iter().zip(&parts[row - start]) {
            moment.flows[*flow].demand = Demand::Closed(*part);
        }
    });
    let old = plan.host.old;
    let name = plan.host.vms[vm].name.clone();
    let disks: Vec<String> = flows.iter().map(|flow| plan.host.disk(*flow)).collect();
    let mut places = vec![name.clone(), format!("{name}:scsi0")];
    places.extend(disks.iter().cloned());
    let severity = format!("{slots} slots of {} disks", flows.len());
    let sure = if old { Sure::May } else { Sure::Certain };
    plan.claim(Claim {
        causes: vec!["virtual-adapter-cap"],
        places,
        rows: rows.clone(),
        severity,
        measure: Measure::Stated(sure),
    });
    let measure = Measure::Stated(Sure::May);
    plan.claim(Claim {
        causes: vec!["virtual-disk-cap"],
        places: disks,
        rows,
        severity: "shares of the adapter's slots".to_owned(),
        measure,
    });
}

/// `slots` shared by `disks`, none above `each`.
fn split(slots: f64, each: f64, disks: usize, spread: f64, plan: &mut Plan) -> Vec<f64> {
    let weights: Vec<f64> = (0..disks).map(|_| (spread * plan.random.normal()).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let mut parts: Vec<f64> =
        weights.iter().map(|weight| (slots * weight / sum).round().min(each)).collect();
    for _ in 0..1000 {
        let missing = slots - parts.iter().sum::<f64>();
        let index = plan.random.within(0..disks);
        if missing > 0.0 && parts[index] < each {
            parts[index] += 1.0;
        } else if missing < 0.0 && parts[index] > 1.0 {
            parts[index] -= 1.0;
        }
    }
    parts
}

/// Time in the VMkernel that is no queue: KAVG without QAVG, as under CPU contention (section 5.4).
pub(super) fn host_wait(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.deep_device(media, 128);
    let flow = plan.flows(device, Controller::Pvscsi, &[Demand::Open(400.0)])[0];
    let rows = plan.window(2);
    let kernel_ms = plan.random.log_between(0.1, 30.0);
    plan.during(rows.clone(), move |_, moment| moment.devices[device].kernel_ms = kernel_ms);
    let mut places = plan.host.places(device);
    places.extend([plan.host.disk(flow), plan.host.vms[plan.host.flows[flow].vm].name.clone()]);
    let severity = format!("{kernel_ms:.1} ms");
    plan.claim(Claim {
        causes: vec!["host-wait"],
        places,
        rows,
        severity,
        measure: Measure::Wait(device),
    });
}
