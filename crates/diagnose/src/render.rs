//! A verdict as plain English for a terminal of 80 columns. The lines to type are never wrapped.

use std::fmt::Write;

use crate::{Change, Evidence, Finding, Party, Profile, Verdict, Window, rules::number};

/// Columns of text.
const WIDTH: usize = 78;
/// Parties that are named; the rest are counted.
const MOST_PARTIES: usize = 5;

/// The verdict as text: the answer first, then each finding with its evidence and the lines to
/// type. Control characters in names are replaced.
#[must_use]
pub fn render_text(verdict: &Verdict) -> String {
    let mut out = String::new();
    paragraph(&mut out, "", &verdict.headline);
    let recorded = format!(
        "{}: {} samples, {} with load, {}.",
        verdict.host,
        verdict.window.of,
        verdict.window.samples,
        span(&verdict.window)
    );
    paragraph(&mut out, "", &recorded);
    for (index, finding) in verdict.findings.iter().enumerate() {
        finding_text(&mut out, index + 1, finding, index > 0);
    }
    if verdict.findings.is_empty() {
        out.push('\n');
        labelled(&mut out, "Seen", &numbers(&verdict.evidence));
    }
    if let Some(caution) = verdict.findings.iter().find_map(|finding| finding.caution) {
        out.push('\n');
        labelled(&mut out, "Caution", caution);
    }
    out.push('\n');
    for line in profiles(verdict) {
        labelled(&mut out, "Judged", &line);
    }
    for line in &verdict.missing {
        labelled(&mut out, "Missing", line);
    }
    clean(&out)
}

fn finding_text(out: &mut String, place: usize, finding: &Finding, with_sentence: bool) {
    let title = format!("{place}. {} ({})", finding.cause.title(), finding.at);
    out.push('\n');
    wrap(out, "", "   ", &title);
    if with_sentence {
        paragraph(out, "   ", &finding.sentence);
    }
    let Window { samples, of, .. } = finding.window;
    labelled(out, "When", &format!("{} ({samples} of {of} samples)", span(&finding.window)));
    labelled(out, "Seen", &numbers(&finding.evidence));
    let raise = finding.raise_confidence.join("; ");
    let sure = format!("{:.0} %", finding.confidence * 100.0);
    labelled(
        out,
        "Sure",
        &if raise.is_empty() { sure } else { format!("{sure}. Surer with: {raise}") },
    );
    parties(out, "Suffers", &finding.sufferers);
    parties(out, "Causes", &finding.causers);
    for change in &finding.changes {
        change_text(out, change);
    }
    for line in &finding.do_not {
        labelled(out, "Not", line);
    }
}

fn change_text(out: &mut String, change: &Change) {
    labelled(out, "Change", &change.what);
    labelled(out, "", &format!("Acts {}.", change.effect.text()));
    let shells =
        [("host", &change.esxcli), ("PowerCLI", &change.powercli), ("guest", &change.guest)];
    for (shell, lines) in shells {
        for line in lines {
            let _ = writeln!(out, "             {shell:>8}> {line}");
        }
    }
    labelled(out, "", &format!("Risk: {}", change.risk));
    labelled(out, "", &format!("Undo: {}.", change.undo.trim_end_matches('.')));
    if let Some(simulated) = &change.simulated {
        labelled(out, "Simulated", &simulated.sentence);
    }
}

fn parties(out: &mut String, label: &str, parties: &[Party]) {
    let mut text: Vec<String> = parties.iter().take(MOST_PARTIES).map(party).collect();
    if let Some(more) = parties.len().checked_sub(MOST_PARTIES).filter(|more| *more > 0) {
        text.push(format!("{more} more"));
    }
    if !text.is_empty() {
        labelled(out, label, &text.join("; "));
    }
}

fn party(party: &Party) -> String {
    format!(
        "{} ({}/s at {} ms, {} slots, {} waiting)",
        party.name,
        number(party.iops),
        number(party.gavg_ms),
        number(party.slots),
        number(party.waiting)
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

/// Begin and end in UTC; the day only when it is needed to tell them apart.
fn span(window: &Window) -> String {
    let (from_day, from) = instant(window.from_ms);
    let (to_day, to) = instant(window.to_ms);
    if from_day == to_day {
        return format!("{from_day} {from} to {to} UTC");
    }
    format!("{from_day} {from} to {to_day} {to} UTC")
}

/// A day and a time of day, of milliseconds since 1970-01-01 UTC.
fn instant(ms: i64) -> (String, String) {
    let seconds = ms.div_euclid(1000);
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted from 0000-03-01 in eras of 400 years, so that a leap day ends its year.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let date = of_year - (153 * march_month + 2) / 5 + 1;
    let time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    (format!("{year:04}-{month:02}-{date:02}"), time)
}

/// Text behind a label, wrapped under itself.
fn labelled(out: &mut String, label: &str, text: &str) {
    let first = format!("   {label:<9} ");
    wrap(out, &first, "             ", text);
}

fn paragraph(out: &mut String, indent: &str, text: &str) {
    wrap(out, indent, indent, text);
}

fn wrap(out: &mut String, first: &str, rest: &str, text: &str) {
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    let _ = writeln!(out, "{line}");
}

/// Names come from files: what could steer a terminal is shown as a replacement character.
fn clean(text: &str) -> String {
    let safe = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    text.chars().map(safe).collect()
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

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\n");
    }
}
