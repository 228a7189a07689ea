//! The ranking on a terminal: a table, the commands of each remedy, and what does not apply.

use std::fmt::Write;

use crate::{
    sweep::Job,
    table::Table,
    text::{BOLD, clean, counted, millis, rate, seconds, shown, styled, whole},
};

use super::{
    candidates::Refused,
    case::Case,
    original::Original,
    ranking::{Figure, Figures, Ranking},
};

/// All of it, in lines of at most `width` columns where that can be.
pub(crate) fn render(
    case: &Case,
    job: &Job,
    ranking: &Ranking,
    refused: &[Refused],
    width: Option<usize>,
) -> String {
    let mut out = head(case, job, ranking);
    out.push('\n');
    out.push_str(&table(case, ranking).render_within(width, 2));
    let _ = writeln!(out, "\n{}", styled(BOLD, "What to type"));
    for (place, ranked) in (1..).zip(&ranking.remedies) {
        let effect = ranked.remedy.effect().text();
        let _ = writeln!(out, "{place}. {} ({effect})", clean(&ranked.remedy.what));
        for line in ranked.remedy.commands(case) {
            let _ = writeln!(out, "   {}", clean(&line));
        }
        for line in &ranked.remedy.by_hand {
            let _ = writeln!(out, "   by hand: {}", clean(line));
        }
    }
    if !refused.is_empty() {
        let _ = writeln!(out, "\n{}", styled(BOLD, "What does not apply"));
        for Refused { what, why, .. } in refused {
            let _ = writeln!(out, "{}: {}", clean(what), clean(why));
        }
    }
    let doubts = case.original.iter().flat_map(|original| &original.doubts);
    for (index, doubt) in doubts.enumerate() {
        if index == 0 {
            let _ = writeln!(out, "\n{}", styled(BOLD, "What the ranges rest on"));
        }
        let _ = writeln!(out, "{}", clean(doubt));
    }
    out
}

fn head(case: &Case, job: &Job, ranking: &Ranking) -> String {
    let scenario = &case.scenario;
    let [good, bad] = [&case.good, &case.bad].map(|vm| case.called(vm));
    let says = if case.is_diagnosed { ", as the diagnosis says" } else { "" };
    let mut out = format!("{}\n", styled(BOLD, &clean(&scenario.title)));
    let (what, figures) = match &case.original {
        Some(Original { name, window, .. }) => {
            let span = diagnose::span(window.from_ms, window.to_ms);
            let fit = counted(ranking.scenarios, "model");
            let figures =
                format!("{fit} of it: from the least to the most, the order of the likeliest");
            (format!("{name}, {span}"), figures)
        }
        None => {
            let window = &scenario.windows[case.window];
            let (from, to) = (seconds(window.from), seconds(window.to));
            let what = format!("{}, window {}, {from} to {to}", scenario.name, window.name);
            (what, job.seeds_in_words())
        }
    };
    let line = format!("{what}: {good} suffers from {bad}{says}; {figures}");
    let _ = writeln!(out, "{}", clean(&line));
    if !scenario.source.is_empty() {
        let _ = writeln!(out, "{}", clean(&scenario.source));
    }
    out
}

fn table(case: &Case, ranking: &Ranking) -> Table {
    let [good, bad] = [&case.good, &case.bad].map(|vm| clean(case.called(vm)));
    let head = [
        String::new(),
        "remedy".into(),
        format!("{good} ms"),
        "IOPS".into(),
        format!("{bad} IOPS"),
        "MiB/s".into(),
        "change".into(),
        "fairness".into(),
        "acts".into(),
    ];
    let mut table = Table::new(&head).left(&[1, 8]);
    let row = |place: String, what: &str, figures: &Figures, loss: Option<f64>, acts: &str| {
        vec![
            place,
            clean(what),
            Figure::text(figures.good_ms, millis),
            Figure::text(figures.good_iops, rate),
            Figure::text(figures.bad_iops, rate),
            Figure::text(figures.bad_mib, rate),
            shown(loss, change),
            Figure::text(figures.fairness, |index| format!("{index:.2}")),
            acts.to_owned(),
        ]
    };
    table.row(row(String::new(), "as it is", &ranking.as_it_is, None, ""));
    for (place, ranked) in (1..).zip(&ranking.remedies) {
        let (what, acts) = (&ranked.remedy.what, ranked.remedy.effect().text());
        table.row(row(format!("{place}"), what, &ranked.figures, ranked.loss, acts));
    }
    table
}

/// What a part that is lost makes of all, in per cent.
fn change(lost: f64) -> String {
    let percent = -100.0 * lost;
    let sign = if percent >= 0.5 { "+" } else { "" };
    format!("{sign}{} %", whole(percent))
}
