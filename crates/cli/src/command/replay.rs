//! `kavg replay`: recorded runs again in virtual time, compared bit for bit.

use std::{
    error::Error,
    fmt::Display,
    fs::{self, File},
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use counters::date;
use journal::{Hole, Report};

use crate::{
    Result, captures,
    output::Outputs,
    text::{seconds, whole},
};

/// Feed journals back in virtual time and compare outputs and counters bit for bit
///
/// A journal that ends early, because the run was killed, is compared as far as it goes. The segments of
/// one journal are fed one after the other, each with the stack as the one before left it; one whose
/// forerunner is missing brings its own.
///
/// Exit code: 0 when they are identical, 1 when they are not, 2 when a journal is bad.
#[derive(Args)]
pub(crate) struct Replay {
    /// Journals that `kavg run --journal` wrote, segments that `kavg serve --journal` did, or a directory
    /// of them
    #[arg(value_name = "JOURNAL", required = true)]
    journals: Vec<PathBuf>,
}

impl Replay {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let files = files(&self.journals)?;
        Outputs::print(&files)?;
        let reports = captures::told(|progress| {
            let bytes = |file: &PathBuf| fs::metadata(file).map_or(0, |known| known.len());
            let (mut done, total) = (0, files.iter().map(bytes).sum());
            let mut told = |read| {
                done += read;
                progress(done, total);
            };
            series(&files).map(|series| replay(series, &mut told)).collect::<Result<Vec<_>>>()
        })?;
        let mut exit = ExitCode::SUCCESS;
        for report in &reports {
            if report.difference.is_some() {
                exit = ExitCode::from(1);
            }
            tell(report, out)?;
        }
        Ok(exit)
    }
}

/// What is named, and what directories have, in the order of names: that of segments.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries =
            fs::read_dir(path).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let entries = entries.map_err(|error| at(path, &error))?;
        let before = files.len();
        let journals = entries.into_iter().map(|entry| entry.path());
        files.extend(journals.filter(|path| path.extension().is_some_and(|it| it == "journal")));
        if files.len() == before {
            return Err(at(path, &"no journal is in this directory"));
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn at(path: &Path, what: &dyn Display) -> Box<dyn Error> {
    format!("{}: {what}", path.display()).into()
}

/// The files of each journal.
fn series(files: &[PathBuf]) -> impl Iterator<Item = &[PathBuf]> {
    files.chunk_by(|a, b| journal_of(a).is_some_and(|of| Some(of) == journal_of(b)))
}

/// The journal of which a file is a segment, by its name.
fn journal_of(file: &Path) -> Option<&str> {
    let (of, number) = file.to_str()?.strip_suffix(".journal")?.rsplit_once('-')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(of)
}

fn replay(segments: &[PathBuf], told: &mut dyn FnMut(u64)) -> Result<Report> {
    let mut replay = journal::Replay::default();
    for path in segments {
        let file = File::open(path).map_err(|error| at(path, &error))?;
        let counted = Counted { file, told: &mut *told };
        let fed = replay.segment(BufReader::with_capacity(1 << 20, counted));
        fed.map_err(|error| at(path, &error))?;
    }
    Ok(replay.report())
}

fn tell(report: &Report, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "{}: {} inputs fed up to {}, {} outputs compared",
        report.name,
        whole(report.inputs as f64),
        seconds(report.end),
        whole(report.outputs as f64)
    )?;
    if let Some(difference) = &report.difference {
        return Ok(writeln!(out, "different: {difference}")?);
    }
    if let Some(epoch_ms) = report.epoch_ms {
        let (day, of_day) = (epoch_ms / 86_400_000, epoch_ms % 86_400_000 / 1000);
        let (year, month, day) = date(day.try_into().unwrap_or_default());
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        writeln!(
            out,
            "its time 0 is {year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC"
        )?;
    }
    if report.begin.0 > 0 {
        writeln!(out, "it begins at {}, with the stack as it was then", seconds(report.begin))?;
    }
    for hole in &report.holes {
        match hole {
            Hole::Gap(gap) => writeln!(
                out,
                "{} inputs from {} to {} are not in it: its disk did not keep up",
                whole(gap.inputs as f64),
                seconds(gap.from),
                seconds(gap.to)
            )?,
            Hole::Segments { from, to } => writeln!(
                out,
                "what came from {} to {} is not here: a segment is missing",
                seconds(*from),
                seconds(*to)
            )?,
        }
    }
    match (report.cut, report.holes.is_empty()) {
        (None, true) => writeln!(out, "identical, bit for bit: outputs and counters"),
        (None, false) => writeln!(out, "identical, bit for bit, in all that it has"),
        (Some(at), _) => writeln!(
            out,
            "identical, bit for bit, as far as it goes: the journal is cut at byte {}, before \
             the end of its run",
            whole(at as f64)
        ),
    }?;
    Ok(())
}

/// A file that tells how much of it is read.
struct Counted<'a> {
    file: File,
    told: &'a mut dyn FnMut(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        (self.told)(read as u64);
        Ok(read)
    }
}
