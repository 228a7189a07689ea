//! Captures read and written for the commands, with progress and with everything that was wrong
//! told.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use capture::{
    Capture, FileReport, HostReport, Progress, ReadOptions, ReadReport, Stamps, Zone, parse_stamp,
    write_esxtop,
};
use counters::Recording;
use diagnose::steers;
use levels::Measured;

use crate::{
    Result,
    output::{Output, Outputs, finish_all, is_device, is_stdout, names_file},
    talk::{progress, say},
    text::{clean, counted, whole},
};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3_600_000;

/// An instant that is typed: as esxtop stamps its rows, or as kavg prints it (`2026-03-02 10:00:00`, with `T` and `Z`
/// where one likes); in milliseconds since 1970, or since midnight where no day is told.
///
/// # Errors
/// What is expected.
pub(crate) fn instant(text: &str) -> std::result::Result<i64, String> {
    let plain = text.trim_end_matches(" UTC").trim_end_matches('Z');
    let turned = plain.split_once([' ', 'T']).and_then(|(date, time)| {
        let (year, rest) = date.split_once('-')?;
        let (month, day) = rest.split_once('-')?;
        Some(format!("{month}/{day}/{year} {time}"))
    });
    let stamp = parse_stamp(turned.as_deref().unwrap_or(plain).as_bytes());
    let expected = "expected YYYY-MM-DD HH:MM:SS or MM/DD/YYYY HH:MM:SS";
    stamp.map(|(ms, _)| ms).ok_or_else(|| expected.into())
}

/// An instant in a recording: one without a day is of the recording's first day, or of the next where only that has
/// it.
pub(crate) fn instant_in(recording: &Recording, ms: i64) -> i64 {
    let ends = recording.times_ms.first().copied().zip(recording.times_ms.last().copied());
    let Some((first, last)) = ends.filter(|_| (0..DAY_MS).contains(&ms)) else { return ms };
    let at = first - first.rem_euclid(DAY_MS) + ms;
    if at < first && at + DAY_MS <= last { at + DAY_MS } else { at }
}

/// Reads what the diagnosis looks at, and no more, and tells what was damaged. A capture without a
/// sample is refused.
pub(crate) fn read_needed(files: &[PathBuf]) -> Result<(Vec<Measured>, ReadReport)> {
    let options = ReadOptions { counters: diagnose::needed(), ..ReadOptions::default() };
    let capture = read(files, &options)?;
    require_samples(&capture)?;
    complain(&capture.report);
    Ok((capture.recordings.into_iter().map(Measured::of).collect(), capture.report))
}

/// One row is not enough: the first one of esxtop has no rates yet [CAP-A], and of a single one
/// nobody knows how long it took.
fn require_samples(capture: &Capture) -> Result<()> {
    let Some(file) = capture.report.files.iter().max_by_key(|file| file.rows) else {
        return Ok(());
    };
    if file.rows > 1 && capture.recordings.iter().all(|recording| !recording.is_empty()) {
        return Ok(());
    }
    let what = match (file.rows, file.damaged.first()) {
        (0, Some((line, damage))) => {
            format!("holds no whole row; of line {line}: {}", clean(&damage.to_string()))
        }
        (0, None) => "holds a header and no row".into(),
        (1, _) => "holds one row, and esxtop's first one has no rates yet".into(),
        _ => "holds no row with rates".into(),
    };
    let line = diagnose::RECORD_LINE;
    Err(format!("{}: {what}; record some minutes: {line}", file.file).into())
}

/// Reads captures.
pub(crate) fn read(files: &[PathBuf], options: &ReadOptions) -> Result<Capture> {
    Ok(told(|progress| capture::read(files, options, progress))?)
}

/// Reads files; a terminal is told how far that is when it takes long.
pub(crate) fn told<T>(read: impl FnOnce(Progress<'_>) -> T) -> T {
    let mut told = Told { last: Instant::now(), any: false };
    read(&mut |done, total| told.tell(done, total))
}

/// What a terminal was told.
struct Told {
    last: Instant,
    any: bool,
}

impl Told {
    /// Nothing is told earlier than this, nor more often.
    const INTERVAL: Duration = Duration::from_millis(500);

    fn tell(&mut self, done: u64, total: u64) {
        const MIB: f64 = 1_048_576.0;
        if self.last.elapsed() < Self::INTERVAL {
            return;
        }
        (self.last, self.any) = (Instant::now(), true);
        let of = if total > 0 { format!(" of {}", whole(total as f64 / MIB)) } else { "".into() };
        progress(&format!("{}{of} MiB read", whole(done as f64 / MIB)));
    }
}

impl Drop for Told {
    /// Leaves the line clean.
    fn drop(&mut self) {
        if self.any {
            progress("");
        }
    }
}

/// Tells what was left out or damaged.
pub(crate) fn complain(report: &ReadReport) {
    for line in complaints(report) {
        say(&line);
    }
}

/// What was left out or damaged: a line for each kind of trouble.
pub(crate) fn complaints(report: &ReadReport) -> Vec<String> {
    let mut lines = Vec::new();
    for file in &report.files {
        let name = clean(&file.file);
        if file.damaged_rows > 0 {
            let (line, what) = match file.damaged.first() {
                Some((line, damage)) => (*line, damage.to_string()),
                None => (0, String::new()),
            };
            let rows = counted(usize::try_from(file.damaged_rows).unwrap_or(usize::MAX), "row");
            lines.push(format!("{name}:{line}: {}; {rows} left out in all", clean(&what)));
        }
        if file.bad_cells > 0 {
            lines.push(format!("{name}: {} cells hold no number", whole(file.bad_cells as f64)));
        }
        lines.extend(oddities_of_time(file).into_iter().map(|line| format!("{name}: {line}")));
        if let Some(why) = &file.ended_early {
            lines.push(format!("{name}: ends early: {}", clean(why)));
        }
    }
    lines.extend(report.hosts.iter().flat_map(namesakes));
    lines.extend(report.hosts.iter().filter(|host| host.repeated_samples > 0).map(|host| {
        format!(
            "{}: {} left out: an earlier file has one of the same instant (those of \
             `kavg run` all begin at one)",
            clean(&host.host),
            counted(host.repeated_samples, "sample")
        )
    }));
    lines
}

/// VMs of one name, and how they are told apart.
fn namesakes(host: &HostReport) -> impl Iterator<Item = String> {
    host.namesakes.iter().map(|(name, vms)| {
        clean(&format!(
            "{}: {} VMs are called {name}: here they are {}, with the group of each (GID in esxtop); the columns \
             of their virtual disks do not tell whose they are, and are left out",
            host.host,
            vms.len(),
            vms.join(" and ")
        ))
    })
}

/// What is unusual about the times of a file, and what was made of it.
pub(crate) fn oddities_of_time(report: &FileReport) -> Vec<String> {
    let stamps = match report.stamps {
        Stamps::Seconds => None,
        Stamps::Minutes => Some("times without seconds: rows are spread evenly over their minute"),
        Stamps::TimeOnly => Some("times without a date: days are counted from 1970-01-01"),
        Stamps::MinuteOfHour => {
            Some("times without date and hour: hours are counted from 1970-01-01 00:00")
        }
    };
    let zone = match &report.zone {
        Zone::Utc => None,
        Zone::Other { name, west } => {
            let name = if name.is_empty() { "another time zone" } else { name };
            let side = if *west > 0 { "west" } else { "east" };
            Some(format!("times of {}, {} min {side} of UTC: told in UTC", clean(name), west.abs()))
        }
        Zone::Unknown => {
            Some("the header names no time zone: times are of the host's clock, told as UTC".into())
        }
    };
    let further = usize::try_from(report.further_headers).unwrap_or(usize::MAX);
    let counts = [
        (further, "more header", "between the rows: captures one behind the other, joined in time"),
        (
            report.unmeasured_rows,
            "row",
            "at the beginning without rates, the first sample once more: left out",
        ),
        (report.repeated_rows, "row", "with the time of the row above: left out"),
        (report.backward_steps, "step", "back in time: rows are put in the order of time"),
    ];
    let counts = counts.into_iter().filter(|(number, ..)| *number > 0);
    let counts = counts.map(|(number, what, then)| format!("{} {then}", counted(number, what)));
    let jumps = [
        (
            &report.clock_set_back,
            "step",
            "back of the clock",
            "the rows before are moved back with it",
        ),
        (
            &report.clock_set_ahead,
            "leap",
            "of the clock, or hole, of an hour or more",
            "its length counts for nothing",
        ),
        (
            &report.stray_rows,
            "row",
            "far from the time of all others",
            "put between its neighbours",
        ),
    ];
    let jumps = jumps.into_iter().filter_map(|(lines, what, of, then)| {
        let first = lines.first()?;
        let all = counted(lines.len(), what);
        Some(format!("{all} {of}, the first in line {first}: {then}"))
    });
    stamps.map(str::to_owned).into_iter().chain(zone).chain(counts).chain(jumps).collect()
}

/// A file for each host to write to, for [`write()`].
pub(crate) fn claim_samples<'a>(
    path: &Path,
    hosts: impl ExactSizeIterator<Item = &'a str>,
    outputs: &mut Outputs,
) -> Result<Vec<Output>> {
    require_table(path)?;
    claim(path, hosts, outputs)
}

/// A file for each host to write to: of several hosts each has its name in that of its file.
pub(crate) fn claim<'a>(
    path: &Path,
    hosts: impl ExactSizeIterator<Item = &'a str>,
    outputs: &mut Outputs,
) -> Result<Vec<Output>> {
    if hosts.len() == 1 {
        return Ok(vec![outputs.claim(path)?]);
    }
    if is_stdout(path) {
        let name = path.display();
        return Err(
            format!("{name}: standard output takes one of several hosts; name a file").into()
        );
    }
    names_file(path)?;
    with_hosts(path, hosts).iter().map(|path| outputs.claim(path)).collect()
}

/// A path for each host. Where one is taken, also if only by case or dots at its end, which Windows
/// does not tell apart, a number is added.
fn with_hosts<'a>(path: &Path, hosts: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
    if is_device(path) {
        return hosts.map(|_| path.to_owned()).collect();
    }
    let mut taken = BTreeSet::new();
    let mut free = |path: &Path| {
        let alike = path.to_string_lossy().to_lowercase();
        taken.insert(alike.trim_end_matches(['.', ' ']).to_owned())
    };
    let numbered = |host: &str| {
        let names = (2_u64..).map(|number| with_host(path, &format!("{host}-{number}")));
        [with_host(path, host)].into_iter().chain(names).find(|path| free(path))
    };
    hosts.filter_map(numbered).collect()
}

/// Writes recordings in the format of `esxtop -b`, each into its file; one that is called Parquet gets
/// the table of `kavg capture convert`. All have their file or none.
pub(crate) fn write(recordings: &[Recording], outputs: Vec<Output>) -> Result<()> {
    let whole = recordings.iter().zip(outputs).map(|(recording, output)| {
        let is_table = is_parquet(output.name());
        let mut file = output.open()?;
        match is_table {
            #[cfg(feature = "parquet")]
            true => capture::write_parquet(std::slice::from_ref(recording), &mut file)?,
            #[cfg(not(feature = "parquet"))]
            true => return Err("this kavg was built without Parquet; name a .csv".into()),
            false => write_esxtop(recording, &mut file)?,
        }
        Ok(file)
    });
    finish_all(whole)
}

/// How a file is called that is Parquet.
const PARQUET: [&str; 3] = ["parquet", "parq", "pq"];

/// Whether what is written there is to be Parquet.
pub(crate) fn is_parquet(path: &Path) -> bool {
    PARQUET.iter().any(|ending| ends_in(path, ending))
}

/// Extensions that promise something else than CSV, and what to do for it.
const OTHERS: [(&[&str], &str); 2] = [
    (&PARQUET, "name a .csv, of which `kavg capture convert` makes Parquet"),
    (
        &["gz", "zst", "zip", "bz2", "xz"],
        "name a .csv, or `-` and compress it, as `| gzip > esx01.csv.gz`",
    ),
];

/// Whether a name is that of a capture, or of a journal's segment.
pub(crate) fn is_named_so(path: &Path) -> bool {
    let others = OTHERS.iter().flat_map(|(endings, _)| *endings);
    others.chain(&["csv", "journal"]).any(|ending| ends_in(path, ending))
}

/// Refuses a name that promises something else than CSV or Parquet.
pub(crate) fn require_table(path: &Path) -> Result<()> {
    require_csv(Some(path).filter(|path| !is_parquet(path)))
}

/// Refuses a name that promises something else for what is written as CSV.
pub(crate) fn require_csv(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    match OTHERS.iter().find(|(endings, _)| endings.iter().any(|ending| ends_in(path, ending))) {
        Some((_, instead)) => {
            Err(format!("{}: this is written as CSV; {instead}", path.display()).into())
        }
        None => Ok(()),
    }
}

/// Whether a name has this extension, in any case.
fn ends_in(path: &Path, extension: &str) -> bool {
    // Also of a name that is nothing else, or ends with a blank.
    let name = path.as_os_str().to_string_lossy().trim_end().to_ascii_lowercase();
    name.strip_suffix(extension).is_some_and(|rest| rest.ends_with('.'))
}

/// `lab.csv` of the host esx01 is `lab.esx01.csv`. What no file name takes is written as vSphere
/// writes it in names, so that two hosts never have one file.
pub(crate) fn with_host(path: &Path, host: &str) -> PathBuf {
    let plain = |c: char| !r#"/\%:*?"<>|"#.contains(c) && !steers(c);
    let escaped = |c: char| match plain(c) {
        true => c.to_string(),
        false => format!("%{:02x}", u32::from(c)),
    };
    let host: String = host.chars().map(escaped).collect();
    match path.extension() {
        Some(extension) => path.with_extension(format!("{host}.{}", extension.display())),
        None => path.with_extension(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_typed_as_it_is_printed() {
        let at = 1_772_445_600_000;
        let same = [
            "03/02/2026 10:00:00",
            "2026-03-02 10:00:00",
            "2026-03-02 10:00",
            "2026-03-02 10:00:00 UTC",
            "2026-03-02T10:00:00Z",
        ];
        for text in same {
            assert_eq!(instant(text), Ok(at), "{text}");
        }
        for text in ["", "soon", "2026-03-02", "2026-13-02 10:00", "2026-03-02 25:00", "-- 1:00"] {
            assert!(instant(text).is_err(), "{text}");
        }
        let hour = 3_600_000;
        let mut recording = Recording::new("esx".into());
        recording.times_ms = vec![at, at + 16 * hour];
        let cases = [("10:30", hour / 2), ("01:00", 15 * hour), ("09:00", -hour)];
        for (text, after) in cases {
            assert_eq!(instant_in(&recording, instant(text).unwrap()), at + after, "{text}");
        }
        assert_eq!(instant_in(&recording, at + 5), at + 5);
    }

    #[test]
    fn the_host_goes_before_the_extension_and_into_no_other_directory() {
        let cases = [
            ("lab.csv", "esx01", "lab.esx01.csv"),
            ("out/lab", "esx01.site.example", "out/lab.esx01.site.example"),
            ("lab.csv", "../esx", "lab...%2fesx.csv"),
            ("lab.csv", "a%2fb", "lab.a%252fb.csv"),
            ("lab.csv", "a:b", "lab.a%3ab.csv"),
            ("lab.csv", "a\u{202e}b", "lab.a%202eb.csv"),
        ];
        for (path, host, expected) in cases {
            assert_eq!(with_host(Path::new(path), host), Path::new(expected));
        }
        let hosts = ["esx", "ESX", "esx-2", "b", "esx"];
        let expected =
            ["lab.esx.csv", "lab.ESX-2.csv", "lab.esx-2-2.csv", "lab.b.csv", "lab.esx-3.csv"];
        let paths = with_hosts(Path::new("lab.csv"), hosts.into_iter());
        assert_eq!(paths, expected.map(PathBuf::from));
        assert_eq!(with_hosts(Path::new("lab"), ["a", "a."].into_iter())[1], Path::new("lab.a.-2"));
    }
}
