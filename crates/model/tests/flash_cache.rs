//! The read cache of a host: it serves what it holds, and nothing else.

use std::collections::VecDeque;

use counters::Op;
use model::{FlashCache, FlashCacheConfig};
use proptest::prelude::*;

const BLOCK: u32 = 8 << 10;
const SECTORS: u64 = 16;

fn cache(blocks: u32) -> FlashCache {
    FlashCache::new(FlashCacheConfig { blocks, block_bytes: BLOCK })
}

#[test]
fn what_was_read_or_written_is_served_and_writes_are_not() {
    let mut cache = cache(4);
    assert!(!cache.serves(Op::Write, 0, 2 * BLOCK));
    assert!(cache.serves(Op::Read, SECTORS, BLOCK));
    // A part of a block has all of it held [VFRC], and a read is served when all that it touches is.
    assert!(!cache.serves(Op::Read, 2 * SECTORS + 3, 512));
    assert!(cache.serves(Op::Read, 2 * SECTORS, BLOCK));
    assert!(!cache.serves(Op::Read, 2 * SECTORS, 2 * BLOCK));
    assert!(!cache.serves(Op::Flush, 0, 0));
    let mut gone = cache.take();
    assert!(gone.serves(Op::Read, 0, BLOCK));
    assert!(!cache.serves(Op::Read, 0, BLOCK));
}

/// A stream longer than the cache finds nothing; one that fits finds all the second time.
#[test]
fn a_stream_that_does_not_fit_is_never_served() {
    for (blocks, served) in [(99, 0), (100, 100)] {
        let mut cache = cache(blocks);
        let mut pass = || (0..100).filter(|at| cache.serves(Op::Read, at * SECTORS, BLOCK)).count();
        assert_eq!((pass(), pass()), (0, served), "{blocks}");
    }
}

proptest! {
    /// Nothing is served that was not touched before, nor more different blocks in a row than it holds.
    #[test]
    fn it_serves_what_it_holds(
        blocks in 1_u32..40,
        commands in prop::collection::vec((0_u64..100, 1_u32..4, any::<bool>()), 1..400),
    ) {
        let mut cache = cache(blocks);
        let mut touched = VecDeque::new();
        for (block, count, is_read) in commands {
            let op = if is_read { Op::Read } else { Op::Write };
            let all: Vec<_> = (block..block + u64::from(count)).collect();
            let is_served = cache.serves(op, block * SECTORS, count * BLOCK);
            prop_assert!(!is_served || is_read && all.iter().all(|block| touched.contains(block)));
            touched.extend(&all);
        }
        let held = (0..104).filter(|at| cache.clone().serves(Op::Read, at * SECTORS, BLOCK)).count();
        prop_assert!(held <= blocks as usize);
    }
}
