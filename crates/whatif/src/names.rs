//! What things of a recording are called in the scenario that stands for it, and how that is written.

use std::collections::BTreeSet;

use crate::{demand::DeviceCalibration, observe::Device};

/// A name that a scenario takes: other characters than letters, digits, dots and dashes are
/// replaced.
pub(crate) fn plain(name: &str) -> String {
    const LENGTH_MAX: usize = 60;
    let keep = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let text: String = name.chars().take(LENGTH_MAX).map(keep).collect();
    if text.is_empty() { "unnamed".into() } else { text }
}

/// Names by which tenants of one VM are known in the scenario: alike names are told apart.
pub(crate) fn vm_names(calibrated: &[DeviceCalibration]) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = Vec::new();
    let mut taken = BTreeSet::new();
    for guest in calibrated.iter().flat_map(|device| &device.guests) {
        if names.iter().any(|(vm, _)| *vm == guest.vm) {
            continue;
        }
        let base = plain(&guest.vm);
        let mut name = base.clone();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        names.push((guest.vm.clone(), name));
    }
    names
}

/// The names of devices in the scenario: an NFS volume is known by its datastore's.
pub(crate) fn device_name(device: &Device<'_>) -> String {
    if device.is_nfs { plain(&device.name) } else { device.name.clone() }
}

/// The name of an array.
pub(crate) fn array_name(index: usize) -> String {
    format!("array{}", index + 1)
}

/// The name of the policy of one disk from a level of load on.
pub(crate) fn policy(device: usize, tenant: usize, level: usize) -> String {
    format!("disk{}-{}-level{}", device + 1, tenant + 1, level + 1)
}

/// The name of the policy of the volume of a device.
pub(crate) fn volume_policy(device: usize) -> String {
    format!("volume{}", device + 1)
}

/// The name of the datastore on a device.
pub(crate) fn store(index: usize, device: &Device<'_>) -> String {
    if device.is_nfs { device_name(device) } else { format!("store{}", index + 1) }
}

/// A string of TOML.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in diagnose::clean(text).chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
