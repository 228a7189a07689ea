//! What cmdlets of PowerCLI set: limits, shares and storage policies of virtual disks, Storage I/O Control of
//! datastores, advanced options of hosts. Each is told with the form of a line that it takes.

use alloc::{format, string::String, vec, vec::Vec};

use crate::{
    Advanced, Allocation, AllocationChange, BusKind, CONGESTION_MS, CONGESTION_MS_DEFAULT,
    DiskName, DiskPlace, Disks, Effect, IoControl, IoControlChange, Manual, Refusal, Setting,
    cmdlets::{self, Cmdlet, Value},
    command,
    disks::{LIMIT, POLICY, SAYS_POLICY, SHARES},
    manual::range,
    names::{list, unknown},
    words::powershell_name,
};

/// What PowerCLI wants besides for a number of shares, `Custom`; the others are numbers themselves.
const LEVEL: &str = "DiskSharesLevel";
const CUSTOM: &str = "Custom";
// The parts of the line that sets a limit, around the VM (twice), the disk and the limit.
const OF_VM: &str = "Get-VM ";
const DISKS: &str =
    " | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk -VM ";
const UNIT: &str = " | Where-Object {$_.ExtensionData.UnitNumber -eq ";
const BUS: &str = " -and (Get-ScsiController -HardDisk $_).ExtensionData.BusNumber -eq ";
// No cmdlet gets adapters of other kinds: they are devices of the VM, told by the type that they have in the vSphere
// Web Services API.
const OF_KIND: &str =
    " -and ($_.Parent.ExtensionData.Config.Hardware.Device | Where-Object {$_ -is [VMware.Vim.";
const BUS_OF_KIND: &str = "] -and $_.BusNumber -eq ";
const KEY_OF_KIND: &str = "}).Key -eq $_.ExtensionData.ControllerKey";
// The parts of the line that gives disks a storage policy, around the VM, the disk and the policy [SPBM].
const OF_DISKS: &str = "Get-HardDisk -VM ";
const GET_POLICY: &str = "Get-SpbmStoragePolicy";
/// No storage policy, as PowerShell has it.
const NULL: &str = "$null";
/// How a line begins that is for a datastore, and what it sets there [PCLI].
pub(crate) const OF_DATASTORE: &str = "Get-Datastore ";
/// Whether Storage I/O Control of a datastore is on [PCLI].
pub const ENABLED: &str = "StorageIOControlEnabled";
/// Its congestion threshold.
pub const THRESHOLD: &str = "CongestionThresholdMillisecond";

/// What kavg reads of the names that cmdlets take.
const ONE: &str = "one name, and no list or wildcards";

const SET_POLICY: &str = "Set-SpbmEntityConfiguration";
const SET_DATASTORE: &str = "Set-Datastore";

/// A cmdlet that sets something.
struct Setter {
    name: &'static str,
    /// What it sets by the pipeline before it and its arguments.
    reads: for<'a> fn(Vec<Cmdlet<'a>>, &mut Cmdlet<'a>) -> Read,
    /// A line of it.
    like: fn() -> String,
}

/// What a line sets, and on which host; or why it is none.
type Read = Result<(Option<String>, Vec<Setting>), Why>;

/// Why a line is refused.
enum Why {
    /// It does not have the form: what is missing in it, or too much.
    Form(String),
    Value(Refusal),
}

impl From<Refusal> for Why {
    fn from(refusal: Refusal) -> Self {
        Self::Value(refusal)
    }
}

impl From<&str> for Why {
    fn from(what: &str) -> Self {
        Self::Form(what.into())
    }
}

impl From<String> for Why {
    fn from(what: String) -> Self {
        Self::Form(what)
    }
}

static SETTERS: [Setter; 4] = [
    Setter {
        name: SET_POLICY,
        reads: policy_of_disks,
        like: || of_all_disks(&AllocationChange::Policy(Some("NAME".into()))),
    },
    Setter {
        name: "Set-VMResourceConfiguration",
        reads: resources_of_disks,
        like: || of_all_disks(&AllocationChange::Limit(None)),
    },
    Setter {
        name: SET_DATASTORE,
        reads: control_of_datastore,
        like: || print_sioc("NAME", IoControl::DEFAULT.into()),
    },
    Setter { name: "Set-AdvancedSetting", reads: option_of_host, like: like_option },
];

/// The verbs of cmdlets with which a line may begin.
const VERBS: [&str; 5] = ["Get", "Set", "New", "Add", "Remove"];

/// The forms of these lines, but of those of which kavg has a shorter one.
pub(crate) fn forms() -> Vec<Manual> {
    let form = |line, what| Manual { line, effect: Some(Effect::AtOnce), what };
    vec![form(
        "Get-Datastore NAME | Set-Datastore -StorageIOControlEnabled $true \
         -CongestionThresholdMillisecond N",
        format!(
            "Storage I/O Control of a datastore on all of its hosts, {} milliseconds; where one of the two is left \
             out it stays as it is, the threshold at {CONGESTION_MS_DEFAULT} where there was none; `$false` alone is \
             off, and with a threshold holds nobody back but tells of congestion [PCLI, API]",
            range(CONGESTION_MS)
        ),
    )]
}

/// Whether it is a line of cmdlets, be it of some that are not read.
pub(crate) fn is_cmdlets(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let is_verb = |(verb, noun): (&str, &str)| {
        let mut verbs = VERBS.into_iter();
        noun.starts_with(|c: char| c.is_ascii_alphabetic())
            && !noun.contains(':')
            && verbs.any(|known| known.eq_ignore_ascii_case(verb))
    };
    first.split_once('-').is_some_and(is_verb)
}

/// What a line of cmdlets sets, and on which host.
pub(crate) fn parse(line: &str) -> Result<(Option<String>, Vec<Setting>), Refusal> {
    let setters = || SETTERS.iter().map(|setter| setter.name);
    let not_read = || {
        let ends = list(setters());
        Refusal::from(format!(
            "`{line}` is no line of cmdlets that kavg reads; it ends with one of {ends}"
        ))
    };
    let mut stages = cmdlets::read(line).ok_or_else(not_read)?;
    let mut last = stages.pop().ok_or_else(not_read)?;
    let Some(setter) = SETTERS.iter().find(|setter| last.is(setter.name)) else {
        let refusal = unknown("cmdlet that sets something", last.name, setters());
        let is_of_policies = last.name.to_ascii_lowercase().ends_with("spbmstoragepolicy");
        return Err(match is_of_policies {
            true => format!("what a storage policy says is set as `{SAYS_POLICY}`; {refusal}"),
            false => refusal,
        }
        .into());
    };
    let read = (setter.reads)(stages, &mut last).and_then(|read| {
        all_read(&last)?;
        Ok(read)
    });
    read.map_err(|why| match why {
        Why::Value(refusal) => refusal,
        Why::Form(what) => {
            format!("{}: {what}; it is as `{}`", setter.name, (setter.like)()).into()
        }
    })
}

/// Whether a cmdlet has no argument that nobody has read.
fn all_read(cmdlet: &Cmdlet<'_>) -> Result<(), Why> {
    let name = cmdlet.name;
    match cmdlet.left() {
        None => Ok(()),
        Some("") => Err(format!("kavg does not read all that stands behind {name}").into()),
        Some(left) => Err(format!("kavg does not read -{left} of {name}").into()),
    }
}

fn missing(parameter: &str) -> Why {
    format!("-{parameter} is missing").into()
}

fn of_all_disks(change: &AllocationChange) -> String {
    let all = DiskName { vm: "VM".into(), disk: None }.into();
    print_allocation(&all, change).unwrap_or_default()
}

/// The line that changes what disks may have; none for what PowerCLI does not set, as what a policy says.
pub(crate) fn print_allocation(disks: &Disks, change: &AllocationChange) -> Option<String> {
    let Disks::Of(disk) = disks else { return None };
    let vm = powershell_name(&disk.vm);
    let filter = disk.disk.map_or(String::new(), filter);
    let what = match change {
        AllocationChange::Limit(_) => format!("{change}"),
        AllocationChange::Shares(_) => format!("{LEVEL} {CUSTOM} -{change}"),
        AllocationChange::Reservation(_) => return None,
        AllocationChange::Policy(policy) => {
            let get = |name: &String| format!("({GET_POLICY} -Name {})", powershell_name(name));
            let policy = policy.as_ref().map_or(NULL.into(), get);
            return Some(format!("{OF_DISKS}{vm}{filter} | {SET_POLICY} -{POLICY} {policy}"));
        }
    };
    Some(format!("{OF_VM}{vm}{DISKS}{vm}{filter}) -{what}"))
}

/// What lets one disk of a VM through.
fn filter(DiskPlace { kind, bus, unit }: DiskPlace) -> String {
    match api_type(kind) {
        None => format!("{UNIT}{unit}{BUS}{bus}}}"),
        Some(name) => format!("{UNIT}{unit}{OF_KIND}{name}{BUS_OF_KIND}{bus}{KEY_OF_KIND}}}"),
    }
}

/// What the API calls an adapter of a kind that Get-ScsiController does not get.
const fn api_type(kind: BusKind) -> Option<&'static str> {
    match kind {
        BusKind::Scsi => None,
        BusKind::Sata => Some("VirtualSATAController"),
        BusKind::Ide => Some("VirtualIDEController"),
        BusKind::Nvme => Some("VirtualNVMEController"),
    }
}

/// The disk of a VM that a filter lets through.
fn place(script: &str) -> Option<DiskPlace> {
    let script = script.trim().to_ascii_lowercase();
    let of_kind = |kind: BusKind| {
        let (bus, after) = match api_type(kind) {
            None => (String::from(BUS), ""),
            Some(name) => (format!("{OF_KIND}{name}{BUS_OF_KIND}"), KEY_OF_KIND),
        };
        let unit = UNIT.rsplit('{').next()?;
        let [unit, bus, after] = [unit, &*bus, after].map(str::to_ascii_lowercase);
        let (unit, bus) = script.strip_prefix(&*unit)?.split_once(&*bus)?;
        let bus = bus.strip_suffix(&*after)?;
        Some(DiskPlace { kind, bus: bus.trim().parse().ok()?, unit: unit.trim().parse().ok()? })
    };
    BusKind::ALL.into_iter().find_map(of_kind)
}

/// A disk is told by its place: no scenario and no recording has the labels of vCenter.
fn by_place() -> Refusal {
    let filter = filter(DiskPlace { kind: BusKind::Scsi, bus: 0, unit: 1 });
    format!(
        "kavg knows the place of a disk and not its label: one of a VM is as `{OF_DISKS}'VM'{filter}`"
    )
    .into()
}

/// The disks that a pipeline gets: `Get-HardDisk -VM web`, `Get-VM web | Get-HardDisk`, and one of them by a filter.
fn disks_of(stages: Vec<Cmdlet<'_>>) -> Result<DiskName, Why> {
    let mut stages = stages.into_iter();
    let mut first = stages.next();
    let vm = match &mut first {
        Some(get) if get.is("Get-VM") => {
            let vm = name_of(get)?;
            first = stages.next();
            Some(vm)
        }
        _ => None,
    };
    let mut disks = first
        .filter(|get| get.is("Get-HardDisk"))
        .ok_or("it is for disks, which Get-HardDisk gets")?;
    let vm = match vm {
        Some(vm) => vm,
        None => of_vm(disks.take_first("VM"))?,
    };
    if disks.take("Name").is_some() {
        return Err(by_place().into());
    }
    all_read(&disks)?;
    let disk = match stages.next() {
        Some(mut filter) if ["Where-Object", "where"].iter().any(|name| filter.is(name)) => {
            match filter.take_first("FilterScript") {
                Some(Value::Script(script)) => Some(place(script).ok_or_else(by_place)?),
                _ => return Err(by_place().into()),
            }
        }
        Some(other) => return Err(format!("kavg does not read {} there", other.name).into()),
        None => None,
    };
    match stages.next() {
        Some(other) => Err(format!("kavg does not read {} there", other.name).into()),
        None => Ok(DiskName { vm, disk }),
    }
}

/// The name of the object that a cmdlet gets, of which it has to be one.
fn name_of(get: &mut Cmdlet<'_>) -> Result<String, Why> {
    let name = get.take_first("Name").and_then(|name| name.name_by(get.name));
    all_read(get)?;
    name.ok_or_else(|| format!("kavg reads {ONE} behind {}", get.name).into())
}

fn of_vm(vm: Option<Value<'_>>) -> Result<String, Why> {
    let vm = vm.ok_or("the VM is missing")?;
    vm.name_by("Get-VM").ok_or_else(|| format!("the VM is {ONE}").into())
}

/// The stages before a cmdlet, or what one of its arguments gives instead.
fn input<'a>(
    before: Vec<Cmdlet<'a>>,
    cmdlet: &mut Cmdlet<'a>,
    parameter: &str,
) -> Result<Vec<Cmdlet<'a>>, Why> {
    if !before.is_empty() {
        return Ok(before);
    }
    match cmdlet.take_first(parameter) {
        Some(Value::Pipeline(stages)) => Ok(stages),
        Some(_) => Err(format!("kavg reads a cmdlet in brackets for -{parameter}").into()),
        None => Err(missing(parameter)),
    }
}

fn policy_of_disks<'a>(before: Vec<Cmdlet<'a>>, set: &mut Cmdlet<'a>) -> Read {
    let policy = match set.take(POLICY).ok_or_else(|| missing(POLICY))? {
        Value::Variable(word) if word.eq_ignore_ascii_case(NULL) => None,
        value => {
            Some(value.name_by(GET_POLICY).ok_or_else(|| format!("the storage policy is {ONE}"))?)
        }
    };
    let mut of = input(before, set, "Configuration")?;
    if let Some(mut get) = of.pop_if(|last| last.is("Get-SpbmEntityConfiguration")) {
        // A VM's own is told as one below.
        let parameter = if of.is_empty() && get.has("VM") { "VM" } else { "HardDisk" };
        of = input(of, &mut get, parameter)?;
        all_read(&get)?;
    }
    if of.last().is_some_and(|last| last.is("Get-VM")) {
        return Err("of a VM it is the policy of its home, and its disks keep theirs".into());
    }
    let vdisk = disks_of(of)?.into();
    let allocation = AllocationChange::Policy(policy);
    Ok((None, vec![Setting::Allocation { vdisk, allocation }]))
}

fn resources_of_disks<'a>(before: Vec<Cmdlet<'a>>, set: &mut Cmdlet<'a>) -> Read {
    const GET: &str = "Get-VMResourceConfiguration";
    let disk = match set.take("Disk").ok_or_else(|| missing("Disk"))? {
        Value::Pipeline(stages) => disks_of(stages)?,
        _ => return Err("kavg reads a cmdlet in brackets for -Disk".into()),
    };
    let mut of = input(before, set, "Configuration")?;
    let mut get = of
        .pop()
        .filter(|get| get.is(GET))
        .ok_or_else(|| format!("it is for what {GET} gets, and -Disk says of which disks"))?;
    let vm = match of.pop() {
        Some(mut vm) if vm.is("Get-VM") && of.is_empty() => name_of(&mut vm)?,
        Some(other) => return Err(format!("kavg does not read {} there", other.name).into()),
        None => of_vm(get.take_first("VM"))?,
    };
    all_read(&get)?;
    if !vm.eq_ignore_ascii_case(&disk.vm) {
        return Err("its disks are of another VM than its configuration".into());
    }
    let mut changes = Vec::new();
    if let Some(limit) = set.take(LIMIT) {
        changes.push(AllocationChange::limit(&word(limit, LIMIT)?)?);
    }
    changes.extend(shares(set)?);
    if changes.is_empty() {
        return Err(format!("it sets nothing of disks: -{LIMIT} or -{LEVEL} is missing").into());
    }
    let vdisk = Disks::from(disk);
    let setting = |allocation| Setting::Allocation { vdisk: vdisk.clone(), allocation };
    Ok((None, changes.into_iter().map(setting).collect()))
}

/// Shares by their level; a number is for the level Custom, and without it nothing where the disk has another
/// [API].
fn shares(set: &mut Cmdlet<'_>) -> Result<Option<AllocationChange>, Why> {
    let level = set.take(LEVEL).map(|level| word(level, LEVEL)).transpose()?;
    let number = set.take(SHARES).map(|number| word(number, SHARES)).transpose()?;
    let presets = Allocation::SHARES_PRESETS;
    let preset = |word: &str| presets.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    let is_custom = level.as_ref().is_some_and(|level| level.eq_ignore_ascii_case(CUSTOM));
    match (level, number) {
        (None, None) => Ok(None),
        (Some(_), None) if is_custom => Err(missing(SHARES)),
        (Some(level), None) => match preset(&level) {
            Some((_, shares)) => Ok(Some(AllocationChange::Shares(*shares))),
            None => {
                let known = presets.iter().map(|(name, _)| *name).chain([CUSTOM]);
                Err(Refusal::from(unknown("level of shares", &level, known)).into())
            }
        },
        (_, Some(number)) if preset(&number).is_some() => {
            Err(format!("-{SHARES} is a number, and `{number}` is one for -{LEVEL}").into())
        }
        (_, Some(number)) if is_custom => Ok(Some(AllocationChange::shares(&number)?)),
        (_, Some(_)) => {
            Err(format!("-{SHARES} goes with -{LEVEL} {CUSTOM}, and without it says nothing")
                .into())
        }
    }
}

/// The word that an argument is.
fn word(value: Value<'_>, parameter: &str) -> Result<String, Why> {
    value.word().ok_or_else(|| format!("-{parameter} is no plain word").into())
}

/// What the line leaves out stays as it is.
fn control_of_datastore<'a>(before: Vec<Cmdlet<'a>>, set: &mut Cmdlet<'a>) -> Read {
    let of = match before.is_empty() {
        true => set.take_first("Datastore").ok_or_else(|| missing("Datastore"))?,
        false => Value::Pipeline(before),
    };
    let device = of.name_by("Get-Datastore").ok_or_else(|| format!("the datastore is {ONE}"))?;
    let threshold_us = match set.take(THRESHOLD) {
        Some(millis) => Some(threshold(&word(millis, THRESHOLD)?)?),
        None => None,
    };
    let enabled = match set.take(ENABLED) {
        Some(Value::Variable(on)) if on.eq_ignore_ascii_case("$true") => Some(true),
        Some(Value::Variable(on)) if on.eq_ignore_ascii_case("$false") => Some(false),
        Some(_) => return Err(format!("-{ENABLED} is $true or $false").into()),
        None => None,
    };
    let control = match (enabled, threshold_us) {
        (Some(true), Some(threshold_us)) => IoControl::On { threshold_us }.into(),
        (Some(true), None) => IoControlChange::Enabled,
        (Some(false), Some(threshold_us)) => IoControl::Stats { threshold_us }.into(),
        (Some(false), None) => IoControl::Off.into(),
        (None, Some(threshold_us)) => IoControlChange::Threshold { threshold_us },
        (None, None) => return Err(format!("-{ENABLED} or -{THRESHOLD} is missing").into()),
    };
    Ok((None, vec![Setting::StorageIoControl { device, control }]))
}

fn threshold(millis: &str) -> Result<u32, Refusal> {
    let number = command::number(&format!("-{THRESHOLD}"), millis, &CONGESTION_MS)?;
    Ok(number.saturating_mul(1000))
}

/// The line for Storage I/O Control of a datastore.
pub(crate) fn print_sioc(datastore: &str, control: IoControlChange) -> String {
    let threshold = |micros| format!(" -{THRESHOLD} {}", micros / 1000);
    let enabled = |is_on| format!(" -{ENABLED} ${is_on}");
    let what = match control {
        IoControlChange::To(control) => {
            let is_on = matches!(control, IoControl::On { .. });
            enabled(is_on) + &control.threshold_us().map(threshold).unwrap_or_default()
        }
        IoControlChange::Enabled => enabled(true),
        IoControlChange::Threshold { threshold_us } => threshold(threshold_us),
    };
    format!("{OF_DATASTORE}{} | {}{what}", powershell_name(datastore), SET_DATASTORE)
}

const GET_OPTION: &str = "Get-AdvancedSetting";
const GET_HOST: &str = "Get-VMHost";

fn like_option() -> String {
    let name = dotted(Advanced::QFullSampleSize);
    format!("{GET_OPTION} -Entity (Get-VMHost 'NAME') -Name {name} | Set-AdvancedSetting -Value N")
}

/// An option as vCenter calls it: `Disk.QFullSampleSize` [PCLI].
fn dotted(option: Advanced) -> String {
    option.info().path.trim_start_matches('/').replace('/', ".")
}

fn option_of_host<'a>(before: Vec<Cmdlet<'a>>, set: &mut Cmdlet<'a>) -> Read {
    let mut of = input(before, set, "AdvancedSetting")?;
    let mut get = of
        .pop()
        .filter(|get| get.is(GET_OPTION))
        .ok_or_else(|| format!("it is for what {GET_OPTION} gets"))?;
    let host = match of.is_empty() {
        true => get.take_first("Entity").ok_or_else(|| missing("Entity"))?,
        false => Value::Pipeline(of),
    };
    let host = host_of(host)?;
    let name = word(get.take_first("Name").ok_or_else(|| missing("Name"))?, "Name")?;
    all_read(&get)?;
    let mut known = Advanced::TABLE.iter().map(|info| info.option);
    let found = known.find(|option| dotted(*option).eq_ignore_ascii_case(&name));
    let option = found.map_or_else(|| command::option(&name), Ok)?;
    let value = word(set.take_first("Value").ok_or_else(|| missing("Value"))?, "Value")?;
    let value = Some(command::number("-Value", &value, &option.info().range())?);
    Ok((host, vec![Setting::Advanced { option, value }]))
}

/// The host that is meant; `None` is each, as `Get-VMHost` alone gets them.
fn host_of(host: Value<'_>) -> Result<Option<String>, Why> {
    let stages = match host {
        Value::Pipeline(stages) => stages,
        other => {
            return Ok(Some(other.name_by(GET_HOST).ok_or_else(|| format!("the host is {ONE}"))?));
        }
    };
    let [mut get] = <[Cmdlet<'_>; 1]>::try_from(stages)
        .map_err(|_| format!("kavg reads one {GET_HOST} there"))?;
    if !get.is(GET_HOST) {
        return Err(format!("kavg sets options of hosts, which {GET_HOST} gets").into());
    }
    match get.is_bare() {
        true => Ok(None),
        false => name_of(&mut get).map(Some),
    }
}
