//! What Storage DRS would move among the datastores of a scenario, and what that gives, each move simulated.
//!
//! ```text
//!   run as it is -> 90th percentile of each datastore -> one above the threshold, and unfair?
//!         ^                                                      | each VM there to each other one, simulated
//!         '-- the move after which the worst, or else all, is best <--'
//! ```

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use counters::{Counter, DeviceId, Entity, EntityId, Kind, MILLISECOND, Recording, Time};
use knobs::powershell_name;
use levels::{Measured, most_first, quantile};
use scenario::{Over, Scenario};
use serde_json::{Value, json};
use sim::Source;

use crate::{
    Result,
    jain::jain,
    known::is_out,
    own_limits::{Guests, OwnLimits},
    report::Report,
    table::Table,
    talk::progress,
    text::{clean, counted, millis, rate, seconds},
};

/// VMs of a datastore that are tried elsewhere: those with most in flight.
const TRIED: usize = 8;
/// A move has to take so much off the worst datastore, or off a command of all, else its copy is not worth it (ruling: no
/// source has the figure).
const GAINS: f64 = 0.05;
/// What is less off a command of all is chance, and nothing gained (ruling).
const LEAST_GAIN: f64 = 0.005;
/// The percentile by which Storage DRS judges [SDRS].
const PERCENTILE: f64 = 0.9;

/// What is asked.
pub(crate) struct Asked {
    pub(crate) source: Source,
    /// The datastores of the cluster, by name.
    pub(crate) cluster: Vec<String>,
    /// Over how long the file has each sample: the percentile is that of their means.
    pub(crate) sample: Time,
    /// Index of the window that is judged.
    pub(crate) window: usize,
    /// The I/O latency threshold, in milliseconds.
    pub(crate) latency_ms: f64,
    /// The I/O imbalance threshold, 1 to 100.
    pub(crate) imbalance: f64,
    /// Moves at most.
    pub(crate) moves: usize,
    pub(crate) threads: usize,
}

/// A datastore over the window, without what VMs wait for their own IOPS limits: they do so wherever they are.
#[derive(Clone, Debug)]
struct Load {
    /// The 90th percentile of its samples' latency; `None` where nobody used it.
    p90_ms: Option<f64>,
    /// The same with those waits.
    observed_ms: Option<f64>,
    iops: f64,
    /// What its VMs have in flight, each with its name.
    vms: Vec<(String, f64)>,
    /// What they have that waits for their own limits.
    limited: Vec<(String, f64)>,
    /// Whether it does not answer some host at some time: nobody is moved there.
    is_out: bool,
}

/// A move, and the datastores after it.
struct Move {
    vm: String,
    from: usize,
    to: usize,
    after: Vec<Load>,
}

/// What there is to move.
pub(crate) struct Balance {
    before: Vec<Load>,
    moves: Vec<Move>,
    /// Why there is no further move.
    ends: String,
}

impl Balance {
    /// What there is to move of a run without a move.
    pub(crate) fn of(asked: &Asked, as_it_is: &Report) -> Self {
        let before = loads(asked, as_it_is);
        let (mut moves, mut placed): (Vec<Move>, Vec<(String, usize)>) = (Vec::new(), Vec::new());
        let ends = loop {
            let now = moves.last().map_or(&before, |last| &last.after);
            if let Some(ends) = at_rest(asked, now) {
                break ends;
            }
            if moves.len() >= asked.moves {
                break format!("after {} no more was asked for", counted(moves.len(), "move"));
            }
            let next = match best(asked, now, &placed) {
                Ok(next) => next,
                Err(why) => break why,
            };
            placed = with(&placed, &next.vm, next.to);
            moves.push(next);
        };
        Self { before, moves, ends }
    }

    /// The moves as events of a scenario at that moment, as `copy` says it where it does.
    pub(crate) fn events(&self, asked: &Asked, at: Time, copy: Option<&str>) -> String {
        let copy = copy.map_or_else(String::new, |keys| format!(", copy = {{ {keys} }}"));
        let event = |step: &Move| {
            let [vm, to] = [&*step.vm, &*asked.cluster[step.to]].map(|name| json!(name));
            let at_ms = at.0 / MILLISECOND;
            format!(
                "\n[[event]]\nat = \"{at_ms}ms\"\nvm = {vm}\nmigrate = {{ datastore = {to}{copy} }}\n"
            )
        };
        self.moves.iter().map(event).collect()
    }

    fn after(&self) -> &[Load] {
        self.moves.last().map_or(&self.before, |last| &last.after)
    }

    pub(crate) fn render(&self, asked: &Asked) -> String {
        let mut table = Table::new(&[
            "datastore",
            "P90 ms",
            "IOPS",
            "in flight",
            "P90 ms then",
            "IOPS then",
            "in flight then",
        ])
        .left(&[0]);
        for ((name, before), after) in asked.cluster.iter().zip(&self.before).zip(self.after()) {
            let cells = [before, after].into_iter().flat_map(|load| {
                let p90 = load.p90_ms.map_or_else(|| "-".to_owned(), millis);
                [p90, rate(load.iops), format!("{:.1}", load.in_flight())]
            });
            table.row(std::iter::once(clean(name)).chain(cells).collect());
        }
        let fair =
            |loads| fairness(loads).map_or_else(|| "-".to_owned(), |fair| format!("{fair:.3}"));
        let mut out = format!(
            "I/O latency threshold {} ms, I/O imbalance threshold {} [SDRS]; P90 is that of the means of {} each\n\n{}\nfairness of the datastores' latency {}, \
             then {} (Jain's index)\n\n",
            asked.latency_ms,
            asked.imbalance,
            seconds(asked.sample),
            table.render(),
            fair(&self.before),
            fair(self.after()),
        );
        out.push_str(&self.limited(asked));
        let mut was = &self.before[..];
        for (number, step) in (1..).zip(&self.moves) {
            let [from, to] = [step.from, step.to].map(|at| clean(&asked.cluster[at]));
            let vm = clean(&step.vm);
            let [worst_ms, then_ms, all_ms, all_then_ms] =
                [worst(was), worst(&step.after), of_all(was), of_all(&step.after)].map(millis);
            out.push_str(&format!(
                "{number}. Move {vm} from {from} to {to}: the worst datastore has {then_ms} ms instead of {worst_ms} ms, and a \
                 command of all takes {all_then_ms} ms instead of {all_ms} ms.\n   PowerCLI> {}\n   \
                 in the file: [[event]] with vm = \"{vm}\", migrate = {{ datastore = \"{to}\" }}\n",
                line(step, asked),
            ));
            was = &step.after;
        }
        out.push_str(&format!(
            "{}: {}.\n",
            if self.moves.is_empty() { "Nothing to move" } else { "No more" },
            self.ends
        ));
        out
    }

    /// The datastores that are slower as their VMs observe them than they are.
    fn limited(&self, asked: &Asked) -> String {
        let mut out = String::new();
        for (name, load) in asked.cluster.iter().zip(&self.before) {
            let (Some(p90_ms), Some(observed_ms)) = (load.p90_ms, load.observed_ms) else {
                continue;
            };
            let Some((vm, _)) = load.limited.first() else { continue };
            if observed_ms > (1.0 + GAINS) * p90_ms {
                let others = match load.limited.len() - 1 {
                    0 => String::new(),
                    others => format!(" and {}", counted(others, "other")),
                };
                out.push_str(&format!(
                    "{}: a P90 of {} ms as its VMs observe it, by which Storage DRS goes [OBS]; the rest is the \
                     wait of {}{others} for an IOPS limit, the same on any datastore.\n",
                    clean(name),
                    millis(observed_ms),
                    clean(vm),
                ));
            }
        }
        if out.is_empty() { out } else { out + "\n" }
    }

    /// The same as `docs/reference/json.md` describes it.
    pub(crate) fn to_json(&self, asked: &Asked) -> Value {
        let load = |load: &Load| {
            json!({
                "p90_ms": load.p90_ms,
                "observed_p90_ms": load.observed_ms,
                "iops": load.iops,
                "in_flight": load.in_flight(),
            })
        };
        let both = self.before.iter().zip(self.after()).zip(&asked.cluster);
        let datastores = both.map(|((before, after), name)| {
            json!({ "name": name, "before": load(before), "after": load(after) })
        });
        let moves = self.moves.iter().map(|step| {
            json!({
                "vm": step.vm,
                "from": asked.cluster[step.from],
                "to": asked.cluster[step.to],
                "worst_p90_ms": worst(&step.after),
                "mean_ms": of_all(&step.after),
                "line": line(step, asked),
            })
        });
        json!({
            "version": 1,
            "latency_ms": asked.latency_ms,
            "imbalance": asked.imbalance,
            "datastores": datastores.collect::<Vec<_>>(),
            "fairness": { "before": fairness(&self.before), "after": fairness(self.after()) },
            "moves": moves.collect::<Vec<_>>(),
            "ends": self.ends,
        })
    }
}

fn line(step: &Move, asked: &Asked) -> String {
    let [vm, to] = [&*step.vm, &*asked.cluster[step.to]].map(powershell_name);
    format!("Move-VM -VM {vm} -Datastore {to}")
}

impl Load {
    fn in_flight(&self) -> f64 {
        // A sum of nothing is -0.0.
        self.vms.iter().fold(0.0, |all, (_, in_flight)| all + in_flight)
    }
}

/// What a command of all of them takes on average, in milliseconds, by Little's law.
fn of_all(loads: &[Load]) -> f64 {
    let in_flight: f64 = loads.iter().map(Load::in_flight).sum();
    let iops: f64 = loads.iter().map(|load| load.iops).sum();
    if iops > 0.0 { in_flight / iops * 1e3 } else { 0.0 }
}

/// The highest latency of any datastore, in milliseconds.
fn worst(loads: &[Load]) -> f64 {
    loads.iter().filter_map(|load| load.p90_ms).fold(0.0, f64::max)
}

/// How alike their latencies are: 1 where all are. The metric is "between 0 and 1, 1 the fairest" [SDRS]; Jain's index is
/// a ruling.
fn fairness(loads: &[Load]) -> Option<f64> {
    let all: Vec<f64> = loads.iter().map(|load| load.p90_ms.unwrap_or(0.0)).collect();
    jain(&all)
}

/// Why nothing is to be moved: none is above the threshold, or the metric is not below 1 - threshold / 100 [SDRS].
fn at_rest(asked: &Asked, loads: &[Load]) -> Option<String> {
    if worst(loads) <= asked.latency_ms {
        return Some(format!("no datastore is above {} ms", asked.latency_ms));
    }
    let least = 1.0 - asked.imbalance / 100.0;
    let fair = fairness(loads)?;
    (fair >= least).then(|| format!("their latencies are alike: {fair:.3} is not below {least:.2}"))
}

/// The move after which the worst datastore is best, of several alike that to the idlest; where none is worth it, why.
///
/// Where datastores share an array, the first of many VMs that leaves a full queue takes nothing off it: what the others
/// get is gained. So where no move takes enough off the worst one, that counts which takes most off a command of all: enough
/// is then half of what is moved, of many VMs each is little.
fn best(
    asked: &Asked,
    now: &[Load],
    placed: &[(String, usize)],
) -> std::result::Result<Move, String> {
    let above = (0..now.len()).filter(|at| now[*at].p90_ms > Some(asked.latency_ms));
    let tried: Vec<(String, usize, usize)> = above
        .flat_map(|from| {
            // Nobody goes to and fro: who was moved stays.
            let stays = |vm: &str| placed.iter().any(|(moved, _)| moved == vm);
            let vms = now[from].vms.iter().filter(move |(vm, _)| !stays(vm)).take(TRIED);
            vms.flat_map(move |(vm, _)| {
                let others = (0..now.len()).filter(move |to| *to != from && !now[*to].is_out);
                others.map(move |to| (vm.clone(), from, to))
            })
        })
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((vm, from, to)) = tried.get(next.fetch_add(1, Ordering::Relaxed)) {
            let after = simulate(asked, &with(placed, vm, *to));
            let (vm, from, to) = (vm.clone(), *from, *to);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push(match after {
                Ok(after) => Ok(Move { vm, from, to, after }),
                // It cannot be there.
                Err(refusal) => Err((from, vm, to, refusal.to_string())),
            });
            progress(&format!("{} of {} moves simulated", found.len(), tried.len()));
        }
    };
    std::thread::scope(|scope| (0..asked.threads).for_each(|_| drop(scope.spawn(work))));
    progress("");
    let (mut moves, mut refused) = (Vec::new(), Vec::new());
    for step in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        match step {
            Ok(step) => moves.push(step),
            Err(refusal) => refused.push(refusal),
        }
    }
    if tried.is_empty() && now.iter().any(|load| load.is_out) {
        return Err("no other datastore answers all through the window".into());
    }
    if let (true, Some((.., refusal))) = (moves.is_empty(), refused.into_iter().min()) {
        return Err(format!("no VM can go elsewhere: {refusal}"));
    }
    let of_worst = |step: &Move| worst(&step.after) < (1.0 - GAINS) * worst(now);
    let of_all_enough = |step: &Move| {
        let vms = &now[step.from].vms;
        let moved = vms.iter().find_map(|(vm, in_flight)| (*vm == step.vm).then_some(*in_flight));
        let share = moved.unwrap_or(0.0) / now.iter().map(Load::in_flight).sum::<f64>();
        of_all(&step.after) < (1.0 - GAINS.min(share / 2.0).max(LEAST_GAIN)) * of_all(now)
    };
    let measure: fn(&[Load]) -> f64 = if moves.iter().any(of_worst) {
        moves.retain(of_worst);
        worst
    } else {
        moves.retain(of_all_enough);
        of_all
    };
    // Moves after which it is alike, as far as a copy is not worth the difference, differ in where they go: to the
    // idlest, and what an earlier move brought there counts. Runs end in any order; one question has one answer.
    let best_ms = moves.iter().map(|step| measure(&step.after)).fold(f64::INFINITY, f64::min);
    let alike = moves.into_iter().filter(|step| measure(&step.after) <= (1.0 + GAINS) * best_ms);
    let there_ms = |step: &Move| step.after[step.to].p90_ms.unwrap_or(0.0);
    let idlest = alike.min_by(|a, b| {
        let order = |step: &Move| (step.from, step.to, step.vm.clone());
        there_ms(a).total_cmp(&there_ms(b)).then_with(|| order(a).cmp(&order(b)))
    });
    idlest.ok_or_else(|| {
        let gains = 100.0 * GAINS;
        format!("no single move takes {gains:.0} % off the latency of the worst, or enough off that of all")
    })
}

/// Where VMs are that were moved, with another one.
fn with(placed: &[(String, usize)], vm: &str, to: usize) -> Vec<(String, usize)> {
    placed.iter().cloned().chain([(vm.to_owned(), to)]).collect()
}

/// The datastores of the cluster over the window, with VMs where they were placed.
fn simulate(asked: &Asked, placed: &[(String, usize)]) -> Result<Vec<Load>> {
    let overs: Vec<_> =
        placed.iter().map(|(vm, to)| Over::datastore(vm, &asked.cluster[*to])).collect();
    let scenario = asked.source.scenario_over(&overs, &[]).map_err(|error| error.to_string())?;
    if let Some((vm, _)) = placed.iter().find(|(vm, _)| has_flash_cache(&scenario, vm)) {
        return Err(format!("a disk of `{vm}` has a flash cache, with which it stays").into());
    }
    Ok(loads(asked, &run(scenario)))
}

/// Simulates a scenario once.
pub(crate) fn run(scenario: Scenario) -> Report {
    let outcome = sim::run(&scenario, 1, &());
    Report::new(scenario, outcome)
}

/// The datastores of the cluster over the window of a run.
fn loads(asked: &Asked, report: &Report) -> Vec<Load> {
    let scenario = &report.scenario;
    let own_limits = OwnLimits::of(scenario, asked.window);
    let samples = report.measured(asked.window);
    let views = report.outcome.windows[asked.window].iter();
    let whole: Vec<_> = views.map(|view| Measured::of(view.recording.clone())).collect();
    let all = samples.first().map_or(0, |recording| recording.len());
    let load = |name: &String| {
        let rows = rows(scenario, &own_limits, &samples, name);
        let latencies: Vec<_> = (0..all).map(|sample| latencies(&rows, sample)).collect();
        let p90 = |which: usize| {
            quantile(latencies.iter().map(|both| both.map(|both| both[which])), PERCENTILE)
        };
        let (mut iops, mut vms, mut limited) = (0.0, BTreeMap::new(), BTreeMap::new());
        for row in self::rows(scenario, &own_limits, &whole, name) {
            iops += row.sums(0).0;
            row.add_vms(&mut vms, &mut limited);
        }
        let by_most = |vms: BTreeMap<String, f64>| {
            let mut vms: Vec<_> = vms.into_iter().filter(|(_, all)| *all > 0.0).collect();
            most_first(&mut vms, |(_, in_flight): &(String, f64)| *in_flight);
            vms
        };
        Load {
            p90_ms: p90(1),
            observed_ms: p90(0),
            iops,
            vms: by_most(vms),
            limited: by_most(limited),
            is_out: is_out_on_any(asked, scenario, name),
        }
    };
    asked.cluster.iter().map(load).collect()
}

/// The mean latency of a datastore in a sample, in milliseconds: as VMs observe it, and without what they wait for
/// their own limits. `None` where nobody used it.
fn latencies(rows: &[Row<'_>], sample: usize) -> Option<[f64; 2]> {
    let (mut commands, mut spent, mut own) = (0.0, 0.0, 0.0);
    for row in rows {
        let (of_row, spent_there) = row.sums(sample);
        commands += of_row;
        spent += spent_there;
        own += 1e3 * row.guests.waiting(sample).values().sum::<f64>();
    }
    (commands > 0.0).then(|| [spent, (spent - own).max(0.0)].map(|spent| spent / commands))
}

/// Whether a disk of a VM is cached in flash of its host: the cache is of the datastore too.
fn has_flash_cache(scenario: &Scenario, vm: &str) -> bool {
    let mut hosts = scenario.hosts.iter();
    hosts.any(|host| host.disks_of(vm).any(|disk| host.flash_caches.contains_key(&disk)))
}

/// A datastore on a host.
struct Row<'a> {
    recording: &'a Measured,
    id: EntityId,
    guests: Guests<'a>,
}

/// The rows of a datastore on all hosts.
fn rows<'a>(
    scenario: &'a Scenario,
    own_limits: &OwnLimits,
    samples: &'a [Measured],
    name: &'a str,
) -> Vec<Row<'a>> {
    let hosts = samples.iter().enumerate();
    let rows = hosts.flat_map(|(host, recording)| {
        rows_of(scenario, host, recording, name).map(move |(id, _)| (host, recording, id))
    });
    let row = |(host, recording, id)| {
        let guests = own_limits.on(host, recording, id);
        Row { recording, id, guests }
    };
    rows.map(row).collect()
}

/// The same on one host: the device or volume that has it and no other.
fn rows_of<'a>(
    scenario: &'a Scenario,
    host: usize,
    recording: &'a Recording,
    name: &'a str,
) -> impl Iterator<Item = (EntityId, &'a Entity)> {
    let host = &scenario.hosts[host];
    let devices = host.config.devices.iter().zip(&host.datastores);
    let own = devices.filter(move |(_, datastores)| **datastores == [name]);
    let own: Vec<_> = own.map(|(device, _)| device.name.as_str()).collect();
    let rows = recording.of_kind(Kind::Device).chain(recording.of_kind(Kind::NfsVolume));
    rows.filter(move |(_, row)| {
        own.contains(&row.name.as_str()) || row.name == name && own.len() == 1
    })
}

impl Row<'_> {
    /// Commands a second in a sample, and the milliseconds that all of a second take.
    fn sums(&self, sample: usize) -> (f64, f64) {
        let value = |counter| self.recording.value(self.id, counter, sample).unwrap_or(0.0);
        let commands = value(Counter::Commands);
        (commands, commands * value(Counter::GuestLatency))
    }

    /// Adds what each VM has in flight, by Little's law: that of its virtual disks, as volumes of NFS have no worlds.
    /// What waits for its own limit is not in flight, and told apart.
    fn add_vms(&self, vms: &mut BTreeMap<String, f64>, limited: &mut BTreeMap<String, f64>) {
        for disk in &self.guests.disks {
            if let Some(in_flight) = disk.outstanding(0) {
                *vms.entry(disk.vm.to_owned()).or_default() += in_flight;
            }
        }
        for (vm, waiting) in self.guests.waiting(0) {
            *limited.entry(vm.to_owned()).or_default() += waiting;
            let in_flight = vms.entry(vm.to_owned()).or_default();
            *in_flight = (*in_flight - waiting).max(0.0);
        }
    }
}

/// Whether a datastore does not answer some host at some time of the window.
fn is_out_on_any(asked: &Asked, scenario: &Scenario, name: &str) -> bool {
    let window = &scenario.windows[asked.window];
    scenario.hosts.iter().enumerate().any(|(index, host)| {
        let mut devices = host.datastores.iter().zip((0..).map(DeviceId));
        devices.any(|(own, device)| **own == [name] && is_out(scenario, index, window, device))
    })
}
