//! Lines of the control socket: what is asked, and what is answered.

use serde::{Deserialize, Serialize};

use crate::{HostState, Layout, Row, VscsiDisk, VscsiOrder};

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// The longest line that is taken of a client, in bytes.
pub const LINE_MAX: u64 = 4096;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The version that the client speaks.
    pub version: u32,
    /// What.
    pub ask: What,
    /// Of which host; it may be left out where there is one, and of what is for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A row of counters; at first, and after what is there has changed, a layout.
    Counters,
    /// What the host is made of and set to.
    State,
    /// That a setting be changed: a line that [`knobs::Line`] reads.
    Set(String),
    /// That a path be used or not.
    Path(PathState),
    /// What `vscsiStats` does.
    Vscsi(VscsiOrder),
}

/// A path, and whether it is to be used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PathState {
    /// Its runtime name (`vmhba1:C0:T0:L3`).
    pub path: String,
    /// Whether it is to be used.
    pub up: bool,
}

/// What is answered.
#[derive(Debug, Deserialize, Serialize)]
pub struct Answer {
    /// The version that the daemon speaks.
    pub version: u32,
    /// What it says.
    #[serde(flatten)]
    pub said: Said,
}

/// What a daemon says.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Why there is no answer, in one line.
    Error(String),
    /// Who is who, and what each value of a row is.
    Layout(Layout),
    /// A row.
    Row(Row),
    /// What the host is made of and set to.
    State(Box<HostState>),
    /// What was asked for is done.
    Done(Done),
    /// What disks have counted at their doors.
    Vscsi(Vec<VscsiDisk>),
}

/// That something is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Done {
    /// What is worth a word, a line each: that it acts later, for instance.
    pub notes: Vec<String>,
}

/// Reads a line of a client.
///
/// # Errors
/// Why it is none, in one line.
pub fn read_ask(line: &[u8]) -> Result<Ask, String> {
    if line.last() != Some(&b'\n') {
        return Err(format!("a line ends in a newline and has {LINE_MAX} bytes at most"));
    }
    let ask: Ask = serde_json::from_slice(line).map_err(|error| in_a_line(&error.to_string()))?;
    match ask.version {
        VERSION => Ok(ask),
        other => Err(format!("version {other} is not known; it is {VERSION}")),
    }
}

/// What the other side had a part in, without what would steer a terminal or end a line.
fn in_a_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Reads a line of a daemon. What it names by a place is there.
///
/// # Errors
/// What it refuses, or why the line is none, in one line.
pub fn read_answer(line: &[u8]) -> Result<Said, String> {
    let answer: Answer = serde_json::from_slice(line).map_err(|error| {
        let why = in_a_line(&error.to_string());
        format!("what answers there is no control socket of kavg's: {why}")
    })?;
    match answer.said {
        Said::Error(line) => Err(in_a_line(&line)),
        Said::State(state) if !state.is_whole() => {
            Err("it names what it does not describe: another version?".into())
        }
        Said::Vscsi(disks) if !disks.iter().all(VscsiDisk::is_whole) => {
            Err("its histograms are not those that are known here: another version?".into())
        }
        said => Ok(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Path, World};
    use proptest::prelude::*;

    fn line(said: Said) -> Vec<u8> {
        serde_json::to_vec(&Answer { version: VERSION, said }).unwrap()
    }

    #[test]
    fn what_is_named_and_not_described_is_refused() {
        let alone = HostState { name: "h".into(), ..HostState::default() };
        let path = HostState { paths: vec![Path::default()], ..alone.clone() };
        let world = HostState { worlds: vec![World::default()], ..alone.clone() };
        for (state, is_whole) in [(alone, true), (path, false), (world, false)] {
            let read = read_answer(&line(Said::State(Box::new(state))));
            assert_eq!(read.is_ok(), is_whole, "{read:?}");
        }
    }

    #[test]
    fn what_a_daemon_says_cannot_steer_a_terminal() {
        let refusal = read_answer(b"NBDMAGIC").unwrap_err();
        assert!(refusal.starts_with("what answers there is no control socket"), "{refusal}");
        let refusal = read_answer(&line(Said::Error("no\u{1b}[2J\n".into()))).unwrap_err();
        assert_eq!(refusal, "no [2J ");
    }

    proptest! {
        #[test]
        fn lines_come_back(text in "\\PC{0,40}", host in proptest::option::of("[a-z]{1,9}"), up: bool) {
            for ask in [
                What::Counters,
                What::State,
                What::Set(text.clone()),
                What::Path(PathState { path: text.clone(), up }),
            ] {
                let ask = Ask { version: VERSION, ask, host: host.clone() };
                let mut line = serde_json::to_vec(&ask).unwrap();
                line.push(b'\n');
                prop_assert_eq!(read_ask(&line), Ok(ask));
            }
        }

        #[test]
        fn hostile_bytes_are_refused(bytes: Vec<u8>, start in prop::sample::select(vec![
            "", r#"{"version":1,"ask":"#, r#"{"version":1,"layout":{"host":"h","objects":["#,
            r#"{"version":1,"state":{"#, r#"{"version":1,"row":{"at_ms":"#,
        ])) {
            let line = [start.as_bytes(), &bytes, b"\n"].concat();
            for refusal in [read_ask(&line).err(), read_answer(&line).err()].iter().flatten() {
                prop_assert!(!refusal.contains('\n'), "{}", refusal);
            }
        }
    }
}
