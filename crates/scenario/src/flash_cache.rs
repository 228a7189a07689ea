//! `flash_cache` of a virtual disk: a read cache in the flash of its host [VFRC]. What it holds is read from a disk of its own
//! on the datastore of that flash, which is there on each host that knows the VM.

use std::ops::RangeInclusive;

use model::FlashCacheConfig;

use crate::{
    Error, FlashCache,
    reader::{Node, Table},
    vm::Site,
};

/// Bytes of a block of the cache [VFRC].
const BLOCK_BYTES: RangeInclusive<u64> = 4 << 10..=1 << 20;
/// The fewest blocks [VFRC], and more than a run keeps in mind.
const BLOCKS: RangeInclusive<u64> = 256..=1 << 22;

/// Gives disks their caches.
pub(crate) fn read(root: &Table<'_>, site: &mut Site) -> Result<(), Error> {
    for (name, vm) in root.named("vm")? {
        let disks = vm.child("disk").map_or(Ok(Vec::new()), |disks| disks.named())?;
        for (position, (_, disk)) in disks.iter().enumerate() {
            let Some(node) = disk.child("flash_cache") else { continue };
            let table = node.table(&["datastore", "size", "block"])?;
            let datastore = site.datastores.names.find_one(&table.need("datastore")?)?;
            let config = config(&table)?;
            for vm in site.vms.names.get(&name).into_iter().flatten() {
                add(site, (vm, position), datastore, config, &node)?;
            }
        }
    }
    Ok(())
}

fn config(table: &Table<'_>) -> Result<FlashCacheConfig, Error> {
    let node = table.need("block")?;
    let block_bytes = node.size(BLOCK_BYTES)?;
    if !block_bytes.is_power_of_two() {
        return Err(node.error(&format!("`{block_bytes}` is no power of two")));
    }
    let node = table.need("size")?;
    let blocks = node.size(0..=u64::MAX)? / block_bytes;
    if !BLOCKS.contains(&blocks) {
        return Err(node.error(&format!(
            "it has room for {blocks} blocks of {block_bytes} bytes; a cache has {} to {} [VFRC]",
            BLOCKS.start(),
            BLOCKS.end()
        )));
    }
    Ok(FlashCacheConfig { blocks: blocks as u32, block_bytes: block_bytes as u32 })
}

/// Gives a disk of a VM its cache: a disk in that flash.
fn add(
    site: &mut Site,
    (vm, position): (usize, usize),
    datastore: usize,
    config: FlashCacheConfig,
    node: &Node<'_>,
) -> Result<(), Error> {
    if site.vms.vms[vm].place_of(position, datastore).is_some() {
        return Err(node.error("the disk itself is on that datastore"));
    }
    site.place_on((vm, position), datastore, node)?;
    let disks = &mut site.vms.vms[vm].disks;
    let flash = disks.len() - 1;
    // It is there from the beginning, and no event moves it.
    disks[flash].moved = None;
    disks[position].cache = Some((config, flash));
    Ok(())
}

/// Tells each host of the caches of the VMs that it knows.
pub(crate) fn connect(site: &mut Site) {
    for vm in &site.vms.vms {
        let caches = vm.disks.iter().enumerate().filter_map(|(at, disk)| Some((at, disk.cache?)));
        for (position, (config, flash)) in caches {
            for (&host, place) in &vm.places {
                let cache = FlashCache { config, flash: place.vdisks[flash] };
                site.hosts.hosts[host].flash_caches.insert(place.vdisks[position], cache);
            }
        }
    }
}
