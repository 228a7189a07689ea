//! What an I/O with the driver touches at every level, and what it adds there when it ends: its
//! waits and its service, taken at the transitions.
//!
//! For every single I/O, not only on average: GAVG = DAVG + KAVG and QAVG <= KAVG [CAP-A].

use counters::{DeviceId, HostSnapshot, IoTotals, PathId, Status, Time, VdiskId};

use crate::{
    adapter::Adapter,
    device::Device,
    path::Path,
    slab::{Extra, Extras, Io, NONE, State, Times},
    stack::Stack,
    vscsi::{Next, Vdisk, Vscsi},
};

/// One I/O and the objects that it passes.
pub(crate) struct Lane<'a> {
    now: Time,
    pub(crate) io: &'a Io,
    ios: &'a [Io],
    extras: &'a Extras,
    vdisk: &'a mut Vdisk,
    ring: &'a mut Vscsi,
    pub(crate) device: &'a mut Device,
    pub(crate) path: &'a mut Path,
    pub(crate) adapter: &'a mut Adapter,
}

impl Stack {
    /// An I/O that has a path, and the objects that it passes.
    #[inline(always)]
    pub(crate) fn lane(&mut self, io: u32) -> Lane<'_> {
        let ios: &[Io] = &self.ios;
        let io = &ios[io as usize];
        let vdisk = &mut self.vdisks[usize::from(io.vdisk)];
        let path = &mut self.paths[usize::from(io.path)];
        Lane {
            now: self.now,
            io,
            ios,
            extras: &self.extras,
            ring: &mut self.vscsi[vdisk.vscsi.index()],
            device: &mut self.devices[vdisk.device.index()],
            adapter: &mut self.adapters[path.adapter.index()],
            vdisk,
            path,
        }
    }
}

impl Stack {
    /// Adds to the totals of the first path of each device what the device's virtual disks have
    /// counted, but what other paths have and what none has.
    pub(crate) fn complete_paths(&self, into: &mut HostSnapshot) {
        let HostSnapshot { vdisks, paths, .. } = into;
        let first = |id: DeviceId| self.devices[id.index()].selector.paths().first().copied();
        let no_wait = |io: &IoTotals| IoTotals { queue_ns: 0, ..*io };
        for (disk, counted) in self.vdisks.iter().zip(vdisks) {
            let Some(path) = first(disk.device) else { continue };
            let sums = paths[path.index()].io.get_mut();
            sums.iter_mut().zip(&counted.io).for_each(|(sum, io)| sum.add(&no_wait(io)));
        }
        let others = self.paths.iter().filter(|path| !path.is_first);
        let on_others = others.map(|path| (path.device, path.counters.io.get()));
        let devices = self.devices.iter().enumerate();
        let failed = devices
            .filter_map(|(id, device)| Some((DeviceId::new(id), *device.failed.as_deref()?)));
        for (device, counted) in on_others.chain(failed) {
            let Some(path) = first(device) else { continue };
            let sums = paths[path.index()].io.get_mut();
            sums.iter_mut().zip(&counted).for_each(|(sum, io)| *sum = sum.since(&no_wait(io)));
        }
    }

    /// Where the time of an I/O went up to now, whatever its state.
    pub(crate) fn times_of(&self, io: u32) -> Times {
        let record = &self.ios[io];
        if record.state == State::Guest {
            return Times { guest: self.now - record.submitted, ..Times::default() };
        }
        let none = Extra::new(self.ios.id_of(io));
        let extra = if record.extra == NONE { &none } else { &self.extras[record.extra] };
        let lasting = |is_it: bool| if is_it { self.now - record.since } else { 0 };
        let device = extra.device_ns + lasting(record.is_with_driver());
        let hold = extra.hold_ns + lasting(record.is_held());
        let kernel = (self.now - record.entered) - device;
        let guest = record.entered - record.submitted;
        Times { guest, kernel, queue: kernel - hold, device }
    }
}

impl Lane<'_> {
    /// Which they are.
    #[inline(always)]
    pub(crate) fn ids(&self) -> (VdiskId, DeviceId, PathId) {
        (VdiskId(self.io.vdisk), self.vdisk.device, PathId(self.io.path))
    }

    /// Whether others wait for a slot of its path or of its adapter.
    #[inline(always)]
    pub(crate) const fn gates_are_wanted(&self) -> bool {
        !self.path.queue.is_empty_beside(self.adapter.queue)
    }

    /// Gives up its slot of the device, of the path and of the adapter.
    #[inline(always)]
    pub(crate) fn leave_slot(&mut self) {
        self.vdisk.counters.slots.leave(self.now);
        self.device.active -= 1;
        self.path.counters.active.leave(self.now);
        self.adapter.counters.active.leave(self.now);
        self.path.stays.left += 1;
        let stays = &mut self.path.stays;
        stays.driver_ns = stays.driver_ns.wrapping_add(self.now.after(self.io.since));
    }

    /// Gives up its slot of the virtual disk and of the virtual adapter.
    #[inline(always)]
    pub(crate) fn leave_kernel(&mut self) {
        self.vdisk.leave(self.ring, self.io.seat);
    }

    /// Gives them up to the next one of its virtual disk.
    #[inline(always)]
    pub(crate) fn hand_on(&mut self) -> Next {
        let Self { vdisk, ring, io, ios, now, .. } = self;
        vdisk.hand_on(VdiskId(io.vdisk), ring, io.seat, ios, *now)
    }

    /// Counts what its result says of the device. `true` when the limit is to be worked out anew.
    #[inline(always)]
    pub(crate) fn count_result(&mut self, status: Status) -> bool {
        self.device.count_result(status, self.io.since, self.now)
    }

    /// Counts an I/O that ended in the driver; aborted ones are counted apart.
    #[inline(always)]
    pub(crate) fn account(mut self, status: Status, array_ns: u64) {
        if self.io.extra != NONE {
            // Moved, or each lane would lie in memory for this rare way.
            return Lane { ..self }.account_with_extra(status, array_ns);
        }
        let device = self.now.after(self.io.since);
        let kernel = self.now.after(self.io.entered) - device;
        let guest = self.io.entered.after(self.io.submitted);
        self.add((status, array_ns), Times { guest, kernel, queue: kernel, device }, 0, false);
    }

    #[cold]
    fn account_with_extra(mut self, status: Status, array_ns: u64) {
        let extra = &self.extras[self.io.extra];
        let device = self.now.after(self.io.since) + extra.device_ns;
        let kernel = self.now.after(self.io.entered) - device;
        let guest = self.io.entered.after(self.io.submitted);
        let times = Times { guest, kernel, queue: kernel - extra.hold_ns, device };
        self.add((status, array_ns), times, extra.gate_ns, extra.is_of_part());
    }

    /// Adds where the time of an I/O went, how much of it at paths and adapters, and whether it is a part of a
    /// request.
    #[inline(always)]
    fn add(
        &mut self,
        (status, array_ns): (Status, u64),
        times: Times,
        gate_ns: u64,
        is_part: bool,
    ) {
        let (op, direction) = (self.io.op, self.io.op.direction());
        let total = IoTotals {
            commands: 1,
            bytes: u64::from(self.io.data()),
            guest_ns: times.guest,
            kernel_ns: times.kernel,
            queue_ns: times.queue,
            device_ns: times.device,
            array_ns,
        };
        self.vdisk.counters.count(op, status, &total, is_part);
        // Next to that, which asks for the direction as well.
        if let Some(levels) = self.device.counters.levels.get_mut(direction as usize) {
            levels.guest.record(times.guest);
            levels.kernel.record(times.kernel);
            levels.device.record(times.device);
        }
        if self.device.has_rare || gate_ns > 0 {
            self.path.count(direction, &total, gate_ns);
            self.device.selector.measure(self.path, times.device);
        }
    }
}
