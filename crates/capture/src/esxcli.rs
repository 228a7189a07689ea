//! What `esxcli` prints about queues: the limits that no capture holds.
//!
//! DSNRO, the real depth of a device, drivers and their parameters are in no column of esxtop
//! [CAP]; these outputs beside a capture replace inference by fact. The kind of an output is told
//! by its keys and headings [LIST8, LIST5, ELA, QD254].

use std::collections::BTreeMap;

use knobs::{PathPolicy, PolicyChange};

use crate::Error;

/// An output of one of the commands that are understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Esxcli {
    /// `esxcli storage core device list`
    Devices(Vec<CoreDevice>),
    /// `esxcli storage nmp device list`
    Nmp(Vec<NmpDevice>),
    /// `esxcli storage core adapter list`
    Adapters(Vec<CoreAdapter>),
    /// `esxcli system module parameters list -m MODULE`
    Parameters(Vec<ModuleParameter>),
    /// `esxcli storage vmfs extent list`
    Extents(Vec<Extent>),
    /// `esxcli system settings advanced list`: each option that has a number
    Options(Vec<HostOption>),
    /// `esxcli system version get`: the version (`7.0.3`)
    Version(String),
    /// `esxcli iscsi adapter param get`: name and current value of each parameter; of which adapter it does
    /// not say
    Iscsi(Vec<(String, String)>),
}

/// An option as `system settings advanced list` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOption {
    /// Its path (`/Disk/QFullSampleSize`).
    pub path: String,
    /// What it is set to.
    pub value: u32,
    /// Its default, where that is told.
    pub default: Option<u32>,
}

/// A part of a datastore as `storage vmfs extent list` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The datastore.
    pub volume: String,
    /// The device that the part is on.
    pub device: String,
}

/// A device as `storage core device list` shows it. What a version does not print is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreDevice {
    /// Its name (`naa.…`).
    pub name: String,
    /// The name that people gave it.
    pub display_name: Option<String>,
    /// `NMP` or `HPP`.
    pub plugin: Option<String>,
    /// The vendor of the array, without padding.
    pub vendor: Option<String>,
    /// The model of the array, without padding.
    pub model: Option<String>,
    /// Whether the host holds it for flash.
    pub is_ssd: Option<bool>,
    /// Whether no other host can see it.
    pub is_local: Option<bool>,
    /// Whether it is a protocol endpoint of virtual volumes.
    pub is_vvol_pe: Option<bool>,
    /// Device Max Queue Depth, which 5.5 does not print.
    pub max_queue_depth: Option<u32>,
    /// No of outstanding IOs with competing worlds (DSNRO).
    pub dsnro: Option<u32>,
    /// Queue Full Sample Size; 0 turns adaptive throttling off.
    pub queue_full_sample_size: Option<u32>,
    /// Queue Full Threshold.
    pub queue_full_threshold: Option<u32>,
}

/// A device as `storage nmp device list` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NmpDevice {
    /// Its name (`naa.…`).
    pub name: String,
    /// The plug-in for the array (`VMW_SATP_ALUA`).
    pub satp: Option<String>,
    /// The plug-in that selects paths (`VMW_PSP_RR`).
    pub psp: Option<String>,
    /// After how many I/Os round robin takes the next path.
    pub round_robin_iops: Option<u32>,
    /// The policy with what it goes by; `None` for a plug-in that is not one of ESXi's three.
    pub policy: Option<PathPolicy>,
    /// Whether round robin takes paths to the other controller as well (`useANO`), where it says so.
    pub use_ano: Option<bool>,
    /// The path that Fixed prefers.
    pub preferred: Option<String>,
    /// Paths in use (`vmhba37:C1:T0:L4`).
    pub working_paths: Vec<String>,
}

/// An adapter as `storage core adapter list` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreAdapter {
    /// Its name (`vmhba1`).
    pub name: String,
    /// The module that drives it (`nfnic`).
    pub driver: String,
    /// `link-up` or what else.
    pub link_state: String,
    /// What it is.
    pub description: String,
}

/// A parameter as `system module parameters list` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleParameter {
    /// Its name.
    pub name: String,
    /// Its value; `None` when nobody set one [S0].
    pub value: Option<String>,
    /// What it does, often with range and default.
    pub description: String,
}

/// Reads an output of `esxcli`; `file` is its name in messages.
///
/// # Errors
/// An output of none of the commands, or a number that is none.
pub fn parse_esxcli(file: &str, text: &str) -> Result<Esxcli, Error> {
    parse_outputs(file, text)?.into_iter().next().ok_or_else(|| unknown(file))
}

/// Reads outputs of `esxcli` that stand one behind the other, as they are collected of a host; what else
/// is there is passed over.
///
/// # Errors
/// None of the outputs is understood, or a number that is none.
pub fn parse_outputs(file: &str, text: &str) -> Result<Vec<Esxcli>, Error> {
    let lines: Vec<&str> = text.lines().collect();
    let mut outputs = Vec::new();
    let mut refusal = None;
    let mut blocks = Vec::new();
    let mut from = 0;
    for rule in (1..lines.len()).filter(|&at| is_rule(lines[at])) {
        if rule <= from {
            continue;
        }
        Block::all(file, from, &lines[from..rule - 1], &mut blocks);
        from = Table::end(&lines, rule);
        let table = Table::parse(&lines[rule - 1..from]);
        match table.as_ref().and_then(Table::output) {
            Some(output) => outputs.push(output),
            None => refusal = refusal.or_else(|| Some(table?.refusal(file))),
        }
    }
    Block::all(file, from, &lines[from..], &mut blocks);
    outputs.extend(of_blocks(&blocks)?);
    if !outputs.is_empty() {
        return Ok(outputs);
    }
    let Some(block) = blocks.first() else { return Err(refusal.unwrap_or_else(|| unknown(file))) };
    let lines = OF_A_DEVICE.map(|key| format!("'{key}'")).join(", ");
    let what = format!(
        "'{}' has no line {lines} ('storage core device list') or '{PATH_POLICY}' ('storage nmp \
         device list'); one of them must be there",
        block.name
    );
    Err(refusal.unwrap_or_else(|| Error::new(file, what)))
}

/// What the blocks of a file are of, whichever of the commands printed each.
fn of_blocks(blocks: &[Block<'_>]) -> Result<Vec<Esxcli>, Error> {
    let of = |kind: Kind| blocks.iter().filter(move |block| block.kind() == Some(kind));
    let mut outputs = Vec::new();
    let devices = once(of(Kind::Device), Block::device)?;
    outputs.extend((!devices.is_empty()).then_some(Esxcli::Devices(devices)));
    let devices = once(of(Kind::Nmp), Block::nmp)?;
    outputs.extend((!devices.is_empty()).then_some(Esxcli::Nmp(devices)));
    let options = once(of(Kind::Option), Block::option)?;
    let options: Vec<_> = options.into_iter().flatten().collect();
    outputs.extend((!options.is_empty()).then_some(Esxcli::Options(options)));
    outputs.extend(once(of(Kind::Version), Block::version)?.into_iter().map(Esxcli::Version));
    Ok(outputs)
}

/// What printed a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Device,
    Nmp,
    Option,
    Version,
}

const MAX_DEPTH: &str = "Device Max Queue Depth";
const COMPETING: &str = "No of outstanding IOs with competing worlds";
const PATH_POLICY: &str = "Path Selection Policy";

/// Lines of which each alone tells an output, or what somebody kept of one, to be of devices.
const OF_A_DEVICE: [&str; 3] = ["Devfs Path", MAX_DEPTH, COMPETING];

/// The first lines of blocks that have no name above them: of `system settings advanced list` and of
/// `system version get` (reference section 6.4, from memory).
const NAMELESS: [&str; 2] = ["Path", "Product"];
const INT_VALUE: &str = "Int Value";
const DEFAULT_INT_VALUE: &str = "Default Int Value";
const VERSION: &str = "Version";

fn unknown(file: &str) -> Error {
    let expected = "'storage core device list', 'storage core adapter list', \
                    'storage nmp device list', 'storage vmfs extent list', 'system module \
                    parameters list', 'system settings advanced list', 'system version get' or 'iscsi \
                    adapter param get'";
    Error::new(file, format!("this is no output of esxcli that is understood; expected {expected}"))
}

/// What the blocks are of, each device once: the same said again is said once, and where something
/// else is said of a device nobody knows which holds.
fn once<'b, 'a: 'b, T: PartialEq>(
    blocks: impl Iterator<Item = &'b Block<'a>>,
    read: impl Fn(&Block<'a>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut first: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    let mut all: Vec<T> = Vec::new();
    for block in blocks {
        block.check_keys()?;
        let (line, item) = (block.line, read(block)?);
        let &mut (before, place) = first.entry(block.name).or_insert((line, all.len()));
        match all.get(place) {
            None => all.push(item),
            Some(known) if *known == item => {}
            Some(_) => {
                let what = format!(
                    "'{}' is described once more and otherwise than in line {before}; keep the \
                     one that holds",
                    block.name
                );
                return Err(Error::at(block.file, line, what));
            }
        }
    }
    Ok(all)
}

/// A name at the begin of a line and the indented `Key: Value` lines below it.
struct Block<'a> {
    file: &'a str,
    line: u64,
    name: &'a str,
    /// Line, key and value.
    fields: Vec<(u64, &'a str, &'a str)>,
}

impl<'a> Block<'a> {
    /// Adds the blocks of lines, of which `before` stand above them in the file.
    fn all(file: &'a str, before: usize, lines: &[&'a str], blocks: &mut Vec<Self>) {
        let first = blocks.len();
        for (line, text) in (before as u64 + 1..).zip(lines) {
            let name = text.trim();
            // `[...]` stands for lines that somebody left out [S1].
            let is_left_out = name.chars().all(|c| matches!(c, '[' | ']' | '.'));
            if !is_left_out && !text.starts_with([' ', '\t']) {
                blocks.push(Self { file, line, name, fields: Vec::new() });
            } else if let Some((key, value)) = name.split_once(':') {
                let value = value.trim();
                if NAMELESS.contains(&key) {
                    blocks.push(Self { file, line, name: value, fields: Vec::new() });
                }
                if let Some(block) = blocks.get_mut(first..).and_then(<[Self]>::last_mut) {
                    block.fields.push((line, key, value));
                }
            }
        }
        // A prompt or a command line before the output has nothing below it.
        blocks.retain(|block| !block.fields.is_empty());
    }

    /// What printed it; `None` where no command did that is understood.
    fn kind(&self) -> Option<Kind> {
        let has = |key: &str| self.field(key).is_some();
        match () {
            () if has(PATH_POLICY) => Some(Kind::Nmp),
            () if OF_A_DEVICE.into_iter().any(has) => Some(Kind::Device),
            () if has(INT_VALUE) => Some(Kind::Option),
            () if has(VERSION) && has(NAMELESS[1]) => Some(Kind::Version),
            () => None,
        }
    }

    /// Refuses a key that stands twice with other values.
    fn check_keys(&self) -> Result<(), Error> {
        let mut first = BTreeMap::new();
        for &(line, key, value) in &self.fields {
            let &mut (before, known) = first.entry(key).or_insert((line, value));
            if known != value {
                let what = format!(
                    "'{key}' of '{}' is '{value}' here and '{known}' in line {before}; keep the \
                     one that holds",
                    self.name
                );
                return Err(Error::at(self.file, line, what));
            }
        }
        Ok(())
    }

    fn field(&self, key: &str) -> Option<(u64, &'a str)> {
        self.fields.iter().find(|field| field.1 == key).map(|field| (field.0, field.2))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.field(key).map(|(_, value)| value.to_owned())
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, Error> {
        self.read(key, "true or false")
    }

    fn number(&self, key: &str) -> Result<Option<u32>, Error> {
        self.read(key, "a whole number")
    }

    fn read<T: std::str::FromStr>(&self, key: &str, expected: &str) -> Result<Option<T>, Error> {
        let Some((line, value)) = self.field(key) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| {
            Error::at(self.file, line, format!("'{key}' is '{value}'; expected {expected}"))
        })
    }

    fn device(&self) -> Result<CoreDevice, Error> {
        Ok(CoreDevice {
            name: self.name.into(),
            display_name: self.text("Display Name"),
            plugin: self.text("Multipath Plugin"),
            vendor: self.text("Vendor"),
            model: self.text("Model"),
            is_ssd: self.flag("Is SSD")?,
            is_local: self.flag("Is Local")?,
            is_vvol_pe: self.flag("Is VVOL PE")?,
            max_queue_depth: self.number(MAX_DEPTH)?,
            // No host has 0 of it: it is not told then.
            dsnro: self.number(COMPETING)?.filter(|dsnro| *dsnro > 0),
            queue_full_sample_size: self.number("Queue Full Sample Size")?,
            queue_full_threshold: self.number("Queue Full Threshold")?,
        })
    }

    /// An option; one that is a text has no number.
    fn option(&self) -> Result<Option<HostOption>, Error> {
        let (Some(path), Some(value)) = (self.text(NAMELESS[0]), self.option_number(INT_VALUE)?)
        else {
            return Ok(None);
        };
        let default = self.option_number(DEFAULT_INT_VALUE)?.and_then(|of| u32::try_from(of).ok());
        Ok(u32::try_from(value).ok().map(|value| HostOption { path, value, default }))
    }

    /// Options of which kavg knows nothing may be negative, or larger than any it knows.
    fn option_number(&self, key: &str) -> Result<Option<i64>, Error> {
        match self.field(key) {
            Some((_, "")) | None => Ok(None),
            Some(_) => self.read(key, "a whole number"),
        }
    }

    fn version(&self) -> Result<String, Error> {
        Ok(self.text(VERSION).unwrap_or_default())
    }

    fn nmp(&self) -> Result<NmpDevice, Error> {
        let told = self.text("Path Selection Policy Device Config");
        let config = told.as_deref().unwrap_or_default();
        let iops = config.split(['{', ',', ';', '}']).find_map(|part| part.strip_prefix("iops="));
        let paths = self.text("Working Paths").unwrap_or_default();
        let psp = self.text(PATH_POLICY);
        let plug_in = psp.as_deref().and_then(PolicyChange::plug_in);
        Ok(NmpDevice {
            name: self.name.into(),
            satp: self.text("Storage Array Type"),
            psp,
            round_robin_iops: iops.and_then(|iops| iops.parse().ok()),
            // Of Round Robin the plug-in alone does not say what it goes by.
            policy: plug_in
                .map(PolicyChange::policy)
                .filter(|start| told.is_some() || !matches!(start, PathPolicy::RoundRobin { .. }))
                .map(|start| policy(start, config)),
            use_ano: config_field(config, "useANO").map(|value| value == "1"),
            preferred: config_field(config, "preferred")
                .filter(|path| !path.is_empty())
                .map(String::from),
            working_paths: paths
                .split(',')
                .map(|path| path.trim().to_owned())
                .filter(|path| !path.is_empty())
                .collect(),
        })
    }
}

/// The value of a key of `Path Selection Policy Device Config`: `{policy=rr,iops=1000,useANO=0;...}`.
fn config_field<'a>(config: &'a str, key: &str) -> Option<&'a str> {
    let mut parts = config.split(['{', ',', ';', '}', ' ']);
    parts.find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
}

/// What a plug-in goes by, as `Path Selection Policy Device Config` has it [ELA, BB]; what that leaves out
/// is as the plug-in starts.
fn policy(start: PathPolicy, config: &str) -> PathPolicy {
    let field = |key: &str| config_field(config, key);
    let number = |key| field(key).and_then(|value| value.parse::<u64>().ok());
    let small = |key| number(key).and_then(|number| u32::try_from(number).ok());
    let PathPolicy::RoundRobin { iops: iops_start, bytes: bytes_start } = start else {
        return start;
    };
    let (iops, bytes) = (small("iops"), number("bytes"));
    match field("policy") {
        Some("bytes") => {
            PathPolicy::RoundRobin { iops: u32::MAX, bytes: bytes.unwrap_or(bytes_start) }
        }
        Some("latency") => match PathPolicy::LATENCY {
            PathPolicy::Latency { sampling_ios, eval_ns } => PathPolicy::Latency {
                sampling_ios: small("samplingCycles").unwrap_or(sampling_ios),
                eval_ns: number("latencyEvalTime")
                    .map_or(eval_ns, |millis| millis.saturating_mul(counters::MILLISECOND)),
            },
            other => other,
        },
        Some("iops") => {
            PathPolicy::RoundRobin { iops: iops.unwrap_or(iops_start), bytes: u64::MAX }
        }
        _ if iops.is_some_and(|iops| iops != iops_start) => {
            PathPolicy::RoundRobin { iops: iops.unwrap_or(iops_start), bytes: u64::MAX }
        }
        _ => start,
    }
}

/// Whether a line is the one of dashes below headings.
fn is_rule(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '-' | ' ' | '\r')) && line.contains("--")
}

/// Headings, a line of dashes that says how wide the columns are, and rows.
struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Where the rows below the line of dashes end: before the headings of another table, and before what
    /// is no table, a block or the next command line.
    fn end(lines: &[&str], rule: usize) -> usize {
        let field = |at: usize| {
            let line = lines.get(at).filter(|line| line.starts_with("   "))?;
            line.trim().split_once(':').map(|(key, _)| key)
        };
        let is_rule_at = |at: usize| lines.get(at).is_some_and(|line| is_rule(line));
        // A row stands above fields that have no name, and above others their name does.
        let names = |at: usize| field(at + 1).is_some_and(|key| !NAMELESS.contains(&key));
        let ends = |at: &usize| {
            is_rule_at(at + 1)
                || field(*at).is_some()
                || names(*at)
                || lines[*at].contains("esxcli ")
        };
        (rule + 1..lines.len()).find(ends).unwrap_or(lines.len())
    }

    /// A table whose headings are the first line, with the dashes below them.
    fn parse(lines: &[&str]) -> Option<Self> {
        let rule = 1;
        let starts: Vec<usize> = lines[rule]
            .char_indices()
            .filter(|&(at, c)| c == '-' && (at == 0 || lines[rule].as_bytes()[at - 1] == b' '))
            .map(|(at, _)| at)
            .collect();
        let (_, after_first) = starts.split_first()?;
        let split = |line: &str| -> Vec<String> {
            let characters: Vec<char> = line.chars().collect();
            let ends = after_first.iter().copied().chain([usize::MAX]);
            starts
                .iter()
                .zip(ends)
                .map(|(&start, end)| {
                    let end = end.min(characters.len());
                    let cell = characters.get(start..end).unwrap_or_default();
                    cell.iter().collect::<String>().trim().to_owned()
                })
                .collect()
        };
        let rows = lines[rule + 1..].iter().filter(|line| !line.trim().is_empty());
        Some(Self {
            headings: split(lines[rule - 1]),
            rows: rows.map(|line| split(line)).collect(),
        })
    }

    fn column(&self, heading: &str) -> Option<usize> {
        self.headings.iter().position(|known| known == heading)
    }

    /// Why it is none of those that are understood.
    fn refusal(&self, file: &str) -> Error {
        if self.column("Mount Point").is_none() {
            return unknown(file);
        }
        let what = "'storage filesystem list' does not say which device a datastore is on; \
                    'storage vmfs extent list' does";
        Error::new(file, what)
    }

    fn output(&self) -> Option<Esxcli> {
        let column = |heading: &str| self.column(heading);
        let cell = |row: &[String], column: Option<usize>| -> String {
            column.and_then(|column| row.get(column)).cloned().unwrap_or_default()
        };
        let description = column("Description");
        if let (Some(name), Some(driver)) = (column("HBA Name"), column("Driver")) {
            let link_state = column("Link State");
            let adapter = |row: &Vec<String>| CoreAdapter {
                name: cell(row, Some(name)),
                driver: cell(row, Some(driver)),
                link_state: cell(row, link_state),
                description: cell(row, description),
            };
            return Some(Esxcli::Adapters(self.rows.iter().map(adapter).collect()));
        }
        if let (Some(volume), Some(device)) = (column("Volume Name"), column("Device Name")) {
            let extent = |row: &Vec<String>| Extent {
                volume: cell(row, Some(volume)),
                device: cell(row, Some(device)),
            };
            return Some(Esxcli::Extents(self.rows.iter().map(extent).collect()));
        }
        // The parameters of the software initiator [ELA].
        if let (Some(name), Some(current), Some(_)) =
            (column("Name"), column("Current"), column("Settable"))
        {
            let parameter = |row: &Vec<String>| (cell(row, Some(name)), cell(row, Some(current)));
            return Some(Esxcli::Iscsi(self.rows.iter().map(parameter).collect()));
        }
        let (name, value) = (column("Name")?, column("Value")?);
        let parameter = |row: &Vec<String>| ModuleParameter {
            name: cell(row, Some(name)),
            value: Some(cell(row, Some(value))).filter(|value| !value.is_empty()),
            description: cell(row, description),
        };
        Some(Esxcli::Parameters(self.rows.iter().map(parameter).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEVICES: &str = "[root@esx01:~] esxcli storage core device list
naa.6000000000000001
   Display Name: Test Disk (naa.6000000000000001)
   Multipath Plugin: NMP
   Devfs Path: /vmfs/devices/disks/naa.6000000000000001
   Vendor: TEST    
   Model: LUN             
   Is Local: false
   Is SSD: true
   Is VVOL PE: false
   Queue Full Sample Size: 32
   Queue Full Threshold: 4
   Device Max Queue Depth: 64
   No of outstanding IOs with competing worlds: 32

mpx.vmhba0:C0:T0:L0
   Display Name: Local
   Devfs Path: /vmfs/devices/cdrom/mpx.vmhba0:C0:T0:L0
   No of outstanding IOs with competing worlds: 32
";

    #[test]
    fn devices_of_old_and_new_versions() {
        let Ok(Esxcli::Devices(devices)) = parse_esxcli("list.txt", DEVICES) else {
            panic!("no devices")
        };
        assert_eq!(devices.len(), 2);
        assert_eq!(devices[0].vendor.as_deref(), Some("TEST"));
        assert_eq!((devices[0].max_queue_depth, devices[0].dsnro), (Some(64), Some(32)));
        assert_eq!((devices[0].is_ssd, devices[0].is_vvol_pe), (Some(true), Some(false)));
        assert_eq!((devices[1].max_queue_depth, devices[1].dsnro), (None, Some(32)));
    }

    #[test]
    fn what_an_article_prints_of_a_device_is_enough() {
        let text = "naa.60000970000197800380533030303445
   Display Name: EMC Fibre Channel Disk (naa.60000970000197800380533030303445)
[...]
   Device Max Queue Depth: 128
   No of outstanding IOs with competing worlds: 32
";
        let Ok(Esxcli::Devices(devices)) = parse_esxcli("s1.txt", text) else {
            panic!("no devices")
        };
        let [device] = devices.as_slice() else { panic!("{devices:?}") };
        assert_eq!(device.name, "naa.60000970000197800380533030303445");
        assert_eq!((device.max_queue_depth, device.dsnro), (Some(128), Some(32)));
    }

    #[test]
    fn paths_and_policy_of_a_device() {
        let text = "naa.600144f0
   Device Display Name: Test iSCSI Disk (naa.600144f0)
   Storage Array Type: VMW_SATP_ALUA
   Path Selection Policy: VMW_PSP_RR
   Path Selection Policy Device Config: {policy=rr,iops=1000,bytes=10485760,useANO=0;}
   Working Paths: vmhba37:C1:T0:L4, vmhba37:C0:T0:L4
   Is USB: false
";
        let expected = NmpDevice {
            name: "naa.600144f0".into(),
            satp: Some("VMW_SATP_ALUA".into()),
            psp: Some("VMW_PSP_RR".into()),
            round_robin_iops: Some(1000),
            policy: Some(PathPolicy::ROUND_ROBIN),
            use_ano: Some(false),
            preferred: None,
            working_paths: vec!["vmhba37:C1:T0:L4".into(), "vmhba37:C0:T0:L4".into()],
        };
        assert_eq!(parse_esxcli("nmp.txt", text), Ok(Esxcli::Nmp(vec![expected])));
        let untold =
            "naa.1\n   Path Selection Policy: VMW_PSP_RR\n   Working Paths: vmhba1:C0:T0:L1\n";
        let Ok(Esxcli::Nmp(devices)) = parse_esxcli("nmp.txt", untold) else {
            panic!("no devices")
        };
        assert_eq!((devices[0].psp.as_deref(), devices[0].policy), (Some("VMW_PSP_RR"), None));
    }

    #[test]
    fn a_preferred_path_and_parameters_of_iscsi() {
        let fixed = "naa.1\n   Path Selection Policy: VMW_PSP_FIXED\n   Path Selection Policy Device Config: \
                     {preferred=vmhba3:C0:T1:L1;current=vmhba2:C0:T0:L1}\n";
        let Ok(Esxcli::Nmp(devices)) = parse_esxcli("nmp.txt", fixed) else { panic!("no devices") };
        assert_eq!(devices[0].preferred.as_deref(), Some("vmhba3:C0:T1:L1"));
        assert_eq!((devices[0].policy, devices[0].use_ano), (Some(PathPolicy::Fixed), None));
        let iscsi = "\
Name        Current  Default  Min  Max  Settable  Inherit
----------  -------  -------  ---  ---  --------  -------
DelayedAck  false    true     na   na   true      false
";
        let expected = Esxcli::Iscsi(vec![("DelayedAck".into(), "false".into())]);
        assert_eq!(parse_esxcli("iscsi.txt", iscsi), Ok(expected));
    }

    #[test]
    fn the_same_said_again_is_said_once() {
        let device = "naa.1\n   Device Max Queue Depth: 64\n";
        let Ok(Esxcli::Devices(devices)) = parse_esxcli("f", &device.repeat(2)) else {
            panic!("no devices")
        };
        assert_eq!(devices.len(), 1);
    }

    #[test]
    fn tables_of_adapters_and_parameters() {
        let adapters = "\
HBA Name  Driver  Link State  UID        Capabilities  Description
--------  ------  ----------  ---------  ------------  -----------------------
vmhba1    nfnic   link-up     fc.20:21   Data          (0000:62:00.0) Test HBA
";
        let expected = CoreAdapter {
            name: "vmhba1".into(),
            driver: "nfnic".into(),
            link_state: "link-up".into(),
            description: "(0000:62:00.0) Test HBA".into(),
        };
        let parsed = parse_esxcli("adapters.txt", adapters);
        assert_eq!(parsed, Ok(Esxcli::Adapters(vec![expected])));
        let parameters = "\
Name                      Type   Value  Description
------------------------  -----  -----  -----------------------
lun_queue_depth_per_path  ulong  254    nfnic lun queue depth
other                     int           not set
";
        let Ok(Esxcli::Parameters(parsed)) = parse_esxcli("parameters.txt", parameters) else {
            panic!("no parameters")
        };
        assert_eq!(parsed[0].value.as_deref(), Some("254"));
        assert_eq!(parsed[1].value, None);
    }

    #[test]
    fn datastores_and_their_devices() {
        let text = "\
Volume Name  VMFS UUID                            Extent Number  Device Name           Partition
-----------  -----------------------------------  -------------  --------------------  ---------
gold 03      5bc7459f-967eeb48-b3f7-20677cd9a16c              0  naa.6000000000000001          1
local        5bc7459f-967eeb48-b3f7-20677cd9a16d              0  mpx.vmhba0:C0:T0:L0           3
";
        let extent =
            |volume: &str, device: &str| Extent { volume: volume.into(), device: device.into() };
        let expected =
            vec![extent("gold 03", "naa.6000000000000001"), extent("local", "mpx.vmhba0:C0:T0:L0")];
        assert_eq!(parse_esxcli("extents.txt", text), Ok(Esxcli::Extents(expected)));
    }

    #[test]
    fn outputs_one_behind_the_other_come_apart() {
        let nmp = "naa.6000000000000001\n   Path Selection Policy: VMW_PSP_RR\n   Path Selection Policy \
                   Device Config: {policy=iops,iops=1,bytes=10485760;}\n";
        let adapters = "HBA Name  Driver\n--------  ------\nvmhba1    nfnic\n";
        let parameters = "Name  Type  Value  Description\n----  ----  -----  -----------\n\
                          depth  int  7\n";
        let options = "   Path: /Disk/A\n   Int Value: 8\n   Default Int Value: 4\n   String Value:\n\n   Path: /Disk/B\n   \
                       Int Value:\n   String Value: b\n   Path: /Disk/C\n   Int Value: -1\n";
        let version = "[root@esx01:~] esxcli system version get\n   Product: VMware ESXi\n   \
                       Version: 7.0.3\n";
        let others = "Mount Point  Volume Name\n-----------  -----------\n/vmfs        gold\n";
        let text = [version, adapters, parameters, options, DEVICES, nmp, adapters, nmp, others];
        let outputs = parse_outputs("esx01.txt", &text.concat()).unwrap();
        let [Esxcli::Adapters(adapters), Esxcli::Parameters(parameters), ..] = &outputs[..] else {
            panic!("{outputs:?}")
        };
        assert_eq!((adapters.len(), parameters.len()), (1, 1));
        assert_eq!(outputs[2], Esxcli::Adapters(adapters.clone()));
        let [_, _, _, Esxcli::Devices(devices), Esxcli::Nmp(nmp), rest @ ..] = &outputs[..] else {
            panic!("{outputs:?}")
        };
        assert_eq!((devices.len(), nmp.len()), (2, 1));
        let policy = PathPolicy::RoundRobin { iops: 1, bytes: u64::MAX };
        assert_eq!(nmp[0].policy, Some(policy));
        let options = Esxcli::Options(vec![HostOption {
            path: "/Disk/A".into(),
            value: 8,
            default: Some(4),
        }]);
        assert_eq!(rest, [options, Esxcli::Version("7.0.3".into())]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            ("", "f: this is no output of esxcli that is understood; expected"),
            ("a: b\n", "f: this is no output"),
            (
                "naa.1\n   Size: 1\n",
                "f: 'naa.1' has no line 'Devfs Path', 'Device Max Queue Depth', 'No of",
            ),
            ("Name  Type\n----  ----\na     b\n", "f: this is no output"),
            (
                "Mount Point  Volume Name\n-----------  -----------\n/vmfs        gold\n",
                "f: 'storage filesystem list' does not say which device a datastore is on",
            ),
            ("Name  Type\n\r----\na     b\n", "f: this is no output"),
            (
                "naa.1\n   Devfs Path: x\n   Device Max Queue Depth: many\n",
                "f:3: 'Device Max Queue Depth' is 'many'; expected a whole number",
            ),
            (
                "naa.1\n   Device Max Queue Depth: 64\n\nnaa.1\n   Device Max Queue Depth: 128\n",
                "f:4: 'naa.1' is described once more and otherwise than in line 1",
            ),
            (
                "naa.1\n   Device Max Queue Depth: 64\n   Device Max Queue Depth: 32\n",
                "f:3: 'Device Max Queue Depth' of 'naa.1' is '32' here and '64' in line 2; keep",
            ),
            (
                "naa.1\n   Devfs Path: x\n   Is SSD: perhaps\n",
                "f:3: 'Is SSD' is 'perhaps'; expected true or false",
            ),
        ];
        for (text, expected) in table {
            let error = parse_esxcli("f", text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(
            text in "(( {3})?(-- --|Name  Value|Path|Product: |Int Value: )?[A-Za-z0-9 :.,{}\u{fc}-]{0,30}\n){0,12}"
        ) {
            let _ = parse_esxcli("f", &text);
        }
    }
}
