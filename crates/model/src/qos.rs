//! Quality of service of a volume as SolidFire enforces it: a token bucket that delays
//! completions (reference `array-and-control.md`, sections 6.1 to 6.4; credit [KB-SF]).
//!
//! ```text
//!   rate = max + what the credit has, at most burst     tokens are granted first come, first served
//!   a second above max spends what it got above max     a second under max earns burst - max
//! ```
//!
//! So max 1,000, burst 1,500 and 60 s are a credit of 30,000: 60 s at 1,500, 120 s at 1,250. The documentation
//! counts the same credit in seconds of burst, of which each second below max earns one.
//!
//! A second at whose end a command waits for tokens, at less than burst, is not under max, even where tokens were idle
//! at its beginning: the volume wants more and is held back (ruling). By the letter a load just above max that pauses for
//! one command would earn a second of burst in every other one.
//!
//! The bucket keeps time by the tokens it has granted: what waits for tokens is granted ahead of
//! time, second by second, so the answer is known when the command arrives. Where the array can do
//! only so much, `cluster.rs` says each second what is left of both rates; what was granted before
//! stays granted.

use core::cmp::Ordering;

use counters::{SECOND, Time};

use crate::config::{Cost, Qos};

/// Size in bytes and cost in hundredths of a unit: the curve in the answers of real clusters
/// (section 6.2).
const CURVE: [(u32, u64); 9] = [
    (4 << 10, 100),
    (8 << 10, 160),
    (16 << 10, 270),
    (32 << 10, 500),
    (64 << 10, 1_000),
    (128 << 10, 1_950),
    (256 << 10, 3_900),
    (512 << 10, 7_600),
    (1 << 20, 15_000),
];
/// Hundredths of a unit for each further 100 KiB above 1 MiB: 14.65 a KiB (section 6.2).
const COST_PER_100_KIB: u64 = 1_465;
/// Steps from one level of [`Bucket::rate_at`] to the next.
pub(crate) const STEPS: u64 = 1 << 16;
/// A volume whose tokens were idle for less than this in a second asks for more than it got (ruling): those
/// of one that is held back are not idle but for roundings.
const IDLE_NS: u64 = SECOND / 64;
/// A backlog that reaches beyond this instant, 146 years, is never served.
const HORIZON: Time = Time(1 << 62);

/// The tokens of one volume.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Cost units a second.
    min: u64,
    max: u64,
    burst: u64,
    cost: Cost,
    /// What the array has of these rates for it in this second, at most.
    now: u64,
    /// Units times nanoseconds above `max`.
    credit: u64,
    credit_max: u64,
    /// Until when the tokens are granted.
    granted: Time,
    /// The second in which that is, and what was granted of it, in units times nanoseconds.
    second: u64,
    used: u64,
    /// Since an instant: hundredths of a unit that came, and nanoseconds for which tokens were idle.
    since: Time,
    came: u64,
    idle_ns: u64,
}

impl Bucket {
    /// A bucket whose volume was idle for long: its credit is full.
    pub(crate) fn new(qos: &Qos) -> Self {
        let max = u64::from(qos.max.max(1));
        let burst = u64::from(qos.burst).max(max);
        let credit_max = ((burst - max) * SECOND).saturating_mul(u64::from(qos.burst_secs));
        Self {
            min: u64::from(qos.min).min(max),
            max,
            burst,
            cost: qos.cost,
            now: burst,
            credit: credit_max,
            credit_max,
            granted: Time::ZERO,
            second: 0,
            used: 0,
            since: Time::ZERO,
            came: 0,
            idle_ns: 0,
        }
    }

    /// The instant at which a command that arrives now has its tokens.
    pub(crate) fn grant(&mut self, arrive: Time, bytes: u32) -> Time {
        let start = self.granted.max(arrive);
        if start < HORIZON {
            let cost = self.cost.of(bytes);
            self.came += cost;
            self.idle_ns += start.since(self.granted.max(self.since));
            self.idle_until(start.0 / SECOND);
            self.granted = self.spend(start.0, cost * (SECOND / 100), start > arrive);
        }
        start
    }

    /// What a command counts, in hundredths of a unit.
    pub(crate) fn cost_of(&self, bytes: u32) -> u64 {
        self.cost.of(bytes)
    }

    /// Grants no more of a second, of which it has got its `min` already.
    pub(crate) fn hold(&mut self, second: u64) {
        if self.second == second && self.used >= self.min * SECOND {
            self.granted = Time((second + 1) * SECOND);
        }
    }

    /// Cost units that it asks for in a second, by what came since it was asked last; `None` has no end.
    pub(crate) fn ask(&mut self, now: Time) -> Option<u64> {
        self.idle_ns += now.since(self.granted.max(self.since));
        let asked = (self.idle_ns >= IDLE_NS).then_some(self.came / 100);
        (self.since, self.came, self.idle_ns) = (now, 0, 0);
        asked
    }

    /// Its rate at a level, in [`STEPS`]: 0 at none, `min`, `max`, and `burst` where it has credit.
    pub(crate) fn rate_at(&self, level: u64) -> u64 {
        let rates = [0, self.min, self.max, self.burst.min(self.with_credit())];
        let (whole, part) = ((level / STEPS) as usize, level % STEPS);
        let low = rates[whole.min(3)];
        low + (rates[(whole + 1).min(3)] - low) * part / STEPS
    }

    /// Leaves of its rates what they are at a level; a unit a second at least.
    pub(crate) fn set_level(&mut self, level: u64) {
        self.now = self.rate_at(level).max(1);
    }

    /// Cost units a second that it grants now.
    pub(crate) fn rate(&self) -> u64 {
        self.now.min(self.with_credit())
    }

    /// Cost units of a second in which all the credit is spent.
    fn with_credit(&self) -> u64 {
        self.max + self.credit / SECOND
    }

    /// Grants what is `owed` (units times nanoseconds) from the instant `at` on.
    /// Whose command it is has waited for that or not.
    fn spend(&mut self, mut at: u64, mut owed: u64, has_waited: bool) -> Time {
        loop {
            let rate = self.rate();
            let in_second = rate * ((self.second + 1) * SECOND - at);
            if owed <= in_second {
                // What is left of the last nanosecond is granted to nobody: it counts as used, or a
                // volume that always wants more would earn credit.
                let busy = owed.div_ceil(rate);
                self.used += rate * busy;
                return Time(at + busy);
            }
            owed -= in_second;
            self.used += in_second;
            self.close_second(has_waited);
            // Seconds at exactly max neither earn nor spend, and those at less earn: they pass at once.
            let rate = self.rate();
            if rate <= self.max {
                let seconds = owed / (rate * SECOND);
                owed -= seconds * rate * SECOND;
                self.second += seconds;
                self.earn(if rate < self.max { seconds } else { 0 });
            }
            at = self.second * SECOND;
        }
    }

    fn close_second(&mut self, waits: bool) {
        let max = self.max * SECOND;
        match self.used.cmp(&max) {
            Ordering::Less if waits && self.with_credit() < self.burst => {}
            Ordering::Less => self.earn(1),
            Ordering::Equal => {}
            Ordering::Greater => self.credit = self.credit.saturating_sub(self.used - max),
        }
        self.second += 1;
        self.used = 0;
    }

    fn idle_until(&mut self, second: u64) {
        if second > self.second {
            self.close_second(false);
            self.earn(second - self.second);
            self.second = second;
        }
    }

    fn earn(&mut self, seconds: u64) {
        let earned = ((self.burst - self.max) * SECOND).saturating_mul(seconds);
        self.credit = self.credit.saturating_add(earned).min(self.credit_max);
    }
}

impl Cost {
    /// That of a command of so many bytes in hundredths of a unit, linear between the points of the curve.
    #[must_use]
    pub fn of(self, bytes: u32) -> u64 {
        match self {
            Self::Flat => 100,
            Self::SolidFire => solidfire_cost(bytes),
        }
    }
}

fn solidfire_cost(bytes: u32) -> u64 {
    let above = CURVE.partition_point(|&(size, _)| size < bytes);
    let Some(&(size, cost)) = CURVE.get(above) else {
        let (size, cost) = CURVE[CURVE.len() - 1];
        return cost + u64::from(bytes - size) * COST_PER_100_KIB / (100 << 10);
    };
    if above == 0 {
        return cost;
    }
    let (size_below, cost_below) = CURVE[above - 1];
    let (part, whole) = (u64::from(bytes - size_below), u64::from(size - size_below));
    cost_below + (cost - cost_below) * part / whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::MILLISECOND;

    const BRONZE: Qos = Qos {
        min: 0,
        max: 1_000,
        burst: 2_000,
        burst_secs: 60,
        cost: Cost::SolidFire,
        bytes_per_sec: None,
    };

    /// I/Os granted in each second when there is always one waiting.
    fn backlogged(qos: &Qos, bytes: u32, seconds: usize) -> alloc::vec::Vec<u32> {
        let mut bucket = Bucket::new(qos);
        let mut counts = alloc::vec![0; seconds];
        while let Some(count) =
            counts.get_mut((bucket.grant(Time::ZERO, bytes).0 / SECOND) as usize)
        {
            *count += 1;
        }
        counts
    }

    #[test]
    fn rates_by_size_are_those_of_the_reference() {
        // Section 6.2 and 6.3: limit, KiB, I/Os a second.
        for (limit, kib, expected) in [
            (1_000, 4, 1_000.0),
            (1_000, 128, 51.3),
            (1_000, 256, 25.6),
            (1_000, 512, 13.2),
            (2_000, 512, 26.3),
            (3_000, 512, 39.5),
            (3_000, 256, 76.9),
            (6_000, 256, 153.8),
            (6_000, 512, 78.9),
            (2_000, 128, 25.6 * 4.0),
        ] {
            let qos = Qos { min: 0, max: limit, burst: limit, ..BRONZE };
            let found = f64::from(backlogged(&qos, kib << 10, 100).iter().sum::<u32>()) / 100.0;
            assert!((found - expected).abs() < 0.2, "{limit} at {kib} KiB: {found}");
        }
    }

    #[test]
    fn between_and_beyond_the_points_the_curve_is_linear() {
        for (bytes, cost) in [
            (0, 100),
            (512, 100),
            (4096, 100),
            (6 << 10, 130),
            (384 << 10, 5_750),
            (2 << 20, 15_000 + 15_001),
            (u32::MAX, 61_446_551),
        ] {
            assert_eq!(solidfire_cost(bytes), cost, "{bytes}");
        }
    }

    #[test]
    fn a_burst_lasts_as_long_as_its_credit() {
        let counts = backlogged(&BRONZE, 4096, 63);
        assert_eq!(counts[..60], [2_000; 60]);
        assert_eq!(counts[60..], [1_000; 3]);
    }

    /// A third of a nanosecond is lost with each I/O, which is no second under max.
    #[test]
    fn a_rate_that_does_not_divide_a_second_earns_no_credit() {
        let qos = Qos { max: 1_500, burst: 3_000, ..BRONZE };
        let counts = backlogged(&qos, 4096, 90);
        let alike = |counts: &[u32], rate: u32| counts.iter().all(|own| own.abs_diff(rate) <= 1);
        assert!(alike(&counts[..60], 3_000) && alike(&counts[60..], 1_500), "{counts:?}");
    }

    #[test]
    fn a_second_under_max_earns_a_second_of_burst() {
        let mut bucket = Bucket::new(&BRONZE);
        bucket.credit = 0;
        for second in 0..5 {
            bucket.grant(Time(second * SECOND), 4096);
        }
        assert_eq!(bucket.credit, 4 * 1_000 * SECOND);
        bucket.grant(Time(1_000 * SECOND), 4096);
        assert_eq!(bucket.credit, 60 * 1_000 * SECOND);
    }

    /// The examples of NetApp [KB-SF]: max 1,000 and burst 1,500 store 30,000, of which a second at 1,500 uses 500,
    /// one at 1,250 the half.
    #[test]
    fn a_second_above_max_spends_what_it_got_above_max() {
        let qos = Qos { max: 1_000, burst: 1_500, ..BRONZE };
        for (asked, lasts_secs) in [(1_500, 60), (1_250, 120), (1_100, 300)] {
            let mut bucket = Bucket::new(&qos);
            let is_held = |at: &u64| bucket.grant(Time(*at), 4096) > Time(at + MILLISECOND);
            let first = (0..asked * 400).map(|n| n * SECOND / asked).find(is_held);
            assert_eq!(first.map(|at| at / SECOND), Some(lasts_secs), "{asked}");
        }
    }

    /// What is left of a credit lasts for less than a second at burst: 300 of 500.
    #[test]
    fn the_last_second_of_a_burst_gets_what_the_credit_has() {
        let qos = Qos { max: 1_000, burst: 1_500, ..BRONZE };
        let mut bucket = Bucket::new(&qos);
        bucket.credit = 800 * SECOND;
        let mut counts = [0; 4];
        while let Some(count) = counts.get_mut((bucket.grant(Time::ZERO, 4096).0 / SECOND) as usize)
        {
            *count += 1;
        }
        assert_eq!(counts, [1_500, 1_300, 1_000, 1_000]);
    }

    /// Seventeen commands of 76 units a second are 1,292 units: a host's limit lets none of them earn credit, as many
    /// as come in each second at the same times.
    #[test]
    fn what_always_asks_for_more_than_max_earns_no_credit() {
        for a_second in 14..25 {
            let mut bucket = Bucket::new(&Qos { burst_secs: 5, ..BRONZE });
            let came = (0..a_second * 200).map(|n| Time(n * SECOND / a_second));
            let last = came.map(|at| bucket.grant(at, 512 << 10)).last().unwrap();
            // The credit of 5,000 is spent, and all else is at max.
            let expected = ((a_second * 200 - 1) as f64 * 76.0 - 5_000.0) / 1_000.0;
            let off = last.0 as f64 / SECOND as f64 / expected;
            assert!((off - 1.0).abs() < 0.002, "{a_second}: {off}");
        }
    }

    #[test]
    fn a_backlog_granted_ahead_spends_the_credit_that_there_will_be() {
        let mut bucket = Bucket::new(&BRONZE);
        bucket.credit = 1_000 * SECOND;
        // 76 units each: 2,000 in the first second, then 1,000 a second.
        let last = (0..100).map(|_| bucket.grant(Time::ZERO, 512 << 10)).last();
        let units = 99.0 * 76.0;
        let expected = 1.0 + (units - 2_000.0) / 1_000.0;
        assert!((last.unwrap().0 as f64 / SECOND as f64 - expected).abs() < 1e-6);
    }

    #[test]
    fn a_command_that_finds_tokens_does_not_wait() {
        let mut bucket = Bucket::new(&BRONZE);
        for second in 1..100 {
            let at = Time(second * 500 * MILLISECOND);
            assert_eq!(bucket.grant(at, 4096), at);
        }
    }

    #[test]
    fn extremes_neither_overflow_nor_hang() {
        for (max, burst, burst_secs) in
            [(0, 0, 0), (1, u32::MAX, u32::MAX), (u32::MAX, 1, 1), (1, 1, u32::MAX)]
        {
            let mut bucket = Bucket::new(&Qos { min: max, max, burst, burst_secs, ..BRONZE });
            for at in [0, 1 << 40, 1 << 62, u64::MAX] {
                assert!(bucket.grant(Time(at), u32::MAX) >= Time(at));
            }
        }
    }
}
