//! The commands of esxcli: what each is made of, and those that set something: their words, their options,
//! their forms, what they set, and what shows it.
//!
//! A [`Call`] is a command with the values of its options, whatever the syntax it is written in: a
//! line for a host's shell or for PowerCLI. [`Call::settings`] and [`Call::of`] are the two ways
//! between it and settings. Names and options are those of real hosts (reference
//! `esxi-host-stack.md` sections 2.5, 3 and 6).

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use core::ops::RangeInclusive;

use counters::MILLISECOND;

use crate::{
    Advanced, AdvancedInfo, DSNRO, Driver, Effect, Manual, Module, PathPolicy, PolicyChange, Query,
    Refusal, Setting, Version,
    manual::range,
    names::{nearest, unknown},
};

/// What a call sets.
type Settings = Result<Vec<Setting>, Refusal>;

/// A command.
pub(crate) struct Command {
    pub(crate) words: &'static str,
    /// The short and the long name of each option.
    pub(crate) options: &'static [(char, &'static str)],
    /// The option without a value.
    pub(crate) flag: Option<char>,
    pub(crate) does: Does,
}

/// What a command does with its options.
pub(crate) enum Does {
    /// It sets something.
    Set {
        settings: fn(&Call) -> Settings,
        /// Its forms.
        forms: fn() -> Vec<Manual>,
        /// What shows what it sets; `None` where no command does.
        shown: fn(&Call) -> Option<Query>,
    },
    /// It shows something.
    Show(fn(&Call) -> Result<Query, Refusal>),
    /// It takes a path into or out of use, or prefers it.
    Path,
}

static CORE_DEVICE: Command = Command {
    words: "storage core device set",
    options: &[
        ('d', "device"),
        ('O', "sched-num-req-outstanding"),
        ('m', "max-queue-depth"),
        ('s', "queue-full-sample-size"),
        ('q', "queue-full-threshold"),
    ],
    flag: None,
    does: Does::Set {
        settings: core_device,
        forms: core_device_forms,
        shown: |call| Some(Query::Devices { device: of_device(call) }),
    },
};
pub(crate) static MODULE: Command = Command {
    words: "system module parameters set",
    options: &[('m', "module"), ('p', "parameter-string")],
    flag: None,
    does: Does::Set {
        settings: module_parameters,
        forms: module_forms,
        shown: |call| Some(Query::Parameters { driver: driver(call).ok()? }),
    },
};
pub(crate) static ADVANCED: Command = Command {
    words: "system settings advanced set",
    options: &[('o', "option"), ('i', "int-value"), ('d', "default")],
    flag: Some('d'),
    does: Does::Set {
        settings: advanced,
        forms: advanced_forms,
        shown: |call| {
            Some(Query::Options { option: option(call.need('o').ok()?).ok(), changed: false })
        },
    },
};
static NMP_DEVICE: Command = Command {
    words: "storage nmp device set",
    options: &[('d', "device"), ('P', "psp")],
    flag: None,
    does: Does::Set {
        settings: nmp_device,
        forms: nmp_device_forms,
        shown: |call| Some(Query::NmpDevices { device: of_device(call) }),
    },
};
static ROUND_ROBIN: Command = Command {
    words: "storage nmp psp roundrobin deviceconfig set",
    options: &[
        ('d', "device"),
        ('t', "type"),
        ('I', "iops"),
        ('B', "bytes"),
        ('S', "num-sampling-cycles"),
        ('T', "latency-eval-time"),
    ],
    flag: None,
    does: Does::Set {
        settings: round_robin,
        forms: round_robin_forms,
        shown: |call| Some(Query::NmpDevices { device: of_device(call) }),
    },
};

/// kavg's own: no esxcli has it. The depth that is found is DQLEN in esxtop; no command of a host lists it.
static KAVG_DEVICE: Command = Command {
    words: "kavg device set",
    options: &[('d', "device"), ('l', "depth-by-latency")],
    flag: None,
    does: Does::Set { settings: kavg_device, forms: kavg_device_forms, shown: |_| None },
};

/// Commands that a refusal lists; of more it says where they are.
const LISTED: usize = 8;

/// The commands that set something.
pub(crate) static SETTERS: [&Command; 6] =
    [&CORE_DEVICE, &MODULE, &ADVANCED, &NMP_DEVICE, &ROUND_ROBIN, &KAVG_DEVICE];

/// The forms of all of them.
pub(crate) fn forms() -> Vec<Manual> {
    let forms = |command: &&Command| match command.does {
        Does::Set { forms, .. } => forms(),
        Does::Show(_) | Does::Path => Vec::new(),
    };
    SETTERS.iter().flat_map(forms).collect()
}

fn form(line: &'static str, effect: Effect, what: String) -> Manual {
    Manual { line, effect: Some(effect), what }
}

impl Command {
    /// The command of these words.
    pub(crate) fn find(words: &str, among: &[&'static Self]) -> Result<&'static Self, Refusal> {
        let known = || among.iter().map(|command| command.words);
        let found = among.iter().find(|command| command.words == words);
        found.copied().ok_or_else(|| {
            if among.len() <= LISTED {
                return unknown("command", words, known()).into();
            }
            let near = nearest(words, known());
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            format!("there is no command `{words}`; {near}`kavg esxcli` alone lists them").into()
        })
    }

    /// An option in a refusal: `-d|--device`.
    pub(crate) fn name(&self, short: char) -> String {
        let long = self.options.iter().find(|(name, _)| *name == short);
        format!("-{short}|--{}", long.map_or("", |(_, long)| *long))
    }
}

/// A command with its options.
pub(crate) struct Call {
    pub(crate) command: &'static Command,
    pub(crate) values: Vec<(char, String)>,
}

impl Call {
    /// A call without options.
    pub(crate) const fn new(command: &'static Command) -> Self {
        Self { command, values: Vec::new() }
    }

    pub(crate) fn with(mut self, short: char, value: impl ToString) -> Self {
        self.values.push((short, value.to_string()));
        self
    }

    /// Adds an option.
    pub(crate) fn add(&mut self, short: char, value: String) -> Result<(), Refusal> {
        if self.get(short).is_some() {
            return Err(format!("{} is given twice", self.command.name(short)).into());
        }
        self.values.push((short, value));
        Ok(())
    }

    pub(crate) fn get(&self, short: char) -> Option<&str> {
        self.values.iter().find(|(name, _)| *name == short).map(|(_, value)| value.as_str())
    }

    pub(crate) fn need(&self, short: char) -> Result<&str, Refusal> {
        self.get(short).ok_or_else(|| {
            format!("Missing required parameter {}", self.command.name(short)).into()
        })
    }

    /// The number of an option. What `range` says of it is for the refusal of what is none; the
    /// host checks the range, which may depend on it.
    fn number(&self, short: char, range: &RangeInclusive<u32>) -> Result<Option<u32>, Refusal> {
        let number = |text| number(&self.command.name(short), text, range);
        self.get(short).map(number).transpose()
    }

    /// What it sets.
    pub(crate) fn settings(&self) -> Settings {
        match self.command.does {
            Does::Set { settings, .. } => settings(self),
            Does::Show(_) | Does::Path => {
                Err(format!("`{}` is no setting", self.command.words).into())
            }
        }
    }

    /// What shows what it sets.
    pub(crate) fn shown(&self) -> Option<Query> {
        match self.command.does {
            Does::Set { shown, .. } => shown(self),
            Does::Show(_) | Does::Path => None,
        }
    }

    /// The call that sets that; `None` when it is not esxcli that does.
    pub(crate) fn of(setting: &Setting) -> Option<Self> {
        Some(match setting {
            Setting::SchedNumReqOutstanding { device, value } => {
                Self::new(&CORE_DEVICE).with('d', device).with('O', value)
            }
            Setting::MaxQueueDepth { device, value } => {
                Self::new(&CORE_DEVICE).with('d', device).with('m', value)
            }
            Setting::QueueFull { device, sample_size, threshold } => {
                let call = Self::new(&CORE_DEVICE).with('d', device);
                call.with('s', sample_size).with('q', threshold)
            }
            Setting::DepthByLatency { device, on } => {
                Self::new(&KAVG_DEVICE).with('d', device).with('l', on)
            }
            Setting::ModuleDepth { driver, value } => {
                let depth = format!("{}={value}", driver.parameter.unwrap_or_default());
                let others = driver.others.split_whitespace();
                let all: Vec<&str> = [depth.as_str()].into_iter().chain(others).collect();
                Self::new(&MODULE).with('m', driver.module).with('p', all.join(" "))
            }
            Setting::Advanced { option, value } => {
                let call = Self::new(&ADVANCED).with('o', option.info().path);
                match value {
                    Some(value) => call.with('i', value),
                    None => call.with('d', ""),
                }
            }
            Setting::PathPolicy { device, policy: PolicyChange::PlugIn(policy) } => {
                let (name, _) = PLUG_INS.iter().find(|(_, known)| known == policy)?;
                Self::new(&NMP_DEVICE).with('d', device).with('P', name)
            }
            Setting::PathPolicy { device, policy: PolicyChange::RoundRobin(policy) } => {
                of_round_robin(Self::new(&ROUND_ROBIN).with('d', device), *policy)
            }
            Setting::Pvscsi { .. }
            | Setting::Allocation { .. }
            | Setting::StorageIoControl { .. } => return None,
        })
    }
}

/// The number that a value is; the host checks the range.
pub(crate) fn number(name: &str, text: &str, range: &RangeInclusive<u32>) -> Result<u32, Refusal> {
    let (least, most) = (range.start(), range.end());
    text.parse().map_err(|_| {
        format!("Invalid value `{text}` for {name}: it is a whole number, {least} to {most}").into()
    })
}

/// Of numbers that no range is known for.
const COUNTS: RangeInclusive<u32> = 1..=u32::MAX;

fn of_device(call: &Call) -> Option<String> {
    call.get('d').map(String::from)
}

fn core_device_forms() -> Vec<Manual> {
    let of = |option: Advanced| range(option.info().range());
    vec![
        form(
            "storage core device set -d DEVICE -O N",
            Effect::AtOnce,
            format!(
                "DSNRO, {}; from ESXi 6.5 not above the device's depth [HP, S1]",
                range(DSNRO.range())
            ),
        ),
        form(
            "storage core device set -d DEVICE -m N",
            Effect::AtOnce,
            "Device Max Queue Depth, 1 to what the driver gives [QD254]".into(),
        ),
        form(
            "storage core device set -d DEVICE -s N -q N",
            Effect::AtOnce,
            format!(
                "adaptive throttling: results in a window, {} (with 0 the host's option counts); bad ones, {} [LAMW]",
                of(Advanced::QFullSampleSize),
                of(Advanced::QFullThreshold)
            ),
        ),
    ]
}

fn core_device(call: &Call) -> Settings {
    let device = || call.need('d').map(String::from);
    device()?;
    let mut settings = Vec::new();
    if let Some(value) = call.number('m', &(1..=Driver::ANY.depth_max))? {
        settings.push(Setting::MaxQueueDepth { device: device()?, value });
    }
    if let Some(value) = call.number('O', &DSNRO.range())? {
        settings.push(Setting::SchedNumReqOutstanding { device: device()?, value });
    }
    let [sizes, thresholds] =
        [Advanced::QFullSampleSize, Advanced::QFullThreshold].map(|option| option.info().range());
    match (call.number('s', &sizes)?, call.number('q', &thresholds)?) {
        (Some(sample_size), threshold) => {
            let threshold = threshold.unwrap_or(Advanced::QFullThreshold.info().default);
            settings.push(Setting::QueueFull { device: device()?, sample_size, threshold });
        }
        (None, Some(_)) => {
            let names = ['q', 's'].map(|short| call.command.name(short));
            return Err(format!("{} goes with {}", names[0], names[1]).into());
        }
        (None, None) => {}
    }
    if settings.is_empty() {
        return Err("nothing is set: give at least one of -O, -m, -s and -q".into());
    }
    Ok(settings)
}

fn kavg_device_forms() -> Vec<Manual> {
    vec![form(
        "kavg device set -d DEVICE -l true",
        Effect::AtOnce,
        "kavg's own, which no ESXi has: the device's depth is found by latency, or (`false`) not"
            .into(),
    )]
}

fn kavg_device(call: &Call) -> Settings {
    let on = match call.need('l')? {
        "true" => true,
        "false" => false,
        other => {
            let name = call.command.name('l');
            return Err(format!("Invalid value `{other}` for {name}: it is true or false").into());
        }
    };
    Ok(vec![Setting::DepthByLatency { device: call.need('d')?.into(), on }])
}

fn module_forms() -> Vec<Manual> {
    vec![form(
        "system module parameters set -m MODULE -p PARAMETER=N",
        Effect::HostReboot,
        "the depth of every device behind a driver, in the driver's range; the line replaces all parameters of the \
         module: `-p \"PARAMETER=N OTHER=N\"` keeps another [S0]"
            .into(),
    )]
}

fn module_parameters(call: &Call) -> Settings {
    let driver = driver(call)?;
    let parameters = call.need('p')?;
    let (mut depths, mut others) = (Vec::new(), Vec::new());
    for setting in parameters.split_whitespace() {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        if driver.sets_depth(name) {
            depths.push(number(name, value, &driver.depths())?);
        } else if is_no_other(driver, name) {
            return Err(no_parameter(driver, name));
        } else {
            others.push((name, setting));
        }
    }
    let is_twice = |(at, (name, _)): (usize, &(&str, &str))| {
        others[..at].iter().any(|(known, _)| known == name)
    };
    match depths[..] {
        [value] if !others.iter().enumerate().any(is_twice) => {
            let others: Vec<&str> = others.into_iter().map(|(_, setting)| setting).collect();
            let driver = Module { driver, others: others.join(" ") };
            Ok(vec![Setting::ModuleDepth { driver, value }])
        }
        [] if !others.is_empty() => Err(no_parameter(driver, others[0].0)),
        _ => Err(format!(
            "-p|--parameter-string `{parameters}` must set the depth once, and no parameter twice"
        )
        .into()),
    }
}

/// Whether a parameter cannot be one of a module beside that of its depth: it is the depth of another, or its own
/// misspelt.
fn is_no_other(driver: &Driver, name: &str) -> bool {
    driver.parameter.is_none_or(|own| nearest(name, [own].into_iter()).is_some())
        || Driver::of_parameter(name).is_some()
        || Driver::MISPRINTS.iter().any(|(misprint, _)| *misprint == name)
}

/// The driver of the module that a call names.
pub(crate) fn driver(call: &Call) -> Result<&'static Driver, Refusal> {
    let module = call.need('m')?;
    Driver::from_module(module).ok_or_else(|| {
        unknown("module", module, Driver::ALL.iter().map(|driver| driver.module)).into()
    })
}

fn no_parameter(driver: &Driver, name: &str) -> Refusal {
    let module = driver.module;
    let real = match driver.parameter {
        Some(real) => {
            format!("the depth per LUN is `{real}`, {} to {}", driver.depth_min, driver.depth_max)
        }
        None => "its depth is fixed".into(),
    };
    let other = Driver::of_parameter(name);
    let owner =
        other.map_or(String::new(), |other| format!(" (that is module `{}`)", other.module));
    format!("module `{module}` has no parameter `{name}`{owner}: {real}").into()
}

fn advanced_forms() -> Vec<Manual> {
    let what = "an advanced option; `-d` instead of `-i N` is its default [LAMW]; also as `Set-AdvancedSetting` \
                takes it [PCLI]";
    let line = "system settings advanced set -o OPTION -i N";
    vec![Manual { line, effect: None, what: what.into() }]
}

fn advanced(call: &Call) -> Settings {
    let option = option(call.need('o')?)?;
    match (call.number('i', &option.info().range())?, call.get('d')) {
        (None, None) | (Some(_), Some(_)) => {
            Err("give one of -i|--int-value and -d|--default".into())
        }
        (value, _) => Ok(vec![Setting::Advanced { option, value }]),
    }
}

/// The advanced option of that path.
pub(crate) fn option(path: &str) -> Result<Advanced, Refusal> {
    Advanced::from_path(path).ok_or_else(|| {
        let (always, others): (Vec<&AdvancedInfo>, Vec<_>) =
            Advanced::TABLE.iter().partition(|info| info.is_in_every_version());
        let others = others.iter().map(|info| {
            let versions = match info.until {
                Version::NEWEST => format!("since {}", info.since.name()),
                last => format!("until {}", last.name()),
            };
            format!("`{}` ({versions})", info.path)
        });
        let others = others.collect::<Vec<_>>().join(", ");
        let known = unknown("option", path, always.iter().map(|info| info.path));
        format!("{known}; in some versions of ESXi also of {others}").into()
    })
}

/// The plug-ins that select paths, and the policy that each starts with [ELA].
const PLUG_INS: [(&str, PathPolicy); 3] = [
    ("VMW_PSP_FIXED", PathPolicy::Fixed),
    ("VMW_PSP_MRU", PathPolicy::MostRecentlyUsed),
    ("VMW_PSP_RR", PathPolicy::ROUND_ROBIN),
];

impl PathPolicy {
    /// The plug-in that has this policy.
    #[must_use]
    pub fn plug_in(self) -> &'static str {
        let is_it =
            |known: &PathPolicy| core::mem::discriminant(known) == core::mem::discriminant(&self);
        // The latency policy is one of round robin's.
        PLUG_INS.iter().find(|(_, known)| is_it(known)).map_or(PLUG_INS[2].0, |(name, _)| name)
    }
}

/// Plug-ins of arrays of which one controller at a time has a volume (active/passive): their default is MRU, so that hosts do not
/// take volumes from each other [ELA].
const ACTIVE_PASSIVE: [&str; 4] =
    ["VMW_SATP_DEFAULT_AP", "VMW_SATP_MSA", "VMW_SATP_CX", "VMW_SATP_LSI"];

/// Whether the plug-in for arrays of that name (SATP) is of arrays of which one controller at a time has a volume.
#[must_use]
pub fn is_active_passive(satp: &str) -> bool {
    ACTIVE_PASSIVE.contains(&satp)
}

impl PolicyChange {
    /// The plug-in of that name; `None` when there is none.
    #[must_use]
    pub fn plug_in(name: &str) -> Option<Self> {
        let found = PLUG_INS.iter().find(|(known, _)| *known == name);
        found.map(|(_, policy)| Self::PlugIn(*policy))
    }
}

fn nmp_device_forms() -> Vec<Manual> {
    vec![form(
        "storage nmp device set -d DEVICE -P VMW_PSP_RR",
        Effect::AtOnce,
        "VMW_PSP_FIXED, VMW_PSP_MRU or VMW_PSP_RR [ELA]".into(),
    )]
}

fn nmp_device(call: &Call) -> Settings {
    let name = call.need('P')?;
    let policy = PolicyChange::plug_in(name).ok_or_else(|| {
        let known = PLUG_INS.iter().map(|(known, _)| *known);
        Refusal::from(unknown("path selection policy", name, known))
    })?;
    Ok(vec![Setting::PathPolicy { device: call.need('d')?.into(), policy }])
}

/// Options of `roundrobin deviceconfig set` that go with each type [ELA, DOC67].
const TYPES: [(&str, &[char]); 4] =
    [("default", &[]), ("iops", &['I']), ("bytes", &['B']), ("latency", &['S', 'T'])];

fn round_robin_forms() -> Vec<Manual> {
    vec![
        form(
            "storage nmp psp roundrobin deviceconfig set -d DEVICE -t iops -I N",
            Effect::AtOnce,
            "I/Os down a path before the next one; `-t default` is as round robin starts [ELA, BB]"
                .into(),
        ),
        form(
            "storage nmp psp roundrobin deviceconfig set -d DEVICE -t bytes -B N",
            Effect::AtOnce,
            "bytes down a path before the next one [ELA, BB]".into(),
        ),
    ]
}

/// A limit that a type does not have is out of reach.
fn round_robin(call: &Call) -> Settings {
    let kind = call.need('t')?;
    let Some((_, own)) = TYPES.iter().find(|(known, _)| *known == kind) else {
        return Err(unknown("type", kind, TYPES.map(|(known, _)| known)).into());
    };
    let foreign = |short: &char| call.get(*short).is_some() && !own.contains(short);
    if let Some(other) = TYPES.iter().flat_map(|(_, own)| *own).find(|short| foreign(short)) {
        let name = call.command.name(*other);
        return Err(format!("{name} does not go with --type={kind}").into());
    }
    let needed = |short| {
        call.need(short)?;
        Ok::<_, Refusal>(call.number(short, &COUNTS)?.unwrap_or_default())
    };
    let policy = match kind {
        "default" => PathPolicy::ROUND_ROBIN,
        "iops" => PathPolicy::RoundRobin { iops: needed('I')?, bytes: u64::MAX },
        "bytes" => PathPolicy::RoundRobin { iops: u32::MAX, bytes: needed('B')?.into() },
        _ => latency(call)?,
    };
    let policy = PolicyChange::RoundRobin(policy);
    Ok(vec![Setting::PathPolicy { device: call.need('d')?.into(), policy }])
}

/// What is not told is as the policy starts [DOC67].
fn latency(call: &Call) -> Result<PathPolicy, Refusal> {
    let PathPolicy::Latency { sampling_ios, eval_ns } = PathPolicy::LATENCY else {
        return Ok(PathPolicy::LATENCY);
    };
    let told_ns = call.number('T', &COUNTS)?.map(|millis| u64::from(millis) * MILLISECOND);
    Ok(PathPolicy::Latency {
        sampling_ios: call.number('S', &COUNTS)?.unwrap_or(sampling_ios),
        eval_ns: told_ns.unwrap_or(eval_ns),
    })
}

fn of_round_robin(call: Call, policy: PathPolicy) -> Call {
    match policy {
        PathPolicy::RoundRobin { iops, bytes: u64::MAX } => call.with('t', "iops").with('I', iops),
        PathPolicy::RoundRobin { iops: u32::MAX, bytes } => {
            call.with('t', "bytes").with('B', bytes)
        }
        PathPolicy::Latency { sampling_ios, eval_ns } => {
            let call = call.with('t', "latency").with('S', sampling_ios);
            call.with('T', eval_ns / MILLISECOND)
        }
        _ => call.with('t', "default"),
    }
}
