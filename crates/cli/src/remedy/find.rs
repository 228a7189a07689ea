//! The case of a recorded host: its diagnosis says who suffers from whom, and the calibrated model of
//! `kavg whatif` stands for it, once for each reading of what the recording leaves open.

use ::whatif::{Error, Model, Question, Scenarios};
use counters::Kind;
use diagnose::{Facts, Finding, Outcome, Verdict, Window};
use levels::Measured;
use sim::Source;

use crate::{journals::Recorded, report::Report, verdict, whatif};

use super::{
    case::{Case, names_nobody, pair},
    original::Original,
};

/// Commands that a run of a scenario has, about: of a hundred thousand no figure is off by much.
const COMMANDS: u32 = 100_000;
/// The file that a refusal names.
const FILE: &str = "model.toml";

/// What there is to remedy.
pub(crate) enum Found {
    /// Nothing is wrong with the host of that name, as the line says.
    Nothing(String, String),
    /// Somebody suffers, and these scenarios stand for the host, the likeliest first.
    Something(Box<Case>, Vec<Source>),
}

/// What there is to remedy on a recorded host. A VM that is not named is the one that the diagnosis names.
///
/// # Errors
/// One line, where a name is none of a VM of it, where the diagnosis names none, and where the recording
/// identifies no model.
pub(crate) fn find(
    Recorded { recording, facts, .. }: Recorded,
    good: Option<&str>,
    bad: Option<&str>,
) -> Result<Found, String> {
    let name = recording.host.clone();
    for (option, vm) in [("--good", good), ("--bad", bad)] {
        if let Some(vm) = vm.filter(|vm| recording.find(Kind::Vm, vm).is_none()) {
            return Err(format!("{option}: there is no VM `{vm}` in this recording of {name}"));
        }
    }
    let verdict = verdict::judge(&recording, &facts);
    let Some((window, vms)) = suffering(&recording, &verdict, good, bad) else {
        return match verdict.outcome {
            Outcome::Healthy => Ok(Found::Nothing(name, verdict.headline)),
            _ => Err(format!(
                "{name}: the diagnosis {}; say which with --good VM --bad VM",
                names_nobody(&verdict)
            )),
        };
    };
    let scenarios = scenarios((&recording, &facts), window, &vms);
    let Scenarios { texts, vms: names, doubts, miss } =
        scenarios.map_err(|error| format!("{name}: {error}"))?;
    let source =
        |text| Source { file: FILE.into(), text, includes: Vec::new(), settings: Vec::new() };
    let sources: Vec<Source> = texts.into_iter().map(source).collect();
    let own = |vm: &String| {
        let known = names.iter().find(|(known, _)| known == vm);
        known.map(|(_, own)| own.as_str()).ok_or_else(|| format!("{name}: `{vm}` did nothing then"))
    };
    let (own_good, own_bad) = (own(&vms[0])?, own(&vms[1])?);
    let scenario = sources[0].scenario().map_err(|error| error.to_string())?;
    let outcome = sim::run(&scenario, 1, &());
    let mut case = Case::of(Report::new(scenario, outcome), 0, Some(own_good), Some(own_bad))?;
    case.is_diagnosed = good.is_none() || bad.is_none();
    let original = Original { name, window, doubts, miss, facts, verdict, recording, vms: names };
    case.original = Some(original);
    Ok(Found::Something(Box::new(case), sources))
}

/// The scenarios of the host with all of its devices; where no model gives one that neither of the two VMs uses,
/// of those that they use, and why no other is there.
fn scenarios(
    (recording, facts): (&Measured, &Facts),
    window: Window,
    vms: &[String; 2],
) -> Result<Scenarios, Error> {
    let of = |in_question: &[String]| {
        let window = (window.from_ms, window.to_ms);
        let question = Question {
            vms: in_question.to_vec(),
            ..whatif::question(Vec::new(), window, COMMANDS)
        };
        Model::calibrate(recording, facts, &question)?.scenarios(&vms[0])
    };
    of(&[]).or_else(|refusal| {
        let mut own = of(vms)?;
        let why = refusal.to_string();
        let why = why.trim_end_matches('.');
        own.doubts.push(format!("Devices that neither of them uses are in no model: {why}."));
        Ok(own)
    })
}

/// Who suffers from whom, and when.
fn suffering(
    recording: &Measured,
    verdict: &Verdict,
    good: Option<&str>,
    bad: Option<&str>,
) -> Option<(Window, [String; 2])> {
    if let Some((good, bad)) = good.zip(bad) {
        let suffers = |finding: &&Finding| finding.sufferers.iter().any(|own| own.name == good);
        let finding = verdict.findings.iter().find(suffers);
        let window = finding.map_or_else(|| whatif::window(verdict, &[], None), |own| own.window);
        return Some((window, [good, bad].map(Into::into)));
    }
    let is_vm = |name: &str| recording.find(Kind::Vm, name).is_some();
    let (finding, good, bad) = pair(verdict.findings.iter(), &is_vm, good, bad)?;
    Some((finding.window, [good, bad]))
}
