//! Names replaced consistently, so that a recording can be given away.
//!
//! What diagnosis needs stays: the kind of a device name and its vendor's number, adapters and
//! paths, buses, world ids, the names of system processes, and every value.

use std::collections::BTreeMap;

use counters::{Kind, Recording};

use crate::header::split_virtual_disk;

/// Hexadecimal digits of an `naa.` name that name the vendor and no unit: the format and an OUI.
const VENDOR_DIGITS: usize = 7;

/// Replaces the names of host, VMs, devices and NFS volumes. The same name becomes the same
/// substitute in every recording that is given together.
pub fn anonymize(recordings: &mut [Recording]) {
    let mut names = Names::default();
    for recording in recordings {
        recording.host = names.of("host", &recording.host);
        for index in 0..recording.entities().len() {
            let id = counters::EntityId(index as u32);
            let entity = recording.entity_mut(id);
            entity.name = names.of_entity(entity.kind, &entity.name);
        }
    }
}

/// The substitutes given so far, by kind of name and name.
#[derive(Default)]
struct Names {
    given: BTreeMap<(&'static str, String), usize>,
    counts: BTreeMap<&'static str, usize>,
}

impl Names {
    fn of_entity(&mut self, kind: Kind, name: &str) -> String {
        match kind {
            Kind::Adapter | Kind::Path => name.into(),
            Kind::Device => self.of_device(name),
            Kind::World | Kind::Partition => match name.rsplit_once('-') {
                Some((device, part)) => format!("{}-{part}", self.of_device(device)),
                None => self.of("part", name),
            },
            Kind::NfsVolume => self.of("nfs", name),
            Kind::Vm => self.of("vm", name),
            Kind::VirtualDisk => match split_virtual_disk(name) {
                Some((vm, _)) => format!("{}{}", self.of("vm", vm), &name[vm.len()..]),
                None => self.of("vm", name),
            },
        }
    }

    /// `mpx.` names tell nothing but a path.
    fn of_device(&mut self, name: &str) -> String {
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match name.split_once('.') {
            Some(("mpx", _)) => name.into(),
            Some(("naa", digits)) if digits.len() > VENDOR_DIGITS && is_hex(digits) => {
                let number = self.number("device", name);
                let width = digits.len() - VENDOR_DIGITS;
                format!("naa.{}{number:0width$}", &digits[..VENDOR_DIGITS])
            }
            Some((kind @ ("naa" | "eui" | "t10" | "vml"), _)) => {
                format!("{kind}.device{}", self.number("device", name))
            }
            _ => self.of("device", name),
        }
    }

    fn of(&mut self, kind: &'static str, name: &str) -> String {
        format!("{kind}{}", self.number(kind, name))
    }

    fn number(&mut self, kind: &'static str, name: &str) -> usize {
        let counts = &mut self.counts;
        *self.given.entry((kind, name.into())).or_insert_with(|| {
            let count = counts.entry(kind).or_default();
            *count += 1;
            *count
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::Entity;

    #[test]
    fn names_go_and_structure_stays() {
        let table = [
            (Kind::Adapter, "vmhba1", "vmhba1"),
            (Kind::Path, "vmhba1:C0:T2:L0", "vmhba1:C0:T2:L0"),
            (Kind::Device, "naa.624a93700c4e2b8f00011001", "naa.624a93700000000000000001"),
            (
                Kind::World,
                "naa.624a93700c4e2b8f00011001-480214",
                "naa.624a93700000000000000001-480214",
            ),
            (Kind::Partition, "naa.624a93700c4e2b8f00011001-1", "naa.624a93700000000000000001-1"),
            (Kind::Device, "t10.ATA_____SERIAL_NUMBER", "t10.device2"),
            (Kind::Device, "mpx.vmhba0:C0:T5:L0", "mpx.vmhba0:C0:T5:L0"),
            (Kind::NfsVolume, "payroll", "nfs1"),
            (Kind::Vm, "sql:01", "vm1"),
            (Kind::VirtualDisk, "sql:01:scsi0:1", "vm1:scsi0:1"),
        ];
        let mut recording = Recording::new("esx01.example.com".into());
        for (kind, name, _) in table {
            recording.add_entity(Entity::new(kind, name.into()));
        }
        let mut recordings = [recording.clone(), recording];
        anonymize(&mut recordings);
        for recording in recordings {
            assert_eq!(recording.host, "host1");
            let names: Vec<_> = recording.entities().iter().map(|e| e.name.as_str()).collect();
            assert_eq!(names, table.map(|row| row.2));
        }
    }
}
