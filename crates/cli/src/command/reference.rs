//! `kavg reference`: the pages of the reference that come out of the program itself.

use std::{io::Write, process::ExitCode};

use clap::{Args, CommandFactory};

use super::Arguments;
use crate::{Result, glossary};

/// Print a page of the reference as Markdown
#[derive(Args)]
pub(crate) struct Reference {
    /// Which page: `command-line`, or a table of `kavg explain`
    #[arg(value_name = "PAGE", default_value = "command-line")]
    page: String,
}

/// Columns of the help texts.
const WIDTH: usize = 96;

impl Reference {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let page = match glossary::sections().into_iter().find(|it| it.name == self.page) {
            Some(section) => {
                let title = section.name[..1].to_uppercase() + &section.name[1..];
                format!("# {title}\n\n{}\n\n{}", section.about, section.markdown())
            }
            None if self.page == "command-line" => command_line(),
            None => return Err(format!("{}: there is no such page", self.page).into()),
        };
        out.write_all(page.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The help of every command.
fn command_line() -> String {
    let mut root = Arguments::command().term_width(WIDTH).disable_help_subcommand(true);
    root.build();
    let mut out = String::from(
        "# The command line\n\nData goes to standard output, talk to standard error. Exit codes: 0 \
         all is well, 1 an\nexpectation is not met or a diagnosis has findings, 2 the input is \
         bad.\n",
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
