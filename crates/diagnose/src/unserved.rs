//! What waits in a guest and its applications, and what these give up: no column of esxtop has it, and a run knows
//! it. Where no rule finds it, it is no finding of a cause, and no all-clear either.

use std::cmp::Ordering;

use levels::{mean, weighted_mean};

use crate::{
    Demand, Evidence, Facts, Finding, Host, Lack, Lacking, Spell, TICKET_LINE, Vdisk, number,
};

/// A virtual disk of which I/Os wait before it, or are lost.
pub(crate) struct Unserved<'a> {
    name: &'a str,
    vm: &'a str,
    /// Mean I/Os that wait there, and for how long each, in milliseconds.
    waiting: f64,
    wait_ms: f64,
    /// The mean commands below.
    inside: f64,
    /// What its driver lets out, where no more than that is asked of it.
    depth_left: Option<u32>,
    /// What is asked for, where that is more than is served.
    demand: Option<Demand>,
}

/// Those of a run, the one of which most I/Os wait or are lost first.
pub(crate) fn of<'a>(host: &Host<'a>, facts: &Facts) -> Vec<Unserved<'a>> {
    let disks = host.vdisks.iter();
    let mut all: Vec<_> = disks.filter_map(|disk| Unserved::find(host, facts, disk)).collect();
    let lost = |each: &Unserved<'_>| each.demand.map_or(0.0, |demand| demand.lost);
    all.sort_by(|a, b| {
        (lost(b), b.waiting).partial_cmp(&(lost(a), a.waiting)).unwrap_or(Ordering::Equal)
    });
    all
}

impl<'a> Unserved<'a> {
    fn find(host: &Host<'_>, facts: &Facts, disk: &Vdisk<'a>) -> Option<Self> {
        let known = facts.vdisks.get(disk.name)?;
        let counts = |sample: usize| {
            let waits = (disk.guest_queued.at(sample)?, disk.guest_wait.at(sample)?);
            Some(host.is_held_up(waits, disk.outstanding(sample)?))
        };
        let all = host.every_sample();
        let spell = Spell::find(&all, counts);
        let demand = facts.demands.get(disk.name).copied();
        let loses = demand.is_some_and(|demand| demand.lost > 0.0);
        let samples = match &spell {
            // What is asked for is known over all of them.
            Some(spell) if demand.is_none() => &spell.samples,
            Some(_) => &all,
            None if loses => &all,
            None => return None,
        };
        let waits = samples.iter().map(|&s| Some((disk.guest_wait.at(s)?, disk.rate(s)?)));
        let over = |value: &dyn Fn(usize) -> Option<f64>| mean(samples.iter().map(|&s| value(s)));
        let inside = over(&|sample| disk.outstanding(sample))?;
        let has_room =
            |&depth: &u32| inside < REACHED * f64::from(depth) || known.asks_no_more_than(depth);
        Some(Self {
            name: disk.name,
            vm: disk.vm,
            waiting: over(&|sample| disk.guest_queued.at(sample))?,
            wait_ms: weighted_mean(waits)?,
            inside,
            depth_left: known.depth.filter(has_room),
            demand,
        })
    }

    fn lack(&self) -> Lack {
        let Self { name, waiting, wait_ms, inside, depth_left, demand, .. } = self;
        let (waiting, ms) = (number(*waiting), number(*wait_ms));
        let sentence = match demand {
            Some(demand) => {
                format!(
                    "{name}: {}; {waiting} wait {ms} ms each in guest and application.",
                    asked(demand, " I/Os a second")
                )
            }
            None => format!("{name}: {waiting} I/Os wait {ms} ms each in guest and application."),
        };
        let why = depth_left.map(|depth| {
            format!(
                " No queue of the host holds them: {} are outstanding of the {depth} that its driver lets out. What \
                 the application, or its guest's block layer, has outstanding at most does.",
                number(*inside)
            )
        });
        let why = why.unwrap_or_else(|| " What holds them there is not found.".into());
        Lack { what: Lacking::Reason, sentence: sentence + &why }
    }
}

/// How near to its depth a disk is at it: commands on their way in or out.
const REACHED: f64 = 0.93;

/// What is asked for and what becomes of it, in a unit that is said once.
fn asked(demand: &Demand, unit: &str) -> String {
    let served =
        demand.served.map_or(String::new(), |served| format!("{} served, ", number(served)));
    format!("{}{unit} offered, {served}{} lost", number(demand.offered), number(demand.lost))
}

/// Of those whose VM suffers by no finding: the rest is in the findings.
pub(crate) fn lacks<'u>(
    all: &'u [Unserved<'_>],
    findings: &'u [Finding],
) -> impl Iterator<Item = Lack> + 'u {
    let of_none =
        move |each: &&Unserved<'_>| !findings.iter().any(|finding| finding.hurts(each.vm));
    all.iter().filter(of_none).map(Unserved::lack)
}

/// The line about a finding with what its sufferers are asked for and not served: what a command takes is not
/// what their applications see.
pub(crate) fn tell(line: String, finding: &Finding, all: &[Unserved<'_>]) -> String {
    let of_it = all.iter().filter(|each| finding.hurts(each.vm));
    let base = line.trim_end_matches('.');
    let Some((each, demand)) = of_it.filter_map(|each| Some((each, each.demand?))).next() else {
        let wait = finding.evidence.iter().find(|each| each.label == Evidence::IN_GUEST);
        let told = wait.map(|wait| format!("{base}; {} ms more in the guest.", number(wait.value)));
        return told.filter(|line| line.chars().count() <= TICKET_LINE).unwrap_or(line);
    };
    let (ms, lost) = (number(each.wait_ms), number(demand.lost));
    let whose = if finding.sufferers.len() > 1 { format!("{}: ", each.vm) } else { String::new() };
    let asked = asked(&demand, "/s");
    let lost = if demand.lost > 0.0 { format!("{lost}/s lost, ") } else { String::new() };
    let lines = [
        format!(
            "{whose}{asked}, {} wait {ms} ms each in guest and application",
            number(each.waiting)
        ),
        format!("{whose}{lost}{ms} ms more in guest and application"),
        format!("{whose}{lost}{ms} ms more in the guest"),
    ];
    let mut lines = lines.iter().map(|more| format!("{base}; {more}."));
    lines.find(|line| line.chars().count() <= TICKET_LINE).unwrap_or(line)
}
