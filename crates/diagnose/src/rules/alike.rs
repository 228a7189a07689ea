//! Findings of one cause that one thing is to be done about: they are one, which names all its places.

use crate::{
    Finding, Party,
    changes::{shell, tell_of_one_driver},
};

/// Findings, those that `unites` puts to an earlier one in it: it tells so, and has what is to be done
/// about both in the earlier one then.
pub(super) fn united(
    all: impl IntoIterator<Item = Finding>,
    unites: impl Fn(&mut Finding, &Finding) -> bool,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for finding in all {
        match findings.iter_mut().find_map(|first| unites(first, &finding).then_some(first)) {
            Some(first) => add(first, finding),
            None => findings.push(finding),
        }
    }
    findings
}

/// Whether two findings hold at one time.
pub(super) fn are_of_one_time(one: &Finding, other: &Finding) -> bool {
    one.window.from_ms < other.window.to_ms && other.window.from_ms < one.window.to_ms
}

/// Tells of a finding that is about more than one place how many others there are, and which of them one
/// line deepens.
pub(super) fn tell_of_others(finding: &mut Finding, noun: &str) {
    let others = match finding.also.len() {
        0 => return,
        1 => format!("another {noun}"),
        more => format!("{more} other {noun}s"),
    };
    finding.sentence.push_str(&format!(" The same is true of {others}."));
    // A line that shows one shows all of them where it names none.
    let of_one = format!(" -d {}", shell(&finding.at.name));
    finding.raise_confidence.iter_mut().for_each(|line| *line = line.replace(&of_one, ""));
    let others: Vec<&str> = finding.also.iter().map(|at| at.name.as_str()).collect();
    finding.changes.iter_mut().for_each(|change| tell_of_one_driver(change, &others));
}

fn add(first: &mut Finding, other: Finding) {
    first.also.push(other.at);
    first.standing += other.standing;
    first.confidence = first.confidence.min(other.confidence);
    for (own, others) in
        [(&mut first.sufferers, other.sufferers), (&mut first.causers, other.causers)]
    {
        let is_new = |party: &Party| own.iter().all(|known| known.name != party.name);
        let new: Vec<Party> = others.into_iter().filter(is_new).collect();
        own.extend(new);
    }
}
