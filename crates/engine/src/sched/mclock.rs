//! `mclock`: reservations first, then shares, limits always.
//!
//! Tags are real times [mClock; reference `array-and-control.md` section 4]: a share tag is one
//! step of cost / shares after the one before it, and never before the command's arrival. A
//! client that is served slower than its shares would allow therefore has its arrival times as
//! tags, and the order is that of arrival: this is how a noisy neighbour on a slow device gets
//! its way [S4; section 8.5].

use counters::{Time, WorldId};

use crate::world::World;

/// First whoever is behind its reservation, then the lowest share tag.
#[inline]
pub(super) fn choose(backlog: &[WorldId], worlds: &[World], now: Time) -> Option<WorldId> {
    let (mut reserved, mut shared) = (NOBODY, NOBODY);
    for &id in backlog {
        let world = &worlds[id.index()];
        if world.is_bound {
            if !world.may_go(now) {
                continue;
            }
            if world.reservation_ns != 0 && world.tags.reservation <= now {
                reserved = reserved.min(rank(world.tags.reservation.0, id));
            }
        }
        shared = shared.min(rank(world.tags.share, id));
    }
    let first = if reserved == NOBODY { shared } else { reserved };
    (first != NOBODY).then_some(WorldId(first as u16))
}

/// Above every rank.
const NOBODY: u128 = u128::MAX;

/// A tag and whose it is, in one number: the lower id comes first among equals.
const fn rank(tag: u64, id: WorldId) -> u128 {
    (tag as u128) << u16::BITS | id.0 as u128
}

/// The least share tag of the worlds that wait; that of nobody is the greatest.
pub(super) fn least(backlog: &[WorldId], worlds: &[World]) -> u64 {
    backlog.iter().map(|id| worlds[id.index()].tags.share).min().unwrap_or(u64::MAX)
}

/// A world that was idle begins level with the others when their tags have run ahead of time;
/// otherwise it would hold them up until it has caught up.
#[inline]
pub(super) const fn floor(least: u64, now: Time) -> u64 {
    if least > now.0 && least < u64::MAX { least } else { 0 }
}
