//! What is not alike: one thing set to different values on different hosts, and devices of one array set
//! to different values on all hosts alike.

use counters::DeviceId;
use counters::sorted::sort_by_key;
use knobs::{Advanced, Driver, Knob, PathPolicy, Target, Transport, Version};

use super::{
    fleet::{Fleet, Known},
    host::{DELAYED_ACK, Host},
};

/// What a host says of one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    /// What it is set to.
    Set(Knob),
    /// The most that DQLEN was in a capture, where nothing says how deep the device is: it is so deep at least.
    Dqlen(DeviceId, u32),
    /// Whether round robin takes paths to the other controller as well.
    UseAno(DeviceId, bool),
    /// Whether software iSCSI delays acknowledgements.
    DelayedAck(bool),
}

/// One thing that hosts have set to different values.
pub(crate) struct Difference {
    /// The values, the most frequent first, with the hosts that have each, by their places.
    pub(crate) values: Vec<(Value, Vec<u32>)>,
}

/// Devices of one array that are set to different values, each on all of its hosts alike.
pub(crate) struct Uneven {
    pub(crate) array: String,
    /// The values, the most frequent first, with the devices that have each.
    pub(crate) values: Vec<(Value, Vec<DeviceId>)>,
}

/// What not all hosts tell of which it is, and those that do have set away from its default.
pub(crate) struct Untold {
    pub(crate) value: Value,
    pub(crate) default: String,
    /// Who has it so, and who tells nothing of it.
    pub(crate) hosts: Vec<u32>,
    pub(crate) silent: Vec<u32>,
}

impl Value {
    /// What it is of: those of one thing have one key.
    fn key(&self) -> (usize, usize) {
        let device = |rank, id: DeviceId| (rank, id.index());
        match *self {
            Self::Set(Knob::ModuleDepth { driver, .. }) => {
                let place = Driver::ALL.iter().position(|known| known == driver);
                (0, place.unwrap_or_default())
            }
            Self::Set(Knob::Advanced { option, .. }) => (1, option as usize),
            Self::Set(Knob::MaxQueueDepth { device: id, .. }) => device(2, id),
            Self::Set(Knob::SchedNumReqOutstanding { device: id, .. }) => device(3, id),
            Self::Set(Knob::QueueFull { device: id, .. }) => device(4, id),
            Self::Set(Knob::PathPolicy { device: id, .. }) => device(5, id),
            Self::Dqlen(id, _) => device(6, id),
            Self::UseAno(id, _) => device(7, id),
            Self::DelayedAck(_) => (8, 0),
            Self::Set(_) => (9, 0),
        }
    }

    /// The same on a host of a version: an option whose default another version changed is compared with
    /// those of the same default.
    fn key_on(&self, version: Version) -> (usize, usize) {
        let (rank, place) = self.key();
        let is_other = match self {
            Self::Set(Knob::Advanced { option, .. }) => {
                option.default_in(version) != option.info().default
            }
            _ => false,
        };
        (rank, 2 * place + usize::from(is_other))
    }

    /// What sets it; `None` where kavg has no line for that.
    pub(crate) const fn knob(&self) -> Option<Knob> {
        match *self {
            Self::Set(knob) => Some(knob),
            Self::Dqlen(device, value) => Some(Knob::MaxQueueDepth { device, value }),
            Self::UseAno(..) | Self::DelayedAck(_) => None,
        }
    }

    /// The device that it is of.
    pub(crate) fn device(&self) -> Option<DeviceId> {
        match self {
            Self::Dqlen(device, _) | Self::UseAno(device, _) => Some(*device),
            Self::DelayedAck(_) => None,
            Self::Set(knob) => match knob.target() {
                Target::Device(device) => Some(device),
                _ => None,
            },
        }
    }

    /// What is set, in the words of its host.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Set(Knob::ModuleDepth { driver, .. }) => driver.parameter.unwrap_or_default(),
            Self::Set(Knob::Advanced { option, .. }) => option.info().path,
            Self::Set(Knob::MaxQueueDepth { .. }) => "Device Max Queue Depth",
            Self::Set(Knob::SchedNumReqOutstanding { .. }) => "DSNRO",
            Self::Set(Knob::QueueFull { .. }) => "Queue Full Size/Threshold",
            Self::Set(_) => "Path Selection Policy",
            Self::Dqlen(..) => "DQLEN (captured)",
            Self::UseAno(..) => "useANO",
            Self::DelayedAck(_) => DELAYED_ACK,
        }
    }

    /// The same as a key of JSON.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Set(Knob::ModuleDepth { .. }) => "driver-depth",
            Self::Set(Knob::Advanced { .. }) => "option",
            Self::Set(Knob::MaxQueueDepth { .. }) => "max-queue-depth",
            Self::Set(Knob::SchedNumReqOutstanding { .. }) => "dsnro",
            Self::Set(Knob::QueueFull { .. }) => "queue-full",
            Self::Set(_) => "path-policy",
            Self::Dqlen(..) => "dqlen",
            Self::UseAno(..) => "use-ano",
            Self::DelayedAck(_) => "delayed-ack",
        }
    }

    /// Whether it is how deep a driver or a device is.
    pub(super) const fn is_depth(&self) -> bool {
        matches!(self, Self::Set(Knob::ModuleDepth { .. } | Knob::MaxQueueDepth { .. }))
    }

    /// To what it is set, in the words of its host.
    pub(crate) fn text(&self) -> String {
        match *self {
            Self::Dqlen(_, value)
            | Self::Set(
                Knob::ModuleDepth { value, .. }
                | Knob::Advanced { value, .. }
                | Knob::MaxQueueDepth { value, .. }
                | Knob::SchedNumReqOutstanding { value, .. },
            ) => value.to_string(),
            Self::Set(Knob::QueueFull { sample_size, threshold, .. }) => {
                format!("{sample_size}/{threshold}")
            }
            Self::Set(Knob::PathPolicy { policy, .. }) => policy_text(policy),
            Self::UseAno(_, is_used) => u32::from(is_used).to_string(),
            Self::DelayedAck(is_delayed) => is_delayed.to_string(),
            Self::Set(_) => String::new(),
        }
    }

    /// The same of any device.
    fn is_alike(&self, other: &Self) -> bool {
        self.key().0 == other.key().0 && self.text() == other.text()
    }
}

fn policy_text(policy: PathPolicy) -> String {
    let goes_by = match policy {
        PathPolicy::RoundRobin { iops, bytes: u64::MAX } => format!(" iops={iops}"),
        PathPolicy::RoundRobin { iops: u32::MAX, bytes } => format!(" bytes={bytes}"),
        PathPolicy::Latency { .. } if policy == PathPolicy::LATENCY => " latency".into(),
        PathPolicy::Latency { sampling_ios, eval_ns } => {
            format!(" latency {sampling_ios}/{}", eval_ns / counters::MILLISECOND)
        }
        _ => String::new(),
    };
    format!("{}{goes_by}", policy.plug_in())
}

/// What is more frequent than any other of these, the most frequent first; `None` where two are as frequent.
pub(super) fn most<T>(values: &[T], count: impl Fn(&T) -> usize) -> Option<&T> {
    let (first, rest) = values.split_first()?;
    rest.first().is_none_or(|second| count(first) > count(second)).then_some(first)
}

impl Difference {
    /// The value that more hosts have than any other; `None` where two have as many.
    pub(crate) fn majority(&self) -> Option<Value> {
        most(&self.values, |(_, hosts)| hosts.len()).map(|(value, _)| *value)
    }

    /// Whether another one is the same of another device: the same hosts have the same values.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        // The few that differ tell it sooner than the many that do not.
        let mut both = self.values.iter().zip(&other.values).rev();
        self.values.len() == other.values.len()
            && both
                .all(|((value, own), (another, others))| own == others && value.is_alike(another))
    }
}

/// The values of each thing that hosts can be compared by, with the hosts that have them: of what is meant.
fn all(hosts: &[Host], devices: &[Known], is_meant: impl Fn(&Value) -> bool) -> Vec<Difference> {
    let mut entries: Vec<((usize, usize), u32, Value)> = Vec::new();
    for (place, host) in (0..).zip(hosts) {
        let values = host.knobs().map(|knob| match knob {
            Knob::MaxQueueDepth { device, value }
                if host.device(device).is_some_and(|device| device.is_captured) =>
            {
                Value::Dqlen(device, value)
            }
            _ => Value::Set(knob),
        });
        let without_line = host
            .devices
            .iter()
            .filter_map(|device| Some(Value::UseAno(device.id, device.use_ano?)));
        let values = values.chain(without_line).chain(host.delayed_ack.map(Value::DelayedAck));
        let is_comparable = |value: &Value| {
            let device = value.device().map(|device| &devices[device.index()]);
            device.is_none_or(Known::is_shared)
        };
        let values = values.filter(|value| is_meant(value) && is_comparable(value));
        entries.extend(values.map(|value| (value.key_on(host.version()), place, value)));
    }
    sort_by_key(&mut entries, |(key, place, _)| (*key, *place));
    let one = |same: &[((usize, usize), u32, Value)]| {
        let mut values: Vec<(Value, Vec<u32>)> = Vec::new();
        for (_, place, value) in same {
            match values.iter_mut().find(|(known, _)| known == value) {
                Some((_, hosts)) => hosts.push(*place),
                None => values.push((*value, vec![*place])),
            }
        }
        levels::most_first(&mut values, |(_, hosts)| hosts.len() as f64);
        Difference { values }
    };
    entries.chunk_by(|one, next| one.0 == next.0).map(one).collect()
}

/// What hosts have set to different values.
pub(crate) fn differences(fleet: &Fleet) -> (Vec<Difference>, Vec<Uneven>) {
    let all = all(&fleet.hosts, &fleet.devices, |_| true);
    let uneven = uneven(fleet, &all);
    (all.into_iter().filter(|one| one.values.len() > 1).collect(), uneven)
}

/// How deep each device is on its hosts, alike or not.
pub(super) fn depths(hosts: &[Host], devices: &[Known]) -> Vec<Difference> {
    all(hosts, devices, |value| matches!(value, Value::Set(Knob::MaxQueueDepth { .. })))
}

/// What is off its default where it is told, and not told by all hosts that may have it.
pub(crate) fn untold(fleet: &Fleet) -> Vec<Untold> {
    let options = Advanced::TABLE.iter().map(|info| info.option).filter_map(|option| {
        let may_have = |host: &Host| host.uses(option) && option.exists_in(host.version());
        let told = |host: &Host| {
            let value = host.value_of(option)?;
            Some((
                Value::Set(Knob::Advanced { option, value }),
                host.default_of(option).to_string(),
            ))
        };
        untold_of(fleet, may_have, told)
    });
    let may_delay = |host: &Host| host.delayed_ack.is_some() || host.has(Transport::Iscsi);
    let delays = |host: &Host| Some((Value::DelayedAck(host.delayed_ack?), true.to_string()));
    options.chain(untold_of(fleet, may_delay, delays)).collect()
}

/// The same of one thing: who may have it, and what a host says of it, with its default.
fn untold_of(
    fleet: &Fleet,
    may_have: impl Fn(&Host) -> bool,
    told: impl Fn(&Host) -> Option<(Value, String)>,
) -> Option<Untold> {
    let all = || (0..).zip(&fleet.hosts).filter(|(_, host)| may_have(host));
    let mut is = all().filter_map(|(_, host)| told(host));
    let (value, default) = is.find(|(value, default)| value.text() != *default)?;
    let places = |is_meant: &dyn Fn(Option<Value>) -> bool| {
        let own = all().filter(|(_, host)| is_meant(told(host).map(|(value, _)| value)));
        own.map(|(place, _)| place).collect::<Vec<u32>>()
    };
    let (hosts, silent) = (places(&|own| own == Some(value)), places(&|own| own.is_none()));
    (!silent.is_empty()).then_some(Untold { value, default, hosts, silent })
}

/// Arrays whose devices are not set alike. Which hosts differ does not matter: the value of most counts.
fn uneven(fleet: &Fleet, all: &[Difference]) -> Vec<Uneven> {
    let mut uneven: Vec<Uneven> = Vec::new();
    for one in all {
        let (Some(value), Some(id)) = (one.majority(), one.values[0].0.device()) else { continue };
        let array = fleet.devices[id.index()].array();
        if array.is_empty() {
            continue;
        }
        let is_same = |known: &&mut Uneven| {
            known.array == array && known.values[0].0.key().0 == value.key().0
        };
        let Some(known) = uneven.iter_mut().rev().find(is_same) else {
            uneven.push(Uneven { array, values: vec![(value, vec![id])] });
            continue;
        };
        match known.values.iter_mut().find(|(known, _)| known.is_alike(&value)) {
            Some((_, devices)) => devices.push(id),
            None => known.values.push((value, vec![id])),
        }
    }
    uneven.retain(|known| known.values.len() > 1);
    for known in &mut uneven {
        levels::most_first(&mut known.values, |(_, devices)| devices.len() as f64);
    }
    uneven
}
