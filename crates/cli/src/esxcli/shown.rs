//! What a command of esxcli shows: objects with their fields, as people read them or as programs do
//! (`esxcli --formatter=csv`).

use std::collections::BTreeMap;

use capture::csv_cell;
use clap::ValueEnum;
use counters::sorted::Ordered;
use serde_json::Value;

use crate::{json, table::width, text::clean};

/// For programs, by the names that esxcli has for it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Formatter {
    /// A line for each object, keys without spaces and in the order of the alphabet
    Csv,
    /// A list of objects
    Json,
}

/// What a command shows of a host.
pub(crate) struct Shown {
    pub(super) layout: Layout,
    pub(super) objects: Vec<Object>,
}

/// How people read it.
pub(super) enum Layout {
    /// Its name, and below it a line for each key; with an empty line between two objects.
    Blocks,
    /// Headings, a line of dashes that says how wide the columns are, rows.
    Table {
        heads: &'static [&'static str],
        /// Columns that are flush right.
        numbers: &'static [usize],
    },
}

/// One of them.
#[derive(Default)]
pub(super) struct Object {
    /// The name that stands above its fields, and the key that it has for programs.
    pub(super) name: Option<(&'static str, String)>,
    pub(super) fields: Vec<(String, String)>,
}

impl Object {
    /// Everything, by key: a name that is a field as well is there once.
    fn all(&self) -> BTreeMap<&str, &str> {
        let name = self.name.iter().map(|(key, name)| (*key, name.as_str()));
        name.chain(self.fields.iter().map(|(key, value)| (key.as_str(), value.as_str()))).into_map()
    }
}

impl Shown {
    /// An output of blocks, without any yet.
    pub(super) const fn blocks() -> Self {
        Self { layout: Layout::Blocks, objects: Vec::new() }
    }

    /// An output that is a table; each row has a cell for each heading.
    pub(super) fn table(
        heads: &'static [&'static str],
        numbers: &'static [usize],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Self {
        let object = |row: Vec<String>| {
            let keys = heads.iter().map(|head| (*head).to_owned());
            Object { name: None, fields: keys.zip(row).collect() }
        };
        Self { layout: Layout::Table { heads, numbers }, objects: rows.map(object).collect() }
    }

    /// Begins a block that has a name; programs find it under `key`.
    pub(super) fn begin(&mut self, key: &'static str, name: &str) {
        self.objects.push(Object { name: Some((key, clean(name))), fields: Vec::new() });
    }

    /// Begins a block that has none.
    pub(super) fn begin_unnamed(&mut self) {
        self.objects.push(Object::default());
    }

    /// Adds a line to the block that was begun last.
    pub(super) fn field(&mut self, key: &str, value: impl ToString) {
        if let Some(object) = self.objects.last_mut() {
            object.fields.push((clean(key), clean(&value.to_string())));
        }
    }

    pub(super) fn fields(&mut self, fields: &[(&str, &str)]) {
        fields.iter().for_each(|(key, value)| self.field(key, value));
    }

    /// As a formatter has it, or else as people read it.
    pub(crate) fn render(&self, formatter: Option<Formatter>) -> String {
        match (formatter, &self.layout) {
            (Some(Formatter::Csv), _) => self.csv(),
            (Some(Formatter::Json), _) => self.json(),
            (None, Layout::Blocks) => self.as_blocks(),
            (None, Layout::Table { heads, numbers }) => self.as_table(heads, numbers),
        }
    }

    fn as_blocks(&self) -> String {
        let block = |object: &Object| {
            let name = object.name.iter().map(|(_, name)| format!("{name}\n"));
            let lines = object.fields.iter().map(|(key, value)| {
                let line = format!("   {key}: {value}");
                format!("{}\n", line.trim_end())
            });
            name.chain(lines).collect::<String>()
        };
        self.objects.iter().map(block).collect::<Vec<_>>().join("\n")
    }

    fn as_table(&self, heads: &[&str], numbers: &[usize]) -> String {
        let cell = |object: &Object, column: usize| width(&object.fields[column].1);
        let widest = |column: usize| self.objects.iter().map(|object| cell(object, column)).max();
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| heads[column].len().max(widest(column).unwrap_or(0)))
            .collect();
        let line = |cells: Vec<&str>| {
            let padded = cells.into_iter().enumerate().map(|(column, cell)| {
                let pad = " ".repeat(widths[column].saturating_sub(width(cell)));
                if numbers.contains(&column) { pad + cell } else { cell.to_owned() + &pad }
            });
            let line = padded.collect::<Vec<_>>().join("  ");
            format!("{}\n", line.trim_end())
        };
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let mut out = line(heads.to_vec());
        out.push_str(&format!("{}\n", rule.join("  ")));
        for object in &self.objects {
            out.push_str(&line(object.fields.iter().map(|(_, cell)| cell.as_str()).collect()));
        }
        out
    }

    /// As esxcli has it: keys without their spaces and sorted, a comma behind the last column too.
    fn csv(&self) -> String {
        let mut columns = BTreeMap::new();
        let mut column = |key: &str| {
            columns.insert(key.replace(' ', ""), key.to_owned());
        };
        match &self.layout {
            Layout::Table { heads, .. } => heads.iter().for_each(|head| column(head)),
            Layout::Blocks => {
                self.objects.iter().flat_map(Object::all).for_each(|(key, _)| column(key));
            }
        }
        if columns.is_empty() {
            return String::new();
        }
        let line = |cells: Vec<&str>| {
            // "-1" is no limit, and no formula.
            let as_cell = |cell: &str| match cell.parse::<i64>() {
                Ok(_) => cell.to_owned(),
                Err(_) => csv_cell(cell),
            };
            cells.into_iter().map(|cell| as_cell(cell) + ",").collect::<String>() + "\n"
        };
        let rows = self.objects.iter().map(|object| {
            let all = object.all();
            line(columns.values().map(|key| *all.get(key.as_str()).unwrap_or(&"")).collect())
        });
        line(columns.keys().map(String::as_str).collect()) + &rows.collect::<String>()
    }

    /// Numbers are numbers there, and true and false are what they are.
    fn json(&self) -> String {
        let typed = |text: &str| {
            let whole = text.parse::<u64>().map(Value::from);
            let number = whole.or_else(|_| text.parse::<i64>().map(Value::from));
            number.unwrap_or_else(|_| {
                text.parse::<bool>().map_or_else(|_| Value::from(text), Value::from)
            })
        };
        let object = |object: &Object| {
            let fields =
                object.all().into_iter().map(|(key, value)| (key.to_owned(), typed(value)));
            Value::Object(json::object(fields))
        };
        format!("{:#}\n", Value::Array(self.objects.iter().map(object).collect()))
    }
}
