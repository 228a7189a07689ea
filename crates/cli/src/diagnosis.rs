//! Captures with the verdicts on them, and all of it as text, Markdown or JSON.

use capture::{FileReport, ReadReport};
use diagnose::{
    Cause, Change, Comparison, EVACUATE, Facts, Judged, Lack, Lacking, Outcome, Thresholds,
    Verdict, compare, diagnose_together, render_comparison_markdown, render_comparison_styled,
    render_markdown, render_styled,
};
use knobs::{Effect, Setting, shell};
use levels::Measured;
use serde::Serialize;

use crate::{
    layers,
    text::{DIM, clean, counted, styled, whole},
    verdict,
};

/// Hosts of which a terminal is told everything.
const HOSTS: usize = 4;
/// Hosts of which it is told the headline.
const LINES: usize = 20;

/// Captures of one time: a verdict for each host.
pub(crate) struct Side {
    /// What each host recorded.
    pub(crate) recordings: Vec<Measured>,
    /// What was read of the files.
    pub(crate) report: ReadReport,
    /// The verdict on each of the recordings.
    pub(crate) verdicts: Vec<Verdict>,
}

/// Everything there is to say: of one time, or of the times before and after a change.
#[derive(Serialize)]
pub(crate) struct Diagnosis<'a> {
    /// The version of the shape that `docs/reference/json.md` describes.
    version: u32,
    /// The verdicts of the first side.
    verdicts: &'a [Verdict],
    /// The verdicts of the second side, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a [Verdict]>,
    /// The hosts side by side, where there is something to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comparison: Option<Comparison>,
    /// The side that counts: the second, where there is one.
    #[serde(skip)]
    latest: &'a Side,
}

impl Side {
    /// Judges what was recorded, of each host by what is known of it.
    pub(crate) fn judge(
        recordings: Vec<Measured>,
        report: ReadReport,
        thresholds: &Thresholds,
        facts: &[Facts],
    ) -> Self {
        let mut verdicts = diagnose_together(&recordings, thresholds, facts);
        let cut = report.files.iter().find(|file| file.ends_where_spreadsheets_do());
        if let Some(file) = cut {
            verdicts.iter_mut().for_each(|verdict| verdict.lack(cut_by_spreadsheet(file)));
        }
        for (verdict, host) in verdicts.iter_mut().zip(&report.hosts) {
            if host.repeated_samples > 0 {
                verdict.lack(overlapping(host.repeated_samples));
            }
            if host.untied_paths > 0 {
                verdict.lack(untied(host.untied_paths));
            }
        }
        Self { recordings, report, verdicts }
    }

    /// Words what is proposed as it is typed for a daemon: by `kavg esxcli`, which has the types of PowerCLI's lines too.
    /// Steps stay for who reads types; a text that has them would word them anew.
    pub(crate) fn speak_as_daemon(&mut self, host: Option<&str>, keeps_steps: bool) {
        let findings = self.verdicts.iter_mut().flat_map(|verdict| &mut verdict.findings);
        for change in findings.flat_map(|finding| &mut finding.changes) {
            speak_as_daemon(change, host);
            if !keeps_steps {
                change.steps.clear();
            }
        }
    }

    /// The devices whose queue is full, by their depth or by DSNRO.
    pub(crate) fn full_devices(&self) -> impl Iterator<Item = &str> {
        let findings = self.verdicts.iter().flat_map(|verdict| &verdict.findings);
        let is_full = |cause| matches!(cause, Cause::Dsnro | Cause::DeviceDepth);
        findings.filter(move |found| is_full(found.cause)).map(|found| found.at.name.as_str())
    }

    fn judged(&self) -> Vec<Judged<'_>> {
        let hosts = self.recordings.iter().zip(&self.verdicts);
        hosts.map(|(recording, verdict)| Judged { recording, verdict }).collect()
    }
}

/// The same of a change; of which of several hosts a line is, it says itself.
fn speak_as_daemon(change: &mut Change, host: Option<&str>) {
    let of_host = host.map_or(String::new(), |host| format!(" --host {}", shell(host)));
    let of_daemon = |line: &str| match line.strip_prefix("esxcli") {
        Some(words) => format!("kavg esxcli{of_host}{words}"),
        None => line.to_owned(),
    };
    let line = |set: &Setting| match set.esxcli() {
        Some(line) => of_daemon(&line),
        // A VM is of one host.
        None => format!("kavg esxcli {}", shell(&set.to_string())),
    };
    let powercli = std::mem::take(&mut change.powercli);
    if !change.steps.is_empty() {
        change.esxcli = change.steps.iter().map(|step| line(&step.set)).collect();
    } else if change.esxcli.is_empty() {
        change.esxcli =
            powercli.iter().map(|line| format!("kavg esxcli {}", shell(line))).collect();
    } else {
        change.esxcli.iter_mut().for_each(|line| *line = of_daemon(line));
    }
    if change.effect == Effect::HostReboot {
        change.risk = change.risk.replace(EVACUATE, "");
        change.risk += " The host's reboot is a restart of the daemon.";
    }
    let undo = change.steps.iter().rev().filter_map(|step| step.undo.as_ref());
    let undo: Vec<String> = undo.map(line).collect();
    if !undo.is_empty() {
        change.undo = format!("{}: {}", change.undo.trim_end_matches('.'), undo.join("; "));
    }
}

/// A verdict of which the first line says the host, where there are several.
fn of_several(verdict: &Verdict, hosts: usize) -> Verdict {
    let mut named = verdict.clone();
    if hosts > 1 {
        named.headline = format!("{}: {}", named.host, named.headline);
    }
    named
}

/// What a file lacks that ends at the last column of a spreadsheet.
fn cut_by_spreadsheet(file: &FileReport) -> Lack {
    let sentence = format!(
        "{} ends at column {}, the last that a spreadsheet keeps: the columns behind it are lost. \
         Take the file as esxtop wrote it.",
        file.file,
        whole((file.columns + 1) as f64)
    );
    Lack { what: Lacking::Columns, sentence }
}

/// What files lack that hold the same instants of one host.
fn overlapping(samples: usize) -> Lack {
    let sentence = format!(
        "The files overlap: {} left out, for an earlier file has one of the same instant, and nothing is \
         said about what they show. Diagnose the files one by one.",
        match samples {
            1 => "1 sample is".to_owned(),
            samples => format!("{} samples are", whole(samples as f64)),
        }
    );
    Lack { what: Lacking::Rows, sentence }
}

/// What a file lacks that does not tell to which devices its paths lead.
fn untied(paths: usize) -> Lack {
    let sentence = format!(
        "Neither the order of the columns, as in a file that was sorted, nor their numbers tell to which \
         device {}: nothing is said about that. Take the file as esxtop wrote it.",
        match paths {
            1 => "a path leads".to_owned(),
            paths => format!("{} paths lead", whole(paths as f64)),
        }
    );
    Lack { what: Lacking::Paths, sentence }
}

impl<'a> Diagnosis<'a> {
    /// Puts the sides together. Without a second one, hosts that share a device are compared.
    pub(crate) fn new(side: &'a Side, after: Option<&'a Side>) -> Self {
        let comparison = compare(&side.judged(), &after.map(Side::judged).unwrap_or_default());
        let is_empty = after.is_none() && comparison.shared.is_empty();
        Self {
            version: 2,
            verdicts: &side.verdicts,
            after: after.map(|after| after.verdicts.as_slice()),
            comparison: (!is_empty).then_some(comparison),
            latest: after.unwrap_or(side),
        }
    }

    /// How the diagnosis ends, after the change where there was one: 0 when nothing is wrong, 1
    /// with findings, 3 where a capture cannot tell.
    pub(crate) fn exit_code(&self) -> u8 {
        let any = |outcome| self.latest.verdicts.iter().any(|verdict| verdict.outcome == outcome);
        match (any(Outcome::Problem), any(Outcome::CannotTell)) {
            (true, _) => 1,
            (false, true) => 3,
            (false, false) => 0,
        }
    }

    /// For a terminal: the hosts in full that are worst off, the others in a line each.
    pub(crate) fn text(&self) -> String {
        let order = verdict::worst_first(&self.latest.verdicts);
        let (told, rest) = order.split_at(order.len().min(HOSTS));
        let hosts = self.latest.judged();
        let recording = |verdict: &Verdict| {
            hosts.iter().find(|host| std::ptr::eq(verdict, host.verdict)).map(|host| host.recording)
        };
        let title = || format!("{}\n", styled(DIM, "After, by itself:"));
        let mut parts = Vec::from_iter(self.after.map(|_| title()));
        parts.extend(told.iter().filter_map(|verdict| {
            let layers = layers::render(recording(verdict)?, verdict);
            Some(render_styled(&of_several(verdict, order.len()), &layers))
        }));
        let lines = rest
            .iter()
            .take(LINES)
            .map(|verdict| format!("{}: {}\n", clean(&verdict.host), clean(&verdict.headline)));
        parts.extend(lines);
        if let Some(more) = rest.len().checked_sub(LINES).filter(|more| *more > 0) {
            parts.push(format!("and {}\n", counted(more, "more host")));
        }
        self.with_comparison(parts, render_comparison_styled)
    }

    /// For a ticket.
    pub(crate) fn markdown(&self) -> String {
        let order = verdict::worst_first(&self.latest.verdicts);
        let named = order.iter().map(|verdict| of_several(verdict, order.len()));
        let parts = named.map(|verdict| render_markdown(&verdict)).collect();
        self.with_comparison(parts, render_comparison_markdown)
    }

    /// What changed, then what is wrong now; without a change, what is wrong, then who else is
    /// on the devices.
    fn with_comparison(&self, mut parts: Vec<String>, render: fn(&Comparison) -> String) -> String {
        let place = if self.after.is_some() { 0 } else { parts.len() };
        parts.splice(place..place, self.comparison.as_ref().map(render));
        parts.join("\n")
    }
}
