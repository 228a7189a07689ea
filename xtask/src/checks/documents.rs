//! The documents that every reader looks for are there, and the README is short and names the
//! two commands, the same that run elsewhere.

use crate::house::{Finding, House};

const README: &str = "README.md";
const README_LINES_MAX: usize = 119;
const TEST_COMMAND: &str = "cargo xtask test";
const MAIN_COMMAND: &str = "cargo run --release -- run s0-flasharray";

/// A document and what must stand in it.
const DOCUMENTS: &[(&str, &str)] = &[
    (README, TEST_COMMAND),
    (README, MAIN_COMMAND),
    (".ci/run", TEST_COMMAND),
    ("CONTRIBUTING.md", TEST_COMMAND),
    ("LICENSE", "Apache License"),
    ("CHANGELOG.md", "## [Unreleased]"),
];

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let mut findings: Vec<_> =
        DOCUMENTS.iter().filter_map(|(path, text)| missing(house, path, text)).collect();
    if let Some(readme) = house.file(README) {
        let lines = readme.text.lines().count();
        if lines > README_LINES_MAX {
            let message = format!("{lines} lines; {README_LINES_MAX} are allowed");
            findings.push(readme.at(lines, message));
        }
    }
    findings
}

fn missing(house: &House, path: &str, text: &str) -> Option<Finding> {
    match house.file(path) {
        None => Some(Finding::new(path, "is missing")),
        Some(file) if !file.text.contains(text) => {
            Some(Finding::new(path, format!("does not say `{text}`")))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_documents_commands_and_a_long_readme_are_found() {
        let readme = format!("{TEST_COMMAND}\n{MAIN_COMMAND}\n");
        let rest: Vec<_> = DOCUMENTS.iter().filter(|(path, _)| *path != README).copied().collect();
        let findings = |readme: &str| {
            let mut files = rest.clone();
            files.push((README, readme));
            check(&House::of(&files)).len()
        };
        assert_eq!(check(&House::of(&[])).len(), DOCUMENTS.len());
        assert_eq!(findings(&readme), 0);
        assert_eq!(findings(TEST_COMMAND), 1);
        assert_eq!(findings(&(readme + &"\n".repeat(README_LINES_MAX))), 1);
    }
}
