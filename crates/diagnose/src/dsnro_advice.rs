//! What to do about a device that DSNRO may hold: DSNRO is raised as far as the depth that the device has
//! without competition [S1]. Where that is not known, what would tell it is to be looked at first.
//!
//! esxcli prints that depth as `Device Max Queue Depth`, but not on 5.5 [LIST5]. There DQLEN tells it while one
//! VM alone has commands on the device, for DSNRO lowers it only while several have [S1], and so does the
//! parameter of the HBA's driver.

use knobs::{DSNRO, shell, show_device, show_parameters};

use crate::{
    Change, Device, Facts, Host,
    changes::{dsnro_within, look, raise_depth, set_dsnro, setting},
    driver_depth::{self, Hba},
};

/// Raises DSNRO of a device, or of a vVol protocol endpoint, at once and as far as the host allows:
/// up to the depth that the device is known to have.
pub(crate) fn raise(
    host: &Host<'_>,
    device: &Device<'_>,
    (from, to): (u32, u32),
    facts: &Facts,
) -> Change {
    let name = device.flow.name;
    let to = dsnro_within(name, to, facts);
    // Another device's depth says nothing of this one, which may have been lowered.
    let to = driver_depth::own(device, facts).map_or(from, |depth| to.min(depth));
    if to <= from {
        return raise_if_deeper(host, device, from, facts);
    }
    let (what, steps) = set_dsnro(name, (from, to), facts);
    let mut change = setting(what, Some(host), steps);
    change.risk = format!(
        "VMs on this device may take more slots from each other and from other hosts. A value above \
         Device Max Queue Depth is refused from 6.5 on and has no effect before.{}",
        if_old(facts)
    );
    change
}

/// The most that DSNRO of a device can be: while VMs compete, no deeper device gives them more.
pub(crate) fn most(device: &Device<'_>, facts: &Facts) -> u32 {
    dsnro_within(device.flow.name, u32::MAX, facts)
}

/// What to type instead where the host may be older than one of which nothing is known is taken for.
pub(crate) fn if_old(facts: &Facts) -> String {
    let old = || format!(" Up to ESXi {} it is {} of the host.", DSNRO.until.name(), DSNRO.path);
    facts.esxi_version.map_or_else(old, |_| String::new())
}

/// What is left where no depth above DSNRO is known: a host refuses a DSNRO above it [S1].
fn raise_if_deeper(host: &Host<'_>, device: &Device<'_>, from: u32, facts: &Facts) -> Change {
    let raise = format!("Raise DSNRO of {} above {from} as far as its", device.flow.name);
    let printed =
        format!("{raise} Device Max Queue Depth, once that is more: the line shows both.");
    let hidden = format!("{raise} depth without competition, once that is more.");
    look_there(host, device, from, facts, [printed, hidden])
}

/// What else is left there: a driver's depth of the same number as DSNRO. No line is told before it is
/// known which of both holds the device, for it could lower a depth that is more already.
pub(crate) fn raise_driver_if_not_deeper(
    host: &Host<'_>,
    device: &Device<'_>,
    (from, to): (u32, u32),
    facts: &Facts,
) -> Change {
    let driver = format!(
        "of {} is no more than DSNRO, it is the depth of the HBA's driver that holds it at {from}, and that is to be \
         raised first, to {to} where the driver takes as much",
        device.flow.name
    );
    let printed = format!("If Device Max Queue Depth {driver}: {LINES_ARE_TOLD}");
    let hidden = format!("If the depth without competition {driver}.");
    look_there(host, device, from, facts, [printed, hidden])
}

/// The same where it is not known either whether VMs compete.
pub(crate) fn raise_what_holds(
    host: &Host<'_>,
    device: &Device<'_>,
    (from, to): (u32, u32),
    facts: &Facts,
) -> Change {
    let name = device.flow.name;
    let which = format!(
        "is more than {from}, VMs compete and DSNRO is to be raised; where it is {from}, it is to be raised first, \
         to {to} where the driver takes as much"
    );
    let printed = format!(
        "Look at Device Max Queue Depth and \"No of outstanding IOs with competing worlds\" (DSNRO) of {name}. \
         Where the first {which}: {LINES_ARE_TOLD}"
    );
    let hidden = format!("Where the depth of {name} without competition {which}.");
    look_there(host, device, from, facts, [printed, hidden])
}

/// Deepens a device for which no command waits yet, as far as it is known what its depth is.
pub(crate) fn deepen(
    host: &Host<'_>,
    device: &Device<'_>,
    depths: (u32, u32),
    samples: &[usize],
    facts: &Facts,
) -> Change {
    let [own, dsnro] = facts.device(device.flow.name).last_depths();
    let is_alone = device.competitors(samples) < 2
        && !device.worlds.is_empty()
        && !device.hides_worlds(samples);
    match own {
        Some(depth) if depth > depths.0 => raise(host, device, depths, facts),
        None if !is_alone => raise_what_holds(host, device, depths, facts),
        _ => {
            let dsnro = dsnro.filter(|dsnro| !is_alone && *dsnro < depths.1);
            raise_depth(host, device, depths, dsnro, facts)
        }
    }
}

/// What the output of a line is good for.
const LINES_ARE_TOLD: &str =
    "with the output of the line as --esxcli FILE the lines to type are told.";

/// A look at what tells that depth, in the words where esxcli prints it and in those where it does not.
fn look_there(
    host: &Host<'_>,
    device: &Device<'_>,
    from: u32,
    facts: &Facts,
    [printed, hidden]: [String; 2],
) -> Change {
    let name = device.flow.name;
    if !facts.prints_no_depth(name) {
        return look(printed, vec![show_device(name)]);
    }
    let what = format!(
        "{hidden} ESXi 5.5 prints no Device Max Queue Depth: DQLEN in esxtop is it while one VM alone has commands \
         there, and the parameter of the HBA's driver says it."
    );
    let lines = match Hba::of(host, device, from, facts).module {
        Some(module) => vec![show_parameters(&shell(module))],
        None => vec!["esxcli storage core adapter list".into(), show_parameters("MODULE")],
    };
    look(what, lines)
}

#[cfg(test)]
mod tests {
    use knobs::Version;

    use crate::{Cause, DeviceFacts, Facts, fixture::Bench};

    /// Two VMs before 32 slots, or one whose rows are missing.
    fn full(has_worlds: bool) -> Bench {
        let mut bench = Bench::new(10);
        let device = bench.device("naa.1", 32);
        for vm in ["a", "b"] {
            device.vm(vm).iops(32_500.0).davg(0.49).kavg(0.45);
        }
        if !has_worlds {
            bench.without_worlds();
        }
        bench
    }

    #[test]
    fn nobody_is_sent_to_a_line_that_his_host_does_not_print() {
        let of_device = || {
            let device = DeviceFacts { dsnro: Some(32), ..DeviceFacts::default() };
            Facts { devices: [("naa.1".into(), device)].into(), ..Facts::default() }
        };
        let of_version = |version| Facts { esxi_version: Some(version), ..Facts::default() };
        let cases = [
            (of_device(), true),
            (of_version(Version::V5_5), true),
            (Facts::default(), false),
            (of_version(Version::V6_0), false),
            (Facts { esxi_version: Some(Version::V6_5), ..of_device() }, false),
        ];
        for (mut facts, is_old) in cases {
            for has_worlds in [true, false] {
                let cause = if has_worlds { Cause::Dsnro } else { Cause::DeviceDepth };
                let finding = full(has_worlds).first(cause, &facts);
                assert!(!finding.changes.is_empty());
                for change in &finding.changes {
                    let tells = change.what.contains("DQLEN in esxtop is it while one VM alone");
                    assert_eq!(tells, is_old, "{facts:?}: {}", change.what);
                    let is_printed = change.esxcli.iter().any(|line| line.contains("device list"));
                    assert_eq!(is_printed, !is_old, "{facts:?}: {:?}", change.esxcli);
                }
                let asks =
                    finding.raise_confidence.iter().any(|ask| ask.contains("Device Max Queue"));
                assert_eq!(asks, !is_old, "{facts:?}: {:?}", finding.raise_confidence);
            }
            facts.drivers.insert("vmhba1".into(), "lpfc".into());
            let finding = full(true).first(Cause::Dsnro, &facts);
            let line = "esxcli system module parameters list -m lpfc";
            assert_eq!(
                finding.changes[0].esxcli == [line],
                is_old,
                "{:?}",
                finding.changes[0].esxcli
            );
        }
    }
}
