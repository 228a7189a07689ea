//! A tag such as `[S0]` in a comment names a source of `docs/reference/sources.md`.

use crate::house::{File, Finding, House};

const SOURCES: &str = "docs/reference/sources.md";

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let Some(sources) = house.file(SOURCES) else {
        return vec![Finding::new(SOURCES, "is missing")];
    };
    let known = known(&sources.text);
    let crates = house.rust().filter(|file| file.path.starts_with("crates/"));
    crates.flat_map(|file| of_file(file, &known)).collect()
}

/// The tags in the first column of the table.
fn known(text: &str) -> Vec<&str> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    rows.filter_map(|row| row.split(" |").next()).flat_map(|cell| cell.split(", ")).collect()
}

fn of_file(file: &File, known: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        let comment = text.split_once("//").map_or("", |(_, comment)| comment);
        for tag in tags(comment).filter(|tag| !known.contains(tag)) {
            findings.push(file.at(line, format!("`{tag}` is not in {SOURCES}")));
        }
    }
    findings
}

/// The first words of what stands in brackets, as far as they are tags. A link is none.
fn tags(comment: &str) -> impl Iterator<Item = &str> {
    let brackets = comment.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    let references = brackets.filter(|(_, after)| !after.starts_with('('));
    references
        .flat_map(|(inside, _)| inside.split([',', ';']))
        .filter_map(|reference| reference.split_whitespace().next())
        .filter(|word| is_tag(word))
}

fn is_tag(word: &str) -> bool {
    let shaped = word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-');
    shaped && word.len() > 1 && word.starts_with(|c: char| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_without_a_source_are_found() {
        let table = "| tag | source |\n|---|---|\n| S0 | an article |\n| CAP, CAP-A | captures |\n";
        let findings = |comment: &str| {
            check(&House::of(&[(SOURCES, table), ("crates/a/src/a.rs", comment)])).len()
        };
        for (comment, count) in [
            ("// as published [S0]", 0),
            ("/// as seen [CAP-A 5.4, S0]", 0),
            ("let x = a[N]; // [`Engine`] and [S0](link) and [x, y]", 0),
            ("// from memory [S9]", 1),
            ("// [S0; KB-QF]", 1),
        ] {
            assert_eq!(findings(comment), count, "{comment}");
        }
        assert_eq!(check(&House::of(&[])).len(), 1);
    }
}
