//! Several hosts on one device: who gets how much of the array, and who pays for it.
//!
//! A host sees only its own queue, and ESXi is built so that no host overtakes the others on an
//! array [S0]: every host has the same depth for a device, as long as nobody sets it on one of
//! them alone. Side by side the captures show what the array gets from all of them.

use counters::sorted::sort_by;
use std::collections::BTreeMap;

use counters::{EntityId, Kind};
use levels::{most_first, weighted_mean};

use super::{
    Judged, MIN_IOPS,
    figures::{Moment, Together, depth_in_force, moments},
};
use crate::{Cause, Finding, HostShare, SharedDevice, SharedKind, SharedNote, Span, mean, number};

/// Commands that the port of an array takes, at the least and at the most [S0, KB-QF].
const PORT_COMMANDS: (f64, f64) = (1_600.0, 2_048.0);
/// Hosts that are named in a sentence.
const MOST_NAMED: usize = 6;
/// Samples without which no host is held to follow another.
const FEWEST: usize = 8;
/// The partial correlation from which it is.
const CORRELATED: f64 = 0.6;
/// By how much DAVG and the other's load differ at least between calm and loud times.
const TIMES: f64 = 1.5;

/// One host on a device.
struct Guest {
    name: String,
    dsnro: Option<f64>,
    samples: Vec<(i64, Moment)>,
}

/// The devices that more than one host has load on, the one with most commands first.
pub(super) fn devices(hosts: &[Judged<'_>]) -> Vec<SharedDevice> {
    let mut users: BTreeMap<String, Vec<(&Judged<'_>, EntityId)>> = BTreeMap::new();
    for host in hosts {
        for kind in [Kind::Device, Kind::NfsVolume] {
            for (id, entity) in host.recording.of_kind(kind) {
                let Some(name) = name_on_all_hosts(kind, &entity.name) else { continue };
                let users = users.entry(name).or_default();
                if !users.last().is_some_and(|(last, _)| std::ptr::eq(*last, host)) {
                    users.push((host, id));
                }
            }
        }
    }
    let mut devices: Vec<_> =
        users.into_iter().filter_map(|(name, users)| device(name, &users)).collect();
    most_first(&mut devices, |device| rate(&device.total));
    devices
}

/// The name by which every host knows a device; `None` for a name that means something on one
/// host alone (`mpx.vmhba0:C0:T5:L0`). An NFS volume goes by the name of its datastore.
fn name_on_all_hosts(kind: Kind, name: &str) -> Option<String> {
    const GLOBAL: [&str; 3] = ["naa.", "eui.", "t10."];
    let is_global = GLOBAL.iter().any(|prefix| name.starts_with(prefix));
    (kind == Kind::NfsVolume || is_global).then(|| name.to_owned())
}

fn device(name: String, users: &[(&Judged<'_>, EntityId)]) -> Option<SharedDevice> {
    let guest = |(host, id): &(&'_ Judged<'_>, EntityId)| Guest {
        name: host.verdict.host.clone(),
        dsnro: dsnro(&host.verdict.findings, &name),
        samples: host
            .recording
            .times_ms
            .iter()
            .copied()
            .zip(moments(host.recording, *id))
            .collect(),
    };
    let mut guests: Vec<Guest> = users.iter().map(guest).filter(Guest::has_load).collect();
    if guests.len() < 2 {
        return None;
    }
    let common = common_time(&guests);
    if let Some(common) = common {
        guests.iter_mut().for_each(|guest| guest.samples.retain(|(at, _)| common.holds(*at)));
    }
    let mut hosts: Vec<HostShare> = guests.iter().map(Guest::share).collect();
    let total = total(&mut hosts);
    most_first(&mut hosts, rate);
    let notes = notes(&hosts, &guests, common);
    Some(SharedDevice { name, common, hosts, total, notes })
}

/// Commands per second; what has no number of them comes last.
fn rate(host: &HostShare) -> f64 {
    host.iops.unwrap_or(f64::NAN)
}

/// The limit that competing VMs get, where the verdict found one.
fn dsnro(findings: &[Finding], device: &str) -> Option<f64> {
    let mut found =
        findings.iter().filter(|f| f.cause == Cause::Dsnro && f.at.is_row(Kind::Device, device));
    found.next()?.limit
}

/// The time that all guests cover; `None` when they do not overlap.
fn common_time(guests: &[Guest]) -> Option<Span> {
    let spans = guests.iter().filter_map(|guest| {
        let ((from_ms, _), (to_ms, _)) = (guest.samples.first()?, guest.samples.last()?);
        Some(Span { from_ms: *from_ms, to_ms: *to_ms })
    });
    let common = spans
        .reduce(|a, b| Span { from_ms: a.from_ms.max(b.from_ms), to_ms: a.to_ms.min(b.to_ms) })?;
    (common.from_ms < common.to_ms).then_some(common)
}

impl Span {
    const fn holds(&self, at_ms: i64) -> bool {
        self.from_ms <= at_ms && at_ms <= self.to_ms
    }
}

impl Guest {
    fn has_load(&self) -> bool {
        mean(self.samples.iter().map(|(_, moment)| moment.rate))
            .is_some_and(|rate| rate >= MIN_IOPS)
    }

    fn share(&self) -> HostShare {
        let moments = || self.samples.iter().map(|(_, moment)| moment);
        let over_time = |value: fn(&Moment) -> Option<f64>| {
            weighted_mean(moments().map(|m| Some((value(m)?, m.seconds))))
        };
        let per_command = |ms: fn(&Moment) -> Option<f64>| {
            weighted_mean(moments().map(|m| Some((ms(m)?, m.commands()))))
        };
        let depths = moments().filter_map(Moment::limit);
        HostShare {
            host: self.name.clone(),
            iops: over_time(|moment| moment.rate),
            share_percent: None,
            mib_per_s: over_time(|moment| moment.mib),
            slots: over_time(Moment::active),
            davg_ms: per_command(Moment::below_ms),
            kavg_ms: per_command(|moment| moment.kavg),
            dqlen: depth_in_force(moments()),
            dqlen_max: depths.reduce(f64::max),
            dsnro: self.dsnro,
        }
    }
}

/// The sum of all hosts; each gets its share of it.
fn total(hosts: &mut [HostShare]) -> HostShare {
    let all = Together { all: hosts, rate: |host| host.iops };
    let iops = all.sum(|host| host.iops);
    let total = HostShare {
        host: "all".into(),
        iops,
        share_percent: iops.map(|_| 100.0),
        mib_per_s: all.sum(|host| host.mib_per_s),
        slots: all.sum(|host| host.slots),
        davg_ms: all.per_command(|host| host.davg_ms),
        kavg_ms: all.per_command(|host| host.kavg_ms),
        dqlen: all.sum(|host| host.dqlen),
        dqlen_max: all.sum(|host| host.dqlen_max),
        dsnro: None,
    };
    let share = |host: &HostShare| Some(100.0 * host.iops? / iops.filter(|iops| *iops > 0.0)?);
    hosts.iter_mut().for_each(|host| host.share_percent = share(host));
    total
}

fn notes(hosts: &[HostShare], guests: &[Guest], common: Option<Span>) -> Vec<SharedNote> {
    let apart = common.is_none().then(|| SharedNote {
        kind: SharedKind::ClocksApart,
        sentence: "The captures do not overlap in time (or the hosts' clocks do not agree): each \
                   host is shown over its own time, the sum was never on the array at once, and \
                   who disturbs whom cannot be told."
            .into(),
    });
    let pairs = guests.iter().flat_map(|victim| guests.iter().map(move |other| (victim, other)));
    let taken =
        pairs.filter(|_| common.is_some()).filter_map(|(victim, other)| taken(victim, other));
    taken.chain(unequal(hosts)).chain(apart).collect()
}

/// Hosts whose driver gives the device another depth, or whose DSNRO differs: the deeper one may
/// take the array from the others, which the equal defaults prevent [S0]; what is changed is
/// changed on every host that uses the array [S4].
fn unequal(hosts: &[HostShare]) -> Option<SharedNote> {
    let named = |value: fn(&HostShare) -> Option<f64>| {
        let known: Vec<_> = hosts.iter().filter_map(|host| Some((host, value(host)?))).collect();
        let first = known.first()?.1;
        let differs = known.iter().any(|(_, depth)| *depth != first);
        let text = known
            .iter()
            .take(MOST_NAMED)
            .map(|(host, depth)| format!("{} {}", number(*depth), host.host));
        differs.then(|| text.collect::<Vec<_>>().join(", "))
    };
    let what = |label: &str, text: String| format!("{label} ({text})");
    let depth = named(|host| host.dqlen_max).map(|text| what("depth", text));
    let dsnro = named(|host| host.dsnro).map(|text| what("DSNRO", text));
    let differing: Vec<_> = [depth, dsnro].into_iter().flatten().collect();
    (!differing.is_empty()).then(|| SharedNote {
        kind: SharedKind::UnequalDepths,
        sentence: format!(
            "The hosts differ in {}: whoever may hold more slots gets more of the array, so set \
             the driver's depth and DSNRO alike on every host that uses it.",
            differing.join(" and ")
        ),
    })
}

/// Whether the DAVG of one host follows the load of another, at a like load of its own.
fn taken(victim: &Guest, other: &Guest) -> Option<SharedNote> {
    let rows = aligned(victim, other);
    let strength = partial_correlation(&rows)?;
    let (calm, loud) = calm_and_loud(rows)?;
    let follows = strength >= CORRELATED
        && loud.davg_ms >= TIMES * calm.davg_ms
        && loud.others >= TIMES * calm.others;
    follows.then(|| SharedNote {
        kind: SharedKind::TakesTheArray,
        sentence: format!(
            "{} takes the array from {}: DAVG there is {} ms while {} moves {} MiB/s and {} ms \
             while it moves {} (correlation {strength:.2}, its own load taken out).",
            other.name,
            victim.name,
            number(calm.davg_ms),
            other.name,
            number(calm.others),
            number(loud.davg_ms),
            number(loud.others)
        ),
    })
}

/// A sample of the victim: its DAVG, its own load, and that of the other host at the time.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    davg_ms: f64,
    own: f64,
    others: f64,
}

/// The samples of the victim in which the other host was seen, too.
fn aligned(victim: &Guest, other: &Guest) -> Vec<Row> {
    let mut rest = other.samples.as_slice();
    let mut rows = Vec::new();
    for (at, moment) in &victim.samples {
        let begin = at.saturating_sub((moment.seconds * 1000.0) as i64);
        let before = rest.partition_point(|(at, _)| *at <= begin);
        let until = rest.partition_point(|(other, _)| other <= at);
        let inside = rest.get(before..until).unwrap_or_default();
        rest = rest.get(until..).unwrap_or_default();
        let row = |others| Some(Row { davg_ms: moment.below_ms()?, own: moment.mib?, others });
        if moment.rate >= Some(MIN_IOPS) {
            rows.extend(mean(inside.iter().map(|(_, moment)| moment.mib)).and_then(row));
        }
    }
    rows
}

/// The correlation of DAVG and the other's load with the influence of the own load taken out of
/// both; `None` for too few samples, or where one of them never moves.
fn partial_correlation(rows: &[Row]) -> Option<f64> {
    if rows.len() < FEWEST {
        return None;
    }
    let davg_others = correlation(rows, |row| row.davg_ms, |row| row.others)?;
    let own = |value| correlation(rows, |row| row.own, value).unwrap_or(0.0);
    let (davg_own, others_own) = (own(|row: &Row| row.davg_ms), own(|row: &Row| row.others));
    let rest = ((1.0 - davg_own.powi(2)) * (1.0 - others_own.powi(2))).sqrt();
    (rest > 0.01).then(|| (davg_others - davg_own * others_own) / rest)
}

fn correlation(rows: &[Row], x: fn(&Row) -> f64, y: fn(&Row) -> f64) -> Option<f64> {
    let (x_mean, y_mean) = (mean(rows.iter().map(x))?, mean(rows.iter().map(y))?);
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        rows.iter().map(|row| of(x(row) - x_mean, y(row) - y_mean)).sum()
    };
    let spread = (sum(&|dx, _| dx * dx) * sum(&|_, dy| dy * dy)).sqrt();
    (spread > 0.0).then(|| sum(&|dx, dy| dx * dy) / spread)
}

/// The third of the rows in which the other host does least, and that in which it does most.
fn calm_and_loud(mut rows: Vec<Row>) -> Option<(Row, Row)> {
    sort_by(&mut rows, |a, b| a.others.total_cmp(&b.others));
    let third = rows.len() / 3;
    let mean_of = |rows: &[Row]| {
        let davg_ms = mean(rows.iter().map(|row| row.davg_ms))?;
        Some(Row { davg_ms, own: 0.0, others: mean(rows.iter().map(|row| row.others))? })
    };
    Some((mean_of(rows.get(..third)?)?, mean_of(rows.get(rows.len() - third..)?)?))
}

/// What there is to say of all shared devices together: devices behind one port share what it
/// takes [S0, KB-QF].
pub(super) fn together(devices: &[SharedDevice]) -> Option<SharedNote> {
    let depths: f64 = devices.iter().filter_map(|device| device.total.dqlen_max).sum();
    let (least, most) = PORT_COMMANDS;
    (depths >= least).then(|| SharedNote {
        kind: SharedKind::DepthsAddUp,
        sentence: format!(
            "The depths of all hosts on the shared devices add up to {} commands. The port of an \
             array takes {} to {}: if they are behind one port, it may refuse commands (QUEUE \
             FULL) when all are busy.",
            number(depths),
            number(least),
            number(most)
        ),
    })
}
