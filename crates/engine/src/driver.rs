//! The HBA drivers: the module, the parameter that sets the depth, its default and its range.
//!
//! A table of facts from the reference (`esxi-host-stack.md` section 3). Where the reference has
//! only memory for a number, the row says so.

/// How a driver reaches its array: it decides the round trips of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Fibre Channel, FCoE included.
    Fc,
    /// iSCSI.
    Iscsi,
    /// Inside the host: SATA, SAS, NVMe.
    Local,
    /// A network card under an NFS mount: no SCSI adapter, and no rows in esxtop.
    Network,
}

/// An HBA driver.
#[derive(Debug, PartialEq, Eq)]
pub struct Driver {
    /// The name of its kernel module, as `esxcli system module parameters set -m` takes it.
    pub module: &'static str,
    /// The parameter that sets the depth per LUN; `None` when there is none.
    pub parameter: Option<&'static str>,
    /// The depth per LUN without it.
    pub depth_default: u32,
    /// The least value that the parameter takes.
    pub depth_min: u32,
    /// The greatest.
    pub depth_max: u32,
    /// The adapter's own limit (AQLEN).
    pub adapter_depth: u32,
    /// How it reaches the array.
    pub transport: Transport,
}

impl Driver {
    /// Every driver that is known.
    pub const ALL: &'static [Self] = &[
        // QLogic FC up to ESXi 5.1; 64 since 5.0 [S0, QLA], up to 255 [SSP].
        fc("qla2xxx", "ql2xmaxqdepth", 64, 255),
        // The same of the ESX 3.x era: 32 [S2, SSP].
        fc("qla2300_707", "ql2xmaxqdepth", 32, 255),
        // QLogic FC since 5.5 [QD254]; 254 is the most that is used in the field.
        fc("qlnativefc", "ql2xmaxqdepth", 64, 255),
        // Emulex FC [S0, KB-PV]; 5.1 and older took up to 128 [SSP].
        fc("lpfc820", "lpfc0_lun_queue_depth", 32, 128),
        fc("lpfc", "lpfc_lun_queue_depth", 32, 512),
        // Brocade [S0]. No range is documented: 256 is S0's "usually".
        fc("bfa", "bfa_lun_queue_depth", 32, 256),
        // Emulex FCoE.
        fc("brcmfcoe", "brcmfcoe_lun_queue_depth", 32, 256),
        // Cisco UCS: `fnic` up to 256 [S0], its native successor 1 to 1,024 [QD254].
        fc("fnic", "fnic_max_qdepth", 32, 256),
        fc("nfnic", "lun_queue_depth_per_path", 32, 1024),
        // Software iSCSI [S0, S4]; the adapter's limit is iscsivmk_HostQDepth [ELA].
        Self {
            module: "iscsi_vmk",
            parameter: Some("iscsivmk_LunQDepth"),
            depth_default: 128,
            depth_min: 1,
            depth_max: 512,
            adapter_depth: 1024,
            transport: Transport::Iscsi,
        },
        // Local: AHCI has 31 tags for the whole adapter [CAP-A]; the others are fixed.
        local("vmw_ahci", 31, 31),
        local("nhpsa", 28, 1024),
        local("nvme_pcie", 1023, 1023),
        local("pvscsi", 1024, 1024),
        // An NFS mount has no queue depth of its own: `NFS.MaxQueueDepth` is 4294967295 [LAMW].
        Self {
            module: "nfsclient",
            parameter: None,
            depth_default: u32::MAX,
            depth_min: u32::MAX,
            depth_max: u32::MAX,
            adapter_depth: u32::MAX,
            transport: Transport::Network,
        },
    ];

    /// The driver of that module; `None` when it is not known.
    #[must_use]
    pub fn from_module(module: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|driver| driver.module == module)
    }
}

/// An FC driver: an adapter takes 2,000 to 4,000 commands, 2,048 is held to be fine [SSP, DRILL].
const fn fc(
    module: &'static str,
    parameter: &'static str,
    depth_default: u32,
    depth_max: u32,
) -> Driver {
    Driver {
        module,
        parameter: Some(parameter),
        depth_default,
        depth_min: 1,
        depth_max,
        adapter_depth: 2048,
        transport: Transport::Fc,
    }
}

const fn local(module: &'static str, depth: u32, adapter_depth: u32) -> Driver {
    Driver {
        module,
        parameter: None,
        depth_default: depth,
        depth_min: depth,
        depth_max: depth,
        adapter_depth,
        transport: Transport::Local,
    }
}
