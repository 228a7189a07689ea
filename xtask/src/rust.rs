//! Rust source as a stream of tokens, so that comments and strings are never taken for code and
//! functions inside of macros are seen as well.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A function of a file and the lines it takes, from `fn` to its last brace.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) length: usize,
}

/// Every function with a body, also nested ones and those inside of macros.
pub(crate) fn functions(source: &str) -> Vec<Function> {
    let mut found = Vec::new();
    each_level(source, &mut |tokens| found.extend(functions_of_level(tokens)));
    found
}

/// Every path of a file (`std::time::Instant`, `f64`) with its line; a single word is a path too.
pub(crate) fn paths(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    each_level(source, &mut |tokens| found.extend(paths_of_level(tokens)));
    found
}

/// What a file says of another module, by its path.
pub(crate) struct Mention {
    pub(crate) words: Vec<String>,
    /// The name under which it is passed on (`pub use`).
    pub(crate) exported: Option<String>,
}

/// The paths in `use`, each spelled out, and those that begin with `crate`, `super` or `self`; but
/// for those inside of a `mod tests`.
pub(crate) fn mentions(source: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    if let Ok(stream) = source.parse() {
        mentions_of(stream, &mut found);
    }
    found
}

/// A literal of a file.
#[derive(Debug)]
pub(crate) struct Literal {
    pub(crate) line: usize,
    /// As it is written.
    pub(crate) text: String,
    /// Whether it is the value of a constant, which has a name.
    pub(crate) is_named: bool,
    /// Whether it is shifted, or shifts something.
    pub(crate) is_shifted: bool,
}

impl Literal {
    /// Whether it is a string.
    pub(crate) fn is_string(&self) -> bool {
        self.text.ends_with(['"', '#'])
    }
}

/// Every literal of a file; comments, attributes and tests have none.
pub(crate) fn literals(source: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    if let Ok(stream) = source.parse() {
        literals_of(stream, false, &mut found);
    }
    found
}

fn mentions_of(stream: TokenStream, found: &mut Vec<Mention>) {
    let tokens: Vec<_> = stream.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(word) if word == "mod" && is_word(tokens.get(at + 1), "tests") => {
                at += 2
            }
            TokenTree::Ident(word) if word == "use" => {
                let is_end = |token: &TokenTree| is_punct(token, ';');
                let length = tokens[at..].iter().position(is_end).unwrap_or(tokens.len() - at);
                let is_public = tokens[..at].iter().rev().take(2).any(|t| is_word(Some(t), "pub"));
                let mut names = Vec::new();
                spell_out(&tokens[at + 1..at + length], &[], &mut names);
                found.extend(
                    names.into_iter().map(|(words, name)| Mention {
                        words,
                        exported: is_public.then_some(name),
                    }),
                );
                at += length;
            }
            TokenTree::Ident(_) => {
                let words = leading_path(&tokens[at..]);
                at += 3 * (words.len() - 1);
                if matches!(words[0].as_str(), "crate" | "super" | "self") && words.len() > 1 {
                    found.push(Mention { words, exported: None });
                }
            }
            TokenTree::Group(group) => mentions_of(group.stream(), found),
            _ => {}
        }
        at += 1;
    }
}

/// The words of the path that tokens begin with: an identifier, then each behind two colons.
fn leading_path(tokens: &[TokenTree]) -> Vec<String> {
    let mut words = Vec::new();
    for step in tokens.chunks(3) {
        let [TokenTree::Ident(word), rest @ ..] = step else { break };
        words.push(word.to_string());
        if !matches!(rest, [a, b] if is_punct(a, ':') && is_punct(b, ':')) {
            break;
        }
    }
    words
}

/// The paths of a `use` with the name that each is known by.
fn spell_out(tree: &[TokenTree], before: &[String], found: &mut Vec<(Vec<String>, String)>) {
    for branch in tree.split(|token| is_punct(token, ',')) {
        let path = leading_path(branch);
        let rest = &branch[(3 * path.len()).saturating_sub(2).min(branch.len())..];
        let words = [before, &path].concat();
        match branch.iter().find_map(|token| match token {
            TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        }) {
            Some(inner) => spell_out(&inner.into_iter().collect::<Vec<_>>(), &words, found),
            None => {
                let alias = match rest {
                    [keyword, TokenTree::Ident(alias)] if is_word(Some(keyword), "as") => {
                        Some(alias.to_string())
                    }
                    _ => None,
                };
                let name = alias.or_else(|| words.last().cloned());
                found.extend(name.map(|name| (words, name)));
            }
        }
    }
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

fn is_punct(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == punct)
}

fn literals_of(stream: TokenStream, within_const: bool, found: &mut Vec<Literal>) {
    let tokens: Vec<_> = stream.into_iter().collect();
    let is_shift = |at: usize| {
        let two = tokens.get(at..at + 2);
        two.is_some_and(|two| ['<', '>'].iter().any(|c| two.iter().all(|t| is_punct(t, *c))))
    };
    let mut is_const = within_const;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(word) if word == "const" || word == "static" => {
                is_const = !is_word(tokens.get(at + 1), "fn");
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => is_const = within_const,
            TokenTree::Literal(literal) => found.push(Literal {
                line: literal.span().start().line,
                text: literal.to_string(),
                is_named: is_const,
                is_shifted: is_shift(at + 1) || at >= 2 && is_shift(at - 2),
            }),
            TokenTree::Group(group) => literals_of(group.stream(), is_const, found),
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                at += usize::from(tokens.get(at + 1).is_some_and(|token| is_punct(token, '!'))) + 1;
                let attribute = tokens.get(at).map_or(String::new(), ToString::to_string);
                if attribute.replace(' ', "") == "[cfg(test)]" {
                    at += item_length(&tokens[at + 1..]);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The tokens of an item: up to its braces, or to the `;` where it has none.
fn item_length(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_punct(token, ';'),
    };
    tokens.iter().position(ends).map_or(tokens.len(), |end| end + 1)
}

/// Calls `visit` with the tokens of the file and of each group in it. What is no Rust is left to
/// the compiler.
fn each_level(source: &str, visit: &mut dyn FnMut(&[TokenTree])) {
    if let Ok(stream) = source.parse() {
        descend(stream, visit);
    }
}

fn descend(stream: TokenStream, visit: &mut dyn FnMut(&[TokenTree])) {
    let tokens: Vec<_> = stream.into_iter().collect();
    visit(&tokens);
    for token in tokens {
        if let TokenTree::Group(group) = token {
            descend(group.stream(), visit);
        }
    }
}

fn functions_of_level(tokens: &[TokenTree]) -> Vec<Function> {
    let mut found = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        let [TokenTree::Ident(keyword), TokenTree::Ident(name)] = pair else { continue };
        if keyword != "fn" {
            continue;
        }
        let line = keyword.span().start().line;
        if let Some(end) = end_of_body(&tokens[index..]) {
            found.push(Function { name: name.to_string(), line, length: end - line + 1 });
        }
    }
    found
}

/// The last line of the body; nothing where a `;` comes first.
fn end_of_body(tokens: &[TokenTree]) -> Option<usize> {
    tokens.iter().find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            Some(Some(group.span_close().end().line))
        }
        TokenTree::Punct(punct) if punct.as_char() == ';' => Some(None),
        _ => None,
    })?
}

fn paths_of_level(tokens: &[TokenTree]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            TokenTree::Ident(word) => {
                match found.last_mut().filter(|_| colons == 2) {
                    Some((_, path)) => *path = format!("{path}::{word}"),
                    None => found.push((word.span().start().line, word.to_string())),
                }
                colons = 0;
            }
            _ => colons = 0,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_macros_too_and_declarations_are_none() {
        let source = "fn one() {\n}\ntrait T { fn two(); }\nm! { fn three() {\n1;\n} }\n\
                      type F = fn(u8) -> u8;\n// fn four() {}\n";
        let found: Vec<_> =
            functions(source).into_iter().map(|f| (f.name, f.line, f.length)).collect();
        assert_eq!(found, [("one".into(), 1, 2), ("three".into(), 4, 3)]);
    }

    #[test]
    fn mentions_are_spelled_out() {
        let source = "pub(crate) use crate::a::{b::{C, self}, d as e};\nuse f::*;\n\
                      fn g() { super::h::i(); std::j(); }\nmod tests { use k; }";
        let found = mentions(source).into_iter().map(|m| (m.words.join("::"), m.exported));
        let exported = |path: &str, name: &str| (path.to_owned(), Some(name.to_owned()));
        let used = |path: &str| (path.to_owned(), None);
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                exported("crate::a::b::C", "C"),
                exported("crate::a::b::self", "self"),
                exported("crate::a::d", "e"),
                used("f"),
                used("super::h::i"),
            ]
        );
    }

    #[test]
    fn literals_are_those_of_code_that_ships() {
        let found = literals(
            "//! \"no\"\nf(\"a\", [b\"b\", 'c'], r#\"d\"#);\n#[doc = \"no\"] #[cfg(test)] use a::b;\n\
             #[cfg(test)]\nmod tests { fn f() { g(\"no\") } }\nconst E: &str = \"e\";",
        );
        let strings = found.iter().filter(|literal| literal.is_string());
        let lines: Vec<_> = strings.map(|found| (found.line, found.text.as_str())).collect();
        assert_eq!(lines, [(2, "\"a\""), (2, "b\"b\""), (2, "r#\"d\"#"), (6, "\"e\"")]);
    }

    #[test]
    fn a_number_is_named_or_shifted_or_neither() {
        let source = "const A: [u32; 1] = [64]; const fn f() -> u32 { g(32 << 20, 1 << 7, 255) }";
        let of = |found: &Literal| (found.text.clone(), found.is_named, found.is_shifted);
        let found: Vec<_> = literals(source).iter().map(of).collect();
        let expected = [
            ("1", true, false),
            ("64", true, false),
            ("32", false, true),
            ("20", false, true),
            ("1", false, true),
            ("7", false, true),
            ("255", false, false),
        ];
        assert_eq!(found, expected.map(|(text, named, shifted)| (text.into(), named, shifted)));
    }

    #[test]
    fn paths_are_joined_and_comments_and_strings_are_none() {
        let found = paths("use std::time::Instant;\n// f32\nlet x: f64 = \"f32\";");
        let words: Vec<_> = found.iter().map(|(line, path)| (*line, path.as_str())).collect();
        assert_eq!(
            words,
            [(1, "use"), (1, "std::time::Instant"), (3, "let"), (3, "x"), (3, "f64")]
        );
    }
}
