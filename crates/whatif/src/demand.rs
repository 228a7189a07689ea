//! What each guest asks for: how many commands it keeps outstanding, or how many it sends a
//! second, and whether its driver hides more.
//!
//! By Little's law a guest has CMDS/s times GAVG outstanding. One that keeps a number outstanding
//! is slower when it waits longer (closed); one that is driven from outside sends as many as it
//! is told and has more outstanding then (open). From sample to sample, the steadier of the two
//! numbers tells which it is.

use counters::Controller;
use serde::Serialize;

use crate::{
    observe::Tenant,
    rows::{Flow, mean, quantile},
};

/// How a guest answers to latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Habit {
    /// It keeps a number of commands outstanding: quicker answers make more commands.
    Closed,
    /// It sends a number of commands a second: quicker answers make fewer outstanding.
    Open,
    /// The recording does not tell.
    Unknown,
}

/// What one guest asks of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuestCalibration {
    /// The VM, or the process of a system world.
    pub vm: String,
    /// Its virtual disk, where known.
    pub disk: Option<String>,
    /// The type of its virtual adapter, where known.
    #[serde(skip)]
    pub controller: Option<Controller>,
    /// How it answers to latency.
    pub habit: Habit,
    /// Mean commands outstanding over the window.
    pub outstanding: f64,
    /// Commands a second over the window.
    pub iops: f64,
    /// KiB of a command; 0 when unknown.
    pub size_kib: f64,
    /// The share of reads, 0 to 1.
    pub read_share: f64,
    /// The depth at which its driver stands: it may want more than is seen.
    pub capped_at: Option<u32>,
    /// Whether it may stand there because it is sent more than it gets done: then it would be
    /// content with little more than it has.
    pub may_be_behind: bool,
    /// The rate at which something in the host holds it while its device has free slots.
    pub held_at_iops: Option<u32>,
}

/// Depths of virtual disks as drivers have them [KB-PV, PVL, TBL].
const DEPTHS: [u32; 4] = [32, 64, 254, 256];

impl GuestCalibration {
    /// What a guest asks for over `window`, of which `levels` are samples of like load. Of its
    /// device it is told whether no slot is free, and what others wait there.
    pub(crate) fn of(
        tenant: &Tenant,
        window: &[usize],
        levels: &[Vec<usize>],
        interval_s: f64,
        device: (bool, f64),
    ) -> Self {
        let flow = &tenant.flow;
        let capped_at = cap(tenant, levels);
        let free =
            |sample: &usize| !capped_at.is_some_and(|d| stands_at(d, flow.outstanding(*sample)));
        let free: Vec<usize> = window.iter().copied().filter(free).collect();
        let shown =
            if tenant.is_system { Some(Habit::Open) } else { habit(flow, &free, interval_s) };
        let assumed = if device.0 { Habit::Closed } else { Habit::Unknown };
        Self {
            vm: tenant.vm.clone(),
            disk: tenant.disk.clone(),
            controller: tenant.controller,
            habit: shown.unwrap_or(if capped_at.is_some() { Habit::Closed } else { assumed }),
            outstanding: mean(window.iter().map(|&s| flow.outstanding(s))),
            iops: flow.mean_rate(window),
            size_kib: flow.size_kib(window),
            read_share: flow.read_share(window),
            capped_at,
            may_be_behind: capped_at.is_some() && shown != Some(Habit::Closed),
            held_at_iops: held(tenant, window, interval_s, device),
        }
    }
}

/// The steadier of rate and outstanding commands, from sample to sample; `None` when neither is.
fn habit(flow: &Flow, samples: &[usize], interval_s: f64) -> Option<Habit> {
    /// Below this part of the other's unrest, a number counts as the one that is kept.
    const STEADIER: f64 = 0.36;
    /// Pairs of samples that are enough to tell.
    const PAIRS: usize = 4;
    /// The median of a squared normal variable, as a part of its mean.
    const MEDIAN: f64 = 0.455;
    /// Variance of what rounding to hundredths does to a latency, in square milliseconds.
    const ROUNDING: f64 = 0.01 * 0.01 / 12.0;
    let (mut rates, mut stands, mut rounding) = (Vec::new(), Vec::new(), Vec::new());
    let busy = |s: usize| flow.rate[s] > 0.0 && flow.gavg[s] > 0.0;
    for pair in samples.windows(2).filter(|p| p[1] == p[0] + 1 && busy(p[0]) && busy(p[1])) {
        let (a, b) = (pair[0], pair[1]);
        rates.push((flow.rate[b] / flow.rate[a]).ln().powi(2));
        stands.push((flow.outstanding(b) / flow.outstanding(a)).ln().powi(2));
        rounding.push(2.0 * ROUNDING / (flow.gavg[a] * flow.gavg[a]));
    }
    if rates.len() < PAIRS {
        return None;
    }
    let rounding = MEDIAN * mean(rounding);
    let unrest = |squares: &[f64]| quantile(squares.iter().copied(), 0.5);
    let (rate, stand) = (unrest(&rates), (unrest(&stands) - rounding).max(0.0));
    // What comes at random differs by at least so much from sample to sample.
    let commands = flow.mean_rate(samples) * interval_s;
    let chance = MEDIAN * 2.0 / commands.max(1.0);
    if stand < STEADIER * rate && rate > rounding {
        Some(Habit::Closed)
    } else if rate < STEADIER * stand || (2.0 * rate >= chance && stand > rate) {
        Some(Habit::Open)
    } else {
        None
    }
}

/// Whether a number of outstanding commands is that of a driver's depth.
pub(crate) fn stands_at(depth: u32, outstanding: f64) -> bool {
    const NEAR: f64 = 0.03;
    (outstanding / f64::from(depth) - 1.0).abs() <= NEAR
}

/// The depth at which it stands, when it does so in most of a level of load.
fn cap(tenant: &Tenant, levels: &[Vec<usize>]) -> Option<u32> {
    let depths = match tenant.controller {
        Some(Controller::Pvscsi) => &DEPTHS[1..3],
        Some(Controller::LsiSas | Controller::LsiParallel) => &DEPTHS[..1],
        Some(Controller::Nvme) => &DEPTHS[3..],
        Some(_) => return None,
        None => &DEPTHS[..3],
    };
    let held = |depth: u32, level: &Vec<usize>| {
        let at = level.iter().filter(|&&s| stands_at(depth, tenant.flow.outstanding(s))).count();
        at > 0 && at * 2 >= level.len()
    };
    depths.iter().copied().find(|&depth| levels.iter().any(|level| held(depth, level)))
}

/// The rate at which something in the host holds a guest: it waits in the VMkernel while its
/// device has free slots, or much longer than others on a full one and at a rate that no chance
/// touches. Only an IOPS limit does that [API: enforced even when uncongested]. `others_ms` is what
/// the others on its device wait.
fn held(
    tenant: &Tenant,
    window: &[usize],
    interval_s: f64,
    (is_full, others_ms): (bool, f64),
) -> Option<u32> {
    /// Mean commands that wait.
    const WAITING: f64 = 1.0;
    /// Part of its commands that wait.
    const PART: f64 = 0.3;
    /// How much longer it waits than others on a full device.
    const LONGER: f64 = 1.5;
    /// Commands by which its samples differ at most: less than chance does.
    const STEADY: f64 = 4.0;
    let flow = tenant.world.as_ref()?;
    let waiting = mean(window.iter().map(|&s| flow.waiting(s)));
    let outstanding = mean(window.iter().map(|&s| flow.outstanding(s)));
    let rate = tenant.flow.mean_rate(window);
    let waits = waiting >= WAITING && waiting >= PART * outstanding && rate >= 1.0;
    let wait_ms = flow.per_command(window, &flow.qavg);
    let rates = || window.iter().map(|&s| tenant.flow.rate[s]);
    let (low, high) = (quantile(rates(), 0.1), quantile(rates(), 0.9));
    let is_steady = (high - low) * interval_s <= STEADY;
    let alone = others_ms > 0.0 && wait_ms >= LONGER * others_ms && is_steady;
    // A large command counts as one for each begun 32 KiB.
    let cost = (tenant.flow.size_kib(window) / 32.0).ceil().max(1.0);
    (waits && (!is_full || alone)).then(|| (rate * cost).round().clamp(1.0, 1e9) as u32)
}
