//! What people ask about that is no setting, counter or finding of its own: how things are
//! measured, and what a whole feature has to do with queues.

use ::counters::SECOND;
use knobs::{Advanced, GuestOs};

use super::{Article, Topic, screens::SCREENS};

/// Every topic.
pub(crate) fn articles() -> Vec<Article> {
    let article = |topic: &Topic| Article {
        names: topic.names.iter().map(|name| (*name).into()).collect(),
        title: topic.title.into(),
        sections: topic.sections.iter().map(|(head, text)| (*head, (*text).into())).collect(),
    };
    [lost_paths()].into_iter().chain(TOPICS.iter().chain(SCREENS).map(article)).collect()
}

fn lost_paths() -> Article {
    let timer = Advanced::ApdTimeout.info();
    let names = [
        "APD",
        "PDL",
        "all paths down",
        "permanent device loss",
        "TimeOutValue",
        "disk timeout",
        "guest timeout",
    ];
    Article {
        names: names.map(Into::into).to_vec(),
        title: "APD and PDL: all paths down, permanent device loss".into(),
        sections: vec![
            (
                "What it is",
                "APD: the last path of a device went and nobody knows for how long. PDL: the array \
                says, by sense codes on all paths, that the device is gone [DOC-APD, KB-PDL]."
                    .into(),
            ),
            (
                "It shows",
                "APD as the finding silence: ACTV above 0 and nothing that completes, then ABRTS/s \
                as guests give up. The message is in vmkernel.log."
                    .into(),
            ),
            (
                "When it ends",
                format!(
                    "When a path comes back the I/O goes on. After Misc.APDTimeout ({} s, {} to {}; \
                    Misc.APDHandlingEnable 1, both since 5.1) the host fails its own I/O and goes \
                    on trying that of VMs [DOC-APD]. A guest gives a command up by itself: Windows \
                    after {} s and Linux after {} s with VMware Tools, {} s and {} s without [KB-TO]; \
                    it aborts the command, then resets the disk. With a PDL all I/O fails at once.",
                    timer.default,
                    timer.min,
                    timer.max,
                    seconds(GuestOs::Windows, true),
                    seconds(GuestOs::Linux, true),
                    seconds(GuestOs::Windows, false),
                    seconds(GuestOs::Linux, false),
                ),
            ),
            (
                "In kavg",
                "All of it: events of a scenario take paths away, make the array of a datastore \
                silent, or lose it for good; timeout of a VM is that of its guest, timeout of an \
                adapter that of its driver. The scenarios outage-apd, outage-pdl and outage-silent \
                show what each looks like."
                    .into(),
            ),
            ("Leave alone", "Queue depths: nothing comes back through any of them.".into()),
        ],
    }
}

fn seconds(guest: GuestOs, has_tools: bool) -> u64 {
    guest.disk_timeout_ns(has_tools) / SECOND
}

const TOPICS: &[Topic] = &[
    Topic {
        names: &["VAAI", "hardware acceleration", "XCOPY", "WRITE SAME"],
        title: "VAAI: what the array does for the host",
        sections: &[
            (
                "What it is",
                "Commands that hand work to the array: locks (ATS), copies (XCOPY), zeroes (WRITE \
                SAME).",
            ),
            (
                "With queues",
                "It makes none deeper and none shorter: a full device queue is as full with VAAI. \
                ATS only ends the reservation conflicts that metadata causes [S3].",
            ),
            (
                "In kavg",
                "Locks (kavg explain VMFS3.HardwareAcceleratedLocking), and copies of disks that are moved (xcopy of an \
                array, copy of an event; kavg explain DataMover.HardwareAcceleratedMove). Zeroes are not simulated.",
            ),
            ("Read it", "$ esxcli storage core device vaai status get -d DEVICE"),
        ],
    },
    Topic {
        names: &["guest latency", "latency in the guest", "application latency"],
        title: "Guest latency: what the application sees and esxtop does not",
        sections: &[
            (
                "What it is",
                "The time from the application's call to its answer: the wait in the guest's own \
                queues, in front of the virtual disk, and GAVG below them [S0].",
            ),
            (
                "Where",
                "In the guest alone: perfmon's Avg. Disk sec/Transfer, await of iostat. LAT/rd and \
                LAT/wr (screen v) begin behind the guest's queues.",
            ),
            (
                "Read it",
                "Well above GAVG, commands wait in the guest: for the depth of its virtual disk or \
                adapter (kavg explain pvscsi). Near GAVG, look at KAVG and DAVG.",
            ),
            (
                "Mind",
                "A device queue that becomes deeper lowers KAVG; the guest gains only what it does \
                not lose to the next limit [S0].",
            ),
        ],
    },
    Topic {
        names: &[
            "iSCSI",
            "transport",
            "command window",
            "MaxCmds",
            "DelayedAck",
            "delayed ack",
            "port binding",
            "FCoE",
            "R2T",
            "InitialR2T",
            "MaxOutstandingR2T",
            "ImmediateData",
            "FirstBurst",
            "MaxBurst",
            "MaxRecvDataSegment",
            "CmdSN",
            "MaxCmdSN",
        ],
        title: "Transport: what is between host and array",
        sections: &[
            (
                "What it is",
                "Round trips of a write (by FC and FCoE two; by iSCSI one where its data go along, and one for each R2T by which \
                the target asks for more), the links of ports, and of iSCSI a command window: so many commands of all devices \
                behind a target port are under way, MaxCmds (128) at most [ELA].",
            ),
            (
                "It shows",
                "In DAVG, and not in the latency that the array reports. What waits for a window is \
                in no queue that esxtop has: QUED is 0.",
            ),
            (
                "Delayed ACK",
                "Costs nothing without loss [S4]. Where an array sends lost segments again one at a \
                time, each waits for a timer of 100 to 500 ms [KB-ACK].",
            ),
            (
                "In kavg",
                "Keys of an adapter in the scenario file: link, iscsi; of an NFS datastore: \
                connections, rpc_slots (kavg help guides/transport).",
            ),
            (
                "Read it",
                "$ esxcli iscsi adapter param get -A ADAPTER\n$ esxcli iscsi networkportal list",
            ),
        ],
    },
    Topic {
        names: &["Little's law", "Littles law", "Little"],
        title: "Little's law: outstanding = rate x latency",
        sections: &[
            (
                "What it is",
                "Over any interval the mean number of commands inside a layer is their rate times \
                their mean time in it, whatever the layer does.",
            ),
            (
                "Read it",
                "CMDS/s x DAVG / 1,000 is the mean ACTV of a device; with KAVG in place of DAVG the \
                mean QUED; with GAVG all that its VMs have outstanding.",
            ),
            (
                "Why",
                "ACTV and QUED are states of one instant and miss bursts; rate and latency are of \
                the whole interval [CAP-A].",
            ),
            (
                "Mind",
                "A mean hides the peaks: a mean below DQLEN does not say that the queue was never \
                full.",
            ),
        ],
    },
    Topic {
        names: &["Execution Throttle"],
        title: "Execution Throttle: an old limit in the firmware of QLogic's HBAs",
        sections: &[
            (
                "What it is",
                "A setting of the adapter's BIOS, 16 by default, which on old boards was a gate of its \
                own behind the depth that the driver gives a device [MISC].",
            ),
            ("Leave alone", "Newer drivers ignore it [DELL]."),
            ("Set it", "Set the depth that the driver gives a device in its place."),
            ("In kavg", "It is not simulated: no counter of esxtop shows it."),
        ],
    },
    Topic {
        names: &["Storage vMotion", "svMotion", "data mover"],
        title: "Storage vMotion: what the copy of a disk does to queues",
        sections: &[
            (
                "What it is",
                "The data mover of the VMkernel copies a disk once from beginning to end, 64 KiB and 32 I/Os at a time [DM]; what \
                the guest writes to what is copied goes to both datastores, and ends when both have it [SVM].",
            ),
            (
                "It shows",
                "Reads where the disk is and writes where it is to be, of a world that is no VM's; with the guest it competes, so \
                DSNRO is in force on both devices meanwhile. The guest's writes take as long as in the slower place, more and \
                more of them. Where the array copies by itself (XCOPY) there are few commands, CLONE_WR counts them, and no \
                byte crosses the fabric.",
            ),
            (
                "In kavg",
                "copy of an event that moves a disk: the scenarios storage-vmotion and xcopy; kavg balance --apply writes such \
                events.",
            ),
            (
                "Leave alone",
                "Depths and shares, for a copy alone: it is over by itself. Move by night what is busy by day.",
            ),
        ],
    },
    Topic {
        names: &["Storage DRS", "SDRS", "balance"],
        title: "Storage DRS: moving disks to where latency is lower",
        sections: &[
            (
                "What it is",
                "A datastore whose 90th percentile of latency is above a threshold (15 ms) gives disks to others of its cluster, \
                while a metric of their fairness is low enough [SDRS].",
            ),
            (
                "With queues",
                "It sees the latency of datastores that VMs observe, whatever queue that comes from [OBS]: a full device queue moves \
                disks as a slow array does, and so may an IOPS limit for which a VM waits. Look at KAVG first.",
            ),
            (
                "In kavg",
                "kavg balance SCENARIO: what it would move, and what that gives, each move simulated; with --apply as events, \
                with --copy as copies. Space is left out.",
            ),
            (
                "Leave alone",
                "Datastores of one pool of disks: a move between them takes its load along.",
            ),
        ],
    },
    Topic {
        names: &[
            "vscsiStats",
            "worldGroupID",
            "ioLength",
            "seekDistance",
            "outstandingIOs",
            "interarrival",
        ],
        title: "vscsiStats: histograms of a virtual disk",
        sections: &[
            (
                "What it is",
                "A tool of the host that counts the commands of each virtual disk: sizes, distances, \
                latency, how many are outstanding and how long between them [VSCSI].",
            ),
            (
                "Set it",
                "$ vscsiStats -l\n$ vscsiStats -s -w WORLDGROUP\n$ vscsiStats -p all -c -w WORLDGROUP\n\
                $ vscsiStats -x\nIt stops by itself after 30 minutes [ELA].",
            ),
            (
                "In kavg",
                "A daemon at work counts the same: kavg vscsiStats, with these options. Reads and writes \
                are counted; a distance is that from the last block of one to the first of the next, so a \
                sequential stream is at 1. A run in virtual time does not.",
            ),
            (
                "Read it",
                "$ kavg capture histograms FILE\nIt shows what esxtop's means hide: bursts, and two \
                sizes in one mean.",
            ),
            (
                "Mind",
                "What is outstanding is counted apart only up to the depth that Windows' PVSCSI \
                starts with: what is deeper falls into the last bin.",
            ),
        ],
    },
    Topic {
        names: &["FlashArray", "Pure"],
        title: "FlashArray: an array without a queue limit",
        sections: &[
            (
                "What it is",
                "Pure Storage's array. No volume, port or target of it has a queue limit and it never answers BUSY: it queues \
                inside, so adaptive queue depth has nothing to go by [S0].",
            ),
            (
                "Read it",
                "Its own latency is below DAVG by one round trip, of reads and of writes alike [S0].",
            ),
            (
                "In kavg",
                "servers of an array with write_service and per_kib; a policy with max and bandwidth is a limit of a volume. The \
                scenarios flash-array and s0-flasharray.",
            ),
            (
                "Leave alone",
                "Adaptive queue depth, which has nothing to go by here. Depths, unless QUED stands above 0 while DAVG is low [S0].",
            ),
        ],
    },
    Topic {
        names: &["SolidFire", "Element", "burst credit", "min IOPS"],
        title: "SolidFire QoS: min, max, burst and what a size costs",
        sections: &[
            (
                "What it is",
                "A policy of a volume in units of 4 KiB: max is what it gets for good, burst what it gets while it has credit, which it \
                earns below max, and min what it keeps when the cluster has too little for all. A larger command costs more \
                units, fewer than its size says [SFQ].",
            ),
            (
                "With queues",
                "A command that waits for its volume's policy stays outstanding at the host: it fills DQLEN there, and VMs behind the \
                same protocol endpoint wait for one that is held back, with KAVG [S4].",
            ),
            (
                "In kavg",
                "array.NAME.qos.NAME with min, max, burst and cost = \"solidfire\", qos_capacity of the array for a shortage: the \
                scenarios s4-solidfire and qos-min.",
            ),
            (
                "Leave alone",
                "Depths of the host that is held back: a deeper queue there only waits at the array.",
            ),
        ],
    },
    Topic {
        names: &["spindles", "disks", "RAID", "seek"],
        title: "Spindles: what distance, size and RAID cost",
        sections: &[
            (
                "What it is",
                "A disk takes a way, half a turn and the transfer for a command: so IOPS fall with the span that the commands lie in and \
                with their size, and one stream from beginning to end is quick while two are not. A write costs several commands \
                of disks: 2 of RAID 1 and 10, 4 of RAID 5, 6 of RAID 6.",
            ),
            (
                "With queues",
                "A deeper queue gives an elevator more to choose from and each command a longer wait. More virtual disks side by side \
                are a longer way between them [PARDA].",
            ),
            (
                "In kavg",
                "spindles of an array, with its disk, raid and an elevator: the scenarios spindles and parda-span.",
            ),
            (
                "Leave alone",
                "Depths far above what the disks can choose from: throughput hardly rises, and each command waits longer.",
            ),
        ],
    },
    Topic {
        names: &["write cache", "read cache", "cache"],
        title: "Caches of an array: writes until it is full, reads that hit",
        sections: &[
            (
                "What it is",
                "A write ends when the cache has it. What is written faster than spindles take it fills the cache, and then writes take as \
                long as spindles do. A read that hits needs no spindle.",
            ),
            (
                "Read it",
                "DAVG of writes far below that of reads, until it jumps under a long load. A mean of reads between two values is the hit \
                ratio: DAVG/rd = hits x one + misses x the other.",
            ),
            (
                "In kavg",
                "write_cache, write_cache_size and read_cache of an array: the scenarios write-cache and tails. In a host's flash: kavg \
                explain 'flash cache'.",
            ),
            (
                "Leave alone",
                "Depths, for writes into a cache that is full: they wait for the spindles, however many are sent.",
            ),
        ],
    },
    Topic {
        names: &["fan-in", "target port", "port queue"],
        title: "Fan-in: the queue of a target port that many hosts fill",
        sections: &[
            (
                "What it is",
                "A port of an array has room for so many commands of all hosts and volumes. With more it answers TASK SET FULL or \
                BUSY, and hosts send again.",
            ),
            (
                "Read it",
                "Hosts x volumes x depth against the port's room, by paths. Refused commands are in no latency of esxtop's but in KAVG \
                or lower throughput.",
            ),
            ("In kavg", "ports, queue_limit and lun_queue_limit of an array: the scenario fan-in."),
            (
                "Leave alone",
                "DSNRO and depths upwards: with more in the port's queue more is refused.",
            ),
        ],
    },
    Topic {
        names: &["vmhba", "HBA", "host adapter", "host bus adapter"],
        title: "vmhba: an adapter of the host, by which its commands leave",
        sections: &[
            (
                "What it is",
                "An HBA or a storage controller, or software iSCSI: each has a number behind the name, which tells \
                nothing of its kind. Its driver does: kavg explain DRIVER.",
            ),
            (
                "With queues",
                "The driver gives each device so many commands (Device Max Queue Depth, DQLEN), and the adapter takes so \
                many of all of them together (AQLEN): what is beyond waits, and QAVG of the adapter's row has that wait \
                alone [CAP-A].",
            ),
            (
                "Read it",
                "$ esxcli storage core adapter list\nIt shows the driver; AQLEN is on screen d of esxtop.",
            ),
            (
                "In kavg",
                "An adapter of a host with its driver, depth, link and iSCSI; the finding is adapter-queue.",
            ),
            (
                "Leave alone",
                "The depths of its devices, where the adapter is full: they share what it takes.",
            ),
        ],
    },
    Topic {
        names: &["ALUA", "controllers", "failover", "takeover", "LUN ownership"],
        title: "ALUA: two controllers, one of which owns a volume",
        sections: &[
            (
                "What it is",
                "Paths to the owner are active optimized, those to the other one non-optimized: these are used when none of \
                those is up [ELA].",
            ),
            (
                "Mind",
                "With one owner of all volumes half of the array works. A dead path is found after 30 to 60 s [DOC-APD]: \
                till then what is sent by it has no answer.",
            ),
            (
                "In kavg",
                "controllers of an array, dead_after there and of an adapter (30s unless the file says): the scenarios dead-path, \
                two-controllers and path-thrash (kavg explain path-thrash).",
            ),
            (
                "Leave alone",
                "Depths: what a path that is not optimized costs is in DAVG, whatever the queues of the host.",
            ),
        ],
    },
    Topic {
        names: &["tails", "tail latency", "percentiles", "spread"],
        title: "Tails: what the slowest commands see, which no mean tells",
        sections: &[
            (
                "What it is",
                "The same mean may hide a P99 of twice or of ten times of it. Where commands wait decides: with a queue before each \
                server P95 is three times the mean, with one queue before all it is less, and a constant part shortens it.",
            ),
            (
                "It shows",
                "Not in esxtop, which has means: in vscsiStats' histograms, and in P50, P95 and P99 of a kavg run.",
            ),
            (
                "In kavg",
                "queue, overhead and spread of an array: \"lognormal\" with its variation, or percentiles as they were published, \
                spread = { p50 = \"49us\", p95 = \"68us\", p99 = \"177us\" }, beside a mean. The scenarios tails, percentiles, \
                measured-disk.",
            ),
            (
                "Mind",
                "A percentile of a device is of one depth: a deeper queue moves all of them. And a curve knows no order: \
                beside a crowd a victim has the tail of all.",
            ),
        ],
    },
    Topic {
        names: &["tier", "tiering", "snapshot", "rebuild", "background load"],
        title: "Tiers, snapshots, rebuilds: what an array does with itself",
        sections: &[
            (
                "It shows",
                "In DAVG alone: latency rises or has two levels with as many commands, and no queue of the host is the cause.",
            ),
            (
                "Snapshots of VMs",
                "Grow under locks of the file system, which are reservations where ATS is not there [S3]: CONS/s.",
            ),
            (
                "In kavg",
                "tier and background of an array (array-tiers), snapshot_growth of a datastore's metadata.",
            ),
            ("Leave alone", "Depths: they only move to the host what waits in the array."),
        ],
    },
    Topic {
        names: &["flash cache", "Flash Read Cache", "vFRC", "FlashSoft"],
        title: "Flash cache: reads that do not leave the host",
        sections: &[
            (
                "What it is",
                "A read cache in the flash of the host; writes go to the array as well. vMotion takes it along, power-off \
                discards it [VFRC].",
            ),
            (
                "With queues",
                "What it holds takes no slot of the device behind. Until it is warm all goes there.",
            ),
            ("In kavg", "flash_cache of a disk: the scenario flash-cache."),
            ("Mind", "A mean over hits and misses hides both: DAVG is of what went to the array."),
        ],
    },
    Topic {
        names: &["mq-deadline", "plug", "elevator", "block layer", "nr_requests"],
        title: "The block layer of a Linux guest: merging before the virtual disk",
        sections: &[
            (
                "What it is",
                "What is adjacent to a request that waits becomes one command with it: in the plug of a system call, or in the \
                scheduler, which is mq-deadline where the hardware has one queue [BLK], as PVSCSI has [PVL].",
            ),
            (
                "It shows",
                "CMDS/s below the application's I/Os, and larger ones. No counter of esxtop has what was merged.",
            ),
            (
                "In kavg",
                "block of a disk, also for iodepth_batch of fio; MERGED/s: the scenario guest-block-layer.",
            ),
            (
                "Mind",
                "A test inside of a guest counts its own I/Os: beside CMDS/s it seems to do more than the host sees.",
            ),
        ],
    },
    Topic {
        names: &["nconnect", "NFS connections", "RPC slots"],
        title: "nConnect: several connections of an NFS mount",
        sections: &[
            (
                "What it is",
                "A mount has one TCP connection, several from 8.0 U1 on: storage nfs add -c [NCONNECT]. On ONTAP each has 128 \
                requests under way [NETAPP-NFS].",
            ),
            ("It shows", "In GAVG alone: what waits for a slot is in no queue that esxtop has."),
            ("In kavg", "connections and rpc_slots of a datastore: the scenario nfs-slots."),
            ("Leave alone", "Depths of adapters: an NFS mount has none of them."),
        ],
    },
];
