//! What is handed out (`cargo xtask dist`): per target one static binary with its completions, pages
//! of the manual and documents as an archive, a package for Debian, and a wheel for pip.
//!
//! cargo-deb and maturin make the last two; they are installed below `target/` by name.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::house;

/// The largest binary that is handed out, in bytes.
const SIZE_MAX: usize = 8_000_000;

/// A shell, and what it calls the file that completes `kavg`.
const SHELLS: [(&str, &str); 4] =
    [("bash", "kavg.bash"), ("zsh", "_kavg"), ("fish", "kavg.fish"), ("powershell", "kavg.ps1")];

/// What lies in every archive beside the binary, the completions and the manual.
const DOCUMENTS: [&str; 3] = ["README.md", "CHANGELOG.md", "LICENSE"];

/// A machine to build for.
struct Target {
    triple: &'static str,
    /// What rustc has to be told for a static binary.
    flags: &'static str,
}

/// The first is for this machine: its binary writes the completions and the manual of all.
const TARGETS: [Target; 2] = [
    // glibc's: its copies and its allocator are faster than musl's (docs/performance.md).
    // Packed, what has to be relocated takes a fortieth of the room: 0.2 MB.
    Target {
        triple: "x86_64-unknown-linux-gnu",
        flags: "-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs,--icf=all,\
                --no-eh-frame-hdr,-Txtask/src/dist.ld",
    },
    // musl's, by the linker that comes with rustup: no compiler for that machine is needed.
    Target {
        triple: "aarch64-unknown-linux-musl",
        flags: "-C linker=rust-lld -C link-arg=--icf=all -C link-arg=--no-eh-frame-hdr \
                -C link-arg=-Txtask/src/dist.ld",
    },
];

/// What rustc has to be told of the binary alone: all is linked at the level of its package, and at
/// "s" no loop of any package works on many bytes at a time.
const LINKED: &str = "-C opt-level=2";

/// Makes a package of every kind in `target/packages`.
///
/// # Errors
/// One line when a tool is missing or fails, or when a binary is not what is promised.
pub(crate) fn dist() -> Result<String, String> {
    let packages = house::root().join("target/packages");
    let shared = packages.join("shared");
    let work = || -> Result<(), String> {
        if packages.exists() {
            fs::remove_dir_all(&packages).map_err(at(&packages))?;
        }
        fs::create_dir_all(&shared).map_err(at(&shared))?;
        install()?;
        for target in &TARGETS {
            let binary = build(target)?;
            promised(&binary)?;
            if target.triple == TARGETS[0].triple {
                describe(&binary, &shared)?;
            }
            archive(target, &binary, &packages)?;
            debian(target, &packages)?;
            wheel(target, &packages)?;
        }
        fs::remove_dir_all(&shared).map_err(at(&shared))?;
        shell("sha256sum kavg* > SHA256SUMS", &packages)
    };
    work().map(|()| format!("the packages are in {}", packages.display()))
}

/// Has cargo-deb and maturin below `target/tools`, and the targets' libraries.
fn install() -> Result<(), String> {
    let targets = TARGETS.map(|target| target.triple).join(" ");
    shell(
        &format!(
            "rustup target add {targets}
            cargo install --locked --root target/tools cargo-deb@3.8.0
            test -x target/tools/python/bin/maturin || {{
                python3 -m venv target/tools/python
                target/tools/python/bin/pip install --quiet maturin==1.16.0 wheel==0.48.0
            }}"
        ),
        &house::root(),
    )
}

/// Builds the binary of a target, without symbols: where it is.
fn build(target: &Target) -> Result<PathBuf, String> {
    let triple = target.triple;
    cargo(
        target,
        &format!(
            "cargo rustc --locked --package kavg --bin kavg --profile dist --target {triple} -- {LINKED}"
        ),
    )?;
    Ok(house::root().join("target").join(triple).join("dist/kavg"))
}

/// Holds a binary to what is said of it: no interpreter, hence no library, and small.
fn promised(binary: &Path) -> Result<(), String> {
    let bytes = fs::read(binary).map_err(at(binary))?;
    if asks_for_an_interpreter(&bytes) {
        return Err(format!("{}: is not static", binary.display()));
    }
    match bytes.len() {
        0..=SIZE_MAX => Ok(()),
        size => Err(format!("{}: {size} bytes; at most {SIZE_MAX}", binary.display())),
    }
}

/// Whether a program of ELF, 64 bits, little-endian, has a segment of the type `PT_INTERP`.
fn asks_for_an_interpreter(bytes: &[u8]) -> bool {
    let number = |at: usize, width: usize| {
        let bytes = bytes.get(at..at + width).unwrap_or_default();
        bytes.iter().rev().fold(0, |number, byte| (number << 8) | usize::from(*byte))
    };
    let (table, width, entries) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    (0..entries).any(|entry| number(table + entry * width, 4) == 3)
}

/// Writes the completions and the pages of the manual.
fn describe(binary: &Path, shared: &Path) -> Result<(), String> {
    let kavg = binary.display();
    shell(&format!("mkdir man completions && {kavg} man --to man"), shared)?;
    SHELLS.iter().try_for_each(|(name, file)| {
        shell(&format!("{kavg} completions {name} > completions/{file}"), shared)
    })
}

/// The archive: the same bytes of the same commit, whoever makes it.
fn archive(target: &Target, binary: &Path, packages: &Path) -> Result<(), String> {
    let name = format!("kavg-{}-{}", env!("CARGO_PKG_VERSION"), target.triple);
    let documents = DOCUMENTS.map(|file| format!("../../{file}")).join(" ");
    shell(
        &format!(
            "mkdir {name}
            cp -r {} {documents} shared/man shared/completions {name}
            date=$(git log -1 --format=%cI)
            tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=\"$date\" -c {name} |
                gzip -9n > {name}.tar.gz
            rm -r {name}",
            binary.display()
        ),
        packages,
    )
}

/// The package for Debian; what is in it is said in `crates/cli/Cargo.toml`.
fn debian(target: &Target, packages: &Path) -> Result<(), String> {
    let (triple, packages) = (target.triple, packages.display());
    let line = format!(
        "target/tools/bin/cargo-deb deb --no-build --no-strip --locked --package kavg --profile dist \
         --target {triple} --output {packages}/"
    );
    cargo(target, &line)
}

/// The wheel that carries the binary. It is static, so every Linux takes it, with glibc or musl.
fn wheel(target: &Target, packages: &Path) -> Result<(), String> {
    let (triple, packages) = (target.triple, packages.display());
    let machine = triple.split('-').next().unwrap_or_default();
    let line = format!(
        "python=$PWD/target/tools/python/bin
        $python/maturin build --locked --manifest-path crates/cli/Cargo.toml --profile dist \
            --target {triple} --compatibility linux --out {packages} -- {LINKED}
        $python/wheel tags --remove {packages}/kavg-*-linux_{machine}.whl --platform-tag \
            manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
    );
    cargo(target, &line)
}

/// Runs a line that calls cargo with the flags of a target. A profile that optimises a package in
/// its own way does not strip it, so the flags do.
fn cargo(target: &Target, line: &str) -> Result<(), String> {
    let flags = format!("{} -C strip=symbols", target.flags);
    run(Command::new("sh").args(["-ec", line]).env("RUSTFLAGS", flags), &house::root(), line)
}

/// Runs lines of a shell in a folder, up to the first that fails.
fn shell(lines: &str, folder: &Path) -> Result<(), String> {
    run(Command::new("sh").args(["-ec", lines]), folder, lines)
}

fn run(command: &mut Command, folder: &Path, lines: &str) -> Result<(), String> {
    let status = command.current_dir(folder).status().map_err(at("sh"))?;
    status.success().then_some(()).ok_or_else(|| format!("failed: {lines}"))
}

/// An error with the place that it is about.
fn at(place: impl AsRef<Path>) -> impl Fn(io::Error) -> String {
    move |error: io::Error| format!("{}: {error}", place.as_ref().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_libraries_is_not_static() {
        let this = fs::read(std::env::current_exe().expect("a path")).expect("readable");
        assert!(asks_for_an_interpreter(&this));
        assert!(!asks_for_an_interpreter(b"#!/bin/sh\n"));
    }
}
