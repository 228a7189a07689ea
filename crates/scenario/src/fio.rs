//! fio job files, read as they are, and fio command lines as people post them. What becomes of
//! each option is in the tables of `fio_options.rs`.
//!
//! Defaults are those of fio's manual on Linux: psync, which has one I/O under way whatever
//! iodepth says, 4k, reads, half of a mix being reads.

use counters::{MICROSECOND, SECTOR};
use model::{Access, Arrival, Ceiling, Mix, Others, SizeMix, WAITING_MAX, WorkloadConfig};

use crate::{
    Error,
    fio_options::{BATCH, HARMLESS, NEUTRAL, USED, instead},
    names,
    reader::File,
    stream::{
        RATE_MAX, RATE_MIN, SIZES_MAX, Stream, THREADS_MAX, WORKING_SET_DEFAULT, check_io_size,
        check_shares, threads,
    },
    units,
};

const JOBS_MAX: usize = 10_000;

/// Engines that keep iodepth I/Os under way.
const ASYNCHRONOUS: &[&str] =
    &["libaio", "io_uring", "io_uring_cmd", "posixaio", "windowsaio", "solarisaio", "sg"];
/// Engines that have one I/O under way.
const SYNCHRONOUS: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

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

/// A rate for reads and one for writes.
type Caps = [Option<f64>; 2];

/// Streams, warnings, and how many I/Os a job hands over in a system call, with the refusal of that where its disk has no
/// block layer.
type Read = (Vec<Stream>, Vec<String>, Option<(u32, Error)>);

/// Reads a job file, or a command line.
pub(crate) fn read(name: &str, text: &str) -> Result<Read, Error> {
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
    let (mut warnings, mut batch) = (Vec::new(), None);
    let mut streams: Vec<Stream> = Vec::new();
    // Where the jobs before the last stonewall ended.
    let mut barrier = 0;
    for job in &jobs {
        let reader = Reader { file, job };
        batch = reader.check_options()?.or(batch);
        if reader.is_set("stonewall") || reader.is_set("wait_for_previous") {
            barrier = reader.end_of(&streams)?;
        }
        streams.push(reader.stream(barrier)?);
        reader.check_direct()?;
        warnings.extend(reader.warnings());
    }
    Ok((streams, warnings, batch))
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
            let Some(name) = section.strip_suffix(']') else {
                return Err(file.error(byte, &format!("`{line}`: `]` is missing")));
            };
            in_global = name == "global";
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

    /// Refuses what would change the I/O and is not modelled.
    fn check_options(&self) -> Result<Option<(u32, Error)>, Error> {
        let mut batch = None;
        for Setting { name, value, byte } in &self.job.options {
            let neutral = NEUTRAL.iter().find(|(known, _)| known == name);
            if let Some((_, values)) = neutral {
                if !values.contains(value) {
                    let allowed = names::list(values.iter().copied());
                    let message = format!(
                        "`{name}`: `{value}` is not modelled; it is {allowed} here{}",
                        instead(name)
                    );
                    let error = self.file.error(*byte, &message);
                    match threads(value) {
                        Ok(many) if BATCH.contains(name) => batch = Some((many, error)),
                        _ => return Err(error),
                    }
                }
            } else if !USED.contains(name) && !HARMLESS.contains(name) {
                let known = USED.iter().chain(HARMLESS).copied();
                let message = names::unknown("option that is read", name, known);
                return Err(self.file.error(*byte, &message));
            }
        }
        Ok(batch)
    }

    fn stream(&self, barrier: u64) -> Result<Stream, Error> {
        let (way, access) =
            self.parse(&["rw", "readwrite"], (Way::Read, Access::Sequential), way)?;
        let sizes = self.sizes(way)?;
        let ios_max = self.ios_max(&sizes)?;
        let read_share = self.read_share(way)?;
        let delay = self.parse(&["startdelay"], 0, |text| duration(text, "s"))?;
        let from_ns = barrier.saturating_add(delay);
        Ok(Stream {
            disk: None,
            config: WorkloadConfig {
                arrival: self.arrival(way, read_share, &sizes)?,
                mix: Mix::ReadWrite { read_share, sizes, others: Others::default() },
                access: self.access(way, access)?,
                working_set: self.parse(&["size", "filesize"], WORKING_SET_DEFAULT, file_size)?,
                burst: None,
                ios_max,
                tape: None,
            },
            from_ns,
            for_ns: self.runtime()?,
        })
    }

    /// Without `time_based` a job ends when it has moved `io_size`, or `size`, so many times over.
    fn ios_max(&self, sizes: &SizeMix) -> Result<Option<u64>, Error> {
        if self.is_set("time_based") {
            return Ok(None);
        }
        let bytes = self.parse(&["io_size", "io_limit", "size"], None, amount)?;
        let loops = self.parse(&["loops"], 1, threads)?;
        let jobs = self.parse(&["numjobs"], 1, threads)?;
        let ios = |bytes: u64| (bytes as f64 / mean(sizes)).ceil().max(1.0) as u64;
        let times = u64::from(loops) * u64::from(jobs);
        Ok(bytes.map(|bytes| ios(bytes).saturating_mul(times)))
    }

    /// `bssplit` goes before `bsrange`, and both before `bs`.
    fn sizes(&self, way: Way) -> Result<SizeMix, Error> {
        if self.get(&["bssplit"]).is_some() {
            return self.parse(&["bssplit"], SizeMix(Vec::new()), split);
        }
        let one = self.parse(&["bs", "blocksize"], SizeMix(vec![(4096, 1)]), |text| {
            Ok(SizeMix(vec![(by_way(text, way, block_size)?, 1)]))
        })?;
        self.parse(&["bsrange", "blocksize_range"], one, |text| by_way(text, way, range))
    }

    /// Of a random workload so many per cent are random, the others continue where the last one
    /// ended.
    fn access(&self, way: Way, access: Access) -> Result<Access, Error> {
        let percent = |text: &str| units::percent(&format!("{text}%"));
        let random = self.parse(&["percentage_random"], 1.0, |text| by_way(text, way, percent))?;
        Ok(if access == Access::Random { Access::of(random) } else { access })
    }

    /// `numjobs` jobs that are alike keep `iodepth` I/Os each; with a `thinktime` fio waits for
    /// all of them before it thinks, so that there is one.
    fn arrival(&self, way: Way, read_share: f64, sizes: &SizeMix) -> Result<Arrival, Error> {
        let jobs = self.parse(&["numjobs"], 1, threads)?;
        let depth = if self.is_asynchronous()? { self.parse(&["iodepth"], 1, threads)? } else { 1 };
        let think_ns = self.parse(&["thinktime"], 0, |text| duration(text, "us"))?;
        let depth = if think_ns > 0 { 1 } else { depth };
        let threads = jobs.checked_mul(depth).filter(|threads| *threads <= THREADS_MAX);
        let threads = threads.ok_or_else(|| {
            let message = format!("numjobs times iodepth is at most {THREADS_MAX}");
            self.file.error(self.job.byte, &message)
        })?;
        let rate = self.rate(way, read_share, sizes)?.map(|rate| rate * f64::from(jobs));
        let poisson = self.parse(&["rate_process"], false, |text| match text {
            "linear" => Ok(false),
            "poisson" => Ok(true),
            _ => Err(format!("`{text}` is not allowed; it is `linear` or `poisson`")),
        })?;
        match (poisson, rate, self.get(&["rate_process"])) {
            (true, Some(rate), _) if think_ns == 0 => Ok(Arrival::Open {
                rate,
                poisson,
                outstanding_max: threads,
                waiting_max: WAITING_MAX,
            }),
            (true, _, Some(setting)) => {
                let message = "`rate_process`: poisson goes with a rate and no thinktime";
                Err(self.file.error(setting.byte, message))
            }
            _ => {
                let rate = rate.map(|per_sec| Ceiling { per_sec, makes_up: true });
                Ok(Arrival::Closed { threads, think_ns, rate })
            }
        }
    }

    /// I/Os a second of one job. Reads and writes of a mix are each held to their own rate, so
    /// the mix is that of the rates.
    fn rate(&self, way: Way, read_share: f64, sizes: &SizeMix) -> Result<Option<f64>, Error> {
        let setting = match (self.get(&["rate"]), self.get(&["rate_iops"])) {
            (Some(_), Some(setting)) => {
                let message = "`rate_iops` does not go with `rate`";
                return Err(self.file.error(setting.byte, message));
            }
            (Some(setting), None) | (None, Some(setting)) => setting,
            (None, None) => return Ok(None),
        };
        // A rate in I/Os is one of their least bytes [FIO].
        let bytes_per_io =
            if setting.name == "rate" { mean(sizes) } else { mean(sizes) / least(sizes) };
        let number = if setting.name == "rate" { bytes } else { ios };
        let [reads, writes] = self.parse(&[setting.name], [None; 2], |text| caps(text, number))?;
        let refuse = |message: &str| Err(self.file.error(setting.byte, message));
        let total = match (way, reads, writes) {
            (Way::Read, cap, _) | (Way::Write, _, cap) => cap,
            (Way::Mixed, Some(reads), Some(writes)) => {
                let share = reads / (reads + writes);
                if (share - read_share).abs() > 0.005 {
                    return refuse(&format!(
                        "`{}`: these rates make {:.0} % reads; `rwmixread` must be the same",
                        setting.name,
                        100.0 * share
                    ));
                }
                Some(reads + writes)
            }
            (Way::Mixed, ..) => {
                return refuse(&format!(
                    "`{}`: a mix needs a rate for reads and one for writes, or none",
                    setting.name
                ));
            }
        };
        let total = total.map(|total| total / bytes_per_io);
        if total.is_some_and(|rate| !(RATE_MIN..=RATE_MAX).contains(&rate)) {
            return refuse(&format!(
                "`{}`: it is {RATE_MIN} to {RATE_MAX} I/Os a second",
                setting.name
            ));
        }
        Ok(total)
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
        let end = |stream: &Stream| match stream.config.ios_max {
            None => Some(stream.from_ns.saturating_add(stream.for_ns?)),
            Some(_) => None,
        };
        let ends = streams.iter().map(end);
        ends.collect::<Option<Vec<_>>>().map(|ends| ends.into_iter().max().unwrap_or(0)).ok_or_else(
            || {
                self.file.error(
                    self.job.byte,
                    "the jobs before a stonewall must have a runtime and time_based",
                )
            },
        )
    }

    /// What a guest reads ahead, and what it writes back when, is in no model here.
    fn check_direct(&self) -> Result<(), Error> {
        const WHY: &str =
            "without `direct=1` a guest caches what fio reads and writes, which is not modelled";
        let is_buffered = self.get(&["buffered"]).is_none_or(|setting| setting.value != "0");
        match is_buffered && !self.is_set("direct") {
            true => Err(self.file.error(self.job.byte, WHY)),
            false => Ok(()),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |byte, message: &str| {
            warnings.push(self.file.error(byte, message).to_string());
        };
        let depth = self.get(&["iodepth"]).filter(|depth| depth.value != "1");
        if let (Some(depth), Ok(false)) = (depth, self.is_asynchronous()) {
            warn(depth.byte, "`iodepth` has no effect with a synchronous ioengine");
        }
        warnings
    }
}

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
    known.map(|(_, way)| *way).ok_or_else(|| {
        let trims = if text.contains("trim") { instead("trim_percentage") } else { "" };
        names::unknown("value", text, table.iter().map(|(name, _)| *name)) + trims
    })
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

/// Bytes that a job moves; a share of a disk whose size nobody knows is no end.
fn amount(text: &str) -> Result<Option<u64>, String> {
    if text.ends_with('%') { Ok(None) } else { file_size(text).map(Some) }
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
    let blank = sizes.iter().filter(|(_, share)| share.is_none()).count();
    check_shares(given, blank > 0)?;
    let rest = (1.0 - given).max(0.0) / blank.max(1) as f64;
    let weight = |share: Option<f64>| (share.unwrap_or(rest) * 10_000.0).round() as u32;
    let mix: Vec<_> = sizes.into_iter().map(|(bytes, share)| (bytes, weight(share))).collect();
    let mix: Vec<_> = mix.into_iter().filter(|(_, weight)| *weight > 0).collect();
    if mix.is_empty() { Err("no size has a share above 0".into()) } else { Ok(SizeMix(mix)) }
}

/// `4k-16k`: fio draws evenly and rounds to multiples of the smaller size.
fn range(text: &str) -> Result<SizeMix, String> {
    let refuse = || format!("`{text}` is no range of sizes, as `4k-16k`");
    let (min, max) = text.split_once(['-', ':']).ok_or_else(refuse)?;
    let (min, max) = (block_size(min)?, block_size(max)?);
    if min > max {
        return Err(refuse());
    }
    let steps = max.div_ceil(min);
    if steps > SIZES_MAX {
        return Err(format!("`{text}` stands for {steps} sizes; {SIZES_MAX} are the most"));
    }
    let step = |number: u32| {
        let size = max.min(min.saturating_mul(number));
        (size, (size - min * (number - 1)) / SECTOR as u32)
    };
    Ok(SizeMix((1..=steps).map(step).collect()))
}

/// The mean size in bytes.
fn mean(sizes: &SizeMix) -> f64 {
    let weights: f64 = sizes.0.iter().map(|&(_, weight)| f64::from(weight)).sum();
    let sum: f64 = sizes.0.iter().map(|&(size, weight)| f64::from(size) * f64::from(weight)).sum();
    sum / weights.max(1.0)
}

/// Bytes of the smallest I/O.
fn least(sizes: &SizeMix) -> f64 {
    sizes.0.iter().map(|&(size, _)| f64::from(size)).fold(f64::INFINITY, f64::min)
}

/// `a` holds reads and writes each to it, `a,b` the one to a and the other to b, `a,` and `,b` only
/// one of them.
fn caps(text: &str, number: impl Fn(&str) -> Result<f64, String>) -> Result<Caps, String> {
    let cap = |text: &str| (!text.is_empty()).then(|| number(text)).transpose();
    let mut values = text.split(',');
    let reads = cap(values.next().unwrap_or(""))?;
    let caps = [reads, values.next().map_or(Ok(reads), cap)?];
    if caps == [None; 2] { Err(format!("`{text}` is no rate")) } else { Ok(caps) }
}

fn ios(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|rate| (RATE_MIN..=RATE_MAX).contains(rate));
    number.ok_or_else(|| format!("`{text}` is not allowed; it is I/Os a second"))
}

fn bytes(text: &str) -> Result<f64, String> {
    size(text).map(|bytes| bytes as f64).and_then(|bytes| match bytes > 0.0 {
        true => Ok(bytes),
        false => Err("it must be above 0".into()),
    })
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
            mix: Mix::ReadWrite {
                read_share: 0.0,
                sizes: SizeMix(vec![(512 << 10, 1)]),
                others: Others::default(),
            },
            access: Access::Random,
            working_set: 512 << 20,
            burst: None,
            ios_max: None,
            tape: None,
        };
        Stream { disk: None, config, from_ns: 0, for_ns: Some(600 * SECOND) }
    }

    #[test]
    fn the_command_line_of_s4_is_read_as_it_is() {
        let (streams, warnings, _) = read("s4", &format!("fio {S4}")).unwrap();
        let mut expected = forty();
        // Without time_based each job ends after its 512 MB.
        expected.config.ios_max = Some(5 * 1_024);
        assert_eq!((streams, warnings), (vec![expected], Vec::new()));
    }

    #[test]
    fn the_command_line_of_s4_as_a_job_file_is_the_same() {
        let lines = S4.replace("--name=", "[").replacen(' ', "]\n", 1).replace(" --", "\n");
        let text = lines.replace("]\n--", "]\n") + "\ntime_based\n";
        assert_eq!(read("s4.fio", &text).unwrap(), (vec![forty()], Vec::new(), None));
    }

    #[test]
    fn jobs_inherit_and_follow_each_other() {
        let text = "; mix\n[global]\nioengine=io_uring\ndirect=1\ntime_based\nruntime=1m\n\
                    [oltp]\nrw=randrw\nrwmixread=70\nbssplit=4k/60:8k/:16k/\niodepth=16\n\
                    rate_iops=350,150\nsync=0\n\
                    [backup]\nstonewall\nrw=write\nbs=4k,256k\nioengine=psync\niodepth=4\n\
                    thinktime=200\nstartdelay=5\n";
        let (streams, warnings, _) = read("x.fio", text).unwrap();
        insta::assert_debug_snapshot!((streams, warnings));
    }

    /// What one job is made of.
    fn config(options: &str) -> WorkloadConfig {
        let text = format!("[a]\ndirect=1\ntime_based\nioengine=libaio\n{options}");
        let (streams, warnings, _) = read("x.fio", &text).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        streams.into_iter().next().unwrap().config
    }

    #[test]
    fn rates_hold_each_job_and_each_direction() {
        let table = [
            ("rw=read\nbs=64k\nrate=64m", Some(1_024.0)),
            ("rw=write\nbs=64k\nrate=64m,32m", Some(512.0)),
            ("rw=read\nrate_iops=,500", None),
            ("rw=randrw\nrate_iops=500", Some(1_000.0)),
            ("rw=randrw\nrwmixread=70\nrate_iops=700,300\nnumjobs=4", Some(4_000.0)),
            ("rw=read\nbssplit=4k/50:12k/50\nrate=8m", Some(1_024.0)),
            ("rw=read\nbssplit=4k/50:12k/50\nrate_iops=800", Some(400.0)),
        ];
        for (options, expected) in table {
            let Arrival::Closed { rate, .. } = config(options).arrival else { panic!("{options}") };
            let expected = expected.map(|per_sec| Ceiling { per_sec, makes_up: true });
            assert_eq!(rate, expected, "{options}");
        }
        let poisson =
            config("rw=read\niodepth=16\nnumjobs=2\nrate_iops=4000\nrate_process=poisson");
        let (rate, outstanding_max) = (8_000.0, 32);
        let open = Arrival::Open { rate, poisson: true, outstanding_max, waiting_max: WAITING_MAX };
        assert_eq!(poisson.arrival, open);
    }

    #[test]
    fn ranges_of_sizes_and_partly_random_access_are_what_fio_draws() {
        let sizes = |text: &str| match config(&format!("rw=randread\nbsrange={text}")).mix {
            Mix::ReadWrite { sizes, .. } => sizes.0,
            _ => Vec::new(),
        };
        let k = 1024;
        assert_eq!(sizes("4k-16k"), [(4 * k, 8), (8 * k, 8), (12 * k, 8), (16 * k, 8)]);
        assert_eq!(sizes("4k:10k"), [(4 * k, 8), (8 * k, 8), (10 * k, 4)]);
        let access = |options: &str| config(options).access;
        assert_eq!(access("rw=randread\npercentage_random=30"), Access::Mixed(0.3));
        assert_eq!(access("rw=randread\npercentage_random=0"), Access::Sequential);
        assert_eq!(access("rw=read\npercentage_random=30"), Access::Sequential);
    }

    #[test]
    fn a_job_ends_with_its_size_unless_it_is_time_based() {
        let limit = |options: &str| {
            let text = format!("[a]\ndirect=1\nrw=read\nbs=64k\n{options}\n");
            read("x.fio", &text).unwrap().0[0].config.ios_max
        };
        let table = [
            ("size=1g", Some(16_384)),
            ("size=1g\nio_size=64m\nnumjobs=2\nloops=3", Some(6 * 1_024)),
            ("size=1g\ntime_based\nruntime=9", None),
            ("size=50%", None),
            ("runtime=9", None),
        ];
        for (options, expected) in table {
            assert_eq!(limit(options), expected, "{options}");
        }
    }

    #[test]
    fn a_job_that_thinks_has_one_io_under_way() {
        let think = config("rw=randread\niodepth=32\nnumjobs=3\nthinktime=200");
        assert_eq!(think.arrival, Arrival::Closed { threads: 3, think_ns: 200_000, rate: None });
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        let table = [
            ("", "x.fio:1:1: there are 0 jobs"),
            ("[a]\nrw=read\n[k\n", "x.fio:3:1: `[k`: `]` is missing"),
            ("[a]\nrw=randtrim\n", "x.fio:2:1: `rw`: there is no value `randtrim`"),
            ("[a]\nbs=1000\n", "x.fio:2:1: `bs`: 1000 bytes is no size of an I/O"),
            ("[a]\nbs=4ki\n", "x.fio:2:1: `bs`: `4ki`: fio reads this as a power of 1,000"),
            ("[a]\nioengine=rbd\n", "x.fio:2:1: `ioengine`: there is no engine `rbd`"),
            ("[a]\nioengine=libaio\niodepth=65536\nnumjobs=2\n", "x.fio:1:1: numjobs times"),
            ("[a]\nfilename=${DISK}\n", "x.fio:2:1: include and ${VARIABLES} are not read"),
            ("[a]\nrw=read\n", "x.fio:1:1: without `direct=1` a guest caches"),
            ("[a]\ndirect=1\n[b]\nstonewall\n", "x.fio:3:1: the jobs before a stonewall must"),
            ("[a]\nrw=randrw\nbs=4k,8k\n", "x.fio:3:1: `bs`: `4k,8k`: reads and writes"),
            ("[a]\nrandom_distribution=zipf:1.2\n", "x.fio:2:1: `random_distribution`: `zipf:1.2`"),
            ("[a]\nsync=1\n", "x.fio:2:1: `sync`: `1` is not modelled; it is `0`, `none` here; a"),
            (
                "[a]\nfsync=1\n",
                "x.fio:2:1: `fsync`: `1` is not modelled; it is `0` here; a flush that reaches the disk \
                 is `flush_after` of a workload of the scenario",
            ),
            (
                "[a]\nend_fsync=1\n",
                "x.fio:2:1: `end_fsync`: `1` is not modelled; it is `0` here; a flush",
            ),
            ("[a]\nfsync_on_close=1\n", "x.fio:2:1: `fsync_on_close`: `1` is not modelled"),
            ("[a]\nfdatasync=8\n", "x.fio:2:1: `fdatasync`: `8` is not modelled; it is `0` here"),
            (
                "[a]\nsync_file_range=write:8\n",
                "x.fio:2:1: there is no option that is read `sync_f",
            ),
            ("[a]\npre_read\n", "x.fio:2:1: `pre_read`: `1` is not modelled; it is `0` here"),
            ("[a]\nio_submit_mode=offload\n", "x.fio:2:1: `io_submit_mode`: `offload` is not mod"),
            ("[a]\nrat_iops=9\n", "x.fio:2:1: there is no option that is read `rat_iops`; did"),
            ("[a]\nnumber_ios=9\n", "x.fio:2:1: there is no option that is read `number_ios`"),
            ("[a]\nrate=1m\nrate_iops=9\n", "x.fio:3:1: `rate_iops` does not go with `rate`"),
            ("[a]\nrw=rw\nrate=1m,\n", "x.fio:3:1: `rate`: a mix needs a rate for reads and"),
            ("[a]\nrw=rw\nrate=1m,3m\n", "x.fio:3:1: `rate`: these rates make 25 % reads; `rw"),
            ("[a]\nrate=0\n", "x.fio:2:1: `rate`: it must be above 0"),
            ("[a]\nrate_process=poisson\n", "x.fio:2:1: `rate_process`: poisson goes with a"),
            ("[a]\nrate_process=bursty\n", "x.fio:2:1: `rate_process`: `bursty` is not allowed"),
            ("[a]\nbsrange=64k-4k\n", "x.fio:2:1: `bsrange`: `64k-4k` is no range of sizes"),
            ("[a]\nbssplit=4k/60:64k/60\n", "x.fio:2:1: `bssplit`: the shares add up to 120 %"),
            ("[a]\nbssplit=4k/60:64k/30\n", "x.fio:2:1: `bssplit`: the shares add up to 90 %"),
            ("[a]\nbsrange=512-32m\n", "x.fio:2:1: `bsrange`: `512-32m` stands for 65536 sizes"),
            ("[a]\npercentage_random=101\n", "x.fio:2:1: `percentage_random`: `101%` is no"),
            ("[a]\nthinktime_blocks=4\n", "x.fio:2:1: `thinktime_blocks`: `4` is not modelled"),
            ("[a]\niodepth_batch_complete=8\n", "x.fio:2:1: `iodepth_batch_complete`: `8` is not"),
            ("fio --name=a stray", "x.fio:1:14: `stray`: options are written as --name=value"),
        ];
        for (text, expected) in table {
            let error = read("x.fio", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
