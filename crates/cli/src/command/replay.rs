//! `kavg replay`: recorded runs again in virtual time, compared bit for bit.

use std::{io::Write, path::PathBuf, process::ExitCode};

use clap::Args;
use counters::date;
use journal::{Hole, Report};

use crate::{
    Result, journals,
    output::Outputs,
    text::{seconds, whole},
};

/// Feed journals back in virtual time and compare outputs and counters bit for bit
///
/// A journal that ends early, because the run was killed, is compared as far as it goes. The segments of
/// one journal are fed one after the other, each with the stack as the one before left it; one whose
/// forerunner is missing brings its own.
///
/// Of a directory what is called as a segment and is no journal is left out, and said.
///
/// Exit code: 0 when they are identical, 1 when they are not, 2 when a journal is bad or something was left out.
#[derive(Args)]
pub(crate) struct Replay {
    /// Journals that `kavg run --journal` wrote, segments that `kavg serve --journal` did, or a directory
    /// of them
    #[arg(value_name = "JOURNAL", required = true)]
    journals: Vec<PathBuf>,
}

impl Replay {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let (files, has_others) = journals::true_files(&self.journals)?;
        Outputs::print(&files)?;
        let mut exit = ExitCode::from(if has_others { 2 } else { 0 });
        for (report, ()) in &journals::replay(&files, || ())? {
            if report.difference.is_some() && !has_others {
                exit = ExitCode::from(1);
            }
            tell(report, out)?;
        }
        Ok(exit)
    }
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
             the end of its run (it was ended there, or is at work)",
            whole(at as f64)
        ),
    }?;
    Ok(())
}
