//! What was expected of a run, held against what it showed.

use std::borrow::Cow;

use counters::{Counter, DeviceId, DeviceKind, Kind, Recording};
use engine::HostConfig;
use scenario::{Expectation, Scenario, Subject};

use crate::Outcome;

/// An expectation and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked<'a> {
    /// What was expected.
    pub expectation: &'a Expectation,
    /// What was found, in the unit of the counter; the ratio where one was asked for. NaN when
    /// there is no such figure.
    pub figure: f64,
    /// Whether it is as expected.
    pub holds: bool,
}

/// Holds every expectation of a scenario against the outcome of its run.
#[must_use]
pub fn check<'a>(scenario: &'a Scenario, outcome: &Outcome) -> Vec<Checked<'a>> {
    let seen =
        |window: usize, host: usize| Some(&outcome.windows.get(window)?.get(host)?.recording);
    let checked = scenario.expectations.iter().map(|expectation| {
        let figure = figure(scenario, expectation, seen);
        Checked { expectation, figure, holds: expectation.bound.holds(figure) }
    });
    checked.collect()
}

/// The figure of an expectation, in the unit of the counter, or the ratio where one is asked for; NaN when
/// there is none. `seen` has by window and host a recording whose first sample spans the window, whoever
/// made it.
#[must_use]
pub fn figure<'r>(
    scenario: &Scenario,
    of: &Expectation,
    seen: impl Fn(usize, usize) -> Option<&'r Recording>,
) -> f64 {
    let over = |window| {
        let figure = |subject: &Subject| {
            let (host, kind, name) = entity(scenario, subject);
            let recording = seen(window, host)?;
            let id = recording.find(kind, &name)?;
            let is_idle = recording.value(id, Counter::Commands, 0) == Some(0.0);
            Some((recording.value(id, of.counter, 0)?, is_idle))
        };
        let all = of.subjects.iter().map(|subject| figure(subject).unwrap_or((f64::NAN, false)));
        let mut all: Vec<_> = all.collect();
        // Who has no command has no time of one.
        if of.counter.info().unit == "ms" && all.iter().any(|(_, is_idle)| !is_idle) {
            all.retain(|(_, is_idle)| !is_idle);
        }
        all.iter().map(|(figure, _)| figure).sum::<f64>() / all.len() as f64
    };
    let here = over(of.window);
    of.relative_to.map_or(here, |other| here / over(other))
}

/// The host of a subject, and how its row in the host's recordings is called.
fn entity<'a>(scenario: &'a Scenario, subject: &Subject) -> (usize, Kind, Cow<'a, str>) {
    let config = |host: usize| &scenario.hosts[host].config;
    match *subject {
        Subject::Vm { host, vm } => {
            (host, Kind::Vm, config(host).vms[vm.index()].name.as_str().into())
        }
        Subject::Vdisk { host, vdisk } => {
            (host, Kind::VirtualDisk, config(host).disk_name(vdisk).into())
        }
        Subject::Device { host, device } => {
            let (kind, name) = device_row(config(host), device);
            (host, kind, name.into())
        }
        Subject::World { host, vm, device } => {
            let world = config(host).vms[vm.index()].world;
            let device = &config(host).devices[device.index()].name;
            (host, Kind::World, format!("{device}-{world}").into())
        }
        Subject::Adapter { host, adapter } => {
            (host, Kind::Adapter, config(host).adapters[adapter.index()].name.as_str().into())
        }
        Subject::Path { host, path } => {
            (host, Kind::Path, config(host).paths[path.index()].name.as_str().into())
        }
    }
}

/// An NFS datastore has a row of its own kind.
fn device_row(config: &HostConfig, id: DeviceId) -> (Kind, &str) {
    let device = &config.devices[id.index()];
    let kind = match device.kind {
        DeviceKind::Nfs => Kind::NfsVolume,
        DeviceKind::Scsi | DeviceKind::ProtocolEndpoint => Kind::Device,
    };
    (kind, &device.name)
}
