//! `kavg help`: the help of a command, or a page of the documentation, all of which is inside.

use std::{io::Write, process::ExitCode};

use clap::{Args, CommandFactory, builder::StyledStr, error::ErrorKind};
use counters::sorted::sort;

use super::{Arguments, reference};
use crate::{Result, explain, packed::Packed};

/// Everything below `docs/` that the program does not know by itself.
static PAGES: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/docs")));

/// Print the help of a command, or a page of the documentation
#[derive(Args)]
pub(crate) struct Help {
    /// A command (`run`, `capture cut`) or a page (`first-scenario`, `reference/counters`)
    /// [default: a list of both]
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

impl Help {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        match of_command(&self.topic) {
            Some(help) => {
                write!(out, "{}", help.ansi())?;
                // The command has the word that they are called by.
                let name = self.topic.join(" ");
                for (page, text) in pages_of(&name).filter(|_| !name.is_empty()) {
                    writeln!(out, "\n`kavg help docs/{page}`: {}", title(text))?;
                }
            }
            None => out.write_all(page(&self.topic.join(" "))?.as_bytes())?,
        }
        if self.topic.is_empty() {
            writeln!(out, "\nPages, for `kavg help PAGE`:")?;
            for (name, text) in pages() {
                // A command of that name has the word.
                let name = if is_command(name) { format!("docs/{name}") } else { name.into() };
                writeln!(out, "  {name:<26} {}", title(text))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What the command of that name says to `--help`.
fn of_command(path: &[String]) -> Option<StyledStr> {
    let line = ["kavg"].into_iter().chain(path.iter().map(String::as_str)).chain(["--help"]);
    let said = Arguments::command().try_get_matches_from(line).err()?;
    (said.kind() == ErrorKind::DisplayHelp).then(|| said.render())
}

fn is_command(name: &str) -> bool {
    Arguments::command().find_subcommand(name).is_some()
}

/// Name (`guides/report`) and text of each page, in the order of the names.
fn pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    let written = PAGES.files().filter_map(|(file, text)| Some((file.strip_suffix(".md")?, text)));
    let known = reference::pages().iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let mut pages: Vec<_> = written.chain(known).collect();
    sort(&mut pages);
    pages.into_iter()
}

fn title(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("# ")
}

/// The pages of that name, of whatever folder.
pub(crate) fn pages_of(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    pages().filter(move |(page, _)| *page == name || page.rsplit('/').next() == Some(name))
}

/// The text of the page of that name; its folder may be left out where one page alone is called so.
fn page(topic: &str) -> Result<&'static str> {
    let wanted = topic.strip_suffix(".md").unwrap_or(topic);
    let wanted = wanted.strip_prefix("docs/").unwrap_or(wanted);
    let found: Vec<_> = pages_of(wanted).collect();
    match found.as_slice() {
        [(_, text)] => Ok(text),
        [] if explain::articles().iter().any(|article| article.is_named(topic)) => {
            Err(format!("{topic}: no command and no page; `kavg explain {topic}` explains it")
                .into())
        }
        [] => {
            let names = pages().filter_map(|(name, _)| name.rsplit('/').next());
            let meant = match explain::near_misses(names, wanted).as_slice() {
                [] => String::new(),
                near => format!(" (did you mean {}?)", near.join(", ")),
            };
            Err(format!("{topic}: no command and no page{meant}; `kavg help` lists both").into())
        }
        several => {
            let names: Vec<_> = several.iter().map(|(name, _)| *name).collect();
            Err(format!("{topic}: which of {}?", names.join(", ")).into())
        }
    }
}
