//! The time of engines in real time: nanoseconds since the daemon began, which never go back.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use counters::Time;

/// A clock that began at [`Time::ZERO`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    /// The wall-clock time of [`Time::ZERO`], in milliseconds since 1970-01-01 UTC.
    pub(crate) epoch_ms: i64,
}

impl Clock {
    /// It begins now.
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch_ms = i64::try_from(wall.as_millis()).unwrap_or(i64::MAX);
        Self { began: Instant::now(), epoch_ms }
    }

    /// What it is now: 64 bits last for 584 years.
    pub(crate) fn now(&self) -> Time {
        Time(self.began.elapsed().as_nanos() as u64)
    }
}
