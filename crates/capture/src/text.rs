//! Small files of text (scenarios, job files, outputs of esxcli and vscsiStats), read whole up to a
//! bound: a device or a capture given in their place is refused, not read to its end.

use std::{fs::File, io::Read, path::Path};

use crate::{
    Error,
    input::{Format, MARK, Utf16},
};

/// The most bytes of such a file. esxcli tells of a thousand devices in one MiB.
const BYTES_MAX: u64 = 16 << 20;

/// Reads a file that people write; `-` is standard input.
///
/// # Errors
/// A file that cannot be read, is larger than 16 MiB, or holds bytes that are no UTF-8: in which line.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let (name, bytes) = bytes(path)?;
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count() as u64;
        Error::at(&name, line, "holds bytes that are no UTF-8; save it as UTF-8")
    })
}

/// Reads what a program on a host printed, whatever its encoding: what is no text becomes U+FFFD.
///
/// # Errors
/// A file that cannot be read or is larger than 16 MiB.
pub fn read_output(path: &Path) -> Result<String, Error> {
    let (_, bytes) = bytes(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The name to say, and the bytes as UTF-8 where a mark says that they are UTF-16, as PowerShell's `>`
/// writes it.
fn bytes(path: &Path) -> Result<(String, Vec<u8>), Error> {
    let (name, mut reader): (_, Box<dyn Read>) = match path.to_str() {
        Some("-") => ("standard input".to_owned(), Box::new(std::io::stdin())),
        _ => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| Error::unreadable(&name, &error))?;
            (name, Box::new(file))
        }
    };
    let mut bytes = Vec::new();
    let read = (&mut reader).take(BYTES_MAX + 1).read_to_end(&mut bytes);
    let read = read.map_err(|error| Error::unreadable(&name, &error))?;
    if read as u64 > BYTES_MAX {
        let what = format!("is larger than {} MiB: no file of this kind is", BYTES_MAX >> 20);
        return Err(Error::new(&name, what));
    }
    let format = Format::of(&bytes);
    if matches!(format, Format::Utf16Le | Format::Utf16Be) {
        let mut text = Vec::new();
        let read = Utf16::new(bytes.as_slice(), format).read_to_end(&mut text);
        read.map_err(|error| Error::unreadable(&name, &error))?;
        bytes = text;
    }
    // The mark of an editor on Windows.
    if bytes.starts_with(MARK.as_bytes()) {
        bytes.drain(..MARK.len());
    }
    Ok((name, bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn in_file(content: &[u8]) -> (Result<String, Error>, Result<String, Error>) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(content).expect("written");
        (read_text(file.path()), read_output(file.path()))
    }

    #[test]
    fn marks_and_encodings_are_read_and_bad_bytes_are_named_by_line() {
        let (text, output) = in_file("\u{feff}a = 1\n".as_bytes());
        assert_eq!((text.as_deref(), output.as_deref()), (Ok("a = 1\n"), Ok("a = 1\n")));
        let utf16: Vec<u8> =
            "\u{feff}naa.6\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(in_file(&utf16).1.as_deref(), Ok("naa.6\r\n"));
        let (text, output) = in_file(b"a = 1\nb = \xff\n");
        assert_eq!(text.map_err(|error| error.line), Err(Some(2)));
        assert_eq!(output.as_deref(), Ok("a = 1\nb = \u{fffd}\n"));
    }

    #[test]
    #[cfg(unix)]
    fn what_has_no_end_is_refused() {
        for read in [read_text, read_output] {
            let refusal = read(Path::new("/dev/zero")).map_err(|error| error.to_string());
            let said = "/dev/zero: is larger than 16 MiB: no file of this kind is";
            assert_eq!(refusal, Err(said.to_owned()));
        }
    }
}
