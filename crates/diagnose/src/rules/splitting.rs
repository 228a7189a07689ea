//! Splitting: large I/Os are cut into pieces on their way down, and complete with their last
//! piece [VMB14, S4].

use counters::Counter;
use knobs::{Advanced, Driver, Transport};

use super::{Case, Rank, Rule, array_qos, changes, host_link, number, switch_link};
use crate::{
    Adapter, Cause, Change, Device, Evidence, Facts, Finding, Flow, LevelKind, Threshold, mean,
};

/// Split commands of all from which none is left whole: the two are counted apart.
const ALL: f64 = 0.95;
/// Part of a command's time that is most of it.
const MOST: f64 = 0.5;
/// The pieces of a size are as large as it but for the last one, so more than half as large.
const HALF: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Adapter,
    rank: |_| Rank::Shape,
    reads: &[Flow::COUNTERS, &[Counter::SplitCommands, Counter::SplitCopies]],
    find,
};

/// Whether what a device takes longer than its array is for the pieces that its commands are known to be cut into.
pub(super) fn explains(case: &Case<'_>, device: &Device<'_>) -> bool {
    slows(case, device, &device.busy)
}

/// Whether it takes most of what a command takes, and longer than for whole ones: behind a link that is full the pieces
/// are as many bytes.
fn slows(case: &Case<'_>, device: &Device<'_>, samples: &[usize]) -> bool {
    let flow = &device.flow;
    let known = lowered(case.facts).zip(case.array(device)).zip(flow.size_kib(samples));
    let Some(((kb, array), size_kib)) = known else { return false };
    let [davg_ms, gavg_ms] = [Flow::davg, Flow::gavg].map(|ms| flow.per_command(samples, ms));
    let pieces = (size_kib / f64::from(kb)).ceil();
    pieces > 1.0
        && davg_ms >= gavg_ms.map(|ms| MOST * ms)
        && davg_ms.is_some_and(|ms| array.is_slowed_by_pieces(samples, ms, pieces))
        && !array_qos::applies(case, device)
        && !host_link::explains(case, device)
        && !switch_link::explains(case, device)
}

/// `/Disk/DiskMaxIOSize` where it is known to be lower than it is by itself.
fn lowered(facts: &Facts) -> Option<u32> {
    facts.max_io_kb.filter(|kb| *kb < Advanced::DiskMaxIoSize.info().default)
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.host.adapters.iter().filter_map(|adapter| judge(case, adapter)).collect()
}

fn judge(case: &Case<'_>, adapter: &Adapter<'_>) -> Option<Finding> {
    let flow = &adapter.flow;
    let behind = case
        .host
        .busy_devices()
        .filter(|device| device.paths.iter().any(|path| path.adapter == Some(adapter.id)));
    let sized = behind.filter_map(|device| Some((device, device.flow.size_kib(&device.busy)?)));
    let (device, _) = sized.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let limit = |threshold| device.limits.get(threshold);
    let spell = device.spell(|sample| {
        let split = adapter.split_commands.at(sample).filter(|split| *split > 0.0);
        let is_part = |(split, rate)| 100.0 * split >= limit(Threshold::SplitPercent) * rate;
        split.zip(device.flow.rate(sample)).is_some_and(is_part)
            && (device.flow.gavg(sample) >= Some(limit(Threshold::DavgMs))
                || slows(case, device, &[sample]))
    })?;
    let commands = mean(adapter.split_commands.over(&spell.samples))?;
    let pieces = mean(adapter.split_copies.over(&spell.samples)).map(|copies| copies / commands);
    let mut finding = case.finding(Cause::Splitting, adapter.object(), &spell);
    finding.sentence = format!(
        "{} cuts {} of {} commands a second into pieces{}: a command is as slow as its \
         last piece, and the array sees more commands than esxtop counts.",
        flow.name,
        number(commands),
        number(flow.mean_rate(&spell.samples)?),
        pieces.map_or_else(String::new, |pieces| format!(" ({} each)", number(pieces)))
    );
    finding.evidence = Evidence::of([
        ("commands split per second", Some(commands), "1/s"),
        ("pieces per split command", pieces, ""),
        ("mean size", flow.size_kib(&spell.samples), "KiB"),
        ("GAVG", flow.per_command(&spell.samples, Flow::gavg), "ms"),
    ])
    .collect();
    finding.confidence = 0.8 * spell.weight();
    finding.raise_confidence = vec!["The array's own count and size of commands".into()];
    finding.sufferers = device.tenants(&spell.samples);
    let driver = case.facts.drivers.get(flow.name);
    let all_are_split = commands >= ALL * flow.mean_rate(&spell.samples)?;
    let sizes = flow.size_kib(&spell.samples).zip(pieces).filter(|_| all_are_split);
    let piece_kib = sizes.map(|(size, pieces)| size / pieces);
    // Software iSCSI has a largest I/O of its own [LAMW].
    let is_smaller = |kib: f64| kib <= HALF * f64::from(Advanced::IscsiMaxIoSizeKb.info().default);
    let option = lowered(case.facts).filter(|_| slows(case, device, &spell.samples));
    finding.changes = vec![match (option, driver) {
        (Some(kb), _) => changes::cut_no_more(case.host, kb),
        (_, Some(driver)) if !is_iscsi(driver) => {
            look_elsewhere(&format!("{} is driven by {driver}", flow.name))
        }
        _ if piece_kib.is_some_and(is_smaller) => {
            look_elsewhere(&format!("Pieces of {} KiB are smaller", number(piece_kib?)))
        }
        _ => changes::raise_iscsi_io_size(case.host, driver.is_some()),
    }];
    finding.do_not = vec!["Do not expect it to lift a rate that the array holds by bytes.".into()];
    Some(finding)
}

fn is_iscsi(module: &str) -> bool {
    Driver::from_module(module).is_some_and(|driver| driver.transport == Transport::Iscsi)
}

fn look_elsewhere(why: &str) -> Change {
    let option = Advanced::DiskMaxIoSize.info().path;
    changes::look(
        format!(
            "{why}: nothing of software iSCSI cuts here. See what does: {option}, or the largest \
             command that the driver takes."
        ),
        vec![knobs::show_option(option)],
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{ArrayFacts, Cause, DeviceFacts, Facts, Thresholds, fixture::Bench};

    #[test]
    fn quick_commands_of_another_device_hide_no_split_ones() {
        let mut bench = Bench::new(6);
        bench.split(0.05, 4.0);
        bench.device("naa.1", 64).vm("a").iops(100.0).davg(30.0).size_kib(1_024.0);
        bench.device("naa.2", 64).vm("b").iops(1_900.0).davg(0.5);
        bench.first(Cause::Splitting, &Facts::default());
    }

    #[test]
    fn pieces_that_are_smaller_than_those_of_iscsi_are_cut_by_something_else() {
        let mut bench = Bench::new(6);
        bench.split(1.0, 16.0);
        bench.device("naa.1", 64).vm("a").iops(400.0).davg(30.0).size_kib(512.0);
        let finding = bench.first(Cause::Splitting, &Facts::default());
        assert!(finding.changes[0].what.contains("Pieces of 32 KiB are smaller"));
        assert!(finding.changes[0].what.contains("/Disk/DiskMaxIOSize"));
    }

    #[test]
    fn slow_commands_that_are_split_are_named() {
        let mut bench = Bench::new(6);
        bench.split(0.5, 4.0);
        bench.device("naa.1", 64).vm("a").iops(400.0).davg(30.0).size_kib(512.0);
        let finding = bench.first(Cause::Splitting, &Facts::default());
        assert!(finding.sentence.contains("200 of 400 commands a second into pieces (4 each)"));
    }

    #[test]
    fn an_option_that_cuts_them_is_put_back_where_whole_ones_are_quicker() {
        let told = |work: f64, max_io_kb, moving_ms| {
            let mut bench = Bench::new(6);
            bench.split(1.0, 16.0);
            bench.device("naa.1", 64).vm("a").iops(400.0).davg(21.0).size_kib(512.0);
            let array = ArrayFacts {
                service_ms: Some(5.0),
                moving_ms,
                busy: vec![work; 6],
                ..ArrayFacts::default()
            };
            let known = DeviceFacts { array: Some(array.into()), ..DeviceFacts::default() };
            let devices = BTreeMap::from([("naa.1".into(), known)]);
            let facts = Facts { max_io_kb, devices, ..Facts::default() };
            bench.diagnose(&Thresholds::default(), &facts).findings
        };
        let findings = told(0.1, Some(32), 0.0);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].cause, Cause::Splitting);
        let change = &findings[0].changes[0];
        assert_eq!(change.what, "Raise /Disk/DiskMaxIOSize from 32 to 32767.");
        assert!(told(0.1, Some(32_767), 0.0).is_empty());
        assert!(told(0.1, None, 0.0).is_empty());
        assert_eq!(told(0.95, Some(32), 0.0).len(), 1, "whole ones are less work");
        assert!(told(0.1, Some(32), 20.0).is_empty(), "whole ones take longer");
    }
}
