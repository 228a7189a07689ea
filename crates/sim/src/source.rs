//! Everything that a scenario is made from: its file, the parameter files that it names, and the
//! settings given beside it. Whoever writes files beside a run looks here what not to write over.

use std::{path::Path, slice};

use scenario::{Beside, Over, Scenario};

use crate::Error;

/// The texts that a scenario is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The name of the scenario file.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Name and text of each parameter file that it names.
    pub includes: Vec<(String, String)>,
    /// Settings in force before the run begins, as [`Scenario::set`] takes them.
    pub settings: Vec<String>,
}

impl Source {
    /// Reads a scenario file and the parameter files that it names with `read`, puts the settings
    /// in force, and keeps the texts.
    ///
    /// # Errors
    /// When a file cannot be read, or is refused by [`Scenario::parse`], or a setting by
    /// [`Scenario::set`].
    pub fn load(
        path: &Path,
        settings: Vec<String>,
        read: &dyn Fn(&Path) -> Result<String, String>,
    ) -> Result<(Self, Scenario), Error> {
        let file = path.display().to_string();
        let text = read(path).map_err(Error::Text)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let mut source = Self { file, text, includes: Vec::new(), settings };
        let mut includes = Vec::new();
        let scenario = source.build(&[], &[], &mut |name| {
            let text = read(&directory.join(name))?;
            includes.push((name.to_string(), text.clone()));
            Ok(text)
        })?;
        source.includes = includes;
        Ok((source, scenario))
    }

    /// Reads the parameter files that the scenario names with another value of a key, and keeps their texts.
    /// What refuses the value, or a file, does so where the scenario is made with it.
    pub fn include(&mut self, over: &Over, read: &dyn Fn(&Path) -> Result<String, String>) {
        let directory = Path::new(&self.file).parent().unwrap_or(Path::new(""));
        let mut more = Vec::new();
        let _ = self.build(slice::from_ref(over), &[], &mut |name| {
            let known = self.includes.iter().find(|(known, _)| known == name);
            if let Some((_, text)) = known {
                return Ok(text.clone());
            }
            let text = read(&directory.join(name))?;
            more.push((name.to_string(), text.clone()));
            Ok(text)
        });
        self.includes.extend(more);
    }

    /// The scenario again, from the texts alone.
    ///
    /// # Errors
    /// As [`Source::load`].
    pub fn scenario(&self) -> Result<Scenario, Error> {
        self.scenario_over(&[], &[])
    }

    /// The same with other values of some keys of the file, and with more settings after those beside it.
    ///
    /// # Errors
    /// As [`Source::load`], and as [`Scenario::parse_with`].
    pub fn scenario_over(&self, overs: &[Over], lines: &[String]) -> Result<Scenario, Error> {
        self.build(overs, lines, &mut |name| {
            let known = self.includes.iter().find(|(known, _)| known == name);
            known.map(|(_, text)| text.clone()).ok_or(format!("file `{name}` is missing"))
        })
    }

    fn build(
        &self,
        overs: &[Over],
        lines: &[String],
        include: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Scenario, Error> {
        let beside = Beside { overs, lines: &[&self.settings, lines].concat() };
        Ok(Scenario::parse_with(&self.file, &self.text, &beside, include)?)
    }
}
