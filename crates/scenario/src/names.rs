//! Names: which are members of a group, and what a refused one could have been.

pub(crate) use knobs::{list, unknown};

/// The longest name.
pub(crate) const LENGTH_MAX: usize = 80;

/// Tells the things that are the one of a name or in its group: by that name, or where none of those that there are
/// has it, in any case, as PowerShell and vCenter take names.
pub(crate) fn meant<'a>(
    name: &'a str,
    known: impl IntoIterator<Item = &'a str>,
) -> impl Fn(&str) -> bool + 'a {
    let is_known = known.into_iter().any(|known| is_member(known, name));
    move |other| match other.get(..name.len()) {
        Some(start) if !is_known && start.eq_ignore_ascii_case(name) => is_member(other, start),
        _ => is_member(other, name),
    }
}

/// The place of a name: as it is written, or where none is so, in any case.
pub(crate) fn place<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<usize> {
    let exact = known.clone().position(|known| known == name);
    exact.or_else(|| known.clone().position(|known| known.eq_ignore_ascii_case(name)))
}

/// Whether a thing is the one of that name, or in the group of that name.
#[must_use]
pub fn is_member(name: &str, of: &str) -> bool {
    let number = name.strip_prefix(of).and_then(|rest| rest.strip_prefix('-'));
    name == of || number.is_some_and(|number| number.parse::<usize>().is_ok())
}
