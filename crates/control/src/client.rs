//! The client of a daemon.

use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
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
    /// That no daemon listens there, or what the system says.
    pub fn connect(path: &path::Path, host: Option<String>) -> Result<Self, String> {
        let stream = UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        });
        let stream = stream.map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                let path = path.display();
                format!(
                    "{path}: no daemon listens there; `kavg serve HOST.toml --control {path}` does"
                )
            }
            _ => format!("{}: {error}", path.display()),
        })?;
        Ok(Self { lines: BufReader::new(stream), host })
    }

    /// Reads so many samples of a host; `wait` is called before each of them, and passes the time that
    /// it is to be of. Where what is there changes, it begins anew.
    ///
    /// # Errors
    /// What the daemon refuses, or that it is gone.
    pub fn record(&mut self, samples: usize, wait: impl Fn()) -> Result<Recording, String> {
        let mut all = Recording::default();
        let mut values = Vec::new();
        self.each_sample(samples, wait, |sample| -> Result<(), String> {
            if sample.is_empty() {
                all = sample.clone();
                values = vec![Vec::with_capacity(samples); all.columns().count()];
            }
            all.times_ms.extend(&sample.times_ms);
            for (all, (_, _, own)) in values.iter_mut().zip(sample.columns()) {
                all.extend(own);
            }
            Ok(())
        })?;
        let columns: Vec<_> = all.columns().map(|(entity, counter, _)| (entity, counter)).collect();
        for ((entity, counter), values) in columns.into_iter().zip(values) {
            all.set_column(entity, counter, values);
        }
        Ok(all)
    }

    /// Reads samples as [`Client::record`] does, and hands on each as it comes: first a recording that has
    /// the columns and no sample, and again where what is there changes, then recordings of one.
    ///
    /// # Errors
    /// Those of [`Client::record`], and of `take`.
    pub fn each_sample<E: From<String>>(
        &mut self,
        samples: usize,
        wait: impl Fn(),
        mut take: impl FnMut(&Recording) -> Result<(), E>,
    ) -> Result<(), E> {
        let strange = || String::from(STRANGE);
        let Said::Layout(mut layout) = self.ask(What::Counters)? else {
            return Err(strange().into());
        };
        'layout: loop {
            let (mut begun, columns) = layout.recording().ok_or_else(strange)?;
            for &(entity, counter) in &columns {
                begun.set_column(entity, counter, Vec::new());
            }
            take(&begun)?;
            for _ in 0..samples {
                wait();
                let row = match self.ask(What::Counters)? {
                    Said::Row(row) if row.values.len() == columns.len() => row,
                    Said::Layout(changed) => {
                        layout = changed;
                        continue 'layout;
                    }
                    _ => return Err(strange().into()),
                };
                let mut sample = begun.clone();
                sample.times_ms.push(row.at_ms);
                for (&(entity, counter), value) in columns.iter().zip(row.values) {
                    sample.set_column(entity, counter, vec![value.unwrap_or(f64::NAN)]);
                }
                take(&sample)?;
            }
            return Ok(());
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
