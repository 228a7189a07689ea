//! `[storage_policy.NAME]`: limit, reservation and shares under a name, which disks are given and events change
//! for all of them at once.
//!
//! `low`, `normal` and `high` are there in any file, as Storage I/O Control v2 has them; a table of that name
//! changes what it says.

use engine::HostConfig;
use knobs::Allocation;

use crate::{
    Error, StoragePolicy,
    nouns::Names,
    reader::{Node, Table},
};

const POLICIES_MAX: usize = 10_000;

/// What a policy says.
pub(crate) const KEYS: [&str; 3] = ["shares", "limit", "reservation"];

/// Policies by name.
pub(crate) struct Policies {
    pub(crate) names: Names,
    /// Each as it is when the run begins.
    pub(crate) all: Vec<StoragePolicy>,
}

impl Policies {
    /// Reads every policy.
    pub(crate) fn read(root: &Table<'_>) -> Result<Self, Error> {
        let mut all = Self { names: Names::new("storage policy", POLICIES_MAX), all: Vec::new() };
        let tables = root.named("storage_policy")?;
        for (name, preset) in Allocation::POLICY_PRESETS {
            if tables.iter().all(|(own, _)| own != name) {
                all.add(root.node(), name, preset)?;
            }
        }
        for (name, node) in tables {
            let preset = Allocation::POLICY_PRESETS.iter().find(|(preset, _)| *preset == name);
            let was = preset.map_or_else(Allocation::default, |(_, preset)| *preset);
            all.add(&node, &name, allocation(&node.table(&KEYS)?, was)?)?;
        }
        Ok(all)
    }

    fn add(&mut self, node: &Node<'_>, name: &str, allocation: Allocation) -> Result<(), Error> {
        self.names.add(node, name, None)?;
        self.all.push(StoragePolicy { name: name.into(), allocation });
        Ok(())
    }

    /// The policy that `storage_policy` of a disk names, beside which nothing of its own stands.
    pub(crate) fn of(&self, disk: &Table<'_>) -> Result<Option<usize>, Error> {
        let Some(policy) = disk.read("storage_policy", |node| self.names.find_one(node))? else {
            return Ok(None);
        };
        match KEYS.iter().find_map(|key| disk.get(key)) {
            Some(own) => Err(own.error("the storage policy of the disk says it")),
            None => Ok(Some(policy)),
        }
    }
}

/// Whether disks on a host may have a policy.
pub(crate) fn check(host: &HostConfig) -> Result<(), String> {
    let (name, version) = (&host.name, host.version);
    if version.has_storage_policies() {
        return Ok(());
    }
    Err(format!("host `{name}` has ESXi {}; storage policies need 6.5", version.name()))
}

/// `shares`, `limit` and `reservation` of a disk; what is left out stays as it was.
pub(crate) fn allocation(table: &Table<'_>, was: Allocation) -> Result<Allocation, Error> {
    let iops = |node: &Node<'_>| node.integer32(Allocation::LIMITS);
    let limit = table.read("limit", |node| match node.is_string() {
        true => node.choice(&[("unlimited", None)]),
        false => iops(node).map(Some),
    })?;
    Ok(Allocation {
        shares: table.read("shares", shares)?.unwrap_or(was.shares),
        limit_iops: limit.unwrap_or(was.limit_iops),
        reservation_iops: table
            .read("reservation", |node| node.integer32(0..=i32::MAX as u32))?
            .unwrap_or(was.reservation_iops),
    })
}

/// A number, or Low, Normal, High [LAMW].
fn shares(node: &Node<'_>) -> Result<u32, Error> {
    if node.is_string() {
        return node.choice(&Allocation::SHARES_PRESETS);
    }
    node.integer32(Allocation::SHARES)
}
