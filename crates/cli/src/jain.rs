//! How fair a resource is shared.

/// How fair a resource is shared: 1 where all have the same, 1/n where one of n has all [JAIN].
/// `None` where nobody has anything.
pub(crate) fn jain(all: &[f64]) -> Option<f64> {
    let sum: f64 = all.iter().sum();
    let squares: f64 = all.iter().map(|one| one * one).sum();
    (squares > 0.0).then(|| sum * sum / (all.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// k of n that share alike while the others have nothing are k/n [JAIN].
    #[test]
    fn the_index_is_that_of_jain() {
        assert_eq!(jain(&[3.0; 5]), Some(1.0));
        assert_eq!(jain(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[2.0, 2.0, 0.0, 0.0]), Some(0.5));
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!((jain(&[0.0, 0.0]), jain(&[])), (None, None));
    }
}
