//! Markdown under construction. Whatever comes from a file is escaped as it is put on the sheet:
//! no name can end a cell, a row or a fence, or become a link, a tag or a heading.

use std::fmt::Write;

use crate::clean;

/// A sheet.
#[derive(Default)]
pub(super) struct Sheet(String);

impl Sheet {
    pub(super) fn finish(self) -> String {
        self.0
    }

    /// A heading, preceded by an empty line.
    pub(super) fn heading(&mut self, level: usize, text: &str) {
        self.block(&format!("{} {}", "#".repeat(level), escape(text)));
    }

    /// A paragraph.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.block(&escape(text));
    }

    /// A paragraph in bold.
    pub(super) fn bold(&mut self, text: &str) {
        self.block(&format!("**{}**", escape(text)));
    }

    /// A paragraph behind a label in bold.
    pub(super) fn labelled(&mut self, label: &str, text: &str) {
        self.block(&format!("**{label}:** {}", escape(text)));
    }

    /// A list behind a label; nothing for an empty one.
    pub(super) fn list(&mut self, label: &str, items: impl IntoIterator<Item = String>) {
        let items: Vec<_> = items.into_iter().map(|item| format!("* {}", escape(&item))).collect();
        if !items.is_empty() {
            self.block(&format!("**{label}:**\n\n{}", items.join("\n")));
        }
    }

    /// A table: the first `left` columns flush left, the others flush right; nothing without rows.
    pub(super) fn table(&mut self, head: &[&str], left: usize, rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let side = |column| if column < left { ":--".to_owned() } else { "--:".to_owned() };
        let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
        let ruler: Vec<String> = (0..head.len()).map(side).collect();
        let mut lines = vec![line(&head), line(&ruler)];
        lines.extend(rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
            line(&cells)
        }));
        self.block(&lines.join("\n"));
    }

    /// Lines to type; nothing without any.
    pub(super) fn fence(&mut self, language: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let lines: Vec<String> = lines.iter().map(|line| clean(line)).collect();
        let longest = lines.iter().map(|line| ticks(line)).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        self.block(&format!("{fence}{language}\n{}\n{fence}", lines.join("\n")));
    }

    fn block(&mut self, text: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.0, "{gap}{text}");
    }
}

/// The longest run of backticks.
fn ticks(line: &str) -> usize {
    line.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// One line in which nothing means anything to Markdown or HTML, but what stands between two single backticks: that is
/// code, in which nothing does either.
fn escape(text: &str) -> String {
    let text = clean(text);
    let mut escaped = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some((before, code, after)) = next_code(rest) {
        escape_into(&mut escaped, before);
        // A cell ends with a bar even there.
        escaped.push_str(&format!("`{}`", code.replace('|', "\\|")));
        rest = after;
    }
    escape_into(&mut escaped, rest);
    escaped
}

/// The first code of a text, with what stands before and behind it.
fn next_code(text: &str) -> Option<(&str, &str, &str)> {
    let bytes = text.as_bytes();
    let is_tick = |at: usize| bytes.get(at) == Some(&b'`');
    let is_single = |at: &usize| is_tick(*at) && !is_tick(at + 1) && !(*at > 0 && is_tick(at - 1));
    let mut singles = (0..bytes.len()).filter(is_single);
    let (open, close) = (singles.next()?, singles.next()?);
    Some((&text[..open], &text[open + 1..close], &text[close + 1..]))
}

fn escape_into(escaped: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A name must not call anybody in a ticket.
            '@' => escaped.push_str("@\u{2060}"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' => {
                escaped.extend(['\\', c]);
            }
            _ => escaped.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stays_code_and_ends_where_it_does() {
        assert_eq!(escape("a_b: `esxcli -m a_b|c <x>` *"), "a\\_b: `esxcli -m a_b\\|c <x>` \\*");
        assert_eq!(escape("``x`` `y"), "\\`\\`x\\`\\` \\`y");
    }

    #[test]
    fn names_end_neither_cell_nor_fence() {
        let mut sheet = Sheet::default();
        let name = "a|b`c</td>\n# d [x](y) @all \u{202e}";
        sheet.table(&["name"], 1, &[vec![name.into()]]);
        sheet.fence("sh", &[format!("```` {name}")]);
        let text = sheet.finish();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 7, "{text}");
        assert_eq!(
            lines[2],
            "| a\\|b\\`c&lt;/td&gt;\u{fffd}\\# d \\[x\\](y) @\u{2060}all \u{fffd} |"
        );
        assert_eq!((lines[4], lines[6]), ("`````sh", "`````"));
        assert!(lines[5].starts_with("```` a|b`c</td>\u{fffd}# d"));
    }
}
