//! `kavg whatif`: what a change would do to a host of which there is a capture.

use std::{fmt, io::Write, path::PathBuf, process::ExitCode};

use ::whatif::{Answer, Calibration, Habit, Model, Played, Question, Verdict, by_numbers, played};
use capture::{VscsiHistogram, format_stamp, parse_vscsistats, read_output};
use clap::{Args, ValueHint::FilePath};
use counters::Kind;
use diagnose::SimulatedRow;
use knobs::{ENABLED, IoControlChange, Line, Setting};
use levels::{Measured, most_first};
use scenario::Scenario;
use serde::Serialize;

use crate::{
    Result,
    captures::{self, instant, instant_in},
    given::Given,
    journals::{self, Recorded, Turned},
    json,
    output::{Output, Outputs},
    shipped,
    table::Table,
    talk::wait_for,
    tapes::{self, Tapes},
    text::{BAD, BOLD, DIM, clean, fit, millis, styled, whole},
    verdict, whatif,
};

/// The version of the JSON that `docs/reference/json.md` describes.
const VERSION: u32 = 1;

/// What a journal would tell.
const PLAYS: &str = "The file that the host was run or served from tells its arrays, and the journal what each guest \
                     sent: `--on FILE` plays that.";

const SECOND_MS: i64 = 1000;
/// Columns of the screen that the report fits.
const WIDTH: usize = 78;

/// Simulate a change on the host of a capture or a journal: before and after, with a range
///
/// The arrays, the queues and the load of each guest are read out of the capture, today is
/// simulated and held against it counter by counter, then the change. What the capture leaves open
/// is simulated at its bounds, and the answer is the range between them. Where today does not
/// come out, there is no answer. A journal is replayed, and what a capture would have recorded
/// meanwhile is taken for one; with `--on` its guests send what they sent, to the arrays of that file.
#[derive(Args)]
pub(crate) struct Whatif {
    /// Captures of `esxtop -b`: CSV, gzip, zstd, zip, or `-` for standard input; several of one
    /// host are joined, and one from after a change that was tried tells of both sides of it. Or
    /// journals: of `kavg run --journal`, segments of `kavg serve --journal`, or a directory of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The change, as esxcli takes it, or `VM: RequestRingPages=32,MaxQueueDepth=254` for a guest's
    /// driver, or `VM: DiskLimitIOPerSecond 500` for the IOPS limit of its disks (-1 is none);
    /// several are one change together, in force after the reboots they need
    #[arg(long, value_name = "LINE", required_unless_present = "scenario")]
    set: Vec<Line>,
    /// The first instant of what is simulated, in UTC, as `2026-03-02 10:00:00`, `03/02/2026 10:00:00` or, of its first
    /// day, `10:00:00` [default: the worst finding's window]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    from: Option<i64>,
    /// The last instant
    #[arg(long, value_name = "TIME", value_parser = instant)]
    to: Option<i64>,
    /// Only this device or NFS volume [default: those that the change acts on]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Devices that share an array, as NAME,NAME; a device alone shares with nobody; can be given
    /// several times [default: NAA names with the same vendor and serial number]
    #[arg(long, value_name = "NAMES")]
    array: Vec<String>,
    /// The output of `esxcli storage core device list` or `storage core adapter list` on the same
    /// host; can be given several times. Of captures of several hosts, each with its host in front (`HOST:FILE`),
    /// or called as that (`HOST.txt`)
    #[arg(long, value_name = "FILE", value_parser = Given::parser(), value_hint = FilePath)]
    esxcli: Vec<Given>,
    /// What `vscsiStats -p all -c` counted on the same host under the load in question: it tells
    /// guests that wait for their answers from those that send at a rate; can be given several times
    #[arg(long, value_name = "FILE")]
    vscsistats: Vec<PathBuf>,
    /// Write the host as it is modelled, as a scenario for `kavg run`; of several hosts each into
    /// a file of its own, with the host's name in it; `-` is standard output, and nothing else is
    /// printed
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Of a journal: the file that its hosts were run or served from, as `kavg run` takes it. Nothing is
    /// guessed then: what each guest sent is played on the arrays of the file
    #[arg(long, value_name = "FILE|NAME",
        conflicts_with_all = ["array", "esxcli", "vscsistats", "scenario"])]
    on: Option<String>,
    /// Commands that each run simulates; with `--on` the samples from the first instant on that have no more, or
    /// one
    #[arg(long, value_name = "N", default_value_t = whatif::COMMANDS,
        value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    commands: u32,
    /// Print the answer and the calibration as JSON
    #[arg(long)]
    json: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Answers<'a> {
    version: u32,
    answers: &'a [OfHost<'a>],
}

/// The answer for one host.
#[derive(Serialize)]
struct OfHost<'a> {
    host: &'a str,
    settings: Vec<String>,
    #[serde(flatten)]
    answer: Answer,
    played: Option<Tapes>,
}

/// That depths or limits on a device were set within the time that was asked about.
#[derive(Clone, Copy)]
struct Set<'a> {
    /// The last of them.
    last: &'a Turned,
    /// The time since it was, as it is typed, in milliseconds since 1970.
    since_ms: (i64, i64),
}

impl Set<'_> {
    fn by(&self) -> String {
        format_stamp(self.since_ms.0)
    }

    fn since(&self) -> String {
        format!("{self}: this is of the time since then.")
    }

    /// Where that of the time since has an answer and this has none, or this is of both.
    fn meanwhile(&self, has_answer: bool) -> String {
        let by = self.by();
        if has_answer {
            return format!(
                "{self}: of the time since then there is an answer (`--from \"{by}\"`)."
            );
        }
        format!("{self}: this is of before and after; `--from \"{by}\"` is of the time since then.")
    }
}

impl fmt::Display for Set<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, by) = (&self.last.device, self.by());
        write!(f, "Depths or limits on {device} were set meanwhile, the last by {by} UTC")
    }
}

impl Whatif {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let on = self.on()?;
        let (sources, files) = journals::recorded(&self.files, &self.esxcli)?;
        let histograms = self.histograms()?;
        let told = self.esxcli.iter().map(|file| &file.path);
        let mut claimed = Outputs::beside(files.iter().chain(told).chain(&self.vscsistats));
        let mut outputs = self.claim(&sources, &mut claimed)?.into_iter();
        let is_piped = claimed.take_stdout(self.json.then_some("--json"))?;
        let asked = sources.iter().map(|source| match &on {
            Some((name, on)) => self.play(source, &files, (name, on)),
            None => self.ask(source, &histograms, outputs.next()),
        });
        let (answers, refusals): (Vec<_>, Vec<_>) =
            wait_for("simulating", || asked.partition(std::result::Result::is_ok));
        let answers: Vec<OfHost<'_>> = answers.into_iter().flatten().collect();
        if let (true, Some(Err(refusal))) = (answers.is_empty(), refusals.into_iter().next()) {
            return Err(refusal);
        }
        if is_piped {
            return Ok(ExitCode::SUCCESS);
        }
        if self.json {
            json::write(&Answers { version: VERSION, answers: &answers }, out)?;
        } else {
            let texts: Vec<String> = answers.iter().map(render).collect();
            out.write_all(texts.join("\n").as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn histograms(&self) -> Result<Vec<VscsiHistogram>> {
        let mut all = Vec::new();
        for file in &self.vscsistats {
            all.extend(parse_vscsistats(&file.display().to_string(), &read_output(file)?)?);
        }
        Ok(all)
    }

    /// Where the model of each host goes.
    fn claim(&self, sources: &[Recorded], outputs: &mut Outputs) -> Result<Vec<Output>> {
        let Some(path) = &self.scenario else { return Ok(Vec::new()) };
        let hosts = sources.iter().map(|source| source.recording.host.as_str());
        captures::claim(path, hosts, outputs)
    }

    fn ask<'a>(
        &'a self,
        source: &'a Recorded,
        histograms: &[VscsiHistogram],
        output: Option<Output>,
    ) -> Result<OfHost<'a>> {
        let recording = &source.recording;
        let mut settings = self.settings(&recording.host)?;
        settings.iter_mut().for_each(|setting| as_recorded(setting, source));
        let lines = settings.iter().map(Setting::to_string).collect();
        let settings = by_numbers(settings)?;
        let window = self.window(source, &settings);
        let facts = &source.facts_by(if self.is_of_any_time() { i64::MAX } else { window.1 });
        let question = Question {
            device: self.device.clone(),
            arrays: self.arrays(recording)?,
            vscsistats: histograms.to_vec(),
            ..whatif::question(settings, window, self.commands)
        };
        let set = self.last_set(source, window);
        let then = set.map(|set| Question { window: set.since_ms, ..question.clone() });
        let since = || {
            let model = Model::calibrate(recording, facts, then.as_ref()?).ok()?;
            let answer = model.answer().ok()?;
            (answer.verdict != Verdict::NoModel).then_some((model, answer))
        };
        let (model, mut answer) = match self.is_of_any_time().then(since).flatten() {
            Some((model, mut answer)) => {
                answer.simulated.doubts.splice(0..0, set.iter().map(Set::since));
                (model, answer)
            }
            None => {
                let model = Model::calibrate(recording, facts, &question)?;
                let mut answer = model.answer()?;
                let is_none = answer.verdict == Verdict::NoModel;
                let has_answer = is_none && !self.is_of_any_time() && since().is_some();
                let doubt = set.filter(|_| has_answer || !is_none);
                answer.simulated.doubts.splice(0..0, doubt.map(|set| set.meanwhile(has_answer)));
                (model, answer)
            }
        };
        if journals::is_journal(&self.files[0]) && !answer.verdict.is_useful() {
            answer.simulated.doubts.insert(0, PLAYS.into());
        }
        if let Some(output) = output {
            output.write(|file| Ok(file.write_all(model.scenario().as_bytes())?))?;
        }
        Ok(OfHost { host: &recording.host, settings: lines, answer, played: None })
    }

    /// Whether nobody says of which time it is asked.
    fn is_of_any_time(&self) -> bool {
        self.from.or(self.to).is_none()
    }

    /// That depths or limits on a device were set within a window, or since it begins where nobody asks for one.
    fn last_set<'a>(&self, source: &'a Recorded, (from, to): (i64, i64)) -> Option<Set<'a>> {
        let is_meant = |name: &str| self.device.as_deref().is_none_or(|device| device == name);
        let to = if self.is_of_any_time() { *source.recording.times_ms.last()? } else { to };
        let set = source.turned.iter().filter(|turned| is_meant(&turned.device));
        // The row in which it was set is of both.
        let since = |by_ms: i64| by_ms.div_euclid(SECOND_MS) * SECOND_MS + SECOND_MS;
        let set = set.map(|turned| (turned, since(turned.by_ms)));
        let (last, at) = set.rev().find(|(_, at)| *at < to)?;
        (from < at).then_some(Set { last, since_ms: (at, to) })
    }

    /// The file on whose arrays it is played, and its name.
    fn on(&self) -> Result<Option<(&str, Scenario)>> {
        let Some(name) = &self.on else { return Ok(None) };
        if !journals::is_journal(&self.files[0]) {
            return Err("--on: a capture does not tell what each guest sent; a journal does".into());
        }
        Ok(Some((name, shipped::load_played(name)?)))
    }

    /// The same where what guests sent is played on the arrays of a file.
    fn play<'a>(
        &'a self,
        source: &'a Recorded,
        files: &[PathBuf],
        (name, on): (&str, &Scenario),
    ) -> Result<OfHost<'a>> {
        let recording = &source.recording;
        let settings = self.settings(&recording.host)?;
        let lines = settings.iter().map(Setting::to_string).collect();
        let mut window = self.window(source, &settings);
        let mut set = None;
        if self.is_of_any_time() {
            set = self.last_set(source, window);
            window = set.map_or(window, |set| (set.last.by_ms, set.since_ms.1));
            window = tapes::amid(recording, window);
        }
        let most = f64::from(self.commands);
        let window = tapes::whole_samples(recording, window, most)?;
        let tapes = Tapes::read(files, name, tapes::led_in(recording, window, most))?;
        let mut readings = Vec::new();
        for &waits in tapes.readings() {
            let mut today = on.clone();
            tapes.put(&mut today, waits)?;
            let mut after = today.clone();
            self.set.iter().try_for_each(|line| after.set_line(line))?;
            readings.push(Played { today, after });
        }
        let question = Question {
            device: self.device.clone(),
            ..whatif::question(settings, window, self.commands)
        };
        let mut answer = played(recording, &question, &readings, tapes.doubts())?;
        answer.simulated.doubts.splice(0..0, set.iter().map(Set::since));
        Ok(OfHost { host: &recording.host, settings: lines, answer, played: Some(tapes) })
    }

    /// What is set on a host: all but the lines for others.
    fn settings(&self, host: &str) -> Result<Vec<Setting>> {
        let is_host = |name: &str| name.eq_ignore_ascii_case(host);
        let is_meant = |line: &&Line| line.host.as_deref().is_none_or(is_host);
        let lines = self.set.iter().filter(is_meant);
        let settings: Vec<_> = lines.flat_map(|line| line.settings.clone()).collect();
        let is_threshold_alone = |setting: &&Setting| {
            let Setting::StorageIoControl { control, .. } = setting else { return false };
            matches!(control, IoControlChange::Threshold { .. })
        };
        if let Some(setting) = settings.iter().find(is_threshold_alone) {
            let why = "a recording does not tell whether Storage I/O Control is on: give";
            return Err(format!("--set: `{setting}`: {why} -{ENABLED} too").into());
        }
        match settings.is_empty() && !self.set.is_empty() {
            true => Err(format!("--set: no line is for {host}, the host of this capture").into()),
            false => Ok(settings),
        }
    }

    /// The groups of devices that are said to share an array; names that the capture lacks are
    /// refused.
    fn arrays(&self, recording: &Measured) -> Result<Vec<Vec<String>>> {
        let known = |name: &str| recording.find(Kind::Device, name).is_some();
        let mut groups = Vec::new();
        for group in &self.array {
            let names: Vec<String> = group.split(',').map(|name| name.trim().to_owned()).collect();
            if let Some(name) = names.iter().find(|name| !known(name)) {
                return Err(format!("--array {group}: no device `{name}` in this capture").into());
            }
            groups.push(names);
        }
        Ok(groups)
    }

    /// What was asked for; where nothing was, the window of the worst finding about what the
    /// change is about.
    fn window(&self, source: &Recorded, settings: &[Setting]) -> (i64, i64) {
        let recording = &source.recording;
        let verdict = verdict::judge(recording, &source.facts_by(i64::MAX));
        let window = match (self.from, self.to) {
            (None, None) => whatif::window(&verdict, settings, self.device.as_deref()),
            _ => verdict.window,
        };
        let instant = |typed: Option<i64>, or| typed.map_or(or, |ms| instant_in(recording, ms));
        // What is typed is the whole second: a row of a journal ends within one.
        let end_of_second = |ms: i64| ms - ms.rem_euclid(SECOND_MS) + (SECOND_MS - 1);
        (instant(self.from, window.from_ms), instant(self.to.map(end_of_second), window.to_ms))
    }
}

/// A setting with the name that the recording has, where that is another case of it, as PowerShell and vCenter take
/// names.
fn as_recorded(setting: &mut Setting, source: &Recorded) {
    let Recorded { recording, facts, .. } = source;
    let of_kind = |kind| recording.of_kind(kind).map(|(_, entity)| entity.name.as_str());
    let volumes = of_kind(Kind::NfsVolume).chain(facts.datastores.values().map(String::as_str));
    let known: Vec<&str> = match setting {
        Setting::StorageIoControl { .. } => volumes.collect(),
        _ => of_kind(Kind::Vm).collect(),
    };
    let Some(name) = setting.name_mut().filter(|name| !known.contains(&name.as_str())) else {
        return;
    };
    if let Some(own) = known.iter().find(|own| own.eq_ignore_ascii_case(name)) {
        *name = (*own).to_owned();
    }
}

/// The answer of one host: the sentence, the table, what it was made of, what it rests on.
fn render(of: &OfHost<'_>) -> String {
    let (simulated, calibration) = (&of.answer.simulated, &of.answer.calibration);
    let (from, to) = calibration.window_ms;
    let mut out = styled(BOLD, &format!("What if on {}", clean(of.host)));
    out.push('\n');
    for line in &of.settings {
        out.push_str(&wrapped(&clean(line), "  ", "    "));
    }
    let plural = if calibration.samples == 1 { "" } else { "s" };
    out.push_str(&styled(
        DIM,
        &format!("  {}, {} sample{plural}", diagnose::span(from, to), calibration.samples),
    ));
    let style = if simulated.identified { BOLD } else { BAD };
    out.push_str(&format!(
        "\n\n{}\n",
        styled(style, wrapped(&clean(&simulated.sentence), "", "").trim_end())
    ));
    if !simulated.rows.is_empty() {
        out.push_str(&table(&simulated.rows));
        let apart = format!(
            "Today's simulation is {:.1} % away from the capture where it is furthest (KAVG and DAVG as parts of GAVG).",
            calibration.mismatch_percent
        );
        out.push('\n');
        out.push_str(&wrapped(&apart, "", ""));
    }
    out.push_str("\nWhat it is made of:\n");
    out.push_str(&made_of(calibration));
    out.extend(of.played.iter().map(|tapes| wrapped(&clean(&tapes.sentence()), "- ", "  ")));
    if !simulated.doubts.is_empty() {
        out.push_str("\nWhat the range rests on:\n");
    }
    for doubt in &simulated.doubts {
        out.push_str(&wrapped(&clean(doubt), "- ", "  "));
    }
    out
}

fn table(rows: &[SimulatedRow]) -> String {
    let mut table = Table::new(&["", "", "captured", "today", "after"]).left(&[0, 1]);
    let mut last = "";
    for row in rows {
        let number = |value: f64| match row.unit {
            "ms" => millis(value),
            _ if value >= 99.95 => whole(value),
            _ => format!("{value:.1}"),
        };
        let (low, high) = (number(row.low), number(row.high));
        let object = if row.object == last { String::new() } else { fit(&row.object, 26) };
        last = &row.object;
        table.row(vec![
            object,
            row.counter.into(),
            row.captured.map_or_else(|| "-".into(), number),
            number(row.today),
            if low == high { low } else { format!("{low} to {high}") },
        ]);
    }
    format!("\n{}", table.render())
}

fn made_of(calibration: &Calibration) -> String {
    /// Guests that are told of, for each device.
    const GUESTS: usize = 8;
    let mut out = String::new();
    for array in &calibration.arrays {
        let text = format!("array of {}: {}.", clean(&array.devices.join(", ")), array.sentence());
        out.push_str(&wrapped(&text, "- ", "  "));
    }
    for device in &calibration.devices {
        let mut guests: Vec<_> = device.guests.iter().collect();
        most_first(&mut guests, |guest| guest.outstanding);
        for guest_of in guests.iter().take(GUESTS) {
            let guest = guest_of;
            let does = match guest.habit {
                Habit::Closed => "keeps its commands outstanding (closed)",
                Habit::Open => "sends at a rate of its own (open)",
                Habit::Unknown => "closed, open or between, that is not known",
            };
            let held = guest.held_at_iops.map_or(String::new(), |limit| {
                format!(", held at {} IOPS in the host", whole(f64::from(limit)))
            });
            let throttled = guest.throttled_at_iops.map_or(String::new(), |rate| {
                format!(", held at {} IOPS by the array", whole(f64::from(rate)))
            });
            let size = guest.size_kib.map_or(String::new(), |kib| format!(" of {kib:.0} KiB"));
            let share = guest.read_share.map(|share| format!(", {:.0} % reads", 100.0 * share));
            let guest = format!(
                "{} {}: {:.1} outstanding, {} CMDS/s{size}{}; {does}{held}{throttled}.",
                clean(&guest.vm),
                guest.disk.as_deref().unwrap_or(""),
                guest.outstanding,
                whole(guest.iops),
                share.unwrap_or_default()
            );
            let counted = guest_of.vscsistats.as_deref().unwrap_or_default();
            out.push_str(&wrapped(&format!("{guest} {counted}"), "- ", "  "));
        }
        if guests.len() > GUESTS {
            out.push_str(&format!("- and {} more guests\n", guests.len() - GUESTS));
        }
    }
    out
}

/// Words in lines of [`WIDTH`] columns.
fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let (mut out, mut line) = (String::new(), String::from(first));
    let mut is_new = true;
    for word in text.split_whitespace() {
        if !is_new && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = rest.into();
            is_new = true;
        }
        if !is_new {
            line.push(' ');
        }
        line.push_str(word);
        is_new = false;
    }
    out + &line + "\n"
}
