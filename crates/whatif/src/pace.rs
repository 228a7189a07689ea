//! What the pace of an IOPS limit alone costs a guest that asks for about as much as it lets through.
//!
//! A limit lets a command go no sooner than its pace after the one before. Threads that come back by
//! chance come sometimes several at once and sometimes none, and what is not used while none is there is
//! lost: close to its limit a guest does less than both the limit and what it did. Here `threads` come
//! back after a time that is exponential, as where chance alone makes it; where it is always the same
//! nothing is lost.
//!
//! ```text
//!   waiting k, as the pace lets one go: k - 1 stay, and of the others some are back before the next
//!   waiting 0: the first that is back goes at once
//! ```

/// The least of some threads, in commands a second, that do `iops` without a limit, behind one that lets
/// `limit` through.
pub(crate) fn least(threads: f64, iops: f64, limit: f64) -> f64 {
    /// Threads beyond which more make no difference that counts, at as many commands a second.
    const MANY: f64 = 512.0;
    /// What asks for so many times the limit always has a thread that waits.
    const FULL: f64 = 8.0;
    if iops <= 0.0 || iops >= FULL * limit {
        return limit.min(iops).max(0.0);
    }
    let threads = threads.floor().clamp(1.0, MANY);
    // What a thread takes to come back, in steps of the pace.
    let away = threads * limit / iops;
    let idle = idle(threads as usize, -(-1.0 / away).exp_m1());
    (limit / (1.0 + idle * away / threads)).min(iops)
}

/// How often nobody waits as the pace would let one go, where a thread comes back within a step with the
/// chance `back`: what rises past a number of waiting threads is what falls past it, one at a time.
fn idle(threads: usize, back: f64) -> f64 {
    /// Beyond it those that nobody waits are none.
    const HUGE: f64 = 1e200;
    let mut beyond: Vec<Vec<f64>> = Vec::new();
    let mut weights = vec![1.0_f64];
    for at in 0..threads {
        beyond.push(tails(threads + 1 - at.max(1), back));
        let rises = |(from, weight): (usize, &f64)| {
            let stay = from.saturating_sub(1);
            weight * beyond[from].get(at - stay).copied().unwrap_or_default()
        };
        let rising: f64 = weights.iter().enumerate().map(rises).sum();
        let falls = (1.0 - back).powi((threads - at) as i32);
        weights.push(rising / falls.max(f64::MIN_POSITIVE));
        if weights[at + 1] > HUGE {
            return 0.0;
        }
    }
    1.0 / weights.iter().sum::<f64>()
}

/// The chance that of so many threads more than 0, 1, 2, ... are back.
fn tails(threads: usize, back: f64) -> Vec<f64> {
    let mut just = (1.0 - back).powi(threads as i32);
    let mut none = 1.0 - just;
    let mut tails = Vec::with_capacity(threads);
    for count in 0..threads {
        tails.push(none.max(0.0));
        just *= (threads - count) as f64 / (count + 1) as f64 * back / (1.0 - back);
        none -= just;
    }
    tails
}

#[cfg(test)]
mod tests {
    use super::least;

    #[test]
    fn a_pace_costs_most_where_it_is_the_rate() {
        // Threads, what they do, the limit, and what 200,000 steps that were drawn came to.
        for (threads, iops, limit, drawn) in [
            (1.0, 100.0, 100.0, 73.0),
            (3.0, 177.0, 194.0, 146.6),
            (12.0, 600.0, 603.0, 525.0),
            (12.0, 600.0, 420.0, 414.5),
            (12.0, 600.0, 900.0, 575.9),
            (64.0, 600.0, 603.0, 562.3),
            (254.0, 600.0, 700.0, 593.5),
        ] {
            let least = least(threads, iops, limit);
            assert!((least / drawn - 1.0).abs() < 0.01, "{threads} {limit}: {least}, {drawn}");
        }
        assert!(least(12.0, 600.0, 20_000.0) > 0.998 * 600.0);
        assert!(least(200.0, 1e6, 10.0) > 9.999);
    }
}
