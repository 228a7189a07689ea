//! An engine at work as bytes: what it needs to go on as if nothing had happened, in another process or
//! at another time. The tables of its parts stand beside them; those of what it counts are here.
//!
//! What comes from bytes is an engine only when it could have become one by itself: ids name
//! something, lists hold together (`sound.rs`), and every invariant holds.

use alloc::vec::Vec;

use counters::{
    DeviceCounters, GateCounters, Histogram, IoTotals, Levels, Occupancy, RareCounters, Seldom,
    VdiskCounters,
};

use crate::{
    Engine, Outputs,
    codec::{Bytes, Damage, Field, Put, records},
    stack::Stack,
};

/// Between two inputs, and without what was decided and not polled.
impl Field for Engine {
    fn put(&self, to: &mut impl Put) {
        self.stack.put(to);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        let stack = Stack::take(from)?;
        stack.check_sound()?;
        stack.check().map_err(|_| Damage("an engine with an invariant that does not hold"))?;
        Ok(Self { stack, outputs: Outputs::default() })
    }
}

records! {
    IoTotals { commands, bytes, guest_ns, kernel_ns, queue_ns, device_ns, array_ns }
    Levels { guest, kernel, device }
    VdiskCounters {
        io, total, total_ns, shares, offered, lost, merged, guest_queued, queued, slots, rare,
    }
    RareCounters {
        failed, aborts, overdue, resets, reserves, failed_reserves, conflicts, ats, flushes, discards, zeroes, copies,
    }
    DeviceCounters {
        depth, depth_over_time, active, queued, held, levels, engagements, queue_full, resets,
        units,
    }
    GateCounters { depth, active, queued, io, split_commands, split_copies }
}

impl Field for Occupancy {
    fn put(&self, to: &mut impl Put) {
        self.parts().put(to);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Field::take(from).map(Self::of_parts)
    }
}

impl<T: Field + Copy + Default + PartialEq> Field for Seldom<T> {
    fn put(&self, to: &mut impl Put) {
        self.get().put(to);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Field::take(from).map(Self::of)
    }
}

impl Field for Histogram {
    fn put(&self, to: &mut impl Put) {
        for table in self.tables() {
            table.is_some().put(to);
            table.into_iter().flatten().for_each(|entries| entries.put(to));
        }
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        let mut table = || -> Result<Option<Vec<u16>>, Damage> {
            let there = bool::take(from)?;
            let table = there.then(|| (0..Self::BUCKETS).map(|_| Field::take(from)).collect());
            table.transpose()
        };
        Self::of_tables([table()?, table()?]).ok_or(Damage("a histogram of other buckets"))
    }
}
