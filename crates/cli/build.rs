//! Puts into the binary what is no code: the shipped scenarios with the parameter files that they name,
//! the documentation, what pages carry with them, and which commit it is built from for which target.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use flate2::{Compression, write::DeflateEncoder};

/// What stands in a page that the program prints of itself.
const PRINTED: &str = "\n\nThis page is what `kavg reference ";

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    pack("scenarios", &root.join("scenarios"), false)?;
    pack("docs", &root.join("docs"), true)?;
    pack("assets", &root.join("crates/cli/assets"), true)?;
    println!("cargo::rustc-env=KAVG_VERSION={}", version(&root));
    Ok(())
}

/// Packs the files of a folder, as `src/packed.rs` unpacks them: of each its path in the folder and its
/// text, with a zero behind either. What the program prints of itself is left out.
fn pack(name: &str, folder: &Path, deep: bool) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut paths = Vec::new();
    walk(folder, deep, &mut paths)?;
    paths.sort();
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let packed = fs::File::create(Path::new(&out).join(name))?;
    let mut packed = DeflateEncoder::new(packed, Compression::best());
    for path in &paths {
        let name = path.strip_prefix(folder).unwrap_or(path);
        let text = fs::read_to_string(path)?;
        if !text.contains(PRINTED) {
            write!(packed, "{}\0{text}\0", name.display())?;
        }
    }
    packed.finish().map(drop)
}

fn walk(folder: &Path, deep: bool, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            false => paths.push(path),
            true if deep => walk(&path, deep, paths)?,
            true => {}
        }
    }
    Ok(())
}

/// The version, the commit where the source is a checkout, and the target.
fn version(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // A commit, and a checkout of another one, writes to the log of HEAD.
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]);
    log.iter()
        .filter(|log| Path::new(log).exists())
        .for_each(|log| println!("cargo::rerun-if-changed={log}"));
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let target = env::var("TARGET").ok();
    let of: Vec<_> = commit.into_iter().chain(target).collect();
    format!("{} ({})", env!("CARGO_PKG_VERSION"), of.join(", "))
}
