//! Words of esxtop that are no counter: fields of its disk screens, groups of columns in a batch capture; and
//! how vCenter calls the same counters.

use super::Topic;

pub(super) const SCREENS: &[Topic] = &[
    Topic {
        names: &[
            "QSTATS",
            "IOSTATS",
            "RESVSTATS",
            "LATSTATS",
            "LATSTATS/cmd",
            "LATSTATS/rd",
            "LATSTATS/wr",
            "ERRSTATS",
            "ERRSTATS/s",
            "PAESTATS",
            "PAESTATS/s",
            "SPLTSTATS",
            "SPLTSTATS/s",
            "VAAISTATS",
            "VAAILAT",
            "fields",
            "esxtoprc",
        ],
        title: "Fields of esxtop's disk screens: QSTATS, IOSTATS, LATSTATS and others",
        sections: &[
            (
                "What it is",
                "A field is a group of columns that key f shows or hides on the screens d (adapters), u (devices) and \
                v (disks of VMs) [ELA].",
            ),
            (
                "QSTATS",
                "AQLEN on d; DQLEN, WQLEN, ACTV, QUED, %USD and LOAD on u. IOSTATS: CMDS/s, READS/s, WRITES/s, \
                MBREAD/s, MBWRTN/s. RESVSTATS: RESV/s and CONS/s.",
            ),
            (
                "LATSTATS",
                "DAVG, KAVG, GAVG and QAVG, of all commands (/cmd), of reads (/rd) and of writes (/wr); LAT/rd and \
                LAT/wr on v.",
            ),
            (
                "ERRSTATS",
                "FCMDS/s, FREAD/s, FWRITE/s, FMBRD/s, FMBWR/s, FRESV/s, ABRTS/s, RESETS/s. PAESTATS and SPLTSTATS: \
                copies below 4 GB and commands that are cut, on d. VAAI and VAAILAT: what the array does by itself, \
                on u.",
            ),
            (
                "In a capture",
                "esxtop -b has the fields that its configuration shows (W writes it, -c reads it, capitals are \
                shown), and all with -a; kavg capture command prints one with what the diagnosis reads [CAP-B].",
            ),
        ],
    },
    Topic {
        names: &[
            "NPATHS",
            "BLKSZ",
            "NUM",
            "NVDISK",
            "VDEVNAME",
            "VSCSINAME",
            "VMNAME",
            "GID",
            "DEVICE",
            "ADAPTR",
            "ADAPTER",
            "PATH/WORLD/PARTITION",
        ],
        title: "Columns of esxtop's disk screens that name or count",
        sections: &[
            (
                "What it is",
                "What a row is of, and how many are in it; no measurement, and no column of esxtop -b, which has \
                names in its header.",
            ),
            (
                "On d",
                "ADAPTR: the adapter; PATH: the path; NPATHS: how many paths the adapter has.",
            ),
            (
                "On u",
                "DEVICE: the device; PATH/WORLD/PARTITION: a part of it, which keys e, p and t show; NUM: how many \
                parts; SHARES: kavg explain 'shares'; BLKSZ: bytes of its block.",
            ),
            (
                "On v",
                "GID: the group of the VM; VMNAME: the VM; VDEVNAME, VSCSINAME in 5.x: the virtual disk, as scsi0:0; \
                NVDISK: how many virtual disks.",
            ),
            (
                "In kavg",
                "kavg esxtop shows names, and neither counts nor BLKSZ: kavg does not simulate a block size of \
                devices.",
            ),
        ],
    },
    Topic {
        names: &["LQLEN", "QLEN"],
        title: "LQLEN: the queue of a LUN in ESX 3.x",
        sections: &[
            (
                "What it is",
                "The depth of a LUN's queue, as esxtop of ESX 3.x called it; DQLEN has its place since [KB-AQ].",
            ),
            ("Read it", "As DQLEN (kavg explain dqlen); %USD and LOAD are made of it [S2]."),
            ("Where", "The disk screen of ESX 3.x; no capture of 4.0 and later has it."),
            ("In kavg", "kavg does not simulate ESX 3.x: it has DQLEN alone."),
        ],
    },
    Topic {
        names: &[
            "Physical Disk",
            "Physical Disk Adapter",
            "Physical Disk SCSI Device",
            "Physical Disk Path",
            "Physical Disk Per-Device-Per-World",
            "Physical Disk Partition",
            "Physical Disk NFS Volume",
            "Virtual Disk",
            "PDH-CSV",
            "esxtop -b",
            "batch mode",
        ],
        title: "Groups of columns in esxtop -b",
        sections: &[
            (
                "What it is",
                "A column is called \\\\HOST\\GROUP(INSTANCE)\\COUNTER; the first one is the time, and its heading \
                says the clock: (PDH-CSV 4.0) (UTC)(0), the number being minutes west of UTC [CAP-A].",
            ),
            (
                "Groups",
                "Physical Disk Adapter(vmhba0); Physical Disk(vmhba0), which alone has AQLEN, and Physical \
                Disk(vmhba0:PATH), which repeats paths; Physical Disk SCSI Device(DEVICE); Physical Disk Path(PATH); \
                Physical Disk Per-Device-Per-World(DEVICE-WORLD); Physical Disk Partition(DEVICE-NUMBER); Physical \
                Disk NFS Volume(NAME); Virtual Disk(VM) and Virtual Disk(VM:scsi0:0) [CAP-A, CAP-B].",
            ),
            (
                "Read it",
                "$ kavg capture info FILE\n$ kavg capture columns FILE\nThe paths, worlds and partitions behind a \
                device's columns are that device's. The first row has no rates [CAP-A].",
            ),
            ("In kavg", "kavg reads and writes this format: kavg help guides/read-a-capture."),
        ],
    },
    Topic {
        names: &["VSAN", "vSAN", "Enabled?"],
        title: "vSAN: disks of hosts as one datastore",
        sections: &[
            (
                "What it is",
                "A datastore made of the disks of several hosts; esxtop has a screen for it, x [ELA].",
            ),
            (
                "In a capture",
                "The group VSAN, of which the default fields have the one column Enabled? [CAP-A].",
            ),
            (
                "Read it",
                "With its own tools: no queue of a device is between a VM and it, so DQLEN, QUED and KAVG tell \
                nothing of it.",
            ),
            ("In kavg", "kavg does not simulate it, and leaves its columns out."),
        ],
    },
    Topic {
        names: &[
            "disk.deviceLatency",
            "disk.kernelLatency",
            "disk.queueLatency",
            "disk.totalLatency",
            "disk.maxQueueDepth",
            "disk.commandsAborted",
            "disk.busResets",
            "datastore.datastoreMaxQueueDepth",
            "datastoreMaxQueueDepth",
            "datastore.siocActiveTimePercentage",
            "siocActiveTimePercentage",
            "sizeNormalizedDatastoreLatency",
            "datastoreIops",
            "vCenter counters",
        ],
        title: "vCenter's counters of disks: which column of esxtop each is",
        sections: &[
            (
                "What it is",
                "disk.deviceLatency is DAVG, disk.kernelLatency KAVG, disk.queueLatency QAVG, disk.totalLatency GAVG, \
                disk.maxQueueDepth the depth of the device, disk.commandsAborted ABRTS, disk.busResets RESETS.",
            ),
            (
                "Of datastores",
                "datastore.datastoreMaxQueueDepth is a depth, datastore.siocActiveTimePercentage how much of the time \
                Storage I/O Control was at work; sizeNormalizedDatastoreLatency and datastoreIops are what that goes \
                by (from memory).",
            ),
            (
                "Mind",
                "Means of 20 s and of 5 minutes (from memory): a queue that is full for seconds does not show. There \
                is no ACTV and no QUED.",
            ),
            (
                "In kavg",
                "kavg does not simulate them and does not read them: record with esxtop -b (kavg capture command).",
            ),
        ],
    },
    Topic {
        names: &[
            "SCSI status",
            "status",
            "BUSY",
            "0x08",
            "0x18",
            "0x28",
            "RESERVATION CONFLICT",
            "CHECK CONDITION",
            "sense",
            "sense code",
            "miscompare",
            "0x0E",
            "5h/25h/00h",
            "4h/3Eh/01h",
            "4h/3Eh/03h",
            "4h/4Ch/00h",
            "0x5 0x25 0x0",
            "0x4 0x3e 0x1",
            "0x4 0x3e 0x3",
            "0x4 0x4c 0x0",
            "0x5 0x24 0x0",
        ],
        title: "SCSI status and sense: what an array answers instead of data",
        sections: &[
            (
                "What it is",
                "BUSY (0x08): the array has no room; the host holds the command for Disk.DelayOnBusy. TASK SET FULL \
                (0x28): its queue is full; adaptive throttling counts both. RESERVATION CONFLICT (0x18): another host \
                has the device [KB-QF, LAMW].",
            ),
            (
                "Sense",
                "CHECK CONDITION has a sense code beside it. 5h/25h/00h, 4h/3Eh/01h, 4h/3Eh/03h and 4h/4Ch/00h say \
                that the device is gone for good (PDL) [KB-PDL]. 5h/24h/00h: the command is refused, as a read that \
                is larger than the array takes [DMIO]. 0Eh, miscompare: a lock by ATS was another host's (from \
                memory).",
            ),
            (
                "It shows",
                "CONS/s for conflicts and FCMDS/s for errors; of BUSY and TASK SET FULL esxtop shows KAVG alone.",
            ),
            ("Read it", "vmkernel.log has status and sense of each command that failed."),
            (
                "In kavg",
                "queue_limit and full of an array, reservations and events that lose a device: BUSY, TASK SET FULL, \
                conflicts and PDL. Other sense codes kavg does not simulate.",
            ),
        ],
    },
    Topic {
        names: &[
            "PSA",
            "NMP",
            "HPP",
            "SATP",
            "MRU",
            "useANO",
            "ANO",
            "Multipath Plugin",
            "multipath",
            "multipathing",
        ],
        title: "PSA: who finds the path of a command",
        sections: &[
            (
                "What it is",
                "The pluggable storage architecture: NMP, with a rule for each array (SATP) and a path policy (PSP), \
                or HPP, which has local devices on ESXi 8 [LIST8].",
            ),
            (
                "With queues",
                "Below the device's queue: a path has its own, and QAVG of a path row is of that alone [CAP-A]. DQLEN \
                is not multiplied by paths: a ruling, as no source shows ACTV above DQLEN.",
            ),
            (
                "Read it",
                "$ esxcli storage nmp device list\n$ esxcli storage hpp device list\nuseANO=1, or Use Active \
                Unoptimized Paths: round robin takes paths to the other controller as well.",
            ),
            (
                "In kavg",
                "Policies of NMP (kavg explain 'path policy'), controllers and dead paths of arrays. HPP's own \
                policies and useANO kavg does not simulate.",
            ),
        ],
    },
    Topic {
        names: &["RDM", "raw device mapping"],
        title: "RDM: a LUN that a VM has for itself",
        sections: &[
            ("What it is", "A virtual disk that is a whole device; VMFS has only a pointer to it."),
            (
                "With queues",
                "It lands on the same device queue as any other: with one VM the device's depth is the limit, with \
                two, as in a cluster, DSNRO [S0].",
            ),
            ("Read it", "$ vmkfstools -q DISK.vmdk"),
            (
                "In kavg",
                "A datastore with one VM's disk is as much: kavg does not simulate more of it, as clusters' persistent \
                reservations.",
            ),
        ],
    },
];
