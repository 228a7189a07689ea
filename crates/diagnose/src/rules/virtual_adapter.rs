//! A virtual adapter at its queue depth: its disks together send what its ring or its slots hold,
//! while none of them need be at its own depth [KB-PV, TBL, PVL].

use counters::Controller;
use knobs::{
    GuestOs, PVSCSI_COMMANDS_PER_PAGE, PVSCSI_RING_PAGES_DEFAULT, PVSCSI_RING_PAGES_MAX, limits_of,
};

use super::{
    Case, Rank, Rule,
    virtual_cap::{Cap, are_at, is_kept, is_still, judge, wait_of},
};
use crate::{Cause, Finding, Flow, LevelKind, Queue, Spell, Threshold, Vdisk};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::VirtualAdapter,
    rank: |_| Rank::Next,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS],
    find,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let caps = case.host.virtual_adapters().filter_map(|name| cap(case, name));
    caps.map(|cap| judge(case, &cap)).collect()
}

/// Depths that a virtual adapter may have, by its type, as far as sources give them.
fn depths(controller: Option<Controller>) -> Vec<u32> {
    match controller {
        Some(Controller::Pvscsi) | None => [PVSCSI_RING_PAGES_DEFAULT, PVSCSI_RING_PAGES_MAX]
            .map(|pages| pages * PVSCSI_COMMANDS_PER_PAGE)
            .into(),
        Some(lsi @ (Controller::LsiSas | Controller::LsiParallel)) => {
            vec![limits_of(lsi, GuestOs::Windows).adapter_depth]
        }
        _ => Vec::new(),
    }
}

/// The cap that the disks of a virtual adapter are at together.
pub(super) fn cap<'a>(case: &Case<'a>, name: &str) -> Option<Cap<'a>> {
    let disks: Vec<&'a Vdisk<'a>> = case.host.vdisks_at(name).collect();
    let first = *disks.first().filter(|_| disks.len() > 1)?;
    let sum =
        |sample: usize| disks.iter().map(|disk| disk.outstanding(sample)).sum::<Option<f64>>();
    let all = case.host.every_sample();
    let known = case.facts.vdisks.get(first.name).and_then(|facts| facts.adapter_depth);
    let depths = known.map_or_else(|| depths(first.controller), |depth| vec![depth]);
    depths.into_iter().find_map(|limit| {
        let spell = Spell::find(&all, |sample| are_at(case, &disks, sample, limit))?;
        let wait = wait_of(&disks, &spell);
        let enough = case.host.limits.get(Threshold::Waiting);
        let waits = wait.is_none_or(|wait| wait.commands >= enough);
        let most: Option<u32> =
            disks.iter().map(|disk| case.facts.vdisks.get(disk.name)?.outstanding_most).sum();
        let is_asked_less = most.is_some_and(|most| most <= limit);
        if !waits || is_asked_less || !is_still(&disks, &spell) || !is_kept(case, &disks, limit) {
            return None;
        }
        Some(Cap {
            cause: Cause::VirtualAdapterCap,
            at: first.adapter(),
            disk: first,
            limit,
            outstanding: spell.mean(sum)?,
            certainty: if wait.is_some() { 0.95 } else { 0.6 },
            wait,
            spell,
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn disks_that_are_together_at_its_depth_share_a_full_ring() {
        let mut bench = Bench::new(6);
        let rates = [80_000.0, 90_000.0, 60_000.0, 80_000.0, 90_000.0];
        for (index, rate) in rates.into_iter().enumerate() {
            let device = bench.device(&format!("naa.{index}"), 128);
            device.vm("sql01").iops(rate).davg(0.64).slot(index);
        }
        let finding = bench.first(Cause::VirtualAdapterCap, &Facts::default());
        assert_eq!(finding.at.name, "sql01:scsi0");
    }
}
