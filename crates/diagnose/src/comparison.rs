//! The nouns of a comparison: before and after of one host, and several hosts on one device.
//!
//! Plain data, the answer first, so that the terminal, Markdown, JSON and the web page all print
//! the same thing. [`compare`](crate::compare()) fills them in.

use counters::Kind;
use serde::{Serialize, Serializer};

use crate::{Cause, Object, Window};

/// Captures side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The answer in one sentence.
    pub headline: String,
    /// What stands against believing it, each in one sentence.
    pub cautions: Vec<String>,
    /// The hosts that are on both sides.
    pub hosts: Vec<BeforeAfter>,
    /// The hosts that are on the first side alone.
    pub only_before: Vec<String>,
    /// The hosts that are on the second side alone.
    pub only_after: Vec<String>,
    /// The devices that several hosts use, the one with most commands first. Of a host that is on
    /// both sides, the second counts.
    pub shared: Vec<SharedDevice>,
    /// What there is to say of the shared devices together.
    pub notes: Vec<SharedNote>,
    /// How the differences were judged.
    pub method: &'static str,
}

/// One host before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeforeAfter {
    /// The host, as the first side names it.
    pub host: String,
    /// What the first side covers.
    pub before: Window,
    /// What the second side covers.
    pub after: Window,
    /// What is on both sides: devices, then VMs, then virtual disks; of each kind the one first
    /// in which commands spend most time.
    pub objects: Vec<ObjectChange>,
    /// What is on the first side alone.
    pub only_before: Vec<ObjectName>,
    /// What is on the second side alone.
    pub only_after: Vec<ObjectName>,
    /// Findings of the first side that the second does not have, the worst first.
    pub gone: Vec<FindingChange>,
    /// Findings of the second side that the first does not have.
    pub new: Vec<FindingChange>,
    /// Findings of both sides: the same cause at the same object.
    pub remaining: Vec<FindingChange>,
}

/// An object of a host by its kind and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectName {
    /// What it is.
    #[serde(serialize_with = "kind_name")]
    pub kind: Kind,
    /// Its name, as the recording has it.
    pub name: String,
}

/// An object before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectChange {
    /// Which.
    #[serde(flatten)]
    pub object: ObjectName,
    /// What became of its latency.
    pub trend: Trend,
    /// The same in one sentence, with the numbers.
    pub sentence: String,
    /// Every figure that either side has.
    pub figures: Vec<Figure>,
}

/// What became of the latency of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// It fell, and not because there is less to do.
    Better,
    /// It rose, and not because there is more to do.
    Worse,
    /// It moved by less than the noise of the samples and is not half or twice what it was, or by next to nothing.
    Same,
    /// It moved as it would with the load alone: the load differs as much.
    LoadDiffers,
    /// One side has too few samples, or no commands, or they are too uneven to tell what is far apart from chance.
    Unknown,
}

impl Trend {
    /// In a word or two, for a table.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::LoadDiffers => "other load",
            Self::Unknown => "unknown",
        }
    }
}

/// One number of an object on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is, as esxtop's column where it has one: `CMDS/s`, `GAVG/cmd`.
    pub name: &'static str,
    /// Its unit; empty for plain numbers.
    pub unit: &'static str,
    /// On the first side; nothing where it has no such counter, or no command.
    pub before: Option<f64>,
    /// On the second side.
    pub after: Option<f64>,
    /// After minus before.
    pub change: Option<f64>,
    /// The change in percent of what was before; nothing where that was 0.
    pub change_percent: Option<f64>,
    /// What the change would reach by chance in one of a hundred comparisons of one and the same
    /// load; nothing where no such thing is known.
    pub noise: Option<f64>,
    /// Whether the change is more than that.
    pub beyond_noise: Option<bool>,
}

impl Figure {
    /// Its name, and its unit where the name does not say it: `GAVG/cmd ms`.
    #[must_use]
    pub fn label(&self) -> String {
        let says_unit = self.name.ends_with("/s") || self.name.starts_with('%');
        if says_unit || self.unit.is_empty() {
            return self.name.into();
        }
        format!("{} {}", self.name, self.unit)
    }
}

/// A finding on one side or on both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingChange {
    /// What it is.
    pub cause: Cause,
    /// Where it is.
    #[serde(flatten)]
    pub at: Object,
    /// The finding in one sentence: of the second side, where it is there.
    pub sentence: String,
    /// Mean commands that stood there before; nothing where it is new.
    pub standing_before: Option<f64>,
    /// Mean commands that stand there after; nothing where it is gone.
    pub standing_after: Option<f64>,
}

impl FindingChange {
    /// The commands that stood there and stand there; nothing where it is on one side only, or
    /// where it makes none stand.
    #[must_use]
    pub fn standing(&self) -> Option<(f64, f64)> {
        let both = self.standing_before.zip(self.standing_after);
        both.filter(|(before, after)| before.max(*after) > 0.0)
    }
}

/// A device that several hosts use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedDevice {
    /// Its name (`naa.…`, `eui.…`, `t10.…`), or that of the NFS volume.
    pub name: String,
    /// The time that all hosts cover; nothing where there is none, and every host is shown over
    /// its own.
    pub common: Option<Span>,
    /// The hosts, the one with most commands first.
    pub hosts: Vec<HostShare>,
    /// What the array gets from all of them.
    pub total: HostShare,
    /// What there is to say, each in one sentence.
    pub notes: Vec<SharedNote>,
}

/// A span of time, in milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Its first instant.
    pub from_ms: i64,
    /// Its last instant.
    pub to_ms: i64,
}

/// What one host does on a shared device, or all of them. What was not measured is nothing, and so is
/// the sum of all hosts where one of them lacks it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostShare {
    /// The host.
    pub host: String,
    /// Commands per second.
    pub iops: Option<f64>,
    /// Its share of the commands of all hosts, in percent; nothing where those of one are not known.
    pub share_percent: Option<f64>,
    /// Mebibytes per second.
    pub mib_per_s: Option<f64>,
    /// Mean slots held, by Little's law.
    pub slots: Option<f64>,
    /// DAVG; of an NFS volume GAVG.
    pub davg_ms: Option<f64>,
    /// KAVG; nothing for an NFS volume, where nobody measures it.
    pub kavg_ms: Option<f64>,
    /// The limit in force in most samples; nothing where there is no such queue.
    pub dqlen: Option<f64>,
    /// The highest limit in the recording: what the driver gives while no VMs compete.
    pub dqlen_max: Option<f64>,
    /// The limit to which competing VMs lower it, where the recording shows it.
    pub dsnro: Option<f64>,
}

/// Something to say of a shared device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedNote {
    /// What it is about.
    pub kind: SharedKind,
    /// It in one sentence.
    pub sentence: String,
}

/// What a note on a shared device is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharedKind {
    /// The hosts have different depths, and so unequal shares of the array.
    UnequalDepths,
    /// One host's load sets another's DAVG.
    TakesTheArray,
    /// The depths of all hosts add up to more than a port of an array takes.
    DepthsAddUp,
    /// The captures do not overlap in time.
    ClocksApart,
}

fn kind_name<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}
