//! The one test command: each step is a command of cargo's, and the first that fails ends it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, IsTerminal};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Deserialize;

use testing::SKIPPED;

use crate::house;

/// What a test did not find and skipped for, a line each.
type Skipped = BTreeSet<String>;

/// A step: its arguments to cargo, the component of the toolchain that it needs, and how it runs.
struct Step {
    arguments: &'static str,
    component: Option<&'static str>,
    run: fn(&str) -> Result<Skipped, String>,
}

/// Measured on two cores: 2,409 s.
const HOW_LONG: &str =
    "This takes about 40 minutes from nothing on two cores, a third of it to build.";

const STEPS: &[Step] = &[
    Step { arguments: "fmt --all --check", component: Some("rustfmt"), run: plain },
    Step { arguments: "xtask check", component: None, run: plain },
    Step {
        arguments: "clippy --locked --workspace --all-targets -- -D warnings",
        component: Some("clippy"),
        run: plain,
    },
    Step {
        arguments: "doc --locked --workspace --no-deps --document-private-items",
        component: None,
        run: docs,
    },
    Step { arguments: "test --locked --workspace --no-fail-fast", component: None, run: tests },
];

/// Runs every step. The last lines say what was skipped and why.
pub(crate) fn test() -> Result<String, String> {
    let start = Instant::now();
    components()?;
    println!("{HOW_LONG}");
    let mut skipped = Skipped::new();
    for step in STEPS {
        println!("\n== cargo {}", step.arguments);
        skipped.extend((step.run)(step.arguments)?);
    }
    let skipped = match skipped.len() {
        0 => "nothing was skipped".to_owned(),
        _ => format!("skipped:\n  {}", Vec::from_iter(skipped).join("\n  ")),
    };
    Ok(format!("\nall tests passed in {} s; {skipped}", start.elapsed().as_secs()))
}

fn plain(arguments: &str) -> Result<Skipped, String> {
    let status = cargo(arguments).status().map_err(|error| error.to_string())?;
    status.success().then(Skipped::new).ok_or_else(|| failed(arguments))
}

/// Runs tests, hands on what they print, and keeps the lines in which one says that it skips.
fn tests(arguments: &str) -> Result<Skipped, String> {
    let colour = if std::io::stdout().is_terminal() { "always" } else { "never" };
    let mut cargo = cargo(arguments);
    let cargo = cargo.args(["--", "--color", colour]).stdout(Stdio::piped());
    let mut child = cargo.spawn().map_err(|error| error.to_string())?;
    let output = child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines());
    let mut skipped = Skipped::new();
    for line in output.map_while(Result::ok) {
        skipped.extend(line.strip_prefix(SKIPPED).map(str::to_owned));
        println!("{line}");
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    status.success().then_some(skipped).ok_or_else(|| failed(arguments))
}

fn failed(arguments: &str) -> String {
    format!("failed: cargo {arguments}")
}

fn cargo(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments.split(' ')).current_dir(house::root());
    command
}

/// Refuses in one line when the toolchain lacks a component.
fn components() -> Result<(), String> {
    let missing: Vec<_> = STEPS
        .iter()
        .filter_map(|step| Some((step.component?, step.arguments.split(' ').next()?)))
        .filter(|(_, subcommand)| !answers(subcommand))
        .map(|(component, _)| component)
        .collect();
    match missing.as_slice() {
        [] => Ok(()),
        _ => Err(format!(
            "the toolchain lacks {0}: rustup component add {1}",
            missing.join(" and "),
            missing.join(" ")
        )),
    }
}

fn answers(subcommand: &str) -> bool {
    let silent =
        cargo(subcommand).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    silent.is_ok_and(|status| status.success())
}

/// What cargo tells about a crate, as far as it is looked at here.
#[derive(Deserialize)]
struct Message {
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Diagnostic {
    message: String,
    rendered: Option<String>,
    level: String,
}

/// Builds the documentation without a warning. A source tag such as `[S0]` looks like a link to
/// rustdoc; those are told apart here, so that real links are still checked.
fn docs(arguments: &str) -> Result<Skipped, String> {
    let output = cargo(arguments)
        .arg("--message-format=json")
        .stderr(Stdio::inherit())
        .env("RUSTDOCFLAGS", "-W rustdoc::broken_intra_doc_links")
        .output()
        .map_err(|error| error.to_string())?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let complaints: Vec<_> = messages.lines().filter_map(complaint).collect();
    match complaints.as_slice() {
        [] if output.status.success() => Ok(Skipped::new()),
        _ => Err(format!("{}\n{}", complaints.join("\n"), failed(arguments))),
    }
}

fn complaint(line: &str) -> Option<String> {
    let message = serde_json::from_str::<Message>(line).ok()?.message?;
    let counted = matches!(message.level.as_str(), "warning" | "error");
    let summary =
        message.message.contains("warning emitted") || message.message.contains("warnings emitted");
    (counted && !summary && !is_source_tag(&message.message))
        .then(|| message.rendered.unwrap_or(message.message))
}

/// Whether rustdoc stumbled over a source tag: capitals and digits alone.
fn is_source_tag(message: &str) -> bool {
    let tag = message.strip_prefix("unresolved link to `").and_then(|rest| rest.strip_suffix('`'));
    tag.is_some_and(|tag| tag.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_tag_is_no_broken_link_and_a_lost_name_is() {
        let line = |link: &str| {
            format!(
                "{{\"reason\": \"compiler-message\", \"message\": {{\"level\": \"warning\", \
                 \"message\": \"unresolved link to `{link}`\"}}}}"
            )
        };
        assert_eq!(complaint(&line("S0")), None);
        assert_eq!(complaint(&line("LAMW")), None);
        assert_eq!(complaint("{\"reason\": \"build-finished\", \"success\": true}"), None);
        assert!(complaint(&line("Engine")).is_some());
    }
}
