//! Real command lines become knobs, and wrong ones are refused with what is allowed.

mod common;

use std::fmt::Write;

use scenario::{Scenario, parse_knob};

const SITE: &str = r#"
title = "two hosts"
duration = "10s"
esxi = "6.7"

[array.a]
servers = 8
service = "1ms"

[host.esx]
count = 2

[host.esx.adapter.vmhba1]
driver = "fnic"

[host.esx.adapter.vmhba64]
driver = "iscsi_vmk"

[host.old]
esxi = "5.1"

[host.old.adapter.vmhba1]
driver = "lpfc820"

[datastore.shared]
device = "naa.600a0b80001111550000f35b93e19350"

[datastore.vvols]
kind = "vvol"
hosts = "esx"
device = "naa.6f47acc100000000736f6c6964000001"

[datastore.raw]
kind = "rdm"
device = "naa.600a0b80001111550000f35b93e19360"

[datastore.mount]
kind = "nfs"

[vm.win]
count = 2

[vm.win.disk."scsi0:1"]
datastore = "shared"

[vm.lin]
guest = "linux"
host = "esx-1"

[vm.lin.disk."scsi0:1"]
datastore = "vvols"

[vm.lsi]
host = "esx-2"

[vm.lsi.disk."scsi0:1"]
datastore = "shared"
adapter = "lsisas"
"#;

fn site() -> Scenario {
    common::parse("site.toml", SITE).unwrap()
}

/// A line for each command, and what `answer` makes of it.
fn table(lines: &[&str], answer: impl Fn(&Scenario, &str) -> String) -> String {
    let (site, mut text) = (site(), String::new());
    for line in lines {
        let line = line.replace("SHARED", SHARED).replace("ENDPOINT", ENDPOINT);
        writeln!(text, "$ {line}\n{}", answer(&site, &line)).unwrap();
    }
    text
}

const SHARED: &str = "naa.600a0b80001111550000f35b93e19350";
const ENDPOINT: &str = "naa.6f47acc100000000736f6c6964000001";

#[test]
fn lines_that_are_taken() {
    let lines = [
        "esx: storage core device set -d SHARED -O 64",
        "esx-2: esxcli storage core device set --device SHARED --sched-num-req-outstanding=64",
        "esxcli storage core device set -d ENDPOINT -O 256 -m 96",
        "storage core device set -m=24 --device=ENDPOINT",
        "storage core device set -d ENDPOINT -s 32 -q 8",
        "storage core device set -d ENDPOINT -s 0",
        "kavg device set -d SHARED -l true",
        "esxcli kavg device set --device=ENDPOINT --depth-by-latency=false",
        "system module parameters set -m fnic -p fnic_max_qdepth=96",
        "system module parameters set --module=iscsi_vmk --parameter-string=\"iscsivmk_LunQDepth=256\"",
        "system module parameters set -m lpfc820 -p lpfc0_lun_queue_depth=128",
        "system module parameters set -m lpfc820 -p \"lpfc_lun_queue_depth=64 lpfc_log_verbose=1\"",
        "system settings advanced set -o /ISCSI/MaxIoSizeKB -i 512",
        "system settings advanced set -i 16 -o /Disk/SchedQControlVMSwitches",
        "esx-1: system settings advanced set -d -o /Scsi/ScsiVVolPESNRO",
        "old: system settings advanced set -o /Disk/SchedNumReqOutstanding -i 64",
        "storage nmp device set -d ENDPOINT -P VMW_PSP_RR",
        "storage nmp device set -P VMW_PSP_MRU --device SHARED",
        "storage nmp psp roundrobin deviceconfig set -d ENDPOINT -t iops -I 1",
        "storage nmp psp roundrobin deviceconfig set -d ENDPOINT --type=bytes --bytes=8800",
        "esx-1: storage nmp psp roundrobin deviceconfig set -d SHARED --type=latency -S 32 -T 60000",
        "storage nmp psp roundrobin deviceconfig set -d ENDPOINT -t default",
        "RequestRingPages=32,MaxQueueDepth=254",
        "win-2: DriverParameter = \"RequestRingPages=32,MaxQueueDepth=128\"",
        "vmw_pvscsi.cmd_per_lun=128 vmw_pvscsi.ring_pages=16",
        "lin: options vmw_pvscsi cmd_per_lun=128",
        "win-1: reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\pvscsi\\Parameters\\Device /v DriverParameter /t REG_SZ /d \"RequestRingPages=32,MaxQueueDepth=254\" /f",
        "win-1: reg delete HKLM\\SYSTEM\\CurrentControlSet\\Services\\pvscsi\\Parameters\\Device /v DriverParameter /f",
        "echo 'options vmw_pvscsi cmd_per_lun=254 ring_pages=32' > /etc/modprobe.d/pvscsi.conf",
        "win-1: DiskLimitIOPerSecond 500",
        "win-2:scsi0:1: DiskLimitIOPerSecond -1",
        "Get-VM 'lin' | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk -VM 'lin') -DiskLimitIOPerSecond 500",
        "$esxcli.system.settings.advanced.set.Invoke(@{option='/VMFS3/HardwareAcceleratedLocking'; intvalue=0})",
        "esxcli system settings advanced set -i 16384 -o /DataMover/MaxHWTransferSize",
        "win: StoragePolicy low",
        "win-2:scsi0:1: StoragePolicy = high",
        "Get-HardDisk -VM 'lin' | Set-SpbmEntityConfiguration -StoragePolicy (Get-SpbmStoragePolicy -Name 'normal')",
        "storage policy normal: DiskLimitIOPerSecond 500",
        "Get-HardDisk -VM LIN | Get-SpbmEntityConfiguration | Set-SpbmEntityConfiguration -StoragePolicy Normal",
        "Get-VM Win | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk -VM Win) -DiskSharesLevel High",
        "Get-AdvancedSetting -Entity ESX-1 -Name Disk.SchedQuantum | Set-AdvancedSetting -Value 16 -Confirm:$false",
        "Get-VMHost old | Get-AdvancedSetting -Name Disk.SchedNumReqOutstanding | Set-AdvancedSetting -Value 64",
        "Get-Datastore Shared | Set-Datastore -CongestionThresholdMillisecond 15",
    ];
    let knobs = |site: &Scenario, line: &str| {
        let knobs = parse_knob(line, site).unwrap().into_iter();
        let knobs = knobs.map(|(host, knob)| format!("{}: {knob:?}", site.hosts[host].config.name));
        knobs.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(table(&lines, knobs));
}

/// What is refused, on any host or on that of its prefix.
const REFUSED: &[&str] = &[
    "",
    "esxcli",
    "storage core device list",
    "storage core divice set -d SHARED -O 64",
    "storage core device set -O 64",
    "storage core device set -d SHARED",
    "storage core device set -d SHARED -o 64",
    "storage core device set -d SHARED --sched-num-req-outstandin 64",
    "storage core device set -d ENDPOINT -O",
    "storage core device set -d ENDPOINT -O 64 -O 32",
    "storage core device set -d ENDPOINT -O many",
    "storage core device set -d ENDPOINT -O 4294967296",
    "storage core device set -d ENDPOINT -O -1",
    "esx: storage core device set -d SHARED -O 513",
    "esx: storage core device set -d SHARED -O 0",
    "storage core device set -d ENDPOINT -O 4097",
    "esx: storage core device set -d SHARED -m 513",
    "old: storage core device set -d SHARED -O 64",
    "storage core device set -d naa.600a0b80001111550000f35b93e19351 -O 64",
    "storage core device set -d mount -O 64",
    "storage core device set -d ENDPOINT -q 8",
    "storage core device set -d ENDPOINT -s 4 -q 8",
    "storage core device set -d ENDPOINT -s 65 -q 8",
    "kavg device set -d ENDPOINT -l 1",
    "kavg device set -l true",
    "storage core device set -d \"ENDPOINT -O 64",
    "esx-3: storage core device set -d SHARED -O 64",
    "system module parameters set -m fnic -p lun_queue_depth_per_path=96",
    "system module parameters set -m fnic -p fnic_max_qdepth=257",
    "system module parameters set -m fnic -p fnic_max_qdepth",
    "system module parameters set -m fnic -p \"fnic_max_qdepth=64 fnic_max_qdepth=96\"",
    "system module parameters set -m fnic",
    "system module parameters set -m nfnic -p lun_queue_depth_per_path=96",
    "system module parameters set -m qlnativfc -p ql2xmaxqdepth=96",
    "system module parameters set -m qlnativefc -p qlfxmaxqdepth=96",
    "system module parameters set -m vmw_ahci -p depth=32",
    "system settings advanced set -o /ISCSI/MaxIoSizeKB -i 1024",
    "system settings advanced set -o /ISCSI/MaxIOSizeKB -i 512",
    "system settings advanced set -o /DataMover/MaxHWTransferSize -i 16385",
    "system settings advanced set -o /Disk/SchedQuantum",
    "system settings advanced set -o /Disk/SchedQuantum -i 8 -d",
    "esx: system settings advanced set -o /Disk/SchedNumReqOutstanding -i 64",
    "system settings advanced set -o /Scsi/ScsiVVolPESNRO -i 256",
    "old: system settings advanced set -o /Disk/SchedulerWithReservation -i 0",
    "storage nmp device set -d SHARED -P VMW_PSP_ROUNDROBIN",
    "storage nmp psp roundrobin deviceconfig set -d SHARED -I 1",
    "storage nmp psp roundrobin deviceconfig set -d SHARED -t iops",
    "storage nmp psp roundrobin deviceconfig set -d SHARED -t iops -B 1",
    "storage nmp psp roundrobin deviceconfig set -d SHARED -t random",
    "old: storage nmp psp roundrobin deviceconfig set -d SHARED -t latency",
    "RequestRingPages=33,MaxQueueDepth=254",
    "RequestRingPages=32,MaxQueueDepth=255",
    "win: vmw_pvscsi.cmd_per_lun=128",
    "lin: RequestRingPages=32,MaxQueueDepth=254",
    "lsi: RequestRingPages=32,MaxQueueDepth=254",
    "sql: RequestRingPages=32,MaxQueueDepth=254",
    "vmw_pvscsi.cmd_per_lun=128 vmw_pvscsi.cmd_per_lun=64",
    "vmw_pvscsi.use_msi=0",
    "sql: DiskLimitIOPerSecond 500",
    "win-1: DiskLimitIOPerSecond 0",
    "win-1:scsi0:2: DiskLimitIOPerSecond 500",
    "Get-VM 'win-1' | Get-HardDisk",
    "win: StoragePolicy lw",
    "win: StoragePolicy",
    "storage policy bronze: DiskLimitIOPerSecond 500",
    "storage policy low: StoragePolicy high",
    "storage policy low: NumDiskShares 99",
    "Get-HardDisk -VM 'lin' | Set-SpbmEntityConfiguration",
    "$esxcli.storage.core.device.set.Invoke(@{device='SHARED'; sched=64})",
    "Get-Datastore 'raw' | Set-Datastore -StorageIOControlEnabled $true",
    "Get-AdvancedSetting -Entity esx -Name Disk.SchedNumReqOutstanding | Set-AdvancedSetting -Value 64",
    "Get-AdvancedSetting -Entity esx -Name Disk.SchedQuantum | Set-AdvancedSetting -Value 65",
    "Get-VMHost esx-9 | Get-AdvancedSetting -Name Disk.SchedQuantum | Set-AdvancedSetting -Value 8",
    "Get-HardDisk -VM lin -Name \"Hard disk 1\" | Set-SpbmEntityConfiguration -StoragePolicy low",
    "Get-VM lin | Set-SpbmEntityConfiguration -StoragePolicy low",
    "Set-Datastore Shared -CongestionThresholdMillisecond 4",
    "Get-Datastore 'vvols' | Set-Datastore -StorageIOControlEnabled $true -CongestionThresholdMillisecond 20",
];

#[test]
fn lines_that_are_refused() {
    let refusal = |site: &Scenario, line: &str| site.clone().set(line).unwrap_err().to_string();
    insta::assert_snapshot!(table(REFUSED, refusal));
}

/// Lines go on from what the file and the lines before them set; the threshold of one of two hosts is that of both.
#[test]
fn what_a_line_leaves_out_of_storage_io_control_stays() {
    let lines = [
        ("Set-Datastore Shared -CongestionThresholdMillisecond 15", "On { threshold_us: 15000 }"),
        (
            "Get-Datastore shared | Set-Datastore -StorageIOControlEnabled $true",
            "On { threshold_us: 15000 }",
        ),
        ("Set-Datastore shared -StorageIOControlEnabled $false", "Off"),
        (
            "Set-Datastore shared -CongestionThresholdMillisecond 20",
            "Stats { threshold_us: 20000 }",
        ),
        ("Set-Datastore shared -StorageIOControlEnabled $true", "On { threshold_us: 20000 }"),
    ];
    let key = "device = \"naa.600a0b80001111550000f35b93e19350\"";
    let mut text = SITE.replace(key, &format!("{key}\ncongestion_threshold = \"12ms\""));
    let mut scenario = common::parse("site.toml", &text).unwrap();
    for (at, (line, control)) in lines.iter().enumerate() {
        scenario.set(line).unwrap();
        let set =
            |knob: &&knobs::Knob| format!("{knob:?}").contains(&format!("control: {control}"));
        let hosts =
            scenario.hosts.iter().filter(|host| host.settings.iter().any(|knob| set(&knob)));
        assert_eq!(hosts.count(), 3, "{line}");
        text += &format!("[[event]]\nat = \"{}s\"\nesxcli = \"{line}\"\n", at + 1);
    }
    let events = common::parse("site.toml", &text).unwrap().events;
    for (event, (line, control)) in events.iter().step_by(3).zip(lines) {
        assert!(format!("{:?}", event.action).contains(control), "{line}: {event:?}");
    }
}

#[test]
fn a_setting_before_the_run_is_in_force() {
    let mut scenario = site();
    for line in [
        "system module parameters set -m fnic -p fnic_max_qdepth=96",
        "esx-1: storage core device set -d naa.600a0b80001111550000f35b93e19350 -O 96",
        "win-1: RequestRingPages=16,MaxQueueDepth=128",
        "esx: system settings advanced set -o /ISCSI/MaxIoSizeKB -i 512",
        "esx: storage nmp device set -d naa.600a0b80001111550000f35b93e19350 -P VMW_PSP_RR",
    ] {
        scenario.set(line).unwrap();
    }
    let host = &scenario.hosts[0];
    let settings = format!(
        "{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}",
        host.config.adapters.iter().map(|a| (&a.name, a.lun_depth)).collect::<Vec<_>>(),
        host.config.devices.iter().map(|d| (&d.name, d.dsnro, d.path_policy)).collect::<Vec<_>>(),
        host.config.vscsi.iter().map(|v| (v.vm, v.depth)).collect::<Vec<_>>(),
        host.config.vdisks.iter().map(|v| (v.vm, v.depth)).collect::<Vec<_>>(),
        host.settings
    );
    insta::assert_snapshot!(settings);
}

#[test]
fn a_setting_that_a_host_refuses_changes_nothing() {
    let mut scenario = site();
    let before = scenario.clone();
    let line = "esx-1: storage core device set -d naa.600a0b80001111550000f35b93e19350 -O 129";
    let error = scenario.set(line).unwrap_err().to_string();
    assert!(error.ends_with("allowed is 1 to 32, the Device Max Queue Depth"), "{error}");
    assert_eq!(scenario, before);
}
