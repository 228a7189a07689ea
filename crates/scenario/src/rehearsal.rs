//! The settings of a file are tried on the engine itself, without I/O, so that what a host would
//! refuse in the middle of a run is refused where the file asks for it.

use counters::{DeviceId, Time, VdiskId};
use engine::{Engine, Error, Input, Object};
use knobs::Knob;

use crate::{Action, DownBy, Host};

impl Host {
    /// What the engine says no to, with the names of the host.
    #[must_use]
    pub fn refusal(&self, error: &Error) -> String {
        let config = &self.config;
        let name = |noun, id: usize| match noun {
            "adapter" => config.adapters[id].name.clone(),
            "device" => config.devices[id].name.clone(),
            "path" => config.paths[id].name.clone(),
            "virtual machine" => config.vms[id].name.clone(),
            "virtual disk" => config.disk_name(VdiskId::new(id)),
            _ => id.to_string(),
        };
        match error {
            Error::InUse(noun, id) => format!("{noun} `{}` is in use", name(noun, *id)),
            Error::Unknown(noun, id) => format!("{noun} `{}` is not there", name(noun, *id)),
            other => other.to_string(),
        }
    }
}

/// A host without guests' I/O.
pub(crate) struct Rehearsal(Engine);

impl Rehearsal {
    /// A host with all that it ever has.
    pub(crate) fn whole(host: &Host) -> Result<Self, String> {
        let mut rehearsal = Self(Engine::new(&host.config));
        for knob in &host.settings {
            rehearsal.set(Time::ZERO, *knob)?;
        }
        Ok(rehearsal)
    }

    /// A host as it is when the run begins.
    pub(crate) fn new(host: &Host) -> Result<Self, String> {
        let mut rehearsal = Self::whole(host)?;
        for &object in &host.absent {
            rehearsal.input(Time::ZERO, Input::Detach { object, drain: false })?;
        }
        Ok(rehearsal)
    }

    /// Device Max Queue Depth by now.
    pub(crate) fn depth(&self, device: DeviceId) -> Option<u32> {
        Some(self.0.device_limits(device)?.max_queue_depth)
    }

    /// A setting, or the host's refusal.
    pub(crate) fn set(&mut self, at: Time, knob: Knob) -> Result<(), String> {
        self.input(at, Input::Set(knob))
    }

    /// What an event does to the host itself.
    pub(crate) fn event(&mut self, host: &Host, at: Time, action: &Action) -> Result<(), String> {
        match *action {
            Action::Attach(object) => {
                let mut parts = host.config.parts(object).into_iter();
                parts.try_for_each(|part| self.part(host, at, Input::Attach(part)))
            }
            Action::Detach { object, drain } => {
                self.part(host, at, Input::Detach { object, drain })
            }
            Action::Relocate { from, to } | Action::Copy { from, to, .. } => {
                self.event(host, at, &Action::Attach(Object::Vdisk(to)))?;
                let object = Object::Vdisk(from);
                self.part(host, at, Input::Detach { object, drain: true })
            }
            Action::Set(knob) => self.part(host, at, Input::Set(knob)),
            Action::Reboot => self.input(at, Input::Reboot),
            Action::RebootGuest(vm) => self.input(at, Input::RebootGuest(vm)),
            Action::Path { path, up, by: DownBy::Event } => {
                self.input(at, Input::Path { path, up })
            }
            Action::Path { .. }
            | Action::Face { .. }
            | Action::Cut { .. }
            | Action::Power { .. }
            | Action::Migrate { .. }
            | Action::StartWorkload(_)
            | Action::StopWorkload(_) => Ok(()),
        }
    }

    /// A refusal names what the engine knows by its number.
    fn part(&mut self, host: &Host, at: Time, input: Input) -> Result<(), String> {
        self.0.handle_input(at, input).map_err(|error| host.refusal(&error))?;
        while self.0.poll_output().is_some() {}
        Ok(())
    }

    fn input(&mut self, at: Time, input: Input) -> Result<(), String> {
        self.0.handle_input(at, input).map_err(|error| error.to_string())?;
        while self.0.poll_output().is_some() {}
        Ok(())
    }
}
