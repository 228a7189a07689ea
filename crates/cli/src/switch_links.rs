//! What a run knows of the links of switches over a window: how full each is, and which hosts make it so.

use counters::{PathId, sorted::sort_by};
use diagnose::SwitchLink;
use levels::{Measured, mean};
use scenario::{Host, Scenario};

use crate::host_links::{PathRows, ROOM, add_bytes, in_use, mean_use, moving_ms};

/// The links of the switches of a scenario.
pub(crate) struct SwitchLinks<'a> {
    scenario: &'a Scenario,
    /// By switch, the share in use in each sample.
    busy: Vec<Vec<f64>>,
    /// By switch, what each host moves over it in the mean, in MiB a second.
    hosts: Vec<Vec<(String, f64)>>,
}

impl<'a> SwitchLinks<'a> {
    /// Those of which `samples` has those of each host.
    pub(crate) fn of(scenario: &'a Scenario, samples: &[Measured]) -> Self {
        let rows = samples.first().map_or(0, |own| own.len());
        let mut bytes = vec![vec![[0.0; 2]; rows]; scenario.switches.len()];
        let mut hosts = vec![Vec::new(); scenario.switches.len()];
        for (host, recording) in scenario.hosts.iter().zip(samples) {
            let own = moved(host, recording, scenario.switches.len());
            for ((all, own), hosts) in bytes.iter_mut().zip(own).zip(&mut hosts) {
                let mib = |bytes: &[f64; 2]| Some((bytes[0] + bytes[1]) / f64::from(1 << 20));
                let mib_per_s = mean(own.iter().map(mib)).unwrap_or_default();
                if mib_per_s > 0.0 {
                    hosts.push((host.config.name.clone(), mib_per_s));
                }
                for (all, own) in all.iter_mut().zip(own) {
                    *all = [all[0] + own[0], all[1] + own[1]];
                }
            }
        }
        for hosts in &mut hosts {
            sort_by(hosts, |a, b| b.1.total_cmp(&a.1));
        }
        let busy = bytes.iter().zip(&scenario.switches).map(|(bytes, switch)| {
            in_use(bytes, switch.link_bytes_per_sec.map_or(f64::INFINITY, |rate| rate as f64))
        });
        let busy = busy.collect();
        Self { scenario, busy, hosts }
    }

    /// What is known of the fullest that commands of a device of a host cross, where a command of so many KiB is on
    /// such for so many milliseconds; `paths` are the device's that work, of which some are used.
    pub(crate) fn before(
        &self,
        host: &Host,
        (paths, is_used): (impl Iterator<Item = PathId> + Clone, impl Fn(PathId) -> bool),
        (size_kib, time_ms): (f64, f64),
    ) -> Option<SwitchLink> {
        let share = |switch: usize| mean_use(&self.busy[switch]);
        let fullest = |path: PathId| {
            crossed(host, path.index()).max_by(|a, b| share(*a).total_cmp(&share(*b)))
        };
        let used = paths.clone().filter(|path| is_used(*path)).filter_map(fullest);
        let switch = used.max_by(|a, b| share(*a).total_cmp(&share(*b)))?;
        let has_room = |other: Option<usize>| other.is_none_or(|other| share(other) < ROOM);
        let config = &self.scenario.switches[switch];
        Some(SwitchLink {
            switch: config.name.clone(),
            busy: self.busy[switch].clone(),
            time_ms,
            own_ms: config.link_bytes_per_sec.map_or(0.0, |rate| moving_ms(size_kib, rate)),
            hosts: self.hosts[switch].clone(),
            has_room_beside: paths.map(fullest).any(has_room),
        })
    }
}

/// The switches whose links a path crosses.
pub(crate) fn crossed(host: &Host, path: usize) -> impl Iterator<Item = usize> {
    let crosses = host.initiator.nexus(path).map(|nexus| nexus.crosses);
    crosses.into_iter().flatten().flatten().map(|switch| switch as usize)
}

/// What a host moves over each of so many links each way in each sample, in bytes a second.
fn moved(host: &Host, recording: &Measured, switches: usize) -> Vec<Vec<[f64; 2]>> {
    let mut moved = vec![vec![[0.0; 2]; recording.len()]; switches];
    let rows = PathRows::of(host, recording);
    for path in 0..host.config.paths.len() {
        let mut over = crossed(host, path).peekable();
        let Some((id, part)) = over.peek().and_then(|_| rows.row(path)) else { continue };
        for switch in over {
            for (sample, bytes) in moved[switch].iter_mut().enumerate() {
                add_bytes(bytes, |counter| {
                    part * recording.value(id, counter, sample).unwrap_or(0.0)
                });
            }
        }
    }
    moved
}
