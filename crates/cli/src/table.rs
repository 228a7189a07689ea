//! A table of text: columns as wide as what is in them.

use anstream::adapter::strip_str;

use crate::text::{DIM, styled};

/// Columns between two columns.
const GAP: &str = "  ";

/// A table under construction.
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Columns of words.
    pub(crate) left: Vec<usize>,
}

impl Table {
    /// An empty table. Columns are flush right, as numbers are.
    pub(crate) fn new(head: &[impl AsRef<str>]) -> Self {
        let head = head.iter().map(|name| name.as_ref().to_owned()).collect();
        Self { head, rows: Vec::new(), left: Vec::new() }
    }

    /// Makes columns flush left, as words are.
    pub(crate) fn left(mut self, columns: &[usize]) -> Self {
        self.left = columns.to_vec();
        self
    }

    /// Adds a row, a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as lines.
    pub(crate) fn render(&self) -> String {
        self.render_within(None, 0)
    }

    /// The table as lines of at most `limit` columns, as far as that can be: what is too wide is
    /// continued below, with the first `keys` columns again.
    pub(crate) fn render_within(&self, limit: Option<usize>, keys: usize) -> String {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| all().map(|row| width(&row[column])).max().unwrap_or(0))
            .collect();
        let mut out = String::new();
        for columns in blocks(&widths, limit, keys) {
            out.push_str(&styled(DIM, &self.line(&self.head, &columns, &widths)));
            out.push('\n');
            for row in &self.rows {
                out.push_str(&self.line(row, &columns, &widths));
                out.push('\n');
            }
        }
        out
    }

    fn line(&self, cells: &[String], columns: &[usize], widths: &[usize]) -> String {
        let mut line = String::new();
        for (place, &column) in columns.iter().enumerate() {
            let cell = &cells[column];
            let pad = " ".repeat(widths[column] - width(cell));
            let is_left = self.left.contains(&column);
            let (before, after) = if is_left { ("", pad.as_str()) } else { (pad.as_str(), "") };
            line.push_str(if place == 0 { "" } else { GAP });
            line.extend([before, cell, after]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The columns of each block, so that no block is wider than `limit`.
fn blocks(widths: &[usize], limit: Option<usize>, keys: usize) -> Vec<Vec<usize>> {
    let limit = limit.unwrap_or(usize::MAX);
    let wide = |columns: &[usize]| -> usize {
        columns.iter().map(|&column| widths[column] + GAP.len()).sum::<usize>() - GAP.len()
    };
    let keys: Vec<usize> = (0..keys).collect();
    let mut blocks = vec![keys.clone()];
    for column in keys.len()..widths.len() {
        let block = blocks.last_mut().expect("there is one from the beginning");
        block.push(column);
        if block.len() > keys.len() + 1 && wide(block) > limit {
            block.pop();
            blocks.push(keys.iter().copied().chain([column]).collect());
        }
    }
    blocks
}

/// Columns of the screen that standard output is, where it is one.
pub(crate) fn screen_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(width.0))
}

/// Columns that a cell takes on the screen.
pub(crate) fn width(cell: &str) -> usize {
    strip_str(cell).map(|part| part.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_wide_is_continued_below_with_its_names_again() {
        let mut table = Table::new(&["name", "IOPS", "KAVG", "DAVG"]).left(&[0]);
        table.row(["a", "1", "0.5", "0.25"].map(String::from).to_vec());
        table.row(["bb", "10", "0.5", ""].map(String::from).to_vec());
        let plain = |limit| strip_str(&table.render_within(limit, 1)).to_string();
        let whole = "name  IOPS  KAVG  DAVG\na        1   0.5  0.25\nbb      10   0.5\n";
        assert_eq!(plain(None), whole);
        assert_eq!(plain(Some(22)), whole);
        let parts = "name  IOPS  KAVG\na        1   0.5\nbb      10   0.5\n\
                     name  DAVG\na     0.25\nbb\n";
        assert_eq!(plain(Some(21)), parts);
    }

    #[test]
    fn styles_take_no_columns() {
        assert_eq!(width(&styled(DIM, "abc")), 3);
    }
}
