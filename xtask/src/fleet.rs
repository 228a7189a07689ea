//! `cargo xtask fleet`: a folder of hosts as their outputs of esxcli show them, some of them changed, to
//! measure `kavg settings` on (`docs/performance.md`).

use std::{fs, path::Path};

use testing::fleet::{Size, draw};

const USAGE: &str = "usage: cargo xtask fleet FOLDER [--hosts N] [--devices N] [--seed S]";

/// Of how many things of a host one is changed.
const ONE_IN: u64 = 200;

/// Writes a file for each host.
pub(crate) fn fleet(arguments: &[String]) -> Result<String, String> {
    let (folder, options) = arguments.split_first().ok_or(USAGE)?;
    let mut size = Size { hosts: 1000, devices: 100, one_in: ONE_IN };
    let mut seed = 1;
    for pair in options.chunks(2) {
        let [name, value] = pair else { return Err(USAGE.into()) };
        let number: u64 = value.parse().map_err(|_| USAGE)?;
        match name.as_str() {
            "--hosts" => size.hosts = number as usize,
            "--devices" => size.devices = number as usize,
            "--seed" => seed = number,
            _ => return Err(USAGE.into()),
        }
    }
    let (hosts, planted) = draw(seed, size);
    fs::create_dir_all(folder).map_err(|error| format!("{folder}: {error}"))?;
    for host in &hosts {
        let file = Path::new(folder).join(format!("{}.txt", host.name));
        fs::write(&file, host.outputs()).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(format!("{} hosts in {folder}, {} things changed", hosts.len(), planted.len()))
}
