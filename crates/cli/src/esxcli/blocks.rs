//! Outputs that are a block for each object: its name, and below it a line for each key.

use control::{Congestion, Device, HostState, Path, Policy, Totals};
use counters::{MILLISECOND, SECTOR};
use knobs::{
    Advanced, AllocationChange, ENABLED, PathPolicy, THRESHOLD, Transport, Version, unknown,
};

use super::{Shown, display_name};

/// `storage core device list`, as 8.0 prints it [LIST8]; up to 5.5 without the depth [LIST5].
pub(super) fn devices(state: &HostState, places: &[usize]) -> Shown {
    let version = Version::from_name(&state.version).unwrap_or(Version::NEWEST);
    let is_old = version <= Version::V5_5;
    let mut out = Shown::blocks();
    for &place in places {
        let device = &state.devices[place];
        out.begin("Device", &device.name);
        out.field("Display Name", display_name(device));
        out.field("Has Settable Display Name", false);
        out.field("Size", device.bytes >> 20);
        out.fields(&[("Device Type", "Direct-Access"), ("Multipath Plugin", "NMP")]);
        out.field("Devfs Path", format!("/vmfs/devices/disks/{}", device.name));
        out.fields(&[("Vendor", "KAVG"), ("Model", "Virtual disk"), ("Revision", "1.0")]);
        out.fields(&[("SCSI Level", "6"), ("Is Pseudo", "false")]);
        let is_up = is_up(state, place);
        out.field("Status", if is_up { "on" } else { "dead" });
        out.field("Is RDM Capable", false);
        out.field("Is Local", is_local(state, place));
        out.fields(&[("Is Removable", "false"), ("Is SSD", "false")]);
        if !is_old {
            out.field("Is VVOL PE", device.is_protocol_endpoint);
        }
        out.field("Is Offline", !is_up);
        out.field("Is Perennially Reserved", false);
        let throttle = device.throttle.unwrap_or_default();
        out.field("Queue Full Sample Size", throttle.sample_size);
        out.field("Queue Full Threshold", throttle.threshold);
        out.fields(&[("Thin Provisioning Status", "unknown"), ("Attached Filters", "")]);
        out.fields(&[("VAAI Status", "unknown"), ("Other UIDs", "")]);
        out.fields(&[("Is Shared Clusterwide", "false"), ("Is SAS", "false"), ("Is USB", "false")]);
        out.field("Is Boot Device", false);
        if !is_old {
            out.field("Device Max Queue Depth", device.max_queue_depth);
        }
        out.field("No of outstanding IOs with competing worlds", device.dsnro);
        if !is_old {
            out.fields(&REST);
        }
    }
    out
}

/// What a host without such hardware says [LIST8].
const REST: [(&str, &str); 11] = [
    ("Drive Type", "unknown"),
    ("RAID Level", "unknown"),
    ("Number of Physical Drives", "unknown"),
    ("Protection Enabled", "false"),
    ("PI Activated", "false"),
    ("PI Type", "0"),
    ("PI Protection Mask", "NO PROTECTION"),
    ("Supported Guard Types", "NO GUARD SUPPORT"),
    ("DIX Enabled", "false"),
    ("DIX Guard Type", "NO GUARD SUPPORT"),
    ("Emulated DIX/DIF Enabled", "false"),
];

fn is_up(state: &HostState, device: usize) -> bool {
    state.paths.iter().any(|path| path.device as usize == device && path.up && !path.dead)
}

fn is_local(state: &HostState, device: usize) -> bool {
    let mut own = state.paths.iter().filter(|path| path.device as usize == device);
    own.any(|path| transport(state, path.adapter as usize) == Some(Transport::Local))
}

fn transport(state: &HostState, adapter: usize) -> Option<Transport> {
    knobs::Driver::from_module(&state.adapters[adapter].driver).map(|driver| driver.transport)
}

/// `storage core device stats get`
pub(super) fn device_stats(state: &HostState, places: &[usize]) -> Shown {
    let mut out = Shown::blocks();
    for &place in places {
        let Device { name, totals, .. } = &state.devices[place];
        out.begin("Device", name);
        out.field("Device", name);
        out.totals(totals);
    }
    out
}

/// `storage core adapter stats get`
pub(super) fn adapter_stats(state: &HostState, name: Option<&str>) -> Result<Shown, String> {
    let is_it = |adapter: &&control::Adapter| name.is_none_or(|name| adapter.name == name);
    let mut out = Shown::blocks();
    for adapter in state.adapters.iter().filter(is_it) {
        out.begin("Adapter", &adapter.name);
        out.totals(&adapter.totals);
        out.field("Total Splits", adapter.totals.splits);
    }
    match name {
        Some(name) if out.objects.is_empty() => {
            let known = state.adapters.iter().map(|adapter| adapter.name.as_str());
            Err(unknown("adapter", name, known))
        }
        _ => Ok(out),
    }
}

impl Shown {
    /// The fields of statistics, in the order of a host (reference section 6.4). How many blocks failed nobody
    /// counts: that is empty, as all that is not known, where some did.
    fn totals(&mut self, totals: &Totals) {
        let blocks = |failed: u64| if failed == 0 { "0" } else { "" };
        let numbers = [
            ("Successful Commands", totals.commands),
            ("Blocks Read", totals.bytes_read / SECTOR),
            ("Blocks Written", totals.bytes_written / SECTOR),
            ("Read Operations", totals.reads),
            ("Write Operations", totals.writes),
            ("Reserve Operations", totals.reserves),
            ("Reservation Conflicts", totals.conflicts),
            ("Failed Commands", totals.failed),
        ];
        numbers.iter().for_each(|(key, value)| self.field(key, value));
        self.field("Failed Blocks Read", blocks(totals.failed_reads));
        self.field("Failed Blocks Written", blocks(totals.failed_writes));
        self.field("Failed Read Operations", totals.failed_reads);
        self.field("Failed Write Operations", totals.failed_writes);
        self.field("Failed Reserve Operations", totals.failed_reserves);
    }
}

/// What a path is between.
struct Ends {
    transport: &'static str,
    from: String,
    to: String,
}

fn ends(state: &HostState, path: &Path) -> Ends {
    let transport = match transport(state, path.adapter as usize) {
        Some(Transport::Iscsi) => "iscsi",
        Some(Transport::Local) => "block",
        _ => "fc",
    };
    let adapter = &state.adapters[path.adapter as usize].name;
    Ends { transport, from: format!("{transport}.{adapter}"), to: format!("{transport}.kavg") }
}

fn uid(state: &HostState, path: &Path) -> String {
    let Ends { from, to, .. } = ends(state, path);
    format!("{from}-{to}-{}", state.devices[path.device as usize].name)
}

/// The runtime name of a path that is given by its UID; any other name is left as it is.
pub(crate) fn runtime_name<'a>(state: &'a HostState, name: &'a str) -> &'a str {
    let found = state.paths.iter().find(|path| uid(state, path) == name);
    found.map_or(name, |path| &path.name)
}

/// `storage core path list` [KB-PATH]
pub(super) fn paths(
    state: &HostState,
    devices: &[usize],
    name: Option<&str>,
) -> Result<Shown, String> {
    let own = state.paths.iter().filter(|path| devices.contains(&(path.device as usize)));
    let name = name.map(|name| runtime_name(state, name));
    let mut out = Shown::blocks();
    for path in own.clone().filter(|path| name.is_none_or(|name| path.name == name)) {
        let device = &state.devices[path.device as usize];
        let adapter = &state.adapters[path.adapter as usize].name;
        let Ends { transport, from, to } = ends(state, path);
        let target = path.name.split(':').collect::<Vec<_>>();
        let number = |sign: char| {
            let part = target.iter().find_map(|part| part.strip_prefix(sign));
            part.unwrap_or("0").to_string()
        };
        let uid = uid(state, path);
        out.begin("UID", &uid);
        out.field("UID", &uid);
        out.field("Runtime Name", &path.name);
        out.field("Device", &device.name);
        out.field("Device Display Name", display_name(device));
        out.field("Adapter", adapter);
        out.field("Channel", number('C'));
        out.field("Target", number('T'));
        out.field("LUN", number('L'));
        out.field("Plugin", "NMP");
        let is_dead = if path.dead { "dead" } else { "active" };
        out.field("State", if path.up { is_dead } else { "off" });
        out.field("Transport", transport);
        out.field("Adapter Identifier", from);
        out.field("Target Identifier", to);
        out.fields(&[("Adapter Transport Details", ""), ("Target Transport Details", "")]);
    }
    match name {
        Some(name) if out.objects.is_empty() => {
            Err(unknown("path", name, own.map(|path| path.name.as_str())))
        }
        _ => Ok(out),
    }
}

/// `storage nmp device list` [ELA]
pub(super) fn nmp_devices(state: &HostState, places: &[usize]) -> Shown {
    let mut out = Shown::blocks();
    for &place in places {
        let device = &state.devices[place];
        let own = || state.paths.iter().filter(|path| path.device as usize == place);
        let asymmetric = own().any(|path| !path.optimized);
        let used = own().filter(|path| path.up && !path.dead);
        let best = used.clone().any(|path| path.optimized);
        let working: Vec<_> =
            used.filter(|path| path.optimized || !best).map(|path| path.name.as_str()).collect();
        let working = match device.policy {
            Policy::Fixed | Policy::MostRecentlyUsed => &working[..working.len().min(1)],
            Policy::RoundRobin { .. } | Policy::Latency { .. } => &working,
        };
        out.begin("Device", &device.name);
        out.field("Device Display Name", display_name(device));
        let satp = if asymmetric { "VMW_SATP_ALUA" } else { "VMW_SATP_DEFAULT_AA" };
        out.fields(&[("Storage Array Type", satp), ("Storage Array Type Device Config", "")]);
        out.field("Path Selection Policy", PathPolicy::from(device.policy).plug_in());
        let config = policy_config(device.policy, working.first().copied().unwrap_or_default());
        out.field("Path Selection Policy Device Config", config);
        out.field("Path Selection Policy Device Custom Config", "");
        out.field("Working Paths", working.join(", "));
        out.field("Is USB", false);
    }
    out
}

/// What round robin goes by where it does not go by that: as it starts.
const START: (u32, u64) = match PathPolicy::ROUND_ROBIN {
    PathPolicy::RoundRobin { iops, bytes } => (iops, bytes),
    _ => (0, 0),
};

/// The type of round robin, and both of its limits as they are shown.
fn limits(iops: u32, bytes: u64) -> (&'static str, u32, u64) {
    match (iops, bytes) {
        START => ("default", iops, bytes),
        (u32::MAX, bytes) => ("bytes", START.0, bytes),
        (iops, u64::MAX) => ("iops", iops, START.1),
        _ => ("default", iops, bytes),
    }
}

fn policy_config(policy: Policy, first: &str) -> String {
    match policy {
        Policy::Fixed => format!("{{preferred={first};current={first}}}"),
        Policy::MostRecentlyUsed => format!("Current Path={first}"),
        Policy::RoundRobin { iops, bytes } => {
            let (kind, iops, bytes) = limits(iops, bytes);
            let kind = if kind == "default" { "rr" } else { kind };
            format!(
                "{{policy={kind},iops={iops},bytes={bytes},useANO=0; lastPathIndex=0: \
                 NumIOsPending=0,numBytesPending=0}}"
            )
        }
        Policy::Latency { sampling_ios, eval_ns } => format!(
            "{{policy=latency,latencyEvalTime={},samplingCycles={sampling_ios},useANO=0; \
             CurrentPath={first}}}",
            eval_ns / MILLISECOND
        ),
    }
}

/// `storage nmp psp roundrobin deviceconfig get` [ELA, BB]
pub(super) fn round_robin(state: &HostState, place: usize) -> Result<Shown, String> {
    let device = &state.devices[place];
    let (kind, iops, bytes, sampling_ios, eval_ns) = match device.policy {
        Policy::RoundRobin { iops, bytes } => {
            let (kind, iops, bytes) = limits(iops, bytes);
            (kind, iops, bytes, 0, 0)
        }
        Policy::Latency { sampling_ios, eval_ns } => {
            ("latency", START.0, START.1, sampling_ios, eval_ns)
        }
        other => {
            let plug_in = PathPolicy::from(other).plug_in();
            return Err(format!("device {} has {plug_in}, not VMW_PSP_RR", device.name));
        }
    };
    let mut out = Shown::blocks();
    out.begin_unnamed();
    out.field("Byte Limit", bytes);
    out.field("Device", &device.name);
    out.field("IOOperation Limit", iops);
    out.field("Latency Evaluation Interval", format!("{} milliseconds", eval_ns / MILLISECOND));
    let (first, rest) = kind.split_at(1);
    out.field("Limit Type", format!("{}{rest}", first.to_uppercase()));
    out.field("Number Of Sampling IOs Per Path", sampling_ios);
    out.field("Use Active Unoptimized Paths", false);
    Ok(out)
}

/// `kavg disk list`: what disks may have, what storage policies say and Storage I/O Control of datastores, in the
/// words of the lines that set it.
pub(super) fn disks(state: &HostState) -> Shown {
    let mut out = Shown::blocks();
    let mut says = |name: &str, changes: &[AllocationChange]| {
        out.begin("Name", name);
        for change in changes.iter().map(AllocationChange::to_string) {
            let (key, value) = change.split_once(' ').unwrap_or((&change, ""));
            out.field(key, value);
        }
    };
    let numbers = |limit_iops, reservation_iops, shares| {
        let (limit, reservation) =
            (AllocationChange::Limit(limit_iops), AllocationChange::Reservation(reservation_iops));
        [limit, reservation, AllocationChange::Shares(shares)]
    };
    for disk in &state.disks {
        let [limit, reservation, shares] =
            numbers(disk.limit_iops, disk.reservation_iops, disk.shares);
        let policy = AllocationChange::Policy(disk.storage_policy.clone());
        let name = format!("{}:{}", state.vms[disk.vm as usize].name, disk.name);
        says(&name, &[policy, limit, reservation, shares]);
    }
    for policy in &state.storage_policies {
        let says_it = numbers(policy.limit_iops, policy.reservation_iops, policy.shares);
        says(&format!("storage policy {}", policy.name), &says_it);
    }
    for device in state.devices.iter().filter(|device| !device.datastores.is_empty()) {
        out.begin("Name", &format!("datastore {}", device.datastores.join(", ")));
        out.field(ENABLED, device.congestion.is_some_and(|congestion| !congestion.stats_only));
        if let Some(Congestion { threshold_us, .. }) = device.congestion {
            out.field(THRESHOLD, threshold_us / 1000);
        }
    }
    out
}

/// `system settings advanced list`; its layout is from memory (reference section 6.4).
pub(super) fn options(
    state: &HostState,
    only: Option<Advanced>,
    changed: bool,
) -> Result<Shown, String> {
    let version = Version::from_name(&state.version).unwrap_or(Version::NEWEST);
    let mut out = Shown::blocks();
    for (path, value) in &state.options {
        let Some(option) = Advanced::from_path(path) else { continue };
        let default = option.default_in(version);
        if only.is_some_and(|only| only != option) || changed && *value == default {
            continue;
        }
        let info = option.info();
        out.begin_unnamed();
        out.fields(&[("Path", info.path), ("Type", "integer")]);
        out.field("Int Value", value);
        out.field("Default Int Value", default);
        out.field("Min Value", info.min);
        out.field("Max Value", info.max);
        let empty = ["String Value", "Default String Value", "Valid Characters"];
        empty.iter().for_each(|key| out.field(key, ""));
        out.field("Description", info.meaning);
    }
    match only {
        Some(only) if !only.exists_in(version) => {
            Err(format!("ESXi {} has no option {}", state.version, only.info().path))
        }
        _ => Ok(out),
    }
}
