//! What is slow in single samples, for what no rule finds: a device that stands still, or is slow, for less than two
//! samples leaves one mean that its load does not explain. It is no finding, for nothing tells why, and no all-clear.

use levels::median;

use crate::{Device, Flow, Host, number, reaches, span};

/// Samples below which nothing is usual, and no limit of the array is told by its rate.
pub(crate) const FEW: usize = 5;
/// Commands whose mean is none of a few that take long.
pub(crate) const COMMANDS: f64 = 100.0;
/// How many times as long as usual they must take.
const FAR: f64 = 5.0;
/// How many times as many and as large as usual they may be: more are a load of their own.
const MORE: f64 = 1.5;
/// The part of the usual rate up to which a sample completed little.
const LITTLE: f64 = 0.5;

/// A device that was slow in single samples.
struct Blip<'a> {
    device: &'a Device<'a>,
    samples: Vec<usize>,
    usual_ms: f64,
    ms: f64,
}

impl<'a> Blip<'a> {
    fn find(host: &Host<'_>, device: &'a Device<'a>) -> Option<Self> {
        let (flow, busy) = (&device.flow, &device.busy);
        let usual =
            |of: &dyn Fn(usize) -> Option<f64>| median(busy.iter().map(|&sample| of(sample)));
        let usual_ms = usual(&|s| flow.davg(s)).filter(|_| busy.len() >= FEW)?;
        let rate = usual(&|s| flow.rate(s))?;
        let size_kib = usual(&|s| flow.size_kib(&[s]))?;
        // What comes after a sample that completed little may be what was asked for in that one.
        let asked = |sample: usize| {
            let own = flow.rate(sample)?;
            let before = sample.checked_sub(1).and_then(|before| flow.rate(before));
            let caught_up = before.filter(|before| *before <= LITTLE * rate);
            Some(caught_up.map_or(own, |before| f64::midpoint(before, own)))
        };
        let is_blip = |&sample: &usize| {
            let commands = flow.rate(sample).map(|rate| rate * host.interval_s(sample));
            commands >= Some(COMMANDS)
                && reaches(flow.davg(sample), device.slow_ms(sample))
                && flow.davg(sample) >= Some(FAR * usual_ms)
                && reaches(Some(MORE * rate), asked(sample))
                && reaches(Some(MORE * size_kib), flow.size_kib(&[sample]))
        };
        let samples: Vec<usize> = busy.iter().copied().filter(is_blip).collect();
        let ms = flow.per_command(&samples, Flow::davg)?;
        Some(Self { device, samples, usual_ms, ms })
    }
}

/// The worst of those devices, and how many more there are.
pub(crate) fn of(host: &Host<'_>, devices: &[&Device<'_>]) -> Option<String> {
    let mut all: Vec<Blip<'_>> =
        devices.iter().filter_map(|device| Blip::find(host, device)).collect();
    all.sort_by(|a, b| (b.ms / b.usual_ms).total_cmp(&(a.ms / a.usual_ms)));
    let Blip { device, samples, usual_ms, ms } = all.first()?;
    let others = match all.len() - 1 {
        0 => String::new(),
        1 => ", as 1 more device did".to_owned(),
        more => format!(", as {more} more devices did"),
    };
    let first = *samples.first()?;
    Some(format!(
        "{} takes {} ms a command ({}) in {} of {} samples, {} in the others, though no more was asked of it. It gave no \
         answer for a part of that time, or was slow{others}. That was {}: the array's and the switches' events of that \
         time tell why, and shorter samples how long.",
        device.flow.name,
        number(*ms),
        if device.is_nfs { "GAVG" } else { "DAVG" },
        samples.len(),
        device.busy.len(),
        number(*usual_ms),
        span(host.begin_ms(first), host.times_ms[first]),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{Facts, Thresholds, fixture::Bench};

    /// 900 a second at 0.5 ms, but for one sample of thirty.
    fn line(rate: f64, davg_ms: f64, size_kib: f64) -> String {
        let mut bench = Bench::new(30);
        let vm = bench.device("naa.1", 64).vm("a");
        let of = |usual: f64, then: f64| {
            move |s: usize| if s == 14 { then } else { usual + (s % 3) as f64 / 100.0 }
        };
        vm.iops_when(of(900.0, rate)).davg_when(of(0.5, davg_ms)).size_kib_when(of(8.0, size_kib));
        bench.diagnose(&Thresholds::default(), &Facts::default()).headline
    }

    #[test]
    fn a_mean_that_the_load_of_its_sample_does_not_explain_is_no_all_clear() {
        let told = line(640.0, 60.0, 8.0);
        let expected = "naa.1 takes 60 ms a command (DAVG) in 1 of 30 samples, 0.51 in the others";
        assert!(told.starts_with(expected), "{told}");
        // It begins in one sample, and what waited completes in the next.
        let after = |rate: f64| {
            let mut bench = Bench::new(30);
            let vm = bench.device("naa.1", 64).vm("a");
            let of = move |s: usize| {
                [900.0 + (s % 3) as f64, 190.0, rate]
                    [if s == 13 { 1 } else { 2 * usize::from(s == 14) }]
            };
            vm.iops_when(of).davg_when(|s| if s == 14 { 30.0 } else { 0.5 });
            bench.diagnose(&Thresholds::default(), &Facts::default()).headline
        };
        let told = after(1_600.0);
        assert!(
            told.starts_with("naa.1 takes 30 ms a command (DAVG) in 1 of 30 samples"),
            "{told}"
        );
        // More commands, larger ones, too few of them, and what is no step of flash.
        for told in [
            line(1_900.0, 30.0, 8.0),
            line(900.0, 30.0, 512.0),
            line(12.0, 60.0, 8.0),
            line(900.0, 3.0, 8.0),
        ] {
            assert!(told.starts_with("Nothing is wrong: no storage problem"), "{told}");
        }
    }
}
