//! The device queue: one limit (DQLEN) for everything that a host sends to a device.
//!
//! ```text
//!   base  = Device Max Queue Depth         (the driver's value, or lowered with -m)
//!   comp  = competing ? min(base, DSNRO) : base
//!   DQLEN = min(comp, adaptive throttling, depth found by latency)
//! ```
//!
//! [S0, S1; reference `esxi-host-stack.md` section 2.1]. Lowering DQLEN below ACTV recalls
//! nothing: dispatch pauses until ACTV has fallen.
//!
//! After TASK SET FULL no more is sent than the array has, and with each command that completes one
//! more (ruling: no source says how ESXi paces it; as initiators do [T10-QF]). So a completion is followed by one refusal at
//! most, and a queue that is deeper than the array never breaks over it as a whole. When nothing is
//! outstanding, `Scsi.ScsiRestartStalledQueueLatency` passes before one is tried [LAMW].

use alloc::boxed::Box;

use counters::{DeviceCounters, DeviceId, DeviceKind, IoTotals, PathId, Sense, Status, Time};

use crate::{
    Event, Output, Sink,
    codec::{choices, records},
    knee::Knee,
    path::{Path, Selector},
    sched::Sched,
    sioc::Sioc,
    slab::{Io, State},
    throttle::Throttle,
    vscsi::{Entrant, Vdisk},
    world::World,
};

/// A device. Its limit in force is `counters.depth`; `counters.active` and `counters.queued` are
/// the sums of its virtual disks and added up when read.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) counters: DeviceCounters,
    /// Commands holding a slot (ACTV).
    pub(crate) active: u32,
    /// Slots given so far, and how many were when DQLEN was last cut below ACTV.
    pub(crate) taken: u64,
    pub(crate) taken_at_cut: u64,
    /// Commands waiting for one (QUED).
    pub(crate) queued: u32,
    pub(crate) kind: DeviceKind,
    /// What `-m` lowered the depth to; `u32::MAX` leaves it to the driver.
    pub(crate) max_depth_set: u32,
    /// Device Max Queue Depth: the depth without competition.
    pub(crate) base: u32,
    /// What `-O` set; `None` leaves it to the host's options.
    pub(crate) dsnro_set: Option<u32>,
    pub(crate) dsnro: u32,
    pub(crate) competition: Competition,
    pub(crate) throttle: Throttle,
    /// The depth found by latency, where that is switched on.
    pub(crate) knee: Option<Box<Knee>>,
    /// The window of Storage I/O Control, where that is switched on.
    pub(crate) sioc: Option<Box<Sioc>>,
    pub(crate) sched: Sched,
    pub(crate) selector: Selector,
    /// Whether the order was chosen for this device rather than by the host's options.
    pub(crate) policy_set: bool,
    /// Commands that may be outstanding after TASK SET FULL; `u32::MAX` where there was none.
    pub(crate) window: u32,
    /// Slots that may be taken: the least of DQLEN, the window and what a probe lets out.
    pub(crate) room: u32,
    /// The earliest moment for which a wake-up is set.
    pub(crate) wake_at: Time,
    /// The least time that an adapter of it or a guest leaves a command; 0 when none has a limit.
    pub(crate) timeout_ns: u64,
    /// What it does without a path.
    pub(crate) outage: Outage,
    /// Whether a command that ended well may mean more than that a slot is free: the array has been
    /// full, results are counted, latencies are, or there is a choice of paths. Asked once of each.
    pub(crate) has_rare: bool,
    /// What its virtual disks have counted, by direction, and no path has.
    pub(crate) failed: Option<Box<[IoTotals; 3]>>,
    /// Whether the next command starts the timer for what is overdue, and for when it is set.
    pub(crate) needs_watch: bool,
    pub(crate) watch_at: Time,
    /// Whether it was detached.
    pub(crate) is_gone: bool,
}

/// What a device does without a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    /// It has one.
    None,
    /// All I/O waits, that of the host until then; for ever where `Misc.APDHandlingEnable` is 0.
    Apd { until: Time },
    /// The host's own I/O fails.
    TimedOut,
    /// All I/O fails.
    Lost(Sense),
}

impl Device {
    /// It is attached again, as a fresh one; what it has counted and its paths stay.
    pub(crate) fn take_over(&mut self, fresh: Self) {
        (self.kind, self.dsnro_set, self.policy_set) =
            (fresh.kind, fresh.dsnro_set, fresh.policy_set);
        (self.max_depth_set, self.dsnro, self.is_gone) = (u32::MAX, fresh.dsnro, false);
        (self.competition, self.throttle, self.sched) =
            (fresh.competition, fresh.throttle, fresh.sched);
        (self.knee, self.sioc) = (fresh.knee, fresh.sioc);
        self.selector.take_over(fresh.selector);
        self.refresh_rare();
    }

    /// Its commands may take so long, or for ever, by one of those who say so.
    pub(crate) fn allow(&mut self, timeout_ns: Option<u64>) {
        let so_far = Some(self.timeout_ns).filter(|nanos| *nanos > 0);
        self.timeout_ns = so_far.into_iter().chain(timeout_ns).min().unwrap_or(0);
    }

    /// The limit in force.
    pub(crate) fn effective_depth(&self) -> u32 {
        let given = self.given_depth();
        self.knee.as_ref().map_or(given, |knee| knee.limit(given))
    }

    /// The limit without what latency says.
    fn given_depth(&self) -> u32 {
        self.throttle.limit(self.shared_depth())
    }

    /// Storage I/O Control, where it does more than count.
    pub(crate) fn control(&self) -> Option<&Sioc> {
        self.sioc.as_deref().filter(|sioc| sioc.controls())
    }

    /// What Storage I/O Control leaves of the depth, or without it competition.
    fn shared_depth(&self) -> u32 {
        if let Some(sioc) = self.control() {
            return sioc.limit(self.base);
        }
        let competing = self.competition.is_competing && self.kind != DeviceKind::Nfs;
        if competing { self.base.min(self.dsnro) } else { self.base }
    }

    /// Puts the limit in force that follows from its state. `id` is its own.
    #[cold]
    pub(crate) fn refresh_depth(&mut self, id: DeviceId, now: Time, out: &mut impl Sink) {
        let depth = self.effective_depth();
        if depth == self.counters.depth {
            return self.refresh_room();
        }
        let engaged = self.competition.is_competing
            && self.control().is_none()
            && self.shared_depth() < self.counters.depth;
        self.counters.engagements += u64::from(engaged);
        self.counters.depth = depth;
        if self.active > depth {
            self.taken_at_cut = self.taken;
        }
        self.counters.depth_over_time.set(depth, now);
        self.refresh_room();
        out.put(Output::Event(Event::DepthChanged { device: id, depth }));
    }

    /// A command that has entered waits for a slot, in the queue of its world.
    #[inline(always)]
    pub(crate) fn line_up(
        &mut self,
        worlds: &mut [World],
        ios: &mut [Io],
        Entrant { io, world, seat }: Entrant,
        now: Time,
    ) {
        self.queued += 1;
        let record = &mut ios[io as usize];
        record.state = State::Queued;
        (record.since, record.entered, record.seat) = (now, now, seat);
        self.sched.push(worlds, ios, world, io);
    }

    /// A command of a virtual disk waits once more, at the front.
    pub(crate) fn line_up_again(
        &mut self,
        vdisk: &mut Vdisk,
        worlds: &mut [World],
        ios: &mut [Io],
        io: u32,
        now: Time,
    ) {
        vdisk.counters.queued.enter(now);
        self.queued += 1;
        let record = &mut ios[io as usize];
        (record.state, record.since) = (State::Queued, now);
        self.sched.push_again(worlds, ios, vdisk.world, io, now);
    }

    /// Whether something is to be done now that a command lined up.
    #[inline]
    pub(crate) const fn is_wanted(&self) -> bool {
        self.needs_watch || self.has_free_slot()
    }

    /// Whether something waits that nothing holds but, perhaps, its IOPS limit.
    #[inline]
    pub(crate) const fn has_free_slot(&self) -> bool {
        self.active < self.room && self.queued > 0 && self.selector.has_path()
    }

    /// A command of `contender` takes a slot. `true` when competition began or ended with it.
    #[inline]
    pub(crate) fn take_slot(&mut self, contender: u16) -> bool {
        self.queued -= 1;
        self.active += 1;
        self.taken += 1;
        self.competition.count(contender)
    }

    /// Slots that may be taken, anew.
    pub(crate) fn refresh_room(&mut self) {
        self.room = self.limits_now();
        self.refresh_rare();
    }

    pub(crate) fn limits_now(&self) -> u32 {
        let held = self.knee.as_ref().map_or(u32::MAX, |knee| knee.hold());
        self.counters.depth.min(self.window).min(held)
    }

    /// Whether latency says how deep it is; what was found so far is forgotten where it changes.
    pub(crate) fn find_depth(&mut self, on: bool) {
        if on != self.knee.is_some() {
            self.knee = on.then(Box::default);
        }
    }

    /// Forgets the depth that was found, as a reboot does.
    pub(crate) fn forget_depth(&mut self) {
        self.knee = self.knee.take().map(|_| Box::default());
        self.sioc.iter_mut().for_each(|sioc| sioc.forget());
    }

    /// Looks again whether there is anything rare about it.
    pub(crate) fn refresh_rare(&mut self) {
        self.has_rare = self.has_anything_rare();
    }

    pub(crate) const fn has_anything_rare(&self) -> bool {
        self.window != u32::MAX
            || self.throttle.is_on()
            || self.knee.is_some()
            || self.selector.asks()
    }

    /// One path more; `id` is its own.
    pub(crate) fn add_path(&mut self, id: PathId, path: &mut Path) {
        self.selector.add(id, path);
        self.refresh_rare();
    }

    /// The array has room for one command more than so far, and perhaps for all.
    pub(crate) fn make_room(&mut self) {
        let window = self.window.saturating_add(1);
        self.window = if window < self.counters.depth { window } else { u32::MAX };
        self.refresh_room();
    }

    fn move_window(&mut self, status: Status, is_good: bool) {
        self.counters.queue_full += u64::from(!is_good);
        if status.is_final() {
            self.make_room();
        } else if self.window != u32::MAX || status == Status::TaskSetFull {
            self.window = self.active;
            self.refresh_room();
        }
    }

    /// Counts the result of a command that was `sent` then for adaptive throttling and for the depth
    /// found by latency, and moves the window of a full array: a refusal makes no room there. `true`
    /// when the limit is to be worked out anew.
    #[inline]
    pub(crate) fn count_result(&mut self, status: Status, sent: Time, now: Time) -> bool {
        (self.has_rare || status != Status::Good) && self.count_rare_result(status, sent, now)
    }

    #[cold]
    fn count_rare_result(&mut self, status: Status, sent: Time, now: Time) -> bool {
        let is_good = !matches!(status, Status::TaskSetFull | Status::Busy);
        if self.window != u32::MAX || !is_good {
            self.move_window(status, is_good);
        }
        let is_throttled = self.throttle.count(is_good, self.base);
        let is_found = status == Status::Good && self.count_latency(sent, now);
        is_throttled || is_found
    }

    fn count_latency(&mut self, sent: Time, now: Time) -> bool {
        let (out, most) = (self.active + 1, self.given_depth());
        let is_limited = self.queued > 0 && out >= self.counters.depth;
        let knee = self.knee.as_mut();
        knee.is_some_and(|knee| knee.count((sent, now), (out, is_limited), most))
    }
}

/// Whether worlds compete on a device, by the two rules of the VMkernel: so many switches between
/// VMs engage, so many commands in a row from one VM release [LAMW; section 2.3]. The release
/// also resets the count of switches.
#[derive(Clone, Debug)]
pub(crate) struct Competition {
    pub(crate) is_competing: bool,
    /// Who sent the last command; [`Competition::NOBODY`] before the first. Above that, whether limits changed since.
    last: u32,
    run: u64,
    switches: u64,
    /// `Disk.SchedQControlVMSwitches` and `Disk.SchedQControlSeqReqs`; [`u64::MAX`] where they are 0
    /// and never engage or never release.
    switches_max: u64,
    run_max: u64,
}

impl Competition {
    const NOBODY: u32 = u32::MAX;
    const CHANGED: u32 = 1 << u16::BITS;

    pub(crate) fn new(switches_max: u32, run_max: u32) -> Self {
        let mut new = Self {
            is_competing: false,
            last: Self::NOBODY,
            run: 0,
            switches: 0,
            switches_max: 0,
            run_max: 0,
        };
        new.set_limits(switches_max, run_max);
        new
    }

    /// Whether it has counted to less than `most`.
    pub(crate) const fn is_sound(&self, most: u64) -> bool {
        self.run < most && self.switches < most
    }

    /// Changes what engages and what releases; 0 is never.
    pub(crate) const fn set_limits(&mut self, switches_max: u32, run_max: u32) {
        const fn or_never(limit: u32) -> u64 {
            if limit == 0 { u64::MAX } else { limit as u64 }
        }
        self.switches_max = or_never(switches_max);
        self.run_max = or_never(run_max);
        // A run that is long enough already releases with its next command.
        if self.run >= self.run_max {
            self.run = self.run_max - 1;
        }
        self.last |= Self::CHANGED;
    }

    /// Counts a command that entered the device queue from `contender`. `true` when competition
    /// began or ended with it.
    #[inline]
    pub(crate) fn count(&mut self, contender: u16) -> bool {
        let contender = u32::from(contender);
        if self.last != contender {
            return self.count_other(contender);
        }
        self.run += 1;
        // Beyond that it has released what there was.
        self.run == self.run_max && self.turn()
    }

    /// The same of another one than before, or with other limits.
    #[inline]
    fn count_other(&mut self, contender: u32) -> bool {
        if self.last == contender | Self::CHANGED {
            self.run += 1;
        } else {
            // The first command of all switches from nobody.
            self.switches += u64::from(self.last != Self::NOBODY);
            self.run = 1;
        }
        self.last = contender;
        if self.run == self.run_max {
            return self.turn();
        }
        self.switches >= self.switches_max && !self.is_competing && self.turn()
    }

    /// Enough switches engage, and a run that is long enough releases, whatever engaged.
    #[cold]
    fn turn(&mut self) -> bool {
        let before = self.is_competing;
        self.is_competing = true;
        if self.run >= self.run_max {
            self.is_competing = false;
            self.switches = 0;
        }
        self.is_competing != before
    }

    /// Forgets everything, as a reboot does.
    pub(crate) const fn reset(&mut self) {
        (self.is_competing, self.last, self.run, self.switches) = (false, Self::NOBODY, 0, 0);
    }
}

choices! {
    Outage {
        0 None,
        1 Apd { until },
        2 TimedOut,
        3 Lost(sense),
    }
}

records! {
    Device {
        counters, active, taken, taken_at_cut, queued, kind, max_depth_set, base, dsnro_set, dsnro,
        competition, throttle, knee, sioc, sched, selector, policy_set, window, room, wake_at, timeout_ns,
        outage, has_rare, failed, needs_watch, watch_at, is_gone,
    }
    Competition { is_competing, last, run, switches, switches_max, run_max }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(commands: impl IntoIterator<Item = u16>) -> Competition {
        let mut competition = Competition::new(6, 128);
        for vm in commands {
            competition.count(vm);
        }
        competition
    }

    #[test]
    fn six_switches_engage() {
        assert!(!after([1, 2, 1, 2, 1, 2]).is_competing);
        assert!(after([1, 2, 1, 2, 1, 2, 1]).is_competing);
    }

    #[test]
    fn one_vm_alone_never_competes() {
        assert!(!after([1; 1000]).is_competing);
    }

    #[test]
    fn a_run_of_128_releases_and_switches_count_anew() {
        let engaged = [1, 2, 1, 2, 1, 2, 1];
        let released = |rest: &[u16]| {
            let run = core::iter::repeat_n(2, 128);
            after(engaged.into_iter().chain(run).chain(rest.iter().copied()))
        };
        assert!(after(engaged.into_iter().chain([2; 127])).is_competing);
        assert!(!released(&[]).is_competing);
        assert!(!released(&[1, 2, 1, 2, 1]).is_competing);
        assert!(released(&[1, 2, 1, 2, 1, 2]).is_competing);
    }

    #[test]
    fn new_limits_hold_with_the_next_command_whose_ever_it_is() {
        let mut competition = after([1, 2, 1, 2]);
        competition.set_limits(3, 128);
        assert!(!competition.is_competing);
        assert!(competition.count(2) && competition.is_competing);
        assert!(!competition.count(2) && competition.is_competing);
        competition.set_limits(3, 2);
        assert!(competition.count(2) && !competition.is_competing);
        assert!((0..9).all(|_| !competition.count(2)));
    }

    #[test]
    fn zero_disables_each_rule() {
        let mut never = Competition::new(0, 128);
        let mut forever = Competition::new(6, 0);
        for vm in [1, 2].into_iter().cycle().take(20).chain([1; 1000]) {
            never.count(vm);
            forever.count(vm);
        }
        assert!(!never.is_competing);
        assert!(forever.is_competing);
    }
}
