//! How a segment begins: whose journal it is a part of, the hosts, and where it is not the first, the
//! engines as they are at that moment. So it needs none of those before it.
//!
//! | what | |
//! |---|---|
//! | the name of the journal, and the wall-clock time of its time 0, of real time alone | in milliseconds since 1970 |
//! | the number of the segment | 0 is the first |
//! | the time of the last input before it | not in the first |
//! | until the frame ends, a host as it was built, with the parts that came since | |
//! | its outputs so far: their number and their digest | not in the first |
//! | its engine | not in the first |

use std::sync::Arc;

use counters::Time;
use engine::{
    Engine, HostConfig,
    codec::{Bytes, Damage, Field, Put},
};

use crate::{Error, digest::Outputs, topology};

/// What all segments of a journal have in common, as it stands in them.
#[derive(Debug)]
pub(crate) struct Journalled {
    name: String,
    epoch_ms: Option<u64>,
    hosts: Vec<HostConfig>,
}

impl Journalled {
    pub(crate) fn new<'a>(
        name: &str,
        epoch_ms: Option<u64>,
        hosts: impl IntoIterator<Item = &'a HostConfig>,
    ) -> Self {
        Self { name: name.into(), epoch_ms, hosts: hosts.into_iter().cloned().collect() }
    }

    /// The same journal of hosts that are made of these from now on.
    pub(crate) fn of_hosts<'a>(&self, hosts: impl IntoIterator<Item = &'a HostConfig>) -> Self {
        Self::new(&self.name, self.epoch_ms, hosts)
    }

    pub(crate) const fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Whether whoever reads it can build its hosts.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let checked = self.hosts.iter().try_for_each(topology::check);
        checked.map_err(|Damage(what)| Error::Host(what))
    }

    /// Appends what the first segment begins with.
    pub(crate) fn put_first(&self, to: &mut impl Put) {
        self.put_head(0, to);
        self.hosts.iter().for_each(|host| host.put(to));
    }

    fn put_head(&self, number: u64, to: &mut impl Put) {
        to.put_text(&self.name);
        self.epoch_ms.put(to);
        to.put_number(number);
    }
}

/// Another one: what whoever writes it is handed.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) of: Arc<Journalled>,
    pub(crate) number: u64,
    /// The time of the last input before it.
    pub(crate) at: Time,
    /// Of each host.
    pub(crate) states: Vec<(Outputs, Engine)>,
}

impl Next {
    /// Appends what it begins with.
    pub(crate) fn put(&self, to: &mut impl Put) {
        self.of.put_head(self.number, to);
        self.at.put(to);
        for (host, (outputs, engine)) in self.of.hosts.iter().zip(&self.states) {
            host.put(to);
            outputs.put(to);
            engine.put(to);
        }
    }
}

/// The beginning of a segment as it is read.
pub(crate) struct Beginning {
    pub(crate) name: String,
    pub(crate) epoch_ms: Option<u64>,
    pub(crate) number: u64,
    pub(crate) at: Time,
    pub(crate) hosts: Vec<Begun>,
}

/// A host of it.
pub(crate) struct Begun {
    pub(crate) config: HostConfig,
    pub(crate) outputs: Outputs,
    pub(crate) engine: Engine,
    /// The bytes of the engine; none in the first segment.
    pub(crate) state: Vec<u8>,
}

impl Beginning {
    pub(crate) fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        let (name, epoch_ms, number) = (from.text()?, Field::take(from)?, from.number()?);
        let is_first = number == 0;
        let at = if is_first { Time::ZERO } else { Field::take(from)? };
        let mut hosts = Vec::new();
        while !from.is_empty() {
            let config = HostConfig::take(from)?;
            topology::check(&config)?;
            hosts.push(if is_first { Begun::new(config) } else { Begun::take(config, from)? });
        }
        Ok(Self { name, epoch_ms, number, at, hosts })
    }
}

impl Begun {
    fn new(config: HostConfig) -> Self {
        let engine = Engine::new(&config);
        Self { config, outputs: Outputs::default(), engine, state: Vec::new() }
    }

    fn take(config: HostConfig, from: &mut Bytes<'_>) -> Result<Self, Damage> {
        let outputs = Outputs::take(from)?;
        let state = from.0;
        let engine = Engine::take(from)?;
        if let Some(least) = engine.least_transfer() {
            topology::check_transfer(least)?;
        }
        let state = state[..state.len() - from.0.len()].to_vec();
        Ok(Self { config, outputs, engine, state })
    }
}
