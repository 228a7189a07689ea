//! HBA drivers: the module, the parameter that sets the depth of a device, its default and range.
//!
//! A capture does not say which driver an adapter has, but a depth that nobody changed is its
//! driver's default, and that narrows it down. The table is section 3 of the reference.

use crate::Facts;

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

/// Depths of hardware that cannot be set: AHCI, Smart Array, USB, local NVMe [CAP-A, CAP-B, LIST8].
const FIXED: [u32; 4] = [31, 28, 1, 1023];

/// The drivers that a device of this depth may have: the one of that module, one whose parameter
/// is known to be set, those that come with the depth, or all; none when it cannot be set.
pub(crate) fn candidates(depth: u32, module: Option<&str>, facts: &Facts) -> Vec<Driver> {
    let those = |fits: &dyn Fn(&Driver) -> bool| -> Vec<Driver> {
        DRIVERS.into_iter().filter(fits).collect()
    };
    if let Some(module) = module {
        return those(&|driver| driver.module == module);
    }
    let set = those(&|driver| facts.depth_set(driver.parameter).is_some());
    let untouched = those(&|driver| driver.default == depth);
    match (set.is_empty(), untouched.is_empty()) {
        (false, _) => set,
        (true, false) => untouched,
        (true, true) if FIXED.contains(&depth) => Vec::new(),
        (true, true) => DRIVERS.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(depth: u32, module: Option<&str>, facts: &Facts) -> Vec<&'static str> {
        candidates(depth, module, facts).iter().map(|driver| driver.module).collect()
    }

    #[test]
    fn an_untouched_depth_names_the_drivers() {
        let facts = Facts::default();
        assert_eq!(modules(32, None, &facts), ["nfnic", "fnic", "lpfc", "bfa"]);
        assert_eq!(modules(64, None, &facts), ["qlnativefc"]);
        assert_eq!(modules(128, None, &facts), ["iscsi_vmk"]);
        assert_eq!(modules(96, None, &facts).len(), DRIVERS.len());
        assert!(modules(31, None, &facts).is_empty());
    }

    #[test]
    fn what_is_known_decides() {
        let mut facts = Facts::default();
        assert_eq!(modules(64, Some("fnic"), &facts), ["fnic"]);
        assert!(modules(64, Some("vmw_ahci"), &facts).is_empty());
        facts.parameters.insert("lpfc_lun_queue_depth".into(), "64".into());
        assert_eq!(modules(64, None, &facts), ["lpfc"]);
    }
}
