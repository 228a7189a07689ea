//! A comparison as plain English for a terminal of 80 columns.

use anstyle::Style;
use counters::Kind;

use crate::{
    BeforeAfter, Comparison, Figure, FindingChange, HostShare, ObjectChange, ObjectName,
    SharedDevice, Trend, number,
    page::{BAD, BOLD, DIM, GOOD, PLAIN, Page, fit, signed},
    render::covered,
};

/// Objects, hosts or findings that are named; the rest are counted.
const MOST: usize = 8;
/// Shared devices that are shown.
const MOST_DEVICES: usize = 5;
/// Columns of a name in a table.
const NAME: usize = 32;

/// The comparison as text: the answer first, then each host and each shared device.
#[must_use]
pub fn render_comparison(comparison: &Comparison) -> String {
    render(comparison, Page::new(false))
}

/// The same in the colours of a terminal.
#[must_use]
pub fn render_comparison_styled(comparison: &Comparison) -> String {
    render(comparison, Page::new(true))
}

fn render(comparison: &Comparison, mut page: Page) -> String {
    page.paragraph(BOLD, &comparison.headline);
    if !comparison.cautions.is_empty() {
        page.gap();
    }
    for caution in &comparison.cautions {
        page.labelled("Caution", caution);
    }
    for host in &comparison.hosts {
        host_text(&mut page, host);
    }
    let devices = comparison.shared.iter().take(MOST_DEVICES);
    devices.for_each(|device| device_text(&mut page, device));
    page.more(comparison.shared.len(), MOST_DEVICES, "shared devices");
    for note in &comparison.notes {
        page.labelled("Together", &note.sentence);
    }
    let sides = [("before", &comparison.only_before), ("after", &comparison.only_after)];
    for (side, hosts) in sides.into_iter().filter(|(_, hosts)| !hosts.is_empty()) {
        page.labelled("Alone", &format!("Only {side}: {}", some(hosts.iter().cloned())));
    }
    if !comparison.hosts.is_empty() {
        page.gap();
        page.labelled("Method", comparison.method);
    }
    page.finish()
}

fn host_text(page: &mut Page, host: &BeforeAfter) {
    page.gap();
    page.wrap(BOLD, "", "", &host.host);
    for (label, window) in [("Before", &host.before), ("After", &host.after)] {
        page.labelled(label, &covered(window));
    }
    for (label, findings) in [("Gone", &host.gone), ("New", &host.new), ("Still", &host.remaining)]
    {
        for finding in findings.iter().take(MOST) {
            page.labelled(label, &finding_text(finding));
        }
        page.more(findings.len(), MOST, "findings");
    }
    if let Some(object) = host.main_object() {
        object_text(page, object);
    }
    for (title, kinds) in [
        ("device", &[Kind::Device, Kind::NfsVolume][..]),
        ("VM", &[Kind::Vm]),
        ("virtual disk", &[Kind::VirtualDisk]),
    ] {
        objects_table(page, title, host, kinds);
    }
    alone(page, "before", &host.only_before);
    alone(page, "after", &host.only_after);
}

fn finding_text(finding: &FindingChange) -> String {
    let standing = finding.standing().map_or_else(String::new, |(before, after)| {
        format!(": {} commands stood there, now {}", number(before), number(after))
    });
    format!("{} ({}){standing}", finding.cause.title(), finding.at.name)
}

/// Every figure of one object.
fn object_text(page: &mut Page, object: &ObjectChange) {
    page.gap();
    let title = format!("   {} ({})", object.object.name, object.object.kind.name());
    page.wrap(BOLD, &title, "   ", "");
    let figures = object.figures.iter().filter(|figure| !is_said(object, figure));
    let rows: Vec<_> = figures.map(figure_row).collect();
    page.table(3, &["", "before", "after", "change", "", ""], &rows);
}

/// Whether another line says the same: QAVG is next to always KAVG [QAVG], and most limits stay.
fn is_said(object: &ObjectChange, figure: &Figure) -> bool {
    let by = match figure.name {
        "QAVG/cmd" => "KAVG/cmd",
        "lowest DQLEN" => "DQLEN",
        _ => return false,
    };
    let by = object.figure(by);
    by.is_some_and(|by| (by.before, by.after) == (figure.before, figure.after))
}

fn figure_row(figure: &Figure) -> (Style, Vec<String>) {
    let shown = |value: Option<f64>| value.map_or("-".into(), number);
    let percent = figure.change_percent.filter(|_| figure.unit != "%");
    let percent = percent.map(|percent| format!("{} %", signed(percent.round())));
    let (style, noise) = match figure.beyond_noise {
        Some(false) => (DIM, "within the noise"),
        _ => (PLAIN, ""),
    };
    let cells = [figure.label(), shown(figure.before), shown(figure.after)];
    let change = [figure.change.map(signed), percent].map(Option::unwrap_or_default);
    (style, cells.into_iter().chain(change).chain([noise.into()]).collect())
}

/// A line for each object of some kinds.
fn objects_table(page: &mut Page, title: &str, host: &BeforeAfter, kinds: &[Kind]) {
    let objects: Vec<_> =
        host.objects.iter().filter(|object| kinds.contains(&object.object.kind)).collect();
    if objects.is_empty() {
        return;
    }
    let rows: Vec<_> = objects.iter().take(MOST).map(|object| object_row(object)).collect();
    page.gap();
    page.table(3, &[title, "CMDS/s", "now", "ms", "now", "latency"], &rows);
    page.more(objects.len(), MOST, &format!("{title}s"));
}

fn object_row(object: &ObjectChange) -> (Style, Vec<String>) {
    let both = |name: &str| {
        let figure = object.figure(name);
        let shown = |value: Option<f64>| value.map_or("-".into(), number);
        [shown(figure.and_then(|f| f.before)), shown(figure.and_then(|f| f.after))]
    };
    let style = match object.trend {
        Trend::Better => GOOD,
        Trend::Worse => BAD,
        Trend::Same | Trend::LoadDiffers => PLAIN,
        Trend::Unknown => DIM,
    };
    let name = fit(&object.object.name, NAME);
    let figures = both("CMDS/s").into_iter().chain(both("GAVG/cmd"));
    let row = std::iter::once(name).chain(figures).chain([object.trend.title().into()]).collect();
    (style, row)
}

fn alone(page: &mut Page, side: &str, objects: &[ObjectName]) {
    if objects.is_empty() {
        return;
    }
    page.gap();
    let names = objects.iter().map(|object| format!("{} {}", object.kind.name(), object.name));
    page.labelled("Alone", &format!("Only {side}: {}", some(names)));
}

fn device_text(page: &mut Page, device: &SharedDevice) {
    page.gap();
    let title = format!("{} on {} hosts", device.name, device.hosts.len());
    page.wrap(BOLD, "", "   ", &title);
    let head = ["host", "CMDS/s", "share", "MB/s", "slots", "DQLEN", "DSNRO", "DAVG", "KAVG"];
    let hosts = device.hosts.iter().take(MOST).chain([&device.total]);
    let rows: Vec<_> = hosts.map(share_row).collect();
    page.table(3, &head, &rows);
    page.more(device.hosts.len(), MOST, "hosts");
    for note in &device.notes {
        page.labelled("Note", &note.sentence);
    }
}

fn share_row(share: &HostShare) -> (Style, Vec<String>) {
    let shown = |value: Option<f64>| value.map_or("-".into(), number);
    let dqlen = match (share.dqlen, share.dqlen_max) {
        (Some(dqlen), Some(most)) if dqlen < most => {
            format!("{} of {}", number(dqlen), number(most))
        }
        (dqlen, _) => shown(dqlen),
    };
    let row = vec![
        fit(&share.host, 16),
        shown(share.iops),
        share.share_percent.map_or("-".into(), |share| format!("{share:.0} %")),
        shown(share.mib_per_s),
        shown(share.slots),
        dqlen,
        shown(share.dsnro),
        shown(share.davg_ms),
        shown(share.kavg_ms),
    ];
    (PLAIN, row)
}

/// The first of some names, and how many more there are.
fn some(names: impl ExactSizeIterator<Item = String>) -> String {
    let rest = names.len().saturating_sub(MOST);
    let mut text: Vec<_> = names.take(MOST).collect();
    if rest > 0 {
        text.push(format!("{rest} more"));
    }
    text.join(", ")
}
