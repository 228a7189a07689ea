//! The daemon: everything that a file says, opened and at work, until it is told to end.
//!
//! ```text
//!   main thread: open all, begin the threads, wait for a signal, end them in order
//!   a thread for each component of each host         a thread for the sockets of each host
//! ```

use std::{
    mem,
    net::SocketAddr,
    os::unix::ffi::OsStrExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use counters::SECOND;
use engine::{Engine, Input, Object};
use journal::{Journal, Limits};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::signal::{SigSet, Signal},
    unistd::Pid,
};
use scenario::{Host, Scenario};

use crate::{
    backend::Made,
    change,
    clock::Clock,
    control,
    counted::Counted,
    executor::Executor,
    export::Export,
    folders::Folders,
    hosted::{Home, Hosted},
    hosts::{Begin, Changed, Hosts, Shared, lock},
    ids::Ids,
    machine::{DRAIN_NS, Machine, Parts},
    mailbox::{Letter, Mailbox},
    metrics,
    nbd::{Door, Listener, Listening},
    record::Record,
    served::{Opened, Part, Seen, Served},
    settings::Settings,
    socket,
    vhost::Device,
};

/// What a daemon is told beside its scenario.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The name of the file, for refusals.
    pub file: &'a str,
    /// Where names of files begin that are not absolute.
    pub base: &'a Path,
    /// The directory in which each component keeps a journal.
    pub journal: Option<&'a Path>,
    /// The most bytes that the segments of a component have together.
    pub journal_cap_bytes: u64,
    /// The socket at which counters can be read and settings changed.
    pub control: Option<&'a Path>,
    /// The address at which counters are for who reads OpenMetrics; one of the loopback interface.
    pub metrics: Option<SocketAddr>,
    /// Where settings are kept that are changed there.
    pub settings: Option<&'a Settings>,
    /// Who hears, a line at a time and from any thread, what goes wrong at work.
    pub tell: fn(&str),
}

/// What a daemon is told by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// To read its file again.
    Reload,
    /// To come to its end.
    End,
}

/// Signals to a daemon.
#[derive(Clone, Copy, Debug)]
pub struct Signals(SigSet);

impl Signals {
    /// SIGTERM, SIGINT and SIGHUP, which from now on only [`Self::wait`] sees. It is called before any
    /// thread begins.
    ///
    /// # Errors
    /// What the system says.
    pub fn hold() -> Result<Self, String> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTERM);
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGHUP);
        signals.thread_block().map_err(|error| format!("signals: {}", error.desc()))?;
        Ok(Self(signals))
    }

    /// Holds back SIGXFSZ, which nobody needs to see: the write that is beyond the limit of a file says
    /// so itself. It is called before any thread begins.
    pub fn outlive_file_limits() {
        // Where it cannot be, such a write ends the process, as it does by default.
        let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    }

    /// Waits for one of them.
    #[must_use]
    pub fn wait(&self) -> Told {
        loop {
            match self.0.wait() {
                Ok(Signal::SIGHUP) => return Told::Reload,
                Ok(_) => return Told::End,
                Err(_) => {}
            }
        }
    }
}

/// Where a disk is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the export.
    pub export: String,
    /// Its URIs, as clients of NBD take them, or `vhost-user:` and the path of its socket.
    pub uris: Vec<String>,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A daemon at work.
#[derive(Debug, Default)]
pub struct Daemon {
    components: Vec<Running>,
    listening: Vec<Listening>,
    hosted: Vec<(Hosted, Vec<Input>)>,
    /// By host where its disks are found by NBD.
    addresses: Vec<Vec<Address>>,
    hosts: Option<Shared>,
    control: Option<control::Served>,
    /// Images that were made, until it has begun.
    made: Vec<Made>,
    /// The disks, in the order of the file; after a change those that are new.
    pub places: Vec<Place>,
    /// What is worth a word: a line each.
    pub notes: Vec<String>,
}

/// How long components may take to end: a little longer than what is under way may.
const PATIENCE: Duration = Duration::from_nanos(DRAIN_NS + 2 * SECOND);

/// A component at work.
#[derive(Debug)]
struct Running {
    mailbox: Arc<Mailbox>,
    /// It ends with the number of I/Os that it has left unanswered.
    thread: JoinHandle<Result<usize, String>>,
}

impl Daemon {
    /// Opens what a scenario says that is to be served, and serves it.
    ///
    /// # Errors
    /// One line: what cannot be opened, and where the file says that it is to be. Nothing is served
    /// then.
    pub fn start(scenario: &Scenario, options: Options<'_>) -> Result<Self, String> {
        let clock = Clock::start();
        let mut daemon = Self::default();
        let (mut listeners, mut devices) = (Vec::new(), Vec::new());
        for host in &scenario.hosts {
            listeners.push(daemon.open(scenario, host, clock, options, &mut devices)?);
        }
        let hosted = mem::take(&mut daemon.hosted);
        let home = Home {
            file: options.file.to_owned(),
            base: options.base.to_path_buf(),
            folders: Folders::of(scenario, options.base),
        };
        let hosts = Hosts::new(scenario.clone(), hosted, options.settings.cloned(), home);
        let hosts = Arc::new(Mutex::new(hosts));
        daemon.hosts = Some(Arc::clone(&hosts));
        if let Some(address) = options.metrics {
            let served = metrics::serve(address, Arc::clone(&hosts));
            let address = served.map_err(|error| format!("{address}: {error}"))?;
            daemon.notes.push(format!("counters for OpenMetrics: http://{address}/metrics"));
        }
        if let Some(path) = options.control {
            let control = control::serve(path, hosts);
            let control = control.map_err(|error| format!("{}: {error}", path.display()))?;
            daemon.control = Some(control);
        }
        for listener in listeners {
            daemon.listening.push(listener.start().map_err(|error| format!("sockets: {error}"))?);
        }
        for (mailbox, device) in devices {
            mailbox.send(Letter::Disk(device));
        }
        mem::take(&mut daemon.made).into_iter().for_each(Made::keep);
        Ok(daemon)
    }

    /// Opens a host: its components work when this is over, and nobody can reach them yet.
    fn open(
        &mut self,
        scenario: &Scenario,
        host: &Host,
        clock: Clock,
        options: Options<'_>,
        devices: &mut Vec<Bound>,
    ) -> Result<Listener, String> {
        let (components, ids) = (host.components(), Ids::new(&host.config));
        let (file, base) = (options.file, options.base);
        let seen = Seen { scenario, host, components: &components, ids: &ids, file, base };
        let mut opened = Opened::default();
        let Served { exports, parts, notes, made } =
            opened.open(seen, 0..host.images.len(), &[])?;
        self.notes.extend(notes);
        self.made.extend(made);
        let refuse =
            |what| format!("{file}:{}: host `{}`: {what}", host.lines.cpus, host.config.name);
        host.cpus.iter().try_for_each(|cpu| try_cpu(*cpu)).map_err(refuse)?;
        let (mut machines, mut ways) = (Vec::new(), Vec::new());
        for (index, part) in parts.into_iter().enumerate() {
            let (way, more) = channel();
            ways.push(way);
            machines.push(machine(host, index, (part, more), clock, options)?);
        }
        let mailboxes: Vec<_> = machines.iter().map(|(mailbox, _)| Arc::clone(mailbox)).collect();
        let bound = change::bind(&exports, seen)?.into_iter();
        devices.extend(bound.map(|(component, device)| (mailboxes[component].clone(), device)));
        let door = Door::default();
        door.show(exports.iter());
        let mut listener = Listener::new(door.clone(), mailboxes.clone());
        let addresses = listen(host, &mut listener, options)?;
        self.places.extend(exports.iter().map(|export| place(export, &addresses)));
        self.addresses.push(addresses);
        let (inventory, epoch_ms) = (host.config.inventory(), clock.epoch_ms);
        let counted =
            Counted { inventory, components, ids: ids.clone(), mailboxes, exports, epoch_ms };
        let (engine, up) = (Engine::new(&host.config), vec![true; host.config.paths.len()]);
        let known = Arc::new(host.config.clone());
        let counted = Arc::new(counted);
        let hosted = Hosted { counted, engine, up, ids, known, opened, door, ways };
        self.hosted.push((hosted, first(host)));
        for (index, (mailbox, machine)) in machines.into_iter().enumerate() {
            let cpu = host.cpus.get(index % host.cpus.len().max(1)).copied();
            let (bound, is_bound) = channel();
            let thread = thread::Builder::new().name(format!("component {index}"));
            let thread = thread.spawn(move || {
                // Whoever began it waits for this.
                let _ = bound.send(bind(cpu));
                work(machine)
            });
            let thread = thread.map_err(|error| format!("a thread: {error}"))?;
            is_bound.recv().unwrap_or(Ok(())).map_err(refuse)?;
            self.components.push(Running { mailbox, thread });
        }
        Ok(listener)
    }

    /// Makes the changes from one reading of the file to the next. What is new and what is worth a word is
    /// in the places and notes then, in the place of those before. `begin` is how the daemon would begin.
    ///
    /// # Errors
    /// One line: what cannot change at work, or is refused; nothing is changed then.
    pub fn reload(
        &mut self,
        was: &Scenario,
        new: &Scenario,
        begin: Begin<'_>,
    ) -> Result<(), String> {
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let Changed { notes, exports } = lock(hosts).reload(was, new, begin)?;
        let places = exports.iter().map(|(host, export)| place(export, &self.addresses[*host]));
        (self.places, self.notes) = (places.collect(), notes);
        self.notes.extend(renewed(&mut self.listening, &new.hosts));
        self.notes.extend(lock(hosts).renew_sockets());
        self.notes.extend(self.control.as_mut().and_then(control::Served::renew));
        Ok(())
    }

    /// Comes to an end: nobody is let in any more, what is under way is answered, journals are closed. What
    /// could not be answered, and what keeps it, is told to `tell`, a line each.
    ///
    /// # Errors
    /// A journal that could not be written.
    pub fn stop(self, tell: fn(&str)) -> Result<(), String> {
        self.listening.into_iter().for_each(Listening::stop);
        self.components.iter().for_each(|component| component.mailbox.send(Letter::Stop));
        let (sender, ended) = channel();
        thread::spawn(move || {
            let threads = self.components.into_iter().map(|component| component.thread);
            // Whoever ends the daemon waits for this.
            let _ = sender.send(threads.map(JoinHandle::join).collect::<Vec<_>>());
        });
        let ended = ended.recv_timeout(PATIENCE).or_else(|_| {
            tell("it stays until the kernel returns a call on a disk, which nothing else can end");
            ended.recv()
        });
        let left = ended.unwrap_or_default().into_iter().map(|ended| match ended {
            Ok(left) => left,
            Err(_) => process::abort(),
        });
        let left: usize = left.sum::<Result<usize, String>>()?;
        if left > 0 {
            let after = DRAIN_NS / SECOND;
            tell(&format!(
                "{left} I/Os were still under way after {after} s, and are not answered"
            ));
        }
        Ok(())
    }
}

/// A component of a host that is ready to work. Its engine is that of the whole host, of which it is told
/// its own part only: ids are the same everywhere.
fn machine(
    host: &Host,
    index: usize,
    (part, more): (Part, Receiver<Part>),
    clock: Clock,
    options: Options<'_>,
) -> Result<(Arc<Mailbox>, Machine), String> {
    let config = &host.config;
    let mailbox = Arc::new(Mailbox::new().map_err(|error| format!("a mailbox: {error}"))?);
    let journal = options.journal.map(|directory| {
        let name = format!("{}-{index}", config.name);
        let epoch_ms = clock.epoch_ms.try_into().unwrap_or_default();
        let (cap_bytes, tell) = (options.journal_cap_bytes, options.tell);
        let record = Record::create(directory, &name, epoch_ms, cap_bytes, tell);
        let record = record.map_err(|error| error.to_string())?;
        let limits = Limits { epoch_ms, segment_bytes: record.segment_bytes() };
        let journal = Journal::of_real_time(record, &name, [config], limits);
        journal.map_err(|error| error.to_string())
    });
    let parts = Parts {
        engine: Engine::new(config),
        journal: journal.transpose()?,
        first: first(host),
        part,
        more,
        executor: Executor::new(Arc::clone(&mailbox)),
        clock,
        mailbox: Arc::clone(&mailbox),
        tell: options.tell,
    };
    let machine = Machine::new(parts).map_err(|error| format!("a component: {error}"))?;
    Ok((mailbox, machine))
}

/// What is put in force before anything else, as in virtual time.
fn first(host: &Host) -> Vec<Input> {
    let mut first: Vec<_> = host.settings.iter().map(|knob| Input::Set(*knob)).collect();
    if !first.is_empty() {
        first.push(Input::Reboot);
    }
    let gone = |object: &Object| Input::Detach { object: *object, drain: false };
    first.extend(host.absent.iter().map(gone));
    first
}

/// Opens the sockets of a host; how a client names each.
fn listen(
    host: &Host,
    listener: &mut Listener,
    options: Options<'_>,
) -> Result<Vec<Address>, String> {
    let mut addresses = Vec::new();
    let Some(nbd) = &host.nbd else { return Ok(addresses) };
    let refuse = |what: String| format!("{}:{}: {what}", options.file, nbd.line);
    if let Some(socket) = &nbd.socket {
        let path = options.base.join(socket);
        let listening = listener.listen(&path);
        listening.map_err(|error| refuse(format!("`socket`: {}: {error}", path.display())))?;
        let shared = socket::share(&path, &host.sockets);
        shared.map_err(|what| format!("{}:{}: {what}", options.file, host.sockets.line))?;
        addresses.push(Address::Unix(path));
    }
    if let Some(tcp) = nbd.tcp {
        let listening = listener.listen_tcp(tcp);
        let refuse = |error| refuse(format!("`tcp`: {tcp}: {error}"));
        addresses.push(Address::Tcp(listening.map_err(refuse)?));
    }
    Ok(addresses)
}

/// Makes the sockets of hosts anew whose files somebody has removed; a line each.
fn renewed(listening: &mut [Listening], hosts: &[Host]) -> Vec<String> {
    let renew = |(listening, host): (&mut Listening, &Host)| {
        let path = listening.removed()?;
        let take = |file, listener| listening.renew(file, listener);
        Some(socket::renew(&path, &host.sockets, take))
    };
    listening.iter_mut().zip(hosts).filter_map(renew).collect()
}

/// A disk with a socket of its own, and who is to serve it.
type Bound = (Arc<Mailbox>, Box<Device>);

/// Where a host is reached.
#[derive(Debug)]
enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

fn place(export: &Export, addresses: &[Address]) -> Place {
    let name = &export.name;
    if let Some(socket) = &export.socket {
        let uris = vec![format!("vhost-user:{}", socket.display())];
        return Place { export: name.clone(), uris, bytes: export.bytes };
    }
    let in_uri = escaped(name.as_bytes());
    let uri = |address: &Address| match address {
        Address::Unix(path) => {
            format!("nbd+unix:///{in_uri}?socket={}", escaped(path.as_os_str().as_bytes()))
        }
        Address::Tcp(address) => format!("nbd://{address}/{in_uri}"),
    };
    let uris = addresses.iter().map(uri).collect();
    Place { export: name.clone(), uris, bytes: export.bytes }
}

/// As it stands in a URI, in its path and in the value of a query.
fn escaped(bytes: &[u8]) -> String {
    let escape = |byte: &u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~/:@".contains(byte) => {
            char::from(*byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    bytes.iter().map(escape).collect()
}

/// The thread of a component. Whatever is wrong with it, nothing half done may go on: guests' memory is
/// with the kernel.
fn work(machine: Machine) -> Result<usize, String> {
    catch_unwind(AssertUnwindSafe(|| machine.run())).unwrap_or_else(|_| process::abort())
}

/// Whether a component's thread can be bound to a CPU, by its number from 0.
///
/// # Errors
/// The key, the CPU and what the system says.
pub fn try_cpu(cpu: u32) -> Result<(), String> {
    thread::spawn(move || bind(Some(cpu))).join().unwrap_or(Ok(()))
}

/// Binds this thread to a CPU.
fn bind(cpu: Option<u32>) -> Result<(), String> {
    let Some(cpu) = cpu else { return Ok(()) };
    let mut only = CpuSet::new();
    let bound = only.set(cpu as usize).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
    bound.map_err(|error| format!("`cpus`: CPU {cpu}: {}", error.desc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_uri_ends_nothing_of_it() {
        let table = [
            ("web:scsi0:0", "web:scsi0:0"),
            ("a%b?c#d&e=f+g", "a%25b%3Fc%23d%26e%3Df%2Bg"),
            ("/run/my vms/h\u{e9}.sock", "/run/my%20vms/h%C3%A9.sock"),
        ];
        for (name, expected) in table {
            assert_eq!(escaped(name.as_bytes()), expected);
        }
    }
}
