//! How a client and the server agree on an export: newstyle, one option after the other.
//!
//! It is a function of the bytes that came: it reads no socket, so that any bytes can be tried on it.

use std::sync::Arc;

use super::wire::{
    ALLOCATION, ALLOCATION_ID, Can, FIXED_NEWSTYLE, GREETING, Info, NO_ZEROES, OPTION_MAGIC,
    OPTION_REPLY_MAGIC, Opt, Rep,
};
use crate::{buffer::BUFFER_MAX, export::Export};

/// Bytes of an option at most: a name has 4,096 at most [NBD], and there are a few of them.
const OPTION_MAX: usize = 64 << 10;
/// Options of a client at most; the longest of those known sends a dozen.
const OPTIONS_MAX: u32 = 1_000;
/// The block size that is best.
const PREFERRED: u32 = 4096;
/// What follows the answer to [`Opt::EXPORT_NAME`] where the client did not do without.
const ZEROES: [u8; 124] = [0; 124];

/// A client and the server before they have agreed.
#[derive(Debug)]
pub(crate) struct Handshake {
    exports: Arc<[Export]>,
    /// What the client said of itself, once it has.
    flags: Option<u32>,
    options: u32,
    structured: bool,
    /// The export of which the client asked for the allocation.
    context: Option<usize>,
}

/// What they have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Which of the exports.
    pub(crate) export: usize,
    /// Whether replies are structured.
    pub(crate) structured: bool,
    /// Whether the client may ask for the allocation.
    pub(crate) context: bool,
}

/// How it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More bytes are needed.
    More,
    /// They have agreed; what follows are requests.
    Agreed(Agreed),
    /// The client is gone, or makes no sense.
    Close,
}

/// An export that a client asks for, and what it wants to know of it.
struct Asked<'a> {
    name: &'a [u8],
    infos: Vec<u16>,
}

impl Handshake {
    /// Greets a client.
    pub(crate) fn new(exports: Arc<[Export]>, out: &mut Vec<u8>) -> Self {
        out.extend(GREETING);
        out.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
        Self { exports, flags: None, options: 0, structured: false, context: None }
    }

    /// Takes one thing that a client has sent from the beginning of `input`, and puts what it is answered
    /// into `out`; how many bytes were taken, none when there is more to come.
    pub(crate) fn take(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        match self.flags {
            None => self.flags(input),
            Some(_) => self.option(input, out),
        }
    }

    fn flags(&mut self, input: &[u8]) -> (usize, Step) {
        let Some(flags) = input.first_chunk() else { return (0, Step::More) };
        let flags = u32::from_be_bytes(*flags);
        self.flags = Some(flags);
        let known = u32::from(FIXED_NEWSTYLE | NO_ZEROES);
        (4, if flags & !known == 0 { Step::More } else { Step::Close })
    }

    fn option(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let Some((head, rest)) = input.split_first_chunk::<16>() else { return (0, Step::More) };
        let [magic @ .., a, b, c, d, e, f, g, h] = *head;
        let option = u32::from_be_bytes([a, b, c, d]);
        let length = u32::from_be_bytes([e, f, g, h]) as usize;
        if u64::from_be_bytes(magic) != OPTION_MAGIC || length > OPTION_MAX {
            return (16, Step::Close);
        }
        let Some(data) = rest.get(..length) else { return (0, Step::More) };
        self.options += 1;
        let step =
            if self.options > OPTIONS_MAX { Step::Close } else { self.answer(option, data, out) };
        (16 + length, step)
    }

    fn answer(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Step {
        match option {
            Opt::EXPORT_NAME => return self.export_name(data, out),
            Opt::ABORT => {
                reply(out, option, Rep::ACK, &[]);
                return Step::Close;
            }
            Opt::LIST if data.is_empty() => {
                for export in self.exports.iter() {
                    let name = export.name.as_bytes();
                    reply(out, option, Rep::SERVER, &[&(name.len() as u32).to_be_bytes(), name]);
                }
                reply(out, option, Rep::ACK, &[]);
            }
            Opt::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                reply(out, option, Rep::ACK, &[]);
            }
            Opt::INFO | Opt::GO => return self.info(option, data, out),
            Opt::LIST_META_CONTEXT | Opt::SET_META_CONTEXT => self.contexts(option, data, out),
            Opt::LIST | Opt::STRUCTURED_REPLY => reply(out, option, Rep::ERR_INVALID, &[]),
            _ => reply(out, option, Rep::ERR_UNSUPPORTED, &[]),
        }
        Step::More
    }

    /// The export of that name; the empty one means the only one.
    fn find(&self, name: &[u8]) -> Option<usize> {
        if name.is_empty() && self.exports.len() == 1 {
            return Some(0);
        }
        self.exports.iter().position(|export| export.name.as_bytes() == name)
    }

    fn agreed(&self, export: usize) -> Step {
        let context = self.structured && self.context == Some(export);
        Step::Agreed(Agreed { export, structured: self.structured, context })
    }

    /// The old way, in which a refusal is the end.
    fn export_name(&self, name: &[u8], out: &mut Vec<u8>) -> Step {
        let Some(index) = self.find(name) else { return Step::Close };
        let export = &self.exports[index];
        out.extend(export.bytes.to_be_bytes());
        out.extend(flags(export, self.structured).to_be_bytes());
        if self.flags.is_some_and(|flags| flags & u32::from(NO_ZEROES) == 0) {
            out.extend(ZEROES);
        }
        self.agreed(index)
    }

    fn info(&self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Step {
        let Some(asked) = Asked::parse(data) else {
            reply(out, option, Rep::ERR_INVALID, &[]);
            return Step::More;
        };
        let Some(index) = self.find(asked.name) else {
            reply(out, option, Rep::ERR_UNKNOWN, &[b"there is no export of that name"]);
            return Step::More;
        };
        let export = &self.exports[index];
        let bytes = export.bytes.to_be_bytes();
        let flags = flags(export, self.structured).to_be_bytes();
        reply(out, option, Rep::INFO, &[&Info::EXPORT.to_be_bytes(), &bytes, &flags]);
        if asked.infos.contains(&Info::NAME) {
            let name = export.name.as_bytes();
            reply(out, option, Rep::INFO, &[&Info::NAME.to_be_bytes(), name]);
        }
        if asked.infos.contains(&Info::BLOCK_SIZE) {
            let sizes = [1, PREFERRED.max(export.frees), BUFFER_MAX as u32];
            let [least, preferred, most] = sizes.map(u32::to_be_bytes);
            let kind = Info::BLOCK_SIZE.to_be_bytes();
            reply(out, option, Rep::INFO, &[&kind, &least, &preferred, &most]);
        }
        reply(out, option, Rep::ACK, &[]);
        if option == Opt::GO { self.agreed(index) } else { Step::More }
    }

    fn contexts(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        let is_set = option == Opt::SET_META_CONTEXT;
        let asked = contexts(data).filter(|_| self.structured);
        let Some((name, queries)) = asked else {
            return reply(out, option, Rep::ERR_INVALID, &[]);
        };
        let Some(export) = self.find(name) else {
            return reply(out, option, Rep::ERR_UNKNOWN, &[]);
        };
        let is_meant = |query: &&[u8]| {
            *query == ALLOCATION.as_bytes() || !is_set && *query == b"base:".as_slice()
        };
        let all = !is_set && queries.is_empty();
        let is_found = all || queries.iter().any(is_meant);
        if is_set {
            self.context = is_found.then_some(export);
        }
        if is_found {
            let id = if is_set { ALLOCATION_ID } else { 0 };
            reply(out, option, Rep::META_CONTEXT, &[&id.to_be_bytes(), ALLOCATION.as_bytes()]);
        }
        reply(out, option, Rep::ACK, &[]);
    }
}

impl<'a> Asked<'a> {
    fn parse(data: &'a [u8]) -> Option<Self> {
        let (name, rest) = text(data)?;
        let (count, rest) = rest.split_first_chunk()?;
        let (infos, []) = rest.as_chunks() else { return None };
        (infos.len() == usize::from(u16::from_be_bytes(*count))).then(|| Self {
            name,
            infos: infos.iter().map(|info| u16::from_be_bytes(*info)).collect(),
        })
    }
}

/// An export, and the contexts that are asked for.
fn contexts(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let (name, rest) = text(data)?;
    let (count, mut rest) = rest.split_first_chunk()?;
    let mut queries = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let query;
        (query, rest) = text(rest)?;
        queries.push(query);
    }
    rest.is_empty().then_some((name, queries))
}

/// A length and so many bytes; what follows.
fn text(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// What an export can do. Several connections see one disk: what has completed on one is seen on all,
/// and a flush on one is for all.
fn flags(export: &Export, structured: bool) -> u16 {
    let always = Can::HAS_FLAGS | Can::FLUSH | Can::FUA | Can::MULTI_CONN | Can::CACHE;
    let writes = if export.read_only { Can::READ_ONLY } else { Can::TRIM | Can::WRITE_ZEROES };
    always | writes | if structured { Can::DF } else { 0 }
}

fn reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    let length: usize = data.iter().map(|part| part.len()).sum();
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend((length as u32).to_be_bytes());
    data.iter().for_each(|part| out.extend(*part));
}
