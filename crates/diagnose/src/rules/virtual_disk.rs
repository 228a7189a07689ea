//! A virtual disk at its queue depth: that of PVSCSI or LSI Logic [KB-PV, TBL].

use counters::Controller;
use knobs::disk_depths;

use super::{
    Case, Rank, Rule,
    alike::{are_of_one_time, united},
    virtual_adapter,
    virtual_cap::{Cap, SAMPLED_ABOVE, are_at, is_at, is_kept, is_still, judge, wait_of},
};
use crate::{
    Cause, Device, Finding, Flow, LevelKind, Queue, ROUNDED, Spell, Threshold, Vdisk, largest,
    little, median,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::VirtualDisk,
    rank: |_| Rank::Next,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS],
    find,
};

/// How near a sample must come to the cap: one that never does has another reason to be steady.
/// Of a load of few samples less is asked [S0: 61 to 64].
const REACHED: [f64; 2] = [0.95, 0.985];
/// Samples near the cap, of which most are at it: a load that passes near it is spread. Where few are
/// at it, all of the load must be so: chance brings a load that varies to the cap in some of them.
const NEAR: f64 = 0.88;
const LOADED: f64 = 0.5;
const CROWDED: f64 = 0.75;
/// What is few: samples of a load, and samples at the cap.
const FEW: usize = 2;
const FEW_AT_IT: usize = 4;
/// Samples in which a number must be the same to be said to stay.
const LASTING: usize = 2;

fn find(case: &Case<'_>) -> Vec<Finding> {
    let caps = case.host.vdisks.iter().filter_map(|disk| cap(case, disk));
    united(caps.map(|cap| judge(case, &cap)), "virtual disk", |first, other| {
        is_one_with(first, other)
    })
}

/// Whether two disks are at the same depth at one time and the same is to be done and left alone: what
/// is to be done in each guest stands for itself.
fn is_one_with(first: &Finding, other: &Finding) -> bool {
    first.limit == other.limit
        && first.changes == other.changes
        && first.do_not == other.do_not
        && are_of_one_time(first, other)
}

/// The cap that the busiest virtual disk of a device is at.
pub(super) fn on<'a>(case: &Case<'a>, device: &Device<'_>) -> Option<Cap<'a>> {
    let caps = case.host.vdisks_on(device).filter_map(|disk| cap(case, disk));
    caps.max_by(|a, b| a.demand().total_cmp(&b.demand()))
}

/// The cap that a disk is at.
fn cap<'a>(case: &Case<'a>, disk: &'a Vdisk<'a>) -> Option<Cap<'a>> {
    let busy = busy(case, disk);
    if disk.guest_wait.is_there() {
        return known_wait(case, disk, &busy);
    }
    let guessed = disk.controller.is_none();
    if guessed && virtual_adapter::cap(case, disk.adapter()).is_some() {
        return None;
    }
    depths_of(case, disk).iter().find_map(|&limit| plateau(case, disk, &busy, limit))
}

/// The depth of one disk, or where that is not known those that it may have.
fn depths_of(case: &Case<'_>, disk: &Vdisk<'_>) -> Vec<u32> {
    let known = case.facts.vdisks.get(disk.name).and_then(|facts| facts.depth);
    known.map_or_else(|| depths(disk), |depth| vec![depth])
}

/// Depths of one disk, by the type of its controller. Where that is not known, 32 is any guest with as
/// many threads, and what is left is PVSCSI's.
fn depths(disk: &Vdisk<'_>) -> Vec<u32> {
    match disk.controller {
        None => disk_depths(Controller::Pvscsi),
        Some(controller) => {
            disk_depths(controller).into_iter().filter(|depth| *depth > 1).collect()
        }
    }
}

/// The samples in which a disk has load, as far as they tell.
fn busy(case: &Case<'_>, disk: &Vdisk<'_>) -> Vec<usize> {
    let limit = |threshold| case.host.limits.get(threshold);
    let is_busy = |sample: &usize| {
        let has_load = || {
            let (rate, inside) = (disk.rate(*sample)?, disk.outstanding(*sample)?);
            let stands = inside >= limit(Threshold::BusyOutstanding);
            Some(rate >= limit(Threshold::BusyIops) && stands)
        };
        has_load() != Some(false)
    };
    (0..case.host.times_ms.len()).filter(is_busy).collect()
}

/// The wait in the guest, where the source knows it, unless it is the adapter's. More outstanding than
/// its depth lets out are what a stall left, whose time is older than the sample.
fn known_wait<'a>(case: &Case<'a>, disk: &'a Vdisk<'a>, busy: &[usize]) -> Option<Cap<'a>> {
    let waiting = case.host.limits.get(Threshold::Waiting);
    let spell = Spell::find(busy, |s| disk.guest_queued.at(s).map(|n| n >= waiting))?;
    let outstanding = spell.mean(|sample| disk.outstanding(sample))?;
    let depth = depths_of(case, disk).into_iter().find(|&depth| is_at(outstanding, depth));
    if depth.is_none() && virtual_adapter::cap(case, disk.adapter()).is_some() {
        return None;
    }
    let most = largest(spell.samples.iter().map(|&sample| disk.outstanding(sample)));
    let facts = case.facts.vdisks.get(disk.name);
    let known = facts.and_then(|facts| facts.depth);
    let is_off = |limit: u32| {
        let depth = f64::from(limit);
        most < Some(REACHED[0] * depth)
            || outstanding > SAMPLED_ABOVE * depth
            || facts.is_some_and(|facts| facts.asks_no_more_than(limit))
    };
    if known.is_some_and(is_off) {
        return None;
    }
    Some(Cap {
        cause: Cause::VirtualDiskCap,
        at: disk.name,
        disk,
        limit: known.or(depth).unwrap_or_else(|| set_depth(disk, &spell, outstanding)),
        outstanding,
        wait: wait_of(&[disk], &spell),
        spell,
        certainty: 0.97,
    })
}

/// The depth of a disk whose guest waits though it is not at a known one all the time: a number
/// that stays is a depth that somebody set; one that moves fills the next known depth in bursts.
fn set_depth(disk: &Vdisk<'_>, spell: &Spell, outstanding: f64) -> u32 {
    let most = largest(spell.samples.iter().map(|&sample| disk.outstanding(sample)));
    let next = depths(disk).into_iter().find(|&depth| Some(f64::from(depth)) >= most);
    next.filter(|_| !is_still(&[disk], spell)).unwrap_or(outstanding.round() as u32)
}

/// A number outstanding that stays at a depth. An open flow of commands may have the same mean,
/// but its samples go beyond it.
fn plateau<'a>(
    case: &Case<'a>,
    disk: &'a Vdisk<'a>,
    busy: &[usize],
    limit: u32,
) -> Option<Cap<'a>> {
    let spell = Spell::find(busy, |sample| are_at(case, &[disk], sample, limit))?;
    let near = if spell.samples.len() > FEW_AT_IT { NEAR } else { LOADED };
    let is_near = |s: &&usize| disk.outstanding(**s) >= Some(near * f64::from(limit));
    let near = busy.iter().filter(is_near).count();
    if (spell.samples.len() as f64) < CROWDED * near as f64 {
        return None;
    }
    let caught = sampled(case, disk, &spell.samples);
    let most = |s: usize| Some(disk.outstanding(s)? + little(disk.rate(s)?, ROUNDED / 2.0));
    let inside: Vec<f64> = spell.samples.iter().filter_map(|&s| most(s)).collect();
    let stays = median(caught.iter().copied()).is_some_and(|middle| is_at(middle, limit));
    let reached = REACHED[usize::from(busy.len() > FEW)] * f64::from(limit);
    let is_reached = |outstanding: &[f64]| outstanding.iter().any(|inside| *inside >= reached);
    let is_empty = median(caught.iter().copied()) < Some(LOADED * f64::from(limit));
    let in_bursts = !caught.is_empty() && is_empty;
    let reached = stays && is_reached(&caught) || is_reached(&inside) && !in_bursts;
    let lasts = spell.samples.len() >= LASTING && is_filled(disk, &spell, limit);
    let most = SAMPLED_ABOVE * f64::from(limit);
    let exceeded = sampled(case, disk, busy).iter().any(|inside| *inside > most);
    let is_still = is_still(&[disk], &spell) && is_kept(case, &[disk], limit);
    if !(reached && lasts && is_still) || exceeded {
        return None;
    }
    let certainty = match (disk.controller, caught.is_empty()) {
        (Some(_), false) => 0.8,
        (Some(_), true) => 0.65,
        (None, false) => 0.6,
        (None, true) => 0.4,
    };
    Some(Cap {
        cause: Cause::VirtualDiskCap,
        at: disk.name,
        disk,
        limit,
        outstanding: spell.mean(|sample| disk.outstanding(sample))?,
        wait: None,
        spell,
        certainty,
    })
}

/// Whether no place stays empty for longer than a guest takes to send the next command: that is what
/// 65,000 a second at 0.94 ms lack of 64 [S0], so the slower the commands, the less is missing.
fn is_filled(disk: &Vdisk<'_>, spell: &Spell, limit: u32) -> bool {
    const TURNAROUND_MS: f64 = 0.045;
    const MEASURED: f64 = 0.995;
    let unseen_ms = TURNAROUND_MS + ROUNDED / 2.0;
    let taken = |s| Some(disk.outstanding(s)? + little(disk.rate(s)?, unseen_ms));
    spell.mean(taken) >= Some(MEASURED * f64::from(limit))
}

/// ACTV + QUED of the disk's VM on its device, when no other disk of the VM is there.
fn sampled(case: &Case<'_>, disk: &Vdisk<'_>, samples: &[usize]) -> Vec<f64> {
    let Some(device) = case.host.device_of(disk) else { return Vec::new() };
    let alone = case.host.vdisks_of(disk.vm, device).count() == 1;
    let world = device.world_of(disk.vm).filter(|_| alone);
    let sampled = |sample: &usize| world?.queue.sampled(*sample);
    samples.iter().filter_map(sampled).collect()
}

#[cfg(test)]
mod tests {
    use counters::Controller;

    use knobs::Effect;

    use crate::{Cause, Facts, Thresholds, fixture::Bench};

    #[test]
    fn disks_at_their_depth_of_one_remedy_are_one_finding_that_lists_them() {
        // Three guests of 64 threads each before one device of 32 slots: 160 of the 192 wait in the
        // VMkernel, and a deeper queue in any of the guests gains nothing before that one is deeper.
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 32);
        for vm in ["a", "b", "c"] {
            device.vm(vm).iops(10_000.0).davg(1.067).kavg(5.333).sampled(|_| 64);
        }
        let findings = bench.findings();
        let at_depth = findings.iter().filter(|finding| finding.cause == Cause::VirtualDiskCap);
        let at_depth: Vec<_> = at_depth.collect();
        assert_eq!(at_depth.len(), 1);
        let names: Vec<&str> = at_depth[0].objects().map(|at| at.name.as_str()).collect();
        assert_eq!(names, ["a:scsi0:1", "b:scsi0:1", "c:scsi0:1"]);
        assert!(at_depth[0].sentence.ends_with("The same is true of 2 other virtual disks."));
        let suffering: Vec<&str> = at_depth[0].sufferers.iter().map(|vm| &*vm.name).collect();
        assert_eq!(suffering, ["a", "b", "c"]);
        let verdict = bench.diagnose(&Thresholds::default(), &Facts::default());
        let text = crate::render_text(&verdict);
        assert!(text.contains("a:scsi0:1 and 2 more"), "{text}");
        assert!(text.contains("Also at   b:scsi0:1; c:scsi0:1"), "{text}");
    }

    #[test]
    fn pvscsi_that_stays_at_64_is_at_its_depth() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 128).vm("sql01").iops(103_000.0).davg(0.62);
        let finding = bench.only(Cause::VirtualDiskCap, &Facts::default());
        assert_eq!(finding.changes[0].effect, Effect::GuestReboot);
        let sets = |line: &String| line.contains("RequestRingPages=32,MaxQueueDepth=254");
        assert!(finding.changes[0].guest.iter().any(sets));
    }

    #[test]
    fn lsi_stays_at_32_and_another_number_is_no_cap() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("a").iops(64_000.0).davg(0.5).controller(Controller::LsiSas);
        bench.device("naa.2", 64).vm("b").iops(40_000.0).davg(0.5).controller(Controller::Pvscsi);
        let finding = bench.only(Cause::VirtualDiskCap, &Facts::default());
        assert_eq!(finding.at.name, "a:scsi0:1");
    }

    #[test]
    fn a_full_nvme_disk_is_named_and_no_move_to_less_is_proposed() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 1_024).vm("a").iops(256_000.0).davg(1.0).controller(Controller::Nvme);
        let finding = bench.only(Cause::VirtualDiskCap, &Facts::default());
        assert!(finding.sentence.contains("the 256 that virtual NVMe allows"), "{finding:?}");
        assert!(finding.changes.iter().all(|change| !change.what.starts_with("Move")));
    }

    #[test]
    fn a_number_that_goes_beyond_the_cap_is_none() {
        let mut bench = Bench::new(8);
        let vm = bench.device("naa.1", 254).vm("a").iops(100_000.0).davg(0.62);
        vm.sampled(|s| [50, 62, 78, 61, 66, 57, 71, 60][s]);
        assert!(bench.findings().is_empty());
    }

    #[test]
    fn a_guest_and_a_device_of_as_many_slots_are_deepened_together_the_device_first() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("a").iops(22_754.0).davg(2.81);
        let cap = bench.only(Cause::VirtualDiskCap, &Facts::default());
        let [device, guest] = &cap.changes[..] else { panic!("{:?}", cap.changes) };
        assert!(device.esxcli[0].ends_with("ql2xmaxqdepth=128"), "{:?}", device.esxcli);
        assert_eq!(guest.effect, Effect::GuestReboot);
        assert!(cap.changes.iter().all(|change| change.what.contains("alone it gains nothing")));
        assert!(
            cap.do_not[0].starts_with("Do not raise the guest's depth alone"),
            "{:?}",
            cap.do_not
        );
    }

    #[test]
    fn a_depth_that_moves_is_no_device_to_deepen_before_its_guest() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 64).depth(|s| if s < 2 { 48 } else { 64 });
        device.vm("a").iops(22_754.0).davg(2.81);
        let cap = bench.first(Cause::VirtualDiskCap, &Facts::default());
        assert!(cap.changes.is_empty(), "{:?}", cap.changes);
    }

    /// 128 threads in the first half of every fifth sample are 64 in the mean of it.
    #[test]
    fn half_a_sample_of_twice_the_cap_is_none() {
        let mut bench = Bench::new(26);
        let is_burst = |s: usize| s % 5 == 2;
        let vm = bench.device("naa.1", 254).vm("a");
        vm.iops_when(move |s| if is_burst(s) { 24_000.0 } else { 1_000.0 });
        vm.davg_when(move |s| if is_burst(s) { 2.67 } else { 0.5 }).sampled(|_| 1);
        let mut findings = bench.findings().into_iter();
        assert!(findings.all(|finding| finding.cause != Cause::VirtualDiskCap));
    }

    #[test]
    fn a_load_that_passes_a_cap_on_its_way_is_at_none() {
        let mut bench = Bench::new(12);
        let inside = [1.0, 20.0, 64.0, 63.0, 64.0, 64.0, 90.0, 141.0, 64.0, 63.0, 40.0, 5.0];
        let vm = bench.device("naa.1", 254).vm("a").iops_when(move |s| inside[s] * 500.0);
        vm.davg(2.0);
        assert!(bench.findings().is_empty());
    }

    #[test]
    fn slow_commands_leave_no_place_of_a_cap_empty() {
        let inside = |s: usize| [62.4, 63.4, 62.6, 62.7][s];
        for (davg, finds) in [(0.9, true), (88.0, false)] {
            let mut bench = Bench::new(4);
            let rate = move |s| inside(s) / davg * 1_000.0;
            bench.device("naa.1", 254).vm("a").iops_when(rate).davg(davg);
            let findings = bench.findings();
            let is_cap = |finding: &crate::Finding| finding.cause == Cause::VirtualDiskCap;
            assert_eq!(findings.iter().any(is_cap), finds, "{davg} ms");
        }
    }

    #[test]
    fn two_samples_of_a_load_that_comes_near_a_cap_are_at_none() {
        let mut bench = Bench::new(13);
        let inside = [49.7, 40.8, 47.3, 61.7, 61.1, 47.2, 44.0, 44.1, 51.3, 51.3, 43.1, 53.7, 50.3];
        let vm = bench.device("naa.1", 254).vm("a").iops_when(move |s| inside[s] / 0.6 * 1_000.0);
        vm.davg(0.6);
        assert!(bench.findings().is_empty());
    }

    #[test]
    fn a_load_that_varies_around_a_cap_is_at_none() {
        for samples in [4, 8, 30] {
            let mut bench = Bench::new(samples);
            let varied = |s: usize| 247.0 * (1.0 + [0.02, -0.07, 0.03, -0.04, 0.09, -0.08][s % 6]);
            let vm = bench.device("naa.1", 1_024).vm("a").iops_when(move |s| varied(s) * 1_000.0);
            vm.davg(1.0);
            assert!(bench.findings().is_empty(), "{samples}");
        }
    }

    #[test]
    fn the_depth_that_is_named_is_one_that_the_adapter_has() {
        let mut bench = Bench::new(6);
        let inside = |s: usize| [44.0, 60.0, 50.0, 58.0, 47.0, 53.0][s];
        let vm = bench.device("naa.1", 128).vm("a").iops_when(move |s| inside(s) * 1_000.0);
        vm.davg(1.0).guest_wait(0.3, 32.0);
        let finding = bench.only(Cause::VirtualDiskCap, &Facts::default());
        assert!(
            finding.sentence.contains("fills the 64 commands that PVSCSI allows"),
            "{}",
            finding.sentence
        );
    }

    #[test]
    fn kavgs_own_counter_decides_where_it_is_there() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 128).vm("a").iops(103_000.0).davg(0.62).guest_wait(0.3, 32.0);
        let finding = bench.only(Cause::VirtualDiskCap, &Facts::default());
        assert!(finding.confidence > 0.95 && finding.standing == 32.0);
        let mut bench = Bench::new(6);
        bench.device("naa.1", 128).vm("a").iops(103_000.0).davg(0.62).guest_wait(0.0, 0.0);
        assert!(bench.findings().is_empty());
    }

    #[test]
    fn a_quick_disk_is_at_its_depth_as_far_as_two_decimals_tell() {
        let mut bench = Bench::new(6);
        let rate = |s: usize| 140_900.0 + 100.0 * (s % 3) as f64;
        let vm = bench.device("naa.1", 64).vm("a").iops_when(rate).davg(0.23);
        vm.controller(Controller::LsiSas).sampled(|_| 29);
        bench.only(Cause::VirtualDiskCap, &Facts::default());
    }

    #[test]
    fn no_deeper_disk_is_advised_beside_an_array_that_takes_no_more() {
        let mut bench = Bench::new(12);
        let rate = |s: usize| 1_430.0 + 20.0 * (s % 3) as f64;
        let vm = bench.device("naa.1", 254).vm("sql").iops_when(rate);
        vm.davg_when(move |s| 64_000.0 / rate(s)).sampled(|_| 64);
        let findings = bench.findings();
        let slow = findings.iter().find(|finding| finding.cause == Cause::ArraySlow).unwrap();
        assert!(slow.do_not[0].starts_with("Do not raise queue depths"), "{:?}", slow.do_not);
        let at_depth = bench.first(Cause::VirtualDiskCap, &Facts::default());
        assert!(at_depth.changes.is_empty(), "{:?}", at_depth.changes);
        let told = "naa.1 takes 44.1 ms (DAVG) already, and more commands only wait there";
        assert!(at_depth.do_not[0].contains(told), "{:?}", at_depth.do_not);
    }
}
