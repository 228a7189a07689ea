//! `kavg bench capture`: how fast captures are read and diagnosed, beside other programs.
//!
//! Everything is measured on the same file in the same run, round by round, so that a machine that
//! is busy for a while is busy for all of them.

use std::{
    io::Write,
    num::NonZeroUsize,
    ops::Range,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use capture::{
    ReadOptions,
    bench::{Shape, bare_loop, disk_cells, generate, inflate},
};
use clap::Args;
use serde_json::json;

use crate::{
    Result, json,
    output::{Outputs, Pending},
    process::{self, Memory},
    table::Table,
    talk::{progress, say},
    text::whole,
};

/// Selects the disk columns with polars and prints the seconds that it took, without its start.
const POLARS: &str = "
import sys, time, polars
names = open(sys.argv[1], encoding='latin-1').readline().rstrip('\\r\\n').split('\",\"')
first, last = int(sys.argv[2]), int(sys.argv[3])
begin = time.perf_counter()
frame = polars.scan_csv(sys.argv[1], has_header=False, skip_rows=1, infer_schema_length=0)
frame = frame.select([f'column_{c + 1}' for c in range(first, last)])
frame = frame.with_columns(polars.all().cast(polars.Float64, strict=False)).collect()
print(time.perf_counter() - begin)
";

/// How large captures are read and diagnosed: seconds and memory, beside other programs
///
/// The capture is generated once and kept; run this twice, for the first run reads from the disk.
#[derive(Args)]
pub(crate) struct BenchCapture {
    /// Columns of the capture; 52000 is that of a large host
    #[arg(long, value_name = "N", default_value_t = 20_000,
        value_parser = clap::value_parser!(u32).range(1_000..=200_000))]
    columns: u32,
    /// Samples of the capture; 3600 go with 52000 columns
    #[arg(long, value_name = "N", default_value_t = 4_500,
        value_parser = clap::value_parser!(u32).range(3..=1_000_000))]
    rows: u32,
    /// Where the captures are kept [default: the directory for temporary files]
    #[arg(long = "in", value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Times that everything is measured; medians are shown
    #[arg(long, value_name = "N", default_value = "5")]
    rounds: NonZeroUsize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The files measured on.
struct Files {
    plain: PathBuf,
    gzip: PathBuf,
    zstd: PathBuf,
    /// The disk cells of a row.
    disk: Range<usize>,
}

/// What is timed.
struct Contender<'a> {
    name: String,
    /// The places of those of which the fastest is what it is compared with.
    peers: Range<usize>,
    /// One run, in seconds.
    run: Box<dyn Fn() -> Result<f64> + 'a>,
    /// The most memory of a run.
    memory: Option<Box<dyn Fn() -> Result<Memory> + 'a>>,
}

/// What was measured of one.
struct Measured {
    name: String,
    seconds: f64,
    fastest: f64,
    peers: Range<usize>,
    memory: Option<Memory>,
}

impl BenchCapture {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let files = self.files()?;
        let size = std::fs::metadata(&files.plain)?.len();
        let contenders = contenders(&files)?;
        let measured = self.measure(&contenders)?;
        if self.json {
            let rows: Vec<_> = measured.iter().map(|one| one.json(&measured)).collect();
            let value = json!({ "file": files.plain, "bytes": size, "columns": self.columns,
                "rows": self.rows, "disk_columns": files.disk.len(), "measured": rows });
            json::write(&value, out)?;
            return Ok(ExitCode::SUCCESS);
        }
        writeln!(
            out,
            "{} columns, {} of them about disks, {} rows, {} MB",
            whole(f64::from(self.columns)),
            whole(files.disk.len() as f64),
            whole(f64::from(self.rows)),
            whole(size as f64 / 1e6)
        )?;
        let head = ["", "s", "fastest", "ratio", "to", "own MB", "mapped MB"];
        let mut table = Table::new(&head).left(&[0, 4]);
        measured.iter().for_each(|one| table.row(one.row(&measured)));
        out.write_all(table.render().as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }

    /// Generates what is not there yet.
    fn files(&self) -> Result<Files> {
        let shape = Shape { columns: self.columns as usize, rows: self.rows as usize };
        let directory = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        let name = format!("kavg-bench-{}x{}.csv", shape.columns, shape.rows);
        let plain = directory.join(&name);
        let tell = |row: usize| {
            if row.is_multiple_of(100) {
                progress(&format!("{row} of {} rows generated", shape.rows));
            }
        };
        create(&plain, |file| Ok(generate(shape, file, &mut |row| tell(row))?))?;
        let packed = |extension| directory.join(format!("{name}.{extension}"));
        let (gzip, zstd) = (packed("gz"), packed("zst"));
        create(&gzip, |file| Ok(capture::bench::gzip(&plain, file)?))?;
        create(&zstd, |file| Ok(capture::bench::zstd(&plain, file)?))?;
        let disk = disk_cells(&plain)?;
        Ok(Files { plain, gzip, zstd, disk })
    }

    fn measure(&self, contenders: &[Contender<'_>]) -> Result<Vec<Measured>> {
        let mut seconds = vec![Vec::new(); contenders.len()];
        for round in 0..self.rounds.get() {
            for (contender, seconds) in contenders.iter().zip(&mut seconds) {
                progress(&format!("round {}: {}", round + 1, contender.name));
                seconds.push((contender.run)()?);
            }
        }
        progress("");
        let measured = contenders.iter().zip(seconds).map(|(contender, seconds)| {
            Ok(Measured {
                name: contender.name.clone(),
                seconds: levels::median(seconds.iter().copied()).unwrap_or(f64::NAN),
                fastest: seconds.into_iter().fold(f64::INFINITY, f64::min),
                peers: contender.peers.clone(),
                memory: contender.memory.as_ref().map(|memory| memory()).transpose()?,
            })
        });
        measured.collect()
    }
}

/// Writes a file that is not there yet.
fn create(path: &Path, write: impl FnOnce(&mut Pending) -> Result<()>) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    say(&format!("generating {}", path.display()));
    Outputs::beside::<&Path>([]).claim(path)?.write(write)?;
    progress("");
    Ok(())
}

/// Everything that is measured; what is not there is told of and left out.
fn contenders(files: &Files) -> Result<Vec<Contender<'_>>> {
    let mut all = Vec::new();
    add_program(&mut all, "wc", "-l", &files.plain);
    let bare = all.len();
    for threads in [1, 2] {
        all.push(Contender {
            name: format!("bare loop, {}", of_threads(threads)),
            peers: 0..0,
            run: Box::new(move || seconds(|| Ok(bare_loop(&files.plain, &files.disk, threads)?))),
            memory: None,
        });
    }
    let (alone, both) = (bare..bare + 1, bare + 1..bare + 2);
    all.push(read(&files.plain, "read", 1, alone));
    all.push(read(&files.plain, "read", 2, both.clone()));
    all.push(diagnose(&files.plain, "diagnose", both.clone())?);
    let polars = polars(files, both);
    match (polars.run)() {
        Ok(_) => all.push(polars),
        Err(error) => say(&format!("polars of python3 is left out: {error}")),
    }
    compressed(&mut all, &files.gzip, ".gz", &["gzip", "pigz", "igzip"])?;
    compressed(&mut all, &files.zstd, ".zst", &["zstd"])?;
    Ok(all)
}

/// Adds the programs that inflate a file, our library alone, reading and diagnosis, which are
/// compared with the fastest of the others.
fn compressed<'a>(
    all: &mut Vec<Contender<'a>>,
    file: &'a Path,
    extension: &'a str,
    programs: &[&'static str],
) -> Result<()> {
    let first = all.len();
    for name in programs {
        add_program(all, name, "-dc", file);
    }
    all.push(Contender {
        name: format!("inflate alone, {extension}"),
        peers: 0..0,
        run: Box::new(move || seconds(|| Ok(inflate(file)?))),
        memory: None,
    });
    let peers = first..all.len();
    all.push(read(file, &format!("read {extension}"), 2, peers.clone()));
    all.push(diagnose(file, &format!("diagnose {extension}"), peers)?);
    Ok(())
}

fn of_threads(threads: usize) -> String {
    crate::text::counted(threads, "thread")
}

fn seconds<T>(run: impl FnOnce() -> Result<T>) -> Result<f64> {
    let start = Instant::now();
    std::hint::black_box(run()?);
    Ok(start.elapsed().as_secs_f64())
}

/// The reader, in this process.
fn read<'a>(file: &'a Path, name: &str, threads: usize, peers: Range<usize>) -> Contender<'a> {
    let options = ReadOptions {
        threads: NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN),
        ..ReadOptions::default()
    };
    Contender {
        name: format!("{name}, {}", of_threads(threads)),
        peers,
        run: Box::new(move || {
            seconds(|| Ok(capture::read(&[file.to_owned()], &options, &mut |_, _| ())?))
        }),
        memory: None,
    }
}

/// Adds a program that gets a file, if it is installed.
fn add_program<'a>(
    all: &mut Vec<Contender<'a>>,
    program: &'static str,
    argument: &'static str,
    file: &'a Path,
) {
    if !process::is_installed(program) {
        say(&format!("{program} is not installed"));
        return;
    }
    let command = move || {
        let mut command = Command::new(program);
        command.arg(argument).arg(file);
        command
    };
    all.push(Contender {
        name: format!("{program} {argument}"),
        peers: 0..0,
        run: Box::new(move || Ok(process::time(&mut command())?)),
        memory: Some(Box::new(move || Ok(process::memory(&mut command())?))),
    });
}

/// The whole command as a user gives it.
fn diagnose<'a>(file: &'a Path, name: &str, peers: Range<usize>) -> Result<Contender<'a>> {
    let kavg = std::env::current_exe()?;
    let command = move || {
        let mut command = Command::new(&kavg);
        command.arg("diagnose").arg(file);
        command
    };
    let again = command.clone();
    Ok(Contender {
        name: format!("kavg {name}, all of it"),
        peers,
        run: Box::new(move || Ok(process::time(&mut command())?)),
        memory: Some(Box::new(move || Ok(process::memory(&mut again())?))),
    })
}

/// polars, without the start of Python.
fn polars(files: &Files, peers: Range<usize>) -> Contender<'_> {
    let command = || {
        let mut command = Command::new("python3");
        let cells = [files.disk.start, files.disk.end].map(|cell| cell.to_string());
        command.args(["-c", POLARS]).arg(&files.plain).args(cells);
        command
    };
    Contender {
        name: "polars, the disk columns".into(),
        peers,
        run: Box::new(move || {
            let output = command().output()?;
            let printed = String::from_utf8_lossy(&output.stdout);
            printed.trim().parse().map_err(|_| {
                let said = String::from_utf8_lossy(&output.stderr);
                said.lines().last().unwrap_or_default().into()
            })
        }),
        memory: Some(Box::new(move || Ok(process::memory(&mut command())?))),
    }
}

impl Measured {
    /// What it is compared with: the fastest of its peers.
    fn peer<'a>(&self, all: &'a [Self]) -> Option<&'a Self> {
        all[self.peers.clone()].iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    fn row(&self, all: &[Self]) -> Vec<String> {
        let peer = self.peer(all);
        let memory = |of: fn(&Memory) -> u64| {
            self.memory.as_ref().map_or_else(String::new, |memory| whole(of(memory) as f64 / 1e6))
        };
        vec![
            self.name.clone(),
            format!("{:.3}", self.seconds),
            format!("{:.3}", self.fastest),
            peer.map_or_else(String::new, |peer| format!("{:.2}", self.seconds / peer.seconds)),
            peer.map_or_else(String::new, |peer| peer.name.clone()),
            memory(|memory| memory.own),
            memory(|memory| memory.mapped),
        ]
    }

    fn json(&self, all: &[Self]) -> serde_json::Value {
        let peer = self.peer(all);
        json!({
            "what": self.name,
            "median_s": self.seconds,
            "fastest_s": self.fastest,
            "ratio": peer.map(|peer| self.seconds / peer.seconds),
            "to": peer.map(|peer| &peer.name),
            "own_bytes": self.memory.map(|memory| memory.own),
            "mapped_bytes": self.memory.map(|memory| memory.mapped),
        })
    }
}
