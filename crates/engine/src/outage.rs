//! A device without a path: all paths down (APD) and permanent device loss (PDL), as reference
//! `esxi-host-stack.md` section 12 has them [DOC-APD, KB-PDL].
//!
//! ```text
//!   None -- last path down --> Apd -- Misc.APDTimeout --> TimedOut   the host's own I/O fails,
//!    ^ ^                        |                            |       that of VMs waits
//!    | +---- a path is up ------+----------------------------+
//!    +------ a path is up --- Lost <-- every path said so -- any     all I/O fails
//! ```
//!
//! A path over which the array says that the device is gone is used no more until it is said to be up
//! again. What the driver has of a lost device ends as the driver says.

use counters::{DeviceId, IoId, IoTotals, PathId, SECOND, Sense, Status, Time, VdiskId};

use knobs::Advanced;

use crate::{
    Error, Event, Output, Request, Sink, device::Outage, slab::State, stack::Stack, timer::Timer,
};

impl Stack {
    /// Looks again at which paths of a device are usable.
    pub(crate) fn refresh_paths(&mut self, id: DeviceId, out: &mut impl Sink) {
        let device = &mut self.devices[id.index()];
        device.selector.refresh(&self.paths);
        match (device.outage, device.selector.has_path()) {
            (Outage::None, true) => {}
            (_, true) => {
                device.outage = Outage::None;
                out.put(Output::Event(Event::PathsBack { device: id }));
                self.refresh_disks(id, out);
            }
            (Outage::None, false) => {
                device.outage = Outage::Apd { until: Time::NEVER };
                if !device.is_gone {
                    out.put(Output::Event(Event::AllPathsDown { device: id }));
                }
                self.refresh_apd(id, out);
            }
            (_, false) => {}
        }
        self.refresh_base(id, out);
    }

    /// The options as they are now: switched on, the time of an outage begins at once; switched off,
    /// all I/O waits. A time that has begun goes on [DOC-APD].
    pub(crate) fn refresh_apd(&mut self, id: DeviceId, out: &mut impl Sink) {
        let is_handled = self.options.get(Advanced::ApdHandlingEnable) == 1;
        let timeout_s = u64::from(self.options.get(Advanced::ApdTimeout));
        let outage = &mut self.devices[id.index()].outage;
        match *outage {
            Outage::Apd { until: Time::NEVER } if is_handled => {
                let until = self.now + timeout_s * SECOND;
                *outage = Outage::Apd { until };
                self.timers.set(until, Timer::Apd(id));
            }
            Outage::Apd { .. } | Outage::TimedOut if !is_handled => {
                *outage = Outage::Apd { until: Time::NEVER };
                self.refresh_disks(id, out);
            }
            _ => {}
        }
    }

    /// A timer of an outage that has ended means nothing.
    pub(crate) fn apd_due(&mut self, id: DeviceId, at: Time, out: &mut impl Sink) {
        let device = &mut self.devices[id.index()];
        if device.outage == (Outage::Apd { until: at }) {
            device.outage = Outage::TimedOut;
            if !device.is_gone {
                out.put(Output::Event(Event::ApdTimedOut { device: id }));
            }
            self.refresh_disks(id, out);
        }
    }

    /// What sense data say of the path that they came over: where the device is gone for good another
    /// path is tried, and the guest hears of it when there is none.
    #[cold]
    pub(crate) fn sensed(&mut self, id: IoId, sense: Sense, out: &mut impl Sink) -> Status {
        let told = Status::CheckCondition(sense);
        let io = match self.ios.state_of(id) {
            Some(State::Piece) => self.extras[self.ios[id.slot()].extra].io,
            Some(state) if state.is_with_driver() => id.slot(),
            _ => return told,
        };
        if sense == Sense::STANDBY {
            return self.follow(PathId(self.ios[io].path));
        }
        if !sense.is_permanent_loss() {
            return told;
        }
        let record = &self.ios[io];
        let path = &mut self.paths[usize::from(record.path)];
        path.is_lost = true;
        let (lost, device) = (PathId(record.path), path.device);
        self.lose_path(lost, device, sense, out);
        match self.devices[device.index()].outage {
            Outage::Lost(_) => told,
            _ => Status::PathLost,
        }
    }

    /// The other controller of the array has the device: the command is sent again by the path that is in use then.
    fn follow(&mut self, path: PathId) -> Status {
        let device = self.paths[path.index()].device;
        self.devices[device.index()].selector.follow(path, &self.paths);
        Status::PathLost
    }

    fn lose_path(&mut self, path: PathId, id: DeviceId, sense: Sense, out: &mut impl Sink) {
        let device = &mut self.devices[id.index()];
        let mut paths = device.selector.paths().iter().map(|path| &self.paths[path.index()]);
        if paths.all(|path| path.is_lost || path.is_gone)
            && !matches!(device.outage, Outage::Lost(_))
        {
            device.outage = Outage::Lost(sense);
            out.put(Output::Event(Event::PermanentLoss { device: id }));
        }
        self.refresh_paths(id, out);
        self.leave_path(path);
        self.refresh_disks(id, out);
        self.pump(id, out);
    }

    /// How I/O of a virtual disk ends at once, if its device refuses it.
    pub(crate) fn refusal_of(&self, id: VdiskId) -> Option<Status> {
        let disk = &self.vdisks[id.index()];
        match self.devices[disk.device.index()].outage {
            Outage::Lost(sense) => Some(Status::CheckCondition(sense)),
            Outage::TimedOut if disk.is_system => Some(Status::NoConnect),
            _ => None,
        }
    }

    /// Which virtual disks of a device take I/O, and the end of what is inside the others.
    fn refresh_disks(&mut self, device: DeviceId, out: &mut impl Sink) {
        for id in (0..self.vdisks.len()).map(VdiskId::new) {
            if self.vdisks[id.index()].device == device {
                self.refresh_disk(id, out);
            }
        }
    }

    pub(crate) fn refresh_disk(&mut self, id: VdiskId, out: &mut impl Sink) {
        let refusal = self.refusal_of(id);
        let disk = &mut self.vdisks[id.index()];
        disk.takes_io = disk.is_on && refusal.is_none();
        if let Some(status) = refusal {
            self.fail_disk(id, status, out);
        }
    }

    /// An I/O of a VM that is off, or to a device that is gone.
    #[cold]
    pub(crate) fn submit_in_vain(
        &mut self,
        request: Request,
        out: &mut impl Sink,
    ) -> Result<IoId, Error> {
        let id = request.vdisk;
        self.known_vdisk(id)?;
        let Some(status) = self.refusal_of(id).filter(|_| self.vdisks[id.index()].is_on) else {
            return Err(Error::PoweredOff);
        };
        if request.bytes == 0 && request.op.needs_bytes() {
            return Err(Error::Empty);
        }
        let request = self.take_in(request, out);
        self.fail_disk(id, status, out);
        Ok(request)
    }

    /// Ends what waits of a virtual disk; what the driver has ends with its answer.
    fn fail_disk(&mut self, id: VdiskId, status: Status, out: &mut impl Sink) {
        for io in self.ios_of(id) {
            if matches!(self.ios[io].state, State::Guest | State::Queued | State::Held) {
                let (op, times) = (self.ios[io].op, self.take_out(io, id));
                let total = IoTotals {
                    commands: 1,
                    guest_ns: times.guest,
                    kernel_ns: times.kernel,
                    queue_ns: times.queue,
                    device_ns: times.device,
                    ..IoTotals::default()
                };
                let is_part = self.is_part(io);
                let disk = &mut self.vdisks[id.index()];
                disk.counters.count(op, status, &total, is_part);
                let failed = &mut self.devices[disk.device.index()].failed;
                failed.get_or_insert_default()[op.direction() as usize].add(&total);
                self.end(io, status, out);
            }
        }
        self.restart(id, out);
    }
}
