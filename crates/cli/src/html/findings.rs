//! The findings: sentence first, then what it rests on, then what to type.

use diagnose::{Change, Evidence, Finding, Party, Verdict};
use knobs::Effect;
use maud::{Markup, html};

use super::{
    rows, simulated,
    words::{number, span, text, with_unit},
};

/// Findings that stand open; those behind them have to be asked for.
const OPEN: usize = 3;
/// Parties that are named; the others are counted.
const PARTIES: usize = 8;

/// The findings of a host, `most` of them in full; when there is none, the numbers that prove it.
pub(super) fn render(host: usize, verdict: &Verdict, most: usize) -> Markup {
    let id = format!("host-{host}-findings");
    let (full, rest) = verdict.findings.split_at(verdict.findings.len().min(most.max(1)));
    html! {
        section aria-labelledby=(id) {
            @if full.is_empty() {
                h2 #(id) { "What was looked at" }
                (evidence(&verdict.evidence))
            } @else {
                h2 #(id) { "Findings" }
                @for (index, finding) in full.iter().enumerate() {
                    @if index < OPEN { (card(host, index + 1, verdict, finding)) }
                    @else { (folded(host, index + 1, verdict, finding)) }
                }
                (others(rest))
            }
        }
    }
}

/// A finding behind its first line.
fn folded(host: usize, number: usize, verdict: &Verdict, finding: &Finding) -> Markup {
    html! {
        details {
            summary {
                span.mark { "finding " (number) } " " b { (finding.cause.title()) } " "
                span.name { (verdict.places(finding)) }
            }
            (card(host, number, verdict, finding))
        }
    }
}

fn card(host: usize, number: usize, verdict: &Verdict, finding: &Finding) -> Markup {
    let window = &finding.window;
    html! {
        article.finding #(format!("host-{host}-finding-{number}")) {
            p.cause {
                span.mark { "finding " (number) } " "
                b { (finding.cause.title()) } " " span.name { (verdict.places(finding)) }
            }
            h3 { (text(&finding.sentence)) }
            p.when {
                (span(window)) ", " (window.samples) " of " (window.of) " samples "
                button.quiet.show type="button" hidden data-host=(host) data-at=(rows::key(&finding.at))
                    data-from=(window.from_ms) data-to=(window.to_ms) { "Show in the charts" }
            }
            @if !finding.also.is_empty() {
                p.also {
                    "Also at "
                    (finding.also.iter().map(|at| verdict.place(at)).collect::<Vec<_>>().join("; "))
                }
            }
            (evidence(&finding.evidence))
            (confidence(finding))
            (parties(finding))
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

/// Who suffers and who causes it; a VM that does both is named once.
fn parties(finding: &Finding) -> Markup {
    let is_in = |party: &Party, others: &[Party]| others.iter().any(|o| o.name == party.name);
    let suffers = finding.sufferers.iter().map(|party| {
        let both = is_in(party, &finding.causers);
        (party, if both { "suffers and causes" } else { "suffers" })
    });
    let causes = finding.causers.iter().filter(|party| !is_in(party, &finding.sufferers));
    let mut all: Vec<_> = causes.map(|party| (party, "causes")).chain(suffers).collect();
    let left_out = all.len().saturating_sub(PARTIES);
    all.truncate(PARTIES);
    html! {
        @if !all.is_empty() {
            div.wide tabindex="0" role="region" aria-label="Who suffers and who causes" {
                table {
                    thead {
                        tr {
                            th scope="col" { "who" }
                            th scope="col" { "suffers or causes" }
                            @for head in ["commands/s", "GAVG ms", "slots", "waiting"] {
                                th.n scope="col" { (head) }
                            }
                        }
                    }
                    tbody { @for (one, role) in all { (party(one, role)) } }
                }
            }
        }
        @if left_out > 0 { p.more { "and " (left_out) " more" } }
    }
}

fn party(party: &Party, role: &str) -> Markup {
    let values = [Some(party.iops), party.gavg_ms, Some(party.slots), party.waiting];
    html! {
        tr {
            th.name scope="row" { (party.name) }
            td { (role) }
            @for value in values { td.n { (number(value)) } }
        }
    }
}

fn change(change: &Change) -> Markup {
    html! {
        section.change {
            p.what { (text(&change.what)) " " (effect(change.effect)) }
            (commands(&on_host(change), &change.esxcli))
            @if change.esxcli.is_empty() { (commands("PowerCLI", &change.powercli)) }
            @else if !change.powercli.is_empty() {
                details {
                    summary.shell { "The same with PowerCLI" }
                    @for line in &change.powercli { (command(line)) }
                }
            }
            (commands("In the guest", &change.guest))
            dl.facts {
                @if !change.risk.is_empty() { div { dt { "Risk" } dd { (text(&change.risk)) } } }
                @if !change.undo.is_empty() { div { dt { "Undo" } dd { (undo(change)) } } }
            }
            @if let Some(simulated) = &change.simulated { (simulated::render(simulated)) }
        }
    }
}

/// Where its lines for a shell are typed.
fn on_host(change: &Change) -> String {
    change.host().map_or("On the host".into(), |host| format!("On {host}"))
}

/// How to take a change back: in words, and the lines to type.
fn undo(change: &Change) -> Markup {
    html! {
        (text(&change.undo))
        @for line in change.undo_lines() { (command(&line)) }
    }
}

fn effect(effect: Effect) -> Markup {
    let class = if effect == Effect::AtOnce { "tag" } else { "tag reboot" };
    html! { span class=(class) { (effect.text()) } }
}

fn commands(shell: &str, lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() {
            p.shell { (shell) }
            @for line in lines { (command(line)) }
        }
    }
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
            ul { @for finding in findings { li { b { (finding.cause.title()) } ": " (text(&finding.sentence)) } } }
        }
    }
}
