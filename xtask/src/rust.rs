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

/// Every string of a file with its line, as it is written; comments, attributes and tests have none.
pub(crate) fn strings(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    if let Ok(stream) = source.parse() {
        strings_of(stream, &mut found);
    }
    found
}

fn strings_of(stream: TokenStream, found: &mut Vec<(usize, String)>) {
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.ends_with(['"', '#']) {
                    found.push((literal.span().start().line, text));
                }
            }
            TokenTree::Group(group) => strings_of(group.stream(), found),
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                tokens.next_if(|token| token.to_string() == "!");
                let attribute = tokens.next().map_or(String::new(), |token| token.to_string());
                if attribute.replace(' ', "") == "[cfg(test)]" {
                    skip_item(&mut tokens);
                }
            }
            _ => {}
        }
    }
}

/// Passes over an item: up to its braces, or to the `;` where it has none.
fn skip_item(tokens: &mut impl Iterator<Item = TokenTree>) {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    tokens.find(ends);
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
    fn strings_are_those_of_code_that_ships() {
        let found = strings(
            "//! \"no\"\nf(\"a\", [b\"b\", 'c'], r#\"d\"#);\n#[doc = \"no\"] #[cfg(test)] use a::b;\n\
             #[cfg(test)]\nmod tests { fn f() { g(\"no\") } }\nconst E: &str = \"e\";",
        );
        let lines: Vec<_> = found.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!(lines, [(2, "\"a\""), (2, "b\"b\""), (2, "r#\"d\"#"), (6, "\"e\"")]);
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
