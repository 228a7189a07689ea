//! The findings: sentence first, then what it rests on, then what to type.

use diagnose::{Change, Effect, Evidence, Finding, Party, Verdict};
use maud::{Markup, html};

use super::{
    simulated,
    words::{self, number, span, text, with_unit},
};

/// Findings that are told in full; the others are a line each.
const FULL: usize = 40;
/// Parties that are named; the others are counted.
const PARTIES: usize = 8;

/// Every finding of a host; nothing when there is none, but the numbers that prove it.
pub(super) fn render(host: usize, verdict: &Verdict) -> Markup {
    let id = format!("host-{host}-findings");
    let (full, rest) = verdict.findings.split_at(verdict.findings.len().min(FULL));
    html! {
        section aria-labelledby=(id) {
            @if full.is_empty() {
                h2 #(id) { "What was looked at" }
                (evidence(&verdict.evidence))
            } @else {
                h2 #(id) { "Findings" }
                @for (index, finding) in full.iter().enumerate() { (card(host, index + 1, finding)) }
                (others(rest))
            }
        }
    }
}

fn card(host: usize, number: usize, finding: &Finding) -> Markup {
    let window = &finding.window;
    html! {
        article.finding #(format!("host-{host}-finding-{number}")) {
            p.cause {
                span.mark { "finding " (number) } " "
                b { (finding.cause.title()) } " " span.name { (finding.at) }
            }
            h3 { (text(&finding.sentence)) }
            p.when {
                (span(window)) ", " (window.samples) " of " (window.of) " samples "
                button.quiet.show type="button" hidden data-host=(host) data-at=(finding.at)
                    data-from=(window.from_ms) data-to=(window.to_ms) { "Show in the charts" }
            }
            (evidence(&finding.evidence))
            (confidence(finding))
            (parties("Who suffers", &finding.sufferers))
            (parties("Who causes it", &finding.causers))
            @if !finding.changes.is_empty() { h4 { "What to do" } }
            @for one in &finding.changes { (change(one)) }
            (warnings(finding))
        }
    }
}

/// The numbers, each with its name.
fn evidence(evidence: &[Evidence]) -> Markup {
    html! {
        dl.evidence {
            @for one in evidence {
                div { dt { (one.label) } dd { (with_unit(one.value, one.unit)) } }
            }
        }
    }
}

fn confidence(finding: &Finding) -> Markup {
    let percent = format!("{:.0}", finding.confidence * 100.0);
    html! {
        div.confidence {
            p {
                b { "Confidence " (percent) " %" } " "
                meter min="0" max="100" value=(percent) { (percent) " %" }
            }
            @if !finding.raise_confidence.is_empty() {
                p { "Surer with:" }
                ul { @for line in &finding.raise_confidence { li { (text(line)) } } }
            }
        }
    }
}

fn parties(title: &str, parties: &[Party]) -> Markup {
    let (named, rest) = parties.split_at(parties.len().min(PARTIES));
    html! {
        @if !named.is_empty() {
            div.wide tabindex="0" role="region" aria-label=(title) {
                table {
                    thead {
                        tr {
                            th scope="col" { (title) }
                            th.n scope="col" { "commands/s" }
                            th.n scope="col" { "GAVG ms" }
                            th.n scope="col" { "slots" }
                            th.n scope="col" { "waiting" }
                        }
                    }
                    tbody {
                        @for party in named {
                            tr {
                                th.name scope="row" { (party.name) }
                                @for value in [party.iops, party.gavg_ms, party.slots, party.waiting] {
                                    td.n { (number(Some(value))) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if !rest.is_empty() { p.more { "and " (rest.len()) " more" } }
    }
}

fn change(change: &Change) -> Markup {
    let shells = [
        ("On the host", &change.esxcli),
        ("PowerCLI", &change.powercli),
        ("In the guest", &change.guest),
    ];
    html! {
        section.change {
            p.what { (text(&change.what)) " " (effect(change.effect)) }
            @for (shell, lines) in shells.iter().filter(|(_, lines)| !lines.is_empty()) {
                p.shell { (shell) }
                @for line in *lines { (command(line)) }
            }
            dl.facts {
                @if !change.risk.is_empty() { div { dt { "Risk" } dd { (text(&change.risk)) } } }
                @if !change.undo.is_empty() { div { dt { "Undo" } dd { (undo(&change.undo)) } } }
            }
            @if let Some(simulated) = &change.simulated { (simulated::render(simulated)) }
        }
    }
}

/// How to take a change back is a line to type or a sentence.
fn undo(undo: &str) -> Markup {
    if undo.starts_with("esxcli ") { command(undo) } else { text(undo) }
}

fn effect(effect: Effect) -> Markup {
    let class = if effect == Effect::AtOnce { "tag" } else { "tag reboot" };
    html! { span class=(class) { (effect.text()) } }
}

/// A line to type, with a button that a script makes work.
fn command(line: &str) -> Markup {
    html! {
        div.command { code { (line) } button.copy type="button" hidden { "Copy" } }
    }
}

fn warnings(finding: &Finding) -> Markup {
    html! {
        @if !finding.do_not.is_empty() {
            div.warning {
                h4 { "What not to do" }
                ul { @for line in &finding.do_not { li { (text(line)) } } }
            }
        }
        @if let Some(caution) = finding.caution { p.warning { b { "Caution. " } (text(caution)) } }
    }
}

/// A line for each finding that is not told in full.
fn others(findings: &[Finding]) -> Markup {
    html! {
        @if !findings.is_empty() {
            h3 { "And " (findings.len()) " more, in short" }
            ul { @for finding in findings { li { b { (finding.cause.title()) } ": " (words::text(&finding.sentence)) } } }
        }
    }
}
