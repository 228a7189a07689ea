//! What an array does with the commands of a device of a host, when it does not answer them: it is
//! silent, or says that the device is gone.
//!
//! A silent one answers nothing, not even what it is asked back; the driver lets go of that when the
//! host resets the device. What it was sent meanwhile it does when it speaks again.
//!
//! A path that was cut takes commands and answers none, until its driver finds it dead: then they are lost with it. What
//! the array had taken before is answered (ruling, as of a controller that fails).

use std::collections::VecDeque;

use counters::{DeviceId, IoId, PathId, Sense, Status};
use engine::{Dispatch, Input};
use scenario::{DownBy, Face};

/// How arrays treat the devices of a host.
pub(crate) struct Faults {
    /// By [`DeviceId`].
    pub(crate) faces: Vec<Face>,
    /// Commands to silent devices, and answers that they owe.
    pub(crate) commands: Vec<(DeviceId, Dispatch)>,
    pub(crate) answers: Vec<(DeviceId, Input)>,
    /// Commands to devices that are silent no more.
    pub(crate) resumed: VecDeque<Dispatch>,
    /// What the host asked back of silent devices.
    pub(crate) asked: Vec<(DeviceId, IoId)>,
    /// Paths that are dead, which the host does not know, and why; and what it sent by them.
    pub(crate) cut: Vec<(PathId, DownBy)>,
    pub(crate) unsent: Vec<Dispatch>,
    /// Paths over which the array said that the device is gone.
    pub(crate) told: Vec<(DeviceId, PathId)>,
}

impl Faults {
    /// Every device answers.
    pub(crate) fn new(devices: usize) -> Box<Self> {
        let faces = vec![Face::Up; devices];
        Box::new(Self {
            faces,
            commands: Vec::new(),
            answers: Vec::new(),
            resumed: VecDeque::new(),
            asked: Vec::new(),
            cut: Vec::new(),
            unsent: Vec::new(),
            told: Vec::new(),
        })
    }

    /// A device is treated so from now on: the answers that it owed, and the paths that were said to
    /// be gone and are not.
    pub(crate) fn turn(&mut self, device: DeviceId, face: Face) -> (Vec<Input>, Vec<PathId>) {
        self.faces[device.index()] = face;
        self.asked.retain(|(of, _)| *of != device || face == Face::Silent);
        let mine = |of: &DeviceId| *of == device && face != Face::Silent;
        let commands = self.commands.extract_if(.., |(of, _)| mine(of));
        self.resumed.extend(commands.map(|(_, command)| command));
        let answers = self.answers.extract_if(.., |(of, _)| mine(of)).map(|(_, answer)| answer);
        let told = self.told.extract_if(.., |(of, _)| *of == device && face == Face::Up);
        (answers.collect(), told.map(|(_, path)| path).collect())
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

/// The answer that the device is gone.
pub(crate) const fn gone(io: IoId) -> Input {
    let status = Status::CheckCondition(Sense::PERMANENT_LOSS[0]);
    Input::Done { io, status, array_ns: 0 }
}
