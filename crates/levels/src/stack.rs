//! The stack over some time: for each level its queues, and of each its limit, its use, who waits
//! for it and for how long. Pictures, tables and JSON all show these figures.
//!
//! What was not measured is none, and so is a sum of queues of which one was not measured. A thing is
//! made of the parts that it has: a level without a wait adds none to the stack's time.

use serde::Serialize;

use crate::{
    LevelKind,
    numbers::{most_first, sum, weighted_mean},
};

/// One queue, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Queue {
    /// Whose it is.
    pub name: String,
    /// The most I/Os that it lets through at a time; `None` where there is no limit, or none shows.
    pub limit: Option<f64>,
    /// The mean number of I/Os that hold a place of it; `None` where nobody does.
    pub in_use: Option<f64>,
    /// The mean number of I/Os that wait for a place.
    pub waiting: Option<f64>,
    /// The mean time that an I/O spends here, in milliseconds.
    pub ms: Option<f64>,
    /// I/Os per second that passed.
    pub iops: f64,
}

/// A level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Which.
    pub kind: LevelKind,
    /// Its queues, the busiest first.
    pub queues: Vec<Queue>,
    /// The mean time that an I/O spends on this level, in milliseconds, over all I/Os.
    pub ms: Option<f64>,
}

/// The whole stack over some time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stack {
    /// The levels on which there is something, from the guest to the array.
    pub levels: Vec<Level>,
    /// The virtual disks; their time is all that the application in the guest sees.
    pub disks: Vec<Queue>,
    /// Commands per second of all virtual disks.
    pub iops: f64,
    /// Mebibytes per second of all virtual disks.
    pub mib_per_s: f64,
    /// The mean time of a command as the guest sees it, in milliseconds.
    pub total_ms: Option<f64>,
    /// The I/Os of applications, where they are other than those commands.
    pub application: Option<Application>,
}

/// What applications see whose guests cut their I/Os into commands, or merge them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Application {
    /// Their I/Os per second.
    pub iops: f64,
    /// The mean time of one in milliseconds; `None` where a guest knows that of its commands alone.
    pub ms: Option<f64>,
}

impl Queue {
    /// Whether hardly a place was ever free.
    #[must_use]
    pub fn is_full(&self) -> bool {
        /// Between the end of one I/O and the next a place may be free for a moment.
        const FULL: f64 = 0.98;
        self.share() >= Some(FULL)
    }

    /// Whether there is plenty of room and nobody waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        /// Below this, a mean number of waiting I/Os is shown as 0.
        const NOBODY: f64 = 0.05;
        let waits = self.waiting.is_some_and(|waiting| waiting >= NOBODY);
        let has_room = self.share().is_none_or(|share| share < 0.5);
        !waits && has_room && self.limit.is_some() == self.in_use.is_some()
    }

    /// The share of the limit in use, from 0 on.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        Some(self.in_use? / self.limit.filter(|limit| *limit > 0.0)?)
    }

    /// I/Os here, waiting or not.
    #[must_use]
    pub fn inside(&self) -> Option<f64> {
        parts([self.waiting, self.in_use])
    }

    /// Several queues as one.
    #[must_use]
    pub fn sum(queues: &[Self], name: String) -> Self {
        let every = |value: fn(&Self) -> Option<f64>| sum(queues.iter().map(value));
        Self {
            name,
            limit: every(|queue| queue.limit),
            in_use: every(|queue| queue.in_use),
            waiting: every(|queue| queue.waiting),
            ms: mean_ms(queues),
            iops: queues.iter().map(|queue| queue.iops).sum(),
        }
    }

    /// Users of one limit as one queue.
    #[must_use]
    pub fn one_limit(users: &[Self]) -> Self {
        let first = users.first().cloned().unwrap_or_default();
        Self { limit: first.limit, ..Self::sum(users, first.name) }
    }
}

/// What the parts that a thing has add up to; `None` where it has none.
fn parts(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().flatten().reduce(|a, b| a + b)
}

/// The mean time over all I/Os that passed.
fn mean_ms(queues: &[Queue]) -> Option<f64> {
    weighted_mean(queues.iter().map(|queue| Some((queue.ms?, queue.iops))))
}

impl Level {
    /// A level of queues, without those that nobody used.
    #[must_use]
    pub fn new(kind: LevelKind, mut queues: Vec<Queue>) -> Self {
        let ms = mean_ms(&queues);
        queues.retain(|queue| queue.iops > 0.0 || queue.inside() > Some(0.0));
        let inside = |queue: &Queue| queue.inside().unwrap_or_default();
        most_first(&mut queues, inside);
        Self { kind, queues, ms }
    }

    /// A level of one queue, be it used or not.
    #[must_use]
    pub fn one(kind: LevelKind, queue: Queue) -> Self {
        Self { kind, ms: queue.ms, queues: vec![queue] }
    }

    /// All its queues as one.
    #[must_use]
    pub fn whole(&self) -> Queue {
        match self.queues.as_slice() {
            [one] => one.clone(),
            queues => Queue::sum(queues, self.kind.title().into()),
        }
    }

    /// Mean I/Os waiting on this level.
    #[must_use]
    pub fn waiting(&self) -> Option<f64> {
        sum(self.queues.iter().map(|queue| queue.waiting))
    }

    /// Mean I/Os that hold a place.
    #[must_use]
    pub fn in_use(&self) -> Option<f64> {
        sum(self.queues.iter().map(|queue| queue.in_use))
    }

    /// The sum of the limits.
    #[must_use]
    pub fn limit(&self) -> Option<f64> {
        sum(self.queues.iter().map(|queue| queue.limit))
    }
}

impl Stack {
    /// A stack of levels, the empty ones left out, and of the virtual disks above them.
    #[must_use]
    pub fn new(mut levels: Vec<Level>, disks: Vec<Queue>, mib_per_s: f64) -> Self {
        levels.retain(|level| !level.queues.is_empty());
        let iops = disks.iter().map(|disk| disk.iops).sum();
        let total_ms = mean_ms(&disks);
        Self { levels, disks, iops, mib_per_s, total_ms, application: None }
    }

    /// I/Os per second of the applications.
    #[must_use]
    pub fn application_iops(&self) -> f64 {
        self.application.map_or(self.iops, |application| application.iops)
    }

    /// The mean time of one of them, or of a command where no more is known.
    #[must_use]
    pub fn application_ms(&self) -> Option<f64> {
        self.application.and_then(|application| application.ms).or(self.total_ms)
    }

    /// A level, when there is something on it.
    #[must_use]
    pub fn level(&self, kind: LevelKind) -> Option<&Level> {
        self.levels.iter().find(|level| level.kind == kind)
    }

    /// The time on some levels together, in milliseconds.
    #[must_use]
    pub fn ms(&self, kinds: &[LevelKind]) -> Option<f64> {
        parts(kinds.iter().map(|kind| self.level(*kind)?.ms))
    }

    /// KAVG: queueing, holding, paths.
    #[must_use]
    pub fn kernel_ms(&self) -> Option<f64> {
        use LevelKind::{Adapter, Device, Held, Path, World};
        self.ms(&[World, Device, Held, Path, Adapter])
    }

    /// DAVG.
    #[must_use]
    pub fn device_ms(&self) -> Option<f64> {
        self.ms(&[LevelKind::Fabric, LevelKind::Array])
    }

    /// GAVG.
    #[must_use]
    pub fn host_ms(&self) -> Option<f64> {
        parts([self.kernel_ms(), self.device_ms()])
    }

    /// The level on which an I/O spends most of its time.
    #[must_use]
    pub fn longest(&self) -> Option<LevelKind> {
        let timed = self.levels.iter().filter_map(|level| Some((level.kind, level.ms?)));
        timed.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(kind, _)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_weigh_times_by_rates() {
        let slow = Queue { iops: 1.0, ms: Some(10.0), ..Queue::default() };
        let fast = Queue { iops: 9.0, ms: Some(0.0), ..Queue::default() };
        assert_eq!(Queue::sum(&[slow, fast], String::new()).ms, Some(1.0));
        assert_eq!(Queue::sum(&[], String::new()).ms, None);
    }

    #[test]
    fn what_was_not_measured_is_neither_summed_nor_zero() {
        let known = Queue { iops: 1.0, ms: Some(2.0), waiting: Some(3.0), ..Queue::default() };
        let unknown = Queue { iops: 1.0, ..Queue::default() };
        let level = Level::new(LevelKind::Device, vec![known, unknown.clone()]);
        assert_eq!((level.ms, level.waiting(), level.in_use()), (Some(2.0), None, None));
        let level = Level::new(LevelKind::Guest, vec![unknown]);
        assert_eq!((level.ms, level.waiting()), (None, None));
        assert_eq!(Stack::new(vec![level], Vec::new(), 0.0).ms(&[LevelKind::Guest]), None);
    }
}
