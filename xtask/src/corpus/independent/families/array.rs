//! What the array does: a limit that it enforces, and slowness.

use crate::corpus::independent::host::{Controller, Demand, Media};
use crate::corpus::independent::plan::Plan;
use crate::corpus::independent::truth::{Claim, Measure};
use crate::corpus::score::Sure;

/// The fewest parallel servers of a published fit: ten spindles (array-and-control.md section 1).
const LEAST_SERVERS: f64 = 10.0;

/// QoS of the array, by injected latency: "throttling acts as added latency, not as rejection", and a
/// throttled command keeps its slot (array-and-control.md section 6). It is told from slowness where
/// the rate stays while what is outstanding moves, far below what an array that answers so quickly
/// at rest can do: N / S with the fewest servers known. With steady threads any closed loop has a
/// flat rate, and without rows at rest an array at its knee looks the same: either name is right.
pub(super) fn qos(plan: &mut Plan) {
    let device = plan.volume(Media::Flash, 256);
    plan.host.rows = plan.host.rows.max(12);
    let rows = if plan.random.chance(0.7) { 4..plan.host.rows } else { plan.window(5) };
    let rest_ms = plan.host.devices[device].service_ms;
    let count = plan.random.within(1..4);
    let threads = plan.random.between(12.0, 60.0);
    let wanted = threads * count as f64;
    let slow_ms = plan.random.log_between(f64::max(5.0 * rest_ms, 1.0), 40.0);
    let cap = (wanted / slow_ms * 1e3).round().clamp(100.0, 60_000.0);
    let moves = plan.random.chance(0.7);
    for flow in plan.flows(device, Controller::Nvme, &vec![Demand::Open(0.0); count]) {
        plan.load(rows.clone(), flow, Demand::Closed(threads.round()));
        plan.host.flows[flow].varies = if moves { plan.random.between(0.3, 0.5) } else { 0.0 };
    }
    plan.during(rows.clone(), move |_, moment| moment.devices[device].cap_iops = Some(cap));
    let places = plan.host.places(device);
    let severity =
        format!("{cap}/s; DAVG about {:.1} ms, {rest_ms:.2} ms at rest", wanted / cap * 1e3);
    let rest_seen = plan.host.rows > rows.len() + 2;
    let told = moves && rest_seen && wanted / cap * 1e3 > 2.0 && rows.len() >= 6;
    let (causes, measure) = if told && cap * rest_ms / 1e3 < LEAST_SERVERS {
        (vec!["array-qos"], Measure::Stated(Sure::Certain))
    } else {
        (vec!["array-qos", "array-slow"], Measure::Answer(device))
    };
    plan.claim(Claim { causes, places, rows, severity, measure });
}

/// QoS of the array without a quiet hour: what tells of it is another volume behind the same adapter that
/// is answered at once, and the rate. Completions that nobody regulates scatter by the root of their
/// number; a policy lets as many through in each interval (array-and-control.md 6.4: one bucket for each
/// volume, FIFO), of all VMs together: rows in which it scattered would be those of a slow array. Where the
/// device is late by every source's measure, slowness is as right a name.
pub(super) fn qos_peer(plan: &mut Plan) {
    let device = plan.volume(Media::Flash, 1023);
    let peer = plan.volume(Media::Flash, 256);
    plan.host.rows = plan.host.rows.max(12);
    let rows = 1..plan.host.rows;
    let cap = plan.random.log_between(500.0, 100_000.0).round();
    let round = 10_f64.powf(cap.log10().floor());
    let cap = if plan.random.chance(0.5) { (cap / round).round() * round } else { cap };
    let slow_ms = plan.random.log_between(2.0, 20.0);
    let count = plan.random.within(1..4);
    let threads = (cap * slow_ms / 1e3 / count as f64).round().clamp(8.0, 250.0);
    let davg_ms = threads * count as f64 / cap * 1e3;
    for flow in plan.flows(device, Controller::Nvme, &vec![Demand::Closed(threads); count]) {
        plan.host.flows[flow].varies = 0.0;
    }
    let iops = plan.random.log_between(200.0, 3_000.0);
    let quick = plan.flows(peer, Controller::Nvme, &[Demand::Open(iops)])[0];
    plan.host.flows[quick].varies = 0.1;
    plan.during(rows.clone(), move |_, moment| moment.devices[device].cap_iops = Some(cap));
    let places = plan.host.places(device);
    let peer_ms = plan.host.devices[peer].service_ms;
    let severity = format!("{cap}/s; DAVG about {davg_ms:.1} ms, {peer_ms:.2} ms beside it");
    let outstanding = threads * count as f64;
    let told = davg_ms > 6.0 * peer_ms && davg_ms > 3.0 && outstanding > 20.0 && davg_ms < 10.0;
    let (causes, measure) = match told {
        true => (vec!["array-qos"], Measure::Stated(Sure::Certain)),
        false => (vec!["array-qos", "array-slow"], Measure::Stated(Sure::May)),
    };
    plan.claim(Claim { causes, places, rows, severity, measure });
}

/// A volume that takes fewer commands than the device sends, and answers TASK SET FULL to more: "array
/// queue full ... the host must hold and retry" while adaptive throttling is off, as it is by default
/// [KB-QF]. The device has slots free, its DQLEN stays, and what is there stands at what the volume
/// takes, while completions scatter by the root of their number. Whether they do is not seen in a few
/// rows: there a limit of the host looks alike.
pub(super) fn refused(plan: &mut Plan) {
    let media = plan.media();
    let device = plan.volume(media, 64);
    let depth = plan.random.pick(&[64, 128, 254]);
    plan.host.devices[device].depth = depth;
    plan.host.devices[device].dsnro = depth;
    let rows = plan.window(6);
    let takes = plan.random.within(6..(depth as usize * 3 / 4)) as u32;
    let count = plan.random.within(1..4);
    let wanted = f64::from(takes) * plan.random.between(1.3, 4.0);
    let each = (wanted / count as f64).ceil();
    for flow in plan.flows(device, Controller::Nvme, &vec![Demand::Open(0.0); count]) {
        plan.load(rows.clone(), flow, Demand::Closed(each));
        plan.host.flows[flow].varies = 0.0;
    }
    plan.during(rows.clone(), move |_, moment| moment.devices[device].takes = takes);
    let severity = format!("takes {takes} of {depth}, {wanted:.0} wanted");
    let places = plan.host.places(device);
    let measure = Measure::Wait(device);
    plan.claim(Claim { causes: vec!["host-wait"], places, rows, severity, measure });
}

/// An array that answers late: its service got slower, or its load came to the knee. Every source
/// names it above 25 ms; on flash a tenfold step counts before ([S0]: "1.4 ms is high for an AFA").
pub(super) fn slow(plan: &mut Plan) {
    let media = plan.media();
    let rows = plan.window(2);
    let late_ms = plan.random.log_between(if media == Media::Flash { 3.0 } else { 14.0 }, 150.0);
    let count = plan.random.pick(&[1, 1, 1, 2, 4]);
    let mut places = Vec::new();
    let mut first = 0;
    for _ in 0..count {
        let device = plan.deep_device(media, 256);
        nfs(plan, device);
        first = device;
        let knee = plan.random.chance(0.3);
        load(plan, device, late_ms, knee);
        let wander: Vec<f64> = rows.clone().map(|_| (0.15 * plan.random.normal()).exp()).collect();
        let start = rows.start;
        plan.during(rows.clone(), move |row, moment| {
            let now = &mut moment.devices[device];
            let at_rest = now.service_ms;
            now.service_ms = late_ms * wander[row - start];
            if knee {
                // The other hosts of the array leave few servers to this one.
                now.service_ms = at_rest * wander[row - start];
                now.servers = 1.0;
            }
        });
        places.extend(plan.host.places(device));
    }
    let severity = format!("{late_ms:.1} ms on {count} devices");
    plan.claim(Claim {
        causes: vec!["array-slow"],
        places,
        rows,
        severity,
        measure: Measure::Answer(first),
    });
}

/// Load that does not itself fill a queue: arrivals, or enough threads that one server's queue lasts
/// `late_ms`.
fn load(plan: &mut Plan, device: usize, late_ms: f64, knee: bool) {
    let vms = plan.random.within(1..4);
    let rest_ms = plan.host.devices[device].service_ms;
    for flow in plan.flows(device, Controller::Nvme, &vec![Demand::Open(0.0); vms]) {
        let demand = if knee {
            Demand::Closed((late_ms / rest_ms / vms as f64).clamp(1.0, 60.0).round())
        } else {
            let outstanding = plan.random.log_between(2.0, 30.0) / vms as f64;
            Demand::Open(f64::max(outstanding / late_ms * 1e3, 80.0))
        };
        plan.host.flows[flow].now.demand = demand;
        plan.host.flows[flow].varies = plan.random.between(0.1, 0.3);
    }
}

/// One in ten is an NFS volume: GAVG alone (section 1.5).
fn nfs(plan: &mut Plan, device: usize) {
    if plan.random.chance(0.1) {
        let nouns = &mut plan.host.devices[device];
        nouns.name = format!("nfs-datastore-{device}");
        (nouns.nfs, nouns.depth) = (true, 65_536);
        nouns.paths.clear();
    }
}
