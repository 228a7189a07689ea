//! Verdicts over a window: one for each host, and all of them as text.

use counters::{MILLISECOND, Recording};
use diagnose::{Facts, Outcome, Thresholds, Verdict, diagnose, render_text};
use levels::{Measured, most_first};
use scenario::{Scenario, Window};
use sim::{EPOCH_MS, WindowView};

use crate::text::{clean, counted};

/// Hosts of which the headline is told below the verdict that is told in full.
const HEADLINES: usize = 5;

/// The samples of a window: those of which the whole interval lies in it. A window shorter than
/// that is one sample.
pub(crate) fn samples(
    scenario: &Scenario,
    window: &Window,
    recording: &Recording,
    view: &WindowView,
) -> Recording {
    let ms = |nanos: u64| EPOCH_MS + (nanos / MILLISECOND) as i64;
    let slice = capture::Slice {
        from_ms: Some(ms(window.from.0 + scenario.sample_ns)),
        to_ms: Some(ms(window.to.0)),
        ..capture::Slice::default()
    };
    match slice.apply(recording) {
        Ok(part) if !part.is_empty() => part,
        _ => view.recording.clone(),
    }
}

/// The verdict on a recording of a host of which `facts` are known.
pub(crate) fn judge(recording: &Measured, facts: &Facts) -> Verdict {
    diagnose(recording, &Thresholds::default(), facts)
}

/// What is wrong with the worst of several hosts, in a few words.
pub(crate) fn short(verdicts: &[Verdict]) -> &'static str {
    let Some(worst) = worst_first(verdicts).first().copied() else { return "" };
    match (worst.findings.first(), worst.outcome) {
        (Some(finding), _) => finding.cause.title(),
        (None, Outcome::Idle) => "too little load",
        (None, Outcome::CannotTell) => "cannot tell",
        (None, _) => "nothing is wrong",
    }
}

/// The findings on the worst of several hosts, a line for each, and under the first what to do about
/// it; or that there are none.
pub(crate) fn list(verdicts: &[Verdict]) -> String {
    let Some(worst) = worst_first(verdicts).first().copied() else { return String::new() };
    let advice = worst.advice.iter().map(|advice| format!("   {}\n", clean(advice)));
    let lines = worst.findings.iter().zip(1..).map(|(finding, place)| {
        format!("{place}. {}: {}\n", finding.cause.title(), clean(&worst.places(finding)))
    });
    let mut lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return format!("{}\n", clean(&worst.headline));
    }
    lines.splice(1..1, advice);
    lines.concat()
}

/// The verdicts as text: the worst host's in full, what differs on others in a line each.
pub(crate) fn render(verdicts: &[Verdict]) -> String {
    let order = worst_first(verdicts);
    let Some((worst, others)) = order.split_first() else { return String::new() };
    let mut text = render_text(worst);
    let causes = |verdict: &Verdict| {
        (verdict.outcome, verdict.findings.iter().map(|finding| finding.cause).collect::<Vec<_>>())
    };
    let (same, different): (Vec<&Verdict>, Vec<_>) =
        others.iter().partition(|other| causes(other) == causes(worst));
    if !same.is_empty() {
        let names: Vec<_> = same.iter().take(HEADLINES).map(|v| v.host.as_str()).collect();
        let more = if same.len() > HEADLINES { " and others" } else { "" };
        text.push_str(&format!(
            "\nThe same on {}: {}{more}.\n",
            counted(same.len(), "other host"),
            names.join(", ")
        ));
    }
    for other in different.iter().take(HEADLINES) {
        text.push_str(&format!("\n{}: {}\n", clean(&other.host), clean(&other.headline)));
    }
    if let Some(more) = different.len().checked_sub(HEADLINES).filter(|more| *more > 0) {
        text.push_str(&format!("\nand {} with verdicts of their own.\n", counted(more, "host")));
    }
    text
}

/// Hosts with findings first, by what the first of them costs; those without load last.
pub(crate) fn worst_first(verdicts: &[Verdict]) -> Vec<&Verdict> {
    let cost = |verdict: &Verdict| match (verdict.findings.first(), verdict.outcome) {
        (Some(first), _) => first.standing,
        (None, Outcome::CannotTell) => -1.0,
        (None, Outcome::Idle) => -3.0,
        (None, _) => -2.0,
    };
    let mut order: Vec<_> = verdicts.iter().collect();
    most_first(&mut order, |verdict| cost(verdict));
    order
}
