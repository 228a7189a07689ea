//! Captures that were not made with this project's writer, thresholds or simulator.
//!
//! They are written from the reference alone: the format and its oddities, Little's law and the
//! closed formulas of the published experiments, and the thresholds that its sources print. Nothing
//! of ours is used to make them, so that what they say of the diagnosis is not what it says of
//! itself. A capture is a function of its family and its seed.

mod csv;
mod families;
mod host;
mod plan;
mod queue;
mod random;
mod recording;
mod truth;

use std::ops::Range;

use super::score::Truth;
use families::FAMILIES;
use plan::Plan;

/// Which captures have garbage in a twentieth of their rows; fewer than twenty rows have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Garbage {
    /// None.
    None,
    /// Some, drawn by the seed.
    Some,
    /// Each.
    Each,
}

impl Garbage {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [("none", Self::None), ("some", Self::Some), ("each", Self::Each)]
            .into_iter()
            .find_map(|(key, garbage)| (key == name).then_some(garbage))
    }
}

/// A capture and what is so in it.
pub(crate) struct Planted {
    pub(crate) csv: String,
    pub(crate) truths: Vec<Truth>,
}

/// How large captures are: rows at most, and rows of all their devices together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// What stands before their names.
    prefix: &'static str,
    most_rows: usize,
    most_devices: usize,
}

impl Size {
    /// As they come.
    pub(crate) const ANY: Self = Self { prefix: "", most_rows: 300, most_devices: 3000 };
    /// Short ones of few devices, of which the test command judges thousands.
    pub(crate) const SMALL: Self = Self { prefix: "small/", most_rows: 40, most_devices: 200 };
}

/// The names of all captures of these seeds.
pub(crate) fn names(seeds: Range<u64>, size: Size) -> Vec<String> {
    let of = |family: &str| {
        let name = |seed| format!("{}{family}/{seed}", size.prefix);
        seeds.clone().map(name).collect::<Vec<_>>()
    };
    FAMILIES.iter().flat_map(|(family, _)| of(family)).collect()
}

impl Planted {
    /// The capture of a family and a seed, `dsnro/17`, or a small one, `small/dsnro/17`.
    pub(crate) fn named(name: &str, garbage: Garbage) -> Option<Self> {
        let small = name.strip_prefix(Size::SMALL.prefix);
        let (family, seed) = small.unwrap_or(name).split_once('/')?;
        seed.parse::<u64>().ok()?;
        let (_, plant) = FAMILIES.iter().find(|(name, _)| *name == family)?;
        let size = if small.is_some() { Size::SMALL } else { Size::ANY };
        let mut plan = Plan::draw(name, size.most_rows, size.most_devices);
        plant(&mut plan);
        if garbage != Garbage::Some {
            plan.host.garbage = garbage == Garbage::Each && plan.host.rows >= plan::MANY_ROWS;
        }
        let rows = recording::record(&plan.host, &plan.effects, &mut plan.random);
        let csv = csv::write(&plan.host, &rows, &mut plan.random);
        Some(Self { csv, truths: truth::state(&plan.host, &rows, plan.claims) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use diagnose::Cause;

    use super::{FAMILIES, Garbage, Planted, Size, names};
    use crate::corpus::score::Sure;

    #[test]
    fn every_cause_is_planted_for_certain() {
        let planted = names(1..20, Size::SMALL)
            .into_iter()
            .map(|name| Planted::named(&name, Garbage::Some).unwrap());
        let truths = planted.flat_map(|planted| planted.truths);
        let certain: BTreeSet<_> = truths
            .filter(|truth| truth.sure == Sure::Certain)
            .map(|truth| truth.causes[0])
            .collect();
        // No row tells a window below the host, its link or what is lost on the way from a slow array
        // (`array-and-control.md` 7.5).
        let in_rows = |cause: &&Cause| {
            !matches!(
                cause,
                Cause::CommandWindow | Cause::HostLink | Cause::SwitchLink | Cause::SlowWay
            )
        };
        let causes: BTreeSet<_> =
            Cause::ALL.iter().filter(in_rows).map(|cause| cause.key()).collect();
        assert_eq!(certain, causes);
    }

    #[test]
    fn garbage_is_in_as_many_rows_of_the_same_columns() {
        let mut garbled = 0;
        for name in names(1..3, Size::ANY) {
            let [clean, spoilt] = [Garbage::None, Garbage::Each]
                .map(|garbage| Planted::named(&name, garbage).unwrap());
            let rows = |of: &Planted| of.csv.lines().map(str::to_owned).collect::<Vec<_>>();
            let (clean, spoilt) = (rows(&clean), rows(&spoilt));
            assert_eq!((clean.len(), &clean[0]), (spoilt.len(), &spoilt[0]), "{name}");
            garbled += spoilt.iter().filter(|row| row.contains("18446744073709551615")).count();
            assert!(clean.iter().all(|row| !row.contains("18446744073709551615")), "{name}");
        }
        assert!(garbled > 100, "{garbled}");
    }

    #[test]
    fn a_capture_is_a_function_of_its_name() {
        for (family, _) in FAMILIES {
            let name = format!("{family}/7");
            let [one, again] = [(), ()].map(|()| Planted::named(&name, Garbage::Some).unwrap());
            assert_eq!(one.csv, again.csv, "{family}");
            let cells = |line: &str| line.matches("\",\"").count();
            let mut lines = one.csv.lines().map(cells);
            let header = lines.next().unwrap();
            assert!(header > 20 && lines.all(|cells| cells <= header), "{family}");
        }
        assert!(
            ["dsnro", "dsnro/x", "x/7"].iter().all(|n| Planted::named(n, Garbage::Some).is_none())
        );
    }
}
