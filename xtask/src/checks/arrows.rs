//! Who may use whom. Arrows point down: nothing that stands lower knows what stands above it.
//!
//! Tests may look further than the crate they test, except in the pure crates.

use crate::house::{Dependency, Finding, House, Package};

/// A crate and those of ours that it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("counters", &[]),
    ("knobs", &["counters"]),
    ("levels", &["counters", "knobs"]),
    ("engine", &["counters", "knobs"]),
    ("model", &["counters"]),
    ("capture", &["counters", "knobs"]),
    ("control", &["counters", "knobs"]),
    ("diagnose", &["counters", "knobs", "levels"]),
    ("scenario", &["counters", "knobs", "engine", "model"]),
    ("journal", &["counters", "knobs", "engine"]),
    ("sim", &["counters", "knobs", "engine", "model", "scenario", "journal"]),
    ("live", &["counters", "knobs", "control", "engine", "model", "scenario", "journal"]),
    (
        "whatif",
        &[
            "counters", "knobs", "levels", "capture", "engine", "model", "scenario", "journal",
            "sim", "diagnose",
        ],
    ),
    (
        "kavg",
        &[
            "counters", "knobs", "levels", "control", "engine", "model", "scenario", "capture",
            "diagnose", "journal", "sim", "live", "whatif", "guest",
        ],
    ),
    ("guest", &[]),
    ("testing", &[]),
    (
        "xtask",
        &[
            "counters", "knobs", "levels", "engine", "model", "scenario", "capture", "diagnose",
            "sim", "whatif", "testing",
        ],
    ),
];

const PURE: &[&str] = &["counters", "knobs", "engine", "model"];

pub(crate) fn check(house: &House) -> Vec<Finding> {
    house.packages.iter().filter(|package| package.source.is_none()).flat_map(of_package).collect()
}

fn of_package(package: &Package) -> Vec<Finding> {
    let name = package.name.as_str();
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![Finding::new(name, "a crate of ours without a row in xtask's arrows.rs")];
    };
    let ours = |dependency: &&Dependency| ARROWS.iter().any(|(to, _)| *to == dependency.name);
    let tested = |dependency: &Dependency| {
        dependency.kind.as_deref() == Some("dev") && !PURE.contains(&name)
    };
    package
        .dependencies
        .iter()
        .filter(ours)
        .filter(|dependency| !allowed.contains(&dependency.name.as_str()) && !tested(dependency))
        .map(|dependency| Finding::new(name, refusal(&dependency.name, allowed)))
        .collect()
}

fn refusal(to: &str, allowed: &[&str]) -> String {
    match allowed {
        [] => format!("uses {to}; it may use nothing of ours"),
        _ => format!("uses {to}; of ours it may use {}", allowed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, kind: Option<&str>, to: &str) -> Package {
        let dependency = Dependency { name: to.into(), kind: kind.map(Into::into) };
        let (license, source) = (None, None);
        Package { name: name.into(), license, source, dependencies: vec![dependency] }
    }

    #[test]
    fn arrows_that_point_up_are_found() {
        for (from, kind, to, findings) in [
            ("engine", None, "scenario", 1),
            ("engine", Some("dev"), "scenario", 1),
            ("engine", None, "counters", 0),
            ("engine", None, "libm", 0),
            ("diagnose", None, "engine", 1),
            ("diagnose", Some("dev"), "capture", 0),
            ("newcomer", None, "counters", 1),
        ] {
            assert_eq!(of_package(&package(from, kind, to)).len(), findings, "{from} -> {to}");
        }
    }
}
