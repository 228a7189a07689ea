//! How steady the rate of a flow is: as flat as a setting, as round as one, and nearer to itself than
//! completions are by chance.

use super::{Case, line_rate};
use crate::{
    Device, Flow, Host, Queue, Spell, mean, median, observe::is_round_within, quantile, reaches,
    unrest_percent,
};

/// Samples below which chance makes a flat rate, and one late sample a number that moves.
pub(super) const ENOUGH_SAMPLES: usize = 5;
/// Samples that tell half of what chance does from all of it.
pub(super) const MANY_SAMPLES: usize = 12;
/// How near a steady rate must be to a round number to be one that somebody set. A saturated array
/// is steady too, but round only by chance: a rate that nobody set is so near to one once in fifty
/// times, for there are eleven of them from 1 to 10. One that is set loses less than this in a
/// recording: half of the last of two decimals [CAP-A], and at either end of an interval of 5 s, which
/// is esxtop's default, a command, which is a tenth of this part of 1,000 a second.
pub(crate) const EXACTLY: f64 = 0.002;

/// The samples of a spell at its usual rate, where that is a round one: where a policy sets in within
/// a sample, that one has more or less. They are most of it: a rate that scatters has some samples near
/// any number.
pub(super) fn settled(flow: &Flow<'_>, spell: Spell) -> Option<Spell> {
    const MOST: f64 = 0.75;
    let usual = median(spell.samples.iter().map(|&sample| flow.rate(sample)))?;
    let is_usual = |sample: &usize| {
        flow.rate(*sample).is_some_and(|rate| (rate / usual - 1.0).abs() <= EXACTLY)
    };
    let all = spell.samples.len() as f64;
    let samples: Vec<usize> = spell.samples.into_iter().filter(is_usual).collect();
    let is_settled = samples.len() as f64 >= MOST * all && is_round_within(usual, EXACTLY);
    is_settled.then_some(Spell { samples, ..spell })
}

/// How many times the high values of a spell are the low ones.
pub(super) fn spread(spell: &Spell, value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    spread_over(&spell.samples, value)
}

fn spread_over(samples: &[usize], value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    let end = |share| quantile(samples.iter().map(|sample| value(*sample)), share);
    Some(end(0.9)? / end(0.1)?.max(f64::MIN_POSITIVE))
}

/// Whether a rate is steadier than completions that nobody regulates: their number in an interval
/// varies by its square root. A load that comes at a fixed rate is as steady, but then the number
/// outstanding is not.
pub(super) fn is_regulated(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> bool {
    spell.samples.len() >= ENOUGH_SAMPLES
        && is_exact(case, device, spell)
        && is_settled(device, spell)
}

/// The same of a rate for which something else speaks besides: where there are samples enough, it may
/// move half as far as by chance, for at 100,000 a second that is next to nothing.
pub(super) fn may_be_regulated(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> bool {
    const STEADIER: f64 = 0.5;
    let moves = of_chance(case, spell, |sample| device.flow.rate(sample));
    is_regulated(case, device, spell)
        || spell.samples.len() >= MANY_SAMPLES
            && reaches(Some(STEADIER), moves)
            && is_settled(device, spell)
}

fn is_settled(device: &Device<'_>, spell: &Spell) -> bool {
    const SETTLED_PERCENT: f64 = 10.0;
    let inside = spell.samples.iter().filter_map(|&sample| device.queue.sampled(sample));
    let inside: Vec<f64> = inside.collect();
    unrest_percent(&inside).is_some_and(|unrest| unrest <= SETTLED_PERCENT)
}

/// Whether a rate stays far nearer to itself than the number of completions in an interval would by
/// chance.
pub(super) fn is_exact(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> bool {
    is_held(of_chance(case, spell, |sample| device.flow.rate(sample)))
}

/// The same in so few samples that chance makes it of one recording in a hundred.
pub(super) fn is_surely_exact(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> bool {
    is_surely_held(of_chance(case, spell, |sample| device.flow.rate(sample)))
}

pub(super) fn is_surely_held(of_chance: Option<f64>) -> bool {
    const ONCE_IN_A_HUNDRED: f64 = 0.1;
    reaches(Some(ONCE_IN_A_HUNDRED), of_chance)
}

/// Whether what holds a rate lets it move so: so many times as far as chance moves it.
pub(super) fn is_held(of_chance: Option<f64>) -> bool {
    const STEADY: f64 = 0.25;
    reaches(Some(STEADY), of_chance)
}

/// How far a rate moves, as a part of how far chance moves the number of completions in an interval:
/// by its square root. It is what tells apart whatever makes commands wait. Who paces them, be it a
/// limit of the host or a policy of the array, moves the rate far less, and the number in the slots
/// moves beside it; where a number is what is held, as in a full queue, that stands, and the rate
/// moves as far as chance has it.
pub(super) fn of_chance(
    case: &Case<'_>,
    spell: &Spell,
    rate: impl Fn(usize) -> Option<f64>,
) -> Option<f64> {
    let commands = spell.mean(|sample| Some(rate(sample)? * case.host.interval_s(sample)))?;
    let rates: Vec<f64> = spell.samples.iter().filter_map(|&sample| rate(sample)).collect();
    Some(unrest_percent(&rates)? / 100.0 * commands.sqrt())
}

/// How many times as far as by chance a rate moves that nobody paces to the command.
pub(super) const LOOSE: f64 = 2.0;

/// Whether the rate of a flow moves by less than chance moves what comes at random.
pub(super) fn is_quieter(case: &Case<'_>, spell: &Spell, flow: &Flow<'_>) -> bool {
    const QUIETER: f64 = 0.6;
    reaches(Some(QUIETER), of_chance(case, spell, |sample| flow.rate(sample)))
}

/// Whether a latency stays while the rate moves further than by chance: then it is what the array takes, and no rate
/// that it sets.
pub(crate) fn is_served_alike(
    host: &Host<'_>,
    samples: &[usize],
    [rate, ms]: [&dyn Fn(usize) -> Option<f64>; 2],
) -> bool {
    /// How far apart the ends of four fifths of the samples are by chance, in roots of their commands.
    const BY_CHANCE: f64 = 2.56;
    /// How far the latency moves at most: of itself, and as a part of how far the rate does.
    const STAYS: f64 = 0.15;
    const HALF: f64 = 0.5;
    let apart = |value: &dyn Fn(usize) -> Option<f64>| Some(spread_over(samples, value)? - 1.0);
    let commands = mean(samples.iter().map(|&s| Some(rate(s)? * host.interval_s(s))));
    let (Some(commands), Some(moved), Some(timed)) = (commands, apart(rate), apart(ms)) else {
        return false;
    };
    moved >= BY_CHANCE * LOOSE / commands.sqrt() && timed <= STAYS.min(HALF * moved)
}

/// Whether a rate moves about as far as chance moves it, in samples enough: nobody paces it. Three in four
/// steps from sample to sample may be short ones by luck, but where a rate is held one is long at either end
/// alone.
pub(super) fn is_by_chance(
    case: &Case<'_>,
    spell: &Spell,
    rate: impl Fn(usize) -> Option<f64>,
) -> bool {
    const BY_CHANCE: f64 = 0.5;
    const MOST_STEPS: f64 = 0.75;
    let commands = spell.mean(|sample| Some(rate(sample)? * case.host.interval_s(sample)));
    let rates: Vec<f64> = spell.samples.iter().filter_map(|&sample| rate(sample)).collect();
    let steps = rates.windows(2).map(|pair| Some((pair[0] - pair[1]).abs()));
    let step = quantile(steps, MOST_STEPS);
    let by_chance = mean(rates.iter().copied()).zip(commands);
    let least = by_chance.map(|(rate, commands)| BY_CHANCE * rate / commands.sqrt());
    rates.len() >= ENOUGH_SAMPLES && reaches(step, least)
}

/// Whether commands come when they are due and not when others return: their number scatters from
/// sample to sample as that of arrivals does, while the mean of each interval stays. Who is held back
/// has as many out as he may.
pub(super) fn is_paced(device: &Device<'_>, spell: &Spell) -> bool {
    const SCATTERED: f64 = 0.75;
    let sampled = |sample: &usize| device.queue.sampled(*sample);
    let inside: Vec<f64> = spell.samples.iter().filter_map(sampled).collect();
    let arrivals = mean(inside.iter().copied()).map(|mean| SCATTERED * 100.0 / mean.sqrt());
    reaches(unrest_percent(&inside), arrivals)
}

/// How far their number moves at most of the root of it where commands come when others return.
const OF_ROOT: f64 = 0.35;

/// Whether as many commands are out at each instant, as of guests that send the next one when one is
/// answered. Of those that come when they are due the number scatters, also where they come evenly: by the
/// root of it times the Gini coefficient of the times that they take (D/G/infinity), which is 0.17 of times
/// that vary by 0.3 of their mean, and so by 0.4 of its root. The columns are not read at one instant, so
/// a number that stays moves as well [S0: 29 to 32 of 32]: by 3 % from row to row, and of a hundred recordings
/// of twelve rows by more than 6 % in one.
pub(super) fn is_closed(device: &Device<'_>, spell: &Spell) -> bool {
    const READ_PERCENT: f64 = 6.0;
    let inside: Vec<f64> =
        spell.samples.iter().filter_map(|&sample| device.queue.sampled(sample)).collect();
    let most = mean(inside.iter().copied()).map(|mean| 100.0 * OF_ROOT / mean.sqrt());
    let most = most.map(|most| most.max(READ_PERCENT));
    reaches(most, unrest_percent(&inside))
}

/// The same where their number changes from sample to sample: at each instant there are about as many as on average
/// around it.
pub(super) fn is_closed_at_each(device: &Device<'_>, spell: &Spell) -> bool {
    let apart = |&s: &usize| {
        let inside = device.flow.in_flight(s)?;
        Some((device.queue.sampled(s)? - inside).powi(2) / inside.max(1.0))
    };
    let apart: Vec<f64> = spell.samples.iter().filter_map(apart).collect();
    apart.len() >= ENOUGH_SAMPLES && reaches(Some(OF_ROOT * OF_ROOT), mean(apart.iter().copied()))
}

/// Part of the samples in which a number must stay, and how near to it the mean must be.
const ALL: f64 = 0.9;
const NEAR: f64 = 0.02;
/// How much less than a rate a number must move that is held while the rate is not.
pub(super) const STILLER: f64 = 0.5;

/// The number of commands at which a device stays that has slots for more.
#[derive(Clone, Copy)]
pub(super) struct HeldNumber {
    pub(super) commands: f64,
    /// Whether it is surely the number that is held and not the rate: the one stays though the other
    /// and the latency move.
    pub(super) is_sure: bool,
}

/// The number of commands at which something behind a device holds it, that takes so many and refuses
/// what is more, as an array does that answers TASK SET FULL [KB-QF]: it stands while the rate moves as
/// by chance. What is refused is on its way for a while, so ACTV may move by that. Before an array that
/// takes the same time for each command the rate stays too, and a rate that is held has that number
/// out: then only commands of every VM that wait in every sample speak for the number, unless the rate
/// is one that somebody sets.
pub(super) fn held_number(
    case: &Case<'_>,
    device: &Device<'_>,
    spell: &Spell,
) -> Option<HeldNumber> {
    const FEWEST: f64 = 4.0;
    let commands = median(spell.samples.iter().map(|&s| device.queue.actv.at(s)))?;
    if let Some(stands) = stands(case, device, spell).filter(|stands| *stands >= FEWEST) {
        return Some(HeldNumber { commands: stands, is_sure: true });
    }
    let is_kept = |sample| {
        let depth = device.queue.depth_at(sample)?;
        Some(device.queue.actv.at(sample)? == commands && commands < depth)
    };
    let inside = spell.mean(|sample| device.in_slots(sample))?;
    let is_near = (inside / commands - 1.0).abs() <= NEAR;
    let stays = commands >= FEWEST && spell.share(is_kept) >= ALL && is_near;
    let is_sure = slots_unrest(device, spell)?
        < STILLER * unrest_percent(&rates(&device.flow, spell))?
        || is_by_chance(case, spell, |sample| device.flow.rate(sample));
    let queues = |queue: &Queue<'_>, sample: usize| queue.qued.at(sample) > Some(0.0);
    let waits = |&sample: &usize| {
        let mut vms = device.worlds.iter().filter(|world| world.flow.rate(sample) > Some(0.0));
        is_kept(sample) == Some(true)
            && queues(&device.queue, sample)
            && vms.all(|world| world.is_system || queues(&world.queue, sample))
    };
    let is_set = is_round_within(device.flow.mean_rate(&spell.samples)?, EXACTLY);
    let all_wait = spell.samples.len() >= ENOUGH_SAMPLES && spell.samples.iter().all(waits);
    (stays && (is_sure || all_wait && !is_set)).then_some(HeldNumber { commands, is_sure })
}

/// The mean number in the slots of a device, where it is less than those that there are and stands beside
/// a rate that moves as by chance.
fn stands(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Option<f64> {
    const STANDS_PERCENT: f64 = 1.0;
    let commands = spell.mean(|sample| device.in_slots(sample))?;
    let has_more = |sample| Some(commands <= (1.0 - NEAR) * device.queue.depth_at(sample)?);
    let slots = slots_unrest(device, spell)?;
    let is_still =
        slots <= STANDS_PERCENT && slots < STILLER * unrest_percent(&rates(&device.flow, spell))?;
    let is_free = is_by_chance(case, spell, |sample| device.flow.rate(sample));
    (is_still && is_free && spell.share(has_more) >= ALL).then_some(commands)
}

fn slots_unrest(device: &Device<'_>, spell: &Spell) -> Option<f64> {
    let inside: Vec<f64> = spell.samples.iter().filter_map(|&s| device.in_slots(s)).collect();
    unrest_percent(&inside)
}

pub(super) fn rates(flow: &Flow<'_>, spell: &Spell) -> Vec<f64> {
    spell.samples.iter().filter_map(|&sample| flow.rate(sample)).collect()
}

/// Whether a rate moves as little as a setting does.
pub(super) fn is_steady(rates: &[f64]) -> bool {
    unrest_percent(rates).is_some_and(|unrest| unrest <= line_rate::STEADY_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Facts, Finding, fixture::Bench};

    fn causes(findings: &[Finding]) -> Vec<Cause> {
        findings.iter().map(|finding| finding.cause).collect()
    }

    /// How far completions scatter that nobody paces.
    fn by_chance(rate: f64, sample: usize) -> f64 {
        let scatter = [0.4, -1.1, 0.9, -0.3, 1.6, -0.8, 0.1, -1.9, 0.7, 1.2, -0.5][sample % 11];
        rate + scatter * (rate / 5.0).sqrt()
    }

    /// 21.3 of 64 slots: 20 at an array that takes no more, and what is on its way to be refused.
    #[test]
    fn a_number_that_stands_while_the_rate_moves_is_no_iops_limit() {
        for vms in [1, 4] {
            let mut bench = Bench::new(20);
            let device = bench.device("naa.1", 64);
            for vm in &["a", "b", "c", "d"][..vms] {
                let rate = move |s: usize| by_chance(7_450.0, s) / vms as f64;
                let davg = move |s: usize| 21_300.0 / by_chance(7_450.0, s);
                let vm = device.vm(vm).iops_when(rate).davg_when(davg);
                let part = move |all: u32| all / vms as u32;
                vm.kavg(5.2).sampled(move |s| part([20, 24, 20, 28, 24][s % 5]));
                vm.queued(move |_| part(40));
            }
            let findings = bench.findings();
            assert_eq!(causes(&findings), [Cause::HostWait], "{vms}");
            let told = &findings[0].sentence;
            assert!(told.contains("never more than 21.3 commands are out"), "{told}");
            assert!(findings[0].confidence > 0.5);
        }
    }

    /// DAVG tells its number to a hundredth, and six samples tell how far its rate moves.
    #[test]
    fn a_quick_array_that_refuses_makes_no_iops_limit_of_six_samples() {
        let mut bench = Bench::new(6);
        let rate = |s: usize| by_chance(73_170.0, s);
        let vm = bench.device("naa.1", 128).vm("a").iops_when(rate);
        vm.davg_when(move |s| (44_000.0 / rate(s) * 100.0).round() / 100.0).kavg(1.41);
        vm.sampled(|_| 44).queued(|_| 103);
        let finding = bench.only(Cause::HostWait, &Facts::default());
        assert!(finding.sentence.contains("TASK SET FULL"), "{}", finding.sentence);
    }

    /// 90 of 128 slots that no sample finds taken are no queue that is full for a part of the time.
    #[test]
    fn a_number_that_stands_at_most_of_the_slots_is_no_full_queue() {
        let mut bench = Bench::new(13);
        let rate = |s: usize| by_chance(9_530.0, s);
        let vm = bench.device("naa.1", 128).vm("a").iops_when(rate);
        vm.davg_when(move |s| 90_000.0 / rate(s)).kavg(17.4).sampled(|_| 90).queued(|_| 166);
        bench.only(Cause::HostWait, &Facts::default());
    }

    /// 30 threads beside it keep the number of the device as it is.
    #[test]
    fn a_limit_of_one_vm_is_one_beside_threads_of_another() {
        let mut bench = Bench::new(20);
        let device = bench.device("naa.1", 64);
        let others = device.vm("others").iops_when(|s| by_chance(9_000.0, s));
        others.davg_when(|s| 30_000.0 / by_chance(9_000.0, s)).sampled(|_| 30);
        device.vm("held").iops_when(|s| 200.0 + 0.2 * (s % 2) as f64).davg(1.0).kavg(20.0);
        assert_eq!(causes(&bench.findings()), [Cause::IopsLimit]);
    }

    #[test]
    fn a_rate_that_stays_to_the_command_beside_a_quicker_device_is_none_of_the_guests_depth() {
        let found = |moves: f64| {
            let mut bench = Bench::new(20);
            let rate = move |s: usize| 20_999.0 + moves * (by_chance(20_999.0, s) - 20_999.0);
            let vm = bench.device("naa.1", 128).vm("a").iops_when(rate);
            vm.davg_when(move |s| 64_000.0 / rate(s)).sampled(|_| 64);
            bench.device("naa.2", 128).vm("b").iops_when(|s| by_chance(2_380.0, s)).davg(1.68);
            bench.findings()
        };
        let held = found(0.05);
        assert_eq!(causes(&held), [Cause::ArrayQos, Cause::VirtualDiskCap]);
        assert!(held[0].confidence <= 0.5);
        assert!(held[1].changes.is_empty() && held[1].do_not[0].contains("QoS"), "{held:?}");
        assert_eq!(causes(&found(1.0)), [Cause::VirtualDiskCap]);
    }

    #[test]
    fn at_80_000_a_second_half_of_chance_speaks_for_a_round_rate() {
        let mut bench = Bench::new(30);
        let rate = |s: usize| 80_000.0 + 0.4 * (by_chance(80_000.0, s) - 80_000.0);
        let vm = bench.device("naa.1", 1_024).vm("a").iops_when(rate);
        vm.davg_when(move |s| 480_000.0 / rate(s)).sampled(|_| 480);
        vm.controller(counters::Controller::Nvme);
        bench.device("naa.2", 128).vm("b").iops_when(|s| by_chance(6_000.0, s)).davg(0.3);
        bench.only(Cause::ArrayQos, &Facts::default());
    }

    #[test]
    fn four_rows_tell_a_rate_that_stays_to_the_command_while_the_number_moves() {
        let found = |moves: f64| {
            let mut bench = Bench::new(5);
            let inside = |s: usize| [1.0, 40.0, 62.0, 48.0, 55.0][s];
            let held = move |s: usize| 4_310.0 + moves * (by_chance(4_310.0, s) - 4_310.0);
            let rate = move |s: usize| if s == 0 { 1_500.0 } else { held(s) };
            let vm = bench.device("naa.1", 512).vm("a").iops_when(rate);
            vm.davg_when(move |s| if s == 0 { 0.3 } else { 1_000.0 * inside(s) / held(s) });
            let finding = bench.findings().remove(0);
            (finding.cause, finding.confidence)
        };
        assert_eq!(found(0.02), (Cause::ArrayQos, 0.5));
        assert_eq!(found(1.0).0, Cause::ArraySlow);
    }

    #[test]
    fn a_rate_that_nobody_set_is_a_round_one_once_in_fifty_times() {
        const RATES: u32 = 100_000;
        let rate = |nth| 10_f64.powf(2.0 + 2.0 * f64::from(nth) / f64::from(RATES));
        let round = (0..RATES).filter(|&nth| is_round_within(rate(nth), EXACTLY)).count();
        let once_in = f64::from(RATES) / round as f64;
        assert!((50.0..55.0).contains(&once_in), "{once_in}");
    }

    /// 4,000 a second that come evenly, each 5 ms at healthy disks: as many come as do where 20 threads are held
    /// to them, but how many are out at the instants scatters, if less than where they come at random.
    #[test]
    fn what_is_asked_for_at_a_round_rate_is_not_held_to_it() {
        let found = |sampled: fn(usize) -> u32, has_peer: bool| {
            let mut bench = Bench::new(24);
            bench.device("naa.1", 128).vm("paced").iops(4_000.0).davg(5.0).sampled(sampled);
            if has_peer {
                bench.device("naa.2", 128).vm("quick").iops_when(|s| by_chance(900.0, s)).davg(0.4);
            }
            bench.findings().iter().any(|finding| finding.cause == Cause::ArrayQos)
        };
        for has_peer in [false, true] {
            assert!(!found(|s| [20, 22, 19, 21, 18, 20, 22, 21][s % 8], has_peer));
            assert!(found(|s| [20, 20, 19, 20, 20, 20][s % 6], has_peer));
        }
    }

    /// 600 a second of 6 to 24 threads that come and go, and of an application that sends as many when they are due.
    #[test]
    fn a_few_hundred_a_second_that_stay_while_threads_come_and_go_are_a_policys() {
        let found = |scatters: fn(usize) -> f64| {
            let threads = |s: usize| [6.0, 12.0, 24.0, 16.0, 8.0, 12.0][s / 2 % 6];
            let mut bench = Bench::new(24);
            let vm = bench.device("naa.1", 64).vm("a").iops(600.0);
            vm.davg_when(move |s| threads(s) / 0.6);
            vm.sampled(move |s| (threads(s) + scatters(s)) as u32);
            causes(&bench.findings())
        };
        assert_eq!(found(|_| 0.0), [Cause::ArrayQos]);
        assert_ne!(found(|s| [0.0, 5.0, -3.0, 4.0, -5.0][s % 5]), [Cause::ArrayQos]);
    }

    /// 8 threads at 600 a second: 13.3 ms each, which disks take as well.
    #[test]
    fn a_round_rate_of_few_threads_that_never_moves_may_be_a_policys() {
        let found = |moves: f64| {
            let mut bench = Bench::new(24);
            let rate = move |s: usize| 600.0 + moves * (by_chance(600.0, s) - 600.0);
            let vm = bench.device("naa.1", 64).vm("a").iops_when(rate);
            vm.davg_when(move |s| 8_000.0 / rate(s)).sampled(|_| 8);
            causes(&bench.findings())
        };
        assert_eq!((found(0.02), found(1.0)), (vec![Cause::ArrayQos], vec![]));
    }

    /// A reader of disks beside a writer that a cache serves.
    #[test]
    fn who_takes_as_long_at_any_rate_is_held_to_none() {
        let mut bench = Bench::new(20);
        let device = bench.device("naa.1", 64);
        device.vm("reader").iops_when(|s| 700.0 + 35.0 * s as f64).davg(12.0);
        device
            .vm("writer")
            .iops_when(|s| 1_400.0 - 35.0 * s as f64 + 40.0 * (s % 3) as f64)
            .davg(1.2);
        assert!(bench.findings().iter().all(|found| found.cause != Cause::ArrayQos));
    }
}
