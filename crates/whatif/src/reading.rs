//! The ways to read what a recording leaves open: where the knee of the arrays is, what guests do, and whether a
//! policy holds a volume.

use crate::{
    array::{ArrayCalibration, Curve},
    demand::DeviceCalibration,
    observe::Device,
};

/// One way to read what the recording leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) knee: Knee,
    pub(crate) demand: Demand,
    pub(crate) order: Order,
    pub(crate) sizes: Sizes,
}

/// What is likeliest: guests that wait for their answers, as most that queue do.
pub(crate) const BEST: Reading =
    Reading { knee: Knee::Best, demand: Demand::Waits, order: Order::Usual, sizes: Sizes::Mean };

/// Of which sizes the commands are of guests of whom the mean size alone is known. A device's queue gives a VM so many
/// fewer turns as its commands count more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// All of the mean.
    Mean,
    /// Those of the busiest of each device count the most that goes with their mean.
    Busiest,
    /// Those of the others do.
    Others,
}

impl Sizes {
    /// Whether it is so of a guest of a device.
    pub(crate) fn is_apart(self, of: &DeviceCalibration, tenant: usize) -> bool {
        let rate = |at: &usize| of.guests[*at].iops;
        let busiest = (0..of.guests.len()).max_by(|a, b| rate(a).total_cmp(&rate(b)));
        let is_meant = match self {
            Self::Mean => false,
            Self::Busiest => busiest == Some(tenant),
            Self::Others => busiest != Some(tenant),
        };
        is_meant && of.vms() > 1.0 && !of.guests[tenant].counts_alike()
    }
}

/// In which order a device serves the VMs that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// That of the host's version.
    Usual,
    /// Any other that there is.
    Other(&'static str),
}

impl Order {
    /// All, the likeliest first.
    pub(crate) const ALL: [Self; 3] = [Self::Usual, Self::Other("sfq"), Self::Other("fifo")];
}

/// What guests do, as far as the recording leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// All wait for their answers, with the shortest pauses that fit.
    Waits,
    /// All send at rates of their own, or with the longest pauses that fit.
    Rates,
    /// All wait for their answers, in bursts that fill the queue.
    Bursts,
    /// The busiest waits, the others send at rates.
    OneWaits,
    /// The busiest sends at a rate, the others wait.
    OneRates,
    /// Those with few commands outstanding send at rates, the others wait.
    FewRate,
    /// Who stands at a driver's depth fills any other; the others wait.
    Hungry,
}

/// Where the knee of the arrays is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knee {
    Best,
    Least,
    Most,
    /// The most favourable where fewer commands take no less.
    Flat,
    /// This array takes no time itself, and holds the volume of each of its devices to the rate that it had.
    Held(usize),
}

impl Demand {
    /// What one guest does; `is_one` is whether it is the busiest, `is_few` whether it has few
    /// commands outstanding.
    pub(crate) fn of(self, is_one: bool, is_few: bool) -> Self {
        match self {
            Self::FewRate if is_few => Self::Rates,
            Self::FewRate => Self::Waits,
            Self::OneWaits if is_one => Self::Waits,
            Self::OneRates if is_one => Self::Rates,
            Self::OneWaits => Self::Rates,
            Self::OneRates => Self::Waits,
            other => other,
        }
    }
}

impl ArrayCalibration {
    pub(crate) fn curve(&self, knee: Knee) -> &Curve {
        match knee {
            // One of which no volume is held.
            Knee::Best | Knee::Held(_) => &self.best,
            Knee::Least => &self.least,
            Knee::Most => &self.most,
            Knee::Flat => &self.flat,
        }
    }
}

/// Each demand of some readings with each array on which a VM is and which may hold its volumes to the rates that
/// they had, for all that is known.
pub(crate) fn of_held(
    readings: &[Reading],
    arrays: &[ArrayCalibration],
    (devices, calibrated): (&[Device<'_>], &[DeviceCalibration]),
    vm: &str,
) -> Vec<Reading> {
    let may_hold = |array: &usize| {
        let own = || devices.iter().zip(calibrated).filter(|(_, of)| of.array == *array);
        let is_throttled =
            |of: &DeviceCalibration| of.guests.iter().any(|own| own.throttled_at_iops.is_some());
        arrays[*array].stands
            && own().any(|(_, of)| of.guests.iter().any(|guest| guest.vm == vm))
            && own().all(|(device, of)| !device.is_nfs && !is_throttled(of))
    };
    let mut held = Vec::new();
    for array in (0..arrays.len()).filter(may_hold) {
        // There is one of each demand.
        let least = readings.iter().filter(|reading| reading.knee == Knee::Least);
        held.extend(least.map(|reading| Reading { knee: Knee::Held(array), ..*reading }));
    }
    held
}

/// The same where guests that compete for a queue have commands of sizes that differ: what these count where they wait
/// for their turns.
pub(crate) fn of_sizes(readings: &[Reading], calibrated: &[DeviceCalibration]) -> Vec<Reading> {
    let is_any = |sizes: &Sizes| {
        let is_any_of =
            |of: &DeviceCalibration| (0..of.guests.len()).any(|tenant| sizes.is_apart(of, tenant));
        calibrated.iter().any(is_any_of)
    };
    let sizes = [Sizes::Busiest, Sizes::Others].into_iter().filter(is_any);
    sizes.flat_map(|sizes| readings.iter().map(move |own| Reading { sizes, ..*own })).collect()
}

/// That an array of these readings may hold its volumes and be full itself or not, and what would tell.
pub(crate) fn doubts(
    readings: impl Iterator<Item = Reading>,
    arrays: &[ArrayCalibration],
) -> Vec<String> {
    let mut doubts = Vec::new();
    for reading in readings {
        let Knee::Held(array) = reading.knee else { continue };
        let doubt = format!(
            "Whether the array of {} was full, or held a volume to its rate by a policy and has time left, no \
             counter of a host tells: of a volume that is held another one waits for nothing, and how quick \
             the array is without is not known. The range covers both. What another volume of it does \
             meanwhile would tell, or its own figures.",
            arrays[array].devices.join(", ")
        );
        if !doubts.contains(&doubt) {
            doubts.push(doubt);
        }
    }
    doubts
}
