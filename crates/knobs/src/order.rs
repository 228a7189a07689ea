//! What a line of esxcli orders of a host at work: to set something, to show something, or to take a
//! path into or out of use.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::str::FromStr;
use counters::sorted::sort;

use crate::{
    Line, Query, Refusal,
    command::{Call, Command, Does, SETTERS},
    esxcli,
    line::is_esxcli,
    lists::SHOWERS,
    names::unknown,
    powercli,
};

/// What a line of esxcli orders.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// To show something.
    Show(Query),
    /// To set something, by a line that [`Line`] reads.
    Set(String),
    /// `storage core path set`: to take a path into use or out of it.
    Path {
        /// Its runtime name (`vmhba1:C0:T0:L3`).
        path: String,
        /// Whether it is to be used.
        up: bool,
    },
}

/// States of a path, and whether it is used in them (reference section 6.1).
const STATES: [(&str, bool); 2] = [("active", true), ("off", false)];

static PATH: Command = Command {
    words: "storage core path set",
    options: &[('p', "path"), ('s', "state")],
    flag: None,
    does: Does::Path,
};

/// It is printed and not read: no host of kavg has a preferred path ("Managing Path Policies", vSphere
/// Command-Line Interface Concepts and Examples).
static FIXED: Command = Command {
    words: "storage nmp psp fixed deviceconfig set",
    options: &[('d', "device"), ('p', "path")],
    flag: None,
    does: Does::Path,
};

/// The line that has a device under Fixed prefer a path: for a host's shell, and for PowerCLI.
#[must_use]
pub fn preferred_path(device: &str, path: &str) -> [String; 2] {
    let call = Call::new(&FIXED).with('d', device).with('p', path);
    [format!("esxcli {}", esxcli::print(&call)), powercli::print(&call)]
}

impl Order {
    /// The commands that begin with these words, of which there may be none, each with its options.
    #[must_use]
    pub fn commands(words: &str) -> Vec<String> {
        let is_wanted = |command: &&Command| {
            let rest = command.words.strip_prefix(words);
            words.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let shown = |command: &Command| {
            let options = command.options.iter().map(|(short, _)| {
                let value = if command.flag == Some(*short) { "" } else { " …" };
                format!(" [{}{value}]", command.name(*short))
            });
            format!("{}{}", command.words, options.collect::<String>())
        };
        let mut all: Vec<_> = all().into_iter().filter(is_wanted).map(shown).collect();
        sort(&mut all);
        all
    }

    /// Whether these are all the words of a command.
    #[must_use]
    pub fn is_command(words: &str) -> bool {
        all().iter().any(|command| command.words == words)
    }
}

fn all() -> Vec<&'static Command> {
    [&SHOWERS[..], &SETTERS, &[&PATH]].concat()
}

impl FromStr for Order {
    type Err = Refusal;

    /// Reads a line of esxcli, with `esxcli` in front or not. What is no command of esxcli that shows
    /// something is a line that sets something, in any of the forms that [`Line`] has.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let call = match esxcli::parse(text, &all()) {
            Ok(call) => call,
            // PowerCLI's, a guest's, or with a name in front.
            Err(refusal) => {
                return match text.parse::<Line>() {
                    Ok(_) => Ok(Self::Set(text.to_string())),
                    Err(of_line) => Err(if is_esxcli(text) { refusal } else { of_line }),
                };
            }
        };
        match call.command.does {
            Does::Show(query) => query(&call).map(Self::Show),
            Does::Path => path(&call),
            Does::Set { .. } => call.settings().map(|_| Self::Set(text.to_string())),
        }
    }
}

fn path(call: &Call) -> Result<Order, Refusal> {
    let (path, state) = (call.need('p')?, call.need('s')?);
    let known = STATES.iter().find(|(name, _)| *name == state);
    let (_, up) = known.ok_or_else(|| unknown("state", state, STATES.map(|(name, _)| name)))?;
    Ok(Order::Path { path: path.into(), up: *up })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Advanced;

    #[test]
    fn a_preferred_path_is_a_line_for_each_of_two_tools() {
        let expected = [
            "esxcli storage nmp psp fixed deviceconfig set -d naa.1 -p vmhba3:C0:T1:L1",
            "$esxcli.storage.nmp.psp.fixed.deviceconfig.set.Invoke(@{device='naa.1'; path='vmhba3:C0:T1:L1'})",
        ];
        assert_eq!(preferred_path("naa.1", "vmhba3:C0:T1:L1"), expected);
    }

    #[test]
    fn what_is_ordered_is_told_apart() {
        let device = || Some("naa.1".to_string());
        let option = Some(Advanced::SchedCostUnit);
        let table = [
            ("esxcli storage core device list", Order::Show(Query::Devices { device: None })),
            (
                "storage core device stats get --device=naa.1",
                Order::Show(Query::DeviceStats { device: device() }),
            ),
            (
                "system settings advanced list -o /Disk/SchedCostUnit -d",
                Order::Show(Query::Options { option, changed: true }),
            ),
            (
                "storage core device set -d naa.1 -O 64",
                Order::Set("storage core device set -d naa.1 -O 64".into()),
            ),
            ("vm: DiskLimitIOPerSecond 500", Order::Set("vm: DiskLimitIOPerSecond 500".into())),
            (
                "storage core path set --path vmhba1:C0:T0:L0 --state off",
                Order::Path { path: "vmhba1:C0:T0:L0".into(), up: false },
            ),
        ];
        for (line, order) in table {
            assert_eq!(line.parse(), Ok(order), "{line}");
        }
    }

    #[test]
    fn what_is_shown_is_printed_as_it_is_read() {
        let queries = [
            Query::Devices { device: Some("it's".into()) },
            Query::Adapters,
            Query::Paths { device: None, path: Some("vmhba1:C0:T0:L0".into()) },
            Query::RoundRobin { device: "naa.1".into() },
            Query::Options { option: None, changed: true },
        ];
        for query in queries {
            assert_eq!(query.esxcli().parse(), Ok(Order::Show(query)));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_a_line() {
        let table = [
            (
                "storage core device lst",
                "there is no command `storage core device lst`; did you mean `storage core device list`? `kavg esxcli` \
                 alone lists them",
            ),
            ("storage core adapter list -d x", "Invalid option -d for `storage core adapter list`"),
            ("storage core path set -p x -s dead", "there is no state `dead`; it is one of"),
            ("storage core path set -p x", "Missing required parameter -s|--state"),
            ("vm: DiskLimitIOPerSecond 0", "`0` is no limit; it is -1 (none) or 1 to"),
            ("host: storage core device lst", "there is no command `storage core device lst`"),
            (
                "Get-VM v | Set-SpbmEntityConfiguration -StoragePolicy low",
                "Set-SpbmEntityConfiguration: of",
            ),
            (
                "$esxcli.storage.core.device.lst.Invoke(@{})",
                "there is no command `storage core device lst`",
            ),
            ("vmw_pvscsi.cmd_per_lun=0", "cmd_per_lun `0` is out of range"),
            ("system module parameters list -m x", "there is no module `x`"),
            ("storage core device set -d naa.1", "nothing is set"),
        ];
        for (line, expected) in table {
            let refusal = line.parse::<Order>().expect_err(line).to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
    }
}
