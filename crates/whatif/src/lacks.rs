//! What the recording lacks of the rows in question. Without some of it there is no answer, and the
//! line that says so names the column; what else is missing is said with the answer.

use diagnose::clean;

use crate::{
    Error,
    observe::{Device, Tenant},
    rows::Row,
};

/// Part of a device's commands that may be of VMs of which nothing was measured.
const UNSEEN: f64 = 0.02;

/// What a row in use lacks over a whole recording, or over a window with commands, that nothing
/// stands in for.
fn needed(row: &Row<'_>, every: &[usize], window: &[usize]) -> Option<&'static str> {
    if row.mean_rate(every).is_none() {
        return Some("CMDS/s");
    }
    let is_lost = row.mean_rate(window) > Some(0.0) && row.per_command(window, Row::gavg).is_none();
    is_lost.then_some("GAVG")
}

/// What a device lacks for there to be an answer: the columns of it, or of who sends to it.
///
/// # Errors
/// One line that names them.
pub(crate) fn check(device: &Device<'_>, every: &[usize], window: &[usize]) -> Result<(), Error> {
    let row = &device.row;
    let is_used = row.mean_rate(window) > Some(0.0);
    let of_device = match needed(row, every, window) {
        None if is_used && row.per_command(window, Row::davg).is_none() => Some("DAVG"),
        None if is_used && !device.is_nfs && device.mean_depth(window).is_none() => Some("DQLEN"),
        other => other,
    };
    if let Some(column) = of_device {
        return Err(lost(column, &device.name));
    }
    let mut unseen =
        device.tenants.iter().filter_map(|t| Some((t, needed(&t.row, every, window)?)));
    let Some((tenant, column)) = unseen.next() else { return Ok(()) };
    let is_seen = |tenant: &&Tenant<'_>| needed(&tenant.row, every, window).is_none();
    let seen: f64 = device
        .tenants
        .iter()
        .filter(is_seen)
        .filter_map(|tenant| tenant.row.mean_rate(window))
        .sum();
    match row.mean_rate(window) {
        Some(all) if seen < (1.0 - UNSEEN) * all => {
            Err(lost(column, &format!("{} on {}", tenant.vm, device.name)))
        }
        _ => Ok(()),
    }
}

fn lost(column: &str, of: &str) -> Error {
    Error::new(format!(
        "{column} of {of} was not recorded, and nothing stands in for it: there is no prediction. \
         `esxtop -b -a` records every column.",
        of = clean(of)
    ))
}

/// What else was not recorded of a device with load, in a sentence; nothing where all was.
pub(crate) fn doubt(device: &Device<'_>, window: &[usize]) -> Option<String> {
    type Value = (&'static str, fn(&Row<'_>, &[usize]) -> Option<f64>);
    const OF_DEVICE: [Value; 2] =
        [("MBREAD/s, MBWRTN/s", |row, s| row.size_kib(s)), ("READS/s", |row, s| row.read_share(s))];
    const OF_WORLD: [Value; 2] = [
        ("KAVG", |row, s| row.per_command(s, |row, s| row.qavg(s))),
        ("DAVG", |row, s| row.per_command(s, |row, s| row.davg(s))),
    ];
    let of = |row: &Row<'_>, values: &[Value], name: &str| -> Vec<String> {
        let lost = values.iter().filter(|(_, value)| value(row, window).is_none());
        lost.map(|(column, _)| format!("{column} of {}", clean(name))).collect()
    };
    let mut lost = of(&device.row, &OF_DEVICE, &device.name);
    for tenant in &device.tenants {
        let worlds = tenant.world.iter().filter(|world| world.mean_rate(window) > Some(0.0));
        lost.extend(worlds.flat_map(|world| of(world, &OF_WORLD, &tenant.vm)));
    }
    (!lost.is_empty()).then(|| format!("Not recorded, and taken for unknown: {}.", lost.join("; ")))
}
