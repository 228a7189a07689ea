//! Answers held against the truth, and the table of it.

use std::collections::BTreeMap;

/// Slack on both ends of a range.
const SLACK: f64 = 0.1;
/// Width of a range, as a part of its middle, that counts as narrow.
const NARROW: f64 = 0.25;

/// One counter of one case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    /// Before the change, as the recording has it.
    pub(crate) captured: f64,
    /// As today is simulated.
    pub(crate) today: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// After the change, as it is.
    pub(crate) truth: f64,
}

impl Judged {
    pub(crate) fn holds(&self) -> bool {
        self.low * (1.0 - SLACK) <= self.truth && self.truth <= self.high * (1.0 + SLACK)
    }

    fn width(&self) -> f64 {
        let middle = (self.low + self.high) / 2.0;
        if middle > 0.0 { (self.high - self.low) / middle } else { 0.0 }
    }

    /// How far the middle of the range is from the truth.
    fn error(&self) -> f64 {
        ((self.low + self.high) / 2.0 / self.truth.max(1e-9) - 1.0).abs()
    }

    /// How far today's simulation is from the recording.
    fn mismatch(&self) -> f64 {
        (self.today / self.captured.max(1e-9) - 1.0).abs()
    }
}

/// What became of one case: the device's IOPS and GAVG, then those of its VMs.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) identified: bool,
    pub(crate) device: [Judged; 2],
    pub(crate) vms: Vec<Judged>,
}

/// What became of all cases of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    kinds: BTreeMap<&'static str, Vec<Outcome>>,
    /// A line for each range that misses the truth.
    pub(crate) lines: Vec<String>,
}

impl Score {
    pub(crate) fn count(&mut self, kind: &'static str, name: &str, outcome: Outcome) {
        for (judged, what) in outcome.device.iter().zip(["IOPS", "GAVG"]) {
            if !judged.holds() {
                self.lines.push(format!(
                    "{name}: {what} {:.2} (today {:.2}), range {:.2} to {:.2}, truth {:.2}",
                    judged.captured, judged.today, judged.low, judged.high, judged.truth
                ));
            }
        }
        for judged in outcome.vms.iter().filter(|judged| !judged.holds()) {
            self.lines.push(format!("{name}: a VM, {judged:?}"));
        }
        self.kinds.entry(kind).or_default().push(outcome);
    }

    /// The share of device figures whose range holds the truth.
    pub(crate) fn held(&self) -> f64 {
        share(self.kinds.values().flatten().flat_map(|o| &o.device).map(Judged::holds))
    }

    /// As Markdown.
    pub(crate) fn table(&self) -> String {
        let mut table = String::from(
            "| change and load | cases | IOPS in range | GAVG in range | VMs in range | identified \
             | of them narrow | width IOPS | error IOPS | error GAVG | today off |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for (kind, outcomes) in &self.kinds {
            table += &row(&format!("`{kind}`"), &outcomes.iter().collect::<Vec<_>>());
        }
        let all: Vec<_> = self.kinds.values().flatten().collect();
        let identified: Vec<_> = all.iter().copied().filter(|o| o.identified).collect();
        table += &row("identified", &identified);
        table + &row("all", &all)
    }
}

fn row(name: &str, outcomes: &[&Outcome]) -> String {
    let held = |index: usize| percent(share(outcomes.iter().map(|o| o.device[index].holds())));
    let median = |value: &dyn Fn(&Outcome) -> f64| {
        let mut values: Vec<f64> = outcomes.iter().map(|o| value(o)).collect();
        values.sort_by(f64::total_cmp);
        percent(values.get(values.len() / 2).copied().unwrap_or(0.0))
    };
    let identified = outcomes.iter().filter(|outcome| outcome.identified);
    let narrow = identified.map(|o| o.device.iter().all(|judged| judged.width() <= NARROW));
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        outcomes.len(),
        held(0),
        held(1),
        percent(share(outcomes.iter().flat_map(|o| &o.vms).map(Judged::holds))),
        percent(share(outcomes.iter().map(|outcome| outcome.identified))),
        percent(share(narrow)),
        median(&|outcome| outcome.device[0].width()),
        median(&|outcome| outcome.device[0].error()),
        median(&|outcome| outcome.device[1].error()),
        median(&|o| o.device.iter().map(Judged::mismatch).fold(0.0, f64::max)),
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
