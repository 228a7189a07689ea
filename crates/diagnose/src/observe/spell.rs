//! A spell: the samples in which a condition holds, when they are more than a blip.
//!
//! One bad sample says nothing, and neither do two in a row that chance puts side by side among
//! thousands: latencies have long tails, and a long recording has room for every coincidence.

use super::mean;

/// The samples in which something holds.
#[derive(Clone, Debug)]
pub(crate) struct Spell {
    pub(crate) samples: Vec<usize>,
    /// How many samples were judged.
    pub(crate) of: usize,
}

/// Share of the samples from which a condition needs no further proof that it is none of chance.
const OFTEN: f64 = 0.1;
/// Runs as long as the longest one that chance may be expected to make: one recording in a hundred.
const CHANCE: f64 = 0.01;

impl Spell {
    /// The samples of `among` in which `holds`; `None` unless it holds in two of them in a row,
    /// more than chance makes of scattered ones, or there is only one to judge. One that does not
    /// tell is not judged, and ends a row: it may be the one in which it did not hold.
    pub(crate) fn find<B: Into<Option<bool>>>(
        among: &[usize],
        holds: impl Fn(usize) -> B,
    ) -> Option<Self> {
        let held: Vec<Option<bool>> = among.iter().map(|&sample| holds(sample).into()).collect();
        let samples = among.iter().zip(&held).filter(|(_, held)| **held == Some(true));
        let of = held.iter().flatten().count();
        is_lasting(&held).then(|| Self { samples: samples.map(|(s, _)| *s).collect(), of })
    }

    /// The samples of `among` in which `holds`, be it one alone; `None` when it never does.
    pub(crate) fn any(among: &[usize], holds: impl Fn(usize) -> bool) -> Option<Self> {
        let samples: Vec<_> = among.iter().copied().filter(|&sample| holds(sample)).collect();
        (!samples.is_empty()).then_some(Self { samples, of: among.len() })
    }

    /// The mean over those of its samples that have the value.
    pub(crate) fn mean<V: Into<Option<f64>>>(&self, value: impl Fn(usize) -> V) -> Option<f64> {
        mean(self.samples.iter().map(|&sample| value(sample)))
    }

    /// The share of its samples in which something else holds too, of those that tell.
    pub(crate) fn share<B: Into<Option<bool>>>(&self, holds: impl Fn(usize) -> B) -> f64 {
        let told = || self.samples.iter().filter_map(|&sample| holds(sample).into());
        told().filter(|holds| *holds).count() as f64 / told().count().max(1) as f64
    }

    /// What few samples are worth: a factor for a confidence.
    pub(crate) fn weight(&self) -> f64 {
        match self.samples.len() {
            0..=1 => 0.7,
            2 => 0.85,
            _ => 1.0,
        }
    }
}

/// Whether what holds in some samples lasts: in one run, often, or for longer than chance makes. Of
/// `n` samples each held with the chance `p`, about `n * p^k` begin a run of `k`.
fn is_lasting(held: &[Option<bool>]) -> bool {
    let runs = held.split(|held| *held != Some(true)).map(<[_]>::len);
    let longest = runs.max().unwrap_or(0);
    let told = || held.iter().flatten();
    let (n, held_in) = (told().count() as f64, told().filter(|held| **held).count() as f64);
    let by_chance = n * (held_in / n).powi(i32::try_from(longest).unwrap_or(i32::MAX));
    let is_one_run = longest as f64 == held_in;
    held == [Some(true)]
        || longest >= 2 && (held_in >= OFTEN * n || is_one_run || by_chance <= CHANCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blip_is_no_spell() {
        assert!(Spell::find(&[0, 1, 2, 3], |sample| sample % 2 == 0).is_none());
        assert!(Spell::find(&[], |_| true).is_none());
        assert!(Spell::find(&[0, 1], |sample| sample == 1).is_none());
    }

    #[test]
    fn what_does_not_tell_ends_a_run() {
        let bad = |sample: usize| (sample != 6).then_some([5, 7].contains(&sample));
        assert!(Spell::find(&[4, 5, 6, 7, 8], bad).is_none());
        assert!(Spell::find(&[4, 5, 7, 8], bad).is_some());
        assert_eq!(Spell::find(&[4, 5, 6, 7, 8], |s| (s != 6).then_some(s < 8)).unwrap().of, 4);
    }

    #[test]
    fn what_chance_puts_side_by_side_is_none_either() {
        let among: Vec<usize> = (0..1_000).collect();
        let scattered = |sample: usize| sample.is_multiple_of(25) || sample == 501;
        assert!(Spell::find(&among, scattered).is_none());
        assert!(Spell::find(&among, |s| scattered(s) || (501..505).contains(&s)).is_some());
        assert!(Spell::find(&among, |sample| (500..502).contains(&sample)).is_some());
    }

    #[test]
    fn a_single_run_of_two_is_one_in_a_recording_of_any_length() {
        for samples in [12, 40, 100, 300] {
            let among: Vec<usize> = (0..samples).collect();
            assert!(Spell::find(&among, |sample| (5..7).contains(&sample)).is_some(), "{samples}");
        }
    }

    #[test]
    fn two_in_a_row_or_the_only_one_are() {
        let spell = Spell::find(&[1, 4, 5, 9], |sample| sample != 9).unwrap();
        assert_eq!((spell.samples.as_slice(), spell.of), ([1, 4, 5].as_slice(), 4));
        assert!(Spell::find(&[3], |_| true).is_some());
    }
}
