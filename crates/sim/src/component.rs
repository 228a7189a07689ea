//! Which hosts have to be simulated together: those that share an array, and those between which
//! a VM migrates. Everything else runs apart, each part on a core of its own and with its own
//! small working set.

use scenario::{Action, Scenario};

/// The parts of a scenario that do not touch each other: the hosts of each, ascending.
pub(crate) fn split(scenario: &Scenario) -> Vec<Vec<usize>> {
    let hosts = scenario.hosts.len();
    let mut sets = Sets { parents: (0..hosts + scenario.arrays.len()).collect() };
    for (host, config) in scenario.hosts.iter().enumerate() {
        for target in &config.targets {
            sets.join(host, hosts + target.array);
        }
    }
    for event in &scenario.events {
        if let Action::Migrate { to_host, .. } = event.action {
            sets.join(event.host, to_host);
        }
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut part_of_root = vec![None; sets.parents.len()];
    for host in 0..hosts {
        let root = sets.root(host);
        let part = *part_of_root[root].get_or_insert_with(|| {
            parts.push(Vec::new());
            parts.len() - 1
        });
        parts[part].push(host);
    }
    parts
}

/// Disjoint sets of hosts and arrays.
struct Sets {
    parents: Vec<usize>,
}

impl Sets {
    fn root(&mut self, mut node: usize) -> usize {
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }
}
