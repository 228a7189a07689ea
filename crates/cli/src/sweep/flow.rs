//! What the VMs of a run did in a window.

use std::collections::BTreeMap;

use counters::{Counter, Kind};
use scenario::is_member;

use super::figures::Window;

/// What a VM did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Flow {
    pub(crate) iops: f64,
    pub(crate) mib: f64,
    /// Milliseconds that its I/Os of a second take together.
    waiting: f64,
}

/// What the VM of a name did, or all of the group of that name together; `None` where there is none.
pub(super) fn flow_of(window: &Window, name: &str) -> Option<Flow> {
    let mut flows = flows(window);
    flows.remove(name).or_else(|| {
        let members = flows.into_iter().filter(|(vm, _)| is_member(vm, name));
        members.map(|(_, flow)| flow).reduce(|a, b| Flow {
            iops: a.iops + b.iops,
            mib: a.mib + b.mib,
            waiting: a.waiting + b.waiting,
        })
    })
}

/// What each VM did, by its name: its virtual disks on all hosts.
pub(crate) fn flows(window: &Window) -> BTreeMap<&str, Flow> {
    let mut flows: BTreeMap<&str, Flow> = BTreeMap::new();
    for row in window.of_kind(Kind::VirtualDisk) {
        let Some(vm) = row.vm() else { continue };
        let flow = flows.entry(vm).or_default();
        let value = |counter| row.value(counter).unwrap_or(0.0);
        let iops = value(Counter::Commands);
        flow.iops += iops;
        flow.mib += value(Counter::MbRead) + value(Counter::MbWritten);
        flow.waiting += iops * value(Counter::TotalLatency);
    }
    flows
}

impl Flow {
    /// What its guest waits for an I/O in the mean, in milliseconds; `None` where none ended.
    pub(crate) fn total_ms(self) -> Option<f64> {
        (self.iops > 0.0).then(|| self.waiting / self.iops)
    }

    /// I/Os a second as shares and limits count them: of `unit` bytes each, and one at least for an
    /// I/O that is smaller.
    pub(crate) fn units(self, unit: f64) -> f64 {
        self.iops.max(self.mib * f64::from(1 << 20) / unit)
    }
}
