//! HBA drivers: the module, the parameter that sets the depth of a device, its default and range.
//!
//! A capture does not say which driver an adapter has, but a depth that nobody changed is its
//! driver's default, and that narrows it down. The table is section 3 of the reference.

/// A driver and its depth parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Driver {
    pub(crate) module: &'static str,
    pub(crate) parameter: &'static str,
    pub(crate) default: u32,
    pub(crate) max: u32,
    pub(crate) what: &'static str,
}

/// The drivers whose depth can be set [S0, QD254, KB-PV, ELA].
const DRIVERS: [Driver; 6] = [
    Driver {
        module: "nfnic",
        parameter: "lun_queue_depth_per_path",
        default: 32,
        max: 1024,
        what: "Cisco UCS",
    },
    Driver {
        module: "fnic",
        parameter: "fnic_max_qdepth",
        default: 32,
        max: 256,
        what: "Cisco UCS, before nfnic",
    },
    Driver {
        module: "lpfc",
        parameter: "lpfc_lun_queue_depth",
        default: 32,
        max: 254,
        what: "Emulex",
    },
    Driver {
        module: "bfa",
        parameter: "bfa_lun_queue_depth",
        default: 32,
        max: 254,
        what: "Brocade",
    },
    Driver {
        module: "qlnativefc",
        parameter: "ql2xmaxqdepth",
        default: 64,
        max: 254,
        what: "QLogic",
    },
    Driver {
        module: "iscsi_vmk",
        parameter: "iscsivmk_LunQDepth",
        default: 128,
        max: 256,
        what: "software iSCSI",
    },
];

/// The driver of that module name; `None` for one whose depth cannot be set.
pub(crate) fn by_module(module: &str) -> Option<Driver> {
    DRIVERS.into_iter().find(|driver| driver.module == module)
}

/// The drivers that come with this depth; all of them when none does.
pub(crate) fn plausible(depth: u32) -> Vec<Driver> {
    let mut fitting: Vec<_> = DRIVERS.into_iter().filter(|d| d.default == depth).collect();
    if fitting.is_empty() {
        fitting.extend(DRIVERS);
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untouched_depth_names_the_drivers() {
        let modules = |depth| plausible(depth).iter().map(|d| d.module).collect::<Vec<_>>();
        assert_eq!(modules(32), ["nfnic", "fnic", "lpfc", "bfa"]);
        assert_eq!(modules(64), ["qlnativefc"]);
        assert_eq!(modules(128), ["iscsi_vmk"]);
        assert_eq!(modules(96).len(), DRIVERS.len());
    }

    #[test]
    fn a_known_module_is_found() {
        assert_eq!(by_module("fnic").map(|d| d.parameter), Some("fnic_max_qdepth"));
        assert_eq!(by_module("vmw_ahci"), None);
    }
}
