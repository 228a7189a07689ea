//! The I/Os of applications over a window, where they are other than the commands of their virtual disks: a guest's
//! driver cuts what is more than its adapter takes, and its block layer merges and cuts.

use counters::{IoTotals, VdiskCounters, nanos_to_millis};
use levels::Application;
use scenario::Scenario;
use sim::WindowView;

/// By how much they must differ: what is under way where a window begins or ends is cut by that too.
const DIFFERS: f64 = 0.005;

/// Those of all hosts; `views` has one view for each.
pub(crate) fn of(scenario: &Scenario, views: &[WindowView]) -> Option<Application> {
    let mut sum = Sum::default();
    for (host, view) in scenario.hosts.iter().zip(views) {
        let disks = view.counters.vdisks.iter().zip(&view.counters_before.vdisks);
        for (disk, (now, then)) in disks.enumerate() {
            let has_layer = host.blocks.get(disk).is_some_and(Option::is_some);
            sum.add(now, then, has_layer);
        }
    }
    let seconds = views.first().map(|view| view.counters.at.0 - view.counters_before.at.0)?;
    sum.application(seconds as f64 / counters::SECOND as f64)
}

/// What some virtual disks did.
#[derive(Default)]
struct Sum {
    commands: f64,
    ios: f64,
    timed: u64,
    nanos: u64,
    /// Whether the I/Os of one are merged or cut by its guest's block layer.
    has_layer: bool,
}

impl Sum {
    /// Adds a virtual disk between two instants.
    fn add(&mut self, now: &VdiskCounters, then: &VdiskCounters, has_layer: bool) {
        let io = now.io.iter().zip(&then.io).map(|(now, then): (&IoTotals, _)| now.since(then));
        let commands = io.map(|io| io.commands).sum::<u64>() as f64;
        let timed = now.total.since(&then.total).count();
        // A block layer counts what it takes in, and of what it gives out the commands alone.
        let ios = if has_layer {
            let since = |of: fn(&VdiskCounters) -> u64| of(now).saturating_sub(of(then)) as f64;
            let taken = since(|disk| disk.offered) - since(|disk| disk.lost);
            taken.min(commands + since(|disk| disk.merged))
        } else {
            timed as f64
        };
        self.has_layer |= has_layer && differ(ios, commands);
        self.commands += commands;
        self.ios += ios;
        self.timed += timed;
        self.nanos += now.total_ns.wrapping_sub(then.total_ns);
    }

    fn application(&self, seconds: f64) -> Option<Application> {
        let ms = || nanos_to_millis(self.nanos as f64 / self.timed as f64);
        let is_timed = !self.has_layer && self.timed > 0;
        differ(self.ios, self.commands)
            .then(|| Application { iops: self.ios / seconds, ms: is_timed.then(ms) })
    }
}

fn differ(ios: f64, commands: f64) -> bool {
    (ios - commands).abs() > DIFFERS * commands
}
