//! Runs the binary and looks at what it said.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

/// What a run of the binary said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `kavg` in the directory of test data.
pub(crate) fn kavg(arguments: &[&str]) -> Said {
    kavg_with(arguments, "")
}

/// Runs `kavg` with `input` on standard input.
pub(crate) fn kavg_with(arguments: &[&str], input: &str) -> Said {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kavg"))
        .args(arguments)
        .current_dir(data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A command that does not read its input may be gone by then.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    Said {
        code: output.status.code().expect("it ends by itself"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// The directory of test data.
pub(crate) fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// What the binary says as JSON.
pub(crate) fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&kavg(arguments).out).expect("it is JSON")
}

/// Tells every key of a value but those below one of `names`, under which there are no keys of ours.
pub(crate) fn every_key(value: &Value, names: &[&str], seen: &mut impl FnMut(&str)) {
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            seen(key);
            if !names.contains(&key.as_str()) {
                every_key(value, names, seen);
            }
        }),
        Value::Array(values) => values.iter().for_each(|value| every_key(value, names, seen)),
        _ => {}
    }
}

/// What `kavg remedy --json` ranks.
pub(crate) fn remedies(value: &Value) -> &Vec<Value> {
    value["remedies"].as_array().unwrap()
}

/// The mean of a figure of one of them.
pub(crate) fn mean(value: &Value, figure: &str) -> f64 {
    value["figures"][figure]["mean"].as_f64().unwrap()
}
