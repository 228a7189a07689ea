//! The control socket: one JSON object a line, from either side. Who asks reads counters; the threads of
//! components put them together between two passes.
//!
//! Each connection has its own beginning: the first answer says which objects and columns there are, and
//! each later one has the row of the time since the one before, under esxtop's names.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    mem,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{Arc, mpsc::channel},
    thread,
    time::Duration,
};

use counters::{
    Controller, Counter, Entity, EntityId, HostSnapshot, Inventory, Kind, Recording, Sampler,
};
use scenario::Components;
use serde::{Deserialize, Serialize};

use crate::{
    mailbox::{Letter, Mailbox},
    socket,
};

/// The version of the protocol.
const VERSION: u32 = 1;
/// The longest line that is taken of a client.
const LINE_MAX: u64 = 4096;
/// Connections at a time.
const CONNECTIONS_MAX: usize = 8;
/// How long a component may take to answer: it is at work, or stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    version: u32,
    ask: What,
    /// Of which host; it may be left out where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Counters,
}

/// What is answered.
#[derive(Debug, Deserialize, Serialize)]
struct Answer {
    version: u32,
    #[serde(flatten)]
    said: Said,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// Why there is none, in one line.
    Error(String),
    /// Who is who, and what each value of a row is.
    Layout(Layout),
    /// A row.
    Row(Row),
}

#[derive(Debug, Deserialize, Serialize)]
struct Layout {
    host: String,
    objects: Vec<Object>,
    /// Of each column the place of its object, and the key of its counter.
    columns: Vec<(u32, String)>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Object {
    kind: String,
    name: String,
    /// Places of the objects that it belongs to.
    device: Option<u32>,
    adapter: Option<u32>,
    vm: Option<u32>,
    controller: Option<String>,
    process: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Row {
    /// Milliseconds since 1970-01-01 UTC.
    at_ms: i64,
    /// In the order of the columns; nothing where it is not known.
    values: Vec<Option<f64>>,
}

/// A host whose counters can be read.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) inventory: Inventory,
    pub(crate) components: Components,
    pub(crate) mailboxes: Vec<Arc<Mailbox>>,
    pub(crate) epoch_ms: i64,
}

/// The socket, which goes with it.
#[derive(Debug)]
pub(crate) struct Control(PathBuf);

impl Drop for Control {
    fn drop(&mut self) {
        // Somebody may have removed it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Answers who asks at a socket, as long as the process lives.
pub(crate) fn serve(path: &Path, hosts: Vec<Counted>) -> io::Result<Control> {
    let listener = socket::bind(path)?;
    let control = Control(path.to_path_buf());
    let hosts: Arc<[Counted]> = hosts.into();
    let accept = move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // One is the thread's own.
            if Arc::strong_count(&hosts) <= CONNECTIONS_MAX {
                let hosts = Arc::clone(&hosts);
                let talk = move || drop(answer_all(&stream, &hosts));
                drop(thread::Builder::new().name("control".into()).spawn(talk));
            }
        }
    };
    thread::Builder::new().name("control".into()).spawn(accept)?;
    Ok(control)
}

/// Answers a client until it goes.
fn answer_all(stream: &UnixStream, hosts: &[Counted]) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    let mut samplers: Vec<Option<Sampler>> = hosts.iter().map(|_| None).collect();
    loop {
        let mut line = String::new();
        let read = (&mut lines).take(LINE_MAX).read_line(&mut line)?;
        if read == 0 {
            return Ok(());
        }
        let said = answer(&line, hosts, &mut samplers).unwrap_or_else(Said::Error);
        let mut answer = serde_json::to_vec(&Answer { version: VERSION, said })?;
        answer.push(b'\n');
        let mut stream = stream;
        stream.write_all(&answer)?;
        if !line.ends_with('\n') {
            return Ok(());
        }
    }
}

fn answer(line: &str, hosts: &[Counted], samplers: &mut [Option<Sampler>]) -> Result<Said, String> {
    if !line.ends_with('\n') {
        return Err(format!("a line has {LINE_MAX} bytes at most"));
    }
    let ask: Ask = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if ask.version != VERSION {
        return Err(format!("version {} is not known; it is {VERSION}", ask.version));
    }
    let What::Counters = ask.ask;
    let names = || hosts.iter().map(|host| host.inventory.host.as_str()).collect::<Vec<_>>();
    let place = match &ask.host {
        Some(name) => names().iter().position(|known| known == name),
        None => (hosts.len() == 1).then_some(0),
    };
    let place = place.ok_or_else(|| format!("`host` is one of {}", names().join(", ")))?;
    let now = Arc::new(hosts[place].read()?);
    let Some(sampler) = &mut samplers[place] else {
        let host = &hosts[place];
        let sampler = Sampler::new(host.inventory.clone(), host.epoch_ms, now);
        let layout = Layout::of(&sampler.recording());
        samplers[place] = Some(sampler);
        return Ok(Said::Layout(layout));
    };
    let mut row = sampler.recording();
    sampler.sample(&now, &mut row);
    let at_ms = row.times_ms.first().copied().ok_or("no time has passed since the last row")?;
    let values = row.columns().map(|(_, _, values)| values.first().copied());
    let values = values.map(|value| value.filter(|value| value.is_finite())).collect();
    Ok(Said::Row(Row { at_ms, values }))
}

impl Counted {
    /// What the host has counted so far: of each object what its component says.
    fn read(&self) -> Result<HostSnapshot, String> {
        let mut parts = Vec::new();
        for mailbox in &self.mailboxes {
            let (sender, receiver) = channel();
            mailbox.send(Letter::Counters(sender));
            let part = receiver.recv_timeout(PATIENCE);
            parts.push(part.map_err(|_| "a component does not answer")?);
        }
        let mut whole = HostSnapshot::default();
        let Components { vdisks, devices, paths, adapters, .. } = &self.components;
        whole.at = parts.iter().map(|part| part.at).max().unwrap_or_default();
        for (id, part) in vdisks.iter().enumerate() {
            whole.vdisks.push(mem::take(&mut parts[*part].vdisks[id]));
        }
        for (id, part) in devices.iter().enumerate() {
            whole.devices.push(mem::take(&mut parts[*part].devices[id]));
        }
        for (id, part) in paths.iter().enumerate() {
            whole.paths.push(mem::take(&mut parts[*part].paths[id]));
        }
        for (id, part) in adapters.iter().enumerate() {
            whole.adapters.push(mem::take(&mut parts[*part].adapters[id]));
        }
        Ok(whole)
    }
}

impl Layout {
    fn of(recording: &Recording) -> Self {
        let place = |id: Option<EntityId>| id.map(|id| id.0);
        let objects = recording.entities().iter().map(|entity| Object {
            kind: entity.kind.name().into(),
            name: entity.name.clone(),
            device: place(entity.device),
            adapter: place(entity.adapter),
            vm: place(entity.vm),
            controller: entity.controller.map(|controller| controller.name().into()),
            process: entity.process.clone(),
        });
        let columns = recording.columns();
        Self {
            host: recording.host.clone(),
            objects: objects.collect(),
            columns: columns.map(|(id, counter, _)| (id.0, counter.info().key.into())).collect(),
        }
    }

    /// The objects, in a recording without a column; `None` where something is not known here.
    fn recording(&self) -> Option<(Recording, Vec<(EntityId, Counter)>)> {
        let count = self.objects.len() as u32;
        let place = |id: Option<u32>| id.filter(|id| *id < count).map(EntityId);
        let mut recording = Recording::new(self.host.clone());
        for object in &self.objects {
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == object.kind)?;
            let named = |name: &String| {
                Controller::ALL.into_iter().find(|controller| controller.name() == name)
            };
            recording.add_entity(Entity {
                kind,
                name: object.name.clone(),
                device: place(object.device),
                adapter: place(object.adapter),
                vm: place(object.vm),
                controller: object.controller.as_ref().and_then(named),
                process: object.process.clone(),
            });
        }
        let column = |(id, key): &(u32, String)| Some((place(Some(*id))?, Counter::from_key(key)?));
        Some((recording, self.columns.iter().map(column).collect::<Option<_>>()?))
    }
}

/// A client of a daemon.
#[derive(Debug)]
pub struct Client {
    lines: BufReader<UnixStream>,
    host: Option<String>,
}

impl Client {
    /// Connects to the control socket of a daemon.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect(path: &Path, host: Option<String>) -> Result<Self, String> {
        let stream = UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(2 * PATIENCE))?;
            Ok(stream)
        });
        let stream = stream.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { lines: BufReader::new(stream), host })
    }

    /// Reads so many samples of a host; `wait` is called before each of them, and passes the time that
    /// it is to be of.
    ///
    /// # Errors
    /// What the daemon refuses, or that it is gone.
    pub fn record(&mut self, samples: usize, wait: impl Fn()) -> Result<Recording, String> {
        let strange =
            || "the daemon speaks of what is not known here: another version?".to_string();
        let Said::Layout(layout) = self.ask()? else { return Err(strange()) };
        let (mut recording, columns) = layout.recording().ok_or_else(strange)?;
        let mut values = vec![Vec::with_capacity(samples); columns.len()];
        for _ in 0..samples {
            wait();
            let Said::Row(row) = self.ask()? else { return Err(strange()) };
            if row.values.len() != columns.len() {
                return Err(strange());
            }
            recording.times_ms.push(row.at_ms);
            for (column, value) in values.iter_mut().zip(row.values) {
                column.push(value.unwrap_or(f64::NAN));
            }
        }
        for ((entity, counter), values) in columns.into_iter().zip(values) {
            recording.set_column(entity, counter, values);
        }
        Ok(recording)
    }

    fn ask(&mut self) -> Result<Said, String> {
        let ask = Ask { version: VERSION, ask: What::Counters, host: self.host.clone() };
        let told = |error: io::Error| format!("the daemon: {error}");
        let line = serde_json::to_string(&ask).map_err(|error| error.to_string())?;
        self.lines.get_mut().write_all(format!("{line}\n").as_bytes()).map_err(told)?;
        let mut answer = String::new();
        self.lines.read_line(&mut answer).map_err(told)?;
        match serde_json::from_str::<Answer>(&answer) {
            Ok(Answer { said: Said::Error(line), .. }) => Err(format!("the daemon: {line}")),
            Ok(answer) => Ok(answer.said),
            Err(_) if answer.is_empty() => Err("the daemon is gone".into()),
            Err(error) => Err(format!("the daemon: {error}")),
        }
    }
}
