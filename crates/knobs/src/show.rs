//! The lines that show what is set, beside those that set it.

use alloc::{format, string::String, vec, vec::Vec};

use crate::{
    AllocationChange, DiskName, Disks, GuestSystem, Query, Setting, command::Call,
    lists::PARAMETERS, powershell_name, vcenter::OF_DATASTORE,
};

impl Setting {
    /// The lines to type to see what is set: in a host's shell, in the guest (of either system where
    /// it is not known which), or in PowerCLI.
    #[must_use]
    pub fn show(&self) -> Vec<String> {
        match self {
            Self::Pvscsi { vm, .. } => {
                let systems = [GuestSystem::Windows, GuestSystem::Linux].into_iter();
                let own = systems.filter(|system| vm.system.is_none_or(|own| own == *system));
                own.map(GuestSystem::show).collect()
            }
            Self::Allocation { vdisk: Disks::With(policy), .. } => {
                let name = powershell_name(policy);
                vec![format!("(Get-SpbmStoragePolicy -Name {name}).CommonRule")]
            }
            Self::Allocation { vdisk: Disks::Of(disk), allocation } => vec![match allocation {
                AllocationChange::Policy(_) => show_policies(disk),
                _ => show_limits(disk),
            }],
            Self::StorageIoControl { device, .. } => vec![format!(
                "{OF_DATASTORE}{} | Select-Object Name, StorageIOControlEnabled, \
                 CongestionThresholdMillisecond",
                powershell_name(device)
            )],
            _ => {
                let shown = Call::of(self).and_then(|call| call.shown());
                shown.iter().map(Query::esxcli).collect()
            }
        }
    }
}

/// The line that shows what a device is set to.
#[must_use]
pub fn show_device(device: &str) -> String {
    Query::Devices { device: Some(device.into()) }.esxcli()
}

/// The line that shows the parameters of a driver, by its module.
#[must_use]
pub fn show_parameters(module: &str) -> String {
    format!("esxcli {} -m {module}", PARAMETERS.words)
}

/// The line that shows an advanced option, by its path.
#[must_use]
pub fn show_option(path: &str) -> String {
    format!("esxcli system settings advanced list -o {path}")
}

/// The limits of all disks of the VM: PowerCLI has none of one alone.
fn show_limits(disk: &DiskName) -> String {
    format!(
        "(Get-VM {} | Get-VMResourceConfiguration).DiskResourceConfiguration | Select-Object Key, \
         DiskLimitIOPerSecond",
        powershell_name(&disk.vm)
    )
}

/// The storage policies of all disks of the VM.
fn show_policies(disk: &DiskName) -> String {
    format!("Get-HardDisk -VM {} | Get-SpbmEntityConfiguration", powershell_name(&disk.vm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Advanced, GuestName, IoControl};

    #[test]
    fn each_setting_is_shown_by_a_line_of_its_kind() {
        let guest = |system| Setting::Pvscsi {
            vm: GuestName { vm: None, system },
            depth: None,
            ring_pages: None,
        };
        let option = Advanced::SchedCostUnit;
        let vdisk = Disks::from(DiskName::from("sql 1:scsi0:1"));
        let policy = |vdisk: &Disks| Setting::Allocation {
            vdisk: vdisk.clone(),
            allocation: AllocationChange::Policy(Some("gold".into())),
        };
        let cases = [
            (
                Setting::MaxQueueDepth { device: "naa.1".into(), value: 64 },
                vec!["esxcli storage core device list -d naa.1"],
            ),
            (
                Setting::Advanced { option, value: None },
                vec!["esxcli system settings advanced list -o /Disk/SchedCostUnit"],
            ),
            (policy(&vdisk), vec!["Get-HardDisk -VM 'sql 1' | Get-SpbmEntityConfiguration"]),
            (
                policy(&Disks::With("gold".into())),
                vec!["(Get-SpbmStoragePolicy -Name 'gold').CommonRule"],
            ),
            (
                Setting::Allocation { vdisk, allocation: AllocationChange::Limit(None) },
                vec![
                    "(Get-VM 'sql 1' | Get-VMResourceConfiguration).DiskResourceConfiguration | \
                     Select-Object Key, DiskLimitIOPerSecond",
                ],
            ),
        ];
        let sioc =
            Setting::StorageIoControl { device: "prod".into(), control: IoControl::Off.into() };
        assert!(sioc.show()[0].starts_with("Get-Datastore 'prod' | Select-Object Name, StorageIO"));
        for (setting, lines) in cases {
            assert_eq!(setting.show(), lines);
        }
        assert_eq!(guest(None).show().len(), 2);
        assert!(guest(Some(GuestSystem::Windows)).show()[0].starts_with("reg query "));
    }
}
