//! A call to esxcli as a line for PowerCLI.
//!
//! `$esxcli` stands for the host, as `$esxcli = Get-EsxCli -V2 -VMHost NAME` makes it; the keys of
//! its arguments are esxcli's long options without dashes (reference section 6.6).

use alloc::{format, string::String};

use crate::{
    Refusal,
    command::{Call, Command, SETTERS},
    words::{powershell, powershell_name, powershell_word},
};

const CALL: &str = "$esxcli.";
const ARGUMENTS: &str = ".Invoke(@{";

/// The line that makes `$esxcli` a host.
#[must_use]
pub fn get_esxcli(host: &str) -> String {
    format!("$esxcli = Get-EsxCli -V2 -VMHost {}", powershell_name(host))
}

/// Whether it is a call.
pub(crate) fn is_call(line: &str) -> bool {
    line.get(..CALL.len()).is_some_and(|start| start.eq_ignore_ascii_case(CALL))
}

/// A call as a line.
pub(crate) fn print(call: &Call) -> String {
    let mut arguments = String::new();
    for (short, value) in &call.values {
        let separator = if arguments.is_empty() { "" } else { "; " };
        arguments.push_str(&format!("{separator}{}=", key(call.command, *short)));
        match () {
            () if call.command.flag == Some(*short) => arguments.push_str("$true"),
            () if is_number(value) => arguments.push_str(value),
            () => arguments.push_str(&powershell(value)),
        }
    }
    format!("{CALL}{}{ARGUMENTS}{arguments}}})", call.command.words.replace(' ', "."))
}

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_digit())
}

fn key(command: &Command, short: char) -> String {
    let option = command.options.iter().find(|(name, _)| *name == short);
    option.map_or(String::new(), |(_, long)| long.replace('-', ""))
}

/// Reads a call, in any case.
pub(crate) fn parse(line: &str) -> Result<Call, Refusal> {
    let refuse = || Refusal::from(format!("`{line}` is no call as `{CALL}…{ARGUMENTS}…}})`"));
    let lower = line.to_ascii_lowercase();
    let at = lower.find(&ARGUMENTS.to_ascii_lowercase()).ok_or_else(refuse)?;
    let words = lower.get(CALL.len()..at).ok_or_else(refuse)?.replace('.', " ");
    let mut rest = &line[at + ARGUMENTS.len()..];
    let mut call = Call::new(Command::find(&words, &SETTERS)?);
    while rest.trim() != "})" {
        let (name, after) = rest.split_once('=').ok_or_else(refuse)?;
        let (value, after) = powershell_word(after.trim_start()).ok_or_else(refuse)?;
        let name = name.trim();
        let short = call.command.options.iter().map(|(short, _)| *short);
        let short =
            short.into_iter().find(|short| key(call.command, *short).eq_ignore_ascii_case(name));
        let short = short.ok_or_else(|| format!("Invalid argument {name} in `{line}`"))?;
        call.add(short, value)?;
        rest = after.trim_start().trim_start_matches(';').trim_start();
    }
    Ok(call)
}
