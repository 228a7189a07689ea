//! The link by which a switch reaches others: what all hosts send through the switch crosses it, but for what stays there.
//!
//! As behind a host's own link no queue of a host shows what waits there, and no row tells it from a slow array, whoever
//! fills it; a run knows it, and which host that is.

use std::collections::BTreeMap;

use levels::most_first;

use super::{
    Case, Rank, Rule,
    adapter_queue::MOST as NAMED,
    changes,
    host_link::{Sender, causers, limit, senders},
    known_wait::{LinkTime, NO_DEEPER, OnLink, smaller, waiting},
    latency_evidence, number, sufferers_behind,
};
use crate::{
    Cause, Change, Device, Evidence, Finding, Flow, LevelKind, Queue, SwitchLink, Vdisk,
    limit_advice::Place, path_changes,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Fabric,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS],
    find,
};

type Held<'a> = OnLink<'a, SwitchLink>;

fn held<'a>(case: &'a Case<'_>, device: &'a Device<'a>) -> Option<Held<'a>> {
    let link = case.facts.device(device.flow.name).switch_link.as_ref()?;
    let SwitchLink { busy, time_ms, own_ms, .. } = link;
    Held::of(device, link, &LinkTime { busy, time_ms: *time_ms, own_ms: *own_ms })
}

/// Whether a device is slow because of the link of a switch, and not of the array's as well.
pub(super) fn explains(case: &Case<'_>, device: &Device<'_>) -> bool {
    held(case, device).is_some_and(|held| held.explains(case))
}

/// What is to be left alone where the commands of a full device queue wait for such a link as well.
pub(super) fn instead_of_deeper(case: &Case<'_>, device: &Device<'_>) -> Option<String> {
    let held = held(case, device)?;
    held.instead_of_deeper(&held.link.name())
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut switches: BTreeMap<&str, Vec<Held<'_>>> = BTreeMap::new();
    for held in case.host.busy_devices().filter_map(|device| held(case, device)) {
        switches.entry(&held.link.switch).or_default().push(held);
    }
    switches.into_values().filter_map(|held| judge(case, held)).collect()
}

/// The finding about the link of devices that all cross it, if it counts.
fn judge(case: &Case<'_>, mut held: Vec<Held<'_>>) -> Option<Finding> {
    most_first(&mut held, |held| held.inside);
    let (worst, waiting) = (held.first()?, waiting(case, &held)?);
    let Held { device, link, spell, link_ms, busy, .. } = worst;
    let mut finding = case.finding(Cause::SwitchLink, device.object(), spell);
    finding.also = held.iter().skip(1).map(|held| held.device.object()).collect();
    let name = link.name();
    finding.sentence = worst.told(&name, device.flow.name) + &whose(link);
    finding.standing = waiting;
    finding.evidence = vec![
        Evidence::new(format!("use of {name}"), 100.0 * busy, "%"),
        Evidence::new("moved over it by all hosts", moved(link), "MiB/s"),
        Evidence::new("a command on the link", *link_ms, "ms"),
    ];
    finding.evidence.extend(latency_evidence(device, spell));
    finding.confidence = 0.98;
    let crosses = |device: &Device<'_>| {
        let known = &case.facts.device(device.flow.name).switch_link;
        known.as_ref().is_some_and(|other| other.switch == link.switch)
    };
    let senders = senders(case, crosses, &spell.samples);
    // Where another host moves more, it is that one's VMs that fill the link.
    let is_most = link.hosts.first().is_none_or(|(_, most)| own_mib_per_s(&senders) >= 0.9 * most);
    let causers = if is_most { causers(&senders) } else { &[] };
    finding.causers = causers.iter().map(|causer| causer.party.clone()).collect();
    let all: Vec<_> =
        held.iter().flat_map(|held| sufferers_behind(case, held.device, &held.spell)).collect();
    let is_causer = |name: &str| causers.iter().any(|causer| causer.party.name == name);
    let others: Vec<_> = all.iter().filter(|party| !is_causer(&party.name)).cloned().collect();
    let devices = case.host.busy_devices().filter(|device| crosses(device)).collect();
    let at = Place { host: case.host, devices, samples: &spell.samples };
    finding.changes = fix(case, &held, &at, if others.is_empty() { &[] } else { causers });
    finding.sufferers = if others.is_empty() { all } else { others };
    most_first(&mut finding.sufferers, |party| party.slots);
    finding.do_not = vec![NO_DEEPER.into()];
    Some(finding)
}

/// What all hosts move over a link, in MiB a second.
fn moved(link: &SwitchLink) -> f64 {
    link.hosts.iter().map(|(_, mib_per_s)| mib_per_s).sum()
}

fn own_mib_per_s(senders: &[Sender]) -> f64 {
    senders.iter().map(|sender| sender.mib_per_s).sum()
}

/// Which host moves most over it, where there are several.
fn whose(link: &SwitchLink) -> String {
    let most = link.hosts.first().filter(|_| link.hosts.len() > 1);
    most.map_or(String::new(), |(host, own)| {
        let [own, all] = [*own, moved(link)].map(number);
        format!(" {} hosts share it; {host} moves {own} of the {all} MiB/s.", link.hosts.len())
    })
}

/// Other links first; a limit for `causers`, where others than these wait; a wider link, or what does not cross it. For who
/// is alone no other path is wider that anybody knows.
fn fix(case: &Case<'_>, held: &[Held<'_>], at: &Place<'_>, causers: &[Sender]) -> Vec<Change> {
    if let Some(first) = held.first().filter(|_| held.iter().all(OnLink::is_alone)) {
        return vec![smaller(&first.link.name())];
    }
    let with_room = held.iter().filter(|held| held.link.has_room_beside);
    let paths = with_room
        .filter_map(|held| path_changes::use_all_links(case.host, held.device, case.facts, false));
    let mut fix: Vec<Change> = paths.take(NAMED).collect();
    fix.extend(limit(case, at, causers));
    let Some(Held { link, .. }) = held.first() else { return fix };
    let what = format!(
        "Widen {} (more or faster ISLs), or have less cross it: hosts on the switch of their array.",
        link.name()
    );
    fix.push(
        changes::look(what, Vec::new())
            .risking("What is moved to another switch shares that one's links.", "Move it back"),
    );
    fix
}

#[cfg(test)]
mod tests {
    use crate::{Cause, DeviceFacts, Facts, Finding, PathFacts, SwitchLink, fixture::Bench};

    /// What is known of devices whose commands are on a link for so long, which hosts fill.
    fn facts(devices: &[&str], time_ms: f64, hosts: &[(&str, f64)]) -> Facts {
        let link = SwitchLink {
            switch: "edge".into(),
            busy: vec![1.0; 6],
            time_ms,
            own_ms: 0.52,
            hosts: hosts.iter().map(|(name, moved)| ((*name).into(), *moved)).collect(),
            has_room_beside: true,
        };
        let paths =
            PathFacts { policy: "VMW_PSP_FIXED".into(), working: 1, ..PathFacts::default() };
        let known =
            DeviceFacts { switch_link: Some(link), paths: Some(paths), ..DeviceFacts::default() };
        let devices = devices.iter().map(|name| ((*name).into(), known.clone()));
        Facts { devices: devices.collect(), ..Facts::default() }
    }

    /// 64 commands of 512 KiB out, and beside them one of 8 KiB.
    fn full() -> Bench {
        let mut bench = Bench::new(6);
        let vm = bench.device("naa.1", 128).vm("backup").size_kib(512.0);
        vm.iops_when(|s| 1_900.0 + 9.0 * (s % 2) as f64).davg(33.6);
        bench.device("naa.2", 128).vm("db").size_kib(8.0).iops(59.8).davg(33.6);
        bench
    }

    fn names(parties: &[crate::Party]) -> Vec<&str> {
        parties.iter().map(|party| &*party.name).collect()
    }

    const BOTH: [&str; 2] = ["naa.1", "naa.2"];

    #[test]
    fn whoever_fills_the_link_is_the_cause_be_it_another_host() {
        let finding: Finding =
            full().only(Cause::SwitchLink, &facts(&BOTH, 33.2, &[("esx-1", 952.0)]));
        let told = "The link of switch edge is 100 % full: of the 33.6 ms that a command of naa.1";
        assert!(finding.sentence.starts_with(told), "{}", finding.sentence);
        assert_eq!([names(&finding.causers), names(&finding.sufferers)], [["backup"], ["db"]]);
        assert!(finding.changes[0].what.starts_with("Give backup:scsi0:1 an IOPS limit of"));
        let others = [("esx-2", 4_000.0), ("esx-1", 952.0)];
        let finding = full().only(Cause::SwitchLink, &facts(&BOTH, 33.2, &others));
        let told = "2 hosts share it; esx-2 moves 4,000 of the 4,952 MiB/s.";
        assert!(finding.sentence.ends_with(told), "{}", finding.sentence);
        assert!(finding.causers.is_empty() && finding.sufferers.len() == 2);
        assert!(finding.changes[0].what.starts_with("Widen the link of switch edge"));
        let mut bench = full();
        bench.paths(2);
        let finding = bench.only(Cause::SwitchLink, &facts(&BOTH, 33.2, &others));
        assert!(finding.changes[0].what.contains("let it use all that are active"));
    }

    #[test]
    fn an_array_that_is_slow_behind_a_full_link_is_named_as_well() {
        let known = facts(&BOTH, 8.0, &[("esx-1", 952.0)]);
        full().first(Cause::SwitchLink, &known);
        full().first(Cause::ArraySlow, &known);
    }

    /// 512 KiB at 100 Mbit/s are 41.9 ms, one at a time: nobody is in the way, and no other path is known to be wider.
    #[test]
    fn a_link_that_is_slow_for_one_command_is_told_as_that() {
        let found = |own_ms, davg_ms| {
            let mut known = facts(&["naa.1"], 41.9, &[("esx-1", 12.0)]);
            for device in known.devices.values_mut() {
                device.switch_link.iter_mut().for_each(|link| link.own_ms = own_ms);
            }
            let mut bench = Bench::new(6);
            bench.paths(2).device("naa.1", 128).vm("a").size_kib(512.0).iops(23.5).davg(davg_ms);
            bench.only(Cause::SwitchLink, &known)
        };
        let finding = found(41.9, 42.4);
        let told = "The link of switch edge is slow for commands of that size, and 100 % of the time in use: of the 42.4 ms";
        assert!(finding.sentence.starts_with(told), "{}", finding.sentence);
        assert!(
            finding.sentence.ends_with("which is what its own 512 KiB take."),
            "{}",
            finding.sentence
        );
        let whats: Vec<&str> = finding.changes.iter().map(|change| &*change.what).collect();
        let told = "Widen the link of switch edge, or have guests send smaller commands: no other command is in the way.";
        assert_eq!(whats, [told]);
        // As long behind others it is theirs.
        assert!(found(0.7, 42.4).sentence.ends_with("behind what else goes over it."));
    }
}
