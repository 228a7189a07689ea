//! `[storage_policy.NAME]`: limit, reservation and shares under a name, which disks are given and events change
//! for all of them at once.
//!
//! `low`, `normal` and `high` are there in any file, as Storage I/O Control v2 has them; a table of that name
//! changes what it says.

use engine::HostConfig;
use knobs::{Allocation, NO_POLICY, list};

use crate::{
    Error, StoragePolicy,
    names::LENGTH_MAX,
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
        let names = Names::new("storage policy", POLICIES_MAX).checked(check_name);
        let mut all = Self { names, all: Vec::new() };
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
        // Lines take a name in any case, and vCenter has one of each [SPBM].
        let alike = self.all.iter().find(|known| known.name.eq_ignore_ascii_case(name));
        if let Some(alike) = alike.filter(|alike| alike.name != name) {
            let both = format!(
                "`{}` and `{name}` are one name of a storage policy: they differ in case alone",
                alike.name
            );
            return Err(node.error(&both));
        }
        self.names.add(node, name, None)?;
        self.all.push(StoragePolicy { name: name.into(), allocation });
        Ok(())
    }

    /// The policy that `storage_policy` of a disk names, beside which nothing of its own stands; or that it has
    /// none.
    pub(crate) fn of(&self, disk: &Table<'_>) -> Result<Option<Option<usize>>, Error> {
        let policy = disk.read("storage_policy", |node| match node.string()? {
            none if none.eq_ignore_ascii_case(NO_POLICY) => Ok(None),
            _ => self.names.find_one(node).map(Some),
        })?;
        match KEYS.iter().find_map(|key| disk.get(key)).filter(|_| policy.flatten().is_some()) {
            Some(own) => Err(own.error("the storage policy of the disk says it")),
            None => Ok(policy),
        }
    }
}

/// What a line may have around a name.
const QUOTES: [char; 2] = ['\'', '"'];

/// Only the length of a policy's name is limited [SPBM]. A line ends before a colon, and a terminal shows it.
fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| !c.is_control() && c != ':';
    let length = name.chars().count();
    if (1..=LENGTH_MAX).contains(&length)
        && name.chars().all(is_plain)
        && name.trim() == name
        && !name.eq_ignore_ascii_case(NO_POLICY)
        && !name.starts_with(QUOTES)
    {
        return Ok(());
    }
    Err(format!(
        "`{name}` is no name of a storage policy, which has 1 to {LENGTH_MAX} characters, no colon, no blank at an end, \
         no quote at its beginning, and is not `{NO_POLICY}` in any case"
    ))
}

/// Refuses a table that sets nothing.
pub(crate) fn check_sets(table: &Table<'_>, keys: &[&str]) -> Result<(), Error> {
    match keys.iter().any(|key| table.get(key).is_some()) {
        true => Ok(()),
        false => Err(table.node().error(&format!(
            "it sets nothing; it has at least one of {}",
            list(keys.iter().copied())
        ))),
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
        true if node.string()? == "unlimited" => Ok(None),
        true => Err(node.error("it is a number of I/Os a second, or \"unlimited\"")),
        // None, as lines of a host say it.
        false if node.is_minus_one() => Ok(None),
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
