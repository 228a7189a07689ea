//! What NBD has on the wire: numbers, the head of a request, and the heads of replies [NBD].

/// The server's greeting.
pub(crate) const GREETING: &[u8; 16] = b"NBDMAGICIHAVEOPT";
/// What every option begins with.
pub(crate) const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// What every reply to an option begins with.
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// In the greeting, and back from the client: options as they are today.
pub(crate) const FIXED_NEWSTYLE: u16 = 1;
/// The same: no zeroes after the answer to [`Opt::EXPORT_NAME`].
pub(crate) const NO_ZEROES: u16 = 2;

/// Options of a client.
pub(crate) struct Opt;

impl Opt {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub(crate) struct Rep;

impl Rep {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const ERR_UNSUPPORTED: u32 = 0x8000_0001;
    pub(crate) const ERR_INVALID: u32 = 0x8000_0003;
    pub(crate) const ERR_UNKNOWN: u32 = 0x8000_0006;
}

/// What [`Opt::INFO`] and [`Opt::GO`] ask for and are told.
pub(crate) struct Info;

impl Info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// What an export can do.
pub(crate) struct Can;

impl Can {
    pub(crate) const HAS_FLAGS: u16 = 1;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const FLUSH: u16 = 1 << 2;
    pub(crate) const FUA: u16 = 1 << 3;
    pub(crate) const TRIM: u16 = 1 << 5;
    pub(crate) const WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const DF: u16 = 1 << 7;
    pub(crate) const MULTI_CONN: u16 = 1 << 8;
    pub(crate) const CACHE: u16 = 1 << 10;
}

/// Kinds of requests.
pub(crate) struct Cmd;

impl Cmd {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISC: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// Flags of a request.
pub(crate) struct Flag;

impl Flag {
    pub(crate) const FUA: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
}

/// Errors of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Errno {
    Perm = 1,
    Io = 5,
    Invalid = 22,
    NoSpace = 28,
}

/// The one metadata context: which parts of an export are allocated, and which read as zeroes.
pub(crate) const ALLOCATION: &str = "base:allocation";
/// Its number on a connection.
pub(crate) const ALLOCATION_ID: u32 = 1;

/// Bytes of the head of a request.
pub(crate) const REQUEST_HEAD: usize = 28;

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) flags: u16,
    pub(crate) kind: u16,
    /// What the client knows it by.
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

impl Head {
    /// Reads one; `None` is no request.
    pub(crate) fn parse(bytes: &[u8; REQUEST_HEAD]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (flags, rest) = rest.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let (cookie, rest) = rest.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let length = rest.first_chunk()?;
        (u32::from_be_bytes(*magic) == REQUEST_MAGIC).then(|| Self {
            flags: u16::from_be_bytes(*flags),
            kind: u16::from_be_bytes(*kind),
            cookie: u64::from_be_bytes(*cookie),
            offset: u64::from_be_bytes(*offset),
            length: u32::from_be_bytes(*length),
        })
    }
}

/// What comes before the data of a reply, of which there may be none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyHead {
    bytes: [u8; 32],
    len: u8,
}

impl ReplyHead {
    const fn empty() -> Self {
        Self { bytes: [0; 32], len: 0 }
    }

    fn put<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        let from = usize::from(self.len);
        self.bytes[from..from + N].copy_from_slice(&bytes);
        self.len += N as u8;
        self
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// A simple reply; after that of a read come its bytes.
    pub(crate) fn simple(cookie: u64, error: Option<Errno>) -> Self {
        let head = Self::empty().put(SIMPLE_REPLY_MAGIC.to_be_bytes());
        head.put(error.map_or(0, |error| error as u32).to_be_bytes()).put(cookie.to_be_bytes())
    }

    /// The one chunk of a structured reply, with so many bytes in it.
    fn chunk(cookie: u64, kind: u16, bytes: u32) -> Self {
        const DONE: u16 = 1;
        let head = Self::empty().put(STRUCTURED_REPLY_MAGIC.to_be_bytes());
        let head = head.put(DONE.to_be_bytes()).put(kind.to_be_bytes());
        head.put(cookie.to_be_bytes()).put(bytes.to_be_bytes())
    }

    /// All is well, and there is nothing to hand over.
    pub(crate) fn none(cookie: u64) -> Self {
        Self::chunk(cookie, 0, 0)
    }

    /// So many bytes that were read at `offset`.
    pub(crate) fn data(cookie: u64, offset: u64, bytes: u32) -> Self {
        Self::chunk(cookie, 1, bytes + 8).put(offset.to_be_bytes())
    }

    /// Descriptors of the allocation, of so many bytes together.
    pub(crate) fn status(cookie: u64, bytes: u32) -> Self {
        Self::chunk(cookie, 5, bytes + 4).put(ALLOCATION_ID.to_be_bytes())
    }

    /// It failed; without words.
    pub(crate) fn error(cookie: u64, error: Errno) -> Self {
        let head = Self::chunk(cookie, (1 << 15) | 1, 6);
        head.put((error as u32).to_be_bytes()).put(0_u16.to_be_bytes())
    }
}
