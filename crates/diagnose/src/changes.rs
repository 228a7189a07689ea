//! The things an administrator can do, with the lines to type: esxcli, PowerCLI, the guest.
//!
//! Syntax and moments of effect are those of the reference, sections 1.2, 2, 3 and 6 [S0, S1,
//! KB-PV, LAMW, QD254].

use knobs::{Driver, Effect};

use crate::{Change, Device, Facts, Host};

/// The warning that goes with every deeper queue: the conclusion of [S0] in our words.
pub(crate) const CAUTION: &str = "Most environments should leave queue depths alone. The defaults \
    keep one VM from crowding out the others of its datastore, one datastore the others of its \
    adapter, and one host the others of its array; a deeper queue gives some of that fairness \
    away. Change it only where this workload is known to need it, on every host of the cluster \
    alike, and think of IOPS limits for the noisy ones. More virtual disks, more virtual adapters \
    or more datastores often do the same without any knob.";

/// A depth above `from` for a queue that sees `demand` commands: a power of two with room.
pub(crate) fn depth_for(from: f64, demand: f64) -> u32 {
    const ROOM: f64 = 1.25;
    let fits = |depth: &u32| f64::from(*depth) > from && f64::from(*depth) >= demand * ROOM;
    [64, 128, 256, 512].into_iter().find(fits).unwrap_or(1024)
}

/// Raises DSNRO of a device, or of a vVol protocol endpoint, at once.
pub(crate) fn raise_dsnro(
    host: &Host<'_>,
    device: &Device<'_>,
    (from, to): (u32, u32),
    facts: &Facts,
) -> Change {
    let name = device.flow.name;
    let option = if facts.device(name).is_protocol_endpoint {
        Some("/Scsi/ScsiVVolPESNRO")
    } else {
        facts.has_global_dsnro().then_some("/Disk/SchedNumReqOutstanding")
    };
    let mut change = match option {
        Some(option) => advanced_option(host, option, (from, to)),
        None => per_device_dsnro(host, name, (from, to)),
    };
    change.risk = "VMs on this device may take more slots from each other and from other hosts. \
        A value above Device Max Queue Depth is refused from 6.5 on and has no effect before."
        .into();
    change
}

fn per_device_dsnro(host: &Host<'_>, name: &str, (from, to): (u32, u32)) -> Change {
    let line = |depth| format!("esxcli storage core device set -d {} -O {depth}", shell(name));
    Change {
        what: format!("Raise DSNRO of {name} from {from} to {to}, on every host that uses it."),
        esxcli: vec![line(to)],
        powercli: vec![
            get_esxcli(host),
            format!(
                "$esxcli.storage.core.device.set.Invoke(@{{device={}; schednumreqoutstanding={to}}})",
                powershell(name)
            ),
        ],
        guest: Vec::new(),
        effect: Effect::AtOnce,
        risk: String::new(),
        undo: line(from),
        simulated: None,
    }
}

/// Sets an advanced option, at once.
fn advanced_option(host: &Host<'_>, option: &str, (from, to): (u32, u32)) -> Change {
    let line = |value| format!("esxcli system settings advanced set -o {option} -i {value}");
    Change {
        what: format!("Raise {option} from {from} to {to}."),
        esxcli: vec![line(to)],
        powercli: vec![
            get_esxcli(host),
            format!(
                "$esxcli.system.settings.advanced.set.Invoke(@{{option='{option}'; intvalue={to}}})"
            ),
        ],
        guest: Vec::new(),
        effect: Effect::AtOnce,
        risk: String::new(),
        undo: line(from),
        simulated: None,
    }
}

/// Raises the depth that the HBA's driver gives each device: a module parameter, and a reboot.
/// The driver is known from `facts`, or guessed from the depth that is there now.
pub(crate) fn raise_driver_depth(
    host: &Host<'_>,
    device: &Device<'_>,
    (from, to): (u32, u32),
    facts: &Facts,
) -> Change {
    let adapters = host.adapters_of(device);
    let module = adapters.iter().find_map(|adapter| facts.drivers.get(*adapter));
    let adapters = if adapters.is_empty() { "the HBA".into() } else { adapters.join(", ") };
    let candidates = candidates(from, module.map(String::as_str), facts);
    if candidates.is_empty() {
        return spread_devices(&adapters, module.map(String::as_str), from);
    }
    let set = |driver: &Driver| {
        format!("{}={}", driver.parameter.unwrap_or_default(), to.min(driver.depth_max))
    };
    let esxcli =
        |d: &&Driver| format!("esxcli system module parameters set -m {} -p {}", d.module, set(d));
    let powercli = |d: &&Driver| {
        let arguments = format!("module='{}'; parameterstring='{}'", d.module, set(d));
        format!("$esxcli.system.module.parameters.set.Invoke(@{{{arguments}}})")
    };
    Change {
        what: format!(
            "Raise the depth that the driver of {adapters} gives each device from {from} to {to}.\
             {}",
            which_line(&candidates, module.is_some(), from, facts)
        ),
        esxcli: candidates.iter().map(esxcli).collect(),
        powercli: std::iter::once(get_esxcli(host))
            .chain(candidates.iter().map(powercli))
            .collect(),
        guest: Vec::new(),
        effect: Effect::HostReboot,
        risk: "It deepens every device of that driver, and the line replaces all parameters of \
               the module: list them first (esxcli system module parameters list -m MODULE) and \
               repeat those that are set. Evacuate the host before the reboot."
            .into(),
        undo: format!("The same line with {from} instead, and a reboot"),
        simulated: None,
    }
}

/// The drivers that a device of this depth may have and that can give it more: the one of that
/// module, one whose parameter is known to be set, or those that the depth suggests.
fn candidates(depth: u32, module: Option<&str>, facts: &Facts) -> Vec<&'static Driver> {
    let is_set = |driver: &&Driver| driver.parameter.is_some_and(|p| facts.depth_set(p).is_some());
    let known = |module| Driver::from_module(module).filter(|driver| driver.parameter.is_some());
    let mut drivers: Vec<&'static Driver> = match module {
        Some(module) => known(module).into_iter().collect(),
        None => Driver::ALL.iter().filter(is_set).collect(),
    };
    if module.is_none() && drivers.is_empty() {
        drivers = Driver::candidates(depth, facts.esxi_version);
    }
    drivers.retain(|driver| driver.depth_max > depth);
    drivers
}

/// Which of the lines to type, unless there is one only; and that a depth which is set and not in
/// force waits for a reboot.
fn which_line(candidates: &[&Driver], is_known: bool, from: u32, facts: &Facts) -> String {
    let pending = candidates.iter().find_map(|driver| {
        let parameter = driver.parameter?;
        let set = facts.depth_set(parameter).filter(|set| *set != from)?;
        Some(format!(
            " {parameter} is set to {set} already: that is not in force, so a reboot may be all it \
             takes."
        ))
    });
    if is_known || pending.is_some() {
        return pending.unwrap_or_default();
    }
    let names: Vec<_> = candidates.iter().map(|d| format!("{} is {}", d.module, d.what)).collect();
    format!(
        " Type one line only, that of the driver which `esxcli storage core adapter list` shows: \
         {}.",
        names.join(", ")
    )
}

/// Why a device cannot be given more: only what the table of drivers says of them is said.
fn why_no_deeper(adapters: &str, module: Option<&str>, depth: u32) -> String {
    let fixed = |driver: &&Driver| driver.parameter.is_none() && driver.depth_default == depth;
    match (module, module.and_then(Driver::from_module)) {
        (Some(module), Some(Driver { parameter: Some(parameter), .. })) => {
            format!(
                "{depth} is the most that {parameter} of {module} ({adapters}) is known to take"
            )
        }
        (Some(module), Some(_)) => format!(
            "The depth of {depth} that {module} of {adapters} gives a device is none that can be set"
        ),
        (Some(module), None) => format!(
            "No parameter of {module} ({adapters}) for a depth is known; `esxcli system module \
             parameters list -m {module}` shows what it has. Until then"
        ),
        (None, _) => match Driver::ALL.iter().find(fixed) {
            Some(driver) => format!(
                "A depth of {depth} is that of {} ({}), and none that can be set",
                driver.module, driver.what
            ),
            None => format!("No driver is known that gives a device more than {depth}"),
        },
    }
}

/// What is left where no driver that is known can give more.
fn spread_devices(adapters: &str, module: Option<&str>, depth: u32) -> Change {
    look(
        format!(
            "{}: spread the VMs over more devices, or move them to faster ones.",
            why_no_deeper(adapters, module, depth)
        ),
        vec!["esxcli storage core adapter list".into()],
    )
    .risking("Moving disks loads both devices.", "Move them back")
}

/// Lets a device use all its paths alike, where its policy is known not to: one path at a time, or
/// 1,000 commands before the next one [ELA 2016-03, BB].
pub(crate) fn use_all_paths(host: &Host<'_>, device: &Device<'_>, facts: &Facts) -> Option<Change> {
    let name = device.flow.name;
    let paths = facts.device(name).paths.filter(|_| device.paths.len() > 1)?;
    let round_robin = "VMW_PSP_RR";
    let (what, line, undo, powercli) = if paths.policy == round_robin {
        let iops = paths.round_robin_iops.filter(|iops| *iops > 1)?;
        let line = |iops| {
            format!(
                "esxcli storage nmp psp roundrobin deviceconfig set -d {} -t iops -I {iops}",
                shell(name)
            )
        };
        let what = format!(
            "Let round robin take the next path after every command of {name} instead of every \
             {iops}: most arrays ask for that."
        );
        let arguments = format!("device={}; type='iops'; iops=1", powershell(name));
        let powercli =
            format!("$esxcli.storage.nmp.psp.roundrobin.deviceconfig.set.Invoke(@{{{arguments}}})");
        (what, line(1), line(iops), powercli)
    } else {
        if paths.working > 1 {
            return None;
        }
        let line = |policy: &str| {
            format!("esxcli storage nmp device set -d {} -P {}", shell(name), shell(policy))
        };
        let what = format!(
            "{name} uses one of its {} paths at a time ({}): let it use all that are active, if \
             the array's vendor allows round robin.",
            device.paths.len(),
            paths.policy
        );
        let arguments = format!("device={}; psp='{round_robin}'", powershell(name));
        let powercli = format!("$esxcli.storage.nmp.device.set.Invoke(@{{{arguments}}})");
        (what, line(round_robin), line(&paths.policy), powercli)
    };
    Some(Change {
        what,
        esxcli: vec![line],
        powercli: vec![get_esxcli(host), powercli],
        guest: Vec::new(),
        effect: Effect::AtOnce,
        risk: "Paths that are not optimized must not be among the active ones.".into(),
        undo,
        simulated: None,
    })
}

/// Raises the depth of PVSCSI disks inside the guest [KB-PV].
pub(crate) fn raise_pvscsi(vm: &str) -> Change {
    Change {
        what: format!("Let the PVSCSI driver of {vm} send up to 254 commands a disk."),
        esxcli: Vec::new(),
        powercli: Vec::new(),
        guest: vec![
            "Windows: reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\pvscsi\\Parameters\\Device \
             /v DriverParameter /t REG_SZ /d \"RequestRingPages=32,MaxQueueDepth=254\" /f"
                .into(),
            "Linux: echo 'options vmw_pvscsi cmd_per_lun=254 ring_pages=32' > \
             /etc/modprobe.d/pvscsi.conf, then rebuild the initramfs"
                .into(),
        ],
        effect: Effect::GuestReboot,
        risk: "One VM can then fill a device queue alone.".into(),
        undo: "Delete the registry value, or the line in modprobe.d, and reboot the guest".into(),
        simulated: None,
    }
}

/// Spreads a VM over more virtual disks or adapters, without any knob.
pub(crate) fn spread(vm: &str) -> Change {
    Change {
        what: format!(
            "Give {vm} more virtual disks, on more PVSCSI adapters (up to 4): each disk has a \
             queue of its own."
        ),
        esxcli: Vec::new(),
        powercli: vec![format!(
            "New-HardDisk -VM {} -CapacityGB 100 | New-ScsiController -Type ParaVirtual",
            powershell(vm)
        )],
        guest: vec!["Spread the data over the disks (stripe, or more files)".into()],
        effect: Effect::AtOnce,
        risk: "The load has to be spread in the guest for it to help.".into(),
        undo: "Remove the disks once their data is moved back".into(),
        simulated: None,
    }
}

/// Something to look into, with the lines that show it.
pub(crate) fn look(what: impl Into<String>, esxcli: Vec<String>) -> Change {
    Change {
        what: what.into(),
        esxcli,
        powercli: Vec::new(),
        guest: Vec::new(),
        effect: Effect::AtOnce,
        risk: "None, it only looks.".into(),
        undo: "Nothing to undo".into(),
        simulated: None,
    }
}

impl Change {
    /// The same as something to do, with its risk and how to take it back.
    pub(crate) fn risking(mut self, risk: &str, undo: &str) -> Self {
        (self.risk, self.undo) = (risk.into(), undo.into());
        self
    }
}

/// Holds a VM to a rate with an IOPS limit on its virtual disks.
pub(crate) fn limit_iops(vm: &str) -> Change {
    Change {
        what: format!("Hold {vm} below the rate that the array allows it, with an IOPS limit."),
        esxcli: Vec::new(),
        powercli: vec![set_limit(vm, "LIMIT")],
        guest: Vec::new(),
        effect: Effect::AtOnce,
        risk: "The VM is slower whenever it would have been allowed more.".into(),
        undo: set_limit(vm, "-1"),
        simulated: None,
    }
}

/// Shows the IOPS limits of a VM and takes them off.
pub(crate) fn lift_limit(vm: &str) -> Change {
    let show = format!(
        "(Get-VM {} | Get-VMResourceConfiguration).DiskResourceConfiguration | \
         Select-Object Key, DiskLimitIOPerSecond",
        powershell(vm)
    );
    Change {
        what: format!(
            "See what limits {vm} has and raise or remove them (-1 is none), if they are not \
             meant. A limit of its storage policy is changed there."
        ),
        powercli: vec![show, set_limit(vm, "-1")],
        risk: "The VM takes more of the device from the others.".into(),
        undo: "Set the limits that were there".into(),
        ..limit_iops(vm)
    }
}

fn set_limit(vm: &str, limit: &str) -> String {
    format!(
        "Get-VM {0} | Get-VMResourceConfiguration | Set-VMResourceConfiguration \
         -Disk (Get-HardDisk -VM {0}) -DiskLimitIOPerSecond {limit}",
        powershell(vm)
    )
}

/// Lets iSCSI send larger I/Os in one piece [LAMW].
pub(crate) fn raise_iscsi_io_size(host: &Host<'_>) -> Change {
    let mut change = advanced_option(host, "/ISCSI/MaxIoSizeKB", (128, 512));
    change.what =
        "If the device is on software iSCSI: raise its largest I/O from 128 to 512 KB.".into();
    change.effect = Effect::HostReboot;
    change.risk = "Fewer and larger pieces on the wire; the array must take them.".into();
    change
}

/// The line to see what a device is set to.
pub(crate) fn list_device(device: &str) -> String {
    format!("esxcli storage core device list -d {}", shell(device))
}

fn get_esxcli(host: &Host<'_>) -> String {
    format!("$esxcli = Get-EsxCli -V2 -VMHost {}", powershell(host.name))
}

/// A name as one word of a shell.
pub(crate) fn shell(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:-/=,+@".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return name.into();
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}

/// A name as a string of PowerShell.
fn powershell(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_that_can_be_set_is_said_of_hardware_that_the_table_knows() {
        let cases = [
            (Some("vmw_ahci"), 31, "none that can be set"),
            (None, 31, "none that can be set"),
            (Some("qlnativefc"), 254, "254 is the most that ql2xmaxqdepth of qlnativefc"),
            (Some("qedf"), 64, "parameters list -m qedf` shows what it has"),
            (None, 5_000, "No driver is known that gives a device more than 5000"),
        ];
        for (module, depth, expected) in cases {
            let why = why_no_deeper("vmhba1", module, depth);
            assert!(why.contains(expected), "{why}");
            assert_eq!(why.contains("none that can be set"), depth == 31, "{why}");
        }
    }

    #[test]
    fn names_cannot_break_out_of_a_command() {
        assert_eq!(shell("naa.624a9370"), "naa.624a9370");
        assert_eq!(shell("a; reboot"), "'a; reboot'");
        assert_eq!(shell("it's"), "'it'\\''s'");
        assert_eq!(powershell("it's"), "'it''s'");
    }

    #[test]
    fn what_is_known_decides_between_drivers() {
        let modules = |depth, module, facts: &Facts| -> Vec<&str> {
            candidates(depth, module, facts).iter().map(|driver| driver.module).collect()
        };
        let mut facts = Facts::default();
        assert_eq!(modules(64, Some("fnic"), &facts), ["fnic"]);
        assert!(modules(64, Some("vmw_ahci"), &facts).is_empty());
        assert_eq!(
            modules(254, None, &facts),
            ["nfnic", "fnic", "lpfc", "bfa", "brcmfcoe", "iscsi_vmk"]
        );
        facts.parameters.insert("lpfc_lun_queue_depth".into(), "64".into());
        assert_eq!(modules(64, None, &facts), ["lpfc"]);
    }

    #[test]
    fn a_depth_has_room_for_the_demand() {
        let depths = [(32.0, 30.0), (32.0, 61.0), (64.0, 96.0), (128.0, 90.0), (512.0, 900.0)];
        assert_eq!(depths.map(|(from, n)| depth_for(from, n)), [64, 128, 128, 256, 1024]);
    }
}
