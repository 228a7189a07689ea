//! `kavg diagnose --html` and `kavg run --html`: the file that they write, and what a browser makes of it.

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
fn a_run_is_a_page_with_its_windows_and_expectations() {
    let pages = Pages::new();
    for (scenario, charts) in [("two-queues.toml", "5"), ("two-hosts.toml", "10")] {
        let said = kavg(&["run", scenario, "-q", "--html", &pages.path("page.html")]);
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
        let file = std::fs::read_to_string(pages.path("page.html")).unwrap();
        for part in ["<h1 id=\"run\">", "<h2>Windows</h2>"] {
            assert!(file.contains(part), "{scenario}: {part}");
        }
        let has_expectations = scenario == "two-queues.toml";
        assert_eq!(file.contains("<h2>Expectations</h2>"), has_expectations, "{scenario}");
        assert_eq!(unbalanced(&file), None);
        assert!(!file.contains('\x1b'));
        let Some(document) = pages.browsed() else { continue };
        assert_eq!(left(&document, "error"), None, "{scenario}");
        assert_eq!(left(&document, "charts"), Some(charts), "{scenario}");
    }
}

#[test]
fn the_page_of_a_run_judges_the_window_that_was_asked_for() {
    let pages = Pages::new();
    let page = pages.path("page.html");
    let of = |window| {
        let said = kavg(&["run", "two-queues.toml", "-q", "--html", &page, "--window", window]);
        assert_eq!(said.code, 0, "{said:?}");
        std::fs::read_to_string(&page).unwrap()
    };
    for window in ["64", "96"] {
        assert!(of(window).contains(&format!("those over window <b>{window}</b>")));
    }
}

#[test]
fn a_title_from_a_scenario_is_only_shown() {
    let pages = Pages::new();
    let text = std::fs::read_to_string(common::data().join("two-queues.toml")).unwrap();
    let text = text.replacen("title = \"", "title = \"</h1><img src=x onerror=alert(1)>\\u202e", 1);
    std::fs::write(pages.path("hostile.toml"), text).unwrap();
    let page = pages.path("page.html");
    let said = kavg(&["run", &pages.path("hostile.toml"), "-q", "--html", &page]);
    assert_eq!(said.code, 0, "{said:?}");
    let file = std::fs::read_to_string(&page).unwrap();
    assert!(file.contains("&lt;img src=x") && !file.contains("<img"));
    assert!(!file.contains('\u{202e}'));
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
