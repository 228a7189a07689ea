//! What goes into the engine and what comes out of it.

use counters::{
    AdapterId, Controller, DeviceId, DeviceKind, IoId, Op, PathId, Status, Time, VdiskId, VmId,
    VscsiId,
};

use knobs::{Allocation, Driver, Knob, PathPolicy};

use crate::{PathAccess, SchedPolicy};

/// An I/O as a guest issues it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The virtual disk.
    pub vdisk: VdiskId,
    /// What it does.
    pub op: Op,
    /// Its first sector of 512 bytes on the virtual disk.
    pub lba: u64,
    /// Its size in bytes.
    pub bytes: u32,
    /// Nanoseconds that it had waited in the application before it was submitted.
    pub waited_ns: u64,
    /// What the guest knows it by. The engine hands it back and looks at it only to abort.
    pub tag: u32,
}

/// Everything that can happen to the stack. All decisions are taken here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// A guest issues an I/O.
    Submit(Request),
    /// The array answered a command that was dispatched. Each is answered once; a second answer is
    /// refused, whatever has taken its place meanwhile.
    Done {
        /// The command.
        io: IoId,
        /// Its result.
        status: Status,
        /// What the array reports as its own latency, in nanoseconds; 0 when it does not say.
        array_ns: u64,
    },
    /// The driver let go of a command that it was asked to cancel: it is recalled, or it will
    /// never touch the guest's memory any more, because the driver has put a buffer of its own in
    /// the place of the guest's. The same command may be sent again after that: until a write has landed that could not be
    /// recalled, the driver lets nothing else be written there. [`Input::Done`] answers a [`Output::Cancel`] as well.
    Cancelled {
        /// The command.
        io: IoId,
    },
    /// A guest gives up on the I/Os of that tag.
    Abort {
        /// The virtual disk.
        vdisk: VdiskId,
        /// The tag they were submitted with.
        tag: u32,
    },
    /// A guest resets a virtual disk: everything that is outstanding on it is aborted.
    Reset(VdiskId),
    /// A setting is changed.
    Set(Knob),
    /// A period of Storage I/O Control is over: what the record of a datastore, which all of its
    /// hosts write, says.
    Congestion {
        /// The datastore's device here.
        device: DeviceId,
        /// The mean time of an I/O behind its host in nanoseconds, over all hosts; 0 where there was none.
        latency_ns: u64,
    },
    /// A path goes up or down. The driver still answers what it was sent by it: [`Status::PathLost`] where it knows that
    /// it is lost.
    Path {
        /// The path.
        path: PathId,
        /// Whether it is usable from now on.
        up: bool,
    },
    /// A part of the host is attached while others run.
    Attach(Part),
    /// One is detached.
    Detach {
        /// Which.
        object: Object,
        /// Whether what it has under way goes on to its end; otherwise it is aborted, or of a path asked back and sent
        /// again down another one.
        drain: bool,
    },
    /// A VM is powered on or off. Off aborts what it has outstanding.
    Power {
        /// The virtual machine.
        vm: VmId,
        /// On or off.
        on: bool,
    },
    /// A guest reboots: its outstanding I/Os are aborted, staged settings of its drivers apply.
    RebootGuest(VmId),
    /// The host reboots: every outstanding I/O is aborted, staged settings apply, the VMs that
    /// were on are on again.
    Reboot,
    /// Time passed: what was due by now happens.
    Tick,
}

/// A part of a host as it is attached. Its id is the next of its noun, or that of one in the same
/// place that was detached and has nothing under way. A depth is at least 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the configuration of each")]
pub enum Part {
    /// As [`AdapterConfig`](crate::AdapterConfig).
    Adapter {
        id: AdapterId,
        driver: &'static Driver,
        lun_depth: u32,
        depth: u32,
        timeout_ns: Option<u64>,
    },
    /// As [`DeviceConfig`](crate::DeviceConfig). It has no path until one is attached.
    Device {
        id: DeviceId,
        kind: DeviceKind,
        dsnro: Option<u32>,
        policy: Option<SchedPolicy>,
        path_policy: PathPolicy,
    },
    /// As [`PathConfig`](crate::PathConfig).
    Path { id: PathId, device: DeviceId, adapter: AdapterId, access: PathAccess, up: bool },
    /// As [`VscsiConfig`](crate::VscsiConfig); its VM may be the next one.
    Vscsi { id: VscsiId, vm: VmId, controller: Controller, depth: u32, max_transfer: u32 },
    /// As [`VdiskConfig`](crate::VdiskConfig), with what it takes from the
    /// [`VscsiConfig`](crate::VscsiConfig) and the [`VmConfig`](crate::VmConfig).
    Vdisk {
        id: VdiskId,
        vscsi: VscsiId,
        device: DeviceId,
        depth: u32,
        max_transfer: u32,
        allocation: Allocation,
        powered_on: bool,
        system: bool,
        timeout_ns: Option<u64>,
    },
}

/// What can be detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// An adapter, with its paths.
    Adapter(AdapterId),
    /// A device that no virtual disk is on or drains from, with its paths.
    Device(DeviceId),
    /// A path.
    Path(PathId),
    /// The virtual disks of a virtual machine.
    Vm(VmId),
    /// A virtual disk.
    Vdisk(VdiskId),
}

/// What the driver of the engine has to do. Outputs are a function of the inputs alone, whenever
/// they are drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a command, or a piece of one, down a path.
    Dispatch(Dispatch),
    /// Tell the guest that its I/O ended.
    Complete {
        /// The request, by the id that its submission gave.
        request: IoId,
        /// The virtual disk.
        vdisk: VdiskId,
        /// The tag it was submitted with.
        tag: u32,
        /// How it ended.
        status: Status,
    },
    /// Let go of a command that was dispatched, and say so by [`Input::Cancelled`] or
    /// [`Input::Done`]: its guest hears nothing before that. What has been answered by the time that
    /// this is polled is not answered again.
    Cancel {
        /// The command.
        io: IoId,
        /// The path it was sent down.
        path: PathId,
    },
    /// The device does not answer what it was asked for: reset it, let go of everything that was
    /// asked for there, and say so of each as after [`Output::Cancel`].
    Reset {
        /// The device.
        device: DeviceId,
    },
    /// Something that an administrator would find in vmkernel.log.
    Event(Event),
}

/// A command on its way to the array: all that a driver needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// What it is answered by. A request that was cut is several commands, each with an id of its
    /// own.
    pub io: IoId,
    /// The guest's request that it belongs to, by the id that its submission gave.
    pub request: IoId,
    /// The virtual disk it came from: behind a protocol endpoint it tells the volume.
    pub vdisk: VdiskId,
    /// The tag that the request was submitted with.
    pub tag: u32,
    /// The path it takes.
    pub path: PathId,
    /// What it does.
    pub op: Op,
    /// Where it begins on its virtual disk, in blocks of 4 KiB, the low 32 bits of it.
    pub block: u32,
    /// Where it begins, in bytes from the beginning of the guest's request.
    pub offset: u32,
    /// Its bytes.
    pub bytes: u32,
}

/// A change of state worth a line in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The limit of a device changed.
    DepthChanged {
        /// The device.
        device: DeviceId,
        /// The new limit (DQLEN).
        depth: u32,
    },
    /// A device lost its last path; what is queued waits (all paths down).
    AllPathsDown {
        /// The device.
        device: DeviceId,
    },
    /// It has been without one for `Misc.APDTimeout`: the host's own I/O fails, that of VMs waits.
    ApdTimedOut {
        /// The device.
        device: DeviceId,
    },
    /// The array says on all paths that the device is gone for good: all its I/O fails.
    PermanentLoss {
        /// The device.
        device: DeviceId,
    },
    /// A device without a path has one again, and its I/O goes on.
    PathsBack {
        /// The device.
        device: DeviceId,
    },
    /// Storage I/O Control that only counts: the datastore has become congested, or is so no longer.
    Congestion {
        /// The device.
        device: DeviceId,
        /// The mean latency of the I/Os of all hosts in the period that is over, in nanoseconds; 0 where there
        /// was none.
        latency_ns: u64,
        /// Whether it is above the threshold.
        is_congested: bool,
    },
    /// Storage I/O Control holds back what its hosts have, and latency stays: somebody else uses what is
    /// behind the device (NonVIWorkloadDetectedOnDatastoreEvent [API, LUCD]).
    ExternalWorkload {
        /// The device.
        device: DeviceId,
    },
}

/// When the engine next wants an [`Input::Tick`], and for which level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The instant.
    pub at: Time,
    /// The device whose queue holds something until then.
    pub device: DeviceId,
}
