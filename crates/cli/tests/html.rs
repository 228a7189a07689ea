//! `kavg diagnose --html`: the file that it writes, and what a browser makes of it.

mod common;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use common::kavg;
use tempfile::TempDir;

/// Pages of captures that the scenarios of the tests gave.
struct Pages {
    directory: TempDir,
}

impl Pages {
    fn new() -> Self {
        let pages = Self { directory: tempfile::tempdir().unwrap() };
        for (scenario, file) in [("two-queues.toml", "one.csv"), ("two-hosts.toml", "lab.csv")] {
            let said = kavg(&["run", scenario, "-q", "--csv", &pages.path(file)]);
            assert_eq!(said.code, 0, "{said:?}");
        }
        pages
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    /// The page of some captures; arguments that are no option name files.
    fn page(&self, arguments: &[&str]) -> String {
        let place = |argument: &&str| match argument.starts_with("--") {
            true => (*argument).to_owned(),
            false => self.path(argument),
        };
        let arguments: Vec<String> = arguments.iter().map(place).collect();
        let page = self.path("page.html");
        let mut all = vec!["diagnose", "--html", &page];
        all.extend(arguments.iter().map(String::as_str));
        let said = kavg(&all);
        assert!(said.code < 2, "{said:?}");
        std::fs::read_to_string(&page).unwrap()
    }

    /// What a browser made of the last page; nothing when there is no browser.
    fn browsed(&self) -> Option<String> {
        let browser = browser()?;
        let output = Command::new(browser)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--virtual-time-budget=10000",
            ])
            .arg(format!("--user-data-dir={}", self.path("profile")))
            .args(["--dump-dom", &format!("file://{}", self.path("page.html"))])
            .output()
            .unwrap();
        Some(String::from_utf8(output.stdout).unwrap())
    }
}

/// Chromium, where there is one.
fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).flat_map(|folder| names.map(|n| folder.join(n)));
    let found = all.find(|program| Path::is_file(program));
    if found.is_none() {
        testing::skipped("no browser to draw the page in: chromium is not on the PATH");
    }
    found
}

/// The value that the script left on the root element.
fn left<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once("<html")?;
    let (root, _) = rest.split_once('>')?;
    let (_, value) = root.split_once(&format!("data-{name}=\""))?;
    Some(value.split_once('"')?.0)
}

#[test]
fn the_charts_are_drawn_without_an_error() {
    let pages = Pages::new();
    let cases: [(&[&str], &str); 4] = [
        (&["one.csv"], "5"),
        (&["lab.esx-2.csv"], "5"),
        (&["lab.esx-1.csv", "lab.esx-2.csv"], "10"),
        (&["lab.esx-1.csv", "--compare", "lab.esx-2.csv"], "10"),
    ];
    for (captures, charts) in cases {
        pages.page(captures);
        let Some(document) = pages.browsed() else { return };
        assert_eq!(left(&document, "error"), None, "{captures:?}");
        assert_eq!(left(&document, "charts"), Some(charts), "{captures:?}");
        assert_eq!(document.matches("<canvas").count().to_string(), charts);
    }
}

#[test]
fn names_from_a_capture_cannot_act_in_a_browser() {
    let pages = Pages::new();
    let capture = std::fs::read_to_string(pages.path("one.csv")).unwrap();
    let act = "document.documentElement.dataset.error=1";
    for name in [
        format!("</script><script>{act}</script>"),
        format!("<img src=x onerror={act}>"),
        format!("\u{2028}';{act};'\u{202e}"),
        "<!--<script>".into(),
    ] {
        let hostile = capture.replace("sql", &name).replace("naa.6", &format!("{name}naa.6"));
        std::fs::write(pages.path("hostile.csv"), hostile).unwrap();
        let file = pages.page(&["hostile.csv"]);
        assert_eq!(file.matches("</script>").count(), 3, "{name}");
        let Some(document) = pages.browsed() else { return };
        assert_eq!(left(&document, "error"), None, "{name}");
        assert_ne!(left(&document, "charts"), None, "{name}");
    }
}

#[test]
fn the_file_is_complete_in_itself_and_small() {
    let pages = Pages::new();
    for captures in [["one.csv"].as_slice(), &["lab.esx-1.csv", "--compare", "lab.esx-2.csv"]] {
        let file = pages.page(captures);
        assert!(file.len() < 300_000, "{} bytes", file.len());
        for attribute in [" src=", " srcset=", "<link", "<iframe", "<object", "@import", "url("] {
            assert!(!file.contains(attribute), "{attribute}");
        }
        assert_eq!(file.matches("://").count(), 1, "the comment that names the chart library");
        for (at, _) in file.match_indices(" href=\"") {
            assert!(file[at..].starts_with(" href=\"#"), "{}", &file[at..at + 40]);
        }
        assert_eq!(unbalanced(&file), None);
        let named: Vec<_> =
            file.match_indices(" id=\"").map(|(at, _)| value(&file[at..])).collect();
        let mut distinct = named.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), named.len(), "{named:?}");
    }
}

fn value(attribute: &str) -> &str {
    attribute.split('"').nth(1).unwrap()
}

/// The first tag that is closed without having been opened, or left open.
fn unbalanced(file: &str) -> Option<String> {
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = file;
    while let Some((_, tag)) = rest.split_once('<') {
        let (inside, after) = tag.split_once('>')?;
        let name = inside.split(' ').next().unwrap();
        rest = match name {
            "script" | "style" => after.split_once(&format!("</{name}>"))?.1,
            _ => after,
        };
        match name.strip_prefix('/') {
            Some(name) if open.pop() == Some(name) => {}
            Some(_) => return Some(inside.into()),
            None if matches!(name, "script" | "style") || VOID.contains(&name) => {}
            None => open.push(name),
        }
    }
    open.pop().map(Into::into)
}

#[test]
fn a_page_that_cannot_be_written_is_one_clear_line() {
    let pages = Pages::new();
    let (capture, page) = (pages.path("one.csv"), pages.path("there/is/no/folder.html"));
    let said = kavg(&["diagnose", &capture, "--html", &page]);
    assert_eq!(said.code, 2);
    assert!(said.err.starts_with(&format!("kavg: {page}: ")), "{}", said.err);
}
