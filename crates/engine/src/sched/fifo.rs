//! `fifo`: the command that waits longest goes first, whoever sent it.

use counters::{Time, WorldId};

use crate::{slab::Slab, world::World};

pub(super) fn choose(
    backlog: &[WorldId],
    worlds: &[World],
    ios: &Slab,
    now: Time,
) -> Option<WorldId> {
    let heads = backlog.iter().filter_map(|&id| {
        let world = &worlds[id.index()];
        let head = world.queue.head().filter(|_| world.may_go(now))?;
        Some((ios[head].entered, id))
    });
    heads.min().map(|(_, id)| id)
}
