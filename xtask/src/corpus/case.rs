//! A case: a template, alone, with noise or in a pair, and a seed; and the scenario it stands for.
//!
//! Every template brings its own adapter, array, datastores and VMs under names of its own, all on
//! the host `esx`, so that any two of them make one scenario.

use std::fmt;

use scenario::Scenario;

use super::draw::{Draw, fill};

/// The host whose capture is diagnosed.
pub(crate) const HOST: &str = "esx";

macro_rules! templates {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("templates/", $name, ".toml")))),*]
    };
}

/// What can be wrong, or nothing: name and text.
pub(crate) const TEMPLATES: &[(&str, &str)] = templates! {
    "healthy" "healthy-closed" "healthy-day" "idle" "trickle"
    "virtual-disk-64" "virtual-disk-254" "virtual-disk-lsi" "virtual-adapter"
    "device-depth" "device-depth-shared" "two-queues" "dsnro" "dsnro-comes" "adapter-queue"
    "array-slow" "array-knee" "array-qos" "array-qos-peer" "qos-neighbour" "noisy-neighbour"
    "iops-limit" "throttling" "reservations" "splitting" "path-down" "all-paths-down" "aborts"
};

/// Other VMs on other devices, one of them slow and next to idle.
const NOISE: &str = include_str!("templates/noise.toml");

/// What a template stands beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Nothing.
    Nothing,
    /// Noise.
    Noise,
    /// Another template, drawn by the seed.
    Another,
}

impl Beside {
    /// Each of them.
    pub(crate) const ALL: [Self; 3] = [Self::Nothing, Self::Noise, Self::Another];

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "alone",
            Self::Noise => "noise",
            Self::Another => "pair",
        }
    }
}

/// A case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Name and text.
    pub(crate) template: (&'static str, &'static str),
    /// What is beside it.
    pub(crate) beside: Beside,
    /// What its numbers are drawn by.
    pub(crate) seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}/{}", self.template.0, self.beside.name(), self.seed)
    }
}

impl Case {
    /// Every case of these seeds.
    pub(crate) fn all(seeds: std::ops::Range<u64>) -> Vec<Self> {
        let cells = TEMPLATES.iter().flat_map(|template| Beside::ALL.map(|b| (*template, b)));
        let of_cell =
            |(template, beside)| seeds.clone().map(move |seed| Self { template, beside, seed });
        cells.flat_map(of_cell).collect()
    }

    /// The case of that name, as [`Case`] is displayed.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (cell, seed) = name.rsplit_once('/')?;
        let seed = seed.parse().ok()?;
        Self::all(seed..seed.checked_add(1)?)
            .into_iter()
            .find(|case| Some(cell) == case.to_string().rsplit_once('/').map(|(cell, _)| cell))
    }

    /// The text of its scenario.
    pub(crate) fn text(&self) -> String {
        let mut draw = Draw::new(&format!("{}/{}", self.template.0, self.beside.name()), self.seed);
        let sample_s = *draw.one(&[2, 2, 3, 5, 10]);
        let duration_s = sample_s * draw.whole(20, 60);
        let esxi = draw.one(&["5.5", "6.0", "6.5", "6.7", "7.0", "8.0"]).to_string();
        let given = |n: usize| {
            vec![
                ("n", n.to_string()),
                ("third", (duration_s / 3).to_string()),
                ("two_thirds", (duration_s * 2 / 3).to_string()),
            ]
        };
        let mut text = format!(
            "title = \"{self}\"\nesxi = \"{esxi}\"\nseed = {}\nduration = \"{duration_s}s\"\n\
             sample = \"{sample_s}s\"\n",
            self.seed
        );
        text += &fill(self.template.1, &given(1), &mut draw);
        match self.beside {
            Beside::Nothing => {}
            Beside::Noise => text += &fill(NOISE, &given(2), &mut draw),
            Beside::Another => {
                let other = draw.one(TEMPLATES).1;
                text += &fill(other, &given(2), &mut draw);
            }
        }
        text
    }

    /// Its scenario.
    ///
    /// # Panics
    /// When a template is not one.
    pub(crate) fn scenario(&self) -> Scenario {
        super::scenario_of(&self.to_string(), &self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn every_case_is_a_scenario() {
        for case in Case::all(1..9) {
            case.scenario();
        }
    }

    #[test]
    fn a_case_is_found_by_its_name() {
        let case = Case::named("dsnro/pair/17").unwrap();
        assert_eq!((case.to_string().as_str(), case.seed), ("dsnro/pair/17", 17));
        assert!(
            ["dsnro/pair", "dsnro/both/17", "x/pair/17"].iter().all(|n| Case::named(n).is_none())
        );
    }
}
