//! The one table of counters: key, esxtop's column, the name in `esxtop -b`, unit, meaning.
//!
//! Names and order are those of real captures [CAP-A, CAP-B] (reference: `esxtop-captures.md`
//! section 2, `esxi-host-stack.md` sections 5.2 and 5.9). The last rows are counters that esxtop
//! lacks; they are shown, and never written into an esxtop file.

use crate::Kind;

/// How `esxtop -b` prints a counter [CAP-A].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A plain integer.
    Integer,
    /// Two decimals.
    Decimal2,
}

/// What is known of a counter.
#[derive(Clone, Copy, Debug)]
pub struct CounterInfo {
    /// The counter itself.
    pub counter: Counter,
    /// Its key in expectations, JSON and Parquet.
    pub key: &'static str,
    /// Its column on esxtop's screens.
    pub column: &'static str,
    /// Its name in `esxtop -b`.
    pub batch_name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// How `esxtop -b` prints it.
    pub format: Format,
    /// Whether esxtop has it; the others are kavg's own.
    pub in_esxtop: bool,
    /// What it means, in one sentence.
    pub meaning: &'static str,
}

macro_rules! counters {
    ($($name:ident $key:literal $column:literal $batch:literal $unit:literal $format:ident
        $in_esxtop:literal $meaning:literal;)*) => {
        /// A counter of a disk object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Counter {$(
            #[doc = $meaning]
            $name,
        )*}

        impl Counter {
            /// Every counter, in the order of the table.
            pub const TABLE: &'static [CounterInfo] = &[$(CounterInfo {
                counter: Self::$name,
                key: $key,
                column: $column,
                batch_name: $batch,
                unit: $unit,
                format: Format::$format,
                in_esxtop: $in_esxtop,
                meaning: $meaning,
            }),*];
        }
    };
}

counters! {
    AdapterQDepth "aqlen" "AQLEN" "Adapter Q Depth" "commands" Integer true "The adapter driver's limit on outstanding commands [KB-AQ].";
    Shares "shares" "SHARES" "Shares" "shares" Integer true "The world's shares on the device.";
    DeviceQDepth "dqlen" "DQLEN" "Device Q Depth" "commands" Integer true "The limit in force on the device's outstanding commands [S1].";
    WorldQDepth "wqlen" "WQLEN" "World Q Depth" "commands" Integer true "The limit per world; 0 since ESXi 5.5 [CAP-A].";
    ActiveCommands "actv" "ACTV" "Active Commands" "commands" Integer true "Commands holding a slot of the device at the instant of the sample [S0].";
    QueuedCommands "qued" "QUED" "Queued Commands" "commands" Integer true "Commands waiting in the VMkernel for a slot at the instant of the sample [S0].";
    PercentUsed "used_pct" "%USD" "% Used" "%" Decimal2 true "100 * ACTV / DQLEN [S2].";
    Load "load" "LOAD" "Load" "" Decimal2 true "(ACTV + QUED) / DQLEN [S2].";
    Commands "cmds" "CMDS/s" "Commands/sec" "1/s" Decimal2 true "Commands completed per second, reads, writes and others.";
    Reads "reads" "READS/s" "Reads/sec" "1/s" Decimal2 true "Reads completed per second.";
    Writes "writes" "WRITES/s" "Writes/sec" "1/s" Decimal2 true "Writes completed per second.";
    MbRead "mbread" "MBREAD/s" "MBytes Read/sec" "MiB/s" Decimal2 true "Mebibytes read per second.";
    MbWritten "mbwrtn" "MBWRTN/s" "MBytes Written/sec" "MiB/s" Decimal2 true "Mebibytes written per second.";
    Reserves "resv" "RESV/s" "Reserves/sec" "1/s" Decimal2 true "SCSI reservations taken per second.";
    Conflicts "cons" "CONS/s" "Conflicts/sec" "1/s" Decimal2 true "Commands refused with RESERVATION CONFLICT per second.";
    DriverLatency "davg" "DAVG/cmd" "Average Driver MilliSec/Command" "ms" Decimal2 true "From the hand-over to the driver until the completion [S0].";
    KernelLatency "kavg" "KAVG/cmd" "Average Kernel MilliSec/Command" "ms" Decimal2 true "Time in the VMkernel: GAVG - DAVG [S0].";
    GuestLatency "gavg" "GAVG/cmd" "Average Guest MilliSec/Command" "ms" Decimal2 true "What the virtual SCSI adapter sees: DAVG + KAVG [S0].";
    QueueLatency "qavg" "QAVG/cmd" "Average Queue MilliSec/Command" "ms" Decimal2 true "The part of KAVG spent waiting in queues [QAVG].";
    DriverLatencyRead "davg_rd" "DAVG/rd" "Average Driver MilliSec/Read" "ms" Decimal2 true "DAVG of reads.";
    KernelLatencyRead "kavg_rd" "KAVG/rd" "Average Kernel MilliSec/Read" "ms" Decimal2 true "KAVG of reads.";
    GuestLatencyRead "gavg_rd" "GAVG/rd" "Average Guest MilliSec/Read" "ms" Decimal2 true "GAVG of reads.";
    QueueLatencyRead "qavg_rd" "QAVG/rd" "Average Queue MilliSec/Read" "ms" Decimal2 true "QAVG of reads.";
    DriverLatencyWrite "davg_wr" "DAVG/wr" "Average Driver MilliSec/Write" "ms" Decimal2 true "DAVG of writes.";
    KernelLatencyWrite "kavg_wr" "KAVG/wr" "Average Kernel MilliSec/Write" "ms" Decimal2 true "KAVG of writes.";
    GuestLatencyWrite "gavg_wr" "GAVG/wr" "Average Guest MilliSec/Write" "ms" Decimal2 true "GAVG of writes.";
    QueueLatencyWrite "qavg_wr" "QAVG/wr" "Average Queue MilliSec/Write" "ms" Decimal2 true "QAVG of writes.";
    FailedCommands "fcmds" "FCMDS/s" "Failed Commands/sec" "1/s" Decimal2 true "Commands that failed per second.";
    FailedReads "fread" "FREAD/s" "Failed Reads/sec" "1/s" Decimal2 true "Reads that failed per second.";
    FailedWrites "fwrite" "FWRITE/s" "Failed Writes/sec" "1/s" Decimal2 true "Writes that failed per second.";
    FailedBytesRead "fmbrd" "FMBRD/s" "Failed Bytes Read/sec" "MiB/s" Decimal2 true "Mebibytes of failed reads per second.";
    FailedBytesWritten "fmbwr" "FMBWR/s" "Failed Bytes Written/sec" "MiB/s" Decimal2 true "Mebibytes of failed writes per second.";
    FailedReserves "fresv" "FRESV/s" "Failed Reserves/sec" "1/s" Decimal2 true "Reservations that failed per second.";
    Aborts "abrts" "ABRTS/s" "Aborts/sec" "1/s" Decimal2 true "Commands aborted per second.";
    Resets "resets" "RESETS/s" "Resets/sec" "1/s" Decimal2 true "Resets issued per second.";
    PaeCommands "paecmd" "PAECMD/s" "PAE Commands/sec" "1/s" Decimal2 true "Commands that needed PAE copies per second.";
    PaeCopies "paecp" "PAECP/s" "PAE Copies/sec" "1/s" Decimal2 true "PAE copies per second.";
    SplitCommands "spltcmd" "SPLTCMD/s" "Split Commands/sec" "1/s" Decimal2 true "Commands split per second.";
    SplitCopies "spltcp" "SPLTCP/s" "Split Copies/sec" "1/s" Decimal2 true "Pieces made by splitting per second.";
    CloneReads "clone_rd" "CLONE_RD" "CReads" "commands" Integer true "Clone reads since boot, a total.";
    CloneWrites "clone_wr" "CLONE_WR" "CWrites" "commands" Integer true "Clone writes since boot, a total.";
    CloneFailed "clone_f" "CLONE_F" "CFailed" "commands" Integer true "Failed clones since boot, a total.";
    CloneMbRead "mbc_rd" "MBC_RD/s" "MBytes CReads/sec" "MiB/s" Decimal2 true "Mebibytes read by clones per second.";
    CloneMbWritten "mbc_wr" "MBC_WR/s" "MBytes CWrites/sec" "MiB/s" Decimal2 true "Mebibytes written by clones per second.";
    Ats "ats" "ATS" "ATS" "commands" Integer true "Atomic test and set commands since boot, a total.";
    AtsFailed "atsf" "ATSF" "ATS Failed" "commands" Integer true "Failed atomic test and set commands since boot, a total.";
    Zeros "zero" "ZERO" "Zeros" "commands" Integer true "Zero commands since boot, a total.";
    ZerosFailed "zero_f" "ZERO_F" "Zeros Failed" "commands" Integer true "Failed zero commands since boot, a total.";
    MbZeroed "mbzero" "MBZERO/s" "MBytes Zeroed/sec" "MiB/s" Decimal2 true "Mebibytes zeroed per second.";
    Deletes "delete" "DELETE" "Delete" "commands" Integer true "UNMAP commands since boot, a total.";
    DeletesFailed "delete_f" "DELETE_F" "Deletes Failed" "commands" Integer true "Failed UNMAP commands since boot, a total.";
    MbDeleted "mbdel" "MBDEL/s" "MBytes Deletes/sec" "MiB/s" Decimal2 true "Mebibytes unmapped per second.";
    CloneLatency "cavg_suc" "CAVG/suc" "Average Success Latency ms/Clone" "ms" Decimal2 true "Mean latency of clones that succeeded.";
    CloneFailureLatency "cavg_f" "CAVG/f" "Average Failure Latency ms/Clone" "ms" Decimal2 true "Mean latency of clones that failed.";
    AtsLatency "aavg_suc" "AAVG/suc" "Average Success Latency ms/ATS" "ms" Decimal2 true "Mean latency of ATS commands that succeeded.";
    AtsFailureLatency "aavg_f" "AAVG/f" "Average Failure Latency ms/ATS" "ms" Decimal2 true "Mean latency of ATS commands that failed.";
    ZeroLatency "zavg_suc" "ZAVG/suc" "Average Success Latency ms/Zero" "ms" Decimal2 true "Mean latency of zero commands that succeeded.";
    ZeroFailureLatency "zavg_f" "ZAVG/f" "Average Failure Latency ms/Zero" "ms" Decimal2 true "Mean latency of zero commands that failed.";
    VdiskFailedIos "failed_ios" "FAILEDIOS" "FailedIOs" "commands" Integer true "Failed I/Os of a virtual disk.";
    VdiskTotalIos "total_ios" "TOTALIOS" "TotalIOs" "commands" Integer true "I/Os of a virtual disk.";
    VdiskLatency "lat" "LAT" "Latency" "" Integer true "Latency of a virtual disk, unit not documented.";
    VdiskReadLatency "lat_rd" "LAT/rd" "Average MilliSec/Read" "ms" Decimal2 true "Latency of reads at the virtual SCSI adapter.";
    VdiskWriteLatency "lat_wr" "LAT/wr" "Average MilliSec/Write" "ms" Decimal2 true "Latency of writes at the virtual SCSI adapter.";
    NfsFailedMbRead "nfs_fmbrd" "FMBRD/s" "Failed MBytes Read/sec" "MiB/s" Decimal2 true "Mebibytes of failed NFS reads per second.";
    NfsFailedMbWritten "nfs_fmbwr" "FMBWR/s" "Failed MBytes Written/sec" "MiB/s" Decimal2 true "Mebibytes of failed NFS writes per second.";
    GuestWait "guest_wait" "GWAIT" "Average Guest Wait MilliSec/Command" "ms" Decimal2 false "Wait in the application and inside the guest for a slot of the virtual disk or adapter.";
    TotalLatency "total" "TOTAL" "Average Total MilliSec/Command" "ms" Decimal2 false "What the application in the guest sees: guest wait + GAVG; an I/O that its guest's driver cuts ends with its last command.";
    ArrayLatency "array" "ARRAY" "Average Array MilliSec/Command" "ms" Decimal2 false "What the array reports for the same commands.";
    ArrayLatencyRead "array_rd" "ARRAY/rd" "Average Array MilliSec/Read" "ms" Decimal2 false "ARRAY of reads.";
    ArrayLatencyWrite "array_wr" "ARRAY/wr" "Average Array MilliSec/Write" "ms" Decimal2 false "ARRAY of writes.";
    MeanDeviceQDepth "dqlen_mean" "DQLENm" "Mean Device Q Depth" "commands" Decimal2 false "DQLEN averaged over the interval; DQLEN itself is the last one.";
    MeanActive "actv_mean" "ACTVm" "Mean Active Commands" "commands" Decimal2 false "ACTV averaged over the interval instead of sampled.";
    MeanQueued "qued_mean" "QUEDm" "Mean Queued Commands" "commands" Decimal2 false "QUED averaged over the interval instead of sampled, and with it the commands held until they are sent again.";
    MeanGuestQueued "gqued_mean" "GQUEDm" "Mean Guest Queued Commands" "commands" Decimal2 false "Commands waiting inside the guest and its application, averaged over the interval.";
    Offered "offered" "OFFER/s" "Offered Commands/sec" "1/s" Decimal2 false "I/Os that the application wanted to issue per second, served or not.";
    Lost "lost" "LOST/s" "Lost Commands/sec" "1/s" Decimal2 false "I/Os that the application gave up per second because too many waited.";
    Merged "merged" "MERGED/s" "Merged Commands/sec" "1/s" Decimal2 false "I/Os of the application per second that its guest made a part of another one's command.";
    P50 "p50" "P50" "P50 Total MilliSec/Command" "ms" Decimal2 false "Median of the total latency over the interval.";
    P95 "p95" "P95" "P95 Total MilliSec/Command" "ms" Decimal2 false "95th percentile of the total latency over the interval.";
    P99 "p99" "P99" "P99 Total MilliSec/Command" "ms" Decimal2 false "99th percentile of the total latency over the interval.";
}

impl Counter {
    /// What is known of this counter.
    #[must_use]
    pub fn info(self) -> &'static CounterInfo {
        &Self::TABLE[self as usize]
    }

    /// The counter of that exact name in `esxtop -b`; `None` for a name that is not in the table.
    #[must_use]
    pub fn from_batch_name(name: &str) -> Option<Self> {
        Self::TABLE.iter().find(|info| info.batch_name == name).map(|info| info.counter)
    }

    /// The counter of that key; `None` for a key that is not in the table.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::TABLE.iter().find(|info| info.key == key).map(|info| info.counter)
    }
}

impl Counter {
    /// How full the queue of a device or world is.
    pub const QUEUE: [Self; 6] = [
        C::DeviceQDepth,
        C::WorldQDepth,
        C::ActiveCommands,
        C::QueuedCommands,
        C::PercentUsed,
        C::Load,
    ];
    /// What passes an object.
    pub const IO: [Self; 5] = [C::Commands, C::Reads, C::Writes, C::MbRead, C::MbWritten];
    /// How long a command takes, and where.
    pub const LATENCY: [Self; 4] =
        [C::DriverLatency, C::KernelLatency, C::GuestLatency, C::QueueLatency];
    /// How long a command takes at the virtual adapter.
    pub const VDISK_LATENCY: [Self; 2] = [C::VdiskReadLatency, C::VdiskWriteLatency];
}

use Counter as C;

const RESERVATION: [Counter; 2] = [C::Reserves, C::Conflicts];
const PER_DIRECTION: [Counter; 8] = [
    C::DriverLatencyRead,
    C::KernelLatencyRead,
    C::GuestLatencyRead,
    C::QueueLatencyRead,
    C::DriverLatencyWrite,
    C::KernelLatencyWrite,
    C::GuestLatencyWrite,
    C::QueueLatencyWrite,
];
const ERRORS: [Counter; 8] = [
    C::FailedCommands,
    C::FailedReads,
    C::FailedWrites,
    C::FailedBytesRead,
    C::FailedBytesWritten,
    C::FailedReserves,
    C::Aborts,
    C::Resets,
];
const SPLIT: [Counter; 4] = [C::PaeCommands, C::PaeCopies, C::SplitCommands, C::SplitCopies];
const ADAPTER_DEPTH: [Counter; 1] = [C::AdapterQDepth];
const SHARES: [Counter; 1] = [C::Shares];
const VAAI: [Counter; 19] = [
    C::CloneReads,
    C::CloneWrites,
    C::CloneFailed,
    C::CloneMbRead,
    C::CloneMbWritten,
    C::Ats,
    C::AtsFailed,
    C::Zeros,
    C::ZerosFailed,
    C::MbZeroed,
    C::Deletes,
    C::DeletesFailed,
    C::MbDeleted,
    C::CloneLatency,
    C::CloneFailureLatency,
    C::AtsLatency,
    C::AtsFailureLatency,
    C::ZeroLatency,
    C::ZeroFailureLatency,
];
const NFS: [Counter; 7] =
    [C::ActiveCommands, C::Commands, C::Reads, C::Writes, C::MbRead, C::MbWritten, C::GuestLatency];
const NFS_REST: [Counter; 10] = [
    C::GuestLatencyRead,
    C::GuestLatencyWrite,
    C::FailedCommands,
    C::FailedReads,
    C::FailedWrites,
    C::NfsFailedMbRead,
    C::NfsFailedMbWritten,
    C::FailedReserves,
    C::Aborts,
    C::Resets,
];
const VDISK_TOTALS: [Counter; 3] = [C::VdiskFailedIos, C::VdiskTotalIos, C::VdiskLatency];
const OWN_DEMAND: [Counter; 3] = [C::Offered, C::Lost, C::Merged];
const OWN_VDISK: [Counter; 6] =
    [C::GuestWait, C::TotalLatency, C::MeanGuestQueued, C::P50, C::P95, C::P99];
const OWN_NFS: [Counter; 2] = [C::ArrayLatency, C::MeanQueued];
const OWN_DEVICE: [Counter; 6] = [
    C::ArrayLatency,
    C::ArrayLatencyRead,
    C::ArrayLatencyWrite,
    C::MeanDeviceQDepth,
    C::MeanActive,
    C::MeanQueued,
];

impl Kind {
    /// The groups of counters that `esxtop -b -a` prints for an object of this kind, in the order
    /// of real files [CAP-A, ELA], and after them kavg's own.
    fn groups(self) -> &'static [&'static [Counter]] {
        match self {
            Self::Adapter => &[
                &ADAPTER_DEPTH,
                &C::IO,
                &RESERVATION,
                &C::LATENCY,
                &PER_DIRECTION,
                &ERRORS,
                &SPLIT,
            ],
            Self::Path => &[&C::IO, &RESERVATION, &C::LATENCY, &PER_DIRECTION, &ERRORS, &SPLIT],
            Self::Device => &[
                &C::QUEUE,
                &C::IO,
                &RESERVATION,
                &C::LATENCY,
                &PER_DIRECTION,
                &ERRORS,
                &VAAI,
                &OWN_DEVICE,
            ],
            Self::World => {
                &[&SHARES, &C::QUEUE, &C::IO, &RESERVATION, &C::LATENCY, &PER_DIRECTION, &ERRORS]
            }
            Self::Partition => &[&C::IO, &C::LATENCY, &PER_DIRECTION],
            Self::NfsVolume => &[&NFS, &NFS_REST, &OWN_NFS],
            Self::VirtualDisk => {
                &[&VDISK_TOTALS, &C::IO, &C::VDISK_LATENCY, &OWN_DEMAND, &OWN_VDISK]
            }
            Self::Vm => &[&VDISK_TOTALS, &C::IO, &C::VDISK_LATENCY, &OWN_DEMAND],
        }
    }

    /// Every counter of an object of this kind, in file order.
    pub fn counters(self) -> impl Iterator<Item = Counter> {
        self.groups().iter().flat_map(|group| group.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, info) in Counter::TABLE.iter().enumerate() {
            assert_eq!(info.counter as usize, index, "{}", info.key);
        }
    }

    #[test]
    fn keys_and_batch_names_name_one_counter() {
        for info in Counter::TABLE {
            assert_eq!(Counter::from_key(info.key), Some(info.counter));
            assert_eq!(Counter::from_batch_name(info.batch_name), Some(info.counter));
        }
    }

    #[test]
    fn groups_have_as_many_counters_as_real_captures_show() {
        let in_esxtop = |kind: Kind| kind.counters().filter(|c| c.info().in_esxtop).count();
        assert_eq!(in_esxtop(Kind::Adapter), 1 + 31);
        assert_eq!(in_esxtop(Kind::Path), 31);
        assert_eq!(in_esxtop(Kind::Device), 52);
        assert_eq!(in_esxtop(Kind::World), 34);
        assert_eq!(in_esxtop(Kind::Partition), 17);
        assert_eq!(in_esxtop(Kind::NfsVolume), 17);
        assert_eq!(in_esxtop(Kind::VirtualDisk), 10);
    }
}
