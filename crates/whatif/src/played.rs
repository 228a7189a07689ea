//! The answer where load and arrays are known: what the guests sent is played again on the arrays that the host had,
//! today and after the change. Today is held against the recording as everywhere, and nothing is calibrated.

use std::collections::BTreeSet;

use counters::{Counter, sorted::Ordered};
use diagnose::SimulatedRow;
use levels::Measured;
use scenario::Scenario;

use crate::{
    Answer, Calibration, Error, Question, Verdict,
    answer::{self, MATCHES, Run, leave_out_what_is_missed, no_model, told, worst},
    number::number,
    run::{self, Figure, Key, STILL},
    scope::{self, chosen, devices, samples_in},
    unmoved::{RUN, none},
};

/// What a played host begins without.
const NOT_CARRIED: &str = "Of what was before the first instant (the credit of a policy, what is in a cache, what was \
                           under way) it has no more than what the journal has, back to where the load was more: a \
                           window (--from, --to) of a steady load tells more, or one that begins with the journal.";

/// The host as it was and with the change, by one reading of what its guests do when their answers take another time.
#[derive(Clone, Debug)]
pub struct Played {
    /// What the guests sent, as it was.
    pub today: Scenario,
    /// The same after the change.
    pub after: Scenario,
}

/// Answers a question about `recording` by what its guests sent. What the readings of that leave open is the range; their
/// scenarios have the names of the recording. `doubts` says what they rest on.
///
/// # Errors
/// One line, when the window has no load or no device of the recording is meant.
pub fn played(
    recording: &Measured,
    question: &Question,
    readings: &[Played],
    doubts: Vec<String>,
) -> Result<Answer, Error> {
    let window = samples_in(recording, question.window)?;
    let asked = chosen(recording, question)?;
    let (devices, beside) = devices(recording, question, &asked, &window)?;
    if devices.is_empty() {
        return Err(scope::nothing(question, &beside, &window));
    }
    let tenants = devices.iter().flat_map(|device| &device.tenants);
    let vms: BTreeSet<&str> = tenants.map(|tenant| tenant.vm.as_str()).into_set();
    let names: Vec<_> = vms.into_iter().map(|vm| (vm.to_owned(), vm.to_owned())).collect();
    let mut keys = run::keys(recording, &devices, &names, &window);
    // It is the same load: chance has no part in what becomes of it, but for when a depth goes from one value to
    // the other.
    for key in &mut keys {
        let moves = key.captured.is_some_and(|depth| (depth - depth.round()).abs() > STILL);
        key.chance = if key.is(Counter::DeviceQDepth) && moves { 1.0 } else { 0.0 };
    }
    let figures = |scenario: &Scenario| {
        let named = |host: &scenario::Host| host.config.name == recording.host;
        let host = scenario.hosts.iter().position(named).unwrap_or_default();
        run::figures(scenario, host, &keys)
    };
    let today = readings.iter().map(|of| figures(&of.today)).collect::<Result<_, _>>()?;
    let after = readings.iter().map(|of| figures(&of.after)).collect::<Result<_, _>>()?;
    let (keys, runs) = answer::comparable(keys, today, after);
    let miss = |run: &&Run| worst(&keys, &run.today);
    let closest = runs.iter().min_by(|a, b| miss(a).0.total_cmp(&miss(b).0));
    let best = closest.ok_or_else(|| Error::new("there is nothing to simulate"))?;
    let (apart, at) = miss(&best);
    let (simulated, verdict) = if apart > MATCHES {
        let mut doubts = doubts;
        doubts.extend(answers_otherwise(&keys, &best.today));
        doubts.push(NOT_CARRIED.into());
        (none(&no_model(&keys, &best.today, at), doubts), Verdict::NoModel)
    } else {
        // That one reading gives today says nothing against the others: a guest that is played at its times does so
        // whatever it would have done.
        let each = keys.iter().enumerate();
        let rows = each.map(|(index, key)| row(key, index, best, &runs)).collect();
        let (mut simulated, verdict) = told(&keys, (None, None, false), rows, doubts);
        leave_out_what_is_missed(&keys, &mut simulated);
        (simulated, verdict)
    };
    let calibration = Calibration {
        window_ms: question.window,
        samples: window.len(),
        mismatch_percent: 100.0 * apart,
        arrays: Vec::new(),
        devices: Vec::new(),
    };
    Ok(Answer { verdict, simulated, calibration })
}

/// The first device whose commands take another time on the arrays of the file than they did.
fn answers_otherwise(keys: &[Key], today: &[Figure]) -> Option<String> {
    let was = |key: &Key| key.captured.filter(|_| key.is(Counter::DriverLatency));
    let each = keys.iter().zip(today).filter_map(|(key, today)| Some((key, was(key)?, today.mean)));
    let is_other = |(_, was, is): &(&Key, f64, f64)| (is / was - 1.0).abs() > MATCHES;
    let (key, was, is) = each.into_iter().find(is_other)?;
    let why = match was > is {
        true => {
            "answers come late where the machine that emulates an array is short of CPU time, or it is another array"
        }
        false => "it is another array",
    };
    let (was, is) = (number(was), number(is));
    Some(format!(
        "{} of {} was {was} ms, and on the arrays of the file it is {is}: {why}.",
        key.name, key.object
    ))
}

/// A counter before and after, as all readings have it: what was recorded with the change of the simulated one, and that
/// one as it is, for what a limit gives does not follow what there was.
fn row(key: &Key, index: usize, best: &Run, runs: &[Run]) -> SimulatedRow {
    let after = |run: &Run| {
        let (today, Figure { mean, ends }) = (run.today[index].mean, run.after[index]);
        let is_like = |captured: &f64| today > 0.0 && (today / captured - 1.0).abs() <= MATCHES;
        let scaled = key.captured.filter(is_like).map(|captured| captured * mean / today);
        if key.is(Counter::DeviceQDepth) { ends } else { [scaled.unwrap_or(mean), mean] }
    };
    let margin = if key.is(Counter::DeviceQDepth) { 0.0 } else { RUN };
    let all = || runs.iter().flat_map(after);
    SimulatedRow {
        object: key.object.clone(),
        counter: key.name,
        unit: key.unit,
        captured: key.captured,
        today: best.today[index].mean,
        low: all().fold(f64::INFINITY, f64::min) * (1.0 - margin),
        high: all().fold(f64::NEG_INFINITY, f64::max) * (1.0 + margin),
    }
}
