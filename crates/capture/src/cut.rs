//! A part of a file as it stands: by group of columns, VM, device and time, copied cell by cell.
//!
//! What is about CPU, memory or networks is not understood here and goes with the VM it belongs
//! to, so that a part is a capture like the whole: for diagnosis, a spreadsheet or perfmon.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use counters::{EntityId, Kind, Recording, sorted::Ordered};

use crate::{
    CopyReport, Error, Input, Limits, Progress, ReadOptions,
    bus::split_virtual_disk,
    copy::{Rewrite, Row, copy},
    header::{Cell, Header, text_of},
    slice::{related, unknown},
};

/// What to copy of a file. The default copies everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Groups as esxtop names them (`Vcpu`, `Physical Disk Path`), in any case; a part of the name
    /// stands for every group that has it (`disk`). Empty for all.
    pub groups: Vec<String>,
    /// Names of VMs: they are copied with all that their I/Os pass, with every NFS volume that may
    /// hold a disk of them, and with their own columns of CPU, memory and network. Together with [`Cut::devices`], what belongs to any of either is
    /// copied; both empty for all.
    pub vms: Vec<String>,
    /// Names of devices and NFS volumes: they are copied with the VMs that have a world on them.
    pub devices: Vec<String>,
    /// The first instant copied, in milliseconds since 1970-01-01 UTC.
    pub from_ms: Option<i64>,
    /// The last instant copied.
    pub to_ms: Option<i64>,
}

/// Copies a part of `input` to `out`; lines end as esxtop ends them. The file is read and written
/// block by block.
///
/// # Errors
/// An input that cannot be read or is no capture; a group, VM or device that it does not have;
/// those of `out`.
pub fn cut(
    input: Input,
    part: &Cut,
    limits: &Limits,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<CopyReport, Error> {
    copy(input, limits, &mut Part { part, kept: Vec::new() }, out, progress)
}

/// A file on its way.
struct Part<'a> {
    part: &'a Cut,
    /// Positions of the cells that are copied, the time's first.
    kept: Vec<usize>,
}

impl Rewrite for Part<'_> {
    fn header(&mut self, file: &str, cells: &[&[u8]]) -> Result<Vec<u8>, Error> {
        let texts: Vec<_> = cells.iter().map(|cell| text_of(cell)).collect();
        let columns: Vec<_> = texts.iter().map(|text| Cell::parse(text)).collect();
        let refuse = |what| Error::new(file, what);
        let groups = self.groups(&columns).map_err(refuse)?;
        let mut kept: Vec<bool> = columns
            .iter()
            .map(|cell| {
                groups.as_ref().is_none_or(|g| cell.as_ref().is_some_and(|c| g.contains(c.group)))
            })
            .collect();
        if !self.part.vms.is_empty() || !self.part.devices.is_empty() {
            let related = self.of_objects(cells, &columns).map_err(refuse)?;
            kept.iter_mut().zip(related).for_each(|(kept, related)| *kept &= related);
        }
        self.kept = (0..cells.len()).filter(|&cell| cell == 0 || kept[cell]).collect();
        Ok(self.kept.iter().flat_map(|&cell| [cells[cell], b","]).flatten().copied().collect())
    }

    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) -> bool {
        let after = self.part.from_ms.is_none_or(|from| row.time_ms >= from);
        let wanted = after && self.part.to_ms.is_none_or(|to| row.time_ms <= to);
        for &cell in self.kept.iter().filter(|_| wanted) {
            out.extend_from_slice(row.cells[cell]);
            out.push(b',');
        }
        wanted
    }
}

impl Part<'_> {
    /// The groups that are wanted; `None` for all.
    fn groups<'a>(
        &self,
        columns: &[Option<Cell<'a>>],
    ) -> Result<Option<BTreeSet<&'a str>>, String> {
        if self.part.groups.is_empty() {
            return Ok(None);
        }
        let known: BTreeSet<&str> = columns.iter().flatten().map(|cell| cell.group).into_set();
        let mut wanted = BTreeSet::new();
        for name in &self.part.groups {
            let exact = known.iter().find(|group| group.eq_ignore_ascii_case(name));
            let low = name.to_ascii_lowercase();
            let holds = |group: &&&str| group.to_ascii_lowercase().contains(&low);
            let found: Vec<&str> = match exact {
                Some(group) => vec![group],
                None => known.iter().filter(holds).copied().collect(),
            };
            if found.is_empty() {
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                return Err(format!("has no group '{name}'; it has {known}"));
            }
            wanted.extend(found);
        }
        Ok(Some(wanted))
    }

    /// Of every cell, whether it belongs to a VM or device that is wanted.
    fn of_objects(
        &self,
        cells: &[&[u8]],
        columns: &[Option<Cell<'_>>],
    ) -> Result<Vec<bool>, String> {
        let hosts = Header::parse(&cells.join(&b','), &ReadOptions::default().kinds).hosts;
        let mut kept = vec![false; cells.len()];
        let mut missing = None;
        for host in &hosts {
            let recording = &host.recording;
            let named = match self.named(recording) {
                Ok(named) => named,
                Err(name) => {
                    missing = missing.or(Some(name));
                    continue;
                }
            };
            let mut wanted = related(recording, &named);
            if named.iter().any(|&vm| may_use_nfs(recording, vm)) {
                recording.of_kind(Kind::NfsVolume).for_each(|(id, _)| wanted[id.0 as usize] = true);
            }
            let objects = Objects::of(recording, &wanted);
            for (kept, cell) in kept.iter_mut().zip(columns) {
                let of_host = cell.as_ref().filter(|cell| cell.host == recording.host);
                *kept |= of_host.is_some_and(|cell| objects.have(cell));
            }
        }
        match missing {
            Some(missing) if !kept.contains(&true) => Err(missing),
            _ => Ok(kept),
        }
    }

    fn named(&self, recording: &Recording) -> Result<Vec<EntityId>, String> {
        let find = |names: &[String], kinds: &'static [Kind]| -> Result<Vec<EntityId>, String> {
            let find = |name: &String| {
                let found = kinds.iter().find_map(|&kind| recording.find(kind, name));
                found.ok_or_else(|| unknown(recording, name, kinds))
            };
            names.iter().map(find).collect()
        };
        let vms = find(&self.part.vms, &[Kind::Vm])?;
        let devices = find(&self.part.devices, &[Kind::Device, Kind::NfsVolume])?;
        Ok([vms, devices].concat())
    }
}

/// Whether a VM has more disks than devices with a world of it. A disk that is on none of them is on
/// an NFS volume, where VMs have no worlds, and no name says on which.
fn may_use_nfs(recording: &Recording, vm: EntityId) -> bool {
    let of_vm = |kind| recording.of_kind(kind).filter(move |(_, entity)| entity.vm == Some(vm));
    let devices: BTreeSet<_> = of_vm(Kind::World).filter_map(|(_, world)| world.device).into_set();
    of_vm(Kind::VirtualDisk).count() > devices.len()
}

/// Objects that are wanted, as header cells name them.
struct Objects<'a> {
    names: BTreeMap<(Kind, &'a str), bool>,
    /// Ids of wanted worlds, for what the group `Vcpu` tells of them.
    worlds: BTreeSet<&'a str>,
}

impl<'a> Objects<'a> {
    fn of(recording: &'a Recording, wanted: &[bool]) -> Self {
        let all = recording.entities().iter().zip(wanted);
        let names: BTreeMap<_, _> =
            all.map(|(entity, &wanted)| ((entity.kind, entity.name.as_str()), wanted)).into_map();
        let worlds = names
            .iter()
            .filter(|((kind, _), wanted)| *kind == Kind::World && **wanted)
            .filter_map(|((_, name), _)| Some(name.rsplit_once('-')?.1))
            .into_set();
        Self { names, worlds }
    }

    fn has(&self, kind: Kind, name: &str) -> bool {
        self.names.get(&(kind, name)).copied().unwrap_or(false)
    }

    /// Whether a cell is of one of the objects, or of a VM or world among them.
    fn have(&self, cell: &Cell<'_>) -> bool {
        let Some(instance) = cell.instance else { return false };
        let parts = || instance.splitn(4, ':');
        match cell.group {
            "Physical Disk" => match instance.split_once(':') {
                Some((_, path)) => self.has(Kind::Path, path),
                None => self.has(Kind::Adapter, instance),
            },
            "Physical Disk Adapter" => self.has(Kind::Adapter, instance),
            "Physical Disk SCSI Device" => self.has(Kind::Device, instance),
            "Physical Disk Path" => self.has(Kind::Path, instance),
            "Physical Disk Per-Device-Per-World" => self.has(Kind::World, instance),
            "Physical Disk Partition" => self.has(Kind::Partition, instance),
            "Physical Disk NFS Volume" => self.has(Kind::NfsVolume, instance),
            "Virtual Disk" => match split_virtual_disk(instance) {
                Some((vm, _)) => self.has(Kind::Vm, vm),
                None => self.has(Kind::Vm, instance),
            },
            "Group Cpu" | "Group Memory" => {
                instance.split_once(':').is_some_and(|(_, name)| self.has(Kind::Vm, name))
            }
            "Vcpu" => {
                let rest = instance.split_once(':').map_or("", |(_, rest)| rest);
                let of_vm =
                    rest.match_indices(':').any(|(end, _)| self.has(Kind::Vm, &rest[..end]));
                of_vm || parts().nth(2).is_some_and(|world| self.worlds.contains(world))
            }
            "Network Port" => {
                let name = parts().nth(3).or_else(|| parts().nth(2));
                name.is_some_and(|name| self.has(Kind::Vm, name))
                    || parts().nth(2).is_some_and(|world| self.worlds.contains(world))
            }
            _ => false,
        }
    }
}
