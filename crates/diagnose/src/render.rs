//! A verdict as plain English for a terminal of 80 columns. The lines to type are never wrapped.

use counters::date;

use crate::{
    Change, Evidence, Finding, Party, Profile, Simulated, SimulatedRow, Verdict, Window, number,
    page::{BAD, BOLD, PLAIN, Page, fit},
};

/// Parties that are named; the rest are counted.
const MOST_PARTIES: usize = 5;
/// Rows of a simulated change that are shown.
const MOST_ROWS: usize = 8;
/// Columns of a name in its table.
const MOST_OF_NAME: usize = 28;
/// Findings that are told in full.
const MOST_FINDINGS: usize = 8;
/// Findings that have a line in the overview.
const MOST_IN_OVERVIEW: usize = 20;
/// Columns of a name in it.
const NAME: usize = 36;

/// The verdict as text: the answer first, then each finding with its evidence and the lines to
/// type. Control characters in names are replaced.
#[must_use]
pub fn render_text(verdict: &Verdict) -> String {
    render(verdict, "", Page::new(false))
}

/// The same in the colours of a terminal, with a picture (lines of its own making) in front of the
/// findings.
#[must_use]
pub fn render_styled(verdict: &Verdict, picture: &str) -> String {
    render(verdict, picture, Page::new(true))
}

fn render(verdict: &Verdict, picture: &str, mut page: Page) -> String {
    for lack in &verdict.lacks {
        page.paragraph(BAD, &format!("{}: {}", lack.title(), lack.sentence));
    }
    for disagreement in &verdict.disagreements {
        page.paragraph(BAD, &format!("Not of one time: {disagreement}"));
    }
    // What cannot be told is said once.
    if !verdict.lacks.iter().any(|lack| lack.sentence.starts_with(&verdict.headline)) {
        page.paragraph(BOLD, &verdict.headline);
    }
    if let Some(advice) = &verdict.advice {
        page.paragraph(BOLD, advice);
    }
    page.paragraph(PLAIN, &recorded(verdict));
    overview(&mut page, verdict);
    page.picture(picture);
    for (index, finding) in verdict.findings.iter().take(MOST_FINDINGS).enumerate() {
        finding_text(&mut page, index + 1, verdict, finding);
    }
    if verdict.findings.is_empty() {
        page.gap();
        page.labelled("Seen", &numbers(&verdict.evidence));
    }
    if let Some(caution) = verdict.findings.iter().find_map(|finding| finding.caution) {
        page.gap();
        page.labelled("Caution", caution);
    }
    page.gap();
    for line in profiles(verdict) {
        page.labelled("Judged", &line);
    }
    page.finish()
}

/// What was recorded: host, samples, time.
pub(crate) fn recorded(verdict: &Verdict) -> String {
    let window = &verdict.window;
    let samples = if window.of == 1 { "sample" } else { "samples" };
    format!(
        "{}: {} {samples}, {} with load, {}.",
        verdict.host,
        window.of,
        window.samples,
        span(window.from_ms, window.to_ms)
    )
}

/// The findings in a line each, where there are several.
fn overview(page: &mut Page, verdict: &Verdict) {
    let findings = &verdict.findings;
    if findings.len() < 2 {
        return;
    }
    page.gap();
    for (finding, place) in findings.iter().zip(1..).take(MOST_IN_OVERVIEW) {
        let name = fit(&verdict.places(finding), NAME);
        let first = format!("{place:>4}. ");
        page.wrap(PLAIN, &first, "      ", &format!("{}: {name}", finding.cause.title()));
    }
    page.more(findings.len(), MOST_IN_OVERVIEW, "findings");
    if findings.len() > MOST_FINDINGS {
        page.gap();
        page.line(PLAIN, &format!("The first {MOST_FINDINGS} in full:"));
    }
}

fn finding_text(page: &mut Page, place: usize, verdict: &Verdict, finding: &Finding) {
    let title = format!("{place}. {} ({})", finding.cause.title(), verdict.places(finding));
    page.gap();
    page.wrap(BAD, "", "   ", &title);
    page.wrap(PLAIN, "   ", "   ", &finding.sentence);
    let Window { samples, of, .. } = finding.window;
    page.labelled(
        "When",
        &format!(
            "{} ({samples} of {of} samples)",
            span(finding.window.from_ms, finding.window.to_ms)
        ),
    );
    let also: Vec<_> = finding.also.iter().map(|at| verdict.place(at)).collect();
    if !also.is_empty() {
        page.labelled("Also at", &also.join("; "));
    }
    page.labelled("Seen", &numbers(&finding.evidence));
    let raise = finding.raise_confidence.join("; ");
    let sure = format!("{:.0} %", finding.confidence * 100.0);
    page.labelled(
        "Sure",
        &if raise.is_empty() { sure } else { format!("{sure}. Surer with: {raise}") },
    );
    who(page, finding);
    for change in &finding.changes {
        change_text(page, change);
    }
    for line in &finding.do_not {
        page.labelled("Not", line);
    }
}

fn change_text(page: &mut Page, change: &Change) {
    page.labelled("Change", &change.what);
    page.labelled("", &format!("Acts {}.", change.effect.text()));
    let host = change.host().unwrap_or("host");
    let shells = [(host, &change.esxcli), ("PowerCLI", &change.powercli), ("guest", &change.guest)];
    for (shell, lines) in shells {
        for line in lines {
            page.line(BOLD, &format!("             {shell:>8}> {line}"));
        }
    }
    page.labelled("", &format!("Risk: {}", change.risk));
    page.labelled("", &format!("Undo: {}.", change.undo.trim_end_matches('.')));
    for line in change.undo_lines() {
        page.line(BOLD, &format!("             {:>8}> {line}", "undo"));
    }
    if let Some(simulated) = &change.simulated {
        simulated_text(page, simulated);
    }
}

/// Captured, simulated as it is, simulated with the change.
fn simulated_text(page: &mut Page, simulated: &Simulated) {
    page.labelled("Simulated", &simulated.sentence);
    let row = |row: &SimulatedRow| {
        let name = format!("{} {}", fit(&row.object, MOST_OF_NAME), row.counter);
        let captured = row.captured.map_or("-".into(), number);
        (PLAIN, vec![name, captured, number(row.today), row.range()])
    };
    let rows: Vec<_> = simulated.rows.iter().take(MOST_ROWS).map(row).collect();
    if !rows.is_empty() {
        page.table(3, &["", "captured", "today", "after"], &rows);
    }
    page.more(simulated.rows.len(), MOST_ROWS, "counters");
    for doubt in &simulated.doubts {
        page.labelled("", doubt);
    }
}

/// Who suffers with their numbers, and who causes it; who does both is told so.
fn who(page: &mut Page, finding: &Finding) {
    let Finding { sufferers, causers, .. } = finding;
    parties(page, "Suffers", sufferers, party);
    let suffers = |causer: &Party| sufferers.iter().take(MOST_PARTIES).any(|s| s == causer);
    parties(page, "Causes", causers, |causer| match suffers(causer) {
        true => format!("{} itself, by what it asks for", causer.name),
        false => party(causer),
    });
}

fn parties(page: &mut Page, label: &str, parties: &[Party], told: impl Fn(&Party) -> String) {
    let mut text: Vec<String> = parties.iter().take(MOST_PARTIES).map(told).collect();
    if let Some(more) = parties.len().checked_sub(MOST_PARTIES).filter(|more| *more > 0) {
        text.push(format!("{more} more"));
    }
    if !text.is_empty() {
        page.labelled(label, &text.join("; "));
    }
}

/// A VM with its numbers; one of which nothing completes has no latency.
fn party(party: &Party) -> String {
    if party.iops == 0.0 {
        return format!("{} (none completes)", party.name);
    }
    let latency = party.gavg_ms.map(|ms| format!(" at {} ms", number(ms)));
    let waiting = party.waiting.map(|waiting| format!(", {} waiting", number(waiting)));
    format!(
        "{} ({}/s{}, {} slots{})",
        party.name,
        number(party.iops),
        latency.unwrap_or_default(),
        number(party.slots),
        waiting.unwrap_or_default()
    )
}

fn numbers(evidence: &[Evidence]) -> String {
    let one = |evidence: &Evidence| {
        let unit = match evidence.unit {
            "" | "1/s" => String::new(),
            unit => format!(" {unit}"),
        };
        format!("{} {}{unit}", evidence.label, number(evidence.value))
    };
    evidence.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// One line for each profile in use: how many devices, and why, when it is one.
fn profiles(verdict: &Verdict) -> Vec<String> {
    let line = |profile: Profile| {
        let of: Vec<_> = verdict.profiles.iter().filter(|c| c.profile == profile).collect();
        match of.as_slice() {
            [] => None,
            [one] => {
                Some(format!("{} by the profile {}: {}.", one.device, profile.name(), one.why))
            }
            [one, ..] => Some(format!(
                "{} devices by the profile {}; of {}, {}.",
                of.len(),
                profile.name(),
                one.device,
                one.why
            )),
        }
    };
    [Profile::Flash, Profile::Classic].into_iter().filter_map(line).collect()
}

/// What a side of a comparison covers.
pub(crate) fn covered(window: &Window) -> String {
    match window.of {
        0 => "no samples".into(),
        samples => format!("{} ({samples} samples)", span(window.from_ms, window.to_ms)),
    }
}

/// Begin and end in UTC, of milliseconds since 1970-01-01 UTC; the day twice only when it is needed
/// to tell them apart.
#[must_use]
pub fn span(from_ms: i64, to_ms: i64) -> String {
    let (from_day, from) = instant(from_ms);
    let (to_day, to) = instant(to_ms);
    if from_day == to_day {
        return format!("{from_day} {from} to {to} UTC");
    }
    format!("{from_day} {from} to {to_day} {to} UTC")
}

/// A day and a time of day, of milliseconds since 1970-01-01 UTC.
fn instant(ms: i64) -> (String, String) {
    let seconds = ms.div_euclid(1000);
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(day);
    let time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    (format!("{year:04}-{month:02}-{day:02}"), time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_dates() {
        let cases = [
            (0, "1970-01-01", "00:00:00"),
            (951_782_400_000, "2000-02-29", "00:00:00"),
            (1_524_751_592_000, "2018-04-26", "14:06:32"),
            (-1_000, "1969-12-31", "23:59:59"),
        ];
        for (ms, day, time) in cases {
            assert_eq!(instant(ms), (day.into(), time.into()));
        }
        let _ = (instant(i64::MAX), instant(i64::MIN));
    }
}
