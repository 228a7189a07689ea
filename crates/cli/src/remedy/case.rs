//! The case: in which window who suffers from whom.

use std::collections::BTreeMap;

use counters::{Counter, DeviceId, DeviceKind, Kind, Recording, sorted::Ordered};
use diagnose::{Finding, Party, Verdict};
use engine::{AdapterConfig, DeviceConfig};
use knobs::Allocation;
use scenario::{Host, Scenario, Window};

use crate::{
    known::is_controlled,
    report::Report,
    sweep::{Figures, Flow, Rows, flows},
};

use super::original::Original;

/// Of its mean: what a VM does that is not at work, but for what it had begun.
pub(super) const REST: f64 = 0.1;

/// A scenario with a VM that suffers and one that it suffers from.
pub(crate) struct Case {
    pub(crate) scenario: Scenario,
    /// Index of the window.
    pub(crate) window: usize,
    /// The VM that suffers.
    pub(crate) good: String,
    /// The VM that it suffers from.
    pub(crate) bad: String,
    /// Whether the diagnosis says so; else it was said to it.
    pub(crate) is_diagnosed: bool,
    /// The recorded host that the scenario stands for, where it stands for one.
    pub(crate) original: Option<Original>,
    /// The figures of the window as it is.
    rows: Rows,
    /// The part of the window in which the bad one is at work, above 0.
    at_work: f64,
    /// Where the one that suffers waits: a host, and a device of it that both use where there is one.
    host: usize,
    pub(crate) device: DeviceId,
}

impl Case {
    /// The case of a run. A VM that is not named is the one that the diagnosis names.
    ///
    /// # Errors
    /// One line, where a name is none of a VM with a workload, and where the diagnosis names none.
    pub(crate) fn of(
        report: Report,
        window: usize,
        good: Option<&str>,
        bad: Option<&str>,
    ) -> Result<Self, String> {
        let (scenario, name) = (&report.scenario, &report.scenario.windows[window].name);
        for (option, vm) in [("--good", good), ("--bad", bad)] {
            let home = vm.map(|vm| scenario.home(vm)).transpose();
            home.map_err(|error| format!("{option}: {error}"))?;
        }
        let is_diagnosed = good.is_none() || bad.is_none();
        let named = good.zip(bad).map(|(good, bad)| (good.to_owned(), bad.to_owned()));
        let (good, bad) =
            named.or_else(|| diagnosed(&report, window, good, bad)).ok_or_else(|| {
                let worst = crate::verdict::worst_first(report.verdicts(window)).into_iter().next();
                format!(
                    "{}: the diagnosis of window {name} {}; say which with --good VM --bad VM",
                    scenario.name,
                    worst.map_or(String::new(), names_nobody)
                )
            })?;
        if good == bad {
            return Err(format!("--good and --bad: `{good}` is no neighbour of itself"));
        }
        let (host, device) = place(scenario, &good, &bad)?;
        let rows = Figures::of(&report).windows.swap_remove(window);
        let at_work = at_work(&report.samples(window), &bad);
        let Report { scenario, .. } = report;
        let original = None;
        Ok(Self {
            scenario,
            window,
            good,
            bad,
            is_diagnosed,
            original,
            rows,
            at_work,
            host,
            device,
        })
    }

    pub(crate) fn host(&self) -> &Host {
        &self.scenario.hosts[self.host]
    }

    /// The device at which the one that suffers waits.
    pub(crate) fn device(&self) -> &DeviceConfig {
        &self.host().config.devices[self.device.index()]
    }

    /// Whether Storage I/O Control lowers its depth already, as far as that is known.
    pub(super) fn is_controlled(&self) -> bool {
        match &self.original {
            Some(original) => original.is_controlled(&self.device().name),
            None => {
                let (host, window) = self.place();
                is_controlled(&self.scenario, host, window, self.device)
            }
        }
    }

    /// Where and when the one that suffers waits: the host by its index, and the window.
    pub(super) fn place(&self) -> (usize, &Window) {
        (self.host, &self.scenario.windows[self.window])
    }

    /// A datastore on it.
    pub(crate) fn datastore(&self) -> &str {
        self.host().datastores[self.device.index()].first().map_or("", String::as_str)
    }

    /// What a VM of the scenario is called.
    pub(crate) fn called<'a>(&'a self, vm: &'a str) -> &'a str {
        self.original.as_ref().map_or(vm, |original| original.called(vm))
    }

    /// What a datastore of the scenario is called; a gap to fill in where nobody said that.
    pub(crate) fn store_called(&self, datastore: &str) -> String {
        let of = |on: &DeviceConfig| {
            self.known_store(datastore, on).unwrap_or_else(|| format!("<on {}>", on.name))
        };
        self.device_of_store(datastore).map_or(datastore.into(), of)
    }

    /// Whether it is known what a datastore of the scenario is called.
    pub(crate) fn knows_store(&self, datastore: &str) -> bool {
        let on = self.device_of_store(datastore);
        on.is_none_or(|on| self.known_store(datastore, on).is_some())
    }

    fn known_store(&self, datastore: &str, on: &DeviceConfig) -> Option<String> {
        match &self.original {
            None => Some(datastore.into()),
            // esxtop calls an NFS volume as its datastore is called.
            Some(_) if on.kind == DeviceKind::Nfs => Some(on.name.clone()),
            Some(original) => original.datastore_on(&on.name).cloned(),
        }
    }

    fn device_of_store(&self, datastore: &str) -> Option<&DeviceConfig> {
        let host = self.host();
        let mut names = host.datastores.iter().zip(&host.config.devices);
        Some(names.find(|(names, _)| names.iter().any(|name| name == datastore))?.1)
    }

    /// An adapter that leads to it.
    pub(crate) fn adapter(&self) -> &AdapterConfig {
        let config = &self.host().config;
        let path = config.paths.iter().find(|path| path.device == self.device);
        &config.adapters[path.map_or(0, |path| path.adapter.index())]
    }

    /// How many commands it lets out at once, as it was.
    pub(crate) fn depth(&self) -> Option<f64> {
        self.value(&self.device().name, Counter::DeviceQDepth)
    }

    /// What a device did, a second.
    pub(crate) fn iops_of_device(&self, device: &str) -> f64 {
        self.value(device, Counter::Commands).unwrap_or(0.0)
    }

    fn value(&self, device: &str, counter: Counter) -> Option<f64> {
        let host = &self.host().config.name;
        let mut devices = self.rows.of_kind(Kind::Device);
        devices.find(|row| row.host() == Some(host) && row.object() == Some(device))?.value(counter)
    }

    /// How long the window is.
    pub(crate) fn window_ms(&self) -> f64 {
        let window = &self.scenario.windows[self.window];
        counters::nanos_to_millis(window.to.since(window.from) as f64)
    }

    /// What a VM did as it is.
    pub(crate) fn flow(&self, vm: &str) -> Flow {
        flows(&self.rows).remove(vm).unwrap_or_default()
    }

    /// I/Os a second, as limits count them, that the bad one does while it is at work; of `unit` bytes each.
    pub(crate) fn units_of_bad(&self, unit: f64) -> f64 {
        self.flow(&self.bad).units(unit) / self.at_work
    }

    /// The two, and who else did anything as it is, with the shares of all of their disks.
    pub(crate) fn shares(&self) -> BTreeMap<&str, f64> {
        let flows = flows(&self.rows);
        // A VM that an event takes to another host is known there too.
        let mut known: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
        for (index, host) in self.scenario.hosts.iter().enumerate() {
            for disk in &host.config.vdisks {
                let vm = &host.config.vms[disk.vm.index()];
                let is_one = [&self.good, &self.bad].contains(&&vm.name);
                let is_at_work = flows.get(&*vm.name).is_some_and(|flow| flow.iops > 0.0);
                if !vm.system && (is_one || is_at_work) {
                    let (home, shares) = known.entry(&vm.name).or_insert((index, 0.0));
                    // No recording has them: all have alike.
                    *shares = match &self.original {
                        Some(_) => f64::from(Allocation::default().shares),
                        None => {
                            *shares + f64::from(disk.allocation.shares * u32::from(*home == index))
                        }
                    };
                }
            }
        }
        known.into_iter().map(|(vm, (_, shares))| (vm, shares)).into_map()
    }
}

/// The part of some samples in which a VM is at work on any host: it does more than [`REST`] of its mean. All
/// where it does nothing.
fn at_work(hosts: &[Recording], vm: &str) -> f64 {
    let of =
        |host: &Recording, sample| host.value(host.find(Kind::Vm, vm)?, Counter::Commands, sample);
    let samples = hosts.first().map_or(0, Recording::len);
    let rate = |sample: usize| hosts.iter().filter_map(|host| of(host, sample)).sum::<f64>();
    let rates: Vec<f64> = (0..samples).map(rate).collect();
    let mean = rates.iter().sum::<f64>() / samples as f64;
    match rates.iter().filter(|rate| **rate > REST * mean).count() {
        0 => 1.0,
        busy => busy as f64 / samples as f64,
    }
}

/// What a diagnosis that names no two says instead, and what to do about it.
pub(super) fn names_nobody(verdict: &Verdict) -> String {
    let advice = verdict.advice.iter().flat_map(|advice| [". ", advice]);
    let says: String = [verdict.headline.trim_end_matches('.')].into_iter().chain(advice).collect();
    format!("names no VM that suffers from another ({})", says.trim_end_matches('.'))
}

/// Who suffers from whom by the verdicts on a window.
fn diagnosed(
    report: &Report,
    window: usize,
    good: Option<&str>,
    bad: Option<&str>,
) -> Option<(String, String)> {
    let is_vm = |name: &str| report.scenario.home(name).is_ok();
    let verdicts = crate::verdict::worst_first(report.verdicts(window));
    let findings = verdicts.into_iter().flat_map(|verdict| &verdict.findings);
    pair(findings, &is_vm, good, bad).map(|(_, good, bad)| (good, bad))
}

/// The first finding by which a VM suffers that is not its cause, and the two. Where none has a cause it is the
/// first of what several suffer of which one has more under way than the others.
pub(super) fn pair<'f>(
    findings: impl Iterator<Item = &'f Finding> + Clone,
    is_vm: &dyn Fn(&str) -> bool,
    good: Option<&str>,
    bad: Option<&str>,
) -> Option<(&'f Finding, String, String)> {
    let of = |finding: &'f Finding, causers: &[Party]| {
        let is_bad = |vm: &str| bad.map_or(is_vm(vm), |bad| bad == vm);
        let bad = causers.iter().find(|party| is_bad(&party.name))?;
        let is_good = |vm: &str| match good {
            Some(good) => good == vm,
            None => is_vm(vm) && causers.iter().all(|causer| causer.name != vm),
        };
        let good = finding.sufferers.iter().find(|party| is_good(&party.name))?;
        Some((finding, good.name.clone(), bad.name.clone()))
    };
    let caused = findings.clone().find_map(|finding| of(finding, &finding.causers));
    caused.or_else(|| {
        let mut uncaused = findings.filter(|finding| finding.causers.is_empty());
        uncaused.find_map(|finding| of(finding, leader(&finding.sufferers)))
    })
}

/// The one of some that has more under way than any other by more than chance; nobody where two are alike.
fn leader(parties: &[Party]) -> &[Party] {
    const NOISE: f64 = 1.5;
    match parties {
        [first, second, ..] if first.slots > NOISE * second.slots => &parties[..1],
        _ => &[],
    }
}

/// The host of the one that suffers, and the device that it shares with the other, or its first.
fn place(scenario: &Scenario, good: &str, bad: &str) -> Result<(usize, DeviceId), String> {
    let home = |vm| scenario.home(vm).map_err(|error| error.to_string());
    let index = home(good)?;
    home(bad)?;
    let host = &scenario.hosts[index];
    let devices = |vm| host.disks_of(vm).map(|disk| host.device_of(disk));
    let is_shared = |device: &DeviceId| devices(bad).any(|other| other == *device);
    let device = devices(good).find(is_shared).or_else(|| devices(good).next());
    Ok((index, device.ok_or_else(|| format!("VM `{good}` has no disk"))?))
}
