//! `kavg serve` as a virtual machine sees it: a front end that others wrote, and rings as a driver fills
//! them.

#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use daemon::Site;
use guest::{Ask, Disk, Shape, Wish, feature};

const MIB: usize = 1 << 20;
const GOOD: u8 = 0;

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

fn disk(site: &Site, disk: &str, wish: Wish) -> Disk {
    Disk::connect(&socket(site, disk), wish).expect("it is let in")
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
