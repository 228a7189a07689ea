//! esxcli's own command lines, and the lines for a guest's PVSCSI driver, become knobs. One
//! parser serves the events of a file, `--set` and a running host.
//!
//! Names, short and long options and ranges are those of real hosts (reference
//! `esxi-host-stack.md` sections 2.5, 3 and 6).

use std::ops::RangeInclusive;

use counters::{DeviceId, DeviceKind, MILLISECOND, VmId};
use engine::{Advanced, Driver, HostConfig, Knob, PathPolicy, Version};

use crate::{Host, datastore::is_network, guest, names};

/// What a line sets, and on which host.
pub(crate) type Settings = Vec<(usize, Knob)>;

/// What a command sets on one host; nothing when the host lacks the device or driver.
type Knobs = Result<Vec<Knob>, String>;

/// A command that sets knobs.
struct Command {
    words: &'static str,
    /// The short and the long name of each option.
    options: &'static [(char, &'static str)],
    knobs: fn(&Options, &HostConfig) -> Knobs,
}

const COMMANDS: [Command; 5] = [
    Command {
        words: "storage core device set",
        options: &[
            ('d', "device"),
            ('O', "sched-num-req-outstanding"),
            ('m', "max-queue-depth"),
            ('s', "queue-full-sample-size"),
            ('q', "queue-full-threshold"),
        ],
        knobs: core_device_set,
    },
    Command {
        words: "system module parameters set",
        options: &[('m', "module"), ('p', "parameter-string")],
        knobs: module_parameters_set,
    },
    Command {
        words: "system settings advanced set",
        options: &[('o', "option"), ('i', "int-value"), ('d', "default")],
        knobs: advanced_set,
    },
    Command {
        words: "storage nmp device set",
        options: &[('d', "device"), ('P', "psp")],
        knobs: nmp_device_set,
    },
    Command {
        words: "storage nmp psp roundrobin deviceconfig set",
        options: &[
            ('d', "device"),
            ('t', "type"),
            ('I', "iops"),
            ('B', "bytes"),
            ('S', "num-sampling-cycles"),
            ('T', "latency-eval-time"),
        ],
        knobs: round_robin_set,
    },
];

/// What a line sets: on the host of its prefix (`esx-1: storage core …`), or on every one of
/// `hosts` that has the device or driver. A line for a guest takes a VM's name in front.
pub(crate) fn settings(line: &str, hosts: &[(usize, &Host)]) -> Result<Settings, String> {
    let (prefix, command) = split_prefix(line);
    if let Some(system) = guest::system_of_line(command) {
        return guest_settings(prefix, command, system, hosts);
    }
    let (command, options) = parse(command)?;
    let mut settings = Settings::new();
    let mut known_host = false;
    for (index, host) in hosts {
        if prefix.is_none_or(|name| names::is_member(&host.config.name, name)) {
            known_host = true;
            let knobs = (command.knobs)(&options, &host.config)?;
            settings.extend(knobs.into_iter().map(|knob| (*index, knob)));
        }
    }
    match prefix {
        Some(name) if !known_host => {
            let known = hosts.iter().map(|(_, host)| host.config.name.as_str());
            Err(names::unknown("host", name, known))
        }
        _ if settings.is_empty() => Err(nowhere(&options, hosts)),
        _ => Ok(settings),
    }
}

/// `esx-1: storage core …` is a host's name and a command.
fn split_prefix(line: &str) -> (Option<&str>, &str) {
    match line.split_once(": ") {
        Some((name, rest)) if !name.trim().contains(char::is_whitespace) => {
            (Some(name.trim()), rest)
        }
        _ => (None, line),
    }
}

/// The options of a command line.
struct Options {
    command: &'static Command,
    values: Vec<(char, String)>,
}

impl Options {
    fn get(&self, short: char) -> Option<&str> {
        self.values.iter().find(|(name, _)| *name == short).map(|(_, value)| value.as_str())
    }

    fn need(&self, short: char) -> Result<&str, String> {
        self.get(short).ok_or_else(|| format!("Missing required parameter {}", self.name(short)))
    }

    /// `-d|--device`.
    fn name(&self, short: char) -> String {
        let long = self.command.options.iter().find(|(name, _)| *name == short);
        format!("-{short}|--{}", long.map_or("", |(_, long)| *long))
    }

    fn number(&self, short: char, range: RangeInclusive<u32>) -> Result<Option<u32>, String> {
        self.get(short).map(|text| number(&self.name(short), text, range)).transpose()
    }
}

fn number(name: &str, text: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    text.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| {
        format!("Invalid value `{text}` for {name}: it is {} to {}", range.start(), range.end())
    })
}

/// Finds the command and splits its options.
fn parse(line: &str) -> Result<(&'static Command, Options), String> {
    let words = split_words(line)?;
    let words = words.strip_prefix(&["esxcli".to_string()]).unwrap_or(&words);
    let end = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let path = words[..end].join(" ");
    let command = COMMANDS.iter().find(|command| command.words == path).ok_or_else(|| {
        names::unknown("command", &path, COMMANDS.iter().map(|command| command.words))
    })?;
    let mut options = Options { command, values: Vec::new() };
    let mut rest = words[end..].iter();
    while let Some(word) = rest.next() {
        let (short, inline) = options.recognise(word)?;
        let value = match inline {
            Some(value) => value,
            None if (command.words, short) == ("system settings advanced set", 'd') => {
                String::new()
            }
            None => rest
                .next()
                .cloned()
                .ok_or_else(|| format!("{} needs a value", options.name(short)))?,
        };
        if options.get(short).is_some() {
            return Err(format!("{} is given twice", options.name(short)));
        }
        options.values.push((short, value));
    }
    Ok((command, options))
}

impl Options {
    /// The option that a word names, with its value when that is in the same word: `-O`, `-O=64`,
    /// `--sched-num-req-outstanding=64`.
    fn recognise(&self, word: &str) -> Result<(char, Option<String>), String> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_string())),
            None => (word, None),
        };
        let known = self.command.options.iter().find(|(short, long)| {
            name.strip_prefix("--").map_or_else(
                || name.strip_prefix('-').is_some_and(|rest| rest == short.to_string()),
                |rest| rest == *long,
            )
        });
        known.map(|(short, _)| (*short, value)).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> String {
        let words = self.command.words;
        if name == "-o" && words == "storage core device set" {
            return "Invalid option -o: outstanding I/Os with competing worlds are set by \
                    -O|--sched-num-req-outstanding, in upper case"
                .into();
        }
        let all: Vec<_> = self.command.options.iter().map(|(short, _)| self.name(*short)).collect();
        format!("Invalid option {name} for `{words}`; it takes {}", all.join(", "))
    }
}

/// Words as a shell splits them, with single and double quotes.
fn split_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".into());
    }
    words.extend(word);
    Ok(words)
}

/// The device of `-d` on a host, when the host has it.
fn device(options: &Options, host: &HostConfig) -> Result<Option<DeviceId>, String> {
    let name = options.need('d')?;
    let Some(index) = host.devices.iter().position(|device| device.name == name) else {
        return Ok(None);
    };
    if host.devices[index].kind == DeviceKind::Nfs {
        return Err(format!("`{name}` is an NFS datastore: it has no SCSI device"));
    }
    Ok(Some(DeviceId::new(index)))
}

/// Why a line set nothing: no host has what it names.
fn nowhere(options: &Options, hosts: &[(usize, &Host)]) -> String {
    let configs = || hosts.iter().map(|(_, host)| &host.config);
    if let Some(module) = options.get('m').filter(|_| options.get('d').is_none()) {
        let loaded = configs()
            .flat_map(|host| &host.adapters)
            .filter(|a| !is_network(a))
            .map(|a| a.driver.module);
        return names::unknown("loaded module", module, loaded);
    }
    let scsi = |device: &&engine::DeviceConfig| device.kind != DeviceKind::Nfs;
    let devices = configs().flat_map(|host| &host.devices).filter(scsi);
    let devices = devices.map(|d| d.name.as_str());
    names::unknown("device", options.get('d').unwrap_or(""), devices)
}

fn core_device_set(options: &Options, host: &HostConfig) -> Knobs {
    let Some(device) = device(options, host)? else { return Ok(Vec::new()) };
    let dsnro = options.number('O', 1..=dsnro_max(host, device))?;
    if dsnro.is_some() && host.version.has_global_dsnro() {
        return Err(format!(
            "ESXi {} has no such setting of a device: use `system settings advanced set -o \
             /Disk/SchedNumReqOutstanding -i {}`",
            host.version.name(),
            dsnro.unwrap_or_default()
        ));
    }
    let depth = options.number('m', 1..=depth_max(host, device))?;
    let mut knobs = Vec::new();
    knobs.extend(depth.map(|value| Knob::MaxQueueDepth { device, value }));
    knobs.extend(dsnro.map(|value| Knob::SchedNumReqOutstanding { device, value }));
    knobs.extend(queue_full(options, device)?);
    if knobs.is_empty() {
        return Err("nothing is set: give at least one of -O, -m, -s and -q".into());
    }
    Ok(knobs)
}

/// DSNRO has a range of its own [HP]; from ESXi 6.5 on as far as the device's depth [S1].
fn dsnro_max(host: &HostConfig, device: DeviceId) -> u32 {
    if host.version.refuses_dsnro_above_depth() {
        depth_max(host, device)
    } else {
        knobs::DSNRO.max
    }
}

/// The most that any driver below a device gives [QD254].
fn depth_max(host: &HostConfig, device: DeviceId) -> u32 {
    let paths = host.paths.iter().filter(|path| path.device == device);
    let depths = paths.map(|path| host.adapters[path.adapter.index()].driver.depth_max);
    depths.max().unwrap_or(1)
}

/// The two settings of adaptive throttling; the threshold is at most the sample size [LAMW].
fn queue_full(options: &Options, device: DeviceId) -> Result<Option<Knob>, String> {
    let sample = Advanced::QFullSampleSize.info();
    let limit = Advanced::QFullThreshold.info();
    let sample_size = options.number('s', sample.min..=sample.max)?;
    let threshold = options.number('q', limit.min..=limit.max)?;
    let Some(sample_size) = sample_size else {
        return match threshold {
            Some(_) => {
                Err("-q|--queue-full-threshold goes with -s|--queue-full-sample-size".into())
            }
            None => Ok(None),
        };
    };
    let threshold = threshold.unwrap_or(limit.default);
    if sample_size > 0 && threshold > sample_size {
        return Err(format!(
            "-q|--queue-full-threshold {threshold} must be at most \
             -s|--queue-full-sample-size {sample_size}"
        ));
    }
    Ok(Some(Knob::QueueFull { device, sample_size, threshold }))
}

fn module_parameters_set(options: &Options, host: &HostConfig) -> Knobs {
    let module = options.need('m')?;
    let parameters = options.need('p')?;
    let driver = Driver::from_module(module).ok_or_else(|| {
        names::unknown("module", module, Driver::ALL.iter().map(|driver| driver.module))
    })?;
    let mut knobs = Vec::new();
    for setting in parameters.split_whitespace() {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let parameter = driver.parameter.filter(|parameter| *parameter == name);
        let parameter = parameter.ok_or_else(|| no_parameter(driver, name))?;
        let value = number(parameter, value, driver.depth_min..=driver.depth_max)?;
        knobs.push(Knob::ModuleDepth { driver, value });
    }
    if knobs.len() != 1 {
        return Err(format!("-p|--parameter-string `{parameters}` must set one parameter once"));
    }
    let loaded = host.adapters.iter().any(|adapter| adapter.driver == driver);
    Ok(if loaded { knobs } else { Vec::new() })
}

fn no_parameter(driver: &Driver, name: &str) -> String {
    let module = driver.module;
    let real = match driver.parameter {
        Some(real) => {
            format!("the depth per LUN is `{real}`, {} to {}", driver.depth_min, driver.depth_max)
        }
        None => "its depth is fixed".into(),
    };
    let other = Driver::ALL.iter().find(|other| other.parameter == Some(name));
    let owner =
        other.map_or(String::new(), |other| format!(" (that is module `{}`)", other.module));
    format!("module `{module}` has no parameter `{name}`{owner}: {real}")
}

fn advanced_set(options: &Options, host: &HostConfig) -> Knobs {
    let path = options.need('o')?;
    let option = Advanced::from_path(path).ok_or_else(|| {
        names::unknown("option", path, Advanced::TABLE.iter().map(|info| info.path))
    })?;
    exists_in(option, host.version)?;
    let info = option.info();
    let value = match (options.number('i', info.min..=info.max), options.get('d')) {
        (Ok(Some(value)), None) => value,
        (Ok(None), Some(_)) => option.default_in(host.version),
        (Ok(_), _) => return Err("give one of -i|--int-value and -d|--default".into()),
        (Err(message), _) => return Err(format!("{path}: {message}")),
    };
    Ok(vec![Knob::Advanced { option, value }])
}

/// Options that come and go with versions [S1, VMB12, LAMW].
fn exists_in(option: Advanced, version: Version) -> Result<(), String> {
    if option.exists_in(version) {
        return Ok(());
    }
    let instead = match option {
        Advanced::SchedNumReqOutstanding => {
            "; it is set for each device: `storage core device set -d DEVICE -O VALUE`"
        }
        _ => "",
    };
    Err(format!("ESXi {} has no option {}{instead}", version.name(), option.info().path))
}

fn nmp_device_set(options: &Options, host: &HostConfig) -> Knobs {
    let policies = [
        ("VMW_PSP_FIXED", PathPolicy::Fixed),
        ("VMW_PSP_MRU", PathPolicy::MostRecentlyUsed),
        ("VMW_PSP_RR", PathPolicy::ROUND_ROBIN),
    ];
    let name = options.need('P')?;
    let policy = policies.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        names::unknown("path selection policy", name, policies.iter().map(|(known, _)| *known))
    })?;
    path_policy(options, host, policy.1)
}

fn path_policy(options: &Options, host: &HostConfig, policy: PathPolicy) -> Knobs {
    let device = device(options, host)?;
    Ok(device.map(|device| Knob::PathPolicy { device, policy }).into_iter().collect())
}

/// Options of `roundrobin deviceconfig set` that go with each type [ELA, DOC67]. A limit that a
/// type does not have is out of reach.
fn round_robin_set(options: &Options, host: &HostConfig) -> Knobs {
    let kind = options.need('t')?;
    let own: &[char] = match kind {
        "default" => &[],
        "iops" => &['I'],
        "bytes" => &['B'],
        "latency" => &['S', 'T'],
        _ => {
            let types = ["default", "iops", "bytes", "latency"];
            return Err(names::unknown("type", kind, types));
        }
    };
    if let Some(other) =
        ['I', 'B', 'S', 'T'].into_iter().find(|c| options.get(*c).is_some() && !own.contains(c))
    {
        return Err(format!("{} does not go with --type={kind}", options.name(other)));
    }
    if kind == "latency" && !host.version.has_latency_policy() {
        return Err(format!("ESXi {} has no --type=latency; 6.7 has", host.version.name()));
    }
    let at_least_one = 1..=u32::MAX;
    let policy = match kind {
        "default" => PathPolicy::ROUND_ROBIN,
        "iops" => {
            options.need('I')?;
            let iops = options.number('I', at_least_one)?.unwrap_or(1);
            PathPolicy::RoundRobin { iops, bytes: u64::MAX }
        }
        "bytes" => {
            options.need('B')?;
            let bytes = options.number('B', at_least_one)?.unwrap_or(1);
            PathPolicy::RoundRobin { iops: u32::MAX, bytes: u64::from(bytes) }
        }
        _ => latency(options)?,
    };
    path_policy(options, host, policy)
}

/// 16 I/Os a path every 180,000 ms unless told [DOC67].
fn latency(options: &Options) -> Result<PathPolicy, String> {
    let sampling_ios = options.number('S', 1..=100_000)?.unwrap_or(16);
    let eval_ms = options.number('T', 1..=86_400_000)?.unwrap_or(180_000);
    Ok(PathPolicy::Latency { sampling_ios, eval_ns: u64::from(eval_ms) * MILLISECOND })
}

/// A guest's driver: of the VM in front of the line, or of every guest of that system.
fn guest_settings(
    prefix: Option<&str>,
    line: &str,
    system: &str,
    hosts: &[(usize, &Host)],
) -> Result<Settings, String> {
    let mut settings = Settings::new();
    for (index, host) in hosts {
        for (vm, (config, &guest)) in host.config.vms.iter().zip(&host.guests).enumerate() {
            let suits = match prefix {
                Some(name) => names::is_member(&config.name, name),
                None => guest::system_of(guest) == system,
            };
            if suits && !config.system {
                let guest::Pvscsi { depth, ring_pages } = guest::parse(line, guest)?;
                settings.push((*index, Knob::Pvscsi { vm: VmId::new(vm), depth, ring_pages }));
            }
        }
    }
    match prefix {
        _ if !settings.is_empty() => Ok(settings),
        None => Err(format!("there is no {system} guest")),
        Some(name) => {
            let vms = hosts.iter().flat_map(|(_, host)| &host.config.vms);
            let known = vms.filter(|vm| !vm.system).map(|vm| vm.name.as_str());
            Err(names::unknown("VM", name, known))
        }
    }
}
