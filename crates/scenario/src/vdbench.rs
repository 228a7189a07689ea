//! Vdbench parameter files, read as they are: the storage, workload and run definitions of raw
//! I/O. What does not matter to queueing is left out, with a warning where it could be missed.
//!
//! Defaults are those of Vdbench's users guide: 8 threads, 4k, all reads, random, 30 seconds.

use counters::SECOND;
use model::{Access, Arrival, Mix, SizeMix, WorkloadConfig};

use crate::{
    Error, names,
    reader::File,
    stream::{RATE_MAX, RATE_MIN, Stream, WORKING_SET_DEFAULT, check_io_size, threads},
    units,
};

/// Runs that one file may ask for: lists of rates and threads multiply.
const RUNS_MAX: usize = 1_000;
const STREAMS_MAX: usize = 10_000;
const THREADS_DEFAULT: u32 = 8;
const ELAPSED_DEFAULT_S: u64 = 30;

/// Parameters that say where or how to report, not what the I/O is.
const HARMLESS: &[&str] = &[
    "lun",
    "openflags",
    "hd",
    "host",
    "interval",
    "count",
    "journal",
    "align",
    "offset",
    "hitarea",
    "jvms",
    "system",
    "vdbench",
    "shell",
    "user",
    "format",
];

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
}

struct Reader<'t> {
    file: File<'t>,
    storages: Vec<Storage>,
    definitions: Vec<Definition>,
    runs: Vec<Run>,
    default_storage: Storage,
    default_definition: Definition,
    default_run: Run,
    warnings: Vec<String>,
}

/// Reads a parameter file into streams, which say which storage definition they use when there
/// are several, and warnings.
pub(crate) fn read(name: &str, text: &str) -> Result<(Vec<Stream>, Vec<String>), Error> {
    let mut reader = Reader::new(File { name, text });
    for statement in statements(text) {
        reader.statement(&statement)?;
    }
    if reader.runs.is_empty() {
        return Err(reader
            .file
            .error(0, "there is no run definition; it has rd=, wd= and sd= lines"));
    }
    let streams = reader.streams()?;
    Ok((streams, reader.warnings))
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
            },
            default_definition: Definition {
                name: String::new(),
                storages: Vec::new(),
                sizes: SizeMix(vec![(4096, 1)]),
                read_share: 1.0,
                access: Access::Random,
                skew: None,
                threads: None,
            },
            default_run: Run {
                definitions: Vec::new(),
                rates: vec![None],
                threads: vec![None],
                elapsed_s: ELAPSED_DEFAULT_S,
                warmup_s: 0,
                pause_s: 0,
            },
            warnings: Vec::new(),
        }
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Error> {
        let Some((first, rest)) = statement.parameters.split_first() else { return Ok(()) };
        let name = first.values.first().map_or("", String::as_str);
        match first.name.as_str() {
            "sd" => self.storage(name, rest),
            "wd" => self.definition(name, rest),
            "rd" => self.run(name, rest, statement.byte),
            "fsd" | "fwd" => Err(self.file.error(
                statement.byte,
                "file system workloads are not read; a parameter file has sd=, wd= and rd= lines",
            )),
            "include" => Err(self.file.error(statement.byte, "`include` is not read")),
            "hd" => Ok(()),
            _ => {
                self.warn(first);
                Ok(())
            }
        }
    }

    fn warn(&mut self, parameter: &Parameter) {
        if !HARMLESS.contains(&parameter.name.as_str()) {
            let message = format!("`{}` is left out", parameter.name);
            self.warnings.push(self.file.error(parameter.byte, &message).to_string());
        }
    }

    fn storage(&mut self, name: &str, parameters: &[Parameter]) -> Result<(), Error> {
        let mut storage = Storage { name: name.into(), ..self.default_storage.clone() };
        for parameter in parameters {
            match parameter.name.as_str() {
                "threads" | "thread" => storage.threads = self.one(parameter, threads)?,
                "size" => storage.size = self.one(parameter, units::size)?,
                _ => self.warn(parameter),
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
                "threads" | "thread" => definition.threads = Some(self.one(parameter, threads)?),
                _ => self.warn(parameter),
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
                "elapsed" => run.elapsed_s = self.one(parameter, seconds)?,
                "warmup" => run.warmup_s = self.one(parameter, seconds)?,
                "pause" => run.pause_s = self.one(parameter, seconds)?,
                _ => self.warn(parameter),
            }
        }
        if name == "default" {
            self.default_run = run;
            return Ok(());
        }
        if run.definitions.is_empty() {
            return Err(self.file.error(byte, &format!("run `{name}` names no wd=")));
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

    /// `4k`, or sizes with their shares: `(4k,70,64k,30)`.
    fn sizes(&self, parameter: &Parameter) -> Result<SizeMix, Error> {
        let refuse =
            |message: &str| self.file.error(parameter.byte, &format!("`xfersize`: {message}"));
        let size = |text: &String| {
            units::size(text).and_then(check_io_size).map_err(|message| refuse(&message))
        };
        if let [one] = parameter.values.as_slice() {
            return Ok(SizeMix(vec![(size(one)?, 1)]));
        }
        let (pairs, []) = parameter.values.as_chunks::<2>() else {
            return Err(refuse("sizes go with their shares in pairs, as (4k,70,64k,30)"));
        };
        let mut mix = Vec::new();
        for [bytes, weight] in pairs {
            let weight = share(weight).map_err(|message| refuse(&message))?;
            // Shares have at most two decimals.
            mix.push((size(bytes)?, (weight * 10_000.0).round().max(1.0) as u32));
        }
        Ok(SizeMix(mix))
    }

    /// 0 is sequential, 100 is random; what is between is taken as random.
    fn access(&mut self, parameter: &Parameter) -> Result<Access, Error> {
        let words = ["seq", "sequential", "eof", "random", "rand"];
        let word = parameter.values.first().map_or("", String::as_str);
        if let Some(position) = words.iter().position(|known| *known == word) {
            return Ok(if position < 3 { Access::Sequential } else { Access::Random });
        }
        let share = self.one(parameter, share)?;
        if share > 0.0 && share < 1.0 {
            let message = format!("`seekpct={word}` is taken as 100, random");
            self.warnings.push(self.file.error(parameter.byte, &message).to_string());
        }
        Ok(if share == 0.0 { Access::Sequential } else { Access::Random })
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
                let arrival = Arrival::Closed {
                    threads: threads.div_ceil(users(&index) as u32),
                    think_ns: 0,
                    rate: rate.map(|rate| (rate * part).max(RATE_MIN)),
                };
                let mix = Mix::ReadWrite {
                    read_share: definition.read_share,
                    sizes: definition.sizes.clone(),
                };
                let (access, working_set) = (definition.access, storage.size);
                let config = WorkloadConfig { arrival, mix, access, working_set, burst: None };
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
        let (streams, warnings) = read("s0.vdb", text).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        let config = WorkloadConfig {
            arrival: Arrival::Closed { threads: 96, think_ns: 0, rate: None },
            mix: Mix::ReadWrite { read_share: 1.0, sizes: SizeMix(vec![(4096, 1)]) },
            access: Access::Sequential,
            working_set: 100 << 20,
            burst: None,
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
                    wd=small,sd=sd*,rdpct=70,seekpct=40,rhpct=10\n\
                    rd=run1,wd=(big,small),iorate=(1000,max),elapsed=5m,warmup=10,pause=2\n";
        let (streams, warnings) = read("x.vdb", text).unwrap();
        insta::assert_debug_snapshot!((streams, warnings));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        let table = [
            ("", "x.vdb:1:1: there is no run definition"),
            ("sd=sd1,threads=0\n", "x.vdb:1:8: `threads`: `0` is not allowed; it is 1 to 65536"),
            ("sd=sd1\nwd=wd1,sd=sx\n", "x.vdb:2:8: there is no storage definition `sx`"),
            ("sd=sd1\nwd=w,sd=sd1,xfersize=(1k,2k,1k)\n", "x.vdb:2:13: `xfersize`: sizes go"),
            ("wd=w,xfersize=4k\n", "x.vdb:1:6: workload `w` names no sd="),
            ("fsd=f,anchor=/x\n", "x.vdb:1:1: file system workloads are not read"),
            ("sd=s\nwd=w,sd=s\nrd=r,wd=w,iorate=curve\n", "x.vdb:3:11: `iorate`: `curve` is not"),
            ("sd=s\nwd=w,sd=s\nrd=r,wd=w,elapsed=(1,2)\n", "x.vdb:3:11: `elapsed` has one value"),
        ];
        for (text, expected) in table {
            let error = read("x.vdb", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
