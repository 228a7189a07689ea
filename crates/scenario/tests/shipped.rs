//! Every shipped scenario parses.

use std::path::Path;

use scenario::Scenario;

#[test]
fn shipped_scenarios_parse_without_warnings() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "toml")) {
        let scenario = Scenario::load(file).unwrap_or_else(|error| panic!("{error}"));
        assert!(!scenario.expectations.is_empty(), "{}", file.display());
        assert_eq!(scenario.warnings, Vec::<String>::new(), "{}", file.display());
    }
}
