//! One VM that takes the slots of the others.

use crate::corpus::independent::host::{Controller, Demand};
use crate::corpus::independent::plan::Plan;
use crate::corpus::independent::truth::{Claim, Measure};
use crate::corpus::score::Sure;

/// [S4]: a VM behind the array's QoS fills the device's slots with slow commands, and its neighbours
/// wait 300 to 400 ms for a slot; or one simply sends far more than the rest. Certain where nearly
/// all slots are its own while the others wait longer than they are served; two alike are no case.
pub(super) fn noisy(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.device(media);
    plan.host.devices[device].depth = plan.random.pick(&[64, 128]);
    plan.host.devices[device].dsnro = 32;
    let rows = plan.window(3);
    let throttled = plan.random.chance(0.6);
    let victims = plan.random.within(1..5);
    let threads = if throttled { 40.0 } else { plan.random.between(40.0, 140.0).round() };
    let noisy = plan.flows(device, Controller::Nvme, &[Demand::Open(0.0)])[0];
    plan.load(rows.clone(), noisy, Demand::Closed(threads));
    if throttled {
        // Bronze to gold at 512 KiB: 13 to 79 a second (array-and-control.md 6.2).
        let qos = plan.random.pick(&[13.2, 25.6, 39.5, 78.9, 300.0]);
        plan.host.flows[noisy].now.kib = 512.0;
        plan.during(rows.clone(), move |_, moment| moment.flows[noisy].qos_iops = Some(qos));
    }
    let each = plan.random.between(0.3, 3.0);
    for flow in plan.flows(device, Controller::Pvscsi, &vec![Demand::Closed(1.0); victims]) {
        plan.host.flows[flow].now.demand = Demand::Closed(each.ceil());
    }
    let share = threads / (threads + each.ceil() * victims as f64);
    let vm = plan.host.flows[noisy].vm;
    let mut places = plan.host.places(device);
    places.extend([plan.host.vms[vm].name.clone(), plan.host.disk(noisy)]);
    let severity = format!("{:.0} % of the commands", share * 100.0);
    let measure = if share > 0.8 {
        if throttled { Measure::Wait(device) } else { Measure::Suffer(device) }
    } else {
        Measure::Stated(Sure::May)
    };
    plan.claim(Claim {
        causes: vec!["noisy-neighbour"],
        places,
        rows: rows.clone(),
        severity,
        measure,
    });
    if throttled {
        let places = plan.host.places(device);
        let severity = "QoS of one virtual disk".to_owned();
        plan.claim(Claim {
            causes: vec!["array-qos", "array-slow"],
            places,
            rows,
            severity,
            measure: Measure::Stated(Sure::May),
        });
    }
}
