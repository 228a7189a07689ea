//! What all volumes with a policy get together where the array can do only so much: SolidFire's `min`
//! (reference `array-and-control.md`, sections 6.1 and 6.4).
//!
//! ```text
//!   level     0 ------------- 1 ------------- 2 ------------- 3
//!   a volume  0 ............. min ........... max ........... burst, while it has credit
//!             each by its min   all together    all together
//! ```
//!
//! Each second all volumes are at one level: the highest at which what they ask for, each up to its rate
//! there, is within the capacity. So none is below its min before all are, and there is no burst before
//! each has its max. What a volume asks for is what came in the second before, or without an end where its
//! tokens were hardly ever idle then. Where more wakes up than that second foretold, what all have got of a second
//! reaches the capacity before its end: the rest of it is for those who are below their min (ruling).

use alloc::vec::Vec;

use counters::{SECOND, Time};

use crate::{
    config::Capacity,
    qos::{Bucket, STEPS},
};

/// An array that can do only so much.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// Cost units a second: of all, and up to which there are bursts.
    all: u64,
    bursts: u64,
    /// The second that is shared out, and what was granted of it, in hundredths of a unit.
    second: u64,
    used: u64,
}

impl Cluster {
    pub(crate) fn new(config: &Capacity) -> Self {
        let bursts = f64::from(config.units) * config.burst_share.clamp(0.0, 1.0);
        Self { all: u64::from(config.units), bursts: bursts as u64, second: 0, used: 0 }
    }

    /// Whether what arrives then arrives after the second that is shared out.
    #[inline]
    pub(crate) const fn is_over(&self, arrive: Time) -> bool {
        arrive.0 / SECOND > self.second
    }

    /// A command of a volume, which arrives in the second that is shared out, got its tokens then.
    pub(crate) fn count(&mut self, granted: Time, bytes: u32, bucket: &mut Bucket) {
        if granted.0 / SECOND == self.second {
            self.used = self.used.saturating_add(bucket.cost_of(bytes));
            if self.used >= 100 * self.all {
                bucket.hold(self.second);
            }
        }
    }

    /// Shares out the second in which that is among all volumes with a policy.
    #[cold]
    pub(crate) fn share(&mut self, arrive: Time, buckets: &mut [&mut Bucket]) {
        (self.second, self.used) = (arrive.0 / SECOND, 0);
        let asked = buckets.iter_mut().map(|bucket| bucket.ask(Time(self.second * SECOND)));
        let asked: Vec<_> = asked.map(|asked| asked.unwrap_or(u64::MAX)).collect();
        let is_within = |level: u64| {
            let got =
                buckets.iter().zip(&asked).map(|(bucket, asked)| bucket.rate_at(level).min(*asked));
            got.sum::<u64>() <= if level > 2 * STEPS { self.bursts } else { self.all }
        };
        let (mut within, mut beyond) = (0, 3 * STEPS + 1);
        while beyond - within > 1 {
            let middle = u64::midpoint(within, beyond);
            *(if is_within(middle) { &mut within } else { &mut beyond }) = middle;
        }
        buckets.iter_mut().for_each(|bucket| bucket.set_level(within));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Cost, Qos};
    use alloc::vec;

    /// `min`, `max` and `burst` of volumes, what they ask for (no end where it is 0), and what each gets of a
    /// capacity of 10,000 of which a half is for bursts.
    #[test]
    fn volumes_rise_and_fall_together() {
        let (small, large) = ((1_000, 2_000, 4_000), (3_000, 8_000, 16_000));
        for (volumes, asked, expected) in [
            // All get their max and no more: 5,000 is the most at which anybody bursts.
            (vec![small, small, small], [0, 0, 0], vec![2_000, 2_000, 2_000]),
            // Beside 2,000 there are 3,000 for bursts.
            (vec![small, small], [0, 500, 0], vec![4_000, 4_000]),
            (vec![small, small], [0, 0, 0], vec![2_500, 2_500]),
            // 10,000 of 12,000 above their mins of 5,000: 5 of 7 of the way.
            (vec![small, small, large], [0, 0, 0], vec![1_714, 1_714, 6_571]),
            // What the second does not want is for the others.
            (vec![small, small, large], [0, 1_000, 0], vec![1_833, 1_833, 7_167]),
            // 14,000 are their mins: each gets 10 of 14.
            (
                vec![(2_000, 2_000, 2_000), large, (9_000, 9_000, 9_000)],
                [0, 0, 0],
                vec![1_428, 2_142, 6_428],
            ),
        ] {
            let qos = |&(min, max, burst): &(u32, u32, u32)| Qos {
                min,
                max,
                burst,
                burst_secs: 60,
                cost: Cost::Flat,
                bytes_per_sec: None,
            };
            let mut buckets: Vec<_> =
                volumes.iter().map(|volume| Bucket::new(&qos(volume))).collect();
            let mut cluster = Cluster::new(&Capacity { units: 10_000, burst_share: 0.5 });
            for (bucket, asked) in buckets.iter_mut().zip(asked) {
                // So many in the first second, or many more.
                let count = if asked == 0 { 40_000 } else { asked };
                (0..count).for_each(|_| _ = bucket.grant(Time::ZERO, 4096));
            }
            cluster.share(Time(SECOND), &mut buckets.iter_mut().collect::<Vec<_>>());
            let rates: Vec<_> = buckets.iter().map(Bucket::rate).collect();
            let alike = |(rate, expected): (&u64, &u64)| rate.abs_diff(*expected) <= 1;
            assert!(rates.iter().zip(&expected).all(alike), "{rates:?} for {expected:?}");
        }
    }

    /// Two volumes of 3,000 a second wake up with 32 I/Os each under way, on an array that does 500: no more in that second,
    /// but for an I/O of each. One that comes later has its min all the same.
    #[test]
    fn what_wakes_up_gets_no_more_than_there_is() {
        let qos = |min| Qos {
            min,
            max: 3_000,
            burst: 3_000,
            burst_secs: 60,
            cost: Cost::Flat,
            bytes_per_sec: None,
        };
        let mut buckets = [qos(100), qos(100), qos(200)].map(|qos| Bucket::new(&qos));
        let mut cluster = Cluster::new(&Capacity { units: 500, burst_share: 1.0 });
        let mut got = [[0; 3]; 3];
        // Who issues next, and when: the last comes in the middle of a second.
        let at = |place| if place == 2 { SECOND / 2 } else { 0 };
        let mut due: Vec<_> = (0..3).flat_map(|place| vec![(at(place), place); 32]).collect();
        loop {
            due.sort_unstable();
            let (now, place) = due.remove(0);
            if now >= 3 * SECOND {
                break;
            }
            if cluster.is_over(Time(now)) {
                cluster.share(Time(now), &mut buckets.iter_mut().collect::<Vec<_>>());
            }
            let granted = buckets[place].grant(Time(now), 4096);
            cluster.count(granted, 4096, &mut buckets[place]);
            if let Some(second) = got.get_mut((granted.0 / SECOND) as usize) {
                second[place] += 1;
            }
            due.push((granted.0 + 100_000, place));
        }
        assert!(got[0][0] + got[0][1] <= 503 && (190..=203).contains(&got[0][2]), "{got:?}");
        // What was under way when they were held comes on top of the next second.
        let [next, last] = [1, 2].map(|second: usize| got[second].iter().sum::<u32>());
        assert!(next <= 500 + 3 * 32 && last <= 503, "{got:?}");
    }
}
