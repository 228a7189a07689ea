//! The settings of a file are tried on the engine itself, without I/O, so that what a host would
//! refuse in the middle of a run is refused where the file asks for it.

use counters::Time;
use engine::{Engine, Input};
use knobs::Knob;

use crate::{Action, Host};

/// A host without guests' I/O.
pub(crate) struct Rehearsal(Engine);

impl Rehearsal {
    /// A host as it is when the run begins.
    pub(crate) fn new(host: &Host) -> Result<Self, String> {
        let mut rehearsal = Self(Engine::new(&host.config));
        for knob in &host.settings {
            rehearsal.set(Time::ZERO, *knob)?;
        }
        Ok(rehearsal)
    }

    /// A setting, or the host's refusal.
    pub(crate) fn set(&mut self, at: Time, knob: Knob) -> Result<(), String> {
        self.input(at, Input::Set(knob))
    }

    /// What an event does to the host itself.
    pub(crate) fn event(&mut self, at: Time, action: &Action) -> Result<(), String> {
        match *action {
            Action::Set(knob) => self.set(at, knob),
            Action::Reboot => self.input(at, Input::Reboot),
            Action::RebootGuest(vm) => self.input(at, Input::RebootGuest(vm)),
            Action::Path { path, up } => self.input(at, Input::Path { path, up }),
            Action::Face { .. }
            | Action::Power { .. }
            | Action::Migrate { .. }
            | Action::StartWorkload(_)
            | Action::StopWorkload(_) => Ok(()),
        }
    }

    fn input(&mut self, at: Time, input: Input) -> Result<(), String> {
        self.0.handle_input(at, input).map_err(|error| error.to_string())?;
        while self.0.poll_output().is_some() {}
        Ok(())
    }
}
