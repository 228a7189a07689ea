//! What `esxcli` prints about queues: the limits that no capture holds.
//!
//! DSNRO, the real depth of a device, drivers and their parameters are in no column of esxtop
//! [CAP]; these outputs beside a capture replace inference by fact. The kind of an output is told
//! by its keys and headings [LIST8, LIST5, ELA, QD254].

use std::collections::BTreeMap;

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
    if let Some(table) = Table::parse(text) {
        return table.output().ok_or_else(|| table.refusal(file));
    }
    let blocks = Block::all(file, text);
    if blocks.iter().any(|block| block.field(PATH_POLICY).is_some()) {
        return once(&blocks, Block::nmp).map(Esxcli::Nmp);
    }
    let of_device = |block: &Block| OF_A_DEVICE.iter().any(|key| block.field(key).is_some());
    if blocks.iter().any(of_device) {
        return once(&blocks, Block::device).map(Esxcli::Devices);
    }
    let Some(block) = blocks.first() else { return Err(unknown(file)) };
    let lines = OF_A_DEVICE.map(|key| format!("'{key}'")).join(", ");
    let what = format!(
        "'{}' has no line {lines} ('storage core device list') or '{PATH_POLICY}' ('storage nmp \
         device list'); one of them must be there",
        block.name
    );
    Err(Error::new(file, what))
}

const MAX_DEPTH: &str = "Device Max Queue Depth";
const COMPETING: &str = "No of outstanding IOs with competing worlds";
const PATH_POLICY: &str = "Path Selection Policy";

/// Lines of which each alone tells an output, or what somebody kept of one, to be of devices.
const OF_A_DEVICE: [&str; 3] = ["Devfs Path", MAX_DEPTH, COMPETING];

fn unknown(file: &str) -> Error {
    let expected = "'storage core device list', 'storage core adapter list', \
                    'storage nmp device list', 'storage vmfs extent list' or 'system module \
                    parameters list'";
    Error::new(file, format!("this is no output of esxcli that is understood; expected {expected}"))
}

/// What the blocks are of, each device once: the same said again is said once, and where something
/// else is said of a device nobody knows which holds.
fn once<'a, T: PartialEq>(
    blocks: &[Block<'a>],
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
    fn all(file: &'a str, text: &'a str) -> Vec<Self> {
        let mut blocks: Vec<Self> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let name = text.trim();
            // `[...]` stands for lines that somebody left out [S1].
            let is_left_out = name.chars().all(|c| matches!(c, '[' | ']' | '.'));
            if !is_left_out && !text.starts_with([' ', '\t']) {
                blocks.push(Self { file, line, name, fields: Vec::new() });
            } else if let (Some(block), Some((key, value))) =
                (blocks.last_mut(), name.split_once(':'))
            {
                block.fields.push((line, key, value.trim()));
            }
        }
        // A prompt or a command line before the output has nothing below it.
        blocks.retain(|block| !block.fields.is_empty());
        blocks
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
            dsnro: self.number(COMPETING)?,
            queue_full_sample_size: self.number("Queue Full Sample Size")?,
            queue_full_threshold: self.number("Queue Full Threshold")?,
        })
    }

    fn nmp(&self) -> Result<NmpDevice, Error> {
        let config = self.text("Path Selection Policy Device Config").unwrap_or_default();
        let iops = config.split(['{', ',', ';', '}']).find_map(|part| part.strip_prefix("iops="));
        let paths = self.text("Working Paths").unwrap_or_default();
        Ok(NmpDevice {
            name: self.name.into(),
            satp: self.text("Storage Array Type"),
            psp: self.text(PATH_POLICY),
            round_robin_iops: iops.and_then(|iops| iops.parse().ok()),
            working_paths: paths
                .split(',')
                .map(|path| path.trim().to_owned())
                .filter(|path| !path.is_empty())
                .collect(),
        })
    }
}

/// Headings, a line of dashes that says how wide the columns are, and rows.
struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let is_rule = |line: &&str| {
            line.contains("--") && line.chars().all(|c| matches!(c, '-' | ' ' | '\r'))
        };
        let rule = lines.iter().position(is_rule).filter(|&rule| rule > 0)?;
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
            working_paths: vec!["vmhba37:C1:T0:L4".into(), "vmhba37:C0:T0:L4".into()],
        };
        assert_eq!(parse_esxcli("nmp.txt", text), Ok(Esxcli::Nmp(vec![expected])));
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
        fn nothing_panics(text in "([A-Za-z0-9 :.,{}\u{fc}-]{0,30}\n){0,12}") {
            let _ = parse_esxcli("f", &text);
        }
    }
}
