//! The groups of `esxtop -b` and the counters of those that are not about disks [CAP-A, CAP-B,
//! NMON] (reference: `esxtop-counters.json`).
//!
//! The lowest floor, beside the table of disk counters: it says which names in a header are
//! esxtop's own. Whatever else stands there is a name that somebody gave.

use counters::Counter;

/// What the parentheses behind a group hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instance {
    /// Nothing, or a number or word of esxtop's: processor, NUMA node, interrupt.
    Hardware,
    /// `<gid>:<group>`.
    Group,
    /// `<gid>:<group>:<world>:<name>`.
    World,
    /// `<switch>:<port>[:<world>]:<name>`.
    Port,
    /// The name of a disk object, as [`crate::header`] takes it apart.
    Disk,
}

/// A group: its name, what its instances are and its counters; those of disk groups are in
/// [`Counter::TABLE`].
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) instance: Instance,
    counters: &'static [&'static str],
}

impl Group {
    /// The group of that name; `None` when esxtop has none as far as is known.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        GROUPS.iter().find(|group| group.name == name)
    }

    /// Whether esxtop has that counter in this group.
    pub(crate) fn has(&self, counter: &str) -> bool {
        match self.instance {
            Instance::Disk => Counter::from_batch_name(counter).is_some(),
            _ => self.counters.contains(&counter),
        }
    }
}

const fn group(name: &'static str, instance: Instance, counters: &'static [&'static str]) -> Group {
    Group { name, instance, counters }
}

const GROUPS: &[Group] = &[
    group("Memory", Instance::Hardware, MEMORY),
    group("Physical Cpu Load", Instance::Hardware, PHYSICAL_CPU_LOAD),
    group("Physical Cpu", Instance::Hardware, PHYSICAL_CPU),
    group("Power", Instance::Hardware, POWER),
    group("VSAN", Instance::Hardware, VSAN),
    group("Group Cpu", Instance::Group, GROUP_CPU),
    group("Vcpu", Instance::World, VCPU),
    group("Group Memory", Instance::Group, GROUP_MEMORY),
    group("Physical Disk", Instance::Disk, &[]),
    group("Physical Disk Adapter", Instance::Disk, &[]),
    group("Physical Disk SCSI Device", Instance::Disk, &[]),
    group("Physical Disk Path", Instance::Disk, &[]),
    group("Physical Disk Per-Device-Per-World", Instance::Disk, &[]),
    group("Physical Disk Partition", Instance::Disk, &[]),
    group("Virtual Disk", Instance::Disk, &[]),
    group("Network Port", Instance::Port, NETWORK_PORT),
    group("Interrupt Cookie", Instance::Hardware, INTERRUPT_COOKIE),
    group("Interrupt Vector", Instance::Hardware, INTERRUPT_COOKIE),
    group("PCPU Power State", Instance::Hardware, PCPU_POWER_STATE),
    group("Numa Node", Instance::Hardware, NUMA_NODE),
    group("Physical Disk NFS Volume", Instance::Disk, &[]),
    group("VSAN(Owner)", Instance::Hardware, VSAN_OWNER),
];

const MEMORY: &[&str] = &[
    "Memory Overcommit (1 Minute Avg)",
    "Memory Overcommit (5 Minute Avg)",
    "Memory Overcommit (15 Minute Avg)",
    "Machine MBytes",
    "Kernel MBytes",
    "NonKernel MBytes",
    "Free MBytes",
    "Kernel Managed MBytes",
    "Kernel MinFree MBytes",
    "Kernel Reserved MBytes",
    "Kernel Unreserved MBytes",
    "Kernel State",
    "PShare Shared MBytes",
    "PShare Common MBytes",
    "PShare Savings MBytes",
    "Swap Used MBytes",
    "Swap Target MBytes",
    "Swap MBytes Read/sec",
    "Swap MBytes Write/sec",
    "Total Compressed MBytes",
    "Total Saved By Compression MBytes",
    "Memctl Current MBytes",
    "Memctl Target MBytes",
    "Memctl Max MBytes",
];

const PHYSICAL_CPU_LOAD: &[&str] =
    &["Cpu Load (1 Minute Avg)", "Cpu Load (5 Minute Avg)", "Cpu Load (15 Minute Avg)"];

const PHYSICAL_CPU: &[&str] = &["% Processor Time", "% Util Time", "% Core Util Time"];

const POWER: &[&str] = &["Power Usage Now Watts", "Power Usage Cap Watts", "P-State MHZ"];

const VSAN: &[&str] = &["Enabled?"];

const GROUP_CPU: &[&str] = &[
    "Members",
    "% Used",
    "% Run",
    "% System",
    "% Wait",
    "% Ready",
    "% Idle",
    "% Overlap",
    "% CoStop",
    "% Max Limited",
    "% Swap Wait",
    "Switches/sec",
    "Migrates/sec",
    "Quantum Expires/sec",
    "Wakeups/sec",
    "Alloc Min",
    "Alloc Max",
    "Alloc Shares",
    "Alloc Min Limited",
    "% CPU Latency",
    "% Memory Latency",
    "% Demand",
    "Effective Min (MHz)",
    "Timers/sec",
    "Power Usage Watts",
    "% VmWait",
];

const VCPU: &[&str] = &[
    "% Used",
    "% Run",
    "% System",
    "% Wait",
    "% VmWait",
    "% Ready",
    "% Idle",
    "% Overlap",
    "% CoStop",
    "% Max Limited",
    "% Swap Wait",
    "Switches/sec",
    "Migrates/sec",
    "Quantum Expires/sec",
    "Wakeups/sec",
    "Alloc Min",
    "Alloc Max",
    "Alloc Shares",
    "Alloc Min Limited",
    "% CPU Latency",
    "% Memory Latency",
    "% Demand",
    "Effective Min (MHz)",
    "Physical Cpu",
];

const GROUP_MEMORY: &[&str] = &[
    "Members",
    "Alloc Min",
    "Alloc Max",
    "Alloc Shares",
    "Alloc Min Limited",
    "Numa Home Nodes",
    "Numa Rebalance Count Delta",
    "Numa Remote Memory MBytes",
    "Numa Local Memory MBytes",
    "Numa % Local",
    "Memory Size MBytes",
    "Memory Granted Size MBytes",
    "Memory Consumed Size MBytes",
    "Target Size MBytes",
    "Touched MBytes",
    "Touched Write MBytes",
    "% Active Estimate",
    "% Active Slow Estimate",
    "% Active Fast Estimate",
    "% Active Next Estimate",
    "Memctl?",
    "Memctl MBytes",
    "Memctl Target MBytes",
    "Memctl Max MBytes",
    "Swapped MBytes",
    "Swap Target MBytes",
    "Swap Read MBytes/sec",
    "Swap Written MBytes/sec",
    "Llswap Read MBytes/sec",
    "Llswap Written MBytes/sec",
    "Checkpoint Read MBytes",
    "Checkpoint Target MBytes",
    "Zero MBytes",
    "Shared MBytes",
    "Shared Saved MBytes",
    "Copy On Write Hint MBytes",
    "Overhead UW MBytes",
    "Overhead MBytes",
    "Overhead Max MBytes",
    "Min Commit Target MBytes",
    "Commit Target MBytes",
    "Commit Charged MBytes",
    "Commit Pages Per Share",
    "Compressed Memory MBytes",
    "Used Compressed Memory MBytes",
    "Compression MBytes/sec",
    "Decompression MBytes/sec",
];

const NETWORK_PORT: &[&str] = &[
    "Link Up?",
    "Link Speed (Mb/s)",
    "Full Duplex?",
    "Packets Transmitted/sec",
    "MBits Transmitted/sec",
    "Average Packet Size  Transmitted (Bytes)",
    "Packets Received/sec",
    "MBits Received/sec",
    "Average Packet Size  Received (Bytes)",
    "% Outbound Packets Dropped",
    "% Received Packets Dropped",
    "Actions Posted/sec",
    "Multicast Packets Transmitted/sec",
    "Multicast Packets Received/sec",
    "Broadcast Packets Transmitted/sec",
    "Broadcast Packets Received/sec",
];

const INTERRUPT_COOKIE: &[&str] = &["Interrupts/second", "Processing Time MicroSec/Interrupt"];

const PCPU_POWER_STATE: &[&str] = &[
    "%C-State C0",
    "%C-State C1",
    "%C-State C2",
    "%C-State C3",
    "%P-State P0",
    "%P-State P1",
    "%P-State P2",
    "%P-State P3",
    "%P-State P4",
    "%P-State P5",
    "%P-State P6",
    "%P-State P7",
    "%P-State P8",
    "%P-State P9",
    "%P-State P10",
    "%P-State P11",
    "%P-State P12",
    "%P-State P13",
    "%P-State P14",
    "%P-State P15",
    "%T-State T0",
    "%T-State T1",
    "%T-State T2",
    "%T-State T3",
    "%T-State T4",
    "%T-State T5",
    "%T-State T6",
    "%T-State T7",
];

const NUMA_NODE: &[&str] =
    &["Total MBytes", "Free MBytes", "% Processor Time", "% Util Time", "% Core Util Time"];

const VSAN_OWNER: &[&str] = &["Avg Read Latency in ms", "Avg Write Latency in ms"];
