//! `kavg serve` under libblkio, whose driver of vhost-user-blk is what QEMU and others open such a socket
//! with where no guest does.

#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;

use std::{fs, mem::MaybeUninit, os::unix::fs::FileExt};

use blkio::{Blkio, Blkioq, Completion, MemoryRegion, ReqFlags};
use daemon::Site;

const KIB: usize = 1 << 10;
/// What a request has for data.
const BLOCK: usize = 4 * KIB;
/// Requests at once: more than a ring holds.
const REQUESTS: usize = 200;
const RING: i32 = 64;
const HALF: usize = REQUESTS * BLOCK;
const SIZE: u64 = 32 << 20;

const DISKS: &str = r#"
[datastore.f]
backend = "file"
directory = "."
[datastore.m]
backend = "memory"
[vm.a.disk."scsi0:0"]
datastore = "f"
size = "32m"
vhost_user = "file.sock"
[vm.b.disk."scsi0:0"]
datastore = "m"
size = "32m"
vhost_user = "memory.sock"
"#;

/// A device at work, and memory for what is written and for what is read.
struct Driver {
    /// A ring that waits for its calls, and one that is looked at.
    rings: [Blkioq; 2],
    memory: fs::File,
    region: MemoryRegion,
    _blkio: Blkio,
}

fn connect(site: &Site, socket: &str) -> Blkio {
    let mut blkio = Blkio::new("virtio-blk-vhost-user").expect("there is such a driver");
    blkio.set_str("path", &site.path(socket).display().to_string()).expect("a path");
    blkio.connect().expect("the daemon lets it in");
    blkio
}

impl Driver {
    fn on(site: &Site, socket: &str) -> Self {
        let mut blkio = connect(site, socket);
        blkio.set_i32("queue-size", RING).expect("a power of two");
        blkio.set_i32("num-poll-queues", 1).expect("there are two rings");
        let mut started = blkio.start().expect("the rings are set up");
        let rings = [started.queues.remove(0), started.poll_queues.remove(0)];
        let region = blkio.alloc_mem_region(2 * HALF).expect("room");
        blkio.map_mem_region(&region).expect("the daemon maps it");
        // Read and written as a file, since the driver has it for an address.
        let path = format!("/proc/self/fd/{}", region.fd);
        let memory = fs::File::options().read(true).write(true).open(path).expect("it is ours");
        Self { rings, memory, region, _blkio: blkio }
    }

    /// Where a byte of the memory is.
    fn at(&self, byte: usize) -> *mut u8 {
        (self.region.addr + byte) as *mut u8
    }

    fn bytes(&self, half: usize) -> Vec<u8> {
        let mut bytes = vec![0; HALF];
        self.memory.read_exact_at(&mut bytes, (half * HALF) as u64).expect("it is there");
        bytes
    }
}

/// Waits for as many answers; whether all were good.
fn wait(ring: &mut Blkioq, count: usize) -> bool {
    let mut done: Vec<MaybeUninit<Completion>> = Vec::new();
    done.resize_with(count, MaybeUninit::uninit);
    assert_eq!(ring.do_io(&mut done, count, None, None).expect("the daemon answers"), count);
    #[expect(unsafe_code, reason = "as many as it says are filled in")]
    let is_good = |one: &MaybeUninit<Completion>| unsafe { one.assume_init_ref() }.ret == 0;
    done.iter().all(is_good)
}

/// Bytes that tell where they were to be.
fn pattern(seed: u8) -> Vec<u8> {
    (0..HALF).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 9) as u8 ^ seed).collect()
}

#[test]
fn libblkio_is_told_what_there_is() {
    let site = Site::new(DISKS);
    let _daemon = site.serve(2, &[]);
    let blkio = connect(&site, "file.sock");
    assert_eq!(blkio.get_u64("capacity").unwrap(), SIZE);
    assert!(blkio.get_bool("flush-needed").unwrap());
    for limit in ["max-queues", "max-segments", "request-alignment"] {
        assert!(blkio.get_i32(limit).unwrap() > 0, "{limit}");
    }
    for limit in ["max-discard-len", "max-write-zeroes-len", "max-mem-regions"] {
        assert!(blkio.get_u64(limit).unwrap() > 0, "{limit}");
    }
}

#[test]
fn libblkio_reads_what_it_wrote() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &[]);
    for socket in ["file.sock", "memory.sock"] {
        let mut driver = Driver::on(&site, socket);
        for seed in 0..2 {
            let written = pattern(seed as u8);
            driver.memory.write_all_at(&written, 0).unwrap();
            for one in 0..REQUESTS {
                let (byte, is_durable) = (one * BLOCK, one % 8 == 0);
                let flags = if is_durable { ReqFlags::FUA } else { ReqFlags::empty() };
                let at = driver.at(byte);
                driver.rings[seed].write(byte as u64, at, BLOCK, one, flags);
            }
            assert!(wait(&mut driver.rings[seed], REQUESTS));
            driver.rings[seed].flush(0, ReqFlags::empty());
            assert!(wait(&mut driver.rings[seed], 1));
            for one in 0..REQUESTS {
                let (byte, flags) = (one * BLOCK, ReqFlags::empty());
                let at = driver.at(HALF + byte);
                driver.rings[seed].read(byte as u64, at, BLOCK, one, flags);
            }
            assert!(wait(&mut driver.rings[seed], REQUESTS));
            assert!(driver.bytes(1) == written, "{socket}");
        }
    }
    daemon.stop();
    assert!(fs::read(site.path("a_scsi0-0.img")).unwrap().starts_with(&pattern(1)));
}

#[test]
fn libblkio_finds_zeroes_where_it_asked_for_them() {
    let site = Site::new(DISKS);
    let _daemon = site.serve(2, &[]);
    for socket in ["file.sock", "memory.sock"] {
        let mut driver = Driver::on(&site, socket);
        let mut expected = pattern(7);
        driver.memory.write_all_at(&expected, 0).unwrap();
        let (from, to) = (driver.at(0), driver.at(HALF));
        let ring = &mut driver.rings[0];
        ring.write(0, from, HALF, 0, ReqFlags::empty());
        assert!(wait(ring, 1));
        for (start, flags) in [(BLOCK, ReqFlags::empty()), (4 * BLOCK, ReqFlags::NO_UNMAP)] {
            ring.write_zeroes(start as u64, BLOCK as u64, 0, flags);
            expected[start..start + BLOCK].fill(0);
        }
        ring.discard(HALF as u64, BLOCK as u64, 0, ReqFlags::empty());
        assert!(wait(ring, 3));
        ring.read(0, to, HALF, 0, ReqFlags::empty());
        assert!(wait(ring, 1));
        assert!(driver.bytes(1) == expected, "{socket}");
    }
}

#[test]
fn libblkio_is_refused_what_cannot_be() {
    let site = Site::new(DISKS);
    let _daemon = site.serve(2, &[]);
    let mut driver = Driver::on(&site, "file.sock");
    let (at, last) = (driver.at(0), SIZE - BLOCK as u64);
    let ring = &mut driver.rings[0];
    ring.read(SIZE, at, BLOCK, 0, ReqFlags::empty());
    assert!(!wait(ring, 1));
    ring.write(last, at, 2 * BLOCK, 0, ReqFlags::empty());
    assert!(!wait(ring, 1));
    ring.read(last, at, BLOCK, 0, ReqFlags::empty());
    assert!(wait(ring, 1));
}
