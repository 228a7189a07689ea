//! What the checks look at: the text files of the project and its packages, read once.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// A text file of the project.
pub(crate) struct File {
    /// Relative to the root, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines, numbered from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    pub(crate) fn at(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { place: format!("{}:{line}", self.path), message: message.into() }
    }
}

/// A package as `cargo metadata` tells of it.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) license: Option<String>,
    /// Where it comes from; nothing for our own.
    pub(crate) source: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency that a package declares.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Nothing, `dev` or `build`.
    pub(crate) kind: Option<String>,
}

/// One broken rule.
pub(crate) struct Finding {
    place: String,
    message: String,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// The project as it lies on the disk.
pub(crate) struct House {
    pub(crate) root: PathBuf,
    pub(crate) files: Vec<File>,
    pub(crate) packages: Vec<Package>,
}

impl House {
    /// Reads the project that this program was built from.
    pub(crate) fn read() -> Result<Self, String> {
        let root = root();
        Ok(Self { files: files(&root)?, packages: packages(&root)?, root })
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// A house of these files alone: the bad example of a check.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file =
            |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        let files = files.iter().map(file).collect();
        Self { root: root(), files, packages: Vec::new() }
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Every text file that git would track.
fn files(root: &Path) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    let not_git = |entry: &ignore::DirEntry| entry.file_name() != ".git";
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .parents(false)
        .require_git(false)
        .filter_entry(not_git)
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walk {
        let entry = entry.map_err(|error| error.to_string())?;
        let path = entry.path();
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let Some(text) = is_file.then(|| std::fs::read_to_string(path).ok()).flatten() else {
            continue;
        };
        let relative = path.strip_prefix(root).unwrap_or(path);
        let path = relative.to_string_lossy().replace('\\', "/");
        files.push(File { path, text });
    }
    Ok(files)
}

fn packages(root: &Path) -> Result<Vec<Package>, String> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(metadata.packages)
}
