//! Where what is in the memory of a guest: for each ring its three parts, then a slot for each request.
//!
//! ```text
//!   ring:  descriptors | available | used | slots          slot:  head, status, range, table | data
//! ```

use vm_memory::GuestAddress;

/// Where the memory begins: 0 stands for what is not there.
pub(crate) const START: u64 = 1 << 20;
const PAGE: u64 = 4096;
const DESCRIPTOR: u64 = 16;

/// The rings of a guest.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many.
    pub rings: u16,
    /// Descriptors of each, a power of two.
    pub entries: u16,
    /// Bytes of data that a request has room for.
    pub data: u32,
    /// Parts that the data of a request are cut into; beyond 1 with indirect descriptors only.
    pub parts: u16,
}

impl Shape {
    /// One ring as of most drivers, for requests of so many bytes.
    #[must_use]
    pub const fn one_ring(data: u32) -> Self {
        Self { rings: 1, entries: 256, data, parts: 1 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.ring_bytes() * u64::from(self.rings)
    }

    fn slot_bytes(&self) -> u64 {
        self.head_bytes() + u64::from(self.data).next_multiple_of(PAGE)
    }

    fn head_bytes(&self) -> u64 {
        (64 + DESCRIPTOR * (u64::from(self.parts) + 3)).next_multiple_of(PAGE)
    }

    fn ring_bytes(&self) -> u64 {
        self.slots_at() + self.slot_bytes() * u64::from(self.entries)
    }

    const fn used_at(&self) -> u64 {
        (self.available_at() + 6 + 2 * self.entries as u64).next_multiple_of(4)
    }

    const fn available_at(&self) -> u64 {
        DESCRIPTOR * self.entries as u64
    }

    const fn slots_at(&self) -> u64 {
        (self.used_at() + 6 + 8 * self.entries as u64).next_multiple_of(PAGE)
    }

    pub(crate) fn ring(&self, ring: u16) -> Places {
        let at = START + self.ring_bytes() * u64::from(ring);
        Places { shape: *self, at }
    }
}

/// Where the parts of a ring are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) shape: Shape,
    at: u64,
}

impl Places {
    pub(crate) const fn descriptor(&self, index: u16) -> GuestAddress {
        GuestAddress(self.at + DESCRIPTOR * index as u64)
    }

    pub(crate) const fn available(&self) -> GuestAddress {
        GuestAddress(self.at + self.shape.available_at())
    }

    pub(crate) const fn used(&self) -> GuestAddress {
        GuestAddress(self.at + self.shape.used_at())
    }

    pub(crate) fn slot(&self, slot: u16) -> Slot {
        let at = self.at + self.shape.slots_at() + self.shape.slot_bytes() * u64::from(slot);
        Slot { at, data: at + self.shape.head_bytes() }
    }
}

/// Where the parts of a request are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    at: u64,
    data: u64,
}

impl Slot {
    pub(crate) const fn head(self) -> GuestAddress {
        GuestAddress(self.at)
    }

    pub(crate) const fn status(self) -> GuestAddress {
        GuestAddress(self.at + 16)
    }

    pub(crate) const fn table(self) -> GuestAddress {
        GuestAddress(self.at + 64)
    }

    pub(crate) const fn data(self) -> GuestAddress {
        GuestAddress(self.data)
    }
}
