//! A figure over several seeds: its mean, and how far chance may have moved it. Runs under several seeds
//! and sweeps show it.

use serde_json::{Value, json};

/// A figure over several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The mean.
    pub(crate) mean: f64,
    /// Half of the 95 % confidence interval of the mean; one seed has none.
    pub(crate) half: Option<f64>,
}

impl Spread {
    /// `None` where a seed does not have the figure.
    pub(crate) fn of(figures: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let all: Vec<f64> = figures.collect::<Option<_>>()?;
        let count = all.len() as f64;
        // From the first on, so that the mean of equal figures is that figure, to the last bit.
        let first = *all.first()?;
        let mean = first + all.iter().map(|figure| figure - first).sum::<f64>() / count;
        let squares: f64 = all.iter().map(|figure| (figure - mean).powi(2)).sum();
        let freedom = all.len().checked_sub(1).filter(|freedom| *freedom > 0);
        let half = freedom
            .map(|freedom| student_95(freedom) * (squares / freedom as f64).sqrt() / count.sqrt());
        Some(Self { mean, half })
    }

    /// As every JSON writes it; null where there is none.
    pub(crate) fn json(spread: Option<Self>) -> Value {
        spread.map_or(Value::Null, |one| json!({ "mean": one.mean, "ci95": one.half }))
    }

    /// As every table writes it; `-` where there is none.
    pub(crate) fn text(spread: Option<Self>, print: fn(f64) -> String) -> String {
        match spread {
            Some(Self { mean, half: Some(half) }) => format!("{} ± {}", print(mean), print(half)),
            Some(Self { mean, half: None }) => print(mean),
            None => "-".into(),
        }
    }
}

/// Student's t, two-sided 95 %: from the table up to 10 degrees of freedom, and from its expansion
/// around the normal distribution above (Abramowitz and Stegun, 26.7.5), which is right to 0.0001
/// there.
fn student_95(freedom: usize) -> f64 {
    const TABLE: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    let part = 1.0 / freedom as f64;
    let expansion = 1.959_96 + part * (2.372_3 + part * (2.822_5 + part * 2.555_9));
    TABLE.get(freedom - 1).copied().unwrap_or(expansion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_students_t() {
        let figures = |all: &[f64]| Spread::of(all.iter().copied().map(Some));
        let spread = figures(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        // The standard deviation is 1.291, that of the mean 0.6455, and t with 3 is 3.182.
        assert_eq!(spread.mean, 2.5);
        assert!((spread.half.unwrap() - 2.054).abs() < 0.001);
        assert_eq!(figures(&[7.0]), Some(Spread { mean: 7.0, half: None }));
        assert_eq!(figures(&[0.8; 20]), Some(Spread { mean: 0.8, half: Some(0.0) }));
        assert_eq!(Spread::of([Some(1.0), None].into_iter()), None);
        for (freedom, t) in [(1, 12.706), (10, 2.228), (11, 2.201), (19, 2.093), (100, 1.984)] {
            assert!((student_95(freedom) - t).abs() < 0.0006, "{freedom}");
        }
    }
}
