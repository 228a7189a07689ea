//! A setting of a new kind is four files: those of [`PLACES`] name each kind, and no other file does, so that none
//! has to be changed with them.

use crate::house::{File, Finding, House};

/// Where kinds are declared.
const TABLE: &str = "crates/knobs/src/setting.rs";
/// The files that name each: what it is, its line, what it does, and its line in a table.
const PLACES: [&str; 4] = [
    TABLE,
    "crates/knobs/src/command.rs",
    "crates/engine/src/settings.rs",
    "crates/engine/src/codec.rs",
];

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let kinds = house.file(TABLE).map_or_else(Vec::new, kinds);
    if kinds.is_empty() {
        return Vec::new();
    }
    let names_all = |file: &&File| kinds.iter().all(|kind| names(&file.text, kind));
    let is_place = |file: &&File| PLACES.contains(&&*file.path);
    let others = house.rust().filter(|file| file.path.contains("/src/") && !is_place(file));
    let message = "it names each kind of setting; CONTRIBUTING.md tells the four files that do";
    others.filter(names_all).map(|file| file.at(1, message)).collect()
}

fn kinds(table: &File) -> Vec<&str> {
    let declared = table.text.split("pub enum Setting<").nth(1).unwrap_or_default();
    let lines = declared.lines().skip(1).take_while(|line| !line.starts_with('}'));
    lines
        .filter_map(|line| line.strip_prefix("    ")?.strip_suffix(" {"))
        .filter(|name| name.starts_with(char::is_uppercase))
        .collect()
}

/// Whether a text has a kind in a pattern or makes one.
fn names(text: &str, kind: &str) -> bool {
    let path = format!("::{kind}");
    text.match_indices(&path).any(|(at, _)| {
        !text[at + path.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_file_that_names_each_kind_is_found() {
        const TEXT: &str = "pub enum Setting<F: Form = Named> {\n    /// A.\n    Depth {\n        device: F,\n    },\n    \
             Limit {\n        vm: F,\n    },\n}\n";
        for (path, text, findings) in [
            (
                "crates/live/src/a.rs",
                "match knob { Knob::Depth { .. } => 1, Knob::Limit { .. } => 2 }",
                1,
            ),
            ("crates/live/src/a.rs", "match knob { Knob::Depth { .. } => 1, _ => 2 }", 0),
            ("crates/live/src/a.rs", "(Knob::Depth { .. }, Knob::Limits(..))", 0),
            ("crates/engine/src/codec.rs", "(Knob::Depth { .. }, Knob::Limit { .. })", 0),
            ("crates/engine/tests/a.rs", "(Knob::Depth { .. }, Knob::Limit { .. })", 0),
        ] {
            let found = check(&House::of(&[(TABLE, TEXT), (path, text)]));
            assert_eq!(found.len(), findings, "{path}: {text}");
        }
    }
}
