//! What `vscsiStats` counted of one virtual disk, and what of a guest it tells.
//!
//! esxtop has means of seconds; the histograms have every command (reference `esxi-host-stack.md`,
//! section 6.5). Threads that pause are missing at the virtual adapter, and how many pause changes
//! from command to command: as many as come out of a busy queue, so that a mean of `a` pausing
//! threads varies as much as Poisson's, and the most that was ever outstanding is the number of
//! threads, or some deviations above the mean. So the distance from mean to most bounds `a` from
//! above, whatever the queue does: a guest whose commands outstanding never move pauses never, and a
//! rate of its own moves them like a pause without end. Threads that come and go move them too, so
//! nothing is bound from below. How long it is between commands tells next to nothing of that (a
//! full queue sends its completions at random), but that a load never rests.

use std::fmt::Write;

use capture::VscsiHistogram;
use counters::{Direction, EntityId, Kind, Metric};
use levels::Measured;

use crate::{Error, GuestCalibration, Habit, cost, observe::Tenant};

/// Commands that are enough to tell.
const COMMANDS: u64 = 1_000;

/// The histograms of one virtual disk, and whose it is.
#[derive(Clone, Debug)]
pub(crate) struct Counted<'a> {
    vm: &'a str,
    disk: &'a str,
    of: Vec<&'a VscsiHistogram>,
}

/// Histograms by virtual disk, by the worlds that the recording has.
///
/// # Errors
/// One line that names the world that the recording lacks.
pub(crate) fn by_disk<'a>(
    recording: &'a Measured,
    histograms: &'a [VscsiHistogram],
) -> Result<Vec<Counted<'a>>, Error> {
    let mut disks: Vec<Counted<'a>> = Vec::new();
    for histogram in histograms {
        let vm = vm_of(recording, histogram.world).ok_or_else(|| unknown(recording, histogram))?;
        let disk = histogram.disk.as_str();
        match disks.iter_mut().find(|known| known.vm == vm && known.disk == disk) {
            Some(known) => known.of.push(histogram),
            None => disks.push(Counted { vm, disk, of: vec![histogram] }),
        }
    }
    Ok(disks)
}

/// The VM of a leader world, by which esxtop names its rows on devices [CAP-A]; the only VM where
/// no row has a world.
fn vm_of(recording: &Measured, world: u64) -> Option<&str> {
    let name = |id: EntityId| recording.entities().get(id.0 as usize).map(|vm| vm.name.as_str());
    let suffix = format!("-{world}");
    let mut worlds = recording.of_kind(Kind::World).peekable();
    if worlds.peek().is_none() {
        let mut vms = recording.of_kind(Kind::Vm);
        return vms.next().filter(|_| vms.next().is_none()).map(|(_, vm)| vm.name.as_str());
    }
    worlds.find(|(_, row)| row.name.ends_with(&suffix)).and_then(|(_, row)| name(row.vm?))
}

fn unknown(recording: &Measured, histogram: &VscsiHistogram) -> Error {
    Error::new(format!(
        "vscsiStats counted for world {}, and {} has no VM with that leader world: the histograms \
         are of another host, or of before the VM was started again",
        histogram.world, recording.host
    ))
}

impl<'a> Counted<'a> {
    /// Whether it is of this guest's virtual disk; of one of which the place is not known it is not.
    pub(crate) fn is_of(&self, tenant: &Tenant<'_>) -> bool {
        self.vm == tenant.vm && tenant.disk.as_deref() == Some(self.disk)
    }

    /// Its name (`sql01:scsi0:0`).
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.vm, self.disk)
    }

    fn find(&self, metric: Metric, direction: Option<Direction>) -> Option<&'a VscsiHistogram> {
        let mut found = self.of.iter().filter(|one| one.metric == metric);
        found.find(|one| one.direction == direction).copied()
    }

    /// The same guest with what was counted of its disk.
    pub(crate) fn add_to(&self, mut guest: GuestCalibration) -> GuestCalibration {
        let (most_ms, mut says) = self.tell(&guest);
        let gavg_ms = 1000.0 * guest.outstanding / guest.iops.max(1e-9);
        let before = guest.habit;
        if most_ms.is_some_and(|most_ms| most_ms < guest.pause_ms.0) {
            says += " The capture shows longer pauses, so that is not used.";
        } else if let Some(most_ms) = most_ms {
            let known_ms = guest.pause_ms.1.unwrap_or(f64::INFINITY);
            guest.pause_ms.1 = Some(known_ms.min(most_ms));
            guest.habit = Habit::of(guest.pause_ms, gavg_ms);
            // Of threads that are told not to pause none is told to want no more.
            guest.content_at_iops = guest.content_at_iops.filter(|_| guest.habit != Habit::Closed);
            if guest.habit != before {
                says += " So it keeps its commands outstanding (closed), which the capture alone \
                         does not tell.";
            } else if most_ms < known_ms {
                let _ = write!(
                    says,
                    " So they pause {most_ms:.2} ms at most, and send at no rate of their own."
                );
            }
        }
        guest.size_kib = guest.size_kib.or_else(|| self.size_kib());
        let lengths = self.find(Metric::IoLength, None);
        guest.units = lengths.and_then(cost::counted).unwrap_or(guest.units);
        guest.read_share = guest.read_share.or_else(|| self.read_share());
        guest.never_rests = self.never_rests();
        guest.vscsistats = Some(says);
        guest
    }

    /// Mean KiB of a command.
    fn size_kib(&self) -> Option<f64> {
        let sizes = self.find(Metric::IoLength, None).filter(|sizes| sizes.count > 0)?;
        Some(sizes.mean.max(0) as f64 / 1024.0)
    }

    /// The share of reads.
    fn read_share(&self) -> Option<f64> {
        let [all, reads] = [None, Some(Direction::Read)].map(|of| self.find(Metric::IoLength, of));
        let (all, reads) = (all?.count, reads?.count);
        (all > 0).then(|| (reads as f64 / all as f64).min(1.0))
    }

    /// Whether the guest never rests: bursts leave gaps, in which most of the time passes.
    fn never_rests(&self) -> bool {
        /// How much longer than the mean a gap is that chance makes of no steady load.
        const LONG: i64 = 10;
        /// Part of the time in such gaps that is next to none.
        const NONE: f64 = 0.02;
        let Some(gaps) = self.find(Metric::Interarrival, None) else { return false };
        let most = |limit: Option<i64>| limit.map_or(gaps.max, |limit| limit.min(gaps.max));
        let long = gaps.bins.iter().filter(|bin| most(bin.limit) >= LONG * gaps.mean.max(1));
        let time: f64 = long.map(|bin| bin.commands as f64 * most(bin.limit) as f64).sum();
        gaps.count >= COMMANDS && time <= NONE * gaps.count as f64 * gaps.mean.max(1) as f64
    }

    /// What was outstanding, where that tells of the load that was recorded, or why it does not.
    fn outstanding(&self, guest: &GuestCalibration) -> Result<&'a VscsiHistogram, String> {
        /// Part by which two means of one load differ.
        const LIKE: f64 = 0.2;
        /// A command counts itself, and means are cut to whole numbers [VSCSI].
        const ITSELF: f64 = 1.5;
        let Some(counted) = self.find(Metric::Outstanding, None) else {
            return Err("it has no histogram of outstanding IOs, so it tells nothing here".into());
        };
        if counted.count < COMMANDS {
            return Err(format!("{} commands are too few to tell anything", counted.count));
        }
        let (mean, stands) = (counted.mean as f64, guest.outstanding);
        if (mean - stands).abs() > ITSELF + LIKE * stands {
            return Err(format!(
                "it counted another load ({mean:.0} outstanding, and {stands:.0} in the capture), so \
                 it tells nothing here"
            ));
        }
        Ok(counted)
    }

    /// The most that a guest's threads pause, in milliseconds, and what it is known by, in a
    /// sentence.
    fn tell(&self, guest: &GuestCalibration) -> (Option<f64>, String) {
        let counted = match self.outstanding(guest) {
            Ok(counted) => counted,
            Err(why) => return (None, format!("vscsiStats: {why}.")),
        };
        let seen = format!(
            "vscsiStats: {} to {} outstanding, {} on average, over {} commands",
            counted.min, counted.max, counted.mean, counted.count
        );
        if guest.capped_at.is_some() {
            let why = "what waits in the guest beyond its driver's depth it does not see";
            return (None, format!("{seen}; {why}."));
        }
        match pausing(counted, guest.outstanding) {
            Some(most) if guest.iops > 0.0 => (
                Some(1000.0 * most / guest.iops),
                format!("{seen}: {most:.1} threads pause at a time, at most."),
            ),
            _ => (None, format!("{seen}: any pause, and any rate of its own, moves them so.")),
        }
    }
}

/// The most threads that pause at a time, on average; `None` without a bound.
fn pausing(counted: &VscsiHistogram, stands: f64) -> Option<f64> {
    /// Deviations that the most is above the mean, at least.
    const DEVIATIONS: f64 = 2.0;
    /// What a mean that is cut or rounded hides.
    const ROUNDED: f64 = 0.5;
    let apart = (counted.max - counted.mean).max(0) as f64;
    let varies = ((apart + 1.0) / DEVIATIONS).powi(2).max(apart + ROUNDED);
    // Where no queue is full they vary less: each of all threads is in its pause or not.
    (varies < stands).then(|| varies / (1.0 - varies / stands))
}
