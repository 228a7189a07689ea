//! `kavg bench live`: real I/O through `kavg serve`, and beside it the same through others' daemons.
//!
//! A client and a server have a CPU each. The client is the same for all: it fills rings, or a socket, of its
//! own, and looks for answers for a while before it sleeps, as a guest does that polls. Servers are measured
//! in turns, so that what else the machine does is shared out among them.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    num::{NonZeroU32, NonZeroUsize},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use clap::Args;
use guest::{Ask, Disk, NbdClient, Shape, Wish};
use serde_json::json;
use tempfile::{NamedTempFile, TempDir};

use crate::{Result, json, table::Table, talk::say, text::whole};

/// What went wrong is a line.
type Outcome<T> = std::result::Result<T, String>;

/// What is asked for at once.
const DEPTHS: [u16; 3] = [1, 32, 96];
/// Bytes of a read, and of a disk.
const READ: u32 = 4096;
const DISK: u64 = 1 << 30;
/// How long a client looks for an answer before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// How long a server may take to begin, and an answer to come.
const PATIENCE: Duration = Duration::from_secs(10);
/// The CPUs of servers and of the client.
const SERVER_CPU: &str = "0";
const CLIENT_CPU: usize = 1;

/// The disks that ours serves: one of each kind.
const HOST: &str = include_str!("bench_live.toml");

/// Measure I/Os through `kavg serve`, beside qemu-storage-daemon and nbdkit where they are installed
///
/// 4 KiB random reads at depths of 1, 32 and 96, by vhost-user and by NBD, from nothing and from memory.
/// It wants two idle CPUs.
#[derive(Args)]
pub(crate) struct BenchLive {
    /// Times that everything is measured, in turns; medians are shown
    #[arg(long, value_name = "N", default_value = "5")]
    rounds: NonZeroUsize,
    /// Milliseconds of each measurement
    #[arg(long, value_name = "MS", default_value = "1000")]
    millis: NonZeroU32,
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

    const fn peer(self) -> &'static str {
        match self {
            Self::VhostUser => "qemu-storage-daemon",
            Self::Nbd => "nbdkit",
        }
    }
}

/// A disk of a server.
struct Target {
    server: &'static str,
    way: Way,
    back_end: &'static str,
    path: PathBuf,
    /// The server's process.
    process: u32,
}

/// What was measured of a disk at a depth.
#[derive(Clone, Copy, Default)]
struct Sample {
    iops: f64,
    /// Of the server's CPU time.
    ns_per_io: f64,
    kicks_per_io: f64,
}

/// Servers at work, which end with this, and the files that they serve.
#[derive(Default)]
struct Servers {
    children: Vec<Child>,
    images: Vec<NamedTempFile>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Our own among the servers.
const OURS: &str = "kavg";

/// Medians of a disk, by depth.
type Measured = (usize, u16, Sample);

impl BenchLive {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let site = tempfile::tempdir()?;
        let mut servers = Servers::default();
        let mut targets = ours(&site, &mut servers)?;
        for (way, back_end) in kinds() {
            targets.extend(peer(&site, way, back_end, &mut servers)?);
        }
        guest::pin(CLIENT_CPU)?;
        let measured = self.measure(&targets)?;
        if self.json {
            let all: Vec<_> = measured.iter().map(|one| in_json(one, &targets)).collect();
            let (rounds, millis) = (self.rounds, self.millis);
            json::write(&json!({ "rounds": rounds, "millis": millis, "measured": all }), out)?;
        } else {
            out.write_all(table(&measured, &targets).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn measure(&self, targets: &[Target]) -> Outcome<Vec<Measured>> {
        let time = Duration::from_millis(self.millis.get().into());
        let mut taken: Vec<Vec<Sample>> = vec![Vec::new(); targets.len() * DEPTHS.len()];
        let mut has_gone = vec![false; targets.len()];
        for _ in 0..self.rounds.get() {
            for (place, depth) in DEPTHS.into_iter().enumerate() {
                for (index, target) in targets.iter().enumerate() {
                    if has_gone[index] {
                        continue;
                    }
                    match measure(target, depth, time) {
                        Ok(sample) => taken[index * DEPTHS.len() + place].push(sample),
                        Err(error) if target.server == OURS => return Err(error),
                        // What others do is theirs: there is less to be compared with.
                        Err(error) => {
                            say(&error);
                            has_gone[index] = true;
                        }
                    }
                }
            }
        }
        let all = taken.into_iter().enumerate();
        let all = all.map(|(at, samples)| (at / DEPTHS.len(), DEPTHS[at % DEPTHS.len()], samples));
        let left = all.filter(|(index, ..)| !has_gone[*index]);
        Ok(left.map(|(index, depth, samples)| (index, depth, median(samples))).collect())
    }
}

fn kinds() -> impl Iterator<Item = (Way, &'static str)> {
    let ways = [Way::VhostUser, Way::Nbd].into_iter();
    ways.flat_map(|way| ["null", "memory"].map(|back_end| (way, back_end)))
}

/// A program on the CPU of servers.
fn on_cpu(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", SERVER_CPU, program]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Begins our own daemon and waits until it serves.
fn ours(site: &TempDir, servers: &mut Servers) -> Outcome<Vec<Target>> {
    let said = |error: std::io::Error| format!("kavg serve: {error}");
    fs::write(site.path().join("h.toml"), HOST).map_err(said)?;
    let program = std::env::current_exe().map_err(said)?;
    let mut command = on_cpu(&program.display().to_string());
    command.args(["serve", "h.toml"]).current_dir(site.path());
    let mut child = command.spawn().map_err(said)?;
    let lines = child.stdout.take().map(BufReader::new);
    let ready = lines.map_or(0, |lines| lines.lines().take(4).filter(|line| line.is_ok()).count());
    let process = child.id();
    servers.children.push(child);
    if ready < 4 {
        return Err("kavg serve did not begin".into());
    }
    let target = |(way, back_end)| {
        let name = if way == Way::Nbd { "kavg.nbd".into() } else { format!("kavg.{back_end}") };
        Target { server: OURS, way, back_end, path: site.path().join(name), process }
    };
    Ok(kinds().map(target).collect())
}

/// Begins the daemon of others for a disk, where it is installed.
fn peer(
    site: &TempDir,
    way: Way,
    back_end: &'static str,
    servers: &mut Servers,
) -> Outcome<Option<Target>> {
    let server = way.peer();
    let path = site.path().join(format!("peer.{}.{back_end}", way.name()));
    let socket = path.display();
    let mut command = on_cpu(server);
    match way {
        Way::Nbd => {
            command.args(["-f", "-U", &socket.to_string(), back_end, &format!("size={DISK}")]);
        }
        Way::VhostUser => {
            let disk = match back_end {
                "null" => format!("null-co,size={DISK},read-zeroes=off,node-name=d"),
                // It has no disk in memory: a file there is the nearest.
                _ => format!("file,filename={},node-name=d", servers.image()?.display()),
            };
            let export = format!(
                "id=e,node-name=d,writable=on,iothread=t,addr.type=unix,addr.path={socket}"
            );
            command.args(["--object", "iothread,id=t", "--blockdev", &disk]);
            command.args(["--export", &format!("vhost-user-blk,{export}")]);
        }
    }
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

impl Servers {
    /// A new file in memory.
    fn image(&mut self) -> Outcome<PathBuf> {
        let made = NamedTempFile::new_in("/dev/shm");
        let made = made.and_then(|file| file.as_file().set_len(DISK).map(|()| file));
        let file = made.map_err(|error| format!("/dev/shm: {error}"))?;
        let path = file.path().to_path_buf();
        self.images.push(file);
        Ok(path)
    }
}

fn measure(target: &Target, depth: u16, time: Duration) -> Outcome<Sample> {
    let said = |error| format!("{} ({}): {error}", target.server, target.way.name());
    let before = cpu_ns(target.process);
    let begun = Instant::now();
    let (ios, kicks) = match target.way {
        Way::VhostUser => by_rings(target, depth, time),
        Way::Nbd => by_socket(target, depth, time),
    }
    .map_err(said)?;
    let (took, ios) = (begun.elapsed().as_secs_f64(), ios as f64);
    let ns_per_io = (cpu_ns(target.process) - before) as f64 / ios;
    Ok(Sample { iops: ios / took, ns_per_io, kicks_per_io: kicks as f64 / ios })
}

/// Places to read, one after the other in no order.
struct Places(u64);

impl Places {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % (DISK / u64::from(READ))
    }
}

/// How many reads end in that time, and how many kicks they take.
fn by_rings(target: &Target, depth: u16, time: Duration) -> Outcome<(u64, u64)> {
    let shape = Shape::one_ring(READ);
    let mut disk = Disk::connect(&target.path, Wish { inflight: false, ..Wish::all(shape) })?;
    let (ring, mut places) = (&mut disk.rings[0], Places(1));
    let (mut ios, mut wanted, until) = (0, u64::from(depth), Instant::now() + time);
    while Instant::now() < until {
        for _ in 0..wanted {
            let sector = places.next() * u64::from(READ) / guest::SECTOR;
            match ios {
                0 => drop(ring.submit(Ask::Read(sector, READ))),
                _ => ring.repeat(sector),
            }
        }
        ring.kick();
        let begun = Instant::now();
        let mut first = ring.poll();
        while first.is_none() && begun.elapsed() < SPIN {
            first = ring.poll();
        }
        let first = first.or_else(|| ring.wait(PATIENCE)).ok_or("there is no answer")?;
        if first.status != 0 {
            return Err(format!("a read has ended with {}", first.status));
        }
        wanted = 1;
        while ring.poll().is_some() {
            wanted += 1;
        }
        ios += wanted;
    }
    Ok((ios, ring.kicks))
}

/// The same by a socket, where nothing is kicked.
fn by_socket(target: &Target, depth: u16, time: Duration) -> Outcome<(u64, u64)> {
    let export = if target.server == OURS { target.back_end } else { "" };
    let mut reader = NbdClient::connect(&target.path, export, READ, false)?;
    let mut places = Places(1);
    let (mut ios, mut wanted, until) = (0, u64::from(depth), Instant::now() + time);
    while Instant::now() < until {
        (0..wanted).for_each(|_| reader.submit(places.next() * u64::from(READ)));
        reader.send()?;
        wanted = reader.wait()?;
        ios += wanted;
    }
    Ok((ios, 0))
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

fn median(mut samples: Vec<Sample>) -> Sample {
    samples.sort_by(|a, b| a.iops.total_cmp(&b.iops));
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

fn in_json((target, depth, sample): &Measured, targets: &[Target]) -> serde_json::Value {
    let Target { server, way, back_end, .. } = &targets[*target];
    json!({
        "server": server, "way": way.name(), "back_end": back_end, "depth": depth,
        "iops": sample.iops, "cpu_ns_per_io": sample.ns_per_io, "kicks_per_io": sample.kicks_per_io,
    })
}

/// A row for each of ours, with its peer beside it.
fn table(measured: &[Measured], targets: &[Target]) -> String {
    let head = ["", "back end", "depth", "kavg", "CPU", "kicks", "peer", "its CPU", "ratio"];
    let mut table = Table::new(&head).left(&[0, 1]);
    for (target, depth, own) in measured {
        let Target { server, way, back_end, .. } = &targets[*target];
        if *server != OURS {
            continue;
        }
        let is_peer = |(other, its, _): &&Measured| {
            let other = &targets[*other];
            other.server != OURS && (other.way, other.back_end, *its) == (*way, back_end, *depth)
        };
        let peer = measured.iter().find(is_peer).map(|(_, _, sample)| sample);
        let of_peer = |text: &dyn Fn(&Sample) -> String| peer.map_or("-".into(), text);
        table.row(vec![
            way.name().into(),
            (*back_end).into(),
            depth.to_string(),
            whole(own.iops),
            format!("{:.2} us", own.ns_per_io / 1e3),
            format!("{:.3}", own.kicks_per_io),
            of_peer(&|peer| whole(peer.iops)),
            of_peer(&|peer| format!("{:.2} us", peer.ns_per_io / 1e3)),
            of_peer(&|peer| format!("x {:.2}", own.iops / peer.iops)),
        ]);
    }
    format!(
        "{}I/Os a second, the server's CPU time and kicks an I/O; peers are {} and {}.\n",
        table.render(),
        Way::VhostUser.peer(),
        Way::Nbd.peer()
    )
}
