//! Queues of the host that are full: the device's, by DSNRO or by the driver's depth, and the
//! adapter's.

use crate::corpus::independent::host::{Adapter, Controller, Demand};
use crate::corpus::independent::plan::Plan;
use crate::corpus::independent::truth::{Claim, Measure};

/// The two VMs of [S1]: the second one's load, however small, takes DQLEN down to DSNRO.
///
/// DSNRO is told from the driver's depth where DQLEN moves, or where another LUN of the same adapter
/// shows the driver's depth beside the default of DSNRO ("the minimum of the HBA device queue depth OR
/// DSNRO" [S0]). Where all rows read one number otherwise, either fits.
pub(super) fn dsnro(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.device(media);
    let depth = plan.random.pick(&[64, 64, 128, 128, 254]);
    let dsnro = plan.random.pick(&[32, 32, 32, 32, 16, 48]);
    plan.host.devices[device].depth = depth;
    plan.host.devices[device].dsnro = dsnro;
    let rows = plan.window(2);
    let moves = plan.random.chance(0.6);
    let over = f64::from(dsnro) * plan.random.between(1.2, 2.5);
    let others = plan.random.pick(&[1, 1, 2, 4]);
    if moves {
        // The first VM runs all the time and fits alone; the others come in these rows.
        let alone = Demand::Closed(over.min(f64::from(depth) * 0.95).round());
        let main = plan.flows(device, Controller::Nvme, &[alone])[0];
        plan.host.flows[main].varies = plan.random.between(0.0, 0.1);
        for flow in plan.flows(device, Controller::Pvscsi, &vec![Demand::Open(0.0); others]) {
            plan.during(rows.clone(), move |_, moment| {
                moment.flows[flow].demand = Demand::Closed(2.0)
            });
        }
    } else {
        let each = Demand::Closed((over / (others + 1) as f64).ceil());
        for flow in plan.flows(device, Controller::Pvscsi, &vec![each; others + 1]) {
            plan.load(rows.clone(), flow, each);
        }
    }
    let witness = plan.random.chance(0.7);
    if witness {
        plan.driver_depth(depth);
        let witness = plan.device(media);
        plan.host.devices[witness].depth = depth;
        plan.flows(witness, Controller::Pvscsi, &[Demand::Open(50.0)]);
    }
    let told = (witness && dsnro == 32) || (moves && rows.len() + 2 < plan.host.rows);
    let causes = if told { vec!["dsnro"] } else { vec!["dsnro", "device-depth"] };
    let places = plan.host.places(device);
    let severity = format!("DQLEN {depth} cut to {dsnro}");
    plan.claim(Claim { causes, places, rows, severity, measure: Measure::Wait(device) });
}

/// One VM against the driver's depth, as in [S0]: "since I only have one VM sending I/O, DSNRO is not
/// in play". With several VMs it is the driver's where its depth is below DSNRO.
pub(super) fn device_depth(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.device(media);
    let several = plan.random.chance(0.25);
    // hpsa 28, lpfc's older 30, AHCI 31; fnic, bfa and lpfc 32 (section 3).
    let depth = if several {
        plan.random.pick(&[28, 30, 31])
    } else {
        plan.random.pick(&[28, 30, 31, 32, 32, 32, 64, 128])
    };
    // A protocol endpoint: all vVols behind it share 128 slots, or 256 from 7.0 U2 (section 2.8).
    let endpoint = several && plan.random.chance(0.3);
    let depth = if endpoint { plan.random.pick(&[128, 256]) } else { depth };
    let controllers = if several {
        vec![Controller::Pvscsi; if endpoint { 12 } else { 3 }]
    } else {
        vec![Controller::Nvme]
    };
    plan.driver_depth(depth);
    (plan.host.devices[device].depth, plan.host.devices[device].dsnro) = (depth, depth.max(32));
    let rows = plan.window(2);
    let wanted = f64::from(depth) * plan.random.between(1.15, 3.0);
    let open = plan.random.chance(0.3);
    for controller in &controllers {
        let vm = plan.vm_with(*controller);
        let flow = plan.flow(vm, device, Demand::Open(0.0));
        let each = wanted / controllers.len() as f64;
        // What the slots can do is depth / R; an open load just above it fills the guest's queue.
        let nouns = &plan.host.devices[device];
        let full_ms = nouns.service_ms * (1.0 + f64::from(depth - 1) / nouns.servers);
        let rate = f64::from(depth) / full_ms * 1e3 / controllers.len() as f64;
        let demand = if open {
            Demand::Open(rate * plan.random.between(1.05, 1.5))
        } else {
            Demand::Closed(each.round())
        };
        plan.load(rows.clone(), flow, demand);
    }
    let places = plan.host.places(device);
    let severity = format!("DQLEN {depth}");
    plan.claim(Claim {
        causes: vec!["device-depth"],
        places,
        rows,
        severity,
        measure: Measure::Wait(device),
    });
}

/// Several devices behind one adapter whose own limit is small: AHCI 31, the "critical" 256 of
/// [DRILL], lowered `iscsivmk_HostQDepth` (section 3). Path and adapter QAVG cover only their own
/// queues (section 5.4), so a QAVG there is its mark.
pub(super) fn adapter(plan: &mut Plan) {
    let media = plan.media();
    let index = plan.host.adapters.len();
    let slots = plan.random.pick(&[31, 64, 128, 256]);
    plan.host.adapters.push(Adapter { name: format!("vmhba{}", 70 + index), depth: slots });
    plan.all_counters();
    let rows = plan.window(2);
    let wanted = f64::from(slots) * plan.random.between(1.15, 3.5);
    let devices = ((wanted / 60.0).ceil() as usize).max(plan.random.within(2..6));
    let mut places = vec![plan.host.adapters[index].name.clone()];
    let mut first = 0;
    for number in 0..devices {
        let device = plan.deep_device(media, 128);
        first = device;
        let paths = &mut plan.host.devices[device].paths;
        paths.truncate(1);
        paths[0].name = format!("{}:C0:T{number}:L0", places[0]);
        paths[0].adapter = index;
        places.push(paths[0].name.clone());
        let each = Demand::Closed((wanted / devices as f64).round().max(2.0));
        let flow = plan.flows(device, Controller::Pvscsi, &[each])[0];
        plan.load(rows.clone(), flow, each);
    }
    let severity = format!("AQLEN {slots}, {wanted:.0} commands");
    plan.claim(Claim {
        causes: vec!["adapter-queue"],
        places,
        rows,
        severity,
        measure: Measure::Wait(first),
    });
}
