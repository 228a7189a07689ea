//! What is written is read back: every setting, in every syntax that has it.

use counters::MILLISECOND;
use knobs::{
    Advanced, Allocation, AllocationChange, BusKind, DiskName, DiskPlace, Disks, Driver, GuestName,
    GuestSystem, IoControl, IoControlChange, Line, Module, PVSCSI_DEPTH_MAX, PVSCSI_RING_PAGES_MAX,
    PathPolicy, PolicyChange, Setting,
};
use proptest::{option, prelude::*, sample::select};

/// Names with all that could break out of a line.
fn name() -> impl Strategy<Value = String> {
    prop_oneof!["naa\\.[0-9a-f]{16}", "[a-z][a-zA-Z0-9 '\"$;|()\\\\-]{0,12}[a-z0-9]"]
}

fn policy() -> impl Strategy<Value = PolicyChange> {
    let plug_in = select(vec![
        PolicyChange::PlugIn(PathPolicy::Fixed),
        PolicyChange::PlugIn(PathPolicy::MostRecentlyUsed),
        PolicyChange::PlugIn(PathPolicy::ROUND_ROBIN),
        PolicyChange::RoundRobin(PathPolicy::ROUND_ROBIN),
    ]);
    let iops = (1..u32::MAX).prop_map(|iops| PathPolicy::RoundRobin { iops, bytes: u64::MAX });
    let bytes = (1..u32::MAX)
        .prop_map(|bytes| PathPolicy::RoundRobin { iops: u32::MAX, bytes: bytes.into() });
    let latency = (1..u32::MAX, 1..u32::MAX).prop_map(|(sampling_ios, millis)| {
        PathPolicy::Latency { sampling_ios, eval_ns: u64::from(millis) * MILLISECOND }
    });
    let round_robin = prop_oneof![iops, bytes, latency].prop_map(PolicyChange::RoundRobin);
    prop_oneof![plug_in, round_robin]
}

fn of_esxcli() -> impl Strategy<Value = Setting> {
    let options: Vec<Advanced> = Advanced::TABLE.iter().map(|info| info.option).collect();
    let drivers: Vec<&Driver> = Driver::ALL.iter().filter(|d| d.parameter.is_some()).collect();
    prop_oneof![
        (name(), any::<u32>())
            .prop_map(|(device, value)| Setting::SchedNumReqOutstanding { device, value }),
        (name(), any::<u32>()).prop_map(|(device, value)| Setting::MaxQueueDepth { device, value }),
        (name(), any::<u32>(), any::<u32>()).prop_map(|(device, sample_size, threshold)| {
            Setting::QueueFull { device, sample_size, threshold }
        }),
        (name(), any::<bool>()).prop_map(|(device, on)| Setting::DepthByLatency { device, on }),
        (select(options), option::of(any::<u32>()))
            .prop_map(|(option, value)| Setting::Advanced { option, value }),
        (select(drivers), any::<u32>(), select(vec!["", "x_log=1", "x_log=1 y=a,b"])).prop_map(
            |(driver, value, others)| {
                let driver = Module { driver, others: others.into() };
                Setting::ModuleDepth { driver, value }
            }
        ),
        (name(), policy()).prop_map(|(device, policy)| Setting::PathPolicy { device, policy }),
    ]
}

fn of_datastore() -> impl Strategy<Value = Setting> {
    // A line has whole milliseconds.
    let threshold = || (0..u32::MAX / 1000).prop_map(|millis| 1000 * millis);
    let control = prop_oneof![
        Just(IoControl::Off.into()),
        threshold().prop_map(|threshold_us| IoControl::Stats { threshold_us }.into()),
        threshold().prop_map(|threshold_us| IoControl::On { threshold_us }.into()),
        Just(IoControlChange::Enabled),
        threshold().prop_map(|threshold_us| IoControlChange::Threshold { threshold_us }),
    ];
    (name(), control).prop_map(|(device, control)| Setting::StorageIoControl { device, control })
}

fn of_guest() -> impl Strategy<Value = Setting> {
    let system = select(vec![GuestSystem::Windows, GuestSystem::Linux]);
    let driver = (option::of(1..=PVSCSI_DEPTH_MAX), option::of(1..=PVSCSI_RING_PAGES_MAX));
    (option::of(name()), system, driver).prop_map(|(vm, system, (depth, ring_pages))| {
        Setting::Pvscsi { vm: GuestName { vm, system: Some(system) }, depth, ring_pages }
    })
}

fn of_disks() -> impl Strategy<Value = Setting> {
    let place = (select(BusKind::ALL.to_vec()), 0..4_u32, 0..64_u32);
    let place = option::of(place.prop_map(|(kind, bus, unit)| DiskPlace { kind, bus, unit }));
    let change = prop_oneof![
        option::of(1..=i32::MAX as u32).prop_map(AllocationChange::Limit),
        Allocation::SHARES.prop_map(AllocationChange::Shares),
        (0..=i32::MAX as u32).prop_map(AllocationChange::Reservation),
    ];
    let given = option::of(name()).prop_map(AllocationChange::Policy);
    let disks = (name(), place).prop_map(|(vm, disk)| Disks::Of(DiskName { vm, disk }));
    let of_disks = (disks, prop_oneof![change.clone(), given]);
    let of_policy = (name().prop_map(Disks::With), change);
    prop_oneof![of_disks, of_policy]
        .prop_map(|(vdisk, allocation)| Setting::Allocation { vdisk, allocation })
}

fn read(line: &str) -> Vec<Setting> {
    line.parse::<Line>().unwrap_or_else(|refusal| panic!("{line}: {refusal}")).settings
}

/// As PowerShell reads cmdlets: in any case, parameters in any order, and what gets an object in front or inside.
#[test]
fn cmdlets_are_read_as_powershell_reads_them() {
    let policy = "web: StoragePolicy low";
    let limit = "web:scsi1:2: DiskLimitIOPerSecond 50";
    let unit_and_bus = "{$_.ExtensionData.UnitNumber -eq 2 -and (Get-ScsiController -HardDisk $_).ExtensionData.BusNumber -eq 1}";
    let limited = format!("Get-HardDisk -VM web | where-object {unit_and_bus}");
    let shares = |number: u32| format!("web: NumDiskShares {number}");
    let resources = "Get-VM web | Get-VMResourceConfiguration | Set-VMResourceConfiguration";
    let table: [(String, &[&str]); 6] = [
        (
            policy.into(),
            &[
                "Get-VM web | Get-HardDisk | Set-SpbmEntityConfiguration -StoragePolicy (Get-SpbmStoragePolicy low)",
                "Set-SpbmEntityConfiguration -Configuration (Get-HardDisk -VM web) -StoragePolicy low",
                "set-spbmentityconfiguration -storagepolicy 'low' (get-harddisk -vm (get-vm \"web\"))",
                "Get-HardDisk web | Set-SpbmEntityConfiguration -StoragePolicy low -Confirm:$false",
                "Get-HardDisk -VM web | Get-SpbmEntityConfiguration | Set-SpbmEntityConfiguration -StoragePolicy low",
                "Get-SpbmEntityConfiguration -HardDisk (Get-HardDisk web) | Set-SpbmEntityConfiguration -StoragePolicy low",
                "Set-SpbmEntityConfiguration (Get-SpbmEntityConfiguration (Get-VM web | Get-HardDisk)) -StoragePolicy low",
            ],
        ),
        (
            "web: StoragePolicy none".into(),
            &["get-harddisk -vm web|set-spbmentityconfiguration -storagepolicy $NULL"],
        ),
        (
            limit.into(),
            &[
                &format!(
                    "Get-VM web | Get-VMResourceConfiguration | Set-VMResourceConfiguration -DiskLimitIOPerSecond 50 -Disk ({limited})"
                ),
                &format!(
                    "Set-VMResourceConfiguration (Get-VMResourceConfiguration web) -Disk ({limited}) -disklimitiopersecond 50"
                ),
            ],
        ),
        (
            shares(2000),
            &[
                &format!("{resources} -Disk (Get-HardDisk -VM web) -DiskSharesLevel High"),
                &format!("{resources} -DiskSharesLevel:'high' -Disk (Get-VM web | Get-HardDisk)"),
            ],
        ),
        (
            shares(700),
            &[
                &format!(
                    "{resources} -Disk (Get-HardDisk -VM web) -DiskSharesLevel Custom -NumDiskShares 700"
                ),
                &format!(
                    "{resources} -Disk (Get-HardDisk web) -NumDiskShares 700 -DiskSharesLevel CUSTOM"
                ),
            ],
        ),
        (shares(500), &[&format!("{resources} -Disk (Get-HardDisk -VM web) -DiskSharesLevel Low")]),
    ];
    for (expected, lines) in table {
        for line in lines {
            assert_eq!(line.parse::<Line>(), expected.parse(), "{line}");
        }
    }
    let both = "Get-VM w | Get-VMResourceConfiguration | Set-VMResourceConfiguration -NumDiskShares 700 -DiskSharesLevel custom \
                -Disk (Get-HardDisk -VM w) -DiskLimitIOPerSecond -1";
    let each =
        ["w: DiskLimitIOPerSecond -1", "w: NumDiskShares 700"].map(|line| read(line).remove(0));
    assert_eq!(read(both), each);
}

/// The same of hosts and datastores.
#[test]
fn cmdlets_of_hosts_and_datastores_are_read_as_powershell_reads_them() {
    let on = "Get-Datastore shared | Set-Datastore -StorageIOControlEnabled $true -CongestionThresholdMillisecond 10";
    let table: [(&str, &[&str]); 3] = [
        (
            "system settings advanced set -o /Disk/SchedQuantum -i 16",
            &[
                "Get-VMHost | Get-AdvancedSetting -Name Disk.SchedQuantum | Set-AdvancedSetting -Value 16",
                "Set-AdvancedSetting (Get-AdvancedSetting (Get-VMHost) 'disk.schedquantum') 16 -Confirm:$false",
            ],
        ),
        (
            "esx-1: system settings advanced set -o /VMFS3/HardwareAcceleratedLocking -i 0",
            &[
                "Get-AdvancedSetting -Entity esx-1 -Name VMFS3.HardwareAcceleratedLocking | Set-AdvancedSetting -Value 0 -Confirm:$false",
                "Get-VMHost -Name esx-1 | Get-AdvancedSetting -Name VMFS3.HardwareAcceleratedLocking | Set-AdvancedSetting 0",
                "Get-AdvancedSetting -Name VMFS3.HardwareAcceleratedLocking -Entity (Get-VMHost esx-1) | set-advancedsetting -value '0'",
            ],
        ),
        (
            on,
            &[
                "Get-Datastore -Name shared | Set-Datastore -CongestionThresholdMillisecond 10 -StorageIOControlEnabled $true",
                "Set-Datastore shared -StorageIOControlEnabled $True -CongestionThresholdMillisecond 10",
                "set-datastore -datastore (get-datastore shared) -storageiocontrolenabled:$true -congestionthresholdmillisecond:10",
            ],
        ),
    ];
    for (expected, lines) in table {
        for line in lines {
            assert_eq!(line.parse::<Line>(), expected.parse(), "{line}");
        }
    }
}

/// What a line leaves out of Storage I/O Control stays.
#[test]
fn a_part_of_storage_io_control_leaves_the_other() {
    let [off, stats, on] = [
        IoControl::Off,
        IoControl::Stats { threshold_us: 20_000 },
        IoControl::On { threshold_us: 20_500 },
    ];
    let to = |threshold_us| [IoControl::Stats { threshold_us }, IoControl::On { threshold_us }];
    let ([counts, shares], [_, as_it_was]) = (to(15_000), to(20_000));
    for (what, becomes) in [
        ("-CongestionThresholdMillisecond 15", [counts, counts, shares]),
        ("-StorageIOControlEnabled $true", [IoControl::DEFAULT, as_it_was, on]),
        ("-StorageIOControlEnabled $false", [off; 3]),
        ("-StorageIOControlEnabled $false -CongestionThresholdMillisecond 15", [counts; 3]),
    ] {
        let settings = read(&format!("Get-Datastore ds | Set-Datastore {what}"));
        let [Setting::StorageIoControl { control, .. }] = settings[..] else { panic!("{what}") };
        assert_eq!([off, stats, on].map(|was| control.of(was)), becomes, "{what}");
    }
}

/// Lines of cmdlets that are not read, and what their refusals say.
const NOT_READ: &[(&str, &[&str])] = &[
    (
        "Get-HardDisk -VM w | Set-SpbmEntityConfiguration",
        &[
            "-StoragePolicy is missing; it is as `Get-HardDisk -VM 'VM' | Set-SpbmEntityConfiguration -StoragePolicy (",
        ],
    ),
    ("Get-VM w | Get-HardDisk", &["there is no cmdlet that sets something `Get-HardDisk`"]),
    (
        "Get-VM w | Set-VMResourceConfiguration -DiskLimitIOPerSecond 5",
        &["-Disk is missing", "it is as `Get-VM 'VM' | Get-VMResourceConfiguration | Set-VMR"],
    ),
    (
        "Get-VM w | Get-HardDisk | Set-VMResourceConfiguration -Disk (Get-HardDisk w) -DiskSharesLevel High",
        &["it is for what Get-VMResourceConfiguration gets"],
    ),
    ("RESOURCES ", &["-DiskLimitIOPerSecond or -DiskSharesLevel is missing"]),
    ("RESOURCES -DiskSharesLevel Custom", &["-NumDiskShares is missing"]),
    (
        "RESOURCES -DiskSharesLevel High -NumDiskShares 700",
        &["-NumDiskShares goes with -DiskSharesLevel Custom, and without it says nothing"],
    ),
    (
        "RESOURCES -NumDiskShares 700",
        &["-NumDiskShares goes with -DiskSharesLevel Custom, and without it says nothing"],
    ),
    ("Get-HardDisk -VM v,w | POLICY", &["the VM is one name, and no list or wildcards"]),
    ("Get-HardDisk -VM 'v', \"w\" | POLICY", &["the VM is one name, and no list or wildcards"]),
    (
        "Get-VM v* | Get-HardDisk | POLICY",
        &["kavg reads one name, and no list or wildcards behind Get-VM"],
    ),
    (
        "Get-VM v, w | Get-HardDisk | POLICY",
        &["kavg reads one name, and no list or wildcards behind Get-VM"],
    ),
    (
        "Get-HardDisk -VM w | Set-SpbmEntityConfiguration -StoragePolicy (Get-SpbmStoragePolicy -Name g[ab])",
        &["the storage policy is one name, and no list or wildcards"],
    ),
    (
        "Get-Datastore a,b | Set-Datastore -StorageIOControlEnabled $true",
        &["the datastore is one name, and no list or wildcards"],
    ),
    (
        "Get-AdvancedSetting -Entity 'esx?' -Name Disk.SchedQuantum | Set-AdvancedSetting -Value 16",
        &["the host is one name, and no list or wildcards"],
    ),
    (
        "RESOURCES -NumDiskShares high",
        &["-NumDiskShares is a number, and `high` is one for -DiskSharesLevel"],
    ),
    (
        "RESOURCES -DiskSharesLevel Hgh",
        &["there is no level of shares `Hgh`; did you mean `high`? it is one of `low`"],
    ),
    (
        "RESOURCES -DiskSharesLevel Custom -NumDiskShares 99",
        &["`99` is no number of shares; it is 100 to 10000"],
    ),
    ("RESOURCES -DiskLimitIOPerSecond $null", &["-DiskLimitIOPerSecond is no plain word"]),
    ("RESOURCES -CpuSharesLevel High -DiskSharesLevel High", &["does not read -CpuSharesLevel"]),
    (
        "Get-VM v | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk w) -DiskSharesLevel High",
        &["its disks are of another VM than its configuration"],
    ),
    (
        "Get-HardDisk -VM w -Name \"Hard disk 2\" | POLICY",
        &[
            "the place of a disk and not its label: one of a VM is as `Get-HardDisk -VM 'VM' | Where-Object {$_.Ext",
        ],
    ),
    (
        "Get-VM w | Get-HardDisk | where {$_.Name -eq 'Hard disk 2'} | POLICY",
        &["the place of a disk and not its label"],
    ),
    (
        "Get-VM w | POLICY",
        &[
            "of a VM it is the policy of its home, and its disks keep theirs; it is as `Get-HardDisk",
        ],
    ),
    ("Get-SpbmEntityConfiguration -VM (Get-VM w) | POLICY", &["its home"]),
    ("Get-Datastore w | POLICY", &["it is for disks, which Get-HardDisk gets"]),
    ("Get-Datastore d | Set-Datastore", &["-CongestionThresholdMillisecond is missing"]),
    (
        "Get-Datastore d | Set-Datastore -StorageIOControlEnabled true",
        &["-StorageIOControlEnabled is $true or $false; it is as `Get-Datastore 'NAME' | Set-D"],
    ),
    (
        "Set-Datastore d -CongestionThresholdMillisecond 15ms",
        &[
            "Invalid value `15ms` for -CongestionThresholdMillisecond: it is a whole number, 5 to 100",
        ],
    ),
    (
        "Set-Datastore d -StorageIOControlEnabled $true -MaintenanceMode $true",
        &["kavg does not read -MaintenanceMode of Set-Datastore"],
    ),
    (
        "Get-VM w | Get-AdvancedSetting -Name Disk.SchedQuantum | Set-AdvancedSetting -Value 8",
        &[
            "options of hosts, which Get-VMHost gets; it is as `Get-AdvancedSetting -Entity (Get-VMHost",
        ],
    ),
    (
        "Get-AdvancedSetting -Entity h -Name Disk.SchedQuantm | Set-AdvancedSetting -Value 8",
        &["there is no option `Disk.SchedQuantm`; did you mean `/Disk/SchedQuantum`?"],
    ),
    (
        "Get-AdvancedSetting -Entity h -Name Disk.SchedQuantum | Set-AdvancedSetting",
        &["-Value is missing"],
    ),
    ("Get-VM ((((((w", &["is no line of cmdlets that kavg reads"]),
    (
        "Get-HardDisk -VM w | Set-SpbmEntityConfiguration -StoragePolicy \"$gold\"",
        &["is no line of cmdlets", "it ends with one of `Set-SpbmEntityConfiguration`, `Set-VMR"],
    ),
    (
        "Get-HardDisk -VM w | Set-SpbmEntityConfigration -StoragePolicy gold",
        &["did you mean `Set-SpbmEntityConfiguration`?"],
    ),
    (
        "Get-SpbmStoragePolicy gold | Set-SpbmStoragePolicy -Name silver",
        &["what a storage policy says is set as `storage policy POLICY: DiskLimitIOPerSecond N`"],
    ),
    (
        "New-SpbmStoragePolicy -Name gold",
        &["is set as `storage policy POLICY: DiskLimitIOPerSecond N`"],
    ),
    (
        "storage policy gold: DiskLimitIOPerSec 500",
        &[
            "there is no setting of disks `DiskLimitIOPerSec`; did you mean `DiskLimitIOPerSecond`?",
            "; a line is as `storage policy POLICY: DiskLimitIOPerSecond 500`",
        ],
    ),
    (
        "storage policy gold: -O 64",
        &["there is no setting of disks `-O`; it is one of `DiskLimitIOP"],
    ),
    (
        "storage policy gold DiskLimitIOPerSecond 500",
        &["`: ` is missing in front of DiskLimitIOPer"],
    ),
    ("Storage Policy gold:numdiskshares=500", &["`: ` is missing in front of NumDiskShares"]),
    (
        "storage policy gold 500",
        &[
            "it says none of `DiskLimitIOPerSecond`, `NumDiskShares`, `StorageIOAllocationReservation`",
        ],
    ),
    (
        "w DiskLimitIOPerSecond 500",
        &["`: ` is missing in front of", "is as `VM: DiskLimitIOPerSec"],
    ),
    ("w: NumDiskShare 500", &["did you mean `NumDiskShares`?"]),
    (
        "w:scsi0:1: limit 500",
        &["there is no setting of disks `limit`; it is one of `DiskLimitIOPer"],
    ),
    ("esx-1: storage core devic set -d naa.1 -O 4", &["did you mean `storage core device set`?"]),
    ("esx-1: storag core device set -d naa.1 -O 4", &["did you mean `storage core device set`?"]),
];

#[test]
fn what_disks_may_have_is_named_in_any_case() {
    for (line, expected) in [
        ("w: disklimitiopersecond 500", "w: DiskLimitIOPerSecond 500"),
        ("STORAGE POLICY gold: numDiskShares=700", "storage policy gold: NumDiskShares 700"),
        ("Set-top box: NumDiskShares  700", "Set-top box: NumDiskShares 700"),
    ] {
        assert_eq!(line.parse::<Line>(), expected.parse(), "{line}");
    }
}

/// A form that is not read is told with the one that is, of the same cmdlet, and with what it lacks.
#[test]
fn cmdlets_that_are_not_read_are_told_with_their_own_form() {
    let resources = "Get-VM w | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk -VM w)";
    let policy = "Set-SpbmEntityConfiguration -StoragePolicy gold";
    for (line, expected) in NOT_READ {
        let line = line.replace("RESOURCES", resources).replace("POLICY", policy);
        let refusal = line.parse::<Line>().expect_err(&line).to_string();
        assert!(expected.iter().all(|part| refusal.contains(part)), "{line}: {refusal}");
        assert!(!refusal.contains('\n'), "{refusal}");
    }
}

/// A text with another case wherever PowerShell takes any, which is outside of quotes.
fn in_any_case(line: &str, upper: &[bool]) -> String {
    let mut is_quoted = false;
    let each = line.chars().zip(upper.iter().cycle()).map(|(c, upper)| {
        is_quoted ^= c == '\'';
        match (is_quoted, upper) {
            (true, _) => c,
            (false, true) => c.to_ascii_uppercase(),
            (false, false) => c.to_ascii_lowercase(),
        }
    });
    each.collect()
}

proptest! {
    #[test]
    fn lines_of_esxcli_and_powercli_come_back(setting in of_esxcli()) {
        let lines = [setting.to_string(), setting.esxcli().unwrap(), setting.powercli().unwrap()];
        for line in lines {
            prop_assert_eq!(read(&line), std::slice::from_ref(&setting), "{}", line);
        }
    }

    #[test]
    fn a_call_of_powercli_takes_its_host_in_front(setting in of_esxcli()) {
        let call = setting.powercli().expect("esxcli sets it");
        let line: Line = format!("esx-1: {call}").parse().expect("it is a line");
        prop_assert_eq!(line, Line { host: Some("esx-1".into()), settings: vec![setting] });
        let of_words = format!("two words: {call}").parse::<Line>();
        prop_assert!(of_words.is_err());
    }

    #[test]
    fn lines_for_guests_come_back(setting in of_guest()) {
        prop_assert_eq!(read(&setting.to_string()), std::slice::from_ref(&setting));
        let Setting::Pvscsi { vm: GuestName { system, .. }, depth, ring_pages } = setting else {
            unreachable!()
        };
        let here = Setting::Pvscsi { vm: GuestName { vm: None, system }, depth, ring_pages };
        for line in setting.guest() {
            prop_assert_eq!(read(&line), std::slice::from_ref(&here), "{}", line);
        }
    }

    #[test]
    fn what_is_set_of_datastores_comes_back(setting in of_datastore()) {
        let line: Line = setting.to_string().parse().expect("it is a line");
        prop_assert_eq!(line, Line { host: None, settings: vec![setting.clone()] });
        prop_assert_eq!(setting.powercli(), Some(setting.to_string()));
    }

    #[test]
    fn limits_of_disks_come_back(setting in of_disks()) {
        for line in [setting.to_string()].into_iter().chain(setting.powercli()) {
            prop_assert_eq!(read(&line), std::slice::from_ref(&setting), "{}", line);
        }
    }

    #[test]
    fn powercli_is_read_in_any_case(
        setting in prop_oneof![of_esxcli(), of_datastore(), of_disks()],
        upper in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        if let Some(line) = setting.powercli() {
            let line = in_any_case(&line, &upper);
            prop_assert_eq!(read(&line), std::slice::from_ref(&setting), "{}", line);
        }
    }

    #[test]
    fn arguments_of_cmdlets_come_in_any_order_and_quotes(
        arguments in Just(["-Disk (Get-HardDisk -VM #a b#)", "-DiskSharesLevel #Custom#", "-NumDiskShares #700#",
            "-DiskLimitIOPerSecond: 5", "-Confirm:$false"]).prop_shuffle(),
        quote in select(vec!["'", "\""]),
    ) {
        let get = "Get-VM #a b# | Get-VMResourceConfiguration";
        let line = format!("{get}|Set-VMResourceConfiguration {}", arguments.join(" "));
        let each = ["a b: DiskLimitIOPerSecond 5", "a b: NumDiskShares 700"];
        prop_assert_eq!(read(&line.replace('#', quote)), each.map(|line| read(line).remove(0)));
    }

    #[test]
    fn pieces_of_cmdlets_are_a_line_or_refused(pieces in prop::collection::vec(select(vec![
        "Get-VM", "Get-HardDisk", "Get-VMHost", "Get-Datastore", "Get-AdvancedSetting", "Get-SpbmEntityConfiguration",
        "Get-VMResourceConfiguration", "Set-AdvancedSetting", "Set-Datastore", "Set-VMResourceConfiguration",
        "Set-SpbmEntityConfiguration", "Where-Object", "-Disk", "-VM", "-Name", "-Value", "-Entity", "-HardDisk",
        "-DiskSharesLevel", "-NumDiskShares", "-StoragePolicy", "-StorageIOControlEnabled", "$true", "$null", "'w'",
        "\"", "'", "|", "(", ")", "{", "}", ":", "5", "w", "High", "\u{e4}", "-",
    ]), 0..16)) {
        let _ = pieces.join(" ").parse::<Line>();
        let _ = pieces.concat().parse::<Line>();
    }

    #[test]
    fn any_text_is_a_line_or_refused(text in "\\PC{0,60}", start in select(vec![
        "", "$esxcli.storage.core.device.set.Invoke(@{", "Get-VM ", "vm: DiskLimitIOPerSecond",
        "Get-AdvancedSetting -Entity ", "Set-Datastore ds -", "$ESXCLI.",
        "Get-VM w | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk w) -",
        "Get-HardDisk -VM ", "set-spbmentityconfiguration (", "vm: StoragePolicy", "storage policy ",
        "storage core device set ", "reg add ", "echo '", "options vmw_pvscsi ",
    ])) {
        let _ = format!("{start}{text}").parse::<Line>();
    }
}

/// The line replaces all parameters of a module: those beside the depth are kept in it, whatever they do; one that is
/// the depth misspelt, or of another module, is refused.
#[test]
fn other_parameters_of_a_module_are_kept() {
    let module = |line: &str| format!("system module parameters set -m {line}");
    for (line, printed) in [
        ("qlnativefc -p \"ql2xmaxqdepth=128 ql2xextended_error_logging=1\"", None),
        ("qlnativefc -p 'a=1 ql2xmaxqdepth=128'", Some("qlnativefc -p 'ql2xmaxqdepth=128 a=1'")),
        ("lpfc820 -p lpfc_lun_queue_depth=64", None),
        ("lpfc820 -p lpfc0_lun_queue_depth=64", Some("lpfc820 -p lpfc_lun_queue_depth=64")),
    ] {
        let printed = module(printed.unwrap_or(line)).replace('"', "'");
        assert_eq!(read(&module(line))[0].to_string(), printed);
    }
    for (line, refusal) in [
        ("qlnativefc -p 'ql2xmaxqdepth=128 lpfc_lun_queue_depth=1'", "has no parameter `lpfc_lun_"),
        ("qlnativefc -p 'ql2xmaxqdepth=128 ql2xmaxqdept=1'", "has no parameter `ql2xmaxqdept`"),
        ("qlnativefc -p ql2xextended_error_logging=1", "has no parameter `ql2xextended_"),
        ("qlnativefc -p 'ql2xmaxqdepth=1 a=1 a=2'", "must set the depth once"),
        ("qlnativefc -p 'ql2xmaxqdepth=1 ql2xmaxqdepth=2'", "must set the depth once"),
    ] {
        let why = module(line).parse::<Line>().unwrap_err().to_string();
        assert!(why.contains(refusal), "{why}");
    }
}

/// Windows tells no case apart in commands, keys and names of values.
#[test]
fn a_line_of_the_registry_is_read_in_any_case() {
    let key = "HKLM\\SYSTEM\\CurrentControlSet\\Services\\pvscsi\\Parameters\\Device";
    let own = format!(
        "sql: reg add {key} /v DriverParameter /t REG_SZ /d \"RequestRingPages=32,MaxQueueDepth=254\" /f"
    );
    let (add, delete) = (read(&own), read(&format!("sql: reg delete {key} /v DriverParameter /f")));
    for (line, expected) in [
        (own.to_uppercase(), &add),
        (own.replace("sql: reg add", "sql: Reg Add").replace("/d", "/D"), &add),
        (own.to_lowercase(), &add),
        (format!("SQL: REG DELETE {key} /V DRIVERPARAMETER /F"), &delete),
        ("sql: DRIVERPARAMETER=requestringpages=32,MAXQUEUEDEPTH=254".into(), &add),
    ] {
        // The name of the VM is the caller's to compare.
        assert_eq!(&read(&line.replacen("SQL", "sql", 1)), expected, "{line}");
    }
}

/// Disks are told by every kind of adapter, in a line and in that of PowerCLI.
#[test]
fn a_disk_of_each_kind_of_adapter_is_read_and_printed() {
    for kind in BusKind::ALL {
        let line = format!("v0:{}1:2: DiskLimitIOPerSecond 50", kind.name());
        let [limit] = &read(&line)[..] else { panic!("{line}") };
        let Setting::Allocation { vdisk: Disks::Of(disk), .. } = limit else { panic!("{line}") };
        assert_eq!((&*disk.vm, disk.disk), ("v0", Some(DiskPlace { kind, bus: 1, unit: 2 })));
        assert_eq!(limit.to_string(), line);
        assert_eq!(&read(&limit.powercli().unwrap())[0], limit);
    }
}
