//! The checks of the house (`cargo xtask check`) and the one test command (`cargo xtask test`).
//!
//! It stands beside the stack: no other crate uses it. Each check is one small file under
//! `checks/`, and each has a bad example in its test.

#![expect(clippy::print_stdout, reason = "its output is what it is run for")]
#![expect(clippy::print_stderr, reason = "refusals go to stderr")]

mod checks;
mod corpus;
mod dist;
mod fleet;
mod house;
mod rust;
mod soak;
mod steps;
mod whatif;

use std::process::ExitCode;

use house::House;

const USAGE: &str = "usage: cargo xtask check   the checks of the house
       cargo xtask test    every check there is, and every test
       cargo xtask soak    random hosts, every invariant checked: --ios N --seed S
       cargo xtask corpus  precision and recall of the diagnosis
       cargo xtask whatif  answers of what-if held against the truth
       cargo xtask fleet   outputs of esxcli of many hosts: FOLDER --hosts N --devices N --seed S
       cargo xtask dist    static binaries in an archive, a .deb and a wheel";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map_or("", String::as_str) {
        "check" => check(),
        "test" => steps::test(),
        "soak" => soak::soak(&arguments[1..]),
        "corpus" => corpus::corpus(&arguments[1..]),
        "dist" => dist::dist(),
        "fleet" => fleet::fleet(&arguments[1..]),
        "whatif" => whatif::whatif(&arguments[1..]),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(line) => {
            eprintln!("{line}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<String, String> {
    let house = House::read()?;
    let mut findings = 0;
    for (name, check) in checks::ALL {
        for finding in check(&house) {
            println!("{name}: {finding}");
            findings += 1;
        }
    }
    match findings {
        0 => Ok(format!(
            "check: {} rules hold in {} files; {}",
            checks::ALL.len(),
            house.files.len(),
            checks::functions::summary(&house)
        )),
        _ => Err(format!("check: {findings} findings")),
    }
}
