//! `kavg explain`: what a counter, a setting, a driver or a threshold is.

use std::{io::Write, process::ExitCode};

use clap::Args;

use crate::{
    Result,
    explain::{self, Article},
    glossary,
};

use super::help::pages_of;

/// Explain a counter, a setting, a driver, a threshold or a finding
#[derive(Args)]
pub(crate) struct Explain {
    /// Its name, as you would type it (`dsnro`, `-O`, `KAVG/cmd`, `Disk.SchedQuantum`, `fnic`,
    /// `PVSCSI`, `device-depth`, `davg_ms`), or all of
    /// `counters`, `settings`, `options`, `drivers`, `thresholds`, `findings` [default: the names
    /// of all that is explained]
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    name: Vec<String>,
}

impl Explain {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let text = match &*self.name.join(" ") {
            "" => index(),
            name => text(name)?,
        };
        out.write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The names of all that is explained, a line each.
fn index() -> String {
    let tables = glossary::sections().map(|section| section.name).join(", ");
    let titles: String = explain::articles().iter().map(|a| format!("{}\n", a.title())).collect();
    format!("`kavg explain NAME` explains one of these; whole tables: {tables}\n\n{titles}")
}

/// A whole table, or everything that bears the name.
fn text(name: &str) -> Result<String> {
    let wanted = name.to_lowercase();
    let sections = glossary::sections();
    if let Some(section) = sections.iter().find(|section| section.name == wanted) {
        return Ok(section.text());
    }
    let articles = explain::articles();
    let named = explain::named(&articles, name).into_iter();
    let thresholds = sections.iter().filter(|section| section.name == "thresholds");
    let thresholds = thresholds.flat_map(|section| section.explain(&wanted));
    let texts: Vec<String> = named.map(Article::text).chain(thresholds).collect();
    if !texts.is_empty() {
        return Ok(texts.join("\n"));
    }
    if pages_of(name).next().is_some() {
        let page = format!("{name}: it is a page, not a term; `kavg help {name}` prints it");
        return Err(page.into());
    }
    let names = articles.iter().flat_map(|article| &article.names);
    let near = explain::near_misses(names.map(String::as_str), name);
    let meant = match near.as_slice() {
        [] => String::new(),
        near => format!(" (did you mean {}?)", near.join(", ")),
    };
    Err(format!("{name}: nothing is known of it{meant}; `kavg explain` lists what is explained")
        .into())
}
