//! What VMs wait in the host for their own IOPS limits: no latency of a datastore, for they wait as long on another.
//!
//! ```text
//!   a limited VM:   |- slots, as others wait -|- its own limit -|- below the host -|
//!   any other one:  |- slots -----------------|- below the host -|
//! ```

use std::collections::{BTreeMap, BTreeSet};

use counters::{Counter, EntityId, Kind};
use levels::{Flow, Measured, Tenant, Vdisk, little, tenants};
use scenario::Scenario;

use crate::course::Course;

/// From which part of its slots a device is full: whoever waits then may wait for these.
const FULL: f64 = 0.98;

/// The virtual disks that have IOPS limits at some time of a window, by host and name.
pub(crate) struct OwnLimits(Vec<BTreeSet<String>>);

impl OwnLimits {
    pub(crate) fn of(scenario: &Scenario, window: usize) -> Self {
        let hosts = scenario.hosts.iter().enumerate().map(|(index, host)| {
            let course = Course::of(scenario, index, &scenario.windows[window]);
            let disks = host.config.vdisks.iter().zip(course.limits);
            let limited = disks.filter(|(_, limit)| limit.is_some());
            let name = |vm: usize, disk: &str| format!("{}:{disk}", host.config.vms[vm].name);
            limited.map(|(disk, _)| name(disk.vm.index(), &disk.name)).collect()
        });
        Self(hosts.collect())
    }

    /// Who is on a device or volume of a host.
    pub(crate) fn on<'a>(&self, host: usize, recording: &'a Measured, row: EntityId) -> Guests<'a> {
        let disks = recording.of_kind(Kind::VirtualDisk).map(|(id, _)| Vdisk::of(recording, id));
        let disks: Vec<_> = disks.filter(|disk| disk.device == Some(row)).collect();
        let is_limited = |disk: &&Vdisk<'_>| self.0[host].contains(disk.name);
        let limited = disks.iter().filter(is_limited).map(|disk| disk.vm).collect();
        let is_nfs = recording.entity(row).kind == Kind::NfsVolume;
        let tenants = if is_nfs { Vec::new() } else { tenants(recording, row) };
        Guests { recording, row, disks, limited, tenants }
    }
}

/// The VMs on a device or volume.
pub(crate) struct Guests<'a> {
    recording: &'a Measured,
    row: EntityId,
    pub(crate) disks: Vec<Vdisk<'a>>,
    /// Those of which a disk has a limit.
    limited: BTreeSet<&'a str>,
    /// Their worlds, which volumes of NFS have not.
    tenants: Vec<Tenant<'a>>,
}

/// What a VM, or a disk of it, sends in a second, and how many commands of it wait in the host.
struct Waits<'a> {
    vm: &'a str,
    rate: f64,
    waiting: f64,
}

impl<'a> Guests<'a> {
    /// The mean commands of each VM that wait for its own limit in a sample: those that wait longer than such of VMs
    /// without a limit do; where there are none, those that wait beside free slots.
    pub(crate) fn waiting(&self, sample: usize) -> BTreeMap<&'a str, f64> {
        if self.limited.is_empty() {
            return BTreeMap::new();
        }
        let waits = self.waits(sample);
        let (limited, free): (Vec<_>, Vec<_>) =
            waits.into_iter().partition(|one| self.limited.contains(one.vm));
        let all = |of: fn(&Waits<'_>) -> f64| free.iter().map(of).sum::<f64>();
        let (rate, waiting) = (all(|one| one.rate), all(|one| one.waiting));
        let others_s = match rate > 0.0 {
            true => waiting / rate,
            false if self.is_full(sample) => f64::INFINITY,
            false => 0.0,
        };
        let mut own = BTreeMap::new();
        for one in limited.iter().filter(|one| one.rate > 0.0) {
            let waiting = one.waiting - one.rate * others_s;
            if waiting > 0.0 {
                *own.entry(one.vm).or_default() += waiting;
            }
        }
        own
    }

    fn waits(&self, sample: usize) -> Vec<Waits<'a>> {
        if !self.tenants.is_empty() {
            let waits = |tenant: &Tenant<'a>| {
                let rate = tenant.rate(sample)?;
                let waiting = tenant.mean(&[sample], Flow::waiting)?;
                Some(Waits { vm: tenant.name, rate, waiting })
            };
            return self.tenants.iter().filter_map(waits).collect();
        }
        let value = |counter| self.recording.value(self.row, counter, sample);
        let (rate, gavg) = (value(Counter::Commands), value(Counter::GuestLatency));
        let queued = value(Counter::MeanQueued).unwrap_or_default();
        let Some((rate, gavg_ms)) = rate.zip(gavg).filter(|(rate, _)| *rate > 0.0) else {
            return Vec::new();
        };
        let below_ms = gavg_ms - 1000.0 * queued / rate;
        let waits = |disk: &Vdisk<'a>| {
            let rate = disk.rate(sample)?;
            let waiting = (disk.outstanding(sample)? - little(rate, below_ms)).clamp(0.0, queued);
            Some(Waits { vm: disk.vm, rate, waiting })
        };
        self.disks.iter().filter_map(waits).collect()
    }

    fn is_full(&self, sample: usize) -> bool {
        let value = |counter| self.recording.value(self.row, counter, sample);
        let slots = value(Counter::MeanActive).zip(value(Counter::MeanDeviceQDepth));
        slots.is_some_and(|(active, depth)| active >= FULL * depth)
    }
}
