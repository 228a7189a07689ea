//! `kavg esxcli`: a daemon at work, listed and set with the words of esxcli.

use std::{io::Write, path::PathBuf, process::ExitCode};

use clap::Args;
use control::{PathState, What};
use knobs::{Order, shell};

use crate::{
    Result,
    esxcli::{self, Formatter},
    live::Live,
    talk::say,
    text::clean,
};

/// List and set what a daemon at work is made of, with the words of esxcli
///
/// `kavg esxcli storage core device list` prints what esxcli prints, and `set` sets it, at once where a
/// host does so. PowerCLI's lines and those for guests are taken as well, in quotes. Without words it
/// lists the commands, with the first words of some (`storage core device`) or `--help` those.
///
/// Exit code: 0 when it is done, 2 when it is refused.
#[derive(Args)]
pub(crate) struct Esxcli {
    #[command(flatten)]
    live: Live,
    /// For programs, what is listed; before the words, as esxcli has it
    #[arg(long, value_enum)]
    formatter: Option<Formatter>,
    /// As esxcli takes them: `storage core device set -d naa.1 -O 64`
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Esxcli {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let (live, words) = self.place()?;
        let listed = listed(&words);
        for command in &listed {
            writeln!(out, "{command}")?;
        }
        if !listed.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        // One word with spaces in it is a line already.
        let line = match &words[..] {
            [line] => line.clone(),
            _ => words.iter().map(|word| shell(word)).collect::<Vec<_>>().join(" "),
        };
        let what = match line.parse::<Order>()? {
            Order::Show(query) => {
                let shown = esxcli::show(&query, &live.connect()?.state()?)?;
                out.write_all(shown.render(self.formatter).as_bytes())?;
                return Ok(ExitCode::SUCCESS);
            }
            Order::Set(line) => What::Set(line),
            Order::Path { path, up } => {
                let state = live.connect()?.state()?;
                let path = esxcli::runtime_name(&state, &path).to_owned();
                What::Path(PathState { path, up })
            }
        };
        for note in live.connect()?.order(what)? {
            say(&clean(&note));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// `--live` and `--host` may stand behind the words as well; esxcli has no such options.
    fn place(&self) -> Result<(Live, Vec<String>)> {
        let Live { mut live, mut host } = self.live.clone();
        let mut words = Vec::new();
        let mut rest = self.words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--live" => live = Some(PathBuf::from(value()?)),
                "--host" => host = Some(value()?.clone()),
                _ => words.push(word.clone()),
            }
        }
        Ok((Live { live, host }, words))
    }
}

/// The commands that are listed and not done: all that begin with the words that are typed, which are no
/// command, or stand before `--help`.
fn listed(words: &[String]) -> Vec<String> {
    let line = words.join(" ");
    let words: Vec<&str> = line.split_whitespace().collect();
    let end = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let (begin, options) = (words[..end].join(" "), &words[end..]);
    let is_help = options.iter().any(|word| ["--help", "-h"].contains(word));
    match is_help || options.is_empty() && !Order::is_command(&begin) {
        true => Order::commands(&begin),
        false => Vec::new(),
    }
}
