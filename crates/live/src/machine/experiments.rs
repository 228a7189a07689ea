//! The published experiments on a component: the driver of real time, with the time as it is told, beside
//! runs of the driver of virtual time. Guests are clients of NBD that ask for what workloads of the file draw.
//!
//! No machine's speed is in it, so what is held against each other are the two drivers alone. What a machine
//! adds is measured by `kavg bench live --experiments`.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    path::Path,
};

use counters::{Op, Recording, SECTOR, Sampler, VdiskId};
use journal::{Limits, Replay};
use model::{Array, Io, Workload};
use scenario::{Action, Scenario};

use super::{
    bench::{Bench, Client},
    *,
};
use crate::backend::Image;

const EPOCH_MS: u64 = 1_700_000_000_000;
const JOURNAL_BYTES: u64 = 1 << 30;

/// How far figures may be from each other: of their size, and at all.
const OFF_MAX: f64 = 0.05;
const OFF_LEAST: f64 = 0.01;

/// An experiment whose windows, events and workloads come so many times sooner: what an I/O takes stays as it
/// is, and all of it is over long before a window ends.
fn scenario(name: &str, text: &str, sooner: u64) -> Scenario {
    let mut none = |_: &str| Err(String::new());
    let mut scenario = Scenario::parse(name, text, &mut none).expect("a sound file");
    let soon = |at: &mut Time| {
        if *at != Time::NEVER {
            at.0 /= sooner;
        }
    };
    let Scenario { duration_ns, warmup_ns, sample_ns, hosts, workloads, events, windows, .. } =
        &mut scenario;
    for nanos in [duration_ns, warmup_ns, sample_ns, &mut hosts[0].boot_ns] {
        *nanos /= sooner;
    }
    events.iter_mut().for_each(|event| soon(&mut event.at));
    windows.iter_mut().flat_map(|window| [&mut window.from, &mut window.to]).for_each(soon);
    workloads.iter_mut().flat_map(|one| [&mut one.starts, &mut one.stops]).for_each(soon);
    scenario
}

/// An experiment at work.
struct Lab<'a> {
    scenario: Scenario,
    directory: &'a Path,
    /// How often the host has begun.
    begun: u64,
    bench: Bench,
    /// By workload.
    players: Vec<Player>,
}

/// A workload that plays, and who asked for what is under way, by what the client knows it by.
struct Player {
    workload: Workload,
    from: Time,
    to: Time,
    plays: bool,
    asked: BTreeMap<u64, u32>,
}

impl<'a> Lab<'a> {
    fn new(scenario: Scenario, directory: &'a Path) -> Self {
        let bench = begin(&scenario, directory, 0);
        let players = players(&scenario, Time::ZERO);
        Self { scenario, directory, begun: 1, bench, players }
    }

    /// What was seen over each window; not over the first, which is the whole run.
    fn run(mut self) -> Vec<Option<Recording>> {
        let windows = self.scenario.windows.clone();
        let mut seen: Vec<Option<Recording>> = windows.iter().map(|_| None).collect();
        let mut before: Vec<Option<HostSnapshot>> = windows.iter().map(|_| None).collect();
        let mut events: VecDeque<_> = self.scenario.events.clone().into();
        loop {
            let now = self.bench.now;
            self.settle();
            for (place, window) in windows.iter().enumerate().skip(1) {
                if window.from <= now && before[place].is_none() {
                    before[place] = Some(self.bench.machine.counters());
                }
                if window.to <= now && seen[place].is_none() {
                    seen[place] = before[place].as_ref().map(|before| self.row(before));
                }
            }
            if seen[1..].iter().all(Option::is_some) {
                self.bench.machine.finish().expect("it can be written");
                return seen;
            }
            while let Some(event) = events.pop_front_if(|event| event.at <= now) {
                self.happen(event.action);
                self.settle();
            }
            let marks = windows.iter().flat_map(|window| [window.from, window.to]);
            let marks = marks.chain(events.front().map(|event| event.at));
            let next = marks.chain(self.due()).filter(|at| *at > now).min();
            self.bench.now = next.expect("there is a window's end");
        }
    }

    fn due(&self) -> impl Iterator<Item = Time> {
        let of = |player: &Player| [player.from, player.to, player.workload.next_wakeup()];
        self.players.iter().flat_map(of).chain([self.bench.machine.due()])
    }

    /// One sample from a moment until now.
    fn row(&self, before: &HostSnapshot) -> Recording {
        let inventory = self.bench.config.inventory();
        let sampler = Sampler::new(inventory, EPOCH_MS.cast_signed(), Arc::new(before.clone()));
        let mut recording = sampler.recording();
        sampler.add_row(before, &self.bench.machine.counters(), &mut recording);
        recording
    }

    /// Lets everything happen that happens now.
    fn settle(&mut self) {
        let Self { bench, players, .. } = self;
        let now = bench.now;
        for player in &mut *players {
            let plays = (player.from..player.to).contains(&now);
            match (plays, player.plays) {
                (true, false) => player.workload.start(now),
                (false, true) => player.workload.stop(now),
                _ => {}
            }
            player.plays = plays;
        }
        loop {
            let mut any = bench.machine.pass_at(now);
            for (player, client) in players.iter_mut().zip(&mut bench.clients) {
                any |= client.send() | player.turn(now, client);
            }
            if !any {
                return;
            }
        }
    }

    fn happen(&mut self, action: Action) {
        let now = self.bench.now;
        match action {
            Action::Set(knob) => {
                self.bench.machine.mailbox.send(Letter::Input(Input::Set(knob)));
                self.settle();
                self.scenario.hosts[0].apply(knob);
            }
            Action::RebootGuest(_) => {
                self.bench.clients.clear();
                self.players.clear();
                self.settle();
                self.players = players(&self.scenario, now);
                self.bench.clients = clients(&self.bench, &self.scenario);
            }
            Action::Reboot => {
                let after = begin(&self.scenario, self.directory, self.begun);
                std::mem::replace(&mut self.bench, after).machine.finish().expect("it is written");
                self.bench.now = now;
                self.begun += 1;
                self.players = players(&self.scenario, now + self.scenario.hosts[0].boot_ns);
            }
            other => panic!("{other:?} is in none of these"),
        }
    }
}

/// The host's component, with a journal, and a client for each workload.
fn begin(scenario: &Scenario, directory: &Path, number: u64) -> Bench {
    let host = &scenario.hosts[0];
    assert_eq!((scenario.hosts.len(), scenario.arrays.len()), (1, 1));
    let disk = |vdisk: usize| {
        let (array, vm) = (Some((0, host.targets[vdisk].volume)), host.config.vdisks[vdisk].vm);
        (VdiskId::new(vdisk), Disk { image: vdisk, array, vm })
    };
    let disks = host.config.vdisks.len();
    let part = Part {
        disks: (0..disks).map(disk).collect(),
        images: (0..disks).map(|_| Image::Null).collect(),
        arrays: vec![Array::new(&scenario.arrays[0].config, scenario.seed)],
    };
    let mut bench = Bench::of(&host.config, part, Executor::of_threads);
    let epoch_ms = EPOCH_MS + number;
    let record = Record::create(directory, "h-0", epoch_ms, JOURNAL_BYTES, |_| {});
    let limits = Limits { epoch_ms, segment_bytes: JOURNAL_BYTES };
    let journal =
        Journal::of_real_time(record.expect("a directory"), "h-0", [&bench.config], limits);
    bench.machine.journal = Some(journal.expect("it can be written"));
    bench.clients = clients(&bench, scenario);
    bench
}

fn clients(bench: &Bench, scenario: &Scenario) -> Vec<Client> {
    let of = |workload: &scenario::Workload| bench.client(workload.vdisk.index(), 1 << 40, 512);
    scenario.workloads.iter().map(of).collect()
}

/// The workloads, none of which plays before `earliest`.
fn players(scenario: &Scenario, earliest: Time) -> Vec<Player> {
    let player = |(index, of): (u64, &scenario::Workload)| Player {
        workload: Workload::new(&of.config, scenario.seed + index),
        from: of.starts.max(earliest),
        to: of.stops,
        plays: false,
        asked: BTreeMap::new(),
    };
    (0..).zip(&scenario.workloads).map(player).collect()
}

impl Player {
    /// Takes what is answered, and asks for what is due; whether there was anything.
    fn turn(&mut self, now: Time, client: &mut Client) -> bool {
        let mut due = Vec::new();
        while let Some(answer) = client.answer() {
            assert_eq!(answer.error, 0);
            let tag = self.asked.remove(&answer.cookie).expect("it was asked");
            due.push(self.workload.complete(now, tag));
        }
        while let Some(io) = self.workload.wake(now) {
            due.push(Some(io));
        }
        for Io { op, lba, bytes, tag, .. } in due.iter().flatten().copied() {
            let (kind, data) = match op {
                Op::Read => (0, Vec::new()),
                Op::Write => (1, vec![0; bytes as usize]),
                other => panic!("{other:?} is in none of these"),
            };
            let cookie = client.ask((0, kind), lba * SECTOR, bytes, &data);
            self.asked.insert(cookie, tag);
        }
        !due.is_empty()
    }
}

/// What is seen of a component is what a run says, and its journals replay to the same bit for bit.
fn agrees(name: &str, text: &str, sooner: u64) {
    let scenario = scenario(name, text, sooner);
    let outcome = sim::run(&scenario, 1, &());
    let directory = tempfile::tempdir().expect("a directory");
    let seen = Lab::new(scenario.clone(), directory.path()).run();
    let mut off = Vec::new();
    for one in sim::check(&scenario, &outcome) {
        let of = one.expectation;
        let live = sim::figure(&scenario, of, |window, _| seen.get(window)?.as_ref());
        // Not a number is off as well.
        let near = (live - one.figure).abs() <= OFF_MAX * one.figure.abs() + OFF_LEAST;
        let window = &scenario.windows[of.window].name;
        let (whose, counter) = (&of.subject_name, of.counter.info().key);
        if !near {
            off.push(format!("{window} {whose} {counter}: a run {}, live {live}", one.figure));
        }
    }
    assert!(off.is_empty(), "{name}: {off:#?}");
    for entry in directory.path().read_dir().expect("it is there") {
        let file = File::open(entry.expect("it is there").path()).expect("it is there");
        let mut replay = Replay::default();
        replay.segment(file, &mut ()).expect("it is sound");
        let report = replay.report();
        assert!(report.difference.is_none() && report.inputs > 0, "{name}: {report:?}");
    }
}

#[test]
fn two_short_queues_are_as_in_a_run() {
    agrees("s0", include_str!("../../../../scenarios/s0-flasharray.toml"), 80);
}

#[test]
fn competing_worlds_are_as_in_a_run() {
    agrees("s1", include_str!("../../../../scenarios/s1-competing-worlds.toml"), 100);
}

#[test]
fn a_bad_neighbour_is_as_in_a_run() {
    agrees("s4", include_str!("../../../../scenarios/s4-solidfire.toml"), 1);
}
