//! The HBA drivers: the module, the parameter that sets the depth, its default and its range.
//!
//! A table of facts from the reference (`esxi-host-stack.md` section 3). Each number has its source; what the
//! reference has from memory alone is marked so.

use alloc::{format, string::String, vec::Vec};
use core::{fmt, ops::RangeInclusive};

use crate::{Advanced, Version};

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

impl Transport {
    /// The transport that alone uses an option; `None` where several do, or no list of adapters tells who does.
    #[must_use]
    pub const fn of_option(option: Advanced) -> Option<Self> {
        match option {
            Advanced::IscsiMaxIoSizeKb => Some(Self::Iscsi),
            _ => None,
        }
    }
}

/// An HBA driver.
#[derive(PartialEq, Eq)]
pub struct Driver {
    /// The name of its kernel module, as `esxcli system module parameters set -m` takes it.
    pub module: &'static str,
    /// What it drives, in the field's words.
    pub what: &'static str,
    /// The parameter that sets the depth per LUN; `None` when there is none.
    pub parameter: Option<&'static str>,
    /// The parameter of the first port alone, where there is one besides; kavg takes it as that of all.
    pub parameter_of_port: Option<&'static str>,
    /// The depth per LUN without it.
    pub depth_default: u32,
    /// The same in some builds, where these have another.
    pub depth_of_some_builds: Option<u32>,
    /// The least value that the parameter takes.
    pub depth_min: u32,
    /// The greatest.
    pub depth_max: u32,
    /// The adapter's own limit (AQLEN).
    pub adapter_depth: u32,
    /// Where these numbers come from.
    pub sources: DriverSources,
    /// How it reaches the array.
    pub transport: Transport,
    /// The first and the last version that have it.
    pub versions: RangeInclusive<Version>,
}

/// Where the numbers of a driver come from: a source in brackets, or [`MEMORY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverSources {
    /// Of the depth per LUN.
    pub depth: &'static str,
    /// Of the range of the parameter; empty where there is none.
    pub range: &'static str,
    /// Of AQLEN.
    pub adapter: &'static str,
}

/// In place of the source of what is from memory and not verified.
pub const MEMORY: &str = "(memory)";
/// Of a range that no source gives.
const USUAL: &str = "[S0: the usual most; no source gives a range]";
/// An adapter of FC takes 2,000 to 4,000 commands, 2,048 is held to be fine.
const FC_ADAPTER: &str = "[SSP, DRILL: of FC adapters]";
/// No source says more of these adapters than of their devices.
const AS_A_DEVICE: &str = "[ours: as a device]";

/// Its module tells which row of the table it is.
impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.module)
    }
}

impl Driver {
    /// Every driver that is known, those of today first. Where no source gives the range of a
    /// parameter, its most is the greatest value that a source shows in use, or calls usual.
    pub const ALL: &'static [Self] = &[
        // Cisco UCS: `fnic` is one of the drivers taken from Linux: 6.7 is the last with such, 5.5 the first with
        // native ones ("What is the impact of the VMKlinux driver stack deprecation?",
        // blogs.vmware.com, 2019-04), and Cisco says that 6.7 has `nfnic` in its place ("Configure
        // the queue depth of the nfnic driver", document 214808).
        fc("nfnic", "Cisco UCS", "lun_queue_depth_per_path", 32, 1024)
            .from("[QD254]", "[QD254]")
            .since(Version::V5_5),
        fc("fnic", "Cisco UCS, before nfnic", "fnic_max_qdepth", 32, 256)
            .from("[S0, ELA]", "[S0]")
            .until(Version::V6_7),
        // Emulex since 5.5; scripts use up to 254 [KB-PV].
        Self {
            depth_of_some_builds: Some(30),
            ..fc("lpfc", "Emulex", "lpfc_lun_queue_depth", 32, 512)
                .from("[S0]", MEMORY)
                .since(Version::V5_5)
        },
        fc("bfa", "Brocade", "bfa_lun_queue_depth", 32, 256).from("[S0]", USUAL),
        fc("brcmfcoe", "Emulex FCoE", "brcmfcoe_lun_queue_depth", 32, 256).from(MEMORY, USUAL),
        fc("qlnativefc", "QLogic", "ql2xmaxqdepth", 64, 254)
            .from("[S0, QD254]", "[QD254: the most that is seen in use]")
            .since(Version::V5_5),
        Self {
            adapter_depth: 1024,
            transport: Transport::Iscsi,
            ..fc("iscsi_vmk", "software iSCSI", "iscsivmk_LunQDepth", 128, 256)
                .from("[S0, S4, ELA]", "[S4: the most that is seen in use; a script sets more]")
                .with_adapter("[ELA: iscsivmk_HostQDepth]")
        },
        // QLogic of 5.0 and 5.1, and of ESX 3.x.
        fc("qla2xxx", "QLogic", "ql2xmaxqdepth", 64, 255)
            .from("[S0, QLA]", "[SSP]")
            .until(Version::V5_1),
        fc("qla2300_707", "QLogic", "ql2xmaxqdepth", 32, 255)
            .from("[S2, SSP]", "[SSP]")
            .until(Version::V5_1),
        // Emulex up to 5.1, a parameter of all ports and one of port 0 [S0, KB-PV].
        Self {
            depth_of_some_builds: Some(30),
            parameter_of_port: Some("lpfc0_lun_queue_depth"),
            ..fc("lpfc820", "Emulex", "lpfc_lun_queue_depth", 32, 128)
                .from("[S0]", "[SSP]")
                .until(Version::V5_1)
        },
        // Local. AHCI's tags are those of the whole adapter. NVMe's driver has this name from 7.0 on (README of
        // github.com/vmware-samples/nvme).
        local("vmw_ahci", "SATA", 31, 31, "[CAP-A]").with_adapter("[CAP-A]"),
        local("nhpsa", "HP Smart Array", 28, 1024, "[CAP-B]")
            .with_adapter("[ELA: what is typical]"),
        local("nvme_pcie", "NVMe", 1023, 1023, "[LIST8]").since(Version::V7_0),
        local("pvscsi", "a nested host's disks", 1024, 1024, "[LIST8]"),
        // A counter of vCenter shows the depth; that the device was of this driver is from memory.
        local("vmkusb", "USB", 1, 1, MEMORY),
        // An NFS mount has no queue depth of its own, but what the option allows.
        Self {
            transport: Transport::Network,
            ..local("nfsclient", "NFS", NFS_DEPTH, NFS_DEPTH, "[LAMW]")
        },
    ];

    /// Parameters as an article misprints them [S0], and the module that is meant [KB-PV, QD254].
    pub const MISPRINTS: &'static [(&'static str, &'static str)] =
        &[("qlfxmaxqdepth", "qlnativefc")];

    /// For an adapter of which nothing is known: the driver that takes the most depths.
    pub const ANY: &'static Self = &Self::ALL[0];

    /// The driver of that module; `None` when it is not known.
    #[must_use]
    pub fn from_module(module: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|driver| driver.module == module)
    }

    /// The drivers with a parameter that a device of this depth may have, as far as what is seen of
    /// its adapter tells them apart: of those that take the depth the ones for which most speaks, and
    /// of these, those that come with the depth where there are such. None where the depth is one of
    /// hardware that cannot be set.
    #[must_use]
    pub fn candidates(depth: u32, seen: &Seen) -> Vec<&'static Self> {
        let may_be = |driver: &&Self| seen.allows(driver) && driver.depths().contains(&depth);
        let mut those: Vec<&'static Self> = Self::ALL.iter().filter(may_be).collect();
        // Nobody sets a depth like that of hardware, whatever its adapter looks like.
        if those.iter().any(|driver| driver.parameter.is_none()) {
            return Vec::new();
        }
        let most = those.iter().map(|driver| seen.speaks_for(driver)).max();
        those.retain(|driver| Some(seen.speaks_for(driver)) == most);
        if those.iter().any(|driver| driver.depth_default == depth) {
            those.retain(|driver| driver.depth_default == depth);
        }
        those
    }

    const fn from(mut self, depth: &'static str, range: &'static str) -> Self {
        self.sources = DriverSources { depth, range, ..self.sources };
        self
    }

    const fn with_adapter(mut self, source: &'static str) -> Self {
        self.sources.adapter = source;
        self
    }

    const fn since(mut self, version: Version) -> Self {
        self.versions = version..=Version::NEWEST;
        self
    }

    const fn until(mut self, version: Version) -> Self {
        self.versions = Version::OLDEST..=version;
        self
    }

    /// The versions of ESXi that have it, in words; kavg knows none before [`Version::OLDEST`].
    #[must_use]
    pub fn versions_named(&self) -> String {
        let (first, last) = (*self.versions.start(), *self.versions.end());
        match (first == Version::OLDEST, last == Version::NEWEST) {
            (true, true) => "every ESXi".into(),
            (true, false) => format!("ESXi {} and earlier", last.name()),
            (false, true) => format!("ESXi {} and later", first.name()),
            (false, false) => format!("ESXi {} to {}", first.name(), last.name()),
        }
    }

    /// The driver of which a parameter of that name sets the depth.
    #[must_use]
    pub fn of_parameter(parameter: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|driver| driver.sets_depth(parameter))
    }

    /// Whether a parameter of that name sets its depth.
    #[must_use]
    pub fn sets_depth(&self, parameter: &str) -> bool {
        [self.parameter, self.parameter_of_port].contains(&Some(parameter))
    }

    /// What the parameter can be set to; the fixed depth alone where there is none.
    #[must_use]
    pub const fn depths(&self) -> RangeInclusive<u32> {
        self.depth_min..=self.depth_max
    }
}

/// What is seen of an adapter whose driver is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The version of its host.
    pub version: Option<Version>,
    /// Its depth (AQLEN), which a capture has with all fields only.
    pub adapter_depth: Option<u32>,
    /// The number in its name: 37 of `vmhba37`.
    pub number: Option<u32>,
}

impl Seen {
    /// The first number of adapters that are in no slot, as that of software iSCSI: `vmhba37` [ELA],
    /// `vmhba64` [S4]; that those in slots have lower ones is from memory.
    const FIRST_OF_SOFTWARE: u32 = 32;

    /// Whether the host may have the driver. The oldest version is not thought of unless it is told.
    #[must_use]
    pub fn allows(&self, driver: &Driver) -> bool {
        match self.version {
            Some(version) => driver.versions.contains(&version),
            None => *driver.versions.end() > Version::OLDEST,
        }
    }

    /// How much speaks for a driver. Neither sign is sure: some drivers let AQLEN be set, and names
    /// of adapters are no promise.
    fn speaks_for(&self, driver: &Driver) -> usize {
        let is_software = self.number.map(|number| number >= Self::FIRST_OF_SOFTWARE);
        let fits_name = match driver.transport {
            Transport::Iscsi => is_software != Some(false),
            Transport::Fc => is_software != Some(true),
            Transport::Local | Transport::Network => true,
        };
        usize::from(fits_name) + usize::from(self.adapter_depth == Some(driver.adapter_depth))
    }
}

/// An FC driver.
const fn fc(
    module: &'static str,
    what: &'static str,
    parameter: &'static str,
    depth_default: u32,
    depth_max: u32,
) -> Driver {
    Driver {
        module,
        what,
        parameter: Some(parameter),
        parameter_of_port: None,
        depth_default,
        depth_of_some_builds: None,
        depth_min: 1,
        depth_max,
        adapter_depth: 2048,
        sources: DriverSources { depth: "", range: "", adapter: FC_ADAPTER },
        transport: Transport::Fc,
        versions: Version::OLDEST..=Version::NEWEST,
    }
}

/// What an NFS mount and its network card let out: no less than the option does.
const NFS_DEPTH: u32 = Advanced::NfsMaxQueueDepth.info().default;

const fn local(
    module: &'static str,
    what: &'static str,
    depth: u32,
    adapter_depth: u32,
    source: &'static str,
) -> Driver {
    Driver {
        module,
        what,
        parameter: None,
        parameter_of_port: None,
        depth_default: depth,
        depth_of_some_builds: None,
        depth_min: depth,
        depth_max: depth,
        adapter_depth,
        sources: DriverSources { depth: source, range: "", adapter: AS_A_DEVICE },
        transport: Transport::Local,
        versions: Version::OLDEST..=Version::NEWEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_in_its_range() {
        for driver in Driver::ALL {
            let is_set = driver.parameter.is_some();
            assert!(!is_set || driver.depth_max <= Driver::ANY.depth_max, "{}", driver.module);
            assert!(driver.depths().contains(&driver.depth_default), "{}", driver.module);
        }
    }

    #[test]
    fn every_number_has_a_source_or_is_from_memory() {
        for Driver { module, parameter, sources, .. } in Driver::ALL {
            let range = parameter.map(|_| sources.range);
            for source in [sources.depth, sources.adapter].into_iter().chain(range) {
                assert!(source == MEMORY || source.starts_with('['), "{module}: {source:?}");
            }
        }
    }

    fn modules(depth: u32, seen: Seen) -> Vec<&'static str> {
        Driver::candidates(depth, &seen).iter().map(|driver| driver.module).collect()
    }

    #[test]
    fn an_untouched_depth_names_the_drivers() {
        let of = |version| Seen { version: Some(version), ..Seen::default() };
        let any = Seen::default();
        assert_eq!(modules(32, any), ["nfnic", "fnic", "lpfc", "bfa", "brcmfcoe"]);
        assert_eq!(modules(32, of(Version::V7_0)), ["nfnic", "lpfc", "bfa", "brcmfcoe"]);
        assert_eq!(modules(64, any), ["qlnativefc"]);
        assert_eq!(modules(64, of(Version::V5_1)), ["qla2xxx"]);
        assert_eq!(modules(128, any), ["iscsi_vmk"]);
        assert_eq!(modules(96, any).len(), 7);
        assert_eq!(modules(600, any), ["nfnic"]);
        assert!(modules(31, any).is_empty());
    }

    #[test]
    fn the_adapter_tells_drivers_apart() {
        let seen =
            |number, adapter_depth| Seen { number: Some(number), adapter_depth, version: None };
        let fc = ["nfnic", "fnic", "lpfc", "bfa", "brcmfcoe"];
        let table: [(u32, Seen, &[&str]); 8] = [
            (32, seen(64, Some(1024)), &["iscsi_vmk"]),
            (32, seen(37, None), &["iscsi_vmk"]),
            (32, seen(1, None), &fc),
            (32, seen(1, Some(2048)), &fc),
            // One sign for each: the depth decides.
            (32, seen(64, Some(2048)), &fc),
            (128, seen(1, Some(1024)), &["iscsi_vmk"]),
            (31, seen(0, Some(31)), &[]),
            (1023, seen(1, Some(2048)), &[]),
        ];
        for (depth, seen, expected) in table {
            assert_eq!(modules(depth, seen), expected, "{depth} {seen:?}");
        }
    }
}
