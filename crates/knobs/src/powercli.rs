//! Lines for PowerCLI: a call to esxcli, and what virtual disks may have.
//!
//! `$esxcli` stands for the host, as `$esxcli = Get-EsxCli -V2 -VMHost NAME` makes it; the keys of
//! its arguments are esxcli's long options without dashes (reference section 6.6).

use alloc::{format, string::String, vec, vec::Vec};
use core::ops::RangeInclusive;

use crate::{
    Allocation, AllocationChange, DiskName, Disks, IoControl, Refusal, ScsiPlace, Setting,
    cmdlets::{self, Cmdlet, Value},
    command::{Call, Command, SETTERS},
    names::unknown,
    words::{powershell, powershell_name, powershell_word},
};

const CALL: &str = "$esxcli.";
const ARGUMENTS: &str = ".Invoke(@{";
/// The name that PowerCLI gives the IOPS limit of a disk.
pub const LIMIT: &str = "DiskLimitIOPerSecond";
/// That of its shares.
const SHARES: &str = "NumDiskShares";
/// What PowerCLI wants besides for a number of shares, `Custom`.
const LEVEL: &str = "DiskSharesLevel";
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
const GET_POLICY: &str = "Get-SpbmStoragePolicy";
/// No storage policy, as PowerShell has it.
const NULL: &str = "$null";
/// The same in the lines and files of kavg.
pub const NO_POLICY: &str = "none";
/// How a line begins that is for a datastore, and what it sets there [PCLI].
pub(crate) const OF_DATASTORE: &str = "Get-Datastore ";
/// Whether Storage I/O Control of a datastore is on [PCLI].
pub const ENABLED: &str = "StorageIOControlEnabled";
/// Its congestion threshold.
pub const THRESHOLD: &str = "CongestionThresholdMillisecond";
/// The cmdlets that set something.
const SPBM: &str = "Set-SpbmEntityConfiguration";
const RESOURCES: &str = "Set-VMResourceConfiguration";
const DATASTORE: &str = "Set-Datastore";
/// The cmdlets with which a line begins.
const FIRST: [&str; 7] = [
    "Get-VM",
    "Get-HardDisk",
    "Get-VMResourceConfiguration",
    "Get-Datastore",
    SPBM,
    RESOURCES,
    DATASTORE,
];
/// No limit.
const NONE: &str = "-1";

/// The line that makes `$esxcli` a host.
#[must_use]
pub fn get_esxcli(host: &str) -> String {
    format!("$esxcli = Get-EsxCli -V2 -VMHost {}", powershell_name(host))
}

/// Whether it is a call.
pub(crate) fn is_call(line: &str) -> bool {
    line.starts_with(CALL)
}

/// Whether it is a line of cmdlets.
pub(crate) fn is_cmdlets(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    FIRST.iter().any(|name| first.eq_ignore_ascii_case(name))
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
        let short =
            short.into_iter().find(|short| key(call.command, *short).eq_ignore_ascii_case(name));
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
        AllocationChange::Shares(_) => format!("{LEVEL} Custom -{}", allocation_text(change)),
        AllocationChange::Reservation(_) => return None,
        AllocationChange::Policy(policy) => {
            let get = |name: &String| format!("({GET_POLICY} -Name {})", powershell_name(name));
            let policy = policy.as_ref().map_or(NULL.into(), get);
            return Some(format!("{OF_DISKS}{vm}{filter} | {SPBM} -{POLICY} {policy}"));
        }
    };
    Some(format!("{OF_VM}{vm}{DISKS}{vm}{filter}) -{what}"))
}

/// The disk of a VM that a filter lets through.
fn place(script: &str) -> Option<ScsiPlace> {
    let script = script.trim().to_ascii_lowercase();
    let (unit, bus) = (UNIT.rsplit('{').next()?, BUS);
    let [unit, bus] = [unit, bus].map(str::to_ascii_lowercase);
    let (unit, bus) = script.strip_prefix(&*unit)?.split_once(&*bus)?;
    Some(ScsiPlace { bus: bus.trim().parse().ok()?, unit: unit.trim().parse().ok()? })
}

/// The disks that a pipeline gets: `Get-HardDisk -VM web`, `Get-VM web | Get-HardDisk`, and one of them by a filter.
fn disks_of(stages: Vec<Cmdlet<'_>>) -> Option<DiskName> {
    let mut stages = stages.into_iter();
    let (vm, mut disks) = match stages.next()? {
        mut first if first.is("Get-VM") => {
            let name = first.take_first("Name")?.name_by("Get-VM");
            (name.filter(|_| first.left().is_none()), stages.next()?)
        }
        first => (None, first),
    };
    let vm = vm.or_else(|| disks.take_first("VM")?.name_by("Get-VM"))?;
    if !disks.is("Get-HardDisk") || disks.left().is_some() {
        return None;
    }
    let disk = match stages.next() {
        Some(mut filter) if filter.is("Where-Object") => match filter.take("")? {
            Value::Script(script) => Some(place(script)?),
            _ => return None,
        },
        Some(_) => return None,
        None => None,
    };
    stages.next().is_none().then_some(DiskName { vm, disk })
}

/// The stages before a cmdlet, or what one of its arguments gives instead.
fn input<'a>(
    before: Vec<Cmdlet<'a>>,
    cmdlet: &mut Cmdlet<'a>,
    parameter: &str,
) -> Option<Vec<Cmdlet<'a>>> {
    if !before.is_empty() {
        return Some(before);
    }
    match cmdlet.take_first(parameter)? {
        Value::Pipeline(stages) => Some(stages),
        _ => None,
    }
}

/// What a line of cmdlets sets.
pub(crate) fn parse_cmdlets(line: &str) -> Result<Vec<Setting>, Refusal> {
    let all = || DiskName { vm: "VM".into(), disk: None }.into();
    let allocation = |allocation| Setting::Allocation { vdisk: all(), allocation };
    let control = IoControl::DEFAULT;
    let forms = [
        (SPBM, allocation(AllocationChange::Policy(Some("NAME".into())))),
        (RESOURCES, allocation(AllocationChange::Limit(None))),
        (DATASTORE, Setting::StorageIoControl { device: "NAME".into(), control }),
    ];
    let not_read = || Refusal::from(format!("`{line}` is no line of cmdlets that kavg reads"));
    let mut stages = cmdlets::read(line).ok_or_else(not_read)?;
    let mut last = stages.pop().ok_or_else(not_read)?;
    let Some((name, like)) = forms.iter().find(|(name, _)| last.is(name)) else {
        let known = forms.iter().map(|(name, _)| *name);
        return Err(unknown("cmdlet that sets something", last.name, known).into());
    };
    let settings = match *name {
        SPBM => policy_of_disks(stages, &mut last),
        RESOURCES => resources_of_disks(stages, &mut last),
        _ => control_of_datastore(stages, &mut last),
    };
    let settings = settings.filter(|_| last.left().is_none()).ok_or_else(|| {
        let like = like.powercli().unwrap_or_default();
        let left = last.left().map_or(String::new(), |left| format!(" with -{left}"));
        Refusal::from(format!("`{line}` is no {name}{left} that kavg reads; it is as `{like}`"))
    })?;
    settings.into_iter().collect()
}

/// What a line sets, or why it is refused; `None` where it does not have the form.
type Settings = Option<Vec<Result<Setting, Refusal>>>;

fn policy_of_disks<'a>(before: Vec<Cmdlet<'a>>, set: &mut Cmdlet<'a>) -> Settings {
    let policy = match set.take(POLICY)? {
        Value::Variable(word) if word.eq_ignore_ascii_case(NULL) => None,
        value => Some(value.name_by(GET_POLICY)?),
    };
    let vdisk = disks_of(input(before, set, "Configuration")?)?.into();
    Some(vec![Ok(Setting::Allocation { vdisk, allocation: AllocationChange::Policy(policy) })])
}

fn resources_of_disks<'a>(before: Vec<Cmdlet<'a>>, set: &mut Cmdlet<'a>) -> Settings {
    let disk = match set.take("Disk")? {
        Value::Pipeline(stages) => disks_of(stages)?,
        _ => return None,
    };
    let mut of = input(before, set, "Configuration")?.into_iter().rev();
    let mut get = of.next().filter(|get| get.is("Get-VMResourceConfiguration"))?;
    let vm = match of.next() {
        Some(mut vm) => vm.take_first("Name").filter(|_| vm.is("Get-VM")),
        None => get.take_first("VM"),
    };
    let is_same = vm?.name_by("Get-VM")? == disk.vm && of.next().is_none();
    let is_custom = set
        .take(LEVEL)
        .is_none_or(|level| level.word().is_some_and(|it| it.eq_ignore_ascii_case("Custom")));
    let vdisk = Disks::from(disk);
    let mut settings = Vec::new();
    for name in [LIMIT, SHARES] {
        let Some(value) = set.take(name) else { continue };
        let allocation = allocation(&format!("{name} {}", value.word()?))?;
        settings.push(
            allocation.map(|allocation| Setting::Allocation { vdisk: vdisk.clone(), allocation }),
        );
    }
    (is_same && is_custom && !settings.is_empty()).then_some(settings)
}

/// Storage I/O Control that is switched on without a threshold has the default.
fn control_of_datastore<'a>(before: Vec<Cmdlet<'a>>, set: &mut Cmdlet<'a>) -> Settings {
    let of = match before.is_empty() {
        true => set.take_first("Datastore")?,
        false => Value::Pipeline(before),
    };
    let device = of.name_by("Get-Datastore")?;
    let threshold_us = match set.take(THRESHOLD) {
        Some(millis) => Some(millis.word()?.parse::<u32>().ok()?.saturating_mul(1000)),
        None => None,
    };
    let Value::Variable(on) = set.take(ENABLED)? else { return None };
    let control = match (on.to_ascii_lowercase().as_str(), threshold_us) {
        ("$true", Some(threshold_us)) => IoControl::On { threshold_us },
        ("$true", None) => IoControl::DEFAULT,
        ("$false", Some(threshold_us)) => IoControl::Stats { threshold_us },
        ("$false", None) => IoControl::Off,
        _ => return None,
    };
    Some(vec![Ok(Setting::StorageIoControl { device, control })])
}

/// The line for Storage I/O Control of a datastore.
pub(crate) fn print_sioc(datastore: &str, control: IoControl) -> String {
    let is_on = matches!(control, IoControl::On { .. });
    let threshold = |micros| format!(" -{THRESHOLD} {}", micros / 1000);
    let threshold = control.threshold_us().map(threshold).unwrap_or_default();
    let name = powershell_name(datastore);
    format!("{OF_DATASTORE}{name} | {DATASTORE} -{ENABLED} ${is_on}{threshold}")
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
        AllocationChange::Policy(policy) => {
            format!("{POLICY} {}", policy.as_deref().unwrap_or(NO_POLICY))
        }
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
            NO_POLICY => Ok(AllocationChange::Policy(None)),
            policy => Ok(AllocationChange::Policy(Some(policy.into()))),
        });
    }
    let value = value(RESERVATION)?;
    let most = Allocation::LIMITS.end();
    let what = format!("reservation; it is 0 to {most} I/Os a second");
    Some(read(value, 0..=*most, &what).map(AllocationChange::Reservation))
}
