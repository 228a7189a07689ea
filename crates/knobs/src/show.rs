//! The lines that show what is set, beside those that set it.

use alloc::{format, string::String, vec, vec::Vec};

use crate::{DiskName, GuestSystem, Setting, powershell_name, shell};

impl Setting {
    /// The lines to type to see what is set: in a host's shell, in the guest (of either system where
    /// it is not known which), or in PowerCLI.
    #[must_use]
    pub fn show(&self) -> Vec<String> {
        match self {
            Self::SchedNumReqOutstanding { device, .. }
            | Self::MaxQueueDepth { device, .. }
            | Self::QueueFull { device, .. } => vec![show_device(device)],
            Self::PathPolicy { device, .. } => {
                vec![format!("esxcli storage nmp device list -d {}", shell(device))]
            }
            Self::Advanced { option, .. } => vec![show_option(option.info().path)],
            Self::ModuleDepth { driver, .. } => {
                vec![format!("esxcli system module parameters list -m {}", driver.module)]
            }
            Self::Pvscsi { vm, .. } => {
                let systems = [GuestSystem::Windows, GuestSystem::Linux].into_iter();
                let own = systems.filter(|system| vm.system.is_none_or(|own| own == *system));
                own.map(GuestSystem::show).collect()
            }
            Self::Allocation { vdisk, .. } => vec![show_limits(vdisk)],
        }
    }
}

/// The line that shows what a device is set to.
#[must_use]
pub fn show_device(device: &str) -> String {
    format!("esxcli storage core device list -d {}", shell(device))
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
