//! What the daemon allocates: nothing for an I/O of a virtual machine once warm.
#![expect(unsafe_code, reason = "a global allocator that counts cannot be written without it")]

mod beside;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use guest::{Ask, Ring, Shape, Wish};
use live::{Alone, Extent};

use beside::{BYTES, DEPTH, connected};

/// I/Os of each run: all of them together overflow no bucket of a histogram, which takes more memory then.
const IOS: u64 = 7_000;
/// Runs, of which the first is the one that warms; a journal whose thread lags behind takes a frame now and then.
const RUNS: usize = 9;

thread_local! {
    /// Allocations of this thread so far.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting.
struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the counter is a plain cell, which neither allocates
// nor has a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from `alloc`, that is, from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The guest and the component take turns on this thread.
fn work(alone: &mut Alone, ring: &mut Ring) {
    let mut done = 0;
    while done < IOS {
        ring.kick();
        alone.pass();
        while let Some(ended) = ring.poll() {
            assert_eq!(ended.status, 0);
            ring.repeat(done % DEPTH);
            done += 1;
        }
    }
}

#[test]
fn an_io_allocates_nothing_once_warm() {
    let site = tempfile::tempdir().expect("room for a directory");
    let journals = site.path().join("journals");
    for extent in [Extent::Rings, Extent::Whole, Extent::Journalled(&journals, 64 << 20)] {
        let socket = site.path().join("disk");
        let wish = Wish { inflight: false, ..Wish::all(Shape::one_ring(BYTES)) };
        let (mut alone, mut disk) = connected(&socket, extent, wish);
        let ring = &mut disk.rings[0];
        for sector in 0..DEPTH {
            ring.submit(Ask::Read(sector, BYTES));
        }
        let mut run = || {
            let before = ALLOCATIONS.get();
            work(&mut alone, ring);
            ALLOCATIONS.get() - before
        };
        let allocations: Vec<u64> = (0..RUNS).map(|_| run()).collect();
        let warm = &allocations[1..];
        let lags = matches!(extent, Extent::Journalled(..)) && warm.contains(&0);
        let is_nothing = lags || warm.iter().all(|allocations| *allocations == 0);
        assert!(is_nothing, "{extent:?}, {IOS} I/Os a run: {allocations:?}");
    }
}
