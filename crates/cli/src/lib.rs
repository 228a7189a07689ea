//! The program `kavg`: what is typed goes to a command, what a command says goes to stdout.
//!
//! It stands on top of everything: it reads scenarios and captures, runs and diagnoses them with
//! the libraries below, and shows what came out. Data goes to stdout, talk to stderr. The exit
//! code is 0 when all is well, 1 when an expectation fails or a diagnosis has findings, 2 when
//! the input is bad, 3 when a capture lacks what it takes to say that nothing is wrong.

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use ::live::Signals;

mod application;
mod array_load;
mod array_queues;
mod asks;
mod balance;
mod captures;
mod command;
mod compare;
mod contents;
mod course;
mod demand;
mod diagnosis;
mod doctor;
mod esxcli;
mod esxtop;
mod expectations;
mod explain;
mod facts;
mod given;
mod glossary;
mod host_links;
mod html;
mod jain;
mod journals;
mod json;
mod known;
mod lateness;
mod layers;
mod live;
mod log;
mod notes;
mod output;
mod own_limits;
mod packed;
mod percentiles;
mod picture;
mod plan;
mod process;
mod remedy;
mod report;
mod screen;
mod seeds;
mod settings;
mod shipped;
mod simulate;
mod spread;
mod stack;
mod sweep;
mod switch_links;
mod table;
mod talk;
mod tapes;
mod text;
mod usage;
mod verdict;
mod whatif;
mod windows;

/// What a command ends with: the exit code, or the one line that says what is wrong.
type Result<T = ExitCode> = std::result::Result<T, Box<dyn Error>>;

/// Does what the command line says; the exit code.
#[must_use]
pub fn main() -> ExitCode {
    Signals::outlive_file_limits();
    let mut out = Named(anstream::AutoStream::auto(io::stdout()).lock());
    let result = usage::run(&mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    result.unwrap_or_else(|error| refuse(error.as_ref()))
}

/// Standard output, which says that it is it when it cannot be written.
pub(crate) struct Named<W>(W);

impl<W: Write> Write for Named<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("standard output: {error}"))
}

/// Says what is wrong. A reader that has seen enough (`kavg run … | head`) is nothing wrong.
fn refuse(error: &(dyn Error + 'static)) -> ExitCode {
    if is_closed(error) {
        return ExitCode::SUCCESS;
    }
    talk::say(&format!("kavg: {}", text::clean(&error.to_string())));
    ExitCode::from(2)
}

/// Whether the reader of what is written has gone, however that is wrapped.
fn is_closed(error: &(dyn Error + 'static)) -> bool {
    let json = error.downcast_ref().and_then(serde_json::Error::io_error_kind);
    let copy = error.downcast_ref::<capture::Error>().and_then(|error| error.not_written);
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind).or(json).or(copy);
    kind == Some(io::ErrorKind::BrokenPipe) || error.source().is_some_and(is_closed)
}
