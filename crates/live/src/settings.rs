//! What was set at work, in a file: it is in force again when the daemon is begun anew.
//!
//! ```text
//!   kavg settings 1
//!   storage core device set -d naa.1 -O 64
//!   end
//! ```
//!
//! The lines are those of `--set`. The file is replaced by a new one that is written whole; the last
//! line tells that it is.

use std::{
    fs::{File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use knobs::{Effect, Line, Setting, Target};

/// The first line.
const FIRST: &str = "kavg settings 1";
/// The last line.
const LAST: &str = "end";
/// What the user's umask leaves of it is who may do what with a new file.
const MODE: u32 = 0o666;

/// Settings that were made at work.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    path: PathBuf,
    kept: Vec<Kept>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The line of the file, from 1.
    line: usize,
    pub(crate) host: Option<String>,
    pub(crate) setting: Setting,
    /// What it was put on: of each the place of its host. Nothing where no host has it any more.
    pub(crate) on: Vec<(usize, Target)>,
}

impl Kept {
    /// One that is not in the file yet, on nothing.
    pub(crate) const fn new(host: Option<String>, setting: Setting) -> Self {
        Self { line: 0, host, setting, on: Vec::new() }
    }

    /// Whether nothing is left of it after another.
    fn is_replaced_by(&self, other: &Self) -> bool {
        self.setting.is_replaced_by(&other.setting)
            && !self.on.is_empty()
            && self.on.iter().all(|target| other.on.contains(target))
    }

    /// The line that sets it.
    pub(crate) fn text(&self) -> String {
        match &self.host {
            Some(host) => format!("{host}: {}", self.setting),
            None => self.setting.to_string(),
        }
    }
}

impl Settings {
    /// What the file at `path` keeps, whose text `read` gives; one that is not there keeps no setting.
    ///
    /// # Errors
    /// One line: what `read` says, or the line of the file that is none.
    pub fn read(
        path: &Path,
        read: impl FnOnce(&Path) -> Result<String, String>,
    ) -> Result<Self, String> {
        if matches!(path.try_exists(), Ok(false)) {
            return Ok(Self::at(path));
        }
        let kept = parse(&read(path)?)
            .map_err(|(line, what)| format!("{}:{line}: {what}", path.display()))?;
        Ok(Self { kept, ..Self::at(path) })
    }

    /// Where they are kept unless another place is named: beside the file of the host, `.settings` at the end.
    #[must_use]
    pub fn place(host: &Path) -> PathBuf {
        host.with_extension("settings")
    }

    fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf(), kept: Vec::new() }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.kept.len()
    }

    /// Each with where it stands: `FILE:LINE` and the line. What a host reads as it boots comes first: a driver's
    /// depth bounds what its devices may be set to, whichever was set last.
    pub fn lines(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let place = |kept: &Kept| format!("{}:{}", self.path.display(), kept.line);
        let of_boot = |kept: &&Kept| matches!(kept.setting.effect(), Effect::HostReboot);
        let later = self.kept.iter().filter(move |kept| !of_boot(kept));
        let kept = self.kept.iter().filter(of_boot).chain(later);
        kept.map(move |kept| (place(kept), kept.text()))
    }

    pub(crate) fn kept(&self) -> &[Kept] {
        &self.kept
    }

    /// Says of each what it is on.
    pub(crate) fn find(&mut self, on: impl Fn(&Kept) -> Vec<(usize, Target)>) {
        self.kept.iter_mut().for_each(|kept| kept.on = on(kept));
    }

    /// Adds one, in the place of those of which nothing is left then.
    pub(crate) fn add(&mut self, new: Kept) {
        self.kept.retain(|known| !known.is_replaced_by(&new));
        self.kept.push(new);
    }

    /// Takes those away that do not stay.
    pub(crate) fn retain(&mut self, stays: impl FnMut(&Kept) -> bool) {
        self.kept.retain(stays);
    }

    /// Writes the file: whole and on the disk before it takes the place of the one before.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        (2..).zip(&mut self.kept).for_each(|(line, kept)| kept.line = line);
        let lines = self.kept.iter().map(|kept| kept.text() + "\n");
        let text = format!("{FIRST}\n{}{LAST}\n", lines.collect::<String>());
        let written = replace(&self.path, &text);
        written
            .map_err(|error| format!("settings cannot be kept: {}: {error}", self.path.display()))
    }
}

/// Puts a whole file in the place of what was there, under a name that nobody else has until then.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new();
    new.prefix(".kavg-").suffix(".part").permissions(Permissions::from_mode(MODE));
    let mut file = new.tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(directory)?.sync_all()
}

fn parse(text: &str) -> Result<Vec<Kept>, (usize, String)> {
    let refuse = |line: usize, what: String| (line + 1, what);
    let lines: Vec<_> = text.lines().collect();
    if lines.first() != Some(&FIRST) {
        return Err(refuse(0, format!("a file of settings begins with `{FIRST}`")));
    }
    let Some((&LAST, lines)) = lines[1..].split_last() else {
        return Err(refuse(
            lines.len() - 1,
            format!("the file is damaged: it does not end in `{LAST}`"),
        ));
    };
    let mut kept = Vec::new();
    for (line, text) in (2..).zip(lines) {
        let Line { host, settings } =
            text.parse().map_err(|what| (line, format!("`{text}`: {what}")))?;
        let each = settings.into_iter().map(|setting| {
            let host = host.clone();
            Kept { line, host, setting, on: Vec::new() }
        });
        kept.extend(each);
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn read(path: &Path) -> Result<Settings, String> {
        Settings::read(path, |path| fs::read_to_string(path).map_err(|error| error.to_string()))
    }

    fn file(text: &str) -> Result<Settings, String> {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("s");
        fs::write(&path, text).unwrap();
        let name = path.display().to_string();
        read(&path).map_err(|error| error.replace(&name, "s"))
    }

    #[test]
    fn what_is_damaged_is_told_with_its_line() {
        let table = [
            ("", "s:1: a file of settings begins with `kavg settings 1`"),
            ("kavg settings 2\nend\n", "s:1: a file of settings begins with"),
            ("kavg settings 1\n", "s:1: the file is damaged: it does not end in `end`"),
            (
                "kavg settings 1\nstorage core device set -d naa.1 -O 64\n",
                "s:2: the file is damaged: it does not end in `end`",
            ),
            (
                "kavg settings 1\nstorage core device set -d naa.1 -O 6x4\nend\n",
                "s:2: `storage core device set -d naa.1 -O 6x4`: Invalid value `6x4`",
            ),
            ("kavg settings 1\n\nend\n", "s:2: ``: there is no command"),
        ];
        for (text, expected) in table {
            let error = file(text).expect_err(text);
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(read(Path::new("/nowhere/s")).is_ok_and(|none| none.count() == 0));
    }

    #[test]
    fn what_is_written_is_read_and_a_later_one_replaces_an_earlier_one() {
        let directory = TempDir::new().unwrap();
        let mut settings = Settings::at(&directory.path().join("s"));
        let on = |disks: &[usize]| -> Vec<_> {
            disks.iter().map(|disk| (0, Target::Vdisk(counters::VdiskId::new(*disk)))).collect()
        };
        for (line, disks) in [
            ("a:scsi0:0: DiskLimitIOPerSecond 100", &[0][..]),
            ("a: DiskLimitIOPerSecond 200", &[0, 1]),
            ("a:scsi0:1: DiskLimitIOPerSecond 300", &[1]),
        ] {
            let Line { host, settings: mut parsed } = line.parse().unwrap();
            settings.add(Kept { on: on(disks), ..Kept::new(host, parsed.remove(0)) });
        }
        let beside = directory.path().join("s.new");
        fs::write(&beside, "unrelated").unwrap();
        settings.write().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        assert_eq!(fs::read_to_string(beside).unwrap(), "unrelated");
        let text = fs::read_to_string(directory.path().join("s")).unwrap();
        let expected = "kavg settings 1\na: DiskLimitIOPerSecond 200\n\
                        a:scsi0:1: DiskLimitIOPerSecond 300\nend\n";
        assert_eq!(text, expected);
        assert_eq!(read(&directory.path().join("s")).unwrap().count(), 2);
    }
}
