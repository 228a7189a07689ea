//! Vdbench parameter files, read as they are: the storage, workload and run definitions of raw
//! I/O. Parameters that cannot change what I/O is issued are in a table, and so are those that are
//! taken only at the value where they change nothing. Others are refused.
//!
//! Defaults are those of Vdbench's users guide: 8 threads, 4k, all reads, random, 30 seconds,
//! and a fixed rate with exponential times between arrivals.

use std::collections::BTreeSet;

use counters::{SECOND, SECTOR};
use model::{Access, Arrival, Mix, Others, SizeMix, WAITING_MAX, WorkloadConfig};

use crate::{
    Error, names,
    reader::File,
    stream::{
        RATE_MAX, RATE_MIN, SIZES_MAX, Stream, WORKING_SET_DEFAULT, check_io_size, check_shares,
        threads,
    },
    units,
};

/// Runs that one file may ask for: lists of rates and threads multiply.
const RUNS_MAX: usize = 1_000;
const STREAMS_MAX: usize = 10_000;
const THREADS_DEFAULT: u32 = 8;
const ELAPSED_DEFAULT_S: u64 = 30;

/// Parameters of each kind of definition that a stream is made of.
const OF_STORAGE: &[&str] = &["threads", "size", "range"];
const OF_WORKLOAD: &[&str] = &["sd", "xfersize", "rdpct", "seekpct", "skew", "threads", "range"];
const OF_RUN: &[&str] = &["wd", "iorate", "threads", "elapsed", "warmup", "pause", "distribution"];

/// Parameters that say where, how to report or what the data is, not what the I/O is.
const HARMLESS: &[&str] = &[
    "align",
    "compratio",
    "csim",
    "data_errors",
    "debug",
    "dedupratio",
    "dedupunit",
    "endcmd",
    "end_cmd",
    "format",
    "hd",
    "histogram",
    "hitarea",
    "host",
    "interval",
    "jvms",
    "lun",
    "messagescan",
    "monitor",
    "offset",
    "patterns",
    "report",
    "shell",
    "startcmd",
    "start_cmd",
    "system",
    "user",
    "vdbench",
];

/// Parameters that change what I/O is issued in a way that is not modelled, and the values at which
/// they do not. Cache hits are the array's to model, so there are none.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("concatenate", &["no"]),
    ("dedup", &["no"]),
    ("journal", &["no"]),
    ("openflags", &["directio", "none", "o_direct"]),
    ("rhpct", &["0"]),
    ("streams", &["1"]),
    ("validate", &["no"]),
    ("whpct", &["0"]),
];

/// Parameters of file system workloads, which no disk sees as they are.
const OF_FILES: &[&str] =
    &["fsd", "fwd", "fwdrate", "forfwdrate", "operation", "operations", "foroperations"];

/// A parameter with its values; one that is not in parentheses has one.
struct Parameter {
    name: String,
    values: Vec<String>,
    byte: usize,
}

/// A line of the file, continued after a comma.
struct Statement {
    parameters: Vec<Parameter>,
    byte: usize,
}

/// A storage definition.
#[derive(Clone)]
struct Storage {
    name: String,
    threads: u32,
    size: u64,
    /// How much of it is used.
    range: f64,
}

/// A workload definition.
#[derive(Clone)]
struct Definition {
    name: String,
    storages: Vec<usize>,
    sizes: SizeMix,
    read_share: f64,
    access: Access,
    /// Its part of the run's rate in per cent; what is left is shared by those without.
    skew: Option<f64>,
    threads: Option<u32>,
    /// How much of its storages it uses; `None` is as these say.
    range: Option<f64>,
}

/// A run definition.
#[derive(Clone)]
struct Run {
    definitions: Vec<usize>,
    /// One run each; `None` is "max".
    rates: Vec<Option<f64>>,
    /// One run each; `None` leaves them as they are defined.
    threads: Vec<Option<u32>>,
    elapsed_s: u64,
    warmup_s: u64,
    pause_s: u64,
    /// Whether the arrivals of a fixed rate are random, or evenly spaced.
    poisson: bool,
}

struct Reader<'t> {
    file: File<'t>,
    storages: Vec<Storage>,
    definitions: Vec<Definition>,
    runs: Vec<Run>,
    default_storage: Storage,
    default_definition: Definition,
    default_run: Run,
}

/// Reads a parameter file into streams, which say which storage definition they use when there
/// are several.
pub(crate) fn read(name: &str, text: &str) -> Result<Vec<Stream>, Error> {
    let mut reader = Reader::new(File { name, text });
    for statement in statements(text) {
        reader.statement(&statement)?;
    }
    if reader.runs.is_empty() {
        return Err(reader
            .file
            .error(0, "there is no run definition; it has rd=, wd= and sd= lines"));
    }
    reader.streams()
}

/// A word that ends in a comma goes on with the next one; what follows the last word on a line is
/// a comment.
fn statements(text: &str) -> Vec<Statement> {
    let mut all = Vec::new();
    let mut open = false;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with(['*', '/', '#']) {
            continue;
        }
        for word in line.split_whitespace() {
            let byte = word.as_ptr() as usize - text.as_ptr() as usize;
            if !open {
                all.push(Statement { parameters: Vec::new(), byte });
            }
            if let Some(statement) = all.last_mut() {
                statement.parameters.extend(parameters(word, byte));
            }
            open = word.ends_with(',');
            if !open {
                break;
            }
        }
    }
    all
}

/// The parameters of a word, split at the commas outside parentheses.
fn parameters(word: &str, byte: usize) -> Vec<Parameter> {
    let mut depth = 0_usize;
    let outside = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    let pieces = word.split(outside).filter(|piece| !piece.is_empty());
    let parameter = |piece: &str| {
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        let inner = value.strip_prefix('(').and_then(|value| value.strip_suffix(')'));
        let values = inner.unwrap_or(value).split(',').map(str::to_string).collect();
        let at = byte + (piece.as_ptr() as usize - word.as_ptr() as usize);
        Parameter { name: name.to_lowercase(), values, byte: at }
    };
    pieces.map(parameter).collect()
}

impl<'t> Reader<'t> {
    fn new(file: File<'t>) -> Self {
        Self {
            file,
            storages: Vec::new(),
            definitions: Vec::new(),
            runs: Vec::new(),
            default_storage: Storage {
                name: String::new(),
                threads: THREADS_DEFAULT,
                size: WORKING_SET_DEFAULT,
                range: 1.0,
            },
            default_definition: Definition {
                name: String::new(),
                storages: Vec::new(),
                sizes: SizeMix(vec![(4096, 1)]),
                read_share: 1.0,
                access: Access::Random,
                skew: None,
                threads: None,
                range: None,
            },
            default_run: Run {
                definitions: Vec::new(),
                rates: vec![None],
                threads: vec![None],
                elapsed_s: ELAPSED_DEFAULT_S,
                warmup_s: 0,
                pause_s: 0,
                poisson: true,
            },
        }
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Error> {
        let Some((first, rest)) = statement.parameters.split_first() else { return Ok(()) };
        let name = first.values.first().map_or("", String::as_str);
        let mut seen = BTreeSet::new();
        if let Some(twice) = rest.iter().find(|other| !seen.insert(other.name.as_str())) {
            let message = format!("`{}` is given twice", twice.name);
            return Err(self.file.error(twice.byte, &message));
        }
        let known = match first.name.as_str() {
            "sd" => self.storages.iter().any(|storage| storage.name == name),
            "wd" => self.definitions.iter().any(|definition| definition.name == name),
            _ => false,
        };
        if known {
            let message = format!("{} `{name}` is defined twice", first.name);
            return Err(self.file.error(statement.byte, &message));
        }
        match first.name.as_str() {
            "sd" => self.storage(name, rest),
            "wd" => self.definition(name, rest),
            "rd" => self.run(name, rest, statement.byte),
            "include" => Err(self.file.error(statement.byte, "`include` is not read")),
            "hd" => Ok(()),
            _ => statement.parameters.iter().try_for_each(|other| self.pass(other, &[])),
        }
    }

    /// Passes over what does not change the I/O, and refuses the rest; `own` is what this kind of
    /// definition is made of.
    fn pass(&self, parameter: &Parameter, own: &[&str]) -> Result<(), Error> {
        let name = parameter.name.as_str();
        if let Some((_, neutral)) = NEUTRAL.iter().find(|(known, _)| *known == name) {
            if parameter.values.iter().all(|value| neutral.contains(&value.as_str())) {
                return Ok(());
            }
            let message = format!(
                "`{name}`: `{}` is not modelled; it is {} here{}",
                parameter.values.join(","),
                names::list(neutral.iter().copied()),
                instead(name)
            );
            return Err(self.file.error(parameter.byte, &message));
        }
        if HARMLESS.contains(&name) {
            return Ok(());
        }
        if OF_FILES.contains(&name) {
            let message = format!(
                "file system workloads are not read, hence not `{name}`; a parameter file has sd=, wd= \
                 and rd= lines with reads and writes by `rdpct`; flushes and discards are \
                 `flush_after` and `others` of a workload of the scenario"
            );
            return Err(self.file.error(parameter.byte, &message));
        }
        let known = own.iter().chain(HARMLESS).copied();
        let message = names::unknown("parameter that is read here", name, known);
        Err(self.file.error(parameter.byte, &message))
    }

    fn storage(&mut self, name: &str, parameters: &[Parameter]) -> Result<(), Error> {
        let mut storage = Storage { name: name.into(), ..self.default_storage.clone() };
        for parameter in parameters {
            match parameter.name.as_str() {
                "threads" | "thread" => storage.threads = self.one(parameter, threads)?,
                "size" => storage.size = self.one(parameter, units::size)?,
                "range" => storage.range = self.range(parameter)?,
                _ => self.pass(parameter, OF_STORAGE)?,
            }
        }
        if name == "default" {
            self.default_storage = storage;
        } else {
            self.storages.push(storage);
        }
        Ok(())
    }

    fn definition(&mut self, name: &str, parameters: &[Parameter]) -> Result<(), Error> {
        let mut definition = Definition { name: name.into(), ..self.default_definition.clone() };
        for parameter in parameters {
            match parameter.name.as_str() {
                "sd" => {
                    let known = self.storages.iter().map(|storage| storage.name.as_str());
                    definition.storages = self.select(parameter, "storage definition", known)?;
                }
                "xfersize" => definition.sizes = self.sizes(parameter)?,
                "rdpct" | "readpct" => definition.read_share = self.one(parameter, share)?,
                "seekpct" | "seek" => definition.access = self.access(parameter)?,
                "skew" => definition.skew = Some(self.one(parameter, share)?),
                "range" => definition.range = Some(self.range(parameter)?),
                "threads" | "thread" => definition.threads = Some(self.one(parameter, threads)?),
                _ => self.pass(parameter, OF_WORKLOAD)?,
            }
        }
        if name == "default" {
            self.default_definition = definition;
        } else if definition.storages.is_empty() {
            let byte = parameters.first().map_or(0, |parameter| parameter.byte);
            return Err(self.file.error(byte, &format!("workload `{name}` names no sd=")));
        } else {
            self.definitions.push(definition);
        }
        Ok(())
    }

    fn run(&mut self, name: &str, parameters: &[Parameter], byte: usize) -> Result<(), Error> {
        let mut run = self.default_run.clone();
        for parameter in parameters {
            match parameter.name.as_str() {
                "wd" => {
                    let known = self.definitions.iter().map(|definition| definition.name.as_str());
                    run.definitions = self.select(parameter, "workload definition", known)?;
                }
                "iorate" => run.rates = self.all(parameter, rate)?,
                "threads" | "thread" | "forthreads" => {
                    run.threads = self.all(parameter, |text| threads(text).map(Some))?;
                }
                "elapsed" => run.elapsed_s = self.one(parameter, elapsed)?,
                "warmup" => run.warmup_s = self.one(parameter, seconds)?,
                "pause" => run.pause_s = self.one(parameter, seconds)?,
                "distribution" => run.poisson = self.one(parameter, distribution)?,
                _ => self.pass(parameter, OF_RUN)?,
            }
        }
        if name == "default" {
            self.default_run = run;
            return Ok(());
        }
        if run.definitions.is_empty() {
            return Err(self.file.error(byte, &format!("run `{name}` names no wd=")));
        }
        let mut of_run = run.definitions.iter().map(|index| &self.definitions[*index]);
        if let Some(skewed) = of_run.find(|definition| definition.skew.is_some())
            && run.rates.contains(&None)
        {
            let named = parameters.iter().find(|parameter| parameter.name == "iorate");
            let message = format!(
                "`skew` of workload `{}` is modelled at a rate only; `iorate` of a run that has it is a number",
                skewed.name
            );
            return Err(self.file.error(named.map_or(byte, |parameter| parameter.byte), &message));
        }
        self.runs.push(run);
        Ok(())
    }

    /// What the names and `name*` patterns of a parameter mean.
    fn select<'n>(
        &self,
        parameter: &Parameter,
        noun: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<Vec<usize>, Error> {
        let mut selected = Vec::new();
        for pattern in &parameter.values {
            let matches = |name: &str| match pattern.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == pattern,
            };
            let found = known.clone().enumerate().filter(|(_, name)| matches(name));
            let found: Vec<_> = found.map(|(index, _)| index).collect();
            if found.is_empty() {
                let message = names::unknown(noun, pattern, known);
                return Err(self.file.error(parameter.byte, &message));
            }
            selected.extend(found);
        }
        Ok(selected)
    }

    /// What a parser makes of each value of a parameter.
    fn all<T>(
        &self,
        parameter: &Parameter,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, Error> {
        let parsed = parameter.values.iter().map(|value| parse(value));
        parsed.collect::<Result<_, _>>().map_err(|message| {
            self.file.error(parameter.byte, &format!("`{}`: {message}", parameter.name))
        })
    }

    /// The value of a parameter that has one.
    fn one<T>(
        &self,
        parameter: &Parameter,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Error> {
        let mut all = self.all(parameter, parse)?;
        match (all.pop(), all.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(self.file.error(
                parameter.byte,
                &format!(
                    "`{}` has one value here; lists are read for iorate and threads of a run",
                    parameter.name
                ),
            )),
        }
    }

    /// `4k`, sizes with their shares: `(4k,70,64k,30)`, or any of `(min,max,align)`.
    fn sizes(&self, parameter: &Parameter) -> Result<SizeMix, Error> {
        let refuse =
            |message: &str| self.file.error(parameter.byte, &format!("`xfersize`: {message}"));
        let size = |text: &String| {
            units::size(text).and_then(check_io_size).map_err(|message| refuse(&message))
        };
        if let [one] = parameter.values.as_slice() {
            return Ok(SizeMix(vec![(size(one)?, 1)]));
        }
        if let [min, max, align] = parameter.values.as_slice() {
            return steps(size(min)?, size(max)?, size(align)?).map_err(|message| refuse(&message));
        }
        let (pairs, []) = parameter.values.as_chunks::<2>() else {
            return Err(refuse("sizes go with their shares in pairs, as (4k,70,64k,30)"));
        };
        let mut mix = Vec::new();
        let mut sum = 0.0;
        for [bytes, weight] in pairs {
            let weight = share(weight).map_err(|message| refuse(&message))?;
            sum += weight;
            // Shares have at most two decimals.
            mix.push((size(bytes)?, (weight * 10_000.0).round().max(1.0) as u32));
        }
        check_shares(sum, false).map_err(|message| refuse(&message))?;
        Ok(SizeMix(mix))
    }

    /// `(40,60)`: which part of a storage is used, in per cent. Where it begins is no matter, as with its size.
    fn range(&self, parameter: &Parameter) -> Result<f64, Error> {
        let shares = self.all(parameter, share)?;
        let part = <[f64; 2]>::try_from(shares).ok().map(|[from, to]| to - from);
        part.filter(|part| *part > 0.0).ok_or_else(|| {
            let message = format!(
                "`range`: `{}` is not read; it is two parts of the storage in per cent, as (40,60)",
                parameter.values.join(",")
            );
            self.file.error(parameter.byte, &message)
        })
    }

    /// 0 is sequential, 100 is random; of what is between so much is random.
    fn access(&self, parameter: &Parameter) -> Result<Access, Error> {
        self.one(parameter, |text| match text {
            "seq" | "sequential" => Ok(Access::Sequential),
            "rand" | "random" => Ok(Access::Random),
            "eof" | "-1" => Err("a run does not end with the volume here; it is 0 to 100".into()),
            _ => share(text).map(Access::of),
        })
    }

    /// The runs one after the other.
    fn streams(&self) -> Result<Vec<Stream>, Error> {
        let too_much = |what: &str, max: usize| {
            self.file.error(0, &format!("there are too many {what}; at most {max} are read"))
        };
        let mut streams = Vec::new();
        let mut from_s = 0_u64;
        let mut runs = 0;
        for run in &self.runs {
            for &threads in &run.threads {
                for &rate in &run.rates {
                    runs += 1;
                    if runs > RUNS_MAX {
                        return Err(too_much("runs", RUNS_MAX));
                    }
                    let for_s = run.warmup_s + run.elapsed_s;
                    self.run_streams(run, threads, rate, (from_s, for_s), &mut streams);
                    if streams.len() > STREAMS_MAX {
                        return Err(too_much("workloads", STREAMS_MAX));
                    }
                    from_s += for_s + run.pause_s;
                }
            }
        }
        Ok(streams)
    }

    /// One run: each workload on each of its storages, with its part of rate and threads.
    fn run_streams(
        &self,
        run: &Run,
        threads: Option<u32>,
        rate: Option<f64>,
        (from_s, for_s): (u64, u64),
        streams: &mut Vec<Stream>,
    ) {
        let definitions = || run.definitions.iter().map(|index| &self.definitions[*index]);
        let skewed: f64 = definitions().filter_map(|definition| definition.skew).sum();
        let others = definitions().filter(|definition| definition.skew.is_none()).count();
        let users =
            |storage: &usize| definitions().filter(|d| d.storages.contains(storage)).count();
        for definition in definitions() {
            let part = definition.skew.unwrap_or((1.0 - skewed).max(0.0) / others.max(1) as f64);
            let part = part / definition.storages.len() as f64;
            for &index in &definition.storages {
                let storage = &self.storages[index];
                let threads = threads.or(definition.threads).unwrap_or(storage.threads);
                let threads = threads.div_ceil(users(&index) as u32);
                let arrival = match rate {
                    None => Arrival::Closed { threads, think_ns: 0, rate: None },
                    Some(rate) => Arrival::Open {
                        rate: (rate * part).max(RATE_MIN),
                        poisson: run.poisson,
                        outstanding_max: threads,
                        waiting_max: WAITING_MAX,
                    },
                };
                let mix = Mix::ReadWrite {
                    read_share: definition.read_share,
                    sizes: definition.sizes.clone(),
                    others: Others::default(),
                };
                let part = definition.range.unwrap_or(storage.range);
                let used = (storage.size as f64 * part).round() as u64;
                let (access, working_set) = (definition.access, used.max(SECTOR));
                let config = WorkloadConfig {
                    arrival,
                    mix,
                    access,
                    working_set,
                    burst: None,
                    ios_max: None,
                    tape: None,
                };
                streams.push(Stream {
                    disk: (self.storages.len() > 1).then_some(index),
                    config,
                    from_ns: from_s.saturating_mul(SECOND),
                    for_ns: Some(for_s.saturating_mul(SECOND)),
                });
            }
        }
    }
}

/// What a workload of the scenario's own has instead of a parameter that is refused.
fn instead(parameter: &str) -> &'static str {
    match parameter {
        "openflags" => {
            "; flushes and writes with FUA are `flush_after` and `fua` of a workload of the scenario"
        }
        _ => "",
    }
}

fn share(text: &str) -> Result<f64, String> {
    units::percent(&format!("{}%", text.trim_end_matches('%')))
}

fn rate(text: &str) -> Result<Option<f64>, String> {
    if text.eq_ignore_ascii_case("max") {
        return Ok(None);
    }
    let number = text.parse::<f64>().ok().filter(|rate| (RATE_MIN..=RATE_MAX).contains(rate));
    number.map(Some).ok_or_else(|| format!("`{text}` is not allowed; it is max or I/Os a second"))
}

/// Times between arrivals: whether they are random.
fn distribution(text: &str) -> Result<bool, String> {
    match text {
        "exponential" => Ok(true),
        "deterministic" => Ok(false),
        _ => Err(format!("`{text}` is not modelled; it is `exponential` or `deterministic` here")),
    }
}

/// Every multiple of `align` between two sizes, as often as every other.
fn steps(min: u32, max: u32, align: u32) -> Result<SizeMix, String> {
    let first = min.div_ceil(align);
    let count = (max / align + 1).saturating_sub(first);
    if !(1..=SIZES_MAX).contains(&count) {
        return Err(format!(
            "between these are {count} sizes; (min,max,align) stands for 1 to {SIZES_MAX}"
        ));
    }
    Ok(SizeMix((first..first + count).map(|number| (number * align, 1)).collect()))
}

/// A run takes a second at least.
fn elapsed(text: &str) -> Result<u64, String> {
    let positive = Some(seconds(text)?).filter(|seconds| *seconds > 0);
    positive.ok_or_else(|| format!("`{text}` is not allowed; it is a second at least"))
}

/// Seconds, or a number with m or h.
fn seconds(text: &str) -> Result<u64, String> {
    let text = text.to_lowercase();
    let in_units = match text.strip_suffix('m') {
        Some(minutes) => units::duration(&format!("{minutes}min")),
        None if text.ends_with(['s', 'h']) => units::duration(&text),
        None => units::duration(&format!("{text}s")),
    };
    let nanos =
        in_units.map_err(|_| format!("`{text}` is not allowed; it is seconds, 5m or 2h"))?;
    Ok(nanos / SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader of S0 asked for: the first is the whole file of that comment.
    #[test]
    fn the_parameter_file_of_s0_is_read_as_it_is() {
        let text = "sd=sd1,lun=[drive]:\\iobw.tst,threads=96,size=100m\n\
                    wd=wd*,sd=*,xfersize=4k,rdpct=100,seekpct=0,openflags=directio\n\
                    rd=run1,wd=wd*,iorate=max,elapsed=300,interval=10\n";
        let streams = read("s0.vdb", text).unwrap();
        let config = WorkloadConfig {
            arrival: Arrival::Closed { threads: 96, think_ns: 0, rate: None },
            mix: Mix::ReadWrite {
                read_share: 1.0,
                sizes: SizeMix(vec![(4096, 1)]),
                others: Others::default(),
            },
            access: Access::Sequential,
            working_set: 100 << 20,
            burst: None,
            ios_max: None,
            tape: None,
        };
        let for_ns = Some(300 * SECOND);
        assert_eq!(streams, vec![Stream { disk: None, config, from_ns: 0, for_ns }]);
    }

    #[test]
    fn lists_make_runs_and_workloads_share_the_rate() {
        let text = "* a comment\n\
                    sd=default,threads=16\n\
                    sd=sd1,lun=/dev/sdb,\n  size=1g a comment after a blank\n\
                    sd=sd2,lun=/dev/sdc\n\
                    wd=big,sd=sd1,xfersize=(64k,25,128k,75),rdpct=0,skew=20\n\
                    wd=small,sd=sd*,rdpct=70,seekpct=40,rhpct=0\n\
                    rd=run1,wd=(big,small),iorate=(1000,4000),elapsed=5m,warmup=10,pause=2\n\
                    rd=run2,wd=small,iorate=(1000,max),elapsed=5m\n";
        insta::assert_debug_snapshot!(read("x.vdb", text).unwrap());
    }

    #[test]
    fn sizes_arrivals_and_seeks_are_those_that_vdbench_draws() {
        let text = "sd=s\nwd=w,sd=s,xfersize=(4k,12k,4k),seekpct=40\n\
                    rd=r,wd=w,iorate=4000,distribution=deterministic,threads=64\n";
        let config = read("x.vdb", text).unwrap().remove(0).config;
        let (rate, outstanding_max) = (4_000.0, 64);
        let open =
            Arrival::Open { rate, poisson: false, outstanding_max, waiting_max: WAITING_MAX };
        assert_eq!((config.arrival, config.access), (open, Access::Mixed(0.4)));
        let sizes = SizeMix(vec![(4 << 10, 1), (8 << 10, 1), (12 << 10, 1)]);
        assert_eq!(
            config.mix,
            Mix::ReadWrite { read_share: 1.0, sizes, others: Others::default() }
        );
    }

    #[test]
    fn a_range_is_a_part_of_the_disk() {
        let working_sets = |sd: &str, wd: &str| {
            let text =
                format!("sd=a,size=100g{sd}\nsd=b,size=10g\nwd=w,sd=*{wd}\nrd=r,wd=w,elapsed=8\n");
            let streams = read("x.vdb", &text).unwrap();
            streams.iter().map(|stream| stream.config.working_set >> 20).collect::<Vec<_>>()
        };
        assert_eq!(working_sets(",range=(40,41)", ""), [1 << 10, 10 << 10]);
        assert_eq!(working_sets(",range=(40,41)", ",range=(50,100)"), [50 << 10, 5 << 10]);
        assert_eq!(working_sets(",range=(0,100)", ""), [100 << 10, 10 << 10]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        let table = [
            ("", "x.vdb:1:1: there is no run definition"),
            ("sd=sd1,threads=0\n", "x.vdb:1:8: `threads`: `0` is not allowed; it is 1 to 65536"),
            ("sd=sd1\nwd=wd1,sd=sx\n", "x.vdb:2:8: there is no storage definition `sx`"),
            ("sd=sd1\nwd=w,sd=sd1,xfersize=(1k,2k,1k,2,3)\n", "x.vdb:2:13: `xfersize`: sizes go"),
            (
                "sd=s\nwd=w,sd=s,xfersize=(8k,4k,1k)\n",
                "x.vdb:2:11: `xfersize`: between these are 0",
            ),
            ("sd=s\nwd=w,sd=s,xfersize=(512,32m,512)\n", "x.vdb:2:11: `xfersize`: between these"),
            ("sd=s,count=(1,8)\n", "x.vdb:1:6: there is no parameter that is read here `count`"),
            ("sd=s\nwd=w,sd=s,rhpct=30\n", "x.vdb:2:11: `rhpct`: `30` is not modelled; it is `0`"),
            ("sd=s\nwd=w,sd=s,seekpct=eof\n", "x.vdb:2:11: `seekpct`: a run does not end with"),
            ("sd=s\nwd=w,sd=s,iorate=9\n", "x.vdb:2:11: there is no parameter that is read here"),
            ("sd=s\nwd=w,sd=s\nrd=r,wd=w,maxdata=1g\n", "x.vdb:3:11: there is no parameter"),
            (
                "sd=s\nwd=w,sd=s\nrd=r,wd=w,distribution=uniform\n",
                "x.vdb:3:11: `distribution`: `uni",
            ),
            ("concatenate=yes\n", "x.vdb:1:1: `concatenate`: `yes` is not modelled; it is `no`"),
            (
                "sd=s,openflags=(o_direct,fsync)\n",
                "x.vdb:1:6: `openflags`: `o_direct,fsync` is not modelled; it is `directio`, `none`, `o_direct` \
                 here; flushes and writes with FUA are `flush_after` and `fua` of a workload",
            ),
            ("wd=w,openflags=o_dsync\n", "x.vdb:1:6: `openflags`: `o_dsync` is not modelled"),
            ("journal=yes\n", "x.vdb:1:1: `journal`: `yes` is not modelled; it is `no` here"),
            ("wd=w,xfersize=4k\n", "x.vdb:1:6: workload `w` names no sd="),
            ("sd=s,threads=4,threads=8\n", "x.vdb:1:16: `threads` is given twice"),
            ("sd=s\nwd=w,sd=s,skew=1,skew=2\n", "x.vdb:2:18: `skew` is given twice"),
            ("sd=s\nsd=s,size=1g\n", "x.vdb:2:1: sd `s` is defined twice"),
            ("sd=s\nwd=w,sd=s\nwd=w,sd=s\n", "x.vdb:3:1: wd `w` is defined twice"),
            (
                "sd=s\nwd=w,sd=s,xfersize=(4k,70,64k,40)\n",
                "x.vdb:2:11: `xfersize`: the shares add up to 110 %, not to 100",
            ),
            ("fsd=f,anchor=/x\n", "x.vdb:1:1: file system workloads are not read"),
            (
                "sd=s\nwd=w,sd=s\nrd=r,wd=w,operations=(read,write)\n",
                "x.vdb:3:11: file system workloads are not read, hence not `operations`; a parameter \
                 file has sd=, wd= and rd= lines with reads and writes by `rdpct`; flushes",
            ),
            ("sd=s\nwd=w,sd=s\nrd=r,fwd=w\n", "x.vdb:3:6: file system workloads are not read"),
            ("sd=s\nwd=w,sd=s\nrd=r,wd=w,iorate=curve\n", "x.vdb:3:11: `iorate`: `curve` is not"),
            (
                "sd=s\nwd=w,sd=s,skew=80\nwd=v,sd=s\nrd=r,wd=(w,v),iorate=max\n",
                "x.vdb:4:15: `skew` of workload `w` is modelled at a rate only",
            ),
            ("sd=s\nwd=w,sd=s,skew=80\nrd=r,wd=w\n", "x.vdb:3:1: `skew` of workload `w`"),
            ("sd=s,range=(60,40)\n", "x.vdb:1:6: `range`: `60,40` is not read; it is two parts of"),
            ("sd=s\nwd=w,sd=s,range=(1g,2g)\n", "x.vdb:2:11: `range`: "),
            ("sd=s\nwd=w,sd=s,range=40\n", "x.vdb:2:11: `range`: `40` is not read"),
            ("sd=s\nwd=w,sd=s\nrd=r,wd=w,elapsed=0\n", "x.vdb:3:11: `elapsed`: `0` is not allowed"),
            ("sd=s\nwd=w,sd=s\nrd=r,wd=w,elapsed=(1,2)\n", "x.vdb:3:11: `elapsed` has one value"),
        ];
        for (text, expected) in table {
            let error = read("x.vdb", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
