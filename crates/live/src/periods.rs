//! Storage I/O Control in real time: the record of each datastore, which this host alone writes. What it
//! says goes to the engine each period (`engine/src/sioc.rs`); in a simulation the hosts share it.

use counters::{DeviceId, Time};
use engine::{Engine, Input};
use knobs::CONGESTION_PERIOD_NS;

/// The periods of a component, from when any of its datastores was first set.
pub(crate) struct Periods {
    ends: Time,
    /// What each device had done by the last end: I/Os, and their nanoseconds.
    before: Vec<(u64, u64)>,
}

impl Default for Periods {
    fn default() -> Self {
        Self { ends: Time::NEVER, before: Vec::new() }
    }
}

impl Periods {
    /// They begin, if they have not: the first is of what is done from now on.
    pub(crate) fn begin(&mut self, engine: &Engine, now: Time) {
        if self.ends == Time::NEVER {
            self.ends = now + CONGESTION_PERIOD_NS;
            self.before = devices(engine).map(|device| engine.device_io(device)).collect();
        }
    }

    /// When the one that runs ends.
    pub(crate) fn end(&self) -> Option<Time> {
        Some(self.ends).filter(|end| *end < Time::NEVER)
    }

    /// What the engine is told of each of its devices when one has ended.
    pub(crate) fn read(&mut self, engine: &Engine, now: Time) -> Vec<Input> {
        if now < self.ends {
            return Vec::new();
        }
        self.ends = now + CONGESTION_PERIOD_NS;
        let read = devices(engine).map(|device| {
            let (ios, nanos) = engine.device_io(device);
            if self.before.len() <= device.index() {
                // It has come since.
                self.before.push((0, 0));
            }
            let before = std::mem::replace(&mut self.before[device.index()], (ios, nanos));
            let nanos = nanos.wrapping_sub(before.1);
            let latency_ns = nanos.checked_div(ios.wrapping_sub(before.0)).unwrap_or(0);
            Input::Congestion { device, latency_ns }
        });
        read.collect()
    }
}

/// Those that an engine ever had.
fn devices(engine: &Engine) -> impl Iterator<Item = DeviceId> {
    (0..).map(DeviceId).take_while(|id| engine.device_limits(*id).is_some())
}

#[cfg(test)]
mod tests {
    use counters::{MILLISECOND, Op, SECOND, Status, VdiskId};
    use engine::{Output, Request};
    use knobs::{IoControl, Knob};
    use scenario::Scenario;

    use super::*;

    /// A host with a disk on each of two datastores, whose devices have 64 slots; and the time as it is told.
    struct Told {
        engine: Engine,
        periods: Periods,
        now: Time,
    }

    impl Told {
        fn new() -> Self {
            let mut text = "title = \"t\"\n[host.h.nbd]\nsocket = \"s\"\n[host.h.adapter.vmhba1]\n\
                            driver = \"qlnativefc\"\n"
                .to_owned();
            for name in ["a", "b"] {
                text += &format!(
                    "[datastore.{name}]\nbackend = \"null\"\n[vm.{name}.disk.\"scsi0:0\"]\n\
                     datastore = \"{name}\"\nsize = \"1m\"\n"
                );
            }
            let scenario = Scenario::parse_served("h.toml", &text, &mut |_| Err(String::new()));
            let engine = Engine::new(&scenario.expect("a sound file").hosts[0].config);
            Self { engine, periods: Periods::default(), now: Time::ZERO }
        }

        fn take(&mut self, input: Input) {
            self.engine.handle_input(self.now, input).expect("it is sound");
        }

        /// Storage I/O Control of both begins.
        fn switch_on(&mut self) {
            for device in [DeviceId(0), DeviceId(1)] {
                let control = IoControl::On { threshold_us: 20_000 };
                self.take(Input::Set(Knob::StorageIoControl { device, control }));
                self.periods.begin(&self.engine, self.now);
            }
        }

        /// An I/O to one of the disks that takes so long.
        fn io(&mut self, vdisk: u16, takes_ns: u64) {
            let vdisk = VdiskId(vdisk);
            let (op, lba, bytes, waited_ns, tag) = (Op::Read, 0, 512, 0, 0);
            self.take(Input::Submit(Request { vdisk, op, lba, bytes, waited_ns, tag }));
            self.now = self.now + takes_ns;
            while let Some(output) = self.engine.poll_output() {
                if let Output::Dispatch(command) = output {
                    let done = Input::Done { io: command.io, status: Status::Good, array_ns: 0 };
                    self.take(done);
                }
            }
        }

        /// The period that runs ends: DQLEN of both.
        fn end(&mut self) -> [u32; 2] {
            self.now = self.periods.end().expect("they have begun");
            for read in self.periods.read(&self.engine, self.now) {
                self.take(read);
            }
            [0, 1].map(|id| self.engine.device_limits(DeviceId(id)).expect("it is there").dqlen)
        }
    }

    #[test]
    fn nothing_is_read_before_it_is_switched_on_nor_before_four_seconds() {
        let mut told = Told::new();
        assert_eq!(told.periods.end(), None);
        assert_eq!(told.periods.read(&told.engine, Time(1 << 40)), []);
        told.io(0, SECOND);
        told.switch_on();
        assert_eq!(told.periods.end(), Some(Time(5 * SECOND)));
        assert_eq!(told.periods.read(&told.engine, Time(5 * SECOND - 1)), []);
        assert_eq!(told.end(), [64, 64], "what was done before it began is no part of it");
        assert_eq!(told.periods.end(), Some(Time(9 * SECOND)));
    }

    /// The windows are those of the law, by hand: B is next to nothing, as one command is next to no part of 64.
    #[test]
    fn each_device_goes_by_its_own_io_of_the_period() {
        let mut told = Told::new();
        told.switch_on();
        told.io(0, 40 * MILLISECOND);
        told.io(1, 10 * MILLISECOND);
        // 64 / 5 + 64 * 4 / 5 * 20 / 40
        assert_eq!(told.end(), [38, 64]);
        told.io(0, 80 * MILLISECOND);
        told.io(1, 40 * MILLISECOND);
        // 38.4 / 5 + 38.4 * 4 / 5 * 20 / 80
        assert_eq!(told.end(), [15, 38]);
        told.io(0, 20 * MILLISECOND);
        // The same again, and what the windows before left of a slot makes one.
        assert_eq!(told.end(), [16, 64], "who does nothing has all");
        assert_eq!(told.end(), [64, 64]);
    }
}
