//! Words as shells have them: quoting for a host's shell and for PowerShell, and back.

use alloc::{format, string::String, vec::Vec};

use crate::Refusal;

/// A name as one word of a host's shell.
#[must_use]
pub fn shell(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:-/=,+@".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return name.into();
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}

/// A name as a string of PowerShell.
#[must_use]
pub fn powershell(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
}

/// Words as a shell splits them: single and double quotes, and a backslash outside of them.
pub(crate) fn split_words(line: &str) -> Result<Vec<String>, Refusal> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == '\\' => word.get_or_insert_default().extend(chars.next()),
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".into());
    }
    words.extend(word);
    Ok(words)
}

/// The word of PowerShell that `text` begins with, a string in single quotes or plain, and what
/// follows it.
pub(crate) fn powershell_word(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('\'') else {
        let end = text.find([' ', ';', '}', ')', '|']).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].into(), &text[end..]));
    };
    let mut word = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        word.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                word.push('\'');
                rest = more;
            }
            None => return Some((word, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_a_command() {
        assert_eq!(shell("naa.624a9370"), "naa.624a9370");
        assert_eq!(shell("a; reboot"), "'a; reboot'");
        assert_eq!(shell("it's"), "'it'\\''s'");
        assert_eq!(powershell("it's"), "'it''s'");
    }

    #[test]
    fn quoted_names_come_back() {
        for name in ["naa.1", "a; reboot", "it's", "''", "a \"b\" \\c"] {
            assert_eq!(split_words(&shell(name)).unwrap(), [name]);
            assert_eq!(powershell_word(&powershell(name)), Some((name.into(), "")));
        }
    }
}
