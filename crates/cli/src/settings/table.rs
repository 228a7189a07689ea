//! What differs and what to do, for a terminal: hosts that are alike in it stand together.

use counters::sorted::sort;
use std::collections::BTreeMap;

use counters::DeviceId;

use super::{
    Comparison,
    difference::{Difference, Untold, Value},
    fleet::Fleet,
    plan::{HostPlan, Plan, Step},
};
use crate::{
    table::Table,
    text::{BOLD, clean, counted, styled},
};

/// Rows of a table, names of a list and lines of a plan that are shown; JSON and scripts have all.
const ROWS: usize = 20;
const NAMES: usize = 3;
const LINES: usize = 6;

/// Below what differs. When DelayedAck acts is from [KB-ACK].
const WITHOUT_LINE: &str = "useANO and DelayedAck are told alone: kavg has no line for them (`esxcli iscsi adapter param set \
                            -A ADAPTER -k DelayedAck -v false`, or true, acts after a reboot)\n";

/// All of it.
pub(crate) fn render(comparison: &Comparison) -> String {
    let fleet = &comparison.fleet;
    let mut out = format!("{}\n", of_fleet(fleet));
    let mut section = |title: &str, text: String| {
        if !text.is_empty() {
            out.push_str(&format!("\n{}\n{text}", styled(BOLD, title)));
        }
    };
    section("What differs", differing(comparison));
    section("Devices of one array that differ, left as they are", uneven(comparison));
    section("What vendors say", vendors(comparison));
    section("Not in the plan", refused(comparison));
    section("The plan", planned(comparison));
    section("What is not told", lacks(fleet) + &untold(comparison));
    if comparison.is_alike() {
        let is_as_said = comparison.advised.is_empty();
        let alike = match (comparison.untold.is_empty(), is_as_said) {
            (true, true) => "All hosts are set alike, as far as their outputs tell.",
            (true, false) => "All hosts are set alike, and not as vendors say.",
            (false, true) => "What several hosts tell does not differ.",
            (false, false) => "What several hosts tell does not differ, and is not as vendors say.",
        };
        out.push_str(&format!("\n{alike}\n"));
    } else if comparison.plans.iter().any(|plan| !plan.plan.is_empty()) {
        out.push_str(
            "\nEvery line and the way back: --plan esxcli, --plan powercli or --plan ansible.\n",
        );
    }
    out
}

/// How many, of which versions, with which drivers, and what one device may get of all of them.
fn of_fleet(fleet: &Fleet) -> String {
    let shared = fleet.devices.iter().filter(|device| device.hosts > 1 && device.is_comparable);
    let release = |host: &super::host::Host| {
        let told = host.version.map(|version| version.name().to_owned());
        host.release.clone().or(told).map(|release| format!("ESXi {}", clean(&release)))
    };
    let releases = tally(fleet.hosts.iter().filter_map(release));
    let drivers = fleet.hosts.iter().flat_map(|host| &host.drivers);
    let drivers = tally(drivers.map(|module| module.driver.module.to_owned()));
    let of_each = [releases, drivers].into_iter().filter(|text| !text.is_empty());
    let of_each: String = of_each.map(|text| format!("; {text}")).collect();
    let head = format!(
        "{}, {}, {} of them on several hosts{of_each}",
        counted(fleet.hosts.len(), "host"),
        counted(fleet.devices.len(), "device"),
        shared.count()
    );
    match deepest(fleet) {
        Some((id, hosts, depth, dsnro)) => format!(
            "{head}\nThe most for one device: {depth} commands of {} together, {dsnro} where several \
             VMs of each compete ({})",
            counted(hosts, "host"),
            clean(fleet.name_of(id))
        ),
        None => head,
    }
}

/// The device to which its hosts together may send most: how many, how much, and how much with DSNRO.
fn deepest(fleet: &Fleet) -> Option<(DeviceId, usize, u64, u64)> {
    let mut sums = vec![(0, 0, 0); fleet.devices.len()];
    for device in fleet.hosts.iter().flat_map(|host| &host.devices) {
        let Some(depth) = device.max_depth.filter(|_| !device.is_captured) else { continue };
        let sum = &mut sums[device.id.index()];
        let competing = device.dsnro.map_or(depth, |dsnro| dsnro.min(depth));
        *sum = (sum.0 + 1, sum.1 + u64::from(depth), sum.2 + u64::from(competing));
    }
    let all = sums.into_iter().enumerate();
    let shared = all.filter(|(id, sum)| sum.0 > 1 && fleet.devices[*id].is_comparable);
    let most = shared.max_by_key(|(id, sum)| (sum.1, usize::MAX - id))?;
    let (id, (hosts, depth, dsnro)) = most;
    Some((DeviceId::new(id), hosts, depth, dsnro))
}

/// `7.0 (38), 8.0 (2)`
fn tally(names: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    counts.join(", ")
}

/// The first names, and how many more there are.
fn some<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let all = names.len();
    let names: Vec<String> = names.take(NAMES).map(clean).collect();
    match all.saturating_sub(NAMES) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn names(fleet: &Fleet, hosts: &[u32]) -> String {
    some(hosts.iter().map(|host| fleet.hosts[*host as usize].name.as_str()))
}

fn devices(fleet: &Fleet, ids: &[DeviceId]) -> String {
    match ids {
        [id] => clean(fleet.name_of(*id)),
        _ => {
            let mut arrays: Vec<String> =
                ids.iter().map(|id| fleet.devices[id.index()].array()).collect();
            sort(&mut arrays);
            arrays.dedup();
            let of = match &arrays[..] {
                [array] if !array.is_empty() => format!(" of {}", clean(array)),
                _ => String::new(),
            };
            format!("{}{of}", counted(ids.len(), "device"))
        }
    }
}

/// A row for each group of differences that are of the same hosts.
fn differing(comparison: &Comparison) -> String {
    let fleet = &comparison.fleet;
    let mut groups: Vec<(&Difference, Vec<DeviceId>)> = Vec::new();
    for one in &comparison.differences {
        let id = one.values[0].0.device();
        match groups.iter_mut().rev().find(|(known, _)| known.is_like(one)) {
            Some((_, ids)) => ids.extend(id),
            None => groups.push((one, id.into_iter().collect())),
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["setting", "of", "most have", "others have"]).left(&[0, 1, 2, 3]);
    for (one, ids) in groups.iter().take(ROWS) {
        let value = |(value, hosts): &(Value, Vec<u32>)| {
            format!("{} on {}", value.text(), names(fleet, hosts))
        };
        let is_clear = one.majority().is_some();
        let most = match one.values.first() {
            Some((value, hosts)) if is_clear => format!("{} ({})", value.text(), hosts.len()),
            _ => "no majority".into(),
        };
        let others = one.values.iter().skip(usize::from(is_clear)).map(value);
        let of = if ids.is_empty() { "the host".into() } else { devices(fleet, ids) };
        let others = others.collect::<Vec<_>>().join("; ");
        table.row(vec![one.values[0].0.what().into(), of, most, others]);
    }
    let has_no_line = groups.iter().any(|(one, _)| one.values[0].0.knob().is_none());
    let without = if has_no_line { WITHOUT_LINE } else { "" };
    table.render() + &more(groups.len(), "row") + without
}

/// That not all is shown.
fn more(all: usize, noun: &str) -> String {
    match all.saturating_sub(ROWS) {
        0 => String::new(),
        more => format!("and {} more (--json has all)\n", counted(more, noun)),
    }
}

fn uneven(comparison: &Comparison) -> String {
    let mut out = String::new();
    for one in comparison.uneven.iter().take(ROWS) {
        let values = one.values.iter().map(|(value, ids)| {
            let ids = match &ids[..] {
                [id] => clean(comparison.fleet.name_of(*id)),
                _ => counted(ids.len(), "device"),
            };
            format!("{} ({ids})", value.text())
        });
        let values = values.collect::<Vec<_>>().join(", ");
        out.push_str(&format!("{}: {} {values}\n", clean(&one.array), one.values[0].0.what()));
    }
    out + &more(comparison.uneven.len(), "line")
}

/// Devices that are not set as the vendor of their array says, and the lines that set them so.
fn vendors(comparison: &Comparison) -> String {
    let mut out = String::new();
    for one in &comparison.advised {
        for said in &one.said {
            let is = said.is.iter();
            let is = is.map(|(is, devices)| format!("{is} on {}", counted(*devices, "device")));
            out.push_str(&format!(
                "{}: {} {} [{}]; it is {}\n",
                one.advice.array,
                said.value.what(),
                said.value.text(),
                one.advice.source,
                is.collect::<Vec<_>>().join(", "),
            ));
        }
        let lines = one.lines.iter().map(|line| format!(" --set \"{}\"", clean(line)));
        let lines: String = lines.collect();
        let bound = one.bound.iter().map(|bound| format!("   {bound}\n"));
        let lines = (!lines.is_empty()).then(|| format!("  {lines}\n"));
        lines.into_iter().chain(bound).for_each(|line| out.push_str(&line));
    }
    out
}

/// What hosts do not take, each reason once, a line for each.
pub(crate) fn not_planned(comparison: &Comparison, between: &str) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<(u32, &str)>> = BTreeMap::new();
    for plan in &comparison.plans {
        for refused in &plan.refused {
            groups.entry(&refused.why).or_default().push((plan.host, &refused.line));
        }
    }
    let of = |(why, lines): (&&str, &Vec<(u32, &str)>)| {
        let mut hosts: Vec<u32> = lines.iter().map(|(host, _)| *host).collect();
        hosts.dedup();
        let others = match lines.len() - 1 {
            0 => String::new(),
            others => format!(" and {}", counted(others, "more line")),
        };
        let (names, line) = (names(&comparison.fleet, &hosts), clean(lines[0].1));
        format!("{names}: {line}{others}{between}{}", clean(why))
    };
    groups.iter().map(of).collect()
}

/// Of which hosts the way back leaves lines as they are, and how many.
pub(crate) fn without_way_back(comparison: &Comparison) -> Option<String> {
    let left = comparison.plans.iter().filter(|plan| plan.not_undone > 0);
    let hosts: Vec<u32> = left.map(|plan| plan.host).collect();
    let said =
        || format!("{}: {}", names(&comparison.fleet, &hosts), without_undo(&comparison.plans));
    (!hosts.is_empty()).then(|| said().trim_end().to_owned())
}

fn refused(comparison: &Comparison) -> String {
    let all = not_planned(comparison, "\n   ");
    let shown: String = all.iter().take(ROWS).map(|one| format!("{one}\n")).collect();
    shown + &more(all.len(), "reason")
}

/// The lines, those of hosts that get the same ones once.
fn planned(comparison: &Comparison) -> String {
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let with_lines = comparison.plans.iter().filter(|plan| !plan.plan.is_empty());
    for plan in with_lines.clone() {
        groups.entry(steps(&plan.plan)).or_default().push(plan.host);
    }
    if groups.is_empty() {
        return String::new();
    }
    let mut groups: Vec<(String, Vec<u32>)> = groups.into_iter().collect();
    levels::most_first(&mut groups, |(_, hosts)| {
        hosts.len() as f64 - f64::from(hosts[0]) / f64::from(u32::MAX)
    });
    let lines: usize = with_lines.clone().map(|plan| plan.plan.steps().count()).sum();
    let reboots = with_lines.clone().filter(|plan| plan.plan.reboots).count();
    let reboot = match reboots {
        0 => "none of them reboots".to_owned(),
        1 => "1 host reboots".to_owned(),
        _ => format!("{} reboot, one after the other", counted(reboots, "host")),
    };
    let mut out = format!(
        "{} for {}; {reboot}\n",
        counted(lines, "line"),
        counted(with_lines.count(), "host")
    );
    for (steps, hosts) in groups.iter().take(ROWS) {
        out.push_str(&format!("{}:\n{steps}", names(&comparison.fleet, hosts)));
    }
    out + &more(groups.len(), "group of hosts") + &without_undo(&comparison.plans)
}

fn steps(plan: &Plan) -> String {
    let mut out = String::new();
    let parts = [
        (&plan.now, "at once", true),
        (&plan.before_reboot, "before the reboot", plan.reboots),
        (&plan.after_reboot, "after the reboot", true),
    ];
    for (steps, when, is_said) in parts {
        if steps.is_empty() && !(is_said && when == "before the reboot") {
            continue;
        }
        let lines: Vec<String> = steps.iter().flat_map(Step::esxcli).take(LINES).collect();
        out.push_str(&format!("   {when}\n"));
        lines.iter().for_each(|line| out.push_str(&format!("      {}\n", clean(line))));
        if steps.len() > LINES {
            out.push_str(&format!("      and {}\n", counted(steps.len() - LINES, "more line")));
        }
        if when == "before the reboot" {
            out.push_str("   reboot\n");
        }
    }
    out
}

fn without_undo(plans: &[HostPlan]) -> String {
    match plans.iter().map(|plan| plan.not_undone).sum() {
        0 => String::new(),
        lines => {
            format!(
                "{} without a way back: no output tells what was there, or the host would not take it.\n",
                counted(lines, "line")
            )
        }
    }
}

/// What outputs would have to tell, and do not.
fn lacks(fleet: &Fleet) -> String {
    let lists = |has: &dyn Fn(&super::host::Host) -> bool, what: &str| {
        let hosts: Vec<&str> =
            fleet.hosts.iter().filter(|host| !has(host)).map(|host| host.name.as_str()).collect();
        match hosts.is_empty() {
            true => String::new(),
            false => format!("{}: {what}\n", some(hosts.into_iter())),
        }
    };
    [
        lists(
            &|host| host.version.is_some(),
            "the version, taken for 7.0 (`esxcli system version get`)",
        ),
        lists(
            &|host| host.devices.iter().any(|device| device.dsnro.is_some()),
            "depth and DSNRO of devices (`esxcli storage core device list`)",
        ),
        lists(
            &|host| host.lists_adapters || !host.drivers.is_empty(),
            "drivers (`esxcli storage core adapter list`)",
        ),
        unknown_drivers(fleet),
        lists(
            &|host| host.drivers.iter().all(|module| module.depth.is_some()),
            "what a driver's depth is set to (`esxcli system module parameters list -m MODULE`)",
        ),
    ]
    .concat()
}

/// Drivers that are in no table of kavg's, each with its hosts.
fn unknown_drivers(fleet: &Fleet) -> String {
    let mut hosts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for host in &fleet.hosts {
        for module in &host.unknown_drivers {
            hosts.entry(module).or_default().push(&host.name);
        }
    }
    let line = |(module, hosts): (&str, Vec<&str>)| {
        format!(
            "{}: driver {} is not known, and what it gives devices\n",
            some(hosts.into_iter()),
            clean(module)
        )
    };
    hosts.into_iter().map(line).collect()
}

/// What is off its default on some hosts, of which others tell nothing.
fn untold(comparison: &Comparison) -> String {
    let line = |one: &Untold| {
        let [hosts, silent] =
            [&one.hosts, &one.silent].map(|hosts| names(&comparison.fleet, hosts));
        let what = one.value.what();
        let shown_by = match one.value {
            Value::DelayedAck(_) => "iscsi adapter param get",
            _ => "system settings advanced list",
        };
        format!(
            "{silent}: {what}, which is {} on {hosts}, and {} by default (`esxcli {shown_by}`)\n",
            one.value.text(),
            one.default
        )
    };
    comparison.untold.iter().map(line).collect()
}
