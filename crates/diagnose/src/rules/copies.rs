//! Commands by which an array copies by itself (XCOPY), for the rule on slow arrays: they are on a device beside those
//! of VMs, and take what they ask for.

use levels::weighted_mean;

use super::{ALIKE, causers};
use crate::{Device, Finding, Flow, Party, World, number};

/// How many times longer the commands of VMs take beside a copy that slows them.
const LONGER: f64 = 2.0;

/// Whether all that is slow of a device are commands of the host's own that move no byte, as those by which an array
/// copies by itself (XCOPY): each takes what it asks for, 4 MiB of the array's time by default [DM], and no VM waits.
pub(super) fn are_all(device: &Device<'_>, samples: &[usize]) -> bool {
    let (copies, others) = parted(device, samples);
    let excess_ms = |flow: &Flow<'_>, s| Some(flow.davg(s)? - device.slow_ms(s)?);
    let is_slow = |world: &World<'_>| world.flow.per_command(samples, excess_ms) >= Some(0.0);
    let is_known = !copies.is_empty() && !device.hides_worlds(samples);
    is_known && !others.into_iter().any(is_slow)
}

/// Names who makes a device slow: its copies, or those of its VMs that ask for more than others, and for more than
/// before where no knee tells that it is what they ask for.
pub(super) fn name_causers(
    device: &Device<'_>,
    samples: &[usize],
    is_knee: bool,
    finding: &mut Finding,
) {
    match that_slow(device, samples) {
        Some((copies, told)) => {
            finding.sentence += &told;
            finding.causers = copies;
        }
        None => {
            finding.causers = causers(&finding.sufferers);
            finding.causers.retain(|vm| is_knee || sends_more(device, &vm.name, samples));
        }
    }
}

/// Whether a VM does more in some samples than in the others; also where there are no others. Who does as much as
/// before may wait for what somebody else does to the array.
fn sends_more(device: &Device<'_>, vm: &str, samples: &[usize]) -> bool {
    let others = device.busy_but(samples);
    let rate = |samples: &[usize]| device.world_of(vm)?.flow.mean_rate(samples);
    others.is_empty() || rate(samples) > rate(&others).map(|rate| ALIKE.end() * rate)
}

/// The copies beside which the VMs of a device are slow and without which they are not, and how that is told.
fn that_slow(device: &Device<'_>, samples: &[usize]) -> Option<(Vec<Party>, String)> {
    let (copies, others) = parted(device, samples);
    let rests = |sample: &usize| copies.iter().all(|copy| copy.flow.rate(*sample) == Some(0.0));
    let without: Vec<usize> = device.busy.iter().copied().filter(rests).collect();
    let vms_ms =
        |samples: &[usize]| {
            let flows = others.iter().map(|vm| &vm.flow);
            weighted_mean(flows.map(|flow| {
                Some((flow.per_command(samples, Flow::davg)?, flow.mean_rate(samples)?))
            }))
        };
    let (with_ms, without_ms) = (vms_ms(samples)?, vms_ms(&without)?);
    let parties =
        copies.iter().filter_map(|copy| Party::of(copy.owner, &copy.flow, samples)).collect();
    let names: Vec<&str> = copies.iter().map(|copy| copy.owner).collect();
    let told = format!(
        " The array copies by itself (XCOPY) for {} meanwhile: commands of VMs take {} ms beside that, and {} without.",
        names.join(", "),
        number(with_ms),
        number(without_ms)
    );
    (!copies.is_empty() && with_ms >= LONGER * without_ms).then_some((parties, told))
}

/// The worlds with load on a device: those that copy, and the others.
fn parted<'d, 'a>(
    device: &'d Device<'a>,
    samples: &[usize],
) -> (Vec<&'d World<'a>>, Vec<&'d World<'a>>) {
    let has_load = |world: &&World<'_>| world.flow.mean_rate(samples) > Some(0.0);
    let is_copy = |world: &&World<'_>| world.is_system && world.flow.size_kib(samples) == Some(0.0);
    device.worlds.iter().filter(has_load).partition(is_copy)
}

#[cfg(test)]
mod tests {
    use counters::Counter;
    use levels::Measured;

    use crate::{Cause, Facts, Finding, Thresholds, diagnose, fixture};

    const SAMPLES: usize = 20;

    /// Eight commands of 4 MiB at a time at 1,024 MiB/s from a sample on: 256 a second that take 31.25 ms each, and
    /// carry `mib` a second. A VM does 100 a second of 4 KiB that take as long as told before and since.
    fn beside_a_copy(from: usize, mib: f64, vm_ms: [f64; 2]) -> Vec<Finding> {
        let times_ms = (0..SAMPLES as i64).map(|sample| 1_000 * sample);
        let (mut recording, [device, of_vm, mover]) =
            fixture::beside_the_host("svmotion", times_ms);
        let copies = |s: usize| if s < from { 0.0 } else { 256.0 };
        let of_vm_ms = |s: usize| vm_ms[usize::from(s >= from)];
        let mean_ms = |s: usize| (100.0 * of_vm_ms(s) + copies(s) * 31.25) / (100.0 + copies(s));
        let copied = |s: usize| if s < from { 0.0 } else { mib };
        type Of<'a> = &'a dyn Fn(usize) -> f64;
        let rows: [(_, Of<'_>, Of<'_>, Of<'_>); 3] = [
            (of_vm, &|_| 100.0, &of_vm_ms, &|_| 0.4),
            (mover, &copies, &|_| 31.25, &copied),
            (device, &|s| 100.0 + copies(s), &mean_ms, &|s| 0.4 + copied(s)),
        ];
        let every = |value: &dyn Fn(usize) -> f64| (0..SAMPLES).map(value).collect::<Vec<_>>();
        for (row, rate, ms, mib) in rows {
            // What nobody sets scatters.
            let put = |of: Of<'_>| every(&|s| of(s) * (1.0 + 0.1 * (s % 3) as f64));
            let scattered =
                [(Counter::Commands, rate), (Counter::Writes, rate), (Counter::MbWritten, mib)];
            for (counter, value) in scattered {
                recording.set_column(row, counter, put(value));
            }
            for counter in [Counter::DriverLatency, Counter::GuestLatency] {
                recording.set_column(row, counter, every(ms));
            }
            for counter in [Counter::KernelLatency, Counter::MbRead] {
                recording.set_constant(row, counter, 0.0, SAMPLES);
            }
        }
        diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default()).findings
    }

    fn is_slow(findings: Vec<Finding>) -> bool {
        findings.iter().any(|finding| finding.cause == Cause::ArraySlow)
    }

    #[test]
    fn an_array_that_copies_by_itself_is_not_slow_for_whom_it_disturbs_not() {
        assert_eq!(beside_a_copy(0, 0.0, [1.0; 2]).len(), 0);
        assert!(is_slow(beside_a_copy(0, 0.0, [40.0; 2])), "the VM is slow as well");
        assert!(is_slow(beside_a_copy(0, 16.0, [1.0; 2])), "it moves pieces of 64 KiB");
        assert_eq!(
            beside_a_copy(10, 0.0, [1.0; 2]).len(),
            0,
            "it takes 22 times as long as before"
        );
    }

    #[test]
    fn a_copy_beside_which_vms_are_slow_and_without_it_not_is_the_cause() {
        let findings = beside_a_copy(10, 0.0, [1.0, 12.0]);
        let finding = &findings[0];
        assert_eq!(
            (finding.cause, finding.causers[0].name.as_str()),
            (Cause::ArraySlow, "svmotion")
        );
        let told = "commands of VMs take 12 ms beside that, and 1 without";
        assert!(finding.sentence.contains(told), "{}", finding.sentence);
    }
}
