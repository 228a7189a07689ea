//! Every shipped scenario parses.

mod common;

use std::{fs, path::Path};

#[test]
fn shipped_scenarios_parse_without_warnings() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "toml")) {
        let text = fs::read_to_string(file).unwrap();
        let scenario = common::parse(&file.display().to_string(), &text)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(!scenario.expectations.is_empty(), "{}", file.display());
        assert_eq!(scenario.warnings, Vec::<String>::new(), "{}", file.display());
    }
}
