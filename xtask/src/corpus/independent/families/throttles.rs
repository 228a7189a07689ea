//! Depths that move by themselves: adaptive throttling, and Storage I/O Control.

use crate::corpus::independent::host::{Controller, Demand};
use crate::corpus::independent::plan::Plan;
use crate::corpus::independent::truth::{Claim, Measure};
use crate::corpus::score::Sure;

/// QUEUE FULL from the array: "on trigger the depth becomes half; recovery is +1 at a time"
/// (section 4), down to 1 and a minute to climb back [MISC 50mu]. Competition knows two depths only,
/// so several depths on the way up are its mark.
pub(super) fn adaptive(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.device(media);
    let base = plan.random.pick(&[32, 64, 64, 128, 254]);
    plan.host.devices[device].depth = base;
    plan.host.devices[device].dsnro = base;
    let rows = plan.window(2);
    let climb = plan.random.within(1..6) as u32;
    let again = plan.random.between(0.0, 0.3);
    let mut depth = base;
    let mut depths = Vec::new();
    for row in rows.clone() {
        let cut = row == rows.start || plan.random.chance(again);
        let halves = if cut { plan.random.within(1..4) as u32 } else { 0 };
        depth = if cut { (depth >> halves).max(1) } else { (depth + climb).min(base) };
        depths.push(depth);
    }
    let wanted = Demand::Closed((f64::from(base) * plan.random.between(0.7, 0.95)).round());
    let flow = plan.flows(device, Controller::Nvme, &[wanted])[0];
    plan.host.flows[flow].varies = plan.random.between(0.0, 0.1);
    let between = depths.iter().filter(|depth| **depth != base && **depth != 32);
    let values: std::collections::BTreeSet<_> = between.collect();
    let told = values.len() >= 3;
    let severity = format!("DQLEN {base} to {}", depths.iter().min().unwrap_or(&base));
    let start = rows.start;
    let taken = depths.clone();
    plan.during(rows.clone(), move |row, moment| moment.devices[device].depth = taken[row - start]);
    let places = plan.host.places(device);
    let causes = if told {
        vec!["adaptive-throttling"]
    } else {
        vec!["adaptive-throttling", "sioc", "device-depth", "dsnro"]
    };
    plan.claim(Claim { causes, places, rows, severity, measure: Measure::Wait(device) });
}

/// SIOC "ignores DSNRO and moves DQLEN itself" above its congestion threshold: 30 ms by default, 5
/// to 100 (array-and-control.md section 3), by PARDA's law (2) with gamma 0.8 every 4 s, not below 4
/// slots. It is certain where the depth took several values while the latency stood at or above the
/// default threshold.
pub(super) fn sioc(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.device(media);
    let base = plan.random.pick(&[64, 64, 128, 254]);
    plan.host.devices[device].depth = base;
    let rows = plan.window(3);
    let threshold_ms = plan.random.pick(&[30.0, 30.0, 30.0, 15.0, 10.0]);
    let steps = plan.host.interval_s.div_ceil(4);
    let most = f64::from(base);
    let mut width = most;
    let mut states = Vec::new();
    // What all hosts together leave: the width at which the array answers in the threshold.
    let mut room = plan.random.between(0.1, 0.7) * most;
    for _ in rows.clone() {
        room = (room * (0.25 * plan.random.normal()).exp()).clamp(5.0, most * 0.8);
        let davg_ms = threshold_ms * width / room;
        for _ in 0..steps {
            let beta = 1.0;
            width = (0.2 * width + 0.8 * (room + beta)).clamp(4.0, most);
        }
        states.push((width.round() as u32, davg_ms.min(3.0 * threshold_ms)));
    }
    let threads = (f64::from(base) * plan.random.between(0.5, 0.9)).round();
    let count = plan.random.within(1..4);
    let each = Demand::Closed((threads / count as f64).ceil());
    for flow in plan.flows(device, Controller::Nvme, &vec![each; count]) {
        plan.host.flows[flow].varies = plan.random.between(0.0, 0.1);
    }
    plan.host.devices[device].dsnro = base;
    let values: std::collections::BTreeSet<_> = states.iter().map(|(depth, _)| *depth).collect();
    let late = states.iter().map(|(_, davg_ms)| davg_ms).sum::<f64>() / states.len() as f64;
    let told = values.len() >= 3 && late >= 30.0;
    let severity =
        format!("DQLEN {base} to {}, DAVG {late:.0} ms", values.first().map_or(0, |least| *least));
    let start = rows.start;
    plan.during(rows.clone(), move |row, moment| {
        let (depth, davg_ms) = states[row - start];
        let now = &mut moment.devices[device];
        (now.depth, now.service_ms, now.servers) = (depth, davg_ms, 1e9);
    });
    let places = plan.host.places(device);
    let (causes, sure) = if told {
        (vec!["sioc"], Sure::Certain)
    } else {
        (vec!["sioc", "adaptive-throttling", "device-depth"], Sure::May)
    };
    plan.claim(Claim { causes, places, rows, severity, measure: Measure::Stated(sure) });
}
