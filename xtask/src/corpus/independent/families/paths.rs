//! Paths that are lost, and commands that are split on their way.

use crate::corpus::independent::host::{Adapter, Controller, Demand, Path};
use crate::corpus::independent::plan::Plan;
use crate::corpus::independent::truth::{Claim, Measure};
use crate::corpus::score::Sure;

/// A device with `count` paths over two adapters, in use.
pub(super) fn multipath(plan: &mut Plan, count: usize) -> usize {
    if plan.host.adapters.len() < 2 {
        let depth = plan.host.adapters[0].depth;
        plan.host.adapters.push(Adapter { name: "vmhba9".to_owned(), depth });
    }
    let media = plan.media();
    let device = plan.deep_device(media, 256);
    plan.host.devices[device].paths = (0..count)
        .map(|path| {
            let name =
                format!("{}:C0:T{}:L{device}", plan.host.adapters[path % 2].name, 4 + path / 2);
            Path { name, adapter: path % 2 }
        })
        .collect();
    let vms = plan.random.within(1..4);
    for flow in plan.flows(device, Controller::Pvscsi, &vec![Demand::Open(0.0); vms]) {
        plan.host.flows[flow].now.demand = Demand::Open(plan.random.log_between(80.0, 1500.0));
        plan.host.flows[flow].varies = plan.random.between(0.05, 0.2);
    }
    device
}

/// A path that carried its part stops while the device stays in use. Round robin uses every optimized
/// path (section 1.6), so one that falls silent in the middle of a capture is lost; with one path in
/// use, a move to another one with a pause is a failover ("30 to 60 s", section 12).
pub(super) fn path_down(plan: &mut Plan) {
    let count = plan.random.pick(&[2, 4, 4]);
    let device = multipath(plan, count);
    let robin = plan.random.chance(0.8);
    plan.host.devices[device].round_robin = robin;
    plan.host.rows = plan.host.rows.max(10);
    let start = plan.random.within(4..plan.host.rows - 4);
    let rows = start..plan.host.rows;
    let adapter_lost = robin && plan.random.chance(0.4);
    let lost: Vec<usize> = if adapter_lost { (0..count).step_by(2).collect() } else { vec![0] };
    let left = (count - lost.len()) as f64;
    let gone = lost.clone();
    plan.during(rows.clone(), move |_, moment| {
        for (path, share) in moment.devices[device].shares.iter_mut().enumerate() {
            *share = if gone.contains(&path) {
                0.0
            } else if robin {
                1.0 / left
            } else {
                f64::from(u8::from(path == 1))
            };
        }
    });
    let pause = !robin || plan.random.chance(0.3);
    let paused =
        start..(start + 30_usize.div_ceil(plan.host.interval_s as usize)).min(plan.host.rows - 2);
    let mut places = plan.host.places(device);
    places.extend(lost.iter().map(|path| {
        plan.host.adapters[plan.host.devices[device].paths[*path].adapter].name.clone()
    }));
    if pause {
        plan.during(paused.clone(), move |_, moment| moment.devices[device].silent = true);
        let causes = vec!["silence", "array-slow", "device-depth", "dsnro"];
        let severity = "30 s of failover".to_owned();
        plan.claim(Claim {
            causes,
            places: places.clone(),
            rows: paused.clone(),
            severity,
            measure: Measure::Stated(Sure::May),
        });
    }
    let seen = plan.host.rows - if pause { paused.end } else { start };
    let sure = if robin && seen >= 3 { Sure::Certain } else { Sure::May };
    let severity = format!("{} of {count} paths", lost.len());
    plan.claim(Claim {
        causes: vec!["path-down"],
        places,
        rows,
        severity,
        measure: Measure::Stated(sure),
    });
}

/// Controllers of an active/passive array that take a volume from each other: with one path in use at a time all I/O
/// jumps from one controller's to the other's, and each time every command waits until it has gone over [ELA: MRU
/// for active/passive arrays], so that the volume is never quick.
pub(super) fn path_thrash(plan: &mut Plan) {
    let device = multipath(plan, 2);
    plan.host.devices[device].round_robin = false;
    plan.host.rows = plan.host.rows.max(12);
    let rows = 0..plan.host.rows;
    let stays = plan.random.within(1..3);
    let slow_ms = plan.random.between(60.0, 150.0);
    plan.during(rows.clone(), move |row, moment| {
        let now = &mut moment.devices[device];
        now.service_ms = slow_ms;
        for (path, share) in now.shares.iter_mut().enumerate() {
            *share = f64::from(u8::from(row / stays % 2 == path));
        }
    });
    let places = plan.host.places(device);
    let severity = format!("{slow_ms:.0} ms, another path each {stays} rows");
    for (causes, sure) in [("path-thrash", Sure::Certain), ("array-slow", Sure::May)] {
        plan.claim(Claim {
            causes: vec![causes],
            places: places.clone(),
            rows: rows.clone(),
            severity: severity.clone(),
            measure: Measure::Stated(sure),
        });
    }
}

/// Large commands that the VMkernel splits: `Split Commands/sec` on paths and adapters (section
/// 2.7). No source gives a threshold; a parent waits for its last piece (2.7), so most commands split
/// beside a DAVG above 25 ms is certain, and the rest may be named.
pub(super) fn splitting(plan: &mut Plan) {
    plan.all_counters();
    let media = plan.media();
    let device = plan.deep_device(media, 256);
    let rows = plan.window(2);
    let part = if plan.random.chance(0.7) { 1.0 } else { plan.random.log_between(0.02, 1.0) };
    let flow = plan.flows(device, Controller::Lsi, &[Demand::Open(0.0)])[0];
    plan.host.flows[flow].now.kib = plan.random.pick(&[1024.0, 2048.0, 4096.0, 7168.0]);
    let iops = plan.random.log_between(30.0, 300.0);
    plan.load(rows.clone(), flow, Demand::Open(iops));
    // A large command takes as long as the array needs to move it.
    let mib_s = plan.random.log_between(30.0, 400.0);
    let move_ms = plan.host.flows[flow].now.kib / 1024.0 / mib_s * 1e3;
    plan.during(rows.clone(), move |_, moment| {
        moment.devices[device].split = part;
        moment.devices[device].service_ms = move_ms;
    });
    let mut places = plan.host.places(device);
    places.extend(plan.host.adapters.iter().map(|adapter| adapter.name.clone()));
    let sure = if part > 0.5 && move_ms > 25.0 { Sure::Certain } else { Sure::May };
    let severity =
        format!("{:.0} % of {iops:.0} commands a second, {move_ms:.0} ms each", part * 100.0);
    plan.claim(Claim {
        causes: vec!["splitting"],
        places,
        rows,
        severity,
        measure: Measure::Stated(sure),
    });
}
