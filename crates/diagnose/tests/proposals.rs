//! What is prescribed exists: on hosts of any driver and version, every line that a diagnosis
//! proposes is read, is accepted by that host and changes something, and the line that undoes it
//! restores what was.
//!
//! The hosts are those of seeds 1 to 60; `PROPTEST_CASES=1000` takes 1 to 1,000.

mod hosts;

use std::collections::BTreeMap;

use counters::{DEFAULT_INTERVAL_S, Kind};
use diagnose::{Cause, Change, Finding, Party, Step, TICKET_LINE, Thresholds, Verdict, diagnose};
use hosts::{Drawn, check_each, device_limits, seeds};
use knobs::{Advanced, Driver, GuestOs, Knob, Line, Setting, Version};
use levels::{Flow, Measured, owner};
use scenario::{Host, Scenario};

/// What esxtop shows of the host that is judged.
fn recorded(scenario: &Scenario) -> Measured {
    Measured::of(sim::run(scenario, 1, &()).recordings.swap_remove(0))
}

/// The verdict on it.
fn judge(drawn: &Drawn) -> Verdict {
    diagnose(&recorded(&drawn.scenario), &Thresholds::default(), &drawn.facts)
}

/// All that can be set on a host, as it is in force.
fn state(host: &Host) -> BTreeMap<String, String> {
    let config = &host.config;
    let mut state = BTreeMap::new();
    for info in Advanced::TABLE {
        state.insert(info.path.to_string(), info.option.default_in(config.version).to_string());
    }
    for knob in &host.settings {
        if let Knob::Advanced { option, value } = knob {
            state.insert(option.info().path.into(), value.to_string());
        }
    }
    // What these two are in force for is seen on the devices.
    for option in [Advanced::SchedNumReqOutstanding, Advanced::VvolPesnro] {
        state.remove(option.info().path);
    }
    for (device, limits) in config.devices.iter().zip(device_limits(host)) {
        let (depth, dsnro) = (limits.max_queue_depth, limits.dsnro);
        let value = format!("{depth} {dsnro} {:?}", device.path_policy);
        state.insert(device.name.clone(), value);
    }
    for (index, vdisk) in config.vdisks.iter().enumerate() {
        let ring = config.vscsi[vdisk.vscsi.index()].depth;
        let value = format!("{} {ring} {:?}", vdisk.depth, vdisk.allocation);
        state.insert(format!("disk {index}"), value);
    }
    state
}

/// The lines of a step as they are typed on that host, in each syntax that has them; inside a guest
/// it is the VM that the line is typed in.
fn lines(step: &Setting, host: &Host) -> Vec<String> {
    let Setting::Pvscsi { vm, .. } = step else {
        return step.esxcli().into_iter().chain(step.powercli()).collect();
    };
    let name = vm.vm.as_deref().expect("a proposal names the VM");
    let vms = host.config.vms.iter().zip(&host.guests);
    let guest = vms.filter(|(vm, _)| vm.name == name).map(|(_, guest)| *guest).next();
    let place = usize::from(guest.expect("the VM is there") != GuestOs::Windows);
    let typed = step.guest();
    vec![format!("{name}: {}", typed[place.min(typed.len() - 1)])]
}

/// A scenario in which a line is in force.
fn with(scenario: &Scenario, line: &str) -> Result<Scenario, String> {
    let mut changed = scenario.clone();
    let Err(error) = changed.set(line) else { return Ok(changed) };
    // No file tells the version: a host that is too old for the line says which one it takes.
    let error = error.to_string();
    let instead = error.split_once(" has no such setting of a device: use `");
    match instead.and_then(|(_, line)| line.strip_suffix('`')) {
        Some(instead) => with(scenario, instead),
        None => Err(error),
    }
}

/// Each line of a step is taken, changes something, and is undone by each line for that.
fn is_accepted(scenario: &Scenario, step: &Step) -> Result<(), String> {
    let before = state(&scenario.hosts[0]);
    for line in lines(&step.set, &scenario.hosts[0]) {
        let changed = with(scenario, &line)?;
        if state(&changed.hosts[0]) == before {
            return Err(format!("`{line}` changes nothing"));
        }
        for undo in step.undo.iter().flat_map(|undo| lines(undo, &scenario.hosts[0])) {
            let undone = state(&with(&changed, &undo)?.hosts[0]);
            if undone != before {
                return Err(format!("`{line}` undone by `{undo}`: {undone:?} from {before:?}"));
            }
        }
    }
    Ok(())
}

/// The drivers of which a change lists the lines because nothing says which of them is there.
fn alternatives(change: &Change) -> Vec<&'static Driver> {
    let driver = |step: &Step| match &step.set {
        Setting::ModuleDepth { driver, .. } => Some(driver.driver),
        _ => None,
    };
    change.steps.iter().filter_map(driver).collect()
}

fn check(drawn: &Drawn, finding: &Finding, change: &Change) -> Result<(), String> {
    let shown = [&change.esxcli, &change.powercli, &change.guest].into_iter().flatten();
    for line in shown.filter(|line| line.parse::<Line>().is_err()) {
        let sets = [" set ", ".set.", "Set-", "reg add", "> /etc"];
        if sets.iter().any(|word| line.contains(word)) {
            return Err(format!("`{line}` is not read"));
        }
    }
    let own: Vec<_> = drawn.host().config.adapters.iter().map(|adapter| adapter.driver).collect();
    let (drivers, is_known) = (alternatives(change), !drawn.facts.drivers.is_empty());
    if is_known && drivers.iter().any(|driver| !own.contains(driver)) {
        return Err("a line of a driver that is not there".into());
    }
    if !is_known && !drivers.is_empty() && !change.what.contains("Type one line only") {
        return Err("a driver is guessed".into());
    }
    if !drivers.is_empty() && !drivers.iter().any(|driver| own.contains(driver)) {
        return Ok(());
    }
    let mut scenario = drawn.scenario.clone();
    for step in &change.steps {
        for setting in [Some(&step.set), step.undo.as_ref()].into_iter().flatten() {
            let line = setting.to_string();
            line.parse::<Line>().map_err(|_| format!("`{line}` of the JSON is not read"))?;
        }
        // Limits and what is set in guests stand in no file: they are shown and noted first.
        let is_unseen = matches!(step.set, Setting::Allocation { .. } | Setting::Pvscsi { .. });
        if step.undo.is_none() && !(is_unseen && drawn.facts.vdisks.is_empty()) {
            return Err("no way back".into());
        }
        if let Setting::ModuleDepth { driver, value } = &step.set {
            if !driver.depths().contains(value) {
                return Err(format!("{}={value} is out of its range", driver.module));
            }
            if !own.contains(&driver.driver) {
                continue;
            }
        }
        let is_newer = matches!(step.set, Setting::SchedNumReqOutstanding { .. });
        let version = drawn.facts.esxi_version;
        if is_newer && version.is_some_and(Version::has_global_dsnro) {
            return Err("a line of newer hosts".into());
        }
        // A step stands on those before it.
        is_accepted(&scenario, step)?;
        let line = lines(&step.set, &scenario.hosts[0]).remove(0);
        scenario = with(&scenario, &line)?;
    }
    acts_on_each(drawn, &scenario, finding, change)?;
    is_undone(drawn, &scenario, change)
}

/// The lines for full queues change the limits of every device that the finding is about.
fn acts_on_each(
    drawn: &Drawn,
    changed: &Scenario,
    finding: &Finding,
    change: &Change,
) -> Result<(), String> {
    let is_of_queue = matches!(finding.cause, Cause::DeviceDepth | Cause::Dsnro);
    let is_of_vm =
        |step: &Step| matches!(step.set, Setting::Allocation { .. } | Setting::Pvscsi { .. });
    if !is_of_queue || change.steps.iter().all(is_of_vm) {
        return Ok(());
    }
    let [before, after] = [drawn.host(), &changed.hosts[0]].map(state);
    let stays = |name: &&str| before.get(*name) == after.get(*name);
    match finding.objects().map(|at| at.name.as_str()).find(stays) {
        Some(name) => Err(format!("no line changes {name}")),
        None => Ok(()),
    }
}

/// The lines that people are shown to take a change back are read, and where it is one driver's all of
/// them together restore what was.
fn is_undone(drawn: &Drawn, changed: &Scenario, change: &Change) -> Result<(), String> {
    let of_guest = |step: &Step| match &step.set {
        Setting::Pvscsi { vm, .. } => vm.vm.clone(),
        _ => None,
    };
    let guest = change.steps.iter().find_map(of_guest);
    let mut undone = changed.clone();
    for line in change.undo_lines() {
        line.parse::<Line>().map_err(|error| format!("undo `{line}`: {error}"))?;
        let typed = guest.as_ref().map_or(line.clone(), |vm| format!("{vm}: {line}"));
        undone = with(&undone, &typed)?;
    }
    let is_known = change.steps.iter().all(|step| step.undo.is_some());
    let all = is_known && alternatives(change).len() <= 1;
    match all && state(&undone.hosts[0]) != state(drawn.host()) {
        true => Err(format!("not undone by {:?}", change.undo_lines())),
        false => Ok(()),
    }
}

#[test]
fn what_is_proposed_is_accepted_and_undone() {
    check_each(seeds(60), |drawn| {
        for finding in &judge(drawn).findings {
            for change in &finding.changes {
                check(drawn, finding, change)
                    .map_err(|error| format!("{}\n{}\n{error}", finding.sentence, change.what))?;
            }
        }
        Ok(())
    });
}

/// The answer is two lines that fit a ticket: who suffers, where it is, and the one thing to do; also
/// where outputs of esxcli are of another time.
#[test]
fn the_answer_is_two_lines_that_fit_a_ticket() {
    let fits = |verdict: &Verdict| {
        let advice = verdict.advice.as_ref();
        for line in [Some(&verdict.headline), advice].into_iter().flatten() {
            if line.chars().count() > TICKET_LINE || line.contains('\n') {
                return Err(format!("{} characters: {line}", line.chars().count()));
            }
        }
        let Some(first) = verdict.findings.first() else { return Ok(()) };
        let who = first.sufferers.first().map(|party| &party.name);
        let whole = [who, first.datastore.as_ref()];
        match whole.into_iter().flatten().all(|word| verdict.headline.contains(word)) {
            true if advice.is_some() => Ok(()),
            _ => Err(format!("{}: {:?}, {advice:?}", verdict.headline, first.sufferers)),
        }
    };
    check_each(seeds(60), |drawn| {
        let recording = &recorded(&drawn.scenario);
        let mut of_another_time = drawn.facts.clone();
        for known in of_another_time.devices.values_mut() {
            known.max_queue_depth = known.max_queue_depth.map(|depth| 2 * depth);
            known.dsnro = known.dsnro.map(|dsnro| 2 * dsnro);
        }
        [&drawn.facts, &of_another_time]
            .into_iter()
            .try_for_each(|facts| fits(&diagnose(recording, &Thresholds::default(), facts)))
    });
}

/// What some VMs got in a recording: their commands and what those moved, in MiB; each with how far
/// chance alone takes it: commands that come and go by themselves number their mean give or take its
/// square root.
fn served(recording: &Measured, vms: &[Party]) -> [(f64, f64); 2] {
    let is_one = |name: &str| vms.iter().any(|vm| vm.name == name);
    let own = |(id, world)| is_one(owner(recording, world)).then(|| Flow::of(recording, id));
    let flows: Vec<_> = recording.of_kind(Kind::World).filter_map(own).collect();
    let parts = |(flow, sample): (&Flow<'_>, usize)| {
        let seconds = recording.interval_s(sample).unwrap_or(DEFAULT_INTERVAL_S);
        let commands = flow.rate(sample).unwrap_or_default() * seconds;
        (commands, flow.mib_per_s(sample).unwrap_or_default() * seconds)
    };
    let samples = 0..recording.times_ms.len();
    let all = samples.flat_map(|sample| flows.iter().map(move |flow| (flow, sample)));
    let parts: Vec<(f64, f64)> = all.map(parts).filter(|(commands, _)| *commands > 0.0).collect();
    let variance = |(commands, mib): &(f64, f64)| mib * mib / commands;
    let commands: f64 = parts.iter().map(|part| part.0).sum();
    let mib = parts.iter().map(|part| part.1).sum();
    [(commands, commands.sqrt()), (mib, parts.iter().map(variance).sum::<f64>().sqrt())]
}

/// No change of any finding makes it worse for those who suffer from it: by more than a twentieth, and
/// by more than chance does once in a thousand times. Guests here wait for their answers, so who waits
/// longer gets less; whose small commands gain what his large ones lose, or the other way, is not
/// served worse. A finding about several devices is judged by all its VMs together: behind an array that has
/// nothing left, what deepens two of them moves commands from one to the other, and its risk says so. Two
/// kinds are left out: arrays that refuse what they cannot hold, since the retries of
/// a deeper queue take too long to simulate; and locks, which hold the other hosts as well: what those
/// send once they are gone, nothing tells on this one.
#[test]
fn what_is_proposed_makes_nobody_who_suffers_slower() {
    const LEAST: f64 = 0.95;
    const DEVIATIONS: f64 = 3.0;
    check_each(seeds(60), |drawn| {
        if drawn.text.contains("queue_limit") {
            return Ok(());
        }
        let before = &recorded(&drawn.scenario);
        let verdict = diagnose(before, &Thresholds::default(), &drawn.facts);
        let findings = verdict.findings.iter();
        let all = findings.flat_map(|finding| finding.changes.iter().map(move |c| (finding, c)));
        let sets = |(finding, change): &(&Finding, &Change)| {
            finding.cause != Cause::ReservationConflicts && !change.steps.is_empty()
        };
        for (finding, change) in all.filter(sets) {
            let mut changed = drawn.scenario.clone();
            for step in &change.steps {
                let line = lines(&step.set, &changed.hosts[0]).remove(0);
                changed = with(&changed, &line).unwrap_or(changed);
            }
            let after = &recorded(&changed);
            let is_less = |((was, was_by), (is, is_by)): ((f64, f64), (f64, f64))| {
                is < LEAST * was && was - is > DEVIATIONS * was_by.hypot(is_by)
            };
            let [was, is] = [before, after].map(|of| served(of, &finding.sufferers));
            if was.into_iter().zip(is).all(is_less) {
                return Err(format!("{}\n{}\n{was:?} is {is:?}", finding.sentence, change.what));
            }
        }
        Ok(())
    });
}
