//! Outputs that are a table.

use control::HostState;
use knobs::{Driver, unknown};

use super::shown::Shown;
use crate::text::clean;

/// `storage core adapter list`; its columns are from memory (reference section 6.4).
pub(super) fn adapters(state: &HostState) -> Shown {
    let heads = &["HBA Name", "Driver", "Link State", "UID", "Capabilities", "Description"];
    let row = |adapter: &control::Adapter| {
        let what = Driver::from_module(&adapter.driver).map_or("", |driver| driver.what);
        let uid = format!("kavg.{}", adapter.name);
        let cells = [&adapter.name, &adapter.driver, "link-up", &uid, "", what];
        cells.map(clean).to_vec()
    };
    Shown::table(heads, &[], state.adapters.iter().map(row))
}

/// `storage core device world list`; its columns are from memory (reference section 6.4).
pub(super) fn worlds(state: &HostState, devices: &[usize]) -> Shown {
    let heads = &["Device", "World ID", "Open Count", "World Name"];
    let own = state.worlds.iter().filter(|world| devices.contains(&(world.device as usize)));
    let rows = own.map(|world| {
        let vm = &state.vms[world.vm as usize];
        let name = clean(&format!("vmm0:{}", vm.name));
        let device = clean(&state.devices[world.device as usize].name);
        vec![device, vm.world.to_string(), world.opens.to_string(), name]
    });
    Shown::table(heads, &[1, 2], rows)
}

/// `system module parameters list` [QD254]: the value is that which was set, in force or not yet.
pub(super) fn parameters(state: &HostState, driver: &'static Driver) -> Result<Shown, String> {
    let own = state.adapters.iter().find(|adapter| adapter.driver == driver.module);
    let adapter = own.ok_or_else(|| {
        let known = state.adapters.iter().map(|adapter| adapter.driver.as_str());
        unknown("loaded module", driver.module, known)
    })?;
    let row = |name: &str| {
        let what = format!(
            "{} LUN queue depth: Default = {}. Range [{} - {}]",
            driver.module, driver.depth_default, driver.depth_min, driver.depth_max
        );
        let value = adapter.lun_depth.map_or(String::new(), |depth| depth.to_string());
        vec![name.to_string(), "int".into(), value, what]
    };
    let heads = &["Name", "Type", "Value", "Description"];
    Ok(Shown::table(heads, &[], driver.parameter.into_iter().map(row)))
}
