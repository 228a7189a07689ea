//! What the VMs of a run did in a window, and how fair that was.

use std::collections::BTreeMap;

use counters::{Counter, Kind};

use crate::sweep::Rows;

/// What a VM did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Flow {
    pub(crate) iops: f64,
    pub(crate) mib: f64,
    /// Milliseconds that its I/Os of a second take together.
    waiting: f64,
}

/// What each VM did, by its name: its virtual disks on all hosts.
pub(crate) fn flows(rows: &Rows) -> BTreeMap<&str, Flow> {
    let mut flows: BTreeMap<&str, Flow> = BTreeMap::new();
    for row in rows.of_kind(Kind::VirtualDisk) {
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

/// How fair a resource is shared: 1 where all have the same, 1/n where one of n has all [JAIN].
/// `None` where nobody has anything.
pub(crate) fn jain(all: &[f64]) -> Option<f64> {
    let sum: f64 = all.iter().sum();
    let squares: f64 = all.iter().map(|one| one * one).sum();
    (squares > 0.0).then(|| sum * sum / (all.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// k of n that share alike while the others have nothing are k/n [JAIN].
    #[test]
    fn the_index_is_that_of_jain() {
        assert_eq!(jain(&[3.0; 5]), Some(1.0));
        assert_eq!(jain(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[2.0, 2.0, 0.0, 0.0]), Some(0.5));
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!((jain(&[0.0, 0.0]), jain(&[])), (None, None));
    }
}
