//! Links between the project's Markdown files lead somewhere: the file is there, and so is the
//! heading. Nothing is asked of the network.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::house::{File, Finding, House};

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let markdown = |file: &&File| file.path.ends_with(".md");
    house.files.iter().filter(markdown).flat_map(|file| of_file(house, file)).collect()
}

fn of_file(house: &House, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (target, range) in links(&file.text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let line = file.text[..range.start].lines().count().max(1);
        let (path, heading) = target.split_once('#').unwrap_or((&target, ""));
        let path = if path.is_empty() { file.path.clone() } else { beside(&file.path, path) };
        let there = house.root.join(&path).exists() || house.file(&path).is_some();
        let missing_heading = !heading.is_empty()
            && house.file(&path).is_some_and(|file| !anchors(&file.text).contains(&heading.into()));
        if !there || missing_heading {
            findings.push(file.at(line, format!("`{target}` leads nowhere")));
        }
    }
    findings
}

fn links(text: &str) -> Vec<(String, Range<usize>)> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    events
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some((dest_url.into_string(), range))
            }
            _ => None,
        })
        .collect()
}

/// The path of `target` as seen from the folder of `from`.
fn beside(from: &str, target: &str) -> String {
    let mut parts: Vec<_> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// What the headings of a file are linked by: lower case, punctuation dropped, `-` for a blank.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(words)) => words.push_str(&text),
            (Event::End(TagEnd::Heading(_)), _) => anchors.extend(heading.take().map(anchor)),
            _ => {}
        }
    }
    anchors
}

fn anchor(heading: String) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let house = |link: &str| {
            let text = format!("# A `stack`, level by level\n\nsee [it]({link})\n");
            House::of(&[("docs/guides/a.md", &text), ("docs/b.md", "# B\n")])
        };
        for (link, findings) in [
            ("../b.md", 0),
            ("../b.md#b", 0),
            ("#a-stack-level-by-level", 0),
            ("https://example.org/gone", 0),
            ("../missing.md", 1),
            ("../b.md#c", 1),
            ("#d", 1),
        ] {
            assert_eq!(check(&house(link)).len(), findings, "{link}");
        }
    }
}
