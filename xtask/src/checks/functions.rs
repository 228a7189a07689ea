//! A function fits on a screen: 75 lines at most, about 8 in the median.

use crate::house::{Finding, House};
use crate::rust;

const LENGTH_MAX: usize = 75;
const MEDIAN_MAX: usize = 12;

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in house.rust() {
        for function in rust::functions(&file.text) {
            if function.length > LENGTH_MAX {
                let rust::Function { name, line, length } = function;
                let message = format!("fn {name} has {length} lines; {LENGTH_MAX} are allowed");
                findings.push(file.at(line, message));
            }
        }
    }
    let median = median(&lengths(house));
    if median > MEDIAN_MAX {
        let message = format!("the median function has {median} lines; {MEDIAN_MAX} are allowed");
        findings.push(Finding::new("crates", message));
    }
    findings
}

/// How many functions there are and how long they are.
pub(crate) fn summary(house: &House) -> String {
    let lengths = lengths(house);
    let longest = lengths.last().copied().unwrap_or_default();
    let median = median(&lengths);
    format!("{} functions, median {median} lines, longest {longest}", lengths.len())
}

fn lengths(house: &House) -> Vec<usize> {
    let mut lengths: Vec<_> =
        house.rust().flat_map(|file| rust::functions(&file.text)).map(|f| f.length).collect();
    lengths.sort_unstable();
    lengths
}

fn median(sorted: &[usize]) -> usize {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_function_is_found() {
        let of = |lines: usize| format!("fn long() {{{}}}\n", "\n".repeat(lines - 1));
        let findings = |lines| {
            let short = "fn short() {}\n".repeat(3);
            check(&House::of(&[("a.rs", &(short + &of(lines)))])).len()
        };
        assert_eq!(findings(LENGTH_MAX), 0);
        assert_eq!(findings(LENGTH_MAX + 1), 1);
        assert_eq!(check(&House::of(&[("a.rs", &of(MEDIAN_MAX + 1))])).len(), 1, "the median");
    }
}
