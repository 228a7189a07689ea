//! Commands by which an array copies by itself (XCOPY), for the rule on slow arrays: they are on a device beside those
//! of VMs, and take what they ask for.

use crate::{Device, Flow, World};

/// Whether all that is slow of a device are commands of the host's own that move no byte, as those by which an array
/// copies by itself (XCOPY): each takes what it asks for, 4 MiB of the array's time by default [DM], and no VM waits.
pub(super) fn are_all(device: &Device<'_>, samples: &[usize]) -> bool {
    let has_load = |world: &&World<'_>| world.flow.mean_rate(samples) > Some(0.0);
    let is_copy = |world: &&World<'_>| world.is_system && world.flow.size_kib(samples) == Some(0.0);
    let (copies, others): (Vec<_>, Vec<_>) =
        device.worlds.iter().filter(has_load).partition(is_copy);
    let excess_ms = |flow: &Flow<'_>, s| Some(flow.davg(s)? - device.slow_ms(s)?);
    let is_slow = |world: &World<'_>| world.flow.per_command(samples, excess_ms) >= Some(0.0);
    let is_known = !copies.is_empty() && !device.hides_worlds(samples);
    is_known && !others.into_iter().any(is_slow)
}

#[cfg(test)]
mod tests {
    use counters::Counter;
    use levels::Measured;

    use crate::{Cause, Facts, Thresholds, diagnose, fixture};

    /// Eight commands of 4 MiB at a time at 1,024 MiB/s: 256 a second that take 31.25 ms each, and carry `mib` a second.
    /// A VM does 100 a second of 4 KiB that take as long as told.
    fn beside_a_copy(mib: f64, vm_ms: f64) -> Vec<Cause> {
        let (mut recording, [device, of_vm, mover]) =
            fixture::beside_the_host("svmotion", (0..10).map(|sample| 1_000 * sample));
        let rows = [
            (of_vm, 100.0, vm_ms, 0.4),
            (mover, 256.0, 31.25, mib),
            (device, 356.0, (100.0 * vm_ms + 256.0 * 31.25) / 356.0, 0.4 + mib),
        ];
        // What nobody sets scatters.
        let put = |value: f64| (0..10).map(|s| value * (1.0 + 0.1 * (s % 3) as f64)).collect();
        for (row, rate, ms, mib) in rows {
            let scattered =
                [(Counter::Commands, rate), (Counter::Writes, rate), (Counter::MbWritten, mib)];
            for (counter, value) in scattered {
                recording.set_column(row, counter, put(value));
            }
            let [kernel, read] = [Counter::KernelLatency, Counter::MbRead].map(|none| (none, 0.0));
            let steady = [(Counter::DriverLatency, ms), (Counter::GuestLatency, ms), kernel, read];
            for (counter, value) in steady {
                recording.set_constant(row, counter, value, 10);
            }
        }
        let verdict = diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default());
        verdict.findings.iter().map(|finding| finding.cause).collect()
    }

    #[test]
    fn an_array_that_copies_by_itself_is_not_slow_for_whom_it_disturbs_not() {
        assert_eq!(beside_a_copy(0.0, 1.0), []);
        assert!(beside_a_copy(0.0, 40.0).contains(&Cause::ArraySlow), "the VM is slow as well");
        assert!(beside_a_copy(16.0, 1.0).contains(&Cause::ArraySlow), "it moves pieces of 64 KiB");
    }
}
