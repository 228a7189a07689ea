//! What a replay of a journal found: how far it goes, what it lacks, and where it differs.

use std::fmt;

use counters::Time;
use engine::{Input, Output};

use crate::Gap;

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The name that the journal was given.
    pub name: String,
    /// Segments fed.
    pub segments: u64,
    /// Inputs fed.
    pub inputs: u64,
    /// Outputs compared.
    pub outputs: u64,
    /// The time at which the first segment that was fed begins.
    pub begin: Time,
    /// The time of the last input.
    pub end: Time,
    /// Where the last file ends, in bytes, when that is before the end of the journal: whoever wrote it
    /// was killed. What was compared is all that the file has whole.
    pub cut: Option<u64>,
    /// The wall-clock time of the journal's time 0, of real time: milliseconds since 1970-01-01 UTC.
    pub epoch_ms: Option<u64>,
    /// What is missing after what was compared, or in it, in the order of time.
    pub holes: Vec<Hole>,
    /// The first difference; `None` when outputs and counters are identical bit for bit.
    pub difference: Option<Difference>,
}

/// What a journal, or what was fed of it, does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hole {
    /// Inputs that were not recorded.
    Gap(Gap),
    /// What lies between two of the segments.
    Segments {
        /// The time of the last input before it.
        from: Time,
        /// That before the segment with which it goes on.
        to: Time,
    },
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
    /// What came out after an input.
    Outputs {
        /// The number of the first of them on the host, from 1.
        first: u64,
        /// How many the journal has.
        recorded: u64,
        /// How many came out of the replay, up to one more than that, and the last of them.
        replayed: (u64, Option<Output>),
        /// Number on the host, from 1, time and text of the input.
        after: Option<(u64, Time, Input)>,
    },
    /// The counters of an object at the end.
    Counters {
        /// The noun.
        object: &'static str,
        /// Its id.
        id: usize,
    },
    /// The engine at the beginning of a segment that goes on where another one ended.
    State {
        /// The number of the segment.
        segment: u64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        match &self.what {
            Differing::Outputs { first, recorded, replayed, after } => {
                write!(f, "{host}: what comes out from output {first} on differs")?;
                if let Some((input, at, what)) = after {
                    write!(f, ", after input {input} at {} ns ({what:?})", at.0)?;
                }
                write!(f, "; recorded were {recorded}, the replay gave {}", replayed.0)?;
                replayed.1.map_or(Ok(()), |last| write!(f, ", the last of them {last:?}"))
            }
            Differing::Counters { object, id } => {
                write!(f, "{host}: the counters of {object} {id} differ at the end")
            }
            Differing::State { segment } => {
                write!(f, "{host}: the engine at the beginning of segment {segment} differs")
            }
        }
    }
}
