//! A wait below the host that is known in the mean, as that for a policy, a command window or a link is in a run: when it
//! counts, and for how many commands.

use levels::little;

use super::{ALIKE, Case, changes, number, slow};
use crate::{Change, Device, Flow, Spell, Threshold, facts::share};

/// The part of the time below the host from which such a wait counts.
pub(super) const COUNTS: f64 = 0.1;
/// The part of it from which it is what makes a device slow.
pub(super) const MOST: f64 = 0.5;
/// The share of a link in use from which it is what holds the devices, whatever else takes its time.
const FULL: f64 = 0.9;
/// What is to be left alone where commands wait for a link.
pub(super) const NO_DEEPER: &str =
    "Do not raise the depth of devices, nor DSNRO: more commands only wait for the same link.";

/// The samples in which commands take longer than they do without it.
pub(super) struct KnownWait {
    pub(super) spell: Spell,
    /// What they take below the host then, in milliseconds.
    pub(super) davg_ms: f64,
    /// What they take without it.
    pub(super) free_ms: f64,
    /// Mean commands that wait.
    pub(super) inside: f64,
}

impl KnownWait {
    /// That of a row on a device, of so many milliseconds in the mean of all its samples.
    pub(super) fn of(device: &Device<'_>, flow: &Flow<'_>, wait_ms: f64) -> Option<Self> {
        let free_ms = (flow.per_command(&device.busy, Flow::davg)? - wait_ms).max(0.0);
        let counts = |s| flow.davg(s).is_some_and(|davg| davg - free_ms >= COUNTS * davg);
        let spell = device.spell(counts)?;
        let davg_ms = flow.per_command(&spell.samples, Flow::davg)?;
        let inside = little(flow.mean_rate(&spell.samples)?, davg_ms - free_ms);
        Some(Self { spell, davg_ms, free_ms, inside })
    }

    /// That of a whole device, where it counts in the mean as well.
    pub(super) fn of_device(device: &Device<'_>, wait_ms: f64) -> Option<Self> {
        let mean_ms = device.flow.per_command(&device.busy, Flow::davg)?;
        (wait_ms >= COUNTS * mean_ms).then(|| Self::of(device, &device.flow, wait_ms))?
    }
}

/// What is known of a link over some samples: the share of it in use in each, and how long a command is on it in the mean
/// and would be alone, in milliseconds.
pub(super) struct LinkTime<'a> {
    pub(super) busy: &'a [f64],
    pub(super) time_ms: f64,
    pub(super) own_ms: f64,
}

/// A device whose commands are on a link, of which `L` is known.
pub(super) struct OnLink<'a, L> {
    pub(super) device: &'a Device<'a>,
    pub(super) link: &'a L,
    pub(super) spell: Spell,
    pub(super) davg_ms: f64,
    /// The part of it on the link.
    pub(super) link_ms: f64,
    /// The part of that in which its own data are moved.
    own_ms: f64,
    /// The share of the link in use.
    pub(super) busy: f64,
    /// Mean commands on the link.
    pub(super) inside: f64,
}

impl<'a, L> OnLink<'a, L> {
    /// As far as it counts: the samples in which commands take longer than they do without the link.
    pub(super) fn of(device: &'a Device<'a>, link: &'a L, time: &LinkTime<'_>) -> Option<Self> {
        let KnownWait { spell, davg_ms, free_ms, inside } =
            KnownWait::of_device(device, time.time_ms)?;
        let (link_ms, busy) = (davg_ms - free_ms, share(time.busy, &spell.samples)?);
        let least = if busy >= FULL { COUNTS } else { MOST };
        let own_ms = time.own_ms.min(link_ms);
        let held = Self { device, link, spell, davg_ms, link_ms, own_ms, busy, inside };
        (link_ms >= least * davg_ms).then_some(held)
    }

    /// Mean commands that wait for others on the link.
    fn waiting(&self) -> f64 {
        self.inside * (1.0 - self.own_ms / self.link_ms)
    }

    /// Whether its commands have the link for themselves, and take that long there all the same.
    pub(super) fn is_alone(&self) -> bool {
        self.link_ms <= ALIKE.end() * self.own_ms
    }

    /// Whether the device is slow because of the link, and not of the array as well.
    pub(super) fn explains(&self, case: &Case<'_>) -> bool {
        self.link_ms >= MOST * self.davg_ms && !case.is_array_full(self.device, &self.spell.samples)
    }

    /// What the link, which is called so, does to `whose` commands.
    pub(super) fn told(&self, name: &str, whose: &str) -> String {
        let latency = if self.device.is_nfs { "GAVG" } else { "DAVG" };
        let [busy, davg_ms, link_ms] = [100.0 * self.busy, self.davg_ms, self.link_ms].map(number);
        let size_kib = self.device.flow.size_kib(&self.spell.samples).filter(|_| self.is_alone());
        let (is, why) = match size_kib.map(number) {
            Some(size_kib) => (
                format!("slow for commands of that size, and {busy} % of the time in use"),
                format!("which is what its own {size_kib} KiB take"),
            ),
            None => (format!("{busy} % full"), "behind what else goes over it".into()),
        };
        format!(
            "T{} is {is}: of the {davg_ms} ms that a command of {whose} takes below the host ({latency}) it is {link_ms} \
             ms there, {why}.",
            &name[1..]
        )
    }

    /// What is to be left alone where the commands of a full device queue are on the link as well.
    pub(super) fn instead_of_deeper(&self, name: &str) -> Option<String> {
        (self.inside > 1.0).then(|| {
            format!(
                "Do not raise the depth: {} commands that have left the queue are on {name} already, and more would \
                 wait there.",
                number(self.inside)
            )
        })
    }
}

/// How many commands of some devices wait for others on one link; `None` where these are too few to count and no device
/// is slow.
pub(super) fn waiting<L>(case: &Case<'_>, held: &[OnLink<'_, L>]) -> Option<f64> {
    let least = held.iter().map(|held| held.device.limits.get(Threshold::Waiting));
    let least = least.fold(f64::INFINITY, f64::min);
    let is_slow = |held: &OnLink<'_, L>| {
        let davg_ms = |sample| held.device.flow.davg(sample);
        // What a run knows of a link is so of few commands as well.
        let excess_ms = |_: &Flow<'_>, s| Some(davg_ms(s)? - held.device.surely_slow_ms(s)?);
        held.device.flow.per_command(&held.spell.samples, excess_ms) >= Some(0.0)
            || slow::spell(case, held.device, &davg_ms, &|_| false).is_some()
    };
    let waiting = held.iter().map(OnLink::waiting).sum();
    (waiting >= least || held.iter().any(is_slow)).then_some(waiting)
}

/// What is left where commands have a link for themselves and are slow there.
pub(super) fn smaller(name: &str) -> Change {
    let what = format!(
        "Widen {name}, or have guests send smaller commands: no other command is in the way."
    );
    changes::look(what, Vec::new()).risking("Of smaller commands there are more.", "Set what was")
}
