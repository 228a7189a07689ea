//! The control socket: who asks reads counters, and what the hosts are set to, or has that changed.
//!
//! A thread for each connection. Counters are put together by the components between two passes; each
//! connection has its own beginning: the first answer says which objects and columns there are, and
//! each later one has the row of the time since the one before, under esxtop's names.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::Shutdown,
    os::{
        fd::AsRawFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use control::{Answer, Ask, Done, LINE_MAX, Layout, PathState, Row, Said, VERSION, What, read_ask};
use counters::Sampler;
use nix::sys::socket::{self as system, shutdown};
use scenario::Sockets;

use crate::{
    counted::Counted,
    described::describe,
    hosts::{Shared, lock},
    socket::{self, SocketFile},
};

/// Connections at a time.
const CONNECTIONS_MAX: usize = 8;
/// A connection that has asked nothing for so long makes room for another one.
const IDLE: Duration = Duration::from_secs(10);

/// A client, and where it is with the counters.
struct Talk {
    hosts: Shared,
    /// By host.
    samplers: Vec<Option<(Arc<Counted>, Sampler)>>,
}

/// A socket at which who asks is answered.
#[derive(Debug)]
pub(crate) struct Served {
    file: SocketFile,
    listener: UnixListener,
    hosts: Shared,
    seats: Seats,
}

/// Answers who asks at a socket, as long as the process lives.
pub(crate) fn serve(path: &Path, hosts: Shared) -> io::Result<Served> {
    let (file, listener) = socket::bind(path)?;
    let seats = Seats::default();
    accept(listener.try_clone()?, &hosts, &seats)?;
    Ok(Served { file, listener, hosts, seats })
}

impl Served {
    /// Makes the socket anew if somebody has removed its file; a line then.
    pub(crate) fn renew(&mut self) -> Option<String> {
        if self.file.is_there() {
            return None;
        }
        let path = self.file.path().to_path_buf();
        Some(socket::renew(&path, &Sockets::default(), |file, listener| {
            accept(listener.try_clone()?, &self.hosts, &self.seats)?;
            // Its thread sees that nobody can come there any more.
            let _ = shutdown(self.listener.as_raw_fd(), system::Shutdown::Both);
            (self.file, self.listener) = (file, listener);
            Ok(())
        }))
    }
}

/// A thread for who comes.
fn accept(listener: UnixListener, hosts: &Shared, seats: &Seats) -> io::Result<()> {
    let (hosts, seats) = (Arc::clone(hosts), Arc::clone(seats));
    let accept = move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Some(seat) = Seat::take(&seats, &stream, Instant::now()) else { continue };
            let mut talk = Talk { hosts: Arc::clone(&hosts), samplers: Vec::new() };
            let talk = move || _ = talk.answer_all(&stream, &seat);
            drop(thread::Builder::new().name("control".into()).spawn(talk));
        }
    };
    thread::Builder::new().name("control".into()).spawn(accept).map(drop)
}

/// Clients that are connected.
type Seats = Arc<Mutex<Vec<Arc<Seated>>>>;

/// One of them.
#[derive(Debug)]
struct Seated {
    stream: UnixStream,
    /// When it has asked last.
    asked: Mutex<Instant>,
}

/// Its place, free again when it goes.
struct Seat {
    seats: Seats,
    own: Arc<Seated>,
}

impl Seat {
    /// A place for a client, if need be that of one who has been idle for long.
    fn take(seats: &Seats, stream: &UnixStream, now: Instant) -> Option<Self> {
        let stream = stream.try_clone().ok()?;
        let own = Arc::new(Seated { stream, asked: Mutex::new(now) });
        let mut taken = locked(seats);
        if taken.len() >= CONNECTIONS_MAX {
            let asked = |seated: &Arc<Seated>| *locked(&seated.asked);
            let place = (0..taken.len()).min_by_key(|place| asked(&taken[*place]))?;
            if now.saturating_duration_since(asked(&taken[place])) < IDLE {
                return None;
            }
            // Its thread sees that it is over.
            let _ = taken.swap_remove(place).stream.shutdown(Shutdown::Both);
        }
        taken.push(Arc::clone(&own));
        drop(taken);
        Some(Self { seats: Arc::clone(seats), own })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        locked(&self.seats).retain(|seated| !Arc::ptr_eq(seated, &self.own));
    }
}

/// What has no half-done state.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Talk {
    /// Answers a client until it goes.
    fn answer_all(&mut self, stream: &UnixStream, seat: &Seat) -> io::Result<()> {
        let mut lines = BufReader::new(stream);
        loop {
            let mut line = Vec::new();
            if (&mut lines).take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            *locked(&seat.own.asked) = Instant::now();
            let said = read_ask(&line).and_then(|ask| self.answer(ask));
            let said = said.unwrap_or_else(Said::Error);
            let mut answer = serde_json::to_vec(&Answer { version: VERSION, said })?;
            answer.push(b'\n');
            let mut stream = stream;
            stream.write_all(&answer)?;
            if line.last() != Some(&b'\n') {
                return Ok(());
            }
        }
    }

    fn answer(&mut self, Ask { ask, host, .. }: Ask) -> Result<Said, String> {
        let done = |notes| Ok(Said::Done(Done { notes }));
        let mut hosts = lock(&self.hosts);
        match ask {
            What::Set(line) => done(hosts.set(&line, host.as_deref())?),
            What::Path(PathState { path, up }) => {
                let place = hosts.find(host.as_deref())?;
                hosts.set_path(&path, up, place)?;
                done(Vec::new())
            }
            What::State => {
                let place = hosts.find(host.as_deref())?;
                let counted = hosts.counted(place);
                drop(hosts);
                let reading = counted.read()?;
                let hosts = lock(&self.hosts);
                Ok(Said::State(Box::new(describe(&hosts, place, &counted, &reading))))
            }
            What::Vscsi(order) => {
                let counted = hosts.counted(hosts.find(host.as_deref())?);
                drop(hosts);
                counted.vscsi(&order).map(Said::Vscsi)
            }
            What::Counters => {
                let place = hosts.find(host.as_deref())?;
                let counted = hosts.counted(place);
                drop(hosts);
                self.sample(place, &counted)
            }
        }
    }

    /// The first time of a host who is who, and again when that has changed; then a row.
    fn sample(&mut self, place: usize, counted: &Arc<Counted>) -> Result<Said, String> {
        let now = Arc::new(counted.read()?.counters);
        if self.samplers.len() <= place {
            self.samplers.resize_with(place + 1, || None);
        }
        let known = self.samplers[place].as_mut().filter(|known| Arc::ptr_eq(&known.0, counted));
        let Some((_, sampler)) = known else {
            let sampler = Sampler::new(counted.inventory.clone(), counted.epoch_ms, now);
            let layout = Layout::of(&sampler.recording());
            self.samplers[place] = Some((Arc::clone(counted), sampler));
            return Ok(Said::Layout(layout));
        };
        let mut row = sampler.recording();
        sampler.sample(&now, &mut row);
        Row::of(&row).map(Said::Row).ok_or_else(|| "no time has passed since the last row".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_idle_makes_room_and_who_is_not_does_not() {
        let (seats, begin) = (Seats::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut ends = Vec::new();
        let mut sit = |seconds| {
            let (near, far) = UnixStream::pair().expect("two sockets");
            ends.push(far);
            Seat::take(&seats, &near, at(seconds))
        };
        let seated: Vec<_> = (0..CONNECTIONS_MAX).map(|_| sit(0).expect("a seat")).collect();
        *locked(&seated[0].own.asked) = at(5);
        assert!(sit(9).is_none(), "none is idle for long");
        let next = sit(10).expect("that of the second");
        assert!(sit(10).is_some_and(|_| true), "and of the third");
        assert_eq!(ends[1].read(&mut [0]).expect("it was hung up on"), 0);
        ends[0].set_nonblocking(true).expect("a socket");
        assert!(ends[0].read(&mut [0]).is_err(), "it has asked since");
        drop((seated, next));
        assert!(locked(&seats).is_empty());
    }
}
