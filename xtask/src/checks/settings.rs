//! A driver that can be set, its parameter, an advanced option and what a guest's driver takes have one
//! table: their names and their limits stand in `knobs` and in tests, and nowhere else in the source.
//!
//! A number is taken for such a limit in the crates that judge and propose. A power of two may be a
//! constant of its own there, for a name says what it is; 254 can be nothing else.

use std::collections::BTreeSet;

use counters::Controller;
use knobs::{Advanced, DSNRO, Driver, GuestOs, GuestSystem, PVSCSI_DEPTH_MAX, limits_of};

use crate::house::{File, Finding, House};
use crate::rust::{self, Literal};

const TABLES: &str = "crates/knobs/";
/// What only tests use.
const TESTS: &str = "crates/testing/";
/// The crates in which numbers are looked at.
const JUDGES: [&str; 5] = ["levels", "diagnose", "whatif", "scenario", "cli"];
/// Below it a number may be anything.
const LEAST: u32 = 32;

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let tests = tests(house);
    let is_apart = |file: &File| [TABLES, TESTS].iter().any(|part| file.path.starts_with(part));
    let is_source = |file: &&File| file.path.contains("/src/") && !is_apart(file);
    let ours = |file: &&File| file.path.starts_with("crates/") || file.path.starts_with("xtask/");
    let files = house.rust().filter(ours).filter(is_source);
    files.filter(|file| !tests.contains(&file.path)).flat_map(of_file).collect()
}

/// The files that are tests as a whole.
fn tests(house: &House) -> BTreeSet<String> {
    let of = |file: &File| -> Vec<String> {
        let Some((folder, _)) = file.path.rsplit_once('/') else { return Vec::new() };
        let parts = file.text.split("#[cfg(test)]\nmod ").skip(1);
        let names = parts.filter_map(|part| part.lines().next()?.strip_suffix(';'));
        names.map(|name| format!("{folder}/{name}.rs")).collect()
    };
    house.rust().flat_map(of).collect()
}

fn of_file(file: &File) -> Vec<Finding> {
    let (names, limits) = (names(), limits());
    let guests = [GuestSystem::Windows, GuestSystem::Linux].map(GuestSystem::names).concat();
    let judges = JUDGES.iter().any(|name| file.path.starts_with(&format!("crates/{name}/")));
    let mut findings = Vec::new();
    for literal in rust::literals(&file.text) {
        let is_set = |name: &&&str| sets(&literal.text, name);
        let name = names.iter().find(|name| has(&literal.text, name));
        let name = name.or_else(|| guests.iter().find(is_set)).filter(|_| literal.is_string());
        let limit = || limits.iter().find(|limit| judges && is_limit(&literal, **limit));
        if let Some(found) =
            name.map(|name| name.to_string()).or_else(|| limit().map(u32::to_string))
        {
            findings.push(file.at(literal.line, format!("`{found}` has its place in {TABLES}src")));
        }
    }
    findings
}

fn names() -> Vec<&'static str> {
    let drivers = || Driver::ALL.iter().filter(|driver| driver.parameter.is_some());
    let parameters = drivers().filter_map(|driver| driver.parameter);
    let options = Advanced::TABLE.iter().map(|info| info.path);
    parameters.chain(options).chain(drivers().map(|driver| driver.module)).collect()
}

/// Depths that a driver, a virtual adapter or DSNRO has or takes at most.
fn limits() -> BTreeSet<u32> {
    let drivers = Driver::ALL.iter().filter(|driver| driver.parameter.is_some());
    let of_driver = |d: &Driver| [d.depth_default, d.depth_max, d.adapter_depth];
    let virtual_adapters = Controller::ALL.into_iter().flat_map(|controller| {
        let limits = limits_of(controller, GuestOs::Windows);
        [limits.disk_depth, limits.adapter_depth, PVSCSI_DEPTH_MAX]
    });
    let limits = drivers.flat_map(of_driver).chain(virtual_adapters);
    limits.chain([DSNRO.default, DSNRO.max]).filter(|limit| *limit >= LEAST).collect()
}

/// Whether a literal says a limit. 1,024.0 converts units.
fn is_limit(literal: &Literal, limit: u32) -> bool {
    let is_round = limit.is_power_of_two();
    if literal.is_string() {
        return !is_round && has(&literal.text, &limit.to_string());
    }
    let number = literal.text.replace('_', "");
    let is_it = number == limit.to_string() || limit != 1024 && number == format!("{limit}.0");
    is_it && !literal.is_shifted && !(is_round && literal.is_named)
}

/// Whether a text has a name as a word of its own.
fn has(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    })
}

/// Whether a text sets a parameter of a guest's driver, whose names are words elsewhere too.
fn sets(text: &str, name: &str) -> bool {
    let is_value = |c: char| c.is_ascii_digit() || c == '{';
    text.split(&format!("{name}=")).skip(1).any(|value| value.starts_with(is_value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_of_their_table_are_found() {
        for (path, text, findings) in [
            ("crates/a/src/a.rs", "let p = \"fnic_max_qdepth\";", 1),
            ("crates/a/src/a.rs", "f(\"set -o /Disk/SchedQuantum -i 8\")", 1),
            ("crates/a/src/a.rs", "const ISCSI: &str = \"iscsi_vmk\";", 1),
            ("crates/a/src/a.rs", "f(\"RequestRingPages=32\")", 1),
            ("crates/a/src/a.rs", "f(\"MaxQueueDepth in the guest, cmd_per_lun=N\")", 0),
            ("crates/a/src/a.rs", "f(\"lpfcs\")", 0),
            ("xtask/src/a.rs", "const P: [&str; 1] = [\"ql2xmaxqdepth\"];", 1),
            ("crates/a/src/a.rs", "/// `fnic_max_qdepth`\nfn a() {} // ql2xmaxqdepth", 0),
            (
                "crates/a/src/a.rs",
                "#[cfg(test)] mod tests { const P: &str = \"fnic_max_qdepth\"; }",
                0,
            ),
            ("crates/a/tests/a.rs", "let p = \"fnic_max_qdepth\";", 0),
            ("crates/knobs/src/driver.rs", "let p = \"fnic_max_qdepth\";", 0),
        ] {
            assert_eq!(check(&House::of(&[(path, text)])).len(), findings, "{path}: {text}");
        }
    }

    #[test]
    fn limits_outside_of_their_table_are_found() {
        for (text, findings) in [
            ("const DEPTHS: &[u32] = &[254];", 1),
            ("f(\"up to 254 commands\"); g(255.0)", 2),
            ("[64, 128, 256].into_iter()", 3),
            ("match guest { Guest::Old => 32, _ => 1_024 }", 2),
            ("const COLUMNS: usize = 64; f(512 << 10, 1024.0, 31, \"64\")", 0),
            ("fn f() { 7 }\n#[cfg(test)]\nmod a;", 0),
        ] {
            let house = House::of(&[("crates/diagnose/src/lib.rs", text)]);
            assert_eq!(check(&house).len(), findings, "{text}");
        }
        let elsewhere = House::of(&[("crates/sim/src/a.rs", "f(254)")]);
        assert!(check(&elsewhere).is_empty());
        let files =
            [("crates/cli/src/main.rs", "#[cfg(test)]\nmod a;"), ("crates/cli/src/a.rs", "f(254)")];
        assert!(check(&House::of(&files)).is_empty());
    }
}
