//! Disks with heads and platters: what a command takes depends on where the one before it was
//! (reference `array-and-control.md`, section 7.2).
//!
//! ```text
//!   command = seek + rotation + transfer        seek = s sqrt(distance / disk), rotation = 0 to 1 turn
//!   s is 15/8 of the mean seek: the mean of sqrt(|x - y|) over a whole disk is 8/15
//! ```
//!
//! So commands all over a disk take its mean seek, those in a part f of it sqrt(f) of that, and what goes on
//! a little further on passes under the head without either: a stream costs its transfer, several streams
//! on one disk cost seeks between them.
//!
//! A disk serves its commands in the order of their arrival here, as every station does, and has the
//! shorter ways of an elevator: on one sweep over c places these are 1/(c + 2) of the span apart, one
//! random place is a third of it from the next. It chooses when it begins a command, among those that wait
//! then: of n that are always outstanding n - 1, for the one that ends has been chosen before (so two are
//! "equal to one deep" [MSR-DISK]).

use alloc::{boxed::Box, collections::VecDeque, vec, vec::Vec};
use core::mem;

use counters::{SECOND, Time};

use crate::{
    command::{BLOCK, Command},
    config,
    random::{Random, below_low},
    write_cache::{Piece, Spindles},
};

/// A mean seek at most, and a turn: no disk is that slow, and nothing overflows.
const SEEK_MAX_NS: u64 = SECOND;
const TURN_MAX_NS: u64 = SECOND;
/// Blocks of a disk at most: 4 PiB.
const BLOCKS_MAX: u64 = 1 << 40;
/// Blocks of a stripe unit at most: 1 GiB.
const UNIT_MAX: u64 = 1 << 18;
/// Disks, back-end I/Os of a write, and commands that an elevator has, at most.
const DISKS_MAX: u32 = 1 << 16;
const COPIES_MAX: u32 = 64;
const ELEVATOR_MAX: u32 = 256;

/// The disks behind a RAID.
#[derive(Clone, Debug)]
pub(crate) struct Disks {
    all: Box<[Disk]>,
    /// Disks of a row that hold data, back-end I/Os of a write, and blocks of a stripe unit and of a disk.
    data: u64,
    copies: u64,
    unit: u64,
    blocks: u64,
    /// From one end to the other; [`root`] of a whole disk.
    seek_ns: u64,
    whole: u64,
    turn_ns: u32,
    /// Nanoseconds a byte, with 32 fraction bits.
    byte_ns: u64,
    elevator: usize,
    /// Kept for its room.
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Disk {
    /// When it has served what it accepted, and where its head is then, in blocks.
    free: Time,
    head: u64,
    /// When the last of these are served, as many as the elevator has at most.
    ends: VecDeque<Time>,
}

impl Disks {
    pub(crate) fn new(config: &config::Disks) -> Self {
        let elevator = config.elevator.clamp(1, ELEVATOR_MAX) as usize;
        let disk = Disk { free: Time::ZERO, head: 0, ends: VecDeque::with_capacity(elevator) };
        let blocks = (config.bytes / BLOCK).clamp(1, BLOCKS_MAX);
        Self {
            all: vec![disk; config.disks.clamp(1, DISKS_MAX) as usize].into(),
            data: u64::from(config.data_disks.clamp(1, DISKS_MAX)),
            copies: u64::from(config.write_penalty.clamp(1, COPIES_MAX)),
            unit: (config.stripe_bytes / BLOCK).clamp(1, UNIT_MAX),
            blocks,
            seek_ns: config.seek_ns.min(SEEK_MAX_NS) * 15 / 8,
            whole: root(blocks),
            turn_ns: config.turn_ns.min(TURN_MAX_NS) as u32,
            byte_ns: (SECOND << 32) / config.bytes_per_sec.max(1),
            elevator,
            pieces: Vec::new(),
        }
    }

    fn serve_on(&mut self, disk: usize, arrive: Time, place: u64, bytes: u64, bits: u64) -> Time {
        let disk = &mut self.all[disk];
        while disk.ends.front().is_some_and(|end| *end <= arrive) {
            disk.ends.pop_front();
        }
        // When the one under way has ended those behind it are to choose among, and this one.
        let choice = disk.ends.len().max(1) as u64;
        let way = place.abs_diff(disk.head) * 3 / (choice + 2);
        let sought_ns = self.seek_ns * root(way) / self.whole;
        let mut access_ns = sought_ns + u64::from(below_low(bits, self.turn_ns));
        if place >= disk.head {
            access_ns = access_ns.min(transfer_ns(self.byte_ns, (place - disk.head) * BLOCK));
        }
        disk.head = place + bytes / BLOCK;
        disk.free = disk.free.max(arrive) + access_ns + transfer_ns(self.byte_ns, bytes);
        if disk.ends.len() == self.elevator {
            disk.ends.pop_front();
        }
        if self.elevator > 1 {
            disk.ends.push_back(disk.free);
        }
        disk.free
    }
}

impl Spindles for Disks {
    fn serve(&mut self, arrive: Time, command: &Command, random: &mut Random) -> Time {
        let mut pieces = mem::take(&mut self.pieces);
        self.cut(command, random, &mut pieces);
        let done = pieces.drain(..).map(|piece| self.work(arrive, &piece, random)).max();
        self.pieces = pieces;
        done.unwrap_or(arrive)
    }

    fn count(&self) -> usize {
        self.all.len()
    }

    fn free(&self, disk: usize) -> Time {
        self.all[disk].free
    }

    fn work(&mut self, at: Time, piece: &Piece, random: &mut Random) -> Time {
        self.serve_on(piece.spindle, at, piece.place, piece.bytes, random.bits())
    }

    fn cut(&self, command: &Command, _random: &mut Random, pieces: &mut Vec<Piece>) {
        let Command { op, block, bytes, .. } = *command;
        let mut left = if op.moves_data() { u64::from(bytes) } else { 0 };
        let is_write = command.is_write();
        let copies = if is_write { self.copies } else { 1 };
        let mut whole = block;
        let mut block = block % (self.blocks * self.data);
        let disks = self.all.len() as u64;
        // Of more than a row each disk has its part in one piece.
        let is_long = left > disks * self.unit * BLOCK;
        let each = left.div_ceil(disks);
        loop {
            let unit = block / self.unit;
            let room = self.unit - block % self.unit;
            let part = left.min(if is_long { each } else { room * BLOCK });
            let place = (unit / self.data * self.unit + block % self.unit) % self.blocks;
            for copy in 0..copies {
                let spindle = ((unit + copy) % disks) as usize;
                let kept = if copy == 0 { part } else { 0 };
                pieces.push(Piece { spindle, place, block: whole, bytes: part, is_write, kept });
            }
            left -= part;
            whole = whole.wrapping_add(part.div_ceil(BLOCK));
            if left == 0 {
                return;
            }
            block += room;
        }
    }
}

/// The square root of a number of blocks, with 10 fraction bits.
const fn root(blocks: u64) -> u64 {
    (blocks << 20).isqrt()
}

fn transfer_ns(byte_ns: u64, bytes: u64) -> u64 {
    ((u128::from(bytes) * u128::from(byte_ns)) >> 32) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::{MICROSECOND, MILLISECOND, Op};

    /// A disk of 146 GiB at 15,000 turns a minute, and so many of them.
    fn disks(disks: u32, elevator: u32) -> Disks {
        Disks::new(&config::Disks {
            disks,
            data_disks: disks,
            bytes: 146 << 30,
            turn_ns: 4 * MILLISECOND,
            seek_ns: 3_500 * MICROSECOND,
            bytes_per_sec: 100_000_000,
            stripe_bytes: 64 << 10,
            elevator,
            write_penalty: 1,
            write_cache: None,
        })
    }

    /// The mean time of random reads of which `waiting` arrive at a time.
    fn mean_us(disks: &mut Disks, waiting: u32, span: u64, bytes: u32) -> u64 {
        let (mut random, mut now, mut busy_ns, count) = (Random::new(3), Time::ZERO, 0, 20_000);
        let reads = (0..count).map(|_| crate::random::below(random.bits(), span / BLOCK));
        let places: Vec<u64> = reads.collect();
        for together in places.chunks(waiting as usize) {
            now = now + 100 * SECOND;
            let ends = together.iter().map(|block| {
                let command =
                    Command { volume: 0, host: 0, path: 0, op: Op::Read, block: *block, bytes };
                disks.serve(now, &command, &mut random)
            });
            busy_ns += ends.last().unwrap_or(now).since(now);
        }
        busy_ns / count / MICROSECOND
    }

    /// Half a turn, the mean seek times the root of the span's part of the disk, and the transfer.
    #[test]
    fn a_random_read_takes_its_seek_half_a_turn_and_its_transfer() {
        for (span, bytes, expected) in [
            (146 << 30, 4096, 2_000 + 3_500 + 41),
            (146 << 28, 4096, 2_000 + 1_750 + 41),
            (146 << 26, 4096, 2_000 + 875 + 41),
            (146 << 30, 64 << 10, 2_000 + 3_500 + 655),
        ] {
            // A place of 64 KiB may be of two stripe units, which lie behind each other on a single disk.
            let found = mean_us(&mut disks(1, 1), 1, span, bytes);
            assert!(
                found.abs_diff(expected) <= expected / 50,
                "{span} {bytes}: {found} for {expected}"
            );
        }
    }

    /// Of c that wait the ways are 3/(c + 2) as long, and the seeks the root of that.
    #[test]
    fn an_elevator_shortens_the_seeks_of_what_waits() {
        let alone = mean_us(&mut disks(1, 1), 1_000, 146 << 30, 4096);
        let four = mean_us(&mut disks(1, 4), 1_000, 146 << 30, 4096);
        let sixteen = mean_us(&mut disks(1, 16), 1_000, 146 << 30, 4096);
        for (found, expected) in [(alone, 5_541), (four, 4_516), (sixteen, 3_470)] {
            assert!(found.abs_diff(expected) <= expected / 50, "{found} for {expected}");
        }
    }

    #[test]
    fn a_stream_costs_its_transfer_and_two_streams_cost_seeks() {
        let mut random = Random::new(1);
        let mut read = |disks: &mut Disks, block: u64| {
            let command =
                Command { volume: 0, host: 0, path: 0, op: Op::Read, block, bytes: 65_536 };
            disks.serve(Time::ZERO, &command, &mut random)
        };
        let (mut one, mut two) = (disks(1, 1), disks(1, 1));
        let end = (0..1_000).map(|unit| read(&mut one, 16 * unit)).last().unwrap();
        assert_eq!(end.0 / MILLISECOND, 655, "100 MB/s");
        let place = |unit: u64| 16 * (unit / 2) + unit % 2 * (1 << 24);
        let end = (0..1_000).map(|unit| read(&mut two, place(unit))).last().unwrap();
        // 64 of 146 GiB apart: 6.5625 ms x sqrt(64 / 146).
        let each_us = end.0 / 1_000 / MICROSECOND;
        assert!(each_us.abs_diff(2_000 + 4_345 + 655) < 100, "{each_us}");
    }

    #[test]
    fn a_write_goes_to_as_many_disks_as_its_penalty() {
        let mut raid = disks(10, 1);
        raid.copies = 4;
        let command = Command { volume: 0, host: 0, path: 0, op: Op::Write, block: 0, bytes: 4096 };
        raid.serve(Time::ZERO, &command, &mut Random::new(1));
        assert_eq!(raid.all.iter().filter(|disk| disk.free > Time::ZERO).count(), 4);
    }
}
