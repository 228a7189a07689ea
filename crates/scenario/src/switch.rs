//! `[switch.NAME]`: what paths have in common between hosts and arrays.
//!
//! ```text
//!   adapter --> its switch ==== link ====> the switch of the array's port --> port
//! ```
//!
//! The `link` leads from a switch to others: what stays on one switch does not cross it. A switch that fails takes all
//! paths with it that go through it, at either end.

use model::InitiatorConfig;

use crate::{
    Error, Switch,
    nouns::Names,
    reader::{Node, Table},
    units,
};

/// More switches than any fabric has.
const SWITCHES_MAX: usize = 1_000;

/// Switches by name.
pub(crate) struct Switches {
    pub(crate) all: Vec<Switch>,
    pub(crate) names: Names,
}

impl Switches {
    /// Reads every switch.
    pub(crate) fn read(root: &Table<'_>) -> Result<Self, Error> {
        let mut all = Self { all: Vec::new(), names: Names::new("switch", SWITCHES_MAX) };
        for (name, node) in root.named("switch")? {
            all.names.add(&node, &name, None)?;
            let table = node.table(&["link"])?;
            let link_bytes_per_sec = table.read("link", |node| node.parsed(units::bandwidth))?;
            all.all.push(Switch { name, link_bytes_per_sec });
        }
        Ok(all)
    }

    /// The switch that a table's `key` names, where it has it.
    pub(crate) fn of(&self, table: &Table<'_>, key: &str) -> Result<Option<usize>, Error> {
        table.read(key, |node| self.names.find_one(node))
    }

    /// The switches of the ports of an array, of which there are so many, in turn.
    pub(crate) fn of_ports(&self, array: &Table<'_>, ports: usize) -> Result<Vec<usize>, Error> {
        let elements = array.list("switch");
        if let Some(more) = elements.get(ports) {
            let message = format!("it has more switches than `ports`, {ports}");
            return Err(more.error(&message));
        }
        elements.iter().map(|node: &Node<'_>| self.names.find_one(node)).collect()
    }

    /// Of each, whether its link has a limit.
    pub(crate) fn limited(&self) -> Vec<bool> {
        self.all.iter().map(|switch| switch.link_bytes_per_sec.is_some()).collect()
    }
}

/// Whether commands of a host cross the link of a switch.
pub(crate) fn crossed(initiator: &InitiatorConfig) -> impl Iterator<Item = usize> {
    let crossed = initiator.nexuses.iter().flat_map(|nexus| nexus.crosses);
    crossed.flatten().map(|switch| switch as usize)
}
