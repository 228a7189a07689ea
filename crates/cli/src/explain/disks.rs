//! Settings of virtual disks: those of a guest's adapters, and what a disk may have of its device.

use ::counters::Controller;
use knobs::{
    Advanced, Allocation, AllocationChange, DiskName, Disks, Effect, GuestName, GuestOs,
    GuestSystem, PVSCSI_COMMANDS_PER_PAGE, PVSCSI_DEPTH_MAX, PVSCSI_RING_PAGES_DEFAULT,
    PVSCSI_RING_PAGES_MAX, Setting, Version, limits_of,
};

use super::{
    Article,
    settings::{N, as_typed, line, names, shown},
};

/// Every setting of virtual disks.
pub(crate) fn articles() -> Vec<Article> {
    vec![pvscsi(), virtual_adapters(), allocation(), weight_scale(), storage_policy()]
}

fn pvscsi() -> Article {
    let systems = |lines: fn(&Setting) -> Vec<String>| {
        let systems = [GuestSystem::Windows, GuestSystem::Linux].into_iter();
        let of = |system: GuestSystem| {
            let vm = GuestName { vm: None, system: Some(system) };
            let set = Setting::Pvscsi { vm, depth: Some(N), ring_pages: Some(N) };
            let lines = lines(&set).into_iter().map(|line| as_typed(&line));
            [format!("{}:", system.name())].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
        };
        systems.map(of).collect::<Vec<_>>().join("\n")
    };
    let depth = |guest| limits_of(Controller::Pvscsi, guest).disk_depth;
    Article {
        names: names(&[
            "PVSCSI",
            "vmw_pvscsi",
            "RequestRingPages",
            "MaxQueueDepth",
            "cmd_per_lun",
            "ring_pages",
        ]),
        title: "PVSCSI: the depth of a virtual disk and the ring of its adapter".into(),
        sections: vec![
            (
                "What it is",
                format!(
                    "How many commands the guest's PVSCSI driver sends for each disk, \
                and, by the pages of the ring ({PVSCSI_COMMANDS_PER_PAGE} commands each), for all disks \
                of the adapter; what is beyond waits in the guest [KB-PV, PVL]."
                ),
            ),
            (
                "When it acts",
                "Always, before anything of the host: no counter of the host sees what \
                waits in front of it."
                    .into(),
            ),
            (
                "Default",
                format!(
                    "{} a disk in Windows and in Linux before 2014, {} in Linux since; {} \
                pages.",
                    depth(GuestOs::Windows),
                    depth(GuestOs::Linux),
                    PVSCSI_RING_PAGES_DEFAULT
                ),
            ),
            (
                "Range",
                format!("1 to {PVSCSI_DEPTH_MAX} a disk, 1 to {PVSCSI_RING_PAGES_MAX} pages."),
            ),
            ("Read it", systems(Setting::show)),
            ("Set it", systems(Setting::guest)),
            ("In force", Effect::GuestReboot.text().into()),
            (
                "Leave alone",
                "Raised alone it moves the wait from the guest into the VMkernel: the \
                device's depth has to allow it too. One VM can then fill a device queue alone [S0]."
                    .into(),
            ),
        ],
    }
}

fn virtual_adapters() -> Article {
    let depths = |controller: Controller| {
        let name = controller.name();
        let limits = |guest| limits_of(controller, guest);
        let (linux, windows) = (limits(GuestOs::Linux), limits(GuestOs::Windows));
        let differs = match linux.disk_depth == windows.disk_depth {
            true => String::new(),
            false => format!(" ({} in Windows)", windows.disk_depth),
        };
        format!("{name}: {}{differs} a disk, {} in all.\n", linux.disk_depth, linux.adapter_depth)
    };
    Article {
        names: names(&[
            "virtual adapter",
            "vSCSI",
            "LSI Logic",
            "LSI",
            "LSI Logic SAS",
            "LSI Logic Parallel",
            "BusLogic",
            "NVMe",
            "vNVMe",
            "AHCI",
            "SATA",
            "IDE",
        ]),
        title: "Virtual adapters: LSI Logic, BusLogic, NVMe, AHCI, IDE, PVSCSI".into(),
        sections: vec![
            (
                "What it is",
                "How many commands a guest sends for one virtual disk, and for all disks of one \
                virtual adapter; what is beyond waits in the guest [TBL, S0]."
                    .into(),
            ),
            ("When it acts", "Always, before anything of the host.".into()),
            ("Default", Controller::ALL.into_iter().map(depths).collect()),
            ("Range", "PVSCSI's: kavg explain pvscsi. No source gives another.".into()),
            (
                "Read it",
                "In the guest: no counter of the host shows a depth there, nor what waits before it."
                    .into(),
            ),
            (
                "Set it",
                "PVSCSI alone has a supported setting (kavg explain pvscsi); NVMe's depth is its \
                guest driver's. The others are fixed: move the disk to PVSCSI."
                    .into(),
            ),
            ("In force", format!("PVSCSI's {}.", Effect::GuestReboot.text())),
            (
                "Leave alone",
                "Adapters whose disks do not wait in the guest: a deeper one moves no limit of the host."
                    .into(),
            ),
            (
                "Mind",
                "Sources give PVSCSI, LSI Logic SAS and the 32 of LSI Logic Parallel; what is said of the others is \
                from memory."
                    .into(),
            ),
        ],
    }
}

fn allocation() -> Article {
    let unit = Advanced::SchedCostUnit.info();
    let shares = Allocation::SHARES;
    let vdisk = DiskName { vm: "NAME".into(), disk: None }.into();
    let set = Setting::Allocation { vdisk, allocation: AllocationChange::Limit(Some(N)) };
    Article {
        names: names(&[
            "IOPS limit",
            "DiskLimitIOPerSecond",
            "limit",
            "reservation",
            "shares",
            "NumDiskShares",
            "DiskShares",
            "proportional shares",
        ]),
        title: "IOPS limit, reservation and shares of a virtual disk".into(),
        sections: vec![
            (
                "What it is",
                "A rate that the host holds a virtual disk to, one that it keeps for it, and \
                its weight among the others of its device."
                    .into(),
            ),
            (
                "When it acts",
                format!(
                    "The limit always, also when nothing is congested; shares and \
                reservation where disks compete for slots. An I/O counts as one for each {} bytes \
                begun ({}) [API, LAMW]. Before ESXi {} the disks of a VM on a device have one limit, the sum of \
                theirs, and none where one of them has none [PFS, DOC50].",
                    unit.default,
                    unit.path,
                    Version::V6_0.name()
                ),
            ),
            (
                "Default",
                format!("No limit, no reservation, {} shares.", Allocation::default().shares),
            ),
            (
                "Range",
                format!(
                    "A limit of at least 1; shares {} to {} [LAMW].",
                    shares.start(),
                    shares.end()
                ),
            ),
            (
                "Read it",
                format!(
                    "{}\nIn no column of esxtop: a flat rate and KAVG while slots are free are its sign.",
                    shown(&set)
                ),
            ),
            (
                "Set it",
                format!(
                    "{}\n-1 is none; -DiskSharesLevel Low, Normal or High sets shares, Custom with -NumDiskShares \
                    a number of them; a limit of a storage policy is changed in the policy: kavg explain \"storage \
                    policy\".",
                    line(&set)
                ),
            ),
            ("In force", Effect::AtOnce.text().into()),
            (
                "Leave alone",
                "A limit that is meant. It is the gentlest way to hold a noisy VM; lifting \
                it gives its wait to the neighbours."
                    .into(),
            ),
        ],
    }
}

/// What a share is under mClock, which is kavg's own to choose: no source says it.
fn weight_scale() -> Article {
    let unit = Advanced::SchedCostUnit.info();
    Article {
        names: names(&["weight_scale", "weight scale", "shares"]),
        title: "Weight scale: what a share is under mClock (kavg's own: no option of ESXi)".into(),
        sections: vec![
            (
                "What it is",
                format!(
                    "So many I/Os of {} bytes ({}) a second is one share: mClock's tags are times, and who is \
                    behind its shares is served in the order of arrival.",
                    unit.default, unit.path
                ),
            ),
            (
                "When it acts",
                "Shares decide where disks get more than their shares are I/Os. At the default scale two disks \
                of 1,000 and 2,000 shares are alike on a device that does 1,600 a second or less, are 1:1.5 at \
                2,500 and 1:2 from 3,000 on (32 slots, 64 commands each). Below that order of arrival decides, \
                as S4 saw."
                    .into(),
            ),
            ("Default", "1".into()),
            ("Range", "0.01 to 1,000. At 0.01 shares are proportions on any device that does 30 a second.".into()),
            (
                "Read it",
                "$ kavg run s4-solidfire --compare s4-weight-scale\nThe same VMs at 1 and at 0.01: the good \
                neighbour's I/O takes 326 ms and 14 ms."
                    .into(),
            ),
            (
                "Set it",
                "In a scenario or a HOST.toml: weight_scale of a host. scheduler = \"sfq\" of a datastore \
                shares in proportion at any rate."
                    .into(),
            ),
            ("In force", "from the start of the run, or of kavg serve".into()),
            ("Leave alone", "At 1, unless shares are to be proportions on slow devices too.".into()),
            (
                "Mind",
                "Whether an ESXi host takes shares for rates nobody says. The windows of Storage I/O Control go by the \
                ratio of shares whatever it is."
                    .into(),
            ),
        ],
    }
}

fn storage_policy() -> Article {
    let disks = DiskName { vm: "NAME".into(), disk: None }.into();
    let given = Setting::Allocation {
        vdisk: disks,
        allocation: AllocationChange::Policy(Some("POLICY".into())),
    };
    let says = Setting::Allocation {
        vdisk: Disks::With("POLICY".into()),
        allocation: AllocationChange::Limit(Some(N)),
    };
    let presets = Allocation::POLICY_PRESETS.map(|(name, policy)| {
        let Allocation { shares, limit_iops, reservation_iops } = policy;
        let limit = limit_iops.map_or_else(|| "no limit".into(), |limit| format!("{limit} IOPS"));
        format!("{name}: {limit}, {reservation_iops} of them kept for it, {shares} shares.\n")
    });
    Article {
        names: names(&[
            "storage policy",
            "StoragePolicy",
            "SPBM",
            "SIOC v2",
            "Set-SpbmEntityConfiguration",
            "spm@DATASTOREIOCONTROL",
        ]),
        title: "Storage policy: limit, reservation and shares under a name".into(),
        sections: vec![
            (
                "What it is",
                "What disks may have of their device, said once: each disk that has the policy has its limit, \
                its reservation and its shares, and none of its own [DOC65]."
                    .into(),
            ),
            (
                "When it acts",
                "As what a disk has of its own: kavg explain \"IOPS limit\". The limit holds with and \
                without congestion [API]."
                    .into(),
            ),
            ("Default", format!("None. There are, with numbers from memory:\n{}", presets.concat())),
            ("Range", "From ESXi 6.5 on; each number as that of a disk.".into()),
            ("Read it", [shown(&given), shown(&says)].join("\n")),
            (
                "Set it",
                format!(
                    "{}\nWhat a policy says, the API sets and no line of PowerCLI [SPBM]; kavg \
                    takes `{}`, and so its shares and its reservation.",
                    line(&given),
                    says.to_string().replace(&N.to_string(), "N")
                ),
            ),
            ("In force", Effect::AtOnce.text().into()),
            (
                "Leave alone",
                "A policy that other VMs have too: what it says is said of all of their disks.".into(),
            ),
            (
                "Mind",
                "A number that is set on a disk takes the policy from it; the others stay as the policy \
                said. Without a policy (`StoragePolicy none`, or -StoragePolicy $null) none of the three is left. \
                What Get-VM gets has a policy too, that of the VM's home: its disks keep theirs [SPBM]."
                    .into(),
            ),
        ],
    }
}
