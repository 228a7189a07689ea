//! What esxcli says of a host, be it in files or by a daemon, for those who judge and those who simulate.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use capture::{Esxcli, parse_esxcli, parse_names, read_output};
use control::HostState;
use counters::sorted::Ordered;
use diagnose::{DeviceFacts, Facts, LimitFacts, PathFacts};
use engine::DeviceLimits;
use knobs::{Driver, Query, Version};

use crate::{Result, esxcli};

/// The facts that a daemon at work tells: it prints what esxcli prints, and that is read.
pub(crate) fn of_state(state: &HostState) -> Result<Facts> {
    let mut facts = Facts::default();
    for query in
        [Query::Devices { device: None }, Query::NmpDevices { device: None }, Query::Adapters]
    {
        let name = query.esxcli();
        let text = esxcli::show(&query, state)?.render(None);
        // A host may have NFS mounts alone.
        if !text.is_empty() {
            add(&mut facts, parse_esxcli(&name, &text)?)?;
        }
    }
    let named = |device: &control::Device| {
        let datastore = device.datastores.first()?;
        Some((device.name.clone(), datastore.clone()))
    };
    facts.datastores.extend(state.devices.iter().filter_map(named));
    for device in &state.devices {
        let known = facts.devices.entry(device.name.clone()).or_default();
        known.finds_depth = device.depth_by_latency;
        let control = device.congestion.filter(|control| !control.stats_only);
        known.sioc = Some(control.is_some());
        known.congestion_ms = control.map(|control| f64::from(control.threshold_us) / 1000.0);
    }
    for adapter in &state.adapters {
        let parameter = Driver::from_module(&adapter.driver).and_then(|driver| driver.parameter);
        let Some(parameter) = parameter else { continue };
        let set = adapter.lun_depth.map_or(String::new(), |depth| depth.to_string());
        facts.parameters.insert(parameter.into(), set);
    }
    facts.esxi_version = Version::from_name(&state.version);
    Ok(facts)
}

/// Adds what a daemon tells of the time between two of its states: the IOPS limits, and how often arrays took no more.
pub(crate) fn add_what_was(facts: &mut Facts, [before, after]: [&HostState; 2]) {
    for device in &after.devices {
        let known = facts.devices.entry(device.name.clone()).or_default();
        let was = before.devices.iter().find(|was| was.name == device.name);
        let refused = was.map_or(0, |was| was.totals.refusals);
        known.refusals = Some(device.totals.refusals.saturating_sub(refused));
        if let Some(was) = was.filter(|_| !device.is_nfs) {
            let depths = [was, device].map(|device| [device.max_queue_depth, device.dsnro]);
            set_depths(known, depths);
        }
    }
    facts.limits = Arc::new(lowest(limits(after), limits(before)));
    add_dead_paths(facts, [before, after]);
}

/// Adds which devices no path led to, neither before nor after: when it went down is not told, and while it was recorded
/// none did.
fn add_dead_paths(facts: &mut Facts, states: [&HostState; 2]) {
    const ALWAYS: (i64, i64) = (i64::MIN, i64::MAX);
    let [before, after] = states.map(|state| {
        let named = state.devices.iter().enumerate().map(|(place, device)| {
            let is_its = |path: &&control::Path| path.device as usize == place;
            (&device.name, state.paths.iter().filter(is_its).collect::<Vec<_>>())
        });
        let is_cut = |paths: &[&control::Path]| paths.iter().all(|path| path.dead || !path.up);
        let cut = named.filter(|(_, paths)| !paths.is_empty() && is_cut(paths));
        cut.into_map()
    });
    for (name, paths) in after.into_iter().filter(|(name, _)| before.contains_key(name)) {
        let known = facts.devices.entry(name.clone()).or_default();
        known.cut_off = vec![ALWAYS];
        if let Some(known) = &mut known.paths {
            let dead = paths.into_iter().map(|path| (path.name.clone(), vec![ALWAYS]));
            (known.working, known.dead) = (0, Some(dead.into_map()));
        }
    }
}

/// What is known of a device, with its depths as they were at the beginning and at the end of what is judged.
pub(crate) fn with_depths(
    mut known: DeviceFacts,
    before: &DeviceLimits,
    after: &DeviceLimits,
) -> DeviceFacts {
    known.driver_depth = lasting(before.driver_depth, after.driver_depth);
    let depths = [before, after].map(|limits| [limits.max_queue_depth, limits.dsnro]);
    set_depths(&mut known, depths);
    known
}

/// Device Max Queue Depth and DSNRO, as they were at both ends.
fn set_depths(known: &mut DeviceFacts, [before, after]: [[u32; 2]; 2]) {
    let ends = |at: usize| (lasting(before[at], after[at]), changed(before[at], after[at]));
    (known.max_queue_depth, known.max_queue_depth_at_end) = ends(0);
    (known.dsnro, known.dsnro_at_end) = ends(1);
}

/// A limit that is the same at both ends of what is judged.
pub(crate) fn lasting(before: u32, after: u32) -> Option<u32> {
    (before == after).then_some(after)
}

/// A limit at the end of what is judged that was another one at its beginning.
fn changed(before: u32, after: u32) -> Option<u32> {
    (before != after).then_some(after)
}

/// The IOPS limits that are in force, each with the lowest that there was.
pub(crate) fn lowest(
    mut known: BTreeMap<String, LimitFacts>,
    before: BTreeMap<String, LimitFacts>,
) -> BTreeMap<String, LimitFacts> {
    for (name, was) in before {
        let limit = known.entry(name).or_insert_with(|| was.clone());
        limit.iops = limit.iops.into_iter().chain(was.iops).min();
    }
    known
}

/// The IOPS limits of the virtual disks of a host, by the names of their rows.
fn limits(state: &HostState) -> BTreeMap<String, LimitFacts> {
    let limited = |disk: &control::Disk| {
        let vm = state.vms.get(disk.vm as usize).map_or("", |vm| &vm.name);
        Limited {
            name: format!("{vm}:{}", disk.name),
            world: (disk.vm, disk.device),
            iops: disk.limit_iops,
            policy: disk.storage_policy.clone(),
        }
    };
    let disks: Vec<_> = state.disks.iter().map(limited).collect();
    in_force(Version::from_name(&state.version), &disks)
}

/// A virtual disk and its IOPS limit.
#[derive(Clone)]
pub(crate) struct Limited {
    /// The name of its row.
    pub(crate) name: String,
    /// Its VM and its device.
    pub(crate) world: (u32, u32),
    /// The limit.
    pub(crate) iops: Option<u32>,
    /// The storage policy that says so.
    pub(crate) policy: Option<String>,
}

/// The IOPS limits that are in force, by name.
pub(crate) fn in_force(
    version: Option<Version>,
    disks: &[Limited],
) -> BTreeMap<String, LimitFacts> {
    let is_together = version.is_some_and(|version| !version.schedules_per_file());
    let limit = |disk: &Limited| {
        let own = LimitFacts {
            iops: disk.iops,
            at_end: disk.iops,
            policy_at_end: disk.policy.clone(),
            ..LimitFacts::default()
        };
        if !is_together {
            return own;
        }
        let of_world = disks.iter().filter(|other| other.world == disk.world);
        let all: Vec<_> = of_world.map(|other| other.iops).collect();
        if all.len() > 1 { own.with_all(all) } else { own }
    };
    disks.iter().map(|disk| (disk.name.clone(), limit(disk))).into_map()
}

/// Adds the names of datastores that people keep in files of their own; they go before those that
/// esxcli gives.
pub(crate) fn add_names(facts: &mut Facts, files: &[PathBuf]) -> Result<()> {
    for path in files {
        let name = path.display().to_string();
        facts.datastores.extend(parse_names(&name, &read_output(path)?)?);
    }
    Ok(())
}

/// Adds a number to what another output said of the same device.
fn settle(
    known: &mut Option<u32>,
    says: Option<u32>,
    device: &str,
    key: &str,
) -> std::result::Result<(), String> {
    match (*known, says) {
        (Some(before), Some(now)) if before != now => Err(format!(
            "'{key}' of {device} is {now} here and {before} in another output that is given; give \
             the one that holds"
        )),
        _ => {
            *known = known.or(says);
            Ok(())
        }
    }
}

/// Adds what an output says to what others said of the same devices.
pub(crate) fn add(facts: &mut Facts, output: Esxcli) -> std::result::Result<(), String> {
    match output {
        Esxcli::Devices(devices) => {
            for device in devices {
                let known = facts.devices.entry(device.name.clone()).or_default();
                let numbers = [
                    (&mut known.max_queue_depth, device.max_queue_depth, "Device Max Queue Depth"),
                    (&mut known.dsnro, device.dsnro, "No of outstanding IOs with competing worlds"),
                    (
                        &mut known.queue_full_sample_size,
                        device.queue_full_sample_size,
                        "Queue Full Sample Size",
                    ),
                ];
                for (known, says, key) in numbers {
                    settle(known, says, &device.name, key)?;
                }
                known.is_protocol_endpoint |= device.is_vvol_pe == Some(true);
                known.is_flash |= device.is_ssd == Some(true);
            }
        }
        Esxcli::Nmp(devices) => {
            for device in devices {
                facts.devices.entry(device.name).or_default().paths = Some(PathFacts {
                    policy: device.psp.unwrap_or_default(),
                    round_robin_iops: device.round_robin_iops,
                    working: device.working_paths.len(),
                    dead: None,
                });
            }
        }
        Esxcli::Adapters(adapters) => {
            let drivers = adapters.into_iter().map(|adapter| (adapter.name, adapter.driver));
            facts.drivers.extend(drivers);
        }
        Esxcli::Extents(extents) => {
            let named = extents.into_iter().map(|extent| (extent.device, extent.volume));
            facts.datastores.extend(named);
        }
        Esxcli::Parameters(parameters) => {
            // One output is of one module, and names it by the parameter of its depth.
            let driver = |name: &str| Driver::of_parameter(name);
            if let Some(own) = parameters.iter().find_map(|each| driver(&each.name)) {
                let others = parameters.iter().filter(|each| driver(&each.name).is_none());
                let set = others.filter_map(|each| Some((&each.name, each.value.as_ref()?)));
                let set: Vec<_> = set.map(|(name, value)| format!("{name}={value}")).collect();
                let own = own.parameter.unwrap_or_default();
                facts.set_beside.insert(own.into(), set.join(" "));
            }
            let named = parameters.into_iter();
            let named = named.map(|each| (each.name, each.value.unwrap_or_default()));
            facts.parameters.extend(named);
        }
        Esxcli::Version(release) => {
            facts.esxi_version = Version::of_release(&release).or(facts.esxi_version);
        }
        // The diagnosis knows no option but by what it does.
        Esxcli::Options(_) | Esxcli::Iscsi(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "naa.1\n   Devfs Path: /vmfs/devices/disks/naa.1\n   \
        Device Max Queue Depth: 64\n   No of outstanding IOs with competing worlds: 32\n";
    const NMP: &str = "naa.1\n   Path Selection Policy: VMW_PSP_FIXED\n   \
        Working Paths: vmhba2:C0:T0:L1\n";
    const PARAMETERS: &str = "Name           Type  Value  Description\n\
        -------------  ----  -----  -----------\n\
        ql2xmaxqdepth  int   128    Maximum queue depth\n\
        ql2xloginto    int          Login timeout\n";

    fn facts(texts: [&str; 2]) -> Facts {
        let mut facts = Facts::default();
        for text in texts {
            add(&mut facts, parse_esxcli("esxcli.txt", text).unwrap()).unwrap();
        }
        facts
    }

    #[test]
    fn outputs_add_up_in_any_order() {
        for texts in [[DEVICE, NMP], [NMP, DEVICE]] {
            let device = facts(texts).devices["naa.1"].clone();
            assert_eq!((device.max_queue_depth, device.dsnro), (Some(64), Some(32)));
            let paths = device.paths.unwrap();
            assert_eq!((paths.policy.as_str(), paths.working), ("VMW_PSP_FIXED", 1));
        }
    }

    #[test]
    fn outputs_that_say_different_depths_of_a_device_are_refused() {
        let mut facts = facts([DEVICE, DEVICE]);
        let later = DEVICE.replace("Depth: 64", "Depth: 128");
        let refusal = add(&mut facts, parse_esxcli("later.txt", &later).unwrap()).unwrap_err();
        assert!(
            refusal.starts_with("'Device Max Queue Depth' of naa.1 is 128 here and 64 in another"),
            "{refusal}"
        );
        assert_eq!(facts.devices["naa.1"].max_queue_depth, Some(64));
    }

    /// A host of that version with two disks of a VM on a device that have these limits.
    fn state(version: &str, limits: [Option<u32>; 2], refusals: u64) -> HostState {
        let disk = |(place, limit_iops)| control::Disk {
            name: format!("scsi0:{place}"),
            limit_iops,
            ..control::Disk::default()
        };
        let totals = control::Totals { refusals, ..control::Totals::default() };
        HostState {
            version: version.into(),
            devices: vec![control::Device {
                name: "naa.1".into(),
                totals,
                ..control::Device::default()
            }],
            vms: vec![control::Vm { name: "a".into(), ..control::Vm::default() }],
            disks: limits.into_iter().enumerate().map(disk).collect(),
            ..HostState::default()
        }
    }

    #[test]
    fn limits_of_a_daemon_are_the_lowest_that_were_and_before_6_0_hold_together() {
        type Limits = [Option<u32>; 2];
        type Case = (&'static str, Limits, Limits, (Option<u32>, Option<u32>, Option<u32>));
        let cases: [Case; 5] = [
            ("7.0", [Some(500), None], [Some(500), None], (Some(500), None, Some(500))),
            ("7.0", [Some(500), None], [Some(900), None], (Some(500), None, Some(900))),
            ("7.0", [Some(500), None], [None, None], (Some(500), None, None)),
            (
                "5.5",
                [Some(500), Some(300)],
                [Some(500), Some(300)],
                (Some(500), Some(800), Some(500)),
            ),
            ("5.5", [Some(500), None], [Some(500), None], (None, None, Some(500))),
        ];
        for (version, was, is, expected) in cases {
            let mut facts = Facts::default();
            add_what_was(&mut facts, [&state(version, was, 40), &state(version, is, 42)]);
            let LimitFacts { iops, together, at_end, .. } = facts.limits["a:scsi0:0"];
            assert_eq!((iops, together, at_end), expected, "{version} {was:?} {is:?}");
            assert_eq!(facts.devices["naa.1"].refusals, Some(2));
        }
    }

    #[test]
    fn parameters_that_nobody_set_are_empty() {
        let facts = facts([PARAMETERS, DEVICE]);
        assert_eq!(facts.parameters["ql2xmaxqdepth"], "128");
        assert_eq!(facts.parameters["ql2xloginto"], "");
    }
}
