//! The ranking on a terminal: a table, the commands of each remedy, and what does not apply.

use std::fmt::Write;

use crate::{
    sweep::Job,
    table::Table,
    text::{BOLD, clean, counted, millis, rate, seconds, shown, styled, whole},
};

use super::{
    candidate::Refused,
    case::Case,
    original::Original,
    ranking::{Figure, Figures, Ranked, Ranking},
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
    let (good, bad) = (clean(case.called(&case.good)), clean(case.called(&case.bad)));
    let _ = writeln!(
        out,
        "In the order of what {good} gains; of those by which it gains alike, of what {bad} loses, then of when \
         they act."
    );
    let _ = writeln!(out, "\n{}", styled(BOLD, "What to type"));
    for Ranked { place, remedy, .. } in &ranking.remedies {
        let effect = remedy.effect().text();
        let _ = writeln!(out, "{place}. {} ({effect})", clean(&remedy.what));
        for line in remedy.commands(case) {
            let _ = writeln!(out, "   {}", clean(&line));
        }
        for line in &remedy.by_hand {
            let _ = writeln!(out, "   by hand: {}", clean(line));
        }
    }
    if !refused.is_empty() {
        let _ = writeln!(out, "\n{}", styled(BOLD, "What does not apply"));
        for Refused { what, why, .. } in refused {
            let _ = writeln!(out, "{}: {}", clean(what), clean(why));
        }
    }
    if let Some(original) = &case.original {
        let _ = writeln!(out, "\n{}", styled(BOLD, "What the ranges and the order rest on"));
        let alike = whole(100.0 * ranking.alike);
        let _ = writeln!(
            out,
            "Remedies of one number are alike: what the models say of them overlaps, or is no further apart than \
             {alike} % of what there was, as far as a model of today is from the recording. What may harm {good} by \
             more than that is behind all that does not."
        );
        for doubt in &original.doubts {
            let _ = writeln!(out, "{}", clean(doubt));
        }
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
            let figures = format!("{fit} of it: from the least to the most");
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
    for Ranked { remedy, place, figures, loss, .. } in &ranking.remedies {
        let acts = remedy.effect().text();
        table.row(row(format!("{place}"), &remedy.what, figures, *loss, acts));
    }
    table
}

/// What a part that is lost makes of all, in per cent.
fn change(lost: f64) -> String {
    let percent = -100.0 * lost;
    let sign = if percent >= 0.5 { "+" } else { "" };
    format!("{sign}{} %", whole(percent))
}
