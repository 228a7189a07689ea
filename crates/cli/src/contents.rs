//! What is in captures, as text.

use std::fmt::Write;

use capture::{
    Because, Capture, FileReport, HostInfo, HostReport, Identity, RecordCommand, VscsiHistogram,
    format_stamp,
};
use counters::{Direction, Metric, Recording};
use levels::usual_interval_s;

use crate::{
    captures,
    expectations::figure,
    table::Table,
    text::{BAD, BOLD, clean, counted, fit, styled, whole},
};

/// Links of virtual disks to devices that are told.
const LINKS: usize = 10;
/// Kinds of unknown columns that are told.
const UNKNOWN: usize = 10;

/// Files, hosts, objects, joins, checks, and what is missing.
pub(crate) fn info(capture: &Capture) -> String {
    let mut out: String = capture.report.files.iter().map(file).collect();
    let hosts = capture::info(capture);
    for ((host, report), recording) in
        hosts.iter().zip(&capture.report.hosts).zip(&capture.recordings)
    {
        out.push_str(&of_host(host, recording));
        out.push_str(&joins(report, recording));
        out.push_str(&checks(report));
        out.push_str(&lacks(host));
    }
    out
}

fn file(report: &FileReport) -> String {
    let mut out = format!(
        "{}\n  {} MiB, {}, of them {} of disks; {}{}\n",
        styled(BOLD, &clean(&report.file)),
        figure(report.bytes as f64 / 1_048_576.0),
        counted(report.columns, "column"),
        whole(report.disk_columns as f64),
        counted(report.rows, "row"),
        if report.first_row_left_out { ", the first without rates and left out" } else { "" }
    );
    if report.damaged_rows > 0 {
        let rows = usize::try_from(report.damaged_rows).unwrap_or(usize::MAX);
        let _ = writeln!(out, "  {}", counted(rows, "damaged row"));
    }
    if report.duplicate_columns > 0 {
        let _ = writeln!(out, "  {} twice", counted(report.duplicate_columns, "column"));
    }
    if report.text_before_header.is_some() {
        out.push_str("  text before a header, left out\n");
    }
    for line in captures::oddities_of_time(report) {
        let _ = writeln!(out, "  {line}");
    }
    if let Some(hint) = report.version {
        let id = hint.first_world;
        let _ = writeln!(out, "  ESXi {}, for its first world has the id {id}", hint.versions);
    }
    for (name, number) in report.unknown_columns.iter().take(UNKNOWN) {
        let _ = writeln!(out, "  not understood: {} ({})", clean(name), whole(*number as f64));
    }
    out
}

fn of_host(host: &HostInfo, recording: &Recording) -> String {
    let mut out = format!("{}\n", styled(BOLD, &format!("host {}", clean(&host.host))));
    if let Some((from, to)) = host.span_ms {
        let interval = usual_interval_s(&recording.times_ms)
            .map_or(String::new(), |seconds| format!(", every {} s", figure(seconds)));
        let _ = writeln!(
            out,
            "  {} from {} to {} UTC{interval}",
            counted(host.samples, "sample"),
            format_stamp(from),
            format_stamp(to)
        );
    }
    let objects: Vec<_> =
        host.objects.iter().map(|(kind, number)| counted(*number, kind.name())).collect();
    let _ = writeln!(out, "  {}; {}", objects.join(", "), counted(host.columns, "disk column"));
    let _ = writeln!(out, "  {} of VMs", counted(host.vm_worlds, "world"));
    out
}

/// Which device holds each virtual disk, and how sure that is.
fn joins(report: &HostReport, recording: &Recording) -> String {
    let mut out = String::new();
    for link in report.disk_links.iter().take(LINKS) {
        let name = |id| fit(&recording.entity(id).name, 40);
        let because = match link.because {
            Because::OnlyDevice => "the only one its VM has a world on",
            Because::Series => "its I/Os are in the world's",
            Because::Elimination => "no world has its I/Os",
        };
        let _ = writeln!(
            out,
            "  {} is on {} ({:.0} %: {because})",
            name(link.disk),
            name(link.device),
            100.0 * link.confidence
        );
    }
    if let Some(more) = report.disk_links.len().checked_sub(LINKS).filter(|more| *more > 0) {
        let _ = writeln!(out, "  and {}", counted(more, "more virtual disk"));
    }
    out
}

/// Whether the file adds up.
fn checks(report: &HostReport) -> String {
    let line = |check: &capture::Check| {
        let held = format!("{} of {}", whole(check.held as f64), whole(check.tested as f64));
        let formula = check.identity.formula();
        if check.held == check.tested {
            return format!("  adds up: {formula} ({held})\n");
        }
        let verdict = styled(BAD, "does not add up");
        let parts =
            matches!(check.identity, Identity::DeviceIsSumOfWorlds | Identity::AdapterIsSumOfPaths);
        let why = if parts { "; a part cut out by VM or device lacks some" } else { "" };
        format!("  {verdict}: {formula} ({held}){why}\n")
    };
    report.checks.iter().filter(|check| check.tested > 0).map(line).collect()
}

fn lacks(host: &HostInfo) -> String {
    let line = |missing: &capture::Missing| format!("  missing: {}\n", missing.consequence());
    host.missing.iter().map(line).collect()
}

/// What each host's capture lacks.
pub(crate) fn missing(capture: &Capture) -> String {
    let hosts = capture::info(capture);
    let lines = hosts.iter().map(|host| {
        let nothing = if host.missing.is_empty() { "  nothing is missing\n" } else { "" };
        format!("# host {}\n{nothing}{}", clean(&host.host), lacks(host))
    });
    lines.map(|lines| lines.replace("\n  ", "\n#   ")).collect()
}

/// What to type on the host.
pub(crate) fn how_to_record(record: &RecordCommand) -> String {
    format!(
        "# 1. on the host, the fields that matter:\ncat > {file} << 'END'\n{text}END\n\
         # 2. record:\n{command}\n\
         # or, where esxtop does not take the file, everything (ten times as large):\n# {all}\n",
        file = record.rc_file,
        text = record.rc_text,
        command = record.command,
        all = record.command_without_rc
    )
}

/// Every disk column with its least, mean and greatest value.
pub(crate) fn columns(recordings: &[Recording]) -> String {
    let head = ["host", "kind", "object", "column", "min", "mean", "max"];
    let mut table = Table::new(&head).left(&[0, 1, 2, 3]);
    for recording in recordings {
        for (id, counter, values) in recording.columns() {
            let entity = recording.entity(id);
            let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
            let mean = levels::mean(known.iter().copied()).unwrap_or(f64::NAN);
            table.row(vec![
                clean(&recording.host),
                entity.kind.name().into(),
                clean(&entity.name),
                counter.info().batch_name.into(),
                figure(known.iter().copied().fold(f64::NAN, f64::min)),
                figure(mean),
                figure(known.iter().copied().fold(f64::NAN, f64::max)),
            ]);
        }
    }
    table.render()
}

/// The histograms of virtual disks: a line for each.
pub(crate) fn histograms(histograms: &[VscsiHistogram]) -> String {
    let head = ["world", "disk", "what", "of", "count", "min", "mean", "max", "95 % at most"];
    let mut table = Table::new(&head).left(&[0, 1, 2, 3]);
    for one in histograms {
        let of = match one.direction {
            Some(Direction::Read) => "reads",
            Some(Direction::Write) => "writes",
            Some(Direction::Other) | None => "all",
        };
        let what = match one.metric {
            Metric::IoLength => "bytes",
            Metric::SeekDistance => "blocks to the last",
            Metric::SeekDistanceWindowed => "blocks to the closest of 16",
            Metric::Latency => "latency us",
            Metric::Outstanding => "outstanding",
            Metric::Interarrival => "us between two",
        };
        let numbers = [one.min, one.mean, one.max].map(|number| whole(number as f64));
        let [min, mean, max] = numbers;
        let bound = most_are_at_most(one);
        let count = whole(one.count as f64);
        let world = one.world.to_string();
        let names = [world, clean(&one.disk), what.into(), of.into()];
        table.row(names.into_iter().chain([count, min, mean, max, bound]).collect());
    }
    table.render()
}

/// The limit of the bin in which 95 % of the commands are reached.
fn most_are_at_most(histogram: &VscsiHistogram) -> String {
    /// Commands in a hundred that may be above it.
    const ABOVE: f64 = 0.05;
    let limits = histogram.bins.iter().filter_map(|bin| bin.limit);
    let bound = limits.clone().find(|limit| histogram.share_above(*limit) <= ABOVE);
    match (bound, limits.max()) {
        (Some(limit), _) => whole(limit as f64),
        (None, Some(last)) => format!("above {}", whole(last as f64)),
        (None, None) => String::new(),
    }
}
