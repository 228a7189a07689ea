//! What comes to bear of a device beyond DSNRO, where something sets that aside: how deep the device is nothing
//! shows while VMs compete at DSNRO, so both ends are simulated, no deeper and as deep as a driver makes it.

use diagnose::Facts;
use knobs::{Advanced, Setting};

use crate::{
    Error, answer,
    build::Plan,
    order::run_each,
    reading::Reading,
    run::{Figures, Key},
};

/// Readings with devices as deep as their drivers make them.
pub(crate) struct Deeper {
    pub(crate) facts: Facts,
    pub(crate) readings: Vec<Reading>,
    pub(crate) scales: Vec<Vec<f64>>,
    today: Vec<Figures>,
    /// How far they are from the recording, where one is furthest.
    pub(crate) miss: f64,
}

/// Those of some readings that give what was recorded with all that a driver gives above DSNRO, where nothing
/// shows how much that is: who leaves the queue to another at times would have been seen to let DQLEN rise.
pub(crate) fn deeper(
    plan: &Plan<'_>,
    each: impl Iterator<Item = (Reading, Vec<f64>)>,
    keys: &[Key],
) -> Result<Option<Deeper>, Error> {
    let Some(facts) = plan.deepest() else { return Ok(None) };
    let deepest = Plan { facts: &facts, ..*plan };
    let (readings, scales): (Vec<_>, Vec<_>) = each.unzip();
    let today = run_each(&deepest, (&readings, &scales), (&[], keys))?;
    let Ok((likely, miss)) = answer::likely(keys.to_vec(), today.clone()) else {
        return Ok(None);
    };
    Ok(Some(Deeper {
        readings: likely.iter().map(|&index| readings[index]).collect(),
        scales: likely.iter().map(|&index| scales[index].clone()).collect(),
        today: likely.iter().map(|&index| today[index].clone()).collect(),
        facts,
        miss,
    }))
}

/// Adds to the runs of today and after a change by which DSNRO may be out of force those with devices as deep as
/// their drivers make them, and those that leave open how often it is. Whether the depth is open between two ends.
pub(crate) fn add(
    [plan, changed]: [&Plan<'_>; 2],
    (readings, scales): (&[Reading], &[Vec<f64>]),
    (settings, keys): (&[Setting], &[Key]),
    (today, after): (&mut Vec<Figures>, &mut Vec<Figures>),
) -> Result<bool, Error> {
    if !settings.iter().any(|set| sets_aside(set) || lifts_at_times(set)) {
        return Ok(false);
    }
    let ways = ways(settings);
    let own = today[..readings.len()].to_vec();
    for way in &ways[1..] {
        after.extend(run_each(changed, (readings, scales), (way, keys))?);
        today.extend(own.iter().cloned());
    }
    let each = readings.iter().copied().zip(scales.iter().cloned());
    let Some(deeper) = deeper(plan, each, keys)? else { return Ok(false) };
    let deepest = Plan { facts: &deeper.facts, ..*changed };
    for way in &ways {
        after.extend(run_each(&deepest, (&deeper.readings, &deeper.scales), (way, keys))?);
        today.extend(deeper.today.iter().cloned());
    }
    Ok(true)
}

/// Whether it sets DSNRO aside altogether.
fn sets_aside(setting: &Setting) -> bool {
    match setting {
        Setting::StorageIoControl { .. } => true,
        Setting::Advanced { option, value } => {
            *option == Advanced::SchedQControlVmSwitches && *value == Some(0)
        }
        _ => false,
    }
}

/// Whether it does so at times: how many commands of one VM come in a row no counter shows.
fn lifts_at_times(setting: &Setting) -> bool {
    let Setting::Advanced { option, value: Some(value) } = setting else { return false };
    let default = option.info().default;
    match option {
        Advanced::SchedQControlSeqReqs => (1..default).contains(value),
        Advanced::SchedQControlVmSwitches => *value > default,
        _ => false,
    }
}

/// The settings, and where they lift DSNRO at times what never and what always lifts it.
fn ways(settings: &[Setting]) -> Vec<Vec<Setting>> {
    if !settings.iter().any(lifts_at_times) {
        return vec![settings.to_vec()];
    }
    let never: Vec<Setting> = settings.iter().filter(|set| !lifts_at_times(set)).cloned().collect();
    let off = Setting::Advanced { option: Advanced::SchedQControlVmSwitches, value: Some(0) };
    let always = never.iter().cloned().chain([off]).collect();
    vec![settings.to_vec(), never, always]
}
