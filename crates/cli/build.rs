//! Puts the shipped scenarios, and the parameter files that they name, into the binary.

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut paths: Vec<_> =
        fs::read_dir(&directory)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.is_file());
    paths.sort();
    let entry = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default();
        format!("({name:?}, include_str!({path:?})),")
    };
    let table: String = paths.iter().map(entry).collect();
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&out).join("shipped.rs"), format!("&[{table}]"))
}
