//! The file of a component's journal, which is named in what goes wrong with it.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// A new file.
pub(crate) struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// Makes the file `name` in a directory, and the directory where there is none.
    pub(crate) fn create(directory: &Path, name: &str) -> io::Result<Self> {
        let path = directory.join(name);
        let file = fs::create_dir_all(directory).and_then(|()| File::create_new(&path));
        let file = file.map_err(|error| named(&path, &error))?;
        Ok(Self { path, file })
    }
}

impl Write for Record {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| named(&self.path, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| named(&self.path, &error))
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_the_file() {
        let path = PathBuf::from("/dev/full");
        let file = File::options().write(true).open(&path).expect("a device");
        let error = Record { path, file }.write(b"x").unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: No space left on device"), "{error}");
    }
}
