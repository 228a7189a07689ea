//! `fifo`: the command that waits longest goes first, whoever sent it.

use counters::Time;

use super::Waiting;
use crate::{slab::Io, world::World};

pub(super) fn choose(
    backlog: &[Waiting],
    worlds: &[World],
    ios: &[Io],
    now: Time,
) -> Option<usize> {
    let heads = backlog.iter().enumerate().filter_map(|(at, waiting)| {
        let world = &worlds[waiting.world.index()];
        let head = world.queue.head().filter(|_| world.may_go(now))?;
        Some((ios[head as usize].entered, waiting.world, at))
    });
    heads.min().map(|(.., at)| at)
}
