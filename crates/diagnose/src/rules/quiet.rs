//! Who is quiet beside a VM that alone waits for a full queue: its commands hardly wait in the host, but at the array,
//! behind those of the other, and a deeper queue sends more of those there. What the array has left is not known.

use std::cmp::Ordering::Equal;

use knobs::Setting;

use super::{
    Case, changes,
    device_depth::DSNRO_DEFAULT,
    noisy_neighbour::{ENOUGH_COMMANDS, MODEST_SHARE},
    number,
    who_pays::waits_alone,
};
use crate::{Cause, Change, Device, Finding, FullQueue, Party, Step, Threshold, dsnro_advice};

/// The part of its time at the array that a command of a VM waits in the host at most for its latency to be the array's.
const HARDLY: f64 = 0.5;

/// Tells in a finding about a full queue, for which nothing else speaks against a deeper one, that it is the quiet ones who
/// may pay for it, and what is to be done where it is they who are slow.
pub(super) fn tell(case: &Case<'_>, device: &Device<'_>, full: &FullQueue, finding: &mut Finding) {
    if case.array(device).is_some() || finding.caution.is_none() || full.competitors < 2 {
        return;
    }
    let tenants = device.tenants(&full.spell.samples);
    let Some(own) = waits_alone(&tenants).filter(|_| tenants.len() > 1) else { return };
    let quiet = slowest_quiet(case, device, full, &tenants).filter(|quiet| quiet.name != own.name);
    let told = quiet.map(|quiet| told(quiet, own));
    for (quiet, told) in quiet.iter().zip(&told) {
        for deeper in finding.changes.iter_mut().filter(|change| !change.steps.is_empty()) {
            deeper.risk +=
                &format!(" Where the array has no more to give, {} pays: {told}.", quiet.name);
            deeper.what =
                format!("{}. {} may pay for it.", deeper.what.trim_end_matches('.'), quiet.name);
        }
    }
    if full.depth < DSNRO_DEFAULT {
        finding.changes.insert(0, leave(device, full, own, quiet));
    } else if let (Some(quiet), Some(told)) = (quiet, told) {
        // Before those that take a reboot.
        let place = finding.changes.len().min(1);
        let fewer = fewer(case, device, (finding.cause, full), [own, quiet], &told);
        finding.changes.splice(place..place, fewer);
    }
}

/// What is below DSNRO's default somebody lowered, and may have meant it.
fn leave(device: &Device<'_>, full: &FullQueue, own: &Party, quiet: Option<&Party>) -> Change {
    let what = format!(
        "Leave {} at {} if it was lowered for {}, to less than DSNRO's default of {}: nearly all that waits is {}'s own.",
        device.flow.name,
        number(full.depth),
        quiet.map_or("the others there", |quiet| &quiet.name),
        number(DSNRO_DEFAULT),
        own.name
    );
    let risk = format!("{} waits as long as it does.", own.name);
    changes::look(what, Vec::new()).risking(&risk, "Nothing to undo")
}

/// The VM that takes longest of those that have few of the commands on a device and whose own hardly wait for its slots.
fn slowest_quiet<'p>(
    case: &Case<'_>,
    device: &Device<'_>,
    full: &FullQueue,
    tenants: &'p [Party],
) -> Option<&'p Party> {
    let slots: f64 = tenants.iter().map(|vm| vm.slots).sum();
    let seconds: f64 = full.spell.samples.iter().map(|s| case.host.interval_s(*s)).sum();
    let is_quiet = |vm: &&Party| {
        vm.slots <= MODEST_SHARE * slots
            && vm.waiting.is_some_and(|waiting| waiting <= HARDLY * vm.slots)
            && vm.iops * seconds >= ENOUGH_COMMANDS
            && vm.gavg_ms >= Some(device.limits.get(Threshold::QosMs))
    };
    tenants
        .iter()
        .filter(is_quiet)
        .max_by(|a, b| a.gavg_ms.partial_cmp(&b.gavg_ms).unwrap_or(Equal))
}

/// Where the time of the quiet one is.
fn told(quiet: &Party, own: &Party) -> String {
    format!(
        "it takes {} ms a command, {} of them below the host, where {} has {} commands",
        number(quiet.gavg_ms.unwrap_or_default()),
        number(quiet.slots * 1000.0 / quiet.iops),
        own.name,
        number(own.slots)
    )
}

/// Half of the slots, where DSNRO is known and the device's own: whether commands only waited at the array is seen then.
fn fewer(
    case: &Case<'_>,
    device: &Device<'_>,
    (cause, full): (Cause, &FullQueue),
    [own, quiet]: [&Party; 2],
    told: &str,
) -> Option<Change> {
    let (name, from) = (device.flow.name, full.depth as u32);
    let to = from / 2;
    let [_, known] = case.facts.device(name).last_depths();
    let dsnro = known.or((cause == Cause::Dsnro).then_some(from))?;
    let (_, steps) = changes::set_dsnro(name, (dsnro, to), case.facts);
    let is_own = matches!(steps[..], [Step { set: Setting::SchedNumReqOutstanding { .. }, .. }]);
    if !is_own {
        return None;
    }
    let what = format!(
        "Where {quiet} is who is slow ({told}), the reverse: lower DSNRO of {name} to {to}, and compare. If CMDS/s stay and \
         DAVG falls, the other {more} only waited at the array; halve it again until CMDS/s fall.",
        quiet = quiet.name,
        more = from - to,
    );
    let mut change = changes::setting(what, Some(case.host), steps);
    change.risk = format!(
        "If the array does more at a time, {} does fewer a second.{}",
        own.name,
        dsnro_advice::if_old(case.facts)
    );
    Some(change)
}

#[cfg(test)]
mod tests {
    use crate::{ArrayFacts, Cause, DeviceFacts, Facts, Finding, fixture::Bench};

    /// 64 commands of one VM before a queue of so many slots, and one at a time of another, as a daemon measured.
    fn found(depth: u32, web_kavg_ms: f64, facts: &Facts) -> Finding {
        found_as(Cause::Dsnro, depth, web_kavg_ms, facts)
    }

    fn found_as(cause: Cause, depth: u32, web_kavg_ms: f64, facts: &Facts) -> Finding {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", depth);
        let kavg_ms = if depth == 32 { 2.73 } else { 8.69 };
        let davg_ms = if depth == 32 { 2.69 } else { 1.1 };
        let wobble = |s: usize| [1.0, 0.99, 1.01][s % 3];
        let batch = device.vm("batch").davg(davg_ms).kavg(kavg_ms);
        batch.iops_when(move |s| 63_600.0 / (kavg_ms + davg_ms) * wobble(s));
        let web = device.vm("web").davg(davg_ms).kavg(web_kavg_ms);
        web.iops_when(move |s| 900.0 / (davg_ms + web_kavg_ms) * wobble(s));
        bench.first(cause, facts)
    }

    fn known(dsnro: u32, array: Option<ArrayFacts>) -> Facts {
        let device = DeviceFacts {
            max_queue_depth: Some(64),
            dsnro: Some(dsnro),
            array: array.map(Into::into),
            ..DeviceFacts::default()
        };
        Facts { devices: [("naa.1".into(), device)].into(), ..Facts::default() }
    }

    #[test]
    fn who_is_quiet_beside_it_pays_for_a_deeper_queue_and_gains_by_a_shorter_one() {
        let finding = found(32, 0.15, &known(32, None));
        let [raise, lower, ..] = &finding.changes[..] else { panic!("{:?}", finding.changes) };
        assert!(raise.what.starts_with("Raise DSNRO of naa.1 from 32 to 64"), "{}", raise.what);
        let pays = "Where the array has no more to give, web pays: it takes 2.84 ms a command, 2.69 of them";
        assert!(raise.risk.contains(pays), "{}", raise.risk);
        assert!(lower.what.contains("lower DSNRO of naa.1 to 16"), "{}", lower.what);
        assert_eq!(lower.esxcli, ["esxcli storage core device set -d naa.1 -O 16"]);
        assert_eq!(lower.undo_lines(), ["esxcli storage core device set -d naa.1 -O 32"]);
    }

    #[test]
    fn nobody_is_told_first_to_raise_what_was_lowered_for_another() {
        let finding = found(8, 0.11, &known(8, None));
        assert!(finding.changes[0].what.starts_with("Leave naa.1 at 8 if it was lowered for web"));
        assert!(finding.changes[1].risk.contains("web pays"), "{:?}", finding.changes[1]);
        assert!(finding.changes.iter().all(|change| !change.what.contains("the reverse")));
    }

    #[test]
    fn a_dsnro_that_is_not_known_is_neither_lowered_nor_set_back() {
        let of = |depth: u32, max: u32, dsnro: Option<u32>| {
            let mut facts = known(0, None);
            let device = facts.devices.get_mut("naa.1").unwrap();
            (device.max_queue_depth, device.dsnro) = (Some(max), dsnro);
            let changes = found_as(Cause::DeviceDepth, depth, 0.15, &facts).changes;
            let lower = changes.iter().find(|change| change.what.contains("the reverse"));
            let lines = lower.map(|change| [change.esxcli.concat(), change.undo_lines().concat()]);
            (changes[0].what.starts_with("Leave naa.1 at"), lines)
        };
        // The device's own depth is what is full, and below what any driver gives: that was lowered as well.
        assert_eq!(of(8, 8, Some(32)), (true, None));
        assert_eq!(of(32, 32, None), (false, None));
        let line = |depth| format!("esxcli storage core device set -d naa.1 -O {depth}");
        assert_eq!(of(32, 32, Some(64)), (false, Some([16, 64].map(line))));
    }

    #[test]
    fn who_waits_in_the_host_too_or_before_a_known_array_is_not_quiet() {
        let is_told = |finding: Finding| {
            finding.changes.iter().any(|change| change.what.contains("the reverse"))
        };
        assert!(!is_told(found(32, 2.73, &known(32, None))));
        let array = ArrayFacts {
            name: "box".into(),
            service_ms: Some(2.5),
            busy: vec![0.3; 8],
            ..ArrayFacts::default()
        };
        assert!(!is_told(found(32, 0.15, &known(32, Some(array)))));
    }
}
