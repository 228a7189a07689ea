//! `copy = { size = "40g" }` of an event that moves disks to another datastore: Storage vMotion with its load. The data mover
//! of the VMkernel copies a disk once from beginning to end [SVM]; it is a process of the host, with a disk of its own wherever
//! one that is copied has a place. Between two VMFS datastores of one array which can do it the array copies [DM, KB-XCOPY].

use std::{collections::BTreeSet, ops::RangeInclusive};

use counters::{DeviceKind, SECTOR, VdiskId};

use crate::{
    CopyConfig, Error,
    reader::{self, File, Node},
    vm::{Site, Vm},
};

/// Bytes that are copied: more than any virtual disk has.
const BYTES: RangeInclusive<u64> = 4 << 10..=1 << 46;
/// Bytes of a chunk.
const CHUNK: RangeInclusive<u64> = 4 << 10..=64 << 20;
/// Chunks at a time.
const OUTSTANDING: RangeInclusive<u32> = 1..=256;
/// 64 KiB, 32 at a time [DM].
const CHUNK_DEFAULT: u64 = 64 << 10;
const OUTSTANDING_DEFAULT: u32 = 32;

/// How the disk is copied. Whether the array can do it is seen where it goes.
pub(crate) fn read(node: &Node<'_>) -> Result<CopyConfig, Error> {
    let table = node.table(&["size", "chunk", "outstanding"])?;
    let sectors = |node: Node<'_>, range| {
        let bytes = node.size(range)?;
        let whole = || node.error("it is no whole number of sectors of 512 bytes");
        bytes.is_multiple_of(SECTOR).then_some(bytes).ok_or_else(whole)
    };
    let (chunk, outstanding) =
        (table.get("chunk"), table.read("outstanding", |node| node.integer32(OUTSTANDING))?);
    Ok(CopyConfig {
        bytes: sectors(table.need("size")?, BYTES)?,
        chunk_bytes: chunk.map_or(Ok(CHUNK_DEFAULT), |node| sectors(node, CHUNK))? as u32,
        outstanding: outstanding.unwrap_or(OUTSTANDING_DEFAULT),
        may_offload: false,
    })
}

/// Whether these are the keys of a `copy`, as `size = "40g", outstanding = 4`, for whoever puts them into a file.
///
/// # Errors
/// One line that names the key, and no place in a file.
pub fn check(keys: &str) -> Result<(), Error> {
    let text = format!("copy = {{ {keys} }}");
    let file = File { name: "", text: &text };
    let checked = || {
        let document = file.parse()?;
        let root = reader::root(file, &document, &["copy"])?;
        read(&root.need("copy")?).map(drop)
    };
    checked().map_err(Error::without_place)
}

/// Disks of which events make copies: their VMs and positions there, and the events.
#[derive(Default)]
pub(crate) struct Copied<'a> {
    disks: BTreeSet<(usize, usize)>,
    nodes: Vec<(usize, Node<'a>)>,
}

impl<'a> Copied<'a> {
    /// An event copies disks of a VM.
    pub(crate) fn add(&mut self, vm: usize, disks: &[usize], node: &Node<'a>) {
        self.disks.extend(disks.iter().map(|disk| (vm, *disk)));
        if self.nodes.iter().all(|(known, _)| *known != vm) {
            self.nodes.push((vm, node.clone()));
        }
    }

    /// Adds the data mover of each VM, when all places of its disks are known.
    pub(crate) fn add_movers(self, site: &mut Site) -> Result<(), Error> {
        for (index, node) in self.nodes {
            let vm = &site.vms.vms[index];
            if vm.places.len() > 1 {
                let message = format!(
                    "VM `{}` goes to another host; it is not copied in the same run",
                    vm.name
                );
                return Err(node.error(&message));
            }
            let positions = places_of(vm, |disk| self.disks.contains(&(index, disk)));
            site.add_mover(index, &positions, &node)?;
        }
        Ok(())
    }
}

/// Whether an array can copy from one datastore to another by itself: both are VMFS and of that array [KB-XCOPY].
pub(crate) fn may_offload(site: &Site, host: usize, disks: [VdiskId; 2]) -> bool {
    let host = &site.hosts.hosts[host];
    let [from, to] = disks.map(|disk| host.targets[disk.index()].array);
    let is_vmfs = |disk: VdiskId| {
        let device = host.config.vdisks[disk.index()].device;
        host.config.devices[device.index()].kind == DeviceKind::Scsi && !host.rdms.contains(&device)
    };
    let can = site.arrays.arrays[to].config.front.copier_bytes_per_sec.is_some();
    can && from == to && disks.into_iter().all(is_vmfs)
}

/// The positions in a VM of disks that are meant, wherever they are.
fn places_of(vm: &Vm, is_meant: impl Fn(usize) -> bool) -> Vec<usize> {
    let places = vm.disks.iter().enumerate();
    let places = places.filter(|(at, disk)| is_meant(disk.moved.unwrap_or(*at)));
    places.map(|(at, _)| at).collect()
}
