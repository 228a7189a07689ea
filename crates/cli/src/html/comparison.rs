//! Captures side by side: what became of each object and finding, and who else is on a device.

use diagnose::{
    BeforeAfter, Comparison, Figure, FindingChange, HostShare, ObjectChange, ObjectName,
    SharedDevice, Trend,
};
use maud::{Markup, html};

use super::words::{number, span, text};

/// Objects and devices that are listed; the others are counted.
const ROWS: usize = 40;

/// Before and after of each host; nothing when there was no second side.
pub(super) fn before_after(comparison: &Comparison) -> Markup {
    html! {
        section.overview aria-labelledby="comparison" {
            h1 #comparison { (comparison.headline) }
            @for caution in &comparison.cautions { p.warning { b { "Caution. " } (text(caution)) } }
            @for host in &comparison.hosts { (host_changes(host)) }
            (alone("Before only", &comparison.only_before))
            (alone("After only", &comparison.only_after))
            p.note { (comparison.method) }
        }
    }
}

fn alone(title: &str, hosts: &[String]) -> Markup {
    html! { @if !hosts.is_empty() { p { b { (title) } ": " (hosts.join(", ")) } } }
}

fn host_changes(host: &BeforeAfter) -> Markup {
    html! {
        h2 { (host.host) ", before and after" }
        dl.facts {
            div { dt { "Before" } dd { (span(&host.before)) ", " (host.before.of) " samples" } }
            div { dt { "After" } dd { (span(&host.after)) ", " (host.after.of) " samples" } }
        }
        ul.changes {
            (findings("gone", "good", &host.gone))
            (findings("new", "bad", &host.new))
            (findings("still there", "calm", &host.remaining))
        }
        @if let Some(first) = host.objects.first() { (figures(first)) }
        (objects(&host.objects))
        (only("Before only", &host.only_before))
        (only("After only", &host.only_after))
    }
}

fn findings(word: &str, class: &str, findings: &[FindingChange]) -> Markup {
    html! {
        @for finding in findings {
            li {
                span.badge.(class) { (word) } " " b { (finding.cause.title()) } " "
                span.name { (finding.at.name) }
                @if let Some((before, after)) = finding.standing() {
                    ": " (number(Some(before))) " commands stood there, now " (number(Some(after)))
                }
            }
        }
    }
}

fn only(title: &str, names: &[ObjectName]) -> Markup {
    let (named, rest) = names.split_at(names.len().min(ROWS));
    html! {
        @if !names.is_empty() {
            p.more {
                b { (title) } ": "
                @for (index, one) in named.iter().enumerate() {
                    @if index > 0 { ", " }
                    (one.kind.name()) " " span.name { (one.name) }
                }
                @if !rest.is_empty() { " and " (rest.len()) " more" }
            }
        }
    }
}

/// Every figure of one object.
fn figures(object: &ObjectChange) -> Markup {
    html! {
        h3 { (object.object.kind.name()) " " span.name { (object.object.name) } " " (trend(object.trend)) }
        p { (text(&object.sentence)) }
        div.wide tabindex="0" role="region" aria-label="Before and after" {
            table {
                thead {
                    tr {
                        th scope="col" { "figure" }
                        @for head in ["before", "after", "change", "%"] { th.n scope="col" { (head) } }
                        th scope="col" {}
                    }
                }
                tbody { @for figure in &object.figures { (figure_line(figure)) } }
            }
        }
    }
}

fn figure_line(figure: &Figure) -> Markup {
    html! {
        tr {
            th scope="row" {
                (figure.name)
                @if !matches!(figure.unit, "" | "1/s") { span.unit { " " (figure.unit) } }
            }
            @for value in [figure.before, figure.after, figure.change, figure.change_percent] {
                td.n { (number(value)) }
            }
            td { @if figure.beyond_noise == Some(false) { span.unit { "within the noise" } } }
        }
    }
}

/// The figures of a line of the table of objects.
const SHOWN: [&str; 6] = ["CMDS/s", "GAVG/cmd", "DAVG/cmd", "KAVG/cmd", "QUED", "DQLEN"];

fn objects(objects: &[ObjectChange]) -> Markup {
    let has = |name: &&&str| objects.iter().any(|object| object.figure(name).is_some());
    let shown: Vec<&str> = SHOWN.iter().filter(has).copied().collect();
    let left_out = objects.len().saturating_sub(ROWS);
    html! {
        @if !objects.is_empty() {
            h3 { "Every object, before and after" }
            div.wide tabindex="0" role="region" aria-label="Every object, before and after" {
                table {
                    thead {
                        tr {
                            th scope="col" { "name" }
                            th scope="col" { "latency" }
                            @for name in &shown { th.n scope="col" { (name) } th.n scope="col" { "after" } }
                        }
                    }
                    tbody { @for object in objects.iter().take(ROWS) { (object_line(object, &shown)) } }
                }
            }
            @if left_out > 0 { p.more { "and " (left_out) " more in which commands spend less time" } }
        }
    }
}

fn object_line(object: &ObjectChange, shown: &[&str]) -> Markup {
    html! {
        tr {
            th.name scope="row" { (object.object.kind.name()) " " (object.object.name) }
            td { (trend(object.trend)) }
            @for name in shown {
                @let figure = object.figure(name);
                td.n { (number(figure.and_then(|figure| figure.before))) }
                td.n { b { (number(figure.and_then(|figure| figure.after))) } }
            }
        }
    }
}

fn trend(trend: Trend) -> Markup {
    let (word, class) = match trend {
        Trend::Better => ("better", "good"),
        Trend::Worse => ("worse", "bad"),
        Trend::Same => ("same", "calm"),
        Trend::LoadDiffers => ("the load differs", "calm"),
        Trend::Unknown => ("unknown", "calm"),
    };
    html! { span.badge.(class) { (word) } }
}

/// The devices that several hosts use: who sends how much, and what each sees.
pub(super) fn shared(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.shared.is_empty() {
            section aria-labelledby="shared" {
                h2 #shared { "Devices on several hosts" }
                ul { @for note in &comparison.notes { li { (text(&note.sentence)) } } }
                div.wide tabindex="0" role="region" aria-label="Devices on several hosts" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "device" }
                                th scope="col" { "host" }
                                @for head in SHARE_HEADS { th.n scope="col" { (head) } }
                            }
                        }
                        tbody { @for device in comparison.shared.iter().take(ROWS) { (shares(device)) } }
                    }
                }
                @if comparison.shared.len() > ROWS {
                    p.more { "and " (comparison.shared.len() - ROWS) " more with fewer commands" }
                }
            }
        }
    }
}

const SHARE_HEADS: [&str; 7] =
    ["commands/s", "share %", "MiB/s", "DAVG ms", "KAVG ms", "in slots", "DQLEN"];

fn shares(device: &SharedDevice) -> Markup {
    let rows = device.hosts.len() + 1 + usize::from(!device.notes.is_empty());
    html! {
        @for (index, host) in device.hosts.iter().enumerate() {
            tr {
                @if index == 0 { th.name scope="rowgroup" rowspan=(rows) { (device.name) } }
                td { (host.host) }
                (share(host))
            }
        }
        tr { td { b { "all" } } (share(&device.total)) }
        @if !device.notes.is_empty() {
            tr { td.text colspan=(SHARE_HEADS.len() + 1) {
                @for note in &device.notes { p { (text(&note.sentence)) } }
            } }
        }
    }
}

fn share(share: &HostShare) -> Markup {
    let HostShare { iops, share_percent, mib_per_s, davg_ms, kavg_ms, slots, dqlen, .. } = share;
    let values = [iops, share_percent, mib_per_s, davg_ms, kavg_ms, slots, dqlen];
    html! { @for value in values { td.n { (number(*value)) } } }
}
