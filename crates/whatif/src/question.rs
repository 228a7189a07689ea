//! What is asked: settings, for which devices, over which stretch of the recording.

use capture::VscsiHistogram;
use knobs::{Advanced, Allocation, AllocationChange, DSNRO, Disks, Setting};

use crate::Error;

/// A question to a recording.
#[derive(Clone, Debug)]
pub struct Question {
    /// All of them are one change, in force after the reboots that it needs. Of a VM's disks with an
    /// IOPS limit of their own each has it.
    pub settings: Vec<Setting>,
    /// Begin and end of the stretch that is simulated, in milliseconds since 1970-01-01 UTC: the
    /// intervals that end after the first and not after the second.
    pub window: (i64, i64),
    /// The device in question; without one, all that the settings name or act on, and the VMs use.
    pub device: Option<String>,
    /// VMs in question: nothing is asked of devices that neither they use nor settings name. Without
    /// either, all devices are in question.
    pub vms: Vec<String>,
    /// Devices that share an array, by name; they count more than what names tell. One alone in
    /// its group shares with nobody.
    pub arrays: Vec<Vec<String>>,
    /// What `vscsiStats` counted under this load, if it did.
    pub vscsistats: Vec<VscsiHistogram>,
    /// Commands that a run simulates, about: 100,000 answer in tens of milliseconds.
    pub commands: f64,
}

impl Question {
    /// Refuses what no recording can answer.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let untold = |setting: &Setting| match setting {
            Setting::Allocation { vdisk: Disks::Of(_), allocation: AllocationChange::Limit(_) } => {
                None
            }
            Setting::Allocation { .. } => {
                Some("what shares and reservations do; of a disk its IOPS limit can be asked")
            }
            Setting::QueueFull { .. }
            | Setting::Advanced {
                option: Advanced::QFullSampleSize | Advanced::QFullThreshold | Advanced::DelayOnBusy,
                ..
            } => Some("when the array says that it is full"),
            Setting::PathPolicy { .. } => Some(
                "which controller of the array has a volume, and what the way over another path costs",
            ),
            _ => None,
        };
        let refused = |setting| {
            let what = untold(setting)?;
            Some(Error::new(format!("`{setting}`: a recording does not tell {what}")))
        };
        self.settings.iter().find_map(refused).map_or(Ok(()), Err)
    }
}

/// Lines in which storage policies stand as the IOPS limits that disks have by them. What a policy says is that of
/// Storage I/O Control's own, with what lines for it set over that.
///
/// # Errors
/// One line: of a policy that disks are given nobody says the numbers, or no disk is given one.
pub fn by_numbers(settings: Vec<Setting>) -> Result<Vec<Setting>, Error> {
    let preset = |(name, says): (&str, Allocation)| (name.to_owned(), says.limit_iops);
    let mut limits: Vec<_> = Allocation::POLICY_PRESETS.map(preset).into();
    let (mut of_disks, asks) = (Vec::new(), !settings.is_empty());
    for setting in settings {
        let Setting::Allocation { vdisk: Disks::With(name), allocation } = setting else {
            of_disks.push(setting);
            continue;
        };
        if let AllocationChange::Limit(limit) = allocation {
            limits.retain(|(known, _)| *known != name);
            limits.push((name, limit));
        }
    }
    if of_disks.is_empty() && asks {
        return Err(Error::new(
            "a storage policy is asked of disks that are given it: `VM: StoragePolicy NAME`",
        ));
    }
    let number = |setting| {
        let Setting::Allocation { vdisk, allocation: AllocationChange::Policy(policy) } = setting
        else {
            return Ok(setting);
        };
        let limit = match &policy {
            Some(name) => limits.iter().find(|(known, _)| known == name).map(|(_, limit)| *limit),
            None => Some(None),
        };
        let limit = limit.ok_or_else(|| {
            let name = policy.unwrap_or_default();
            Error::new(format!(
                "nothing tells what the storage policy `{name}` says; give its limit besides: \
                 `storage policy {name}: DiskLimitIOPerSecond N`"
            ))
        })?;
        Ok(Setting::Allocation { vdisk, allocation: AllocationChange::Limit(limit) })
    };
    of_disks.into_iter().map(number).collect()
}

/// What is asked, as far as the laws go that hold of any array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// All that is set.
    pub(crate) settings: &'a [Setting],
    /// The VM of which the IOPS limit is set, where nothing else is.
    pub(crate) limited: Option<Limited<'a>>,
    /// Whether nothing but depths of devices is changed.
    pub(crate) is_of_depth: bool,
    /// The part of a latency that waits for slots, where these are never short, so that nothing changes by more of
    /// them; none where something may.
    pub(crate) untouched: Option<f64>,
    /// Whether commands are cut into other pieces than before.
    pub(crate) is_split: bool,
    /// Whether no model divides the commands among the VMs as they were recorded.
    pub(crate) is_undivided: bool,
    /// The device whose DQLEN moves to and fro by itself, if one's does.
    pub(crate) flapping: Option<&'a str>,
    /// The device of which DSNRO may have held the queue between the samples alone, if there is one.
    pub(crate) lowered: Option<&'a str>,
    /// The devices that are said to share an array.
    pub(crate) said: &'a [Vec<String>],
    /// Why it says nothing that no model notices the change; nothing where it does.
    pub(crate) unseen: Option<&'a str>,
    /// Whether commands came in bursts.
    pub(crate) is_bursty: bool,
    /// Whether the host may throttle its queue for an array that rejects commands.
    pub(crate) may_throttle: bool,
    /// Whether what is asked for was tried: the recording has the same load under it.
    pub(crate) is_tried: bool,
    /// Whether an array gets other parts of commands that differ.
    pub(crate) is_mixed: bool,
    /// Whether guests ask for more than they got where a depth on the way to it was tried, as commands that wait
    /// there and threads that stay tell.
    pub(crate) is_hungry: bool,
    /// How long the load lasted, in milliseconds.
    pub(crate) span_ms: f64,
}

/// Part of a latency that is no wait for a limit.
pub(crate) const NO_WAIT: f64 = 0.05;

/// A VM of which the IOPS limit is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limited<'a> {
    pub(crate) vm: &'a str,
    /// What it comes to under a limit below what it does today; none where that is above, or none.
    pub(crate) held: Option<Held>,
    /// What the limit that is asked for lets through at most, in commands a second; none where it is lifted
    /// altogether.
    pub(crate) most_iops: Option<f64>,
    /// What the pace of the limit that is asked for leaves it at least.
    pub(crate) paced: Paced,
    /// Whether it is seen to be held to a limit today.
    pub(crate) is_held: bool,
    /// Whether a limit that is put on cuts bursts of it.
    pub(crate) is_bursty: bool,
    /// Whether the limit of one of its disks may be none, as an old version has it.
    pub(crate) may_be_none: bool,
    /// The part of its latency in the VMkernel, which an unseen limit may be; nothing where one is
    /// seen.
    pub(crate) waits: f64,
}

/// What a VM does under an IOPS limit that is below what it asks for: least and greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Held {
    /// Commands a second.
    pub(crate) iops: [f64; 2],
    /// Commands outstanding.
    pub(crate) outstanding: [f64; 2],
    /// The turns a second that it gets at least while it waits for one.
    pub(crate) turns: f64,
}

/// What a VM does behind the pace of an IOPS limit where it comes in the least favourable way, beside what it
/// does today.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Paced {
    /// Commands a second.
    pub(crate) iops: f64,
    /// Commands outstanding.
    pub(crate) outstanding: f64,
    /// The same where more threads pause than in that way.
    pub(crate) longest: f64,
    /// Rate and commands outstanding today.
    pub(crate) today: [f64; 2],
}

impl Paced {
    /// The part of its commands that it loses.
    pub(crate) fn loss(&self) -> f64 {
        if self.today[0] > 0.0 { (1.0 - self.iops / self.today[0]).max(0.0) } else { 0.0 }
    }
}

impl Limited<'_> {
    /// Whether the limit is above what it does today, or none.
    pub(crate) const fn is_lifted(&self) -> bool {
        self.held.is_none()
    }

    /// Whether the answer is about it, and not about its device: one that never rests gets what it is given.
    pub(crate) fn is_asked_about(&self) -> bool {
        self.is_lifted() || self.is_bursty
    }

    /// What of it no recording like this tells, in sentences.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.is_bursty {
            doubts.push(format!(
                "{} sends in bursts that are shorter than a sample: a limit cuts them, and leaves unused what it \
                 would let through between them. How long they are no sample tells: a recording of shorter ones \
                 would (`esxtop -b -a -d 2`), or a limit that was tried.",
                self.vm
            ));
        }
        if self.may_be_none {
            doubts.push(format!(
                "Before ESXi 6.0 the disks of a VM on a device have one limit, the sum of theirs, and none where \
                 one of them has none: the range goes from the limit that is asked for to none for {}. `esxcli \
                 system version get` tells (--esxcli FILE).",
                self.vm
            ));
        }
        doubts
    }

    /// Whether it surely gets no less than today: a limit above what it does in each sample cuts bursts that
    /// are shorter, unless it stands in the place of a lower one.
    pub(crate) const fn gives(&self) -> bool {
        self.is_lifted() && (self.is_held || self.most_iops.is_none())
    }

    /// Whether it surely gets no more than today.
    pub(crate) fn takes(&self) -> bool {
        !self.is_lifted() || self.is_unreached()
    }

    /// Whether it waits for no limit today, and the limit is above all that it sends in a sample, or none.
    pub(crate) fn is_unreached(&self) -> bool {
        self.is_lifted() && !self.is_held && self.waits <= 0.0
    }

    /// Whether no limit may hold it before and after, but for a `loss` that does not count.
    pub(crate) fn is_free(&self, loss: f64) -> bool {
        self.is_lifted() && !self.may_wait() && self.paced.loss() <= loss
    }

    /// Whether it may wait for a limit that is not seen.
    pub(crate) fn may_wait(&self) -> bool {
        self.waits > NO_WAIT
    }
}

/// What the software initiator cuts commands into with these settings, in KiB [LAMW].
pub(crate) fn iscsi_kib(settings: &[Setting]) -> u32 {
    let mut asked = settings.iter().filter_map(|setting| match setting {
        Setting::Advanced { option: Advanced::IscsiMaxIoSizeKb, value } => *value,
        _ => None,
    });
    asked.next_back().unwrap_or(Advanced::IscsiMaxIoSizeKb.info().default)
}

/// The depth that settings ask for a device, where they set nothing else but depths of devices.
pub(crate) fn depth_asked(settings: &[Setting], device: &str) -> Option<u32> {
    let depths = settings.iter().filter_map(|setting| match setting {
        Setting::SchedNumReqOutstanding { device: name, value }
        | Setting::MaxQueueDepth { device: name, value } => {
            (*name == device).then_some(Some(*value))
        }
        Setting::Advanced { option: Advanced::SchedNumReqOutstanding, value } => {
            Some(Some(value.unwrap_or(DSNRO.default)))
        }
        Setting::ModuleDepth { value, .. } => Some(Some(*value)),
        _ => Some(None),
    });
    depths.collect::<Option<Vec<u32>>>()?.into_iter().min()
}
