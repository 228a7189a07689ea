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
    rows::{mean, quantile},
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
    /// The rate at which something in the host holds it while its device has free slots.
    pub held_at_iops: Option<u32>,
}

/// Depths of virtual disks as drivers have them [KB-PV, PVL, TBL].
const DEPTHS: [u32; 4] = [32, 64, 254, 256];
/// How near to such a depth a guest stands that is held by it.
const AT_DEPTH: f64 = 0.03;

impl GuestCalibration {
    /// What a guest asks for over `window`; its habit is looked for in runs of samples of like
    /// load, `levels`. `is_full` says whether its device has no slot free.
    pub(crate) fn of(
        tenant: &Tenant,
        window: &[usize],
        levels: &[Vec<usize>],
        interval_s: f64,
        is_full: bool,
    ) -> Self {
        let flow = &tenant.flow;
        let outstanding = mean(window.iter().map(|&s| flow.outstanding(s)));
        let habit = match tenant.is_system {
            true => Habit::Open,
            false => habit(tenant, levels, interval_s, is_full),
        };
        Self {
            vm: tenant.vm.clone(),
            disk: tenant.disk.clone(),
            controller: tenant.controller,
            habit,
            outstanding,
            iops: flow.mean_rate(window),
            size_kib: flow.size_kib(window),
            read_share: flow.read_share(window),
            capped_at: cap(tenant, window),
            held_at_iops: held(tenant, window, is_full),
        }
    }
}

/// The steadier of rate and outstanding commands, from sample to sample within a level of load.
fn habit(tenant: &Tenant, levels: &[Vec<usize>], interval_s: f64, is_full: bool) -> Habit {
    /// Below this part of the other's unrest, a number counts as the one that is kept.
    const STEADIER: f64 = 0.6;
    /// Pairs of samples that are enough to tell.
    const PAIRS: usize = 4;
    /// Standard deviation of what rounding to hundredths does to a latency, in milliseconds.
    const ROUNDING_MS: f64 = 0.0029;
    let flow = &tenant.flow;
    let (mut rates, mut stands, mut noise) = (Vec::new(), Vec::new(), Vec::new());
    for level in levels {
        let mut level = level.clone();
        level.sort_unstable();
        let busy = |s: usize| flow.rate[s] > 0.0 && flow.gavg[s] > 0.0;
        for pair in level.windows(2).filter(|p| p[1] == p[0] + 1 && busy(p[0]) && busy(p[1])) {
            let (a, b) = (pair[0], pair[1]);
            rates.push((flow.rate[b] / flow.rate[a]).ln().powi(2));
            stands.push((flow.outstanding(b) / flow.outstanding(a)).ln().powi(2));
            noise.push(2.0 * (ROUNDING_MS / flow.gavg[a]).powi(2));
        }
    }
    if rates.len() < PAIRS {
        return if is_full { Habit::Closed } else { Habit::Unknown };
    }
    let noise = mean(noise);
    let unrest = |squares: &[f64]| quantile(squares.iter().copied(), 0.5);
    // What comes at random differs by at least so much from sample to sample.
    let commands = mean(levels.iter().flatten().map(|&s| flow.rate[s])) * interval_s;
    let chance = 0.45 * 2.0 / commands.max(1.0);
    let (rate, stand) = (unrest(&rates), unrest(&stands));
    let clear_stand = (stand - 0.45 * noise).max(0.0);
    if clear_stand < STEADIER * STEADIER * rate && rate > noise * 0.1 {
        Habit::Closed
    } else if rate < STEADIER * STEADIER * clear_stand || (rate >= 0.5 * chance && stand > rate) {
        Habit::Open
    } else if is_full {
        Habit::Closed
    } else {
        Habit::Unknown
    }
}

/// The depth at which it stands, when it does so most of the time.
fn cap(tenant: &Tenant, window: &[usize]) -> Option<u32> {
    let depths = match tenant.controller {
        Some(Controller::Pvscsi) => &DEPTHS[1..3],
        Some(Controller::LsiSas | Controller::LsiParallel) => &DEPTHS[..1],
        Some(Controller::Nvme) => &DEPTHS[3..],
        Some(_) => return None,
        None => &DEPTHS[..3],
    };
    let near = |depth: u32, sample: usize| {
        (tenant.flow.outstanding(sample) / f64::from(depth) - 1.0).abs() <= AT_DEPTH
    };
    depths.iter().copied().find(|&depth| {
        let held = window.iter().filter(|&&sample| near(depth, sample)).count();
        held > 0 && held * 2 >= window.len()
    })
}

/// The rate at which something in the host holds a guest: it waits in the VMkernel while its
/// device has free slots, which only an IOPS limit does [API: enforced even when uncongested].
fn held(tenant: &Tenant, window: &[usize], is_full: bool) -> Option<u32> {
    /// Mean commands that wait.
    const WAITING: f64 = 1.0;
    /// Part of its commands that wait.
    const PART: f64 = 0.3;
    let flow = tenant.world.as_ref()?;
    let waiting = mean(window.iter().map(|&s| flow.waiting(s)));
    let outstanding = mean(window.iter().map(|&s| flow.outstanding(s)));
    let rate = tenant.flow.mean_rate(window);
    let is_held = !is_full && waiting >= WAITING && waiting >= PART * outstanding && rate >= 1.0;
    // A large command counts as one for each begun 32 KiB.
    let cost = (tenant.flow.size_kib(window) / 32.0).ceil().max(1.0);
    is_held.then(|| (rate * cost).round().clamp(1.0, 1e9) as u32)
}
