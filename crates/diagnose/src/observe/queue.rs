//! A device queue: its limit over time, and whether it is full.

use counters::{Controller, Counter, EntityId, interval_s, sorted::Ordered};
use knobs::{Advanced, DSNRO, GuestOs, limits_of};
use levels::Measured;

use super::{
    Column, Device, Flow, Host, Spell, World, is_round, largest, little, mean, median,
    most_frequent, quantile, reaches,
};
use crate::{DeviceFacts, Threshold};

/// The columns of a queue, of a device or of a world on it.
#[derive(Clone, Debug)]
pub(crate) struct Queue<'a> {
    pub(crate) dqlen: Column<'a>,
    pub(crate) actv: Column<'a>,
    pub(crate) qued: Column<'a>,
}

impl<'a> Queue<'a> {
    /// The counters that it reads.
    pub(crate) const COUNTERS: &'static [Counter] =
        &[Counter::DeviceQDepth, Counter::ActiveCommands, Counter::QueuedCommands];

    pub(crate) fn of(recording: &'a Measured, id: EntityId) -> Self {
        let column = |counter| Column::of(recording, id, counter);
        Self {
            dqlen: column(Counter::DeviceQDepth),
            actv: column(Counter::ActiveCommands),
            qued: column(Counter::QueuedCommands),
        }
    }

    /// The limit in force.
    pub(crate) fn depth_at(&self, sample: usize) -> Option<f64> {
        self.dqlen.at(sample).filter(|depth| *depth > 0.0)
    }

    /// ACTV + QUED at the instant of the sample.
    pub(crate) fn sampled(&self, sample: usize) -> Option<f64> {
        Some(self.actv.at(sample)? + self.qued.at(sample)?)
    }

    /// Whether the sample caught every slot taken and somebody waiting. The columns are not read
    /// at one instant, so the last slots may seem free.
    pub(crate) fn is_caught_full(&self, sample: usize) -> bool {
        let actv = |depth| self.actv.at(sample).is_some_and(|actv| actv >= NEARLY * depth);
        self.depth_at(sample).is_some_and(actv)
            && self.qued.at(sample).is_some_and(|qued| qued >= 1.0)
    }
}

/// How the limit of a device moves over a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Motion {
    /// It stays.
    Steady,
    /// It goes between two values.
    TwoLevels { low: f64, high: f64 },
    /// It takes many values.
    Moving,
}

/// A device queue that is full while commands wait for it.
#[derive(Clone, Debug)]
pub(crate) struct FullQueue {
    pub(crate) spell: Spell,
    /// The limit that was in force in most of the samples in which it was reached.
    pub(crate) depth: f64,
    /// Mean commands waiting.
    pub(crate) waiting: f64,
    /// Commands in its slots and waiting while it is full.
    pub(crate) demand: f64,
    /// Mean wait of a command, in milliseconds.
    pub(crate) wait_ms: f64,
    /// VMs that send anything to it.
    pub(crate) tenants: usize,
    /// Those of them that compete for it.
    pub(crate) competitors: usize,
    /// Whether it is full in bursts that the samples mostly miss.
    pub(crate) in_bursts: bool,
    /// The share of the spell's samples that caught the queue full.
    pub(crate) caught: f64,
    /// Whether its limit goes to and fro, so that the samples mostly show a higher one than holds what waits.
    pub(crate) flaps: bool,
    /// What the limit was before it was set to this one, while the same VMs competed.
    pub(crate) was: Option<f64>,
}

impl FullQueue {
    /// What the way it was seen is worth: a factor for a confidence.
    pub(crate) fn weight(&self) -> f64 {
        let seen = match self.in_bursts {
            true if self.is_unseen() => 0.6,
            true => 0.8,
            false => 0.9 + 0.1 * self.caught,
        };
        seen * self.spell.weight()
    }

    /// Whether it is full in bursts of which no sample caught one.
    pub(crate) fn is_unseen(&self) -> bool {
        self.in_bursts && self.caught == 0.0
    }
}

/// What is lost of a number that has two decimals [CAP-A].
pub(crate) const ROUNDED: f64 = 0.01;

/// One VM that sends fewer commands than one in this many lets runs of the others pass that end
/// the competition (`Disk.SchedQControlSeqReqs` [LAMW]).
const RUN: f64 = Advanced::SchedQControlSeqReqs.info().default as f64;

/// Share of the slots from which all of them are taken.
const NEARLY: f64 = 0.95;
/// Mean use from which a queue counts as full without being caught so.
const FULL: f64 = 0.7;

impl Device<'_> {
    /// The wait for a slot of the device alone. A path's QAVG covers only the queues of path and
    /// adapter [CAP-A], and that part is not the device queue's.
    /// QAVG has mostly all of KAVG [QAVG], and so what commands wait there for their retries after
    /// conflicts.
    pub(crate) fn slot_wait_ms(&self, sample: usize) -> Option<f64> {
        let queued_ms =
            levels::slot_wait_ms(&self.flow, self.paths.iter().map(|path| &path.flow), sample)?;
        let for_no_retry = || {
            let retrying = self.faults.retrying(sample).filter(|retrying| *retrying > 0.0)?;
            Some(self.held_ms(sample)? - 1000.0 * retrying / self.flow.rate(sample)?)
        };
        Some(for_no_retry().map_or(queued_ms, |ms| ms.clamp(0.0, queued_ms)))
    }

    /// Whether most of what waits in a sample waits for retries: beside free slots the rest is none that is
    /// known to wait for slots, for the time to a retry is not known to the millisecond [ELA 2012-05].
    fn is_refused(&self, sample: usize) -> bool {
        const MOST: f64 = 0.5;
        let waiting = self.flow.waiting(sample).map(|waiting| MOST * waiting);
        reaches(self.faults.retrying(sample), waiting) && self.is_full(sample) == Some(false)
    }

    /// The wait at paths and adapters.
    pub(crate) fn path_wait_ms(&self, sample: usize) -> Option<f64> {
        levels::path_wait_ms(self.paths.iter().map(|path| &path.flow), sample)
    }

    /// Commands in the slots, by Little's law: the wait at path and adapter happens in a slot.
    pub(crate) fn in_slots(&self, sample: usize) -> Option<f64> {
        let behind = self.flow.davg(sample)? + self.path_wait_ms(sample)?;
        Some(little(self.flow.rate(sample)?, behind))
    }

    /// The mean share of its slots in use under load.
    pub(crate) fn mean_use(&self) -> Option<f64> {
        mean(self.busy.iter().map(|&s| Some(self.in_slots(s)? / self.queue.depth_at(s)?)))
    }

    /// Whether all of its slots are in use in the mean, but for the last that may seem free.
    pub(crate) fn is_used_up(&self) -> bool {
        self.mean_use() >= Some(NEARLY)
    }

    /// Whether every slot was taken, as caught by the sample or by Little's law; `None` where
    /// nothing tells.
    pub(crate) fn is_full(&self, sample: usize) -> Option<bool> {
        if self.queue.is_caught_full(sample) {
            return Some(true);
        }
        if self.stands_at.is_some() {
            return Some(false);
        }
        Some(self.in_slots(sample)? >= FULL * self.queue.depth_at(sample)?)
    }

    /// The same by the lowest limit that DQLEN showed at any time: between two samples it may have
    /// been in force.
    pub(crate) fn may_be_full(&self, sample: usize) -> Option<bool> {
        if self.is_full(sample) == Some(true) || self.stands_at.is_some() {
            return self.is_full(sample);
        }
        let lowest = self.depths().reduce(f64::min)?;
        Some(self.in_slots(sample)? >= FULL * lowest)
    }

    /// Time in the VMkernel that is no wait at path or adapter.
    pub(crate) fn held_ms(&self, sample: usize) -> Option<f64> {
        Some(self.flow.kavg(sample)? - self.path_wait_ms(sample)?)
    }

    /// Whether commands are held in the VMkernel though slots are known to be free. Where the
    /// sample saw some queued, less is enough than where KAVG alone tells.
    pub(crate) fn is_held(&self, sample: usize) -> bool {
        let is_long = self.is_held_long(&self.flow, &self.queue, sample) == Some(true);
        is_long && self.is_full(sample) == Some(false)
    }

    /// The same of a VM on it, whose wait those of others hide in its mean.
    pub(crate) fn holds_one(&self, sample: usize) -> bool {
        let is_long = |world: &World<'_>| {
            !world.is_system && self.is_held_long(&world.flow, &world.queue, sample) == Some(true)
        };
        self.worlds.iter().any(is_long) && self.is_full(sample) == Some(false)
    }

    fn is_held_long(&self, flow: &Flow<'_>, queue: &Queue<'_>, sample: usize) -> Option<bool> {
        let part = self.limits.get(Threshold::WaitPercent) / 100.0;
        let held_ms = flow.kavg(sample)? - self.path_wait_ms(sample)?;
        let waiting = little(flow.rate(sample)?, held_ms);
        let is_queued = queue.qued.at(sample) >= Some(self.limits.get(Threshold::Waiting));
        let least = if is_queued { Threshold::KavgMs } else { Threshold::HeldMs };
        let counts = self.limits.get(least).max(part * flow.davg(sample)?);
        Some(held_ms >= counts && waiting >= self.limits.get(Threshold::Waiting))
    }

    /// What commands that take so many milliseconds below the host must wait for it to count.
    pub(crate) fn least_wait_ms(&self, davg_ms: f64) -> f64 {
        let part = self.limits.get(Threshold::WaitPercent) / 100.0;
        self.limits.get(Threshold::KavgMs).min(part * davg_ms)
    }

    /// How many commands must wait for slots of which all are taken for that to count: of a few slots, as many as
    /// make the wait count beside what a command takes in one, by Little's law. A threshold that was set is taken as
    /// it is.
    fn least_waiting(&self, sample: usize) -> Option<f64> {
        let part = self.limits.get(Threshold::WaitPercent) / 100.0;
        let waiting = self.limits.get(Threshold::Waiting);
        let depth = self.queue.depth_at(sample).filter(|_| !self.limits.is_set(Threshold::Waiting));
        Some(depth.map_or(waiting, |depth| waiting.min(part * depth)))
    }

    /// Whether samples are those of bursts that come again: several times the commands of the others,
    /// and more than once or twice by chance.
    fn recurs_with_load(&self, spell: &Spell) -> bool {
        const OFTEN: usize = 3;
        const TIMES: f64 = 3.0;
        let is_quiet = |sample: &usize| !spell.samples.contains(sample);
        let quiet: Vec<usize> = self.busy.iter().copied().filter(is_quiet).collect();
        let rates = [&spell.samples, &quiet].map(|samples| self.flow.mean_rate(samples));
        let more = rates[0].zip(rates[1]).is_some_and(|(burst, quiet)| burst >= TIMES * quiet);
        spell.samples.len() >= OFTEN && more
    }

    /// The number of commands that a device stays at while others wait though it has slots for more, as before
    /// an array that refuses what is more [KB-QF]: by Little's law it is the same in each sample, as far
    /// as two decimals of DAVG tell, and as many are there at the instants of the samples. A queue that is full
    /// for a part of the time is caught so in that part of them, or empty where bursts are short.
    pub(super) fn find_stand(&self) -> Option<f64> {
        const ENOUGH_SAMPLES: usize = 5;
        const NEAR: f64 = 0.02;
        const MOST: f64 = 0.9;
        let waits = |sample: usize| {
            let waiting = little(self.flow.rate(sample)?, self.slot_wait_ms(sample)?);
            Some(waiting >= self.limits.get(Threshold::Waiting))
        };
        let spell = self.spell(|sample| waits(sample) == Some(true))?;
        let stands_at = median(spell.samples.iter().map(|&sample| self.in_slots(sample)))?;
        let is_near = |sample: usize| {
            let lost = ROUNDED / self.flow.davg(sample)?;
            Some((self.in_slots(sample)? / stands_at - 1.0).abs() <= NEAR + lost)
        };
        let has_more = |sample: usize| {
            let most = self.queue.actv.at(sample)?.max(stands_at);
            Some(most <= MOST * self.queue.depth_at(sample)?)
        };
        let told = spell.samples.iter().filter_map(|&sample| has_more(sample));
        let told: Vec<bool> = told.collect();
        let sampled = median(self.queue.actv.over(&spell.samples));
        let stands = spell.share(is_near) >= MOST
            && told.len() >= ENOUGH_SAMPLES
            && told.iter().all(|has_more| *has_more)
            && sampled >= Some(MOST * stands_at);
        stands.then_some(stands_at)
    }

    /// The spell in which commands wait for a slot of this device because all are taken.
    /// Known may be DSNRO, which is in force in a burst that no sample catches, and how many commands
    /// all guests let out. Where it is not known, and bursts come again that several VMs have, it is
    /// its default: the limit that samples show is the one between them [S1].
    pub(super) fn find_full_queue(
        &self,
        known: &DeviceFacts,
        guests: Option<f64>,
    ) -> Option<FullQueue> {
        let dsnro = known.dsnro.map(f64::from);
        let limit = |threshold| self.limits.get(threshold);
        let waiting = |s| Some(little(self.flow.rate(s)?, self.slot_wait_ms(s)?));
        let waits = |sample: usize| {
            let least_ms = self.flow.davg(sample).map(|davg_ms| self.least_wait_ms(davg_ms));
            self.stands_at.is_none()
                && reaches(self.slot_wait_ms(sample), least_ms)
                && waiting(sample) >= self.least_waiting(sample)
                && !self.is_refused(sample)
        };
        let mean_ms = self.flow.per_command(&self.busy, |_, sample| self.slot_wait_ms(sample));
        let is_long_in_the_mean = mean_ms >= Some(limit(Threshold::KavgMs));
        let is_known = |spell: &Spell| guests.is_some() || self.recurs_with_load(spell);
        let one_by_one = || {
            let spell = Spell::any(&self.busy, waits).filter(|_| is_long_in_the_mean)?;
            is_known(&spell).then_some(spell)
        };
        let spell = self.spell(waits).or_else(one_by_one)?;
        let held_below = self.held_below(&spell, waiting);
        let (spell, was) = match self.since_it_was_set(&spell, known) {
            Some((spell, was)) => (spell, Some(was)),
            None if held_below.is_some() => (spell, None),
            None => (self.at_the_lower_limit(spell), None),
        };
        let in_bursts = self.is_full_in_bursts(&spell);
        // Worlds that were cut out of the recording are of one more VM at least.
        let hidden = usize::from(self.hides_worlds(&spell.samples));
        let hidden = hidden + self.unmeasured(&spell.samples);
        let competitors = self.competitors(&spell.samples) + hidden;
        let lowers = in_bursts && competitors > 1;
        let is_unseen = lowers && self.motion() == Motion::Steady && self.recurs_with_load(&spell);
        let default = is_unseen.then(|| f64::from(DSNRO.default));
        let dsnro = dsnro.filter(|_| lowers).or(default).unwrap_or(f64::INFINITY);
        let fills = || self.may_fill_in_bursts(&spell, competitors, dsnro, guests);
        if in_bursts && (self.is_refused_unseen(&spell) || !fills()) {
            return None;
        }
        let depth = held_below.or_else(|| self.limit_when_full(&spell))?.min(dsnro);
        let waiting = spell.mean(waiting)?;
        let in_a_burst = || self.burst(&spell, depth, waiting);
        let in_bursts_or_mean = in_bursts.then(in_a_burst).flatten();
        let between = held_below.and_then(|_| {
            let outstanding = spell.mean(|sample| self.in_slots(sample))? + waiting;
            let high = self.deepest()?;
            let fit = outstanding - high < limit(Threshold::Waiting);
            Some(if fit { outstanding.min(high) } else { outstanding })
        });
        let demand = between.or(in_bursts_or_mean).unwrap_or(depth + waiting);
        let mut full = FullQueue {
            depth,
            waiting,
            demand,
            wait_ms: self.flow.per_command(&spell.samples, |_, s| self.slot_wait_ms(s))?,
            tenants: self.tenants(&spell.samples).len() + hidden,
            competitors,
            in_bursts,
            caught: spell.share(|sample| self.queue.is_caught_full(sample)),
            flaps: held_below.is_some(),
            was,
            spell,
        };
        full.was = was.or_else(|| self.higher_elsewhere(known, &full));
        Some(full)
    }

    /// A queue that is full at two limits hurts where it is the shorter one; the spell there, when
    /// there is more of it than a sample, or no more than a few samples at all.
    fn at_the_lower_limit(&self, spell: Spell) -> Spell {
        let Motion::TwoLevels { low, .. } = self.motion() else { return spell };
        let samples = spell.samples.iter().copied();
        let lower: Vec<usize> = samples.filter(|s| self.queue.dqlen.at(*s) == Some(low)).collect();
        const FEW: usize = 4;
        let enough = if spell.samples.len() > FEW { 2 } else { 1 };
        if lower.len() >= enough { Spell { samples: lower, ..spell } } else { spell }
    }

    /// The lower of two limits, where most samples show the higher one and that does not explain what waits:
    /// with it in force all the time less than half of that would. A limit that comes back to a value that it
    /// left is neither a driver's nor one that was set: it is lowered for as long as VMs compete, which may be
    /// less than from one sample to the next, and raised by a run of 128 commands of one VM
    /// (`Disk.SchedQControlSeqReqs` [LAMW]).
    fn held_below(&self, spell: &Spell, waiting: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        const MOST: f64 = 0.5;
        let Motion::TwoLevels { low, high } = self.motion() else { return None };
        let is_high = most_frequent(self.queue.dqlen.over(&spell.samples)) == Some(high);
        if !is_high || !self.limit_falls() || self.is_full_in_bursts(spell) {
            return None;
        }
        let waiting = spell.mean(waiting)?;
        let inside = spell.mean(|sample| self.in_slots(sample))?;
        (inside + waiting - high < MOST * waiting).then_some(low)
    }

    /// The samples of a spell since the limit was set to what it is at the end, and what it was before: it goes
    /// up once, between two values at which VMs compete. Nothing but a person raises it then, and a driver's
    /// depth would have taken a reboot. Not where a source tells what was changed, nor in a few samples, of
    /// which one may show a limit that has just ended [S1].
    fn since_it_was_set(&self, spell: &Spell, known: &DeviceFacts) -> Option<(Spell, f64)> {
        const FEW: usize = 4;
        const NEARLY_EACH: f64 = 0.9;
        let Motion::TwoLevels { low, high } = self.motion() else { return None };
        let at = |depth: f64, samples: &[usize]| -> Vec<usize> {
            let is_there = |sample: &usize| self.queue.dqlen.at(*sample) == Some(depth);
            samples.iter().copied().filter(is_there).collect()
        };
        let compete = |samples: &[usize]| {
            let steadily = samples.iter().filter(|sample| self.compete_steadily(**sample));
            steadily.count() as f64 >= NEARLY_EACH * samples.len() as f64
        };
        let [before, since] = [low, high].map(|depth| at(depth, &self.busy));
        let waits_since = at(high, &spell.samples);
        let is_told = known.dsnro_at_end.or(known.max_queue_depth_at_end).is_some()
            || self.hides_worlds(&self.busy)
            || self.unmeasured(&self.busy) > 0;
        let is_set = !is_told
            && !self.limit_falls()
            && self.depths().all(|depth| depth == low || depth == high)
            && self.busy.len() > FEW
            && waits_since.len() > 1
            && !before.is_empty()
            && compete(&before)
            && compete(&since);
        is_set.then(|| (Spell { samples: waits_since, ..spell.clone() }, low))
    }

    /// The limit that stays while VMs compete, and who does; `None` where it moves or they do not.
    pub(crate) fn competed(&self) -> Option<(u32, Vec<String>)> {
        let depth = self.deepest().filter(|_| self.motion() == Motion::Steady)?;
        let vms = || self.tenants(&self.busy).into_iter().map(|vm| vm.name).collect();
        (self.competitors(&self.busy) > 1).then(|| (depth as u32, vms()))
    }

    /// What the limit is in another recording, where it is less in this one and two of the same VMs compete in both.
    fn higher_elsewhere(&self, known: &DeviceFacts, full: &FullQueue) -> Option<f64> {
        let (was, vms) = known.competed.as_ref()?;
        let tenants = self.tenants(&full.spell.samples);
        let both = tenants.iter().filter(|vm| vms.contains(&vm.name)).count();
        let is_less = full.depth < f64::from(*was) && self.motion() == Motion::Steady;
        (is_less && both > 1 && full.competitors > 1).then_some(f64::from(*was))
    }

    /// Whether VMs compete all through a sample: where the second sends one command in thirteen, the other has
    /// a run of [`RUN`] that would end it less than once in 10,000 times.
    fn compete_steadily(&self, sample: usize) -> bool {
        self.senders(&[sample], RUN / 10.0) > 1
    }

    /// Whether a queue is full for a part of the time only, which the samples mostly miss.
    fn is_full_in_bursts(&self, spell: &Spell) -> bool {
        const SOMETIMES: f64 = 0.2;
        spell.share(|sample| self.is_full(sample)) < SOMETIMES || self.comes_and_goes(spell)
    }

    /// Whether conflicts count in samples of which none caught the queue full: they make commands wait besides.
    fn is_refused_unseen(&self, spell: &Spell) -> bool {
        let conflicts = mean(self.faults.conflicts.over(&spell.samples));
        let counts = conflicts >= Some(self.limits.get(Threshold::ConflictsPerSecond));
        counts && spell.share(|sample| self.queue.is_caught_full(sample)) == 0.0
    }

    /// The limit in force in most of the samples in which it is reached.
    fn limit_when_full(&self, spell: &Spell) -> Option<f64> {
        let dqlen = self.queue.dqlen;
        let is_full = |sample: &usize| self.is_full(*sample) == Some(true);
        let full: Vec<usize> = spell.samples.iter().copied().filter(is_full).collect();
        most_frequent(dqlen.over(&full)).or_else(|| most_frequent(dqlen.over(&spell.samples)))
    }

    /// Whether commands come and go within the intervals of a spell: at the instants of the samples far
    /// fewer are outstanding than in the mean of the intervals, as often as a queue that is full for a
    /// part of the time is empty. Who is held to a rate all the time has as many outstanding all the time.
    fn comes_and_goes(&self, spell: &Spell) -> bool {
        const FAR_FEWER: f64 = 0.5;
        const AS_OFTEN: f64 = 0.5;
        let is_gone = |sample: usize| {
            let outstanding = self.flow.outstanding(sample)?;
            Some(self.caught_outstanding(sample)? < FAR_FEWER * outstanding)
        };
        let used = spell.mean(|sample| Some(self.in_slots(sample)? / self.queue.depth_at(sample)?));
        let empty = used.map_or(0.0, |used| AS_OFTEN * (1.0 - used));
        empty > 0.0 && spell.share(is_gone) >= empty
    }

    /// ACTV + QUED at the instant of a sample; QUED of the device or of its worlds, which are not read
    /// at one instant.
    fn caught_outstanding(&self, sample: usize) -> Option<f64> {
        let queued = self.worlds.iter().filter_map(|world| world.queue.qued.at(sample)).sum();
        Some(self.queue.actv.at(sample)? + self.queue.qued.at(sample)?.max(queued))
    }

    /// How many commands come at once where a queue of that depth is full in bursts. A burst of n commands
    /// on a queue of d leaves n - d waiting for d in service, so wait and service give n away.
    fn burst(&self, spell: &Spell, depth: f64, waiting: f64) -> Option<f64> {
        let service = spell.mean(|sample| self.in_slots(sample))?;
        Some(depth * (1.0 + waiting / service.max(f64::MIN_POSITIVE)))
    }

    /// Whether bursts between the samples can explain the wait. Where it is not known what the guests
    /// let out, a driver's default in Windows for each VM is the most to expect, and that in Linux where
    /// the commands are several times those of quiet samples, or come and go. A flat, round rate of
    /// commands that do not is rather a limit, and so is a wait beside free slots.
    fn may_fill_in_bursts(
        &self,
        spell: &Spell,
        competitors: usize,
        dsnro: f64,
        guests: Option<f64>,
    ) -> bool {
        let comes_and_goes = self.comes_and_goes(spell);
        let is_burst = comes_and_goes || self.recurs_with_load(spell);
        let system = if is_burst { GuestOs::Linux } else { GuestOs::Windows };
        let driver_depth = limits_of(Controller::Pvscsi, system).disk_depth;
        let guests = guests.unwrap_or(f64::from(driver_depth) * competitors.max(1) as f64);
        let waiting = spell.mean(|sample| self.flow.waiting(sample));
        let depth = mean(self.queue.dqlen.over(&spell.samples));
        let burst = waiting.zip(depth).and_then(|(n, d)| self.burst(spell, d.min(dsnro), n));
        let Some(burst) = burst else { return false };
        let limited = self.flow.mean_rate(&spell.samples).is_some_and(is_round);
        burst <= guests && (comes_and_goes || !limited) && !self.waits_beside_free_slots(spell)
    }

    /// Whether the samples that catch commands waiting mostly find slots free: then it is no slot
    /// that they wait for.
    fn waits_beside_free_slots(&self, spell: &Spell) -> bool {
        let queues = || self.worlds.iter().map(|world| &world.queue).chain([&self.queue]);
        let waits = |sample: &usize| queues().any(|queue| queue.qued.at(*sample) >= Some(1.0));
        let is_free = |sample: &usize| {
            let part = self.queue.actv.at(*sample).zip(self.queue.dqlen.at(*sample));
            part.is_some_and(|(active, depth)| active < FULL * depth)
        };
        let (free, full): (Vec<usize>, Vec<usize>) =
            spell.samples.iter().copied().filter(waits).partition(is_free);
        free.len() > full.len()
    }

    /// The share of a device's commands that none of its worlds has, beyond rounding: what it is at
    /// least in a tenth of the samples, so that a few rows of garbage do not count, less what the
    /// worlds do more in another tenth, since rows that are no one instant's err both ways.
    pub(crate) fn hidden_share(&self, samples: &[usize]) -> Option<f64> {
        const MOST_SAMPLES: f64 = 0.9;
        if self.worlds.is_empty() {
            return None;
        }
        let rounding = ROUNDED * (self.worlds.len() + 1) as f64;
        let hidden = |&sample: &usize| {
            let whole = self.flow.rate(sample)?;
            let parts: Option<f64> = self.worlds.iter().map(|world| world.flow.rate(sample)).sum();
            Some((whole - parts? - rounding) / whole)
        };
        let [more, hidden] = [1.0 - MOST_SAMPLES, MOST_SAMPLES]
            .map(|share| quantile(samples.iter().map(hidden), share));
        let (more, hidden) = (more?, hidden?);
        Some(if hidden > 0.0 { (hidden + more.min(0.0)).max(0.0) } else { hidden })
    }

    /// Whether worlds that the recording does not have do enough on a device to compete for it.
    pub(crate) fn hides_worlds(&self, samples: &[usize]) -> bool {
        self.hidden_share(samples).is_some_and(|share| share > 1.0 / RUN)
    }

    /// VMs that have commands on the device, of which a column is missing that tells how many: they
    /// compete like those that are whole.
    pub(crate) fn unmeasured(&self, samples: &[usize]) -> usize {
        let tenants = self.tenants(samples);
        let all = self.flow.mean_rate(samples);
        let is_whole = |owner: &str| tenants.iter().any(|tenant| tenant.name == owner);
        let is_there = |world: &&World<'_>| {
            let inside = mean(samples.iter().map(|&sample| world.queue.sampled(sample)));
            let rate = world.flow.mean_rate(samples).map(|rate| RUN * rate);
            !world.is_system
                && !is_whole(world.owner)
                && (inside >= Some(1.0) || reaches(rate, all))
        };
        let owners = self.worlds.iter().filter(is_there).map(|world| world.owner);
        owners.into_set().len()
    }

    /// Whether nothing tells if some world has commands there, because its columns were cut.
    pub(crate) fn has_blind_worlds(&self, samples: &[usize]) -> bool {
        let is_blind = |world: &World<'_>| {
            let inside = mean(samples.iter().map(|&sample| world.queue.sampled(sample)));
            world.flow.mean_rate(samples).is_none() && inside.is_none()
        };
        self.worlds.iter().any(is_blind)
    }

    /// The one VM that has commands there, where the rows of worlds tell that there is no other, and nothing of
    /// the host's own that would compete.
    pub(crate) fn only_vm(&self, samples: &[usize]) -> Option<String> {
        let all = self.flow.mean_rate(samples)?;
        let competes = |world: &World<'_>| {
            world.is_system && world.flow.mean_rate(samples).is_some_and(|rate| RUN * rate >= all)
        };
        let is_whole = !self.hides_worlds(samples) && self.unmeasured(samples) == 0;
        let [only] = &self.tenants(samples)[..] else { return None };
        (is_whole && !self.worlds.iter().any(competes)).then(|| only.name.clone())
    }

    /// VMs that compete for the device: each sends at least one command for every [`RUN`] of all.
    pub(crate) fn competitors(&self, samples: &[usize]) -> usize {
        self.senders(samples, RUN)
    }

    /// The limits of a device, high and low, of which the lower is none for competition: it fell to that once and
    /// stays, though VMs competed above it before, and had more of its slots than the lower limit lets through. The
    /// higher one is in force then after a run of [`RUN`] commands of one VM, which by chance is as long a part of
    /// the time as its share to that power. With them the number of samples that show that.
    pub(crate) fn falls_beside_competition(&self) -> Option<(f64, f64, usize)> {
        const MOST: f64 = 0.5;
        let Motion::TwoLevels { low, high } = self.motion() else { return None };
        let stays = self.depths().is_sorted_by(|one, next| one >= next)
            && self.depths().all(|depth| depth == low || depth == high);
        let is_high = |sample: &&usize| self.queue.dqlen.at(**sample) == Some(high);
        let before: Vec<usize> = self.busy.iter().filter(is_high).copied().collect();
        let compete = |sample: &&usize| {
            let has_some =
                |world: &&World<'_>| !world.is_system && world.queue.sampled(**sample) >= Some(1.0);
            let owners = self.worlds.iter().filter(has_some).map(|world| world.owner);
            let rates = || self.tenants(&[**sample]).into_iter().map(|tenant| tenant.iops);
            let (most, all) = (rates().fold(0.0, f64::max), rates().sum::<f64>());
            let lets = low + (high - low) * (most / all).powf(RUN);
            owners.into_set().len() > 1 && self.in_slots(**sample) > Some(NEAR * lets)
        };
        let competed = before.iter().filter(compete).count();
        let is_most = competed > 0 && competed as f64 >= MOST * before.len() as f64;
        (stays && is_most).then_some((high, low, competed))
    }

    /// VMs that send at least one command of so many.
    fn senders(&self, samples: &[usize], of: f64) -> usize {
        let Some(all) = self.flow.mean_rate(samples) else { return 0 };
        let rates = self.tenants(samples);
        rates.iter().filter(|tenant| tenant.iops > 0.0 && tenant.iops * of >= all).count()
    }

    /// How the limit moves over the whole recording.
    pub(crate) fn motion(&self) -> Motion {
        let depths: Vec<f64> = self.depths().collect();
        let mut levels = depths.clone();
        levels.sort_unstable_by(f64::total_cmp);
        levels.dedup();
        match levels.as_slice() {
            [] | [_] => Motion::Steady,
            [low, high] if *high < NEAR * low => Motion::Steady,
            [low, high] => Motion::TwoLevels { low: *low, high: *high },
            [low, _, high] if are_apart(&levels) && !is_driven(&depths) => {
                Motion::TwoLevels { low: *low, high: *high }
            }
            [low, .., high] if is_staircase(&depths, &levels) => {
                Motion::TwoLevels { low: *low, high: *high }
            }
            _ => Motion::Moving,
        }
    }

    /// Whether its limit rose and never fell, and no faster than a host is rebooted, as when the
    /// driver's depth was set: competition would lower it, and what acts at once needs no reboot.
    pub(crate) fn rises_over_a_reboot(&self, host: &Host<'_>) -> bool {
        const REBOOT_S: f64 = 120.0;
        let lowest = self.depths().reduce(f64::min);
        let rise = (0..host.times_ms.len()).find(|&sample| self.queue.depth_at(sample) > lowest);
        self.motion() != Motion::Steady
            && !self.limit_falls()
            && rise.and_then(|sample| interval_s(host.times_ms, sample)) >= Some(REBOOT_S)
    }

    /// Whether its limit is lowered at some time.
    pub(crate) fn limit_falls(&self) -> bool {
        !self.depths().is_sorted()
    }

    /// Its limits, one after the other.
    fn depths(&self) -> impl Iterator<Item = f64> {
        self.queue.dqlen.every().filter(|depth| *depth > 0.0)
    }

    /// The largest limit that the recording shows for this device.
    pub(crate) fn deepest(&self) -> Option<f64> {
        largest(self.queue.dqlen.every())
    }
}

/// How many times the lower of two levels the other must be: nobody sets one for competition that is
/// nearer.
const NEAR: f64 = 1.25;

/// Whether the limit takes few values far apart, each for one time only, as when settings are
/// tried one after the other.
fn is_staircase(depths: &[f64], levels: &[f64]) -> bool {
    const FEW: usize = 4;
    let changes = depths.windows(2).filter(|pair| pair.first() != pair.last()).count();
    levels.len() <= FEW && !is_driven(depths) && changes < levels.len() && are_apart(levels)
}

/// Whether rising levels are far from each other, as settings are: a depth that is regulated goes by
/// small steps.
fn are_apart(levels: &[f64]) -> bool {
    const APART: f64 = 1.5;
    levels.windows(2).all(|pair| matches!(*pair, [a, b] if b >= APART * a))
}

/// Whether the limit is driven from sample to sample, by throttling or Storage I/O Control: it halves
/// and climbs, falls again before it stays anywhere, or climbs by even steps. Competition knows two
/// limits, and a person waits to see what a setting does.
fn is_driven(depths: &[f64]) -> bool {
    const EVEN: f64 = 1.0;
    let goes_on = |three: &[f64]| match *three {
        [a, b, c] => a > b && b > c || a < b && ((c - b) - (b - a)).abs() <= EVEN,
        _ => false,
    };
    halves_and_climbs(depths) || depths.windows(3).any(goes_on)
}

/// Whether the limit falls to half (or half of that) at once and then rises in smaller steps, as
/// adaptive throttling does [KB-QF]: one that is regulated goes down by small steps as well, and comes
/// to half at once by chance alone.
pub(crate) fn halves_and_climbs(depths: &[f64]) -> bool {
    const BY_CHANCE: f64 = 0.25;
    let falls = depths.windows(2).filter(|pair| pair.last() < pair.first()).count();
    let halved = depths.windows(3).filter(|three| match three {
        [before, low, after] => *low <= 0.55 * before && low < after && after < before,
        _ => false,
    });
    let halved = halved.count() as f64;
    halved > 0.0 && halved >= BY_CHANCE * falls as f64
}

#[cfg(test)]
mod tests {
    use super::{halves_and_climbs, is_driven, is_staircase};

    #[test]
    fn settings_tried_one_after_the_other_are_a_staircase() {
        let levels = [32.0, 64.0, 128.0, 255.0];
        assert!(is_staircase(&[32.0, 32.0, 64.0, 64.0, 128.0, 255.0], &levels));
        assert!(!is_staircase(&[32.0, 64.0, 128.0, 64.0, 255.0], &levels));
        assert!(!is_staircase(&[38.0, 39.0, 64.0], &[38.0, 39.0, 64.0]));
        assert!(!is_staircase(&[16.0, 2.0, 7.0], &[2.0, 7.0, 16.0]));
    }

    #[test]
    fn a_depth_that_goes_on_from_sample_to_sample_is_no_setting() {
        for driven in [[254.0, 31.0, 7.0, 1.0], [4.0, 8.0, 12.0, 16.0], [8.0, 4.0, 8.0, 12.0]] {
            assert!(is_driven(&driven), "{driven:?}");
        }
        assert!(!is_driven(&[128.0, 128.0, 64.0, 64.0, 32.0, 32.0]));
        assert!(!is_driven(&[128.0, 32.0, 32.0, 128.0, 32.0, 128.0]));
        assert!(!is_staircase(&[254.0, 31.0, 7.0, 1.0], &[1.0, 7.0, 31.0, 254.0]));
    }

    #[test]
    fn a_halved_depth_that_climbs_is_seen() {
        assert!(halves_and_climbs(&[64.0, 32.0, 40.0, 48.0, 64.0]));
        assert!(!halves_and_climbs(&[128.0, 32.0, 128.0]));
        assert!(!halves_and_climbs(&[64.0, 56.0, 50.0, 56.0]));
        let regulated = [60.0, 54.0, 50.0, 47.0, 42.0, 20.0, 31.0, 30.0];
        assert!(!halves_and_climbs(&regulated), "one fall of six is to half");
    }
}
