//! A case: a load with a change in it, an array and a seed.

use std::fmt;

use knobs::{AllocationChange, Disks, Line, Setting};
use scenario::Scenario;

use crate::corpus::{
    draw::{Draw, fill},
    scenario_of,
};

/// The mark of the line that is the change.
const CHANGE: &str = "#set: ";
/// The mark of a line at the top of the file.
const TOP: &str = "#top: ";
/// The mark of a line of the array.
const OF_ARRAY: &str = "#array: ";
/// The line of a load of which the first half is asked: the second is a change that was tried.
const TRIED: &str = "#window: first half";

macro_rules! templates {
    ($directory:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!($directory, "/", $name, ".toml")))),*]
    };
}

/// Who sends what, and what is changed: name and text.
const LOADS: &[(&str, &str)] = templates! {
    "loads": "closed" "varied" "think" "comings" "bursts" "batches" "open" "day" "mixed" "competing"
    "limited" "neighbours" "tried" "throttled-disk" "throttling" "guest-queue" "bully"
    "roomy" "lifted"
};

/// What answers: none of them is a curve through what was seen.
const ARRAYS: &[(&str, &str)] = templates! { "arrays": "flash" "spindles" "tiers" "curve" "link" };

/// A case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Name and text of its load.
    load: (&'static str, &'static str),
    /// What its numbers are drawn by.
    seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.load.0, self.seed)
    }
}

impl Case {
    /// Every case of these seeds.
    pub(crate) fn all(seeds: std::ops::Range<u64>) -> Vec<Self> {
        let of_load = |&load: &(&'static str, &'static str)| {
            seeds.clone().map(move |seed| Self { load, seed })
        };
        LOADS.iter().flat_map(of_load).collect()
    }

    /// The case of that name, as [`Case`] is displayed.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (load, seed) = name.rsplit_once('/')?;
        let load = *LOADS.iter().find(|(known, _)| *known == load)?;
        Some(Self { load, seed: seed.parse().ok()? })
    }

    /// The name of its load.
    pub(crate) const fn kind(&self) -> &'static str {
        self.load.0
    }

    /// The name of its array.
    pub(crate) fn array(&self) -> &'static str {
        self.array_drawn().0
    }

    fn array_drawn(&self) -> (&'static str, &'static str) {
        ARRAYS[(self.seed % ARRAYS.len() as u64) as usize]
    }

    /// The text of its scenario.
    pub(crate) fn text(&self) -> String {
        let mut draw = Draw::new(self.load.0, self.seed);
        let sample_s = *draw.one(&[2, 2, 5]);
        let duration_s = sample_s * draw.whole(12, 30);
        // Two of three recordings begin in a quiet hour.
        let third = format!("\"{}s\"\n", duration_s / 3);
        let (begin, quiet) = if self.seed.is_multiple_of(3) {
            (String::new(), String::new())
        } else {
            let quiet = format!(
                "[[workload]]\nvm = \"a\"\nname = \"quiet\"\nthreads = {}\nstop = {third}",
                draw.whole(1, 8)
            );
            (format!("start = {third}"), quiet)
        };
        let given = [
            ("begin", begin),
            ("quiet", quiet),
            ("interval", (1000 * sample_s).to_string()),
            ("third", (duration_s / 3).to_string()),
            ("two_thirds", (duration_s * 2 / 3).to_string()),
            ("half", (duration_s / sample_s / 2 * sample_s).to_string()),
        ];
        let template = format!("{}{}", self.array_drawn().1, self.load.1);
        let filled = fill(&template, &given, &mut draw);
        let marked = |mark: &str| -> String {
            let lines = filled.lines().filter_map(|line| line.strip_prefix(mark));
            lines.map(|line| format!("{line}\n")).collect()
        };
        let filled = filled.replace("[array.arr]\n", &format!("[array.arr]\n{}", marked(OF_ARRAY)));
        format!(
            "title = \"{self}\"\nesxi = \"7.0\"\nseed = {}\nduration = \"{duration_s}s\"\n\
             sample = \"{sample_s}s\"\n{}{filled}",
            self.seed,
            marked(TOP)
        )
    }

    /// The change that is asked for.
    ///
    /// # Panics
    /// When the template has none.
    pub(crate) fn change(&self) -> Line {
        let text = self.text();
        let line = text.lines().find_map(|line| line.strip_prefix(CHANGE));
        let line = line.expect("a template has a change");
        line.parse().unwrap_or_else(|refusal| panic!("{self}: {refusal}"))
    }

    /// Whether its second half is that of a change that was tried.
    pub(crate) fn is_tried(&self) -> bool {
        self.load.1.contains(TRIED)
    }

    /// Its scenario with the change.
    ///
    /// # Panics
    /// When the scenario does not take it.
    pub(crate) fn changed(&self) -> Scenario {
        let settings = self.change().settings;
        if let [Setting::Allocation { vdisk: Disks::Of(disk), allocation }] = &settings[..]
            && let AllocationChange::Limit(limit) = allocation
        {
            let vm = &disk.vm;
            let text = self.text().replace("\nlimit = ", "\n# ");
            let disk = format!("[vm.{vm}.disk.\"scsi0:0\"]\n");
            let limit = limit.map_or(String::new(), |limit| format!("limit = {limit}\n"));
            return scenario_of(&self.to_string(), &text.replace(&disk, &format!("{disk}{limit}")));
        }
        let mut scenario = self.scenario();
        for setting in &settings {
            scenario.apply(setting).unwrap_or_else(|error| panic!("{self}: {error}"));
        }
        scenario
    }

    /// Its scenario.
    ///
    /// # Panics
    /// When a template is not one.
    pub(crate) fn scenario(&self) -> Scenario {
        scenario_of(&self.to_string(), &self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn every_case_is_a_scenario_that_takes_its_change() {
        for case in Case::all(1..11) {
            case.changed();
        }
    }

    #[test]
    fn a_case_is_found_by_its_name() {
        assert_eq!(Case::named("closed/17").unwrap().to_string(), "closed/17");
        assert!(["closed", "x/17", "closed/x"].iter().all(|n| Case::named(n).is_none()));
    }
}
