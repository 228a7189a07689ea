//! Whether two figures differ by more than the noise of their samples.
//!
//! A figure is a ratio of two sums over the samples: a latency is time over commands, a rate is
//! commands over time. Samples that follow each other are alike, so they are put into batches,
//! and the spread of the batches around the figure gives its variance (batch means, the ratio
//! linearised). Two figures differ beyond the noise when they are further apart than Student's t
//! allows for their variances together (Welch) in 99 of 100 pairs without a difference: a
//! comparison shows hundreds of numbers, and 95 would make some of them shine by chance.

/// What a sample adds to a figure: the value, and its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) value: f64,
    pub(super) weight: f64,
}

/// How a figure is judged, in a few words for readers.
pub(super) const METHOD: &str = "A change is beyond the noise when the means of up to 10 batches \
    of samples a side tell it from chance at 99 % (Welch's t), and from esxtop's two decimals. \
    ACTV, QUED, %USD and LOAD are means by Little's law, percentiles those of the samples.";

/// Batches that the samples of one side are put into.
const BATCHES: usize = 10;
/// Batches without which nothing is said.
const FEWEST: f64 = 4.0;

/// Student's t, two-sided 99 %, for 1 degree of freedom and more.
const T99: [f64; 18] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
    2.977, 2.947, 2.921, 2.898, 2.878,
];

/// The mean of the values by their weights; `None` without any weight.
pub(super) fn mean(terms: &[Term]) -> Option<f64> {
    levels::weighted_mean(terms.iter().map(|term| Some((term.value, term.weight))))
}

/// How far two figures are apart by chance at most; `None` when there are too few samples.
pub(super) fn noise(before: &[Term], after: &[Term]) -> Option<f64> {
    let (a, b) = (variance(before)?, variance(after)?);
    let sum = a.of_mean + b.of_mean;
    let parts = a.of_mean.powi(2) / a.freedom + b.of_mean.powi(2) / b.freedom;
    let freedom = if parts > 0.0 { sum.powi(2) / parts } else { a.freedom.min(b.freedom) };
    let place = (freedom as usize).clamp(1, T99.len()) - 1;
    Some(sum.sqrt() * T99.get(place)?)
}

fn sums(terms: &[Term]) -> (f64, f64) {
    let add = |(sum, all), term: &Term| (sum + term.value * term.weight, all + term.weight);
    terms.iter().fold((0.0, 0.0), add)
}

/// The variance of a figure and its degrees of freedom.
struct Variance {
    of_mean: f64,
    freedom: f64,
}

fn variance(terms: &[Term]) -> Option<Variance> {
    let mean = mean(terms)?;
    let batches = terms.chunks(terms.len().div_ceil(BATCHES)).map(sums);
    let batches: Vec<_> = batches.filter(|(_, weight)| *weight > 0.0).collect();
    let count = batches.len() as f64;
    let weight: f64 = batches.iter().map(|(_, weight)| weight).sum();
    let squares: f64 = batches.iter().map(|(_, weight)| weight * weight).sum();
    // Where one batch holds most of the commands, the others tell next to nothing of the spread.
    let effective = weight * weight / squares;
    if count < FEWEST || effective < FEWEST - 1.0 {
        return None;
    }
    let errors = batches.iter().map(|(sum, part)| ((sum - mean * part) * count / weight).powi(2));
    Some(Variance {
        of_mean: errors.sum::<f64>() / (count * (count - 1.0)),
        freedom: effective - 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples that remember the one before, as those of a real load do, from a fixed seed.
    fn samples(seed: u64, count: usize, memory: f64) -> Vec<Term> {
        let (mut state, mut last) = (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, 0.0);
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        let term = |_| {
            last = memory * last + random();
            Term { value: 10.0 + last, weight: 100.0 * (1.0 + random()) }
        };
        (0..count + 50).map(term).skip(50).collect()
    }

    /// The share of pairs that seem to differ when the second is higher by `shift`.
    fn differing(count: usize, memory: f64, shift: f64) -> f64 {
        const PAIRS: u64 = 2_000;
        let differs = |pair: &u64| {
            let before = samples(2 * pair + 1, count, memory);
            let mut after = samples(2 * pair + 2, count, memory);
            after.iter_mut().for_each(|term| term.value += shift);
            let change = mean(&after).unwrap() - mean(&before).unwrap();
            change.abs() > noise(&before, &after).unwrap()
        };
        (0..PAIRS).filter(differs).count() as f64 / PAIRS as f64
    }

    #[test]
    fn one_and_the_same_load_seldom_seems_to_differ() {
        for (count, memory) in [(6, 0.0), (12, 0.0), (30, 0.3), (120, 0.7), (720, 0.9)] {
            let wrong = differing(count, memory, 0.0);
            assert!(wrong <= 0.03, "{count} samples, memory {memory}: {wrong}");
        }
    }

    #[test]
    fn a_difference_is_found() {
        for (count, memory, shift) in [(6, 0.0, 2.0), (30, 0.3, 0.6), (720, 0.9, 0.8)] {
            let found = differing(count, memory, shift);
            assert!(found >= 0.95, "{count} samples, memory {memory}: {found}");
        }
    }

    #[test]
    fn few_samples_and_one_burst_say_nothing() {
        let term = |weight| Term { value: 1.0, weight };
        let steady = vec![term(1.0); 20];
        assert!(noise(&steady, &steady).is_some());
        for few in [vec![], vec![term(1.0); 3], vec![term(0.0); 20]] {
            assert_eq!(noise(&steady, &few), None);
        }
        let mut burst = vec![term(0.001); 20];
        burst[7] = term(1_000.0);
        assert_eq!(noise(&burst, &steady), None);
    }
}
