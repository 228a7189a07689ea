//! A component: hosts that share arrays, and these.

use engine::Input;
use model::{Array, ArrayUse, Switches};
use scenario::Scenario;

use crate::{
    Watch,
    extents::Extents,
    host::{Host, Place},
    key::{Class, Key},
    machine::{Machine, PolicyWaits, Stream, stream},
};
use counters::{Time, VdiskId};

/// Hosts that share nothing with others, and their arrays.
pub(crate) struct Component<'a, W> {
    pub(crate) scenario: &'a Scenario,
    /// Hosts that run together, ascending: all in one, or each group of hosts on its own.
    pub(crate) machines: Vec<Machine<'a, W>>,
    pub(crate) arrays: Arrays,
    /// Those of the scenario.
    pub(crate) switches: Switches,
    /// For how long the groups may run apart; 0 where all hosts run together.
    pub(crate) apart_ns: u64,
}

/// The arrays of a component.
pub(crate) struct Arrays {
    pub(crate) all: Vec<Array>,
    /// Position in `all` of each array of the scenario.
    of: Vec<Option<u32>>,
}

impl<'a, W: Watch> Component<'a, W> {
    /// Sets up hosts at [`Time::ZERO`]: those of one group run together, watched by one of `watches`.
    pub(crate) fn new(
        scenario: &'a Scenario,
        groups: &[Vec<usize>],
        watches: impl IntoIterator<Item = W>,
    ) -> Self {
        let mut arrays = Arrays { all: Vec::new(), of: vec![None; scenario.arrays.len()] };
        let mut machine_of = vec![None; scenario.hosts.len()];
        let mut players = vec![0; groups.len()];
        for (machine, group) in groups.iter().enumerate() {
            group.iter().for_each(|host| machine_of[*host] = Some(machine));
        }
        let workloads = || {
            let all = scenario.workloads.iter().enumerate();
            all.filter_map(|(index, workload)| Some((index, machine_of[workload.host]?)))
        };
        workloads().for_each(|(_, machine)| players[machine] += 1);
        let mut extents = Extents::of(scenario, groups);
        let machines = groups.iter().zip(players).zip(watches).map(|((group, players), watch)| {
            let mut machine = Machine::new(scenario, (group.len(), players), watch);
            for &host in group {
                let targets = scenario.hosts[host].targets.iter().enumerate();
                let is_passive = |array: usize| {
                    let controllers = scenario.arrays[array].config.queues.controllers;
                    controllers.is_some_and(|both| both.active_passive)
                };
                let targets = targets.map(|(disk, target)| Place {
                    array: arrays.place(scenario, target.array),
                    volume: target.volume,
                    begins: extents.begins(scenario, host, disk),
                    is_passive: is_passive(target.array),
                });
                machine.add_host(host, targets.collect());
            }
            machine
        });
        let mut machines: Vec<_> = machines.collect();
        let tells_ends = arrays.all.iter().any(Array::minds_outstanding);
        machines.iter_mut().for_each(|machine| machine.outside.post.tells_ends = tells_ends);
        workloads().for_each(|(index, machine)| machines[machine].add_workload(index));
        for (index, event) in scenario.events.iter().enumerate() {
            if let Some(machine) = machine_of[event.host].map(|machine| &mut machines[machine])
                && let Some(host) = machine.host_of(event.host)
            {
                machine.push(event.at, Key::new(Class::Event, host, index as u64));
            }
        }
        let rates: Vec<_> = scenario.switches.iter().map(|at| at.link_bytes_per_sec).collect();
        let paths = scenario.hosts.iter().map(|host| host.config.paths.len());
        let switches = match rates.is_empty() {
            true => Switches::default(),
            false => Switches::new(&rates, paths),
        };
        Self { scenario, machines, arrays, switches, apart_ns: 0 }
    }

    /// Lets everything happen that happens before `limit`, where all hosts run together.
    pub(crate) fn run_until(&mut self, limit: Time) {
        (0..self.machines.len())
            .for_each(|id| self.with_arrays(id, |machine| machine.run_until(limit)));
    }

    /// Something is told to a host, where all hosts run together.
    pub(crate) fn input(&mut self, machine: usize, host: usize, at: Time, input: Input) {
        self.with_arrays(machine, |machine| _ = machine.input(host, at, input));
    }

    fn with_arrays(&mut self, id: usize, act: impl FnOnce(&mut Machine<'a, W>)) {
        let machine = &mut self.machines[id];
        let swap = |machine: &mut Machine<'a, W>, arrays: &mut Arrays, switches: &mut Switches| {
            std::mem::swap(&mut machine.outside.arrays, &mut arrays.all);
            std::mem::swap(&mut machine.outside.switches, switches);
        };
        swap(machine, &mut self.arrays, &mut self.switches);
        act(machine);
        swap(machine, &mut self.arrays, &mut self.switches);
    }

    /// I/Os completed.
    pub(crate) fn ios(&self) -> u64 {
        self.machines.iter().map(|machine| machine.ios).sum()
    }
}

impl Arrays {
    /// The place here of an array of the scenario, which is set up where it is new.
    fn place(&mut self, scenario: &Scenario, array: usize) -> u32 {
        *self.of[array].get_or_insert_with(|| {
            let seed = stream(scenario.seed, Stream::Array, array);
            self.all.push(Array::new(&scenario.arrays[array].config, seed));
            (self.all.len() - 1) as u32
        })
    }

    /// How each array of the scenario was used so far.
    pub(crate) fn used(&self) -> Vec<ArrayUse> {
        let local = |array: &Option<u32>| Some(self.all[(*array)? as usize].used());
        self.of.iter().map(|array| local(array).unwrap_or_default()).collect()
    }

    /// What commands to the volume of each virtual disk of a host waited for its policy so far,
    /// where it has one; in the order of the disks.
    pub(crate) fn policy_waits(&self, host: &Host) -> PolicyWaits {
        let of = |place: Place| self.all[place.array as usize].policy_wait(place.volume);
        let targets = host.targets().iter().enumerate();
        targets.filter_map(|(disk, target)| Some((VdiskId::new(disk), of(*target)?))).collect()
    }
}
