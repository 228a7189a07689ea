//! The queueing arithmetic of one device in one interval: Little's law and closed formulas.
//!
//! ```text
//!  guest: at most `limit` of a flow's commands pass ([1.2] of the reference)
//!    -> a flow's own IOPS limit holds what is above it
//!    -> device queue: `depth` slots, what is above them waits (FIFO)
//!    -> array: R(n) = S (1 + (n-1)/N), and never quicker than its QoS lets it: n / cap
//! ```
//! The array's formula is the two-parameter model of array-and-control.md section 1; a throttled
//! command keeps its slot (6.4).

use super::host::{Demand, DeviceNow, FlowNow};

/// What a flow does in one interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Served {
    pub(super) iops: f64,
    /// Milliseconds from the driver to the completion.
    pub(super) davg_ms: f64,
    /// Milliseconds waiting for a slot of the device.
    pub(super) wait_ms: f64,
    /// Milliseconds held by the flow's own IOPS limit.
    pub(super) hold_ms: f64,
    /// The guest had more to send than its virtual disk let through.
    pub(super) capped: bool,
}

impl Served {
    pub(super) fn active(&self) -> f64 {
        self.iops * self.davg_ms / 1e3
    }

    /// Milliseconds from the virtual adapter and back.
    pub(super) fn stack_ms(&self, device: &DeviceNow) -> f64 {
        self.davg_ms + self.wait_ms + self.hold_ms + device.kernel_ms + OVERHEAD_MS
    }

    /// Commands of the flow below its virtual adapter, but for those that the VMkernel works on.
    pub(super) fn outstanding(&self) -> f64 {
        self.active() + self.queued()
    }

    /// Commands of the flow that wait in the VMkernel.
    pub(super) fn queued(&self) -> f64 {
        self.iops * (self.wait_ms + self.hold_ms) / 1e3
    }
}

/// What a command takes in the VMkernel when nothing holds it: [CAP-A]'s KAVG is 0.00 to 0.02 ms.
pub(super) const OVERHEAD_MS: f64 = 0.008;

const ROUNDS: usize = 40;

/// Splits a device's slots between its flows.
pub(super) fn serve(device: &DeviceNow, depth: f64, flows: &[&FlowNow]) -> Vec<Served> {
    let free = settle(device, flows, 0.0);
    if active(&free) <= depth + 1e-6 {
        return free;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while active(&settle(device, flows, high)) > depth && high < 1e8 {
        high *= 2.0;
    }
    for _ in 0..ROUNDS {
        let middle = (low + high) / 2.0;
        if active(&settle(device, flows, middle)) > depth {
            low = middle;
        } else {
            high = middle;
        }
    }
    settle(device, flows, high)
}

fn active(served: &[Served]) -> f64 {
    served.iter().map(Served::active).sum()
}

/// The rates that agree with a wait of `wait_ms` for a slot.
fn settle(device: &DeviceNow, flows: &[&FlowNow], wait_ms: f64) -> Vec<Served> {
    let mut served = vec![Served { davg_ms: device.service_ms, ..Served::default() }; flows.len()];
    for _ in 0..ROUNDS {
        let in_flight = active(&served);
        let mut answer_ms = device.service_ms * (1.0 + (in_flight - 1.0).max(0.0) / device.servers)
            + device.adapter_ms();
        if let Some(cap) = device.cap_iops {
            answer_ms = f64::max(answer_ms, in_flight / cap * 1e3);
        }
        for (now, flow) in served.iter_mut().zip(flows) {
            let own_ms = flow
                .qos_iops
                .map_or(answer_ms, |cap| f64::max(answer_ms, now.active() / cap * 1e3));
            let davg_ms = (now.davg_ms + own_ms) / 2.0;
            *now = rate(flow, davg_ms, wait_ms, device.kernel_ms + OVERHEAD_MS);
        }
    }
    served
}

/// A flow's rate where a command takes `davg_ms` after a wait of `wait_ms`, and the VMkernel
/// `kernel_ms` besides.
fn rate(flow: &FlowNow, davg_ms: f64, wait_ms: f64, kernel_ms: f64) -> Served {
    let stack_s = (davg_ms + wait_ms + kernel_ms).max(1e-3) / 1e3;
    let (outstanding, capped) = match flow.demand {
        Demand::Closed(threads) => (threads.min(flow.limit), threads > flow.limit),
        Demand::Open(iops) => ((iops * stack_s).min(flow.limit), iops * stack_s > flow.limit),
    };
    let iops = outstanding / stack_s;
    let served = Served { iops, davg_ms, wait_ms, hold_ms: 0.0, capped };
    match flow.limit_iops {
        Some(cap) if cap < iops => {
            let held = match flow.demand {
                Demand::Closed(threads) => threads.min(flow.limit),
                Demand::Open(_) => flow.limit,
            };
            Served { iops: cap, hold_ms: (held / cap - stack_s) * 1e3, capped: true, ..served }
        }
        _ => served,
    }
}
