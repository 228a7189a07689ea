//! The engine's surface: inputs in, outputs out, counters to read.
//!
//! Everything is decided in [`Engine::handle`]. So the outputs are a function of the inputs alone,
//! and a recorded run replays exactly.

use alloc::string::String;

use counters::{DeviceId, HostSnapshot, IoId, PathId, Time, VdiskId};
use knobs::Advanced;

use crate::{
    Error, HostConfig, Input, Object, Output, Outputs, Sink, Wakeup,
    path::Path,
    sioc::Sioc,
    slab::{Io, State},
    stack::Stack,
};

/// The queueing stack of one host.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) stack: Stack,
    /// What [`Engine::handle_input`] decided and [`Engine::poll_output`] has not handed over.
    pub(crate) outputs: Outputs,
}

/// The limits of a device, as `esxcli storage core device list` and esxtop show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Device Max Queue Depth.
    pub max_queue_depth: u32,
    /// What the HBA's driver gives it: the most that its Device Max Queue Depth can be set to.
    pub driver_depth: u32,
    /// No of outstanding IOs with competing worlds (DSNRO).
    pub dsnro: u32,
    /// Whether worlds compete now.
    pub is_competing: bool,
    /// The limit in force (DQLEN).
    pub dqlen: u32,
    /// Queue Full Sample Size, the host's where it has none of its own: above 0, adaptive throttling is on.
    pub queue_full_sample_size: u32,
    /// Whether its depth is found by latency.
    pub finds_depth: bool,
    /// The congestion threshold in microseconds, where Storage I/O Control may lower it.
    pub congestion_us: Option<u32>,
}

impl Engine {
    /// The stack of a host as it is after a boot.
    ///
    /// # Panics
    /// When an id in the configuration names nothing: whoever made it has checked that.
    #[must_use]
    pub fn new(config: &HostConfig) -> Self {
        Self { stack: Stack::new(config), outputs: Outputs::default() }
    }

    /// Takes one input at `now`; what follows from it is in [`Engine::poll_output`]. A submission
    /// gives the id under which the request is dispatched and completed.
    ///
    /// # Errors
    /// [`Error`], and nothing but the passing of time took place: an id that the host does not
    /// have, a time before the last one, an I/O of nothing or of a VM that is off, a setting that
    /// is refused.
    // The stack is large: all who take its outputs later share this one.
    #[inline(never)]
    pub fn handle_input(&mut self, now: Time, input: Input) -> Result<Option<IoId>, Error> {
        self.stack.take(now, input, &mut &mut self.outputs)
    }

    /// The same, for whoever wants to have at once what follows: it goes to `sink` instead of
    /// [`Engine::poll_output`], while the input is handled.
    ///
    /// # Errors
    /// As [`Engine::handle_input`].
    // Of each sink the program has the way of an I/O once more; what is rare goes the way of all.
    #[inline(always)]
    pub fn handle(
        &mut self,
        now: Time,
        input: Input,
        sink: &mut impl Sink,
    ) -> Result<Option<IoId>, Error> {
        match input {
            Input::Submit(request) => {
                self.stack.advance(now, sink)?;
                self.stack.submit(request, sink).map(Some)
            }
            Input::Done { io, status, array_ns } => {
                self.stack.advance(now, sink)?;
                self.stack.done(io, status, array_ns, sink).map(|()| None)
            }
            rare => {
                let taken = self.handle_input(now, rare);
                while let Some(output) = self.poll_output() {
                    sink.put(output);
                }
                taken
            }
        }
    }

    /// The next thing to do, in the order in which it was decided.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop()
    }

    /// When the engine wants the next [`Input::Tick`], if at all.
    #[inline]
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Wakeup> {
        let (at, timer) = self.stack.timers.first()?;
        Some(Wakeup { at, device: timer.device() })
    }

    /// The same where it is before a moment.
    #[inline]
    #[must_use]
    pub fn wakeup_before(&self, then: Time) -> Option<Wakeup> {
        if self.stack.timers.is_due_before(then) { self.next_wakeup() } else { None }
    }

    /// Fills in what has been counted since the engine was built, as of `now`. It is put together
    /// here, because each object keeps its own counters beside the state that changes with them.
    /// Nothing is allocated for a snapshot that was filled before, but for rare things of which an object has counted its
    /// first since.
    pub fn snapshot(&self, now: Time, into: &mut HostSnapshot) {
        into.at = now;
        into.fill_vdisks(self.stack.vdisks.iter().map(|vdisk| &vdisk.counters));
        into.fill_devices(self.stack.devices.iter().map(|device| &device.counters));
        for (device, counters) in self.stack.devices.iter().zip(&mut into.devices) {
            counters.units = device.sched.units;
        }
        for (vdisk, counters) in self.stack.vdisks.iter().zip(&mut into.vdisks) {
            let device = &mut into.devices[vdisk.device.index()];
            device.active.add(&counters.slots);
            device.queued.add(&counters.queued);
            vdisk.complete(counters);
        }
        let paths = self.stack.paths.iter().map(|path| &path.counters);
        into.fill_gates(paths, self.stack.adapters.iter().map(|adapter| &adapter.counters));
        self.stack.complete_paths(into);
    }

    /// The value of an advanced option that is in force.
    #[must_use]
    pub const fn option(&self, option: Advanced) -> u32 {
        self.stack.options.get(option)
    }

    /// Whether commands can be sent over a path: it is up, and the array has not said over it that its device is
    /// gone; not where the host does not have it.
    #[must_use]
    pub fn is_usable(&self, path: PathId) -> bool {
        self.stack.paths.get(path.index()).is_some_and(Path::is_usable)
    }

    /// The limits of a device; `None` when the host does not have it.
    #[must_use]
    pub fn device_limits(&self, id: DeviceId) -> Option<DeviceLimits> {
        let device = self.stack.devices.get(id.index())?;
        Some(DeviceLimits {
            max_queue_depth: device.base,
            driver_depth: self.stack.driver_depth(id),
            dsnro: device.dsnro,
            is_competing: device.competition.is_competing,
            dqlen: device.counters.depth,
            queue_full_sample_size: device.throttle.sample_size(),
            finds_depth: device.knee.is_some(),
            congestion_us: device.control().map(Sioc::threshold_us),
        })
    }

    /// Commands that the virtual disks of a device have completed, and the nanoseconds that those took
    /// behind the host, for whoever keeps the record of a datastore; sums go round.
    #[must_use]
    pub fn device_io(&self, id: DeviceId) -> (u64, u64) {
        let disks = self.stack.vdisks.iter().filter(|disk| disk.device == id);
        let io = disks.flat_map(|disk| &disk.counters.io);
        io.fold((0, 0), |(commands, nanos), io| {
            (commands.wrapping_add(io.commands), nanos.wrapping_add(io.device_ns))
        })
    }

    /// The device of a command that the driver has; `None` of any other id.
    #[must_use]
    pub fn device_of_command(&self, id: IoId) -> Option<DeviceId> {
        let is_out = match self.stack.ios.state_of(id)? {
            State::WrittenOff | State::Orphan | State::Piece => true,
            state => state.is_with_driver(),
        };
        let disk = usize::from(self.stack.ios[id.slot()].vdisk);
        is_out.then(|| self.stack.vdisks[disk].device)
    }

    /// The virtual disk of a command that the driver has; `None` of any other id.
    #[must_use]
    pub fn disk_of_command(&self, id: IoId) -> Option<VdiskId> {
        self.device_of_command(id).map(|_| VdiskId(self.stack.ios[id.slot()].vdisk))
    }

    /// The path that a command of the driver's took; `None` of any other id.
    #[must_use]
    pub fn path_of_command(&self, id: IoId) -> Option<PathId> {
        self.whole_of(id).map(|io| PathId(io.path))
    }

    /// A command that the driver has, or what it is a piece of.
    fn whole_of(&self, id: IoId) -> Option<&Io> {
        self.device_of_command(id)?;
        let Stack { ios, extras, .. } = &self.stack;
        let own = &ios[id.slot()];
        Some(if own.state == State::Piece { &ios[extras[own.extra].io] } else { own })
    }

    /// Whether the path of a command that the driver has went down, or was taken away without draining, after the command
    /// was sent: for a model of what is below, where no answer comes back that way. The engine itself takes each answer for
    /// what it says.
    #[must_use]
    pub fn is_lost(&self, id: IoId) -> bool {
        self.whole_of(id).is_some_and(|io| self.stack.paths[usize::from(io.path)].has_lost(io))
    }

    /// How often the host had the device of a path taken over by the other controller of an active/passive array,
    /// for want of a path to the one that has it; `None` where its policy has each command do that, or the host does
    /// not have the path.
    #[must_use]
    pub fn takeovers(&self, path: PathId) -> Option<u32> {
        let device = self.stack.paths.get(path.index())?.device;
        self.stack.devices[device.index()].selector.takeovers()
    }

    /// Whether a part of the host has nothing under way, so that it may be attached again if it was detached. What the
    /// host does not have has nothing.
    #[must_use]
    pub fn is_idle(&self, object: Object) -> bool {
        self.stack.is_idle(object)
    }

    /// The depth of a virtual disk and that of its adapter; `None` when the host does not have it.
    #[must_use]
    pub fn vdisk_depths(&self, id: VdiskId) -> Option<(u32, u32)> {
        let vdisk = self.stack.vdisks.get(id.index())?;
        Some((vdisk.depth, self.stack.vscsi[vdisk.vscsi.index()].depth))
    }

    /// The least of the largest commands that its virtual disks take, in bytes.
    #[must_use]
    pub fn least_transfer(&self) -> Option<u32> {
        self.stack.vdisks.iter().map(|disk| disk.max_transfer).min()
    }

    /// Checks every invariant.
    ///
    /// # Errors
    /// One line that says which invariant does not hold, and where: an error here is a bug of the
    /// engine.
    pub fn check(&self) -> Result<(), String> {
        self.stack.check()
    }
}

impl Stack {
    /// The passing of time, before an input.
    #[inline(always)]
    fn advance(&mut self, now: Time, out: &mut impl Sink) -> Result<(), Error> {
        if now < self.now {
            return Err(Error::TimeWentBack { last: self.now, now });
        }
        self.now = now;
        if self.timers.is_due(now) {
            self.run_timers(&mut out.again());
        }
        Ok(())
    }

    fn take(
        &mut self,
        now: Time,
        input: Input,
        out: &mut &mut Outputs,
    ) -> Result<Option<IoId>, Error> {
        self.advance(now, out)?;
        match input {
            Input::Submit(request) => return self.submit(request, out).map(Some),
            Input::Done { io, status, array_ns } => self.done(io, status, array_ns, out)?,
            Input::Cancelled { io } => self.cancelled(io, out)?,
            Input::Abort { vdisk, tag } => self.abort(vdisk, tag, out)?,
            Input::Reset(vdisk) => self.reset(vdisk, out)?,
            Input::Set(knob) => self.set(knob, out)?,
            Input::Congestion { device, latency_ns } => self.congestion(device, latency_ns, out)?,
            Input::Path { path, up } => self.set_path(path, up, out)?,
            Input::Attach(part) => self.attach(part, out)?,
            Input::Detach { object, drain } => self.detach(object, drain, out)?,
            Input::Power { vm, on } => self.power(vm, on, out)?,
            Input::RebootGuest(vm) => self.reboot_guest(vm, out)?,
            Input::Reboot => self.reboot(out),
            Input::Tick => {}
        }
        Ok(None)
    }
}
