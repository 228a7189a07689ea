//! Whoever looks on at a run: several at once, or perhaps none; and the journal.

use std::io::Write;

use counters::{HostSnapshot, IoId, Time};
use engine::{Engine, Input, Output, Sink};
use journal::Journal;

/// Whoever looks on: the clock of a run in real time, the journal, a debugger.
pub trait Watch {
    /// Whether anybody looks on at all: where nobody does, an output is done while its input is handled.
    const LOOKS: bool = true;
    /// Called before anything happens at `at`.
    #[inline]
    fn before(&mut self, _at: Time) {}
    /// Called with every input of a host's engine; `host` is its index in the scenario.
    #[inline]
    fn input(&mut self, _host: usize, _at: Time, _input: &Input) {}
    /// Called with every output of it.
    #[inline]
    fn output(&mut self, _host: usize, _at: Time, _output: &Output) {}
    /// Called at the end with what it has counted.
    fn counted(&mut self, _host: usize, _counters: &HostSnapshot) {}
}

/// Nobody looks on.
impl Watch for () {
    const LOOKS: bool = false;
}

/// Hands an input to an engine, and what follows from it to `sink`. Only for nobody's eyes it goes there
/// at once: of those who look on each would need an engine of its own in the program.
#[inline(always)]
pub(crate) fn hand_over<W: Watch>(
    engine: &mut Engine,
    at: Time,
    input: Input,
    sink: &mut impl Sink,
) -> Result<Option<IoId>, engine::Error> {
    if !W::LOOKS {
        return engine.handle(at, input, sink);
    }
    let taken = engine.handle_input(at, input);
    while let Some(output) = engine.poll_output() {
        sink.put(output);
    }
    taken
}

impl<A: Watch, B: Watch> Watch for (A, B) {
    #[inline]
    fn before(&mut self, at: Time) {
        self.0.before(at);
        self.1.before(at);
    }

    #[inline]
    fn input(&mut self, host: usize, at: Time, input: &Input) {
        self.0.input(host, at, input);
        self.1.input(host, at, input);
    }

    #[inline]
    fn output(&mut self, host: usize, at: Time, output: &Output) {
        self.0.output(host, at, output);
        self.1.output(host, at, output);
    }

    fn counted(&mut self, host: usize, counters: &HostSnapshot) {
        self.0.counted(host, counters);
        self.1.counted(host, counters);
    }
}

impl<W: Watch> Watch for Option<W> {
    #[inline]
    fn before(&mut self, at: Time) {
        self.iter_mut().for_each(|watch| watch.before(at));
    }

    #[inline]
    fn input(&mut self, host: usize, at: Time, input: &Input) {
        self.iter_mut().for_each(|watch| watch.input(host, at, input));
    }

    #[inline]
    fn output(&mut self, host: usize, at: Time, output: &Output) {
        self.iter_mut().for_each(|watch| watch.output(host, at, output));
    }

    fn counted(&mut self, host: usize, counters: &HostSnapshot) {
        self.iter_mut().for_each(|watch| watch.counted(host, counters));
    }
}

impl<W: Write + Send + 'static> Watch for Journal<W> {
    #[inline]
    fn input(&mut self, host: usize, at: Time, input: &Input) {
        self.input(host, at, input);
    }

    #[inline]
    fn output(&mut self, host: usize, _at: Time, output: &Output) {
        self.output(host, output);
    }

    fn counted(&mut self, host: usize, counters: &HostSnapshot) {
        self.counted(host, counters);
    }
}
