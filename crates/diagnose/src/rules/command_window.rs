//! The command window below a host: of an iSCSI session, or the RPC slots of an NFS mount.
//!
//! A target has so many commands of an iSCSI session under way and no more, whatever the devices' depths are. What waits for
//! it has its slot of the device, so no queue of the host shows it, and the array has not seen it: the wait is in DAVG alone
//! (reference, `array-and-control.md` 7.5). No row tells it from a slow array; a run knows it.

use knobs::Version;
use levels::most_first;

use super::{
    Case, Rank, Rule, changes,
    known_wait::{KnownWait, MOST},
    latency_evidence, number, sufferers,
};
use crate::{
    Cause, Change, CommandWindow, Device, Evidence, Facts, Finding, Flow, LevelKind, Queue, Spell,
    Threshold,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Fabric,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS],
    find,
};

/// A device whose commands wait for a window.
struct Held<'a> {
    device: &'a Device<'a>,
    window: &'a CommandWindow,
    spell: Spell,
    davg_ms: f64,
    /// Mean commands that wait.
    waiting: f64,
}

impl<'a> Held<'a> {
    /// As far as it counts: the samples in which commands take longer than they do without it.
    fn find(case: &'a Case<'_>, device: &'a Device<'a>) -> Option<Self> {
        let window = case.facts.device(device.flow.name).window.as_ref()?;
        let KnownWait { spell, davg_ms, inside: waiting, .. } =
            KnownWait::of_device(device, window.wait_ms)?;
        let is_wait = waiting >= device.limits.get(Threshold::Waiting);
        is_wait.then_some(Self { device, window, spell, davg_ms, waiting })
    }

    /// Whether both wait at one adapter; each NFS mount waits for its own slots.
    fn is_one_with(&self, other: &Self) -> bool {
        self.window.adapter.is_some() && self.window.adapter == other.window.adapter
    }
}

/// Whether a device is slow because its commands wait for a window.
pub(super) fn explains(case: &Case<'_>, device: &Device<'_>) -> bool {
    Held::find(case, device).is_some_and(|held| {
        held.window.wait_ms >= MOST * held.davg_ms
            && !case.is_array_full(device, &held.spell.samples)
    })
}

/// What is to be left alone where the commands of a full device queue wait for a window as well.
pub(super) fn instead_of_deeper(case: &Case<'_>, device: &Device<'_>) -> Option<String> {
    let held = Held::find(case, device)?;
    Some(format!(
        "Do not raise the depth: {} commands that have left the queue wait for {} already, and more would \
         wait there.",
        number(held.waiting),
        held.window.name()
    ))
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    let devices = case.host.busy_devices();
    let mut held: Vec<_> = devices.filter_map(|device| Held::find(case, device)).collect();
    most_first(&mut held, |held| held.waiting);
    let mut findings = Vec::new();
    while !held.is_empty() {
        let worst = held.remove(0);
        let (alike, rest) = held.into_iter().partition(|other| worst.is_one_with(other));
        held = rest;
        findings.push(judge(case, &worst, &alike));
    }
    findings
}

/// The finding about the device that waits most, and others that wait for the same.
fn judge(case: &Case<'_>, worst: &Held<'_>, alike: &[Held<'_>]) -> Finding {
    let Held { device, window, spell, davg_ms, waiting } = worst;
    let mut finding = case.finding(Cause::CommandWindow, device.object(), spell);
    let latency = if device.is_nfs { "GAVG" } else { "DAVG" };
    let others = match alike.len() {
        0 => String::new(),
        1 => ", and another device with it".into(),
        more => format!(", and {more} other devices with it"),
    };
    finding.sentence = format!(
        "Of the {} ms that {} takes below the host ({latency}) its commands wait {} ms for {}{others}: {} are \
         under way by it at most, and the array hears of a command when it has room.",
        number(*davg_ms),
        device.flow.name,
        number(window.wait_ms),
        window.name(),
        number(f64::from(window.takes))
    );
    finding.also = alike.iter().map(|held| held.device.object()).collect();
    finding.standing = waiting + alike.iter().map(|held| held.waiting).sum::<f64>();
    finding.limit = Some(f64::from(window.takes));
    finding.evidence = latency_evidence(device, spell);
    finding.evidence.push(Evidence::new("wait for the window", window.wait_ms, "ms"));
    finding.evidence.push(Evidence::new("window", f64::from(window.takes), "commands"));
    finding.confidence = 0.98;
    finding.sufferers = sufferers(case, device, spell);
    finding
        .sufferers
        .extend(alike.iter().flat_map(|held| held.device.tenants(&held.spell.samples)));
    most_first(&mut finding.sufferers, |party| party.slots);
    finding.causers = super::causers(&finding.sufferers);
    finding.changes = vec![if case.is_array_full(device, &spell.samples) {
        let what = "Ask less of the array first: it does all it can, and what no longer waits here would wait there.";
        changes::look(what, Vec::new())
    } else {
        fix(case.facts, window, device.flow.name)
    }];
    finding.do_not = vec![
        "Do not raise the depth of devices, nor DSNRO: more commands only wait for the same window.".into(),
    ];
    finding
}

fn fix(facts: &Facts, window: &CommandWindow, name: &str) -> Change {
    let old = facts.esxi_version.filter(|version| *version < Version::V8_0);
    match (&window.adapter, old) {
        (None, Some(version)) => changes::look(
            format!(
                "Move busy disks to another mount: each has a connection of its own. ESXi {} gives a mount one, 8.0 U1 and \
                 later several (nConnect), each with as many RPC slots.",
                version.name()
            ),
            Vec::new(),
        )
        .risking("Moving disks loads the array.", "Move them back"),
        (None, None) => changes::look(
            "Give the mount more connections, each of which has as many RPC slots: nConnect, ESXi 8.0 U1 on.",
            vec![format!("esxcli storage nfs param get -v {}", changes::shell(name))],
        )
        .risking("A server and a host have so many connections in all.", "Take them away again"),
        (Some(adapter), _) => changes::look(
            "Widen the window on the target, if it is less than MaxCmds; or use more paths by Round Robin: each \
             port has a window of its own.",
            vec![
                format!("esxcli iscsi adapter param get -A {}", changes::shell(adapter)),
                format!("esxcli storage nmp path list -d {}", changes::shell(name)),
            ],
        )
        .risking("The array has more to do at a time.", "Set it back"),
    }
}

#[cfg(test)]
mod tests {
    use knobs::Version;

    use crate::{Cause, CommandWindow, DeviceFacts, Facts, fixture::Bench};

    fn facts(devices: &[&str], wait_ms: f64) -> Facts {
        let window = CommandWindow { adapter: Some("vmhba64".into()), takes: 64, wait_ms };
        let known = DeviceFacts { window: Some(window), ..DeviceFacts::default() };
        let devices = devices.iter().map(|name| ((*name).into(), known.clone()));
        Facts { devices: devices.collect(), ..Facts::default() }
    }

    fn slow(davg_ms: f64, names: &[&str]) -> Bench {
        let mut bench = Bench::new(6);
        for name in names {
            let vm = bench.device(name, 128).vm(name);
            vm.iops_when(|s| 2_000.0 + 60.0 * (s % 2) as f64).davg(davg_ms);
        }
        bench
    }

    #[test]
    fn a_wait_for_the_window_is_not_the_arrays() {
        let finding = slow(40.0, &["naa.1"]).only(Cause::CommandWindow, &facts(&["naa.1"], 35.0));
        assert!(
            finding.sentence.contains("wait 35 ms for the command window"),
            "{}",
            finding.sentence
        );
        assert_eq!(finding.limit, Some(64.0));
        assert!(finding.do_not[0].starts_with("Do not raise the depth"), "{:?}", finding.do_not);
        // Without what a run knows the rows fit an array as well.
        let finding = slow(40.0, &["naa.1"]).only(Cause::ArraySlow, &Facts::default());
        assert!(!finding.sentence.contains("window"), "{}", finding.sentence);
    }

    #[test]
    fn an_array_that_is_slow_behind_a_window_is_named_as_well() {
        let bench = slow(80.0, &["naa.1"]);
        let facts = facts(&["naa.1"], 20.0);
        bench.first(Cause::CommandWindow, &facts);
        bench.first(Cause::ArraySlow, &facts);
    }

    #[test]
    fn devices_that_wait_at_one_adapter_are_one_finding() {
        let names = ["naa.1", "naa.2", "naa.3"];
        let finding = slow(40.0, &names).only(Cause::CommandWindow, &facts(&names, 35.0));
        assert_eq!((finding.also.len(), finding.sufferers.len()), (2, 3));
    }

    #[test]
    fn a_window_that_nobody_waits_for_is_none() {
        let mut jumping = Bench::new(6);
        let vm = jumping.device("naa.1", 128).vm("naa.1");
        vm.iops_when(|_| 30_000.0).davg_when(|s| if s < 2 { 0.7 } else { 2.4 });
        for (bench, wait_ms) in [(slow(4.0, &["naa.1"]), 0.1), (jumping, 0.0)] {
            let verdict = bench.diagnose(&Default::default(), &facts(&["naa.1"], wait_ms));
            assert!(verdict.findings.is_empty(), "{:?}", verdict.findings);
        }
    }

    #[test]
    fn a_host_that_gives_a_mount_one_connection_is_not_told_to_give_it_several() {
        let told = |esxi_version| {
            let mut facts = facts(&["naa.1"], 35.0);
            let window = facts.devices.get_mut("naa.1").and_then(|known| known.window.as_mut());
            window.unwrap().adapter = None;
            let facts = Facts { esxi_version, ..facts };
            slow(40.0, &["naa.1"]).first(Cause::CommandWindow, &facts).changes.remove(0)
        };
        let old = told(Some(Version::V7_0));
        assert!(old.what.starts_with("Move busy disks to another mount") && old.esxcli.is_empty());
        assert!(told(Some(Version::V8_0)).what.starts_with("Give the mount more connections"));
    }
}
