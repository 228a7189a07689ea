//! The things of one noun by their names: groups made by `count`, and look-ups that say what exists.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::{
    Error,
    names::{LENGTH_MAX, unknown},
    reader::Node,
};

/// The names of one noun. A group of `count` things is `name-1` to `name-count`, and `name`
/// stands for all of them.
#[derive(Debug)]
pub(crate) struct Names {
    noun: &'static str,
    max: usize,
    /// What a name may be.
    check: fn(&str) -> Result<(), String>,
    len: usize,
    ranges: BTreeMap<String, Range<usize>>,
    order: Vec<String>,
}

impl Names {
    /// No names yet, and at most `max` of them.
    pub(crate) fn new(noun: &'static str, max: usize) -> Self {
        Self { noun, max, check, len: 0, ranges: BTreeMap::new(), order: Vec::new() }
    }

    /// The same of a noun whose names may be other ones.
    pub(crate) fn checked(self, check: fn(&str) -> Result<(), String>) -> Self {
        Self { check, ..self }
    }

    /// Adds one thing, or a group of `count`; the names in order.
    pub(crate) fn add(
        &mut self,
        node: &Node<'_>,
        name: &str,
        count: Option<usize>,
    ) -> Result<Vec<String>, Error> {
        (self.check)(name).map_err(|message| node.error(&message))?;
        let first = self.len;
        let wanted = count.unwrap_or(1);
        if wanted > self.max - first {
            let (max, nouns) = (self.max, self.plural());
            let message = format!("there are too many; at most {max} {nouns} are allowed");
            return Err(node.error(&message));
        }
        let members: Vec<String> = match count {
            None => vec![name.to_string()],
            Some(count) => (1..=count).map(|n| format!("{name}-{n}")).collect(),
        };
        for (offset, member) in members.iter().enumerate() {
            self.insert(node, member, first + offset..first + offset + 1)?;
        }
        if count.is_some() {
            self.insert(node, name, first..first + wanted)?;
        }
        self.len += wanted;
        self.order.push(name.to_string());
        Ok(members)
    }

    fn insert(&mut self, node: &Node<'_>, name: &str, range: Range<usize>) -> Result<(), Error> {
        if self.ranges.insert(name.to_string(), range).is_some() {
            return Err(node.error(&format!("there are two {} named `{name}`", self.plural())));
        }
        Ok(())
    }

    /// Several of them.
    fn plural(&self) -> String {
        let ending = if self.noun.ends_with("ch") { "es" } else { "s" };
        format!("{}{ending}", self.noun)
    }

    /// The things of a name or of a group.
    pub(crate) fn get(&self, name: &str) -> Option<Range<usize>> {
        self.ranges.get(name).cloned()
    }

    /// The things that a value names: a name, a group, or a list of them.
    pub(crate) fn find(&self, node: &Node<'_>) -> Result<Vec<usize>, Error> {
        let mut found = BTreeSet::new();
        for element in node.list() {
            let name = element.string()?;
            let range = self.get(name).ok_or_else(|| {
                element.error(&unknown(self.noun, name, self.order.iter().map(String::as_str)))
            })?;
            found.extend(range);
        }
        if found.is_empty() {
            return Err(node.error(&format!("it names no {}; at least one is needed", self.noun)));
        }
        Ok(found.into_iter().collect())
    }

    /// The one thing that a value names.
    pub(crate) fn find_one(&self, node: &Node<'_>) -> Result<usize, Error> {
        match *self.find(node)? {
            [one] => Ok(one),
            ref many => Err(node.error(&format!(
                "it names {} {}; only one is allowed, as `{}-1`",
                many.len(),
                self.plural(),
                node.string().unwrap_or("name")
            ))),
        }
    }
}

/// Names go into esxtop's columns and in front of command lines.
fn check(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > LENGTH_MAX || !name.chars().all(plain) {
        return Err(format!(
            "`{name}` is no name; a name has 1 to {LENGTH_MAX} letters, digits, dots, dashes and \
             underscores"
        ));
    }
    Ok(())
}
