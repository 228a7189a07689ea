//! What ESXi has and kavg neither takes nor simulates: advanced options, settings of the VMkernel at boot,
//! drivers and their other parameters. They are here to be explained.
//!
//! A table of facts from the reference (`esxi-host-stack.md` sections 1.2, 1.4, 1.5, 2.5 and 3;
//! `array-and-control.md` sections 7.3, 7.4 and 7.5).

/// How an option is read and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `esxcli system settings advanced`.
    Advanced,
    /// `esxcli system settings kernel`: it acts from the next boot on.
    Kernel,
}

/// An option that kavg does not simulate.
#[derive(Clone, Copy, Debug)]
pub struct OtherOption {
    /// Its name, as vCenter has it: `Disk.SharesHigh`.
    pub name: &'static str,
    /// Where it is set.
    pub place: Place,
    /// Its default.
    pub default: &'static str,
    /// What it takes; empty where no source says that.
    pub range: &'static str,
    /// What it does, with its source.
    pub meaning: &'static str,
}

/// A driver that kavg does not simulate, or a parameter that does not set a device's depth.
#[derive(Clone, Copy, Debug)]
pub struct OtherDriver {
    /// The names of its module.
    pub modules: &'static [&'static str],
    /// What it drives.
    pub what: &'static str,
    /// The parameter that is meant, where there is one.
    pub parameter: Option<&'static str>,
    /// What is known of depths, with its source.
    pub depths: &'static str,
}

const fn option(
    name: &'static str,
    default: &'static str,
    range: &'static str,
    meaning: &'static str,
) -> OtherOption {
    OtherOption { name, place: Place::Advanced, default, range, meaning }
}

const fn kernel(
    name: &'static str,
    default: &'static str,
    range: &'static str,
    meaning: &'static str,
) -> OtherOption {
    OtherOption { name, place: Place::Kernel, default, range, meaning }
}

impl OtherOption {
    /// Every one that the reference has.
    pub const ALL: &'static [Self] = &[
        option(
            "Disk.SchedQPriorityPercentage",
            "80",
            "10 to 100",
            "The share of dispatches, in percent, that is taken from the priority queue [LAMW].",
        ),
        option(
            "Disk.SchedQCleanupInterval",
            "300",
            "0 to 31536000",
            "Seconds after which an idle scheduling queue is taken away; from 6.5 on [LAMW].",
        ),
        option(
            "Disk.SharesHigh",
            "2000",
            "100 to 10000",
            "The shares of a virtual disk whose level is High [LAMW].",
        ),
        option(
            "Disk.SharesNormal",
            "1000",
            "100 to 10000",
            "The shares of a virtual disk whose level is Normal [LAMW].",
        ),
        option(
            "Disk.SharesLow",
            "500",
            "100 to 10000",
            "The shares of a virtual disk whose level is Low [LAMW].",
        ),
        option(
            "Disk.BandwidthCap",
            "4294967294",
            "10 to 4294967294",
            "KB a second that are let through; the default is no limit [LAMW].",
        ),
        option(
            "Disk.ThroughputCap",
            "4294967294",
            "10 to 4294967294",
            "I/Os a second that are let through; the default is no limit [LAMW].",
        ),
        option(
            "Disk.DiskRetryPeriod",
            "2000",
            "500 to 50000",
            "Milliseconds until a command whose status asks for it is tried again [LAMW].",
        ),
        option(
            "Disk.SllThrottleTime",
            "800",
            "25 to 3000",
            "Milliseconds for which second-level LUNs, vVols in the reference's reading, are held after TASK SET FULL; \
            from 6.7 U2 on [LAMW].",
        ),
        option(
            "Disk.FastPathRestoreInterval",
            "100",
            "10 to 1000",
            "Milliseconds of the watch over latency for the fast path of PSA; from 6.5 on [LAMW].",
        ),
        option(
            "Disk.UseIoPool",
            "0",
            "0 to 7",
            "Bits, of which 4 is the pool for the queues of devices; from 6.5 on [LAMW].",
        ),
        option(
            "Disk.NmpMaxCmdExtension",
            "0",
            "0 to 4070 in 6.0, to 1000000000 from 6.5 on",
            "Commands that NMP has beyond its own [LAMW].",
        ),
        option(
            "Disk.ReqCallThreshold",
            "8",
            "1 to 129",
            "PVSCSI's guest rings for a command when as many are in its ring; below that one waits for the next ring, \
            or until the host looks [LAMW, PVL].",
        ),
        option(
            "Disk.VSCSIPollPeriod",
            "1000",
            "",
            "Microseconds between two looks of the host into the rings of guests [LAMW].",
        ),
        option(
            "Disk.VSCSICoalesceCount",
            "1000",
            "",
            "By its name, how many completions of virtual adapters are told together [LAMW].",
        ),
        option(
            "Disk.VSCSIHaltPollInterval",
            "5",
            "",
            "By its name, microseconds between polls of virtual adapters by a CPU that would halt; from 7.0 U1 on \
            [LAMW].",
        ),
        option(
            "Disk.VSCSIMaxTransLen",
            "0",
            "0 to 16384",
            "By its name, blocks of the largest transfer of a virtual disk, 0 for none told; from 8.0 U3 on [LAMW].",
        ),
        option(
            "Disk.VSCSIOptimalTransLen",
            "0",
            "0 to 16384",
            "By its name, blocks of the best transfer of a virtual disk, 0 for none told; from 8.0 U3 on [LAMW].",
        ),
        option(
            "Scsi.NvmeAdjustLocalNSQDepth",
            "1",
            "0 to 1",
            "1 divides the depth of a local NVMe controller among its namespaces; from 7.0 U1 on [LAMW].",
        ),
        option(
            "Scsi.PcpusPerCompletionWorld",
            "4",
            "1 to 64",
            "CPUs for each world that completes commands; from 7.0 U2 on [LAMW].",
        ),
        option(
            "Scsi.SCSITimeout_ScanTime",
            "1000",
            "1 to 99999999",
            "Milliseconds between two looks for commands that are beyond their time [LAMW].",
        ),
        option(
            "Scsi.SCSITimeout_ReabortTime",
            "5000",
            "1 to 99999999",
            "Milliseconds after which an abort that did not help is sent again [LAMW].",
        ),
        option(
            "Scsi.SCSIEnableDeviceLatencyHistogram",
            "1",
            "0 to 1",
            "1 keeps histograms of each device's latency; from 7.0 on [LAMW].",
        ),
        option(
            "Scsi.MaxReserveTotalTime",
            "250",
            "",
            "Milliseconds for which a reservation of the system is held in all at most [LAMW].",
        ),
        option(
            "NFS.SendBufferSize",
            "264, 1024 from 6.7 U3 on",
            "",
            "KB of the buffer of a mount's socket for what is sent [LAMW].",
        ),
        option(
            "NFS.ReceiveBufferSize",
            "256, 1024 from 6.7 U3 on",
            "",
            "KB of the buffer of a mount's socket for what comes [LAMW].",
        ),
        option(
            "VMFS3.UseATSForHBOnVMFS5",
            "1",
            "0 to 1",
            "1 has the heartbeats of VMFS5 locked by ATS as well [LAMW].",
        ),
        kernel(
            "VMkernel.Boot.storageMaxVMsPerDevice",
            "32",
            "",
            "VMs that are expected on a device [LAMW].",
        ),
        kernel(
            "VMkernel.Boot.storageMaxDevices",
            "256 in 6.0, 512 in 6.5, 1024 from 6.7 on",
            "",
            "Devices that a host takes [LAMW].",
        ),
        kernel(
            "VMkernel.Boot.storageMaxPaths",
            "1024 in 6.0, 2048 in 6.5, 4096 from 6.7 on",
            "",
            "Paths that a host takes [LAMW].",
        ),
    ];
}

impl OtherDriver {
    /// Every one that the reference has.
    pub const ALL: &'static [Self] = &[
        Self {
            modules: &["iser"],
            what: "iSCSI over RDMA",
            parameter: Some("iser_LunQDepth"),
            depths: "A depth for each device, whose default no source says; a published script sets 512.",
        },
        Self {
            modules: &["smartpqi"],
            what: "Smart Array Gen10",
            parameter: None,
            depths: "An adapter takes about 1,014 commands (from memory).",
        },
        Self {
            modules: &["lsi_mr3", "megaraid_sas"],
            what: "MegaRAID",
            parameter: None,
            depths: "256 for each virtual drive, as Linux has it, and about 895 for an adapter (from memory).",
        },
        Self {
            modules: &["lsi_msgpt3", "mpt3sas"],
            what: "SAS",
            parameter: None,
            depths: "An adapter takes about 600 commands (from memory).",
        },
        Self {
            modules: &["hpsa"],
            what: "HP Smart Array, before nhpsa",
            parameter: None,
            depths: "28 for each device, as nhpsa [CAP-B].",
        },
        Self {
            modules: &["nvme"],
            what: "NVMe, before nvme_pcie",
            parameter: None,
            depths: "1,023 for each device, as nvme_pcie [LIST8].",
        },
        Self {
            modules: &["lpfc_740"],
            what: "Emulex of ESX 3.5",
            parameter: None,
            depths: "32 for each device, up to 128 [SSP].",
        },
        Self {
            modules: &["iscsi_vmk"],
            what: "software iSCSI",
            parameter: Some("iscsivmk_HostQDepth"),
            depths: "Commands of the whole adapter, which is AQLEN: 1,024. iscsivmk_LunQDepth is the one of a device \
            [ELA].",
        },
        Self {
            modules: &["lpfc"],
            what: "Emulex",
            parameter: Some("lpfc_hba_queue_depth"),
            depths: "Commands of the whole adapter: 8,192 (from memory). It cannot be set after ESX 3.5 [ELA]; \
                lpfc_lun_queue_depth is the one of a device.",
        },
        Self {
            modules: &["brcmfcoe"],
            what: "Emulex FCoE",
            parameter: Some("brcmfcoe_hba_queue_depth"),
            depths: "Commands of the whole adapter, whose default no source says; brcmfcoe_lun_queue_depth is the one \
            of a device.",
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Advanced, Driver};

    #[test]
    fn nothing_is_here_that_kavg_simulates() {
        for other in OtherOption::ALL {
            let path = |path: &str| path[1..].replace('/', ".");
            assert!(Advanced::TABLE.iter().all(|info| path(info.path) != other.name), "{other:?}");
        }
        for other in OtherDriver::ALL {
            let depth = other.parameter.filter(|_| Driver::from_module(other.modules[0]).is_some());
            let knows = |driver: &&Driver| {
                other.modules.contains(&driver.module) && driver.parameter == depth
            };
            assert!(!Driver::ALL.iter().any(|driver| knows(&driver)), "{other:?}");
        }
    }
}
