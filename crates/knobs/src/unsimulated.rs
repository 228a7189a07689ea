//! What ESXi has and kavg neither takes nor simulates: advanced options, settings of the VMkernel at boot,
//! drivers and their other parameters. They are here to be explained.
//!
//! A table of facts from the reference (`esxi-host-stack.md` sections 1.2, 1.4, 1.5, 2.5 and 3;
//! `array-and-control.md` sections 7.3, 7.4 and 7.5).

use alloc::{
    format,
    string::{String, ToString},
};

use crate::{
    command::{ADVANCED, Call, MODULE},
    esxcli, show_option,
};

/// How an option is read and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `esxcli system settings advanced`.
    Advanced,
    /// `esxcli system settings kernel`: it acts from the next boot on.
    Kernel,
}

impl Place {
    /// The line that sets an option there, by its name as vCenter has it.
    #[must_use]
    pub fn set(self, name: &str, value: impl ToString) -> String {
        match self {
            Self::Advanced => {
                let call = Call::new(&ADVANCED).with('o', path(name)).with('i', value);
                format!("esxcli {}", esxcli::print(&call))
            }
            Self::Kernel => {
                let short = name.trim_start_matches(BOOT);
                format!("esxcli system settings kernel set -s {short} -v {}", value.to_string())
            }
        }
    }

    /// The line that shows it.
    #[must_use]
    pub fn show(self, name: &str) -> String {
        match self {
            Self::Advanced => show_option(&path(name)),
            Self::Kernel => "esxcli system settings kernel list".into(),
        }
    }
}

/// What vCenter has in front of the name of a setting at boot.
const BOOT: &str = "VMkernel.Boot.";

fn path(name: &str) -> String {
    format!("/{}", name.replace('.', "/"))
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
    /// When it acts; empty where no source says that.
    pub when: &'static str,
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
    /// Whose depth that sets.
    pub of: DepthOf,
    /// The depth of a device, with its source; empty where no source says it.
    pub device: &'static str,
    /// The depth of an adapter (AQLEN), likewise.
    pub adapter: &'static str,
    /// What the parameter takes, likewise.
    pub range: &'static str,
    /// What is said of setting it; empty where the line of its parameter does.
    pub set: &'static str,
}

/// Whose depth a parameter sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepthOf {
    /// Each device's.
    Device,
    /// The adapter's, for all its devices together.
    Adapter,
}

/// A driver of whose depth no parameter is known.
const fn module(
    modules: &'static [&'static str],
    what: &'static str,
    device: &'static str,
    adapter: &'static str,
) -> OtherDriver {
    let set = "No source names a parameter that sets its depth.";
    OtherDriver {
        modules,
        what,
        parameter: None,
        of: DepthOf::Device,
        device,
        adapter,
        range: "",
        set,
    }
}

/// A parameter that sets the depth of an adapter.
const fn of_adapter(
    modules: &'static [&'static str],
    what: &'static str,
    parameter: &'static str,
    adapter: &'static str,
) -> OtherDriver {
    let of = DepthOf::Adapter;
    OtherDriver { parameter: Some(parameter), of, set: "", ..module(modules, what, "", adapter) }
}

const fn option(
    name: &'static str,
    default: &'static str,
    range: &'static str,
    meaning: &'static str,
    when: &'static str,
) -> OtherOption {
    OtherOption { name, place: Place::Advanced, default, range, meaning, when }
}

const fn kernel(
    name: &'static str,
    default: &'static str,
    range: &'static str,
    meaning: &'static str,
    when: &'static str,
) -> OtherOption {
    OtherOption { name, place: Place::Kernel, default, range, meaning, when }
}

impl OtherOption {
    /// Every one that the reference has.
    pub const ALL: &'static [Self] = &[
        option(
            "Disk.SchedQPriorityPercentage",
            "80",
            "10 to 100",
            "The share of dispatches, in percent, that is taken from the priority queue [LAMW].",
            "At each dispatch of a device, while its priority queue has commands.",
        ),
        option(
            "Disk.SchedQCleanupInterval",
            "300",
            "0 to 31536000",
            "Seconds after which an idle scheduling queue is taken away; from 6.5 on [LAMW].",
            "When a scheduling queue has been idle for so long.",
        ),
        option(
            "Disk.SharesHigh",
            "2000",
            "100 to 10000",
            "The shares of a virtual disk whose level is High [LAMW].",
            "While disks compete for the slots of a device [S3, SSP].",
        ),
        option(
            "Disk.SharesNormal",
            "1000",
            "100 to 10000",
            "The shares of a virtual disk whose level is Normal [LAMW].",
            "While disks compete for the slots of a device [S3, SSP].",
        ),
        option(
            "Disk.SharesLow",
            "500",
            "100 to 10000",
            "The shares of a virtual disk whose level is Low [LAMW].",
            "While disks compete for the slots of a device [S3, SSP].",
        ),
        option(
            "Disk.BandwidthCap",
            "4294967294",
            "10 to 4294967294",
            "KB a second that are let through; the default is no limit [LAMW].",
            "Where it is less than the default; of what it is the cap, no source says.",
        ),
        option(
            "Disk.ThroughputCap",
            "4294967294",
            "10 to 4294967294",
            "I/Os a second that are let through; the default is no limit [LAMW].",
            "Where it is less than the default; of what it is the cap, no source says.",
        ),
        option(
            "Disk.DiskRetryPeriod",
            "2000",
            "500 to 50000",
            "Milliseconds until a command whose status asks for it is tried again [LAMW].",
            "After an answer of the array that asks for another try.",
        ),
        option(
            "Disk.SllThrottleTime",
            "800",
            "25 to 3000",
            "Milliseconds for which second-level LUNs, vVols in the reference's reading, are held after TASK SET FULL; \
            from 6.7 U2 on [LAMW].",
            "After TASK SET FULL of such a LUN.",
        ),
        option(
            "Disk.FastPathRestoreInterval",
            "100",
            "10 to 1000",
            "Milliseconds of the watch over latency for the fast path of PSA; from 6.5 on [LAMW].",
            "",
        ),
        option(
            "Disk.UseIoPool",
            "0",
            "0 to 7",
            "Bits, of which 4 is the pool for the queues of devices; from 6.5 on [LAMW].",
            "",
        ),
        option(
            "Disk.NmpMaxCmdExtension",
            "0",
            "0 to 4070 in 6.0, to 1000000000 from 6.5 on",
            "Commands that NMP has beyond its own [LAMW].",
            "",
        ),
        option(
            "Disk.ReqCallThreshold",
            "8",
            "1 to 129",
            "Commands in the ring of a PVSCSI adapter from which on its guest rings for them [LAMW, PVL].",
            "When a guest has put a read or a write into its ring: it rings if as many are there, and \
            otherwise the command waits for the next ring, or until the host looks [PVL].",
        ),
        option(
            "Disk.VSCSIPollPeriod",
            "1000",
            "",
            "Microseconds between two looks of the host into the rings of guests [LAMW].",
            "While commands of which no guest has told are in a ring (our reading) [PVL].",
        ),
        option(
            "Disk.VSCSICoalesceCount",
            "1000",
            "",
            "By its name, how many completions of virtual adapters are told together [LAMW].",
            "",
        ),
        option(
            "Disk.VSCSIHaltPollInterval",
            "5",
            "",
            "By its name, microseconds between polls of virtual adapters by a CPU that would halt; from 7.0 U1 on \
            [LAMW].",
            "By its name, when a CPU would halt.",
        ),
        option(
            "Disk.VSCSIMaxTransLen",
            "0",
            "0 to 16384",
            "By its name, blocks of the largest transfer of a virtual disk, 0 for none told; from 8.0 U3 on [LAMW].",
            "",
        ),
        option(
            "Disk.VSCSIOptimalTransLen",
            "0",
            "0 to 16384",
            "By its name, blocks of the best transfer of a virtual disk, 0 for none told; from 8.0 U3 on [LAMW].",
            "",
        ),
        option(
            "Scsi.NvmeAdjustLocalNSQDepth",
            "1",
            "0 to 1",
            "1 divides the depth of a local NVMe controller among its namespaces; from 7.0 U1 on [LAMW].",
            "Where a local controller has several namespaces.",
        ),
        option(
            "Scsi.PcpusPerCompletionWorld",
            "4",
            "1 to 64",
            "CPUs for each world that completes commands; from 7.0 U2 on [LAMW].",
            "As commands complete.",
        ),
        option(
            "Scsi.SCSITimeout_ScanTime",
            "1000",
            "1 to 99999999",
            "Milliseconds between two looks for commands that are beyond their time [LAMW].",
            "Always, once in so long.",
        ),
        option(
            "Scsi.SCSITimeout_ReabortTime",
            "5000",
            "1 to 99999999",
            "Milliseconds after which an abort that did not help is sent again [LAMW].",
            "When a command is still there so long after its abort.",
        ),
        option(
            "Scsi.SCSIEnableDeviceLatencyHistogram",
            "1",
            "0 to 1",
            "1 keeps histograms of each device's latency; from 7.0 on [LAMW].",
            "With every command of a device.",
        ),
        option(
            "Scsi.MaxReserveTotalTime",
            "250",
            "",
            "Milliseconds for which a reservation of the system is held in all at most [LAMW].",
            "While the host holds a device by a SCSI reservation, as for VMFS without ATS.",
        ),
        option(
            "NFS.SendBufferSize",
            "264, 1024 from 6.7 U3 on",
            "",
            "KB of the buffer of a mount's socket for what is sent [LAMW].",
            "On every NFS mount, for what the host sends.",
        ),
        option(
            "NFS.ReceiveBufferSize",
            "256, 1024 from 6.7 U3 on",
            "",
            "KB of the buffer of a mount's socket for what comes [LAMW].",
            "On every NFS mount, for what it gets.",
        ),
        option(
            "VMFS3.UseATSForHBOnVMFS5",
            "1",
            "0 to 1",
            "1 has the heartbeats of VMFS5 locked by ATS as well [LAMW].",
            "When the host writes its heartbeat to a datastore of VMFS5 that has ATS.",
        ),
        kernel(
            "VMkernel.Boot.storageMaxVMsPerDevice",
            "32",
            "",
            "VMs that are expected on a device [LAMW].",
            "",
        ),
        kernel(
            "VMkernel.Boot.storageMaxDevices",
            "256 in 6.0, 512 in 6.5, 1024 from 6.7 on",
            "",
            "Devices that a host takes [LAMW].",
            "When the host finds more.",
        ),
        kernel(
            "VMkernel.Boot.storageMaxPaths",
            "1024 in 6.0, 2048 in 6.5, 4096 from 6.7 on",
            "",
            "Paths that a host takes [LAMW].",
            "When the host finds more.",
        ),
    ];
}

impl OtherDriver {
    /// Every one that the reference has.
    pub const ALL: &'static [Self] = &[
        Self {
            parameter: Some("iser_LunQDepth"),
            range: "not known: no source says it; a published script sets 512",
            set: "",
            ..module(&["iser"], "iSCSI over RDMA", "", "")
        },
        module(&["smartpqi"], "Smart Array Gen10", "", "about 1,014 (memory)"),
        module(
            &["lsi_mr3", "megaraid_sas"],
            "MegaRAID",
            "256 for each virtual drive, as Linux has it",
            "about 895 (memory)",
        ),
        module(&["lsi_msgpt3", "mpt3sas"], "SAS", "", "about 600 (memory)"),
        module(&["hpsa"], "HP Smart Array, before nhpsa", "28, as nhpsa [CAP-B]", ""),
        module(&["nvme"], "NVMe, before nvme_pcie", "1,023, as nvme_pcie [LIST8]", ""),
        Self {
            range: "up to 128 [SSP]",
            set: "By lpfc_lun_queue_depth, that of port 0 alone by lpfc0_lun_queue_depth [S0]. The line of ESX 3.5 \
                no source gives.",
            ..module(
                &["lpfc_740"],
                "Emulex of ESX 3.5",
                "32 [S0]; 30 in effect in older ones (memory)",
                "",
            )
        },
        of_adapter(&["iscsi_vmk"], "software iSCSI", "iscsivmk_HostQDepth", "1,024 [ELA]"),
        Self {
            set: "It cannot be set after ESX 3.5 [ELA].",
            ..of_adapter(&["lpfc"], "Emulex", "lpfc_hba_queue_depth", "8,192 (memory)")
        },
        of_adapter(&["brcmfcoe"], "Emulex FCoE", "brcmfcoe_hba_queue_depth", ""),
    ];

    /// The line that sets its parameter; `None` where none does.
    #[must_use]
    pub fn esxcli(&self, value: u32) -> Option<String> {
        let parameter = self.parameter.filter(|_| self.set.is_empty())?;
        let call = Call::new(&MODULE).with('m', self.modules[0]);
        let call = call.with('p', format!("{parameter}={value}"));
        Some(format!("esxcli {}", esxcli::print(&call)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::{Advanced, Driver};

    #[test]
    fn nothing_is_here_that_kavg_simulates() {
        for other in OtherOption::ALL {
            assert!(Advanced::from_path(&path(other.name)).is_none(), "{other:?}");
        }
        for other in OtherDriver::ALL {
            let depth = other.parameter.filter(|_| Driver::from_module(other.modules[0]).is_some());
            let knows = |driver: &&Driver| {
                other.modules.contains(&driver.module) && driver.parameter == depth
            };
            assert!(!Driver::ALL.iter().any(|driver| knows(&driver)), "{other:?}");
        }
    }

    #[test]
    fn each_is_set_by_a_line_of_its_place() {
        let advanced = Place::Advanced.set("Disk.SharesHigh", 7);
        assert_eq!(advanced, "esxcli system settings advanced set -o /Disk/SharesHigh -i 7");
        let kernel = Place::Kernel.set("VMkernel.Boot.storageMaxPaths", 7);
        assert_eq!(kernel, "esxcli system settings kernel set -s storageMaxPaths -v 7");
        let lines = OtherDriver::ALL.iter().filter_map(|driver| driver.esxcli(7));
        let set = "esxcli system module parameters set -m";
        assert_eq!(
            lines.collect::<Vec<_>>(),
            [
                format!("{set} iser -p iser_LunQDepth=7"),
                format!("{set} iscsi_vmk -p iscsivmk_HostQDepth=7"),
                format!("{set} brcmfcoe -p brcmfcoe_hba_queue_depth=7"),
            ]
        );
    }
}
