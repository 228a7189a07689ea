//! The identities that the numbers of a sound capture obey, as a check of the file.
//!
//! They held within 0.01 in every real row seen [CAP-A].

use std::collections::BTreeMap;

use counters::{Counter, Entity, EntityId, Kind, Recording};

/// What must add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The commands of a device are those of its worlds.
    DeviceIsSumOfWorlds,
    /// The commands of a device are at least those of its partitions.
    DeviceHoldsPartitions,
    /// The commands of an adapter are those of its paths.
    AdapterIsSumOfPaths,
    /// GAVG = DAVG + KAVG.
    GuestIsDriverPlusKernel,
    /// All devices and NFS volumes together have at least the commands of all virtual disks.
    HostHoldsVirtualDisks,
}

impl Identity {
    /// The identity as a formula.
    #[must_use]
    pub const fn formula(self) -> &'static str {
        match self {
            Self::DeviceIsSumOfWorlds => "device CMDS/s = sum of its worlds",
            Self::DeviceHoldsPartitions => "device CMDS/s >= sum of its partitions",
            Self::AdapterIsSumOfPaths => "adapter CMDS/s = sum of its paths",
            Self::GuestIsDriverPlusKernel => "GAVG = DAVG + KAVG",
            Self::HostHoldsVirtualDisks => "all devices CMDS/s >= sum of virtual disks",
        }
    }
}

/// How an identity fared.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The identity.
    pub identity: Identity,
    /// Comparisons made: an object in a sample each.
    pub tested: usize,
    /// How many of them held.
    pub held: usize,
    /// The greatest difference beyond rounding, and where it was: object and sample.
    pub worst: Option<(f64, EntityId, usize)>,
}

/// Numbers are printed with two decimals; half of the last is lost in each.
const ROUNDING: f64 = 0.005;

/// Room for the order of float additions.
const SLACK: f64 = 0.0051;

/// Tries every identity that the recording has the columns for.
#[must_use]
pub fn check(recording: &Recording) -> Vec<Check> {
    let device_of: fn(&Entity) -> Option<EntityId> = |entity| entity.device;
    let adapter_of: fn(&Entity) -> Option<EntityId> = |entity| entity.adapter;
    let checks = [
        sums(recording, Identity::DeviceIsSumOfWorlds, Kind::World, device_of),
        sums(recording, Identity::DeviceHoldsPartitions, Kind::Partition, device_of),
        sums(recording, Identity::AdapterIsSumOfPaths, Kind::Path, adapter_of),
        latencies(recording),
        virtual_disks(recording),
    ];
    checks.into_iter().filter(|check| check.tested > 0).collect()
}

impl Check {
    const fn new(identity: Identity) -> Self {
        Self { identity, tested: 0, held: 0, worst: None }
    }

    /// Compares a whole with the sum of `parts` printed numbers.
    fn compare(&mut self, whole: f64, sum: f64, parts: usize, at: (EntityId, usize)) {
        if whole.is_nan() || sum.is_nan() {
            return;
        }
        let difference = match self.identity {
            Identity::DeviceHoldsPartitions | Identity::HostHoldsVirtualDisks => {
                (sum - whole).max(0.0)
            }
            _ => (sum - whole).abs(),
        };
        self.tested += 1;
        if difference <= ROUNDING * (parts + 1) as f64 + SLACK {
            self.held += 1;
        } else if self.worst.is_none_or(|(worst, ..)| difference > worst) {
            self.worst = Some((difference, at.0, at.1));
        }
    }
}

/// Adds up a counter of several objects, sample by sample.
fn sum(recording: &Recording, counter: Counter, objects: &[EntityId]) -> Vec<f64> {
    let mut total = vec![0.0; recording.len()];
    for values in objects.iter().filter_map(|&object| recording.series(object, counter)) {
        for (total, value) in total.iter_mut().zip(values) {
            *total += value;
        }
    }
    total
}

fn sums(
    recording: &Recording,
    identity: Identity,
    part: Kind,
    parent: fn(&Entity) -> Option<EntityId>,
) -> Check {
    let mut check = Check::new(identity);
    let mut parts: BTreeMap<EntityId, Vec<EntityId>> = BTreeMap::new();
    for (id, entity) in recording.of_kind(part) {
        if let (Some(parent), true) =
            (parent(entity), recording.series(id, Counter::Commands).is_some())
        {
            parts.entry(parent).or_default().push(id);
        }
    }
    for (whole, parts) in parts {
        let Some(commands) = recording.series(whole, Counter::Commands) else { continue };
        let sums = sum(recording, Counter::Commands, &parts);
        for (sample, (commands, sum)) in commands.iter().zip(sums).enumerate() {
            check.compare(*commands, sum, parts.len(), (whole, sample));
        }
    }
    check
}

fn latencies(recording: &Recording) -> Check {
    let mut check = Check::new(Identity::GuestIsDriverPlusKernel);
    for (id, counter, guest) in recording.columns() {
        if counter != Counter::GuestLatency {
            continue;
        }
        let series = |counter| recording.series(id, counter);
        let (Some(driver), Some(kernel)) =
            (series(Counter::DriverLatency), series(Counter::KernelLatency))
        else {
            continue;
        };
        for (sample, guest) in guest.iter().enumerate() {
            check.compare(*guest, driver[sample] + kernel[sample], 2, (id, sample));
        }
    }
    check
}

fn virtual_disks(recording: &Recording) -> Check {
    let mut check = Check::new(Identity::HostHoldsVirtualDisks);
    let ids = |kind| recording.of_kind(kind).map(|(id, _)| id);
    let disks: Vec<_> = ids(Kind::VirtualDisk).collect();
    let devices: Vec<_> = ids(Kind::Device).chain(ids(Kind::NfsVolume)).collect();
    let (Some(&first), false) = (devices.first(), disks.is_empty()) else { return check };
    let held = sum(recording, Counter::Commands, &devices);
    let issued = sum(recording, Counter::Commands, &disks);
    for (sample, (held, issued)) in held.into_iter().zip(issued).enumerate() {
        check.compare(held, issued, devices.len() + disks.len(), (first, sample));
    }
    check
}
