//! Memory and messages of anybody: for the tests and the fuzzer.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use counters::VdiskId;
use nix::{
    sys::{
        epoll::{Epoll, EpollCreateFlags},
        eventfd::EventFd,
        memfd::{MFdFlags, memfd_create},
    },
    unistd::{ftruncate, write},
};

use super::{
    memory::{Memory, Reader},
    request::{Manner, Request, Wanted},
    ring::Ring,
    terms::{Kicks, Terms},
    wire::{Addresses, HEAD, Head, Message, Region},
};
use crate::{buffer::BUFFER_MAX, export::Export, lent::Lent};

/// Bytes of the guest's memory: a ring of 16 entries and what its descriptors point to.
const BYTES: u64 = 1 << 16;
/// Where the rings are: not at 0, which stands for none.
const AVAILABLE: u64 = 256;
const USED: u64 = 512;
const ENTRIES: u32 = 16;
/// Requests that are taken of one memory.
const REQUESTS_MAX: u32 = 64;

fn export(read_only: bool) -> Export {
    let (name, vdisk) = ("a disk".into(), VdiskId(0));
    Export {
        name,
        vdisk,
        component: 0,
        bytes: 1 << 20,
        block: 512,
        frees: 512,
        read_only,
        lends: None,
        socket: None,
    }
}

fn file(bytes: &[u8]) -> Option<OwnedFd> {
    let file = memfd_create("hostile", MFdFlags::MFD_CLOEXEC).ok()?;
    ftruncate(file.as_fd(), BYTES as i64).ok()?;
    write(file.as_fd(), &bytes[..bytes.len().min(BYTES as usize)]).ok()?;
    Some(file)
}

/// What a guest with this memory has asked for, all of which is done at once: how many requests.
///
/// # Panics
/// When something does not hold that holds whatever a guest has in its memory.
#[must_use]
pub fn rings(bytes: &[u8]) -> u32 {
    let region = Region { guest: 0, bytes: BYTES, user: 0, offset: 0 };
    let memory = file(bytes).and_then(|file| Memory::new(vec![(region, file)]).ok());
    let Some(memory) = memory.map(Arc::new) else { return 0 };
    let Ok(kick) = EventFd::new() else { return 0 };
    let mut ring = Ring::new();
    (ring.is_enabled, ring.kick) = (true, Some(kick.into()));
    ring.set_addresses(Addresses { ring: 0, descriptors: 0, used: USED, available: AVAILABLE });
    if ring.set_entries(ENTRIES).is_err() || ring.settle(&memory, true).is_err() {
        return 0;
    }
    let mut requests = 0;
    while requests < REQUESTS_MAX
        && let Ok(Some(head)) = ring.take(&memory)
        && let Some(table) = ring.table()
    {
        let (export, writes_through) = (export(requests % 2 == 1), requests % 3 == 1);
        let manner = Manner { export: &export, writes_through };
        let (mut record, mut reader) = (Lent::new(memory.clone()), Reader::new(&memory, 0));
        let request = Request::read(&mut reader, (table, head), &mut record, manner);
        let Some(request) = request else { break };
        check(&mut reader, &request, &mut record, &export);
        if ring.give(head, 1).is_err() || ring.call().is_err() {
            break;
        }
        requests += 1;
    }
    requests
}

/// What holds for every request that made sense.
fn check(memory: &mut Reader<'_>, request: &Request, record: &mut Lent, export: &Export) {
    let Request { status, wanted } = request;
    let mut has = |at, bytes| memory.has(at, bytes);
    assert!(has(*status, 1) && record.parts().iter().all(|part| has(part.at, part.bytes)));
    match wanted {
        Wanted::Known { data: known, end } => {
            assert!(known.len() <= record.len());
            record.copy_from(0, known);
            record.write_status(*status, *end as u8);
        }
        Wanted::Io { verb, at, bytes } => {
            assert!(export.reaches(*at, *bytes));
            let moved = record.len();
            assert!(moved <= BUFFER_MAX);
            record.copy_to(0, &mut vec![0; moved]);
            assert!(verb.is_read() || moved == 0 || !export.read_only);
        }
    }
}

/// How many messages a front end of these bytes is followed in; each comes with the files that it says.
#[must_use]
pub fn messages(bytes: &[u8]) -> u32 {
    let Ok(epoll) = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC) else { return 0 };
    let kicks = Kicks { epoll: &epoll, first: 2, step: 1 };
    let (mut terms, export) = (Terms::new(), export(false));
    let (mut rest, mut followed) = (bytes, 0);
    while let Some((head, after)) = rest.split_first_chunk::<HEAD>() {
        let Some(head) = Head::parse(head) else { break };
        let Some((body, after)) = after.split_at_checked(head.body) else { break };
        let Some(message) = Message::parse(head.kind, body) else { break };
        let files = match &message {
            Message::SetMemTable(regions) => regions.iter().filter_map(|_| file(&[])).collect(),
            Message::SetVringKick(_) | Message::SetVringCall(_) => {
                EventFd::new().into_iter().map(OwnedFd::from).collect()
            }
            _ => file(&[]).into_iter().collect(),
        };
        drop(terms.take(message, files, &export, kicks));
        (rest, followed) = (after, followed + 1);
    }
    followed
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// A memory in which so many chains are available, made of these descriptors.
    fn memory(available: u16, descriptors: &[(u64, u32, u16, u16)], rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        for (place, (at, length, flags, next)) in bytes.chunks_mut(16).zip(descriptors) {
            place[..8].copy_from_slice(&at.to_le_bytes());
            place[8..12].copy_from_slice(&length.to_le_bytes());
            place[12..14].copy_from_slice(&flags.to_le_bytes());
            place[14..].copy_from_slice(&next.to_le_bytes());
        }
        let at = AVAILABLE as usize;
        bytes[at + 2..at + 4].copy_from_slice(&available.to_le_bytes());
        for (index, place) in (0_u16..).zip(bytes[at + 4..at + 36].chunks_mut(2)) {
            place.copy_from_slice(&(3 * index % 16).to_le_bytes());
        }
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn a_request_is_understood_however_it_is_cut() {
        // The head at 1,024 is that of a read of sector 0; 1 is NEXT, 2 is WRITE, 4 is INDIRECT.
        let whole = [(1024, 16, 1, 1), (4096, 512, 3, 2), (8192, 1, 2, 0)];
        let cut = [(1024, 7, 1, 1), (1031, 9, 1, 2), (4096, 513, 2, 0)];
        assert_eq!(rings(&memory(1, &whole, &[])), 1);
        assert_eq!(rings(&memory(1, &cut, &[])), 1);
        let twice = [(1024, 16, 1, 1), (4096, 512, 3, 2), (8192, 1, 3, 0)];
        assert_eq!(rings(&memory(1, &twice, &[])), 0, "a loop");
        assert_eq!(rings(&memory(17, &whole, &[])), 0, "more than there are entries");
    }

    proptest! {
        #[test]
        fn no_memory_makes_it_panic(
            available in 0..20_u16,
            descriptors in vec((
                prop_oneof![0..BYTES + 64, any::<u64>()],
                prop_oneof![0..2_000_u32, any::<u32>()],
                0..8_u16,
                prop_oneof![0..16_u16, any::<u16>()],
            ), 16),
            rest in vec(any::<u8>(), 0..500),
        ) {
            let _ = rings(&memory(available, &descriptors, &rest));
        }

        #[test]
        fn no_messages_make_it_panic(
            talk in vec((1..40_u32, vec(prop_oneof![0..4_u8, any::<u8>()], 0..80)), 0..20),
        ) {
            let message = |(kind, body): (u32, Vec<u8>)| {
                let head = [kind, 1, body.len() as u32].into_iter().flat_map(u32::to_ne_bytes);
                head.chain(body).collect::<Vec<u8>>()
            };
            let _ = messages(&talk.into_iter().flat_map(message).collect::<Vec<_>>());
        }
    }
}
