//! A whole talk with a client whose bytes are known beforehand: for the tests and the fuzzer.

use std::{os::unix::net::UnixStream, sync::Arc};

use counters::{Status, VdiskId};

use super::{
    Arrived, Connection, Seat,
    handshake::{Handshake, Step},
    stream::Stream,
};
use crate::{
    buffer::{BUFFER_MAX, Buffers},
    export::{Export, Extent, Verb},
};

/// What a client of these bytes has asked for once it has agreed on an export, all of which is done at
/// once: how many requests, and of how many bytes together.
///
/// # Panics
/// When something does not hold that holds whatever a client says.
#[must_use]
pub fn talk(bytes: &[u8]) -> (u64, u64) {
    let export = |name: &str, read_only| Export {
        name: name.into(),
        vdisk: VdiskId(0),
        component: 0,
        bytes: 1 << 30,
        block: 512,
        frees: 512,
        read_only,
        lends: None,
        socket: None,
    };
    let exports: Arc<[Export]> = [export("a", false), export("b", true)].into();
    let mut out = Vec::new();
    let mut handshake = Handshake::new(Arc::clone(&exports), &mut out);
    let mut rest = bytes;
    loop {
        let (taken, step) = handshake.take(rest, &mut out);
        rest = &rest[taken..];
        assert!(out.len() <= 64 * bytes.len() + 64, "an answer is as long as what was asked");
        match step {
            Step::More if taken > 0 => {}
            Step::More | Step::Close => return (0, 0),
            Step::Agreed(agreed) => {
                let Some(seat) = Seat::take(&Arc::default()) else { return (0, 0) };
                let Ok((stream, _client)) = UnixStream::pair() else { return (0, 0) };
                let (stream, early) = (Stream::Unix(stream), rest.to_vec());
                if stream.set_nonblocking().is_err() {
                    return (0, 0);
                }
                return served(Connection::new(Arrived { stream, exports, agreed, early, seat }));
            }
        }
    }
}

fn served(mut connection: Connection) -> (u64, u64) {
    let (mut requests, mut moved) = (0, 0);
    let mut buffers = Buffers::default();
    while let Some(mut asked) = connection.pull(&mut buffers) {
        let is_flush = matches!(asked.verb, Verb::Io { op: counters::Op::Flush, .. });
        assert!(asked.at + u64::from(asked.bytes) <= connection.export().bytes);
        assert_eq!(asked.bytes == 0, is_flush);
        let held = asked.buffer.as_ref().map_or(0, |buffer| buffer.len());
        assert!(held <= BUFFER_MAX);
        requests += 1;
        moved += held as u64;
        match asked.verb {
            Verb::Map { .. } => {
                let extent = Extent { bytes: asked.bytes, is_hole: false };
                connection.answer_map(asked.cookie, &[extent]);
            }
            Verb::Io { .. } => connection.answer(&mut asked, Status::Good, &mut buffers),
        }
        connection.push(&mut buffers);
    }
    (requests, moved)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// A client that agrees on an export and then asks.
    fn client(name: &str, requests: &[(u16, u16, u64, u32)]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 3];
        for (option, data) in [
            (8_u32, vec![]),
            (7, [&(name.len() as u32).to_be_bytes(), name.as_bytes(), &[0, 0]].concat()),
        ] {
            bytes.extend(b"IHAVEOPT");
            bytes.extend(option.to_be_bytes());
            bytes.extend((data.len() as u32).to_be_bytes());
            bytes.extend(data);
        }
        for (flags, kind, at, length) in requests {
            bytes.extend(0x2560_9513_u32.to_be_bytes());
            bytes.extend(flags.to_be_bytes());
            bytes.extend(kind.to_be_bytes());
            bytes.extend(7_u64.to_be_bytes());
            bytes.extend(at.to_be_bytes());
            bytes.extend(length.to_be_bytes());
            if *kind == 1 {
                bytes.extend(vec![1; *length as usize]);
            }
        }
        bytes
    }

    #[test]
    fn a_client_gets_what_it_asks_for() {
        let asked = [(0, 0, 0, 4096), (1, 1, 512, 512), (0, 3, 0, 0), (0, 6, 0, 1 << 20)];
        assert_eq!(talk(&client("a", &asked)), (4, 4096 + 512));
        assert_eq!(talk(&client("b", &asked)), (2, 4096), "it is read-only");
        assert_eq!(talk(&client("a", &[(0, 3, u64::MAX, 512)])), (1, 0), "a flush has no place");
        assert_eq!(talk(&client("c", &asked)), (0, 0));
        assert_eq!(talk(&client("a", &[(0, 2, 0, 0), (0, 0, 0, 512)])), (0, 0), "it has gone");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..300)) {
            let _ = talk(&bytes);
            let _ = talk(&[&[0, 0, 0, 3], bytes.as_slice()].concat());
            let _ = talk(&[client("a", &[]), bytes].concat());
        }

        #[test]
        fn no_request_makes_it_panic(
            flags in 0..32_u16, kind in 0..10_u16, at in any::<u64>(), length in 0..70_000_u32,
        ) {
            let near = [at % (1 << 31), at >> 33 << 9, at];
            let _ = talk(&client("a", &near.map(|at| (flags, kind, at, length & !511))));
            let _ = talk(&client("b", &near.map(|at| (flags, kind, at, length))));
        }
    }
}
