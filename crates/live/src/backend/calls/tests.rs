//! What calls return, and what becomes of it; the same by io_uring and by threads, on a real file.

use counters::Sense;

use super::*;
use crate::{
    backend::{FileImage, Made},
    buffer::Data,
    executor::medium::{Dice, Medium},
    lent::tests::{Guest, REGION, lend},
    mailbox::{Letter, Mailbox},
};

fn mailbox() -> Arc<Mailbox> {
    Arc::new(Mailbox::new().unwrap())
}

fn image(bytes: u64) -> (tempfile::TempDir, Calls) {
    let directory = tempfile::tempdir().unwrap();
    let opened = FileImage::open(&directory.path().join("i"), Some(bytes), false, false);
    let (image, made) = opened.unwrap();
    made.into_iter().for_each(Made::keep);
    (directory, image.calls)
}

fn work(op: Op, at: u64, bytes: u32) -> Work {
    let io = IoId::new(0, 0);
    Work { io, image: 0, op, at, bytes, buffer: None, fua: false, keeps_space: false }
}

fn filled(byte: u8, bytes: u32, buffers: &mut Buffers) -> Option<Data> {
    let mut buffer = buffers.take(bytes as usize);
    buffer.bytes_mut().fill(byte);
    Some(buffer.into())
}

fn bytes_of(data: &Data) -> Vec<u8> {
    let mut bytes = vec![0; data.len()];
    data.copy_to(0, &mut bytes);
    bytes
}

/// Does a piece of work to its end.
fn done(image: &mut Calls, work: Work, executor: &mut Executor, mailbox: &Mailbox) -> Ended {
    let begun = image.start(work, executor, &mut Buffers::default());
    finish(image, begun, executor, mailbox)
}

fn finish(
    image: &mut Calls,
    mut ended: Option<Ended>,
    executor: &mut Executor,
    mailbox: &Mailbox,
) -> Ended {
    let buffers = &mut Buffers::default();
    while ended.is_none() {
        executor.flush();
        let letters = mailbox.take().into_iter().filter_map(|letter| match letter {
            Letter::Returned(returned) => Some(*returned),
            _ => None,
        });
        let returned: Vec<_> = executor.reap().into_iter().chain(letters).collect();
        for (job, result) in returned {
            ended = image.resume(job, result, executor, buffers);
        }
    }
    ended.unwrap()
}

#[test]
fn both_executors_do_the_same() {
    let buffers = &mut Buffers::default();
    let (ring, threads) = (mailbox(), mailbox());
    for (mut executor, mailbox) in [
        (Executor::new(Arc::clone(&ring)), ring),
        (Executor::of_threads(Arc::clone(&threads)), threads),
    ] {
        let (_directory, mut image) = image(4 << 20);
        let mut do_it = |work| {
            let ended = done(&mut image, work, &mut executor, &mailbox);
            assert_eq!(ended.status, Some(Status::Good));
            ended.buffer
        };
        for op in [Op::Write, Op::WriteFua] {
            let buffer = filled(op as u8, 1 << 20, buffers);
            do_it(Work { buffer, ..work(op, 1 << 20, 1 << 20) });
            do_it(work(Op::Flush, 0, 0));
            let holes = [(Op::Discard, false), (Op::WriteZeroes, false), (Op::WriteZeroes, true)];
            for (at, (hole, keeps_space)) in (0..).zip(holes) {
                let fua = keeps_space;
                let hole = work(hole, (1 << 20) + 8192 * at, 4096);
                do_it(Work { fua, keeps_space, ..hole });
            }
            let buffer = filled(9, 1 << 20, buffers);
            let read = do_it(Work { buffer, ..work(Op::Read, 1 << 20, 1 << 20) }).unwrap();
            let expected =
                |page: usize| if page < 6 && page.is_multiple_of(2) { 0 } else { op as u8 };
            for (page, bytes) in bytes_of(&read).chunks(4096).enumerate() {
                assert!(bytes.iter().all(|byte| *byte == expected(page)), "page {page}");
            }
        }
    }
}

#[test]
fn what_a_guest_lends_is_moved_by_both_executors() {
    let (ring, threads) = (mailbox(), mailbox());
    for (mut executor, mailbox) in [
        (Executor::new(Arc::clone(&ring)), ring),
        (Executor::of_threads(Arc::clone(&threads)), threads),
    ] {
        let (_directory, mut image) = image(1 << 20);
        let mut do_it = |work| {
            let ended = done(&mut image, work, &mut executor, &mailbox);
            assert_eq!(ended.status, Some(Status::Good));
        };
        let guest = Guest::new();
        // Backwards, and the last part across two regions.
        let places = [(8192, 4096), (0, 4096), (REGION - 4096, 8192)];
        let written: Vec<u8> = (0..16_384).map(|at| (at / 512) as u8).collect();
        for (op, parts) in [(Op::Write, places.as_slice()), (Op::WriteFua, &[(16_384, 16_384)])] {
            let lent = lend(&guest, parts);
            lent.copy_from(0, &written);
            let buffer = Some(Data::Lent(lent.clone().into()));
            do_it(Work { buffer, ..work(op, 65_536, 16_384) });
            lent.copy_from(0, &[0xff; 16_384]);
            let buffer = Some(Data::Lent(lent.part(0..8192).into()));
            do_it(Work { buffer, ..work(Op::Read, 65_536, 8192) });
            // Not whole blocks: by a buffer of the executor's.
            let buffer = Some(Data::Lent(lent.part(8192..8300).into()));
            do_it(Work { buffer, ..work(Op::Read, 65_536 + 8192, 108) });
            let mut read = vec![0; 16_384];
            lent.copy_to(0, &mut read);
            assert!(read[..8300] == written[..8300] && read[8300..].iter().all(|b| *b == 0xff));
        }
    }
}

#[test]
fn what_a_call_returns_decides_how_it_goes_on() {
    const MEDIUM: u8 = 3;
    const PROTECT: u8 = 7;
    let durable = Call::Write { durable: true };
    let plain = Call::Write { durable: false };
    let cases = [
        (Op::Read, Call::Read, Ok(4096), Ok(Status::Good)),
        (Op::Read, Call::Read, Ok(512), Err(Call::Read)),
        (Op::Read, Call::Read, Err(Errno::EINTR), Err(Call::Read)),
        (Op::Read, Call::Read, Ok(0), Ok(sense::read_failed())),
        (Op::Read, Call::Read, Err(Errno::EIO), Ok(sense::read_failed())),
        (Op::Write, plain, Ok(0), Ok(sense::write_failed(Errno::EIO))),
        (Op::Write, plain, Err(Errno::ENOSPC), Ok(sense::write_failed(Errno::ENOSPC))),
        (Op::WriteFua, durable, Ok(4096), Ok(Status::Good)),
        (Op::Discard, Call::Punch, Err(Errno::EOPNOTSUPP), Ok(Status::Good)),
        (Op::WriteZeroes, Call::Punch, Err(Errno::EOPNOTSUPP), Err(Call::Zero)),
        (Op::WriteZeroes, Call::Punch, Ok(0), Err(Call::Look)),
        (Op::WriteZeroes, Call::Look, Ok(512), Err(Call::Zero)),
        (Op::WriteZeroes, Call::Look, Ok(4096), Ok(Status::Good)),
        (Op::WriteZeroes, Call::Zero, Err(Errno::EOPNOTSUPP), Err(Call::Fill)),
        (Op::WriteZeroes, Call::Zero, Err(Errno::EIO), Ok(sense::write_failed(Errno::EIO))),
        (Op::Flush, Call::Sync, Ok(0), Ok(Status::Good)),
    ];
    let (_directory, mut image) = image(1 << 20);
    for (op, call, result, expected) in cases {
        let mut job = Job { call, ..Job::new(work(op, 0, 4096), image.file()) };
        let next = match image.next(&mut job, result) {
            Next::Ended(status) => Ok(status.unwrap()),
            Next::Done => Ok(Status::Good),
            Next::Again => Err(job.call),
        };
        assert_eq!(next, expected, "{op:?}, {call:?}, {result:?}");
        assert!(!image.is_lost);
    }
    let key = |status| match status {
        Status::CheckCondition(Sense { key, .. }) => key,
        other => panic!("{other:?}"),
    };
    assert_eq!(key(sense::write_failed(Errno::EDQUOT)), PROTECT);
    assert_eq!(key(sense::read_failed()), MEDIUM);
}

#[test]
fn after_a_sync_that_failed_none_says_success() {
    for call in [Call::Sync, Call::Write { durable: true }] {
        let (_directory, mut image) = image(1 << 20);
        let mut job = Job { call, ..Job::new(work(Op::Flush, 0, 0), image.file()) };
        image.next(&mut job, Err(Errno::EIO));
        let mut executor = Executor::of_threads(mailbox());
        let buffers = &mut Buffers::default();
        for op in [Op::Flush, Op::WriteFua] {
            let buffer = filled(1, 4096, buffers);
            let write = Work { buffer, ..work(op, 0, 4096) };
            let ended = image.start(write, &mut executor, buffers);
            assert_eq!(ended.unwrap().status, Some(sense::write_failed(Errno::EIO)), "{op:?}");
        }
        let zeroes = Work { fua: true, ..work(Op::WriteZeroes, 0, 4096) };
        let mut job = Job { call: Call::Look, ..Job::new(zeroes, image.file()) };
        assert!(matches!(image.next(&mut job, Ok(4096)), Next::Done));
        let next = image.go_on(&mut job, buffers);
        assert!(matches!(next, Next::Ended(Some(Status::CheckCondition(_)))));
    }
}

#[test]
fn zeroes_are_written_where_they_cannot_be_made() {
    let mailbox = mailbox();
    let mut executor = Executor::new(Arc::clone(&mailbox));
    let buffers = &mut Buffers::default();
    let (_directory, mut image) = image(8 << 20);
    let buffer = filled(7, 4 << 20, buffers);
    done(&mut image, Work { buffer, ..work(Op::Write, 0, 4 << 20) }, &mut executor, &mailbox);
    let zeroes = work(Op::WriteZeroes, 4096, 3 << 20);
    let job = Job { call: Call::Zero, ..Job::new(zeroes, image.file()) };
    let refused = Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    let begun = image.resume(job, refused, &mut executor, buffers);
    let ended = finish(&mut image, begun, &mut executor, &mailbox);
    assert_eq!(ended.status, Some(Status::Good));
    let buffer = filled(9, 4 << 20, buffers);
    let read = Work { buffer, ..work(Op::Read, 0, 4 << 20) };
    let read = done(&mut image, read, &mut executor, &mailbox).buffer.unwrap();
    let zeroes = 4096..4096 + (3 << 20);
    let is_right = |(at, byte): (usize, &u8)| *byte == if zeroes.contains(&at) { 0 } else { 7 };
    assert!(bytes_of(&read).iter().enumerate().all(is_right));
}

/// As after a write there, which makes the image as long again.
#[test]
fn zeroes_beyond_the_end_of_an_image_that_was_cut_are_read_again() {
    let (ring, threads) = (mailbox(), mailbox());
    for (mut executor, mailbox) in [
        (Executor::new(Arc::clone(&ring)), ring),
        (Executor::of_threads(Arc::clone(&threads)), threads),
    ] {
        for op in [Op::Write, Op::WriteZeroes] {
            for keeps_space in [false, true] {
                let (_directory, mut image) = image(1 << 20);
                image.file().set_len(64 << 10).unwrap();
                let mut ended = |work| done(&mut image, work, &mut executor, &mailbox);
                let read = || {
                    let buffer = filled(9, 4096, &mut Buffers::default());
                    Work { buffer, ..work(Op::Read, 512 << 10, 4096) }
                };
                assert_eq!(ended(read()).status, Some(sense::read_failed()));
                let buffer = filled(0, 8192, &mut Buffers::default());
                let buffer = buffer.filter(|_| op == Op::Write);
                let zeroes = Work { buffer, keeps_space, ..work(op, 512 << 10, 8192) };
                assert_eq!(ended(zeroes).status, Some(Status::Good));
                let Ended { buffer, status, .. } = ended(read());
                assert_eq!(status, Some(Status::Good), "{op:?}, {keeps_space}");
                assert!(bytes_of(&buffer.unwrap()).iter().all(|byte| *byte == 0));
            }
        }
    }
}

/// Does all of this work at once on a disk that answers in any order; what it holds then, and how each
/// ended.
fn on_medium(seed: u64, block: u32, all: Vec<Work>) -> (Medium, Vec<Ended>) {
    let mut dice = Dice(seed);
    let mut medium = Medium::new(seed, (0..16_384).map(|at| (at / 64) as u8).collect());
    medium.is_short = true;
    let mut executor = Executor::of_medium(medium, mailbox());
    let file = Arc::new(File::open("/dev/null").unwrap());
    let (mut image, mut buffers) = (Calls::new(file, block), Buffers::default());
    let (mut ended, mut all) = (Vec::new(), all.into_iter().rev().collect::<Vec<_>>());
    let count = all.len();
    while ended.len() < count {
        if dice.roll(3) == 0
            && let Some(work) = all.pop()
        {
            ended.extend(image.start(work, &mut executor, &mut buffers));
        }
        if let Some((job, result)) = executor.reap() {
            ended.extend(image.resume(job, result, &mut executor, &mut buffers));
            while let Some(one) = image.wake(&mut executor, &mut buffers) {
                ended.push(one);
            }
        }
    }
    (executor.medium.unwrap(), ended)
}

#[test]
fn what_is_less_than_a_block_changes_nothing_beside_it() {
    for seed in 1..=200 {
        let mut dice = Dice(seed * 77);
        let block = if seed % 2 == 0 { 512 } else { 4096 };
        let mut expected: Vec<u8> = (0..16_384).map(|at| (at / 64) as u8).collect();
        let (mut at, mut all, mut buffers) = (0, Vec::new(), Buffers::default());
        // Neighbours that have no byte in common, all at once.
        while at < 16_384 - 4096 {
            let bytes = 1 + dice.roll(3000);
            let byte = dice.roll(256) as u8;
            let op = [Op::Write, Op::WriteFua, Op::WriteZeroes, Op::Read][dice.roll(4) as usize];
            let buffer =
                if op == Op::WriteZeroes { None } else { filled(byte, bytes as u32, &mut buffers) };
            let io = IoId::new(all.len() as u32, 0);
            all.push(Work {
                io,
                buffer,
                fua: bytes.is_multiple_of(2),
                ..work(op, at, bytes as u32)
            });
            let range = at as usize..(at + bytes) as usize;
            match op {
                Op::Read => {}
                Op::WriteZeroes => expected[range].fill(0),
                _ => expected[range].fill(byte),
            }
            at += bytes + dice.roll(3) * dice.roll(900);
        }
        let (medium, ended) = on_medium(seed, block, all);
        assert!(ended.iter().all(|ended| ended.status == Some(Status::Good)), "seed {seed}");
        assert!(medium.read(0, 16_384) == expected, "seed {seed}");
    }
}

#[test]
fn a_read_of_less_than_a_block_gets_its_part() {
    for (at, bytes) in [(1, 1), (511, 2), (100, 4000), (4095, 4098), (512, 100)] {
        let buffer = filled(0, bytes, &mut Buffers::default());
        let (_, ended) = on_medium(3, 512, vec![Work { buffer, ..work(Op::Read, at, bytes) }]);
        let read = bytes_of(ended[0].buffer.as_ref().unwrap());
        let expected = (at..at + u64::from(bytes)).map(|at| (at / 64) as u8);
        assert!(read.iter().copied().eq(expected), "{bytes} bytes at {at}");
    }
}

#[test]
fn a_discard_gives_back_whole_blocks_alone() {
    let (medium, _) = on_medium(3, 4096, vec![work(Op::Discard, 100, 12_000)]);
    let expected =
        (0..16_384).map(|at| if (4096..8192).contains(&at) { 0 } else { (at / 64) as u8 });
    assert!(medium.read(0, 16_384).into_iter().eq(expected));
    let (_, ended) = on_medium(3, 4096, vec![work(Op::Discard, 100, 5000)]);
    assert_eq!(ended[0].status, Some(Status::Good));
}
