//! One event at a time, told in words: how an I/O makes its way can be followed by hand.

use std::{
    fmt,
    io::{self, BufRead, Read, Write},
};

use counters::{DeviceId, MILLISECOND, Op, SECOND, Time, VdiskId, VmId};
use engine::{Event, HostConfig, Input, Output};
use scenario::Scenario;

use crate::Watch;

/// The most bytes of a line, of which nothing is looked at: a device in the place of a person has no end.
const LINE_MAX: u64 = 1 << 16;

/// Lets one event happen for each line read, and writes what goes into the engines and what comes
/// out of them. When the lines end, the rest of the run happens unseen.
pub struct Step<'a, R, W> {
    scenario: &'a Scenario,
    lines: R,
    out: W,
    is_over: bool,
    failed: Option<io::Error>,
}

impl<'a, R: BufRead, W: Write> Step<'a, R, W> {
    /// Steps through a run of `scenario`: a line of `lines` for each event.
    pub fn new(scenario: &'a Scenario, lines: R, out: W) -> Self {
        Self { scenario, lines, out, is_over: false, failed: None }
    }

    /// Hands back what was written to.
    ///
    /// # Errors
    /// The first error in reading or writing; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.failed.map_or(Ok(self.out), Err)
    }

    fn await_line(&mut self) -> io::Result<bool> {
        self.out.flush()?;
        match (&mut self.lines).take(LINE_MAX).skip_until(b'\n')? as u64 {
            LINE_MAX.. => Err(io::Error::other("a line that lets an event happen has no end")),
            read => Ok(read > 0),
        }
    }

    fn tell(&mut self, host: usize, at: Time, arrow: &str, what: impl fmt::Display) {
        if self.is_over {
            return;
        }
        let (seconds, nanos) = (at.0 / SECOND, at.0 % SECOND);
        let name = &self.scenario.hosts[host].config.name;
        let line = writeln!(self.out, "{seconds}.{nanos:09} {name} {arrow} {what}");
        self.keep(line);
    }

    /// Keeps an error and ends the talk.
    fn keep(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.is_over = true;
            self.failed = Some(error);
        }
    }
}

impl<R: BufRead, W: Write> Watch for Step<'_, R, W> {
    fn before(&mut self, _at: Time) {
        if self.is_over {
            return;
        }
        let line = self.await_line().map(|is_there| self.is_over = !is_there);
        self.keep(line);
    }

    fn input(&mut self, host: usize, at: Time, input: &Input) {
        let config = &self.scenario.hosts[host].config;
        self.tell(host, at, "<-", InWords { config, what: *input });
    }

    fn output(&mut self, host: usize, at: Time, output: &Output) {
        let config = &self.scenario.hosts[host].config;
        self.tell(host, at, "->", InWords { config, what: *output });
    }
}

/// An input or an output with names in the place of ids.
struct InWords<'a, T> {
    config: &'a HostConfig,
    what: T,
}

impl<T> InWords<'_, T> {
    fn vm(&self, id: VmId) -> &str {
        &self.config.vms[id.index()].name
    }

    fn vdisk(&self, id: VdiskId) -> String {
        let disk = &self.config.vdisks[id.index()];
        format!("{}:{}", self.vm(disk.vm), disk.name)
    }
}

impl fmt::Display for InWords<'_, Input> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switched = |on| if on { "on" } else { "off" };
        match self.what {
            Input::Submit(io) => {
                let (disk, op) = (self.vdisk(io.vdisk), op_name(io.op));
                write!(
                    f,
                    "submit {disk} tag {}: {op} {} bytes at sector {}",
                    io.tag, io.bytes, io.lba
                )
            }
            Input::Done { io, status, array_ns } => {
                write!(f, "done I/O {io}: {status:?}, {array_ns} ns in the array")
            }
            Input::Cancelled { io } => write!(f, "cancelled I/O {io}"),
            Input::Reset(vdisk) => write!(f, "reset {}", self.vdisk(vdisk)),
            Input::Abort { vdisk, tag } => write!(f, "abort {} tag {tag}", self.vdisk(vdisk)),
            Input::Set(knob) => write!(f, "set {knob:?}"),
            Input::Congestion { device, latency_ns } => {
                let name = &self.config.devices[device.index()].name;
                write!(f, "{latency_ns} ns an I/O to {name}, by all of its hosts")
            }
            Input::Path { path, up } => {
                let name = &self.config.paths[path.index()].name;
                write!(f, "path {name} {}", if up { "up" } else { "down" })
            }
            Input::Attach(part) => write!(f, "attach {part:?}"),
            Input::Detach { object, drain } => {
                write!(f, "detach {object:?}, {}", if drain { "drained" } else { "aborted" })
            }
            Input::Power { vm, on } => write!(f, "power {} {}", self.vm(vm), switched(on)),
            Input::RebootGuest(vm) => write!(f, "reboot guest {}", self.vm(vm)),
            Input::Reboot => f.write_str("reboot"),
            Input::Tick => f.write_str("tick"),
        }
    }
}

impl fmt::Display for InWords<'_, Output> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Output::Dispatch(command) => {
                let path = &self.config.paths[command.path.index()].name;
                let (op, from) = (op_name(command.op), self.vdisk(command.vdisk));
                write!(f, "dispatch I/O {} of {from} down {path}: {op} ", command.io)?;
                write!(f, "{} bytes from byte {}", command.bytes, command.offset)
            }
            Output::Complete { vdisk, tag, status, .. } => {
                write!(f, "complete {} tag {tag}: {status:?}", self.vdisk(vdisk))
            }
            Output::Cancel { io, path } => {
                write!(f, "cancel I/O {io} down {}", self.config.paths[path.index()].name)
            }
            Output::Reset { device } => {
                write!(f, "reset {}", self.config.devices[device.index()].name)
            }
            Output::Event(event) => f.write_str(&in_words(event, self.config)),
        }
    }
}

/// What an event says, with the names of its host.
#[must_use]
pub fn in_words(event: Event, config: &HostConfig) -> String {
    let name = |device: DeviceId| &config.devices[device.index()].name;
    match event {
        Event::DepthChanged { device, depth } => format!("DQLEN of {} is {depth}", name(device)),
        Event::AllPathsDown { device } => format!("all paths of {} are down", name(device)),
        Event::ApdTimedOut { device } => {
            format!("the time of {} without a path is over: the host's own I/O fails", name(device))
        }
        Event::PermanentLoss { device } => {
            format!("{} is permanently lost: all its I/O fails", name(device))
        }
        Event::PathsBack { device } => format!("{} has a path again", name(device)),
        Event::Congestion { device, latency_ns, is_congested } => format!(
            "{} is {}congested: all its hosts together have {:.1} ms",
            name(device),
            if is_congested { "" } else { "no longer " },
            latency_ns as f64 / MILLISECOND as f64
        ),
        Event::ExternalWorkload { device } => format!(
            "an external I/O workload is at {}: its latency stays where hosts hold back",
            name(device)
        ),
    }
}

const fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::WriteFua => "write with FUA",
        Op::Flush => "flush",
        Op::Discard => "discard",
        Op::WriteZeroes => "write zeroes",
        Op::Copy => "copy",
        Op::Ats => "ats",
        Op::Reserve => "reserve",
        Op::Release => "release",
    }
}
