//! What esxcli says of a host, read from files for those who judge and those who simulate.

use std::path::PathBuf;

use capture::{Esxcli, parse_esxcli};
use diagnose::{DeviceFacts, Facts};

use crate::{Result, captures};

/// The facts in outputs of esxcli, whichever of the known commands each is of.
pub(crate) fn read(files: &[PathBuf]) -> Result<Facts> {
    let mut facts = Facts::default();
    for path in files {
        let name = path.display().to_string();
        add(&mut facts, parse_esxcli(&name, &captures::text_of(path)?)?);
    }
    Ok(facts)
}

/// Adds what an output says. Path policies and parameters say nothing of limits by themselves.
fn add(facts: &mut Facts, output: Esxcli) {
    match output {
        Esxcli::Devices(devices) => facts.devices.extend(devices.into_iter().map(|device| {
            let known = DeviceFacts {
                max_queue_depth: device.max_queue_depth,
                dsnro: device.dsnro,
                is_protocol_endpoint: device.is_vvol_pe.unwrap_or(false),
                queue_full_sample_size: device.queue_full_sample_size,
            };
            (device.name, known)
        })),
        Esxcli::Adapters(adapters) => {
            let drivers = adapters.into_iter().map(|adapter| (adapter.name, adapter.driver));
            facts.drivers.extend(drivers);
        }
        Esxcli::Nmp(_) | Esxcli::Parameters(_) => {}
    }
}
