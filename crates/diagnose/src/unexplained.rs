//! What is slow or waits though no rule finds why: an all-clear would be wrong, and a finding a guess.

use counters::Counter;
use levels::{array_of, largest};

use crate::{
    Device, Facts, Finding, Flow, Host, Lack, Lacking, RECORD_LINE, Spell, Threshold, Vdisk, World,
    blips::{self, COMMANDS, FEW},
    little, mean, number,
    observe::is_round_within,
    reaches,
    rules::{ALIKE, CONTRAST, EXACTLY, SAME_MIX, is_served_alike},
    span, unrest_percent,
};

/// How many times slower than another a virtual disk must be: as far as a device from others of its
/// array.
const FAR: f64 = 9.0;
/// Commands outstanding below which nobody is held back; and the same of a rate that stays where chance would
/// move it twice as far, which a few threads that come at random do not show.
pub(crate) const HELD: f64 = 3.0;
const HELD_STILL: f64 = 2.0;
const STILL: f64 = 0.5;
/// The same of a disk beside which nothing is quick.
const CROWD: f64 = 16.0;

/// What a host shows and no finding explains; beside findings, of other devices, what a few samples show alone.
pub(crate) fn of(host: &Host<'_>, facts: &Facts, findings: &[Finding]) -> Vec<Lack> {
    let is_told = |device: &Device<'_>| {
        let mut objects = findings.iter().flat_map(|found| found.also.iter().chain([&found.at]));
        objects.any(|object| object.name == device.flow.name)
    };
    let untold: Vec<&Device<'_>> = host.busy_devices().filter(|device| !is_told(device)).collect();
    let few = untold.iter().filter_map(|device| {
        few(host, device).or_else(|| stalled(host, device)).or_else(|| light_step(host, device))
    });
    let few = few.chain(blips::of(host, &untold));
    let lack = |sentence| Lack { what: Lacking::Reason, sentence };
    if !findings.is_empty() {
        return few.map(lack).collect();
    }
    let waits = host.busy_devices().filter_map(|device| waits(host, device));
    let full = host.devices.iter().filter_map(full);
    waits
        .chain(full)
        .chain(disks(host).or_else(|| volumes(host, facts)))
        .chain(few)
        .chain(sparse(host))
        .map(lack)
        .collect()
}

/// A device that is slow in one of a few samples, or slow beside another behind the same adapter, in too
/// few samples to tell why.
fn few(host: &Host<'_>, device: &Device<'_>) -> Option<String> {
    let busy = &device.busy;
    if device.is_nfs {
        return None;
    }
    if busy.len() >= FEW {
        return step(host, device);
    }
    let counts = |sample: &usize| {
        let least = host.limits.get(Threshold::BusyOutstanding);
        device.flow.in_flight(*sample) >= Some(least)
    };
    let is_slow = |sample: &usize| reaches(device.flow.davg(*sample), device.slow_ms(*sample));
    let davg = |device: &Device<'_>| device.flow.per_command(&device.busy, Flow::davg);
    let own = own_ms(host, device)?;
    let is_held = mean(busy.iter().map(|s| device.flow.in_flight(*s))) >= Some(HELD);
    let is_quick = |other: &&Device<'_>| {
        is_held
            && host.share_an_adapter(device, other)
            && davg(other).is_some_and(|ms| CONTRAST * ms <= own)
    };
    let (name, of) = (device.flow.name, busy.len());
    let what = if let Some(&slow) = busy.iter().find(|sample| counts(sample) && is_slow(sample)) {
        let ms = number(device.flow.davg(slow)?);
        format!(
            "{name} takes {ms} ms a command (DAVG) in one of {of} samples, {} in the quickest",
            number(device.quickest_ms)
        )
    } else if let Some(told) = step(host, device) {
        return Some(told);
    } else if let Some(told) = fills(device) {
        told
    } else {
        let other = host.busy_devices().find(is_quick)?;
        let (own, quick) = (number(davg(device)?), number(davg(other)?));
        format!("{name} takes {own} ms a command (DAVG), {} beside it {quick}", other.flow.name)
    };
    Some(format!(
        "{what}: {of} samples are too few to tell why. Record some minutes of it: `{RECORD_LINE}`."
    ))
}

/// A device whose slots are all taken in one of a few samples, while commands wait as long for them as counts.
fn fills(device: &Device<'_>) -> Option<String> {
    let waits = |&sample: &usize| {
        let waiting = device.flow.waiting(sample).filter(|_| device.is_full(sample) == Some(true));
        let least_ms = device.flow.davg(sample).map(|davg_ms| device.least_wait_ms(davg_ms));
        let counts = reaches(device.slot_wait_ms(sample), least_ms);
        Some((sample, waiting.filter(|_| counts)?))
    };
    let (sample, waiting) = device
        .busy
        .iter()
        .filter_map(waits)
        .filter(|(_, waiting)| *waiting >= device.limits.get(Threshold::Waiting))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "{} commands wait {} ms each (KAVG) for the {} slots of {} in one of {} samples",
        number(waiting),
        number(device.flow.kavg(sample)?),
        number(device.queue.depth_at(sample)?),
        device.flow.name,
        device.busy.len()
    ))
}

/// A device that takes many times as long in a few samples as in a few others [DRILL].
fn step(host: &Host<'_>, device: &Device<'_>) -> Option<String> {
    let (flow, quick_ms) = (&device.flow, device.quickest_ms);
    let mib_per_s = host.limits.get(Threshold::TransferMib);
    let is_slow = |&&sample: &&usize| {
        let own_ms = || Some(flow.davg(sample)? - flow.transfer_ms(sample, mib_per_s)?);
        let least_ms = host.limits.get(Threshold::QosMs).max(CONTRAST * quick_ms);
        own_ms() >= Some(least_ms) && flow.in_flight(sample) >= Some(HELD)
    };
    let slow: Vec<usize> = device.busy.iter().filter(is_slow).copied().collect();
    let others = device.busy.len() - slow.len();
    let most_ms = largest(slow.iter().filter_map(|&sample| flow.davg(sample)))?;
    let is_far = quick_ms > 0.0 && most_ms >= FAR * quick_ms;
    (is_far && slow.len() < FEW && (1..FEW).contains(&others)).then(|| {
        format!(
            "{} takes up to {} ms a command (DAVG) in {} of {} samples, {} in the quickest: so few are too few to tell \
             why. Record some minutes of it: `{RECORD_LINE}`.",
            flow.name,
            number(most_ms),
            slow.len(),
            device.busy.len(),
            number(quick_ms)
        )
    })
}

/// A device that takes many times as long for commands of the same kind in samples that follow each other, each of them
/// with commands enough for their mean, though less than one is out of them [DRILL].
fn light_step(host: &Host<'_>, device: &Device<'_>) -> Option<String> {
    let flow = &device.flow;
    let counts =
        |&s: &usize| flow.rate(s).is_some_and(|rate| rate * host.interval_s(s) >= COMMANDS);
    let least_ms = host.limits.get(Threshold::QosMs).max(FAR * device.quickest_ms);
    let is_slow = |s: &usize| counts(s) && flow.davg(*s) >= Some(least_ms);
    let runs = device.busy.split(|s| !is_slow(s)).filter(|run| run.len() >= FEW);
    let slow = runs.max_by_key(|run| run.len())?;
    let ms = flow.per_command(slow, Flow::davg)?;
    let is_quick = |s: &usize| counts(s) && flow.davg(*s).is_some_and(|quick| FAR * quick <= ms);
    let quick: Vec<usize> = device.busy.iter().copied().filter(is_quick).collect();
    let mix = flow.read_part(slow)? - flow.read_part(&quick)?;
    let sizes = flow.size_kib(slow)? / flow.size_kib(&quick)?;
    let is_alike = mix.abs() <= SAME_MIX && ALIKE.contains(&sizes);
    (is_alike && quick.len() >= FEW && !device.is_nfs).then(|| {
        format!(
            "{} takes {} ms a command (DAVG) in {} samples on end, {} before or after, at {} a second: too little load to \
             tell why. The array's own latency of that time, {}, tells.",
            flow.name,
            number(ms),
            slow.len(),
            flow.per_command(&quick, Flow::davg).map(number).unwrap_or_default(),
            number(flow.mean_rate(slow).unwrap_or_default()),
            span(host.begin_ms(slow[0]), host.times_ms[slow[slow.len() - 1]])
        )
    })
}

/// A VM whose commands take seconds beside others on its device that are served at once, so that the device's mean hides
/// them.
fn stalled(host: &Host<'_>, device: &Device<'_>) -> Option<String> {
    let limit = |threshold| host.limits.get(threshold);
    let is_stall = |world: &World<'_>, s: usize| {
        let flow = &world.flow;
        let is_inside = flow.outstanding(s) >= Some(limit(Threshold::BusyOutstanding));
        flow.gavg(s) >= Some(limit(Threshold::StallMs)) && is_inside
    };
    let of = |world: &World<'_>| {
        let samples: Vec<usize> =
            host.every_sample().into_iter().filter(|&s| is_stall(world, s)).collect();
        let ms = world.flow.per_command(&samples, Flow::gavg)?;
        (!world.is_system).then_some((samples, ms))
    };
    let all = device.worlds.iter().filter_map(|world| Some((world, of(world)?)));
    let (world, (samples, ms)) = all.max_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
    let mean_ms = device.flow.per_command(&samples, Flow::gavg)?;
    Some(format!(
        "{} waits {} ms a command on {} in {} of {} samples; the device's mean then, {} ms, hides it. That was {}. Its \
         guest's log and the array's events of that time tell why.",
        world.owner,
        number(ms),
        device.flow.name,
        samples.len(),
        host.times_ms.len(),
        number(mean_ms),
        span(host.begin_ms(*samples.first()?), host.times_ms[*samples.last()?])
    ))
}

/// What a device takes for a command beyond what its data may cost, in milliseconds.
pub(crate) fn own_ms(host: &Host<'_>, device: &Device<'_>) -> Option<f64> {
    let mib_per_s = host.limits.get(Threshold::TransferMib);
    device
        .flow
        .per_command(&device.busy, |flow, s| Some(flow.davg(s)? - flow.transfer_ms(s, mib_per_s)?))
}

/// The device that is slow in the mean of commands enough, of which one is out much of the time, though no sample has
/// enough of them to judge it.
fn sparse(host: &Host<'_>) -> Option<String> {
    /// Commands that are out in the mean, and the same of one that takes so many milliseconds.
    const OUT: f64 = 0.25;
    const OUT_LONG: (f64, f64) = (0.1, 100.0);
    host.busy_devices().next()?;
    let commands = |device: &Device<'_>, s: usize| Some(device.flow.rate(s)? * host.interval_s(s));
    let all = host.every_sample();
    let of = |device: &Device<'_>| {
        let ms = device.flow.per_command(&all, Flow::davg)?;
        let rate = mean(all.iter().map(|&s| device.flow.rate(s)))?;
        let commands: f64 = all.iter().filter_map(|&s| commands(device, s)).sum();
        let least = if ms >= OUT_LONG.1 { OUT_LONG.0 } else { OUT };
        let is_slow = ms >= host.limits.get(Threshold::DavgMs) && little(rate, ms) >= least;
        (is_slow && commands >= COMMANDS).then_some((ms, rate))
    };
    let few = |device: &Device<'_>| {
        let least = host.limits.get(Threshold::MinCommands);
        device.busy.iter().all(|&s| reaches(Some(least), commands(device, s)))
    };
    let devices = host.devices.iter().filter(|device| few(device) && !device.is_nfs);
    let slow = devices.filter_map(|device| Some((device, of(device)?)));
    let (device, (ms, rate)) = slow.max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let threshold =
        if device.busy.is_empty() { Threshold::BusyIops } else { Threshold::MinCommands };
    Some(format!(
        "{} takes {} ms a command (DAVG) in the mean, at {} a second: no sample has enough of them to tell why. \
         Longer samples do, or `--set-threshold {}=1`.",
        device.flow.name,
        number(ms),
        number(rate),
        threshold.info().key
    ))
}

/// A device on which commands wait and whose slots are not known.
fn waits(host: &Host<'_>, device: &Device<'_>) -> Option<String> {
    let has_depth = device.queue.dqlen.over(&device.busy).any(|depth| depth > 0.0);
    let waiting = mean(device.busy.iter().map(|sample| device.flow.waiting(*sample)))?;
    let qavg_ms = device.flow.per_command(&device.busy, Flow::qavg)?;
    let counts = waiting >= host.limits.get(Threshold::Waiting)
        && qavg_ms >= device.limits.get(Threshold::KavgMs);
    (!device.is_nfs && !has_depth && counts).then(|| {
        format!(
            "{} commands wait {} ms each in the VMkernel for {}: which limit holds them is not known \
             without DQLEN. {} in the file tells.",
            number(waiting),
            number(qavg_ms),
            device.flow.name,
            Counter::DeviceQDepth.info().batch_name
        )
    })
}

/// A device that cannot be judged, for a column is missing, and of which the samples catch every slot taken and
/// commands waiting. Reads and writes do not stand for its commands, which others are among [CAP-A].
fn full(device: &Device<'_>) -> Option<String> {
    let queue = &device.queue;
    let spell = Spell::find(&device.maybe_busy, |sample| queue.is_caught_full(sample));
    let samples = spell.filter(|_| device.busy.is_empty())?.samples;
    let each = mean(samples.iter().map(|&sample| device.flow.kavg(sample)));
    let each = each.map_or(String::new(), |ms| format!(", {} ms each (KAVG)", number(ms)));
    Some(format!(
        "{} commands wait for the {} slots of {}, all of which are taken{each}: why is not known without what \
         is missing. `{RECORD_LINE}` records everything for an hour.",
        number(mean(queue.qued.over(&samples))?),
        number(mean(queue.dqlen.over(&samples))?),
        device.flow.name
    ))
}

/// A virtual disk at work.
struct Slow<'a> {
    disk: &'a Vdisk<'a>,
    device: &'a Device<'a>,
    rate: f64,
    outstanding: f64,
    /// Its latency, and what the size of its commands may cost of that.
    ms: f64,
    moved_ms: f64,
}

impl<'a> Slow<'a> {
    fn of(host: &'a Host<'a>, disk: &'a Vdisk<'a>) -> Option<Self> {
        let device = host.busy_devices().find(|device| Some(device.id) == disk.device)?;
        let samples = &device.busy;
        let over = |value: &dyn Fn(usize) -> Option<f64>| mean(samples.iter().map(|&s| value(s)));
        let ms = disk.latency_ms(samples)?;
        let size_kib = over(&|s| disk.size_kib(s)).unwrap_or(0.0);
        let moved_ms = 1000.0 * size_kib / 1024.0 / host.limits.get(Threshold::TransferMib);
        let rate = over(&|s| disk.rate(s)).filter(|rate| *rate > 0.0)?;
        let outstanding = over(&|s| disk.outstanding(s))?;
        Some(Self { disk, device, rate, outstanding, ms, moved_ms })
    }

    /// How far its rate moves from sample to sample, in percent.
    fn unrest(&self) -> f64 {
        unrest(self.device, |sample| self.disk.rate(sample))
    }

    /// What its VM's commands take below the host, in milliseconds.
    fn davg(&self) -> Option<f64> {
        let world = self.device.world_of(self.disk.vm).map(|world| &world.flow);
        world.unwrap_or(&self.device.flow).per_command(&self.device.busy, Flow::davg)
    }

    /// What may hold it, and what would tell: a limit of the host makes it wait above DAVG, which NFS has none of
    /// [ELA].
    fn told(&self) -> &'static str {
        const ABOVE: f64 = 0.1;
        let is_below = !self.device.is_nfs && self.davg() >= Some((1.0 - ABOVE) * self.ms);
        if is_below {
            return BELOW_THE_HOST;
        }
        "A limit of the disk, a policy of the array or slower disks below do that. Its IOPS limit and storage \
         policy tell, and so does a longer recording in which its load changes."
    }

    /// Whether another stands on the same device or array.
    fn is_beside(&self, other: &Self) -> bool {
        let [own, its] = [self, other].map(|slow| array_of(slow.device.flow.name));
        self.disk.vm != other.disk.vm
            && (self.device.id == other.device.id || own.is_some() && own == its)
    }
}

/// The virtual disk that a flat rate keeps far slower than another beside it; or, on NFS, where esxtop
/// has GAVG alone [ELA], and in few samples, alone at a round one.
fn disks(host: &Host<'_>) -> Option<String> {
    let all: Vec<Slow<'_>> = host.vdisks.iter().filter_map(|disk| Slow::of(host, disk)).collect();
    let limit = |threshold| host.limits.get(threshold);
    let slow = all.iter().filter(|slow| {
        slow.ms - slow.moved_ms >= limit(Threshold::QosMs)
            && slow.rate >= limit(Threshold::BusyIops)
            && is_held(host, slow.device, slow.outstanding, slow.rate, slow.unrest())
            && !is_served_alike(
                host,
                &slow.device.busy,
                [&|s| slow.disk.rate(s), &|s| slow.disk.latency_at(s)],
            )
    });
    let worst = slow.max_by(|a, b| (a.ms - a.moved_ms).total_cmp(&(b.ms - b.moved_ms)))?;
    let name = worst.disk.name;
    let (ms, rate, tells) = (number(worst.ms), number(worst.rate), worst.told());
    let beside = all.iter().filter(|other| {
        other.is_beside(worst)
            && other.rate >= limit(Threshold::BusyIops)
            && is_far(worst.ms, worst.moved_ms, other.ms, other.moved_ms)
    });
    if let Some(quick) = beside.min_by(|a, b| a.ms.total_cmp(&b.ms)) {
        return Some(format!(
            "{name} takes {ms} ms a command at a flat {rate} a second, {} beside it {} ms: what holds \
             it cannot be told yet. {tells}",
            quick.disk.name,
            number(quick.ms)
        ));
    }
    let is_set = worst.outstanding >= CROWD
        && worst.unrest() <= 100.0 * EXACTLY
        && is_round_within(worst.rate, EXACTLY);
    let is_alone = worst.device.is_nfs || worst.device.busy.len() < FEW;
    (is_alone && is_set).then(|| {
        format!(
            "{name} stays at {rate} commands a second, {} outstanding and {ms} ms each: what holds it \
             cannot be told. {tells}",
            number(worst.outstanding)
        )
    })
}

/// What holds a volume whose commands wait for nothing in the host.
const BELOW_THE_HOST: &str = "A policy of the array or slower disks below do that, and no limit of the host, which \
    would be in KAVG. The array's policies and tiers tell, and so does a longer recording in which its load \
    changes.";

/// A volume that a flat rate keeps far slower than another of its array, in a file without rows of virtual disks
/// or with several on it. A run knows why its arrays take long.
fn volumes(host: &Host<'_>, facts: &Facts) -> Option<String> {
    let limit = |threshold| host.limits.get(threshold);
    let of = |device: &Device<'_>| {
        let over = |moved: &dyn Fn(usize) -> Option<f64>| {
            device.flow.per_command(&device.busy, |_, sample| moved(sample))
        };
        let ms = over(&|sample| device.flow.davg(sample))?;
        let moved = |sample| device.flow.transfer_ms(sample, limit(Threshold::TransferMib));
        Some((ms, over(&moved).unwrap_or(0.0)))
    };
    let rate = |device: &Device<'_>| device.flow.mean_rate(&device.busy);
    let is_judged = |device: &&Device<'_>| {
        let knows = facts.device(device.flow.name).array.is_some();
        !device.is_nfs && !knows && rate(device) >= Some(limit(Threshold::BusyIops))
    };
    let pairs = host.busy_devices().filter(is_judged).filter_map(|device| {
        let (ms, moved_ms) = of(device)?;
        let inside = mean(device.busy.iter().map(|&s| device.flow.in_flight(s)))?;
        let moves = unrest(device, |sample| device.flow.rate(sample));
        let counts = ms - moved_ms >= limit(Threshold::QosMs)
            && is_held(host, device, inside, rate(device)?, moves);
        let array = array_of(device.flow.name).filter(|_| counts)?;
        let beside = host.busy_devices().filter(is_judged).filter_map(|other| {
            let (its_ms, its_moved_ms) = of(other)?;
            let is_quick = array_of(other.flow.name) == Some(array)
                && is_far(ms, moved_ms, its_ms, its_moved_ms);
            is_quick.then_some((other, its_ms))
        });
        let (quick, quick_ms) = beside.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((device, ms, quick, quick_ms))
    });
    let (device, ms, quick, quick_ms) = pairs.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "{} takes {} ms (DAVG) at a flat {}/s, {} {} ms: what holds it cannot be told yet. \
         {BELOW_THE_HOST}",
        device.flow.name,
        number(ms),
        number(rate(device)?),
        quick.flow.name,
        number(quick_ms)
    ))
}

/// How far a rate moves from sample to sample with load, in percent.
fn unrest(device: &Device<'_>, rate: impl Fn(usize) -> Option<f64>) -> f64 {
    let rates: Vec<f64> = device.busy.iter().filter_map(|&sample| rate(sample)).collect();
    unrest_percent(&rates).unwrap_or(0.0)
}

/// Whether so many commands outstanding at a rate that moves so far, in percent, may be held back: it stays, and
/// the fewer they are the more.
fn is_held(host: &Host<'_>, device: &Device<'_>, outstanding: f64, rate: f64, moves: f64) -> bool {
    let seconds = mean(device.busy.iter().map(|&sample| Some(host.interval_s(sample))));
    let by_chance = seconds.map(|seconds| 100.0 / (rate * seconds).sqrt());
    let is_still = by_chance.is_some_and(|by_chance| moves <= STILL * by_chance);
    let least = if is_still { HELD_STILL } else { HELD };
    outstanding >= least && moves <= host.limits.get(Threshold::FlatPercent)
}

/// Whether one latency is far longer than another, but for what larger commands may cost.
fn is_far(ms: f64, moved_ms: f64, other_ms: f64, other_moved_ms: f64) -> bool {
    other_ms * FAR <= ms - (moved_ms - other_moved_ms).max(0.0)
}

#[cfg(test)]
mod tests {
    use counters::{Counter, Entity, Kind, Recording};
    use levels::Measured;

    use crate::{Facts, Outcome, Thresholds, Verdict, diagnose, fixture::Bench};

    fn judged(bench: &Bench) -> Verdict {
        bench.diagnose(&Thresholds::default(), &Facts::default())
    }

    /// What is told of a device whose commands take so long in the last of some samples.
    fn stepped(samples: usize, slow: usize, rate: f64, [quick_ms, slow_ms]: [f64; 2]) -> Verdict {
        let mut bench = Bench::new(samples);
        let is_slow = move |sample: usize| sample + slow >= samples;
        let vm = bench.device("naa.1", 254).vm("a");
        vm.iops_when(move |s| if is_slow(s) { 2.5 * rate } else { rate });
        vm.davg_when(
            move |s| if is_slow(s) { slow_ms * (1.0 + 0.35 * (s % 2) as f64) } else { quick_ms },
        );
        judged(&bench)
    }

    #[test]
    fn a_step_of_ten_times_in_few_samples_of_few_is_no_all_clear() {
        let verdict = stepped(5, 2, 8_000.0, [0.4, 3.8]);
        assert!(verdict.headline.contains("in 2 of 5 samples"), "{}", verdict.headline);
        assert_ne!(verdict.outcome, Outcome::Healthy, "{}", verdict.headline);
        assert_eq!(stepped(5, 2, 8_000.0, [0.4, 1.0]).outcome, Outcome::Healthy);
    }

    #[test]
    fn nor_is_one_of_a_light_load_that_lasts() {
        let verdict = stepped(30, 10, 40.0, [0.4, 5.0]);
        assert!(verdict.headline.contains("in 10 samples on end"), "{}", verdict.headline);
        assert_eq!(stepped(30, 10, 40.0, [0.4, 1.5]).outcome, Outcome::Healthy);
        assert_eq!(stepped(30, 3, 40.0, [0.4, 5.0]).outcome, Outcome::Healthy);
    }

    #[test]
    fn slots_that_fill_in_the_last_of_three_samples_are_no_all_clear() {
        let mut bench = Bench::new(3);
        let device = bench.device("naa.1", 32).depth(|s| if s < 2 { 128 } else { 32 });
        for vm in ["a", "b"] {
            let vm = device.vm(vm).iops_when(|s| if s < 2 { 1_400.0 } else { 1_550.0 });
            vm.davg(10.3).kavg_when(|s| if s < 2 { 0.0 } else { 11.0 });
        }
        let verdict = judged(&bench);
        let told =
            "34.1 commands wait 11 ms each (KAVG) for the 32 slots of naa.1 in one of 3 samples";
        assert!(verdict.headline.starts_with(told), "{}", verdict.headline);
    }

    #[test]
    fn a_device_at_137_ms_with_few_commands_in_each_sample_is_no_all_clear() {
        let beside = |rate: f64, davg: f64| {
            let mut bench = Bench::new(40);
            bench.device("naa.1", 64).vm("web").iops_when(|s| 900.0 + (s % 3) as f64).davg(0.5);
            bench.device("naa.2", 64).vm("sql").iops(rate).davg(davg).sampled(|_| 1);
            judged(&bench)
        };
        let verdict = beside(5.0, 137.0);
        assert_eq!(verdict.outcome, Outcome::CannotTell, "{}", verdict.headline);
        assert!(verdict.headline.starts_with("naa.2 takes 137 ms"), "{}", verdict.headline);
        assert_eq!(beside(3.6, 138.0).outcome, Outcome::CannotTell);
        assert_eq!(beside(5.0, 9.0).outcome, Outcome::Healthy);
        assert_eq!(beside(0.3, 137.0).outcome, Outcome::Healthy);
    }

    /// 15 commands of 2.9 s in one sample of five seconds, beside 1,500 that are served at once.
    #[test]
    fn seconds_of_one_vm_that_the_mean_of_its_device_hides_are_no_all_clear() {
        let of = |samples: usize, stall_ms: f64| {
            let mut bench = Bench::new(24);
            let device = bench.device("naa.1", 64);
            let is_stall = move |s: usize| (10..10 + samples).contains(&s);
            let vm = device.vm("sql");
            vm.iops_when(move |s| if is_stall(s) { 3.0 } else { 400.0 + (s % 3) as f64 });
            vm.davg_when(move |s| if is_stall(s) { stall_ms } else { 0.5 });
            device.vm("web").iops_when(|s| 300.0 + (s % 4) as f64).davg(0.4);
            judged(&bench)
        };
        let verdict = of(1, 2_900.0);
        let told = "sql waits 2,900 ms a command on naa.1 in 1 of 25 samples; the device's mean then, 28.9 ms,";
        assert!(verdict.headline.starts_with(told), "{}", verdict.headline);
        assert_eq!(verdict.outcome, Outcome::CannotTell);
        assert_eq!(of(1, 90.0).outcome, Outcome::Healthy);
        // Three of them are no rate that anybody sets.
        let three = of(3, 2_900.0);
        assert!(three.findings.iter().all(|found| found.cause != crate::Cause::ArrayQos));
        assert_ne!(three.outcome, Outcome::Healthy);
    }

    #[test]
    fn a_few_rows_of_a_held_volume_are_told_beside_the_finding_of_another() {
        let mut bench = Bench::new(4);
        let name = |number: u32| format!("naa.624a9370aaaaaaaaaaaaaaaa000110{number}");
        bench.device(&name(10), 64).vm("g").iops_when(|s| 4_000.0 + (s % 2) as f64).davg(8.1);
        bench.device(&name(11), 64).vm("h").iops_when(|s| 900.0 + (s % 3) as f64).davg(0.35);
        let full = bench.device("naa.600508b1001c4d41aa0000000000a002", 32);
        for vm in ["a", "b", "c"] {
            full.vm(vm).iops(8_600.0).davg(1.24).kavg(1.86);
        }
        let verdict = judged(&bench);
        assert_eq!(verdict.findings[0].cause, crate::Cause::Dsnro);
        let is_told = verdict.lacks.iter().any(|lack| lack.sentence.contains("00011010"));
        assert!(is_told, "{:?}", verdict.lacks);
    }

    #[test]
    fn a_vm_far_slower_than_its_neighbour_is_no_all_clear() {
        // 500 a second at 16 ms, and 3,300 at 0.6 ms on another volume of the array.
        let both = |davg: f64| {
            let mut bench = Bench::new(2);
            let name = |number: u32| format!("naa.624a9370aaaaaaaaaaaaaaaa000110{number}");
            bench.device(&name(10), 128).vm("gold").iops(500.0).davg(davg);
            bench.device(&name(11), 128).vm("web").iops(3_300.0).davg(0.6);
            judged(&bench)
        };
        let verdict = both(16.0);
        assert_eq!((verdict.findings.len(), verdict.outcome), (0, Outcome::CannotTell));
        let line = "gold:scsi0:1 takes 16 ms a command at a flat 500 a second, web:scsi0:1 beside it \
                    0.6 ms: what holds it cannot be told yet.";
        assert_eq!(verdict.headline, line);
        assert_eq!(both(1.2).outcome, Outcome::Healthy);
    }

    /// A volume at a rate that stays, on which so many commands are outstanding, more or fewer by that part, beside
    /// one of the same array that answers in 0.3 ms; the commands are those of so many VMs.
    fn beside_a_quick_volume(rate: f64, outstanding: f64, moves: f64, vms: u32) -> Verdict {
        let mut bench = Bench::new(60);
        // No two samples in a row are alike, and nothing repeats.
        let part = |sample: usize, by: f64| 1.0 + by * ((sample * 37 % 60) as f64 / 30.0 - 1.0);
        let name = |number: u32| format!("naa.624a9370aaaaaaaaaaaaaaaa000110{number}");
        let held = bench.device(&name(10), 254);
        for vm in 0..vms {
            let each = rate / f64::from(vms);
            let vm = held.vm(&format!("big{vm}")).iops_when(move |s| each * part(s + 13, 0.003));
            vm.davg_when(move |s| 1_000.0 * outstanding / rate * part(s, moves));
        }
        let quick = bench.device(&name(11), 254).vm("quick");
        quick.iops_when(move |s| 3_000.0 * part(s + 7, 0.2)).davg(0.31);
        judged(&bench)
    }

    #[test]
    fn a_volume_at_a_flat_rate_ten_times_slower_than_its_sibling_is_no_all_clear() {
        for (rate, outstanding, moves) in [
            (20_000.0, 60.0, 0.05),
            (20_000.0, 60.0, 0.08),
            (500.0, 2.95, 0.3),
            (2_000.0, 8.0, 0.1),
        ] {
            for vms in [1, 4] {
                let verdict = beside_a_quick_volume(rate, outstanding, moves, vms);
                assert_ne!(verdict.outcome, Outcome::Healthy, "{rate}: {}", verdict.headline);
                // No limit of the host holds what waits for nothing there, and it is said once.
                if verdict.outcome == Outcome::CannotTell {
                    let text = crate::render_text(&verdict).replace('\n', " ");
                    assert!(text.contains("A policy of the array or slower disks"), "{text}");
                    assert_eq!(text.matches("cannot be told yet").count(), 1, "{text}");
                }
            }
        }
        // One thread that comes at random is on slower disks, or misses a cache.
        let verdict = beside_a_quick_volume(160.0, 0.95, 0.3, 1);
        assert_eq!(verdict.outcome, Outcome::Healthy, "{}", verdict.headline);
    }

    #[test]
    fn few_rows_of_a_device_that_is_held_beside_a_quick_one_are_no_all_clear() {
        // A policy of 22,000 a second, 80 commands out: 3.6 ms, and 0.44 ms on another volume.
        let mut bench = Bench::new(4);
        bench.device("naa.1", 254).vm("a").iops(22_000.0).davg(3.57);
        bench.device("naa.2", 254).vm("b").iops_when(|s| 3_000.0 + s as f64).davg(0.44);
        assert_eq!(judged(&bench).outcome, Outcome::CannotTell);
    }

    #[test]
    fn three_rows_that_are_slow_for_an_unknown_reason_are_no_all_clear() {
        // As many as there are: at 16 ms beside a device that answers in 0.5, and alone; and a knee
        // that one row shows, which has ten times the latency and a quarter of the commands.
        let with = |quick: bool, davg: f64| {
            let mut bench = Bench::new(3);
            bench.device("naa.2", 64).vm("gold").iops(1_500.0).davg(davg);
            if quick {
                let rate = |s: usize| 800.0 + s as f64;
                bench.device("naa.1", 64).vm("web").iops_when(rate).davg(0.51);
            }
            judged(&bench).outcome
        };
        assert_eq!(
            (with(true, 16.0), with(false, 16.0)),
            (Outcome::CannotTell, Outcome::CannotTell)
        );
        assert_eq!((with(true, 0.6), with(false, 0.6)), (Outcome::Healthy, Outcome::Healthy));
        let mut bench = Bench::new(3);
        let vm = bench.device("naa.1", 64).vm("a");
        vm.iops_when(|s| [31_270.0, 28_652.0, 8_449.0][s % 3])
            .davg_when(|s| [0.72, 1.4, 7.1][s % 3]);
        let verdict = judged(&bench);
        assert_eq!(verdict.outcome, Outcome::CannotTell);
        let line = "takes 7.1 ms a command (DAVG) in one of 3 samples";
        assert!(verdict.headline.contains(line), "{}", verdict.headline);
    }

    /// Virtual disks on one NFS volume: their rates and latencies.
    fn on_nfs(disks: &[(&str, f64, f64)]) -> Verdict {
        const SAMPLES: usize = 12;
        let mut recording = Recording::new("esx1".into());
        recording.times_ms = (0..SAMPLES as i64).map(|sample| 5_000 * sample).collect();
        let volume = recording.add_entity(Entity::new(Kind::NfsVolume, "nfs1".into()));
        let rate = disks.iter().map(|disk| disk.1).sum();
        let gavg = disks.iter().map(|disk| disk.1 * disk.2).sum::<f64>() / rate;
        recording.set_constant(volume, Counter::Commands, rate, SAMPLES);
        recording.set_constant(volume, Counter::GuestLatency, gavg, SAMPLES);
        for (vm, rate, ms) in disks {
            let vm_row = recording.add_entity(Entity::new(Kind::Vm, (*vm).into()));
            let mut disk = Entity::new(Kind::VirtualDisk, format!("{vm}:scsi0:1"));
            (disk.device, disk.vm) = (Some(volume), Some(vm_row));
            let disk = recording.add_entity(disk);
            recording.set_constant(disk, Counter::Commands, *rate, SAMPLES);
            recording.set_constant(disk, Counter::Reads, *rate, SAMPLES);
            recording.set_constant(disk, Counter::VdiskReadLatency, *ms, SAMPLES);
        }
        diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default())
    }

    #[test]
    fn on_nfs_who_stays_at_a_rate_is_named() {
        let verdict = on_nfs(&[("sql", 800.02, 20.0), ("web", 3_312.0, 0.6)]);
        assert!(verdict.headline.starts_with("sql:scsi0:1 takes 20 ms"), "{}", verdict.headline);
        let verdict = on_nfs(&[("sql", 2_000.0, 20.0)]);
        assert!(verdict.headline.starts_with("sql:scsi0:1 stays at 2,000"), "{}", verdict.headline);
        assert_eq!(on_nfs(&[("sql", 2_137.0, 20.0)]).outcome, Outcome::Healthy);
        assert_eq!(on_nfs(&[("sql", 800.0, 0.7), ("web", 3_312.0, 0.6)]).outcome, Outcome::Healthy);
    }

    /// What is judged of a bench without some columns.
    fn without(bench: &Bench, is_cut: impl Fn(Counter, Kind) -> bool) -> Verdict {
        let all = bench.recording();
        let mut cut = Recording::new(all.host.clone());
        cut.times_ms.clone_from(&all.times_ms);
        all.entities().iter().for_each(|entity| _ = cut.add_entity(entity.clone()));
        for (id, counter, values) in all.columns() {
            if !is_cut(counter, all.entity(id).kind) {
                cut.set_column(id, counter, values.to_vec());
            }
        }
        diagnose(&Measured::of(cut), &Thresholds::default(), &Facts::default())
    }

    #[test]
    fn a_full_queue_of_a_device_without_a_rate_is_told() {
        // 1,690 a second: 32 of 18.9 ms in the slots, and 57 of 33.7 before them.
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 32);
        for vm in ["a", "b"] {
            device.vm(vm).iops(845.0).davg(18.9).kavg(33.7);
        }
        let told = |counters: &[Counter]| {
            let verdict = without(&bench, |c, kind| kind == Kind::Device && counters.contains(&c));
            assert_eq!(verdict.outcome, Outcome::CannotTell);
            verdict.headline
        };
        let line = "57 commands wait for the 32 slots of naa.1, all of which are taken, 33.7 ms each \
                    (KAVG): why is not known without what is missing.";
        assert_eq!(told(&[Counter::Commands]), line);
        // Where nothing tells that it is full either, it is not said to be well.
        let line = told(&[Counter::Commands, Counter::QueuedCommands]);
        assert!(line.ends_with("it is not whole. 1 of 1 devices could not be judged."), "{line}");
    }

    #[test]
    fn commands_that_wait_for_unknown_slots_are_told() {
        let mut bench = Bench::new(11);
        let device = bench.device("naa.1", 32);
        for vm in ["sql-1", "sql-2", "sql-3"] {
            device.vm(vm).iops(14_604.0).davg(0.73).kavg(0.91);
        }
        let verdict = without(&bench, |counter, _| counter == Counter::DeviceQDepth);
        let line = "39.9 commands wait 0.91 ms each in the VMkernel for naa.1: which limit holds them \
                    is not known without DQLEN.";
        assert_eq!((verdict.outcome, verdict.headline.as_str()), (Outcome::CannotTell, line));
    }
}
