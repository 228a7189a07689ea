//! Findings of one cause that one thing is to be done about: they are one, which names all its places.

use super::Case;
use crate::{Finding, Party, changes::tell_of_one_driver};

/// Findings about things that are called `noun`, those that `unites` puts to an earlier one in it: it tells so, and has
/// what is to be done about both in the earlier one then.
pub(super) fn united(
    all: impl IntoIterator<Item = Finding>,
    noun: &str,
    unites: impl Fn(&mut Finding, &Finding) -> bool,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for finding in all {
        match findings.iter_mut().find_map(|first| unites(first, &finding).then_some(first)) {
            Some(first) => add(first, finding),
            None => findings.push(finding),
        }
    }
    findings.iter_mut().for_each(|finding| tell_of_others(finding, noun));
    findings
}

/// Whether two findings hold at one time.
pub(super) fn are_of_one_time(one: &Finding, other: &Finding) -> bool {
    one.window.from_ms < other.window.to_ms && other.window.from_ms < one.window.to_ms
}

/// Whether two findings about things of one kind begin together, but for a sample.
pub(super) fn begin_together(case: &Case<'_>, one: &Finding, other: &Finding) -> bool {
    let apart_ms = one.window.from_ms.abs_diff(other.window.from_ms) as f64;
    one.at.kind == other.at.kind && apart_ms <= 1000.0 * case.host.usual_s
}

/// Tells of a finding that is about more than one place how many others there are, and which of them one
/// line deepens.
fn tell_of_others(finding: &mut Finding, noun: &str) {
    let others = match finding.also.len() {
        0 => return,
        1 => format!("another {noun}"),
        more => format!("{more} other {noun}s"),
    };
    finding.sentence.push_str(&format!(" The same is true of {others}."));
    let shown = finding.changes.iter_mut().flat_map(|change| &mut change.esxcli);
    shown.chain(&mut finding.raise_confidence).for_each(show_all);
    let others: Vec<&str> = finding.also.iter().map(|at| at.name.as_str()).collect();
    finding.changes.iter_mut().for_each(|change| tell_of_one_driver(change, &others));
}

/// Makes a line that shows one device show all: it does where it names none.
fn show_all(line: &mut String) {
    const OF_ONE: &str = " list -d ";
    let Some((before, after)) = line.split_once(OF_ONE) else { return };
    let rest = after.find(['`', ' ']).map_or("", |end| &after[end..]);
    *line = format!("{before} list{rest}");
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
