//! Several hosts on one page: a line for each.

use diagnose::Outcome;
use maud::{Markup, html};

use super::{
    Page, outcome, outcome_class,
    words::{span, text},
};

/// The hosts and the answer for each.
pub(super) fn render(page: &Page<'_>) -> Markup {
    html! {
        section.overview aria-labelledby="overview" {
            h1 #overview { (headline(page)) }
            div.wide tabindex="0" role="region" aria-label="Hosts" {
                table {
                    thead {
                        tr {
                            @for head in ["host", "verdict", "the answer", "covers"] {
                                th scope="col" { (head) }
                            }
                        }
                    }
                    tbody {
                        @for (index, host) in page.hosts.iter().enumerate() {
                            tr {
                                th scope="row" { a href=(format!("#host-{index}")) { (host.name()) } }
                                td {
                                    span.badge.(outcome_class(host.verdict.outcome)) {
                                        (outcome(host.verdict))
                                    }
                                }
                                td.text {
                                    (host.verdict.headline)
                                    @if let Some(advice) = &host.verdict.advice {
                                        " " (text(advice))
                                    }
                                }
                                td.text { (span(&host.verdict.window)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn headline(page: &Page<'_>) -> String {
    let all = page.hosts.len();
    match page.hosts.iter().filter(|host| !host.verdict.findings.is_empty()).count() {
        _ if page.hosts.iter().any(|host| !host.side.is_empty()) => {
            "The hosts of both sides".into()
        }
        0 if page.hosts.iter().any(|host| host.verdict.outcome == Outcome::CannotTell) => {
            format!("Not all of {all} captures can tell whether there is a storage problem.")
        }
        0 => format!("There is no storage problem on any of {all} hosts."),
        1 => format!("One of {all} hosts has a storage problem."),
        bad => format!("{bad} of {all} hosts have storage problems."),
    }
}
