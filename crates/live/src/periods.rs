//! Storage I/O Control in real time: the record of each datastore, which this host alone writes. What it
//! says goes to the engine each period (`engine/src/sioc.rs`); in a simulation the hosts share it.

use counters::{DeviceId, Time};
use engine::{Engine, Input};
use knobs::CONGESTION_PERIOD_NS;

/// The periods of a component, from when any of its datastores was first set.
pub(crate) struct Periods {
    ends: Time,
    /// What each device had done by the last end: I/Os, and their nanoseconds.
    before: Vec<(u64, u64)>,
}

impl Default for Periods {
    fn default() -> Self {
        Self { ends: Time::NEVER, before: Vec::new() }
    }
}

impl Periods {
    /// They begin, if they have not.
    pub(crate) fn begin(&mut self, now: Time) {
        self.ends = self.ends.min(now + CONGESTION_PERIOD_NS);
    }

    /// When the one that runs ends.
    pub(crate) fn end(&self) -> Option<Time> {
        Some(self.ends).filter(|end| *end < Time::NEVER)
    }

    /// What the engine is told of each of its devices when one has ended.
    pub(crate) fn read(&mut self, engine: &Engine, now: Time) -> Vec<Input> {
        if now < self.ends {
            return Vec::new();
        }
        self.ends = now + CONGESTION_PERIOD_NS;
        let devices = (0..).map(DeviceId).take_while(|id| engine.device_limits(*id).is_some());
        let read = devices.map(|device| {
            let (ios, nanos) = engine.device_io(device);
            if self.before.len() <= device.index() {
                self.before.push((ios, nanos));
            }
            let before = std::mem::replace(&mut self.before[device.index()], (ios, nanos));
            let nanos = nanos.wrapping_sub(before.1);
            let latency_ns = nanos.checked_div(ios.wrapping_sub(before.0)).unwrap_or(0);
            Input::Congestion { device, latency_ns }
        });
        read.collect()
    }
}
