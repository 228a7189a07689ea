//! Answers held against the truth, and the table of it.

use std::collections::BTreeMap;

use whatif::{Error, Verdict};

/// Width of a range, as a part of its middle, that counts as narrow.
const NARROW: f64 = 0.25;

/// Loads of which the answer is plain: the table has a row without them.
const EASY: [&str; 2] = ["bully", "roomy"];

/// One counter of one case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    /// Which.
    pub(crate) kind: &'static str,
    /// Whether it is of a device, not of a VM.
    pub(crate) is_device: bool,
    /// Before the change, as the recording has it.
    pub(crate) captured: f64,
    /// As today is simulated.
    pub(crate) today: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// After the change, as it is.
    pub(crate) truth: f64,
    /// Two standard errors of that.
    pub(crate) error: f64,
}

impl Judged {
    fn holds(&self) -> bool {
        self.low - self.error <= self.truth && self.truth <= self.high + self.error
    }

    fn width(&self) -> f64 {
        let middle = f64::midpoint(self.low, self.high);
        if middle > 0.0 { (self.high - self.low) / middle } else { 0.0 }
    }
}

/// What became of one case. The device in question comes first, with its rate and its latency.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    pub(crate) judged: Vec<Judged>,
}

impl Outcome {
    fn is_identified(&self) -> bool {
        matches!(self.verdict, Verdict::GainsNothing | Verdict::Identified)
            && self.judged.first().is_some_and(|rate| rate.width() <= NARROW)
    }
}

/// What became of all cases of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    kinds: BTreeMap<[&'static str; 2], Vec<Outcome>>,
    /// A line for each range that misses the truth.
    pub(crate) lines: Vec<String>,
}

impl Score {
    /// A refusal is no model.
    pub(crate) fn count(
        &mut self,
        kind: [&'static str; 2],
        name: &str,
        outcome: Result<Outcome, Error>,
    ) {
        let outcome = outcome.unwrap_or_else(|refusal| {
            self.lines.push(format!("{name} ({}): {refusal}", kind[1]));
            Outcome { verdict: Verdict::NoModel, judged: Vec::new() }
        });
        for judged in outcome.judged.iter().filter(|judged| !judged.holds()) {
            self.lines.push(format!(
                "{name} ({}), {:?}: {} of a {} {:.2} (today {:.2}), range {:.2} to {:.2}, truth \
                 {:.2} (error {:.2})",
                kind[1],
                outcome.verdict,
                judged.kind,
                if judged.is_device { "device" } else { "VM" },
                judged.captured,
                judged.today,
                judged.low,
                judged.high,
                judged.truth,
                judged.error
            ));
        }
        self.kinds.entry(kind).or_default().push(outcome);
    }

    /// The share of figures whose range holds the truth.
    pub(crate) fn held(&self) -> f64 {
        share(self.kinds.values().flatten().flat_map(|o| &o.judged).map(Judged::holds))
    }

    /// As Markdown.
    pub(crate) fn table(&self) -> String {
        let mut table = String::from(
            "| load, array | cases | IOPS in range | GAVG in range | VMs in range | identified, \
             narrow | of them in range | GAVG narrow too | bounded | cannot tell | no model | width IOPS |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for place in 0..2 {
            let mut names: Vec<&str> = self.kinds.keys().map(|kind| kind[place]).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let own = self.kinds.iter().filter(|(kind, _)| kind[place] == name);
                table += &row(&format!("`{name}`"), &own.flat_map(|(_, o)| o).collect::<Vec<_>>());
            }
        }
        let others = self.kinds.iter().filter(|(kind, _)| !EASY.contains(&kind[0]));
        table += &row("all but the easy", &others.flat_map(|(_, o)| o).collect::<Vec<_>>());
        table + &row("all", &self.kinds.values().flatten().collect::<Vec<_>>())
    }
}

fn row(name: &str, outcomes: &[&Outcome]) -> String {
    let held = |outcomes: &[&Outcome], is_meant: &dyn Fn(&Judged) -> bool| {
        let judged = outcomes.iter().flat_map(|outcome| &outcome.judged);
        percent(share(judged.filter(|judged| is_meant(judged)).map(Judged::holds)))
    };
    let of = |verdict| percent(share(outcomes.iter().map(|outcome| outcome.verdict == verdict)));
    let identified: Vec<&Outcome> =
        outcomes.iter().copied().filter(|outcome| outcome.is_identified()).collect();
    let mut widths: Vec<f64> =
        outcomes.iter().filter_map(|o| o.judged.first()).map(Judged::width).collect();
    widths.sort_by(f64::total_cmp);
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        outcomes.len(),
        held(outcomes, &|judged| judged.is_device && judged.kind == "IOPS"),
        held(outcomes, &|judged| judged.is_device && judged.kind == "GAVG"),
        held(outcomes, &|judged| !judged.is_device),
        percent(share(outcomes.iter().map(|outcome| outcome.is_identified()))),
        held(&identified, &|_| true),
        percent(share(identified.iter().map(|o| o.judged[1].width() <= NARROW))),
        of(Verdict::Bounded),
        of(Verdict::CannotTell),
        of(Verdict::NoModel),
        percent(widths.get(widths.len() / 2).copied().unwrap_or(0.0)),
    )
}

/// The share of what is true; 1 of nothing.
fn share(values: impl Iterator<Item = bool>) -> f64 {
    let (yes, all) = values.fold((0, 0), |(yes, all), value| (yes + u32::from(value), all + 1));
    if all == 0 { 1.0 } else { f64::from(yes) / f64::from(all) }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
