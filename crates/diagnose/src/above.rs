//! What waits above the devices: a virtual disk's latency (LAT/rd, LAT/wr) has all that a command waits from the
//! virtual adapter on, GAVG of its VM's worlds only what is below these [CAP-A]. What the one has more is in no
//! other row, so it is no finding of a cause, and no all-clear either. Where no world has the VM's name, as in a
//! file without columns of CPUs or on NFS, a device's latency is the mean over all who use it: there only waits
//! what the slowest device does not take, and what all virtual disks together have more than all devices.

use std::cell::OnceCell;

use levels::{largest, mean};

use crate::{Finding, Host, Lack, Lacking, Spell, Threshold, Vdisk, little, number};

/// The part of the commands of a VM's disks that its worlds have at least where none goes another way: those of
/// a volume on NFS have no world.
const WHOLE: f64 = 0.95;

/// What waits above all devices in a sample.
type OfAll<'f> = dyn Fn(usize) -> Option<f64> + 'f;

/// The VMs whose commands wait there, of those that no finding has as a sufferer.
pub(crate) fn of<'h>(
    host: &'h Host<'_>,
    findings: &'h [Finding],
) -> impl Iterator<Item = Lack> + 'h {
    let vms = host.vms().filter(move |(vm, _)| !findings.iter().any(|finding| finding.hurts(vm)));
    let all = OnceCell::new();
    let of_all = move |sample: usize| {
        let each = || host.every_sample().into_iter().map(|s| above_all(host, s)).collect();
        let all: &Vec<Option<f64>> = all.get_or_init(each);
        *all.get(sample)?
    };
    let sentences = vms.filter_map(move |(vm, disks)| waits(host, &of_all, vm, &disks));
    sentences.map(|sentence| Lack { what: Lacking::Reason, sentence })
}

/// What all virtual disks have outstanding and no device has; `None` where a row of either was not measured.
fn above_all(host: &Host<'_>, sample: usize) -> Option<f64> {
    let whole = host.vdisks.iter().map(|disk| disk.least_outstanding(sample));
    let below = host.devices.iter().map(|device| device.flow.outstanding(sample));
    Some(whole.sum::<Option<f64>>()? - below.sum::<Option<f64>>()?)
}

/// What a VM has outstanding in a sample, by Little's law.
struct Held {
    rate: f64,
    /// From its virtual adapters on, at least.
    whole: f64,
    /// Below its worlds, at most.
    below: f64,
}

impl Held {
    /// `None` where something was not measured, or goes another way.
    fn at(
        host: &Host<'_>,
        of_all: &OfAll<'_>,
        vm: &str,
        disks: &[&Vdisk<'_>],
        sample: usize,
    ) -> Option<Self> {
        let rate = disks.iter().map(|disk| disk.rate(sample)).sum::<Option<f64>>()?;
        let whole = disks.iter().map(|disk| disk.least_outstanding(sample)).sum::<Option<f64>>()?;
        let worlds = || host.devices.iter().filter_map(|device| device.world_of(vm));
        if !host.has_world_of(vm) {
            let slowest_ms = largest(host.devices.iter().map(|device| device.flow.gavg(sample)))?;
            return Some(Self {
                rate,
                whole,
                below: little(rate, slowest_ms).max(whole - of_all(sample)?),
            });
        }
        let reached = worlds().map(|world| world.flow.rate(sample)).sum::<Option<f64>>()?;
        let below = worlds().map(|world| world.flow.outstanding(sample)).sum::<Option<f64>>()?;
        (reached >= WHOLE * rate).then_some(Self { rate, whole, below })
    }

    /// Commands above its worlds, and how long each waits there, in milliseconds.
    fn above(&self) -> (f64, f64) {
        let waiting = self.whole - self.below;
        (waiting, 1000.0 * waiting / self.rate)
    }
}

fn waits(host: &Host<'_>, of_all: &OfAll<'_>, vm: &str, disks: &[&Vdisk<'_>]) -> Option<String> {
    let least = host.limits.get(Threshold::BusyIops);
    let all = host.every_sample();
    let held =
        |sample: usize| Held::at(host, of_all, vm, disks, sample).filter(|held| held.rate >= least);
    let counts = |sample| {
        let held = held(sample)?;
        Some(host.is_held_up(held.above(), held.below))
    };
    let spell = Spell::find(&all, counts)?;
    let worst = disks.iter().max_by(|a, b| {
        let held = |disk: &Vdisk<'_>| spell.mean(|sample| disk.outstanding(sample)).unwrap_or(0.0);
        held(a).total_cmp(&held(b))
    })?;
    let over =
        |value: &dyn Fn(Held) -> f64| mean(spell.samples.iter().map(|&s| held(s).map(value)));
    let (rate, below) = (over(&|held| held.rate)?, over(&|held| held.below)?);
    let waiting = over(&|held| held.above().0)?;
    let (place, of) = match host.has_world_of(vm) {
        true => ("below its worlds", vm),
        false => ("at the devices at most", "the devices"),
    };
    Some(format!(
        "{} takes {} ms a command at its virtual adapter, {} ms {place}: {} commands wait above the \
         devices, {} ms each. So say LAT/rd and LAT/wr against GAVG of {of}, in {} of {} samples, and no row tells \
         why. A limit of its storage policy, its snapshots or an I/O filter do that; a deeper queue gains nothing.",
        worst.name,
        number(worst.latency_ms(&spell.samples)?),
        number(1000.0 * below / rate),
        number(waiting),
        number(1000.0 * waiting / rate),
        spell.samples.len(),
        spell.of
    ))
}

#[cfg(test)]
mod tests {
    use counters::{Counter, Kind};
    use levels::Measured;

    use crate::{Facts, Outcome, Thresholds, diagnose, fixture::Bench};

    /// What is judged of a VM whose commands wait so many milliseconds above its device, by its rate.
    fn judged(above_ms: f64, rate: f64) -> crate::Verdict {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 64);
        let moves = move |sample: usize| rate * [1.0, 0.8, 1.3, 0.9][sample % 4];
        device.vm("sql").iops_when(moves).davg(1.0);
        device.vm("web").iops_when(|sample| 900.0 + 40.0 * (sample % 3) as f64).davg(1.0);
        let mut recording = bench.recording();
        let (disk, _) = recording.of_kind(Kind::VirtualDisk).next().unwrap();
        let (ms, samples) = (1.0 + above_ms, recording.len());
        recording.set_constant(disk, Counter::VdiskReadLatency, ms, samples);
        diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default())
    }

    #[test]
    fn what_waits_above_all_devices_is_told_where_no_world_has_a_name() {
        let judged = |ms: f64| {
            let mut bench = Bench::new(12);
            bench.device("naa.1", 64).vm("sql").iops_when(|s| 300.0 + (s % 3) as f64).davg(1.0);
            bench.without_worlds();
            let mut recording = bench.recording();
            let (disk, _) = recording.of_kind(Kind::VirtualDisk).next().unwrap();
            recording.set_constant(disk, Counter::VdiskReadLatency, ms, recording.len());
            diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default())
        };
        let told = |ms: f64| {
            judged(ms).lacks.iter().any(|lack| lack.sentence.contains("at the devices at most"))
        };
        assert_eq!([told(141.0), told(1.0)], [true, false]);
    }

    /// A volume's latency is the mean over a slow and a quick VM: the slow one takes longer, and nothing waits.
    #[test]
    fn a_vm_that_takes_longer_than_the_mean_of_its_volume_waits_nowhere_above_it() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 64);
        device.vm("slow").iops_when(|s| 500.0 + (s % 3) as f64).davg(32.0);
        device.vm("quick").iops_when(|s| 850.0 + (s % 3) as f64).davg(1.2);
        bench.without_worlds();
        let lacks = bench.diagnose(&Thresholds::default(), &Facts::default()).lacks;
        assert!(lacks.iter().all(|lack| !lack.sentence.contains("wait above")), "{lacks:?}");
    }

    #[test]
    fn what_waits_above_the_devices_is_no_all_clear() {
        let verdict = judged(136.0, 38.0);
        assert_eq!((verdict.findings.len(), verdict.outcome), (0, Outcome::CannotTell));
        let told = "sql:scsi0:1 takes 137 ms a command at its virtual adapter";
        assert!(verdict.headline.starts_with(told), "{}", verdict.headline);
        let told = "5.17 commands wait above the devices, 136 ms each";
        assert!(verdict.headline.contains(told), "{}", verdict.headline);
        assert_eq!(judged(19.0, 1_000.0).outcome, Outcome::CannotTell);
        // One command now and then, and what the adapter takes itself.
        assert_eq!(judged(20.0, 12.0).outcome, Outcome::Healthy);
        assert_eq!(judged(0.02, 30_000.0).outcome, Outcome::Healthy);
    }
}
