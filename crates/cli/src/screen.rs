//! What a terminal is told of a run: first the answer, then the picture, then the tables that an
//! administrator knows, the verdict with its commands, and what was expected.

use counters::sorted::{Ordered, sort};
use std::fmt::Write;

use counters::Time;
use levels::Application;
use scenario::{Action, Scenario};

use crate::{
    esxtop, expectations, log, notes, picture,
    report::{Layout, Report},
    text::{BOLD, clean, counted, millis, rate, seconds, styled, whole},
    verdict, windows,
};

/// Columns of a picture when the width of the screen is not known.
const WIDTH: usize = 80;

/// The whole report.
pub(crate) fn render(report: &Report, layout: Layout) -> String {
    let Layout { window, rows, width } = layout;
    let verdicts = report.verdicts(window);
    let mut parts = vec![summary(report)];
    if report.named().len() > 1 {
        parts.push(windows::table(report, window).render_within(width, 2));
    }
    parts.push(notes::render(report));
    parts.push(heading(report, window));
    parts.push(verdict::list(verdicts));
    parts.push(picture::render(&report.stacks[window], rows, width.unwrap_or(WIDTH)));
    let views = report.outcome.windows[window].iter().map(|view| &view.recording);
    parts.push(esxtop::render(&views.collect::<Vec<_>>(), rows, width));
    parts.push(format!("{}\n{}", styled(BOLD, "Verdict"), verdict::render(verdicts)));
    parts.push(log::render(report));
    parts.push(expectations::render(&report.scenario, &report.checked(), &[]));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// VMs that are on at some time of the run: at its beginning, or by an event.
fn vms(scenario: &Scenario) -> usize {
    let hosts = scenario.hosts.iter().flat_map(|host| &host.config.vms);
    let from_the_start = hosts.filter(|vm| !vm.system && vm.powered_on);
    let later = scenario.events.iter().filter_map(|event| match event.action {
        Action::Power { vm, on: true } => Some(&scenario.hosts[event.host].config.vms[vm.index()]),
        _ => None,
    });
    from_the_start.chain(later).map(|vm| vm.name.as_str()).into_set().len()
}

/// What the picture below it is of.
fn heading(report: &Report, index: usize) -> String {
    let (window, stack) = (&report.scenario.windows[index], &report.stacks[index]);
    let name = match report.named().len() {
        1 => "The stack".to_owned(),
        _ => format!("The stack in window {}", clean(&window.name)),
    };
    let commands = match stack.application {
        None => String::new(),
        Some(application) => format!(
            " of applications, {} {} commands a second",
            if application.iops < stack.iops { "cut into" } else { "merged into" },
            rate(stack.iops)
        ),
    };
    format!(
        "{}, {} to {}: {} IOPS{commands}, {} MiB/s, {} ms {}\n",
        styled(BOLD, &name),
        seconds(window.from),
        seconds(window.to),
        rate(stack.application_iops()),
        rate(stack.mib_per_s),
        stack.application_ms().map_or("-".into(), millis),
        match stack.application {
            Some(Application { ms: None, .. }) => "a command",
            _ => "an I/O",
        }
    )
}

/// The title, and in one sentence what was simulated.
fn summary(report: &Report) -> String {
    let scenario = &report.scenario;
    let mut versions: Vec<_> =
        scenario.hosts.iter().map(|host| host.config.version.name()).collect();
    sort(&mut versions);
    versions.dedup();
    let sum = |number: fn(&scenario::Host) -> usize| scenario.hosts.iter().map(number).sum();
    let parts = [
        format!("{} with ESXi {}", counted(scenario.hosts.len(), "host"), versions.join(" and ")),
        counted(vms(scenario), "VM"),
        counted(sum(|host| host.config.devices.len()), "device"),
        counted(scenario.arrays.len(), "array"),
    ];
    let mut out = format!("{}\n", styled(BOLD, &clean(&scenario.title)));
    let _ = writeln!(
        out,
        "{}: {}; {}, {} I/Os, seed {}",
        clean(&scenario.name),
        parts.join(", "),
        seconds(Time(scenario.duration_ns)),
        whole(report.outcome.ios as f64),
        scenario.seed
    );
    if !scenario.source.is_empty() {
        let _ = writeln!(out, "{}", clean(&scenario.source));
    }
    out
}
