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

/// What PowerShell takes for a single quote, the typographic ones too.
const QUOTES: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];
/// What its cmdlets take for a wildcard in a name, and what takes that sense away.
const WILDCARDS: [char; 5] = ['*', '?', '[', ']', ESCAPE];
const ESCAPE: char = '`';

/// A text as a string of PowerShell.
pub(crate) fn powershell(text: &str) -> String {
    format!("'{}'", doubled(text, &QUOTES, |c| c))
}

/// A name as a string of PowerShell for a cmdlet that would read wildcards in it.
#[must_use]
pub fn powershell_name(name: &str) -> String {
    powershell(&doubled(name, &WILDCARDS, |_| ESCAPE))
}

/// A text with something before each of some characters.
fn doubled(text: &str, of: &[char], before: impl Fn(char) -> char) -> String {
    let mut out = String::new();
    for c in text.chars() {
        out.extend(of.contains(&c).then(|| before(c)));
        out.push(c);
    }
    out
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

/// The word of PowerShell that `text` begins with, a string in single quotes, one in double quotes without
/// anything that is to be filled in or escaped, or plain, and what follows it.
pub(crate) fn powershell_word(text: &str) -> Option<(String, &str)> {
    if let Some(rest) = text.strip_prefix('"') {
        let (word, rest) = rest.split_once('"')?;
        return (!word.contains(['$', ESCAPE])).then(|| (word.into(), rest));
    }
    let Some(mut rest) = text.strip_prefix('\'') else {
        let end = text.find([' ', ',', ';', '}', ')', '|']).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].into(), &text[end..]));
    };
    let mut word = String::new();
    loop {
        let (part, after) = rest.split_at(rest.find(QUOTES)?);
        word.push_str(part);
        let mut after = after.chars();
        after.next();
        rest = after.as_str();
        match rest.chars().next().filter(|next| QUOTES.contains(next)) {
            Some(quote) => {
                word.push(quote);
                rest = &rest[quote.len_utf8()..];
            }
            None => return Some((word, rest)),
        }
    }
}

/// A name as it is, of one in which wildcards are escaped as [`powershell_name`] does it; `None` where one is not.
pub(crate) fn plain_name(word: &str) -> Option<String> {
    let mut chars = word.chars();
    let mut name = String::new();
    while let Some(c) = chars.next() {
        match c {
            ESCAPE => name.extend(chars.next()),
            c if WILDCARDS.contains(&c) => return None,
            c => name.push(c),
        }
    }
    Some(name)
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
        assert_eq!(powershell("x\u{2019}; y"), "'x\u{2019}\u{2019}; y'");
        assert_eq!(powershell_name("*[a]"), "'`*`[a`]'");
        assert_eq!(plain_name("web*"), None);
    }

    #[test]
    fn quoted_names_come_back() {
        for name in ["naa.1", "a; reboot", "it's", "''", "a \"b\" \\c", "\u{201b}\u{2018}*`[1]?"] {
            assert_eq!(split_words(&shell(name)).unwrap(), [name]);
            assert_eq!(powershell_word(&powershell(name)), Some((name.into(), "")));
            let written = powershell_name(name);
            let (word, rest) = powershell_word(&written).unwrap();
            assert_eq!((plain_name(&word).as_deref(), rest), (Some(name), ""));
        }
    }
}
