//! Changes of how the paths of a device are chosen: all of them, in turn, or by latency.

use knobs::{PathPolicy, PolicyChange, Setting, Version};

use crate::{Change, Device, Facts, Host, PathFacts, Step, changes};

const ROUND_ROBIN: PolicyChange = PolicyChange::PlugIn(PathPolicy::ROUND_ROBIN);

/// Lets a device use all its paths alike, where its policy is known not to: one path at a time, or
/// 1,000 commands before the next one [ELA 2016-03, BB].
pub(crate) fn use_all_paths(host: &Host<'_>, device: &Device<'_>, facts: &Facts) -> Option<Change> {
    let (paths, is) = of_several(device, facts)?;
    if is == ROUND_ROBIN {
        return take_turns(host, device, paths);
    }
    let what = format!("{}.", let_it_use_all(device, paths, ", if the array's vendor")?);
    Some(change(host, device, what, &[(ROUND_ROBIN, is)]))
}

/// The same where links behind the paths are full, so that a turn of 1,000 commands has one of them full while the
/// others rest: a command each in turn; by latency [DOC67] where links are `unlike`, for in turn each carries as much as
/// the slowest.
pub(crate) fn use_all_links(
    host: &Host<'_>,
    device: &Device<'_>,
    facts: &Facts,
    unlike: bool,
) -> Option<Change> {
    let (paths, is) = of_several(device, facts)?;
    if unlike && facts.esxi_version.is_none_or(|version| version >= Version::V6_7) {
        return by_latency(host, device, paths, is);
    }
    if is == ROUND_ROBIN {
        return take_turns(host, device, paths);
    }
    let what = let_it_use_all(device, paths, ", in turn, if the vendor")?;
    let turns =
        (PolicyChange::RoundRobin(after(1)), PolicyChange::RoundRobin(PathPolicy::ROUND_ROBIN));
    Some(change(host, device, format!("{what}."), &[(ROUND_ROBIN, is), turns]))
}

/// What is known of the paths of a device that has several, and its policy.
fn of_several<'a>(device: &Device<'_>, facts: &'a Facts) -> Option<(&'a PathFacts, PolicyChange)> {
    let paths = facts.device(device.flow.name).paths.as_ref().filter(|_| device.paths.len() > 1)?;
    Some((paths, PolicyChange::plug_in(&paths.policy)?))
}

/// Round robin, of a device that uses one path.
fn let_it_use_all(device: &Device<'_>, paths: &PathFacts, how: &str) -> Option<String> {
    (paths.working <= 1).then(|| {
        format!(
            "{} uses one of its {} paths ({}): let it use all that are active{how} allows \
             round robin",
            device.flow.name,
            device.paths.len(),
            paths.policy
        )
    })
}

/// Round robin after every command, of a device that has it after more.
fn take_turns(host: &Host<'_>, device: &Device<'_>, paths: &PathFacts) -> Option<Change> {
    let iops = paths.round_robin_iops.filter(|iops| *iops > 1)?;
    let what = format!(
        "Let round robin take the next path after every command of {} instead of every {iops}: most arrays ask for \
         that.",
        device.flow.name
    );
    let turns = (PolicyChange::RoundRobin(after(1)), PolicyChange::RoundRobin(turn_of(iops)));
    Some(change(host, device, what, &[turns]))
}

/// Round robin by latency, of a device that has it in turn or uses one path.
fn by_latency(
    host: &Host<'_>,
    device: &Device<'_>,
    paths: &PathFacts,
    is: PolicyChange,
) -> Option<Change> {
    let what = format!(
        "Let round robin choose the paths of {} by latency: in turn, each of their links carries as much as the slowest.",
        device.flow.name
    );
    let mut steps = Vec::new();
    let mut turn = PathPolicy::ROUND_ROBIN;
    if is == ROUND_ROBIN {
        turn = turn_of(paths.round_robin_iops?);
    } else {
        steps.push((ROUND_ROBIN, is));
    }
    steps.push((PolicyChange::RoundRobin(PathPolicy::LATENCY), PolicyChange::RoundRobin(turn)));
    Some(change(host, device, what, &steps))
}

/// Round robin after so many commands, whatever they move.
const fn after(iops: u32) -> PathPolicy {
    PathPolicy::RoundRobin { iops, bytes: u64::MAX }
}

/// The same as it was, where so many are the default.
const fn turn_of(iops: u32) -> PathPolicy {
    match PathPolicy::ROUND_ROBIN {
        PathPolicy::RoundRobin { iops: default, .. } if iops == default => PathPolicy::ROUND_ROBIN,
        _ => after(iops),
    }
}

/// Sets the policy of a device, each step with what takes it back.
fn change(
    host: &Host<'_>,
    device: &Device<'_>,
    what: String,
    steps: &[(PolicyChange, PolicyChange)],
) -> Change {
    let set = |policy| Setting::PathPolicy { device: device.flow.name.to_string(), policy };
    let step = |(to, from): &(PolicyChange, PolicyChange)| Step::new(set(*to), Some(set(*from)));
    let mut change = changes::setting(what, Some(host), steps.iter().map(step).collect());
    change.risk = "Paths that are not optimized must not be among the active ones.".into();
    change
}
