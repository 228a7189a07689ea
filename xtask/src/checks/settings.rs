//! A driver that can be set, its parameter and an advanced option have one table: their names stand in
//! `knobs` and in tests, and nowhere else in the source.

use knobs::{Advanced, Driver};

use crate::house::{File, Finding, House};
use crate::rust;

const TABLES: &str = "crates/knobs/";

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let is_source = |file: &&File| file.path.contains("/src/") && !file.path.starts_with(TABLES);
    let ours = |file: &&File| file.path.starts_with("crates/") || file.path.starts_with("xtask/");
    house.rust().filter(ours).filter(is_source).flat_map(of_file).collect()
}

fn of_file(file: &File) -> Vec<Finding> {
    let drivers = || Driver::ALL.iter().filter(|driver| driver.parameter.is_some());
    let parameters = || drivers().filter_map(|driver| driver.parameter);
    let modules = || drivers().map(|driver| driver.module);
    let options = || Advanced::TABLE.iter().map(|info| info.path);
    let mut findings = Vec::new();
    for (line, text) in rust::strings(&file.text) {
        if let Some(name) =
            parameters().chain(options()).chain(modules()).find(|name| has(&text, name))
        {
            findings.push(file.at(line, format!("`{name}` has its place in {TABLES}src")));
        }
    }
    findings
}

/// Whether a text has a name as a word of its own.
fn has(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_of_their_table_are_found() {
        for (path, text, findings) in [
            ("crates/a/src/a.rs", "let p = \"fnic_max_qdepth\";", 1),
            ("crates/a/src/a.rs", "f(\"set -o /Disk/SchedQuantum -i 8\")", 1),
            ("crates/a/src/a.rs", "const ISCSI: &str = \"iscsi_vmk\";", 1),
            ("crates/a/src/a.rs", "f(\"lpfcs\")", 0),
            ("xtask/src/a.rs", "const P: [&str; 1] = [\"ql2xmaxqdepth\"];", 1),
            ("crates/a/src/a.rs", "/// `fnic_max_qdepth`\nfn a() {} // ql2xmaxqdepth", 0),
            (
                "crates/a/src/a.rs",
                "#[cfg(test)] mod tests { const P: &str = \"fnic_max_qdepth\"; }",
                0,
            ),
            ("crates/a/tests/a.rs", "let p = \"fnic_max_qdepth\";", 0),
            ("crates/knobs/src/driver.rs", "let p = \"fnic_max_qdepth\";", 0),
        ] {
            assert_eq!(check(&House::of(&[(path, text)])).len(), findings, "{path}: {text}");
        }
    }
}
