//! Outputs that are a table: headings, a line of dashes that says how wide the columns are, rows.

use control::HostState;
use knobs::{Driver, unknown};

use crate::{table::width, text::clean};

/// A table as esxcli prints it; columns of numbers are flush right.
fn table(heads: &[&str], numbers: &[usize], rows: &[Vec<String>]) -> String {
    let cells = |column: usize| rows.iter().map(move |row| width(&row[column]));
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| cells(column).chain([heads[column].len()]).max().unwrap_or(0))
        .collect();
    let line = |cells: &mut dyn Iterator<Item = (usize, &str)>| -> String {
        let padded = cells.map(|(column, cell)| {
            let pad = " ".repeat(widths[column].saturating_sub(width(cell)));
            if numbers.contains(&column) { pad + cell } else { cell.to_owned() + &pad }
        });
        let line = padded.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut out = line(&mut heads.iter().copied().enumerate());
    out.push_str(&format!("{}\n", rule.join("  ")));
    for row in rows {
        out.push_str(&line(&mut row.iter().map(String::as_str).enumerate()));
    }
    out
}

/// `storage core adapter list`; its columns are from memory (reference section 6.4).
pub(super) fn adapters(state: &HostState) -> String {
    let heads = ["HBA Name", "Driver", "Link State", "UID", "Capabilities", "Description"];
    let row = |adapter: &control::Adapter| {
        let what = Driver::from_module(&adapter.driver).map_or("", |driver| driver.what);
        let uid = format!("kavg.{}", adapter.name);
        let cells = [&adapter.name, &adapter.driver, "link-up", &uid, "", what];
        cells.map(clean).to_vec()
    };
    table(&heads, &[], &state.adapters.iter().map(row).collect::<Vec<_>>())
}

/// `storage core device world list`; its columns are from memory (reference section 6.4).
pub(super) fn worlds(state: &HostState, devices: &[usize]) -> String {
    let heads = ["Device", "World ID", "Open Count", "World Name"];
    let own = state.worlds.iter().filter(|world| devices.contains(&(world.device as usize)));
    let rows = own.map(|world| {
        let vm = &state.vms[world.vm as usize];
        let name = clean(&format!("vmm0:{}", vm.name));
        let device = clean(&state.devices[world.device as usize].name);
        vec![device, vm.world.to_string(), world.opens.to_string(), name]
    });
    table(&heads, &[1, 2], &rows.collect::<Vec<_>>())
}

/// `system module parameters list` [QD254]: the value is that which was set, in force or not yet.
pub(super) fn parameters(state: &HostState, driver: &'static Driver) -> Result<String, String> {
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
    let rows: Vec<_> = driver.parameter.into_iter().map(row).collect();
    Ok(table(&["Name", "Type", "Value", "Description"], &[], &rows))
}
