//! `kavg replay`: a recorded run again in virtual time, compared bit for bit.

use std::{
    fs::File,
    io::{self, BufReader, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

use capture::Progress;
use clap::Args;
use counters::date;
use journal::Why;

use crate::{
    Result, captures,
    text::{seconds, whole},
};

/// Feed a journal back in virtual time and compare outputs and counters bit for bit
///
/// A journal that ends early, because the run was killed, is compared as far as it goes.
///
/// Exit code: 0 when they are identical, 1 when they are not, 2 when the journal is bad.
#[derive(Args)]
pub(crate) struct Replay {
    /// A journal that `kavg run --journal` wrote
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
}

impl Replay {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", self.journal.display());
        let file = File::open(&self.journal).map_err(|error| named(&error))?;
        let total = file.metadata().map_err(|error| named(&error))?.len();
        let report = captures::told(|progress| {
            journal::replay(BufReader::with_capacity(
                1 << 20,
                Counted { file, done: 0, total, progress },
            ))
        });
        let report = report.map_err(|error| named(&error))?;
        writeln!(
            out,
            "{}: {} inputs fed up to {}, {} outputs compared",
            report.name,
            whole(report.inputs as f64),
            seconds(report.end),
            whole(report.outputs as f64)
        )?;
        if let Some(difference) = report.difference {
            writeln!(out, "different: {difference}")?;
            return Ok(ExitCode::from(1));
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
        if let Some(gap) = report.gap {
            let why = match gap.why {
                Why::TooSlow => "its disk did not keep up",
                Why::Cap => "it had reached its cap",
            };
            writeln!(
                out,
                "identical, bit for bit, as far as it goes: {why}, and {} inputs from {} to {} are \
                 not in it",
                whole(gap.inputs as f64),
                seconds(gap.from),
                seconds(gap.to)
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        match report.cut {
            None => writeln!(out, "identical, bit for bit: outputs and counters")?,
            Some(at) => writeln!(
                out,
                "identical, bit for bit, as far as it goes: the journal is cut at byte {}, before \
                 the end of its run",
                whole(at as f64)
            )?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A file that tells how far it is read.
struct Counted<'a> {
    file: File,
    done: u64,
    total: u64,
    progress: Progress<'a>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.done += read as u64;
        (self.progress)(self.done, self.total);
        Ok(read)
    }
}
