//! Keys of the file with other values than the file has: what a sweep turns.
//!
//! A key is the path to it, as `vm.big.workload.rate`. The value goes into the document before it is
//! read, so that every key can be turned and what is refused is refused as if the file said it.

use std::borrow::Cow;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{Error, names, reader::File};

/// A part of a key that stands for every one of its table or list.
const EVERY: &str = "*";

/// A key of the file, and what it is instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    parts: Vec<String>,
    value: String,
    /// The virtual machine that it is about alone, whose disks are all on the datastore `value`: one of a group
    /// has no key of its own.
    vm: Option<String>,
}

impl Over {
    /// `key` is the path to a key: parts with dots between them, in quotes where a part has dots of
    /// its own. Of a list a part is the number of an element, from 1, or its `name`; `*` is every
    /// one of a table or list. `value` is a value of TOML, and a string without quotes where it is
    /// none.
    ///
    /// # Errors
    /// One line when `key` is no path.
    pub fn new(key: &str, value: &str) -> Result<Self, Error> {
        let parts = parts(key).filter(|parts| parts.iter().all(|part| !part.is_empty()));
        let no_path =
            || Error::new(format!("`{key}` is no key; a key is as `vm.NAME.workload.threads`"));
        Ok(Self { parts: parts.ok_or_else(no_path)?, value: value.to_owned(), vm: None })
    }

    /// All disks of a virtual machine of the file, be it one of a group, are on a datastore of it.
    #[must_use]
    pub fn datastore(vm: &str, datastore: &str) -> Self {
        Self { parts: Vec::new(), value: datastore.to_owned(), vm: Some(vm.to_owned()) }
    }

    /// The datastore on which it puts the disks of a virtual machine.
    pub(crate) fn datastore_of(&self, vm: &str) -> Option<&str> {
        (self.vm.as_deref() == Some(vm)).then_some(&self.value)
    }

    /// Puts the value into a document.
    pub(crate) fn put<'a>(
        &'a self,
        file: File<'_>,
        document: &mut Spanned<DeTable<'a>>,
    ) -> Result<(), Error> {
        let string = || DeValue::String(Cow::Borrowed(self.value.as_str()));
        let value = DeValue::parse(&self.value).map_or_else(|_| string(), Spanned::into_inner);
        Place { file, value, key: "", byte: 0 }.in_table(document.get_mut(), &self.parts)
    }
}

/// The parts of a key; `None` where a quote is open at its end.
fn parts(key: &str) -> Option<Vec<String>> {
    let (mut parts, mut quoted) = (vec![String::new()], false);
    for c in key.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c => parts.last_mut()?.push(c),
        }
    }
    (!quoted).then_some(parts)
}

/// Where in the document the value is on its way.
struct Place<'a, 'f> {
    file: File<'f>,
    value: DeValue<'a>,
    /// The parts so far.
    key: &'f str,
    /// Where what they lead to begins.
    byte: usize,
}

impl<'a> Place<'a, '_> {
    fn error(&self, message: &str) -> Error {
        match self.key {
            "" => self.file.error(self.byte, message),
            key => self.file.error(self.byte, &format!("key `{key}`: {message}")),
        }
    }

    /// Goes on below `name`, which stands at `byte`.
    fn below(
        &self,
        name: &str,
        byte: usize,
        value: &mut DeValue<'a>,
        rest: &'a [String],
    ) -> Result<(), Error> {
        let key = match self.key {
            "" => name.to_owned(),
            above => format!("{above}.{name}"),
        };
        let place = Place { file: self.file, value: self.value.clone(), key: &key, byte };
        match value {
            DeValue::Table(table) if !rest.is_empty() => place.in_table(table, rest),
            DeValue::Array(list) if !rest.is_empty() => place.in_list(list, rest),
            _ if !rest.is_empty() => Err(place.error("it is no table, and no key is in it")),
            value => {
                *value = moved(place.value, byte);
                Ok(())
            }
        }
    }

    fn in_table(&self, table: &mut DeTable<'a>, parts: &'a [String]) -> Result<(), Error> {
        let Some((name, rest)) = parts.split_first() else { return Ok(()) };
        let mut found = false;
        for (key, value) in table.iter_mut() {
            if name == EVERY || key.get_ref() == name {
                found = true;
                self.below(key.get_ref(), key.span().start, value.get_mut(), rest)?;
            }
        }
        if found {
            return Ok(());
        }
        if !rest.is_empty() || name == EVERY {
            let known = table.keys().map(|key| &**key.get_ref());
            return Err(self.error(&names::unknown("key", name, known)));
        }
        let at = self.byte..self.byte;
        let value = Spanned::new(at.clone(), moved(self.value.clone(), self.byte));
        table.insert(Spanned::new(at, Cow::Borrowed(name.as_str())), value);
        Ok(())
    }

    fn in_list(&self, list: &mut [Spanned<DeValue<'a>>], parts: &'a [String]) -> Result<(), Error> {
        let Some((name, rest)) = parts.split_first() else { return Ok(()) };
        let count = list.len();
        let mut found = false;
        for (index, element) in list.iter_mut().enumerate() {
            let number = (index + 1).to_string();
            if name == EVERY || *name == number || name_of(element.get_ref()) == Some(name) {
                found = true;
                self.below(&number, element.span().start, element.get_mut(), rest)?;
            }
        }
        if found {
            return Ok(());
        }
        let allowed = format!("it is a list: 1 to {count}, the `name` of one, or `{EVERY}`");
        Err(self.error(&format!("`{name}` is not in it; {allowed}")))
    }
}

/// The name of an element of a list.
fn name_of<'v>(value: &'v DeValue<'_>) -> Option<&'v str> {
    let DeValue::Table(table) = value else { return None };
    table.get("name")?.get_ref().as_str()
}

/// A value all of which stands at `byte`.
fn moved(value: DeValue<'_>, byte: usize) -> DeValue<'_> {
    match value {
        DeValue::Array(list) => {
            let at = |value| moved_spanned(value, byte);
            DeValue::Array(list.into_iter().map(at).collect())
        }
        DeValue::Table(table) => {
            let key = |key: Spanned<_>| Spanned::new(byte..byte, key.into_inner());
            let at = |(name, value)| (key(name), moved_spanned(value, byte));
            DeValue::Table(table.into_iter().map(at).collect())
        }
        other => other,
    }
}

fn moved_spanned(value: Spanned<DeValue<'_>>, byte: usize) -> Spanned<DeValue<'_>> {
    Spanned::new(byte..byte, moved(value.into_inner(), byte))
}
