//! What `build.rs` packed into the binary, the documentation, the scenarios and what pages carry: a third
//! of its room.

use std::{io::Read, iter, sync::OnceLock};

use flate2::read::DeflateDecoder;

/// The files of a folder, unpacked when they are first asked for.
pub(crate) struct Packed {
    bytes: &'static [u8],
    text: OnceLock<String>,
}

impl Packed {
    pub(crate) const fn new(bytes: &'static [u8]) -> Self {
        Self { bytes, text: OnceLock::new() }
    }

    /// Path in the folder and text of each file, by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.text.get_or_init(|| unpack(self.bytes)).split_terminator('\0');
        iter::from_fn(move || parts.next().zip(parts.next()))
    }
}

fn unpack(bytes: &[u8]) -> String {
    let mut text = String::new();
    DeflateDecoder::new(bytes).read_to_string(&mut text).expect("packed by `build.rs`");
    text
}
