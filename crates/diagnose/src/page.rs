//! Text for a terminal of 80 columns: paragraphs, labels, tables. Names come from files, so what
//! could steer a terminal is replaced as it is put on the page.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use crate::number;

/// Columns of text.
pub(crate) const WIDTH: usize = 78;
/// Columns before the text behind a label.
const INDENT: usize = 13;

/// What is the answer, or the title of something.
pub(crate) const BOLD: Style = Style::new().bold();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What hurts.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What helped.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Nothing in particular.
pub(crate) const PLAIN: Style = Style::new();

/// A page under construction.
pub(crate) struct Page {
    text: String,
    is_styled: bool,
}

impl Page {
    /// An empty page; with `is_styled`, in the colours of a terminal.
    pub(crate) const fn new(is_styled: bool) -> Self {
        Self { text: String::new(), is_styled }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// A line that is never wrapped: one to type, or one that fits.
    pub(crate) fn line(&mut self, style: Style, line: &str) {
        let line = clean(line);
        let _ = match self.is_styled && style != PLAIN && !line.is_empty() {
            true => writeln!(self.text, "{style}{line}{style:#}"),
            false => writeln!(self.text, "{line}"),
        };
    }

    /// Lines that were laid out elsewhere, names cleaned.
    pub(crate) fn picture(&mut self, lines: &str) {
        if !lines.is_empty() {
            self.gap();
            self.text.push_str(lines);
        }
    }

    /// How many there are beyond those that are shown.
    pub(crate) fn more(&mut self, all: usize, shown: usize, what: &str) {
        if let Some(rest) = all.checked_sub(shown).filter(|rest| *rest > 0) {
            let what = if rest == 1 { what.trim_end_matches('s') } else { what };
            self.line(DIM, &format!("   and {rest} more {what}"));
        }
    }

    pub(crate) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Text wrapped behind an indent, and behind another from the second line on. A name that is
    /// longer than a line is broken.
    pub(crate) fn wrap(&mut self, style: Style, first: &str, rest: &str, text: &str) {
        let longest = WIDTH - first.chars().count().max(rest.chars().count()).min(WIDTH - 1);
        let mut line = first.to_owned();
        let mut is_empty = true;
        for word in text.split_whitespace().flat_map(|word| broken(word, longest)) {
            if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(style, &line);
                line = rest.to_owned();
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(&word);
            is_empty = false;
        }
        self.line(style, &line);
    }

    pub(crate) fn paragraph(&mut self, style: Style, text: &str) {
        self.wrap(style, "", "", text);
    }

    /// Text behind a label, wrapped under itself.
    pub(crate) fn labelled(&mut self, label: &str, text: &str) {
        self.wrap(PLAIN, &format!("   {label:<9} "), &" ".repeat(INDENT), text);
    }

    /// A table behind an indent: the first column flush left, the others flush right. `styles` has
    /// one for each row.
    pub(crate) fn table(&mut self, indent: usize, head: &[&str], rows: &[(Style, Vec<String>)]) {
        let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
        let cells = || std::iter::once(&head).chain(rows.iter().map(|(_, row)| row));
        let cell = |row: &[String], column: usize| row.get(column).map_or(0, |c| c.chars().count());
        let widths: Vec<usize> = (0..head.len())
            .map(|column| cells().map(|row| cell(row, column)).max().unwrap_or(0))
            .collect();
        let line = |row: &[String]| {
            let mut line = " ".repeat(indent);
            for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match place {
                    0 => write!(line, "{cell:<width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            line.trim_end().chars().take(WIDTH + 2).collect::<String>()
        };
        self.line(DIM, &line(&head));
        for (style, row) in rows {
            self.line(*style, &line(row));
        }
    }
}

/// A word in pieces of so many letters.
fn broken(word: &str, longest: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(longest.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// A change with its sign: `+1,234`, `-0.5`, `0`.
pub(crate) fn signed(value: f64) -> String {
    let text = number(value.abs());
    match text.as_str() {
        "0" => text,
        _ => format!("{}{text}", if value < 0.0 { '-' } else { '+' }),
    }
}

/// Text without anything that could steer a terminal, or turn around what is read on it.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// Whether a character does something where it is shown instead of being seen: a control character
/// (C0, C1), a separator of lines or paragraphs, an annotation, or what Unicode calls
/// `Default_Ignorable_Code_Point`: it turns the direction of writing, joins or parts its neighbours,
/// or fills a place unseen, so that two names look alike.
#[must_use]
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}')
        || matches!(c, '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}')
        || matches!(c, '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}

/// A name in at most `width` columns, cut in the middle, where names differ least.
#[must_use]
pub fn fit(name: &str, width: usize) -> String {
    let name: Vec<char> = clean(name).chars().collect();
    if name.len() <= width {
        return name.into_iter().collect();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = name.split_at(kept.div_ceil(2).min(name.len()));
    let tail = tail.get(tail.len().saturating_sub(kept / 2)..).unwrap_or_default();
    head.iter().chain(&['…']).chain(tail).collect()
}
