//! The answer of a comparison in one sentence, and what stands against believing it.

use counters::Kind;
use levels::Measured;

use super::{Judged, figures::GAVG};
use crate::{BeforeAfter, FindingChange, ObjectChange, SharedDevice, Trend, number};

/// Findings of a kind that are named in the headline; the rest are counted.
const NAMED: usize = 2;

pub(super) fn headline(hosts: &[BeforeAfter], shared: &[SharedDevice]) -> String {
    // Of those that weigh the same, the first.
    let heaviest = hosts.iter().rev().max_by_key(|host| weight(host));
    match (heaviest, shared.first()) {
        (Some(host), _) => of_host(host),
        (None, Some(device)) => of_device(device),
        (None, None) => "There is nothing to compare: no host is on both sides, and no device \
                         with load is used by two hosts."
            .into(),
    }
}

/// What is new or still there weighs more than what is gone, and that more than what moved.
fn weight(host: &BeforeAfter) -> (usize, usize, usize) {
    let is_known = |object: &&ObjectChange| object.trend != Trend::Unknown;
    let moved = host.objects.iter().filter(is_known).count();
    (host.new.len() + host.remaining.len(), host.gone.len(), moved)
}

fn of_host(host: &BeforeAfter) -> String {
    let empty = [("before", &host.before), ("after", &host.after)];
    if let Some((side, _)) = empty.iter().find(|(_, window)| window.of == 0) {
        return format!("There is nothing to compare: {} has no samples {side}.", host.host);
    }
    let findings = findings(host);
    let Some(object) = host.main_object() else {
        return format!("{} has nothing with load on both sides; {findings}.", host.host);
    };
    let latency = object.sentence.trim_end_matches('.').to_owned() + &apart(host);
    let has_moved = !matches!(object.trend, Trend::Same | Trend::Unknown);
    if has_moved || host.gone.len() + host.new.len() == 0 {
        return format!("{latency}; {findings}.");
    }
    // What was wrong for a while does not show in the latency of the whole time.
    format!("{}. {latency}.", capital(&findings))
}

/// Of the VMs the ones that are better off most and worst, where what all have together hides that.
fn apart(host: &BeforeAfter) -> String {
    let times = |object: &ObjectChange| {
        let gavg = object.figure(GAVG)?;
        Some((gavg.after? / gavg.before?, gavg.before?, gavg.after?))
    };
    let vms = || host.objects.iter().filter(|object| object.object.kind == Kind::Vm);
    let of = |trend: Trend| {
        vms().filter(move |vm| vm.trend == trend).filter_map(|vm| Some((vm, times(vm)?)))
    };
    let better = of(Trend::Better).min_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let worse = of(Trend::Worse).max_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let told = |(vm, (_, was, is)): (&ObjectChange, (f64, f64, f64)), what| {
        format!("{} is {what} ({} to {} ms)", vm.object.name, number(was), number(is))
    };
    match (better, worse) {
        (Some(better), Some(worse)) => {
            format!("; {}, {}", told(better, "better off"), told(worse, "worse"))
        }
        _ => String::new(),
    }
}

impl BeforeAfter {
    /// The object that the worst finding is about, or the one in which commands spend most time;
    /// `None` when nothing has load on either side.
    #[must_use]
    pub fn main_object(&self) -> Option<&ObjectChange> {
        let findings = self.gone.iter().chain(&self.new).chain(&self.remaining);
        let of_finding = |finding: &FindingChange| {
            self.objects
                .iter()
                .find(|change| finding.at.is_row(change.object.kind, &change.object.name))
        };
        findings.filter_map(of_finding).next().or_else(|| self.objects.first())
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// `"Device queue full, limited by DSNRO" is gone; nothing else is wrong`.
fn findings(host: &BeforeAfter) -> String {
    let lists = [(&host.gone, "gone"), (&host.new, "new"), (&host.remaining, "still there")];
    let parts: Vec<String> = lists.iter().filter_map(|(list, what)| named(list, what)).collect();
    match parts.is_empty() {
        true => "nothing was wrong before and nothing is after".into(),
        false => parts.join(", "),
    }
}

fn named(findings: &[FindingChange], what: &str) -> Option<String> {
    let mut titles: Vec<&str> = findings.iter().map(|finding| finding.cause.title()).collect();
    titles.dedup();
    let more = titles.len().saturating_sub(NAMED);
    let mut text: Vec<String> =
        titles.iter().take(NAMED).map(|title| format!("\"{title}\"")).collect();
    if more > 0 {
        text.push(format!("{more} more"));
    }
    let last = text.pop()?;
    let list = if text.is_empty() { last } else { format!("{} and {last}", text.join(", ")) };
    Some(format!("{what} is {list}"))
}

fn of_device(device: &SharedDevice) -> String {
    let mut text = format!("{} hosts use {}", device.hosts.len(), device.name);
    if let Some(iops) = device.total.iops {
        text.push_str(&format!(", {} commands a second in all", number(iops)));
    }
    let first = device.hosts.first().and_then(|first| Some((first, first.share_percent?)));
    if let Some((first, percent)) = first {
        text.push_str(&format!(", {} % of them from {}", number(percent.round()), first.host));
    }
    match device.notes.first() {
        Some(note) => format!("{text}. {}", note.sentence),
        None => text + ".",
    }
}

/// What stands against believing the numbers of hosts that are on both sides.
pub(super) fn cautions(pairs: &[(Judged<'_>, Judged<'_>)], hosts: &[BeforeAfter]) -> Vec<String> {
    let of_times = pairs.iter().flat_map(|(was, is)| of_samples(was, is));
    of_times.chain(hosts.iter().filter_map(of_load)).collect()
}

fn of_samples(was: &Judged<'_>, is: &Judged<'_>) -> Vec<String> {
    /// Samples of a side below which no noise is known.
    const FEW: usize = 4;
    let host = &was.verdict.host;
    let [before, after] = [was, is].map(|side| side.recording.times_ms.as_slice());
    let (Some(from), Some(to)) =
        (before.first().zip(before.last()), after.first().zip(after.last()))
    else {
        return Vec::new();
    };
    let order = if is_same(was.recording, is.recording) {
        Some(format!("Both sides of {host} are the same samples."))
    } else if to.1 < from.0 {
        Some(format!("{host}: the second side was recorded before the first."))
    } else if to.0 <= from.1 {
        Some(format!("{host}: the two sides overlap in time."))
    } else {
        None
    };
    let mut cautions = Vec::from_iter(order);
    if before.len().min(after.len()) < FEW {
        cautions.push(format!(
            "{host}: {} samples before and {} after are too few to tell a change from noise.",
            before.len(),
            after.len()
        ));
    }
    if host.to_lowercase().starts_with("localhost") {
        cautions.push(format!("Every host without a name is called {host}: see that it is one."));
    }
    cautions
}

/// Whether two recordings hold the same numbers.
fn is_same(a: &Measured, b: &Measured) -> bool {
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    a.times_ms == b.times_ms
        && a.columns().count() == b.columns().count()
        && a.columns()
            .zip(b.columns())
            .all(|(a, b)| (a.0, a.1) == (b.0, b.1) && bits(a.2) == bits(b.2))
}

fn of_load(host: &BeforeAfter) -> Option<String> {
    let devices = || {
        let is_device = |kind| matches!(kind, Kind::Device | Kind::NfsVolume);
        host.objects.iter().filter(move |object| is_device(object.object.kind))
    };
    let differs = devices().filter(|object| object.trend == Trend::LoadDiffers).count();
    (differs > 0).then(|| {
        format!(
            "{}: on {differs} of {} devices latency moved the way the load did, so it is no \
             proof: record again under the same load.",
            host.host,
            devices().count()
        )
    })
}
