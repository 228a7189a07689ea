//! The link of a port of the host itself: what all devices send by one adapter, or by one VMkernel port of software iSCSI,
//! crosses it.
//!
//! A driver has let go of a command before it is there, so no queue of the host shows what waits for it, and the array
//! has answered long before: the time is in DAVG alone, on every device behind the port, whoever fills it. No row tells it
//! from a slow array, for no row has the rate of a link; a run knows it.

use std::collections::BTreeMap;

use counters::Kind;
use knobs::DiskName;
use levels::most_first;

use super::{
    Case, Rank, Rule,
    adapter_queue::MOST as NAMED,
    changes,
    known_wait::{LinkTime, NO_DEEPER, OnLink, smaller, waiting},
    latency_evidence, number, sufferers,
};
use crate::{
    Cause, Change, Device, Evidence, Finding, Flow, HostLink, LevelKind, Object, Party, Queue,
    Vdisk,
    limit_advice::{self, Place},
    mean, path_changes,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Fabric,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS],
    find,
};

type Held<'a> = OnLink<'a, HostLink>;

fn held<'a>(case: &'a Case<'_>, device: &'a Device<'a>) -> Option<Held<'a>> {
    let link = case.facts.device(device.flow.name).link.as_ref()?;
    let HostLink { busy, time_ms, own_ms, .. } = link;
    Held::of(device, link, &LinkTime { busy, time_ms: *time_ms, own_ms: *own_ms })
}

/// Whether a device is slow because of the link of a port of the host, and not of the array's as well.
pub(super) fn explains(case: &Case<'_>, device: &Device<'_>) -> bool {
    held(case, device).is_some_and(|held| held.explains(case))
}

/// What is to be left alone where the commands of a full device queue wait for a link as well.
pub(super) fn instead_of_deeper(case: &Case<'_>, device: &Device<'_>) -> Option<String> {
    let held = held(case, device)?;
    held.instead_of_deeper(&held.link.name())
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut adapters: BTreeMap<&str, Vec<Held<'_>>> = BTreeMap::new();
    for held in case.host.busy_devices().filter_map(|device| held(case, device)) {
        adapters.entry(&held.link.adapter).or_default().push(held);
    }
    adapters.into_values().filter_map(|held| judge(case, held)).collect()
}

/// The finding about the link of devices that all are on it, if it counts.
fn judge(case: &Case<'_>, mut held: Vec<Held<'_>>) -> Option<Finding> {
    most_first(&mut held, |held| held.inside);
    let (worst, waiting) = (held.first()?, waiting(case, &held)?);
    let Held { device, link, spell, link_ms, busy, .. } = worst;
    let is_behind = |device: &Device<'_>| {
        let link = &case.facts.device(device.flow.name).link;
        link.as_ref().is_some_and(|other| other.adapter == worst.link.adapter)
    };
    let senders = senders(case, is_behind, &spell.samples);
    let causers = causers(&senders);
    // What NFS goes by has no row of its own [ELA].
    let at = match device.is_nfs {
        true => device.object(),
        false => Object::row(Kind::Adapter, &link.adapter),
    };
    let mut finding = case.finding(Cause::HostLink, at, spell);
    let others = held.iter().skip(1).filter(|held| held.device.is_nfs);
    finding.also = others.map(|held| held.device.object()).collect();
    let moved: f64 = senders.iter().map(|sender| sender.mib_per_s).sum();
    let whose = causers.first().filter(|_| senders.len() > 1).map_or(String::new(), |most| {
        let [own, all] = [most.mib_per_s, moved].map(number);
        format!(" {} moves {own} of the {all} MiB/s.", most.party.name)
    });
    let (name, device_name) = (link.name(), device.flow.name);
    let datastore = case.facts.datastores.get(device_name);
    let datastore = datastore.map_or(String::new(), |datastore| format!("{datastore}, "));
    finding.sentence = worst.told(&name, &format!("{datastore}{device_name}")) + &whose;
    finding.standing = waiting;
    finding.evidence = vec![
        Evidence::new(format!("use of {name}"), 100.0 * busy, "%"),
        Evidence::new("moved by the adapter", moved, "MiB/s"),
        Evidence::new("a command on the link", *link_ms, "ms"),
    ];
    finding.evidence.extend(latency_evidence(device, spell));
    finding.confidence = 0.98;
    let waits = |party: &Party| causers.iter().all(|causer| causer.party.name != party.name);
    let all = || held.iter().flat_map(|held| sufferers(case, held.device, &held.spell));
    finding.sufferers = all().filter(waits).collect();
    let devices = case.host.busy_devices().filter(|device| is_behind(device)).collect();
    let at = Place { host: case.host, devices, samples: &spell.samples };
    finding.changes = fix(case, &held, &at, causers, !finding.sufferers.is_empty());
    if finding.sufferers.is_empty() {
        finding.sufferers = all().collect();
    }
    most_first(&mut finding.sufferers, |party| party.slots);
    finding.causers = causers.iter().map(|causer| causer.party.clone()).collect();
    finding.do_not = vec![NO_DEEPER.into()];
    Some(finding)
}

/// Who moves data over a link.
pub(super) struct Sender {
    pub(super) party: Party,
    pub(super) mib_per_s: f64,
    size_kib: Option<f64>,
    /// Whether it is the host itself, which no limit holds.
    is_system: bool,
}

/// All of them on devices that are behind one, the one that moves most first.
pub(super) fn senders(
    case: &Case<'_>,
    is_behind: impl Fn(&Device<'_>) -> bool,
    samples: &[usize],
) -> Vec<Sender> {
    let mut senders: BTreeMap<&str, Sender> = BTreeMap::new();
    let devices = || case.host.busy_devices().filter(|device| is_behind(device));
    for disk in
        devices().filter(|device| device.is_nfs).flat_map(|device| case.host.vdisks_on(device))
    {
        let moved = |&sample: &usize| Some(disk.rate(sample)? * disk.size_kib(sample)? / 1024.0);
        let mib_per_s = mean(samples.iter().map(moved)).filter(|moved| *moved > 0.0);
        let party = Party::of_disk(disk.name, disk, samples);
        if let Some((mib_per_s, party)) = mib_per_s.zip(party) {
            let size_kib = Some(mib_per_s * 1024.0 / party.iops);
            senders.insert(disk.name, Sender { party, mib_per_s, size_kib, is_system: false });
        }
    }
    for world in devices().flat_map(|device| &device.worlds) {
        let moved = mean(samples.iter().map(|sample| world.flow.mib_per_s(*sample)));
        let party = Party::of(world.owner, &world.flow, samples);
        let Some((mib_per_s, party)) = moved.zip(party).filter(|moved| moved.0 > 0.0) else {
            continue;
        };
        match senders.get_mut(world.owner) {
            Some(sender) => {
                sender.party.add(&party);
                sender.mib_per_s += mib_per_s;
            }
            None => {
                let (size_kib, is_system) = (world.flow.size_kib(samples), world.is_system);
                senders.insert(world.owner, Sender { party, mib_per_s, size_kib, is_system });
            }
        }
    }
    let mut senders: Vec<Sender> = senders.into_values().collect();
    most_first(&mut senders, |sender| sender.mib_per_s);
    senders
}

/// Those that fill the link: whoever is alone, or moves more than the others by more than chance.
pub(super) fn causers(senders: &[Sender]) -> &[Sender] {
    let bytes =
        senders.iter().map(|sender| Party { slots: sender.mib_per_s, ..sender.party.clone() });
    let leading = super::causers(&bytes.collect::<Vec<_>>()).len();
    &senders[..leading]
}

/// A limit for those that fill a link, as far as one can have one.
pub(super) fn limit(case: &Case<'_>, at: &Place<'_>, causers: &[Sender]) -> Option<Change> {
    let limited: Vec<&Sender> = causers.iter().filter(|causer| !causer.is_system).collect();
    let rarest = limited.iter().min_by(|a, b| a.party.iops.total_cmp(&b.party.iops))?;
    // Of a virtual disk it is its VM.
    let vm = |causer: &&Sender| Party {
        name: DiskName::from(&*causer.party.name).vm,
        ..causer.party.clone()
    };
    let vms: Vec<Party> = limited.iter().map(vm).collect();
    let vms: Vec<&Party> = vms.iter().collect();
    limit_advice::hold(at, &vms, rarest.size_kib, case.facts)
}

/// Other ports first, for who is alone if they carry more; where others than those that fill it wait, a limit; a port of
/// their own.
fn fix(
    case: &Case<'_>,
    held: &[Held<'_>],
    at: &Place<'_>,
    causers: &[Sender],
    others_wait: bool,
) -> Vec<Change> {
    let is_alone = held.iter().all(OnLink::is_alone);
    let with_room =
        held.iter().filter(|held| held.link.has_room_beside && (!is_alone || held.link.is_slower));
    let paths = with_room.filter_map(|held| {
        path_changes::use_all_links(case.host, held.device, case.facts, held.link.is_slower)
    });
    let mut fix: Vec<Change> = paths.take(NAMED).collect();
    if others_wait {
        fix.extend(limit(case, at, causers));
    }
    let Some(Held { device, link, .. }) = held.first() else { return fix };
    let name = link.name();
    if is_alone {
        fix.push(smaller(&name));
        return fix;
    }
    if device.is_nfs {
        let what = format!(
            "Widen {name}, or have less go over it: move VMs to another host, or to a datastore that is not reached by it."
        );
        fix.push(
            changes::look(what, Vec::new())
                .risking("Moving disks loads both datastores.", "Move them back"),
        );
        return fix;
    }
    let what = match causers.first().filter(|_| others_wait) {
        Some(most) => format!(
            "Give {} a port of its own, or widen {name}: a datastore with paths by another adapter or VMkernel \
             port does not cross it.",
            most.party.name
        ),
        None => format!(
            "Widen {name}, or use more of them: paths by another adapter or VMkernel port, and round robin over \
             all."
        ),
    };
    let mut lines =
        vec![format!("esxcli storage nmp path list -d {}", changes::shell(device.flow.name))];
    if link.is_vmkernel {
        lines.push(format!("esxcli iscsi networkportal list -A {}", changes::shell(&link.adapter)));
    }
    fix.push(changes::look(what, lines));
    fix
}

#[cfg(test)]
mod tests {
    use crate::{Cause, DeviceFacts, Facts, Finding, HostLink, PathFacts, fixture::Bench};

    /// Devices of which each knows how long a command is on the link of `vmhba1`, and how full that is.
    fn facts(busy: f64, devices: &[(&str, f64)]) -> Facts {
        let known = |time_ms| {
            let link = HostLink {
                adapter: "vmhba1".into(),
                is_vmkernel: false,
                busy: vec![busy; 6],
                time_ms,
                own_ms: 0.52,
                has_room_beside: true,
                is_slower: false,
            };
            let paths =
                PathFacts { policy: "VMW_PSP_FIXED".into(), working: 1, ..PathFacts::default() };
            DeviceFacts { link: Some(link), paths: Some(paths), ..DeviceFacts::default() }
        };
        let devices = devices.iter().map(|(name, time_ms)| ((*name).into(), known(*time_ms)));
        Facts { devices: devices.collect(), ..Facts::default() }
    }

    /// 64 commands of 512 KiB out at 8 Gbit/s, and beside them one of 8 KiB.
    fn full() -> Bench {
        let mut bench = Bench::new(6);
        let vm = bench.device("naa.1", 128).vm("backup").size_kib(512.0);
        vm.iops_when(|s| 1_900.0 + 9.0 * (s % 2) as f64).davg(33.6);
        bench.device("naa.2", 128).vm("db").size_kib(8.0).iops(29.8).davg(33.6);
        bench
    }

    fn names(parties: &[crate::Party]) -> Vec<&str> {
        parties.iter().map(|party| &*party.name).collect()
    }

    #[test]
    fn whoever_fills_the_link_is_the_cause_and_who_waits_suffers() {
        let known = facts(1.0, &[("naa.1", 33.2), ("naa.2", 33.2)]);
        let finding = full().only(Cause::HostLink, &known);
        assert_eq!(finding.at.name, "vmhba1");
        assert!(
            finding.sentence.starts_with("The link of vmhba1 is 100 % full"),
            "{}",
            finding.sentence
        );
        assert_eq!([names(&finding.causers), names(&finding.sufferers)], [["backup"], ["db"]]);
        let whats = |finding: &Finding| -> Vec<String> {
            finding.changes.iter().map(|change| change.what.clone()).collect()
        };
        let told = whats(&finding);
        assert!(told[0].starts_with("Give backup:scsi0:1 an IOPS limit of"), "{told:?}");
        assert!(told[1].starts_with("Give backup a port of its own"), "{told:?}");
        let mut bench = full();
        bench.paths(2);
        let told = whats(&bench.only(Cause::HostLink, &known));
        assert!(told[0].contains("let it use all that are active"), "{told:?}");
        // Without what a run knows the rows fit an array as well.
        full().first(Cause::ArraySlow, &Facts::default());
    }

    #[test]
    fn an_array_that_is_slow_behind_a_full_link_is_named_as_well() {
        let known = facts(1.0, &[("naa.1", 8.0), ("naa.2", 8.0)]);
        full().first(Cause::HostLink, &known);
        full().first(Cause::ArraySlow, &known);
    }

    /// 12 commands of 256 KiB a second, one after the other with pauses, at 4 MiB/s: 62.5 ms each for its own data.
    #[test]
    fn a_link_that_is_slow_for_few_commands_one_at_a_time_is_told() {
        let mut known = facts(0.75, &[("naa.1", 62.5)]);
        let link = known.devices.get_mut("naa.1").and_then(|device| device.link.as_mut());
        link.expect("it has one").own_ms = 62.5;
        let mut bench = Bench::new(6);
        bench.device("naa.1", 128).vm("a").size_kib(256.0).iops(12.0).davg(62.9);
        let finding = bench.only(Cause::HostLink, &known);
        assert!(
            finding.sentence.contains("slow for commands of that size"),
            "{}",
            finding.sentence
        );
        let head = bench.diagnose(&Default::default(), &known).headline;
        assert!(head.contains("Link of the host's own port too slow, 62.9 ms"), "{head}");
    }

    #[test]
    fn a_link_that_nobody_waits_for_is_none() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 128).vm("a").size_kib(64.0).iops(900.0).davg(1.0);
        let found = bench.diagnose(&Default::default(), &facts(0.45, &[("naa.1", 0.52)])).findings;
        assert!(found.is_empty(), "{found:?}");
    }
}
