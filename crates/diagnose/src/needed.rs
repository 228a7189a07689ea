//! What is looked at: the counters that the diagnosis and its reports need.

use counters::Counter;

/// The counters that are looked at, here, by what-if and by the reports. A capture that is read to
/// be diagnosed needs no others.
pub const NEEDED: &[Counter] = &[
    Counter::AdapterQDepth,
    Counter::DeviceQDepth,
    Counter::ActiveCommands,
    Counter::QueuedCommands,
    Counter::Commands,
    Counter::Reads,
    Counter::Writes,
    Counter::MbRead,
    Counter::MbWritten,
    Counter::Conflicts,
    Counter::DriverLatency,
    Counter::KernelLatency,
    Counter::GuestLatency,
    Counter::QueueLatency,
    Counter::FailedCommands,
    Counter::Aborts,
    Counter::Resets,
    Counter::SplitCommands,
    Counter::SplitCopies,
    Counter::VdiskReadLatency,
    Counter::VdiskWriteLatency,
    Counter::GuestWait,
    Counter::ArrayLatency,
    Counter::MeanActive,
    Counter::MeanQueued,
    Counter::MeanGuestQueued,
];
