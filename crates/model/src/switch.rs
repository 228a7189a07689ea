//! Links by which switches reach each other (ISLs): commands of all hosts share one whose paths lead over it.
//!
//! ```text
//!   host --> its port's link --> switch ==> link to other switches ==> switch --> array's fabric
//!   host --> its port's link --> '
//! ```
//!
//! Such a link is beside those of host and array and not between them, as they are to each other: data cross all of
//! them at once, frame by frame, so of the waits the longest one is what counts.

use alloc::{vec, vec::Vec};

use counters::Time;

use crate::{
    array::PolicyWait,
    command::{Carried, Command},
    fabric::{Link, is_write},
};

/// The links of switches at work.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    /// To hosts and to arrays; `None` is unlimited.
    links: Vec<Option<[Link; 2]>>,
    /// By host and path.
    waits: Vec<Vec<PolicyWait>>,
}

impl Switches {
    /// Idle links of so many bytes a second each way, above 0, before hosts that have so many paths each; `None` is
    /// unlimited.
    #[must_use]
    pub fn new(rates: &[Option<u64>], paths: impl IntoIterator<Item = usize>) -> Self {
        let links = rates.iter().map(|rate| rate.map(Link::pair)).collect();
        let waits = paths.into_iter().map(|paths| vec![PolicyWait::default(); paths]);
        Self { links, waits: waits.collect() }
    }

    /// Lets a command that is sent at `now`, which never goes back from one call to the next, cross the links that its
    /// way leads over: what it carries then.
    ///
    /// # Panics
    /// When there is no such switch, host or path.
    #[must_use]
    pub fn cross(&mut self, now: Time, command: &Command, carried: Carried) -> Carried {
        let Command { host, path, op, bytes, .. } = *command;
        let moved = if op.moves_data() { bytes } else { 0 };
        let direction = usize::from(is_write(op));
        let crossed = carried.crosses.into_iter().flatten().filter_map(|switch| {
            let links = self.links[switch as usize].as_mut()?;
            Some(links[direction].send(now, moved))
        });
        let Some(link_ns) = crossed.max() else { return carried };
        let waited = &mut self.waits[host as usize][path as usize];
        waited.commands += 1;
        waited.wait_ns += link_ns;
        Carried { link_ns: carried.link_ns.max(link_ns), ..carried }
    }

    /// Commands by each path of a host that crossed such links so far, and how long they were on them, waiting or
    /// moving: where two are crossed at once, on the one that took longer.
    ///
    /// None where there are no switches.
    #[must_use]
    pub fn waits(&self, host: usize) -> &[PolicyWait] {
        self.waits.get(host).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::Op;

    /// 1 and 2 GB/s: a microsecond for 1,000 bytes, and half of one.
    #[test]
    fn hosts_share_each_direction_of_a_link_and_of_two_the_slower_counts() {
        let rates = [Some(1_000_000_000), None, Some(2_000_000_000)];
        let mut switches = Switches::new(&rates, [1, 2]);
        let mut cross = |at, (host, path), op, crosses| {
            let command = Command { volume: 0, host, path, op, block: 0, bytes: 1_000 };
            let carried = Carried { crosses, link_ns: 700, ..Carried::default() };
            switches.cross(Time(at), &command, carried).link_ns
        };
        for (at, by, op, crosses, ns) in [
            (0, (0, 0), Op::Read, [Some(0), None], 1_000),
            (0, (1, 1), Op::Read, [Some(0), None], 2_000),
            (0, (1, 0), Op::Write, [Some(0), None], 1_000),
            // Its own link takes longer than the switch's.
            (0, (0, 0), Op::Read, [Some(2), None], 700),
            (0, (0, 0), Op::Read, [Some(1), None], 700),
            (0, (0, 0), Op::Read, [None, None], 700),
            (500, (0, 0), Op::Read, [Some(2), Some(0)], 2_500),
            (500, (0, 0), Op::Flush, [Some(0), None], 2_500),
            (4_000, (1, 0), Op::Read, [Some(2), Some(0)], 1_000),
        ] {
            assert_eq!(cross(at, by, op, crosses), ns, "{at} {by:?} {op:?} {crosses:?}");
        }
        let waited = |commands, wait_ns| PolicyWait { commands, wait_ns };
        assert_eq!(switches.waits(0), [waited(4, 6_500)]);
        assert_eq!(switches.waits(1), [waited(2, 2_000), waited(1, 2_000)]);
    }
}
