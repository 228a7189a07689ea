//! Two controllers, each with its target ports: a volume is one's own, and the other's as long as that is
//! out of order (reference `array-and-control.md`, section 7.2).
//!
//! ```text
//!   path --> port of its controller ---------> owner's gate --> answer
//!            port of the other one -- extra ---^      no owner: until the other one has taken over
//! ```
//!
//! What a command waits here is added to its service, as time on a link is.

use alloc::boxed::Box;

use counters::{SECOND, Time};

use crate::{
    config::{Controllers, VolumeConfig},
    fabric::Held,
};

/// The controllers of an array at work.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    config: Controllers,
    volumes: Box<[Owned]>,
    handed_over: u64,
}

/// Whose a volume is.
#[derive(Clone, Copy, Debug)]
struct Owned {
    owner: usize,
    /// When the last one to take it over had done so.
    ready: Time,
}

impl Pair {
    pub(crate) fn new(config: &Controllers, volumes: &[VolumeConfig]) -> Self {
        let owned = |volume: &VolumeConfig| Owned {
            owner: usize::from(volume.owner & 1),
            ready: Time::ZERO,
        };
        Self { config: *config, volumes: volumes.iter().map(owned).collect(), handed_over: 0 }
    }

    /// How often a volume went over because a command for it came to the other one.
    pub(crate) const fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// A command for a volume arrives at a port: who works on it, and how long it is held before that; or when
    /// its host gives it up, because nobody is there.
    #[cold]
    pub(crate) fn hold(&mut self, arrive: Time, port: usize, volume: u32) -> Result<Held, Time> {
        let at = Controllers::of_port(port);
        let volume = &mut self.volumes[volume as usize];
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
        let taking_ns = volume.ready.0.saturating_sub(arrive.0);
        Ok(Held { by: owner, ns: taking_ns.saturating_add(extra_ns) })
    }
}
