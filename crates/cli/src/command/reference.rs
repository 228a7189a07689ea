//! `kavg reference`: the pages of the reference that come out of the program itself.

use std::{io::Write, process::ExitCode, sync::OnceLock};

use clap::{Args, CommandFactory, ValueEnum};

use super::Arguments;
use crate::{
    Result,
    explain::{Article, causes, counters, of_settings, topics},
    glossary,
};

/// Print a page of the reference as Markdown
#[derive(Args)]
pub(crate) struct Reference {
    /// Which page
    #[arg(value_name = "PAGE")]
    page: Page,
}

#[derive(Clone, Copy, ValueEnum)]
enum Page {
    CommandLine,
    Counters,
    Knobs,
    Findings,
    Topics,
}

/// Columns of the help texts.
const WIDTH: usize = 96;

impl Reference {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        out.write_all(self.page.text().as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Page {
    fn text(self) -> String {
        match self {
            Self::CommandLine => command_line(),
            Self::Counters => {
                tables("Counters", "counters", &["counters"]) + &in_full(&counters::articles())
            }
            Self::Knobs => {
                let tables =
                    tables("Knobs and drivers", "knobs", &["settings", "options", "drivers"]);
                tables + &in_full(&of_settings())
            }
            Self::Findings => {
                let tables =
                    tables("Findings and thresholds", "findings", &["findings", "thresholds"]);
                tables + &in_full(&causes::articles())
            }
            Self::Topics => tables("Topics", "topics", &[]) + &in_full(&topics::articles()),
        }
    }
}

/// Name, as that of a file below `docs/` without its ending, and text of each page.
pub(crate) fn pages() -> &'static [(String, String)] {
    static PAGES: OnceLock<Vec<(String, String)>> = OnceLock::new();
    PAGES.get_or_init(|| {
        let name = |page: &Page| Some(page.to_possible_value()?.get_name().to_owned());
        let page = |page| Some((format!("reference/{}", name(page)?), page.text()));
        Page::value_variants().iter().filter_map(page).collect()
    })
}

/// A page of tables.
fn tables(title: &str, page: &str, names: &[&str]) -> String {
    let mut out = format!("# {title}\n\nThis page is what `kavg reference {page}` prints.\n");
    let sections = glossary::sections();
    for section in sections.iter().filter(|section| names.contains(&section.name)) {
        let heading = section.name[..1].to_uppercase() + &section.name[1..];
        let about = section.about;
        out += &format!("\n## {heading}\n\n{about}\n\n{}", section.markdown());
    }
    out
}

/// What `kavg explain` says of each.
fn in_full(articles: &[Article]) -> String {
    let articles: String = articles.iter().map(Article::markdown).collect();
    format!("\n## In full\n\nWhat `kavg explain NAME` says.\n{articles}")
}

/// The help of every command.
fn command_line() -> String {
    let mut root = Arguments::command().term_width(WIDTH).disable_help_subcommand(true);
    root.build();
    let mut out = String::from(
        "# The command line\n\nThis page is what `kavg reference command-line` prints. Data goes to standard output, talk to standard error. Exit codes: 0 \
         all is well, 1 an\nexpectation is not met or a diagnosis has findings, 2 the input is \
         bad, 3 nothing was found\nin a capture that lacks what it takes to say so. A closed pipe is no error: the code \
         is 0, or the command's own\nwhere all was written before the reader went. Where standard output cannot be written \
         otherwise the code is 2.\n\nUntil it is whole a file has a name of its own in \
         the same folder, `.kavg-*.part`. A run that was killed leaves\nsuch a file, which may be deleted.\n",
    );
    describe(&mut root, &mut out);
    out
}

fn describe(command: &mut clap::Command, out: &mut String) {
    let help = command.render_long_help().to_string();
    let name = command.get_bin_name().unwrap_or("kavg").to_owned();
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    *out += &format!("\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    let shown = command.get_subcommands_mut().filter(|command| !command.is_hide_set());
    shown.for_each(|command| describe(command, out));
}
