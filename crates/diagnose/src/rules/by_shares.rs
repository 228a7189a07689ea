//! A full queue that is divided by shares: who has few of them waits long there, without any limit.

use super::{steady::EXACTLY, suspect::Suspect};
use crate::{Device, Spell, World, mean, observe::is_round_within};

/// Another VM on a full queue that does as many times what a suspect does as shares make it [LAMW].
pub(super) struct Richer<'a> {
    pub(super) vm: &'a str,
    pub(super) times: f64,
    /// Whether both have shares in that proportion; not where the recording has none, and the number is
    /// one that shares often are.
    pub(super) is_known: bool,
}

/// The VM on a full queue by whose shares a suspect may have what it has.
pub(super) fn like_shares<'a>(suspect: &Suspect<'a>, spell: &Spell) -> Option<Richer<'a>> {
    const NEAR: f64 = 0.01;
    const NEAR_KNOWN: f64 = 0.1;
    const MOST: f64 = 8.0;
    let device = suspect.device;
    let own = spell.mean(|sample| suspect.rate(sample))?;
    let full = device.full.as_ref()?.spell.samples.iter().any(|s| spell.samples.contains(s));
    // Slots are whole: who has less than one by its shares has one now and then, which may be more.
    let slots = suspect.world.and_then(|world| world.flow.mean_in_flight(&spell.samples));
    let holds_few = slots.is_some_and(|slots| slots <= 1.0);
    let is_set = is_round_within(own, EXACTLY);
    let richer = |world: &'a World<'a>| {
        let times = world.flow.mean_rate(&spell.samples)? / own;
        let known = times_shares([world, suspect.world?], spell);
        let near = if known.is_some() { NEAR_KNOWN } else { NEAR };
        let by_shares = known.unwrap_or_else(|| times.round().min(MOST));
        // Who has more shares than commands goes first with all of them, and the other has what is left: more than its part.
        let is_part = (times / by_shares - 1.0).abs() <= near;
        let is_left_more = known.is_some() && times < by_shares;
        let is_more = by_shares >= 1.0 + NEAR_KNOWN && (is_part || is_left_more);
        let is_known = known.is_some() && (is_part || holds_few || !is_set);
        is_more.then_some(Richer { vm: world.owner, times: by_shares, is_known })
    };
    let mut others =
        device.worlds.iter().filter(|w| full && !w.is_system && w.owner != suspect.vm());
    others.find_map(richer)
}

/// How many times the shares of one VM on a device another has there, where the recording tells.
pub(super) fn times_as_many(
    device: &Device<'_>,
    [more, less]: [&str; 2],
    spell: &Spell,
) -> Option<f64> {
    times_shares([device.world_of(more)?, device.world_of(less)?], spell)
}

fn times_shares(worlds: [&World<'_>; 2], spell: &Spell) -> Option<f64> {
    let shares =
        |world: &World<'_>| mean(world.shares.over(&spell.samples)).filter(|shares| *shares > 0.0);
    let [more, less] = worlds.map(shares);
    Some(more? / less?)
}
