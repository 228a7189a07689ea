//! A crowd at the array, which only a scenario knows: one device holds most of what is outstanding
//! there, and what is on others, of this host or of another, waits behind it. No queue of a host is
//! short then: whatever one is given more of, the others wait for.

use std::cmp::Ordering;

use super::{Case, changes, number};
use crate::{
    ArrayFacts, ArrayUser, Cause, Device, Evidence, Finding, Flow, Party, Spell, Threshold,
};

/// Share of the commands at the array of the device that holds most of them.
const MOST: f64 = 0.5;
/// Share of a device that asks for next to nothing beside it.
const MODEST: f64 = 0.2;
/// VMs that are named.
const NAMED: usize = 5;

/// Who crowds an array, and who waits for it.
pub(super) struct Crowd {
    array: ArrayFacts,
    outstanding: f64,
    /// The VMs of the device that holds most, those with most first.
    holders: Vec<ArrayUser>,
    /// The VMs of modest devices, those that wait longest first.
    waiting: Vec<ArrayUser>,
}

impl Crowd {
    /// The crowd that a device is part of, on whichever side.
    pub(super) fn of(case: &Case<'_>, device: &Device<'_>) -> Option<Self> {
        let array = case.facts.device(device.flow.name).array?;
        let alone_ms = array.service_ms?;
        let slow_ms = alone_ms + device.limits.get(Threshold::QosMs);
        let waits = |davg_ms: f64| array.is_crowded(davg_ms) && davg_ms >= slow_ms;
        if !waits(device.flow.per_command(&device.busy, Flow::davg)?) {
            return None;
        }
        let same = |a: &ArrayUser, b: &ArrayUser| a.host == b.host && a.device == b.device;
        let devices: Vec<&[ArrayUser]> = array.users.chunk_by(same).collect();
        let outstanding: f64 = devices.iter().map(|users| at(users)).sum();
        let is_most = |users: &&&[ArrayUser]| at(users) >= MOST * outstanding;
        let mut holders = devices.iter().find(is_most)?.to_vec();
        let modest = devices.iter().filter(|users| at(users) <= MODEST * outstanding);
        let mut waiting = modest.copied().flatten().cloned().collect::<Vec<_>>();
        waiting.retain(|user| waits(user.davg_ms()));
        let is_here =
            |user: &ArrayUser| user.host == case.host.name && user.device == device.flow.name;
        if waiting.is_empty() || !waiting.iter().chain(&holders).any(is_here) {
            return None;
        }
        holders.sort_by(|a, b| b.vm.slots.total_cmp(&a.vm.slots));
        waiting.sort_by(|a, b| {
            let [longer, other] = [b, a].map(|user| user.vm.gavg_ms);
            longer.partial_cmp(&other).unwrap_or(Ordering::Equal)
        });
        Some(Self { array, outstanding, holders, waiting })
    }

    /// The finding about it, seen from a device of it.
    pub(super) fn judge(&self, case: &Case<'_>, device: &Device<'_>) -> Option<Finding> {
        let Self { array, outstanding, holders, waiting } = self;
        let (first, worst) = (holders.first()?, waiting.first()?);
        let alone_ms = array.service_ms?;
        let spell = Spell { samples: device.busy.clone(), of: device.busy.len() };
        let is_mine =
            |user: &&ArrayUser| user.host == case.host.name && user.device == device.flow.name;
        let mine: Vec<&ArrayUser> = waiting.iter().filter(is_mine).collect();
        let whole = format!("array {}", array.name);
        let place = if mine.is_empty() { &whole } else { device.flow.name };
        let mut finding = case.finding(Cause::ArraySlow, place, &spell);
        let named = |user: &ArrayUser| user.named(case.host.name);
        finding.sentence = format!(
            "A command of {} takes {} ms at array {} and {} ms when it is alone there: {} of the {} \
             commands at the array are of {}{}, and it works {} % of the time.",
            named(worst),
            number(worst.davg_ms()),
            array.name,
            number(alone_ms),
            number(at(holders)),
            number(*outstanding),
            named(first),
            if holders.len() > 1 { " and others on its device" } else { "" },
            number(100.0 * array.work())
        );
        finding.standing = device.flow.mean_rate(&device.busy)?
            * (device.flow.per_command(&device.busy, Flow::davg)? - alone_ms)
            / 1000.0;
        finding.evidence = vec![
            Evidence::new(format!("commands at array {}", array.name), *outstanding, ""),
            Evidence::new("of them from the device that has most", at(holders), ""),
            Evidence::new(format!("work of array {}", array.name), 100.0 * array.work(), "%"),
            Evidence::new("a command that waits for nobody", alone_ms, "ms"),
            Evidence::new(format!("the same of {}", named(worst)), worst.davg_ms(), "ms"),
        ];
        finding.confidence = 0.95;
        let party = |user: &ArrayUser| Party { name: named(user), ..user.vm.clone() };
        finding.sufferers = match mine.is_empty() {
            true => waiting.iter().map(party).collect(),
            false => mine.into_iter().map(party).collect(),
        };
        finding.causers = holders.iter().take(NAMED).map(party).collect();
        finding.changes = vec![
            changes::limit_iops(&first.vm, first.size_kib, case.facts),
            changes::look(
                format!(
                    "Move {} to another array, or give this one more (disks, controllers).",
                    first.vm.name
                ),
                Vec::new(),
            )
            .risking("Moving disks loads both arrays.", "Move them back"),
        ];
        finding.do_not = vec![format!(
            "Do not raise queue depths on any host of array {}: what one gains there the others \
             wait for.",
            array.name
        )];
        Some(finding)
    }
}

/// Commands at the array.
fn at(users: &[ArrayUser]) -> f64 {
    users.iter().map(|user| user.vm.slots).sum()
}

impl ArrayUser {
    /// Mean time of a command below the host.
    fn davg_ms(&self) -> f64 {
        1000.0 * self.vm.slots / self.vm.iops
    }

    /// The VM, with its host where that is another one.
    fn named(&self, host: &str) -> String {
        match self.host == host {
            true => self.vm.name.clone(),
            false => format!("{} of {}", self.vm.name, self.host),
        }
    }
}
