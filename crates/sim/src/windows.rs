//! Hosts that share arrays, apart from each other for as long as a round trip.
//!
//! ```text
//!   window            |  round trip  |
//!   host 1        ----+--c---c-------+--a-->     c  a command: a letter to its array
//!   host 2        ----+-----c-----c--+---a->     a  its answer: a round trip later at the earliest
//!   array             |              ^ reads all letters, in the order of the one event list
//! ```
//!
//! What a host does is seen by another through an array only, or through a switch before that, and the answer to a command takes a round
//! trip at least. So hosts may run through a window of that length one after the other, or at once on
//! several threads: then their letters are put in order, by time and key, and the arrays read them. That is the
//! order in which one list for all would have had them, so a run is the same bit for bit. It is also
//! quicker, because what a host needs stays near the core while its events happen.

use std::{sync::Mutex, thread};

use counters::Time;
use scenario::Scenario;

use crate::{component::Component, machine::Machine};

/// Groups of hosts from which on they run apart: fewer have what they need near the core anyway.
const GROUPS_MIN: usize = 16;
/// Letters of the last window from which on it pays to start threads for the next.
const LETTERS_MIN: usize = 2_000;
/// Shares of the hosts for each thread: whoever has done with one takes the next.
const SHARES: usize = 4;

/// Hosts on their way from window to window.
pub(crate) struct Windows {
    threads: usize,
    /// By machine, when its next event happens.
    next: Vec<Time>,
    /// The order of the letters of a window.
    order: Vec<Turn>,
}

/// A letter in the order of all.
struct Turn {
    /// When it was sent, because of what, and in the low half of the last its place among those of its
    /// machine: one number, so that sorting does not branch.
    order: u128,
    /// Its machine.
    from: u32,
}

impl Windows {
    /// How long hosts that share these arrays can run apart; `None` where one answers at once, too few
    /// share them, or they share a record as well.
    pub(crate) fn length_ns(scenario: &Scenario, groups: &[Vec<usize>]) -> Option<u64> {
        let targets = groups.iter().flatten().flat_map(|host| &scenario.hosts[*host].targets);
        let round_trips = targets.map(|t| scenario.arrays[t.array].config.round_trip_ns);
        let is_apart = groups.len() >= GROUPS_MIN && !scenario.has_io_control();
        round_trips.min().filter(|round_trip| *round_trip > 0 && is_apart)
    }

    /// Before the first window of a component.
    pub(crate) fn new(component: &Component<'_, ()>, threads: usize) -> Self {
        let next = vec![Time::ZERO; component.machines.len()];
        Self { threads, next, order: Vec::new() }
    }

    /// Lets everything happen that happens before `limit`.
    pub(crate) fn run_until(&mut self, component: &mut Component<'_, ()>, limit: Time) {
        while let Some(from) = self.next.iter().copied().min().filter(|from| *from < limit) {
            let end = limit.min(from + component.apart_ns);
            self.run_hosts(&mut component.machines, end);
            self.carry(component);
        }
    }

    /// Hosts run through the window that ends at `end`.
    fn run_hosts(&mut self, machines: &mut [Machine<'_, ()>], end: Time) {
        let run = |machines: &mut [Machine<'_, ()>], next: &mut [Time]| {
            let machines = machines.iter_mut().zip(next).filter(|(_, next)| **next < end);
            machines.for_each(|(machine, next)| *next = machine.run_apart(end));
        };
        if self.threads == 1 || self.order.len() < LETTERS_MIN {
            return run(machines, &mut self.next);
        }
        let share = machines.len().div_ceil(SHARES * self.threads);
        let shares = Mutex::new(machines.chunks_mut(share).zip(self.next.chunks_mut(share)));
        let take = || shares.lock().expect("a thread that fails ends the run").next();
        let work = || {
            while let Some((machines, next)) = take() {
                run(machines, next);
            }
        };
        thread::scope(|scope| {
            (1..self.threads).for_each(|_| _ = scope.spawn(work));
            work();
        });
    }

    /// Lets arrays read the letters of a window in their order, and answer.
    fn carry(&mut self, component: &mut Component<'_, ()>) {
        let Component { machines, arrays, switches, .. } = component;
        self.order.clear();
        for (from, machine) in (0..).zip(&*machines) {
            let turns = (0_u32..).zip(&machine.outside.post.letters).map(|(place, letter)| {
                let (at, key) = letter.sent;
                let rank = key.rank(machine.hosts[key.host()].index) | u64::from(place);
                Turn { order: u128::from(at.0) << u64::BITS | u128::from(rank), from }
            });
            self.order.extend(turns);
        }
        self.order.sort_unstable_by_key(|turn| turn.order);
        for turn in &self.order {
            let (from, place) = (turn.from as usize, turn.order as u32 as usize);
            let post = &mut machines[from].outside.post;
            if let Some(answer) = post.read(place, (&mut arrays.all, switches)) {
                let next = &mut self.next[from];
                *next = answer.0.min(*next);
                post.answers.push(answer);
            }
        }
        machines.iter_mut().for_each(|machine| machine.outside.post.clear());
    }
}
