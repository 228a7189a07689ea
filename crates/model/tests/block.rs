//! The block layer of a guest: nothing is lost, doubled or moved, whatever comes; and the rules of Linux.

use std::collections::{BTreeMap, BTreeSet};

use counters::{Op, Time};
use model::{Block, BlockConfig, Io, IoScheduler};
use proptest::prelude::*;

const KB: u32 = 1 << 10;

fn config(scheduler: IoScheduler) -> BlockConfig {
    BlockConfig { scheduler, requests_max: 256, bytes_max: 512 * KB, merges: true, batch: 1 }
}

fn io(op: Op, lba: u64, bytes: u32, tag: u32) -> Io {
    Io { op, lba, bytes, waited_ns: 0, tag }
}

/// Lets out what a disk takes: what each command is.
fn dispatched(block: &mut Block, now: Time, depth: u32) -> Vec<(Op, u64, u32)> {
    let next = || block.dispatch(now, depth).map(|(_, sent, _)| (sent.op, sent.lba, sent.bytes));
    std::iter::from_fn(next).collect()
}

#[test]
fn what_waits_takes_in_what_is_adjacent_on_either_side_and_no_more_than_a_command_holds() {
    for scheduler in [IoScheduler::None, IoScheduler::MqDeadline] {
        let mut block = Block::new(config(scheduler));
        let sizes = [(100, 4), (108, 256), (92, 4), (620, 252), (1124, 4), (108, 4)];
        for (tag, (lba, kb)) in (0..).zip(sizes) {
            block.submit(Time::ZERO, &io(Op::Read, lba, kb * KB, tag));
        }
        block.submit(Time::ZERO, &io(Op::Write, 1132, 4 * KB, 6));
        let mut sent = dispatched(&mut block, Time(5), 64);
        sent.sort_unstable_by_key(|(_, lba, _)| *lba);
        let expected = [
            (Op::Read, 92, 264 * KB),
            (Op::Read, 108, 4 * KB),
            (Op::Read, 620, 256 * KB),
            (Op::Write, 1132, 4 * KB),
        ];
        assert_eq!(sent, expected, "{scheduler:?}");
        assert_eq!(block.merged(), 3, "{scheduler:?}");
    }
}

/// `none` looks at the eight newest of its software queue; `mq-deadline` finds any.
#[test]
fn how_far_is_looked_for_a_neighbour_is_the_schedulers() {
    for (scheduler, merged) in [(IoScheduler::None, 0), (IoScheduler::MqDeadline, 1)] {
        let mut block = Block::new(config(scheduler));
        for tag in 0..9 {
            block.submit(Time::ZERO, &io(Op::Read, 1_000 * u64::from(tag), 4 * KB, tag));
        }
        block.submit(Time::ZERO, &io(Op::Read, 8, 4 * KB, 9));
        assert_eq!(block.merged(), merged, "{scheduler:?}");
    }
}

#[test]
fn more_than_its_requests_are_not_there_for_the_scheduler() {
    let small = BlockConfig { requests_max: 4, ..config(IoScheduler::MqDeadline) };
    let mut block = Block::new(small);
    for tag in 0..6 {
        block.submit(Time::ZERO, &io(Op::Read, 1_000 * u64::from(9 - tag), 4 * KB, tag));
    }
    // Of those that were let in; the other two would come first by their place.
    assert_eq!(dispatched(&mut block, Time::ZERO, 64).len(), 4);
    assert_eq!(block.waiting().now(), 2);
    assert_eq!(block.complete(0), [0]);
    assert_eq!(dispatched(&mut block, Time::ZERO, 64), [(Op::Read, 5_000, 4 * KB)]);
    assert_eq!(block.give_up(Time::ZERO).map(|(_, sent, _)| sent.lba), Some(4_000));
    assert!(block.give_up(Time::ZERO).is_none());
}

/// Two batches of reads go before one of writes; a write that has expired is the first of its batch.
#[test]
fn reads_go_before_writes_and_none_waits_for_good() {
    let mut block = Block::new(config(IoScheduler::MqDeadline));
    block.submit(Time::ZERO, &io(Op::Write, 9_000_000, 4 * KB, 0));
    for tag in 1..100 {
        let op = if tag < 60 { Op::Read } else { Op::Write };
        block.submit(Time(1), &io(op, 1_000 * u64::from(tag), 4 * KB, tag));
    }
    let sent = dispatched(&mut block, Time(2), 48);
    assert!(sent[..32].iter().all(|(op, ..)| *op == Op::Read));
    assert_eq!(sent[32], (Op::Write, 9_000_000, 4 * KB), "the first one is the oldest");
    // Nothing is behind the oldest one by place: the batch ends with it, and reads have two turns again.
    assert!(sent[33..].iter().all(|(op, ..)| *op == Op::Read));
}

proptest! {
    /// Each I/O ends once, when all of its sectors have been sent, as what it is; no command is larger
    /// than it may be, and no more are under way than the disk takes.
    #[test]
    fn each_io_ends_once_and_is_sent_as_it_came(
        deadline: bool, merges: bool, requests_max in 4_u32..32, kb in 4_u32..64, batch in 1_u32..20, depth in 1_u32..16,
        ios in prop::collection::vec((0_u64..4_096, 1_u32..400, 0_u8..3, any::<bool>(), 0_u8..4), 1..200),
    ) {
        let scheduler = if deadline { IoScheduler::MqDeadline } else { IoScheduler::None };
        let mut block = Block::new(BlockConfig { scheduler, requests_max, bytes_max: kb * KB, merges, batch });
        let (mut left, mut wanted, mut sent) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        let (mut under_way, mut now) = (Vec::new(), Time::ZERO);
        let add = |map: &mut BTreeMap<(u8, u64), u32>, op: Op, lba: u64, bytes: u32| {
            let op = match op { Op::Read => 0, Op::Write => 1, _ => 2 };
            (lba..lba + u64::from(bytes / 512)).for_each(|at| *map.entry((op, at)).or_default() += 1);
        };
        for (tag, (lba, sectors, op, is_over, ends)) in (0..).zip(ios) {
            now = now + 1_000_000;
            let op = [Op::Read, Op::Write, Op::WriteFua][usize::from(op)];
            left.insert(tag);
            add(&mut wanted, op, lba, sectors * 512);
            block.submit(now, &io(op, lba, sectors * 512, tag));
            if is_over {
                block.unplug();
            }
            while let Some((slot, request, waited_ns)) = block.dispatch(now, depth) {
                prop_assert!(request.bytes <= kb * KB || request.op == Op::WriteFua);
                prop_assert!(waited_ns <= now.0);
                add(&mut sent, request.op, request.lba, request.bytes);
                under_way.push(slot);
            }
            prop_assert!(under_way.len() <= depth as usize);
            for _ in 0..ends.min(under_way.len() as u8) {
                for tag in block.complete(under_way.remove(0)) {
                    prop_assert!(left.remove(&tag));
                }
            }
        }
        while let Some((slot, request, _)) = block.give_up(now) {
            add(&mut sent, request.op, request.lba, request.bytes);
            under_way.push(slot);
        }
        for slot in under_way {
            block.complete(slot).iter().for_each(|tag| assert!(left.remove(tag)));
        }
        prop_assert!(left.is_empty());
        prop_assert_eq!(block.waiting().now(), 0);
        prop_assert_eq!(sent, wanted);
    }
}
