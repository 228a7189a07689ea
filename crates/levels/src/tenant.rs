//! The VMs on a device: what their worlds there add up to.

use std::collections::BTreeMap;

use counters::{Entity, EntityId, Kind};

use crate::{
    Flow, Measured,
    numbers::{mean, most_first, sum, weighted_mean},
};

/// The share of a VM in a device: its worlds there.
pub struct Tenant<'a> {
    /// The VM, or the process that the world is, or its own name.
    pub name: &'a str,
    worlds: Vec<Flow<'a>>,
    load: f64,
}

/// Whose a world is: its VM, or the process that it is, or its own name.
#[must_use]
pub fn owner<'a>(recording: &'a Measured, world: &'a Entity) -> &'a str {
    let vm = world.vm.and_then(|vm| recording.entities().get(vm.0 as usize));
    vm.map(|vm| vm.name.as_str()).or(world.process.as_deref()).unwrap_or(&world.name)
}

/// The VMs on a device, those with most commands outstanding first.
#[must_use]
pub fn tenants(recording: &Measured, device: EntityId) -> Vec<Tenant<'_>> {
    let mut tenants: BTreeMap<&str, Tenant<'_>> = BTreeMap::new();
    for (id, world) in recording.of_kind(Kind::World) {
        if world.device == Some(device) {
            let (name, flow) = (owner(recording, world), Flow::of(recording, id));
            let Some(load) = flow.load(recording.len()) else { continue };
            let new = || Tenant { name, worlds: Vec::new(), load: 0.0 };
            let tenant = tenants.entry(name).or_insert_with(new);
            tenant.load += load;
            tenant.worlds.push(flow);
        }
    }
    let mut tenants: Vec<_> = tenants.into_values().filter(|tenant| tenant.load > 0.0).collect();
    most_first(&mut tenants, |tenant| tenant.load);
    tenants
}

impl<'a> Tenant<'a> {
    /// Commands per second of all its worlds.
    #[must_use]
    pub fn rate(&self, sample: usize) -> Option<f64> {
        sum(self.worlds.iter().map(|world| world.rate(sample)))
    }

    /// GAVG over all its worlds; none without commands.
    #[must_use]
    pub fn gavg(&self, sample: usize) -> Option<f64> {
        weighted_mean(self.worlds.iter().map(|w| Some((w.gavg(sample)?, w.rate(sample)?))))
    }

    /// The mean over some samples of a number that its worlds add up to; `None` over none.
    #[must_use]
    pub fn mean(&self, samples: &[usize], of: fn(&Flow<'a>, usize) -> Option<f64>) -> Option<f64> {
        let at = |sample| sum(self.worlds.iter().map(|world| of(world, sample)));
        mean(samples.iter().map(|&sample| at(sample)))
    }
}
