//! A component and the guest of one of its disks on one thread: what the tests that count an I/O have in common.

use std::{path::Path, thread};

use guest::{Disk, Wish};
use live::{Alone, Extent};

/// What is read at once, and how many are under way.
pub(crate) const BYTES: u32 = 4096;
pub(crate) const DEPTH: u64 = 32;

/// The component, and its disk as the guest has it once they agree.
pub(crate) fn connected(socket: &Path, extent: Extent<'_>, wish: Wish) -> (Alone, Disk) {
    let mut alone = Alone::new(socket, extent).expect("it begins");
    let socket = socket.to_owned();
    let connecting = thread::spawn(move || Disk::connect(&socket, wish));
    while !connecting.is_finished() {
        alone.pass();
        thread::yield_now();
    }
    (alone, connecting.join().expect("it connects").expect("they agree"))
}
