//! `kavg serve` as clients of NBD see it: what they are told, what is stored, and what no client can do.

#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;
#[path = "common/nbd.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod nbd;

use std::{
    env, fs,
    io::Write,
    net::Shutdown,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::Path,
    process::Command,
    thread,
};

use daemon::{Daemon, Site};
use nbd::{
    BLOCK_STATUS, CACHE, Client, DISC, EINVAL, EIO, ENOSPC, EPERM, FLUSH, FUA, NO_HOLE, READ, TRIM,
    WRITE, WRITE_ZEROES, text,
};

const MIB: usize = 1 << 20;

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
[vm.a.disk."scsi0:1"]
datastore = "n"
size = "64m"
export = "null"
[vm.b]
[vm.b.disk."scsi0:0"]
datastore = "f"
size = "64m"
export = "file"
"#;

/// Bytes that tell where they were to be.
fn pattern(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 9) as u8 ^ seed).collect()
}

#[test]
fn a_client_is_told_what_there_is() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    assert!(daemon.lines[0].starts_with("memory 67108864 nbd+unix:///memory?socket="));
    assert_eq!(fs::metadata(site.socket()).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = Client::greeted(&site.socket());
    let names: Vec<_> = client.option(3, b"").into_iter().map(|(_, data)| data).collect();
    assert_eq!(names, [text("memory"), text("null"), text("file"), vec![]]);
    // GO with the name and the block sizes.
    let asked = |name: &str| [text(name), vec![0, 2, 0, 1, 0, 3]].concat();
    assert_eq!(client.option(6, &asked("nobody"))[0].0, 0x8000_0006);
    assert_eq!(client.option(6, b"\xff\xff\xff\xff")[0].0, 0x8000_0003);
    assert_eq!(client.option(77, b"")[0].0, 0x8000_0001);
    assert_eq!(client.option(5, b"")[0].0, 0x8000_0001, "no TLS");
    assert_eq!(client.option(9, &[text("file"), vec![0; 4]].concat())[0].0, 0x8000_0003);
    let replies = client.option(6, &asked("file"));
    let export = [&[0, 0], (64 * MIB as u64).to_be_bytes().as_slice(), &[5, 0x6d]].concat();
    let sizes = [vec![0, 3, 0, 0, 0, 1, 0, 0, 16, 0, 2, 0, 0, 0]];
    assert_eq!(replies[0].1, export);
    assert_eq!(replies[1].1, b"\0\x01file");
    assert_eq!(replies[2].1, sizes[0]);
    // The old way, with its zeroes left out.
    client.send(&[b"IHAVEOPT\0\0\0\x01".as_slice(), &text("null")].concat());
    assert_eq!(client.take::<10>()[..8], (64 * MIB as u64).to_be_bytes());
    assert_eq!(client.read(0, 512), vec![0; 512]);
    let mut leaving = Client::greeted(&site.socket());
    assert_eq!(leaving.option(2, b""), [(1, vec![])]);
    assert!(leaving.was_dropped());
    daemon.stop();
    assert!(!site.socket().exists());
}

#[test]
fn what_is_written_is_read_on_every_back_end() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    for (export, structured) in
        [("memory", false), ("memory", true), ("file", false), ("file", true)]
    {
        let mut client = Client::on(&site.socket(), export, structured);
        // The last one is larger than a command of the virtual adapter, which cuts it.
        let places = [(0, 512), (4096, 65_536), (3 * 512, 1024), (32 * MIB as u64, 4 * MIB)];
        for (at, bytes) in places.into_iter().chain([(5, 1), (700, 300), (1000, 100_001)]) {
            let data = pattern(bytes as u8 ^ 5, bytes);
            assert_eq!(client.write(if bytes == 512 { FUA } else { 0 }, at, &data), 0);
            assert!(client.read(at, bytes as u32) == data, "{export}: {bytes} bytes at {at}");
        }
        assert_eq!(client.call(0, FLUSH, 0, 0).0, 0);
        let data = pattern(9, MIB);
        for (flags, kind) in
            [(0, TRIM), (FUA, TRIM), (0, WRITE_ZEROES), (FUA | NO_HOLE, WRITE_ZEROES)]
        {
            assert_eq!(client.write(0, 8 * MIB as u64, &data), 0);
            assert_eq!(client.call(flags, kind, 8 * MIB as u64 + 4096, 8192).0, 0);
            let read = client.read(8 * MIB as u64, MIB as u32);
            assert!(read[..4096] == data[..4096] && read[12_288..] == data[12_288..]);
            assert!(read[4096..12_288].iter().all(|byte| *byte == 0), "{export}");
        }
        assert_eq!(client.write(0, 8 * MIB as u64, &data), 0);
        assert_eq!(client.call(0, WRITE_ZEROES, 8 * MIB as u64 + 1000, 9000).0, 0);
        let read = client.read(8 * MIB as u64, MIB as u32);
        assert!(read[..1000] == data[..1000] && read[10_000..] == data[10_000..], "{export}");
        assert!(read[1000..10_000].iter().all(|byte| *byte == 0), "{export}");
        assert_eq!(client.call(0, CACHE, 0, 65_536), (0, vec![]));
        assert_eq!(client.read(63 * MIB as u64, 4096), vec![0; 4096], "nobody wrote there");
        client.ask(0, DISC, 0, 0, &[]);
        assert!(client.was_dropped());
    }
    daemon.stop();
}

#[test]
fn holes_are_told() {
    let site = Site::new(DISKS);
    let _daemon = site.serve(3, &[]);
    for export in ["memory", "file"] {
        let mut client = Client::on(&site.socket(), export, true);
        assert_eq!(client.write(0, 4 * MIB as u64, &pattern(1, MIB)), 0);
        let (error, data) = client.call(0, BLOCK_STATUS, 0, 8 * MIB as u32);
        let words: Vec<_> =
            data.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
        let mib = MIB as u32;
        assert_eq!((error, words), (0, vec![4 * mib, 3, mib, 0, 3 * mib, 3]), "{export}");
        assert_eq!(client.call(8, BLOCK_STATUS, 0, 8 * mib).1.len(), 8, "one is enough");
    }
}

#[test]
fn many_requests_are_under_way_at_once_and_each_is_answered_once() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    for export in ["memory", "file", "null"] {
        let mut client = Client::on(&site.socket(), export, false);
        let mut asking = Client::again(&client);
        let mut open: Vec<u64> = (0..2_000).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..2_000_u64 {
                    match n % 3 {
                        0 => asking.ask(0, FLUSH, 0, 0, &[]),
                        _ => asking.ask(0, READ, n * 512, 512, &[]),
                    };
                }
            });
            while !open.is_empty() {
                let head = client.take::<16>();
                let cookie = u64::from_be_bytes(*head.last_chunk().unwrap());
                assert_eq!(head[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
                if !cookie.is_multiple_of(3) {
                    client.take::<512>();
                }
                let place = open.iter().position(|one| *one == cookie).expect("answered once");
                open.swap_remove(place);
            }
        });
    }
    daemon.stop();
}

#[test]
fn what_cannot_be_done_is_refused_and_the_next_request_is_served() {
    let site =
        Site::new(&DISKS.replace("export = \"null\"", "export = \"null\"\nread_only = true"));
    let _daemon = site.serve(3, &[]);
    let end = 64 * MIB as u64;
    for structured in [false, true] {
        let mut client = Client::on(&site.socket(), "memory", structured);
        for (flags, kind, at, length, error) in [
            (0, READ, 0, 0, EINVAL),
            (0, READ, end, 512, EINVAL),
            (0, READ, u64::MAX - 511, 512, EINVAL),
            (0, READ, 0, (32 << 20) + 512, EINVAL),
            (0x80, READ, 0, 512, EINVAL),
            (0, TRIM, end - 512, 1024, ENOSPC),
            (0, WRITE_ZEROES, end, 512, ENOSPC),
            (0, 99, 0, 512, EINVAL),
        ] {
            assert_eq!(client.call(flags, kind, at, length).0, error, "{kind} {at} {length}");
        }
        assert_eq!(client.write(0, end, &[1; 512]), ENOSPC);
        assert_eq!(client.read(0, 512), vec![0; 512]);
    }
    assert_eq!(Client::on(&site.socket(), "memory", false).call(0, BLOCK_STATUS, 0, 512).0, EINVAL);
    let mut client = Client::on(&site.socket(), "null", false);
    assert_eq!(client.write(0, 0, &[1; 512]), EPERM);
    assert_eq!(client.call(0, TRIM, 0, 512).0, EPERM);
    assert_eq!(client.read(0, 512), vec![0; 512]);
}

#[test]
fn a_client_that_makes_no_sense_ends_its_own_connection_alone() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let mut good = Client::on(&site.socket(), "memory", false);
    assert_eq!(good.write(0, 0, &pattern(3, 4096)), 0);
    let talks: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 64],
        b"IHAVEOPT\0\0\0\x03\xff\xff\xff\xff",
        b"IHAVEOPT\0\0\0\x01\0\0\0\x06nobody",
    ];
    for talk in talks {
        let mut bad = Client::greeted(&site.socket());
        bad.send(talk);
        assert!(bad.was_dropped(), "{talk:?}");
    }
    let mut bad = Client::on(&site.socket(), "memory", false);
    bad.send(&[7; 28]);
    assert!(bad.was_dropped());
    let mut bad = Client::on(&site.socket(), "memory", false);
    bad.ask(0, WRITE, 0, u32::MAX, &[]);
    assert!(bad.was_dropped());
    // Half of a write, and gone: nothing of it is written.
    let mut bad = Client::on(&site.socket(), "memory", false);
    bad.ask(0, WRITE, 0, 4096, &[0xee; 2048]);
    drop(bad);
    // A queue that nobody reads the replies of.
    let mut deaf = Client::on(&site.socket(), "memory", false);
    (0..200).for_each(|n| {
        deaf.ask(0, READ, n * 4096, 1 << 20, &[]);
    });
    drop(deaf);
    assert!(good.read(0, 4096) == pattern(3, 4096));
    daemon.stop();
}

#[test]
fn who_closes_is_let_go() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    for _ in 0..50 {
        let mut client = Client::on(&site.socket(), "memory", false);
        client.ask(0, WRITE, 0, 512, &[5; 512]);
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert!(client.was_dropped());
    }
    // Their seats are free again.
    drop((0..64).map(|_| Client::on(&site.socket(), "memory", false)).collect::<Vec<_>>());
    daemon.stop();
}

#[test]
fn no_more_clients_are_let_in_than_there_are_seats() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let clients: Vec<_> = (0..64).map(|_| Client::on(&site.socket(), "null", false)).collect();
    let mut turned_away = [0];
    let mut one_more = UnixStream::connect(site.socket()).unwrap();
    assert_eq!(std::io::Read::read(&mut one_more, &mut turned_away).unwrap(), 0);
    drop(clients);
    daemon.stop();
}

#[test]
fn who_does_not_agree_keeps_nobody_out() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let idle: Vec<_> = (0..200).map(|_| UnixStream::connect(site.socket()).unwrap()).collect();
    assert_eq!(Client::on(&site.socket(), "null", false).read(0, 512).len(), 512);
    drop(idle);
    daemon.stop();
}

#[test]
fn a_file_that_is_no_socket_is_left_as_it_is() {
    let disk =
        "[vm.c]\n[vm.c.disk.\"scsi0:0\"]\ndatastore = \"m\"\nsize = \"1m\"\nvhost_user = \"data\"";
    for (name, rest) in [("s", DISKS.to_owned()), ("data", format!("{DISKS}{disk}"))] {
        let site = Site::new(&rest);
        fs::write(site.path(name), "data").unwrap();
        let said = site.refusal();
        assert!(said.contains("that is no socket, and it is left as it is"), "{said}");
        assert_eq!(fs::read(site.path(name)).unwrap(), b"data");
    }
}

#[test]
fn what_is_written_at_work_is_nothing_that_is_read_served_or_written() {
    let site = Site::new(DISKS);
    for (arguments, expected) in [
        (
            ["--control", "x", "--settings", "./x"],
            "./x: is written already as x; name another file",
        ),
        (["--control", "x", "--settings", "-"], "-: standard output takes no such file; name one"),
        (["--control", "h.toml", "--settings", "y"], "h.toml: is read from; name another file"),
        (["--control", "x", "--settings", "b_scsi0-0.img"], "b_scsi0-0.img: is read from"),
        (["--journal", "x", "--settings", "x"], "x: is written already"),
        (["--journal", "s", "--settings", "y"], "s: is read from"),
        (["--control", "x", "--settings", "./s"], "./s: is read from as s; name another file"),
    ] {
        let said = site.refusal_of(&arguments);
        assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
        assert!(!site.path("x").exists() && !site.path("b_scsi0-0.img").exists());
    }
}

#[test]
fn a_write_beyond_the_limit_of_a_file_fails_alone() {
    let site = Site::new(DISKS);
    let mut daemon = site.serve(3, &[]);
    let mut limit = Command::new("prlimit");
    limit.args(["--fsize=65536", "--pid", &daemon.id().to_string()]);
    assert!(limit.status().expect("util-linux has it").success());
    let mut client = Client::on(&site.socket(), "file", false);
    assert_eq!(client.write(0, MIB as u64, &[7; 4096]), ENOSPC);
    let said = daemon.said_behind("disk `");
    assert!(said.ends_with(".img: I/O fails: EFBIG: File too large"), "{said}");
    assert_eq!(client.write(0, 4096, &[7; 4096]), 0);
    daemon.stop();
}

/// One disk, with these keys, in the directory of its file.
fn of_one_image(keys: &str) -> String {
    format!(
        "[datastore.f]\nbackend = \"file\"\ndirectory = \".\"\n[vm.a]\n\
         [vm.a.disk.\"scsi0:0\"]\ndatastore = \"f\"\n{keys}"
    )
}

#[test]
fn an_image_that_is_no_good_is_named() {
    let cases: [(&str, &[u8], &str); 12] = [
        ("image = \"d/x\"\nsize = \"1m\"", b"", "d`; make it first"),
        ("image = \"x\"", b"", "there is no such image; with `size` it is made"),
        ("image = \"q\"", &[b"QFI\xfb".as_slice(), &[0; 1020]].concat(), "the format qcow2"),
        ("image = \"q\"", &[b"KDMV".as_slice(), &[0; 1020]].concat(), "the format vmdk"),
        // Of another format, whatever its size, and whichever end tells it.
        ("image = \"q\"", &[b"QFI\xfb".as_slice(), &[0; 700]].concat(), "the format qcow2"),
        ("image = \"q\"", &[b"WithoutFreeSpace".as_slice(), &[0; 1008]].concat(), "parallels"),
        ("image = \"q\"", &[&[0; 512], b"conectix".as_slice(), &[0; 504]].concat(), "format vhd"),
        ("image = \"q\"", &[0; 700], "700 bytes, which are no whole sectors of 512"),
        ("image = \"q\"\nsize = \"512b\"", &[0; 1024], "it has 1024 bytes, and `size` says 512"),
        ("image = \"x\"\nsize = \"1m\"\nread_only = true", b"", "of a disk that is `read_only`"),
        ("image = \".\"", b"", "Is a directory"),
        ("image = \"h.toml\"", b"", "it is the file that describes this host"),
    ];
    for (keys, bytes, expected) in cases {
        let site = Site::new(&of_one_image(keys));
        if !bytes.is_empty() {
            fs::write(site.path("q"), bytes).unwrap();
        }
        let said = site.refusal();
        assert!(said.starts_with("kavg: h.toml:12: disk `a:scsi0:0`: "), "{said}");
        assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn an_image_grows_with_its_disk_also_while_no_daemon_is_there() {
    let site = Site::new(&of_one_image("image = \"q\"\nsize = \"2m\"\n"));
    fs::write(site.path("q"), vec![7; MIB]).unwrap();
    let daemon = site.serve(1, &[]);
    let mut client = Client::on(&site.socket(), "a:scsi0:0", false);
    assert_eq!(client.read(0, 512), vec![7; 512]);
    assert_eq!(client.read(2 * MIB as u64 - 512, 512), vec![0; 512]);
    daemon.stop();
    assert_eq!(fs::metadata(site.path("q")).unwrap().len(), 2 * MIB as u64);
}

#[test]
fn two_disks_are_not_one_image_unless_both_say_so() {
    let both = |first: &str, second: &str| {
        let disk = |vm: &str, image: &str, keys: &str| {
            format!(
                "[vm.{vm}]\n[vm.{vm}.disk.\"scsi0:0\"]\ndatastore = \"f\"\nsize = \"1m\"\n\
                 image = \"{image}\"\n{keys}\n"
            )
        };
        let store = "[datastore.f]\nbackend = \"file\"\ndirectory = \".\"\n";
        format!("{store}{}{}", disk("a", "x", first), disk("b", "./x", second))
    };
    let shared = "shared = true";
    for (first, second) in [("", ""), (shared, ""), ("", shared)] {
        let site = Site::new(&both(first, second));
        let said = site.refusal();
        assert!(said.contains("disk `a:scsi0:0` is the same"), "{said}");
        assert!(!site.path("x").exists(), "what was made for nothing is gone");
    }
    let site = Site::new(&both(shared, shared));
    let daemon = site.serve(2, &[]);
    assert_eq!(Client::on(&site.socket(), "a:scsi0:0", false).write(0, 0, &[7; 512]), 0);
    assert_eq!(Client::on(&site.socket(), "b:scsi0:0", false).read(0, 512), vec![7; 512]);
    daemon.stop();
}

#[test]
fn a_cpu_that_is_not_there_is_told_with_its_line_and_leaves_no_image() {
    let site = Site::new(&format!(
        "[host.h]\ncpus = [1023]\n{}",
        of_one_image("image = \"x\"\nsize = \"1m\"\n")
    ));
    let said = site.refusal();
    let line = 1 + fs::read_to_string(site.path("h.toml"))
        .unwrap()
        .lines()
        .position(|line| line.starts_with("cpus"))
        .unwrap();
    assert!(
        said.starts_with(&format!("kavg: h.toml:{line}: host `h`: `cpus`: CPU 1023: ")),
        "{said}"
    );
    assert!(!site.path("x").exists());
}

#[test]
fn an_image_has_one_daemon() {
    let site = Site::new(DISKS);
    let first = site.serve(3, &[]);
    let said = site.refusal();
    assert!(said.contains("another process has it open"), "{said}");
    // The first one goes on, and its socket is still its own.
    assert_eq!(Client::on(&site.socket(), "file", false).read(0, 512), vec![0; 512]);
    first.stop();
    site.serve(3, &[]).stop();
}

#[test]
fn a_socket_is_opened_by_those_whom_the_file_names() {
    let mode = |site: &Site| fs::metadata(site.socket()).unwrap().permissions().mode() & 0o777;
    let site = Site::new(&format!("[host.h.sockets]\nmode = \"0666\"\n{DISKS}"));
    let daemon = site.serve(3, &[]);
    assert_eq!(mode(&site), 0o666);
    daemon.stop();
    let id = Command::new("id").arg("-gn").output().expect("there is an id");
    let own = String::from_utf8(id.stdout).unwrap();
    let of = |group: &str| format!("[host.h.sockets]\ngroup = \"{group}\"\n{DISKS}");
    let site = Site::new(&of(own.trim()));
    let daemon = site.serve(3, &[]);
    assert_eq!(mode(&site), 0o660);
    daemon.stop();
    let site = Site::new(&of("nobody-has-this"));
    let said = site.refusal();
    assert_eq!(said, "kavg: h.toml:7: `group`: there is no group `nobody-has-this`\n");
}

#[test]
fn every_thread_has_given_up_what_it_does_not_need() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &["--control", "c", "--journal", "journals"]);
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap();
    for thread in threads {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        assert!(status.contains("Seccomp:\t2"), "{status}");
    }
    daemon.stop();
}

/// A generator of numbers, the same for the same seed.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Blocks that a writer goes about, and how many of its writes are under way.
const BLOCKS: u64 = 64;
const UNDER_WAY: usize = 16;

/// A writer writes, and the daemon is killed after so many acknowledgements, with others under way.
/// What was acknowledged is there afterwards; what was not may be. `KAVG_KILLS` says how often, and
/// `KAVG_SEED` another course of events.
#[test]
fn no_acknowledged_write_is_lost_when_the_daemon_is_killed() {
    let site = Site::new(DISKS);
    let number = |name, default| env::var(name).map_or(default, |it| it.parse().expect(name));
    let mut state = number("KAVG_SEED", 0x9e37_79b9_7f4a_7c15);
    // What may be in each block.
    let mut known = vec![vec![0_u8]; BLOCKS as usize];
    for round in 0..number("KAVG_KILLS", 25) {
        let mut daemon = site.serve(3, &[]);
        let mut client = Client::on(&site.socket(), "file", false);
        for (block, allowed) in (0..).zip(&mut known) {
            let read = client.read(block * 4096, 4096);
            let is_one = allowed.contains(&read[0]) && read.iter().all(|byte| *byte == read[0]);
            assert!(is_one, "round {round}, block {block}: {} is not of {allowed:?}", read[0]);
            *allowed = vec![read[0]];
        }
        write_until_killed(&mut client, &mut daemon, &mut state, &mut known);
        drop(daemon);
    }
}

fn write_until_killed(
    client: &mut Client,
    daemon: &mut Daemon,
    state: &mut u64,
    known: &mut [Vec<u8>],
) {
    let mut open: Vec<(u64, usize, u8)> = Vec::new();
    let mut acknowledged = next(state) % 200;
    loop {
        while open.len() < UNDER_WAY {
            let (block, byte) = ((next(state) % BLOCKS) as usize, next(state) as u8);
            if open.iter().any(|(_, other, _)| *other == block) {
                continue;
            }
            let flags = if byte.is_multiple_of(4) { FUA } else { 0 };
            let cookie = client.ask(flags, WRITE, block as u64 * 4096, 4096, &[byte; 4096]);
            known[block].push(byte);
            open.push((cookie, block, byte));
        }
        if acknowledged == 0 {
            let killed = Command::new("kill").args(["-9", &daemon.id().to_string()]).status();
            assert!(killed.unwrap().success());
            return;
        }
        let reply = client.reply(0);
        assert_eq!(reply.error, 0);
        let place = open.iter().position(|(cookie, ..)| *cookie == reply.cookie).expect("once");
        let (_, block, byte) = open.swap_remove(place);
        known[block] = vec![byte];
        acknowledged -= 1;
    }
}

#[test]
fn a_journal_of_real_time_replays_to_the_same() {
    let emulated = "
[array.a]
servers = 4
service = \"0.2ms\"
queue_limit = 8
[datastore.e]
backend = \"memory\"
emulate = true
[vm.c]
[vm.c.disk.\"scsi0:0\"]
datastore = \"e\"
size = \"64m\"
export = \"emulated\"
limit = 2_000
";
    let site = Site::new(
        &format!("{DISKS}{emulated}").replace("[datastore.m]", "[datastore.m]\narray = \"a\""),
    );
    let daemon = site.serve(4, &["--journal", "journals"]);
    for export in ["memory", "file", "null", "emulated"] {
        let mut client = Client::on(&site.socket(), export, false);
        let asked = 300;
        for n in 0..asked {
            match n % 5 {
                0 => client.ask(0, WRITE, n * 4096, 4096, &[n as u8; 4096]),
                1 => client.ask(0, FLUSH, 0, 0, &[]),
                _ => client.ask(0, TRIM, n * 4096, 4096, &[]),
            };
        }
        for _ in 0..asked {
            assert_eq!(client.reply(0).error, 0);
        }
        // Others are under way when it goes.
        (0..50).for_each(|n| {
            client.ask(0, READ, n * 4096, 4096, &[]);
        });
    }
    daemon.stop();
    let journals: Vec<_> = fs::read_dir(site.path("journals")).unwrap().collect();
    assert_eq!(journals.len(), 1, "they share an adapter");
    for journal in journals {
        let path = journal.unwrap().path();
        let said = replay(&path);
        assert!(said.contains("identical, bit for bit: outputs and counters"), "{said}");
    }
}

fn replay(journal: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kavg")).arg("replay").arg(journal).output();
    String::from_utf8(output.expect("the binary starts").stdout).expect("it writes UTF-8")
}

#[test]
fn a_killed_daemon_leaves_a_journal_that_replays_as_far_as_it_goes() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &["--journal", "journals", "--journal-cap", "2m"]);
    let mut client = Client::on(&site.socket(), "null", false);
    // A frame is 64 KiB: what was acknowledged after this many is in the file.
    for n in 0..40_000_u64 {
        client.ask(0, READ, n % 1000 * 512, 512, &[]);
        if n % 16 == 15 {
            (0..16).for_each(|_| drop(client.reply(512)));
        }
    }
    drop(daemon);
    let said = replay(&site.path("journals"));
    assert!(said.contains("inputs fed up to") && !said.contains(": 0 inputs"), "{said}");
    assert!(said.contains("identical, bit for bit, as far as it goes"), "{said}");
}

#[test]
fn a_journal_that_cannot_go_on_is_told_at_once_and_disks_are_served_on() {
    let site = Site::new(DISKS);
    let mut daemon = site.serve(3, &["--journal", "journals"]);
    let mut limit = Command::new("prlimit");
    limit.args(["--fsize=4096", "--pid", &daemon.id().to_string()]);
    assert!(limit.status().expect("util-linux has it").success());
    let mut client = Client::on(&site.socket(), "memory", false);
    for _ in 0..10_000 {
        assert_eq!(client.write(0, 0, &[7; 512]), 0);
    }
    let said = daemon.said_behind("journals/h-0-");
    assert!(said.contains("File too large") && said.ends_with("disks are served on"), "{said}");
    assert_eq!(client.read(0, 512), [7; 512]);
    daemon.terminate();
    assert_eq!(daemon.wait().code(), Some(2));
}

#[test]
fn a_journal_has_a_cap_and_its_oldest_segments_go() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &["--journal", "journals", "--journal-cap", "1m"]);
    let mut client = Client::on(&site.socket(), "null", false);
    for n in 0..60_000_u64 {
        client.ask(0, READ, n % 1000 * 512, 512, &[]);
        if n % 16 == 15 {
            (0..16).for_each(|_| drop(client.reply(512)));
        }
    }
    drop(client);
    daemon.stop();
    let segments = fs::read_dir(site.path("journals")).unwrap().map(|entry| entry.unwrap());
    let segments: Vec<_> = segments.map(|entry| entry.path()).collect();
    let bytes: u64 = segments.iter().map(|path| fs::metadata(path).unwrap().size()).sum();
    assert!(segments.len() > 5 && bytes < 1 << 20, "{bytes} in {segments:?}");
    let said = replay(&site.path("journals"));
    for expected in ["its time 0 is 20", "it begins at ", "identical, bit for bit: outputs and"] {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn what_adapters_do_not_tie_is_served_by_components_of_their_own() {
    let site = Site::new(
        "[host.h.adapter.vmhba2]\ndriver = \"fnic\"\n\
         [datastore.m]\nbackend = \"memory\"\nadapters = \"vmhba1\"\n\
         [datastore.n]\nbackend = \"memory\"\nadapters = \"vmhba2\"\n\
         [vm.a.disk.\"scsi0:0\"]\ndatastore = \"m\"\nsize = \"1m\"\n\
         [vm.b.disk.\"scsi0:0\"]\ndatastore = \"n\"\nsize = \"1m\"\n",
    );
    let daemon = site.serve(2, &["--journal", "journals"]);
    for (export, byte) in [("a:scsi0:0", 1), ("b:scsi0:0", 2)] {
        assert_eq!(Client::on(&site.socket(), export, true).write(0, 0, &[byte; 512]), 0);
        assert_eq!(Client::on(&site.socket(), export, true).read(0, 512), vec![byte; 512]);
    }
    daemon.stop();
    let journals: Vec<_> = fs::read_dir(site.path("journals")).unwrap().collect();
    assert_eq!(journals.len(), 2);
    for journal in journals {
        let said = replay(&journal.unwrap().path());
        assert!(said.contains("identical, bit for bit: outputs"), "{said}");
    }
}

#[test]
fn an_image_that_was_cut_is_an_error_of_the_disk() {
    let site = Site::new(DISKS);
    let daemon = site.serve(3, &[]);
    let mut client = Client::on(&site.socket(), "file", false);
    let image = fs::OpenOptions::new().write(true).open(site.path("b_scsi0-0.img")).unwrap();
    image.set_len(MIB as u64).unwrap();
    assert_eq!(client.call(0, READ, 8 * MIB as u64, 4096).0, EIO);
    assert_eq!(client.read(0, 4096), vec![0; 4096]);
    daemon.stop();
}

#[test]
fn what_is_under_way_is_answered_before_the_end() {
    let site = Site::new(&DISKS.replace("export = \"memory\"", "export = \"memory\"\nlimit = 200"));
    let daemon = site.serve(3, &[]);
    let mut client = Client::on(&site.socket(), "memory", false);
    (0..100).for_each(|n| {
        client.ask(0, READ, n * 512, 512, &[]);
    });
    assert_eq!(client.reply(512).error, 0, "all of them are taken");
    daemon.terminate();
    (1..100).for_each(|_| assert_eq!(client.reply(512).error, 0));
    assert!(client.was_dropped());
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn the_example_is_served_and_simulated() {
    let said = Command::new(env!("CARGO_BIN_EXE_kavg")).args(["serve", "--example"]).output();
    let example = said.unwrap().stdout;
    let site = Site::new("");
    fs::File::create(site.path("h.toml")).unwrap().write_all(&example).unwrap();
    fs::create_dir(site.path("images")).unwrap();
    let daemon = site.serve(2, &[]);
    let mut client = Client::on(&site.path("kavg.sock"), "web", true);
    assert_eq!(client.write(FUA, 0, &pattern(1, 4096)), 0);
    daemon.stop();
    let mut run = Command::new(env!("CARGO_BIN_EXE_kavg"));
    let run = run.args(["run", "h.toml", "-q"]).current_dir(site.directory.path()).output();
    assert_eq!(run.unwrap().status.code(), Some(0));
}
