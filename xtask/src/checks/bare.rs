//! The pure crates build into a program without `std`.
//!
//! A program may have one panic handler. This one brings its own, so the compiler refuses it as
//! soon as any crate below it, ours or not, links `std` and with it a second one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::house::{Finding, House};

const CRATES: &[&str] = &["counters", "engine", "knobs", "model"];

const PROGRAM: &str = r#"#![no_std]
use core::alloc::{GlobalAlloc, Layout};

struct Nothing;
unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
#[global_allocator]
static NOTHING: Nothing = Nothing;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
"#;

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let uses: String = CRATES.iter().map(|name| format!("use {name} as _;\n")).collect();
    match build(&house.root, "bare", &format!("{PROGRAM}{uses}")) {
        Ok(()) => Vec::new(),
        Err(error) => vec![Finding::new(CRATES.join(", "), error)],
    }
}

/// Builds a program on top of the pure crates; refused with what the compiler says.
fn build(root: &Path, name: &str, program: &str) -> Result<(), String> {
    let folder = write(root, name, program).map_err(|error| error.to_string())?;
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--target-dir", "target"])
        .current_dir(&folder)
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// A package of its own below the target directory, with the lock file of the workspace. It is a
/// static library, which holds all code and needs no C runtime to link against.
fn write(root: &Path, name: &str, program: &str) -> std::io::Result<PathBuf> {
    let folder = root.join("target").join(name);
    fs::create_dir_all(&folder)?;
    let crates = root.join("crates");
    let dependency =
        |name: &&str| format!("{name} = {{ path = '{}' }}\n", crates.join(name).display());
    let dependencies: String = CRATES.iter().map(dependency).collect();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n\
         [lib]\npath = \"program.rs\"\ncrate-type = [\"staticlib\"]\n\
         [dependencies]\n{dependencies}\
         [profile.dev]\npanic = \"abort\"\n\
         [workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("program.rs"), program)?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_links_std_is_refused() {
        let program = format!("{PROGRAM}extern crate std;\n");
        let error = build(&crate::house::root(), "bare-not", &program).expect_err("links std");
        assert!(error.contains("panic_impl"), "{error}");
    }
}
