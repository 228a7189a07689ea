//! The numbers behind the verdict as tables: devices, VMs, virtual disks, adapters, and by what
//! each device was judged.
//!
//! Means are over the samples with commands; latencies are weighted by commands.

use counters::{Counter as C, DEFAULT_INTERVAL_S, Entity, EntityId, Kind};
use diagnose::Verdict;
use levels::{
    Column, Flow, Measured, Vdisk, latency_percentiles, most_first, tenants, usual, weighted_mean,
};
use maud::{Markup, html};

use super::{
    Host,
    rows::{Figure, mean},
    words::{number, text},
};

/// Rows of a table; the others are counted.
const ROWS: usize = 40;

/// A row: a name, what it belongs to, and numbers.
type Row = (String, String, Vec<Option<f64>>);

/// Every table that has a row.
pub(super) fn render(host: &Host<'_>) -> Markup {
    let recording = host.recording;
    let devices = &host.devices;
    let table = |title, heads, rows| table(host.verdict, title, heads, rows);
    html! {
        (table("Devices", &DEVICE_HEADS, devices.iter().map(|&id| device(recording, id)).collect()))
        (table("VMs and system worlds on devices", &VM_HEADS, vms(recording, devices)))
        (table("Virtual disks", &DISK_HEADS, disks(recording)))
        (table("Host adapters", &ADAPTER_HEADS, adapters(recording)))
        (profiles(host))
        p.note { "Means over the samples with commands, latencies weighted by commands; P95 is what 95 % "
            "of the commands do not exceed, each taken for the mean of its sample. " "“In slots” and “waiting” are means by Little’s law; ACTV and QUED "
            "are the largest that was sampled." }
    }
}

fn table(verdict: &Verdict, title: &str, heads: &[&str], mut rows: Vec<Row>) -> Markup {
    let left_out = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let has_owner = rows.iter().any(|row| !row.1.is_empty());
    html! {
        @if !rows.is_empty() {
            h3 { (title) }
            div.wide tabindex="0" role="region" aria-label=(title) {
                table {
                    thead {
                        tr {
                            th scope="col" { "name" }
                            @if has_owner { th scope="col" { "device" } }
                            @for head in heads { th.n scope="col" { (head) } }
                        }
                    }
                    tbody {
                        @for (name, owner, values) in &rows {
                            tr {
                                th.name scope="row" { (verdict.named(name)) }
                                @if has_owner { td.name { (verdict.named(owner)) } }
                                @for value in values { td.n { (number(*value)) } }
                            }
                        }
                    }
                }
            }
            @if left_out > 0 { p.more { "and " (left_out) " more with less load" } }
        }
    }
}

const DEVICE_HEADS: [&str; 12] = [
    "commands/s",
    "MiB/s",
    "DAVG ms",
    "KAVG ms",
    "QAVG ms",
    "GAVG ms",
    "P95 GAVG",
    "DQLEN",
    "in slots",
    "waiting",
    "max ACTV",
    "max QUED",
];

fn device<'a>(recording: &'a Measured, id: EntityId) -> Row {
    let flow = Flow::of(recording, id);
    let samples = with_commands(recording, |sample| flow.rate(sample));
    let column = |counter| Column::of(recording, id, counter);
    let sampled = |counter| column(counter).over(&samples).reduce(f64::max);
    let of = |value: Figure<'a>| mean(&samples, |s| value(&flow, s));
    let [davg, kavg, qavg, gavg] = latencies(&flow, &samples);
    // esxtop has GAVG alone for an NFS volume [ELA].
    let own = |value: Option<f64>| value.filter(|_| recording.entity(id).kind == Kind::Device);
    let values = vec![
        of(Flow::rate),
        of(Flow::mib_per_s),
        own(davg),
        own(kavg),
        own(qavg),
        gavg,
        p95(recording, &samples, |sample| Some((flow.gavg(sample)?, flow.rate(sample)?))),
        usual(column(C::DeviceQDepth), &samples),
        of(Flow::in_flight),
        own(of(Flow::waiting)),
        sampled(C::ActiveCommands),
        sampled(C::QueuedCommands),
    ];
    (flow.name.into(), String::new(), values)
}

const VM_HEADS: [&str; 5] = ["commands/s", "GAVG ms", "P95 GAVG", "in slots", "waiting"];

fn vms<'a>(recording: &'a Measured, devices: &[EntityId]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for &device in devices {
        for vm in tenants(recording, device) {
            let samples = with_commands(recording, |sample| vm.rate(sample));
            let [rate, time, slots, waiting] =
                [Flow::rate, time_of, Flow::in_flight, Flow::waiting]
                    .map(|of: Figure<'a>| vm.mean(&samples, of));
            let values = vec![
                rate,
                time.zip(rate).map(|(time, rate)| time / rate),
                p95(recording, &samples, |sample| Some((vm.gavg(sample)?, vm.rate(sample)?))),
                slots,
                waiting,
            ];
            rows.push((vm.name.into(), recording.entity(device).name.clone(), values));
        }
    }
    let inside = |row: &Row| row.2.iter().skip(3).flatten().sum::<f64>();
    most_first(&mut rows, inside);
    rows
}

/// Milliseconds that commands spend, per second.
fn time_of(flow: &Flow<'_>, sample: usize) -> Option<f64> {
    let rate = flow.rate(sample)?;
    if rate > 0.0 { Some(rate * flow.gavg(sample)?) } else { Some(0.0) }
}

const DISK_HEADS: [&str; 4] = ["reads + writes/s", "ms", "outstanding", "wait in guest ms"];

fn disks<'a>(recording: &'a Measured) -> Vec<Row> {
    let row = |(id, entity): (EntityId, &'a Entity)| {
        let disk = Vdisk::of(recording, id);
        let samples = with_commands(recording, |sample| disk.rate(sample));
        let [rate, inside] =
            [Vdisk::rate, Vdisk::outstanding].map(|of: fn(&Vdisk<'a>, usize) -> Option<f64>| {
                mean(&samples, |sample| of(&disk, sample))
            });
        let waited = |&s: &usize| Some((disk.guest_wait.at(s)?, disk.rate(s)?));
        let values = vec![
            rate,
            disk.latency_ms(&samples),
            inside,
            weighted_mean(samples.iter().map(waited)),
        ];
        let device = entity.device.map(|device| recording.entity(device).name.clone());
        (entity.name.clone(), device.unwrap_or_default(), values)
    };
    let mut rows: Vec<Row> = recording.of_kind(Kind::VirtualDisk).map(row).collect();
    let inside = |row: &Row| row.2.get(2).copied().flatten().unwrap_or(0.0);
    rows.retain(|row| inside(row) > 0.0);
    most_first(&mut rows, inside);
    rows
}

const ADAPTER_HEADS: [&str; 7] =
    ["commands/s", "MiB/s", "DAVG ms", "KAVG ms", "QAVG ms", "AQLEN", "in use"];

fn adapters<'a>(recording: &'a Measured) -> Vec<Row> {
    let row = |(id, entity): (EntityId, &'a Entity)| {
        let flow = Flow::of(recording, id);
        let samples = with_commands(recording, |sample| flow.rate(sample));
        let of = |value: Figure<'a>| mean(&samples, |s| value(&flow, s));
        let [davg, kavg, qavg, _] = latencies(&flow, &samples);
        let limit = usual(Column::of(recording, id, C::AdapterQDepth), &samples);
        let values =
            vec![of(Flow::rate), of(Flow::mib_per_s), davg, kavg, qavg, limit, of(Flow::in_flight)];
        (entity.name.clone(), String::new(), values)
    };
    let mut rows: Vec<Row> = recording.of_kind(Kind::Adapter).map(row).collect();
    let rate = |row: &Row| row.2.first().copied().flatten().unwrap_or(0.0);
    rows.retain(|row| rate(row) > 0.0);
    most_first(&mut rows, rate);
    rows
}

/// DAVG, KAVG, QAVG and GAVG over the commands of some samples.
fn latencies<'a>(flow: &Flow<'a>, samples: &[usize]) -> [Option<f64>; 4] {
    let of: [Figure<'a>; 4] = [Flow::davg, Flow::kavg, Flow::qavg, Flow::gavg];
    of.map(|of| flow.per_command(samples, of))
}

fn with_commands(recording: &Measured, rate: impl Fn(usize) -> Option<f64>) -> Vec<usize> {
    (0..recording.len()).filter(|&sample| rate(sample) > Some(0.0)).collect()
}

/// P95 of a latency over the commands of some samples; `of` has it and the rate of a sample.
fn p95(
    recording: &Measured,
    samples: &[usize],
    of: impl Fn(usize) -> Option<(f64, f64)>,
) -> Option<f64> {
    let seconds = |sample| recording.interval_s(sample).unwrap_or(DEFAULT_INTERVAL_S);
    let commands = |sample| of(sample).map(|(ms, rate)| (ms, rate * seconds(sample)));
    latency_percentiles(samples.iter().map(|&sample| commands(sample))).map(|[_, p95, _]| p95)
}

/// By which thresholds each busy device was judged.
fn profiles(host: &Host<'_>) -> Markup {
    let profiles = &host.verdict.profiles;
    html! {
        @if !profiles.is_empty() {
            h3 { "Judged by" }
            ul {
                @for one in profiles.iter().take(ROWS) {
                    li { span.name { (host.verdict.named(&one.device)) } ": profile " (one.profile.name()) ", " (text(&one.why)) }
                }
                @if profiles.len() > ROWS { li { "and " (profiles.len() - ROWS) " more" } }
            }
        }
    }
}
