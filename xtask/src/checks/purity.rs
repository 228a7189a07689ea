//! The pure crates have no clock, no hashing, no I/O; the engine has no floating point either.
//!
//! `bare.rs` proves by the compiler that nothing of `std` is linked in; this check says where the
//! line is, and also holds for tests.

use crate::house::{File, Finding, House};
use crate::rust;

const PURE: &[&str] = &["crates/counters/", "crates/engine/", "crates/knobs/", "crates/model/"];

const FORBIDDEN: &[&str] = &["HashMap", "HashSet", "Instant", "SystemTime"];
const FORBIDDEN_IN_STD: &[&str] =
    &["std::time", "std::io", "std::fs", "std::net", "std::thread", "std::env", "std::process"];
const FORBIDDEN_IN_ENGINE: &[&str] = &["f32", "f64"];

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let pure = |file: &&File| PURE.iter().any(|root| file.path.starts_with(root));
    house.rust().filter(pure).flat_map(of_file).collect()
}

fn of_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let root = file.path.ends_with("/src/lib.rs");
    if root && !file.lines().any(|(_, line)| line == "#![no_std]") {
        findings.push(file.at(1, "a pure crate without `#![no_std]`"));
    }
    let engine = file.path.starts_with("crates/engine/src/");
    for (line, path) in rust::paths(&file.text) {
        if is_forbidden(&path) || engine && FORBIDDEN_IN_ENGINE.contains(&path.as_str()) {
            findings.push(file.at(line, format!("`{path}` in a pure crate")));
        }
    }
    findings
}

fn is_forbidden(path: &str) -> bool {
    path.split("::").any(|word| FORBIDDEN.contains(&word))
        || FORBIDDEN_IN_STD.iter().any(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_hashing_io_and_floats_are_found() {
        for (path, text, findings) in [
            ("crates/engine/src/lib.rs", "//! A story.\n", 1),
            ("crates/engine/src/lib.rs", "#![no_std]\n", 0),
            ("crates/engine/src/a.rs", "use std::time::Duration;", 1),
            ("crates/engine/src/a.rs", "let now = Instant::now();", 1),
            ("crates/engine/src/a.rs", "let share: f64 = 0.5;", 1),
            ("crates/model/src/a.rs", "let share: f64 = 0.5;", 0),
            ("crates/model/tests/a.rs", "use std::collections::HashMap;", 1),
            ("crates/model/src/a.rs", "// no HashMap here\nuse core::iter::Sum;", 0),
            ("crates/sim/src/a.rs", "use std::collections::HashMap;", 0),
        ] {
            assert_eq!(check(&House::of(&[(path, text)])).len(), findings, "{path}: {text}");
        }
    }
}
