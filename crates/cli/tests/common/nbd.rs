//! A small client of NBD for the tests, which says also what no good client says.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const CACHE: u16 = 5;
pub(crate) const WRITE_ZEROES: u16 = 6;
pub(crate) const BLOCK_STATUS: u16 = 7;
pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;

pub(crate) const EIO: u32 = 5;
pub(crate) const EPERM: u32 = 1;
pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOSPC: u32 = 28;

/// A request is this long at most in a test; a daemon that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    structured: bool,
    next: u64,
}

/// A reply: the cookie, an error or 0, and the data.
pub(crate) struct Reply {
    pub(crate) cookie: u64,
    pub(crate) error: u32,
    pub(crate) data: Vec<u8>,
}

impl Client {
    /// Connects and is greeted.
    pub(crate) fn greeted(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the daemon listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut client = Self { stream, structured: false, next: 0 };
        assert_eq!(&client.take::<18>()[..16], b"NBDMAGICIHAVEOPT");
        client.send(&3_u32.to_be_bytes());
        client
    }

    /// A client that is on an export.
    pub(crate) fn on(socket: &Path, export: &str, structured: bool) -> Self {
        let mut client = Self::greeted(socket);
        if structured {
            assert_eq!(client.option(8, b""), [(1, vec![])]);
            let context = [text(export), 1_u32.to_be_bytes().into(), text("base:allocation")];
            assert_eq!(client.option(10, &context.concat()).len(), 2);
            client.structured = true;
        }
        let asked = [text(export), 0_u16.to_be_bytes().into()].concat();
        let replies = client.option(7, &asked);
        assert_eq!(replies.last().map(|reply| reply.0), Some(1), "{replies:?}");
        client
    }

    /// The same connection once more, for another thread.
    pub(crate) fn again(other: &Self) -> Self {
        let stream = other.stream.try_clone().expect("a descriptor");
        Self { stream, structured: other.structured, next: other.next }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the daemon takes it");
    }

    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).expect("the daemon answers");
        bytes
    }

    fn number(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("the daemon answers");
        bytes
    }

    /// Sends an option; its replies, up to an acknowledgement or an error.
    pub(crate) fn option(&mut self, option: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.send(&[b"IHAVEOPT".as_slice(), &option.to_be_bytes()].concat());
        self.send(&[&(data.len() as u32).to_be_bytes(), data].concat());
        let mut replies = Vec::new();
        loop {
            assert_eq!(u64::from_be_bytes(self.take()), 0x0003_e889_0455_65a9);
            assert_eq!(self.number(), option);
            let (kind, length) = (self.number(), self.number());
            replies.push((kind, self.bytes(length as usize)));
            if kind == 1 || kind >= 1 << 31 {
                return replies;
            }
        }
    }

    /// Sends a request; its cookie.
    pub(crate) fn ask(&mut self, flags: u16, kind: u16, at: u64, length: u32, data: &[u8]) -> u64 {
        let cookie = self.next;
        self.try_ask((flags, kind), at, length, data).expect("the daemon takes it");
        cookie
    }

    /// The same where the daemon may be gone.
    pub(crate) fn try_ask(
        &mut self,
        (flags, kind): (u16, u16),
        at: u64,
        length: u32,
        data: &[u8],
    ) -> io::Result<()> {
        let head = [
            [0x25, 0x60, 0x95, 0x13].as_slice(),
            &flags.to_be_bytes(),
            &kind.to_be_bytes(),
            &self.next.to_be_bytes(),
            &at.to_be_bytes(),
            &length.to_be_bytes(),
            data,
        ];
        self.next += 1;
        self.stream.write_all(&head.concat())
    }

    /// The next reply; `read` says how many bytes a simple one brings.
    pub(crate) fn reply(&mut self, read: usize) -> Reply {
        if !self.structured {
            assert_eq!(self.number(), 0x6744_6698);
            let error = self.number();
            let cookie = u64::from_be_bytes(self.take());
            let data = self.bytes(if error == 0 { read } else { 0 });
            return Reply { cookie, error, data };
        }
        assert_eq!(self.number(), 0x668e_33ef);
        let [done, kind] = [(); 2].map(|()| u16::from_be_bytes(self.take()));
        assert_eq!(done, 1);
        let cookie = u64::from_be_bytes(self.take());
        let length = self.number() as usize;
        let mut data = self.bytes(length);
        let mut error = 0;
        match kind {
            0 => assert!(data.is_empty()),
            1 => drop(data.drain(..8)),
            5 => drop(data.drain(..4)),
            _ => {
                error = u32::from_be_bytes(data[..4].try_into().unwrap());
                data.clear();
            }
        }
        Reply { cookie, error, data }
    }

    /// Asks and waits for the answer: an error or 0, and the data.
    pub(crate) fn call(&mut self, flags: u16, kind: u16, at: u64, length: u32) -> (u32, Vec<u8>) {
        let cookie = self.ask(flags, kind, at, length, &[]);
        let reply = self.reply(if kind == READ { length as usize } else { 0 });
        assert_eq!(reply.cookie, cookie);
        (reply.error, reply.data)
    }

    /// Writes and waits for the answer: an error or 0.
    pub(crate) fn write(&mut self, flags: u16, at: u64, data: &[u8]) -> u32 {
        let cookie = self.ask(flags, WRITE, at, data.len() as u32, data);
        let reply = self.reply(0);
        assert_eq!(reply.cookie, cookie);
        reply.error
    }

    /// Reads what must be there.
    pub(crate) fn read(&mut self, at: u64, length: u32) -> Vec<u8> {
        let (error, data) = self.call(0, READ, at, length);
        assert_eq!(error, 0);
        data
    }

    /// Waits for the daemon to hang up.
    pub(crate) fn was_dropped(mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// A text with its length in front.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}
