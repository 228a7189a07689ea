//! Lines for PowerCLI: a call to esxcli, and the IOPS limit of virtual disks.
//!
//! `$esxcli` stands for the host, as `$esxcli = Get-EsxCli -V2 -VMHost NAME` makes it; the keys of
//! its arguments are esxcli's long options without dashes (reference section 6.6).

use alloc::{
    format,
    string::{String, ToString},
};

use crate::{
    Allocation, DiskName, Refusal, ScsiPlace, Setting,
    command::{Call, Command, SETTERS},
    words::{powershell, powershell_name, powershell_name_word, powershell_word},
};

const CALL: &str = "$esxcli.";
const ARGUMENTS: &str = ".Invoke(@{";
/// The name that PowerCLI gives the IOPS limit of a disk.
pub const LIMIT: &str = "DiskLimitIOPerSecond";
// The parts of the line that sets a limit, around the VM (twice), the disk and the limit.
const OF_VM: &str = "Get-VM ";
const DISKS: &str =
    " | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk -VM ";
const UNIT: &str = " | Where-Object {$_.ExtensionData.UnitNumber -eq ";
const BUS: &str = " -and (Get-ScsiController -HardDisk $_).ExtensionData.BusNumber -eq ";
/// No limit.
const NONE: &str = "-1";

/// The line that makes `$esxcli` a host.
#[must_use]
pub fn get_esxcli(host: &str) -> String {
    format!("$esxcli = Get-EsxCli -V2 -VMHost {}", powershell_name(host))
}

/// Whether it is a line for PowerCLI.
pub(crate) fn is_one(line: &str) -> bool {
    line.starts_with(CALL) || line.starts_with(OF_VM)
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

/// The line that limits disks.
pub(crate) fn print_limit(disk: &DiskName, limit: Option<u32>) -> String {
    let vm = powershell_name(&disk.vm);
    let filter = disk
        .disk
        .map_or(String::new(), |ScsiPlace { bus, unit }| format!("{UNIT}{unit}{BUS}{bus}}}"));
    format!("{OF_VM}{vm}{DISKS}{vm}{filter}) -{LIMIT} {}", limit_text(limit))
}

/// Reads a line that limits disks.
pub(crate) fn parse_limit(line: &str) -> Result<Setting, Refusal> {
    let parts = || {
        let (vm, rest) = powershell_name_word(line.strip_prefix(OF_VM)?)?;
        let (again, rest) = powershell_name_word(rest.strip_prefix(DISKS)?)?;
        let (disk, rest) = match rest.strip_prefix(UNIT) {
            Some(rest) => {
                let (unit, rest) = rest.split_once(BUS)?;
                let (bus, rest) = rest.split_once('}')?;
                (Some(ScsiPlace { bus: bus.parse().ok()?, unit: unit.parse().ok()? }), rest)
            }
            None => (None, rest),
        };
        let value = rest.strip_prefix(") -")?.strip_prefix(LIMIT)?;
        (vm == again).then_some((DiskName { vm, disk }, value))
    };
    let (vdisk, value) = parts().ok_or_else(|| {
        let all = DiskName { vm: "VM".into(), disk: None };
        Refusal::from(format!("`{line}` limits no disks; it is as `{}`", print_limit(&all, None)))
    })?;
    Ok(Setting::Allocation { vdisk, allocation: limit(value)? })
}

/// A limit as PowerCLI writes it.
pub(crate) fn limit_text(limit: Option<u32>) -> String {
    limit.map_or(NONE.into(), |limit| limit.to_string())
}

/// Reads a limit, after the word that names it.
pub(crate) fn limit(text: &str) -> Result<Option<u32>, Refusal> {
    let value = text.trim_start_matches(['=', ' ']).trim();
    if value == NONE {
        return Ok(None);
    }
    let limits = Allocation::LIMITS;
    let limit = value.parse().ok().filter(|limit| limits.contains(limit));
    limit.map(Some).ok_or_else(|| {
        let most = limits.end();
        format!("`{value}` is no limit; it is {NONE} (none) or 1 to {most} I/Os a second").into()
    })
}
