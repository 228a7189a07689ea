//! Remedies at the two controllers of an array: by which of them hosts come to a volume, and which has it.

use knobs::{PathPolicy, PolicyChange, Setting};
use scenario::{Array, Target};

use crate::{known::path_policy, sweep::Edit};

use super::{candidate::Remedy, case::Case};

/// All hosts take the path to the controller that has the volume, where that is one at a time [ELA].
pub(super) fn policy(case: &Case) -> Result<Vec<Remedy>, String> {
    let controllers = array(case).and_then(|(array, _)| array.config.queues.controllers);
    if !controllers.ok_or(NONE)?.active_passive {
        return Err(
            "either controller of its array answers for a volume (no `active_passive`)".into()
        );
    }
    let (host, window) = case.place();
    let mru = PathPolicy::MostRecentlyUsed;
    if path_policy(&case.scenario, host, window, case.device) == mru {
        return Err(format!("it is {} already", mru.plug_in()));
    }
    let (device, policy) = (case.device().name.clone(), PolicyChange::PlugIn(mru));
    let what = format!("path policy {}", mru.plug_in());
    Ok(vec![Remedy::sets(what, [Setting::PathPolicy { device, policy }])])
}

/// The other controller has the volume from the beginning.
pub(super) fn owner(case: &Case) -> Result<Vec<Remedy>, String> {
    let (array, target) =
        array(case).filter(|(array, _)| array.config.queues.controllers.is_some()).ok_or(NONE)?;
    let to = 2 - array.config.volumes[target.volume as usize].owner;
    let store = case.datastore();
    let line = format!("on array {}: the volume of {store} to controller {to}", array.name);
    let edit = Edit::OtherController(case.device().name.clone());
    Ok(vec![Remedy::by_hand(format!("{store} at controller {to}"), edit, line)])
}

/// Why there is nothing to choose.
const NONE: &str = "its array has no two controllers (`controllers`)";

/// The array behind the device, and a volume of it there.
fn array(case: &Case) -> Option<(&Array, &Target)> {
    let host = case.host();
    let mut disks = host.config.vdisks.iter().zip(&host.targets);
    let (_, target) = disks.find(|(disk, _)| disk.device == case.device)?;
    Some((&case.scenario.arrays[target.array], target))
}
