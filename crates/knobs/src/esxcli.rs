//! A call as a line for a host's shell: `storage core device set -d naa.1 -O 64`.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    Refusal,
    command::{Call, Command},
    words::{shell, split_words},
};

/// Reads a line of one of some commands, with or without `esxcli` or `kavg esxcli` in front.
pub(crate) fn parse(line: &str, among: &[&'static Command]) -> Result<Call, Refusal> {
    let words = split_words(line)?;
    let words = ["kavg esxcli", "esxcli"]
        .into_iter()
        .find_map(|front| {
            let front: Vec<String> = front.split(' ').map(String::from).collect();
            words.strip_prefix(&*front)
        })
        .unwrap_or(&words);
    let end = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let mut call = Call::new(Command::find(&words[..end].join(" "), among)?);
    let mut rest = words[end..].iter();
    while let Some(word) = rest.next() {
        let (short, inline) = recognise(call.command, word)?;
        let value = match inline {
            Some(value) => value,
            None if call.command.flag == Some(short) => String::new(),
            None => rest
                .next()
                .cloned()
                .ok_or_else(|| format!("{} needs a value", call.command.name(short)))?,
        };
        call.add(short, value)?;
    }
    Ok(call)
}

/// The option that a word names, with its value when that is in the same word: `-O`, `-O=64`,
/// `--sched-num-req-outstanding=64`.
fn recognise(command: &Command, word: &str) -> Result<(char, Option<String>), Refusal> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_string())),
        None => (word, None),
    };
    let known = command.options.iter().find(|(short, long)| {
        name.strip_prefix("--").map_or_else(
            || name.strip_prefix('-').is_some_and(|rest| rest == short.to_string()),
            |rest| rest == *long,
        )
    });
    known.map(|(short, _)| (*short, value)).ok_or_else(|| unknown_option(command, name))
}

fn unknown_option(command: &Command, name: &str) -> Refusal {
    let words = command.words;
    if name == "-o" && command.options.iter().any(|(short, _)| *short == 'O') {
        return "Invalid option -o: outstanding I/Os with competing worlds are set by \
                -O|--sched-num-req-outstanding, in upper case"
            .into();
    }
    let all: Vec<_> = command.options.iter().map(|(short, _)| command.name(*short)).collect();
    if all.is_empty() {
        return format!("Invalid option {name} for `{words}`; it takes none").into();
    }
    format!("Invalid option {name} for `{words}`; it takes {}", all.join(", ")).into()
}

/// The line of a call, without `esxcli` in front.
pub(crate) fn print(call: &Call) -> String {
    let mut line = String::from(call.command.words);
    for (short, value) in &call.values {
        line.push_str(&format!(" -{short}"));
        if call.command.flag != Some(*short) {
            line.push_str(&format!(" {}", shell(value)));
        }
    }
    line
}
