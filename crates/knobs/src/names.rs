//! Look-ups that say what exists, and the nearest name to a mistyped one.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

/// Names listed in a refusal before "and so many more".
const LISTED: usize = 40;
/// The longest name for which a near one is looked for.
const LENGTH_MAX: usize = 80;

/// "there is no X `name`; did you mean `near`? it is one of …". Names may come several times.
#[must_use]
pub fn unknown<'n>(noun: &str, name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let mut seen = BTreeSet::new();
    let known: Vec<_> = known.into_iter().filter(|other| seen.insert(*other)).collect();
    if known.is_empty() {
        return format!("there is no {noun} `{name}`; none exists");
    }
    let near = nearest(name, known.iter().copied());
    let hint = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
    format!("there is no {noun} `{name}`; {hint}it is one of {}", list(known))
}

/// Names for a sentence.
#[must_use]
pub fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut listed: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if listed.len() > LISTED {
        let more = listed.len() - LISTED;
        listed.truncate(LISTED);
        listed.push(format!("and {more} more"));
    }
    listed.join(", ")
}

/// The known name with the fewest edits, when it is near enough to be meant.
#[must_use]
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > LENGTH_MAX {
        return None;
    }
    let near = known.map(|other| (edits(name, other), other)).min()?;
    (near.0 <= name.chars().count() / 3).then_some(near.1)
}

/// The edit distance of two names: insertions, deletions, replacements.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.to_lowercase().chars().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_finds_the_one_that_was_meant() {
        let known = ["threads", "think", "rate"];
        let table =
            [("thread", Some("threads")), ("thin", Some("think")), ("banana", None), ("r", None)];
        for (name, near) in table {
            assert_eq!(nearest(name, known.into_iter()), near, "{name}");
        }
    }
}
