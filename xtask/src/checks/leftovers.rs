//! Nothing is left for later: no markers of unfinished work, in code or in prose.

use super::words::has_word;
use crate::house::{Finding, House};

/// Written in two halves, so that this file passes.
const MARKERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
    concat!("dbg", "!"),
];

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &house.files {
        for (line, text) in file.lines() {
            for marker in MARKERS.iter().filter(|marker| has_word(text, marker)) {
                findings.push(file.at(line, format!("`{marker}` is left over")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_marker_is_found() {
        for marker in MARKERS {
            let house = House::of(&[("a.md", &format!("fine\n// {marker}(x)\n"))]);
            let found: Vec<_> = check(&house).iter().map(ToString::to_string).collect();
            assert_eq!(found, [format!("a.md:2: `{marker}` is left over")]);
        }
        assert!(check(&House::of(&[("a.md", "XXXL, todos, dbg_macro")])).is_empty());
    }
}
