//! A disk as a front end sees it: agreed on, handed memory and rings, and asked.

use std::{
    fs::File,
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::Duration,
};

use nix::{
    sys::memfd::{MFdFlags, memfd_create},
    unistd::ftruncate,
};
use vhost::{
    VhostBackend, VhostUserMemoryRegionInfo, VringConfigData,
    vhost_user::{
        Frontend, VhostUserFrontend,
        message::{
            VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight, VhostUserProtocolFeatures,
        },
    },
};
use vm_memory::{
    FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestRegionMmap, MmapRegion,
};

use crate::{Ask, Done, Ring, Shape, layout::START};

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Features of virtio [VIRTIO], 5.2.3, 6.
pub mod feature {
    /// Nothing may be written.
    pub const RO: u64 = 1 << 5;
    /// It can be flushed.
    pub const FLUSH: u64 = 1 << 9;
    /// The guest can say whether it flushes.
    pub const CONFIG_WCE: u64 = 1 << 11;
    /// There are several rings.
    pub const MQ: u64 = 1 << 12;
    /// What is not needed can be given back.
    pub const DISCARD: u64 = 1 << 13;
    /// Zeroes can be written without sending them.
    pub const WRITE_ZEROES: u64 = 1 << 14;
    /// A descriptor may stand for a table of descriptors.
    pub const INDIRECT: u64 = 1 << 28;
    /// Each side says from where on it wants to be notified.
    pub const EVENT_IDX: u64 = 1 << 29;
    /// The protocol has features.
    pub const PROTOCOL: u64 = 1 << 30;
    /// Virtio as it is since 1.0.
    pub const VERSION_1: u64 = 1 << 32;
    /// What is written is logged, for live migration.
    pub const LOG_ALL: u64 = 1 << 26;
}

/// What a front end wants.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Its rings.
    pub shape: Shape,
    /// Features that it takes where they are offered.
    pub features: u64,
    /// Whether it keeps what is in flight.
    pub inflight: bool,
}

impl Wish {
    /// One that takes everything, with rings of this shape.
    #[must_use]
    pub const fn all(shape: Shape) -> Self {
        Self { shape, features: u64::MAX, inflight: true }
    }
}

/// A disk.
pub struct Disk {
    wish: Wish,
    memory: GuestMemoryMmap,
    /// The file that the memory is.
    pub file: File,
    /// The front end; none between two back ends.
    pub front: Option<Frontend>,
    /// What is agreed on.
    pub features: u64,
    /// The rings, in their order.
    pub rings: Vec<Ring>,
    inflight: Option<(VhostUserInflight, File)>,
}

impl Disk {
    /// Connects to a back end and sets everything up.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn connect(path: &Path, wish: Wish) -> Result<Self, String> {
        let (memory, file) = memory(wish.shape.bytes())?;
        let (rings, inflight) = (Vec::new(), None);
        let mut disk = Self { wish, memory, file, front: None, features: 0, rings, inflight };
        disk.greet(path)?;
        let manners =
            (disk.features & feature::EVENT_IDX != 0, disk.features & feature::INDIRECT != 0);
        for ring in 0..wish.shape.rings {
            let places = wish.shape.ring(ring);
            disk.rings.push(Ring::new(places, disk.memory.clone(), manners)?);
        }
        disk.hand_over()?;
        Ok(disk)
    }

    /// Connects again to a back end that has begun anew, with what is in flight.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn reconnect(&mut self, path: &Path) -> Result<(), String> {
        self.greet(path)?;
        self.hand_over()
    }

    /// Connects and agrees.
    fn greet(&mut self, path: &Path) -> Result<(), String> {
        let stream = UnixStream::connect(path).map_err(said("connect"))?;
        let mut front = Frontend::from_stream(stream, self.wish.shape.rings.into());
        front.set_owner().map_err(said("SET_OWNER"))?;
        let offered = front.get_features().map_err(said("GET_FEATURES"))?;
        self.features = offered & (self.wish.features | feature::PROTOCOL | feature::VERSION_1);
        let protocol = front.get_protocol_features().map_err(said("GET_PROTOCOL_FEATURES"))?;
        front.set_protocol_features(protocol).map_err(said("SET_PROTOCOL_FEATURES"))?;
        if protocol.contains(VhostUserProtocolFeatures::REPLY_ACK) {
            front.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        }
        front.set_features(self.features).map_err(said("SET_FEATURES"))?;
        self.front = Some(front);
        Ok(())
    }

    /// Hands over memory, notes of what is in flight, and rings.
    fn hand_over(&mut self) -> Result<(), String> {
        self.set_memory()?;
        self.set_inflight()?;
        (0..self.rings.len()).try_for_each(|ring| self.start(ring))
    }

    /// The memory, as it is told.
    fn region(&self) -> Result<VhostUserMemoryRegionInfo, String> {
        let region = self.memory.iter().next().ok_or("no memory")?;
        VhostUserMemoryRegionInfo::from_guest_region(region).map_err(said("memory"))
    }

    /// Hands over the memory.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn set_memory(&mut self) -> Result<(), String> {
        let region = self.region()?;
        let told = self.front()?.set_mem_table(&[region]).map(drop);
        told.map_err(said("SET_MEM_TABLE"))
    }

    /// Hands over another part of memory, and takes it back.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn add_and_remove_memory(&mut self) -> Result<(), String> {
        let (_, file) = memory(START)?;
        let more = VhostUserMemoryRegionInfo {
            guest_phys_addr: 1 << 40,
            memory_size: START,
            userspace_addr: 1 << 46,
            mmap_offset: 0,
            mmap_handle: file.as_raw_fd(),
        };
        let front = self.front()?;
        front.add_mem_region(&more).map_err(said("ADD_MEM_REG"))?;
        front.remove_mem_region(&more).map_err(said("REM_MEM_REG"))
    }

    /// Hands over a socket at which the back end tells something; our end of it.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn listen(&mut self) -> Result<UnixStream, String> {
        let (ours, theirs) = UnixStream::pair().map_err(said("a socket"))?;
        let told = self.front()?.set_backend_request_fd(&theirs);
        told.map_err(said("SET_BACKEND_REQ_FD")).map(|()| ours)
    }

    /// Resets the device and begins anew, as a driver does that was loaded again.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn begin_anew(&mut self) -> Result<(), String> {
        let features = self.features;
        let front = self.front()?;
        front.reset_device().map_err(said("RESET_DEVICE"))?;
        front.set_features(features).map_err(said("SET_FEATURES"))?;
        self.rings.iter_mut().for_each(Ring::reset);
        self.hand_over()
    }

    fn set_inflight(&mut self) -> Result<(), String> {
        if !self.wish.inflight {
            return Ok(());
        }
        let Shape { rings, entries, .. } = self.wish.shape;
        let kept = self.inflight.take().map_or_else(
            || {
                let wanted = VhostUserInflight::new(0, 0, rings, entries);
                self.front()?.get_inflight_fd(&wanted).map_err(said("GET_INFLIGHT_FD"))
            },
            Ok,
        )?;
        let (inflight, file) = self.inflight.insert(kept);
        let (inflight, file) = (*inflight, file.as_raw_fd());
        self.front()?.set_inflight_fd(&inflight, file).map_err(said("SET_INFLIGHT_FD"))
    }

    /// The front end.
    ///
    /// # Errors
    /// When there is none.
    pub fn front(&mut self) -> Result<&mut Frontend, String> {
        self.front.as_mut().ok_or_else(|| "not connected".into())
    }

    /// Hands over a ring, from where the back end before has come, and has it started.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn start(&mut self, ring: usize) -> Result<(), String> {
        let Shape { entries, .. } = self.wish.shape;
        let own = &self.rings[ring];
        let base = self.region()?;
        let user = |at: GuestAddress| at.0 - base.guest_phys_addr + base.userspace_addr;
        let config = VringConfigData {
            queue_max_size: entries,
            queue_size: entries,
            flags: 0,
            desc_table_addr: user(own.places.descriptor(0)),
            used_ring_addr: user(own.places.used()),
            avail_ring_addr: user(own.places.available()),
            log_addr: None,
        };
        let front = self.front.as_mut().ok_or("not connected")?;
        front.set_vring_num(ring, entries).map_err(said("SET_VRING_NUM"))?;
        front.set_vring_base(ring, own.seen()).map_err(said("SET_VRING_BASE"))?;
        front.set_vring_addr(ring, &config).map_err(said("SET_VRING_ADDR"))?;
        front.set_vring_call(ring, &own.call).map_err(said("SET_VRING_CALL"))?;
        front.set_vring_err(ring, &own.err).map_err(said("SET_VRING_ERR"))?;
        front.set_vring_kick(ring, &own.kick).map_err(said("SET_VRING_KICK"))?;
        front.set_vring_enable(ring, true).map_err(said("SET_VRING_ENABLE"))
    }

    /// Stops a ring; where it was.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn stop(&mut self, ring: usize) -> Result<u32, String> {
        self.front()?.get_vring_base(ring).map_err(said("GET_VRING_BASE"))
    }

    /// The configuration space.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn config(&mut self) -> Result<Vec<u8>, String> {
        let (flags, room) = (VhostUserConfigFlags::WRITABLE, [0; 60]);
        let config = self.front()?.get_config(0, 60, flags, &room);
        config.map(|(_, bytes)| bytes).map_err(said("GET_CONFIG"))
    }

    /// Says whether the guest flushes.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn set_writeback(&mut self, writeback: bool) -> Result<(), String> {
        let flags = VhostUserConfigFlags::WRITABLE;
        let told = self.front()?.set_config(32, flags, &[writeback.into()]);
        told.map_err(said("SET_CONFIG"))
    }

    /// Asks by a ring and waits for the answer: how it ended, and its data.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn ask(&mut self, ring: usize, ask: Ask<'_>) -> Result<(u8, Vec<u8>), String> {
        let ring = &mut self.rings[ring];
        ring.submit(ask);
        ring.kick();
        let Done { slot, status, written } = ring.wait(PATIENCE).ok_or("there is no answer")?;
        Ok((status, ring.data(slot, written.saturating_sub(1) as usize)))
    }

    /// How many bytes the disk has.
    ///
    /// # Errors
    /// One line: what was refused.
    pub fn bytes(&mut self) -> Result<u64, String> {
        let config = self.config()?;
        let sectors = config.first_chunk().map(|word| u64::from_le_bytes(*word));
        Ok(sectors.ok_or("a short configuration")? * crate::SECTOR)
    }
}

/// New memory of so many bytes, which others can map.
fn memory(bytes: u64) -> Result<(GuestMemoryMmap, File), String> {
    let file = memfd_create("guest", MFdFlags::MFD_CLOEXEC).map_err(said("memory"))?;
    ftruncate(file.as_fd(), bytes as i64).map_err(said("memory"))?;
    let file = File::from(file);
    let mapped = file.try_clone().map_err(said("memory"))?;
    let mapping = MmapRegion::from_file(FileOffset::new(mapped, 0), bytes as usize);
    let mapping = mapping.map_err(said("memory"))?;
    let region = GuestRegionMmap::new(mapping, GuestAddress(START)).ok_or("memory")?;
    let memory = GuestMemoryMmap::from_regions(vec![region]).map_err(said("memory"))?;
    Ok((memory, file))
}

fn said<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> String {
    move |error| format!("{what}: {error}")
}
