//! The standard normal distribution, of which lognormal times are made.

use core::f64::consts::SQRT_2;

/// The probability that a standard normal variable exceeds `z`.
pub(crate) fn normal_tail(z: f64) -> f64 {
    libm::erfc(z / SQRT_2) / 2.0
}

/// What a standard normal variable exceeds with this probability, by bisection.
pub(crate) fn normal_exceeded_with(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..52 {
        let middle = (low + high) / 2.0;
        if normal_tail(middle) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
