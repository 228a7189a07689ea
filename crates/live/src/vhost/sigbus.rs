//! What becomes of a read or write of memory that a front end has taken away: whoever cuts the file under
//! a mapping would end the whole daemon by SIGBUS.
//!
//! A handler puts memory of zeroes in the place of the mapping and notes that it is torn; the thread goes
//! on, reads zeroes, and finds the note. Seals that forbid to cut a file would be simpler, but QEMU's
//! memory has them only sometimes and that of User-Mode Linux never. The handler looks at a table of fixed
//! size and makes one system call: it allocates nothing and takes no lock.

use std::{
    io,
    sync::{
        Once,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use nix::{
    libc::{self, c_int, c_void, siginfo_t},
    sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
};

/// Mappings of a process at a time.
const PLACES_MAX: usize = 4_096;

/// A mapping; none where it has no bytes.
struct Place {
    taken: AtomicBool,
    start: AtomicUsize,
    bytes: AtomicUsize,
    is_torn: AtomicBool,
}

static PLACES: [Place; PLACES_MAX] = [const { Place::empty() }; PLACES_MAX];

impl Place {
    const fn empty() -> Self {
        Self {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            is_torn: AtomicBool::new(false),
        }
    }

    fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::Acquire)
    }

    fn has(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Relaxed);
        address.wrapping_sub(start) < self.bytes.load(Ordering::Acquire)
    }
}

/// A mapping that may be torn without harm, as long as this lives: it goes before the mapping does.
#[derive(Debug)]
pub(super) struct Guard(usize);

impl Guard {
    /// Guards the mapping of so many bytes at an address.
    pub(super) fn new(start: usize, bytes: usize) -> io::Result<Self> {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(install);
        let place = PLACES.iter().position(Place::take);
        let place = place.ok_or_else(|| io::Error::other("too many regions of memory"))?;
        let Place { start: at, bytes: length, is_torn, .. } = &PLACES[place];
        is_torn.store(false, Ordering::Relaxed);
        at.store(start, Ordering::Relaxed);
        length.store(bytes, Ordering::Release);
        Ok(Self(place))
    }

    /// Whether it was torn, and reads as zeroes since then.
    pub(super) fn is_torn(&self) -> bool {
        PLACES[self.0].is_torn.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        PLACES[self.0].bytes.store(0, Ordering::Relaxed);
        PLACES[self.0].taken.store(false, Ordering::Release);
    }
}

fn install() {
    let flags = SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK;
    let action = SigAction::new(SigHandler::SigAction(mend), flags, SigSet::empty());
    #[expect(unsafe_code, reason = "the compiler does not know what a handler may do")]
    // SAFETY: `mend` looks at atomics and makes system calls.
    let installed = unsafe { sigaction(Signal::SIGBUS, &action) };
    debug_assert!(installed.is_ok(), "{installed:?}");
}

extern "C" fn mend(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
    #[expect(unsafe_code, reason = "the kernel hands out a pointer")]
    // SAFETY: with SA_SIGINFO it is that of the signal at hand.
    let address = unsafe { (*info).si_addr() } as usize;
    let Some(place) = PLACES.iter().find(|place| place.has(address)) else { return fall() };
    let start = place.start.load(Ordering::Relaxed);
    let bytes = place.bytes.load(Ordering::Relaxed);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    #[expect(unsafe_code, reason = "memory is put in the place of other memory")]
    // SAFETY: the mapping that was there is a guarded one, which nothing but volatile accesses read and
    // write; it stays mapped, with other contents.
    let mapped = unsafe { libc::mmap(start as *mut c_void, bytes, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return fall();
    }
    place.is_torn.store(true, Ordering::Relaxed);
}

/// It is none of ours: the access is tried again, and ends the process as it would have.
fn fall() {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    #[expect(unsafe_code, reason = "the compiler does not know what a handler may do")]
    // SAFETY: it is the system's own.
    let _ = unsafe { sigaction(Signal::SIGBUS, &default) };
}
