//! What vmkernel.log would have: limits that moved, devices without a path, settings refused.

use std::fmt::Write;

use counters::{DeviceId, SECOND};
use engine::Event;
use sim::{CopyEnd, LogLine, Logged, in_words};

use crate::{
    report::Report,
    text::{BOLD, clean, counted, styled},
};

/// Lines that are shown.
const LINES: usize = 8;

/// The first lines of the log; nothing when it is empty.
pub(crate) fn render(report: &Report) -> String {
    let lines = &report.outcome.log;
    if lines.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", styled(BOLD, "Log"));
    for line in lines.iter().take(LINES) {
        let _ = writeln!(out, "{}", shown(report, line));
    }
    if let Some(more) = lines.len().checked_sub(LINES).filter(|more| *more > 0) {
        let _ = writeln!(out, "{:>14}  and {}", "", counted(more, "more line"));
    }
    out
}

/// What a host refused in the run, for who does not read the log.
pub(crate) fn refusals(report: &Report) -> impl Iterator<Item = String> + '_ {
    let is_refusal = |line: &&LogLine| matches!(line.what, Logged::Refused(_));
    report.outcome.log.iter().filter(is_refusal).map(|line| shown(report, line).trim().to_owned())
}

/// A line with its time and host.
fn shown(report: &Report, line: &LogLine) -> String {
    let host = &report.scenario.hosts[line.host].config.name;
    let at = line.at.0 as f64 / SECOND as f64;
    format!("{at:>12.6} s  {host}  {}", clean(&text(report, line)))
}

/// What kind of line it is, and the device that it is about.
pub(crate) fn event<'a>(report: &'a Report, line: &LogLine) -> (&'static str, Option<&'a str>) {
    let config = &report.scenario.hosts[line.host].config;
    let (name, device) = match line.what {
        Logged::Refused(_) => return ("refused", None),
        Logged::Copied { to, end, .. } => {
            let name = match end {
                CopyEnd::Copied(_) => "copied",
                CopyEnd::GivenUp => "copy-given-up",
                CopyEnd::Unfinished(_) => "copy-unfinished",
            };
            (name, config.vdisks[to.index()].device)
        }
        Logged::Event(event) => of_event(event),
    };
    (name, Some(&config.devices[device.index()].name))
}

/// The same of an event of the engine.
const fn of_event(event: Event) -> (&'static str, DeviceId) {
    match event {
        Event::DepthChanged { device, .. } => ("dqlen", device),
        Event::AllPathsDown { device } => ("all-paths-down", device),
        Event::ApdTimedOut { device } => ("apd-timed-out", device),
        Event::PermanentLoss { device } => ("permanent-loss", device),
        Event::PathsBack { device } => ("paths-back", device),
        Event::Congestion { device, .. } => ("congestion", device),
        Event::ExternalWorkload { device } => ("external-workload", device),
    }
}

/// What a line says, without time and host.
pub(crate) fn text(report: &Report, line: &LogLine) -> String {
    match &line.what {
        Logged::Refused(why) => format!("refused: {why}"),
        Logged::Event(event) => in_words(*event, &report.scenario.hosts[line.host].config),
        Logged::Copied { from, to, end } => {
            let host = &report.scenario.hosts[line.host];
            let disk = host.config.disk_name(*from);
            let to = host.datastores[host.config.vdisks[to.index()].device.index()].join(", ");
            match end {
                CopyEnd::Copied(nanos) => {
                    let seconds = *nanos as f64 / SECOND as f64;
                    format!("`{disk}` is copied to {to} after {seconds:.3} s, and goes on there")
                }
                CopyEnd::Unfinished(bytes) => {
                    let mib = bytes >> 20;
                    format!("the copy of `{disk}` to {to} is not over: {mib} MiB are left")
                }
                CopyEnd::GivenUp => format!("the copy of `{disk}` to {to} is given up"),
            }
        }
    }
}
