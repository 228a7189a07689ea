//! `mclock`: reservations first, then shares, limits always.
//!
//! Tags are real times [mClock; reference `array-and-control.md` section 4]: a share tag is one
//! step of cost / shares after the one before it, and never before the command's arrival. A
//! client that is served slower than its shares would allow therefore has its arrival times as
//! tags, and the order is that of arrival: this is how a noisy neighbour on a slow device gets
//! its way [S4; section 8.5].

use counters::Time;

use super::Waiting;
use crate::world::World;

/// First whoever is behind its reservation, then the lowest share tag; in each the lower id among
/// equals, and nobody whose limit holds it.
pub(super) fn choose(backlog: &[Waiting], worlds: &[World], now: Time) -> Option<usize> {
    let world = |waiting: &Waiting| &worlds[waiting.world.index()];
    let is_behind = |world: &World| world.may_go(now) && world.is_behind(now);
    let behind = backlog.iter().enumerate().filter(|(_, waiting)| is_behind(world(waiting)));
    let first = behind.min_by_key(|(_, waiting)| (world(waiting).tags.reservation, waiting.world));
    let first = first.map(|(at, _)| at);
    first.or_else(|| by_share(backlog, |waiting| world(waiting).may_go(now)))
}

/// The lowest share tag of those who may go, and the lower id among equals.
#[inline(always)]
pub(super) fn by_share(backlog: &[Waiting], may_go: impl Fn(&Waiting) -> bool) -> Option<usize> {
    let mut first: Option<(usize, Waiting)> = None;
    for (at, waiting) in backlog.iter().enumerate() {
        let is_first = first.is_none_or(|(_, first)| {
            waiting.share < first.share
                || waiting.share == first.share && waiting.world < first.world
        });
        if is_first && may_go(waiting) {
            first = Some((at, *waiting));
        }
    }
    first.map(|(at, _)| at)
}
