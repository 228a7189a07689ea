//! Who waits for clients of a host: a thread that greets them, agrees with each on an export, and hands
//! it over to the component of that disk. What a client does here is nothing to those at work.

use std::{
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixListener,
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::sys::{
    epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
    eventfd::{EfdFlags, EventFd},
};

use super::{
    Arrived, Seat,
    handshake::{Agreed, Handshake, Step},
    stream::Stream,
};
use crate::{
    export::Export,
    mailbox::{Letter, Mailbox},
    socket::{self, SocketFile},
};

/// How long a client may take to agree on an export.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read of a client at once.
const INPUT: usize = 16 << 10;
/// What wakes the thread to end; clients have the other numbers, sockets those from [`SOCKETS`] on.
const BELL: u64 = u64::MAX;
const SOCKETS: u64 = 1 << 32;

/// The sockets of a host.
#[derive(Debug)]
pub(crate) struct Listener {
    file: Option<SocketFile>,
    sockets: Vec<Socket>,
    door: Door,
    components: Vec<Arc<Mailbox>>,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// The exports that clients find, as they are now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Door(Arc<Mutex<Arc<[Export]>>>);

/// A listener at work.
#[derive(Debug)]
pub(crate) struct Listening {
    /// That of the Unix socket.
    file: Option<SocketFile>,
    renewed: Renewed,
    bell: EventFd,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// A Unix socket that is to take the place of the one that was.
type Renewed = Arc<Mutex<Option<UnixListener>>>;

/// The thread's own.
struct Greeter {
    listener: Listener,
    renewed: Renewed,
    epoll: Epoll,
    clients: Vec<Option<Client>>,
    seats: Arc<AtomicUsize>,
}

/// A client that has not agreed yet.
struct Client {
    stream: Stream,
    seat: Seat,
    /// What it finds: what there was when it came.
    exports: Arc<[Export]>,
    handshake: Handshake,
    input: Vec<u8>,
    out: Vec<u8>,
    agreed: Option<Agreed>,
    until: Instant,
}

impl Door {
    /// From now on clients find those of these that have no socket of their own.
    pub(crate) fn show<'a>(&self, exports: impl Iterator<Item = &'a Export>) {
        let shown = exports.filter(|export| export.socket.is_none()).cloned().collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    fn exports(&self) -> Arc<[Export]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Listener {
    /// Listeners for what is at this door. Nobody is answered yet.
    pub(crate) const fn new(door: Door, components: Vec<Arc<Mailbox>>) -> Self {
        Self { file: None, sockets: Vec::new(), door, components }
    }

    /// A Unix socket that only its owner may open. One that nobody listens on any more is replaced.
    pub(crate) fn listen(&mut self, path: &Path) -> io::Result<()> {
        let (file, listener) = socket::bind(path)?;
        listener.set_nonblocking(true)?;
        self.file = Some(file);
        self.sockets.push(Socket::Unix(listener));
        Ok(())
    }

    /// An address of the loopback interface; which one it became.
    pub(crate) fn listen_tcp(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        self.sockets.push(Socket::Tcp(listener));
        Ok(address)
    }

    /// Begins to answer.
    pub(crate) fn start(mut self) -> io::Result<Listening> {
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        // Each ring of it is told once.
        epoll.add(&bell, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, BELL))?;
        for (index, socket) in (SOCKETS..).zip(&self.sockets) {
            epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, index))?;
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let (seats, renewed) = (Arc::default(), Renewed::default());
        let (file, clients) = (self.file.take(), Vec::new());
        let fresh = Arc::clone(&renewed);
        let mut greeter = Greeter { listener: self, renewed: fresh, epoll, clients, seats };
        let thread = thread::Builder::new().name("nbd".into());
        let thread = thread.spawn(move || greeter.run(&over))?;
        Ok(Listening { file, renewed, bell, is_over, thread })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Socket {
    fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
            Self::Tcp(listener) => Ok(Stream::Tcp(listener.accept()?.0)),
        }
    }
}

impl Listening {
    /// The Unix socket whose file somebody has removed, if there is one.
    pub(crate) fn removed(&self) -> Option<PathBuf> {
        let removed = self.file.as_ref().filter(|file| !file.is_there());
        removed.map(|file| file.path().to_path_buf())
    }

    /// This takes the place of the Unix socket.
    pub(crate) fn renew(&mut self, file: SocketFile, listener: UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.file = Some(file);
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
        self.bell.write(1)?;
        Ok(())
    }

    /// Accepts nobody any more.
    pub(crate) fn stop(self) {
        drop(self.file);
        self.is_over.store(true, Ordering::Release);
        let _ = self.bell.write(1);
        let _ = self.thread.join();
    }
}

impl Greeter {
    fn run(&mut self, is_over: &AtomicBool) {
        let mut events = [EpollEvent::empty(); 64];
        while !is_over.load(Ordering::Acquire) {
            let count = self.epoll.wait(&mut events, self.patience()).unwrap_or(0);
            for event in &events[..count] {
                match event.data() {
                    BELL => self.take_renewed(),
                    socket @ SOCKETS.. => self.accept((socket - SOCKETS) as usize),
                    client => self.serve(client as usize),
                }
            }
            self.dismiss(Instant::now());
        }
    }

    /// Waits at the socket that was made anew. At the one that was before nobody can come any more.
    fn take_renewed(&mut self) {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(listener) = renewed else { return };
        let mut sockets = (SOCKETS..).zip(&mut self.listener.sockets);
        let was = sockets.find(|(_, socket)| matches!(socket, Socket::Unix(_)));
        let Some((index, socket)) = was else { return };
        if self.epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, index)).is_ok() {
            *socket = Socket::Unix(listener);
        }
    }

    /// How long it may be until a client has taken too long.
    fn patience(&self) -> EpollTimeout {
        let first = self.clients.iter().flatten().map(|client| client.until).min();
        let Some(first) = first else { return EpollTimeout::NONE };
        let left = first.saturating_duration_since(Instant::now());
        EpollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(EpollTimeout::NONE)
    }

    /// Greets who is at the door; beyond the [`Seat`]s of those who have agreed they are turned away.
    fn accept(&mut self, socket: usize) {
        while let Ok(stream) = self.listener.sockets[socket].accept() {
            let Some(seat) = self.seat() else { continue };
            if stream.set_nonblocking().is_err() {
                continue;
            }
            let mut out = Vec::new();
            let exports = self.listener.door.exports();
            let handshake = Handshake::new(Arc::clone(&exports), &mut out);
            let until = Instant::now() + PATIENCE;
            let place = self.clients.iter().position(Option::is_none).unwrap_or_else(|| {
                self.clients.push(None);
                self.clients.len() - 1
            });
            let both = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
            if self.epoll.add(&stream, EpollEvent::new(both, place as u64)).is_ok() {
                let (input, agreed) = (Vec::new(), None);
                let client = Client { stream, seat, exports, handshake, input, out, agreed, until };
                self.clients[place] = Some(client);
            }
        }
    }

    /// A seat, if need be that of the client that has been agreeing for the longest time.
    fn seat(&mut self) -> Option<Seat> {
        Seat::take(&self.seats).or_else(|| {
            let since = |place: &&mut Option<Client>| place.as_ref().map(|client| client.until);
            *self.clients.iter_mut().filter(|place| place.is_some()).min_by_key(since)? = None;
            Seat::take(&self.seats)
        })
    }

    fn serve(&mut self, place: usize) {
        let Some(client) = self.clients.get_mut(place).and_then(Option::as_mut) else { return };
        let step = client.step();
        if step == Err(Step::More) {
            return;
        }
        let Some(client) = self.clients[place].take() else { return };
        if let (Ok(agreed), Ok(())) = (step, self.epoll.delete(&client.stream)) {
            let Client { stream, seat, exports, input: early, .. } = client;
            let component = exports[agreed.export].component;
            let arrived = Arrived { stream, exports, agreed, early, seat };
            self.listener.components[component].send(Letter::Guest(Box::new(arrived)));
        }
    }

    fn dismiss(&mut self, now: Instant) {
        for place in &mut self.clients {
            place.take_if(|client| client.until <= now);
        }
    }
}

impl Client {
    /// Goes on as far as the socket lets it, and says how it is then. Nothing is read while there is
    /// something to be written.
    fn step(&mut self) -> Result<Agreed, Step> {
        loop {
            self.write()?;
            if let Some(agreed) = self.agreed {
                return Ok(agreed);
            }
            let (taken, step) = self.handshake.take(&self.input, &mut self.out);
            self.input.drain(..taken);
            match step {
                Step::More if taken > 0 => {}
                Step::More => self.read()?,
                Step::Agreed(agreed) => self.agreed = Some(agreed),
                Step::Close => {
                    let _ = self.write();
                    return Err(Step::Close);
                }
            }
        }
    }

    /// Reads what there is; how it ends or pauses where that is nothing.
    fn read(&mut self) -> Result<(), Step> {
        let mut input = [0; INPUT];
        match self.stream.read(&mut input) {
            Ok(0) => Err(Step::Close),
            Ok(read) => {
                self.input.extend(&input[..read]);
                Ok(())
            }
            Err(error) => Err(step_after(&error)),
        }
    }

    /// Writes what there is; how it goes on where that is not possible now.
    fn write(&mut self) -> Result<(), Step> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(0) => return Err(Step::Close),
                Ok(written) => drop(self.out.drain(..written)),
                Err(error) => return Err(step_after(&error)),
            }
        }
        Ok(())
    }
}

/// A socket that gives or takes nothing now is looked at again when it does; a signal interrupts none
/// that does not wait.
fn step_after(error: &io::Error) -> Step {
    if error.kind() == ErrorKind::WouldBlock { Step::More } else { Step::Close }
}
