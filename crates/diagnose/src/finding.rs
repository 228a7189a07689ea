//! The nouns of the answer: cause, evidence, change, finding, verdict.

use std::{borrow::Cow, collections::BTreeMap};

use counters::Kind;
use knobs::{Effect, Setting};
use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::{Profile, Simulated};

macro_rules! causes {
    ($($name:ident $key:literal $title:literal $meaning:literal;)*) => {
        /// What is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {$(
            #[doc = $meaning]
            $name,
        )*}

        impl Cause {
            /// Every cause.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its key in JSON and in tables.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self {$(Self::$name => $key),*}
            }

            /// What it is, in one sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {$(Self::$name => $meaning),*}
            }

            /// Its name for people.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {$(Self::$name => $title),*}
            }
        }
    };
}

causes! {
    Silence "silence" "Device does not answer" "Commands are outstanding and nothing completes: all paths down, or close to it.";
    PathDown "path-down" "Path lost" "A path stopped carrying I/O, and others take over, or will when the host finds it dead.";
    PathThrash "path-thrash" "Path thrash" "Hosts send to both controllers of an array that has a volume at one of them, and they take it from each other.";
    Aborts "aborts" "Commands are aborted" "Commands are given up, or devices reset.";
    Failures "failed-commands" "Commands fail" "One in twenty commands or more is answered with an error.";
    ReservationConflicts "reservation-conflicts" "SCSI reservation conflicts" "Commands are refused because another host holds the device.";
    ArrayQos "array-qos" "Held to a rate below the host (QoS or saturation)" "A policy of the array holds a volume to a rate, or array or link are saturated.";
    ArraySlow "array-slow" "Array slow or at its knee" "The time is spent below the host.";
    CommandWindow "command-window" "Command window full (iSCSI, NFS)" "Commands wait below the host for the window of an iSCSI session, or for the RPC slots of an NFS mount.";
    HostLink "host-link" "Link of the host's own port too slow" "Commands spend their time below the host on the link of the port by which they leave it, behind others or for their own data.";
    SwitchLink "switch-link" "Link of a switch too slow" "Commands spend their time below the host on the link by which their switch reaches others, which hosts share, behind others or for their own data.";
    SlowWay "slow-way" "Time lost on the way to the array" "Commands lose time between host and array: to lost segments of an iSCSI session, or on paths that are not optimized.";
    NoisyNeighbour "noisy-neighbour" "Noisy neighbour" "One VM holds the slots of a shared device and others wait for them.";
    Dsnro "dsnro" "Device queue full, limited by DSNRO" "Several VMs compete on a device whose depth DSNRO lowers.";
    DeviceDepth "device-depth" "Device queue full, limited by its own depth" "The device's own depth is too small for what is sent to it.";
    AdaptiveThrottling "adaptive-throttling" "Depth cut by adaptive throttling" "The array reports itself full and the host halves the depth.";
    Sioc "sioc" "Depth moved by Storage I/O Control" "The datastore is congested and Storage I/O Control lowers the depth.";
    AdapterQueue "adapter-queue" "Host adapter queue full" "Commands wait at a path or an adapter.";
    IopsLimit "iops-limit" "IOPS limit on a virtual disk" "A limit in the host holds a virtual disk to a rate.";
    HostWait "host-wait" "Commands held in the host" "Commands wait in the VMkernel for no queue that the counters show.";
    VirtualDiskCap "virtual-disk-cap" "Virtual disk at its queue depth" "A virtual disk sends as many commands as its driver allows; more wait in the guest.";
    VirtualAdapterCap "virtual-adapter-cap" "Virtual adapter at its queue depth" "The disks of a virtual adapter share a full ring; more wait in the guest.";
    Splitting "splitting" "Large I/Os are split" "Commands are cut into pieces below the point where esxtop counts them.";
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

/// When something held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Begin of its first interval, in milliseconds since 1970-01-01 UTC.
    pub from_ms: i64,
    /// End of its last interval.
    pub to_ms: i64,
    /// Samples in which it held.
    pub samples: usize,
    /// Samples in which there was something to judge.
    pub of: usize,
}

/// One number that speaks for a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is, in esxtop's words where it has them.
    pub label: String,
    /// The number.
    pub value: f64,
    /// Its unit; empty for plain numbers.
    pub unit: &'static str,
}

impl Evidence {
    /// The label of what a virtual disk takes, which esxtop has no name for.
    pub(crate) const AT_DISK: &str = "latency at the virtual adapter";
    /// The wait in the guest before that, where the source knows it.
    pub(crate) const IN_GUEST: &str = "wait in the guest";
    /// That of the paths which a device had left while others of it were lost.
    pub(crate) const PATHS_LEFT: &str = "paths left meanwhile";
    /// That of the samples with load since lost paths are back; no evidence where they are not.
    pub(crate) const PATHS_BACK: &str = "samples since it is back";

    pub(crate) fn new(label: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { label: label.into(), value, unit }
    }

    /// Those of some numbers that were measured.
    pub(crate) fn of<const N: usize>(
        numbers: [(&'static str, Option<f64>, &'static str); N],
    ) -> impl Iterator<Item = Self> {
        let known =
            |(label, value, unit): (&str, Option<f64>, _)| Some(Self::new(label, value?, unit));
        numbers.into_iter().filter_map(known)
    }
}

/// A VM (or another world) that suffers or causes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Party {
    /// The name of the VM, or of the world where no VM is known.
    pub name: String,
    /// Commands per second in the window.
    pub iops: f64,
    /// GAVG in the window, where it was measured.
    pub gavg_ms: Option<f64>,
    /// Mean slots of the device that it holds.
    pub slots: f64,
    /// Mean commands that it has waiting in the VMkernel, where that was measured.
    pub waiting: Option<f64>,
}

/// A setting, and what takes it back; in JSON both are lines that [`knobs::Line`] reads back.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The one of several hosts on which it is set; `None` where there is one only, or where it is no host's.
    pub host: Option<String>,
    /// The setting.
    pub set: Setting,
    /// The same as it was; `None` where no source tells how it was.
    pub undo: Option<Setting>,
}

impl Step {
    pub(crate) const fn new(set: Setting, undo: Option<Setting>) -> Self {
        Self { host: None, set, undo }
    }

    fn line(&self, setting: &Setting) -> String {
        match &self.host {
            Some(host) => format!("{host}: {setting}"),
            None => setting.to_string(),
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut step = serializer.serialize_struct("Step", 2)?;
        step.serialize_field("set", &self.line(&self.set))?;
        step.serialize_field("undo", &self.undo.as_ref().map(|undo| self.line(undo)))?;
        step.end()
    }
}

/// Something to do. What it sets is in `steps`; the lines to type are renderings of them, beside
/// lines that only show something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What it does, in one sentence.
    pub what: String,
    /// For a shell on the host.
    pub esxcli: Vec<String>,
    /// The same from PowerCLI.
    pub powercli: Vec<String>,
    /// For the guest.
    pub guest: Vec<String>,
    /// When it acts.
    #[serde(serialize_with = "key_of")]
    pub effect: Effect,
    /// What may go wrong.
    pub risk: String,
    /// How to take it back, in words; the lines are [`Change::undo_lines`].
    pub undo: String,
    /// What a simulation says of it, once one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// What it sets, in the order of its lines. The depths of several drivers are alternatives: one
    /// of them is the driver that is there.
    pub steps: Vec<Step>,
}

fn key_of<S: Serializer>(effect: &Effect, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(effect.key())
}

/// What kind of object a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// One that has a row.
    Row(Kind),
    /// A virtual adapter with its disks (`sql01:scsi0`).
    VirtualAdapter,
    /// An array that is known by its name.
    Array,
}

/// What a finding is about. A name alone does not tell: a VM may be called as a device is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Object {
    /// What it is.
    #[serde(serialize_with = "kind_name")]
    pub kind: ObjectKind,
    /// Its name, as the recording has it.
    #[serde(rename = "at")]
    pub name: String,
}

fn kind_name<S: Serializer>(kind: &ObjectKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

impl ObjectKind {
    /// What an object of this kind is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Row(kind) => kind.name(),
            Self::VirtualAdapter => "virtual adapter",
            Self::Array => "array",
        }
    }
}

impl Object {
    /// An object that has a row.
    #[must_use]
    pub fn row(kind: Kind, name: &str) -> Self {
        Self { kind: ObjectKind::Row(kind), name: name.into() }
    }

    /// Whether it is the row of that kind and name.
    #[must_use]
    pub fn is_row(&self, kind: Kind, name: &str) -> bool {
        self.kind == ObjectKind::Row(kind) && self.name == name
    }

    /// Whether it is a device or an NFS volume.
    #[must_use]
    pub const fn is_device(&self) -> bool {
        matches!(self.kind, ObjectKind::Row(Kind::Device | Kind::NfsVolume))
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What it is.
    pub cause: Cause,
    /// Where it is.
    #[serde(flatten)]
    pub at: Object,
    /// Where else the same is true at the same time, for the same reason and with the same remedy.
    pub also: Vec<Object>,
    /// The datastore that it concerns, where its name is known.
    pub datastore: Option<String>,
    /// The finding in one plain sentence.
    pub sentence: String,
    /// When it held.
    pub window: Window,
    /// Mean commands that stand there instead of being served: what it costs, by Little's law.
    pub standing: f64,
    /// The limit that commands meet there, in commands, where there is one and it shows.
    pub limit: Option<f64>,
    /// The numbers.
    pub evidence: Vec<Evidence>,
    /// How sure, from 0 to 1.
    pub confidence: f64,
    /// What would make it surer.
    pub raise_confidence: Vec<String>,
    /// Who suffers.
    pub sufferers: Vec<Party>,
    /// Who causes it.
    pub causers: Vec<Party>,
    /// What to do, in order of preference.
    pub changes: Vec<Change>,
    /// What not to do.
    pub do_not: Vec<String>,
    /// The warning that goes with a raised queue depth: what S0 concludes.
    pub caution: Option<&'static str>,
}

impl Finding {
    /// All that it is about.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        std::iter::once(&self.at).chain(&self.also)
    }

    /// Whether somebody of that name suffers by it.
    pub(crate) fn hurts(&self, name: &str) -> bool {
        self.sufferers.iter().any(|party| party.name == name)
    }
}

/// What is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lacking {
    /// Columns beyond those that a spreadsheet keeps.
    Columns,
    /// Devices that carry a part of what adapters or virtual disks do, or all of them.
    Devices,
    /// Rows in the middle, or what is decisive in them.
    Rows,
    /// The device to which a path leads.
    Paths,
    /// The worlds of a device, or most of them.
    Worlds,
    /// A counter without which no device can be judged.
    Counters,
    /// Numbers that add up, as those of a whole file do.
    Sums,
    /// What would tell why something is slow or waits.
    Reason,
}

/// Something that a recording lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lack {
    /// What.
    pub what: Lacking,
    /// The same in a sentence, with how it shows and what it hides.
    pub sentence: String,
}

impl Lack {
    /// What stands before its sentence.
    #[must_use]
    pub fn title(&self) -> &'static str {
        if self.what == Lacking::Reason { "Not told" } else { "Not whole" }
    }
}

/// How a recording is judged as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// There are findings.
    Problem,
    /// There is load and nothing is wrong.
    Healthy,
    /// There is next to no load, and so nothing to be wrong.
    Idle,
    /// Nothing was found, and the recording lacks what it takes to say that nothing is wrong.
    CannotTell,
}

/// By which profile a device was judged, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileChoice {
    /// The device.
    pub device: String,
    /// The profile.
    pub profile: Profile,
    /// Why this one.
    pub why: String,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The host, as the recording names it.
    pub host: String,
    /// How it is judged as a whole.
    pub outcome: Outcome,
    /// What the recording lacks so that an all-clear would be a guess.
    pub lacks: Vec<Lack>,
    /// The answer in a line: who suffers, where, from what; or that nothing is wrong.
    pub headline: String,
    /// The one thing to do about it, in a line.
    pub advice: Option<String>,
    /// What the recording covers: its samples, and those of them with load.
    pub window: Window,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// The numbers that prove that nothing is wrong elsewhere.
    pub evidence: Vec<Evidence>,
    /// The profile of each busy device.
    pub profiles: Vec<ProfileChoice>,
    /// Where outputs of esxcli contradict the recording, which then is judged alone.
    pub disagreements: Vec<String>,
    /// Counters that the recording does not have, and how to record them.
    pub missing: Vec<String>,
    /// The datastores on devices of this host, where their names are known.
    pub names: BTreeMap<String, String>,
}

impl Verdict {
    /// Says of every step that is a host's that it is this one's, which is one of several. A line takes no name
    /// with blanks in front of it.
    pub fn name_host(&mut self) {
        if self.host.contains(char::is_whitespace) {
            return;
        }
        let changes = self.findings.iter_mut().flat_map(|finding| &mut finding.changes);
        for step in changes.flat_map(|change| &mut change.steps) {
            step.host = step.set.esxcli().map(|_| self.host.clone());
        }
    }

    /// The name of what a finding is about, with that of its datastore in front where it is a device
    /// of which that is known.
    #[must_use]
    pub fn place<'a>(&self, at: &'a Object) -> Cow<'a, str> {
        if at.is_device() { self.named(&at.name) } else { at.name.as_str().into() }
    }

    /// The same of all that a finding is about: the first of them, and how many more there are.
    #[must_use]
    pub fn places(&self, finding: &Finding) -> String {
        let first = self.place(&finding.at);
        match finding.also.len() {
            0 => first.into_owned(),
            more => format!("{first} and {more} more"),
        }
    }

    /// The name of a device with that of its datastore in front, where it is known; any other name
    /// as it is.
    #[must_use]
    pub fn named<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.names.get(name) {
            Some(datastore) => format!("{datastore} ({name})").into(),
            None => name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinct() {
        let mut keys: Vec<_> = Cause::ALL.iter().map(|cause| cause.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), Cause::ALL.len());
    }
}
