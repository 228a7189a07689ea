//! gzip files (RFC 1952): one or several deflate streams, each with a header and a checksum.

use std::io::{self, Read};

use crc32fast::Hasher;

use crate::inflate::{Inflate, cut_off, damaged};

/// Bytes of a name, a comment or another field of a header before it is refused.
const LONGEST_FIELD: usize = 1 << 16;

/// What a gzip file holds.
pub(crate) struct Gzip<R> {
    inflate: Inflate<R>,
    in_stream: bool,
    checksum: Hasher,
    /// Bytes of this stream, as far as 32 bits count them.
    length: u32,
}

impl<R: Read> Gzip<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { inflate: Inflate::new(source), in_stream: false, checksum: Hasher::new(), length: 0 }
    }

    /// Reads the header of a stream; false at the end of the file.
    fn header(&mut self) -> io::Result<bool> {
        const HEADER_CHECK: u8 = 2;
        const EXTRA: u8 = 4;
        const NAME: u8 = 8;
        const COMMENT: u8 = 16;
        let Some(first) = self.inflate.byte()? else { return Ok(false) };
        let [second, method, flags, ..] = self.bytes::<9>()?;
        if [first, second, method] != [0x1f, 0x8b, 8] {
            return Err(damaged("a header of another kind"));
        }
        if flags & EXTRA != 0 {
            let length = u16::from_le_bytes(self.bytes()?);
            for _ in 0..length {
                self.bytes::<1>()?;
            }
        }
        for _ in 0..(flags & (NAME | COMMENT)).count_ones() {
            self.skip_text()?;
        }
        if flags & HEADER_CHECK != 0 {
            self.bytes::<2>()?;
        }
        Ok(true)
    }

    fn skip_text(&mut self) -> io::Result<()> {
        for _ in 0..LONGEST_FIELD {
            if self.bytes()? == [0] {
                return Ok(());
            }
        }
        Err(damaged("a name without end"))
    }

    fn bytes<const NUMBER: usize>(&mut self) -> io::Result<[u8; NUMBER]> {
        let mut bytes = [0; NUMBER];
        for byte in &mut bytes {
            *byte = self.inflate.byte()?.ok_or_else(cut_off)?;
        }
        Ok(bytes)
    }

    /// Compares what stands behind a stream with what came out of it.
    fn trailer(&mut self) -> io::Result<()> {
        let checksum = std::mem::take(&mut self.checksum).finalize();
        let length = std::mem::take(&mut self.length);
        if [u32::from_le_bytes(self.bytes()?), u32::from_le_bytes(self.bytes()?)]
            != [checksum, length]
        {
            return Err(damaged("the checksum differs"));
        }
        Ok(())
    }
}

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_stream {
                if !self.header()? {
                    return Ok(0);
                }
                self.inflate.begin();
                self.in_stream = true;
            }
            let inflated = self.inflate.inflated()?;
            let number = inflated.len().min(buffer.len());
            if number == 0 {
                self.trailer()?;
                self.in_stream = false;
                continue;
            }
            buffer[..number].copy_from_slice(&inflated[..number]);
            self.checksum.update(&inflated[..number]);
            self.length = self.length.wrapping_add(number as u32);
            self.inflate.take(number);
            return Ok(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    fn gzip(text: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(text).expect("memory takes all");
        encoder.finish().expect("memory takes all")
    }

    /// What comes out, and whether all of it was sound. The source gives few bytes at a time.
    fn gunzip(file: &[u8]) -> (Vec<u8>, bool) {
        struct Drops<'a>(&'a [u8]);
        impl Read for Drops<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let number = buffer.len().min(777);
                self.0.read(&mut buffer[..number])
            }
        }
        let mut out = Vec::new();
        let sound = Gzip::new(Drops(file)).read_to_end(&mut out).is_ok();
        (out, sound)
    }

    /// Text like that of captures, with runs, repeats and bytes of no pattern.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            (1_usize..3_000).prop_map(|times| b"\"0.00\",".repeat(times)),
            (any::<u8>(), 1_usize..2_000).prop_map(|(byte, times)| vec![byte; times]),
            prop::collection::vec(any::<u8>(), 0..2_000),
            "(\"[0-9]{1,4}\\.[0-9]{2}\",){0,300}".prop_map(String::into_bytes),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_out_again(text in text(), level in 0_u32..10) {
            prop_assert_eq!(gunzip(&gzip(&text, level)), (text, true));
        }

        #[test]
        fn several_streams_are_one(first in text(), second in text()) {
            let file = [gzip(&first, 6), gzip(&second, 1)].concat();
            prop_assert_eq!(gunzip(&file), ([first, second].concat(), true));
        }

        #[test]
        fn of_a_file_that_is_cut_comes_out_what_was_there(text in text(), share in 0.0..1.0) {
            let file = gzip(&text, 6);
            let cut = (file.len() as f64 * share) as usize;
            let (out, sound) = gunzip(&file[..cut]);
            prop_assert!(text.starts_with(&out));
            prop_assert_eq!(sound, cut == 0);
        }

        #[test]
        fn damage_is_noticed_as_zlib_notices_it(
            text in text(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut file = gzip(&text, 6);
            for (place, byte) in changes {
                let place = place.index(file.len());
                file[place] ^= byte;
            }
            let mut expected = Vec::new();
            let zlib = flate2::read::MultiGzDecoder::new(file.as_slice());
            if zlib.take(1 << 24).read_to_end(&mut expected).is_ok() && expected.len() < 1 << 24 {
                prop_assert_eq!(gunzip(&file), (expected, true));
            } else {
                gunzip_bounded(&file);
            }
        }

        #[test]
        fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
            let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
            gunzip_bounded(&[&header, bytes.as_slice()].concat());
        }
    }

    fn gunzip_bounded(file: &[u8]) {
        let _ = io::copy(&mut Gzip::new(file).take(1 << 24), &mut io::sink());
    }

    #[test]
    fn optional_fields_of_a_header_are_passed_over() {
        let plain = gzip(b"text", 6);
        let mut file = plain[..10].to_vec();
        file[3] = 2 | 4 | 8 | 16;
        file.extend_from_slice(b"\x03\0abcname\0comment\0\0\0");
        file.extend_from_slice(&plain[10..]);
        assert_eq!(gunzip(&file), (b"text".to_vec(), true));
        let endless = [&file[..10], b"\0\0", &[b'x'; 1 << 17]].concat();
        assert_eq!(gunzip(&endless), (Vec::new(), false));
        assert_eq!(gunzip(&[plain.as_slice(), b"rest"].concat()), (b"text".to_vec(), false));
    }
}
