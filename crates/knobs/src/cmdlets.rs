//! Lines of cmdlets as PowerShell reads them: pipelines of cmdlets with their arguments, in any order and in
//! any case.
//!
//! ```text
//!   Get-HardDisk -VM 'web' | Set-SpbmEntityConfiguration -StoragePolicy (Get-SpbmStoragePolicy gold)
//!   |--- a cmdlet -------|   |--- a cmdlet, with a pipeline as the value of an argument ------------|
//! ```

use alloc::{string::String, vec::Vec};

use crate::words::{plain_name, powershell_word};

/// Pipelines within pipelines, at most.
const DEPTH: usize = 4;

/// A cmdlet and those arguments of it that nobody has read yet.
pub(crate) struct Cmdlet<'a> {
    pub(crate) name: &'a str,
    /// By parameter, which is empty where the place tells it.
    arguments: Vec<(&'a str, Value<'a>)>,
}

/// The value of an argument.
pub(crate) enum Value<'a> {
    Word(String),
    /// `$true`, `$false`, `$null`.
    Variable(&'a str),
    Pipeline(Vec<Cmdlet<'a>>),
    Script(&'a str),
    /// Several with commas between them.
    List,
}

impl<'a> Cmdlet<'a> {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Takes the argument of a parameter.
    pub(crate) fn take(&mut self, parameter: &str) -> Option<Value<'a>> {
        let is_it = |(name, _): &(&str, _)| name.eq_ignore_ascii_case(parameter);
        let at = self.arguments.iter().position(is_it)?;
        Some(self.arguments.remove(at).1)
    }

    /// The same of the parameter that comes first and need not be named.
    pub(crate) fn take_first(&mut self, parameter: &str) -> Option<Value<'a>> {
        self.take(parameter).or_else(|| self.take(""))
    }

    /// Whether it has the argument of a parameter.
    pub(crate) fn has(&self, parameter: &str) -> bool {
        self.arguments.iter().any(|(name, _)| name.eq_ignore_ascii_case(parameter))
    }

    /// Whether it has none.
    pub(crate) const fn is_bare(&self) -> bool {
        self.arguments.is_empty()
    }

    /// A parameter that it has and nobody has read.
    pub(crate) fn left(&self) -> Option<&'a str> {
        self.arguments
            .iter()
            .map(|(name, _)| *name)
            .find(|name| !name.eq_ignore_ascii_case("Confirm"))
    }
}

impl Value<'_> {
    /// A word as it stands.
    pub(crate) fn word(self) -> Option<String> {
        if let Self::Word(word) = self { Some(word) } else { None }
    }

    /// The name of an object: given itself, or to the cmdlet that gets it.
    pub(crate) fn name_by(self, cmdlet: &str) -> Option<String> {
        match self {
            Self::Word(word) => plain_name(&word),
            Self::Pipeline(stages) => {
                let [mut get] = <[Cmdlet<'_>; 1]>::try_from(stages).ok()?;
                let name = get.take_first("Name").filter(|_| get.is(cmdlet))?.word()?;
                plain_name(&name).filter(|_| get.left().is_none())
            }
            Self::Script(_) | Self::Variable(_) | Self::List => None,
        }
    }
}

/// A line of cmdlets; `None` where it is none.
pub(crate) fn read(line: &str) -> Option<Vec<Cmdlet<'_>>> {
    let (stages, rest) = pipeline(line, DEPTH)?;
    rest.trim().is_empty().then_some(stages)
}

/// The pipeline that a text begins with, and what follows it.
fn pipeline(mut text: &str, depth: usize) -> Option<(Vec<Cmdlet<'_>>, &str)> {
    let mut stages = Vec::new();
    loop {
        let (stage, rest) = cmdlet(text, depth.checked_sub(1)?)?;
        stages.push(stage);
        match rest.strip_prefix('|') {
            Some(rest) => text = rest,
            None => return Some((stages, rest)),
        }
    }
}

fn cmdlet(text: &str, depth: usize) -> Option<(Cmdlet<'_>, &str)> {
    let (name, mut rest) = bare(text.trim_start());
    let mut cmdlet = Cmdlet { name, arguments: Vec::new() };
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with(['|', ')']) {
            return Some((cmdlet, rest));
        }
        let mut parameter = "";
        if is_parameter(rest) {
            (parameter, rest) = bare(&rest[1..]);
            rest = rest.strip_prefix(':').unwrap_or(rest).trim_start();
        }
        let is_switch = rest.is_empty() || rest.starts_with(['|', ')']) || is_parameter(rest);
        let (value, after) = match is_switch && !parameter.is_empty() {
            true => (Value::Word(String::new()), rest),
            false => values(rest, depth)?,
        };
        cmdlet.arguments.push((parameter, value));
        rest = after;
    }
}

/// The letters, digits and dashes that a text begins with, and what follows them.
fn bare(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
    text.split_at(end)
}

fn is_parameter(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// A value, or a list of them.
fn values(text: &str, depth: usize) -> Option<(Value<'_>, &str)> {
    let (mut found, mut rest) = value(text, depth)?;
    while let Some(next) = rest.trim_start().strip_prefix(',') {
        (found, rest) = (Value::List, value(next.trim_start(), depth)?.1);
    }
    Some((found, rest))
}

/// Where the script ends that a text begins with: at the bracket that closes it and none within.
fn end_of_script(text: &str) -> Option<usize> {
    let mut open = 1_usize;
    let mut brackets = text.match_indices(['{', '}']);
    let end = brackets.find(|(_, bracket)| {
        open = if *bracket == "{" { open + 1 } else { open - 1 };
        open == 0
    });
    end.map(|(at, _)| at)
}

fn value(text: &str, depth: usize) -> Option<(Value<'_>, &str)> {
    if let Some(inner) = text.strip_prefix('(') {
        let (stages, rest) = pipeline(inner, depth)?;
        return Some((Value::Pipeline(stages), rest.strip_prefix(')')?));
    }
    if let Some(inner) = text.strip_prefix('{') {
        let (script, rest) = inner.split_at(end_of_script(inner)?);
        return Some((Value::Script(script), &rest[1..]));
    }
    let (word, rest) = powershell_word(text)?;
    let value = match text.strip_suffix(rest).filter(|word| word.starts_with('$')) {
        Some(variable) => Value::Variable(variable),
        None => Value::Word(word),
    };
    Some((value, rest))
}
