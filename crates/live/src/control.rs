//! The control socket: who asks reads counters, and what the hosts are set to, or has that changed.
//!
//! A thread for each connection. Counters are put together by the components between two passes; each
//! connection has its own beginning: the first answer says which objects and columns there are, and
//! each later one has the row of the time since the one before, under esxtop's names.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    sync::Arc,
    thread,
};

use control::{Answer, Ask, Done, LINE_MAX, Layout, PathState, Row, Said, VERSION, What, read_ask};
use counters::Sampler;

use crate::{
    counted::Counted,
    described::describe,
    hosts::{Shared, lock},
    socket::{self, SocketFile},
};

/// Connections at a time.
const CONNECTIONS_MAX: usize = 8;

/// A client, and where it is with the counters.
struct Talk {
    hosts: Shared,
    /// By host.
    samplers: Vec<Option<(Arc<Counted>, Sampler)>>,
}

/// Answers who asks at a socket, as long as the process lives.
pub(crate) fn serve(path: &Path, hosts: Shared) -> io::Result<SocketFile> {
    let (file, listener) = socket::bind(path)?;
    let seats = Arc::new(());
    let accept = move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let seat = Arc::clone(&seats);
            // One is the thread's own.
            if Arc::strong_count(&seats) <= CONNECTIONS_MAX + 1 {
                let mut talk = Talk { hosts: Arc::clone(&hosts), samplers: Vec::new() };
                let talk = move || {
                    let _ = talk.answer_all(&stream);
                    drop(seat);
                };
                drop(thread::Builder::new().name("control".into()).spawn(talk));
            }
        }
    };
    thread::Builder::new().name("control".into()).spawn(accept)?;
    Ok(file)
}

impl Talk {
    /// Answers a client until it goes.
    fn answer_all(&mut self, stream: &UnixStream) -> io::Result<()> {
        let mut lines = BufReader::new(stream);
        loop {
            let mut line = Vec::new();
            if (&mut lines).take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
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
                let counters = counted.read()?;
                let hosts = lock(&self.hosts);
                Ok(Said::State(Box::new(describe(&hosts, place, &counted, &counters))))
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
        let now = Arc::new(counted.read()?);
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
