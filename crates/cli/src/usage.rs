//! What is typed becomes a command. What is none is refused as everything is: in one line, which says
//! what is allowed; clap's own refusals have several.

use std::{
    error::Error,
    ffi::OsString,
    io::Write,
    num::{IntErrorKind, ParseIntError},
    process::ExitCode,
};

use clap::{CommandFactory, Parser, error::ErrorKind};

use knobs::{Order, shell};

use crate::{Result, command::Arguments, talk::say};

/// Does what was typed.
pub(crate) fn run(out: &mut dyn Write) -> Result {
    let error = match Arguments::try_parse() {
        Ok(arguments) => return arguments.command.run(out),
        Err(error) => error,
    };
    let help = error.render().ansi().to_string();
    if !error.use_stderr() {
        out.write_all(help.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        say(help.trim_end());
        return Ok(ExitCode::from(2));
    }
    Err(refusal(&error, std::env::args_os().skip(1)).into())
}

/// What is wrong with what was typed, what is allowed, and the help of the command that was meant.
fn refusal(error: &clap::Error, typed: impl Iterator<Item = OsString>) -> String {
    let root = Arguments::command();
    let (mut command, mut name) = (&root, root.get_name().to_owned());
    let typed: Vec<_> = typed.collect();
    for word in &typed {
        let Some(below) = command.find_subcommand(word) else { break };
        command = below;
        name = format!("{name} {}", below.get_name());
    }
    let below = command.get_subcommands().filter(|command| !command.is_hide_set());
    let there_are = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let names: Vec<_> = below.map(clap::Command::get_name).collect();
            let meant = of_esxcli(&typed).map(|line| format!("; did you mean `{line}`?"));
            format!("{}; there are {}", meant.unwrap_or_default(), names.join(", "))
        }
        _ => String::new(),
    };
    format!("{}{there_are}; see `{name} --help`", one_line(error))
}

/// The line that was meant where what was typed is a command of esxcli, or of kavg's own in esxcli's form.
fn of_esxcli(typed: &[OsString]) -> Option<String> {
    let words: Option<Vec<_>> = typed.iter().map(|word| word.to_str().map(shell)).collect();
    let words = words?.join(" ");
    let lines = [words.clone(), format!("kavg {words}")];
    let line = lines.into_iter().find(|line| line.parse::<Order>().is_ok())?;
    Some(format!("kavg esxcli {line}"))
}

/// What clap says, without its examples of use.
fn one_line(error: &clap::Error) -> String {
    const EXAMPLES: [&str; 3] = ["Usage:", "For more information", "  tip: to pass"];
    let text = error.render().to_string();
    let is_about_it = |part: &&str| !EXAMPLES.iter().any(|start| part.starts_with(start));
    let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<_> = text.split("\n\n").filter(is_about_it).map(words).collect();
    let line = parts.join("; ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    match error.source().and_then(|source| source.downcast_ref::<ParseIntError>()) {
        Some(why) => line.replace(&why.to_string(), allowed(why)),
        None => line.to_owned(),
    }
}

/// What is allowed where a number cannot be read.
fn allowed(why: &ParseIntError) -> &'static str {
    match why.kind() {
        IntErrorKind::PosOverflow => "expected a smaller number",
        IntErrorKind::Zero => "expected a whole number from 1 on",
        _ => "expected a whole number",
    }
}
