//! The client of a daemon.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path,
    time::Duration,
};

use counters::Recording;

use crate::{Ask, Done, HostState, Said, VERSION, VscsiDisk, VscsiOrder, What, read_answer};

/// How long a daemon may take to answer: twice what it gives its components.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer that is taken: counters of some 10,000 disks.
const ANSWER_MAX: u64 = 256 << 20;
/// What is said of an answer that does not fit.
const STRANGE: &str = "the daemon speaks of what is not known here: another version?";

/// A client of a daemon.
#[derive(Debug)]
pub struct Client {
    lines: BufReader<UnixStream>,
    host: Option<String>,
}

impl Client {
    /// Connects to the control socket of a daemon; what is asked is about `host`.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect(path: &path::Path, host: Option<String>) -> Result<Self, String> {
        let stream = UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        });
        let stream = stream.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { lines: BufReader::new(stream), host })
    }

    /// Reads so many samples of a host; `wait` is called before each of them, and passes the time that
    /// it is to be of. Where what is there changes, it begins anew.
    ///
    /// # Errors
    /// What the daemon refuses, or that it is gone.
    pub fn record(&mut self, samples: usize, wait: impl Fn()) -> Result<Recording, String> {
        let Said::Layout(mut layout) = self.ask(What::Counters)? else {
            return Err(STRANGE.into());
        };
        'layout: loop {
            let (mut recording, columns) = layout.recording().ok_or(STRANGE)?;
            let mut values = vec![Vec::with_capacity(samples); columns.len()];
            for _ in 0..samples {
                wait();
                let row = match self.ask(What::Counters)? {
                    Said::Row(row) if row.values.len() == columns.len() => row,
                    Said::Layout(changed) => {
                        layout = changed;
                        continue 'layout;
                    }
                    _ => return Err(STRANGE.into()),
                };
                recording.times_ms.push(row.at_ms);
                for (column, value) in values.iter_mut().zip(row.values) {
                    column.push(value.unwrap_or(f64::NAN));
                }
            }
            for ((entity, counter), values) in columns.into_iter().zip(values) {
                recording.set_column(entity, counter, values);
            }
            return Ok(recording);
        }
    }

    /// What the host is made of and set to.
    ///
    /// # Errors
    /// As [`Client::record`].
    pub fn state(&mut self) -> Result<HostState, String> {
        match self.ask(What::State)? {
            Said::State(state) => Ok(*state),
            _ => Err(STRANGE.into()),
        }
    }

    /// Has something done; what the daemon says of it.
    ///
    /// # Errors
    /// As [`Client::record`]; nothing is changed then.
    pub fn order(&mut self, what: What) -> Result<Vec<String>, String> {
        match self.ask(what)? {
            Said::Done(Done { notes }) => Ok(notes),
            _ => Err(STRANGE.into()),
        }
    }

    /// Has done what `vscsiStats` does; what the disks have counted.
    ///
    /// # Errors
    /// As [`Client::record`]; nothing is done then.
    pub fn vscsi(&mut self, order: VscsiOrder) -> Result<Vec<VscsiDisk>, String> {
        match self.ask(What::Vscsi(order))? {
            Said::Vscsi(disks) => Ok(disks),
            _ => Err(STRANGE.into()),
        }
    }

    fn ask(&mut self, ask: What) -> Result<Said, String> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => "the daemon does not answer".into(),
            _ => format!("the daemon: {error}"),
        };
        let ask = Ask { version: VERSION, ask, host: self.host.clone() };
        let line = serde_json::to_string(&ask).map_err(|error| error.to_string())?;
        self.lines.get_mut().write_all(format!("{line}\n").as_bytes()).map_err(failed)?;
        let mut answer = Vec::new();
        let mut lines = (&mut self.lines).take(ANSWER_MAX);
        if lines.read_until(b'\n', &mut answer).map_err(failed)? == 0 {
            return Err("the daemon is gone".into());
        }
        read_answer(&answer)
    }
}
