//! TOML values that know where they stand: every refusal names file, line, column and key.
//!
//! A table is opened with the keys it may have, so that a mistyped key is refused instead of
//! ignored.

use counters::sorted::sort_by_key;
use std::ops::RangeInclusive;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{Error, names, units};

/// A file's name and text.
#[derive(Clone, Copy)]
pub(crate) struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl File<'_> {
    /// A refusal of what stands at that byte.
    pub(crate) fn error(&self, byte: usize, message: &str) -> Error {
        Error::at(self.name, self.text, byte, message)
    }

    /// The line of that byte, from 1.
    fn line(&self, byte: usize) -> usize {
        self.text.get(..byte).unwrap_or("").matches('\n').count() + 1
    }

    /// The file as a TOML document.
    pub(crate) fn parse(&self) -> Result<Spanned<DeTable<'_>>, Error> {
        DeTable::parse(self.text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            match (error.message(), self.text.get(span.clone())) {
                (what @ "duplicate key", Some(key)) => {
                    self.error(span.start, &format!("{what} `{key}`"))
                }
                (what, _) => self.error(span.start, what),
            }
        })
    }
}

/// A value of the file under its dotted key.
#[derive(Clone)]
pub(crate) struct Node<'a> {
    file: File<'a>,
    key: String,
    byte: usize,
    value: &'a DeValue<'a>,
}

/// A table whose keys are all allowed.
pub(crate) struct Table<'a> {
    node: Node<'a>,
    entries: &'a DeTable<'a>,
}

/// The document's own table.
pub(crate) fn root<'a>(
    file: File<'a>,
    document: &'a Spanned<DeTable<'a>>,
    allowed: &[&str],
) -> Result<Table<'a>, Error> {
    static NOTHING: DeValue<'static> = DeValue::Boolean(false);
    let node = Node { file, key: String::new(), byte: 0, value: &NOTHING };
    Table { node, entries: document.get_ref() }.checked(allowed)
}

impl<'a> Table<'a> {
    fn checked(self, allowed: &[&str]) -> Result<Self, Error> {
        for (node, name) in self.children() {
            if !allowed.contains(&name) {
                return Err(node.error(&names::unknown("key", name, allowed.iter().copied())));
            }
        }
        Ok(self)
    }

    /// The values of the table under their names, in the order of the file. The place of each is
    /// that of its key.
    fn children(&self) -> Vec<(Node<'a>, &'a str)> {
        let mut children: Vec<_> = self
            .entries
            .iter()
            .map(|(key, value)| {
                let name: &'a str = key.get_ref();
                let dotted = match self.node.key.as_str() {
                    "" => name.to_string(),
                    parent => format!("{parent}.{name}"),
                };
                let byte = key.span().start;
                (Node { file: self.node.file, key: dotted, byte, value: value.get_ref() }, name)
            })
            .collect();
        sort_by_key(&mut children, |(node, _)| node.byte);
        children
    }

    /// The value of a key; `None` when the file does not have it.
    pub(crate) fn get(&self, key: &str) -> Option<Node<'a>> {
        self.children().into_iter().find(|(_, name)| *name == key).map(|(node, _)| node)
    }

    /// The value of a key that must be there.
    pub(crate) fn need(&self, key: &str) -> Result<Node<'a>, Error> {
        self.get(key).ok_or_else(|| self.node.error(&format!("`{key}` is missing")))
    }

    /// What `read` makes of a key; `None` when the file does not have it.
    pub(crate) fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Node<'a>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.get(key).map(|node| read(&node)).transpose()
    }

    /// The tables below a key that is itself a table of named things, as `[vm.NAME]`.
    pub(crate) fn named(&self, key: &str) -> Result<Vec<(String, Node<'a>)>, Error> {
        self.get(key).map_or_else(|| Ok(Vec::new()), |node| node.named())
    }

    /// The elements of a key that is a list, or its one value when it is none.
    pub(crate) fn list(&self, key: &str) -> Vec<Node<'a>> {
        self.get(key).map_or_else(Vec::new, |node| node.list())
    }

    /// The table as a value: the place to refuse it as a whole.
    pub(crate) fn node(&self) -> &Node<'a> {
        &self.node
    }

    /// Of several keys the one that is there; a refusal when none or more than one is.
    pub(crate) fn exactly_one(&self, keys: &[&str]) -> Result<Node<'a>, Error> {
        let mut found = keys.iter().filter_map(|key| self.get(key));
        let choices = names::list(keys.iter().copied());
        match (found.next(), found.next()) {
            (Some(node), None) => Ok(node),
            (None, _) => Err(self.node.error(&format!("one of {choices} is missing"))),
            (Some(_), Some(other)) => {
                Err(other.error(&format!("only one of {choices} is allowed")))
            }
        }
    }
}

impl<'a> Node<'a> {
    /// A refusal of this value: what is wrong; what is allowed.
    pub(crate) fn error(&self, message: &str) -> Error {
        match self.key.as_str() {
            "" => self.file.error(self.byte, message),
            key => self.file.error(self.byte, &format!("key `{key}`: {message}")),
        }
    }

    /// The dotted key's last part.
    pub(crate) fn name(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or("")
    }

    /// The line it stands on, from 1.
    pub(crate) fn line(&self) -> usize {
        self.file.line(self.byte)
    }

    fn wrong(&self, allowed: &str) -> Error {
        self.error(&format!("{} is not allowed here; {allowed}", kind(self.value)))
    }

    /// File, line and key, to name what stands inside this value, which has lines of its own.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}: text of `{}`", self.file.name, self.line(), self.key)
    }

    /// The value of a key when it is a table that has it; which keys it may have is not checked.
    pub(crate) fn child(&self, key: &str) -> Option<Node<'a>> {
        self.any_table().ok()?.get(key)
    }

    /// A table with no other keys than these.
    pub(crate) fn table(&self, allowed: &[&str]) -> Result<Table<'a>, Error> {
        self.any_table()?.checked(allowed)
    }

    fn any_table(&self) -> Result<Table<'a>, Error> {
        let DeValue::Table(entries) = self.value else {
            return Err(self.wrong("it is a table"));
        };
        Ok(Table { node: self.clone(), entries })
    }

    /// The values of a table of named things, in the order of the file.
    pub(crate) fn named(&self) -> Result<Vec<(String, Node<'a>)>, Error> {
        let children = self.any_table()?.children();
        Ok(children.into_iter().map(|(node, name)| (name.to_string(), node)).collect())
    }

    /// The elements of a list; a value that is no list is a list of one.
    pub(crate) fn list(&self) -> Vec<Node<'a>> {
        let DeValue::Array(elements) = self.value else {
            return vec![self.clone()];
        };
        let element = |value: &'a Spanned<DeValue<'a>>| Node {
            file: self.file,
            key: self.key.clone(),
            byte: value.span().start,
            value: value.get_ref(),
        };
        elements.iter().map(element).collect()
    }

    /// A string.
    pub(crate) fn string(&self) -> Result<&'a str, Error> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong("it is a string in quotes")),
        }
    }

    /// true or false.
    pub(crate) fn boolean(&self) -> Result<bool, Error> {
        match self.value {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.wrong("it is true or false")),
        }
    }

    /// A whole number in a range.
    pub(crate) fn integer(&self, range: RangeInclusive<u64>) -> Result<u64, Error> {
        let allowed = || format!("it is a whole number from {} to {}", range.start(), range.end());
        let DeValue::Integer(digits) = self.value else {
            return Err(self.wrong(&allowed()));
        };
        match i128::from_str_radix(digits.as_str(), digits.radix()).map(u64::try_from) {
            Ok(Ok(value)) if range.contains(&value) => Ok(value),
            _ => Err(self.error(&format!("`{}` is out of range; {}", digits.as_str(), allowed()))),
        }
    }

    /// A whole number in a range of 32 bits.
    pub(crate) fn integer32(&self, range: RangeInclusive<u32>) -> Result<u32, Error> {
        let value = self.integer(u64::from(*range.start())..=u64::from(*range.end()))?;
        Ok(u32::try_from(value).unwrap_or(*range.end()))
    }

    /// A number, whole or not, in a range.
    pub(crate) fn number(&self, range: RangeInclusive<f64>) -> Result<f64, Error> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("it is a number")),
        };
        match text.parse::<f64>() {
            Ok(value) if range.contains(&value) => Ok(value),
            _ => Err(self.error(&format!(
                "`{text}` is out of range; it is a number from {} to {}",
                range.start(),
                range.end()
            ))),
        }
    }

    /// A duration in nanoseconds.
    pub(crate) fn duration(&self) -> Result<u64, Error> {
        let allowed = "it is a duration in quotes with its unit, as \"30s\"";
        let DeValue::String(text) = self.value else {
            return Err(self.wrong(allowed));
        };
        units::duration(text).map_err(|message| self.error(&message))
    }

    /// A duration above 0 in nanoseconds.
    pub(crate) fn positive_duration(&self) -> Result<u64, Error> {
        match self.duration()? {
            0 => Err(self.error("it must be longer than 0")),
            nanos => Ok(nanos),
        }
    }

    /// A size in bytes: `"4k"`, or a plain number.
    pub(crate) fn size(&self, range: RangeInclusive<u64>) -> Result<u64, Error> {
        let DeValue::String(text) = self.value else {
            return self.integer(range);
        };
        let bytes = units::size(text).map_err(|message| self.error(&message))?;
        if !range.contains(&bytes) {
            let (min, max) = (range.start(), range.end());
            return Err(
                self.error(&format!("`{text}` is out of range; it is {min} to {max} bytes"))
            );
        }
        Ok(bytes)
    }

    /// A string that a parser of [`units`] understands.
    pub(crate) fn parsed<T>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Error> {
        parse(self.string()?).map_err(|message| self.error(&message))
    }

    /// One of several words.
    pub(crate) fn choice<T: Clone>(&self, choices: &[(&str, T)]) -> Result<T, Error> {
        let word = self.string()?;
        let known = choices.iter().find(|(name, _)| *name == word);
        known.map(|(_, value)| value.clone()).ok_or_else(|| {
            self.error(&names::unknown("value", word, choices.iter().map(|(name, _)| *name)))
        })
    }

    /// Whether it is a string.
    pub(crate) fn is_string(&self) -> bool {
        matches!(self.value, DeValue::String(_))
    }

    /// Whether it is -1.
    pub(crate) fn is_minus_one(&self) -> bool {
        matches!(self.value, DeValue::Integer(number) if number.as_str() == "-1")
    }

    /// Whether it is a table.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
