//! What the rows of other times show of more commands: where an array had more of a device's commands and
//! did no more of them, it is at its knee, and a deeper queue gains nothing [S0].

use std::ops::RangeInclusive;

use super::{ALIKE, LASTING, number};
use crate::{Device, Flow, mean};

/// How many times the commands of now are more of them: an array that is not at its knee does as many times
/// as much then.
const MORE: f64 = 1.5;
/// What it does then, in parts of what it does now. More is a gain, as that of 1.5 times the commands is from
/// 13 % on where the rate grows by the power of 0.3 that counts as a knee; far less is an array that others
/// load, and tells nothing of now.
const NO_MORE: RangeInclusive<f64> = 0.9..=1.05;
/// How far the part of the bytes that is read may be another for commands of one kind.
pub(crate) const SAME_MIX: f64 = 0.2;
/// How many times as long a command takes beside so many times as many others where it waits at the array for
/// most of its time (three quarters): what a deeper queue sends there waits behind the rest.
const TIMES: f64 = 4.0;

/// The part of a rate that stays which one VM has lost to others where the array makes it: what each asks for does not
/// change with who else is there.
const OTHERS: f64 = 0.2;

/// A device whose array did no more of more commands: its commands there and those done a second, now and then.
pub(super) struct Knee {
    inside: [f64; 2],
    rate: [f64; 2],
    samples: usize,
}

impl Knee {
    /// What the samples beside these show, where they have commands of the same kind.
    pub(super) fn of(device: &Device<'_>, samples: &[usize]) -> Option<Self> {
        let flow = &device.flow;
        let now = flow.mean_in_flight(samples)?;
        let is_more = |sample: &usize| flow.in_flight(*sample) >= Some(MORE * now);
        let more: Vec<usize> = others_alike(device, samples).filter(is_more).collect();
        let rate = [flow.mean_rate(samples)?, flow.mean_rate(&more)?];
        let is_no_more = more.len() >= LASTING && NO_MORE.contains(&(rate[1] / rate[0]));
        let is_all = is_full(device, &more)
            || !is_sooner(device, samples, &more)
            || is_of_others(device, samples, &more);
        let inside = [now, flow.mean_in_flight(&more)?];
        (is_no_more && is_all && !device.is_nfs).then_some(Self {
            inside,
            rate,
            samples: more.len(),
        })
    }

    /// What the rows show, in words.
    pub(super) fn told(&self) -> String {
        let [now, then] = self.inside.map(number);
        let [rate, then_rate] = self.rate.map(number);
        format!(
            "in {} other samples of this recording {then} of its commands were at the array, and it did {then_rate} a \
             second of them; with {now} it does {rate}, so it is at its knee",
            self.samples
        )
    }
}

/// The busy samples beside these that have commands of the same kind.
fn others_alike<'s>(
    device: &'s Device<'_>,
    samples: &'s [usize],
) -> impl Iterator<Item = usize> + 's {
    let flow = &device.flow;
    let is_alike = move |sample: usize| {
        let sizes = flow.size_kib(&[sample])? / flow.size_kib(samples)?;
        let mix = flow.read_part(&[sample])? - flow.read_part(samples)?;
        Some(ALIKE.contains(&sizes) && mix.abs() <= SAME_MIX)
    };
    device.busy_but(samples).into_iter().filter(move |sample| is_alike(*sample) == Some(true))
}

/// That most of the time below the host is a queue at the array, in words, where samples with few commands of
/// the same kind show what one takes without it.
pub(super) fn queue_at_array(device: &Device<'_>, samples: &[usize]) -> Option<String> {
    let flow = &device.flow;
    let now = flow.mean_in_flight(samples)?;
    let is_few = |sample: &usize| flow.in_flight(*sample).is_some_and(|then| TIMES * then <= now);
    let few: Vec<usize> = others_alike(device, samples).filter(is_few).collect();
    let davg_ms = |samples: &[usize]| flow.per_command(samples, Flow::davg);
    let (ms, ms_then) = (davg_ms(samples)?, davg_ms(&few)?);
    (few.len() >= LASTING && ms >= TIMES * ms_then && !device.is_nfs).then(|| {
        format!(
            "with {} of its commands at the array each took {} ms there ({} other samples), with {} it takes {}: \
             most of that is a queue at the array, and what is sent there sooner waits in it",
            number(flow.mean_in_flight(&few).unwrap_or_default()),
            number(ms_then),
            few.len(),
            number(now),
            number(ms)
        )
    })
}

/// Whether all slots of a device are taken in the mean of some samples: then it does what its array does, and
/// not what is asked for.
fn is_full(device: &Device<'_>, samples: &[usize]) -> bool {
    const FULL: f64 = 0.95;
    let part = |&sample: &usize| Some(device.in_slots(sample)? / device.queue.depth_at(sample)?);
    mean(samples.iter().map(part)) >= Some(FULL)
}

/// Whether a VM that is there both times did more of the commands then, which others do now: a sum that stays
/// nevertheless is what the array does.
fn is_of_others(device: &Device<'_>, samples: &[usize], others: &[usize]) -> bool {
    let (now, then) = (device.tenants(samples), device.tenants(others));
    let least = OTHERS * now.iter().map(|vm| vm.iops).sum::<f64>();
    now.iter().any(|vm| {
        let before = then.iter().find(|one| one.name == vm.name);
        before.is_some_and(|before| before.iops > 0.0 && before.iops - vm.iops >= least)
    })
}

/// Whether commands took less time in all (GAVG) in other samples: at a rate that is asked for, and not one
/// that the array sets, that is what more slots gain [S1].
fn is_sooner(device: &Device<'_>, samples: &[usize], others: &[usize]) -> bool {
    let gavg_ms = |samples: &[usize]| device.flow.per_command(samples, Flow::gavg);
    gavg_ms(others) < gavg_ms(samples).map(|ms| NO_MORE.start() * ms)
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Facts, Finding, fixture::Bench};

    /// Two VMs that fill 32 slots, after a quiet time in which a command took so long.
    fn after_a_quiet_time(quiet_ms: f64) -> Finding {
        let mut bench = Bench::new(20);
        let device = bench.device("naa.1", 64).depth(|s| if s < 10 { 64 } else { 32 });
        let old = device.vm("old").iops(900.0);
        old.davg_when(move |s| if s < 10 { quiet_ms } else { 6.0 });
        old.kavg_when(|s| if s < 10 { 0.0 } else { 3.0 });
        let new = device.vm("new").iops_when(|s| if s < 10 { 0.0 } else { 4_433.0 });
        new.davg(6.0).kavg(3.0);
        bench.only(Cause::Dsnro, &Facts::default())
    }

    #[test]
    fn no_deeper_queue_before_an_array_at_which_most_of_the_time_is_waiting() {
        let finding = after_a_quiet_time(1.2);
        let told =
            "Do not raise the depth: with 1.08 of its commands at the array each took 1.2 ms there";
        assert!(finding.do_not[0].starts_with(told), "{:?}", finding.do_not);
        assert!(finding.changes.iter().all(|change| !change.what.starts_with("Raise")));
        let finding = after_a_quiet_time(4.0);
        assert!(finding.changes[0].what.starts_with("Raise DSNRO"), "{:?}", finding.changes);
    }

    /// 64 threads that have 64 slots, and 32 once another VM competes: at an array that serves 20 at a time,
    /// or as many as come.
    fn beside_another(does_more: f64, cause: Cause) -> Finding {
        let mut bench = Bench::new(20);
        let device = bench.device("naa.1", 64).depth(|s| if s < 10 { 64 } else { 32 });
        let alone = 20_000.0 * does_more;
        let vm = device.vm("big").iops_when(move |s| if s < 10 { alone } else { 19_000.0 });
        vm.davg_when(move |s| if s < 10 { 64_000.0 / alone } else { 1.6 });
        vm.kavg_when(|s| if s < 10 { 0.0 } else { 1.8 });
        let small = device.vm("small").iops_when(|s| if s < 10 { 0.0 } else { 1_000.0 });
        small.davg(1.6).kavg(1.8);
        bench.first(cause, &Facts::default())
    }

    #[test]
    fn no_deeper_queue_is_advised_before_an_array_that_gave_no_more_to_it() {
        let finding = beside_another(1.0, Cause::Dsnro);
        let told = "in 10 other samples of this recording 64 of its commands were at the array, and it did \
                    20,000 a second of them; with 32 it does 20,000, so it is at its knee";
        assert!(finding.do_not[0].contains(told), "{:?}", finding.do_not);
        assert!(finding.changes.iter().all(|change| change.steps.is_empty()));
        assert!(finding.changes[0].what.starts_with("Ask less of the array"), "{finding:?}");
        assert!(finding.caution.is_none());
    }

    /// 64 threads that half of 128 slots take, and then another VM with 64: the array does what it did.
    #[test]
    fn nor_before_one_that_takes_from_a_vm_what_it_gives_to_another() {
        let mut bench = Bench::new(20);
        let device = bench.device("naa.1", 128).depth(|s| if s < 10 { 128 } else { 32 });
        let old = device.vm("old").iops_when(|s| if s < 10 { 31_800.0 } else { 15_900.0 });
        old.davg_when(|s| if s < 10 { 2.0 } else { 1.0 })
            .kavg_when(|s| if s < 10 { 0.0 } else { 3.0 });
        let new = device.vm("new").iops_when(|s| if s < 10 { 0.0 } else { 15_900.0 });
        new.davg(1.0).kavg(3.0);
        let finding = bench.first(Cause::Dsnro, &Facts::default());
        assert!(finding.do_not[0].contains("so it is at its knee"), "{:?}", finding.do_not);
        assert!(finding.changes.iter().all(|change| change.steps.is_empty()));
    }

    #[test]
    fn where_more_commands_did_more_a_deeper_queue_is() {
        for does_more in [0.6, 1.2, 1.9] {
            let finding = beside_another(does_more, Cause::Dsnro);
            assert!(finding.changes[0].what.starts_with("Raise DSNRO"), "{does_more}: {finding:?}");
        }
    }

    /// 20,000 a second are asked for [S1]: where all slots are there, 40 of them are taken, and 32 make some wait.
    #[test]
    fn what_more_slots_gain_of_a_rate_that_is_asked_for_is_time() {
        let mut bench = Bench::new(20);
        let device = bench.device("naa.1", 128).depth(|s| if s < 10 { 128 } else { 32 });
        let big = device.vm("big").iops(19_500.0).davg_when(|s| if s < 10 { 2.5 } else { 1.6 });
        big.kavg_when(|s| if s < 10 { 0.0 } else { 2.4 });
        let small = device.vm("small").iops_when(|s| if s < 10 { 0.0 } else { 500.0 });
        small.davg(1.6).kavg(2.4);
        let finding = bench.first(Cause::Dsnro, &Facts::default());
        assert!(finding.changes[0].what.starts_with("Raise DSNRO"), "{finding:?}");
    }

    /// Two disks at their 64, then one: 128 at the array did no more, or twice as much.
    #[test]
    fn nor_is_a_deeper_disk() {
        for (together, is_raised) in [(20_000.0, false), (40_000.0, true)] {
            let mut bench = Bench::new(20);
            let device = bench.device("naa.1", 254);
            let half = together / 2.0;
            let one = device.vm("one").iops_when(move |s| if s < 10 { half } else { 20_000.0 });
            one.davg_when(move |s| if s < 10 { 64_000.0 / half } else { 3.2 });
            let two = device.vm("two").iops_when(move |s| if s < 10 { half } else { 0.0 });
            two.davg(64_000.0 / half);
            let findings = bench.findings();
            let caps = findings.iter().filter(|found| found.cause == Cause::VirtualDiskCap);
            let caps: Vec<&Finding> = caps.collect();
            assert!(!caps.is_empty());
            for cap in caps {
                assert_eq!(!cap.changes.is_empty(), is_raised, "{together}: {cap:?}");
            }
        }
    }

    #[test]
    fn commands_of_another_kind_tell_nothing() {
        let mut bench = Bench::new(20);
        let device = bench.device("naa.1", 128).depth(|s| if s < 10 { 128 } else { 32 });
        let backup = device.vm("backup").size_kib(256.0);
        backup.iops_when(|s| if s < 10 { 20_000.0 } else { 0.0 }).davg(6.4);
        for vm in ["a", "b"] {
            let vm = device.vm(vm).iops_when(|s| if s < 10 { 0.0 } else { 10_000.0 });
            vm.davg(1.6).kavg(1.6);
        }
        let finding = bench.first(Cause::Dsnro, &Facts::default());
        assert!(finding.changes[0].what.starts_with("Raise DSNRO"), "{finding:?}");
    }
}
