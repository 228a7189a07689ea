//! What a terminal is told of a sweep: a table for each window, and where the knee is.

use std::{fmt::Write, ops::Range};

use crate::{
    spread::Spread,
    table::Table,
    text::{BOLD, clean, counted, millis, rate, seconds, styled},
};

use super::{
    figures::figure,
    results::{By, Results, Window},
};

/// The figures of a row: what they are called, and their key.
const COLUMNS: [(&str, &str); 9] = [
    ("IOPS", "cmds"),
    ("MiB/s", "mib_per_s"),
    ("total ms", "total"),
    ("in guest", "guest_wait"),
    ("KAVG", "kavg"),
    ("DAVG", "davg"),
    ("DQLEN", "dqlen"),
    ("ACTV", "actv_mean"),
    ("QUED", "qued_mean"),
];

/// All of it, in lines of at most `width` columns where that can be.
pub(crate) fn render(results: &Results<'_>, width: Option<usize>) -> String {
    let mut out = head(results);
    for window in &results.windows {
        let name = styled(BOLD, &format!("Window {}", clean(&window.name)));
        let _ = writeln!(out, "\n{name}, {} to {}", seconds(window.from), seconds(window.to));
        out.push_str(&table(results, window).render_within(width, 1 + results.job.axes.len()));
        out.extend(knees(results, window));
    }
    out
}

/// The scenario, and what was done with it.
fn head(results: &Results<'_>) -> String {
    let job = results.job;
    let scenario = &job.base;
    let axes: Vec<_> = job.axes.iter().map(|axis| clean(&axis.name)).collect();
    let seeds = job.seeds_in_words();
    let mut out = format!("{}\n", styled(BOLD, &clean(&scenario.title)));
    let _ = writeln!(
        out,
        "{}: {} of {}, {seeds}",
        clean(&scenario.name),
        counted(job.points(), "point"),
        axes.join(" and ")
    );
    if !scenario.source.is_empty() {
        let _ = writeln!(out, "{}", clean(&scenario.source));
    }
    out
}

/// A line for each point; the knees are marked.
pub(crate) fn table(results: &Results<'_>, window: &Window) -> Table {
    let axes = results.job.axes.iter().map(|axis| clean(&axis.name));
    let head = std::iter::once(String::new()).chain(axes);
    let head = head.chain(COLUMNS.map(|(name, _)| name.to_owned()));
    let of_vms = results.vms.iter().map(|vm| clean(vm));
    let of_vms = of_vms.flat_map(|vm| [format!("{vm} IOPS"), format!("{vm} ms")]);
    let head: Vec<_> = head.chain(of_vms).collect();
    let mut table = Table::new(&head).left(&[0]);
    for line in results.lines() {
        let knee = results.knee(window, &line, By::Davg);
        for point in line {
            let Some(stack) = &window.stacks[point] else { continue };
            let mark = if knee == Some(point) { "▶" } else { "" };
            let mut row = vec![mark.to_owned()];
            row.extend(results.job.values(point).map(|(_, value)| clean(value)));
            row.extend(COLUMNS.iter().filter_map(|(_, key)| {
                let (place, (_, _, print)) = figure(key)?;
                Some(Spread::text(stack[place], *print))
            }));
            row.extend(
                window.vms[point]
                    .iter()
                    .flat_map(|[iops, ms]| [Spread::text(*iops, rate), Spread::text(*ms, millis)]),
            );
            table.row(row);
        }
    }
    table
}

/// Where the knee of each line is.
pub(crate) fn knees(results: &Results<'_>, window: &Window) -> Vec<String> {
    results.lines().filter_map(|line| knee(results, window, &line)).collect()
}

fn knee(results: &Results<'_>, window: &Window, line: &Range<usize>) -> Option<String> {
    let axis = results.along();
    let mut found: Vec<(usize, Vec<&str>)> = Vec::new();
    for by in By::ALL {
        let Some(point) = results.knee(window, line, by) else { continue };
        match found.iter_mut().find(|(known, _)| *known == point) {
            Some((_, latencies)) => latencies.push(by.words()),
            None => found.push((point, vec![by.words()])),
        }
    }
    let told = found.iter().map(|(point, latencies)| {
        let last = if point + 1 == line.end { ", the last value," } else { "" };
        let value = &axis.values[point - line.start];
        format!("{value}{last} has the most IOPS per ms of {}", latencies.join(" and of "))
    });
    let told: Vec<_> = told.collect();
    let others = match results.others(line.start) {
        others if others.is_empty() => others,
        others => format!(" with {others}"),
    };
    let text = clean(&format!("Knee of {}{others}: {}", axis.name, told.join("; ")));
    (!told.is_empty()).then(|| format!("{text}\n"))
}
