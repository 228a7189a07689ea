//! A table of text: columns as wide as what is in them.

use anstream::adapter::strip_str;

use crate::text::{DIM, styled};

/// Columns between two columns.
const GAP: &str = "  ";

/// A table under construction.
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    left: Vec<usize>,
}

impl Table {
    /// An empty table. Columns are flush right, as numbers are.
    pub(crate) fn new(head: &[&str]) -> Self {
        let head = head.iter().map(|&name| name.to_owned()).collect();
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
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| all().map(|row| width(&row[column])).max().unwrap_or(0))
            .collect();
        let mut out = styled(DIM, &self.line(&self.head, &widths));
        out.push('\n');
        for row in &self.rows {
            out.push_str(&self.line(row, &widths));
            out.push('\n');
        }
        out
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (column, (cell, &wide)) in cells.iter().zip(widths).enumerate() {
            let pad = " ".repeat(wide - width(cell));
            let is_left = self.left.contains(&column);
            let (before, after) = if is_left { ("", pad.as_str()) } else { (pad.as_str(), "") };
            line.push_str(if column == 0 { "" } else { GAP });
            line.extend([before, cell, after]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Columns that a cell takes on the screen.
pub(crate) fn width(cell: &str) -> usize {
    strip_str(cell).map(|part| part.chars().count()).sum()
}
