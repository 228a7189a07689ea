//! A spell: the samples in which a condition holds, when they are more than a blip.

use super::series::mean;

/// The samples in which something holds.
#[derive(Clone, Debug)]
pub(crate) struct Spell {
    pub(crate) samples: Vec<usize>,
    /// How many samples were judged.
    pub(crate) of: usize,
}

impl Spell {
    /// The samples of `among` in which `holds`; `None` unless it holds in two of them in a row, or
    /// there is only one to judge.
    pub(crate) fn find(among: &[usize], holds: impl Fn(usize) -> bool) -> Option<Self> {
        let held: Vec<bool> = among.iter().map(|&sample| holds(sample)).collect();
        let lasting = held.windows(2).any(|pair| pair == [true, true]) || held == [true];
        let samples = among.iter().zip(&held).filter(|(_, held)| **held).map(|(s, _)| *s);
        lasting.then(|| Self { samples: samples.collect(), of: among.len() })
    }

    /// The samples of `among` in which `holds`, be it one alone; `None` when it never does.
    pub(crate) fn any(among: &[usize], holds: impl Fn(usize) -> bool) -> Option<Self> {
        let samples: Vec<_> = among.iter().copied().filter(|&sample| holds(sample)).collect();
        (!samples.is_empty()).then_some(Self { samples, of: among.len() })
    }

    /// The mean over the spell.
    pub(crate) fn mean(&self, value: impl Fn(usize) -> f64) -> f64 {
        mean(self.samples.iter().map(|&sample| value(sample)))
    }

    /// The share of its samples in which something else holds too.
    pub(crate) fn share(&self, holds: impl Fn(usize) -> bool) -> f64 {
        self.mean(|sample| f64::from(u8::from(holds(sample))))
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
    fn two_in_a_row_or_the_only_one_are() {
        let spell = Spell::find(&[1, 4, 5, 9], |sample| sample != 9).unwrap();
        assert_eq!((spell.samples.as_slice(), spell.of), ([1, 4, 5].as_slice(), 4));
        assert!(Spell::find(&[3], |_| true).is_some());
    }
}
