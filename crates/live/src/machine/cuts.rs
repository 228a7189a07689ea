//! Power cuts: a writer notes what was acknowledged, the power fails at any moment, and what the disk has
//! then is held against the notes. Killing the daemon would not show a flush that does nothing, because
//! the kernel keeps what was written.

use super::{
    bench::{Answer, Bench},
    *,
};
use crate::{
    executor::medium::{Dice, Medium},
    work::Call,
};

/// So often the power fails.
const CUTS: u64 = 10_000;
/// What a writer fills with one byte: less than a sector, so that there are neighbours in it.
const CELL: u64 = 128;
const CELLS: u64 = 256;
const BYTES: u64 = CELL * CELLS;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const WRITE_ZEROES: u16 = 6;
const FUA: u16 = 1;
const EIO: u32 = 5;

/// What a cell may hold: what was written to it, the last last.
#[derive(Clone, Debug)]
struct Cell {
    values: Vec<u8>,
    /// The last that was acknowledged, and the last that is durable for sure.
    acknowledged: usize,
    durable: usize,
    /// Whether one is under way.
    is_open: bool,
}

/// What was asked.
enum Asked {
    Write {
        from: usize,
        to: usize,
        fua: bool,
    },
    Read {
        from: usize,
        to: usize,
        least: Vec<usize>,
    },
    /// What had been acknowledged then.
    Flush(Vec<usize>),
}

/// A writer and its notes.
struct Writer {
    cells: Vec<Cell>,
    asked: Vec<(u64, Asked)>,
}

impl Cell {
    fn of(value: u8) -> Self {
        Self { values: vec![value], acknowledged: 0, durable: 0, is_open: false }
    }
}

impl Writer {
    fn act(&mut self, bench: &mut Bench, dice: &mut Dice) {
        let client = &mut bench.clients[0];
        let from = dice.roll(CELLS) as usize;
        let to = (from + 1 + dice.roll(24) as usize).min(CELLS as usize);
        let (at, bytes) = (from as u64 * CELL, ((to - from) as u64 * CELL) as u32);
        let fua = dice.roll(4) == 0;
        let what = dice.roll(8);
        let (cookie, asked) = match what {
            0 => {
                let then = self.cells.iter().map(|cell| cell.acknowledged).collect();
                (client.ask((0, FLUSH), 0, 0, &[]), Asked::Flush(then))
            }
            1 => {
                let least = self.cells[from..to].iter().map(|cell| cell.acknowledged).collect();
                (client.ask((0, READ), at, bytes, &[]), Asked::Read { from, to, least })
            }
            // Who writes to one place twice at once gets either.
            _ if self.cells[from..to].iter().any(|cell| cell.is_open) => return,
            _ => {
                let byte = if what == 2 { 0 } else { dice.roll(256) as u8 };
                for cell in &mut self.cells[from..to] {
                    cell.values.push(byte);
                    cell.is_open = true;
                }
                let flags = if fua { FUA } else { 0 };
                let data = if what == 2 { Vec::new() } else { vec![byte; bytes as usize] };
                let kind = if what == 2 { WRITE_ZEROES } else { WRITE };
                (client.ask((flags, kind), at, bytes, &data), Asked::Write { from, to, fua })
            }
        };
        self.asked.push((cookie, asked));
    }

    fn note(&mut self, answer: &Answer) {
        assert_eq!(answer.error, 0);
        let place = self.asked.iter().position(|(cookie, _)| *cookie == answer.cookie);
        match self.asked.swap_remove(place.expect("it was asked")).1 {
            Asked::Write { from, to, fua } => {
                for cell in &mut self.cells[from..to] {
                    cell.acknowledged = cell.values.len() - 1;
                    cell.is_open = false;
                    if fua {
                        cell.durable = cell.acknowledged;
                    }
                }
            }
            Asked::Read { from, to, least } => {
                let found = answer.data.chunks_exact(CELL as usize);
                for ((cell, found), least) in self.cells[from..to].iter().zip(found).zip(least) {
                    assert!(
                        cell.values[least..].contains(&found[0]),
                        "a read of what was not written"
                    );
                }
            }
            Asked::Flush(then) => {
                for (cell, then) in self.cells.iter_mut().zip(then) {
                    cell.durable = cell.durable.max(then);
                }
            }
        }
    }

    /// Holds what is left against the notes; the first cell that lost what was acknowledged.
    fn lost(&self, stored: &[u8]) -> Option<usize> {
        let cells = self.cells.iter().zip(stored.chunks_exact(CELL as usize));
        let is_sound = |(cell, found): (&Cell, &[u8])| {
            let allowed = &cell.values[cell.durable..];
            // A sector is written as a whole, and so is a cell of it.
            found.iter().all(|byte| *byte == found[0]) && allowed.contains(&found[0])
        };
        cells.map(is_sound).position(|is_sound| !is_sound)
    }
}

/// Lives that end with a cut, each on what the one before left: how many there were until something
/// acknowledged was lost.
fn live(cuts: u64, seed: u64, block: u32, lies: bool) -> u64 {
    let mut stored = vec![0; BYTES as usize];
    let mut dice = Dice(seed);
    for cut in 0..cuts {
        let mut medium = Medium::new(dice.roll(u64::MAX >> 11), stored);
        (medium.lies, medium.is_short) = (lies, cut % 3 == 0);
        let cells = medium.stored.chunks_exact(CELL as usize).map(|cell| Cell::of(cell[0]));
        let mut writer = Writer { cells: cells.collect(), asked: Vec::new() };
        let mut bench = Bench::new("", block, BYTES, medium);
        for _ in 0..dice.roll(120) {
            if bench.clients[0].open() < 12 && dice.roll(2) == 0 {
                writer.act(&mut bench, &mut dice);
            }
            bench.pass(MICROSECOND);
            while let Some(answer) = bench.clients[0].answer() {
                writer.note(&answer);
            }
        }
        stored = bench.machine.hands.executor.medium.take().expect("it has one").cut();
        if let Some(cell) = writer.lost(&stored) {
            assert!(lies, "seed {seed}, cut {cut}: cell {cell} has lost what was acknowledged");
            return cut;
        }
    }
    cuts
}

/// Nothing that was acknowledged after a flush or with FUA is lost in a power cut.
#[test]
fn nothing_acknowledged_is_lost_in_a_power_cut() {
    for (seed, block) in [(1, 512), (2, 4096)] {
        assert_eq!(live(CUTS / 2, seed, block, false), CUTS / 2);
    }
}

/// The same test finds a disk that says it has synced and has not.
#[test]
fn a_flush_that_does_nothing_is_found() {
    for seed in 1..=20 {
        assert!(live(50, seed, 512, true) < 50, "seed {seed}");
    }
}

#[test]
fn after_a_flush_that_failed_none_says_success() {
    let medium = Medium::new(7, vec![0; BYTES as usize]);
    let mut bench = Bench::new("", 512, BYTES, medium);
    let ask = |bench: &mut Bench, flags, kind, bytes: u32| {
        let data = vec![1; if kind == WRITE { bytes as usize } else { 0 }];
        bench.clients[0].ask((flags, kind), 0, bytes, &data);
        bench.answer(0).error
    };
    assert_eq!(ask(&mut bench, 0, FLUSH, 0), 0);
    bench.medium().faults.push_back((|call| call == Call::Sync, nix::errno::Errno::EIO));
    assert_eq!(ask(&mut bench, 0, FLUSH, 0), EIO);
    for _ in 0..3 {
        assert_eq!(ask(&mut bench, 0, FLUSH, 0), EIO);
        assert_eq!(ask(&mut bench, FUA, WRITE, 512), EIO);
        assert_eq!(ask(&mut bench, FUA, WRITE_ZEROES, 512), EIO);
        assert_eq!(ask(&mut bench, 0, WRITE, 512), 0);
        assert_eq!(ask(&mut bench, 0, READ, 512), 0);
    }
}

/// What fails is told as what it is, and the next request is served.
#[test]
fn what_a_disk_says_is_what_a_client_is_told() {
    use nix::errno::Errno::{EDQUOT, EFBIG, EINTR, EIO as BROKEN, ENOSPC as FULL, EREMOTEIO};
    const ENOSPC: u32 = 28;
    let medium = Medium::new(7, vec![0; BYTES as usize]);
    let mut bench = Bench::new("", 512, BYTES, medium);
    let is_read = |call: Call| call == Call::Read;
    let is_write = |call: Call| matches!(call, Call::Write { .. });
    let is_hole = |call: Call| matches!(call, Call::Punch);
    type Case = (fn(Call) -> bool, nix::errno::Errno, u16, u64, u32);
    let cases: [Case; 10] = [
        (is_read, BROKEN, READ, 0, EIO),
        (is_read, EREMOTEIO, READ, 0, EIO),
        (is_read, EINTR, READ, 0, 0),
        (is_write, BROKEN, WRITE, 0, EIO),
        (is_write, FULL, WRITE, 0, ENOSPC),
        (is_write, EDQUOT, WRITE, 0, ENOSPC),
        (is_write, EFBIG, WRITE, 0, ENOSPC),
        (is_hole, BROKEN, WRITE_ZEROES, 0, EIO),
        // What is around a write of less than a block cannot be read, or not be written back.
        (is_read, BROKEN, WRITE, 100, EIO),
        (is_write, FULL, WRITE, 100, ENOSPC),
    ];
    for (is_it, error, kind, at, expected) in cases {
        bench.medium().faults.push_back((is_it, error));
        for expected in [expected, 0] {
            let data = vec![1; if kind == WRITE { 512 } else { 0 }];
            bench.clients[0].ask((0, kind), at, 512, &data);
            assert_eq!(bench.answer(0).error, expected, "{error:?}, {kind} at {at}");
        }
    }
}
