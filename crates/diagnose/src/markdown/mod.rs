//! Verdicts and comparisons as Markdown for a ticket: headings, tables, commands in fences.

mod sheet;

use crate::{
    BeforeAfter, Change, Comparison, Figure, Finding, FindingChange, HostShare, ObjectChange,
    Party, SharedDevice, Simulated, SimulatedRow, Verdict, number,
    page::signed,
    render::{covered, recorded, span},
};
use sheet::Sheet;

/// Rows of a table; the rest are counted.
const MOST: usize = 25;

/// A verdict as Markdown: the answer, what was recorded, each finding with its numbers and the
/// lines to type. Names cannot break tables or fences.
#[must_use]
pub fn render_markdown(verdict: &Verdict) -> String {
    let mut sheet = Sheet::default();
    sheet.heading(2, &format!("Storage of {}", verdict.host));
    sheet.list("Not whole", verdict.lacks.iter().map(|lack| lack.sentence.clone()));
    sheet.list("Not of one time", verdict.disagreements.iter().cloned());
    sheet.bold(&verdict.headline);
    if let Some(advice) = &verdict.advice {
        sheet.bold(advice);
    }
    sheet.paragraph(&format!("Recorded with esxtop: {}", recorded(verdict)));
    let findings = verdict.findings.iter().zip(1..);
    let rows: Vec<_> =
        findings.clone().map(|(finding, place)| summary(place, verdict, finding)).collect();
    sheet.table(&["", "finding", "where", "samples", "sure"], 3, &rows);
    for (finding, place) in findings {
        finding_text(&mut sheet, place, verdict, finding);
    }
    if verdict.findings.is_empty() {
        numbers(&mut sheet, &verdict.evidence);
    }
    if let Some(caution) = verdict.findings.iter().find_map(|finding| finding.caution) {
        sheet.labelled("Caution", caution);
    }
    sheet.finish()
}

fn summary(place: usize, verdict: &Verdict, finding: &Finding) -> Vec<String> {
    vec![
        place.to_string(),
        finding.cause.title().into(),
        verdict.places(finding),
        format!("{} of {}", finding.window.samples, finding.window.of),
        format!("{:.0} %", finding.confidence * 100.0),
    ]
}

fn finding_text(sheet: &mut Sheet, place: usize, verdict: &Verdict, finding: &Finding) {
    let at = verdict.places(finding);
    sheet.heading(3, &format!("{place}. {} ({at})", finding.cause.title()));
    sheet.paragraph(&finding.sentence);
    sheet.paragraph(&format!("{}.", span(finding.window.from_ms, finding.window.to_ms)));
    let also: Vec<_> = finding.also.iter().map(|at| verdict.place(at)).collect();
    if !also.is_empty() {
        sheet.paragraph(&format!("Also at {}.", also.join("; ")));
    }
    numbers(sheet, &finding.evidence);
    parties(sheet, "suffers", &finding.sufferers);
    parties(sheet, "causes", &finding.causers);
    sheet.list("Surer with", finding.raise_confidence.iter().cloned());
    for change in &finding.changes {
        change_text(sheet, change);
    }
    sheet.list("Not", finding.do_not.iter().cloned());
}

fn numbers(sheet: &mut Sheet, evidence: &[crate::Evidence]) {
    let row = |evidence: &crate::Evidence| {
        let unit = if evidence.unit == "1/s" { "" } else { evidence.unit };
        vec![evidence.label.clone(), format!("{} {unit}", number(evidence.value)).trim_end().into()]
    };
    sheet.table(&["seen", ""], 1, &evidence.iter().map(row).collect::<Vec<_>>());
}

fn parties(sheet: &mut Sheet, role: &str, parties: &[Party]) {
    let row = |party: &Party| {
        let figures = [Some(party.iops), party.gavg_ms, Some(party.slots), party.waiting]
            .map(crate::number::known);
        std::iter::once(party.name.clone()).chain(figures).collect()
    };
    let mut rows: Vec<Vec<String>> = parties.iter().take(MOST).map(row).collect();
    rows.extend(more(parties.len()));
    sheet.table(&[role, "CMDS/s", "GAVG ms", "slots", "waiting"], 1, &rows);
}

/// The row that counts what is not shown.
fn more(all: usize) -> Option<Vec<String>> {
    (all > MOST).then(|| vec![format!("and {} more", all - MOST)])
}

fn change_text(sheet: &mut Sheet, change: &Change) {
    sheet.labelled("Change", &format!("{} Acts {}.", change.what, change.effect.text()));
    sheet.fence("sh", &change.esxcli);
    sheet.fence("powershell", &change.powercli);
    sheet.fence("text", &change.guest);
    if let Some(simulated) = &change.simulated {
        simulated_text(sheet, simulated);
    }
    sheet.list(
        "Before you do it",
        [format!("Risk: {}", change.risk), format!("Undo: {}", change.undo)],
    );
    sheet.fence("text", &change.undo_lines());
}

fn simulated_text(sheet: &mut Sheet, simulated: &Simulated) {
    sheet.labelled("Simulated", &simulated.sentence);
    let row = |row: &SimulatedRow| {
        let captured = row.captured.map_or("-".into(), number);
        let counter = format!("{} {}", row.counter, row.unit).trim_end().to_owned();
        vec![row.object.clone(), counter, captured, number(row.today), row.range()]
    };
    let mut rows: Vec<Vec<String>> = simulated.rows.iter().take(MOST).map(row).collect();
    rows.extend(more(simulated.rows.len()));
    sheet.table(&["", "counter", "captured", "simulated today", "after the change"], 2, &rows);
    sheet.list("Doubts", simulated.doubts.iter().cloned());
}

/// A comparison as Markdown: the answer, the figures of each host before and after, and the
/// devices that several hosts use.
#[must_use]
pub fn render_comparison_markdown(comparison: &Comparison) -> String {
    let mut sheet = Sheet::default();
    sheet.heading(2, "Comparison");
    sheet.bold(&comparison.headline);
    sheet.list("Caution", comparison.cautions.iter().cloned());
    for host in &comparison.hosts {
        host_text(&mut sheet, host);
    }
    for device in comparison.shared.iter().take(MOST) {
        device_text(&mut sheet, device);
    }
    sheet.list("All shared devices", comparison.notes.iter().map(|note| note.sentence.clone()));
    sheet.list("Only before", comparison.only_before.iter().cloned());
    sheet.list("Only after", comparison.only_after.iter().cloned());
    if !comparison.hosts.is_empty() {
        sheet.paragraph(comparison.method);
    }
    sheet.finish()
}

fn host_text(sheet: &mut Sheet, host: &BeforeAfter) {
    sheet.heading(3, &format!("{} before and after", host.host));
    let side = |side: &str, window| format!("{side}: {}", covered(window));
    sheet.list("Recorded", [side("before", &host.before), side("after", &host.after)]);
    let findings = [("gone", &host.gone), ("new", &host.new), ("remains", &host.remaining)];
    let rows: Vec<_> = findings
        .iter()
        .flat_map(|(what, list)| list.iter().take(MOST).map(|finding| finding_row(what, finding)))
        .collect();
    sheet.table(&["finding", "where", "", "standing before", "after"], 3, &rows);
    if let Some(object) = host.main_object() {
        sheet.labelled("Figures", &format!("{} {}", object.object.kind.name(), object.object.name));
        let rows: Vec<_> = object.figures.iter().map(figure_row).collect();
        sheet.table(&["", "before", "after", "change", "", "beyond the noise"], 1, &rows);
    }
    let mut rows: Vec<_> = host.objects.iter().take(MOST).map(object_row).collect();
    rows.extend(more(host.objects.len()));
    let head = ["", "", "CMDS/s before", "after", "ms before", "after", "latency"];
    sheet.table(&head, 2, &rows);
    for (side, objects) in [("Only before", &host.only_before), ("Only after", &host.only_after)] {
        let names = objects.iter().take(MOST);
        sheet.list(side, names.map(|object| format!("{} {}", object.kind.name(), object.name)));
    }
}

fn finding_row(what: &str, finding: &FindingChange) -> Vec<String> {
    let standing = [finding.standing_before, finding.standing_after];
    let standing = standing.map(|standing| standing.map_or("-".into(), number));
    let names = [finding.cause.title().to_owned(), finding.at.name.clone(), what.to_owned()];
    names.into_iter().chain(standing).collect()
}

fn figure_row(figure: &Figure) -> Vec<String> {
    let shown = |value: Option<f64>| value.map_or("-".into(), number);
    let percent = figure.change_percent.filter(|_| figure.unit != "%");
    let sure = figure.beyond_noise.map_or("", |beyond| if beyond { "yes" } else { "no" });
    vec![
        figure.label(),
        shown(figure.before),
        shown(figure.after),
        figure.change.map(signed).unwrap_or_default(),
        percent.map(|percent| format!("{} %", signed(percent.round()))).unwrap_or_default(),
        sure.into(),
    ]
}

fn object_row(object: &ObjectChange) -> Vec<String> {
    let both = |name| {
        let figure = object.figure(name);
        let shown = |value: Option<f64>| value.map_or("-".into(), number);
        [shown(figure.and_then(|f| f.before)), shown(figure.and_then(|f| f.after))]
    };
    let names = [object.object.kind.name().to_owned(), object.object.name.clone()];
    let figures = both("CMDS/s").into_iter().chain(both("GAVG/cmd"));
    names.into_iter().chain(figures).chain([object.trend.title().into()]).collect()
}

fn device_text(sheet: &mut Sheet, device: &SharedDevice) {
    sheet.heading(3, &format!("{} on {} hosts", device.name, device.hosts.len()));
    let head = [
        "host", "CMDS/s", "share", "MB/s", "slots", "DQLEN", "highest", "DSNRO", "DAVG ms",
        "KAVG ms",
    ];
    let rows: Vec<_> =
        device.hosts.iter().take(MOST).chain([&device.total]).map(share_row).collect();
    sheet.table(&head, 1, &rows);
    sheet.list("Notes", device.notes.iter().map(|note| note.sentence.clone()));
}

fn share_row(share: &HostShare) -> Vec<String> {
    let shown = |value: Option<f64>| value.map_or("-".into(), number);
    vec![
        share.host.clone(),
        shown(share.iops),
        share.share_percent.map_or("-".into(), |share| format!("{share:.0} %")),
        shown(share.mib_per_s),
        shown(share.slots),
        shown(share.dqlen),
        shown(share.dqlen_max),
        shown(share.dsnro),
        shown(share.davg_ms),
        shown(share.kavg_ms),
    ]
}
