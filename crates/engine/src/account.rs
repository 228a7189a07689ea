//! What a finished I/O adds to the counters: its waits and its service, taken at the transitions.
//!
//! For every single I/O, not only on average: GAVG = DAVG + KAVG and QAVG <= KAVG [CAP-A].

use counters::{Direction, IoTotals, Op, Status};

use crate::{engine::Engine, slab::NONE};

/// Where the time of one I/O went, in nanoseconds.
struct Times {
    guest: u64,
    kernel: u64,
    queue: u64,
    gate: u64,
    device: u64,
}

impl Engine {
    /// Counts an I/O that ended in the driver; aborted ones are counted apart.
    pub(crate) fn account(&mut self, io: u32, status: Status, array_ns: u64) {
        let record = &self.ios[io];
        let times = self.times_of(io);
        let (vdisk, path) = (usize::from(record.vdisk), usize::from(record.path));
        let device = self.vdisks[vdisk].device.index();
        let direction = record.op.direction();
        let bytes = if direction == Direction::Other { 0 } else { u64::from(record.bytes) };
        let total = IoTotals {
            commands: 1,
            bytes,
            guest_ns: times.guest,
            kernel_ns: times.kernel,
            queue_ns: times.queue,
            device_ns: times.device,
            array_ns,
        };
        let disk = &mut self.counters.vdisks[vdisk];
        disk.io[direction as usize].add(&total);
        disk.total.record(times.guest + times.kernel + times.device);
        if status != Status::Good || record.op.direction() == Direction::Other {
            match (status, record.op) {
                (Status::Good, Op::Reserve) => disk.reserves += 1,
                (Status::Good, _) => disk.ats += 1,
                _ => disk.failed[direction as usize] += 1,
            }
        }
        self.counters.paths[path].io[direction as usize]
            .add(&IoTotals { queue_ns: times.gate, ..total });
        if direction != Direction::Other {
            let levels = &mut self.counters.devices[device].levels[direction as usize];
            levels.guest.record(times.guest);
            levels.kernel.record(times.kernel);
            levels.device.record(times.device);
        }
        self.devices[device].selector.measure(&mut self.paths[path], times.device);
    }

    fn times_of(&self, io: u32) -> Times {
        let record = &self.ios[io];
        let mut device = self.now - record.since;
        let (mut hold, mut gate) = (0, 0);
        if record.extra != NONE {
            let extra = &self.extras[record.extra];
            device += extra.device_ns;
            hold = extra.hold_ns;
            gate = extra.gate_ns;
        }
        let kernel = (self.now - record.entered) - device;
        Times {
            guest: record.entered - record.submitted,
            kernel,
            queue: kernel - hold,
            gate,
            device,
        }
    }
}
