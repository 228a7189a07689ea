//! A case: a template with a change in it, and a seed.

use std::fmt;

use knobs::Driver;
use scenario::Scenario;

use crate::corpus::{
    draw::{Draw, fill},
    scenario_of,
};

/// The mark of the line that is the change.
const CHANGE: &str = "#set: ";

macro_rules! templates {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("templates/", $name, ".toml")))),*]
    };
}

/// What is changed, and under which load: name and text.
const TEMPLATES: &[(&str, &str)] = templates! {
    "dsnro-steady" "dsnro-varied" "depth-steady" "depth-varied" "depth-ramp" "saturated"
    "pvscsi-steady" "pvscsi-varied" "open-light" "open-day" "lower-steady" "lower-varied"
    "mixed" "limited" "lift" "qos" "two-devices" "think"
};

/// A case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Name and text of its template.
    template: (&'static str, &'static str),
    /// What its numbers are drawn by.
    seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.template.0, self.seed)
    }
}

impl Case {
    /// Every case of these seeds.
    pub(crate) fn all(seeds: std::ops::Range<u64>) -> Vec<Self> {
        let of_template = |&template: &(&'static str, &'static str)| {
            seeds.clone().map(move |seed| Self { template, seed })
        };
        TEMPLATES.iter().flat_map(of_template).collect()
    }

    /// The case of that name, as [`Case`] is displayed.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (template, seed) = name.rsplit_once('/')?;
        let template = *TEMPLATES.iter().find(|(known, _)| *known == template)?;
        Some(Self { template, seed: seed.parse().ok()? })
    }

    /// The name of its template.
    pub(crate) const fn kind(&self) -> &'static str {
        self.template.0
    }

    /// The text of its scenario.
    pub(crate) fn text(&self) -> String {
        let mut draw = Draw::new(self.template.0, self.seed);
        let sample_s = *draw.one(&[2, 2, 5]);
        let duration_s = sample_s * draw.whole(12, 30);
        let given = [
            ("n", "1".to_owned()),
            ("third", (duration_s / 3).to_string()),
            ("two_thirds", (duration_s * 2 / 3).to_string()),
        ];
        let filled = fill(self.template.1, &given, &mut draw);
        let filled = Driver::ALL.iter().fold(filled, |text, driver| {
            let (module, parameter) = (driver.module, driver.parameter.unwrap_or_default());
            text.replace(
                &format!("-m {module} -p {{PARAMETER}}"),
                &format!("-m {module} -p {parameter}"),
            )
        });
        format!(
            "title = \"{self}\"\nesxi = \"7.0\"\nseed = {}\nduration = \"{duration_s}s\"\n\
             sample = \"{sample_s}s\"\n{filled}",
            self.seed
        )
    }

    /// The setting that is asked for.
    ///
    /// # Panics
    /// When the template has none.
    pub(crate) fn change(&self) -> String {
        let text = self.text();
        let line = text.lines().find_map(|line| line.strip_prefix(CHANGE));
        line.expect("a template has a change").to_owned()
    }

    /// Its scenario with the change.
    ///
    /// # Panics
    /// When the scenario does not take it.
    pub(crate) fn changed(&self) -> Scenario {
        let (mut scenario, change) = (self.scenario(), self.change());
        if change.ends_with(": DiskLimitIOPerSecond -1") {
            let disks = scenario.hosts.iter_mut().flat_map(|host| &mut host.config.vdisks);
            disks.for_each(|disk| disk.allocation.limit_iops = None);
        } else {
            scenario.set(&change).unwrap_or_else(|error| panic!("{self}: {error}"));
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
        for case in Case::all(1..9) {
            case.changed();
        }
    }

    #[test]
    fn a_case_is_found_by_its_name() {
        assert_eq!(Case::named("dsnro-steady/17").unwrap().to_string(), "dsnro-steady/17");
        assert!(
            ["dsnro-steady", "x/17", "dsnro-steady/x"].iter().all(|n| Case::named(n).is_none())
        );
    }
}
