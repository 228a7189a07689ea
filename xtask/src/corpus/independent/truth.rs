//! What is so in a capture, stated beside it: from how it was made, and from what the sources of the
//! reference call a trouble (esxi-host-stack.md section 7). Nothing here knows how a diagnosis
//! judges.

use std::ops::Range;

use super::host::{Host, Media};
use super::recording::{Io, Row, vms_on};
use crate::corpus::score::{Sure, Truth};

/// What decides whether a trouble is certain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    /// Commands wait in the VMkernel for a slot.
    Wait(usize),
    /// They wait longer than they are served, and long for every source.
    Suffer(usize),
    /// The device answers late.
    Answer(usize),
    /// A flow's own limit holds its commands.
    Hold(usize),
    /// The family has judged.
    Stated(Sure),
}

/// A trouble as a family planted it.
pub(super) struct Claim {
    pub(super) causes: Vec<&'static str>,
    pub(super) places: Vec<String>,
    pub(super) rows: Range<usize>,
    pub(super) severity: String,
    pub(super) measure: Measure,
}

/// Rows from which a trouble is more than one odd sample.
const ROWS: usize = 2;

/// KAVG above 2 ms is a trouble for every source that gives a number but [ELA 6.4]'s 3 ms.
const KAVG_MS: f64 = 3.0;

/// "Usually zero, if it is not, you are overwhelming the device queue" [S0], whose case has 0.45 ms
/// and QUED 29; [DRILL] warns from 10 queued.
const QUED: f64 = 10.0;

/// DAVG above which every source calls the array slow ([ELA 2012-04], [ELA 6.4]).
const DAVG_MS: f64 = 25.0;

/// A second: no policy of an array delays so long what a guest would give up after ten (section 12).
const STALL_MS: f64 = 1000.0;

/// DAVG from which [DRILL] warns.
const DAVG_WARNS_MS: f64 = 10.0;

/// "1.4 ms (which is high for an AFA)" [S0].
const DAVG_FLASH_MS: f64 = 1.4;

/// Commands per second and commands in flight below which nobody judges a latency
/// (esxtop-captures.md section 4: "ignores latency at <1 IOPS").
const LOAD_IOPS: f64 = 50.0;

/// All that is so in the capture: what was planted, and what follows from it.
pub(super) fn state(host: &Host, rows: &[Row], claims: Vec<Claim>) -> Vec<Truth> {
    let mut truths: Vec<Truth> = claims.into_iter().map(|claim| grade(host, rows, claim)).collect();
    for device in 0..host.devices.len() {
        consequences(host, rows, device, &mut truths);
    }
    for (adapter, nouns) in host.adapters.iter().enumerate() {
        if let Some(span) = span(rows, |row| row.adapters[adapter].adapter_queue > 0.0) {
            let paths = host.devices.iter().flat_map(|device| &device.paths);
            let paths = paths.filter(|path| path.adapter == adapter).map(|path| path.name.clone());
            let places = std::iter::once(nouns.name.clone()).chain(paths).collect();
            truths.push(may(&["adapter-queue"], places, span));
        }
    }
    for flow in 0..host.flows.len() {
        if let Some(span) = span(rows, |row| row.served[flow].capped) {
            truths.push(may(&["virtual-disk-cap"], vec![host.disk(flow)], span));
        }
    }
    truths
}

fn grade(host: &Host, rows: &[Row], mut claim: Claim) -> Truth {
    let held = &rows[claim.rows.clone()];
    let enough = held.len() >= ROWS;
    let (sure, severity) = match claim.measure {
        Measure::Stated(sure) => (sure, String::new()),
        Measure::Wait(device) => {
            let (davg_ms, kavg_ms, queued) = means(held, device);
            let strong = kavg_ms > KAVG_MS || (queued > QUED && kavg_ms > davg_ms / 4.0);
            (
                sure(strong && enough),
                format!("KAVG {kavg_ms:.2} ms, DAVG {davg_ms:.2} ms, QUED {queued:.1}"),
            )
        }
        Measure::Suffer(device) => {
            let (davg_ms, kavg_ms, _) = means(held, device);
            let strong = kavg_ms > KAVG_MS && kavg_ms > davg_ms;
            (sure(strong && enough), format!("KAVG {kavg_ms:.2} ms, DAVG {davg_ms:.2} ms"))
        }
        Measure::Hold(flow) => {
            let hold_ms = mean(held, |row| row.served[flow].hold_ms);
            let davg_ms = mean(held, |row| row.served[flow].davg_ms);
            let all = held.iter().all(|row| row.served[flow].hold_ms > 0.0);
            let strong = all && hold_ms > KAVG_MS && hold_ms > davg_ms;
            (sure(strong && enough), format!("held {hold_ms:.2} ms, DAVG {davg_ms:.2} ms"))
        }
        Measure::Answer(device) => {
            if !claim.causes.contains(&"array-qos")
                && steady(held, device)
                && means(held, device).0 < STALL_MS
            {
                claim.causes.push("array-qos");
            }
            let (davg_ms, ..) = means(held, device);
            let iops = mean(held, |row| row.devices[device].commands());
            let rest_ms = host.devices[device].service_ms;
            let flash = host.devices[device].media == Media::Flash;
            let seen = rows.len() > held.len() + ROWS;
            let tenfold =
                seen && flash && davg_ms > 12.0 * rest_ms && davg_ms > 2.0 * DAVG_FLASH_MS;
            let strong = (davg_ms > DAVG_MS * 1.1 || tenfold) && iops > LOAD_IOPS;
            (
                sure(strong && enough),
                format!("DAVG {davg_ms:.2} ms, {rest_ms:.2} ms at rest, {iops:.1}/s"),
            )
        }
    };
    let severity = [claim.severity, severity]
        .iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    Truth { causes: claim.causes, places: claim.places, rows: claim.rows, severity, sure }
}

/// The rate of a device stays: a closed loop with steady threads and a limit of the array look alike.
fn steady(rows: &[Row], device: usize) -> bool {
    let rate = |row: &Row| row.devices[device].commands();
    let middle = mean(rows, rate);
    mean(rows, |row| (rate(row) - middle).powi(2)).sqrt() < 0.1 * middle
}

fn sure(certain: bool) -> Sure {
    if certain { Sure::Certain } else { Sure::May }
}

/// Mean DAVG and KAVG (per command) and QUED.
fn means(rows: &[Row], device: usize) -> (f64, f64, f64) {
    let total =
        |value: fn(&Io) -> f64| rows.iter().map(|row| value(&row.devices[device])).sum::<f64>();
    let commands = total(Io::commands).max(1e-9);
    let queued = total(|io| io.queued) / rows.len().max(1) as f64;
    (total(|io| io.driver) / commands, total(|io| io.kernel) / commands, queued)
}

fn mean(rows: &[Row], value: impl Fn(&Row) -> f64) -> f64 {
    rows.iter().map(value).sum::<f64>() / rows.len().max(1) as f64
}

/// What a careful reader may also say of a device, for the arithmetic made it so.
fn consequences(host: &Host, rows: &[Row], device: usize, truths: &mut Vec<Truth>) {
    let places = host.places(device);
    let io = move |row: &Row| row.devices[device];
    // By the arithmetic: of 32 that are always there a sample shows 29 to 32 [S0].
    let active =
        |row: &Row| host.flows_of(device).map(|flow| row.served[flow].active()).sum::<f64>();
    let waits = |row: &Row| {
        io(row).device_queue > 0.0 && io(row).queued >= 1.0 && active(row) >= io(row).depth - 1.0
    };
    if let Some(span) = span(rows, waits) {
        let several = vms_on(host, device).len() > 1;
        let known = truths.iter().any(|truth| {
            truth.places.contains(&places[0])
                && truth.causes.iter().any(|cause| QUEUES.contains(cause))
        });
        if !known {
            truths.push(may(
                if several { &["device-depth", "dsnro"] } else { &["device-depth"] },
                places.clone(),
                span.clone(),
            ));
        }
        if several {
            truths.push(may(&["noisy-neighbour"], places.clone(), span));
        }
    }
    let qos = truths.iter().any(|truth| {
        truth.places.contains(&places[0])
            && truth.causes == ["array-qos"]
            && truth.sure == Sure::Certain
    });
    let warns_ms = if host.devices[device].media == Media::Flash {
        2.0 * DAVG_FLASH_MS
    } else {
        DAVG_WARNS_MS
    };
    let late =
        |row: &Row| io(row).commands() > 0.0 && io(row).driver / io(row).commands() > warns_ms;
    if let Some(span) = span(rows, late).filter(|_| !qos) {
        let flat = steady(&rows[span.clone()], device);
        let causes: &[&str] = if flat { &["array-slow", "array-qos"] } else { &["array-slow"] };
        truths.push(may(causes, places, span));
    }
}

/// The causes that say why a device's queue is full; one of them is right at a time.
const QUEUES: [&str; 4] = ["device-depth", "dsnro", "adaptive-throttling", "sioc"];

fn may(causes: &[&'static str], places: Vec<String>, rows: Range<usize>) -> Truth {
    Truth { causes: causes.to_vec(), places, rows, severity: "follows".to_owned(), sure: Sure::May }
}

/// From the first to the last row in which something holds.
fn span(rows: &[Row], holds: impl Fn(&Row) -> bool) -> Option<Range<usize>> {
    let mut held = (1..rows.len()).filter(|row| holds(&rows[*row]));
    let first = held.next()?;
    Some(first..held.last().unwrap_or(first) + 1)
}
