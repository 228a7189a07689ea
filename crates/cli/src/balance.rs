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
use levels::{Measured, Vdisk, most_first, quantile};
use scenario::{Over, Scenario};
use serde_json::{Value, json};
use sim::Source;

use crate::{
    Result,
    jain::jain,
    known::is_out,
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

/// A datastore over the window.
#[derive(Clone, Debug)]
struct Load {
    /// The 90th percentile of its samples' latency; `None` where nobody used it.
    p90_ms: Option<f64>,
    iops: f64,
    /// What its VMs have in flight, each with its name.
    vms: Vec<(String, f64)>,
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
    /// # Errors
    /// One line: what is wrong with the scenario as it is.
    pub(crate) fn of(asked: &Asked) -> Result<Self> {
        let before = simulate(asked, &[])?;
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
        Ok(Self { before, moves, ends })
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

    /// The same as `docs/reference/json.md` describes it.
    pub(crate) fn to_json(&self, asked: &Asked) -> Value {
        let load = |load: &Load| json!({ "p90_ms": load.p90_ms, "iops": load.iops, "in_flight": load.in_flight() });
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
        of_all(&step.after) < (1.0 - GAINS.min(share / 2.0)) * of_all(now)
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
    let outcome = sim::run(&scenario, 1, &());
    let report = Report::new(scenario, outcome);
    let samples = report.samples(asked.window);
    let views = &report.outcome.windows[asked.window];
    let loads = asked.cluster.iter().map(|name| {
        let rows: Vec<_> = rows(&report.scenario, &samples, name).collect();
        let latency = |sample| {
            let sums = rows.iter().map(|(recording, id)| sums(recording, *id, sample));
            let (commands, spent) =
                sums.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
            (commands > 0.0).then(|| spent / commands)
        };
        let all = samples.first().map_or(0, Recording::len);
        let p90_ms = quantile((0..all).map(latency), PERCENTILE);
        let (mut iops, mut vms) = (0.0, BTreeMap::new());
        for (host, view) in views.iter().enumerate() {
            let measured = Measured::of(view.recording.clone());
            for (id, _) in rows_of(&report.scenario, host, &measured, name) {
                iops += sums(&measured, id, 0).0;
                add_vms(&mut vms, &measured, id);
            }
        }
        let mut vms: Vec<_> = vms.into_iter().collect();
        most_first(&mut vms, |(_, in_flight): &(String, f64)| *in_flight);
        Load { p90_ms, iops, vms, is_out: is_out_on_any(asked, &report.scenario, name) }
    });
    Ok(loads.collect())
}

/// Whether a disk of a VM is cached in flash of its host: the cache is of the datastore too.
fn has_flash_cache(scenario: &Scenario, vm: &str) -> bool {
    let mut hosts = scenario.hosts.iter();
    hosts.any(|host| host.disks_of(vm).any(|disk| host.flash_caches.contains_key(&disk)))
}

/// The rows of a datastore on all hosts.
fn rows<'a>(
    scenario: &'a Scenario,
    samples: &'a [Recording],
    name: &'a str,
) -> impl Iterator<Item = (&'a Recording, EntityId)> {
    let hosts = samples.iter().enumerate();
    hosts.flat_map(move |(host, recording)| {
        rows_of(scenario, host, recording, name).map(move |(id, _)| (recording, id))
    })
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

/// Commands a second of a row in a sample, and the milliseconds that all of a second take.
fn sums(recording: &Recording, id: EntityId, sample: usize) -> (f64, f64) {
    let value = |counter| recording.value(id, counter, sample).unwrap_or(0.0);
    let commands = value(Counter::Commands);
    (commands, commands * value(Counter::GuestLatency))
}

/// Adds what each VM has in flight on a device or volume, by Little's law: that of its virtual disks, as volumes of NFS
/// have no worlds.
fn add_vms(vms: &mut BTreeMap<String, f64>, recording: &Measured, device: EntityId) {
    let disks = recording.of_kind(Kind::VirtualDisk).map(|(id, _)| Vdisk::of(recording, id));
    for disk in disks.filter(|disk| disk.device == Some(device)) {
        if let Some(in_flight) = disk.outstanding(0).filter(|in_flight| *in_flight > 0.0) {
            *vms.entry(disk.vm.to_owned()).or_default() += in_flight;
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
