//! A guest that lends its memory to a disk which does not answer: nothing is written there once it was
//! told that its request is over, or that its ring has stopped.

use std::{
    fs::File,
    io::{IoSlice, Read},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{fs::FileExt, net::UnixStream},
    },
};

use counters::{MILLISECOND, SECOND, VdiskId};
use nix::sys::{
    eventfd::EventFd,
    memfd::{MFdFlags, memfd_create},
    socket::{ControlMessage, MsgFlags, sendmsg},
};

use super::{bench::Bench, *};
use crate::{executor::medium::Medium, export::Export, vhost::Device};

const BYTES: u64 = 64 << 10;
const GUEST_NS: u64 = 30 * SECOND;
/// Where what is in the guest's memory.
const MEMORY: u64 = 1 << 16;
const TABLE: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const HEAD: u64 = 0x4000;
const STATUS: u64 = 0x4100;
const DATA: u64 = 0x5000;
/// Messages of [VHU].
const SET_FEATURES: u32 = 2;
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_ADDR: u32 = 9;
const GET_VRING_BASE: u32 = 11;
const SET_VRING_KICK: u32 = 12;
const RESET_DEVICE: u32 = 34;

/// A guest with one ring, which has asked for the first 4 KiB of its disk.
struct Guest {
    bench: Bench,
    stream: UnixStream,
    memory: File,
    _site: tempfile::TempDir,
}

impl Guest {
    fn new(lends: Option<u32>) -> Self {
        let site = tempfile::tempdir().unwrap();
        let path = site.path().join("s");
        let mut medium = Medium::new(5, vec![9; 2 * BYTES as usize]);
        (medium.each, medium.silent) = (BYTES as usize, vec![0]);
        let mut bench = Bench::new("", 512, BYTES, medium);
        let (name, vdisk) = ("0".to_owned(), VdiskId::new(0));
        let (component, bytes, block, read_only, socket) = (0, BYTES, 512, false, None);
        let frees = block;
        let export =
            Export { name, vdisk, component, bytes, block, frees, read_only, lends, socket };
        let device = Device::bind(export, &path).unwrap();
        bench.machine.mailbox.send(Letter::Disk(Box::new(device)));
        bench.pass(MILLISECOND);
        let stream = UnixStream::connect(&path).unwrap();
        stream.set_nonblocking(true).unwrap();
        let memory: File = memfd_create("guest", MFdFlags::MFD_CLOEXEC).unwrap().into();
        memory.set_len(MEMORY).unwrap();
        let mut guest = Self { bench, stream, memory, _site: site };
        guest.begin();
        guest
    }

    fn say(&mut self, kind: u32, body: &[u64], file: Option<&OwnedFd>) {
        let body: Vec<u8> = body.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let head = [kind, 1, body.len() as u32].into_iter().flat_map(u32::to_ne_bytes);
        let bytes: Vec<u8> = head.chain(body).collect();
        let files: Vec<_> = file.iter().map(|file| file.as_raw_fd()).collect();
        let beside = [ControlMessage::ScmRights(&files)];
        let beside = if files.is_empty() { &[] } else { beside.as_slice() };
        let socket = self.stream.as_raw_fd();
        sendmsg::<()>(socket, &[IoSlice::new(&bytes)], beside, MsgFlags::empty(), None).unwrap();
        self.bench.pass(MILLISECOND);
    }

    fn begin(&mut self) {
        let memory = self.memory.as_fd().try_clone_to_owned().unwrap();
        self.say(SET_FEATURES, &[1 << 32 | 1 << 9], None);
        self.say(SET_MEM_TABLE, &[1, 0, MEMORY, 0, 0], Some(&memory));
        self.say(SET_VRING_NUM, &[16 << 32], None);
        self.say(SET_VRING_ADDR, &[0, TABLE, USED, AVAILABLE, 0], None);
        let kick = EventFd::new().unwrap().into();
        self.say(SET_VRING_KICK, &[0], Some(&kick));
        let descriptors: [(u64, u32, u16, u16); 3] =
            [(HEAD, 16, 1, 1), (DATA, 4096, 3, 2), (STATUS, 1, 2, 0)];
        for (place, (at, bytes, flags, next)) in (0..).zip(descriptors) {
            let [rest, more] = [flags, next].map(u64::from);
            let word = u64::from(bytes) | rest << 32 | more << 48;
            self.put(TABLE + 16 * place, &[at.to_ne_bytes(), word.to_ne_bytes()].concat());
        }
        self.put(STATUS, &[0xff]);
        self.put(DATA, &[1; 4096]);
        self.put(AVAILABLE + 2, &1_u16.to_ne_bytes());
        self.bench.pass(MILLISECOND);
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).unwrap();
    }

    /// A byte of its memory; data are all the same.
    fn get(&self, at: u64) -> u8 {
        let mut bytes = [0; 4096];
        self.memory.read_exact_at(&mut bytes, at).unwrap();
        assert!(at != DATA || bytes.iter().all(|byte| *byte == bytes[0]));
        bytes[0]
    }

    /// Whether it was told that its request is over.
    fn is_told(&self) -> bool {
        self.get(USED + 2) == 1
    }

    fn wait(&mut self, ns: u64) {
        let until = self.bench.now + ns;
        while self.bench.now < until {
            self.bench.pass(100 * MILLISECOND);
        }
    }

    fn hears(&mut self) -> bool {
        self.stream.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0)
    }
}

#[test]
fn a_request_whose_memory_the_kernel_has_is_answered_when_it_comes_back() {
    let mut guest = Guest::new(Some(512));
    guest.wait(GUEST_NS + 5 * SECOND);
    assert!(!guest.is_told() && guest.get(DATA) == 1, "aborted, and not recalled: it waits");
    assert_eq!(guest.bench.machine.counters().vdisks[0].rare.get().aborts, 1);
    // Others are served all the while.
    guest.bench.clients[1].ask((0, 0), 0, 512, &[]);
    assert_eq!(guest.bench.answer(1).error, 0);
    guest.bench.medium().silent.clear();
    guest.wait(10 * SECOND);
    assert!(guest.is_told());
    guest.put(DATA, &[7; 4096]);
    guest.wait(GUEST_NS);
    assert_eq!(guest.get(DATA), 7, "it is the guest's again");
    assert!(guest.bench.machine.hands.lost.is_empty(), "its path is back");
}

#[test]
fn a_ring_stops_and_a_device_is_reset_when_no_memory_is_lent_any_more() {
    for (message, body) in [(GET_VRING_BASE, &[0][..]), (RESET_DEVICE, &[])] {
        let mut guest = Guest::new(Some(512));
        // A reset is answered where that is asked for: here by the ring that can be stopped again.
        guest.say(message, body, None);
        guest.wait(GUEST_NS + 5 * SECOND);
        guest.say(GET_VRING_BASE, &[0], None);
        guest.wait(SECOND);
        assert!(!guest.hears() && guest.get(DATA) == 1);
        guest.bench.medium().silent.clear();
        guest.wait(10 * SECOND);
        assert!(guest.hears());
        guest.put(DATA, &[7; 4096]);
        guest.wait(GUEST_NS);
        assert_eq!(guest.get(DATA), 7);
    }
}

#[test]
fn with_buffers_of_the_daemon_memory_is_free_when_a_request_is_given_up() {
    let mut guest = Guest::new(None);
    guest.wait(GUEST_NS + 5 * SECOND);
    assert!(guest.is_told());
    assert_eq!((guest.get(STATUS), guest.get(DATA)), (1, 1), "it has failed");
    guest.bench.medium().silent.clear();
    guest.wait(GUEST_NS);
    assert_eq!(guest.get(DATA), 1, "what comes later is not the guest's");
}

#[test]
fn memory_that_is_lent_is_read_into_without_a_copy() {
    let mut guest = Guest::new(Some(512));
    guest.bench.medium().silent.clear();
    guest.wait(SECOND);
    assert!(guest.is_told());
    assert_eq!((guest.get(STATUS), guest.get(DATA)), (0, 9));
}
