//! The one writer of files: whole or not at all, and never over something that is read.
//!
//! What a command writes is claimed before anything is read: a path that is an input or another
//! output of the same command, by whatever name or link, is refused. The bytes go into a temporary
//! file of its own in the same folder, are synced, and take the name in one step; a kill, a full
//! disk or a refusal leaves what was there. A pipe or device is written as it is.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::Result;

/// Names of temporaries begin and end with these.
const PREFIX: &str = ".kavg-";
const SUFFIX: &str = ".part";

/// What a command reads and writes, so that no file is both.
pub(crate) struct Outputs {
    inputs: Vec<PathBuf>,
    outputs: Vec<PathBuf>,
}

/// A file that may be written.
pub(crate) struct Output {
    /// As the user named it.
    name: PathBuf,
    /// Where it is, behind every link.
    place: PathBuf,
}

/// A file that is being written.
pub(crate) struct Pending {
    output: Output,
    file: BufWriter<Target>,
}

enum Target {
    /// A file under a name of its own until it is whole.
    Temporary(NamedTempFile),
    /// A pipe or device.
    Special(File),
}

impl Outputs {
    /// A command that reads `inputs`; `-` is standard input and no file.
    pub(crate) fn beside<P: AsRef<Path>>(inputs: impl IntoIterator<Item = P>) -> Self {
        let inputs = inputs.into_iter().map(|input| input.as_ref().to_owned());
        Self { inputs: inputs.filter(|input| input != OsStr::new("-")).collect(), outputs: vec![] }
    }

    /// Claims a file to write.
    ///
    /// # Errors
    /// One line when it is read from, is claimed already, or is in no folder.
    pub(crate) fn claim(&mut self, path: &Path) -> Result<Output> {
        let name = path.display();
        let place = place(path).map_err(|error| format!("{name}: {error}"))?;
        if place.is_dir() {
            return Err(format!("{name}: is a directory; name a file").into());
        }
        if is_file(&place) {
            let same = |other: &&PathBuf| is_same(&place, other);
            for (files, why) in [(&self.inputs, "read from"), (&self.outputs, "written already")] {
                let Some(other) = files.iter().find(same) else { continue };
                let also = match other == path {
                    true => String::new(),
                    false => format!(" as {}", other.display()),
                };
                return Err(format!("{name}: is {why}{also}; name another file").into());
            }
            self.outputs.push(path.to_owned());
        }
        Ok(Output { name: path.to_owned(), place })
    }
}

/// Removes what killed runs left in a folder. Who still writes holds a lock, which ends with the
/// process however that ends.
fn remove_left_over(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let is_ours = name.starts_with(PREFIX) && name.ends_with(SUFFIX);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let Ok(file) = File::options().write(true).open(entry.path()) else { continue };
            if file.try_lock().is_ok() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Whether a place holds a file or nothing yet, and no pipe or device.
fn is_file(place: &Path) -> bool {
    fs::metadata(place).map_or(true, |metadata| metadata.is_file())
}

/// Where a path leads: behind its links when it is there, else in the folder behind them.
fn place(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(place) => Ok(place),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link that leads to nothing yet names its target from its own folder.
            let linked = fs::read_link(path).ok();
            let beside = linked.map_or(path.to_owned(), |target| path.with_file_name(target));
            let file = beside.file_name().ok_or(error)?;
            let folder = beside.parent().filter(|folder| !folder.as_os_str().is_empty());
            Ok(fs::canonicalize(folder.unwrap_or(Path::new(".")))?.join(file))
        }
        Err(error) => Err(error),
    }
}

/// Whether a place and a path are one file, by any name.
fn is_same(here: &Path, other: &Path) -> bool {
    let Ok(there) = place(other) else { return false };
    here == there || are_linked(here, &there)
}

#[cfg(unix)]
fn are_linked(here: &Path, there: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path| fs::metadata(path).ok().map(|file: fs::Metadata| (file.dev(), file.ino()));
    id(here).is_some_and(|here| id(there) == Some(here))
}

#[cfg(not(unix))]
fn are_linked(_: &Path, _: &Path) -> bool {
    false
}

impl Output {
    /// What its name ends in, in lower case.
    pub(crate) fn extension(&self) -> Option<String> {
        Some(self.name.extension()?.to_str()?.to_ascii_lowercase())
    }

    /// Writes the file; what was there is replaced only when `write` has succeeded.
    pub(crate) fn write(self, write: impl FnOnce(&mut Pending) -> Result<()>) -> Result<()> {
        let mut pending = self.open()?;
        let written = write(&mut pending);
        // What could not be written does not know the name of the file.
        written.map_err(|error| match error.downcast::<io::Error>() {
            Ok(error) => pending.output.failed(&error).into(),
            Err(error) => error,
        })?;
        pending.finish()
    }

    /// Begins to write it.
    pub(crate) fn open(self) -> Result<Pending> {
        let target = if is_file(&self.place) {
            self.temporary().map(Target::Temporary)
        } else {
            File::options().write(true).open(&self.place).map(Target::Special)
        };
        let target = target.map_err(|error| self.failed(&error))?;
        Ok(Pending { output: self, file: BufWriter::new(target) })
    }

    /// A file beside its place, as readable as the one that it replaces.
    fn temporary(&self) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).suffix(SUFFIX);
        let replaced = fs::metadata(&self.place).ok().map(|file| file.permissions());
        #[cfg(unix)]
        if replaced.is_none() {
            use std::os::unix::fs::PermissionsExt;
            // The user's umask takes from it what it takes from any new file.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let folder = self.place.parent().unwrap_or(Path::new("."));
        remove_left_over(folder);
        let file = loop {
            let file = builder.tempfile_in(folder)?;
            // Where a file system has no locks, nothing is ever removed.
            let _ = file.as_file().lock();
            // Another run may have been faster, and have taken it for left over.
            if file.path().exists() {
                break file;
            }
        };
        if let Some(permissions) = replaced {
            file.as_file().set_permissions(permissions)?;
        }
        Ok(file)
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("{}: {error}", self.name.display())
    }
}

impl Pending {
    /// Gives the file its name, once all of it is on the disk.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { output, file } = self;
        let finished = file.into_inner().map_err(io::IntoInnerError::into_error);
        let finished = finished.and_then(|target| match target {
            Target::Special(mut file) => file.flush(),
            Target::Temporary(file) => {
                file.as_file().sync_all()?;
                file.persist(&output.place).map_err(|error| error.error)?;
                sync_folder(&output.place)
            }
        });
        Ok(finished.map_err(|error| output.failed(&error))?)
    }
}

/// Makes a new name last; not every file system can be asked to.
fn sync_folder(place: &Path) -> io::Result<()> {
    let Some(folder) = place.parent() else { return Ok(()) };
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Err(error),
        _ => Ok(()),
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Temporary(file) => file.as_file_mut().write(bytes),
            Self::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Temporary(file) => file.as_file_mut().flush(),
            Self::Special(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        fs::write(&path, "old").unwrap();
        let claim = || Outputs::beside::<&Path>([]).claim(&path).unwrap();
        let refused = claim().write(|file| {
            file.write_all(b"half")?;
            Err("no more".into())
        });
        assert_eq!(refused.unwrap_err().to_string(), "no more");
        assert_eq!((text(&path).as_str(), names(folder.path())), ("old", vec!["x.csv".into()]));
        claim().write(|file| Ok(file.write_all(b"new")?)).unwrap();
        assert_eq!((text(&path).as_str(), names(folder.path())), ("new", vec!["x.csv".into()]));
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_being_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".kavg-killed.part"), "half").unwrap();
        fs::write(folder.path().join(".kavg-empty.part"), "").unwrap();
        fs::write(folder.path().join("kavg-own.part"), "unrelated").unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            let mut file = Outputs::beside::<&Path>([]).claim(&path).unwrap().open().unwrap();
            file.write_all(b"whole").and_then(|()| file.flush()).unwrap();
            file
        };
        let first = write("first");
        write("second").finish().unwrap();
        first.finish().unwrap();
        assert_eq!(names(folder.path()), ["first", "kavg-own.part", "second"]);
    }

    #[test]
    #[cfg(unix)]
    fn an_output_that_is_read_or_written_already_is_refused_by_any_name() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.csv"), "precious").unwrap();
        fs::create_dir(at("sub")).unwrap();
        symlink(at("a.csv"), at("soft.csv")).unwrap();
        fs::hard_link(at("a.csv"), at("hard.csv")).unwrap();
        symlink(folder.path(), at("sub/up")).unwrap();
        let mut outputs = Outputs::beside([at("a.csv"), PathBuf::from("-")]);
        for name in ["a.csv", "soft.csv", "hard.csv", "sub/../a.csv", "sub/up/a.csv"] {
            let refusal = outputs.claim(&at(name)).err().map(|error| error.to_string());
            assert!(refusal.is_some_and(|line| line.contains("is read from")), "{name}");
        }
        symlink(at("new.csv"), at("dangling.csv")).unwrap();
        outputs.claim(&at("new.csv")).unwrap();
        for name in ["new.csv", "sub/up/new.csv", "dangling.csv"] {
            let refusal = outputs.claim(&at(name)).err().map(|error| error.to_string());
            assert!(refusal.is_some_and(|line| line.contains("is written already")), "{name}");
        }
        assert!(outputs.claim(&at("sub")).is_err());
        assert!(outputs.claim(&at("missing/new.csv")).is_err());
        assert_eq!(text(&at("a.csv")), "precious");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_stays_a_link_and_a_device_is_written_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut outputs = Outputs::beside::<&Path>([]);
        outputs.claim(&link).unwrap().write(|file| Ok(file.write_all(b"1")?)).unwrap();
        assert!(link.is_symlink());
        assert_eq!(text(&real), "1");
        for _ in 0..2 {
            let null = outputs.claim(Path::new("/dev/null")).unwrap();
            null.write(|file| Ok(file.write_all(b"1")?)).unwrap();
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_replaced_file_is_as_readable_as_it_was() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let output = Outputs::beside::<&Path>([]).claim(&path).unwrap();
        output.write(|file| Ok(file.write_all(b"1")?)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
