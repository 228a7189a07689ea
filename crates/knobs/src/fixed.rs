//! What the VMkernel does by numbers that no setting here changes: those that nobody sets, and
//! options that kavg leaves at their defaults.

use core::ops::RangeInclusive;

use counters::{MILLISECOND, SECOND};

/// A reservation conflict is tried again after about 60 ms [ELA 2012-05-12; reference
/// `array-and-control.md` section 7.4].
pub const CONFLICT_RETRY_NS: u64 = 60 * MILLISECOND;
/// After so many tries the VMkernel gives up: "too many reservation conflicts" [ELA].
pub const CONFLICT_RETRIES: u32 = 80;

/// An option, or a parameter of software iSCSI, that kavg knows and does not set.
#[derive(Clone, Debug)]
pub struct FixedOption {
    /// Its name, as articles and vCenter have it.
    pub name: &'static str,
    /// Its default, at which kavg leaves it.
    pub default: u32,
    /// What a host takes.
    pub range: RangeInclusive<u32>,
}

impl FixedOption {
    const fn new(name: &'static str, default: u32, range: RangeInclusive<u32>) -> Self {
        Self { name, default, range }
    }

    /// Its default in nanoseconds, where it counts milliseconds.
    #[must_use]
    pub const fn default_ns(&self) -> u64 {
        self.default as u64 * MILLISECOND
    }
}

/// Commands outstanding on all NFS mounts of a host [LAMW].
pub const NFS_OUTSTANDING: FixedOption =
    FixedOption::new("NFS.NFSMaxOutstandingIOs", 65_536, 32..=131_072);
/// Milliseconds until a queue that got TASK SET FULL with nothing outstanding is started again
/// [LAMW].
pub const STALLED_QUEUE_MS: FixedOption =
    FixedOption::new("Scsi.ScsiRestartStalledQueueLatency", 500, 1..=60_000);
/// Commands that an iSCSI session has under way at most, which no line sets [ELA; reference
/// `array-and-control.md` section 7.5].
pub const MAX_CMDS: FixedOption = FixedOption::new("MaxCmds", 128, 2..=2_048);
/// The option that permits the latency policy of path selection unless it is 0: 0 in 6.7 without an update, 1 up
/// to 8.0, and gone in 9.0 [LAMW; reference `esxi-host-stack.md` section 1.6].
pub const ENABLE_PSP_LATENCY: &str = "/Misc/EnablePSPLatencyPolicy";
/// Results in a window of adaptive throttling, as arrays' vendors ask for (reference
/// `array-and-control.md` section 7.3).
pub const QFULL_SAMPLE_SIZE: u32 = 32;
/// Milliseconds for which a reservation of the system is held at most [LAMW; reference
/// `array-and-control.md` section 7.4].
pub const RESERVE_TIME_MAX_MS: FixedOption = FixedOption::new("Scsi.MaxReserveTime", 200, 50..=500);
/// The congestion threshold of Storage I/O Control in milliseconds [API]; 30 unless it is given
/// ([`CONGESTION_MS_DEFAULT`]).
pub const CONGESTION_MS: RangeInclusive<u32> = 5..=100;
/// The same where nobody gives it (section 3 of the reference `array-and-control.md`).
pub const CONGESTION_MS_DEFAULT: u32 = 30;
/// The share of a datastore's peak throughput whose latency is the automatic threshold
/// (`percentOfPeakThroughput` [API]); no line sets it.
pub const CONGESTION_SHARES: RangeInclusive<f64> = 0.5..=1.0;
/// The period after which Storage I/O Control looks at a datastore again (section 3 of the reference
/// `array-and-control.md`).
pub const CONGESTION_PERIOD_NS: u64 = 4 * SECOND;
/// How long I/O pauses when a path or a controller of a SAN fails until the host knows that it is dead: 30 to 60 s, with
/// Fibre Channel as with iSCSI [DOC-APD]. This is the least of it.
pub const DEAD_AFTER_NS: u64 = 30 * SECOND;
/// How long a host keeps a reservation that it may use again: `Disk.DiskReservationThreshold`,
/// 45 ms [LAMW; reference `array-and-control.md` section 7.4].
pub const RESERVE_HOLD_NS: u64 = 45 * MILLISECOND;
