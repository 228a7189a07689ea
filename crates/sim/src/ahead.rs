//! Looking ahead: where so many events are pending that nothing of what an answer needs is near the core when it comes,
//! the core waits for one line of memory after the other. So what the next events will touch is asked for some events
//! before, one step of the way that leads there with each event that happens:
//!
//! ```text
//!   slot -> event -> record of its command -> virtual disk and path -> device, world, ring; who plays there
//! ```
//!
//! It changes nothing but the time that a run takes.

use counters::IoId;
use engine::Fetch;

use crate::{Watch, host::Host, key::Class, machine::Machine};

/// Bytes that memory is fetched in.
const LINE: usize = 64;

/// The memory of this machine.
struct Memory;

impl Fetch for Memory {
    #[inline(always)]
    fn fetch<T>(&self, it: &T) {
        let first = (&raw const *it).cast::<i8>();
        (0..size_of::<T>()).step_by(LINE).for_each(|line| ask_for(first.wrapping_add(line)));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(
    unsafe_code,
    reason = "the library has no safe function for this; nothing is read, so any address will do"
)]
fn ask_for(line: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
}

/// The library has no function for it.
#[cfg(not(target_arch = "x86_64"))]
fn ask_for(_line: *const i8) {}

impl<W: Watch> Machine<'_, W> {
    /// Looks at one event more of those that come next, and goes one step on with the last that it looked at.
    pub(crate) fn look_ahead(&mut self) {
        let Some(newest) = self.outside.events.look_ahead() else { return };
        Memory.fetch(newest);
        if let Some((host, io)) = self.answer_ahead(1) {
            host.engine.fetch_command(io, &Memory);
        }
        if let Some((host, io)) = self.answer_ahead(2)
            && let Some(disk) = host.engine.fetch_disk(io, &Memory)
        {
            Memory.fetch(&host.seats[disk.index()]);
        }
        if let Some((host, io)) = self.answer_ahead(3)
            && let Some(disk) = host.engine.fetch_device(io, &Memory)
            && let Some(player) = host.seats[disk.index()].first()
        {
            Memory.fetch(&self.players[*player as usize]);
        }
    }

    /// The command, and its host, whose answer was looked at so many events ago.
    fn answer_ahead(&self, ago: usize) -> Option<(&Host, IoId)> {
        let event = self.outside.events.seen(ago)?;
        let is_answer = event.key.class() == Class::Done;
        is_answer
            .then(|| (&self.hosts[event.key.host()], IoId::new(event.key.slot(), event.generation)))
    }
}
