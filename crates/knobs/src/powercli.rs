//! Lines for PowerCLI: a call to esxcli, and what virtual disks may have.
//!
//! `$esxcli` stands for the host, as `$esxcli = Get-EsxCli -V2 -VMHost NAME` makes it; the keys of
//! its arguments are esxcli's long options without dashes (reference section 6.6).

use alloc::{format, string::String};
use core::ops::RangeInclusive;

use crate::{
    Allocation, AllocationChange, DiskName, Disks, IoControl, Refusal, ScsiPlace, Setting,
    command::{Call, Command, SETTERS},
    words::{powershell, powershell_name, powershell_name_word, powershell_word},
};

const CALL: &str = "$esxcli.";
const ARGUMENTS: &str = ".Invoke(@{";
/// The name that PowerCLI gives the IOPS limit of a disk.
pub const LIMIT: &str = "DiskLimitIOPerSecond";
/// That of its shares.
const SHARES: &str = "NumDiskShares";
/// What PowerCLI wants before a number of shares.
const CUSTOM: &str = "DiskSharesLevel Custom -";
/// PowerCLI has none for the reservation of a disk; that is its name in the API [API].
const RESERVATION: &str = "StorageIOAllocationReservation";
/// What a disk's storage policy is called, by the parameter that gives it one [SPBM].
const POLICY: &str = "StoragePolicy";
/// What kavg calls the storage policy of which it sets what it says.
const OF_POLICY: &str = "storage policy ";
// The parts of the line that sets a limit, around the VM (twice), the disk and the limit.
const OF_VM: &str = "Get-VM ";
const DISKS: &str =
    " | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk -VM ";
const UNIT: &str = " | Where-Object {$_.ExtensionData.UnitNumber -eq ";
const BUS: &str = " -and (Get-ScsiController -HardDisk $_).ExtensionData.BusNumber -eq ";
// The parts of the line that gives disks a storage policy, around the VM, the disk and the policy [SPBM].
const OF_DISKS: &str = "Get-HardDisk -VM ";
const SET_POLICY: &str =
    " | Set-SpbmEntityConfiguration -StoragePolicy (Get-SpbmStoragePolicy -Name ";
/// How a line begins that is for a datastore, and what it sets there [PCLI].
pub(crate) const OF_DATASTORE: &str = "Get-Datastore ";
const SET_DATASTORE: &str = " | Set-Datastore -StorageIOControlEnabled ";
const THRESHOLD: &str = " -CongestionThresholdMillisecond ";
/// No limit.
const NONE: &str = "-1";

/// The line that makes `$esxcli` a host.
#[must_use]
pub fn get_esxcli(host: &str) -> String {
    format!("$esxcli = Get-EsxCli -V2 -VMHost {}", powershell_name(host))
}

/// Whether it is a line for PowerCLI.
pub(crate) fn is_one(line: &str) -> bool {
    [CALL, OF_VM, OF_DISKS, OF_DATASTORE].into_iter().any(|begin| line.starts_with(begin))
}

/// A call as a line.
pub(crate) fn print(call: &Call) -> String {
    let mut arguments = String::new();
    for (short, value) in &call.values {
        let separator = if arguments.is_empty() { "" } else { "; " };
        arguments.push_str(&format!("{separator}{}=", key(call.command, *short)));
        match () {
            () if call.command.flag == Some(*short) => arguments.push_str("$true"),
            () if is_number(value) => arguments.push_str(value),
            () => arguments.push_str(&powershell(value)),
        }
    }
    format!("{CALL}{}{ARGUMENTS}{arguments}}})", call.command.words.replace(' ', "."))
}

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_digit())
}

fn key(command: &Command, short: char) -> String {
    let option = command.options.iter().find(|(name, _)| *name == short);
    option.map_or(String::new(), |(_, long)| long.replace('-', ""))
}

/// Reads a call.
pub(crate) fn parse(line: &str) -> Result<Call, Refusal> {
    let refuse = || Refusal::from(format!("`{line}` is no call as `{CALL}…{ARGUMENTS}…}})`"));
    let (words, mut rest) =
        line.strip_prefix(CALL).and_then(|rest| rest.split_once(ARGUMENTS)).ok_or_else(refuse)?;
    let mut call = Call::new(Command::find(&words.replace('.', " "), &SETTERS)?);
    while rest.trim() != "})" {
        let (name, after) = rest.split_once('=').ok_or_else(refuse)?;
        let (value, after) = powershell_word(after.trim_start()).ok_or_else(refuse)?;
        let name = name.trim();
        let short = call.command.options.iter().map(|(short, _)| *short);
        let short = short.into_iter().find(|short| key(call.command, *short) == name);
        let short = short.ok_or_else(|| format!("Invalid argument {name} in `{line}`"))?;
        call.add(short, value)?;
        rest = after.trim_start().trim_start_matches(';').trim_start();
    }
    Ok(call)
}

/// The line that changes what disks may have; none for what PowerCLI does not set, as what a policy says.
pub(crate) fn print_allocation(disks: &Disks, change: &AllocationChange) -> Option<String> {
    let Disks::Of(disk) = disks else { return None };
    let vm = powershell_name(&disk.vm);
    let filter = disk
        .disk
        .map_or(String::new(), |ScsiPlace { bus, unit }| format!("{UNIT}{unit}{BUS}{bus}}}"));
    let what = match change {
        AllocationChange::Limit(_) => allocation_text(change),
        AllocationChange::Shares(_) => format!("{CUSTOM}{}", allocation_text(change)),
        AllocationChange::Reservation(_) => return None,
        AllocationChange::Policy(policy) => {
            let policy = powershell_name(policy);
            return Some(format!("{OF_DISKS}{vm}{filter}{SET_POLICY}{policy})"));
        }
    };
    Some(format!("{OF_VM}{vm}{DISKS}{vm}{filter}) -{what}"))
}

/// The disk of a VM that a line begins with, or all of them.
fn place(line: &str) -> Option<(Option<ScsiPlace>, &str)> {
    let Some(rest) = line.strip_prefix(UNIT) else { return Some((None, line)) };
    let (unit, rest) = rest.split_once(BUS)?;
    let (bus, rest) = rest.split_once('}')?;
    Some((Some(ScsiPlace { bus: bus.parse().ok()?, unit: unit.parse().ok()? }), rest))
}

/// Reads a line that gives disks a storage policy.
fn parse_policy(line: &str) -> Option<Setting> {
    let (vm, rest) = powershell_name_word(line.strip_prefix(OF_DISKS)?)?;
    let (disk, rest) = place(rest)?;
    let (policy, rest) = powershell_name_word(rest.strip_prefix(SET_POLICY)?)?;
    let vdisk = DiskName { vm, disk }.into();
    (rest == ")")
        .then_some(Setting::Allocation { vdisk, allocation: AllocationChange::Policy(policy) })
}

/// Reads a line that changes what disks may have.
pub(crate) fn parse_allocation(line: &str) -> Result<Setting, Refusal> {
    if let Some(setting) = parse_policy(line) {
        return Ok(setting);
    }
    let parts = || {
        let (vm, rest) = powershell_name_word(line.strip_prefix(OF_VM)?)?;
        let (again, rest) = powershell_name_word(rest.strip_prefix(DISKS)?)?;
        let (disk, rest) = place(rest)?;
        let what = rest.strip_prefix(") -")?;
        let what = what.strip_prefix(CUSTOM).unwrap_or(what);
        (vm == again).then_some((DiskName { vm, disk }.into(), allocation(what)?))
    };
    let (vdisk, allocation) = parts().ok_or_else(|| {
        let all = DiskName { vm: "VM".into(), disk: None }.into();
        let change = match line.starts_with(OF_DISKS) {
            true => AllocationChange::Policy("NAME".into()),
            false => AllocationChange::Limit(None),
        };
        let like = print_allocation(&all, &change).unwrap_or_default();
        Refusal::from(format!("`{line}` limits no disks; it is as `{like}`"))
    })?;
    Ok(Setting::Allocation { vdisk, allocation: allocation? })
}

/// The line for Storage I/O Control of a datastore.
pub(crate) fn print_sioc(datastore: &str, control: IoControl) -> String {
    let is_on = matches!(control, IoControl::On { .. });
    let threshold = |micros| format!("{THRESHOLD}{}", micros / 1000);
    let threshold = control.threshold_us().map(threshold).unwrap_or_default();
    format!("{OF_DATASTORE}{}{SET_DATASTORE}${is_on}{threshold}", powershell_name(datastore))
}

/// Reads one; switched on without a threshold it has the default.
pub(crate) fn parse_sioc(line: &str) -> Result<Setting, Refusal> {
    let parts = || {
        let (device, rest) = powershell_name_word(line.strip_prefix(OF_DATASTORE)?)?;
        let what = rest.strip_prefix(SET_DATASTORE)?.trim();
        let threshold_us = |rest: &str| {
            rest.strip_prefix(THRESHOLD)?
                .parse()
                .ok()
                .map(|millis: u32| millis.saturating_mul(1000))
        };
        let control = match what.strip_prefix("$true") {
            Some("") => IoControl::DEFAULT,
            Some(rest) => IoControl::On { threshold_us: threshold_us(rest)? },
            None => match what.strip_prefix("$false")? {
                "" => IoControl::Off,
                rest => IoControl::Stats { threshold_us: threshold_us(rest)? },
            },
        };
        Some(Setting::StorageIoControl { device, control })
    };
    parts().ok_or_else(|| {
        let like = print_sioc("NAME", IoControl::DEFAULT);
        format!("`{line}` sets nothing of a datastore; it is as `{like}`, or ends with $false")
            .into()
    })
}

/// Disks as they stand in front of a change.
pub(crate) fn disks_text(disks: &Disks) -> String {
    match disks {
        Disks::Of(disk) => format!("{disk}"),
        Disks::With(policy) => format!("{OF_POLICY}{policy}"),
    }
}

/// Reads them.
pub(crate) fn disks(text: &str) -> Disks {
    match text.strip_prefix(OF_POLICY) {
        Some(policy) => Disks::With(policy.trim().into()),
        None => Disks::Of(text.into()),
    }
}

/// A change as it stands behind a disk.
pub(crate) fn allocation_text(change: &AllocationChange) -> String {
    match change {
        AllocationChange::Limit(None) => format!("{LIMIT} {NONE}"),
        AllocationChange::Limit(Some(limit)) => format!("{LIMIT} {limit}"),
        AllocationChange::Shares(shares) => format!("{SHARES} {shares}"),
        AllocationChange::Reservation(iops) => format!("{RESERVATION} {iops}"),
        AllocationChange::Policy(policy) => format!("{POLICY} {policy}"),
    }
}

/// Reads a change; `None` where it begins with no name of one.
pub(crate) fn allocation(text: &str) -> Option<Result<AllocationChange, Refusal>> {
    let value = |name: &str| {
        text.strip_prefix(name).map(|value| value.trim_start_matches(['=', ' ']).trim())
    };
    let read = |value: &str, range: RangeInclusive<u32>, what: &str| {
        let number = value.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| Refusal::from(format!("`{value}` is no {what}")))
    };
    if let Some(value) = value(LIMIT) {
        let most = Allocation::LIMITS.end();
        let what = format!("limit; it is {NONE} (none) or 1 to {most} I/Os a second");
        let limit = || read(value, Allocation::LIMITS, &what).map(Some);
        let limit = if value == NONE { Ok(None) } else { limit() };
        return Some(limit.map(AllocationChange::Limit));
    }
    if let Some(value) = value(SHARES) {
        let (least, most) = Allocation::SHARES.into_inner();
        let what = format!("number of shares; it is {least} to {most}");
        return Some(read(value, Allocation::SHARES, &what).map(AllocationChange::Shares));
    }
    if let Some(policy) = value(POLICY) {
        return Some(match policy {
            "" => Err(format!("`{text}` names no storage policy").into()),
            policy => Ok(AllocationChange::Policy(policy.into())),
        });
    }
    let value = value(RESERVATION)?;
    let most = Allocation::LIMITS.end();
    let what = format!("reservation; it is 0 to {most} I/Os a second");
    Some(read(value, 0..=*most, &what).map(AllocationChange::Reservation))
}
