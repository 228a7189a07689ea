//! Paths and the policies that choose among them: fixed, most recently used, round robin by I/Os
//! or bytes, round robin by latency [ELA, DOC67, DOC70].
//!
//! A path takes as many commands as its driver's depth. As long as the device's limit is that of
//! one path, nothing waits here; it does when the limit is the sum over several.
//!
//! Active-optimised paths are used; others only when no such path is up, but for those to a controller
//! that takes the device over when it is asked. When the array says of a path that it is on standby, the
//! other controller has the device, and the host goes there. A device without a path holds its queue
//! (all paths down).

use alloc::vec::Vec;

use counters::{AdapterId, DeviceId, Direction, GateCounters, IoTotals, PathId, Time};

use knobs::PathPolicy;

use crate::{
    PathAccess, PathConfig,
    codec::records,
    slab::{Io, Queue, State},
};

/// A path.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Its `active` commands hold a slot of the path, with the driver or at the adapter. What has ended
    /// on the first path of a device is only there where it waited at a gate: the rest is what the
    /// device's virtual disks have counted and no other path has (`Stack::complete_paths`).
    pub(crate) counters: GateCounters,
    /// Whether it was the first path of its device.
    pub(crate) is_first: bool,
    pub(crate) stays: Stays,
    /// What waits for a slot of it.
    pub(crate) queue: Queue,
    pub(crate) device: DeviceId,
    pub(crate) adapter: AdapterId,
    pub(crate) up: bool,
    /// Whether the array says over it that the device is gone for good.
    pub(crate) is_lost: bool,
    /// Whether it was detached.
    pub(crate) is_gone: bool,
    /// How often it went down, modulo 65,536: what was sent before the last time is lost. An
    /// instant would not tell what was sent before from what is sent after it.
    pub(crate) losses: u16,
    access: PathAccess,
    /// What the latency policy measured in its present evaluation, or in the last one.
    sampled: u32,
    sampled_ns: u64,
    /// Whether the latency policy leaves it out until it has measured again.
    is_left_out: bool,
}

/// How a command goes from a path on to the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) path: PathId,
    pub(crate) adapter: AdapterId,
    pub(crate) losses: u16,
}

/// The commands that a path was chosen for, and where those that left it again spent their time.
/// Its adapter's are the sums over its paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stays {
    pub(crate) taken: u64,
    pub(crate) left: u64,
    /// Waiting for the path.
    pub(crate) path_ns: u64,
    /// Waiting at its adapter.
    pub(crate) adapter_ns: u64,
    /// With the driver.
    pub(crate) driver_ns: u64,
}

impl Path {
    pub(crate) fn new(config: &PathConfig) -> Self {
        Self {
            counters: GateCounters::default(),
            is_first: false,
            stays: Stays::default(),
            queue: Queue::default(),
            device: config.device,
            adapter: config.adapter,
            up: true,
            is_lost: false,
            is_gone: false,
            losses: 0,
            access: config.access,
            sampled: 0,
            sampled_ns: 0,
            is_left_out: false,
        }
    }

    /// `id` is its own.
    #[inline]
    pub(crate) const fn way(&self, id: PathId) -> Way {
        Way { path: id, adapter: self.adapter, losses: self.losses }
    }

    #[inline]
    pub(crate) const fn has_room(&self) -> bool {
        self.counters.active.now() < self.counters.depth
    }

    /// Whether a command may pass without waiting behind others.
    #[inline]
    pub(crate) const fn is_open(&self) -> bool {
        self.queue.is_empty() && self.has_room()
    }

    /// A command that was given a slot of its device takes one of the path, or waits for it.
    #[inline(always)]
    pub(crate) fn enter(&mut self, ios: &mut [Io], io: u32, now: Time) -> bool {
        self.stays.taken += 1;
        let is_open = self.is_open();
        if is_open {
            self.counters.active.enter(now);
        } else {
            self.line_up(ios, io, now);
        }
        is_open
    }

    #[cold]
    fn line_up(&mut self, ios: &mut [Io], io: u32, now: Time) {
        ios[io as usize].state = State::AtPath;
        self.counters.queued.enter(now);
        self.queue.push(ios, io);
    }

    pub(crate) const fn is_idle(&self) -> bool {
        self.counters.active.now() == 0 && self.queue.is_empty()
    }

    pub(crate) fn is_from_to(&self, config: &PathConfig) -> bool {
        (self.adapter, self.device) == (config.adapter, config.device)
    }

    /// It is attached again.
    pub(crate) const fn come_back(&mut self, config: &PathConfig) {
        (self.is_lost, self.is_gone) = (false, false);
        self.access = config.access;
    }

    /// Counts an I/O that ended here after waiting at gates for so long.
    pub(crate) fn count(&mut self, direction: Direction, ended: &IoTotals, gate_ns: u64) {
        let io = &mut self.counters.io.get_mut()[direction as usize];
        if self.is_first {
            io.queue_ns = io.queue_ns.wrapping_add(gate_ns);
        } else {
            io.add(&IoTotals { queue_ns: gate_ns, ..*ended });
        }
    }

    /// Whether what it has sampled is less than the most.
    pub(crate) const fn is_sound(&self) -> bool {
        self.sampled < u32::MAX
    }

    /// What is on it, or waits for it.
    const fn pending(&self) -> u32 {
        self.counters.active.now() + self.counters.queued.now()
    }

    /// The mean latency of what was sampled.
    const fn mean_ns(&self) -> Option<u64> {
        self.sampled_ns.checked_div(self.sampled as u64)
    }

    /// Whether the device may be reached over it.
    pub(crate) const fn is_usable(&self) -> bool {
        self.up && !self.is_lost && !self.is_gone
    }

    /// Whether it went down after a command was sent over it.
    pub(crate) const fn has_lost(&self, io: &Io) -> bool {
        io.losses != self.losses
    }
}

/// Which path of a device is next.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    paths: Vec<PathId>,
    policy: PathPolicy,
    /// The one in use; `None` when none is usable.
    in_use: Option<PathId>,
    ios: u32,
    bytes: u64,
    /// I/Os that the latency policy still sends before it measures.
    settling: u32,
    /// Those that it still waits for to measure, and one more until it has drawn its conclusions.
    probes_left: u32,
    next_evaluation: Time,
    /// Whether optimized and standby paths have changed places, because the array's other controller has the device.
    is_away: bool,
    /// How often this host had it taken over.
    takeovers: u32,
}

impl Selector {
    pub(crate) fn new(paths: Vec<PathId>, policy: PathPolicy) -> Self {
        Self {
            paths,
            policy,
            in_use: None,
            ios: 0,
            bytes: 0,
            settling: 0,
            probes_left: 0,
            next_evaluation: Time::ZERO,
            is_away: false,
            takeovers: 0,
        }
    }

    pub(crate) fn set_policy(&mut self, policy: PathPolicy, all: &[Path]) {
        if self.policy == PathPolicy::Fixed {
            // Its first path is where the others begin as well, but for one that it had activated.
            self.in_use = None;
        }
        self.policy = policy;
        self.next_evaluation = Time::ZERO;
        (self.settling, self.probes_left) = (0, 0);
        self.refresh(all);
    }

    /// The policy is another one's.
    pub(crate) fn take_over(&mut self, other: Self) {
        *self = Self { paths: core::mem::take(&mut self.paths), ..other };
    }

    /// One path more; `id` is its own.
    pub(crate) fn add(&mut self, id: PathId, path: &mut Path) {
        path.is_first = self.paths.is_empty();
        self.paths.push(id);
    }

    /// Whether the one in use can be used, and it has counted to less than the most.
    pub(crate) fn is_sound(&self, all: &[Path]) -> bool {
        let usable = |path| {
            let at = self.paths.iter().position(|known| *known == path);
            at.is_some_and(|at| self.is_usable(at, all))
        };
        self.in_use.is_none_or(usable) && self.ios < u32::MAX && self.bytes < u64::MAX >> 1
    }

    /// Whether a choice of paths asks about each command that ends.
    pub(crate) const fn asks(&self) -> bool {
        self.paths.len() > 1
    }

    pub(crate) fn paths(&self) -> &[PathId] {
        &self.paths
    }

    pub(crate) const fn has_path(&self) -> bool {
        self.in_use.is_some()
    }

    /// The position in `paths` of the one in use.
    fn current(&self) -> Option<usize> {
        self.paths.iter().position(|path| Some(*path) == self.in_use)
    }

    /// Goes on to the next usable one, if one is in use.
    fn turn_on(&mut self, all: &[Path]) {
        if let Some(at) = self.current() {
            self.turn_to(self.next_usable(at, all, |_| true));
        }
    }

    fn turn_to(&mut self, at: Option<usize>) {
        self.in_use = at.map(|at| self.paths[at]);
    }

    /// Leaves a path that does not answer for another one that is as good. Not for one to the array's other
    /// controller: which controller has a device is no matter of one command, and to take it over and back takes longer.
    pub(crate) fn avoid(&mut self, path: PathId, all: &mut [Path]) {
        // Of several that do not answer the one that was left last is left out.
        self.paths.iter().for_each(|other| all[other.index()].is_left_out = *other == path);
        if let Some(at) = self.current().filter(|_| self.in_use == Some(path)) {
            let access = self.access(path, all);
            let as_good = |at: usize| self.access(self.paths[at], all) == access;
            self.turn_to(self.next_usable(at, all, as_good).or(Some(at)));
        }
    }

    /// The array says of a path that its other controller has the device. The host goes there; where it has no path
    /// to it, it has the device brought to where it has one.
    #[cold]
    pub(crate) fn follow(&mut self, path: PathId, all: &[Path]) {
        if self.access(path, all) == PathAccess::Optimized {
            self.change_sides(all);
        }
        if self.in_use.is_some_and(|path| self.access(path, all) == PathAccess::Standby) {
            self.takeovers = self.takeovers.wrapping_add(1);
            self.change_sides(all);
        }
    }

    fn change_sides(&mut self, all: &[Path]) {
        (self.is_away, self.in_use) = (!self.is_away, None);
        self.refresh(all);
    }

    /// How often this host had the device taken over by the array's other controller; `None` where each command
    /// does, for the policy does not look at who has it.
    pub(crate) fn takeovers(&self) -> Option<u32> {
        (self.policy != PathPolicy::Fixed).then_some(self.takeovers)
    }

    /// How good a path is now.
    fn access(&self, path: PathId, all: &[Path]) -> PathAccess {
        match (all[path.index()].access, self.is_away) {
            (PathAccess::Optimized, true) => PathAccess::Standby,
            (PathAccess::Standby, true) => PathAccess::Optimized,
            (access, _) => access,
        }
    }

    /// Looks again at which paths are up. Fixed goes back to its first; the others stay where
    /// they are as long as that path is usable.
    pub(crate) fn refresh(&mut self, all: &[Path]) {
        let stays = self.current().filter(|&at| self.is_usable(at, all));
        let kept = if self.policy == PathPolicy::Fixed { None } else { stays };
        let first = || (0..self.paths.len()).find(|&at| self.is_usable(at, all));
        self.turn_to(kept.or_else(first));
    }

    /// The path of the next command.
    ///
    /// # Panics
    /// When there is none: a device without a path gives no slots.
    #[inline(always)]
    pub(crate) fn choose(&mut self, all: &mut [Path], now: Time, io: &Io) -> PathId {
        let chosen = match self.policy {
            PathPolicy::Fixed | PathPolicy::MostRecentlyUsed => self.in_use,
            _ => self.choose_in_turn(all, now, io.data()),
        };
        chosen.expect("a device without a path gives no slots")
    }

    fn choose_in_turn(&mut self, all: &mut [Path], now: Time, bytes: u32) -> Option<PathId> {
        if let PathPolicy::Latency { sampling_ios, eval_ns } = self.policy {
            return self.choose_by_latency(all, now, sampling_ios, eval_ns);
        }
        let path = self.in_use?;
        if let PathPolicy::RoundRobin { iops, bytes: limit } = self.policy {
            self.ios += 1;
            self.bytes += u64::from(bytes);
            if self.ios >= iops || self.bytes >= limit {
                (self.ios, self.bytes) = (0, 0);
                self.turn_on(all);
            }
        }
        Some(path)
    }

    /// Measures a completed command for the latency policy.
    pub(crate) fn measure(&mut self, path: &mut Path, device_ns: u64) {
        if self.settling == 0 && self.probes_left > 1 {
            self.probes_left -= 1;
            path.sampled += 1;
            path.sampled_ns = path.sampled_ns.saturating_add(device_ns);
        }
    }

    /// A command goes where the fewest are, but for paths that are much slower. Every `eval_ns` that is measured:
    /// none is left out until all have as many, and then they are used in turn until `sampling_ios` for each have ended.
    fn choose_by_latency(
        &mut self,
        all: &mut [Path],
        now: Time,
        sampling_ios: u32,
        eval_ns: u64,
    ) -> Option<PathId> {
        if self.paths.len() == 1 {
            return self.in_use;
        }
        if now >= self.next_evaluation {
            self.next_evaluation = now + eval_ns;
            self.begin_evaluation(all, sampling_ios);
        }
        if self.settling == 0 && self.probes_left == 1 {
            self.probes_left = 0;
            self.leave_out(all);
        }
        if self.settling == 0 && self.probes_left > 0 {
            self.turn_on(all);
        } else {
            self.settling = self.settling.saturating_sub(1);
            self.turn_to(self.least_pending(all));
        }
        self.in_use
    }

    /// A path that was left out would be measured without a queue, and others with theirs: so what is out when it
    /// begins makes room first for as many that are spread over all paths, and these end before anything is measured.
    #[cold]
    fn begin_evaluation(&mut self, all: &mut [Path], sampling_ios: u32) {
        let (mut usable, mut pending) = (0, 0_u32);
        for at in 0..self.paths.len() {
            usable += u32::from(self.is_usable(at, all));
            let path = &mut all[self.paths[at].index()];
            (path.sampled, path.sampled_ns, path.is_left_out) = (0, 0, false);
            pending = pending.saturating_add(path.pending());
        }
        self.settling = pending.saturating_mul(2);
        self.probes_left = sampling_ios.saturating_mul(usable).saturating_add(1);
    }

    /// Paths that took more than [`MUCH_SLOWER`] times the best one are left out, and those from which nothing came.
    #[cold]
    fn leave_out(&self, all: &mut [Path]) {
        let best = self.paths.iter().filter_map(|path| all[path.index()].mean_ns()).min();
        let Some(most_ns) = best.map(|ns| ns.saturating_mul(MUCH_SLOWER)) else { return };
        for path in &self.paths {
            let path = &mut all[path.index()];
            path.is_left_out = path.mean_ns().is_none_or(|ns| ns > most_ns);
        }
    }

    /// Of the usable paths the one with the fewest commands, and of these the fastest; one that is left out if
    /// there is no other.
    fn least_pending(&self, all: &[Path]) -> Option<usize> {
        let rank = |at: &usize| {
            let path = &all[self.paths[*at].index()];
            (path.is_left_out, path.pending(), path.mean_ns())
        };
        (0..self.paths.len()).filter(|&at| self.is_usable(at, all)).min_by_key(rank)
    }

    fn next_usable(
        &self,
        current: usize,
        all: &[Path],
        is_meant: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let count = self.paths.len();
        let mut others = (1..=count).map(|step| (current + step) % count);
        others.find(|&at| is_meant(at) && self.is_usable(at, all))
    }

    fn is_usable(&self, at: usize, all: &[Path]) -> bool {
        let path = &all[self.paths[at].index()];
        let optimized_is_up = || {
            let mut usable = self.paths.iter().filter(|id| all[id.index()].is_usable());
            usable.any(|id| self.access(*id, all) == PathAccess::Optimized)
        };
        let is_good = match (self.access(self.paths[at], all), self.policy) {
            (PathAccess::Optimized, _) | (PathAccess::Standby, PathPolicy::Fixed) => true,
            (PathAccess::Standby, PathPolicy::MostRecentlyUsed) => {
                self.in_use == Some(self.paths[at])
            }
            _ => false,
        };
        path.is_usable() && (is_good || !optimized_is_up())
    }
}

/// The latency policy leaves out a path that takes longer by more than this (ruling; of 16 samples of
/// equal paths with exponential times one in 18 pairs is so far apart by chance).
const MUCH_SLOWER: u64 = 2;

records! {
    Path {
        counters, is_first, stays, queue, device, adapter, up, is_lost, is_gone, losses, access,
        sampled, sampled_ns, is_left_out,
    }
    Stays { taken, left, path_ns, adapter_ns, driver_ns }
    Selector {
        paths, policy, in_use, ios, bytes, settling, probes_left, next_evaluation, is_away, takeovers,
    }
}
