//! Every figure of every run as one table, for data frames and databases: CSV or Parquet. The columns
//! are described in `docs/reference/sweep.md`.

use std::io::Write;

use capture::{Cell, ROW_NAMES, write_csv_row};

use crate::{Result, captures::is_parquet, json::seconds, output::Output};

use super::{
    figures::{Figures, keys},
    job::Job,
    store::Store,
};

/// The version of the columns.
const VERSION: f64 = 1.0;
/// The columns of a run's window, behind those of the axes.
const WINDOW: [(&str, bool); 4] =
    [("seed", true), ("window", false), ("from_s", true), ("to_s", true)];

/// Writes all runs, in their order.
pub(crate) fn write(job: &Job, store: &mut Store, output: Output) -> Result<()> {
    let columns = columns(job);
    if !is_parquet(output.name()) {
        return output.write(|mut file| {
            let names: Vec<_> = columns.iter().map(|(name, _)| Cell::Text(name)).collect();
            write_csv_row(&names, &mut file)?;
            each(job, store, &mut |cells| Ok(write_csv_row(cells, &mut file)?))?;
            Ok(file.flush()?)
        });
    }
    #[cfg(feature = "parquet")]
    return output.write(|file| {
        let columns = columns.iter().map(|(name, is_number)| (name.as_str(), *is_number));
        let mut table = capture::ParquetRows::new(columns, file)?;
        each(job, store, &mut |cells| Ok(table.row(cells)?))?;
        Ok(table.finish()?)
    });
    #[cfg(not(feature = "parquet"))]
    Err("this kavg was built without Parquet; name a .csv".into())
}

/// The columns, and whether they hold numbers.
fn columns(job: &Job) -> Vec<(String, bool)> {
    let mut columns = vec![("version".to_owned(), true)];
    columns.extend(job.axes.iter().map(|axis| (axis.name.clone(), axis.is_plain())));
    columns.extend(WINDOW.map(|(name, is_number)| (name.to_owned(), is_number)));
    columns.extend(ROW_NAMES.map(|name| (name.to_owned(), false)));
    columns.extend(keys().into_iter().map(|key| (key, true)));
    columns
}

/// Hands over every row.
fn each(
    job: &Job,
    store: &mut Store,
    take: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>,
) -> Result<()> {
    for run in 0..job.runs() {
        let (point, seed) = job.place(run);
        let mut start = vec![Cell::Number(VERSION)];
        start.extend(job.values(point).map(|(axis, value)| match value.parse() {
            Ok(number) if axis.is_plain() => Cell::Number(number),
            _ => Cell::Text(value),
        }));
        start.push(Cell::Number(seed as f64));
        of_run(&store.get(run)?, &start, take)?;
    }
    Ok(())
}

/// The rows of a run behind their `start`.
fn of_run(
    figures: &Figures,
    start: &[Cell<'_>],
    take: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>,
) -> Result<()> {
    for window in &figures.windows {
        for row in &window.rows {
            let mut cells = start.to_vec();
            cells.push(Cell::Text(&window.name));
            cells.extend([window.from, window.to].map(|at| Cell::Number(seconds(at))));
            cells.extend(
                row.names.iter().map(|name| name.as_deref().map_or(Cell::None, Cell::Text)),
            );
            cells.extend(row.figures.iter().map(|value| value.map_or(Cell::None, Cell::Number)));
            take(&cells)?;
        }
    }
    Ok(())
}
