//! A journal fed back: fresh engines get the recorded inputs at the recorded times, and what comes
//! out is compared with what came out then.

use std::io::Read;

use counters::{HostSnapshot, Time};
use engine::{
    Engine, HostConfig, Input, Part, Request,
    codec::{Bytes, Choice, Damage, Field, Payload, take_code},
};

use crate::{
    Error, Look, MAGIC, VERSION,
    digest::{self, OBJECTS, Outputs},
    frame::{Reader, read_up_to},
    journal::{END, GAP, GOES_ON, Gap, HOST},
    report::{Difference, Differing, Hole, Report},
    segment::{Beginning, Begun},
    topology,
};

/// Two years in nanoseconds: no run lasts longer, and no I/O waits longer.
const TIME_MAX: u64 = 1 << 56;

/// Feeds a journal of one segment to fresh engines and compares what comes out, up to the first
/// difference, or to where the journal is cut.
///
/// # Errors
/// As [`Replay::segment`].
pub fn replay(journal: impl Read) -> Result<Report, Error> {
    let mut replay = Replay::default();
    replay.segment(journal, &mut ())?;
    Ok(replay.report())
}

/// A replay under way, of one segment after the other.
#[derive(Default)]
pub struct Replay {
    report: Report,
    /// The number of the last segment.
    number: u64,
    ended: Ended,
    hosts: Vec<Host>,
    /// Whose records are read now.
    host: usize,
    now: Time,
}

/// How the last segment ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ended {
    /// Another one goes on there.
    ToGoOn,
    /// With what is missing before another one.
    ToldGap,
    /// With the run, or because whoever wrote it was killed.
    #[default]
    Early,
}

/// How a replay goes on after a frame.
enum Step {
    More,
    End,
    GoesOn,
    Gap(Gap),
    Differs(Difference),
}

/// The number of a host, and who hears of its outputs.
type Told<'a> = (usize, &'a mut dyn Look);

/// A host of it.
struct Host {
    config: HostConfig,
    engine: Engine,
    inputs: u64,
    outputs: Outputs,
    /// How many of them were compared.
    compared: u64,
    last: Option<(Time, Input)>,
}

impl Replay {
    /// Feeds the next segment: compared are what comes out, and the engines with those that it begins
    /// with where it goes on where the one before ended. After a difference nothing more is.
    ///
    /// # Errors
    /// When it cannot be read, is no journal or of another version, is no later segment of the same one,
    /// is the first and cut before it says which hosts it is about, or is damaged.
    pub fn segment(&mut self, mut journal: impl Read, look: &mut dyn Look) -> Result<(), Error> {
        if self.report.difference.is_some() {
            return Ok(());
        }
        let mut head = [0; MAGIC.len() + 1];
        let filled = read_up_to(&mut journal, &mut head)?;
        let is_first = self.report.segments == 0;
        if !is_first && filled < head.len() {
            return self.cut_at_its_beginning(filled as u64);
        }
        let [magic @ .., version] = head;
        if filled < head.len() || magic != *MAGIC {
            return Err(Error::NotAJournal);
        }
        if version != VERSION {
            return Err(Error::Version { version, allowed: VERSION });
        }
        let mut frames = Reader::new(journal, head.len() as u64);
        match frames.next()? {
            true => {}
            false if is_first => return Err(Error::Cut { at: frames.end }),
            false => return self.cut_at_its_beginning(frames.end),
        }
        let begun = self.begin(&mut Bytes(&frames.payload), look);
        let begun = begun.map_err(|what| frames.damaged(what))?;
        let mut step = begun.map_or(Step::More, Step::Differs);
        self.report.cut = None;
        while matches!(step, Step::More) {
            if !frames.next()? {
                self.report.cut = Some(frames.end);
                break;
            }
            let fed = self.frame(&mut Bytes(&frames.payload), look);
            step = fed.map_err(|what| frames.damaged(what))?;
        }
        if matches!(step, Step::End | Step::GoesOn | Step::Gap(_)) {
            frames.end()?;
        }
        self.end_of_segment(step);
        Ok(())
    }

    /// What it found.
    pub fn report(mut self) -> Report {
        self.end_hosts();
        Report { end: self.now, ..self.report }
    }

    /// Whoever wrote it was killed before it had begun.
    const fn cut_at_its_beginning(&mut self, at: u64) -> Result<(), Error> {
        self.report.cut = Some(at);
        self.ended = Ended::Early;
        Ok(())
    }

    fn end_of_segment(&mut self, step: Step) {
        self.report.segments += 1;
        self.ended = match step {
            Step::GoesOn => Ended::ToGoOn,
            Step::Gap(_) => Ended::ToldGap,
            _ => Ended::Early,
        };
        match step {
            Step::Gap(gap) => self.report.holes.push(Hole::Gap(gap)),
            Step::Differs(difference) => self.report.difference = Some(difference),
            Step::More | Step::End | Step::GoesOn => {}
        }
    }

    /// Takes the beginning of a segment. Where it goes on with the engines that there are, its own may
    /// differ from them; else it brings them.
    fn begin(
        &mut self,
        from: &mut Bytes<'_>,
        look: &mut dyn Look,
    ) -> Result<Option<Difference>, Damage> {
        let Beginning { name, epoch_ms, number, at, hosts } = Beginning::take(from)?;
        if at.0 > TIME_MAX {
            return Err(TOO_LONG);
        }
        let is_next = number == self.number + 1;
        if self.report.segments == 0 {
            (self.report.name, self.report.epoch_ms, self.report.begin) = (name, epoch_ms, at);
        } else if name != self.report.name
            || epoch_ms != self.report.epoch_ms
            || number <= self.number
            || at < self.now
            || hosts.len() != self.hosts.len()
        {
            return Err(Damage("it is no later segment of the same journal"));
        } else if !is_next || self.ended == Ended::Early {
            self.report.holes.push(Hole::Segments { from: self.now, to: at });
        }
        let goes_on = is_next && self.ended == Ended::ToGoOn;
        (self.number, self.now, self.host) = (number, at, 0);
        if goes_on {
            let mut both = self.hosts.iter().zip(&hosts);
            let difference = both.find_map(|(host, begun)| host.compare_state(begun, number));
            let mut both = self.hosts.iter().zip(&hosts);
            if both.any(|(host, begun)| host.config != begun.config) {
                let configs = hosts.into_iter().map(|begun| begun.config);
                self.hosts.iter_mut().zip(configs).for_each(|(host, config)| host.config = config);
                self.show(at, look);
            }
            return Ok(difference);
        }
        self.end_hosts();
        self.hosts = hosts.into_iter().map(Host::new).collect();
        self.show(at, look);
        Ok(None)
    }

    fn show(&self, at: Time, look: &mut dyn Look) {
        let begun: Vec<_> = self.hosts.iter().map(|host| (&host.config, &host.engine)).collect();
        look.begin(self.report.epoch_ms, at, &begun);
    }

    /// Adds what was fed to the hosts that there are, for which others come.
    fn end_hosts(&mut self) {
        for host in self.hosts.drain(..) {
            self.report.inputs += host.inputs;
            self.report.outputs += host.compared;
        }
    }

    /// Feeds the inputs of a frame.
    fn frame(&mut self, from: &mut Bytes<'_>, look: &mut dyn Look) -> Result<Step, Damage> {
        while !from.is_empty() {
            let (code, above) = take_code(from)?;
            match code {
                HOST => self.host = usize::try_from(above).unwrap_or(usize::MAX),
                END => return Ok(self.finish(from, look)?.map_or(Step::End, Step::Differs)),
                GOES_ON => return Ok(self.go_on(from, look)?.map_or(Step::GoesOn, Step::Differs)),
                GAP => return self.gap(from).map(Step::Gap),
                _ => {
                    let input = Input::take_coded(code, from)?;
                    self.now = self.now + from.number::<u64>()?;
                    check_input(self.now, &input)?;
                    let host = self.hosts.get_mut(self.host);
                    let host = host.ok_or(Damage("a host that the journal does not have"))?;
                    if above > 0
                        && let Some(difference) = host.compare(
                            above,
                            u16::from_le_bytes(from.fixed()?),
                            (self.host, look),
                        )
                    {
                        return Ok(Step::Differs(difference));
                    }
                    look.input(self.host, self.now, &host.engine);
                    if host.feed(self.now, input) {
                        look.taken(self.host, self.now, &input);
                    }
                }
            }
        }
        Ok(Step::More)
    }

    /// What is missing, and that nothing follows.
    fn gap(&self, from: &mut Bytes<'_>) -> Result<Gap, Damage> {
        let [first, last] = [from.number::<u64>()?, from.number::<u64>()?];
        if first > TIME_MAX || last > TIME_MAX {
            return Err(TOO_LONG);
        }
        let begin = self.now + first;
        let gap = Gap { from: begin, to: begin + last, inputs: from.number()? };
        ended(from, gap)
    }

    /// What is left over before another segment.
    fn go_on(
        &mut self,
        from: &mut Bytes<'_>,
        look: &mut dyn Look,
    ) -> Result<Option<Difference>, Damage> {
        for (index, host) in self.hosts.iter_mut().enumerate() {
            if let Some(difference) = host.compare_rest(Outputs::take(from)?, (index, look)) {
                return Ok(Some(difference));
            }
        }
        ended(from, None)
    }

    /// What is left over, and the counters.
    fn finish(
        &mut self,
        from: &mut Bytes<'_>,
        look: &mut dyn Look,
    ) -> Result<Option<Difference>, Damage> {
        for (index, host) in self.hosts.iter_mut().enumerate() {
            if let Some(difference) = host.compare_rest(Outputs::take(from)?, (index, look)) {
                return Ok(Some(difference));
            }
            let mut counters = HostSnapshot::default();
            host.engine.snapshot(Time::ZERO, &mut counters);
            let replayed = digest::of_counters(&counters);
            for (object, replayed) in OBJECTS.into_iter().zip(replayed) {
                if from.number::<usize>()? != replayed.len() {
                    return Err(Damage("objects that the host does not have"));
                }
                for (id, replayed) in replayed.into_iter().enumerate() {
                    if from.fixed()? != replayed.to_le_bytes() {
                        return Ok(Some(host.differs(Differing::Counters { object, id })));
                    }
                }
            }
        }
        ended(from, None)
    }
}

const TOO_LONG: Damage = Damage("a time longer than any");

/// Nothing follows a record that ends a segment.
fn ended<T>(from: &Bytes<'_>, with: T) -> Result<T, Damage> {
    if from.is_empty() { Ok(with) } else { Err(Damage("bytes after the end")) }
}

/// Engines add up the times of I/Os in 64 bits, and cut a request into as many commands as it takes:
/// a journal that somebody made up is neither to wrap them round nor to fill the memory.
fn check_input(now: Time, input: &Input) -> Result<(), Damage> {
    let told_ns = match *input {
        Input::Submit(Request { waited_ns, .. }) => waited_ns,
        Input::Done { array_ns, .. } => array_ns,
        Input::Attach(Part::Vscsi { max_transfer, .. } | Part::Vdisk { max_transfer, .. }) => {
            topology::check_transfer(max_transfer)?;
            0
        }
        _ => 0,
    };
    if now.0.max(told_ns) > TIME_MAX { Err(TOO_LONG) } else { Ok(()) }
}

impl Host {
    fn new(Begun { config, outputs, engine, .. }: Begun) -> Self {
        Self { config, engine, inputs: 0, outputs, compared: 0, last: None }
    }

    /// Whether its engine is the one that a segment begins with.
    fn compare_state(&self, begun: &Begun, segment: u64) -> Option<Difference> {
        let mut state = Payload::with_capacity(begun.state.len());
        self.engine.put(&mut state);
        let is_same = begun.outputs == self.outputs && begun.state == state.bytes();
        (!is_same).then(|| self.differs(Differing::State { segment }))
    }

    /// Whether the engine takes an input. A refusal is no difference: it was refused then, too, or outputs and
    /// counters tell.
    fn feed(&mut self, at: Time, input: Input) -> bool {
        self.inputs += 1;
        self.last = Some((at, input));
        self.engine.handle_input(at, input).is_ok()
    }

    /// Polls as many outputs as were recorded, and whether they are the same.
    fn compare(&mut self, recorded: u64, mark: u16, told: Told<'_>) -> Option<Difference> {
        let count = self.outputs.count.saturating_add(recorded);
        let is_same = |now: Outputs| now.count == count && now.mark() == mark;
        self.poll((recorded, recorded), is_same, told)
    }

    /// Whether nothing comes out after the recorded outputs, and all of them were the same.
    fn compare_rest(&mut self, all: Outputs, told: Told<'_>) -> Option<Difference> {
        let recorded = all.count.saturating_sub(self.outputs.count);
        self.poll((recorded, recorded.saturating_add(1)), |now| now == all, told)
    }

    fn poll(
        &mut self,
        (recorded, most): (u64, u64),
        is_same: impl FnOnce(Outputs) -> bool,
        (index, look): Told<'_>,
    ) -> Option<Difference> {
        let before = self.outputs.count;
        let at = self.last.map_or(Time::ZERO, |(at, _)| at);
        let mut last = None;
        while self.outputs.count.wrapping_sub(before) < most
            && let Some(output) = self.engine.poll_output()
        {
            self.outputs.add(&output);
            self.compared += 1;
            look.output(index, at, &output);
            last = Some(output);
        }
        if is_same(self.outputs) {
            return None;
        }
        let replayed = (self.outputs.count.wrapping_sub(before), last);
        let after = self.last.map(|(at, input)| (self.inputs, at, input));
        Some(self.differs(Differing::Outputs {
            first: before.saturating_add(1),
            recorded,
            replayed,
            after,
        }))
    }

    fn differs(&self, what: Differing) -> Difference {
        Difference { host: self.config.name.clone(), what }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::{LazyLock, mpsc},
    };

    use counters::SECOND;
    use engine::codec::Put;
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;
    use crate::{
        Files, Journal, Limits,
        frame::Writer,
        segment::Journalled,
        short::{self, Memory},
    };

    static SHORT: LazyLock<Vec<u8>> = LazyLock::new(short::journal);
    static SEGMENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| short::segments(7));

    /// The payloads of its frames: what is under the checksums.
    fn payloads(journal: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = Reader::new(&journal[MAGIC.len() + 1..], 0);
        let mut payloads = Vec::new();
        while frames.next().unwrap() {
            payloads.push(frames.payload.clone());
        }
        payloads
    }

    fn replay_payloads(payloads: &[Vec<u8>]) -> Result<Report, Error> {
        let mut frames = Writer::new(Vec::new(), true, |_, _| Ok(())).unwrap();
        for payload in payloads {
            frames.payload().extend(payload);
            frames.write();
        }
        let mut replay = Replay::default();
        replay.segment(&frames.finish().unwrap()[..], &mut short::Rows::default())?;
        Ok(replay.report())
    }

    #[test]
    fn a_run_replays_to_the_same() {
        let report = replay(&SHORT[..]).unwrap();
        assert_eq!((report.cut, &report.difference), (None, &None));
        assert_eq!((report.name.as_str(), report.end), ("short", short::END));
        assert_eq!(replay_payloads(&payloads(&SHORT)).unwrap(), report);
    }

    #[test]
    fn a_cut_journal_is_compared_as_far_as_it_goes_wherever_it_is_cut() {
        let head = MAGIC.len() + 1;
        let first = head + 16 + payloads(&SHORT)[0].len();
        let (mut fed, mut steps) = (0, 0);
        for length in 0..SHORT.len() {
            match replay(&SHORT[..length]) {
                Err(Error::NotAJournal) => assert!(length < head),
                Err(Error::Cut { at }) => assert!(length < first && at == length as u64),
                Ok(report) => {
                    assert!(length >= first && report.inputs >= fed);
                    assert_eq!((report.cut, report.difference), (Some(length as u64), None));
                    steps += usize::from(report.inputs > fed);
                    fed = report.inputs;
                }
                Err(error) => panic!("{length}: {error}"),
            }
        }
        assert!(steps > 3, "{steps}");
    }

    /// A file that takes nothing until the other end is dropped.
    struct Stuck(Memory, mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.1.recv();
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Files for Stuck {
        fn go_on(&mut self, number: u64) -> io::Result<()> {
            self.0.go_on(number)
        }
    }

    const LIMITS: Limits = Limits { epoch_ms: 1_700_000_000_000, segment_bytes: u64::MAX };

    fn replay_all<'a>(segments: impl IntoIterator<Item = &'a Vec<u8>>) -> Result<Report, Error> {
        let mut replay = Replay::default();
        segments.into_iter().try_for_each(|segment| replay.segment(&segment[..], &mut ()))?;
        Ok(replay.report())
    }

    #[test]
    fn a_file_that_does_not_keep_up_leaves_a_gap_holds_up_nobody_and_is_gone_on_with() {
        let (host, second) = (short::host("esx"), |n: u64| Time(n * SECOND));
        let (stuck, end) = mpsc::channel();
        stuck.send(()).unwrap();
        let file = Stuck(Memory(vec![Vec::new()]), end);
        let mut journal = Journal::of_real_time(file, "slow", [&host], LIMITS).unwrap();
        let mut engine = Engine::new(&host);
        let mut fed = 0;
        let mut feed = |journal: &mut Journal<_>| {
            fed += 1;
            journal.go_on([&engine]);
            journal.input(0, second(fed), &Input::Tick);
            engine.handle_input(second(fed), Input::Tick).unwrap();
            fed
        };
        // A frame each, and nobody takes them.
        (1..=1000).for_each(|_| _ = feed(&mut journal));
        let gap = journal.gap().unwrap();
        assert_eq!(gap.to, second(1000));
        drop(stuck);
        let mut last = 1000;
        while journal.gap().is_some() {
            last = feed(&mut journal);
            std::thread::yield_now();
        }
        (0..50).for_each(|_| _ = feed(&mut journal));
        let mut counters = HostSnapshot::default();
        engine.snapshot(Time::ZERO, &mut counters);
        journal.counted(0, &counters);
        let segments = journal.finish().unwrap().0.0;
        assert_eq!(segments.len(), 2);
        let report = replay_all(&segments).unwrap();
        let gap = Gap { to: second(last - 1), inputs: (last - 1) - gap.from.0 / SECOND + 1, ..gap };
        assert_eq!(report.holes, [Hole::Gap(gap)]);
        assert_eq!((report.difference, report.inputs + gap.inputs), (None, last + 50));
        let tail = replay_all(&segments[1..]).unwrap();
        assert_eq!((tail.begin, tail.inputs, tail.end), (gap.to, 51, second(last + 50)));
    }

    #[test]
    fn a_gap_at_the_end_is_told() {
        let host = short::host("esx");
        let (stuck, end) = mpsc::channel();
        stuck.send(()).unwrap();
        let file = Stuck(Memory(vec![Vec::new()]), end);
        let mut journal = Journal::of_real_time(file, "slow", [&host], LIMITS).unwrap();
        (1..=1000).for_each(|n| journal.input(0, Time(n * SECOND), &Input::Tick));
        let gap = journal.gap().unwrap();
        drop(stuck);
        let report = replay_all(&journal.finish().unwrap().0.0).unwrap();
        assert_eq!((report.difference, report.cut), (None, None));
        assert_eq!((report.holes, report.epoch_ms), (vec![Hole::Gap(gap)], Some(LIMITS.epoch_ms)));
        assert_eq!(report.inputs + gap.inputs, 1000);
        assert_eq!(Time((report.inputs + 1) * SECOND), gap.from);
    }

    #[test]
    fn a_journal_of_real_time_that_keeps_up_is_whole() {
        let host = short::host("esx");
        let file = Memory(vec![Vec::new()]);
        let mut journal = Journal::of_real_time(file, "x", [&host], LIMITS).unwrap();
        (1..=50).for_each(|n| journal.input(0, Time(n * SECOND), &Input::Tick));
        let mut counters = HostSnapshot::default();
        Engine::new(&host).snapshot(Time::ZERO, &mut counters);
        journal.counted(0, &counters);
        let report = replay_all(&journal.finish().unwrap().0).unwrap();
        assert_eq!((report.holes, report.inputs, report.difference), (vec![], 50, None));
    }

    #[test]
    fn segments_replay_as_one_and_any_tail_of_them_alone() {
        for seed in 1..=20 {
            let segments = short::segments(seed);
            assert!(segments.len() > 4, "{seed}");
            let whole = replay_all(&segments).unwrap();
            assert_eq!((&whole.holes, &whole.difference, whole.cut), (&vec![], &None, None));
            assert_eq!((whole.segments, whole.end), (segments.len() as u64, short::END), "{seed}");
            let mut parts = 0;
            for at in 0..segments.len() {
                let tail = replay_all(&segments[at..]).unwrap();
                assert_eq!((tail.holes, tail.difference, tail.cut), (vec![], None, None), "{seed}");
                parts += replay(&segments[at][..]).unwrap().inputs;
            }
            assert_eq!(parts, whole.inputs);
            // Without one of them the next brings the engines.
            let without = segments[..2].iter().chain(&segments[3..]);
            let without = replay_all(without).unwrap();
            assert!(matches!(without.holes[..], [Hole::Segments { .. }]), "{:?}", without.holes);
            assert_eq!(without.difference, None);
        }
    }

    #[test]
    fn whoever_is_killed_while_a_segment_begins_leaves_those_before() {
        let mut segments = short::segments(1);
        segments.truncate(3);
        let last = segments.pop().unwrap();
        let before = replay_all(&segments).unwrap();
        let first = MAGIC.len() + 1 + 16 + payloads(&last)[0].len();
        for length in 0..=first {
            segments.push(last[..length].to_vec());
            let report = replay_all(&segments).unwrap();
            assert_eq!((report.cut, report.difference), (Some(length as u64), None));
            assert_eq!((report.inputs, report.end), (before.inputs, before.end), "{length}");
            segments.pop();
        }
    }

    #[test]
    fn a_segment_with_any_other_byte_where_it_begins_is_damaged() {
        let segment = &SEGMENTS[2];
        let first = MAGIC.len() + 1 + 16 + payloads(segment)[0].len();
        for at in 0..first {
            let mut damaged = segment.clone();
            damaged[at] ^= 0x10;
            assert!(replay(&damaged[..]).is_err(), "{at}");
        }
    }

    #[test]
    fn segments_of_others_and_in_another_order_are_refused() {
        let (one, two) = (short::segments(1), short::segments(2));
        assert!(replay_all([&one[1], &one[0]]).is_err());
        assert!(replay_all([&one[1], &one[1]]).is_err());
        // Of another run of the same name: what it begins with is not what the first ended with.
        let report = replay_all([&one[0], &two[1]]).unwrap();
        let difference = report.difference.unwrap().to_string();
        assert_eq!(difference, "a: the engine at the beginning of segment 1 differs");
    }

    #[test]
    fn what_is_no_journal_is_refused_in_one_line() {
        let mut older = SHORT.clone();
        older[8] = 4;
        let longer = [SHORT.as_slice(), &[0]].concat();
        let doubled = [SHORT.as_slice(), &SHORT[9..]].concat();
        let frame = 9 + 16 + payloads(&SHORT)[0].len();
        let left_out = [&SHORT[..9], &SHORT[frame..]].concat();
        let cases: [(&[u8], &str); 6] = [
            (b"", "this is no journal of kavg"),
            (b"[array.fast]\nservers = 4\n", "this is no journal of kavg"),
            (&older, "the journal has version 4 of the format; allowed is "),
            (&longer, "the journal is damaged in the frame at byte "),
            (&doubled, "the journal is damaged in the frame at byte "),
            (
                &left_out,
                "the journal is damaged in the frame at byte 9: the checksum of its length",
            ),
        ];
        for (bytes, expected) in cases {
            let line = replay(bytes).unwrap_err().to_string();
            assert!(line.starts_with(expected) && !line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn a_host_that_cannot_be_built_is_refused() {
        type Spoil = fn(&mut HostConfig);
        let cases: [(Spoil, &str); 6] = [
            (|host| host.vdisks[0].device.0 = 9, "an id that names nothing"),
            (|host| host.paths.clear(), "a device without a path"),
            (|host| host.adapters[0].depth = 0, "a limit that nothing has"),
            (|host| host.vscsi[0].max_transfer = 1, "a limit that nothing has"),
            (|host| host.adapters[0].timeout_ns = Some(0), "a limit that nothing has"),
            (|host| host.vdisks[0].allocation.shares = 0, "a setting out of its range"),
        ];
        for (spoil, expected) in cases {
            let mut host = short::host("esx");
            spoil(&mut host);
            let Err(refused) = Journal::new(Vec::new(), "spoilt", [&host]) else {
                panic!("no journal that is begun can be read: {expected}");
            };
            let refused = refused.to_string();
            let of = Journalled::new("spoilt", None, [&host]);
            let journal = Journal::begin(Vec::new(), of, true, u64::MAX, |_, _| Ok(())).unwrap();
            let line = replay(&journal.finish().unwrap()[..]).unwrap_err().to_string();
            assert!(line.ends_with(expected) && refused.ends_with(expected), "{line} {refused}");
        }
    }

    #[test]
    fn outputs_and_counters_that_differ_are_named() {
        let mut payloads = payloads(&SHORT);
        let last = payloads.last_mut().unwrap();
        *last.last_mut().unwrap() ^= 1;
        let difference = replay_payloads(&payloads).unwrap().difference.unwrap();
        assert_eq!(difference.to_string(), "b: the counters of adapter 0 differ at the end");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..300)) {
            prop_assert!(replay(&bytes[..]).is_err());
            prop_assert!(replay(&[MAGIC.as_slice(), &[VERSION], &bytes].concat()[..]).is_err());
        }

        #[test]
        fn a_changed_byte_is_found(at in any::<Index>(), flip in 1..=255_u8) {
            let mut journal = SHORT.clone();
            *at.get_mut(&mut journal) ^= flip;
            prop_assert!(replay(&journal[..]).is_err());
        }

        /// Whoever writes the checksums anew gets a report or a refusal.
        #[test]
        fn nothing_under_the_checksums_makes_it_panic(
            changes in vec((any::<Index>(), any::<Index>(), any::<u8>()), 1..4),
        ) {
            let mut payloads = payloads(&SHORT);
            for (frame, at, byte) in &changes {
                let payload: &mut Vec<u8> = frame.get_mut(&mut payloads[..]);
                *at.get_mut(payload) = *byte;
            }
            if let Err(error) = replay_payloads(&payloads) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }

        /// The same of the engines with which a segment begins.
        #[test]
        fn nothing_in_the_state_of_engines_makes_it_panic(
            changes in vec((any::<Index>(), any::<u8>()), 1..3),
        ) {
            let mut payloads = payloads(&SEGMENTS[3]);
            for (at, byte) in &changes {
                *at.get_mut(&mut payloads[0][..]) = *byte;
            }
            if let Err(error) = replay_payloads(&payloads) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
