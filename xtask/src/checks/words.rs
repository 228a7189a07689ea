//! The project speaks of itself alone: not of the machine it was written on, nor of how.

use crate::house::{File, Finding, House};

/// What names a place on somebody's machine or a registry of somebody's network. Written in two
/// halves, like the words below, so that this file passes.
const PLACES: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Use", "rs/"),
    concat!("/tmp/tar", "get"),
    concat!("replace", "-with"),
    concat!("index", "-url"),
    concat!("[regis", "tries"),
];

/// Words of the workshop, not of storage. An iSCSI initiator has one of them too.
const WORDS: &[&str] = &[
    concat!("ses", "sion"),
    concat!("ses", "sions"),
    concat!("sub", "agent"),
    concat!("sub", "agents"),
    concat!("AI ag", "ent"),
    concat!("Cla", "ude"),
    concat!("chat", "bot"),
];
const BEFORE_WORDS: &str = "iSCSI ";

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn check(house: &House) -> Vec<Finding> {
    house.files.iter().flat_map(of_file).collect()
}

fn of_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        for place in PLACES.iter().filter(|place| text.contains(**place)) {
            findings.push(file.at(line, format!("`{place}` names a place outside of the project")));
        }
        let plain = text.replace(&format!("{BEFORE_WORDS}{}", WORDS[0]), "");
        for word in WORDS.iter().filter(|word| has_word(&plain, word)) {
            findings.push(file.at(line, format!("`{word}` is no word of this project")));
        }
        if file.path == "Cargo.lock" && text.starts_with("source = ") && !text.contains(REGISTRY) {
            findings.push(file.at(line, "comes from elsewhere than crates.io"));
        }
    }
    findings
}

/// Whether `word` stands in `text` with no letter, digit or `_` beside it; capitals count only
/// where `word` has them.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let lower;
    let text = match word.chars().any(char::is_uppercase) {
        true => text,
        false => {
            lower = text.to_lowercase();
            &lower
        }
    };
    let part_of_a_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let joined = word.ends_with(char::is_alphanumeric) && after.is_some_and(part_of_a_word);
        !before.is_some_and(part_of_a_word) && !joined
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_words_and_other_registries_are_found() {
        for place in PLACES {
            assert_eq!(
                check(&House::of(&[("a.md", &format!("see {place}x"))])).len(),
                1,
                "{place}"
            );
        }
        for word in WORDS {
            assert_eq!(check(&House::of(&[("a.md", &format!("a {word}."))])).len(), 1, "{word}");
        }
        let iscsi = format!("an {BEFORE_WORDS}{}", WORDS[0]);
        assert!(check(&House::of(&[("a.md", &iscsi)])).is_empty());
        let lock = |source: &str| format!("source = \"registry+https://{source}\"\n");
        let house = House::of(&[("Cargo.lock", &lock("example.org/index"))]);
        assert_eq!(check(&house).len(), 1);
        let house = House::of(&[("Cargo.lock", &lock("github.com/rust-lang/crates.io-index"))]);
        assert!(check(&house).is_empty());
    }
}
