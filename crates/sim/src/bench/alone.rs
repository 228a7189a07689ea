//! The engine alone, warm: what an I/O costs on its way through submit, dispatch, done and complete,
//! with no array, workload or event list around it.

use std::{
    collections::VecDeque,
    fs::File,
    hint::black_box,
    io::{Seek, Write},
    time::Instant,
};

use counters::{GateCounters, IoId, IoTotals, Levels, Op, Status, Time, VdiskCounters, VdiskId};
use engine::{Engine, HostConfig, Input, Output, Request, Sink};
use journal::{Error, Journal};

use super::{MODELS, SERVICE_NS, Timing};
use crate::Watch;

/// I/Os before the clock starts: by then nothing is allocated any more.
const WARM: u64 = 10_000;
/// What passes between two answers.
const STEP_NS: u64 = 5_000;
/// Slots at each level: more than a driver holds, so that nothing waits.
const SLOTS: u32 = 128;
/// Sectors of the virtual disk: 1 TiB.
const SECTORS: u64 = 1 << 31;

/// Times `ios` I/Os with a driver that holds `held` commands, 1 to 128: it answers the oldest, and
/// the guest issues the next. With 1 it answers at once.
#[must_use]
pub fn time_engine(held: u32, ios: u64) -> Timing {
    // As one with a journal in a file, so that the program has the way of an I/O once for both.
    Driver::new(&host(), held, None::<Journal<File>>).time(ios)
}

/// The same while a journal is written to `out`; and the bytes of it that an I/O takes.
///
/// # Errors
/// When `out` cannot be written.
pub fn time_journal<W: Write + Seek + Send + 'static>(
    held: u32,
    ios: u64,
    out: W,
) -> Result<(Timing, f64), Error> {
    let host = host();
    let journal = Journal::new(out, "bench", [&host])?;
    let mut driver = Driver::new(&host, held, Some(journal));
    let timing = driver.time(ios);
    let bytes = match driver.hands.watch.take() {
        Some(journal) => journal.finish()?.stream_position()?,
        None => 0,
    };
    Ok((timing, bytes as f64 / (WARM + ios) as f64))
}

/// Times what is counted of `ios` I/Os, alone: that each is at four levels, its times in totals and in four
/// histograms. An engine does it between other things, whose time the processor may use for it.
#[must_use]
pub fn time_counters(ios: u64) -> Timing {
    let (mut disk, mut levels) = (VdiskCounters::default(), Levels::default());
    let mut gates = [GateCounters::default(), GateCounters::default()];
    let start = Instant::now();
    for io in 0..ios {
        let (from, device_ns) = (Time(io * STEP_NS), SERVICE_NS + (io & 0xffff));
        let to = from + device_ns;
        disk.offered += 1;
        disk.slots.enter(from);
        gates.iter_mut().for_each(|gate| gate.active.enter(from));
        let mut ended = IoTotals { commands: 1, bytes: 4096, device_ns, ..IoTotals::default() };
        ended = black_box(ended);
        disk.slots.leave(to);
        gates.iter_mut().for_each(|gate| gate.active.leave(to));
        disk.count(Op::Read, Status::Good, &ended, false);
        levels.guest.record(ended.guest_ns);
        levels.kernel.record(ended.kernel_ns);
        levels.device.record(ended.device_ns);
    }
    black_box((disk, levels, gates));
    Timing { ios, nanos: start.elapsed().as_nanos() as u64 }
}

/// The host of the first model, with room for all that a driver holds.
fn host() -> HostConfig {
    let mut host = MODELS[0].host(0).config;
    host.adapters[0].lun_depth = SLOTS;
    host.vdisks[0].depth = SLOTS;
    host
}

struct Driver<W> {
    engine: Engine,
    hands: Hands<W>,
    lba: u64,
}

/// What the engine gives to the driver.
struct Hands<W> {
    /// Commands that it holds, the oldest first.
    held: VecDeque<IoId>,
    /// Tags of requests that have completed: the guest issues the next ones.
    completed: Vec<u32>,
    at: Time,
    watch: W,
}

impl<W: Watch> Sink for Hands<W> {
    type Again<'a>
        = &'a mut Self
    where
        Self: 'a;

    fn again(&mut self) -> &mut Self {
        self
    }

    #[inline]
    fn put(&mut self, output: Output) {
        self.watch.output(0, self.at, &output);
        match output {
            Output::Dispatch(dispatch) => self.held.push_back(dispatch.io),
            Output::Complete { tag, .. } => self.completed.push(tag),
            Output::Cancel { .. } | Output::Reset { .. } | Output::Event(_) => {}
        }
    }
}

impl<W: Watch> Driver<W> {
    fn new(host: &HostConfig, held: u32, watch: W) -> Self {
        let hands = Hands { held: VecDeque::new(), completed: Vec::new(), at: Time::ZERO, watch };
        let mut driver = Self { engine: Engine::new(host), hands, lba: 1 };
        (0..held.min(SLOTS)).for_each(|tag| driver.submit(tag));
        driver.answer(WARM);
        driver
    }

    fn time(&mut self, ios: u64) -> Timing {
        let start = Instant::now();
        self.answer(ios);
        Timing { ios, nanos: start.elapsed().as_nanos() as u64 }
    }

    fn answer(&mut self, ios: u64) {
        for _ in 0..ios {
            let Some(io) = self.hands.held.pop_front() else { return };
            self.hands.at = self.hands.at + STEP_NS;
            self.input(Input::Done { io, status: Status::Good, array_ns: SERVICE_NS });
            while let Some(tag) = self.hands.completed.pop() {
                self.submit(tag);
            }
        }
    }

    #[inline]
    fn submit(&mut self, tag: u32) {
        self.lba = self.lba.wrapping_mul(0x5851_f42d_4c95_7f2d) % SECTORS;
        let (vdisk, lba) = (VdiskId(0), self.lba);
        let request = Request { vdisk, op: Op::Read, lba, bytes: 4096, waited_ns: 0, tag };
        self.input(Input::Submit(request));
    }

    #[inline]
    fn input(&mut self, input: Input) {
        let Self { engine, hands, .. } = self;
        hands.watch.input(0, hands.at, &input);
        engine.handle(hands.at, input, hands).expect("the disk is on and the command is out");
    }
}
