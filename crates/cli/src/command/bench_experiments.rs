//! The published experiments of `kavg bench live`: in real time, beside their runs in virtual time.
//!
//! Each is served as its file says, by a daemon of its own, with the array of the file emulated. One thread
//! is all guests: it plays the workloads that a run plays, and looks for answers all the time. Another reads
//! the counters of each window. What happens in the file happens here: settings go by the control socket,
//! guests that reboot let go of their disks, and for a host the daemon begins anew.

use std::{
    collections::{BTreeMap, VecDeque},
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use control::{Client, What};
use counters::{Op, Recording, Time};
use guest::{Ask, Disk, Shape, Wish};
use model::{Io, Workload};
use scenario::{Action, Scenario};
use serde_json::json;
use sim::figure;

use super::bench_servers::{CLIENT_CPU, Outcome, Servers};
use crate::{Result, expectations, journals, json, shipped, table::Table, text::seconds};

/// The scenarios, whose files have what it takes to serve them.
const EXPERIMENTS: [&str; 3] = ["s0-flasharray", "s1-competing-worlds", "s4-solidfire"];
/// The largest request of a workload that is played.
const BYTES_MAX: u32 = 512 << 10;
const CONTROL: &str = "control";
const JOURNALS: &str = "journals";
/// How long a guest that lets go of a disk waits for what it has under way.
const PATIENCE: Duration = Duration::from_secs(10);

/// A figure of an experiment.
struct Figure {
    window: String,
    whose: String,
    counter: &'static str,
    of_run: f64,
    live: f64,
}

impl Figure {
    /// How far what is live is from the run, as a share of that; nothing where both are next to nothing.
    fn off(&self) -> f64 {
        let difference = self.live - self.of_run;
        if difference.abs() < 0.01 { 0.0 } else { difference / self.of_run }
    }
}

/// Runs each experiment in both times.
pub(super) fn run(as_json: bool, out: &mut dyn Write) -> Result {
    let mut all = Vec::new();
    for name in EXPERIMENTS {
        let site = tempfile::tempdir()?;
        let figures = experiment(name, site.path())?;
        let said = replayed(&site.path().join(JOURNALS))?;
        if as_json {
            let figures = figures.iter().map(|figure| {
                let Figure { window, whose, counter, of_run, live } = figure;
                json!({ "window": window, "whose": whose, "counter": counter, "virtual": of_run, "live": live })
            });
            let figures: Vec<_> = figures.collect();
            all.push(json!({ "experiment": name, "figures": figures, "journal": said }));
        } else {
            write!(out, "{name}\n{}{said}\n\n", table(&figures))?;
            out.flush()?;
        }
    }
    if as_json {
        json::write(&json!({ "experiments": all }), out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(figures: &[Figure]) -> String {
    let head = ["window", "whose", "counter", "virtual", "live", "off by"];
    let mut table = Table::new(&head).left(&[0, 1, 2]);
    for figure in figures {
        table.row(vec![
            figure.window.clone(),
            figure.whose.clone(),
            figure.counter.into(),
            expectations::figure(figure.of_run),
            expectations::figure(figure.live),
            format!("{:+.1} %", 100.0 * figure.off()),
        ]);
    }
    table.render()
}

/// What the journals of a daemon, or of several one after the other, replay to.
fn replayed(directory: &Path) -> Result<String> {
    let replayed = journals::replay(&journals::files(&[directory.to_owned()])?, || ())?;
    for (report, ()) in &replayed {
        if let Some(difference) = &report.difference {
            return Ok(format!("replays to something else: {difference}"));
        }
    }
    let end = replayed.iter().map(|(report, ())| report.end).max().unwrap_or(Time::ZERO);
    Ok(format!("replays bit for bit, {} journals of up to {}", replayed.len(), seconds(end)))
}

/// The figures of an experiment: of each of its expectations.
fn experiment(name: &str, site: &Path) -> Outcome<Vec<Figure>> {
    let text = shipped::find(name)?.replace("export =", "vhost_user =");
    let source = shipped::source(name, &text, &[]);
    let scenario = source.scenario().map_err(|error| error.to_string())?;
    let outcome = sim::run(&scenario, 1, &());
    let windows = live(&scenario, &text, site)?;
    let seen = |window: usize, _: usize| windows.get(window)?.as_ref();
    let checked = sim::check(&scenario, &outcome);
    let figures = checked.iter().map(|one| {
        let expectation = one.expectation;
        let window = |index: usize| scenario.windows[index].name.clone();
        Figure {
            window: match expectation.relative_to {
                Some(other) => format!("{} / {}", window(expectation.window), window(other)),
                None => window(expectation.window),
            },
            whose: expectation.subject_name.clone(),
            counter: expectation.counter.info().key,
            of_run: one.figure,
            live: figure(&scenario, expectation, seen),
        }
    });
    Ok(figures.collect())
}

/// What was seen over each window; not over the first, which is the whole run.
fn live(scenario: &Scenario, text: &str, site: &Path) -> Outcome<Vec<Option<Recording>>> {
    let mut lab = Lab::new(scenario, text, site)?;
    let begun = lab.begun;
    thread::scope(|scope| {
        let seen = scope.spawn(move || record(scenario, &site.join(CONTROL), begun));
        lab.play()?;
        seen.join().map_err(|_| "the counters were not read".to_owned())?
    })
}

fn record(scenario: &Scenario, control: &Path, begun: Instant) -> Outcome<Vec<Option<Recording>>> {
    let wait = |until: Time| {
        let until = begun + Duration::from_nanos(until.0);
        thread::sleep(until.saturating_duration_since(Instant::now()));
    };
    let mut seen = vec![None];
    for window in &scenario.windows[1..] {
        wait(window.from);
        let mut client = Client::connect(control, None)?;
        seen.push(Some(client.record(1, || wait(window.to))?));
    }
    Ok(seen)
}

/// An experiment at work.
struct Lab<'a> {
    scenario: &'a Scenario,
    text: &'a str,
    site: &'a Path,
    servers: Servers,
    begun: Instant,
    /// The lines of the file's events that set something, in their order.
    lines: VecDeque<String>,
    players: Vec<Player>,
    /// By virtual disk.
    disks: Vec<Seat>,
}

/// A workload, and from when to when it plays.
struct Player {
    workload: Workload,
    vdisk: usize,
    from: Time,
    to: Time,
    plays: bool,
}

/// A disk as its guest has it.
struct Seat {
    path: PathBuf,
    disk: Disk,
    /// What there was no room for in the ring.
    waiting: VecDeque<(usize, Io)>,
    /// Who asked for what is under way, by what the ring knows it by.
    asked: BTreeMap<u16, (usize, u32)>,
}

impl<'a> Lab<'a> {
    fn new(scenario: &'a Scenario, text: &'a str, site: &'a Path) -> Outcome<Self> {
        let [host] = &scenario.hosts[..] else { return Err("it has several hosts".into()) };
        let mut servers = none()?;
        serve(&mut servers, text, site, host.images.len())?;
        let paths = host.images.iter().flatten().filter_map(|image| image.vhost_user.as_ref());
        let disks = paths.map(|name| Seat::sit(site.join(name)));
        let disks = disks.collect::<Outcome<Vec<_>>>()?;
        // A seed for each workload: what they draw is not what a run draws, and has the same chances.
        let players = (0..).zip(&scenario.workloads).map(|(index, workload)| {
            let from = workload.starts + workload.from_ns;
            let to = workload.for_ns.map_or(Time::NEVER, |nanos| from + nanos);
            let (seed, vdisk) = (scenario.seed + index, workload.vdisk.index());
            let (workload, to) = (Workload::new(&workload.config, seed), workload.stops.min(to));
            Player { workload, vdisk, from, to, plays: false }
        });
        let (players, lines) = (players.collect(), lines(text)?);
        guest::pin(CLIENT_CPU)?;
        let begun = Instant::now();
        Ok(Self { scenario, text, site, servers, begun, lines, players, disks })
    }

    /// Plays to the end of the run.
    fn play(&mut self) -> Outcome<()> {
        let end = Time(self.scenario.duration_ns);
        let mut events = self.scenario.events.iter().peekable();
        loop {
            let now = Time(self.begun.elapsed().as_nanos() as u64);
            if now >= end {
                return Ok(());
            }
            match events.next_if(|event| event.at <= now) {
                Some(event) => self.happen(now, &event.action)?,
                None => self.turn(now)?,
            }
        }
    }

    fn turn(&mut self, now: Time) -> Outcome<()> {
        for (index, player) in self.players.iter_mut().enumerate() {
            let plays = (player.from..player.to).contains(&now);
            match (plays, player.plays) {
                (true, false) => player.workload.start(now),
                (false, true) => player.workload.stop(now),
                _ => {}
            }
            player.plays = plays;
            while let Some(io) = player.workload.wake(now) {
                self.disks[player.vdisk].waiting.push_back((index, io));
            }
        }
        for seat in &mut self.disks {
            seat.turn(now, &mut self.players)?;
        }
        Ok(())
    }

    fn happen(&mut self, now: Time, action: &Action) -> Outcome<()> {
        match action {
            Action::Set(_) => {
                let line = self.lines.pop_front().ok_or("a setting without a line")?;
                let mut client = Client::connect(&self.site.join(CONTROL), None)?;
                client.order(What::Set(line)).map(drop)
            }
            Action::RebootGuest(_) => {
                self.leave(now)?;
                self.come()
            }
            Action::Reboot => {
                self.leave(now)?;
                // The daemon goes, and what was set is kept in a file by then.
                self.servers = none()?;
                serve(&mut self.servers, self.text, self.site, self.disks.len())?;
                self.come()
            }
            other => Err(format!("{other:?} does not happen in real time")),
        }
    }

    /// All guests let go of their disks.
    fn leave(&mut self, now: Time) -> Outcome<()> {
        for player in &mut self.players {
            player.workload.stop(now);
            player.plays = false;
        }
        let until = Instant::now() + PATIENCE;
        for seat in &mut self.disks {
            seat.waiting.clear();
            while !seat.asked.is_empty() && Instant::now() < until {
                seat.turn(now, &mut self.players)?;
            }
            seat.disk.front = None;
        }
        Ok(())
    }

    fn come(&mut self) -> Outcome<()> {
        for seat in &mut self.disks {
            *seat = Seat::sit(seat.path.clone())?;
        }
        Ok(())
    }
}

fn none() -> Outcome<Servers> {
    Servers::new(None).map_err(|error| error.to_string())
}

/// Begins a daemon of a file.
fn serve(servers: &mut Servers, text: &str, site: &Path, disks: usize) -> Outcome<()> {
    let arguments = ["--control", CONTROL, "--journal", JOURNALS];
    servers.serve(site, text, disks, &arguments).map(drop)
}

/// The lines of a file's events that set something.
fn lines(text: &str) -> Outcome<VecDeque<String>> {
    let file: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let events = file.get("event").and_then(toml::Value::as_array).into_iter().flatten();
    let line = |event: &toml::Value| {
        let of = |key: &str| event.get(key)?.as_str();
        let guest = || Some(format!("{}: {}", of("vm")?, of("guest_driver")?));
        of("esxcli").map(str::to_owned).or_else(guest)
    };
    Ok(events.filter_map(line).collect())
}

impl Seat {
    fn sit(path: PathBuf) -> Outcome<Self> {
        let wish = Wish { inflight: false, ..Wish::all(Shape::one_ring(BYTES_MAX)) };
        let disk = Disk::connect(&path, wish)?;
        Ok(Self { path, disk, waiting: VecDeque::new(), asked: BTreeMap::new() })
    }

    /// Takes answers that have come, and asks for what there is.
    fn turn(&mut self, now: Time, players: &mut [Player]) -> Outcome<()> {
        let ring = &mut self.disk.rings[0];
        while let Some(done) = ring.poll() {
            if done.status != 0 {
                return Err(format!("an I/O has ended with {}", done.status));
            }
            let (player, tag) = self.asked.remove(&done.slot).ok_or("an answer to nothing")?;
            let next = players[player].workload.complete(now, tag);
            self.waiting.extend(next.map(|io| (player, io)));
        }
        let mut any = false;
        while ring.room() > 0
            && let Some((player, io)) = self.waiting.pop_front()
        {
            let ask = match io.op {
                Op::Read => Ask::Read(io.lba, io.bytes),
                Op::Write => Ask::Fill(io.lba, io.bytes),
                other => return Err(format!("{other:?} is not played in real time")),
            };
            self.asked.insert(ring.submit(ask), (player, io.tag));
            any = true;
        }
        if any {
            ring.kick();
        }
        Ok(())
    }
}
