//! Time of servers that commands give back which their host takes back before it has begun.
//!
//! ```text
//!   a server  |== 1 ==|== 2 ==|- - 3 - -|== 4 ==|        3 is aborted: who comes next and fits in is served there,
//!                             ^  a hole ^       ^ free    and else behind 4
//! ```
//!
//! When a command ends is known as it comes, so those behind an aborted one do not move up: the time of that is not lost, but
//! goes to others. What a server has begun it does to the end. Nobody says how arrays take it (ruling).

use alloc::{collections::BTreeMap, vec::Vec};

use counters::{IoId, Time};

/// When a server works on a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) server: u32,
    pub(crate) begins: Time,
    pub(crate) ends: Time,
}

/// What is given back, of the servers of an array.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes(Vec<Turn>);

impl Holes {
    /// The turn of a command that comes to a server then and takes so long; `free` is when that has no more to do.
    #[inline(always)]
    pub(crate) fn turn(
        &mut self,
        (server, arrive, service_ns): (u32, Time, u64),
        free: &mut Time,
    ) -> Turn {
        if !self.0.is_empty()
            && let Some(turn) = self.take(server, arrive, service_ns)
        {
            return turn;
        }
        let begins = (*free).max(arrive);
        *free = begins + service_ns;
        Turn { server, begins, ends: *free }
    }

    /// A turn is given back; `free` is when its server has no more to do, and it may have that earlier then.
    pub(crate) fn give(&mut self, mut turn: Turn, free: &mut Time) {
        let is_beside = |hole: &Turn| {
            hole.server == turn.server && (hole.ends == turn.begins || turn.ends == hole.begins)
        };
        let beside: Vec<_> = self.0.iter().copied().filter(is_beside).collect();
        self.0.retain(|hole| !beside.contains(hole));
        for hole in beside {
            turn.begins = hole.begins.min(turn.begins);
            turn.ends = hole.ends.max(turn.ends);
        }
        if turn.ends == *free {
            *free = turn.begins;
        } else {
            self.0.push(turn);
        }
    }

    /// The first turn of a server that is long enough for a command which arrives then, if there is one.
    #[cold]
    fn take(&mut self, server: u32, arrive: Time, service_ns: u64) -> Option<Turn> {
        self.0.retain(|hole| hole.ends > arrive);
        let turn = |hole: &Turn| {
            let begins = hole.begins.max(arrive);
            Turn { server, begins, ends: begins + service_ns }
        };
        let fits = |hole: &Turn| hole.server == server && turn(hole).ends <= hole.ends;
        let holes = self.0.iter().enumerate().filter(|(_, hole)| fits(hole));
        let (at, _) = holes.min_by_key(|(_, hole)| hole.begins)?;
        let taken = turn(&self.0[at]);
        self.0[at].begins = taken.ends;
        if self.0[at].begins == self.0[at].ends {
            self.0.swap_remove(at);
        }
        Some(taken)
    }
}

/// The turns of commands of hosts that take some back, by host.
pub(crate) type Turns = BTreeMap<(u32, IoId), Turn>;

/// Turns from which on those that have begun are forgotten.
const TURNS: usize = 1 << 12;

/// Remembers that of a command which arrives then, where it has one.
#[cold]
pub(crate) fn note(turns: &mut Turns, of: (u32, IoId), turn: Option<Turn>, arrive: Time) {
    let Some(turn) = turn else { return };
    if turns.len() >= TURNS {
        turns.retain(|_, turn| turn.begins > arrive);
    }
    turns.insert(of, turn);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(begins: u64, ends: u64) -> Turn {
        Turn { server: 1, begins: Time(begins), ends: Time(ends) }
    }

    #[test]
    fn what_is_given_back_is_joined_and_taken_by_who_fits_in() {
        let (mut holes, mut free) = (Holes::default(), Time(60));
        for given in [turn(10, 20), turn(30, 40), turn(20, 30)] {
            holes.give(given, &mut free);
        }
        assert_eq!(holes.0, [turn(10, 40)]);
        assert_eq!(holes.take(2, Time(0), 5), None, "of another server");
        assert_eq!(holes.take(1, Time(15), 26), None, "too long for what is left");
        assert_eq!(holes.take(1, Time(15), 5), Some(turn(15, 20)));
        assert_eq!(holes.take(1, Time(16), 20), Some(turn(20, 40)));
        assert_eq!(holes.0, []);
        // The last one is no hole: there is less to do.
        holes.give(turn(40, 50), &mut free);
        holes.give(turn(50, 60), &mut free);
        assert_eq!((&*holes.0, free), (&[][..], Time(40)));
        holes.give(turn(20, 30), &mut free);
        assert_eq!(holes.take(1, Time(30), 0), None, "it is over");
    }
}
