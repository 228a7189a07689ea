//! The report as a page: one file that needs no network, no server and, but for its charts, no
//! script.
//!
//! It stands beside the terminal's output: [`write()`] shows the verdicts that `diagnose` gave and
//! the recordings that they were given on. Names come from files: every one is escaped where it
//! is written, and what could steer a reader or a browser is replaced (`words`).
//!
//! ```text
//!   verdicts ----> overview, findings --.
//!       |                                +--> one file
//!       +--------> stack -> picture ----+     style and script inline,
//!   recordings --> tables --------------+     data as JSON
//!       '--------> charts -> reduce ----'
//! ```

mod assets;
mod charts;
mod comparison;
mod findings;
mod overview;
mod picture;
mod reduce;
mod rows;
mod run;
mod simulated;
pub(crate) mod stack;
mod sweep;
mod tables;
mod words;

use std::io::{self, Write};

use counters::EntityId;
use diagnose::{Comparison, Outcome, Verdict};
use levels::Measured;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{captures, diagnosis::Side, report::Report, sweep::Results};
use charts::Charts;
use words::{safe, span};

/// Findings of a page that are told in full; the others are a line each.
const FINDINGS_MAX: usize = 24;

/// What a page shows: verdicts and the recordings that they were given on, host by host.
pub(crate) struct Page<'a> {
    /// The hosts, in the order in which they are shown.
    hosts: Vec<Host<'a>>,
    /// What became of them, or who shares a device.
    comparison: Option<&'a Comparison>,
    /// What the reader left out or found damaged, a line each.
    remarks: Vec<String>,
    /// The run that the recordings are of, and the window that was judged.
    run: Option<(&'a Report, usize)>,
}

impl<'a> Page<'a> {
    /// Captures of one time, or of the times before and after a change: the later ones first.
    pub(crate) fn new(
        before: &'a Side,
        after: Option<&'a Side>,
        comparison: Option<&'a Comparison>,
    ) -> Self {
        let mut page = Self { hosts: Vec::new(), comparison, remarks: Vec::new(), run: None };
        if let Some(after) = after {
            page.add(after, "after");
        }
        page.add(before, if after.is_some() { "before" } else { "" });
        page
    }

    /// A run, with the `verdicts` over one of its windows; `samples` has as many hosts.
    pub(crate) fn of_run(
        report: &'a Report,
        window: usize,
        samples: &'a [Measured],
        verdicts: &'a [Verdict],
    ) -> Self {
        let hosts = samples.iter().zip(verdicts);
        let hosts = hosts.map(|(recording, verdict)| Host::new(recording, verdict, "")).collect();
        Self { hosts, comparison: None, remarks: Vec::new(), run: Some((report, window)) }
    }

    fn add(&mut self, side: &'a Side, name: &'static str) {
        let hosts = side.recordings.iter().zip(&side.verdicts);
        self.hosts.extend(hosts.map(|(recording, verdict)| Host::new(recording, verdict, name)));
        self.remarks.extend(captures::complaints(&side.report));
    }
}

/// One host of a page.
struct Host<'a> {
    /// Its counters.
    recording: &'a Measured,
    /// What they were judged to be.
    verdict: &'a Verdict,
    /// `before` or `after` where there are two sides; empty where there is one.
    side: &'static str,
    /// Its devices with load, the busiest first.
    devices: Vec<EntityId>,
}

impl<'a> Host<'a> {
    /// A host with the verdict on it. `side` is `before` or `after`, or empty where there is one
    /// side only.
    fn new(recording: &'a Measured, verdict: &'a Verdict, side: &'static str) -> Self {
        Self { recording, verdict, side, devices: rows::devices(recording, verdict) }
    }

    /// Its name, and which of its captures this is.
    fn name(&self) -> String {
        match self.side {
            "" => self.verdict.host.clone(),
            side => format!("{}, {side}", self.verdict.host),
        }
    }
}

/// Writes the page.
///
/// # Errors
/// What the writer returns.
pub(crate) fn write(page: &Page<'_>, out: &mut dyn Write) -> io::Result<()> {
    let charts = Charts::of(page);
    let scripts = html! {
        script id="data" type="application/json" { (PreEscaped(charts.json())) }
        @for script in assets::scripts() { script { (PreEscaped(script)) } }
    };
    write_page(&title(page), &body(page, &charts), &scripts, out)
}

/// Writes the page of a sweep.
///
/// # Errors
/// What the writer returns.
pub(crate) fn write_sweep(results: &Results<'_>, out: &mut dyn Write) -> io::Result<()> {
    let title = safe(&format!("kavg: {}", results.job.base.name));
    let body = html! {
        header.top { p.brand { strong { "kavg" } " where an I/O waits" } }
        main #main { (sweep::render(results)) }
        (footer())
    };
    write_page(&title, &body, &html! {}, out)
}

fn write_page(title: &str, body: &Markup, scripts: &Markup, out: &mut dyn Write) -> io::Result<()> {
    let html = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(assets::policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                @for style in assets::styles() { style { (PreEscaped(style)) } }
            }
            body {
                (PreEscaped(safe(&body.0)))
                (scripts)
            }
        }
    };
    out.write_all(html.into_string().as_bytes())
}

fn title(page: &Page<'_>) -> String {
    let names: Vec<_> = page.hosts.iter().map(|host| host.verdict.host.as_str()).collect();
    safe(&format!("kavg: {}", names.join(", ")))
}

fn body(page: &Page<'_>, charts: &Charts) -> Markup {
    let several = page.hosts.len() > 1;
    html! {
        a.skip href="#main" { "Skip to the verdict" }
        header.top {
            p.brand { strong { "kavg" } " where an I/O waits" }
            button #theme .quiet type="button" hidden { "Theme: auto" }
        }
        main #main {
            @if let Some((report, window)) = page.run { (run::render(report, window)) }
            @if let Some(comparison) = page.comparison.filter(|c| !c.hosts.is_empty()) {
                (comparison::before_after(comparison))
            }
            @if several { (overview::render(page)) }
            @if let Some(comparison) = page.comparison { (comparison::shared(comparison)) }
            @for index in 0..page.hosts.len() {
                (section(index, page, charts))
            }
            (remarks(page))
        }
        (footer())
    }
}

fn footer() -> Markup {
    html! {
        footer {
            p {
                "Times are UTC. Written by kavg " (env!("CARGO_PKG_VERSION"))
                "; this file is complete in itself and asks the network for nothing."
            }
        }
    }
}

/// Everything about one host: the answer first, then what it rests on.
fn section(index: usize, page: &Page<'_>, charts: &Charts) -> Markup {
    let (host, several) = (&page.hosts[index], page.hosts.len() > 1);
    let stack = stack::Blamed::of(host);
    let id = |part: &str| format!("host-{index}-{part}");
    html! {
        section.host #(format!("host-{index}")) aria-labelledby=(id("title")) {
            (verdict(host, &id("title"), several))
            @if let Some(stack) = &stack {
                section aria-labelledby=(id("stack")) {
                    h2 #(id("stack")) { "The I/O stack" }
                    (picture::render(stack))
                }
            }
            (findings::render(index, host.verdict, FINDINGS_MAX / page.hosts.len().max(1)))
            (charts.render(index, &id("charts")))
            section aria-labelledby=(id("numbers")) {
                h2 #(id("numbers")) { "The numbers" }
                (tables::render(host))
            }
            (missing(host.verdict, &id("missing")))
        }
    }
}

/// The answer, of which host and of when.
fn verdict(host: &Host<'_>, id: &str, several: bool) -> Markup {
    let verdict = host.verdict;
    let window = &verdict.window;
    html! {
        header.verdict.(outcome_class(verdict.outcome)) {
            p.outcome { (outcome(verdict)) @if several { " on " (host.name()) } }
            @for lack in &verdict.lacks { p.lack { (lack.title()) ": " (words::text(&lack.sentence)) } }
            @for line in &verdict.disagreements { p.lack { "Not of one time: " (words::text(line)) } }
            @if several { h2 #(id) { (verdict.headline) } } @else { h1 #(id) { (verdict.headline) } }
            @if let Some(advice) = &verdict.advice { p.advice { (words::text(advice)) } }
            dl.facts {
                div { dt { "Host" } dd { (verdict.host) } }
                div { dt { "Covers" } dd { (span(window)) } }
                div { dt { "Samples" } dd { (window.of) ", " (window.samples) " with load" } }
            }
        }
    }
}

fn outcome(verdict: &Verdict) -> String {
    match (verdict.outcome, verdict.findings.len()) {
        (Outcome::Problem, 1) => "1 finding".into(),
        (Outcome::Problem, count) => format!("{count} findings"),
        (Outcome::Healthy, _) => "No storage problem".into(),
        (Outcome::Idle, _) => "Too little load to judge".into(),
        (Outcome::CannotTell, _) => "Cannot tell".into(),
    }
}

const fn outcome_class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Problem => "bad",
        Outcome::Healthy => "good",
        Outcome::Idle => "calm",
        Outcome::CannotTell => "unsure",
    }
}

/// What the recording lacks.
fn missing(verdict: &Verdict, id: &str) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 #(id) { "What is missing" }
            @if verdict.missing.is_empty() {
                p { "Nothing: every counter that is judged is in the capture." }
            } @else {
                ul { @for line in &verdict.missing { li { (words::text(line)) } } }
            }
        }
    }
}

/// What the reader left out or found damaged, of whatever host.
fn remarks(page: &Page<'_>) -> Markup {
    html! {
        @if !page.remarks.is_empty() {
            section aria-labelledby="reading" {
                h2 #reading { "What could not be read" }
                ul { @for line in &page.remarks { li { (line) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests;
