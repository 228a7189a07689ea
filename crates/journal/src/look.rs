//! Who looks on while a journal is replayed: what is made of a journal beside the comparison.

use counters::Time;
use engine::{Engine, HostConfig, Input, Output};

/// Looks on while a journal is fed.
pub trait Look {
    /// Called where the engines begin, where they begin anew behind what is missing, and where they have
    /// more parts: each host as it was built, with the parts that came since, and its engine as it is at
    /// `at`.
    fn begin(&mut self, epoch_ms: Option<u64>, at: Time, hosts: &[(&HostConfig, &Engine)]);

    /// Called before an input of a host, with its engine as it is until then.
    fn input(&mut self, host: usize, at: Time, engine: &Engine);

    /// Called after an input that the engine of a host has taken.
    fn taken(&mut self, _host: usize, _at: Time, _input: &Input) {}

    /// Called with what came out of it, before the next input of that host.
    fn output(&mut self, _host: usize, _at: Time, _output: &Output) {}
}

/// Nobody looks on.
impl Look for () {
    fn begin(&mut self, _: Option<u64>, _: Time, _: &[(&HostConfig, &Engine)]) {}

    fn input(&mut self, _: usize, _: Time, _: &Engine) {}
}
