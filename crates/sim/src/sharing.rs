//! Storage I/O Control above the hosts: the record of each datastore, which all of its hosts write and
//! read. What a host makes of it is its engine's (`engine/src/sioc.rs`).
//!
//! Each period the latency of all hosts since the one before goes into one mean, weighted by their I/Os,
//! and every host hears of it [PARDA, section 3; section 3 of `array-and-control.md`].

use counters::{DeviceId, Time};
use engine::Input;
use knobs::CONGESTION_PERIOD_NS;
use scenario::{Host, Scenario};

use crate::{Watch, component::Component};

/// The records of a component's datastores.
pub(crate) struct Sharing(Vec<Record>);

/// That of one datastore.
struct Record {
    /// The device's name, by which hosts know that they share it.
    device: String,
    writers: Vec<Writer>,
}

/// A host that writes it.
struct Writer {
    machine: usize,
    host: usize,
    device: DeviceId,
    /// What it had written: I/Os and their nanoseconds.
    before: (u64, u64),
}

/// Every moment at which records are read.
pub(crate) fn moments(scenario: &Scenario) -> impl Iterator<Item = Time> {
    let periods =
        if scenario.has_io_control() { scenario.duration_ns / CONGESTION_PERIOD_NS } else { 0 };
    (1..=periods).map(|period| Time(period * CONGESTION_PERIOD_NS))
}

impl Sharing {
    pub(crate) fn new<W: Watch>(component: &Component<'_, W>) -> Self {
        let mut all = Self(Vec::new());
        if component.scenario.has_io_control() {
            for (machine, of) in component.machines.iter().enumerate() {
                for (host, of) in of.hosts.iter().enumerate() {
                    all.add(machine, host, &component.scenario.hosts[of.index]);
                }
            }
        }
        all
    }

    fn add(&mut self, machine: usize, host: usize, of: &Host) {
        for (id, device) in of.config.devices.iter().enumerate() {
            let writer = Writer { machine, host, device: DeviceId::new(id), before: (0, 0) };
            match self.0.iter_mut().find(|record| record.device == device.name) {
                Some(record) => record.writers.push(writer),
                None => self.0.push(Record { device: device.name.clone(), writers: vec![writer] }),
            }
        }
    }

    /// A period is over: every host writes, and reads what all have written.
    pub(crate) fn share<W: Watch>(&mut self, component: &mut Component<'_, W>, at: Time) {
        for record in &mut self.0 {
            let (mut ios, mut nanos) = (0, 0_u64);
            for writer in &mut record.writers {
                let engine = &component.machines[writer.machine].hosts[writer.host].engine;
                let now = engine.device_io(writer.device);
                ios += now.0.wrapping_sub(writer.before.0);
                nanos = nanos.saturating_add(now.1.wrapping_sub(writer.before.1));
                writer.before = now;
            }
            let latency_ns = nanos.checked_div(ios).unwrap_or(0);
            for writer in &record.writers {
                let input = Input::Congestion { device: writer.device, latency_ns };
                component.input(writer.machine, writer.host, at, input);
            }
        }
    }
}
