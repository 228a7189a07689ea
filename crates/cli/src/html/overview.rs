//! Several hosts on one page: a line for each, and the devices that they share.

use std::collections::BTreeMap;

use diagnose::Flow;
use maud::{Markup, html};

use super::{
    Host, Page, outcome, outcome_class,
    rows::mean,
    words::{number, span},
};

/// Shared devices that are listed.
const SHARED: usize = 40;

/// The overview of a page of several hosts.
pub(super) fn render(page: &Page<'_>) -> Markup {
    let bad = page.hosts.iter().filter(|host| !host.verdict.findings.is_empty()).count();
    html! {
        section.overview aria-labelledby="overview" {
            h1 #overview { (headline(page.hosts.len(), bad)) }
            div.wide tabindex="0" role="region" aria-label="Hosts" {
                table {
                    thead {
                        tr {
                            th scope="col" { "host" }
                            th scope="col" { "verdict" }
                            th scope="col" { "the answer" }
                            th scope="col" { "covers" }
                        }
                    }
                    tbody { @for (index, host) in page.hosts.iter().enumerate() { (line(index, host)) } }
                }
            }
            (shared(page))
        }
    }
}

fn headline(hosts: usize, bad: usize) -> String {
    match bad {
        0 => format!("No storage problem on any of {hosts} hosts."),
        1 => format!("One of {hosts} hosts has a storage problem."),
        bad if bad == hosts => format!("All {hosts} hosts have storage problems."),
        bad => format!("{bad} of {hosts} hosts have storage problems."),
    }
}

fn line(index: usize, host: &Host<'_>) -> Markup {
    let verdict = host.verdict;
    html! {
        tr {
            th scope="row" { a href=(format!("#host-{index}")) { (verdict.host) } }
            td { span.badge.(outcome_class(verdict.outcome)) { (outcome(verdict)) } }
            td.text { (verdict.headline) }
            td.text { (span(&verdict.window)) }
        }
    }
}

/// A device on several hosts: who sends how much, and what each sees.
fn shared(page: &Page<'_>) -> Markup {
    let mut devices: BTreeMap<&str, Vec<(&str, Flow<'_>)>> = BTreeMap::new();
    for host in &page.hosts {
        for device in &host.devices {
            let flow = Flow::of(host.recording, device.id);
            devices.entry(flow.name).or_default().push((&host.verdict.host, flow));
        }
    }
    devices.retain(|_, hosts| hosts.len() > 1);
    html! {
        @if !devices.is_empty() {
            h2 { "Devices on several hosts" }
            div.wide tabindex="0" role="region" aria-label="Devices on several hosts" {
                table {
                    thead {
                        tr {
                            th scope="col" { "device" }
                            th scope="col" { "host" }
                            @for head in ["commands/s", "DAVG ms", "KAVG ms", "in slots", "waiting"] {
                                th.n scope="col" { (head) }
                            }
                        }
                    }
                    tbody {
                        @for (device, hosts) in devices.iter().take(SHARED) { (rows(device, hosts, page)) }
                    }
                }
            }
            @if devices.len() > SHARED { p.more { "and " (devices.len() - SHARED) " more" } }
        }
    }
}

fn rows(device: &str, hosts: &[(&str, Flow<'_>)], page: &Page<'_>) -> Markup {
    let samples = page.hosts.iter().map(|host| host.recording.len()).max().unwrap_or(0);
    html! {
        @for (index, (host, flow)) in hosts.iter().enumerate() {
            tr {
                @if index == 0 { th.name scope="rowgroup" rowspan=(hosts.len()) { (device) } }
                td { (host) }
                @for value in figures(flow, samples) { td.n { (number(Some(value))) } }
            }
        }
    }
}

fn figures(flow: &Flow<'_>, samples: usize) -> [f64; 5] {
    let busy: Vec<usize> = (0..samples).filter(|&sample| flow.rate(sample) > 0.0).collect();
    [
        flow.mean_rate(&busy),
        flow.per_command(&busy, Flow::davg),
        flow.per_command(&busy, Flow::kavg),
        mean(&busy, |sample| flow.in_flight(sample)),
        mean(&busy, |sample| flow.waiting(sample)),
    ]
}
