//! What an array does with the commands of a device of a host, when it does not answer them: it is
//! silent, or says that the device is gone.
//!
//! A silent one answers nothing, not even what it is asked back; the driver lets go of that when the
//! host resets the device. What it was sent meanwhile it does when it speaks again.

use counters::{DeviceId, IoId, PathId, Sense, Status, Time};
use engine::{Dispatch, Input};
use scenario::Face;

use crate::{Watch, machine::Host};

/// How arrays treat the devices of a host.
pub(crate) struct Faults {
    /// By [`DeviceId`].
    faces: Vec<Face>,
    withheld: Vec<(DeviceId, Withheld)>,
    /// What the host asked back of silent devices.
    asked: Vec<(DeviceId, IoId)>,
    /// Paths over which the array said that the device is gone.
    told: Vec<(DeviceId, PathId)>,
}

/// What a silent device keeps to itself.
pub(crate) enum Withheld {
    /// A command that it has not begun.
    Command(Dispatch),
    /// The answer to one that it had.
    Answer(Input),
}

impl Faults {
    /// Every device answers.
    pub(crate) fn new(devices: usize) -> Box<Self> {
        let faces = vec![Face::Up; devices];
        Box::new(Self { faces, withheld: Vec::new(), asked: Vec::new(), told: Vec::new() })
    }

    /// A device is treated so from now on: what it had kept, and the paths that were said to be gone
    /// and are not.
    pub(crate) fn turn(&mut self, device: DeviceId, face: Face) -> (Vec<Withheld>, Vec<PathId>) {
        self.faces[device.index()] = face;
        self.asked.retain(|(of, _)| *of != device || face == Face::Silent);
        let mine = |of: &DeviceId| *of == device && face != Face::Silent;
        let withheld = self.withheld.extract_if(.., |(of, _)| mine(of)).map(|(_, kept)| kept);
        let told = self.told.extract_if(.., |(of, _)| *of == device && face == Face::Up);
        (withheld.collect(), told.map(|(_, path)| path).collect())
    }

    /// Whether a device is silent and keeps what it is asked back.
    pub(crate) fn keeps(&mut self, device: DeviceId, io: IoId) -> bool {
        let is_silent = self.faces[device.index()] == Face::Silent;
        if is_silent {
            self.asked.push((device, io));
        }
        is_silent
    }
}

impl Host {
    /// A command to a device that is silent or gone; `false` when the array takes it.
    pub(crate) fn withhold<W: Watch>(&mut self, at: Time, sent: Dispatch, watch: &mut W) -> bool {
        let device = self.engine.device_of_command(sent.io);
        let Some((faults, device)) = self.faults.as_mut().zip(device) else { return false };
        match faults.faces[device.index()] {
            Face::Up => return false,
            Face::Silent => faults.withheld.push((device, Withheld::Command(sent))),
            Face::Lost => {
                if !faults.told.contains(&(device, sent.path)) {
                    faults.told.push((device, sent.path));
                }
                self.answer(at, gone(sent.io), watch);
            }
        }
        true
    }

    /// An answer of a device that is silent or gone; `false` when it is as good as any.
    pub(crate) fn withhold_answer<W: Watch>(
        &mut self,
        at: Time,
        input: Input,
        watch: &mut W,
    ) -> bool {
        let Input::Done { io, .. } = input else { return false };
        let device = self.engine.device_of_command(io);
        let Some((faults, device)) = self.faults.as_mut().zip(device) else { return false };
        match faults.faces[device.index()] {
            Face::Up => return false,
            Face::Silent => faults.withheld.push((device, Withheld::Answer(input))),
            Face::Lost => {
                self.answer(at, gone(io), watch);
            }
        }
        true
    }

    /// The driver lets go of what it was asked for on a device, or on all.
    pub(crate) fn reset<W: Watch>(&mut self, at: Time, device: Option<DeviceId>, watch: &mut W) {
        let Some(faults) = &mut self.faults else { return };
        let is_meant = |(of, _): &mut (DeviceId, IoId)| device.is_none_or(|device| *of == device);
        let asked: Vec<_> = faults.asked.extract_if(.., is_meant).collect();
        for (_, io) in asked {
            self.answer(at, Input::Cancelled { io }, watch);
        }
    }
}

/// The answer that the device is gone.
const fn gone(io: IoId) -> Input {
    let status = Status::CheckCondition(Sense::PERMANENT_LOSS[0]);
    Input::Done { io, status, array_ns: 0 }
}
