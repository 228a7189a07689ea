//! `kavg serve` as a virtual machine sees it: a front end that others wrote, and rings as a driver fills
//! them.

#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use daemon::Site;
use guest::{Ask, Disk, SECTOR, Shape, Wish, feature};

const MIB: usize = 1 << 20;
const GOOD: u8 = 0;
const FAILED: u8 = 1;
const UNSUPPORTED: u8 = 2;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A disk in memory, one that keeps nothing, and one in an image.
const DISKS: &str = r#"
[datastore.m]
backend = "memory"
[datastore.n]
backend = "null"
[datastore.f]
backend = "file"
directory = "."
[vm.a]
[vm.a.disk."scsi0:0"]
datastore = "m"
size = "64m"
export = "memory"
vhost_user = "memory.sock"
[vm.a.disk."scsi0:1"]
datastore = "n"
size = "64m"
export = "null"
vhost_user = "null.sock"
[vm.b]
[vm.b.disk."scsi0:0"]
datastore = "f"
size = "64m"
export = "file"
vhost_user = "file.sock"
"#;

const SHAPE: Shape = Shape { rings: 1, entries: 128, data: MIB as u32, parts: 1 };

fn socket(site: &Site, disk: &str) -> PathBuf {
    site.path(&format!("{disk}.sock"))
}

/// Connects as a front end that comes again when it is turned away: the one before may not have gone for the daemon
/// while a child of another test has a copy of its socket, until that has become its program.
fn disk(site: &Site, disk: &str, wish: Wish) -> Disk {
    let begun = Instant::now();
    loop {
        match Disk::connect(&socket(site, disk), wish) {
            Err(error) if error.contains("socket is broken") && begun.elapsed() < PATIENCE => {
                thread::yield_now();
            }
            answer => return answer.expect("it is let in"),
        }
    }
}

/// Bytes that tell where they were to be.
fn pattern(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 9) as u8 ^ seed).collect()
}

#[test]
fn a_front_end_is_told_what_there_is() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let path = socket(&site, "memory");
    assert!(daemon.lines[0].starts_with("memory 67108864 vhost-user:"), "{}", daemon.lines[0]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut disk = disk(&site, "memory", Wish::all(SHAPE));
    let all = [feature::FLUSH, feature::MQ, feature::DISCARD, feature::WRITE_ZEROES];
    assert!(all.iter().all(|bit| disk.features & bit != 0), "{:#x}", disk.features);
    assert_eq!(disk.features & (feature::RO | feature::LOG_ALL), 0);
    assert_eq!(disk.bytes().unwrap(), 64 * MIB as u64);
    let config = disk.config().unwrap();
    let word = |at: usize| u32::from_le_bytes(*config[at..].first_chunk().unwrap());
    // seg_max, blk_size, what a discard and zeroes may be.
    assert_eq!([12, 20, 36, 40, 48, 52].map(word), [126, 512, 1 << 21, 1, 1 << 21, 1]);
    assert_eq!((config[32], config[34]), (1, 16), "it caches, and has 16 rings");
    // What a discard gives back of an image is the filesystem's block; of memory whatever is asked for.
    let block = fs::metadata(site.path("b_scsi0-0.img")).unwrap().blksize() as u32;
    let of_file = self::disk(&site, "file", Wish::all(SHAPE)).config().unwrap();
    let alignment = |config: &[u8]| u32::from_le_bytes(*config[44..].first_chunk().unwrap());
    assert_eq!([alignment(&config), alignment(&of_file)], [1, block / 512]);
    assert_eq!(disk.ask(0, Ask::Id).unwrap(), (GOOD, [b"memory".as_slice(), &[0; 14]].concat()));
    daemon.stop();
    assert!(!path.exists());
}

#[test]
fn what_is_written_is_read_on_every_back_end() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let plain = feature::FLUSH | feature::DISCARD | feature::WRITE_ZEROES;
    for (name, features, parts) in [
        ("memory", u64::MAX, 1),
        ("memory", plain, 1),
        ("memory", u64::MAX, 7),
        ("file", u64::MAX, 1),
        ("file", plain, 1),
        ("file", u64::MAX, 100),
    ] {
        let shape = Shape { parts, data: 4 * MIB as u32, ..SHAPE };
        let mut disk = disk(&site, name, Wish { features, ..Wish::all(shape) });
        for (sector, bytes) in [(0, 512), (8, 65_536), (3, 1_024), (65_536, 4 * MIB)] {
            let data = pattern(bytes as u8 ^ parts as u8, bytes);
            assert_eq!(disk.ask(0, Ask::Write(sector, &data)).unwrap().0, GOOD);
            let (status, read) = disk.ask(0, Ask::Read(sector, bytes as u32)).unwrap();
            assert!(status == GOOD && read == data, "{name}: {bytes} bytes at {sector}");
        }
        assert_eq!(disk.ask(0, Ask::Flush).unwrap(), (GOOD, vec![]));
        let data = pattern(9, MIB);
        let (hole, zeroes) = (Ask::Discard(40, 16), Ask::WriteZeroes(40, 16, true));
        for ask in [hole, zeroes, Ask::WriteZeroes(40, 16, false)] {
            assert_eq!(disk.ask(0, Ask::Write(32, &data)).unwrap().0, GOOD);
            assert_eq!(disk.ask(0, ask).unwrap(), (GOOD, vec![]), "{ask:?}");
            let (_, read) = disk.ask(0, Ask::Read(32, MIB as u32)).unwrap();
            assert!(read[..4096] == data[..4096] && read[12_288..] == data[12_288..]);
            assert!(read[4096..12_288].iter().all(|byte| *byte == 0), "{name}: {ask:?}");
        }
    }
    daemon.stop();
}

/// Asks by a ring for so many things, by turns, with so many under way; each is answered once.
fn ask_many(disk: &mut Disk, ring: usize, asks: &[Ask<'_>], depth: usize) -> Vec<u8> {
    let ring = &mut disk.rings[ring];
    let (mut known, mut open) = (vec![None; asks.len()], BTreeMap::new());
    let mut next = asks.iter().enumerate();
    while known.iter().any(Option::is_none) {
        while open.len() < depth
            && ring.room() > 0
            && let Some((index, ask)) = next.next()
        {
            open.insert(ring.submit(*ask), index);
        }
        ring.kick();
        let done = ring.wait(PATIENCE).expect("an answer");
        let index = open.remove(&done.slot).expect("answered once");
        known[index] = Some(done.status);
    }
    known.into_iter().flatten().collect()
}

#[test]
fn many_requests_are_under_way_on_many_rings() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    for name in ["memory", "file", "null"] {
        for features in [u64::MAX, !feature::EVENT_IDX, feature::FLUSH] {
            let shape = Shape { rings: 4, data: 65_536, ..SHAPE };
            let mut disk = disk(&site, name, Wish { features, ..Wish::all(shape) });
            let asks: Vec<_> = (0..300)
                .map(|n| match n % 5 {
                    0 => Ask::Flush,
                    1 => Ask::Id,
                    _ => Ask::Read(n * 8, 4096),
                })
                .collect();
            for ring in 0..4 {
                let statuses = ask_many(&mut disk, ring, &asks, 96);
                assert!(statuses.iter().all(|status| *status == GOOD), "{name}");
            }
            thread::scope(|scope| {
                for ring in &mut disk.rings {
                    scope.spawn(|| {
                        (0..32).for_each(|n| {
                            ring.submit(Ask::Read(n * 8, 65_536));
                        });
                        ring.kick();
                        (0..32).for_each(|_| {
                            assert_eq!(ring.wait(PATIENCE).expect("an answer").status, GOOD);
                        });
                    });
                }
            });
        }
    }
    daemon.stop();
}

#[test]
fn what_cannot_be_done_is_refused_and_the_next_request_is_served() {
    let site =
        Site::new(&DISKS.replace("export = \"null\"", "export = \"null\"\nread_only = true"));
    let _daemon = site.serve(3, &[]);
    let mut disk = disk(&site, "memory", Wish::all(SHAPE));
    let end = 64 * MIB as u64 / SECTOR;
    let range = |sector: u64, sectors: u32, flags: u32| {
        [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
    };
    let (two, secure) = ([range(0, 8, 0), range(8, 8, 0)].concat(), range(0, 8, 1));
    let odd = range(0, 8, 2);
    for (ask, status) in [
        (Ask::Read(end, 512), FAILED),
        (Ask::Read(end - 1, 1_024), FAILED),
        (Ask::Read(u64::MAX, 512), FAILED),
        (Ask::Read(u64::MAX / SECTOR, 512), FAILED),
        (Ask::Read(0, 100), FAILED),
        (Ask::Read(0, 0), FAILED),
        (Ask::Write(end, &[1; 512]), FAILED),
        (Ask::Write(0, &[1; 511]), FAILED),
        (Ask::Discard(end, 8), FAILED),
        (Ask::Discard(0, 0), FAILED),
        (Ask::Discard(0, (1 << 21) + 1), FAILED),
        (Ask::WriteZeroes(0, u32::MAX, true), FAILED),
        (Ask::Other(11, &two, 0), UNSUPPORTED),
        (Ask::Other(11, &secure, 0), UNSUPPORTED),
        (Ask::Other(13, &odd, 0), UNSUPPORTED),
        (Ask::Other(13, &[0; 7], 0), UNSUPPORTED),
        (Ask::Other(99, &[], 64), UNSUPPORTED),
        (Ask::Other(2, &[0; 512], 512), UNSUPPORTED),
    ] {
        let (told, _) = disk.ask(0, ask).expect("an answer");
        assert_eq!(told, status, "{ask:?}");
    }
    assert_eq!(disk.ask(0, Ask::Read(0, 512)).unwrap(), (GOOD, vec![0; 512]));
    let mut disk = self::disk(&site, "null", Wish::all(SHAPE));
    assert_ne!(disk.features & feature::RO, 0);
    assert_eq!(disk.features & (feature::DISCARD | feature::WRITE_ZEROES), 0);
    for ask in [Ask::Write(0, &[1; 512]), Ask::Discard(0, 8), Ask::WriteZeroes(0, 8, true)] {
        assert_eq!(disk.ask(0, ask).unwrap().0, FAILED, "{ask:?}");
    }
    assert_eq!(disk.ask(0, Ask::Read(0, 512)).unwrap().0, GOOD);
}

#[test]
fn a_ring_stops_and_goes_on_with_another_kick() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let mut disk = disk(&site, "file", Wish::all(Shape { rings: 2, ..SHAPE }));
    let data = pattern(7, 4096);
    for round in 0..20_u16 {
        // It is stopped with requests under way, all of which have ended then.
        for n in 0..8 {
            disk.rings[0].submit(Ask::Write(n * 8, &data));
        }
        disk.rings[0].kick();
        let base = disk.stop(0).unwrap();
        while disk.rings[0].poll().is_some() {}
        assert_eq!(base, u32::from(disk.rings[0].seen()), "all that was taken has ended");
        // The other one has not noticed.
        assert_eq!(disk.ask(1, Ask::Read(0, 512)).unwrap().0, GOOD);
        disk.rings[0].new_bells().unwrap();
        if round % 2 == 1 {
            disk.rings[0].reset();
        }
        disk.start(0).unwrap();
        while disk.rings[0].room() < 128 {
            disk.rings[0].wait(PATIENCE).expect("an answer");
        }
        assert_eq!(disk.ask(0, Ask::Read(0, 4096)).unwrap(), (GOOD, data.clone()));
    }
    daemon.stop();
}

#[test]
fn memory_is_handed_over_again_under_load() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let mut disk = disk(&site, "file", Wish::all(SHAPE));
    let data = pattern(3, 65_536);
    for _ in 0..50 {
        for n in 0..16 {
            disk.rings[0].submit(Ask::Write(n * 128, &data));
        }
        disk.rings[0].kick();
        disk.set_memory().unwrap();
        for _ in 0..16 {
            assert_eq!(disk.rings[0].wait(PATIENCE).expect("an answer").status, GOOD);
        }
    }
    disk.add_and_remove_memory().unwrap();
    assert_eq!(disk.ask(0, Ask::Read(128 * 15, 65_536)).unwrap(), (GOOD, data));
    daemon.stop();
}

#[test]
fn a_disk_has_one_front_end_and_the_next_one_begins_anew() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    for round in 0..20 {
        let mut first = disk(&site, "file", Wish::all(SHAPE));
        if round == 0 {
            assert!(Disk::connect(&socket(&site, "file"), Wish::all(SHAPE)).is_err());
        }
        assert_eq!(first.ask(0, Ask::Read(0, 512)).unwrap().0, GOOD);
        // It goes with requests under way.
        for n in 0..64 {
            first.rings[0].submit(Ask::Write(n * 8, &[round; 4096]));
        }
        first.rings[0].kick();
        drop(first);
        let mut second = disk(&site, "file", Wish::all(SHAPE));
        assert_eq!(second.ask(0, Ask::Write(0, &[99; 4096])).unwrap().0, GOOD);
        assert_eq!(second.ask(0, Ask::Read(0, 4096)).unwrap(), (GOOD, vec![99; 4096]));
    }
    daemon.stop();
}

#[test]
fn what_is_under_way_is_answered_before_the_end() {
    let site = Site::new(&DISKS.replace("export = \"memory\"", "export = \"memory\"\nlimit = 200"));
    let daemon = site.serve(3, &[]);
    let mut disk = disk(&site, "memory", Wish::all(SHAPE));
    (0..60).for_each(|n| {
        disk.rings[0].submit(Ask::Read(n, 512));
    });
    disk.rings[0].kick();
    assert_eq!(disk.rings[0].wait(PATIENCE).expect("an answer").status, GOOD);
    daemon.terminate();
    (1..60).for_each(|_| {
        assert_eq!(disk.rings[0].wait(PATIENCE).expect("an answer").status, GOOD);
    });
    assert_eq!(daemon.wait().code(), Some(0));
}

/// A generator of numbers, the same for the same seed.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Whatever is asked for in whatever order, the disk is what it should be.
#[test]
fn a_disk_is_as_its_shadow() {
    const SECTORS: u64 = 2_048;
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    for (seed, name) in (1_u64..).zip(["memory", "file", "memory", "file"]) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let shape = Shape { parts: 1 + 4 * (seed as u16 % 2), ..SHAPE };
        let mut disk = disk(&site, name, Wish::all(shape));
        let mut shadow = vec![0_u8; (SECTORS * SECTOR) as usize];
        assert_eq!(disk.ask(0, Ask::WriteZeroes(0, SECTORS as u32, true)).unwrap().0, GOOD);
        for step in 0..600 {
            let sector = next(&mut state) % SECTORS;
            let sectors = 1 + next(&mut state) % (SECTORS - sector).min(64);
            let at = (sector * SECTOR) as usize..((sector + sectors) * SECTOR) as usize;
            let data = pattern(next(&mut state) as u8, at.len());
            let unmap = next(&mut state).is_multiple_of(2);
            let ask = match next(&mut state) % 6 {
                0 | 1 => Ask::Write(sector, &data),
                2 => Ask::Discard(sector, sectors as u32),
                3 => Ask::WriteZeroes(sector, sectors as u32, unmap),
                4 => Ask::Flush,
                _ => Ask::Read(sector, at.len() as u32),
            };
            let (status, read) = disk.ask(0, ask).unwrap();
            assert_eq!(status, GOOD, "seed {seed}, step {step}: {ask:?}");
            match ask {
                Ask::Write(..) => shadow[at].copy_from_slice(&data),
                Ask::Discard(..) | Ask::WriteZeroes(..) => shadow[at].fill(0),
                Ask::Read(..) => assert!(read == shadow[at], "seed {seed}, step {step}: {ask:?}"),
                _ => {}
            }
        }
        let whole = disk.ask(0, Ask::Read(0, shadow.len() as u32)).unwrap().1;
        assert!(whole == shadow, "seed {seed}");
    }
    daemon.stop();
}

/// Blocks that a writer goes about, and how many of its writes are under way.
const BLOCKS: u64 = 64;
const UNDER_WAY: usize = 16;

/// A writer writes, and the daemon is killed after so many acknowledgements, with others under way. The
/// next one resumes those: each write is answered, once, and what was acknowledged is there.
#[test]
fn a_killed_daemon_resumes_what_was_in_flight() {
    let site = Site::new(DISKS);
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut daemon = site.serve(3, &[]);
    let mut disk = disk(&site, "file", Wish::all(Shape { data: 4096, ..SHAPE }));
    let mut known = vec![0_u8; BLOCKS as usize];
    let mut open: BTreeMap<u16, (usize, u8)> = BTreeMap::new();
    for _ in 0..25 {
        for _ in 0..next(&mut state) % 200 {
            write_more(&mut disk, &mut open, &mut state);
            let done = disk.rings[0].wait(PATIENCE).expect("an answer");
            let (block, byte) = open.remove(&done.slot).expect("answered once");
            assert_eq!(done.status, GOOD);
            known[block] = byte;
        }
        write_more(&mut disk, &mut open, &mut state);
        drop(daemon);
        daemon = site.serve(3, &[]);
        disk.reconnect(&socket(&site, "file")).expect("it is let in again");
    }
    while !open.is_empty() {
        let done = disk.rings[0].wait(PATIENCE).expect("an answer");
        let (block, byte) = open.remove(&done.slot).expect("answered once");
        known[block] = byte;
    }
    assert_eq!(disk.rings[0].poll(), None, "nothing is answered twice");
    for (block, byte) in (0..).zip(&known) {
        let read = disk.ask(0, Ask::Read(block * 8, 4096)).unwrap();
        assert_eq!(read, (GOOD, vec![*byte; 4096]), "block {block}");
    }
    daemon.stop();
}

fn write_more(disk: &mut Disk, open: &mut BTreeMap<u16, (usize, u8)>, state: &mut u64) {
    while open.len() < UNDER_WAY {
        let (block, byte) = ((next(state) % BLOCKS) as usize, next(state) as u8);
        if open.values().any(|(other, _)| *other == block) {
            continue;
        }
        let slot = disk.rings[0].submit(Ask::Write(block as u64 * 8, &[byte; 4096]));
        open.insert(slot, (block, byte));
    }
    disk.rings[0].kick();
}

#[test]
fn a_journal_of_virtual_machines_replays_to_the_same() {
    let site = Site::new(&DISKS.replace("export = \"null\"", "export = \"null\"\nlimit = 5_000"));
    let daemon = site.serve(3, &["--journal", "journals"]);
    for name in ["memory", "file", "null"] {
        let mut disk = disk(&site, name, Wish::all(SHAPE));
        let data = [5; 65_536];
        let asks: Vec<_> = (0..300)
            .map(|n| match n % 5 {
                0 => Ask::Flush,
                1 => Ask::Write(n * 8, &data),
                2 => Ask::Discard(n * 8, 8),
                _ => Ask::Read(n * 8, 4096),
            })
            .collect();
        ask_many(&mut disk, 0, &asks, 100);
        // Others are under way when it goes.
        (0..50).for_each(|n| {
            disk.rings[0].submit(Ask::Read(n * 8, 4096));
        });
        disk.rings[0].kick();
    }
    daemon.stop();
    for journal in fs::read_dir(site.path("journals")).unwrap() {
        let path = journal.unwrap().path();
        let said = Command::new(env!("CARGO_BIN_EXE_kavg")).arg("replay").arg(path).output();
        let said = String::from_utf8(said.unwrap().stdout).unwrap();
        assert!(said.contains("identical, bit for bit: outputs and counters"), "{said}");
    }
}

/// Memory that is cut, chains that make no sense and bytes that are no messages end the work of their own
/// disk alone, and the guest that begins anew is served.
#[test]
fn a_guest_that_makes_no_sense_breaks_its_own_disk_alone() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let mut good = disk(&site, "memory", Wish::all(SHAPE));
    assert_eq!(good.ask(0, Ask::Write(0, &pattern(3, 4096))).unwrap().0, GOOD);
    let descriptor = |at: u64, bytes: u32, flags: u16, next: u16| {
        let ends = [flags, next].into_iter().flat_map(u16::to_le_bytes);
        at.to_le_bytes().into_iter().chain(bytes.to_le_bytes()).chain(ends).collect::<Vec<u8>>()
    };
    // NEXT is 1, WRITE 2, INDIRECT 4; the rings begin at 1 MiB.
    let base = 1 << 20;
    let chains: [(&str, Vec<u8>); 9] = [
        ("a loop", descriptor(base, 16, 1, 0)),
        ("a table that is itself", descriptor(base, 16, 4, 0)),
        ("a table of no whole descriptors", descriptor(base, 17, 4, 0)),
        ("an empty table", descriptor(base, 0, 4, 0)),
        ("an address outside", descriptor(1 << 40, 16, 0, 0)),
        ("an end that overflows", descriptor(u64::MAX - 8, 64, 0, 0)),
        ("more than there is", descriptor(base, u32::MAX, 0, 0)),
        ("no place for an answer", descriptor(base, 16, 0, 0)),
        ("a next that there is not", descriptor(base, 16, 1, 60_000)),
    ];
    for (what, chain) in chains {
        let mut bad = disk(&site, "file", Wish::all(SHAPE));
        bad.rings[0].scribble(0, &chain);
        bad.rings[0].offer(0);
        bad.rings[0].kick();
        assert!(bad.rings[0].waits_for_err(PATIENCE), "{what}");
        assert_eq!(bad.rings[0].poll(), None, "{what}");
        bad.begin_anew().unwrap();
        assert_eq!(bad.ask(0, Ask::Read(0, 512)).unwrap().0, GOOD, "{what}");
    }
    let mut bad = disk(&site, "file", Wish::all(SHAPE));
    bad.rings[0].offer(500);
    bad.rings[0].kick();
    assert!(bad.rings[0].waits_for_err(PATIENCE), "no such descriptor");
    drop(bad);
    let bad = disk(&site, "file", Wish::all(SHAPE));
    bad.file.set_len(0).unwrap();
    bad.rings[0].kick_anyway();
    assert!(bad.rings[0].waits_for_err(PATIENCE), "its memory was cut");
    assert!(good.ask(0, Ask::Read(0, 4096)).unwrap() == (GOOD, pattern(3, 4096)));
    drop(bad);
    assert_eq!(disk(&site, "file", Wish::all(SHAPE)).ask(0, Ask::Read(0, 512)).unwrap().0, GOOD);
    daemon.stop();
}

#[test]
fn bytes_that_are_no_messages_end_a_connection() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let message = |kind: u32, flags: u32, body: &[u8]| {
        let head = [kind, flags, body.len() as u32].into_iter().flat_map(u32::to_ne_bytes);
        head.chain(body.iter().copied()).collect::<Vec<u8>>()
    };
    let talks: [Vec<u8>; 9] = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 4096],
        message(99, 1, &[]),
        message(5, 1, &[1, 0, 0, 0, 0, 0, 0, 0]),
        message(12, 1, &0x100_u64.to_ne_bytes()),
        message(9, 1, &[0xff; 40]),
        message(24, 1, &[0xff; 12]),
        message(32, 1, &[0xff; 20]),
        message(2, 1, &u64::MAX.to_ne_bytes()),
    ];
    for talk in talks {
        let mut stream = UnixStream::connect(socket(&site, "file")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&talk).unwrap();
        let ended = stream.read(&mut [0; 64]);
        assert!(ended.as_ref().map_or(true, |read| *read == 0), "{talk:?}: {ended:?}");
    }
    let mut disk = disk(&site, "file", Wish::all(SHAPE));
    assert_eq!(disk.ask(0, Ask::Read(0, 512)).unwrap().0, GOOD);
    daemon.stop();
}
