//! Who loads an array when one of its devices gets slow: VMs on another of its devices that came meanwhile, as far as
//! the rows of this host show them.

use super::{ALIKE, Case, LASTING, causers_on, number, quick_peer::CONTRAST};
use crate::{Change, Device, Finding, Flow, Party, limit_advice};

/// Those VMs, and how that is told.
pub(super) struct Newcomer<'a> {
    device: &'a Device<'a>,
    vms: Vec<Party>,
    told: String,
}

impl<'a> Newcomer<'a> {
    /// The device of the same array that has more outstanding than the slow one in some samples, is not quick there, and
    /// was asked for less in the others. What only waits longer at a slow array has more outstanding too, but not at a
    /// higher rate.
    pub(super) fn of(case: &Case<'a>, device: &Device<'_>, samples: &[usize]) -> Option<Self> {
        let others = device.busy_but(samples);
        let inside = |device: &Device<'_>| device.flow.mean_in_flight(samples);
        let davg_ms = |device: &Device<'_>| device.flow.per_command(samples, Flow::davg);
        let (its_inside, slow_ms) = (inside(device)?, davg_ms(device)?);
        let slow =
            case.others_of_array(device).filter(|other| davg_ms(other) > Some(slow_ms / CONTRAST));
        let came = slow.filter_map(|other| {
            let [then, before] = [samples, &others].map(|samples| other.flow.mean_rate(samples));
            let (inside, then, before) = (inside(other)?, then?, before?);
            let is_more = inside >= its_inside && then > ALIKE.end() * before;
            is_more.then_some((other, inside, [then, before]))
        });
        let (other, inside, [then, before]) = came.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let vms = causers_on(other, samples);
        let names: Vec<&str> = vms.iter().map(|vm| &*vm.name).collect();
        let told = format!(
            " Meanwhile {} of the same array does {} commands a second with {} outstanding{}, and {} at other times.",
            other.flow.name,
            number(then),
            number(inside),
            if names.is_empty() {
                String::new()
            } else {
                format!(", those of {}", names.join(", "))
            },
            number(before)
        );
        Some(Self { device: other, vms, told })
    }

    /// What holds it back meanwhile.
    fn fix(&self, case: &Case<'_>, samples: &[usize]) -> Option<Change> {
        let vms: Vec<&Party> = self.vms.iter().collect();
        limit_advice::hold_on((case.host, self.device), &vms, samples, case.facts)
            .filter(|_| !vms.is_empty())
    }
}

/// What more commands of a device do, where another of the same array takes far longer in some samples than in the others
/// though no more is asked of it: who has more outstanding there meanwhile fills the array.
pub(super) fn slows_another(
    case: &Case<'_>,
    device: &Device<'_>,
    samples: &[usize],
) -> Option<String> {
    const LONGER: f64 = 3.0;
    let inside = device.flow.mean_in_flight(samples)?;
    let slowed = case.others_of_array(device).filter_map(|other| {
        let others = other.busy_but(samples);
        let ms = |samples: &[usize]| other.flow.per_command(samples, Flow::davg);
        let (then_ms, before_ms) = (ms(samples)?, ms(&others)?);
        let is_slowed = others.len().min(samples.len()) >= LASTING
            && then_ms >= LONGER * before_ms
            && other.flow.mean_rate(samples)? <= ALIKE.end() * other.flow.mean_rate(&others)?
            && other.flow.mean_in_flight(samples)? <= inside;
        is_slowed.then_some((other.flow.name, then_ms, before_ms))
    });
    let (name, then_ms, before_ms) = slowed.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "{name} beside it takes {} ms meanwhile, {} at other times: more only wait there",
        number(then_ms),
        number(before_ms)
    ))
}

/// Names them as the causes of a slow array where nobody on the device itself is one, and a limit for them first.
pub(super) fn name(case: &Case<'_>, device: &Device<'_>, samples: &[usize], finding: &mut Finding) {
    let newcomer = || Newcomer::of(case, device, samples);
    if let Some(newcomer) = finding.causers.is_empty().then(newcomer).flatten() {
        finding.sentence += &newcomer.told;
        finding.changes.splice(0..0, newcomer.fix(case, samples));
        finding.causers = newcomer.vms;
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Facts, fixture::Bench};

    /// A victim at its rate of 600 a second, and from the seventh sample on another VM on another volume of that array
    /// that does as told, with as many outstanding.
    fn beside(came: [f64; 2], inside: f64) -> crate::Finding {
        let mut bench = Bench::new(12);
        let name = |nth| format!("naa.600601607290250060ae1d5f0f00000{nth}");
        let victim = bench.device(&name(1), 32).vm("victim");
        victim.iops_when(|s| 590.0 + 10.0 * (s % 3) as f64);
        victim.davg_when(|s| if s < 6 { 1.2 } else { 27.0 + (s % 4) as f64 });
        let bully = bench.device(&name(2), 128).vm("bully");
        bully.iops_when(move |s| came[usize::from(s > 5)] * (1.0 + 0.05 * (s % 4) as f64));
        bully.davg_when(move |s| if s < 6 { 1.2 } else { inside * 1_000.0 / came[1] });
        bench.first(Cause::ArraySlow, &Facts::default())
    }

    #[test]
    fn who_came_on_another_volume_of_the_array_is_named_and_held() {
        let finding = beside([1.0, 3_400.0], 60.0);
        let causers: Vec<&str> = finding.causers.iter().map(|vm| &*vm.name).collect();
        assert_eq!(causers, ["bully"], "{}", finding.sentence);
        assert!(finding.changes[0].what.contains("bully"), "{}", finding.changes[0].what);
    }

    /// At a depth of its guest, beside a volume that is still below what is slow.
    #[test]
    fn who_fills_an_array_so_that_another_waits_gets_no_more() {
        let mut bench = Bench::new(20);
        let name = |nth| format!("naa.624a9370b1c2d3e4f5a6b7c80001100{nth}");
        let backup = bench.device(&name(1), 64).vm("backup");
        backup.iops_when(|s| if s > 12 { 12_900.0 + 40.0 * (s % 3) as f64 } else { 1.0 });
        backup.davg_when(
            |s| if s > 12 { 64_000.0 / (12_900.0 + 40.0 * (s % 3) as f64) } else { 1.0 },
        );
        let mail =
            bench.device(&name(2), 64).vm("mail").iops_when(|s| 900.0 + 9.0 * (s % 4) as f64);
        mail.davg_when(|s| if s > 12 { 4.8 } else { 1.03 });
        let finding = bench.only(Cause::VirtualDiskCap, &Facts::default());
        assert!(finding.changes.is_empty(), "{:?}", finding.changes);
        assert!(finding.do_not[0].contains("takes 4.8 ms meanwhile, 1.03"), "{:?}", finding.do_not);
    }

    #[test]
    fn who_only_waits_longer_there_too_did_not_come() {
        let finding = beside([3_400.0, 3_400.0], 60.0);
        assert!(finding.causers.iter().all(|vm| vm.name != "victim"), "{:?}", finding.causers);
        assert!(!finding.sentence.contains("Meanwhile"), "{}", finding.sentence);
    }

    #[test]
    fn who_came_and_is_quick_is_nobody_that_others_wait_for() {
        let finding = beside([1.0, 9_000.0], 20.0);
        assert!(!finding.sentence.contains("Meanwhile"), "{}", finding.sentence);
    }
}
