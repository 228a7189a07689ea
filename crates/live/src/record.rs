//! The files of a component's journal, which are named in what goes wrong with them: one for each of its
//! segments, and never more of them than they may have together.

use counters::sorted::sort;
use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use journal::Files;

/// A segment has no more: as much as is lost when the oldest one goes.
const SEGMENT_BYTES: u64 = 64 << 20;
/// A part of what all may have, and no less of them than so many.
const SEGMENTS: u64 = 16;

/// Where a journal goes on: `HOST-N-BEGIN-SEGMENT.journal`, in the order of their names.
pub(crate) struct Record {
    directory: PathBuf,
    /// The host and the component.
    name: String,
    epoch_ms: u64,
    cap_bytes: u64,
    path: PathBuf,
    file: File,
    /// Who hears at once that it has ended.
    tell: fn(&str),
}

impl Record {
    /// Makes the file of the first segment in a directory, and the directory where there is none. What
    /// earlier daemons left of the same component counts towards `cap_bytes`, and goes before it.
    pub(crate) fn create(
        directory: &Path,
        name: &str,
        epoch_ms: u64,
        cap_bytes: u64,
        tell: fn(&str),
    ) -> io::Result<Self> {
        let directory = directory.to_path_buf();
        fs::create_dir_all(&directory).map_err(|error| named(&directory, &error))?;
        let path = directory.join(file_name(name, (epoch_ms, 0)));
        let file = make(&path).map_err(|error| named(&path, &error))?;
        let record = Self { directory, name: name.into(), epoch_ms, cap_bytes, path, file, tell };
        record.make_room()?;
        Ok(record)
    }

    /// Tells why nothing more is recorded: the daemon serves on, and would say so only at its end.
    fn ended(&self, error: io::Error) -> io::Error {
        if error.kind() != ErrorKind::Interrupted {
            (self.tell)(&format!("{error}: the journal ends there, and disks are served on"));
        }
        error
    }

    /// The bytes from which on a segment ends.
    pub(crate) fn segment_bytes(&self) -> u64 {
        (self.cap_bytes / SEGMENTS).min(SEGMENT_BYTES)
    }

    /// Removes the oldest until there is room for another segment, with a frame more than it may have.
    fn make_room(&self) -> io::Result<()> {
        let mut others = self.others().map_err(|error| named(&self.directory, &error))?;
        sort(&mut others);
        let mut bytes: u64 = others.iter().map(|(_, bytes)| bytes).sum();
        for (place, of_it) in others {
            if bytes + 2 * self.segment_bytes() <= self.cap_bytes {
                break;
            }
            let path = self.directory.join(file_name(&self.name, place));
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(named(&path, &error));
                }
                _ => bytes -= of_it,
            }
        }
        Ok(())
    }

    /// The beginning, the number and the bytes of each other segment of the component.
    fn others(&self) -> io::Result<Vec<((u64, u64), u64)>> {
        let mut others = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let place = entry.file_name().to_str().and_then(|file| place_of(&self.name, file));
            // What is no journal, or is a link to one, only has the name.
            let is_file = entry.file_type()?.is_file();
            let is_it = || is_file && File::open(entry.path()).is_ok_and(journal::is_journal);
            if let Some(place) = place.filter(|_| entry.path() != self.path && is_it()) {
                // It may be gone by now.
                others.extend(entry.metadata().map(|known| (place, known.len())));
            }
        }
        Ok(others)
    }
}

fn file_name(name: &str, (epoch_ms, number): (u64, u64)) -> String {
    journal::file_name(&format!("{name}-{epoch_ms:013}"), number)
}

/// When the journal of that name began whose segment a file is, and its number.
fn place_of(name: &str, file: &str) -> Option<(u64, u64)> {
    let (of, number) = journal::of_file(file)?;
    let place = (of.strip_prefix(name)?.strip_prefix('-')?.parse().ok()?, number);
    (file == file_name(name, place)).then_some(place)
}

/// Makes a file. It has the names of VMs: who may read it is who may use the daemon's sockets.
fn make(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

impl Files for Record {
    fn go_on(&mut self, number: u64) -> io::Result<()> {
        self.path = self.directory.join(file_name(&self.name, (self.epoch_ms, number)));
        let file = make(&self.path).map_err(|error| named(&self.path, &error));
        self.file = file.map_err(|error| self.ended(error))?;
        self.make_room().map_err(|error| self.ended(error))
    }
}

impl Write for Record {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| self.ended(named(&self.path, &error)))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.ended(named(&self.path, &error)))
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_the_file() {
        let path = PathBuf::from("/dev/full");
        let file = File::options().write(true).open(&path).expect("a device");
        let (directory, name) = (PathBuf::new(), String::new());
        let mut record =
            Record { directory, name, epoch_ms: 0, cap_bytes: 0, path, file, tell: |_| {} };
        let error = record.write(b"x").unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: No space left on device"), "{error}");
    }

    #[test]
    fn a_file_is_of_one_component() {
        let table = [
            ("h-1-1700000000000-000000.journal", Some((1_700_000_000_000, 0))),
            ("h-1-1700000000000-1234567.journal", Some((1_700_000_000_000, 1_234_567))),
            ("h-1-1700000000000-1.journal", None),
            ("h-1-1700000000000-+00001.journal", None),
            ("h-1-2-1700000000000-000000.journal", None),
            ("h-11-1700000000000-000000.journal", None),
            ("h-1-1700000000000.journal", None),
            ("h-1-1700000000000-000000.journal.gz", None),
        ];
        for (file, expected) in table {
            assert_eq!(place_of("h-1", file), expected, "{file}");
        }
    }

    #[test]
    fn the_oldest_go_first_those_of_earlier_daemons_too_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let there = || {
            let entries = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap());
            let mut names: Vec<_> =
                entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let others = ["h-1-0000000000002-000000.journal", "notes"];
        let segment = |bytes: usize| [b"KAVGJRNL".as_slice(), &vec![0; bytes - 8]].concat();
        let at = |file: &str| directory.path().join(file);
        others.iter().for_each(|file| fs::write(at(file), segment(900)).unwrap());
        // Of the name alone: another file, a link, a directory.
        let alike = [1, 2, 3].map(|number| file_name("h-0", (1, number)));
        fs::write(at(&alike[0]), [0; 900]).unwrap();
        std::os::unix::fs::symlink(at("notes"), at(&alike[1])).unwrap();
        fs::create_dir(at(&alike[2])).unwrap();
        let beside = |mine: Vec<(u64, u64)>| -> Vec<_> {
            let mine = mine.into_iter().map(|place| file_name("h-0", place));
            alike.iter().cloned().chain(mine).chain(others.map(String::from)).collect()
        };
        let mut record = Record::create(directory.path(), "h-0", 9, 1600, |_| {}).unwrap();
        for number in 1..=20 {
            record.write_all(&segment(100)).unwrap();
            record.go_on(number).unwrap();
        }
        assert_eq!(there(), beside((6..=20).map(|number| (9, number)).collect()));
        Record::create(directory.path(), "h-0", 10, 800, |_| {}).unwrap();
        let left = (13..=20).map(|number| (9, number)).chain([(10, 0)]);
        assert_eq!(there(), beside(left.collect()));
    }
}
