//! What a front end knows of a virtual disk, and what it asks of it.

use std::path::PathBuf;

use counters::{Op, VdiskId};

use crate::buffer::Data;

/// A virtual disk as clients see it.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    /// The name that they ask for.
    pub(crate) name: String,
    /// Which virtual disk of the host it is.
    pub(crate) vdisk: VdiskId,
    /// The component that it belongs to.
    pub(crate) component: usize,
    /// Its size.
    pub(crate) bytes: u64,
    /// What is not whole blocks of so many bytes takes longer.
    pub(crate) block: u32,
    /// What a discard gives back is whole blocks of so many bytes, a power of two; `block` at least.
    pub(crate) frees: u32,
    /// Whether nothing may be written.
    pub(crate) read_only: bool,
    /// What a guest's memory has to be multiples of to be read and written without a copy: a power of
    /// two; nothing where data are copied in any case.
    pub(crate) lends: Option<u32>,
    /// The socket of its own at which it is served by vhost-user; nothing where it is by NBD.
    pub(crate) socket: Option<PathBuf>,
}

impl Export {
    /// Whether a range does not go beyond its end.
    pub(crate) fn reaches(&self, at: u64, bytes: u32) -> bool {
        at.checked_add(bytes.into()).is_some_and(|end| end <= self.bytes)
    }
}

/// What a guest asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    /// What the front end knows it by.
    pub(crate) cookie: u64,
    /// What it is.
    pub(crate) verb: Verb,
    /// Where it begins, in bytes of the disk.
    pub(crate) at: u64,
    /// How many bytes it is about.
    pub(crate) bytes: u32,
    /// What is to be written, or where to what is read.
    pub(crate) buffer: Option<Data>,
}

impl Asked {
    /// Nothing yet.
    pub(crate) const NOTHING: Self =
        Self { cookie: 0, verb: Verb::Map { one: false }, at: 0, bytes: 0, buffer: None };
}

/// What a guest wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// An I/O, which goes through the stack.
    Io {
        /// What it does.
        op: Op,
        /// Of a discard or of zeroes: whether it is to be durable when it completes.
        fua: bool,
        /// Of zeroes: whether the space stays taken.
        keeps_space: bool,
    },
    /// Which parts are allocated: asked of the back end alone. `one` is enough.
    Map {
        /// Whether the first one is enough.
        one: bool,
    },
}

impl Verb {
    /// Whether it is an I/O that reads.
    pub(crate) const fn is_read(self) -> bool {
        matches!(self, Self::Io { op: Op::Read, .. })
    }
}

/// A part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) bytes: u32,
    /// Nothing is stored there, and it reads as zeroes.
    pub(crate) is_hole: bool,
}
