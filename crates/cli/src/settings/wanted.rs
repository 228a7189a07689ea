//! What hosts are to be set to: as most of them are, as one of them is, or as lines say.

use counters::DeviceId;
use knobs::{Knob, Line, Setting};

use super::{
    depths,
    difference::Difference,
    fleet::Fleet,
    goals::{Wanted, goals},
    host::{At, Host},
};
use crate::Result;

/// What hosts are to be like.
pub(crate) enum Model<'a> {
    /// As most of them are, but for what a vendor says otherwise; where lines are given, what these say alone.
    Most,
    /// As the host of that name.
    Host(&'a str),
}

/// What each host is to be set to.
///
/// # Errors
/// One line: a line that sets nothing of hosts or is for nothing that they have, a model that is none of
/// them.
pub(crate) fn wanted(
    fleet: &Fleet,
    differences: &[Difference],
    model: &Model<'_>,
    lines: &[String],
) -> Result<Vec<Wanted>> {
    let mut wanted = vec![Wanted::default(); fleet.hosts.len()];
    let like = match model {
        Model::Most => None,
        Model::Host(name) => {
            let place = fleet.hosts.iter().position(|host| host.name == *name);
            let known = fleet.hosts.iter().map(|host| host.name.as_str());
            Some(place.ok_or_else(|| knobs::unknown("host", name, known))?)
        }
    };
    if like.is_some() || lines.is_empty() {
        let others = differences.iter().filter(|one| !one.values[0].0.is_depth());
        for goal in others.flat_map(|one| goals(fleet, one, like)) {
            wanted[goal.host].add(goal);
        }
        depths::add(fleet, differences, like, &mut wanted);
    }
    for line in lines {
        add(fleet, line, &mut wanted)?;
    }
    Ok(wanted)
}

/// Adds what a line sets on each host that has what it names.
fn add(fleet: &Fleet, text: &str, wanted: &mut [Wanted]) -> Result<()> {
    let line: Line = text.parse()?;
    let mut any = false;
    for (host, wanted) in fleet.hosts.iter().zip(wanted) {
        if line.host.as_deref().is_some_and(|name| !is_match(name, &host.name)) {
            continue;
        }
        for setting in &line.settings {
            keeps_others(host, setting)?;
            for knob in on(fleet, host, setting)? {
                any = true;
                wanted.knobs.retain(|known| !known.is_turned_by(&knob));
                wanted.knobs.push(knob);
            }
        }
    }
    match any {
        true => Ok(()),
        false => Err(format!("--set {text}: no host has what it sets").into()),
    }
}

/// Refuses what a line says of a module beside its depth where a host has something else: the plan repeats what each
/// host has.
fn keeps_others(host: &Host, setting: &Setting) -> Result<()> {
    let Setting::ModuleDepth { driver, .. } = setting else { return Ok(()) };
    let own = host.module(driver).map(|module| &module.others);
    if driver.others.is_empty() || own.is_none_or(|own| *own == driver.others) {
        return Ok(());
    }
    Err(format!(
        "--set {setting}: other parameters of a module stay as each host has them; leave out `{}`",
        driver.others
    )
    .into())
}

fn on(fleet: &Fleet, host: &Host, setting: &Setting) -> Result<Vec<Knob>> {
    if matches!(
        setting,
        Setting::Pvscsi { .. }
            | Setting::Allocation { .. }
            | Setting::StorageIoControl { .. }
            | Setting::DepthByLatency { .. }
    ) {
        return Err(format!("--set {setting}: esxcli sets nothing of that kind on a host").into());
    }
    if matches!(setting, Setting::Advanced { option, .. } if !host.uses(*option)) {
        return Ok(Vec::new());
    }
    let devices: Vec<Option<DeviceId>> = match setting.device() {
        None => vec![None],
        Some(name) => {
            let is_meant = |id: &DeviceId| is_match(name, fleet.name_of(*id));
            host.devices.iter().map(|device| device.id).filter(is_meant).map(Some).collect()
        }
    };
    let mut knobs = Vec::new();
    for device in devices {
        // An option that a version does not have is refused by its host alone, in the plan.
        knobs.extend(setting.on(&At { host, device })?);
    }
    Ok(knobs)
}

/// Whether a name is meant by one in which `*` is anything.
fn is_match(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_anything() {
        let table = [
            ("naa.1", "naa.1", true),
            ("naa.1", "naa.12", false),
            ("naa.1*", "naa.12", true),
            ("*", "x", true),
            ("*2", "naa.12", true),
            ("naa.*5*9", "naa.1559", true),
            ("naa.*5*9", "naa.1999", false),
            ("a*a", "a", false),
        ];
        for (pattern, name, matches) in table {
            assert_eq!(is_match(pattern, name), matches, "{pattern} {name}");
        }
    }
}
