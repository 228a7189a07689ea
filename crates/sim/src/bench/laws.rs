//! What the control laws cost: model (b) with all of them on beside the same without any.
//!
//! All of them act: half of the VMs have a reservation and most of the shares, the other half a limit
//! below what they would do; the array's port is full now and then, so that its hosts throttle; the rest
//! sees every command.

use counters::DeviceId;
use engine::HostConfig;
use knobs::{Advanced, Allocation, IoControl, Knob};
use scenario::Scenario;

use super::{DEPTH, MODELS, Timing, time_scenario};

/// The IOPS limit of every second VM: half of what it does without.
const LIMIT_IOPS: u32 = 7_500;
/// What the array takes, a little less than all devices would send.
const PORT_LIMIT: u32 = 15 * DEPTH;

/// Simulates model (b), with every control law or without.
#[must_use]
pub fn time_laws(are_on: bool) -> Timing {
    let scenario = if are_on { scenario_with_laws() } else { MODELS[1].scenario() };
    time_scenario(&scenario, 1)
}

/// Model (b) with every control law.
#[must_use]
pub fn scenario_with_laws() -> Scenario {
    let mut scenario = MODELS[1].scenario();
    scenario.arrays[0].config.queues.port_limit = Some(PORT_LIMIT);
    for host in &mut scenario.hosts {
        put_on(&mut host.config);
        let devices = (0..host.config.devices.len()).map(DeviceId::new);
        host.settings = devices.flat_map(of_device).collect();
        host.settings.push(Knob::Advanced { option: Advanced::QFullSampleSize, value: 32 });
    }
    scenario
}

/// Storage I/O Control, and the depth found by latency.
fn of_device(device: DeviceId) -> [Knob; 2] {
    [
        Knob::StorageIoControl { device, control: IoControl::On { threshold_us: 5_000 } },
        Knob::DepthByLatency { device, on: true },
    ]
}

/// Shares, reservations and limits.
fn put_on(host: &mut HostConfig) {
    for (index, disk) in host.vdisks.iter_mut().enumerate() {
        disk.allocation = if index < host.devices.len() {
            Allocation { shares: 2000, limit_iops: None, reservation_iops: 5_000 }
        } else {
            Allocation { shares: 500, limit_iops: Some(LIMIT_IOPS), reservation_iops: 0 }
        };
    }
}
