//! Where virtual disks lie on arrays whose disks seek: one behind the other in the order of the scenario, each as
//! large as what its workloads touch. That is a ruling: what is never read has no way to it.

use std::collections::BTreeMap;

use model::Service;
use scenario::{Action, Host, Scenario};

/// A virtual disk by its names: one that several hosts have is one.
type Names<'a> = (&'a str, &'a str);

/// Places that are given out.
pub(crate) struct Extents<'a> {
    /// Blocks of 4 KiB that workloads touch of each virtual disk.
    sizes: BTreeMap<Names<'a>, u64>,
    /// The disks, by host, that lie where another does: those of data movers.
    places: BTreeMap<(usize, usize), usize>,
    /// Where each begins that has a place on an array, and what is taken of the array.
    begins: BTreeMap<(usize, Names<'a>), u64>,
    taken: BTreeMap<usize, u64>,
}

impl<'a> Extents<'a> {
    /// Those of hosts, of which none has a place yet; nothing is looked up where no array seeks.
    pub(crate) fn of(scenario: &'a Scenario, groups: &[Vec<usize>]) -> Self {
        let (mut sizes, mut places) = (BTreeMap::new(), BTreeMap::new());
        let seeks = |target: &scenario::Target| seeks(scenario, target.array);
        if groups.iter().flatten().any(|host| scenario.hosts[*host].targets.iter().any(seeks)) {
            for workload in &scenario.workloads {
                let names = names(&scenario.hosts[workload.host], workload.vdisk.index());
                let blocks = workload.config.working_set.div_ceil(4096);
                let size = sizes.entry(names).or_default();
                *size = blocks.max(*size);
            }
            for event in &scenario.events {
                if let Action::Copy { from, to, mover, config } = event.action {
                    for (disk, mover) in [from, to].into_iter().zip(mover) {
                        let names = names(&scenario.hosts[event.host], disk.index());
                        let size = sizes.entry(names).or_default();
                        *size = config.bytes.div_ceil(4096).max(*size);
                        places.insert((event.host, mover.index()), disk.index());
                    }
                }
            }
        }
        Self { sizes, places, begins: BTreeMap::new(), taken: BTreeMap::new() }
    }

    /// Where a virtual disk of a host begins.
    pub(crate) fn begins(&mut self, scenario: &'a Scenario, index: usize, disk: usize) -> u64 {
        let host = &scenario.hosts[index];
        let array = host.targets[disk].array;
        if !seeks(scenario, array) {
            return 0;
        }
        let names = names(host, self.places.get(&(index, disk)).copied().unwrap_or(disk));
        *self.begins.entry((array, names)).or_insert_with(|| {
            let taken = self.taken.entry(array).or_default();
            let begins = *taken;
            *taken += self.sizes.get(&names).copied().unwrap_or_default();
            begins
        })
    }
}

fn names(host: &Host, disk: usize) -> Names<'_> {
    let disk = &host.config.vdisks[disk];
    (&host.config.vms[disk.vm.index()].name, &disk.name)
}

fn seeks(scenario: &Scenario, array: usize) -> bool {
    matches!(scenario.arrays[array].config.service, Service::Disks(_))
}
