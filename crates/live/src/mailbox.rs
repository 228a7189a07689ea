//! What other threads tell that of a component: rarely, and never on the way of an I/O, but where
//! threads make the calls of io_uring.

use std::{
    collections::VecDeque,
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixListener,
    },
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
};

use control::VscsiAct;
use counters::{HostSnapshot, VdiskId};
use engine::{HostConfig, Input};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::{
    export::Extent, nbd::Arrived, socket::SocketFile, vhost::Device, vscsi, work::Returned,
};

/// What is read of a component, or of a host.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) counters: HostSnapshot,
    /// By path whether commands can be sent over it.
    pub(crate) usable: Vec<bool>,
}

/// What a component is told.
#[derive(Debug)]
pub(crate) enum Letter {
    /// A client has agreed on one of its disks.
    Guest(Box<Arrived>),
    /// One of its disks is to be served to virtual machines.
    Disk(Box<Device>),
    /// The socket of such a disk, whose file somebody had removed, made anew.
    Socket(VdiskId, SocketFile, UnixListener),
    /// A call was made.
    Returned(Box<Returned>),
    /// An answer about holes; none where it could not be found out.
    Mapped { guest: u64, cookie: u64, extents: Vec<Extent> },
    /// Somebody wants to read the counters, in the memory of what was read before.
    Counters(Reading, Sender<Reading>),
    /// Somebody wants what `vscsiStats` does, of these disks; what each has counted.
    Vscsi(VscsiAct, Vec<VdiskId>, Sender<Vec<vscsi::Counted>>),
    /// A setting, a part of the host that comes or goes, or what else the engine is to be told.
    Input(Input),
    /// The host has more parts than before: this is all that it is made of, as engines number it.
    More(Arc<HostConfig>),
    /// There are more disks for it, which come by a way of their own.
    Open,
    /// A disk has become as large as this.
    Resize(VdiskId, u64),
    /// Who is on a disk is on another one from now on.
    Move(VdiskId, VdiskId),
    /// Nobody is to have a disk any more: when that is so it is told.
    Close(VdiskId, Sender<()>),
    /// It is to come to its end: what guests have under way is answered, and no more is taken.
    Stop,
}

/// Letters, and the bell that wakes who waits for them.
#[derive(Debug)]
pub(crate) struct Mailbox {
    letters: Mutex<VecDeque<Letter>>,
    bell: EventFd,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Self { letters: Mutex::default(), bell })
    }

    /// Leaves a letter and rings.
    pub(crate) fn send(&self, letter: Letter) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push_back(letter);
        // It cannot but take a 1: its counter has 64 bits, and each reading empties it.
        let _ = self.bell.write(1);
    }

    /// Takes all letters.
    pub(crate) fn take(&self) -> VecDeque<Letter> {
        let _ = self.bell.read();
        std::mem::take(&mut self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
