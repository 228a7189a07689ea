//! fio job files, read as they are, and fio command lines as people post them. What does not
//! matter to queueing is left out, with a warning where it could be missed.
//!
//! Defaults are those of fio's manual on Linux: psync, which has one I/O under way whatever
//! iodepth says, 4k, reads, half of a mix being reads.

use counters::MICROSECOND;
use model::{Access, Arrival, Mix, SizeMix, WorkloadConfig};

use crate::{
    Error, names,
    reader::File,
    stream::{
        RATE_MAX, RATE_MIN, Stream, THREADS_MAX, WORKING_SET_DEFAULT, check_io_size, threads,
    },
    units,
};

const JOBS_MAX: usize = 10_000;

/// Engines that keep iodepth I/Os under way.
const ASYNCHRONOUS: &[&str] =
    &["libaio", "io_uring", "io_uring_cmd", "posixaio", "windowsaio", "solarisaio", "sg"];
/// Engines that have one I/O under way.
const SYNCHRONOUS: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

/// Options that say where, how to report or what the data is, not what the I/O is.
const HARMLESS: &[&str] = &[
    "name",
    "filename",
    "directory",
    "group_reporting",
    "randrepeat",
    "unlink",
    "output",
    "output-format",
    "invalidate",
    "thread",
    "norandommap",
    "refill_buffers",
    "randseed",
    "eta",
    "eta-newline",
    "description",
    "overwrite",
    "fallocate",
    "create_on_open",
    "file_service_type",
    "allow_file_create",
    "buffer_compress_percentage",
    "scramble_buffers",
    "zero_buffers",
    "log_avg_msec",
    "write_lat_log",
    "write_iops_log",
    "write_bw_log",
    "status-interval",
    "minimal",
    "lat_percentiles",
    "percentile_list",
    "disk_util",
    "gtod_reduce",
    "exitall",
    "per_job_logs",
    "clat_percentiles",
    "time_based",
    "random_generator",
];

/// What a job is made of; `[global]` says what the next jobs begin with.
#[derive(Clone)]
struct Job<'t> {
    options: Vec<Setting<'t>>,
    byte: usize,
}

/// An option with its value; `1` when it has none.
#[derive(Clone, Copy)]
struct Setting<'t> {
    name: &'t str,
    value: &'t str,
    byte: usize,
}

/// Which way the I/Os of a job go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
    Mixed,
}

/// Reads a job file, or a command line, into streams and warnings.
pub(crate) fn read(name: &str, text: &str) -> Result<(Vec<Stream>, Vec<String>), Error> {
    let file = File { name, text };
    let first = text.split_whitespace().next().unwrap_or("");
    let jobs = match first == "fio" || first.starts_with('-') {
        true => command_line(file)?,
        false => job_file(file)?,
    };
    if jobs.is_empty() || jobs.len() > JOBS_MAX {
        return Err(
            file.error(0, &format!("there are {} jobs; 1 to {JOBS_MAX} are read", jobs.len()))
        );
    }
    let mut warnings = Vec::new();
    let mut streams: Vec<Stream> = Vec::new();
    // Where the jobs before the last stonewall ended.
    let mut barrier = 0;
    for job in &jobs {
        let reader = Reader { file, job };
        if reader.is_set("stonewall") || reader.is_set("wait_for_previous") {
            barrier = reader.end_of(&streams)?;
        }
        streams.push(reader.stream(barrier)?);
        warnings.extend(reader.warnings());
    }
    Ok((streams, warnings))
}

/// Where a piece of a text stands in it.
fn offset(text: &str, piece: &str) -> usize {
    piece.as_ptr() as usize - text.as_ptr() as usize
}

fn setting<'t>(text: &'t str, piece: &'t str) -> Setting<'t> {
    let (name, value) = piece.split_once('=').unwrap_or((piece, "1"));
    Setting { name: name.trim(), value: value.trim(), byte: offset(text, piece) }
}

fn job_file(file: File<'_>) -> Result<Vec<Job<'_>>, Error> {
    let mut global: Vec<Setting<'_>> = Vec::new();
    let mut jobs: Vec<Job<'_>> = Vec::new();
    let mut in_global = true;
    for line in file.text.lines().map(str::trim) {
        let byte = offset(file.text, line);
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            in_global = section.strip_suffix(']') == Some("global");
            if !in_global {
                jobs.push(Job { options: global.clone(), byte });
            }
            continue;
        }
        if line.starts_with("include ") || line.contains("${") {
            return Err(file.error(byte, "include and ${VARIABLES} are not read"));
        }
        let setting = setting(file.text, line);
        match jobs.last_mut() {
            Some(job) if !in_global => job.options.push(setting),
            _ => global.push(setting),
        }
    }
    Ok(jobs)
}

/// Each `--name` begins a job; what stands before the first is for all.
fn command_line(file: File<'_>) -> Result<Vec<Job<'_>>, Error> {
    let mut global: Vec<Setting<'_>> = Vec::new();
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for word in file.text.split_whitespace().filter(|word| *word != "fio" && *word != "\\") {
        let byte = offset(file.text, word);
        let option = word.trim_start_matches('-');
        if option.len() == word.len() {
            return Err(file.error(byte, &format!("`{word}`: options are written as --name=value")));
        }
        let setting = setting(file.text, option);
        if setting.name == "name" {
            jobs.push(Job { options: global.clone(), byte });
        }
        match jobs.last_mut() {
            Some(job) => job.options.push(setting),
            None => global.push(setting),
        }
    }
    Ok(jobs)
}

struct Reader<'t> {
    file: File<'t>,
    job: &'t Job<'t>,
}

impl<'t> Reader<'t> {
    /// The last setting of an option under any of its names.
    fn get(&self, names: &[&str]) -> Option<&'t Setting<'t>> {
        self.job.options.iter().rev().find(|setting| names.contains(&setting.name))
    }

    fn is_set(&self, name: &str) -> bool {
        self.get(&[name]).is_some_and(|setting| setting.value != "0")
    }

    /// What a parser makes of an option; `default` without it.
    fn parse<T>(
        &self,
        names: &[&str],
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Error> {
        let Some(setting) = self.get(names) else { return Ok(default) };
        parse(setting.value).map_err(|message| {
            self.file.error(setting.byte, &format!("`{}`: {message}", setting.name))
        })
    }

    fn stream(&self, barrier: u64) -> Result<Stream, Error> {
        let (way, access) =
            self.parse(&["rw", "readwrite"], (Way::Read, Access::Sequential), way)?;
        let sizes = match self.get(&["bssplit"]) {
            Some(_) => self.parse(&["bssplit"], SizeMix(Vec::new()), split)?,
            None => self.parse(&["bs", "blocksize"], SizeMix(vec![(4096, 1)]), |text| {
                Ok(SizeMix(vec![(by_way(text, way, block_size)?, 1)]))
            })?,
        };
        let delay = self.parse(&["startdelay"], 0, |text| duration(text, "s"))?;
        let from_ns = barrier.saturating_add(delay);
        Ok(Stream {
            disk: None,
            config: WorkloadConfig {
                arrival: self.arrival(way)?,
                mix: Mix::ReadWrite { read_share: self.read_share(way)?, sizes },
                access,
                working_set: self.parse(&["size", "filesize"], WORKING_SET_DEFAULT, file_size)?,
                burst: None,
            },
            from_ns,
            for_ns: self.runtime()?,
        })
    }

    /// `numjobs` jobs that are alike keep `iodepth` I/Os each.
    fn arrival(&self, way: Way) -> Result<Arrival, Error> {
        let jobs = self.parse(&["numjobs"], 1, threads)?;
        let depth = if self.is_asynchronous()? { self.parse(&["iodepth"], 1, threads)? } else { 1 };
        let threads = jobs.checked_mul(depth).filter(|threads| *threads <= THREADS_MAX);
        let rate = self.parse(&["rate_iops"], None, |text| by_way(text, way, rate).map(Some))?;
        Ok(Arrival::Closed {
            threads: threads.ok_or_else(|| {
                let message = format!("numjobs times iodepth is at most {THREADS_MAX}");
                self.file.error(self.job.byte, &message)
            })?,
            think_ns: self.parse(&["thinktime"], 0, |text| duration(text, "us"))?,
            rate: rate.map(|rate| rate * f64::from(jobs)),
        })
    }

    fn is_asynchronous(&self) -> Result<bool, Error> {
        self.parse(&["ioengine"], false, |engine| {
            let known = ASYNCHRONOUS.iter().chain(SYNCHRONOUS).copied();
            if !known.clone().any(|known| known == engine) {
                return Err(names::unknown("engine", engine, known));
            }
            Ok(ASYNCHRONOUS.contains(&engine))
        })
    }

    fn read_share(&self, way: Way) -> Result<f64, Error> {
        let percent = |text: &str| units::percent(&format!("{text}%"));
        Ok(match way {
            Way::Read => 1.0,
            Way::Write => 0.0,
            Way::Mixed => {
                let writes = self.parse(&["rwmixwrite"], 0.5, percent)?;
                self.parse(&["rwmixread"], 1.0 - writes, percent)?
            }
        })
    }

    /// How long a job runs, its ramp included.
    fn runtime(&self) -> Result<Option<u64>, Error> {
        let runtime = self.parse(&["runtime", "timeout"], None, |t| duration(t, "s").map(Some))?;
        let ramp = self.parse(&["ramp_time"], 0, |text| duration(text, "s"))?;
        Ok(runtime.filter(|nanos| *nanos > 0).map(|nanos| nanos.saturating_add(ramp)))
    }

    /// When the last of the jobs before a stonewall ends.
    fn end_of(&self, streams: &[Stream]) -> Result<u64, Error> {
        let ends = streams.iter().map(|stream| Some(stream.from_ns.saturating_add(stream.for_ns?)));
        ends.collect::<Option<Vec<_>>>().map(|ends| ends.into_iter().max().unwrap_or(0)).ok_or_else(
            || self.file.error(self.job.byte, "the jobs before a stonewall must have a runtime"),
        )
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |byte, message: &str| {
            warnings.push(self.file.error(byte, message).to_string());
        };
        for setting in &self.job.options {
            if !USED.contains(&setting.name) && !HARMLESS.contains(&setting.name) {
                warn(setting.byte, &format!("`{}` is left out", setting.name));
            }
        }
        if !self.is_set("direct") {
            warn(self.job.byte, "without direct=1 a guest caches; here every I/O goes to the disk");
        }
        if !self.is_set("time_based") {
            warn(
                self.job.byte,
                "without time_based fio stops after `size` bytes; here it does not",
            );
        }
        let depth = self.get(&["iodepth"]).filter(|depth| depth.value != "1");
        if let (Some(depth), Ok(false)) = (depth, self.is_asynchronous()) {
            warn(depth.byte, "`iodepth` has no effect with a synchronous ioengine");
        }
        warnings
    }
}

/// Options that a stream is made of.
const USED: &[&str] = &[
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "bssplit",
    "startdelay",
    "size",
    "filesize",
    "numjobs",
    "iodepth",
    "rate_iops",
    "thinktime",
    "ioengine",
    "rwmixread",
    "rwmixwrite",
    "runtime",
    "timeout",
    "ramp_time",
    "stonewall",
    "wait_for_previous",
    "direct",
];

fn way(text: &str) -> Result<(Way, Access), String> {
    let table = [
        ("read", (Way::Read, Access::Sequential)),
        ("write", (Way::Write, Access::Sequential)),
        ("rw", (Way::Mixed, Access::Sequential)),
        ("readwrite", (Way::Mixed, Access::Sequential)),
        ("randread", (Way::Read, Access::Random)),
        ("randwrite", (Way::Write, Access::Random)),
        ("randrw", (Way::Mixed, Access::Random)),
    ];
    let known = table.iter().find(|(name, _)| *name == text);
    known
        .map(|(_, way)| *way)
        .ok_or_else(|| names::unknown("value", text, table.iter().map(|(name, _)| *name)))
}

/// `a` for both directions, or `a,b` for reads and writes; a mix needs one value.
fn by_way<T: PartialEq>(
    text: &str,
    way: Way,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, String> {
    let mut values = text.split(',');
    let reads = parse(values.next().unwrap_or(""))?;
    let Some(writes) = values.next() else { return Ok(reads) };
    let writes = parse(writes)?;
    match way {
        Way::Read => Ok(reads),
        Way::Write => Ok(writes),
        Way::Mixed if reads == writes => Ok(reads),
        Way::Mixed => Err(format!("`{text}`: reads and writes of one job must be alike here")),
    }
}

/// Sizes with k, m, g, t; fio takes `ki` for 1,000, which nobody expects.
fn size(text: &str) -> Result<u64, String> {
    let lower = text.to_lowercase();
    if lower.trim_end_matches('b').ends_with('i') {
        return Err(format!("`{text}`: fio reads this as a power of 1,000; write k, m, g or t"));
    }
    units::size(&lower)
}

fn block_size(text: &str) -> Result<u32, String> {
    size(text).and_then(check_io_size)
}

/// A share of the disk is as good as the default.
fn file_size(text: &str) -> Result<u64, String> {
    if text.ends_with('%') {
        return units::percent(text).map(|_| WORKING_SET_DEFAULT);
    }
    size(text).and_then(|bytes| match bytes {
        0 => Err("it must be above 0".into()),
        bytes => Ok(bytes),
    })
}

/// `4k/60:64k/40`; sizes without a share divide what is left.
fn split(text: &str) -> Result<SizeMix, String> {
    let mut sizes = Vec::new();
    for piece in text.split(':') {
        let (bytes, share) = piece.split_once('/').unwrap_or((piece, ""));
        let share = match share {
            "" => None,
            share => Some(units::percent(&format!("{share}%"))?),
        };
        sizes.push((block_size(bytes)?, share));
    }
    let given: f64 = sizes.iter().filter_map(|(_, share)| *share).sum();
    let blank = sizes.iter().filter(|(_, share)| share.is_none()).count().max(1);
    let rest = (1.0 - given).max(0.0) / blank as f64;
    let weight = |share: Option<f64>| (share.unwrap_or(rest) * 10_000.0).round() as u32;
    let mix: Vec<_> = sizes.into_iter().map(|(bytes, share)| (bytes, weight(share))).collect();
    let mix: Vec<_> = mix.into_iter().filter(|(_, weight)| *weight > 0).collect();
    if mix.is_empty() { Err("no size has a share above 0".into()) } else { Ok(SizeMix(mix)) }
}

fn rate(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|rate| (RATE_MIN..=RATE_MAX).contains(rate));
    number.ok_or_else(|| format!("`{text}` is not allowed; it is I/Os a second"))
}

/// A time; without a unit it is in `unit`.
fn duration(text: &str, unit: &str) -> Result<u64, String> {
    let number = text.chars().all(|c| c.is_ascii_digit());
    let text = match text.strip_suffix('m') {
        Some(minutes) => format!("{minutes}min"),
        None if number => format!("{text}{unit}"),
        None => text.to_string(),
    };
    let nanos = units::duration(&text)?;
    // fio knows no time below a microsecond.
    Ok(nanos / MICROSECOND * MICROSECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::SECOND;

    const S4: &str = "--name=randwrite --ioengine=libaio --iodepth=8 --rw=randwrite --bs=512k \
                      --direct=1 --size=512MB --numjobs=5 --runtime=600 --unlink=0";

    fn forty() -> Stream {
        let config = WorkloadConfig {
            arrival: Arrival::Closed { threads: 40, think_ns: 0, rate: None },
            mix: Mix::ReadWrite { read_share: 0.0, sizes: SizeMix(vec![(512 << 10, 1)]) },
            access: Access::Random,
            working_set: 512 << 20,
            burst: None,
        };
        Stream { disk: None, config, from_ns: 0, for_ns: Some(600 * SECOND) }
    }

    #[test]
    fn the_command_line_of_s4_is_read_as_it_is() {
        let (streams, warnings) = read("s4", &format!("fio {S4}")).unwrap();
        assert_eq!(streams, vec![forty()]);
        let stops = "without time_based fio stops after `size` bytes; here it does not";
        assert_eq!(warnings, vec![format!("s4:1:5: {stops}")]);
    }

    #[test]
    fn the_command_line_of_s4_as_a_job_file_is_the_same() {
        let lines = S4.replace("--name=", "[").replacen(' ', "]\n", 1).replace(" --", "\n");
        let text = lines.replace("]\n--", "]\n") + "\ntime_based\n";
        assert_eq!(read("s4.fio", &text).unwrap(), (vec![forty()], Vec::new()));
    }

    #[test]
    fn jobs_inherit_and_follow_each_other() {
        let text = "; mix\n[global]\nioengine=io_uring\ndirect=1\ntime_based\nruntime=1m\n\
                    [oltp]\nrw=randrw\nrwmixread=70\nbssplit=4k/60:8k/:16k/\niodepth=16\n\
                    rate_iops=500\nsync=1\n\
                    [backup]\nstonewall\nrw=write\nbs=4k,256k\nioengine=psync\niodepth=4\n\
                    thinktime=200\nstartdelay=5\n";
        insta::assert_debug_snapshot!(read("x.fio", text).unwrap());
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        let table = [
            ("", "x.fio:1:1: there are 0 jobs"),
            ("[a]\nrw=randtrim\n", "x.fio:2:1: `rw`: there is no value `randtrim`"),
            ("[a]\nbs=1000\n", "x.fio:2:1: `bs`: 1000 bytes is no size of an I/O"),
            ("[a]\nbs=4ki\n", "x.fio:2:1: `bs`: `4ki`: fio reads this as a power of 1,000"),
            ("[a]\nioengine=rbd\n", "x.fio:2:1: `ioengine`: there is no engine `rbd`"),
            ("[a]\nioengine=libaio\niodepth=65536\nnumjobs=2\n", "x.fio:1:1: numjobs times"),
            ("[a]\nfilename=${DISK}\n", "x.fio:2:1: include and ${VARIABLES} are not read"),
            ("[a]\n[b]\nstonewall\n", "x.fio:2:1: the jobs before a stonewall must have a"),
            ("[a]\nrw=randrw\nbs=4k,8k\n", "x.fio:3:1: `bs`: `4k,8k`: reads and writes"),
            ("fio --name=a stray", "x.fio:1:14: `stray`: options are written as --name=value"),
        ];
        for (text, expected) in table {
            let error = read("x.fio", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
