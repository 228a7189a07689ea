//! Two controllers, each with its target ports: a volume is one's own, and the other's as long as that is
//! out of order (reference `array-and-control.md`, section 7.2).
//!
//! ```text
//!   path --> port of its controller ---------> owner's gate --> answer
//!            port of the other one -- extra ---^      no owner: until the other one has taken over
//! ```
//!
//! What a command waits here is added to its service, as time on a link is.

use counters::{SECOND, Time};

use crate::{config::Controllers, fabric::Link};

/// The controllers of an array at work.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    config: Controllers,
    /// What each does a second, where that has a limit.
    gates: Option<[Link; 2]>,
    handed_over: u64,
}

/// Whose a volume is.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    owner: usize,
    /// When the last one to take it over had done so.
    ready: Time,
}

impl Owned {
    pub(crate) fn by(owner: u8) -> Self {
        Self { owner: usize::from(owner & 1), ready: Time::ZERO }
    }
}

impl Pair {
    pub(crate) fn new(config: &Controllers) -> Self {
        let gate = config.iops.map(|iops| Link::new(u64::from(iops)));
        Self { config: *config, gates: gate.map(|gate| [gate.clone(), gate]), handed_over: 0 }
    }

    /// How often a volume went over because a command for it came to the other one.
    pub(crate) const fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// A command for a volume arrives at a port: for how many nanoseconds it is held beside its service; or
    /// when its host gives it up, because nobody is there.
    pub(crate) fn hold(
        &mut self,
        arrive: Time,
        port: usize,
        volume: &mut Owned,
    ) -> Result<u64, Time> {
        let at = Controllers::of_port(port);
        let Controllers { extra_ns, takeover_ns, outages, dead_after_ns, active_passive, .. } =
            self.config;
        if outages[at].holds(arrive) {
            let known = outages[at].from + dead_after_ns;
            // A host that takes the path to be up all the same does not ask without an end at one instant.
            return Err(if arrive < known { known } else { arrive + dead_after_ns.max(SECOND) });
        }
        let owner = if active_passive {
            if volume.owner != at {
                self.handed_over += 1;
                *volume = Owned { owner: at, ready: volume.ready.max(arrive) + takeover_ns };
            }
            at
        } else {
            let outage = outages[volume.owner];
            let is_out = outage.holds(arrive);
            if is_out || arrive >= outage.until {
                let since = if is_out { outage.from } else { outage.until };
                volume.ready = since + takeover_ns;
            }
            if is_out { 1 - volume.owner } else { volume.owner }
        };
        let extra_ns = if owner == at { 0 } else { extra_ns };
        let gate = self.gates.as_mut().map_or(0, |gates| gates[owner].send(arrive, 1));
        let taking_ns = volume.ready.0.saturating_sub(arrive.0);
        Ok(taking_ns.saturating_add(extra_ns).saturating_add(gate))
    }
}
