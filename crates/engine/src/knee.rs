//! A depth found by latency: kavg's own law, which no ESXi has.
//!
//! A device works on so many commands at a time; more of them only wait inside of it, where no share
//! counts. Where that begins nobody says, so it is measured:
//!
//! ```text
//!   probe:  one command at a time, for a while                -> base, the time of a command alone
//!   round:  what comes back for a while                       -> L, the time of a command now
//!           depth <- (1 - G) * depth + G * depth * (2 * base / L),    G = 1/2
//!           up where others waited for a slot, and down from what was out
//! ```
//!
//! That is PARDA's law with a threshold that was found and no constant part [PARDA, equation 2]: it
//! ends where a command takes twice what it takes alone. That is the knee: of N equal servers
//! throughput over latency is greatest with N - 1 commands outstanding, and there they take twice the
//! time of one (from X and R of section 1 of `array-and-control.md`). Measuring the time of a command
//! alone by letting hardly any out, now and then, is Envoy's gradient controller [ENVOY] and BBR's
//! way [BBR].

use counters::{MILLISECOND, SECOND, Time};

use crate::codec::records;

/// Times of a command alone that it may take: power is greatest there.
const TIMES_ALONE: u64 = 2;
/// How long a round is at least: the window of `io.latency` (section 5.3).
const ROUND_NS: u64 = 100 * MILLISECOND;
/// The commands of a round at least: their mean is known to a fifth where they spread as far as
/// exponential times do.
const ROUND_IOS: u64 = 32;
/// The commands of a probe, the least that are worth a mean, and how long it waits for them: a device
/// that does not answer is not held to one command for longer.
const PROBE_IOS: u64 = 64;
const PROBE_IOS_MIN: u64 = 16;
const PROBE_NS: u64 = SECOND;
/// After a probe as many times its length, and a second at least, go by until the next: it costs a
/// fiftieth of the throughput at most.
const PROBE_REST: u64 = 50;
/// Fractions of a slot in the depth that is worked out.
const FINE: u64 = 256;
/// The depth in force follows that one when it is further off than so many of them: it does not go to
/// and fro between two.
const FINE_BAND: u64 = FINE * 3 / 4;
/// What it begins with: two commands never take more than twice as long as one where two are served
/// at least as fast.
const DEPTH_FIRST: u64 = 2 * FINE;

/// The state of one device.
#[derive(Clone, Debug)]
pub(crate) struct Knee {
    /// The mean time of a command alone; 0 before it was measured.
    base_ns: u64,
    /// The depth as it was worked out, in `FINE`s; 0 before it was.
    fine: u64,
    /// The depth in force.
    depth: u32,
    is_probing: bool,
    /// What was sent after that counts.
    since: Time,
    /// What has come back of it, how long that took, the most that was out meanwhile, and whether
    /// anybody had to wait for that.
    ios: u64,
    sum_ns: u64,
    out: u32,
    is_limited: bool,
    next_probe: Time,
    /// When a probe that has begun ends at the latest, until somebody has set a timer for it.
    alarm: Option<Time>,
}

impl Default for Knee {
    fn default() -> Self {
        Self {
            base_ns: 0,
            fine: 0,
            depth: u32::MAX,
            is_probing: false,
            since: Time::ZERO,
            ios: 0,
            sum_ns: 0,
            out: 0,
            is_limited: false,
            next_probe: Time::ZERO,
            alarm: None,
        }
    }
}

impl Knee {
    /// Whether it could have become so: what it works with is far from the ends of its numbers.
    pub(crate) fn is_sound(&self) -> bool {
        const NANOS_MAX: u64 = 1 << 56;
        let is_deep = self.fine == 0 || (FINE..=u64::from(u32::MAX) * FINE).contains(&self.fine);
        self.depth > 0 && is_deep && self.base_ns.max(self.sum_ns).max(self.ios) < NANOS_MAX
    }

    /// The limit that it puts on a device whose depth would be `most`.
    pub(crate) fn limit(&self, most: u32) -> u32 {
        self.depth.min(most)
    }

    /// Commands that may be out: one while it probes.
    pub(crate) const fn hold(&self) -> u32 {
        if self.is_probing { 1 } else { u32::MAX }
    }

    /// When a probe that has begun ends at the latest; told once.
    pub(crate) const fn take_alarm(&mut self) -> Option<Time> {
        self.alarm.take()
    }

    /// Counts a command that was `sent` and has come back well, as one of so many that were `out`.
    /// `is_limited` says whether that were all that might be and others waited; without it the depth
    /// would be `most`. `true` when a limit changed.
    pub(crate) fn count(
        &mut self,
        (sent, now): (Time, Time),
        (out, is_limited): (u32, bool),
        most: u32,
    ) -> bool {
        if sent <= self.since {
            return false;
        }
        self.ios += 1;
        self.sum_ns = self.sum_ns.saturating_add(now - sent);
        self.out = self.out.max(out);
        self.is_limited |= is_limited;
        if self.is_probing {
            let is_over = self.ios >= PROBE_IOS;
            if is_over {
                self.end_probe(now);
            }
            return is_over;
        }
        let is_over = self.ios >= ROUND_IOS && now - self.since >= ROUND_NS;
        (is_over || self.base_ns == 0) && self.end_round(now, most)
    }

    /// The time of a probe is over. `true` when a limit changed; the one of another probe changes
    /// nothing.
    pub(crate) fn expire(&mut self, at: Time, now: Time) -> bool {
        let is_over = self.is_probing && self.since + PROBE_NS == at;
        if is_over {
            self.end_probe(now);
        }
        is_over
    }

    fn end_round(&mut self, now: Time, most: u32) -> bool {
        let before = self.depth;
        if self.base_ns > 0 {
            self.follow(self.sum_ns / self.ios, most);
        }
        let probes = now >= self.next_probe && self.out > 1;
        if probes {
            self.is_probing = true;
            self.alarm = Some(now + PROBE_NS);
        }
        self.begin(now);
        probes || self.depth != before
    }

    /// A step towards the depth at which a command takes twice what it takes alone. A depth that nobody
    /// reached says nothing of a deeper one.
    fn follow(&mut self, latency_ns: u64, most: u32) {
        let wanted = self.base_ns.saturating_mul(TIMES_ALONE * FINE) / latency_ns.max(1);
        let step = wanted.clamp(FINE / 2, FINE * 2);
        if step > FINE && !self.is_limited {
            return;
        }
        let from = self.fine.min((u64::from(self.out) + 1) * FINE);
        self.fine = (from * (FINE + step) / (2 * FINE)).clamp(FINE, u64::from(most) * FINE);
        if self.fine.abs_diff(u64::from(self.depth) * FINE) > FINE_BAND {
            self.depth = ((self.fine + FINE / 2) / FINE) as u32;
        }
    }

    fn end_probe(&mut self, now: Time) {
        if self.ios >= PROBE_IOS_MIN {
            self.learn(self.sum_ns / self.ios);
        }
        self.next_probe = now + (now - self.since).saturating_mul(PROBE_REST).max(SECOND);
        self.is_probing = false;
        self.alarm = None;
        // What is sent into a device that is nearly empty is no sign of how it is when it is not.
        self.begin(now + self.base_ns);
    }

    /// Probes are averaged, but for one that says that the device has become another.
    fn learn(&mut self, alone_ns: u64) {
        let is_another = alone_ns / 2 > self.base_ns || alone_ns < self.base_ns / 2;
        self.base_ns =
            if is_another { alone_ns } else { self.base_ns / 4 * 3 + alone_ns / 4 }.max(1);
        if self.fine == 0 {
            self.fine = DEPTH_FIRST;
            self.depth = (DEPTH_FIRST / FINE) as u32;
        }
    }

    const fn begin(&mut self, since: Time) {
        (self.since, self.ios, self.sum_ns) = (since, 0, 0);
        (self.out, self.is_limited) = (0, false);
    }
}

records! {
    Knee { base_ns, fine, depth, is_probing, since, ios, sum_ns, out, is_limited, next_probe, alarm }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device with a steady number of commands that are out or wait, at a moment.
    struct Loaded {
        knee: Knee,
        demand: u32,
        most: u32,
        now: Time,
    }

    impl Loaded {
        fn new(demand: u32, most: u32) -> Self {
            Self { knee: Knee::default(), demand, most, now: Time(SECOND) }
        }

        /// Goes on for so long; a command takes what `latency_ns` says of as many.
        fn run(&mut self, nanos: u64, latency_ns: impl Fn(u64) -> u64) {
            let end = self.now + nanos;
            while self.now < end {
                let n = self.depth().min(self.knee.hold()).min(self.demand);
                let latency = latency_ns(n.into());
                self.now = self.now + (latency / u64::from(n)).max(1);
                let sent = Time(self.now.0.saturating_sub(latency));
                self.knee.count((sent, self.now), (n, n < self.demand), self.most);
            }
        }

        fn depth(&self) -> u32 {
            self.knee.limit(self.most)
        }
    }

    /// R(n) of N equal servers, in microseconds of one command.
    fn servers(count: u64, alone_ns: u64) -> impl Fn(u64) -> u64 {
        move |n| alone_ns + alone_ns * (n - 1) / count
    }

    #[test]
    fn it_ends_where_a_command_takes_twice_what_it_takes_alone() {
        for (count, alone_ns, most, depth) in [
            (1, 80_000, 256, 2),
            (6, 80_000, 256, 7),
            (10, 5_600_000, 256, 11),
            (83, 360_000, 256, 84),
            (83, 360_000, 64, 64),
            (1000, 360_000, 256, 256),
        ] {
            let mut loaded = Loaded::new(most + 1, most);
            loaded.run(20 * SECOND, servers(count, alone_ns));
            assert!(loaded.depth().abs_diff(depth) <= 1, "{count}: {}", loaded.depth());
        }
    }

    #[test]
    fn it_follows_a_device_that_becomes_another_within_three_seconds() {
        let mut loaded = Loaded::new(257, 256);
        loaded.run(10 * SECOND, servers(6, 80_000));
        for (count, alone_ns, depth) in [(6, 320_000, 7), (24, 320_000, 25), (6, 80_000, 7)] {
            loaded.run(3 * SECOND, servers(count, alone_ns));
            assert!(loaded.depth().abs_diff(depth) <= 1, "{count}: {}", loaded.depth());
        }
    }

    #[test]
    fn a_device_that_becomes_slow_is_cut_from_what_is_out_and_not_from_its_depth() {
        let mut loaded = Loaded::new(257, 256);
        loaded.run(10 * SECOND, servers(1000, 80_000));
        assert_eq!(loaded.depth(), 256);
        loaded.demand = 129;
        loaded.run(2 * SECOND, servers(6, 80_000));
        assert!(loaded.depth().abs_diff(7) <= 1, "{}", loaded.depth());
    }

    #[test]
    fn one_command_at_a_time_says_nothing() {
        let mut loaded = Loaded::new(1, 32);
        loaded.run(10 * SECOND, servers(6, 80_000));
        assert_eq!((loaded.depth(), loaded.knee.hold()), (32, u32::MAX));
    }

    #[test]
    fn a_device_that_does_not_answer_is_not_held_to_one_command_for_longer_than_a_probe() {
        let mut knee = Knee::default();
        let begun = Time(SECOND);
        assert!(knee.count((Time(1), begun), (2, false), 32));
        let alarm = knee.take_alarm().expect("a probe has begun");
        assert_eq!((knee.hold(), alarm, knee.take_alarm()), (1, begun + PROBE_NS, None));
        assert!(!knee.expire(Time(alarm.0 - 1), alarm));
        assert!(knee.expire(alarm, alarm));
        assert_eq!((knee.hold(), knee.limit(32)), (u32::MAX, 32));
        assert!(!knee.expire(alarm, alarm));
        let rests = alarm + PROBE_NS * PROBE_REST;
        assert!(!knee.count((alarm + 1, Time(rests.0 - 1)), (2, false), 32));
        assert!(knee.count((rests, rests + 1), (2, false), 32));
    }
}
