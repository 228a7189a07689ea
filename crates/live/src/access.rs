//! Reading and writing the memory of a guest. It stands below the rings and what guests lend.
//!
//! The library walks a range region by region, by an iterator for each word; that took a third of the time of an I/O
//! from nothing. Nearly everything is in one region, and there it is looked up once; what is in two goes the library's
//! way. The library's own look-up of one is a chain of calls: 80 instructions where these are 20.

use vm_memory::{
    ByteValued, Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion,
    GuestRegionMmap, MemoryRegionAddress, VolatileMemory, VolatileSlice,
};

/// What is in one region.
#[inline]
pub(crate) fn slice(
    map: &GuestMemoryMmap,
    at: GuestAddress,
    bytes: usize,
) -> Option<VolatileSlice<'_>> {
    slice_of(map.find_region(at)?, at, bytes)
}

/// What is in this region.
#[inline]
pub(crate) fn slice_of(
    region: &GuestRegionMmap,
    at: GuestAddress,
    bytes: usize,
) -> Option<VolatileSlice<'_>> {
    let offset = at.0.checked_sub(region.start_addr().0)?;
    region.get_slice(MemoryRegionAddress(offset), bytes).ok()
}

/// Reads as many bytes as there is room for; whether they are there.
pub(crate) fn read(map: &GuestMemoryMmap, at: GuestAddress, into: &mut [u8]) -> bool {
    match slice(map, at, into.len()) {
        Some(slice) => slice.copy_to(into) == into.len(),
        None => map.read_slice(into, at).is_ok(),
    }
}

/// Writes bytes; whether all have a place.
pub(crate) fn write(map: &GuestMemoryMmap, at: GuestAddress, bytes: &[u8]) -> bool {
    match slice(map, at, bytes.len()) {
        Some(slice) => {
            slice.copy_from(bytes);
            true
        }
        None => map.write_slice(bytes, at).is_ok(),
    }
}

/// Reads a value, which the guest may be writing meanwhile.
#[inline]
pub(crate) fn get<T: ByteValued>(map: &GuestMemoryMmap, at: GuestAddress) -> Option<T> {
    match slice(map, at, size_of::<T>()) {
        Some(slice) => slice.get_ref(0).ok().map(|place| place.load()),
        None => map.read_obj(at).ok(),
    }
}

/// Writes one.
#[inline]
pub(crate) fn put<T: ByteValued>(map: &GuestMemoryMmap, at: GuestAddress, value: T) -> Option<()> {
    match slice(map, at, size_of::<T>()) {
        Some(slice) => slice.get_ref(0).ok().map(|place| place.store(value)),
        None => map.write_obj(value, at).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_two_regions_is_there_and_what_is_in_none_is_not() {
        let ranges = [(GuestAddress(0), 4096), (GuestAddress(4096), 4096)];
        let map = GuestMemoryMmap::from_ranges(&ranges).expect("memory");
        for (at, is_there) in [(8, true), (4092, true), (8184, true), (8185, false), (9000, false)]
        {
            let (at, mut back) = (GuestAddress(at), [0; 8]);
            assert_eq!(put(&map, at, 0x0102_0304_0506_0708_u64).is_some(), is_there, "{at:?}");
            assert_eq!(get::<u64>(&map, at), is_there.then_some(0x0102_0304_0506_0708), "{at:?}");
            assert_eq!(write(&map, at, &[9; 8]), is_there, "{at:?}");
            assert_eq!(read(&map, at, &mut back), is_there, "{at:?}");
            assert!(!is_there || back == [9; 8]);
        }
    }
}
