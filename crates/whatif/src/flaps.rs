//! Where DQLEN moves to and fro by itself: about one command in 128 is another VM's, and it falls to DSNRO and rises
//! again many times between two samples (reference `esxi-host-stack.md`, section 2.3).

use crate::rows::Row;

/// The least DQLEN, `depth`, of `busy` samples of a device, where it moves more often than somebody sets it, or comes
/// back after one sample, though each of those who send, `tenants`, sends about as much as before.
pub(crate) fn least<'r, 'a: 'r>(
    busy: &[usize],
    depth: impl Fn(usize) -> Option<f64>,
    tenants: impl Iterator<Item = &'r Row<'a>> + Clone,
) -> Option<f64> {
    /// A depth that is tried and taken back moves so often.
    const SET: usize = 2;
    /// What a VM sends under two depths differs by this factor at most.
    const ALIKE: f64 = 2.0;
    let is_alike = |a: usize, b: usize| {
        let mut rates = tenants.clone().map(|row| row.rate(a).zip(row.rate(b)));
        rates.all(|both| both.is_none_or(|(a, b)| a.max(b) <= ALIKE * a.min(b)))
    };
    let moves = |a: usize, b: usize| {
        let is_other = depth(a).zip(depth(b)).is_some_and(|(a, b)| a != b);
        a + 1 == b && is_other && is_alike(a, b)
    };
    let steps = busy.windows(2).filter(|pair| moves(pair[0], pair[1])).count();
    let is_back = |of: &[usize]| depth(of[0]) == depth(of[2]);
    let is_visit = |of: &[usize]| moves(of[0], of[1]) && moves(of[1], of[2]) && is_back(of);
    let flaps = steps > SET || busy.windows(3).any(is_visit);
    busy.iter().filter_map(|&s| depth(s)).reduce(f64::min).filter(|_| flaps)
}

/// What that leaves unknown, in a sentence.
pub(crate) fn doubt(device: &str) -> String {
    format!(
        "DQLEN of {device} moves to and fro though its VMs send as before: about one command in 128 is another VM's, and \
         the queue has DSNRO and the whole depth in turn. No row is at one of them, so none is taken for what a depth \
         gives. A recording in which one of the VMs rests, or sends more, would tell."
    )
}

/// Why nothing is said of a depth that is no deeper, or of one that no model notices.
pub(crate) fn refusal(device: &str) -> String {
    format!(
        "DQLEN of {device} moves to and fro by itself, and no model here follows what another depth than a deeper \
         one does then, or a guest that may send more, so there is no prediction."
    )
}
