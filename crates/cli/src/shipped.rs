//! The scenarios inside the binary, and how a name or a path becomes a scenario.

use std::path::Path;

use scenario::Scenario;

/// File name and text of everything in the directory of scenarios.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The name and text of every shipped scenario, by name.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().filter_map(|(file, text)| Some((file.strip_suffix(".toml")?, *text)))
}

/// The scenario in the file `source`, or the shipped one of that name.
pub(crate) fn load(source: &str) -> Result<Scenario, String> {
    let path = Path::new(source);
    if path.exists() {
        return Scenario::load(path).map_err(|error| error.to_string());
    }
    match all().find(|(name, _)| *name == source) {
        Some((name, text)) => parse(name, text),
        None => Err(format!(
            "{source}: there is no such file and no shipped scenario of that name; \
             `kavg scenarios` lists those there are"
        )),
    }
}

/// A shipped scenario, with the parameter files beside it.
pub(crate) fn parse(name: &str, text: &str) -> Result<Scenario, String> {
    let mut beside = |wanted: &str| {
        let found = FILES.iter().find(|(file, _)| *file == wanted);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("no file `{wanted}`"))
    };
    Scenario::parse(&format!("{name}.toml"), text, &mut beside).map_err(|error| error.to_string())
}
