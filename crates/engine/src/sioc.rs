//! Storage I/O Control: a host's half, its window of the commands that a datastore may have outstanding.
//!
//! Hosts that share a datastore write their latency and their number of I/Os into one record of it; each
//! period every host reads the mean L of all of them, and its device's depth goes
//!
//! ```text
//!   w <- (1 - G) * w + G * (T / L * w + B),   G = 4/5, bounded by 4 and the device's own depth
//!   B = sum over the virtual disks of shares / 1000 * min(1, what it has under way / its part of w)
//! ```
//!
//! where T is the congestion threshold: PARDA's law [PARDA, equations 2 and 4] with the numbers of its
//! experiments, so that a disk of 1,000 shares weighs 1. DSNRO is set aside meanwhile [ELA 2012-07]. Who
//! keeps the record is not the engine: the mean comes in by [`Input::Congestion`](crate::Input::Congestion).
//!
//! Where latency stays although a host holds back what it has, the load is somebody else's: that is told, and
//! the host holds back nothing, as it would only leave more to the other, until it begins anew [LUCD, YB-SIOC].
//!
//! It may count alone, as it does on ESXi where nobody has switched it on [SC-SIOC]: no window, and DSNRO as
//! ever; that the mean comes above the threshold, and that it is no longer there, is told.

use alloc::vec::Vec;

use counters::{MICROSECOND, Time, VdiskId};
use knobs::IoControl;

use crate::codec::records;

/// Fractions of a slot in the window that is worked out.
const FINE: u64 = 256;
/// Slots that a host is always left (section 3 of `array-and-control.md`).
const LEAST: u32 = 4;
/// What a volume has whose depth nobody limits (`NFS.MaxQueueDepth`) [LAMW]: it is cut from what it has under
/// way, for beyond that nothing was in force (ruling).
const NO_DEPTH: u64 = u32::MAX as u64 * FINE;
/// G, as a fraction [PARDA].
const GAIN: (u64, u64) = (4, 5);
/// A window that has lost so large a part is cut; in vain, where latency is half as much again as the threshold
/// and has fallen by less than half as much: hosts that share out among them what there is are nearer to it.
const CUT: u64 = 8;
/// So many periods in vain, one after the other, tell of a workload from outside: the law settles in as many.
const IN_VAIN: u32 = 3;
/// Shares that weigh 1: those of a disk that nobody gave any (Normal) [LAMW].
const SHARES_OF_ONE: u64 = 1000;

/// The state of one device.
#[derive(Clone, Debug)]
pub(crate) struct Sioc {
    threshold_ns: u64,
    /// Whether it counts alone, and whether it has told of congestion then.
    only_counts: bool,
    is_congested: bool,
    /// The window as it was worked out, in `FINE`s; 0 before it was.
    fine: u64,
    /// The same with what was left of a slot the time before: its whole slots are the limit. Were what is
    /// left forgotten, hosts with few slots would miss the ratio of their shares by half a slot for ever.
    given: u64,
    /// The window before it was cut, the worst latency since, and for how many periods that has been in vain.
    full: u64,
    worst_ns: u64,
    in_vain: u32,
    /// When the period began, and how much time I/Os had been under way for each virtual disk by then,
    /// ascending.
    since: Time,
    disks: Vec<Use>,
}

/// A virtual disk, its shares and the integral of what it has under way over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) disk: VdiskId,
    pub(crate) shares: u32,
    pub(crate) under_way_ns: u64,
}

impl Sioc {
    /// Whether it could have become so.
    pub(crate) fn is_sound(&self) -> bool {
        let most = u64::from(u32::MAX) * FINE;
        let is_bounded =
            self.fine.max(self.full) <= most && self.given < most + FINE && self.in_vain < IN_VAIN;
        let counts_alone = self.fine == 0 && self.full == 0;
        let is_one = if self.only_counts { counts_alone } else { !self.is_congested };
        is_bounded
            && is_one
            && self.threshold_ns > 0
            && self.disks.is_sorted_by_key(|seen| seen.disk)
    }

    /// The limit that it puts on a device whose depth would be `most`.
    pub(crate) fn limit(&self, most: u32) -> u32 {
        let slots = (self.given / FINE) as u32;
        if self.fine == 0 { most } else { slots.clamp(LEAST.min(most), most) }
    }

    /// Forgets the window, as a reboot does.
    pub(crate) const fn forget(&mut self) {
        (self.fine, self.full, self.in_vain) = (0, 0, 0);
    }

    /// The same that does so from now on, or one that begins, unless it ends; a period begins with what each
    /// disk had under way.
    pub(crate) fn with(
        was: Option<&Self>,
        control: IoControl,
        disks: impl FnOnce() -> Vec<Use>,
        now: Time,
    ) -> Option<Self> {
        let threshold_ns = u64::from(control.threshold_us()?) * MICROSECOND;
        let only_counts = matches!(control, IoControl::Stats { .. });
        let was = was.filter(|was| was.only_counts == only_counts);
        let (fine, given) = was.map_or((0, 0), |sioc| (sioc.fine, sioc.given));
        let is_congested = was.is_some_and(|sioc| sioc.is_congested);
        Some(Self {
            threshold_ns,
            only_counts,
            is_congested,
            fine,
            given,
            full: 0,
            worst_ns: 0,
            in_vain: 0,
            since: now,
            disks: disks(),
        })
    }

    /// The congestion threshold in microseconds.
    pub(crate) const fn threshold_us(&self) -> u32 {
        (self.threshold_ns / MICROSECOND) as u32
    }

    /// Whether it does more than count.
    pub(crate) const fn controls(&self) -> bool {
        !self.only_counts
    }

    /// A period is over, in which the I/Os of all hosts took so long in the mean: whether the datastore is
    /// congested, where that is another thing than it was and nothing else is done about it.
    pub(crate) fn count(&mut self, latency_ns: u64) -> Option<bool> {
        let is_congested = self.only_counts && latency_ns > self.threshold_ns;
        let was = core::mem::replace(&mut self.is_congested, is_congested);
        (is_congested != was).then_some(is_congested)
    }

    /// A period is over, in which the I/Os of all hosts took so long in the mean; 0 where there was none.
    /// Whether it tells of a workload from outside.
    pub(crate) fn follow(
        &mut self,
        latency_ns: u64,
        most: u32,
        disks: Vec<Use>,
        now: Time,
    ) -> bool {
        let most = u64::from(most) * FINE;
        let mut window = if self.fine == 0 { most } else { self.fine.min(most) };
        let (mut weight, under_way) = self.weight(window, &disks, now);
        if most == NO_DEPTH && latency_ns > self.threshold_ns && under_way < window.into() {
            window = (under_way as u64).max(u64::from(LEAST) * FINE);
            weight = self.weight(window, &disks, now).0;
        }
        let next = match latency_ns {
            0 => most,
            latency_ns => {
                let wanted = u128::from(window) * u128::from(self.threshold_ns);
                let wanted = (wanted / u128::from(latency_ns)).min(most.into()) as u64 + weight;
                let (of_wanted, of_all) = GAIN;
                ((of_all - of_wanted) * window + of_wanted * wanted) / of_all
            }
        };
        let next = next.clamp((u64::from(LEAST) * FINE).min(most), most);
        let is_outside = self.is_in_vain(latency_ns, window, under_way);
        if is_outside {
            (self.full, self.in_vain) = (0, 0);
        }
        self.fine = if is_outside { most } else { next };
        self.given = self.fine + self.given % FINE;
        (self.since, self.disks) = (now, disks);
        is_outside
    }

    /// Whether the window has been cut in vain for too long.
    fn is_in_vain(&mut self, latency_ns: u64, window: u64, under_way: u128) -> bool {
        // A window that is not full holds nothing back.
        let is_held = under_way > window.into();
        let is_near = latency_ns <= self.threshold_ns + self.threshold_ns / 2;
        if is_near || !is_held || window >= self.full {
            (self.full, self.worst_ns, self.in_vain) = (window, latency_ns, 0);
            return false;
        }
        self.worst_ns = self.worst_ns.max(latency_ns);
        let (cut, fall_ns) = (self.full - window, self.worst_ns - latency_ns);
        let is_little = 2 * u128::from(fall_ns) * u128::from(self.full)
            < u128::from(cut) * u128::from(self.worst_ns);
        let is_in_vain = cut >= self.full / CUT && is_little;
        self.in_vain = if is_in_vain { self.in_vain + 1 } else { 0 };
        self.in_vain == IN_VAIN
    }

    /// B, where a virtual disk that does not use its part of the window counts for as much less; and what all
    /// of them had under way, in `FINE`s.
    fn weight(&self, window: u64, disks: &[Use], now: Time) -> (u64, u128) {
        let shares: u64 = disks.iter().map(|disk| u64::from(disk.shares)).sum();
        let of = |disk: &Use| {
            let before = self.disks.binary_search_by_key(&disk.disk, |seen| seen.disk);
            let before = before.map_or(disk.under_way_ns, |place| self.disks[place].under_way_ns);
            let under_way = u128::from(disk.under_way_ns.wrapping_sub(before)) * u128::from(FINE)
                / u128::from((now - self.since).max(1));
            let part = (window * u64::from(disk.shares) / shares.max(1)).max(1);
            let used = under_way.min(part.into()) as u64;
            (u64::from(disk.shares) * FINE * used / part / SHARES_OF_ONE, under_way)
        };
        disks.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

records! {
    Sioc { threshold_ns, only_counts, is_congested, fine, given, full, worst_ns, in_vain, since, disks }
    Use { disk, shares, under_way_ns }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use counters::{MILLISECOND, SECOND};
    use knobs::CONGESTION_PERIOD_NS as PERIOD;

    use super::*;

    /// Hosts with a disk each, which have so many commands under way all the time, on an array.
    struct Cluster {
        hosts: Vec<(Sioc, u32, u32)>,
        now: u64,
        /// How often a workload from outside was told of.
        told: u32,
    }

    impl Cluster {
        /// Of shares and commands under way.
        fn new(threshold_ms: u32, hosts: &[(u32, u32)]) -> Self {
            let host = |&(shares, under_way): &(u32, u32)| {
                let disks = vec![Use { disk: VdiskId(0), shares, under_way_ns: 0 }];
                let control = IoControl::On { threshold_us: 1000 * threshold_ms };
                let sioc = Sioc::with(None, control, || disks, Time::ZERO).expect("it is on");
                (sioc, shares, under_way)
            };
            Self { hosts: hosts.iter().map(host).collect(), now: 0, told: 0 }
        }

        /// A period: the array does `rate` a second at most, and an I/O takes `least_ns` at least. How long it
        /// took.
        fn period(&mut self, rate: u64, least_ns: u64) -> u64 {
            self.now += PERIOD;
            let out = self.hosts.iter().map(|(sioc, _, under_way)| sioc.limit(64).min(*under_way));
            let latency_ns = (u64::from(out.sum::<u32>()) * SECOND / rate).max(least_ns);
            for (sioc, shares, under_way) in &mut self.hosts {
                let under_way_ns = u64::from(*under_way) * self.now;
                let disks = vec![Use { disk: VdiskId(0), shares: *shares, under_way_ns }];
                self.told += u32::from(sioc.follow(latency_ns, 64, disks, Time(self.now)));
            }
            latency_ns
        }

        /// Hundredths of a slot.
        fn windows(&self) -> Vec<u64> {
            self.hosts.iter().map(|(sioc, ..)| sioc.fine * 100 / FINE).collect()
        }
    }

    #[test]
    fn it_ends_at_the_fixed_point_within_three_periods() {
        // Section 2.2 of array-and-control.md: W = T X + B = 104.5, 26.1 a host, L = 31.2 ms.
        let mut cluster = Cluster::new(30, &[(1000, 64); 4]);
        (0..4).for_each(|_| _ = cluster.period(3350, 0));
        for window in cluster.windows() {
            assert!(window.abs_diff(2610) < 30, "{window}");
        }
        let latency_ns = cluster.period(3350, 0);
        assert!(latency_ns.abs_diff(31_200_000) < 600_000, "{latency_ns}");
    }

    #[test]
    fn windows_are_as_the_shares_are() {
        let mut cluster = Cluster::new(30, &[(1000, 64), (2000, 64)]);
        // Their sum is there at once, their ratio by 1 - G B / W a period.
        (0..200).for_each(|_| _ = cluster.period(1000, 0));
        let windows = cluster.windows();
        assert!(windows[1].abs_diff(2 * windows[0]) < 40, "{windows:?}");
        assert!((windows[0] + windows[1]).abs_diff(3300) < 50, "{windows:?}");
    }

    #[test]
    fn who_does_not_use_its_part_leaves_it_to_the_others() {
        let mut cluster = Cluster::new(30, &[(1000, 2), (1000, 64)]);
        (0..200).for_each(|_| _ = cluster.period(1000, 0));
        let windows = cluster.windows();
        // L = 2 + w ms and w = 1 / (1 - T / L) make w = 29.07; v = 2 / v / (1 - T / L) makes v = 7.6.
        assert!(windows[1].abs_diff(2907) < 50, "{windows:?}");
        assert!(windows[0].abs_diff(760) < 50, "{windows:?}");
    }

    /// A host alone with 64 under way on a volume of 1,000 I/Os a second: w = T X + 1 = 31.
    #[test]
    fn a_volume_without_a_depth_is_cut_from_what_it_has_under_way() {
        let of = |at: u64| vec![Use { disk: VdiskId(0), shares: 1000, under_way_ns: 64 * at }];
        let control = IoControl::On { threshold_us: 30_000 };
        let mut sioc = Sioc::with(None, control, || of(0), Time::ZERO).expect("it is on");
        assert_eq!(sioc.limit(u32::MAX), u32::MAX);
        for period in 1..=4 {
            let at = period * PERIOD;
            let latency_ns = u64::from(sioc.limit(u32::MAX).min(64)) * MILLISECOND;
            sioc.follow(latency_ns, u32::MAX, of(at), Time(at));
        }
        assert_eq!(sioc.limit(u32::MAX), 31);
    }

    #[test]
    fn an_array_that_is_never_congested_is_never_throttled() {
        let mut cluster = Cluster::new(30, &[(1000, 64); 2]);
        for _ in 0..10 {
            cluster.period(200_000, 400_000);
            assert_eq!(cluster.windows(), [6400; 2]);
        }
    }

    #[test]
    fn a_host_keeps_four_slots_and_gets_all_back_when_the_load_goes() {
        let mut cluster = Cluster::new(5, &[(1000, 64); 2]);
        (0..20).for_each(|_| _ = cluster.period(10, 0));
        assert_eq!(cluster.hosts[0].0.limit(64), 4);
        assert_eq!(cluster.hosts[0].0.limit(3), 3);
        cluster.hosts.iter_mut().for_each(|(sioc, ..)| {
            sioc.follow(0, 64, vec![], Time::ZERO);
        });
        assert_eq!(cluster.windows(), [6400; 2]);
    }

    #[test]
    fn a_load_from_outside_is_told_of_and_throttles_nobody_for_long() {
        // Of twice the threshold: 0.6 of the window and 0.8 for the weight each time. Or of all that there is.
        let cases = [
            (60, [3920, 2432, 1539, 6400, 3920, 2432]),
            (100_000, [1361, 400, 400, 6400, 1361, 400]),
        ];
        for (latency_ms, expected) in cases {
            // Who has less than fits holds nothing back and says nothing.
            let mut cluster = Cluster::new(30, &[(1000, 64), (1000, 2)]);
            for (period, expected) in expected.into_iter().enumerate() {
                cluster.period(u64::MAX, latency_ms * MILLISECOND);
                let (window, told) = (cluster.windows()[0], cluster.told);
                assert!(window.abs_diff(expected) <= 1, "{latency_ms} {period}: {window}");
                assert_eq!(told, u32::from(period >= 3), "{latency_ms} {period}");
            }
        }
    }

    #[test]
    fn where_it_only_counts_congestion_is_told_of_once_and_its_end_once() {
        let control = IoControl::Stats { threshold_us: 30_000 };
        let mut sioc = Sioc::with(None, control, Vec::new, Time::ZERO).expect("it counts");
        let told = [20, 30, 31, 300, 30, 0].map(|millis| sioc.count(millis * MILLISECOND));
        assert_eq!(told, [None, None, Some(true), None, Some(false), None]);
        assert!(!sioc.controls());
    }

    #[test]
    fn hosts_that_are_held_back_are_no_load_from_outside() {
        for under_way in [30, 64, 300] {
            let mut cluster = Cluster::new(30, &[(1000, under_way), (4000, under_way), (500, 64)]);
            for rate in [1000, 4000, 200, 1000, 500, 2000] {
                (0..50).for_each(|_| _ = cluster.period(rate, 0));
                assert_eq!(cluster.told, 0, "{under_way} {rate}");
            }
        }
    }
}
