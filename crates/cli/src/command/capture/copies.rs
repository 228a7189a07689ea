//! Captures copied to other files: a part of each, all as one, or without their names. Stands
//! between the command and `capture`, which copies bytes.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use capture::{
    AnonymizeReport, CopyReport, Cut, Input, Limits, Sequence, SequenceReport, Substitutes,
};

use crate::{
    Result,
    captures::with_host,
    text::{clean, counted, whole},
};

/// Dropped columns that are told.
const DROPPED: usize = 10;

/// Copies a part of each file.
pub(crate) fn cut(
    files: &[PathBuf],
    part: &Cut,
    output: Option<&Path>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut rows = 0;
    each(files, output, out, &mut |input, out| {
        let report = capture::cut(input, part, &Limits::default(), out)?;
        tell(&report);
        rows += report.rows;
        Ok(())
    })?;
    let timed = part.from_ms.is_some() || part.to_ms.is_some();
    if timed && rows == 0 {
        return Err("nothing was recorded between --from and --to".into());
    }
    Ok(())
}

/// Copies each file without its names, and writes what became of them to `mapping`.
pub(crate) fn anonymize(
    files: &[PathBuf],
    mapping: Option<&Path>,
    output: Option<&Path>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut substitutes = Substitutes::default();
    each(files, output, out, &mut |input, out| {
        let report = capture::anonymize(input, &mut substitutes, &Limits::default(), out)?;
        tell(&report.copy);
        tell_lost(&report);
        Ok(())
    })?;
    let counts: Vec<_> =
        substitutes.counts().iter().map(|(kind, number)| format!("{kind} {number}")).collect();
    anstream::eprintln!("names replaced: {}", counts.join(", "));
    let Some(mapping) = mapping else { return Ok(()) };
    to_file(mapping, files, &mut |out| {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        writeln!(out, "kind,name,substitute")?;
        for (kind, name, substitute) in substitutes.iter() {
            writeln!(out, "{kind},{},{substitute}", quoted(name))?;
        }
        Ok(())
    })
}

/// Copies the files of each host as one.
pub(crate) fn merge(files: &[PathBuf], output: Option<&Path>, out: &mut dyn Write) -> Result<()> {
    let limits = Limits::default();
    let hosts = Sequence::of(files, &limits)?;
    let Some(output) = output else {
        let [host] = hosts.as_slice() else {
            return Err("several hosts do not fit into one capture; name a file with -o".into());
        };
        host.write(&limits, out)?.iter().for_each(tell_part);
        return Ok(());
    };
    for host in &hosts {
        let named = with_host(output, host.host());
        let path = if hosts.len() > 1 { &named } else { output };
        to_file(path, files, &mut |out| {
            host.write(&limits, out)?.iter().for_each(tell_part);
            Ok(())
        })?;
    }
    Ok(())
}

/// Hands every capture in `files` to `copy`, with `out` or a file to write to; of several each
/// goes into a file of its own, with its number in the name.
fn each(
    files: &[PathBuf],
    output: Option<&Path>,
    out: &mut dyn Write,
    copy: &mut dyn FnMut(Input, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    let mut inputs = Vec::new();
    for file in files {
        inputs.extend(Input::open(file)?);
    }
    let several = inputs.len() > 1;
    if several && output.is_none() {
        return Err("several captures do not fit into one; name a file with -o".into());
    }
    for (input, number) in inputs.into_iter().zip(1..) {
        let Some(output) = output else { return copy(input, out) };
        let numbered = with_host(output, &format!("{number}"));
        let path = if several { &numbered } else { output };
        let mut input = Some(input);
        to_file(path, files, &mut |out| input.take().map_or(Ok(()), |input| copy(input, out)))?;
    }
    Ok(())
}

/// Writes a file by way of another one beside it, so that a refusal leaves what was there. A
/// device or pipe is written as it is.
fn to_file(
    path: &Path,
    inputs: &[PathBuf],
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let name = path.display();
    let same = |input: &&PathBuf| {
        fs::canonicalize(input).is_ok_and(|input| fs::canonicalize(path).is_ok_and(|p| p == input))
    };
    if inputs.iter().any(|input| same(&input)) {
        return Err(format!("{name}: is read from; name another file with -o").into());
    }
    let special = path.exists() && !path.is_file();
    let new = if special { path.to_owned() } else { PathBuf::from(format!("{name}.part")) };
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let mut file = BufWriter::new(File::create(&new).map_err(failed)?);
    let written = write(&mut file).and_then(|()| Ok(file.flush().map_err(failed)?));
    drop(file);
    match written {
        Ok(()) if new != path => Ok(fs::rename(&new, path).map_err(failed)?),
        Err(error) if new != path => {
            // What is wrong is said already; the half of a file is of no more use.
            let _ = fs::remove_file(&new);
            Err(error)
        }
        written => written,
    }
}

/// What of a file was left out on the way.
fn tell(report: &CopyReport) {
    let file = clean(&report.file);
    let rows = |number: u64| counted(usize::try_from(number).unwrap_or(usize::MAX), "row");
    if report.damaged_rows > 0 {
        let rows = rows(report.damaged_rows);
        anstream::eprintln!("{file}: {rows} damaged and left out");
    }
    if report.further_headers > 0 {
        let headers = whole(report.further_headers as f64);
        anstream::eprintln!("{file}: {headers} more headers between the rows, left out");
    }
    if let Some(why) = &report.ended_early {
        anstream::eprintln!("{file}: ends early: {}", clean(why));
    }
}

fn tell_part(report: &SequenceReport) {
    tell(&report.copy);
    let file = clean(&report.copy.file);
    if report.repeated_rows > 0 {
        let rows = whole(report.repeated_rows as f64);
        anstream::eprintln!("{file}: {rows} rows of times that an earlier file has, left out");
    }
    if report.missing_columns > 0 {
        let columns = counted(report.missing_columns, "column");
        anstream::eprintln!("{file}: has not {columns} of the other files; left empty");
    }
}

fn tell_lost(report: &AnonymizeReport) {
    let file = clean(&report.copy.file);
    let dropped: usize = report.dropped.values().sum();
    if dropped > 0 {
        let columns = counted(dropped, "column");
        anstream::eprintln!("{file}: {columns} dropped, for esxtop has none such as is known:");
    }
    for (name, number) in report.dropped.iter().take(DROPPED) {
        anstream::eprintln!("  {} ({})", clean(name), whole(*number as f64));
    }
    if let Some(more) = report.dropped.len().checked_sub(DROPPED).filter(|more| *more > 0) {
        anstream::eprintln!("  and {}", counted(more, "more name"));
    }
    if report.emptied_cells > 0 {
        let cells = whole(report.emptied_cells as f64);
        anstream::eprintln!("{file}: {cells} cells emptied, for they hold no number");
    }
}
