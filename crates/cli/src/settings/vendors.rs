//! Where devices are not set as the vendor of their array says, how far they can be, and the lines for that.
//!
//! Nothing of it is planned unasked, but nothing against it either: a host is not made as most are where these
//! are farther from it.

use std::collections::BTreeSet;

use counters::DeviceId;
use counters::sorted::sort;
use knobs::{Advanced, Driver, Knob, Setting, Target, VendorAdvice};

use super::{
    difference::{Difference, Value},
    fleet::{Fleet, Known},
    host::{Device, Host, Module},
};

/// What a vendor says, and devices that are set otherwise.
pub(crate) struct Advised {
    pub(super) advice: &'static VendorAdvice,
    pub(super) said: Vec<Said>,
    /// What all their names begin with, and a star; `None` where others begin so as well.
    pub(super) names: Option<String>,
    /// What `--set` takes: all of it that is within reach of these hosts.
    pub(super) lines: Vec<String>,
    /// What bounds that.
    pub(super) bound: Option<String>,
}

/// One setting of them.
pub(super) struct Said {
    pub(super) value: Value,
    /// What it is instead, and on how many devices, whichever host has it so.
    pub(super) is: Vec<(String, usize)>,
}

/// A device as a host has it.
type Seen<'a> = (&'a Host, &'a Device);

/// What is set otherwise: what the vendor says of it, what it is, and where.
type Otherwise<'a> = (Knob, Knob, Seen<'a>);

/// All of these.
pub(crate) fn advised(fleet: &Fleet) -> Vec<Advised> {
    let mut seen = vec![Vec::new(); VendorAdvice::ALL.len()];
    for host in &fleet.hosts {
        for device in &host.devices {
            let Some(advice) = fleet.known(device.id).advice else { continue };
            let place = VendorAdvice::ALL.iter().position(|known| known == advice);
            place.into_iter().for_each(|place| seen[place].push((host, device)));
        }
    }
    let all = VendorAdvice::ALL.iter().zip(&seen);
    all.filter_map(|(advice, seen)| of_array(fleet, advice, seen)).collect()
}

fn of_array(fleet: &Fleet, advice: &'static VendorAdvice, seen: &[Seen<'_>]) -> Option<Advised> {
    let reach = seen.iter().map(reach).min()?;
    let mut otherwise: Vec<Otherwise<'_>> = Vec::new();
    let mut lowers = false;
    for &(host, device) in seen {
        for said in advice.of_device(device.id, fleet.known(device.id).hosts) {
            let Some(is) = counts(host, &said) else { continue };
            let is_so = is == said || is == within(said, reach);
            lowers |= number(within(said, reach)) < number(is) && number(is) <= number(said);
            let is_taken = || said.check(host.version()).is_ok();
            otherwise.extend((!is_so && is_taken()).then_some((said, is, (host, device))));
        }
    }
    let said: Vec<Said> = advice
        .of_device(DeviceId::new(0), 0)
        .filter_map(|said| instead(said, &otherwise))
        .collect();
    let names = names(fleet, advice, &otherwise)?;
    // A line is for all hosts: one that takes a device farther from what is said is none.
    let typed = names.as_deref().filter(|_| !lowers);
    let lines = typed.map_or(Vec::new(), |names| lines(fleet, names, &otherwise, seen, reach));
    let bounds = otherwise.iter().any(|(said, ..)| *said != within(*said, reach));
    let bounded = seen.iter().find(|seen| bounds && self::reach(seen) == reach);
    let bound =
        bounded.map(|(host, device)| match device.module.map(|module| &host.drivers[module]) {
            Some(own) => format!("{} gives {reach} at most", own.driver.module),
            None => match &host.unknown_drivers[..] {
                [] => format!("nothing tells which driver {} has, and it gives {reach}", host.name),
                unknown => {
                    let unknown = unknown.join(", ");
                    format!("driver {unknown} of {} is not known, and gives {reach}", host.name)
                }
            },
        });
    Some(Advised { advice, said, names, lines, bound })
}

/// What is set instead of that, and on how many devices each.
fn instead(said: Knob, otherwise: &[Otherwise<'_>]) -> Option<Said> {
    let of_it = otherwise.iter().filter(|(known, ..)| known.is_kind_of(&said));
    let mut is: Vec<_> = of_it
        .map(|(_, is, (_, device))| {
            let text = Value::Set(*is).text();
            (text.len(), text, device.id)
        })
        .collect();
    sort(&mut is);
    is.dedup();
    let same = is.chunk_by(|one, next| one.1 == next.1);
    let is: Vec<_> = same.map(|same| (same[0].1.clone(), same.len())).collect();
    (!is.is_empty()).then_some(Said { value: Value::Set(said), is })
}

/// What the names of all of these begin with; `None` where nothing is set otherwise, or other devices begin
/// so as well.
fn names(
    fleet: &Fleet,
    advice: &VendorAdvice,
    otherwise: &[Otherwise<'_>],
) -> Option<Option<String>> {
    let mut names = otherwise.iter().map(|(_, _, (_, device))| fleet.name_of(device.id));
    let first = names.next()?;
    let star = if names.clone().all(|name| name == first) { "" } else { "*" };
    let common = names.fold(first, |common, name| {
        let same = common.char_indices().zip(name.chars()).find(|((_, one), other)| one != other);
        same.map_or(common, |((at, _), _)| &common[..at])
    });
    let is_own = |known: &Known| known.advice == Some(advice) || !known.name.starts_with(common);
    Some(fleet.devices.iter().all(is_own).then(|| format!("{common}{star}")))
}

/// The lines that set it: depths of drivers first, where what they give is too little. A depth that DSNRO needs is for
/// all hosts where all have less, and else for those alone that do: it lowers none.
fn lines(
    fleet: &Fleet,
    names: &str,
    otherwise: &[Otherwise<'_>],
    seen: &[Seen<'_>],
    reach: u32,
) -> Vec<String> {
    let mut lines = Lines::default();
    let all = || names.to_owned();
    for (said, _, (host, at)) in otherwise {
        let (Knob::MaxQueueDepth { value, .. } | Knob::SchedNumReqOutstanding { value, .. }) =
            within(*said, reach)
        else {
            continue;
        };
        let module = at.module.map(|module| &host.drivers[module]);
        let module = module.filter(|module| module.in_force.is_some_and(|gives| gives < value));
        let Some(driver) = module.map(|module| module.driver) else { continue };
        let is_less = lines.deepest(fleet, driver) < value;
        let setting = Setting::ModuleDepth { driver: driver.into(), value };
        lines.add((!is_less).then_some(&host.name), &setting);
    }
    let deepest = seen.iter().filter_map(|(_, device)| device.max_depth).max();
    for (said, _, (host, at)) in otherwise {
        match within(*said, reach) {
            Knob::MaxQueueDepth { value, .. } => {
                lines.add(None, &Setting::MaxQueueDepth { device: all(), value });
            }
            Knob::SchedNumReqOutstanding { value, .. } => {
                if at.max_depth.is_some_and(|depth| depth < value) {
                    let is_less = deepest < Some(value);
                    let device = if is_less { all() } else { fleet.name_of(at.id).to_owned() };
                    let setting = Setting::MaxQueueDepth { device, value };
                    lines.add((!is_less).then_some(&host.name), &setting);
                }
                lines.add(None, &Setting::SchedNumReqOutstanding { device: all(), value });
            }
            Knob::QueueFull { sample_size, threshold, .. } => {
                lines.add(None, &Setting::QueueFull { device: all(), sample_size, threshold });
            }
            _ => {}
        }
    }
    lines.all
}

/// Lines, each once.
#[derive(Default)]
struct Lines {
    all: Vec<String>,
    known: BTreeSet<String>,
    /// How deep a driver is at most on any host.
    deepest: Vec<(&'static Driver, u32)>,
}

impl Lines {
    fn add(&mut self, host: Option<&String>, setting: &Setting) {
        let host = host.map_or_else(String::new, |host| format!("{host}: "));
        let line = format!("{host}{setting}");
        if self.known.insert(line.clone()) {
            self.all.push(line);
        }
    }

    fn deepest(&mut self, fleet: &Fleet, driver: &'static Driver) -> u32 {
        if let Some((_, known)) = self.deepest.iter().find(|(known, _)| *known == driver) {
            return *known;
        }
        let modules = fleet.hosts.iter().filter_map(|host| host.module(driver));
        // Of what nothing tells nobody knows whether it is less.
        let depth = |module: &Module| module.depth.max(module.in_force).unwrap_or(u32::MAX);
        let deepest = modules.map(depth).max().unwrap_or_default();
        self.deepest.push((driver, deepest));
        deepest
    }
}

/// What vendors say of what hosts have set to different values by a knob: of a driver what the deepest device behind it
/// is to have, of throttling of the host what each says of its devices.
pub(super) fn said(
    fleet: &Fleet,
    one: &Difference,
    knob: Knob,
) -> Vec<(&'static VendorAdvice, Knob)> {
    let hosts = one.values.iter().flat_map(|(_, hosts)| hosts);
    let hosts = hosts.map(|host| &fleet.hosts[*host as usize]);
    let devices: Vec<DeviceId> = match knob.target() {
        Target::Device(id) => vec![id],
        _ => hosts.flat_map(|host| governed(host, knob)).collect(),
    };
    let mut all: Vec<(&VendorAdvice, Knob)> = Vec::new();
    for id in devices {
        let known = fleet.known(id);
        let Some(advice) = known.advice else { continue };
        let mut said = advice.of_device(id, known.hosts);
        let said = said.find_map(|said| as_set_by(knob, said)).map(|said| (advice, said));
        if let Some(said) = said.filter(|said| !all.contains(said)) {
            all.push(said);
        }
    }
    if matches!(knob, Knob::ModuleDepth { .. }) {
        levels::most_first(&mut all, |(_, said)| f64::from(number(*said)));
        all.truncate(1);
    }
    all
}

/// What is said of a device as what another knob has to be for that; `None` where it is of something else.
fn as_set_by(knob: Knob, said: Knob) -> Option<Knob> {
    match (knob, said) {
        (Knob::ModuleDepth { driver, .. }, Knob::MaxQueueDepth { value, .. }) => {
            Some(Knob::ModuleDepth { driver, value })
        }
        (Knob::Advanced { option, .. }, Knob::QueueFull { sample_size, threshold, .. }) => {
            let value = match option {
                Advanced::QFullSampleSize => sample_size,
                Advanced::QFullThreshold => threshold,
                _ => return None,
            };
            Some(Knob::Advanced { option, value })
        }
        _ => said.is_kind_of(&knob).then_some(said),
    }
}

/// The devices that have it of what is set on the host: their depth of a driver, or throttling where they have
/// none of their own.
fn governed(host: &Host, knob: Knob) -> impl Iterator<Item = DeviceId> {
    let is_it = move |device: &&Device| match knob {
        Knob::ModuleDepth { driver, .. } => {
            device.module.is_some_and(|module| host.drivers[module].driver == driver)
        }
        Knob::Advanced { option: Advanced::QFullSampleSize | Advanced::QFullThreshold, .. } => {
            device.queue_full.is_some_and(|(sample_size, _)| sample_size == 0)
        }
        _ => false,
    };
    host.devices.iter().filter(is_it).map(|device| device.id)
}

/// What is set of that of which a vendor says something: a device without adaptive throttling of its own has its
/// host's.
fn counts(host: &Host, said: &Knob) -> Option<Knob> {
    let is = host.is_set_to(said)?;
    match is {
        Knob::QueueFull { device, sample_size: 0, .. } => {
            let of_host = host
                .value_of(Advanced::QFullSampleSize)
                .zip(host.value_of(Advanced::QFullThreshold));
            let (sample_size, threshold) = of_host.filter(|(size, _)| *size > 0).unwrap_or((0, 0));
            Some(Knob::QueueFull { device, sample_size, threshold })
        }
        _ => Some(is),
    }
}

/// How deep a device can be made on a host: as deep as its driver goes, where nothing
/// tells the driver, no deeper than it is.
fn reach((host, device): &Seen<'_>) -> u32 {
    let module = device.module.map(|module| &host.drivers[module]);
    let reach = match module {
        Some(module) => Some(module.driver.depth_max),
        None => device.max_depth,
    };
    reach.unwrap_or(u32::MAX)
}

/// By how much two of a kind differ is the difference of these.
pub(super) const fn number(knob: Knob) -> u32 {
    match knob {
        Knob::MaxQueueDepth { value, .. }
        | Knob::SchedNumReqOutstanding { value, .. }
        | Knob::ModuleDepth { value, .. }
        | Knob::Advanced { value, .. } => value,
        Knob::QueueFull { sample_size, .. } => sample_size,
        _ => 0,
    }
}

/// As much of it as is within reach.
fn within(knob: Knob, reach: u32) -> Knob {
    match knob {
        Knob::MaxQueueDepth { device, value } => {
            Knob::MaxQueueDepth { device, value: value.min(reach) }
        }
        Knob::SchedNumReqOutstanding { device, value } => {
            Knob::SchedNumReqOutstanding { device, value: value.min(reach) }
        }
        _ => knob,
    }
}
