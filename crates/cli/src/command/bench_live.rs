//! `kavg bench live`: real I/O through `kavg serve`, and beside it the same through others' daemons.
//!
//! A client and a server have a CPU each. The client is the same for all: it fills rings, or a socket, of its
//! own, and sleeps until it is called, as a guest does. Servers are measured in turns, so that what else the
//! machine does is shared out among them.

use std::{
    fs,
    io::Write,
    num::{NonZeroU32, NonZeroUsize},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    thread::sleep,
    time::{Duration, Instant},
};

use clap::Args;
use guest::{Ask, Disk, NbdClient, Shape, Wish};
use serde_json::json;
use tempfile::TempDir;

use super::{
    bench_experiments,
    bench_guest::Guest,
    bench_neighbour, bench_parts,
    bench_servers::{CLIENT_CPU, DISK, FILE, Outcome, Places, Servers, Work, on_cpu},
};
use crate::{Result, json, table::Table, talk::say, text::whole};

/// What is asked for at once.
const DEPTHS: [u16; 3] = [1, 32, 96];
/// From so many rounds on the fastest and the slowest are no part of an interval: with ten it holds the
/// median 98 times in a hundred.
const TRIMMED_FROM: usize = 8;
/// How long a server may take to begin, and an answer to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// The disks that ours serves: one of each kind.
const HOST: &str = include_str!("bench_live.toml");

/// Measure I/Os through `kavg serve`, beside other servers where they are installed
///
/// 4 KiB random reads and writes and 64 KiB sequential reads at depths of 1, 32 and 96, from nothing, from
/// memory and from a file by O_DIRECT: by vhost-user beside qemu-storage-daemon, and by NBD beside nbdkit and
/// qemu-nbd. It wants two idle CPUs.
#[derive(Args)]
pub(crate) struct BenchLive {
    /// Times that everything is measured, in turns; medians are shown
    #[arg(long, value_name = "N", default_value = "5")]
    rounds: NonZeroUsize,
    /// Milliseconds of each measurement
    #[arg(long, value_name = "MS", default_value = "1000")]
    millis: NonZeroU32,
    /// Microseconds that the guest of vhost-user looks for an answer before it sleeps, as one that polls
    #[arg(long, value_name = "US", default_value = "0")]
    poll: u32,
    /// One back end only: null, memory or file
    #[arg(long, value_name = "NAME", value_parser = BACK_ENDS)]
    back_end: Option<String>,
    /// Where the files are that are read and written
    #[arg(long = "in", value_name = "DIR")]
    directory: Option<PathBuf>,
    /// A guest of User-Mode Linux alone: fio in it reads 4 KiB at depths of 32 and 96, a batch at a time, from
    /// nothing if nothing else is said; it is booted for each measurement
    #[arg(long, conflicts_with = "poll")]
    guest: bool,
    /// The noisy neighbour alone: a read at a time beside 128 on one disk, and a depth found by latency
    #[arg(long, conflicts_with_all = ["back_end", "poll", "guest"])]
    neighbour: bool,
    /// What each part of the daemon adds to an I/O alone, in the processor's time: the guest takes turns with it
    #[arg(long, conflicts_with_all = ["back_end", "poll", "guest", "neighbour", "millis", "directory"])]
    parts: bool,
    /// The published experiments S0, S1 and S4 alone, each once, served with their arrays emulated and beside
    /// their runs in virtual time: four minutes
    #[arg(long, conflicts_with_all = ["back_end", "poll", "guest", "neighbour", "parts"])]
    #[arg(conflicts_with_all = ["rounds", "millis", "directory"])]
    experiments: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How a disk is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    VhostUser,
    Nbd,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::VhostUser => "vhost-user",
            Self::Nbd => "NBD",
        }
    }

    const fn peers(self) -> &'static [&'static str] {
        match self {
            Self::VhostUser => &["qemu-storage-daemon"],
            Self::Nbd => &["nbdkit", "qemu-nbd"],
        }
    }
}

/// What holds the bytes of a disk.
const BACK_ENDS: [&str; 3] = ["null", "memory", "file"];

const WORKS: [Work; 3] = [
    Work { name: "4K read", bytes: 4 << 10, writes: false, in_order: false },
    Work { name: "4K write", bytes: 4 << 10, writes: true, in_order: false },
    Work { name: "64K read, in order", bytes: 64 << 10, writes: false, in_order: true },
];

/// What a guest does.
const IN_GUEST: Work = Work { name: "4K read in a guest", ..WORKS[0] };

/// A disk of a server.
struct Target {
    server: &'static str,
    way: Way,
    back_end: &'static str,
    path: PathBuf,
    /// The server's process.
    process: u32,
}

impl Target {
    fn bytes(&self) -> u64 {
        if self.back_end == "file" { FILE } else { DISK }
    }
}

/// What was measured of a disk at a depth.
#[derive(Clone, Copy, Default)]
struct Sample {
    iops: f64,
    /// Of the server's CPU time.
    ns_per_io: f64,
    /// Nothing where a guest does not tell.
    kicks_per_io: Option<f64>,
}

/// Our own among the servers.
const OURS: &str = "kavg";

/// What was measured of a disk, round by round.
struct Measured {
    target: usize,
    work: Work,
    depth: u16,
    rounds: Vec<Sample>,
}

impl Measured {
    /// The round in the middle.
    fn median(&self) -> Sample {
        let middle = levels::median(self.rounds.iter().map(|round| round.iops));
        self.rounds.iter().find(|round| Some(round.iops) == middle).copied().unwrap_or_default()
    }

    /// How much faster it was than another in the same rounds: the median, and from where to where.
    fn times(&self, other: &Self) -> (f64, f64, f64) {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let mut times: Vec<f64> = pairs.map(|(own, other)| own.iops / other.iops).collect();
        times.sort_by(f64::total_cmp);
        let cut = usize::from(times.len() >= TRIMMED_FROM);
        let at = |place: usize| times.get(place).copied().unwrap_or(f64::NAN);
        let median = levels::median(times.iter().copied()).unwrap_or(f64::NAN);
        (median, at(cut), at(times.len().saturating_sub(1 + cut)))
    }
}

impl BenchLive {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        if self.experiments {
            return bench_experiments::run(self.json, out);
        }
        if self.neighbour {
            let time = Duration::from_millis(self.millis.get().into());
            let directory = self.directory.as_deref();
            return bench_neighbour::run(directory, self.rounds.get(), time, self.json, out);
        }
        if self.parts {
            return bench_parts::run(self.rounds.get(), self.json, out);
        }
        let guest = self.guest.then(Guest::new).transpose()?;
        let site = tempfile::tempdir()?;
        let mut servers = Servers::new(self.directory.as_deref())?;
        let mut targets = ours(&site, &mut servers)?;
        targets.retain(|target| self.is_wanted(target.way, target.back_end));
        for (way, back_end) in kinds().filter(|(way, back_end)| self.is_wanted(*way, back_end)) {
            for server in way.peers() {
                targets.extend(peer(&site, server, way, back_end, &mut servers)?);
            }
        }
        guest::pin(CLIENT_CPU)?;
        let measured = self.measure(&targets, guest.as_ref())?;
        if self.json {
            let all: Vec<_> = measured.iter().map(|one| in_json(one, &targets)).collect();
            let (rounds, millis, poll) = (self.rounds, self.millis, self.poll);
            let report = json!({
                "rounds": rounds, "millis": millis, "poll_us": poll, "measured": all,
            });
            json::write(&report, out)?;
        } else {
            out.write_all(table(&measured, &targets).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn is_wanted(&self, way: Way, back_end: &str) -> bool {
        let only = self.back_end.as_deref().or(self.guest.then_some("null"));
        only.is_none_or(|only| only == back_end) && !(self.guest && way == Way::Nbd)
    }

    fn measure(&self, targets: &[Target], guest: Option<&Guest>) -> Outcome<Vec<Measured>> {
        let (works, depths): (&[_], &[_]) = match guest {
            Some(_) => (&[IN_GUEST], &DEPTHS[1..]),
            None => (&WORKS, &DEPTHS),
        };
        let all = works.iter().flat_map(|work| depths.iter().map(|depth| (*work, *depth)));
        let each = |(work, depth)| {
            let of = move |target| Measured { target, work, depth, rounds: Vec::new() };
            (0..targets.len()).map(of)
        };
        let mut measured: Vec<Measured> = all.flat_map(each).collect();
        let mut has_gone = vec![false; targets.len()];
        for _ in 0..self.rounds.get() {
            for cell in &mut measured {
                let target = &targets[cell.target];
                if has_gone[cell.target] {
                    continue;
                }
                let sample = match guest {
                    Some(guest) => self.sample_in(guest, target, cell.depth),
                    None => self.sample(target, cell.work, cell.depth),
                };
                match sample {
                    Ok(sample) => cell.rounds.push(sample),
                    Err(error) if target.server == OURS => return Err(error),
                    // What others do is theirs: there is less to be compared with.
                    Err(error) => {
                        say(&error);
                        has_gone[cell.target] = true;
                    }
                }
            }
        }
        measured.retain(|cell| !has_gone[cell.target]);
        Ok(measured)
    }

    fn sample(&self, target: &Target, work: Work, depth: u16) -> Outcome<Sample> {
        let said = |error| format!("{} ({}): {error}", target.server, target.way.name());
        let time = Duration::from_millis(self.millis.get().into());
        let before = cpu_ns(target.process);
        let begun = Instant::now();
        let (ios, kicks) = match target.way {
            Way::VhostUser => {
                by_rings(target, work, depth, time, Duration::from_micros(self.poll.into()))
            }
            Way::Nbd => by_socket(target, work, depth, time),
        }
        .map_err(said)?;
        let (took, ios) = (begun.elapsed().as_secs_f64(), ios as f64);
        let ns_per_io = cpu_ns(target.process).saturating_sub(before) as f64 / ios;
        Ok(Sample { iops: ios / took, ns_per_io, kicks_per_io: Some(kicks as f64 / ios) })
    }

    fn sample_in(&self, guest: &Guest, target: &Target, depth: u16) -> Outcome<Sample> {
        let read = guest.read(&target.path, depth, self.millis.get(), || cpu_ns(target.process));
        let read = read.map_err(|error| format!("{}: {error}", target.server))?;
        let ns_per_io = read.cpu_ns as f64 / read.ios;
        Ok(Sample { iops: read.iops, ns_per_io, kicks_per_io: None })
    }
}

fn kinds() -> impl Iterator<Item = (Way, &'static str)> {
    let ways = [Way::VhostUser, Way::Nbd].into_iter();
    ways.flat_map(|way| BACK_ENDS.map(|back_end| (way, back_end)))
}

/// Our own daemon's disks, at work.
fn ours(site: &TempDir, servers: &mut Servers) -> Outcome<Vec<Target>> {
    for name in ["vhost.img", "nbd.img"] {
        servers.image(name)?;
    }
    let process = servers.serve(site.path(), HOST, kinds().count(), &[])?;
    let target = |(way, back_end)| {
        let name = if way == Way::Nbd { "kavg.nbd".into() } else { format!("kavg.{back_end}") };
        Target { server: OURS, way, back_end, path: site.path().join(name), process }
    };
    Ok(kinds().map(target).collect())
}

/// The command of others for a disk; nothing where they have no such disk.
fn command(
    server: &str,
    back_end: &str,
    socket: &str,
    servers: &mut Servers,
) -> Outcome<Option<Command>> {
    let file = match (server, back_end) {
        // It would read them by the page cache.
        ("nbdkit", "file") => return Ok(None),
        ("nbdkit", _) | (_, "null") => String::new(),
        // These have no disk in memory: a file there is the nearest.
        (_, "memory") => servers.in_memory()?.display().to_string(),
        _ => servers.image(&format!("{server}.img"))?.display().to_string(),
    };
    let mut command = on_cpu(server);
    match (server, back_end) {
        ("nbdkit", _) => {
            command.args(["-f", "-U", socket, back_end, &format!("size={DISK}")]);
        }
        ("qemu-nbd", _) => {
            command.args(["-t", "-e", "4", "-k", socket, "-x", ""]);
            match back_end {
                "null" => command.args(["--image-opts", &format!("driver=null-co,size={DISK}")]),
                "memory" => command.args(["-f", "raw", &file]),
                _ => command.args(["--cache=none", "--aio=native", "-f", "raw", &file]),
            };
        }
        _ => {
            let disk = match back_end {
                "null" => format!("null-co,size={DISK},read-zeroes=off,node-name=d"),
                "memory" => format!("file,filename={file},node-name=d"),
                _ => format!("file,filename={file},cache.direct=on,aio=native,node-name=d"),
            };
            let export = format!(
                "id=e,node-name=d,writable=on,iothread=t,addr.type=unix,addr.path={socket}"
            );
            command.args(["--object", "iothread,id=t", "--blockdev", &disk]);
            command.args(["--export", &format!("vhost-user-blk,{export}")]);
        }
    }
    Ok(Some(command))
}

/// Begins the daemon of others for a disk, where it is installed and has the like.
fn peer(
    site: &TempDir,
    server: &'static str,
    way: Way,
    back_end: &'static str,
    servers: &mut Servers,
) -> Outcome<Option<Target>> {
    let path = site.path().join(format!("{server}.{back_end}"));
    let command = command(server, back_end, &path.display().to_string(), servers)?;
    let Some(mut command) = command else { return Ok(None) };
    let mut child = command.spawn().map_err(|error| format!("taskset: {error}"))?;
    let process = child.id();
    let until = Instant::now() + PATIENCE;
    // Its socket may be there before it listens.
    while UnixStream::connect(&path).is_err() {
        let has_ended = child.try_wait().is_ok_and(|ended| ended.is_some());
        if has_ended || Instant::now() > until {
            say(&format!("{server} is not there to be compared with ({}, {back_end})", way.name()));
            return Ok(None);
        }
        sleep(Duration::from_millis(10));
    }
    servers.children.push(child);
    Ok(Some(Target { server, way, back_end, path, process }))
}

/// How many I/Os end in that time, and how many kicks they take.
fn by_rings(
    target: &Target,
    work: Work,
    depth: u16,
    time: Duration,
    poll: Duration,
) -> Outcome<(u64, u64)> {
    let shape = Shape::one_ring(work.bytes);
    let mut disk = Disk::connect(&target.path, Wish { inflight: false, ..Wish::all(shape) })?;
    let (ring, mut places) = (&mut disk.rings[0], Places::new(target.bytes(), work));
    let data = vec![1; work.bytes as usize];
    for _ in 0..depth {
        let sector = places.next() / guest::SECTOR;
        match work.writes {
            true => ring.submit(Ask::Write(sector, &data)),
            false => ring.submit(Ask::Read(sector, work.bytes)),
        };
    }
    let (mut ios, until) = (0, Instant::now() + time);
    loop {
        ring.kick();
        let begun = Instant::now();
        if begun >= until {
            return Ok((ios, ring.kicks));
        }
        let mut next = ring.poll();
        while next.is_none() && !poll.is_zero() && begun.elapsed() < poll {
            next = ring.poll();
        }
        let mut done = Some(next.or_else(|| ring.wait(PATIENCE)).ok_or("there is no answer")?);
        while let Some(one) = done {
            if one.status != 0 {
                return Err(format!("an I/O has ended with {}", one.status));
            }
            ios += 1;
            ring.repeat(places.next() / guest::SECTOR);
            done = ring.poll();
        }
    }
}

/// The same by a socket, where nothing is kicked.
fn by_socket(target: &Target, work: Work, depth: u16, time: Duration) -> Outcome<(u64, u64)> {
    let export = if target.server == OURS { target.back_end } else { "" };
    let mut client = NbdClient::connect(&target.path, export, work.bytes, work.writes)?;
    let mut places = Places::new(target.bytes(), work);
    let (mut ios, mut wanted, until) = (0, u64::from(depth), Instant::now() + time);
    while Instant::now() < until {
        (0..wanted).for_each(|_| client.submit(places.next()));
        client.send()?;
        wanted = client.wait()?;
        ios += wanted;
    }
    Ok((ios + client.leave()?, 0))
}

/// The CPU time of a process, with all its threads.
fn cpu_ns(process: u32) -> u64 {
    let threads = fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
    let threads = threads.into_iter().flatten().flatten();
    let time = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.filter_map(time).sum()
}

fn in_json(measured: &Measured, targets: &[Target]) -> serde_json::Value {
    let Target { server, way, back_end, .. } = &targets[measured.target];
    let median = measured.median();
    let rounds: Vec<f64> = measured.rounds.iter().map(|sample| sample.iops).collect();
    json!({
        "server": server, "way": way.name(), "back_end": back_end, "work": measured.work.name,
        "depth": measured.depth, "iops": median.iops, "iops_by_round": rounds,
        "cpu_ns_per_io": median.ns_per_io, "kicks_per_io": median.kicks_per_io,
    })
}

/// A row for each of ours, with the best of its peers beside it.
fn table(measured: &[Measured], targets: &[Target]) -> String {
    let head = [
        "", "back end", "I/O", "depth", "kavg", "CPU", "kicks", "peer", "its", "its CPU", "times",
        "from", "to",
    ];
    let mut table = Table::new(&head).left(&[0, 1, 2, 7]);
    for own in measured.iter().filter(|own| targets[own.target].server == OURS) {
        let Target { way, back_end, .. } = &targets[own.target];
        let is_peer = |other: &&Measured| {
            let its = &targets[other.target];
            its.server != OURS
                && (its.way, its.back_end) == (*way, *back_end)
                && (other.work.name, other.depth) == (own.work.name, own.depth)
        };
        let peers = measured.iter().filter(is_peer);
        let best = peers.max_by(|a, b| a.median().iops.total_cmp(&b.median().iops));
        let (sample, times) = (own.median(), best.map(|best| own.times(best)));
        let of_peer = |text: &dyn Fn(&Measured) -> String| best.map_or("-".into(), text);
        let time = |time: Option<f64>| time.map_or("-".into(), |time| format!("{time:.2}"));
        table.row(vec![
            way.name().into(),
            (*back_end).into(),
            own.work.name.into(),
            own.depth.to_string(),
            whole(sample.iops),
            format!("{:.2} us", sample.ns_per_io / 1e3),
            sample.kicks_per_io.map_or("-".into(), |kicks| format!("{kicks:.3}")),
            of_peer(&|peer| targets[peer.target].server.into()),
            of_peer(&|peer| whole(peer.median().iops)),
            of_peer(&|peer| format!("{:.2} us", peer.median().ns_per_io / 1e3)),
            time(times.map(|times| times.0)),
            time(times.map(|times| times.1)),
            time(times.map(|times| times.2)),
        ]);
    }
    format!(
        "{}I/Os a second, the server's CPU time and kicks an I/O, medians; the peer is the fastest one, and \
         the times are those of the same rounds.\n",
        table.render(),
    )
}
