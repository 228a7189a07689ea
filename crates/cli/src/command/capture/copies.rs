//! Captures copied to other files: a part of each, all as one, or without their names. Stands
//! between the command and `capture`, which copies bytes.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use capture::{
    AnonymizeReport, CopyReport, Cut, Input, Limits, Sequence, SequenceReport, Substitutes,
    csv_cell,
};

use diagnose::steers;

use crate::{
    Result,
    captures::{self, require_csv, told, with_host},
    output::{Outputs, Pending, finish_all, is_device, is_stdout},
    talk::say,
    text::{clean, counted, whole},
};

/// Dropped columns that are told.
const DROPPED: usize = 10;

/// Copies a part of each file. One of which nothing is left is not written.
pub(crate) fn cut(files: &[PathBuf], part: &Cut, output: Option<&Path>) -> Result<()> {
    require_csv(output)?;
    let timed = part.from_ms.is_some() || part.to_ms.is_some();
    let mut kept = false;
    let copies = each(files, output, Outputs::beside(files), &mut |input, out| {
        let report = told(|progress| capture::cut(input, part, &Limits::default(), out, progress))?;
        tell(&report);
        let keep = !timed || report.rows > 0;
        kept |= keep;
        Ok(keep)
    })?;
    if !kept {
        return Err("nothing was recorded between --from and --to".into());
    }
    finish_all(copies.into_iter().map(Ok))
}

/// Copies each file without its names, and writes what became of them to `mapping`.
pub(crate) fn anonymize(
    files: &[PathBuf],
    mapping: Option<&Path>,
    output: Option<&Path>,
) -> Result<()> {
    require_csv(output)?;
    require_csv(mapping)?;
    let mut substitutes = Substitutes::default();
    let mut outputs = Outputs::beside(files);
    let mapping = mapping.map(|mapping| outputs.claim(mapping)).transpose()?;
    let copies = each(files, output, outputs, &mut |input, out| {
        let limits = Limits::default();
        let names = &mut substitutes;
        let report = told(|progress| capture::anonymize(input, names, &limits, out, progress))?;
        tell(&report.copy);
        tell_lost(&report);
        Ok(true)
    })?;
    let counts: Vec<_> =
        substitutes.counts().iter().map(|(kind, number)| format!("{kind} {number}")).collect();
    say(&format!("names replaced: {}", counts.join(", ")));
    if let Some(mapping) = mapping {
        // Before the copies: without it nobody could read them.
        mapping.secret().write(|out| {
            writeln!(out, "kind,name,substitute")?;
            for (kind, name, substitute) in substitutes.iter() {
                writeln!(out, "{kind},{},{substitute}", csv_cell(&seen(name)))?;
            }
            Ok(())
        })?;
    }
    finish_all(copies.into_iter().map(Ok))
}

/// A name of which every character is seen: what would steer a terminal, or turn around what is read on
/// it, is written as its code (`\u{202e}`).
fn seen(name: &str) -> String {
    let seen = |c: char| if steers(c) { c.escape_unicode().to_string() } else { c.into() };
    name.chars().map(seen).collect()
}

/// Copies the files of each host as one.
pub(crate) fn merge(files: &[PathBuf], output: Option<&Path>) -> Result<()> {
    require_csv(output)?;
    let limits = Limits::default();
    let hosts = told(|progress| Sequence::of(files, &limits, progress))?;
    if hosts.is_empty() {
        let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        return Err(
            format!("{}: no row below a header, so nothing to merge", names.join(", ")).into()
        );
    }
    let output = output.unwrap_or(Path::new("-"));
    let outputs =
        captures::claim(output, hosts.iter().map(Sequence::host), &mut Outputs::beside(files))?;
    finish_all(hosts.iter().zip(outputs).map(|(host, output)| {
        let mut out = output.open()?;
        told(|progress| host.write(&limits, &mut out, progress))?.iter().for_each(tell_part);
        Ok(out)
    }))
}

/// Hands every capture in `files` to `copy`, with standard output or a file to write to; of several each
/// goes into a file of its own, with its number in the name. Gives those that `copy` says are to be kept.
fn each(
    files: &[PathBuf],
    output: Option<&Path>,
    mut outputs: Outputs,
    copy: &mut dyn FnMut(Input, &mut dyn Write) -> Result<bool>,
) -> Result<Vec<Pending>> {
    // How many captures there are says only who reads; what is read may be a pipe that waits for us.
    output.map(|path| outputs.clone().claim(path)).transpose()?;
    let mut inputs = Vec::new();
    for file in files {
        inputs.extend(Input::open(file)?);
    }
    let several = inputs.len() > 1;
    let path = output.unwrap_or(Path::new("-"));
    if several && is_stdout(path) {
        return Err("several captures do not fit into one; name a file with -o".into());
    }
    let paths = (1..=inputs.len()).map(|number| match several {
        true if !is_device(path) => with_host(path, &number.to_string()),
        _ => path.to_owned(),
    });
    let claimed: Vec<_> = paths.map(|path| outputs.claim(&path)).collect::<Result<_>>()?;
    let mut copies = Vec::new();
    for (input, output) in inputs.into_iter().zip(claimed) {
        let mut pending = output.open()?;
        if copy(input, &mut pending)? {
            copies.push(pending);
        }
    }
    Ok(copies)
}

/// What of a file was left out on the way.
fn tell(report: &CopyReport) {
    let file = clean(&report.file);
    let rows = |number: u64| counted(usize::try_from(number).unwrap_or(usize::MAX), "row");
    if report.damaged_rows > 0 {
        let rows = rows(report.damaged_rows);
        say(&format!("{file}: {rows} damaged and left out"));
    }
    if report.further_headers > 0 {
        let headers = whole(report.further_headers as f64);
        say(&format!("{file}: {headers} more headers between the rows, left out"));
    }
    if let Some(why) = &report.ended_early {
        say(&format!("{file}: ends early: {}", clean(why)));
    }
}

fn tell_part(report: &SequenceReport) {
    tell(&report.copy);
    let file = clean(&report.copy.file);
    if report.repeated_rows > 0 {
        let rows = whole(report.repeated_rows as f64);
        say(&format!("{file}: {rows} rows of times that an earlier file has, left out"));
    }
    if report.missing_columns > 0 {
        let columns = counted(report.missing_columns, "column");
        say(&format!("{file}: has not {columns} of the other files; left empty"));
    }
}

fn tell_lost(report: &AnonymizeReport) {
    let file = clean(&report.copy.file);
    let dropped: usize = report.dropped.values().sum();
    if dropped > 0 {
        let columns = counted(dropped, "column");
        say(&format!("{file}: {columns} dropped, for esxtop has none such as is known:"));
    }
    for (name, number) in report.dropped.iter().take(DROPPED) {
        say(&format!("  {} ({})", clean(name), whole(*number as f64)));
    }
    if let Some(more) = report.dropped.len().checked_sub(DROPPED).filter(|more| *more > 0) {
        say(&format!("  and {}", counted(more, "more name")));
    }
    if report.emptied_cells > 0 {
        let cells = whole(report.emptied_cells as f64);
        say(&format!("{file}: {cells} cells emptied, for they hold no number"));
    }
}
