//! The scenarios inside the binary, and how a name or a path becomes a scenario.

use std::path::Path;

use capture::read_text;
use scenario::{Over, Scenario};
use sim::Source;

use crate::{output::Outputs, packed::Packed};

/// Everything in the directory of scenarios.
static FILES: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/scenarios")));

/// The name and text of every shipped scenario, by name.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.files().filter_map(|(file, text)| Some((file.strip_suffix(".toml")?, text)))
}

/// The scenario in the file `source` (`-` is standard input), or the shipped one of that name, with `settings` in force;
/// and what it was made from.
pub(crate) fn load(source: &str, settings: &[String]) -> Result<(Source, Scenario), String> {
    load_with(source, settings, &[])
}

/// The same with the parameter files that the scenario names with other values of some keys.
pub(crate) fn load_with(
    source: &str,
    settings: &[String],
    overs: &[Over],
) -> Result<(Source, Scenario), String> {
    let path = Path::new(source);
    if path.exists() || source == "-" {
        let read = |path: &Path| read_text(path).map_err(|error| error.to_string());
        let loaded = Source::load(path, settings.to_vec(), &read);
        let (mut source, scenario) = loaded.map_err(|error| error.to_string())?;
        overs.iter().for_each(|over| source.include(over, &read));
        return Ok((source, scenario));
    }
    let text = find(source)?;
    let source = self::source(source, text, settings);
    let scenario = source.scenario().map_err(|error| error.to_string())?;
    Ok((source, scenario))
}

/// The same file to play another load on.
pub(crate) fn load_played(source: &str) -> Result<Scenario, String> {
    let path = Path::new(source);
    let read = |path: &Path| read_text(path).map_err(|error| error.to_string());
    let parsed = if path.exists() || source == "-" {
        let folder = path.parent().unwrap_or(Path::new(""));
        Scenario::parse_played(source, &read(path)?, &mut |name| read(&folder.join(name)))
    } else {
        let file = format!("{source}.toml");
        let beside = |name: &str| FILES.files().find(|(file, _)| *file == name);
        let include = &mut |name: &str| {
            beside(name).map(|(_, text)| text.to_owned()).ok_or(format!("file `{name}` is missing"))
        };
        Scenario::parse_played(&file, find(source)?, include)
    };
    parsed.map_err(|error| error.to_string())
}

/// What may be written beside a run of `name`: nothing that it was made from.
pub(crate) fn outputs_beside(name: &str, source: &Source) -> Outputs {
    let path = Path::new(name);
    let folder = path.parent().unwrap_or(Path::new(""));
    let includes = source.includes.iter().map(|(file, _)| folder.join(file));
    Outputs::beside(includes.chain([path.to_owned()]))
}

/// The text of the shipped scenario of that name.
pub(crate) fn find(name: &str) -> Result<&'static str, String> {
    all().find(|(known, _)| *known == name).map(|(_, text)| text).ok_or_else(|| {
        format!(
            "{name}: there is no such file and no shipped scenario of that name; \
             `kavg scenarios` lists those there are"
        )
    })
}

/// What a shipped scenario is made from: its text and the parameter files beside it.
pub(crate) fn source(name: &str, text: &str, settings: &[String]) -> Source {
    let beside = FILES.files().filter(|(file, _)| !file.ends_with(".toml"));
    let owned = |(file, text): (&str, &str)| (file.to_owned(), text.to_owned());
    Source {
        file: format!("{name}.toml"),
        text: text.to_owned(),
        includes: beside.map(owned).collect(),
        settings: settings.to_vec(),
    }
}
