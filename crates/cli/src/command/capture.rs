//! `kavg capture`: looks into captures of esxtop, cuts, joins and converts them.

mod copies;

use std::{
    ffi::OsStr,
    io::{self, Write},
    num::NonZeroU32,
    path::PathBuf,
    process::ExitCode,
};

use capture::{ReadOptions, parse_vscsistats, read_output, record_command};
use clap::{Args, Subcommand};
use counters::SECOND;

use crate::{
    Result,
    captures::{self, instant},
    contents,
    output::{Outputs, Pending},
};

/// Look into captures of esxtop, cut, join, anonymize and convert them
#[derive(Args)]
pub(crate) struct Capture {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What is in it: hosts, times, objects, how it adds up, what is missing
    Info(Files),
    /// Every disk column, with its least, mean and greatest value
    Columns(Files),
    /// Copy a part: by time, group of columns, VM or device
    Cut(Cut),
    /// Copy several files of one host as one, in the order of time
    Merge(Merge),
    /// Copy it with the names of hosts, VMs, devices, datastores and switches replaced
    Anonymize(Anonymize),
    /// Write a plain table, a row for each object and instant, as CSV or Parquet
    Convert(Convert),
    /// What `vscsiStats -p all -c` counted for each virtual disk
    Histograms {
        /// The output of `vscsiStats -p all -c`
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the command that records a capture that lacks nothing, and what FILE lacks
    Command(Command),
}

#[derive(Args)]
struct Files {
    /// Captures: CSV, gzip, zstd, zip, or `-` for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Args)]
struct Cut {
    #[command(flatten)]
    files: Files,
    /// Where to; of several captures each goes into a file of its own, with its number in the name
    /// [default: standard output, `-`]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The first instant, in UTC, as `2026-03-02 10:00:00` or `03/02/2026 10:00:00`
    #[arg(long, value_name = "TIME", value_parser = instant)]
    from: Option<i64>,
    /// The last instant
    #[arg(long, value_name = "TIME", value_parser = instant)]
    to: Option<i64>,
    /// Groups of columns as esxtop names them, separated by commas; `disk` stands for all that
    /// have it in their name
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    group: Vec<String>,
    /// A VM with its worlds, memory and ports and all that its I/Os pass; can be given several
    /// times
    #[arg(long, value_name = "NAME")]
    vm: Vec<String>,
    /// A device or NFS volume and the VMs that have a world on it; can be given several times
    #[arg(long, value_name = "NAME")]
    device: Vec<String>,
}

#[derive(Args)]
struct Merge {
    #[command(flatten)]
    files: Files,
    /// Where to; of several hosts each goes into a file of its own, with the host's name in it
    /// [default: standard output, `-`]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Args)]
struct Anonymize {
    #[command(flatten)]
    files: Files,
    /// Where to; of several captures each goes into a file of its own, with its number in the name
    /// [default: standard output, `-`]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write which name became which, as CSV that only its owner may read; `-` is standard output
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
}

#[derive(Args)]
struct Convert {
    #[command(flatten)]
    files: Files,
    /// Where to: `.csv` or `.parquet` says what it becomes
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Args)]
struct Command {
    /// Captures that may lack something
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The time between samples; esxtop takes 2 seconds at least
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = whole_seconds)]
    every: u32,
    /// How many samples
    #[arg(long, value_name = "N", default_value = "720")]
    samples: NonZeroU32,
}

fn whole_seconds(text: &str) -> std::result::Result<u32, String> {
    let nanos = scenario::parse_duration(text)?;
    match u32::try_from(nanos / SECOND) {
        Ok(seconds) if seconds >= 2 && nanos.is_multiple_of(SECOND) => Ok(seconds),
        _ => Err("allowed are whole seconds from 2s on".into()),
    }
}

impl Capture {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        match &self.what {
            What::Info(files) => {
                Outputs::print(&files.files)?;
                let capture = files.read()?;
                out.write_all(contents::info(&capture).as_bytes())?;
            }
            What::Columns(files) => {
                Outputs::print(&files.files)?;
                let capture = files.read()?;
                out.write_all(contents::columns(&capture.recordings).as_bytes())?;
            }
            What::Cut(cut) => cut.run()?,
            What::Merge(merge) => {
                copies::merge(&merge.files.files, merge.output.as_deref())?;
            }
            What::Anonymize(Anonymize { files, output, mapping }) => {
                copies::anonymize(&files.files, mapping.as_deref(), output.as_deref())?;
            }
            What::Convert(convert) => convert.run()?,
            What::Histograms { file } => {
                Outputs::print([file])?;
                let histograms =
                    parse_vscsistats(&file.display().to_string(), &read_output(file)?)?;
                out.write_all(contents::histograms(&histograms).as_bytes())?;
            }
            What::Command(command) => command.run(out)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Files {
    /// Reads everything and tells what was wrong.
    fn read(&self) -> Result<capture::Capture> {
        let capture = captures::read(&self.files, &ReadOptions::default())?;
        captures::complain(&capture.report);
        Ok(capture)
    }
}

impl Cut {
    fn run(&self) -> Result<()> {
        let part = capture::Cut {
            groups: self.group.clone(),
            vms: self.vm.clone(),
            devices: self.device.clone(),
            from_ms: self.from,
            to_ms: self.to,
        };
        copies::cut(&self.files.files, &part, self.output.as_deref())
    }
}

impl Convert {
    fn run(&self) -> Result<()> {
        let extension = self.output.extension().map(OsStr::to_ascii_lowercase);
        match extension.as_deref().and_then(OsStr::to_str) {
            Some("csv") => self.write(capture::write_csv),
            #[cfg(feature = "parquet")]
            Some(_) if captures::is_parquet(&self.output) => {
                self.write(|recordings, file| capture::write_parquet(recordings, file))
            }
            _ => {
                let name = self.output.display();
                Err(format!("{name}: allowed are .csv and .parquet").into())
            }
        }
    }

    fn write(
        &self,
        write: impl FnOnce(&[counters::Recording], &mut Pending) -> io::Result<()>,
    ) -> Result<()> {
        let output = Outputs::beside(&self.files.files).claim(&self.output)?;
        let recordings = self.files.read()?.recordings;
        output.write(|file| Ok(write(&recordings, file)?))
    }
}

impl Command {
    fn run(&self, out: &mut dyn Write) -> Result<()> {
        Outputs::print(&self.files)?;
        let record = record_command(self.every, self.samples.get());
        if !self.files.is_empty() {
            let capture = captures::read(&self.files, &ReadOptions::default())?;
            out.write_all(contents::missing(&capture).as_bytes())?;
        }
        out.write_all(contents::how_to_record(&record).as_bytes())?;
        Ok(())
    }
}
