//! Findings: how each shows, what helps, what does not, and what it is easily taken for.

use diagnose::Cause;

use super::Article;

/// How a cause shows, what helps, what not to do, what it is taken for.
type Words = (&'static str, [&'static str; 4]);

/// The words of each cause, by its key.
const CAUSES: &[Words] = &[
    (
        "silence",
        [
            "ACTV above 0 and CMDS/s 0, sample after sample; ABRTS/s when guests give up.",
            "Find the paths, the switch or the array that went: esxcli storage core path list.",
            "Do not change a queue: nothing comes back through it.",
            "A VM that just stopped: then ACTV is 0 as well.",
        ],
    ),
    (
        "path-down",
        [
            "One path's CMDS/s falls to 0 for good while others of the device carry more. A run of a scenario knows it before the \
        host does, which takes `dead_after`, and names what is outstanding on the path meanwhile.",
            "Look at the port, the cable and the zone of that path; see that the others are optimized.",
            "Do not raise depths: the device has the slots that it had.",
            "Round robin, where a path rests between its turns.",
        ],
    ),
    (
        "path-thrash",
        [
            "DAVG of tens of milliseconds and more at few commands a second, on every host of the volume; I/O may jump from path to path.",
            "Let all hosts use one controller for the volume: VMW_PSP_MRU, or VMW_PSP_FIXED with preferred paths to one.",
            "Do not raise depths: each time that the volume goes over, every command waits.",
            "A slow array: of hosts that each stay with a path of their own no counter tells the two apart.",
        ],
    ),
    (
        "aborts",
        [
            "ABRTS/s or RESETS/s above the threshold, after latency of seconds.",
            "Find what made commands take that long: paths, array, a device that does not answer.",
            "Do not raise the guest's timeout to hide it.",
            "A VM or host that was reset: the load breaks off at its usual latency.",
        ],
    ),
    (
        "failed-commands",
        [
            "FCMDS/s is a twentieth of CMDS/s or more, CONS/s left out.",
            "Read the sense data of the failed commands in vmkernel.log.",
            "Do not go by the latency of a device that refuses what it is sent.",
            "Reservation conflicts, which fail too and are sent again.",
        ],
    ),
    (
        "reservation-conflicts",
        [
            "CONS/s beside a KAVG that no queue explains: DQLEN has free slots.",
            "Let VMFS lock by ATS on every host, and keep clusters' shared disks off busy devices.",
            "Do not raise depths: the commands are refused, not queued.",
            "An IOPS limit, which holds commands back without conflicts.",
        ],
    ),
    (
        "array-qos",
        [
            "A flat rate while DAVG follows what is outstanding. Others on the array that are quick \
             speak for a policy; without them the rows do not tell.",
            "Look at the utilization of array and link first. Saturated, they need less load; else \
             raise or lift the limit on the array.",
            "Do not deepen queues: each command waits longer and none more is served.",
            "A slow array: there everybody is slow, and the rate moves.",
        ],
    ),
    (
        "array-slow",
        [
            "DAVG above its threshold with commands outstanding, KAVG next to nothing; on NFS \
        GAVG, for there is no other column.",
            "Look at the array's own latency for the volume, its ports and pools, and at the fabric.",
            "Do not raise depths: more commands at a slow array only wait there.",
            "Large commands, which take time to be moved.",
        ],
    ),
    (
        "command-window",
        [
            "DAVG, or GAVG of NFS, far above the latency that the array reports, and QUED 0: kavg names it in \
        runs of scenarios, which know it. A capture has no row that tells it from a slow array.",
            "Widen the window on the target, or give it more paths; NFS: more connections.",
            "Do not raise depths or DSNRO: more commands only wait for the same window.",
            "A slow array: then the array reports the latency itself.",
        ],
    ),
    (
        "host-link",
        [
            "DAVG far above the latency that the array reports, on all devices behind one adapter, while the adapter's \
        MB/s stay flat, or where one command is out at a time as long as its own size takes at the link's rate: kavg \
        names it in runs of scenarios, which know that rate. A capture has no row with it.",
            "Round robin over another port; a port or a wider link for whoever moves most bytes, or an IOPS limit.",
            "Do not raise depths or DSNRO: more commands only wait for the same link.",
            "A slow array: then the array reports the latency itself, and devices of other arrays are quick.",
        ],
    ),
    (
        "switch-link",
        [
            "DAVG far above the latency that the array reports, on the devices of all hosts whose adapters are on one \
        switch, while their MB/s together stay flat, or where one command is out at a time as long as its own size takes at \
        the link's rate: kavg names it in runs of scenarios, which know that rate.",
            "More or faster ISLs; ports of hosts and arrays that have most to do with each other on one switch; round robin over \
        another fabric; an IOPS limit for whoever moves most bytes.",
            "Do not raise depths or DSNRO: more commands only wait for the same link.",
            "A slow array: then the array reports the latency itself, and hosts on other switches have it too.",
        ],
    ),
    (
        "slow-way",
        [
            "DAVG far above the latency that the array reports, of few commands that are hit (lost segments) or of all of \
        a path that is not optimized: kavg names it in runs of scenarios, which know it. A capture has no row with it.",
            "Lost segments: DelayedAck off, and whatever loses them mended. Not optimized: the paths to the controller that \
        has the volume, or the other one as its owner.",
            "Do not raise depths: no queue is short.",
            "A slow array: its own work does not grow meanwhile.",
        ],
    ),
    (
        "noisy-neighbour",
        [
            "One VM holds most slots of a full device; another with few commands waits \
        many times its own service time.",
            "Limit the VM that fills the queue, or give it a device of its own.",
            "Do not limit the VM that waits.",
            "Several VMs alike on a full device: there is no culprit then, only DSNRO.",
        ],
    ),
    (
        "dsnro",
        [
            "DQLEN lower while several VMs are active than with one, ACTV at it, QUED above 0, KAVG \
        beside a low DAVG.",
            "Raise DSNRO of the device, on every host that uses it, up to its Device Max Queue Depth.",
            "Do not raise the HBA's parameter alone: while VMs compete, DSNRO overrides it.",
            "The HBA's depth, which stays when one VM is alone. A capture cut to one VM hides the \
        difference.",
        ],
    ),
    (
        "device-depth",
        [
            "ACTV at DQLEN, QUED above 0 and KAVG beside a low DAVG, with a DQLEN that does \
        not move.",
            "Raise the driver's depth, and the guest's where that is the next limit; or more devices.",
            "Do not raise DSNRO alone: it never lifts DQLEN above the driver's depth.",
            "DSNRO, where several VMs are active and DQLEN is its default. A capture without rows of VMs \
        does not tell which: esxcli storage core device list does, by Device Max Queue Depth and No of \
        outstanding IOs with competing worlds.",
        ],
    ),
    (
        "adaptive-throttling",
        [
            "DQLEN halves at once and climbs one by one.",
            "Relieve the array's port, which says that it is full; count what all hosts may send to it.",
            "Do not switch throttling off on one host: it is all or none.",
            "DSNRO, which moves between two values, and Storage I/O Control, which moves smoothly.",
        ],
    ),
    (
        "sioc",
        [
            "DQLEN takes many values while DAVG stands at the congestion threshold.",
            "Relieve the datastore; see that the threshold suits the array.",
            "Do not raise DSNRO: Storage I/O Control ignores it.",
            "Adaptive throttling, which halves.",
        ],
    ),
    (
        "adapter-queue",
        [
            "QAVG of a path or adapter above its threshold: that column covers the queues \
        there alone. Or all of AQLEN in use while devices behind it hold commands beside free slots.",
            "Spread devices over adapters, or raise the adapter's own limit where the driver has one.",
            "Do not raise the devices' depth: they share the adapter that is full.",
            "A device queue: its wait is in KAVG of the device, not in QAVG of the adapter.",
        ],
    ),
    (
        "iops-limit",
        [
            "A flat rate of one virtual disk and KAVG while the device has free slots.",
            "Raise or lift the limit of that disk or of its storage policy, if it is not meant.",
            "Do not limit its neighbours: the disk is held by itself.",
            "Array QoS: its delay is in DAVG.",
        ],
    ),
    (
        "host-wait",
        [
            "KAVG above its threshold (held_ms), of the device or of one VM on it, with slots free.",
            "Look for reservation conflicts, BUSY and retries in vmkernel.log, and for a host short of CPU.",
            "Do not raise queue depths: the device has slots to spare.",
            "A queue that is full in bursts, or an IOPS limit, whose rate is flat.",
        ],
    ),
    (
        "virtual-disk-cap",
        [
            "The commands of a virtual disk, by Little's law, stay at what its driver allows.",
            "More virtual disks on more PVSCSI adapters, or a deeper driver in the guest.",
            "Do not raise it while the device queue below is full: the wait only moves there.",
            "An application that sends just so many.",
        ],
    ),
    (
        "virtual-adapter-cap",
        [
            "The disks of one virtual adapter together stay at what its ring holds.",
            "Spread the disks over more adapters, or raise the ring's pages in the guest.",
            "Do not raise the depth of single disks: they share the ring.",
            "One disk at its own depth.",
        ],
    ),
    (
        "splitting",
        [
            "SPLTCMD/s on the adapter, or large commands on iSCSI whose DAVG grows with size.",
            "Let larger commands pass in one piece (ISCSI.MaxIoSizeKB), or send smaller ones.",
            "Do not raise depths for it: pieces share the slot of their command.",
            "A slow array.",
        ],
    ),
];

/// What else people call a cause.
const ALSO: &[(&str, &[&str])] = &[
    ("array-qos", &["QoS"]),
    ("sioc", &["Storage I/O Control"]),
    ("noisy-neighbour", &["noisy neighbor"]),
    ("path-down", &["path loss", "path failover", "dead path"]),
    ("reservation-conflicts", &["reservation conflict"]),
    ("dsnro", &["device queue full"]),
    ("device-depth", &["device queue full"]),
];

/// Every cause.
pub(crate) fn articles() -> Vec<Article> {
    let known = |cause: &Cause| {
        let (_, words) = CAUSES.iter().find(|(key, _)| *key == cause.key())?;
        Some(article(*cause, words))
    };
    Cause::ALL.iter().filter_map(known).collect()
}

fn article(cause: Cause, [shows, helps, not, taken]: &[&str; 4]) -> Article {
    let also = ALSO.iter().filter(|(key, _)| *key == cause.key()).flat_map(|(_, names)| *names);
    Article {
        names: [cause.key(), cause.title()].iter().chain(also).map(|&name| name.into()).collect(),
        title: format!("{} (finding {})", cause.title(), cause.key()),
        sections: vec![
            ("What it is", cause.meaning().into()),
            ("It shows", (*shows).into()),
            ("It helps to", (*helps).into()),
            ("Not", (*not).into()),
            ("Taken for", (*taken).into()),
        ],
    }
}
