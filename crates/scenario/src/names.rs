//! Names: which are members of a group, and what a refused one could have been.

pub(crate) use knobs::{list, unknown};

/// The longest name.
pub(crate) const LENGTH_MAX: usize = 80;

/// Whether a thing is the one of that name, or in the group of that name.
pub(crate) fn is_member(name: &str, of: &str) -> bool {
    let number = name.strip_prefix(of).and_then(|rest| rest.strip_prefix('-'));
    name == of || number.is_some_and(|number| number.parse::<usize>().is_ok())
}
