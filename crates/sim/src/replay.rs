//! A journal fed back: fresh engines get the recorded inputs in virtual time, and what comes out
//! is compared with what came out then.

use std::{fmt, io::Read};

use counters::{HostSnapshot, Time};
use engine::{Engine, Input, Output};
use scenario::Scenario;

use crate::{
    Error, Source,
    blocks::{Reader, read_up_to},
    codec,
    digest::{self, OBJECTS, Outputs},
    journal::{END, MAGIC, OUTPUTS, VERSION},
};

/// What a replay found.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayReport {
    /// The name of the scenario.
    pub scenario: String,
    /// Inputs fed.
    pub inputs: u64,
    /// Outputs compared.
    pub outputs: u64,
    /// The time of the last input.
    pub end: Time,
    /// The first difference; `None` when outputs and counters are identical bit for bit.
    pub difference: Option<Difference>,
}

/// Where a replay parts from its journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The host.
    pub host: String,
    /// What differs.
    pub what: Differing,
}

/// What differs.
#[derive(Clone, Debug, PartialEq)]
pub enum Differing {
    /// An output.
    Output {
        /// Its number on the host, from 1.
        number: u64,
        /// What came out of the replay; `None` when nothing did.
        replayed: Option<Output>,
        /// Number on the host, from 1, time and text of the input before it.
        after: Option<(u64, Time, Input)>,
    },
    /// The counters of an object at the end.
    Counters {
        /// The noun.
        object: &'static str,
        /// Its id.
        id: usize,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        match &self.what {
            Differing::Output { number, replayed, after } => {
                write!(f, "{host}: output {number} differs")?;
                if let Some((input, at, what)) = after {
                    write!(f, ", polled after input {input} at {} ns ({what:?})", at.0)?;
                }
                match replayed {
                    Some(output) => write!(f, "; the replay gave {output:?}"),
                    None => f.write_str("; the replay gave none"),
                }
            }
            Differing::Counters { object, id } => {
                write!(f, "{host}: the counters of {object} {id} differ at the end")
            }
        }
    }
}

/// Feeds a journal to fresh engines and compares what comes out, up to the first difference.
///
/// # Errors
/// When it cannot be read, is no journal, is cut or damaged, or its scenario is refused.
pub fn replay(mut journal: impl Read) -> Result<ReplayReport, Error> {
    let mut head = [0; MAGIC.len() + 1];
    let filled = read_up_to(&mut journal, &mut head)?;
    let [magic @ .., version] = head;
    if filled < head.len() || magic != *MAGIC {
        return Err(Error::NotAJournal);
    }
    if version != VERSION {
        return Err(Error::JournalVersion { version, allowed: VERSION });
    }
    let mut reader = Reader::new(journal, head.len() as u64);
    let scenario = source(&mut reader)?.scenario()?;
    let mut replay = Replay::new(&scenario, reader);
    let difference = replay.run()?;
    Ok(ReplayReport {
        scenario: scenario.name,
        inputs: replay.hosts.iter().map(|host| host.inputs).sum(),
        outputs: replay.hosts.iter().map(|host| host.outputs.count).sum(),
        end: replay.now,
        difference,
    })
}

fn source<R: Read>(reader: &mut Reader<R>) -> Result<Source, Error> {
    let (file, text) = (reader.text()?, reader.text()?);
    let includes = reader.list()?.map(|_| Ok((reader.text()?, reader.text()?)));
    let includes = includes.collect::<Result<_, Error>>()?;
    let settings = reader.list()?.map(|_| reader.text()).collect::<Result<_, Error>>()?;
    Ok(Source { file, text, includes, settings })
}

/// A replay under way.
struct Replay<R> {
    reader: Reader<R>,
    hosts: Vec<Host>,
    now: Time,
}

/// A host of it.
struct Host {
    name: String,
    engine: Engine,
    inputs: u64,
    outputs: Outputs,
    last: Option<(Time, Input)>,
}

impl<R: Read> Replay<R> {
    fn new(scenario: &Scenario, reader: Reader<R>) -> Self {
        let hosts = scenario.hosts.iter().map(|host| Host {
            name: host.config.name.clone(),
            engine: Engine::new(&host.config),
            inputs: 0,
            outputs: Outputs::default(),
            last: None,
        });
        Self { hosts: hosts.collect(), reader, now: Time::ZERO }
    }

    fn run(&mut self) -> Result<Option<Difference>, Error> {
        loop {
            let host: u64 = self.reader.number()?;
            if host == END {
                return self.finish();
            }
            let Some(host) = self.hosts.get_mut((host - 1) as usize) else {
                return Err(self.reader.damaged("a host that the scenario does not have"));
            };
            let code = self.reader.byte()?;
            if code == OUTPUTS {
                let number: u64 = self.reader.number()?;
                for _ in 0..number {
                    let mark = [self.reader.byte()?, self.reader.byte()?];
                    if let Some(difference) = host.compare(mark) {
                        return Ok(Some(difference));
                    }
                }
                continue;
            }
            let Some(input) = codec::input(code, &mut self.reader)? else {
                return Err(self.reader.damaged("an input that there is not"));
            };
            self.now = self.now + self.reader.number()?;
            host.feed(self.now, input);
        }
    }

    /// What is left over, and the counters.
    fn finish(&mut self) -> Result<Option<Difference>, Error> {
        for host in &mut self.hosts {
            let recorded = (self.reader.number()?, self.reader.fixed()?);
            if let Some(difference) = host.compare_rest(recorded) {
                return Ok(Some(difference));
            }
            let mut counters = HostSnapshot::default();
            host.engine.snapshot(Time::ZERO, &mut counters);
            let replayed = digest::of_counters(&counters);
            for (object, replayed) in OBJECTS.into_iter().zip(replayed) {
                if self.reader.number::<usize>()? != replayed.len() {
                    return Err(self.reader.damaged("objects that the scenario does not have"));
                }
                for (id, replayed) in replayed.into_iter().enumerate() {
                    if self.reader.fixed()? != replayed {
                        return Ok(Some(host.differs(Differing::Counters { object, id })));
                    }
                }
            }
        }
        self.reader.end()?;
        Ok(None)
    }
}

impl Host {
    /// A refusal is no difference: it was refused then, too, or outputs and counters tell.
    fn feed(&mut self, at: Time, input: Input) {
        self.inputs += 1;
        self.last = Some((at, input));
        let _ = self.engine.handle_input(at, input);
    }

    /// Holds the next output against the mark of the recorded one.
    fn compare(&mut self, mark: [u8; 2]) -> Option<Difference> {
        let output = self.engine.poll_output();
        output.iter().for_each(|output| self.outputs.add(output));
        if output.is_some() && self.outputs.mark() == mark {
            return None;
        }
        let number = self.outputs.count + u64::from(output.is_none());
        Some(self.output_differs(number, output))
    }

    /// Whether nothing comes out after the recorded outputs, and all of them were the same.
    fn compare_rest(&mut self, recorded: (u64, u64)) -> Option<Difference> {
        let number = self.outputs.count;
        if let Some(output) = self.engine.poll_output() {
            return Some(self.output_differs(number + 1, Some(output)));
        }
        let is_same = recorded == (number, self.outputs.digest);
        (!is_same).then(|| self.output_differs(number, None))
    }

    fn output_differs(&self, number: u64, replayed: Option<Output>) -> Difference {
        let after = self.last.map(|(at, input)| (self.inputs, at, input));
        self.differs(Differing::Output { number, replayed, after })
    }

    fn differs(&self, what: Differing) -> Difference {
        Difference { host: self.name.clone(), what }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;
    use crate::{Journal, blocks::Writer, run_watched};

    /// The payload of the journal of a short run: what is under the checksums.
    fn payload() -> Vec<u8> {
        let text = include_str!("../tests/common/small.toml").into();
        let source = Source { file: "small.toml".into(), text, ..Source::default() };
        let scenario = source.scenario().unwrap();
        let journal = Journal::new(Vec::new(), &source, 1).unwrap();
        let (outcome, journal) = run_watched(&scenario, journal);
        let journal = journal.finish(&outcome).unwrap();
        let mut reader = Reader::new(&journal[MAGIC.len() + 1..], 0);
        std::iter::from_fn(|| reader.byte().ok()).collect()
    }

    fn replay_payload(payload: &[u8]) -> Result<ReplayReport, Error> {
        let mut writer = Writer::new([MAGIC.as_slice(), &[VERSION]].concat());
        writer.pending.extend(payload);
        replay(&writer.finish().unwrap()[..])
    }

    #[test]
    fn a_payload_in_new_blocks_is_the_same_journal() {
        assert_eq!(replay_payload(&payload()).unwrap().difference, None);
    }

    proptest! {
        /// Whoever writes the checksums anew gets a report or a refusal.
        #[test]
        fn nothing_under_the_checksums_makes_it_panic(
            changes in vec((any::<Index>(), any::<u8>()), 1..4),
        ) {
            let mut payload = payload();
            for (at, byte) in &changes {
                *at.get_mut(&mut payload) = *byte;
            }
            if let Err(error) = replay_payload(&payload) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
