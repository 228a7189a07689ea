//! The runs that are done, in a file: the one that `--state` names, which a later sweep goes on with,
//! or one without a name, gone with the process.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `KAVGSWP1` |
//! | rest | frames: length of the payload (4), XXH3-64 of the payload seeded with the frame's place in the file (8), payload |
//!
//! The payload of the first is the lines of the job; of any other, the number of a run (4) and its
//! figures as in `bytes.rs`. What is killed leaves a frame that is not whole, and its run is done again: it
//! is the same then. So is that of a frame that is damaged, and of those behind it where its length is: what
//! comes next goes behind the last frame that is sound.

use std::{
    fs::{File, TryLockError},
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::PathBuf,
};

use twox_hash::XxHash3_64;

use crate::{Result, output::Output, talk::say, text::whole};

use super::{bytes, figures::Figures};

const MAGIC: &[u8; 8] = b"KAVGSWP1";
const HEAD: usize = 12;
/// The lines of a job are no longer; more than that is none of ours.
const LINES_MAX: usize = 1 << 26;

/// The runs that are done.
pub(crate) struct Store {
    file: File,
    /// As the user named it.
    name: PathBuf,
    /// What has the name; `None` of a file without one.
    output: Option<Output>,
    /// Why nothing can be written.
    refusal: Option<io::Error>,
    /// Where the next frame goes.
    end: u64,
    /// By run, where its frame is.
    places: Vec<Option<u64>>,
}

impl Store {
    /// A file of its own for so many runs.
    pub(crate) fn temporary(runs: usize) -> Result<Self> {
        let file = tempfile::tempfile()?;
        let name = std::env::temp_dir().join("(a file without a name)");
        Ok(Self { file, name, output: None, refusal: None, end: 0, places: vec![None; runs] })
    }

    /// The file of the state of a job with these `lines` and so many runs.
    ///
    /// # Errors
    /// One line, when it cannot be read, or written while runs are left, another sweep uses it, or it is of
    /// another job; it is as it was then.
    pub(crate) fn open(output: Output, lines: &str, runs: usize) -> Result<Self> {
        let name = output.name().to_owned();
        let (file, refusal) = output.open_kept()?;
        let output = Some(output);
        let mut store = Self { file, name, output, refusal, end: 0, places: vec![None; runs] };
        match store.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(store.wrong("another sweep uses it").into());
            }
            Err(TryLockError::Error(error)) => return Err(store.failed(error).into()),
        }
        let result = store.go_on(lines);
        let lost =
            result.map_err(|error| store.failed(error))?.map_err(|what| store.wrong(&what))?;
        if let (true, Some(refusal)) = (store.done() < runs, store.refusal.take()) {
            return Err(store.failed(refusal).into());
        }
        if lost > 0 {
            let lost = whole(lost as f64);
            say(&store.wrong(&format!(
                "{lost} bytes of it are no run that is whole; what they held is run again"
            )));
        }
        Ok(store)
    }

    /// Finds what is done, and how many bytes say nothing of it; begins the file where it is empty. The inner
    /// error is what is wrong with it.
    fn go_on(&mut self, lines: &str) -> io::Result<std::result::Result<u64, String>> {
        let head = [&MAGIC[..], &frame(MAGIC.len() as u64, lines.as_bytes())].concat();
        let mut there = Vec::new();
        (&self.file).take(head.len() as u64).read_to_end(&mut there)?;
        if there.len() < head.len() && head.starts_with(&there) {
            // Nothing yet, or a beginning that was cut short.
            self.write(0, &head)?;
            return Ok(Ok(0));
        }
        self.file.seek(SeekFrom::Start(0))?;
        let mut input = BufReader::new(&self.file);
        let (mut magic, mut payload) = ([0; MAGIC.len()], Vec::new());
        let is_ours = input.read_exact(&mut magic).is_ok() && magic == *MAGIC;
        let mut end = MAGIC.len() as u64;
        let is_ours = is_ours && next(&mut input, end, &mut payload)? == Some(true);
        if !is_ours || payload.len() > LINES_MAX {
            return Ok(Err("it is no state of a sweep; name another file".into()));
        }
        if let Some((was, is)) = difference(&payload, lines) {
            return Ok(Err(format!(
                "it is of another sweep: `{was}` there, `{is}` here; remove it, or name another file"
            )));
        }
        end += (HEAD + payload.len()) as u64;
        let mut sound = end;
        self.end = end;
        while let Some(is_sound) = next(&mut input, end, &mut payload)? {
            let length = (HEAD + payload.len()) as u64;
            let run =
                payload.first_chunk().filter(|_| is_sound).map(|run| u32::from_le_bytes(*run));
            if let Some(place) = run.and_then(|run| self.places.get_mut(run as usize)) {
                *place = Some(end);
                sound += length;
                self.end = end + length;
            }
            end += length;
        }
        Ok(Ok(self.file.metadata()?.len().saturating_sub(sound)))
    }

    /// Writes what comes next, from the place `at` on, where the file ends then.
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        self.file.set_len(at)?;
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)?;
        self.end = at + bytes.len() as u64;
        Ok(())
    }

    /// Whether a run is done.
    pub(crate) fn has(&self, run: usize) -> bool {
        self.places[run].is_some()
    }

    /// How many runs are done.
    pub(crate) fn done(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// Refuses a file that has been removed, or another that has its name by now: what it was to keep is gone.
    pub(crate) fn require_kept(&self) -> Result<()> {
        match &self.output {
            Some(output) if !output.is_still(&self.file) => Err(self
                .wrong("it was removed or replaced meanwhile; no run of this sweep is kept")
                .into()),
            _ => Ok(()),
        }
    }

    /// Keeps a run.
    pub(crate) fn put(&mut self, run: usize, figures: &Figures) -> Result<()> {
        let mut payload = (run as u32).to_le_bytes().to_vec();
        payload.extend(bytes::encode(figures));
        let place = self.end;
        self.write(place, &frame(place, &payload)).map_err(|error| self.failed(error))?;
        self.places[run] = Some(place);
        Ok(())
    }

    /// The figures of a run that is done.
    pub(crate) fn get(&mut self, run: usize) -> Result<Figures> {
        let figures = self.read(run).map_err(|error| self.failed(error))?;
        Ok(figures.ok_or_else(|| self.wrong("it was changed meanwhile"))?)
    }

    fn read(&mut self, run: usize) -> io::Result<Option<Figures>> {
        let Some(place) = self.places[run] else { return Ok(None) };
        let mut payload = Vec::new();
        self.file.seek(SeekFrom::Start(place))?;
        let is_sound = next(&mut &self.file, place, &mut payload)? == Some(true);
        Ok(payload.get(4..).filter(|_| is_sound).and_then(bytes::decode))
    }

    fn wrong(&self, what: &str) -> String {
        format!("{}: {what}", self.name.display())
    }

    fn failed(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), self.wrong(&error.to_string()))
    }
}

/// A frame at a place.
fn frame(at: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_le_bytes().to_vec();
    frame.extend(XxHash3_64::oneshot_with_seed(at, payload).to_le_bytes());
    frame.extend(payload);
    frame
}

/// Reads the payload of the frame at a place; whether it is sound, and `None` where it is not whole.
fn next(input: &mut impl Read, at: u64, payload: &mut Vec<u8>) -> io::Result<Option<bool>> {
    let mut head = Vec::with_capacity(HEAD);
    payload.clear();
    if input.take(HEAD as u64).read_to_end(&mut head)? < HEAD {
        return Ok(None);
    }
    let (length, check) = head.split_at(4);
    let length = length.iter().rev().fold(0, |length, byte| length << 8 | u32::from(*byte));
    // Takes memory as bytes come, not as the length promises.
    let read = input.take(length.into()).read_to_end(payload)?;
    let is_sound = check == XxHash3_64::oneshot_with_seed(at, payload).to_le_bytes();
    Ok((read == length as usize).then_some(is_sound))
}

/// The first lines that differ.
fn difference(there: &[u8], here: &str) -> Option<(String, String)> {
    let there = String::from_utf8_lossy(there);
    let (mut there, mut here) = (there.lines(), here.lines());
    loop {
        match (there.next(), here.next()) {
            (None, None) => return None,
            (was, is) if was == is => {}
            (was, is) => {
                return Some((was.unwrap_or_default().into(), is.unwrap_or_default().into()));
            }
        }
    }
}
