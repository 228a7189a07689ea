//! Two controllers, each with its target ports: a volume is one's own, and the other's as long as that is
//! out of order (reference `array-and-control.md`, section 7.2).
//!
//! ```text
//!   path --> port of its controller ---------> owner's gate --> answer
//!            port of the other one -- extra ---^      no owner: until the other one has taken over
//! ```
//!
//! Without ALUA (active/passive) one of the two answers for a volume at a time. A command that comes to the other one has it
//! brought there, or is told where it is, as its host wants it: that is what sets off path thrash, and what ends it.
//!
//! What a command waits here is added to its service, as time on a link is.

use alloc::boxed::Box;
use core::mem;

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
    /// Whether it goes over to the other one then, for whose commands came meanwhile.
    leaves: bool,
}

impl Owned {
    /// Who has it, or will have it when it has gone over.
    const fn goes_to(&self) -> usize {
        if self.leaves { 1 - self.owner } else { self.owner }
    }

    /// When a controller has it for a command that comes to it, where only the one that has it may answer; and
    /// whether it goes over for that: whatever waits at a controller is answered when it has come there.
    fn bring(&mut self, at: usize, arrive: Time, takeover_ns: u64) -> (Time, bool) {
        if self.leaves && arrive >= self.ready {
            *self = Self { owner: 1 - self.owner, ready: self.ready + takeover_ns, leaves: false };
        }
        if self.owner == at {
            (self.ready, false)
        } else if arrive >= self.ready {
            *self = Self { owner: at, ready: arrive + takeover_ns, leaves: false };
            (self.ready, true)
        } else {
            (self.ready + takeover_ns, !mem::replace(&mut self.leaves, true))
        }
    }
}

/// Why nobody works on a command.
pub(crate) enum Unheld {
    /// The controller is out of order: its host gives it up then.
    Lost(Time),
    /// The other controller has the volume.
    Standby,
}

impl Pair {
    pub(crate) fn new(config: &Controllers, volumes: &[VolumeConfig]) -> Self {
        let owned = |volume: &VolumeConfig| Owned {
            owner: usize::from(volume.owner & 1),
            ready: Time::ZERO,
            leaves: false,
        };
        Self { config: *config, volumes: volumes.iter().map(owned).collect(), handed_over: 0 }
    }

    /// How often a volume went over because a command for it came to the other one.
    pub(crate) const fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// A command for a volume arrives at a port: who works on it, and how long it is held before that.
    #[cold]
    pub(crate) fn hold(
        &mut self,
        arrive: Time,
        port: usize,
        volume: u32,
        follows: bool,
    ) -> Result<Held, Unheld> {
        let at = Controllers::of_port(port);
        let volume = &mut self.volumes[volume as usize];
        let Controllers { extra_ns, takeover_ns, outages, dead_after_ns, active_passive, .. } =
            self.config;
        if outages[at].holds(arrive) {
            let known = outages[at].from + dead_after_ns;
            // A host that takes the path to be up all the same does not ask without an end at one instant.
            let lost = if arrive < known { known } else { arrive + dead_after_ns.max(SECOND) };
            return Err(Unheld::Lost(lost));
        }
        if active_passive && follows && volume.goes_to() != at {
            return Err(Unheld::Standby);
        }
        let (owner, ready) = if active_passive {
            let (ready, goes_over) = volume.bring(at, arrive, takeover_ns);
            self.handed_over += u64::from(goes_over);
            (at, ready)
        } else {
            let outage = outages[volume.owner];
            let is_out = outage.holds(arrive);
            if is_out || arrive >= outage.until {
                // One that was out of order itself begins when it is back.
                let other = outages[1 - volume.owner];
                let begins = if arrive < other.until { Time::ZERO } else { other.until };
                let since = if is_out { outage.from.max(begins) } else { outage.until };
                volume.ready = since + takeover_ns;
            }
            (if is_out { 1 - volume.owner } else { volume.owner }, volume.ready)
        };
        let extra_ns = if owner == at { 0 } else { extra_ns };
        let taking_ns = ready.0.saturating_sub(arrive.0);
        Ok(Held { by: owner, ns: taking_ns.saturating_add(extra_ns) })
    }
}
