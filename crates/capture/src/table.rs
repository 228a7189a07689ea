//! Recordings as one plain table, for spreadsheets, data frames and databases.
//!
//! A row is an object at an instant: host, time, kind, name, what it belongs to, and a column for
//! each counter by its key. An empty cell or null is a value that the source does not have.

use std::io::{self, Write};

use counters::{Counter, Entity, EntityId, Recording, sorted::Ordered};

/// The columns of names, in the order of [`row_names`].
pub const ROW_NAMES: [&str; 6] = ["host", "kind", "object", "vm", "device", "adapter"];

/// A cell of a table that comes row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A name.
    Text(&'a str),
    /// A figure, not NaN.
    Number(f64),
    /// Nothing is known.
    None,
}

/// Writes a row as CSV.
///
/// # Errors
/// Those of `out`.
pub fn write_csv_row(cells: &[Cell<'_>], out: &mut impl Write) -> io::Result<()> {
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        match cell {
            Cell::Text(text) => out.write_all(csv_cell(text).as_bytes())?,
            Cell::Number(number) => write!(out, "{number}")?,
            Cell::None => {}
        }
    }
    writeln!(out)
}

/// Writes the table as CSV, with times as `2026-03-02T10:00:00Z`.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(recordings: &[Recording], out: &mut impl Write) -> io::Result<()> {
    let counters = counters(recordings);
    let keys: Vec<&str> = counters.iter().map(|counter| counter.info().key).collect();
    writeln!(out, "time,{},{}", ROW_NAMES.join(","), keys.join(","))?;
    for recording in recordings {
        for (id, entity) in (0..).map(EntityId).zip(recording.entities()) {
            let names = row_names(recording, entity).map(|name| csv_cell(name.unwrap_or_default()));
            let names = names.join(",");
            for (sample, &time_ms) in recording.times_ms.iter().enumerate() {
                write!(out, "{},{names}", iso(time_ms))?;
                for &counter in &counters {
                    match recording.value(id, counter, sample) {
                        Some(value) => write!(out, ",{value}")?,
                        None => write!(out, ",")?,
                    }
                }
                writeln!(out)?;
            }
        }
    }
    out.flush()
}

/// Every counter that a recording has, in the order of the table of counters.
pub(crate) fn counters(recordings: &[Recording]) -> Vec<Counter> {
    let all = recordings.iter().flat_map(|recording| recording.columns().map(|column| column.1));
    all.into_set().into_iter().collect()
}

/// What an object is called and belongs to, as in [`ROW_NAMES`].
#[must_use]
pub fn row_names<'a>(recording: &'a Recording, entity: &'a Entity) -> [Option<&'a str>; 6] {
    let name = |id: Option<EntityId>| id.map(|id| recording.entity(id).name.as_str());
    [
        Some(&recording.host),
        Some(entity.kind.name()),
        Some(&entity.name),
        name(entity.vm),
        name(entity.device),
        name(entity.adapter),
    ]
}

/// What a spreadsheet takes for the beginning of a formula, as wide letters as well.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// A name as a cell of CSV that people open, quoted where it has to be; one that a spreadsheet would
/// take for a formula has an apostrophe in front, which makes it text.
#[must_use]
pub fn csv_cell(name: &str) -> String {
    if name.starts_with(FORMULA) {
        return csv_cell(&format!("'{name}"));
    }
    if name.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.into()
    }
}

fn iso(time_ms: i64) -> String {
    let stamp = crate::format_stamp(time_ms);
    // MM/DD/YYYY HH:MM:SS; years beyond 9999 have more digits.
    let (date, time) = stamp.split_once(' ').unwrap_or((&stamp, ""));
    let (month_day, year) = date.rsplit_once('/').unwrap_or((date, ""));
    let millis = time_ms.rem_euclid(1_000);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    format!("{year}-{}T{time}{fraction}Z", month_day.replace('/', "-"))
}

#[cfg(test)]
pub(crate) mod tests {
    use counters::Kind;

    use super::*;

    pub(crate) fn recording() -> Recording {
        let mut recording = Recording::new("esx01".into());
        recording.times_ms = vec![1_772_445_600_000, 1_772_445_605_500];
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        let mut world = Entity::new(Kind::World, "naa.1-7".into());
        world.device = Some(device);
        recording.add_entity(world);
        let nfs = Entity::new(Kind::NfsVolume, "a, \"b\"".into());
        recording.add_entity(nfs);
        recording.set_column(device, Counter::Load, vec![1.97, f64::NAN]);
        recording.set_column(EntityId(1), Counter::Shares, vec![1000.0, 1000.0]);
        recording
    }

    #[test]
    fn no_name_is_run_as_a_formula() {
        assert_eq!(csv_cell("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(["@vm", "+1", "-vm", "＝1"].map(csv_cell), ["'@vm", "'+1", "'-vm", "'＝1"]);
        assert_eq!(csv_cell("naa.6=1"), "naa.6=1");
    }

    #[test]
    fn csv_has_a_row_for_every_object_and_instant() {
        let mut out = Vec::new();
        write_csv(&[recording()], &mut out).expect("memory takes all");
        let expected = "\
time,host,kind,object,vm,device,adapter,shares,load
2026-03-02T10:00:00Z,esx01,device,naa.1,,,,,1.97
2026-03-02T10:00:05.500Z,esx01,device,naa.1,,,,,
2026-03-02T10:00:00Z,esx01,world,naa.1-7,,naa.1,,1000,
2026-03-02T10:00:05.500Z,esx01,world,naa.1-7,,naa.1,,1000,
2026-03-02T10:00:00Z,esx01,nfs volume,\"a, \"\"b\"\"\",,,,,
2026-03-02T10:00:05.500Z,esx01,nfs volume,\"a, \"\"b\"\"\",,,,,
";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
