//! A component for tests: its clients at the other end of socket pairs, its disks of a test, and the time
//! as it is told.

use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    sync::mpsc::channel,
};

use counters::VdiskId;
use engine::HostConfig;
use scenario::Scenario;

use super::*;
use crate::{
    backend::{FileImage, Image},
    executor::medium::Medium,
    export::Export,
    nbd::Arrived,
};

const FILE: &str = include_str!("bench.toml");

/// A component, and its clients.
pub(super) struct Bench {
    /// What its engine was built from.
    pub(super) config: HostConfig,
    pub(super) machine: Machine,
    pub(super) now: Time,
    pub(super) clients: Vec<Client>,
}

/// A client of NBD that never waits.
pub(super) struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    /// What there was no room for in the socket.
    output: Vec<u8>,
    next: u64,
    /// What it has asked, and how much each reads.
    open: Vec<(u64, usize)>,
}

/// An answer: what was asked, the error or 0, and the data.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) cookie: u64,
    pub(super) error: u32,
    pub(super) data: Vec<u8>,
}

impl Bench {
    /// A component of two disks of so many bytes that are one behind the other on a medium, each with an
    /// image and a client of its own; `adapter` is more of what the file says of its adapter.
    pub(super) fn new(adapter: &str, block: u32, bytes: u64, medium: Medium) -> Self {
        let mut none = |_: &str| Err(String::new());
        let text = format!("{FILE}{adapter}");
        let scenario = Scenario::parse_served("h.toml", &text, &mut none).expect("a sound file");
        let config = &scenario.hosts[0].config;
        let disk = |image: usize| {
            let disk = Disk { image, array: None, vm: VmId::new(0) };
            (VdiskId::new(image), disk)
        };
        let disks = config.vdisks.len();
        let part = Part {
            disks: (0..disks).map(disk).collect(),
            images: (0..disks).map(|_| Image::File(FileImage::of_test(bytes, block))).collect(),
            arrays: Vec::new(),
        };
        let executor = |mailbox| Executor::of_medium(medium, mailbox);
        let mut bench = Self::of(config, part, executor);
        bench.clients = (0..disks).map(|disk| bench.client(disk, bytes, block)).collect();
        bench
    }

    /// A component of a host's disks, without clients.
    pub(super) fn of(
        config: &HostConfig,
        part: Part,
        executor: impl FnOnce(Arc<Mailbox>) -> Executor,
    ) -> Self {
        let mailbox = Arc::new(Mailbox::new().expect("an eventfd"));
        let parts = Parts {
            engine: Engine::new(config),
            journal: None,
            first: Vec::new(),
            part,
            more: channel().1,
            executor: executor(Arc::clone(&mailbox)),
            clock: Clock::start(),
            mailbox,
            tell: |_| {},
        };
        let machine = Machine::new(parts).expect("a component");
        Self { config: config.clone(), machine, now: Time::ZERO, clients: Vec::new() }
    }

    /// A client of a disk of so many bytes.
    pub(super) fn client(&self, disk: usize, bytes: u64, block: u32) -> Client {
        let export = |disk: usize| Export {
            name: format!("{disk}"),
            vdisk: VdiskId::new(disk),
            component: 0,
            bytes,
            block,
            frees: block,
            read_only: false,
            lends: None,
            socket: None,
        };
        let exports: Arc<[Export]> = (0..=disk).map(export).collect();
        let (stream, other) = UnixStream::pair().expect("two sockets");
        stream.set_nonblocking(true).expect("a socket");
        other.set_nonblocking(true).expect("a socket");
        let arrived = Arrived::on(disk, exports, other);
        self.machine.mailbox.send(Letter::Guest(Box::new(arrived)));
        Client { stream, input: Vec::new(), output: Vec::new(), next: 0, open: Vec::new() }
    }

    pub(super) fn medium(&mut self) -> &mut Medium {
        self.machine.hands.executor.medium.as_mut().expect("it has one")
    }

    /// A pass, so much later.
    pub(super) fn pass(&mut self, later_ns: u64) {
        self.now = self.now + later_ns;
        self.machine.pass_at(self.now);
        self.machine.engine.check().expect("every invariant holds");
    }

    /// Passes of a microsecond each until a client is answered.
    pub(super) fn answer(&mut self, client: usize) -> Answer {
        for _ in 0..100_000 {
            if let Some(answer) = self.clients[client].answer() {
                return answer;
            }
            self.pass(MICROSECOND);
        }
        panic!("client {client} is not answered");
    }
}

impl Client {
    /// Asks; what it is known by.
    pub(super) fn ask(
        &mut self,
        (flags, kind): (u16, u16),
        at: u64,
        bytes: u32,
        data: &[u8],
    ) -> u64 {
        let cookie = self.next;
        self.next += 1;
        let head = [
            [0x25, 0x60, 0x95, 0x13].as_slice(),
            &flags.to_be_bytes(),
            &kind.to_be_bytes(),
            &cookie.to_be_bytes(),
            &at.to_be_bytes(),
            &bytes.to_be_bytes(),
            data,
        ];
        self.output.extend(head.concat());
        self.send();
        self.open.push((cookie, if kind == 0 { bytes as usize } else { 0 }));
        cookie
    }

    /// Sends what there is room for; whether that was anything.
    pub(super) fn send(&mut self) -> bool {
        let mut sent = 0;
        while sent < self.output.len() {
            match self.stream.write(&self.output[sent..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.output.drain(..sent);
        sent > 0
    }

    /// How many answers are to come.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// The next answer, if it is there.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        let mut more = [0; 64 << 10];
        loop {
            match self.stream.read(&mut more) {
                Ok(0) => panic!("it was hung up on"),
                Ok(read) => self.input.extend(&more[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let head: [u8; 16] = *self.input.first_chunk()?;
        let [_, _, _, _, a, b, c, d, cookie @ ..] = head;
        let (error, cookie) = (u32::from_be_bytes([a, b, c, d]), u64::from_be_bytes(cookie));
        let place = self.open.iter().position(|(open, _)| *open == cookie).expect("answered once");
        let bytes = if error == 0 { self.open[place].1 } else { 0 };
        let data = self.input.get(16..16 + bytes)?.to_vec();
        self.input.drain(..16 + bytes);
        self.open.swap_remove(place);
        Some(Answer { cookie, error, data })
    }
}
