//! The one writer of files: whole or not at all, and never over something that is read.
//!
//! What a command writes is claimed before anything is read: a path that is an input or another
//! output of the same command, by whatever name or link, is refused. The bytes go into a temporary
//! file of its own in the same folder, are synced, and take the name in one step; a kill, a full
//! disk or a refusal leaves what was there. A pipe or device is written as it is. Nothing is ever
//! removed but the temporary itself: of what a killed run left nobody could be sure that it is ours.
//! Standard output, by whatever name, is written once and never replaced by a file.

use std::{
    fs::{self, File, TryLockError},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, TempPath};

use crate::{Named, Result};

/// Names of temporaries begin and end with these.
const PREFIX: &str = ".kavg-";
const SUFFIX: &str = ".part";

/// What a command reads and writes, so that no file is both.
#[derive(Clone)]
pub(crate) struct Outputs {
    inputs: Vec<PathBuf>,
    outputs: Vec<PathBuf>,
    is_stdout_claimed: bool,
}

/// A file that may be written.
pub(crate) struct Output {
    /// As the user named it.
    name: PathBuf,
    /// Where it is, behind every link; nowhere when it is standard output.
    place: Option<PathBuf>,
    /// Whether it is for the user's own eyes.
    is_secret: bool,
}

/// A file that is being written.
pub(crate) struct Pending {
    output: Output,
    file: BufWriter<Target>,
}

/// A file that is whole, and on the disk, but has not its name yet.
struct Sealed {
    output: Output,
    /// Closed: of a thousand hosts each may have one.
    temporary: Option<TempPath>,
}

enum Target {
    /// A file under a name of its own until it is whole.
    Temporary(NamedTempFile),
    /// A pipe or device.
    Special(File),
    Stdout(Named<io::Stdout>),
}

impl Outputs {
    /// A command that reads `inputs`, and standard input (`-`) whether it is among them or not.
    pub(crate) fn beside<P: AsRef<Path>>(inputs: impl IntoIterator<Item = P>) -> Self {
        let inputs = inputs.into_iter().map(|input| input.as_ref().to_owned());
        let inputs = inputs.chain([STDIN.into()]).collect();
        Self { inputs, outputs: vec![], is_stdout_claimed: false }
    }

    /// Standard output alone, where what is printed comes from `inputs`.
    ///
    /// # Errors
    /// One line when it is one of them.
    pub(crate) fn print<P: AsRef<Path>>(inputs: impl IntoIterator<Item = P>) -> Result<()> {
        Self::beside(inputs).leaves_inputs()
    }

    /// Claims a file to write, or standard output.
    ///
    /// # Errors
    /// One line when it is read from, is claimed already, or is in no folder.
    pub(crate) fn claim(&mut self, path: &Path) -> Result<Output> {
        let name = path.display();
        if is_stdout(path) {
            if self.is_stdout_claimed {
                return Err(format!("{name}: standard output takes one output; name a file").into());
            }
            self.leaves_inputs()?;
            self.is_stdout_claimed = true;
            return Ok(Output { name: path.to_owned(), place: None, is_secret: false });
        }
        names_file(path)?;
        let place = place(path).map_err(|error| format!("{name}: {error}"))?;
        if place.is_dir() {
            return Err(format!("{name}: is a directory; name a file").into());
        }
        if are_one(&fs::metadata(&place), &stream(&io::stderr())) {
            return Err(format!("{name}: is standard error; name another file").into());
        }
        if !is_device(&place) {
            self.take(path, &place)?;
            if fs::metadata(&place).is_ok_and(|there| there.is_file()) {
                // To replace it would get around its protection, and leave who uses it without a name.
                let opened = File::options().append(true).open(&place);
                let opened = opened.map_err(|error| format!("{name}: {error}"))?;
                if matches!(opened.try_lock(), Err(TryLockError::WouldBlock)) {
                    return Err(
                        format!("{name}: another program uses it; name another file").into()
                    );
                }
            }
        }
        Ok(Output { name: path.to_owned(), place: Some(place), is_secret: false })
    }

    /// Claims a folder to write into, which may be there or not.
    ///
    /// # Errors
    /// One line when it is read from or claimed already.
    pub(crate) fn claim_folder(&mut self, path: &Path) -> Result<()> {
        let place = place(path).map_err(|error| format!("{}: {error}", path.display()))?;
        self.take(path, &place)
    }

    /// Takes a place that is neither read nor written yet.
    fn take(&mut self, path: &Path, place: &Path) -> Result<()> {
        let same = |other: &&PathBuf| is_same(place, other);
        for (files, why) in [(&self.inputs, "read from"), (&self.outputs, "written already")] {
            let Some(other) = files.iter().find(same) else { continue };
            let also = match other {
                other if other == path => String::new(),
                other if is_stdin(other) => " as standard input".into(),
                other => format!(" as {}", other.display()),
            };
            return Err(format!("{}: is {why}{also}; name another file", path.display()).into());
        }
        self.outputs.push(path.to_owned());
        Ok(())
    }

    /// Claims a file to write that is no text.
    ///
    /// # Errors
    /// As of [`Self::claim`], and when it is standard output.
    pub(crate) fn claim_file(&mut self, path: &Path) -> Result<Output> {
        if is_stdout(path) {
            let name = path.display();
            return Err(format!("{name}: standard output takes no such file; name one").into());
        }
        self.claim(path)
    }

    /// Claims a file that is read and gone on with; one that may not be written is read alone.
    ///
    /// # Errors
    /// As of [`Self::claim_file`], but for the protection of the file.
    pub(crate) fn claim_kept(&mut self, path: &Path) -> Result<Output> {
        let is_protected =
            |place: &PathBuf| open_kept(place).is_ok_and(|(_, refusal)| refusal.is_some());
        match place(path).ok().filter(|place| is_file(place) && place.exists()) {
            Some(place) if is_protected(&place) => {
                self.take(path, &place)?;
                Ok(Output { name: path.to_owned(), place: Some(place), is_secret: false })
            }
            _ => self.claim_file(path),
        }
    }

    /// Refuses to print into what is read: a shell's `>>` opens it without a word.
    ///
    /// # Errors
    /// One line when standard output is one of them.
    pub(crate) fn leaves_inputs(&self) -> Result<()> {
        let stdout = stream(&io::stdout());
        let is_it = |input: &&PathBuf| match is_stdin(input) {
            // A socket may be both.
            true => stdout.as_ref().is_ok_and(fs::Metadata::is_file) && is_same_as_stdin(&stdout),
            false => are_one(&fs::metadata(input), &stdout),
        };
        match self.inputs.iter().find(is_it) {
            Some(input) => Err(format!(
                "{}: is read from, and is standard output; name another file",
                input.display()
            )
            .into()),
            None => Ok(()),
        }
    }

    /// Whether one of the outputs is standard output; then nothing else goes there.
    ///
    /// # Errors
    /// One line when it is read from, or when `other`, an option, would go there as well.
    pub(crate) fn take_stdout(&self, other: Option<&str>) -> Result<bool> {
        self.leaves_inputs()?;
        match other.filter(|_| self.is_stdout_claimed) {
            Some(other) => Err(format!(
                "{other}: standard output takes one output, and a file is written there; name a file"
            )
            .into()),
            None => Ok(self.is_stdout_claimed),
        }
    }
}

/// Refuses a name that is one of a folder, by its last letter or by all of it: what is beside it is not
/// what was named.
pub(crate) fn names_file(path: &Path) -> Result<()> {
    let is_folder = |last: &u8| std::path::is_separator(char::from(*last));
    let ends_as_folder = path.as_os_str().as_encoded_bytes().last().is_some_and(is_folder);
    match path.file_name().filter(|_| !ends_as_folder) {
        Some(_) => Ok(()),
        None => Err(format!("{}: is a directory; name a file", path.display()).into()),
    }
}

/// How standard input is called.
const STDIN: &str = "-";

fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

/// Whether a path is standard output: by a name of it, or because it leads to the file or pipe
/// that standard output is.
pub(crate) fn is_stdout(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.into_iter().any(|name| path == Path::new(name))
        || are_one(&fs::metadata(path), &stream(&io::stdout()))
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
    if is_stdin(other) {
        return is_same_as_stdin(&fs::metadata(here));
    }
    let Ok(there) = place(other) else { return false };
    here == there || are_one(&fs::metadata(here), &fs::metadata(there))
}

fn is_same_as_stdin(file: &io::Result<fs::Metadata>) -> bool {
    are_one(file, &stream(&io::stdin()))
}

/// Whether a place is a terminal or `/dev/null`: nothing that writing could destroy.
#[cfg(unix)]
pub(crate) fn is_device(place: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::metadata(place).is_ok_and(|file| file.file_type().is_char_device())
}

#[cfg(not(unix))]
pub(crate) fn is_device(place: &Path) -> bool {
    !is_file(place)
}

/// Whether two are one file or pipe. A device is not looked at: see [`is_device`].
#[cfg(unix)]
fn are_one(here: &io::Result<fs::Metadata>, there: &io::Result<fs::Metadata>) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let (Ok(here), Ok(there)) = (here, there) else { return false };
    !here.file_type().is_char_device() && (here.dev(), here.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn are_one(_: &io::Result<fs::Metadata>, _: &io::Result<fs::Metadata>) -> bool {
    false
}

/// A file to read and to go on with, or to read alone, and why.
fn open_kept(place: &Path) -> io::Result<(File, Option<io::Error>)> {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(place);
    match opened {
        Err(refusal) if matches!(refusal.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            match File::open(place) {
                Ok(file) => Ok((file, Some(refusal))),
                Err(_) => Err(refusal),
            }
        }
        opened => Ok((opened?, None)),
    }
}

/// What a standard stream is.
#[cfg(unix)]
fn stream(stream: &impl std::os::fd::AsFd) -> io::Result<fs::Metadata> {
    File::from(stream.as_fd().try_clone_to_owned()?).metadata()
}

#[cfg(not(unix))]
fn stream<S>(_: &S) -> io::Result<fs::Metadata> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Output {
    /// As the user named it.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// The same as a file that nobody else is to read.
    pub(crate) fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    /// Writes the file; what was there is replaced only when `write` has succeeded.
    pub(crate) fn write(self, write: impl FnOnce(&mut Pending) -> Result<()>) -> Result<()> {
        let mut pending = self.open()?;
        write(&mut pending)?;
        pending.finish()
    }

    /// Opens a file that is read and gone on with, and why it is read alone where it may not be written.
    /// Nothing in it is replaced, and what it is to hold is for whoever goes on with it to check.
    ///
    /// # Errors
    /// When it cannot be opened, or is a pipe or device.
    pub(crate) fn open_kept(&self) -> Result<(File, Option<io::Error>)> {
        let place = self.place.as_deref().unwrap_or(&self.name);
        if !is_file(place) {
            return Err(format!("{}: is no file; name one", self.name.display()).into());
        }
        Ok(open_kept(place).map_err(|error| self.failed(error))?)
    }

    /// Whether it is that file still which has the name.
    pub(crate) fn is_still(&self, file: &File) -> bool {
        let there = fs::metadata(self.place.as_deref().unwrap_or(&self.name));
        cfg!(not(unix)) || are_one(&there, &file.metadata())
    }

    /// Begins to write it.
    pub(crate) fn open(self) -> Result<Pending> {
        let target = match &self.place {
            None => Ok(Target::Stdout(Named(io::stdout()))),
            Some(place) if is_file(place) => {
                temporary(place, self.is_secret).map(Target::Temporary)
            }
            Some(place) => File::options().write(true).open(place).map(Target::Special),
        };
        let target = target.map_err(|error| self.failed(error))?;
        Ok(Pending { output: self, file: BufWriter::new(target) })
    }

    /// Standard output says itself that it is it.
    fn failed(&self, error: io::Error) -> io::Error {
        match self.place {
            Some(_) => io::Error::new(error.kind(), format!("{}: {error}", self.name.display())),
            None => error,
        }
    }
}

/// A file beside a place, as readable as the one that it replaces, or for its owner alone.
fn temporary(place: &Path, is_secret: bool) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    let replaced = fs::metadata(place).ok().filter(|_| !is_secret);
    #[cfg(unix)]
    if replaced.is_none() {
        use std::os::unix::fs::PermissionsExt;
        // The user's umask takes from it what it takes from any new file.
        let mode = if is_secret { 0o600 } else { 0o666 };
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let file = builder.tempfile_in(place.parent().unwrap_or(Path::new(".")))?;
    if let Some(replaced) = replaced {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            // Only root can; for anybody else it becomes theirs.
            let _ = fchown(file.as_file(), Some(replaced.uid()), Some(replaced.gid()));
        }
        file.as_file().set_permissions(replaced.permissions())?;
    }
    Ok(file)
}

impl Pending {
    /// Gives the file its name, once all of it is on the disk.
    pub(crate) fn finish(self) -> Result<()> {
        self.seal()?.finish()
    }

    /// Brings all of it to the disk.
    fn seal(self) -> Result<Sealed> {
        let Self { output, file } = self;
        let sealed = file.into_inner().map_err(io::IntoInnerError::into_error);
        let sealed = sealed.and_then(|target| match target {
            Target::Temporary(file) => {
                file.as_file().sync_all()?;
                Ok(Some(file.into_temp_path()))
            }
            mut target => target.flush().map(|()| None),
        });
        let temporary = sealed.map_err(|error| output.failed(error))?;
        Ok(Sealed { output, temporary })
    }
}

/// Gives files their names, once all of them are whole: of those that belong together all are replaced, or
/// none.
pub(crate) fn finish_all(files: impl IntoIterator<Item = Result<Pending>>) -> Result<()> {
    let sealed = files.into_iter().map(|file| file?.seal()).collect::<Result<Vec<_>>>()?;
    sealed.into_iter().try_for_each(Sealed::finish)
}

impl Sealed {
    /// Gives the file its name.
    fn finish(self) -> Result<()> {
        let Self { output, temporary } = self;
        let (Some(file), Some(place)) = (temporary, &output.place) else { return Ok(()) };
        let named = file.persist(place).map_err(|error| error.error);
        Ok(named.and_then(|_| sync_folder(place)).map_err(|error| output.failed(error))?)
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
        self.file.write(bytes).map_err(|error| self.output.failed(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.output.failed(error))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Temporary(file) => file.as_file_mut().write(bytes),
            Self::Special(file) => file.write(bytes),
            Self::Stdout(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Temporary(file) => file.as_file_mut().flush(),
            Self::Special(file) => file.flush(),
            Self::Stdout(out) => out.flush(),
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
    fn a_file_with_the_name_of_a_temporary_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".kavg-empty.part", ".kavg-full.part"] {
            fs::write(folder.path().join(name), &name[10..]).unwrap();
        }
        let output = Outputs::beside::<&Path>([]).claim(&folder.path().join("new")).unwrap();
        output.write(|file| Ok(file.write_all(b"whole")?)).unwrap();
        assert_eq!(names(folder.path()), [".kavg-empty.part", ".kavg-full.part", "new"]);
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
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let output = Outputs::beside::<&Path>([]).claim(&path).unwrap().secret();
        output.write(|file| Ok(file.write_all(b"2")?)).unwrap();
        assert_eq!(mode(), 0o600);
    }
}
