//! What is written is read back: every setting, in every syntax that has it.

use counters::MILLISECOND;
use knobs::{
    Advanced, Allocation, AllocationChange, DiskName, Disks, Driver, GuestName, GuestSystem,
    IoControl, Line, PVSCSI_DEPTH_MAX, PVSCSI_RING_PAGES_MAX, PathPolicy, PolicyChange, ScsiPlace,
    Setting,
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
        (select(drivers), any::<u32>())
            .prop_map(|(driver, value)| Setting::ModuleDepth { driver, value }),
        (name(), policy()).prop_map(|(device, policy)| Setting::PathPolicy { device, policy }),
    ]
}

fn of_datastore() -> impl Strategy<Value = Setting> {
    // A line has whole milliseconds.
    let threshold = || (0..u32::MAX / 1000).prop_map(|millis| 1000 * millis);
    let control = prop_oneof![
        Just(IoControl::Off),
        threshold().prop_map(|threshold_us| IoControl::Stats { threshold_us }),
        threshold().prop_map(|threshold_us| IoControl::On { threshold_us }),
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
    let place = option::of((0..4_u32, 0..64_u32).prop_map(|(bus, unit)| ScsiPlace { bus, unit }));
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
    let on = |millis: u32| {
        format!(
            "Get-Datastore shared | Set-Datastore -StorageIOControlEnabled $true -CongestionThresholdMillisecond {millis}"
        )
    };
    let table: [(String, &[&str]); 5] = [
        (
            policy.into(),
            &[
                "Get-VM web | Get-HardDisk | Set-SpbmEntityConfiguration -StoragePolicy (Get-SpbmStoragePolicy low)",
                "Set-SpbmEntityConfiguration -Configuration (Get-HardDisk -VM web) -StoragePolicy low",
                "set-spbmentityconfiguration -storagepolicy 'low' (get-harddisk -vm (get-vm \"web\"))",
                "Get-HardDisk web | Set-SpbmEntityConfiguration -StoragePolicy low -Confirm:$false",
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
            on(10),
            &[
                "Get-Datastore -Name shared | Set-Datastore -CongestionThresholdMillisecond 10 -StorageIOControlEnabled $true",
                "Set-Datastore shared -StorageIOControlEnabled $True -CongestionThresholdMillisecond 10",
                "set-datastore -datastore (get-datastore shared) -storageiocontrolenabled:$true -congestionthresholdmillisecond:10",
            ],
        ),
        (on(30), &["get-datastore shared | set-datastore -storageiocontrolenabled $true"]),
    ];
    for (expected, lines) in table {
        for line in lines {
            assert_eq!(read(line), read(&expected), "{line}");
        }
    }
    let both = "Get-VM w | Get-VMResourceConfiguration | Set-VMResourceConfiguration -NumDiskShares 700 -DiskSharesLevel custom \
                -Disk (Get-HardDisk -VM w) -DiskLimitIOPerSecond -1";
    let each =
        ["w: DiskLimitIOPerSecond -1", "w: NumDiskShares 700"].map(|line| read(line).remove(0));
    assert_eq!(read(both), each);
}

/// A form that is not read is told with the one that is, of the same cmdlet.
#[test]
fn cmdlets_that_are_not_read_are_told_with_their_own_form() {
    for (line, expected) in [
        (
            "Get-HardDisk -VM w | Set-SpbmEntityConfiguration",
            "it is as `Get-HardDisk -VM 'VM' | Set-SpbmEntityConfiguration -StoragePolicy (",
        ),
        ("Get-VM w | Get-HardDisk", "there is no cmdlet that sets something `Get-HardDisk`"),
        (
            "Get-VM w | Set-VMResourceConfiguration -DiskLimitIOPerSecond 5",
            "it is as `Get-VM 'VM' | Get-VMResourceConfiguration | Set-VMR",
        ),
        (
            "Get-Datastore d | Set-Datastore -CongestionThresholdMillisecond 15",
            "it is as `Get-Datastore 'NAME' | Set-Datastore -StorageIOControlEnabled",
        ),
        (
            "Set-Datastore d -StorageIOControlEnabled $true -MaintenanceMode $true",
            "no Set-Datastore with -MaintenanceMode that kavg reads",
        ),
        ("Get-VM ((((((w", "is no line of cmdlets that kavg reads"),
        (
            "Get-HardDisk -VM w | Set-SpbmEntityConfiguration -StoragePolicy \"$gold\"",
            "is no line of cmdlets",
        ),
    ] {
        let refusal = line.parse::<Line>().unwrap_err().to_string();
        assert!(refusal.contains(expected), "{refusal}");
    }
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
    fn any_text_is_a_line_or_refused(text in "\\PC{0,60}", start in select(vec![
        "", "$esxcli.storage.core.device.set.Invoke(@{", "Get-VM ", "vm: DiskLimitIOPerSecond",
        "Get-HardDisk -VM ", "set-spbmentityconfiguration (", "vm: StoragePolicy", "storage policy ",
        "storage core device set ", "reg add ", "echo '", "options vmw_pvscsi ",
    ])) {
        let _ = format!("{start}{text}").parse::<Line>();
    }
}
