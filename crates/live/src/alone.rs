//! A component with a disk that keeps nothing, for whoever measures what its parts cost an I/O: it works on the
//! thread that asks it to, a pass at a time; all of it, or no more than its rings.

use std::{
    path::Path,
    sync::{Arc, mpsc::channel},
};

use counters::{Status, Time, VdiskId, VmId};
use engine::Engine;
use journal::{Journal, Limits};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollTimeout};
use scenario::Scenario;

use crate::{
    backend::Image,
    buffer::Buffers,
    clock::Clock,
    executor::Executor,
    export::{Asked, Export},
    guests::Guests,
    machine::{LOOK_NS, Machine, Parts},
    mailbox::{Letter, Mailbox},
    record::Record,
    served::{Disk, Part},
    vhost::Device,
};

const HOST: &str = include_str!("alone.toml");

/// How much of a component works.
#[derive(Clone, Copy, Debug)]
pub enum Extent<'a> {
    /// A request is answered as it comes from its ring.
    Rings,
    /// The same with what a pass costs beside: it reads the clock, and asks about sockets when it is time to.
    Passes,
    /// All of it.
    Whole,
    /// All of it, and a journal in that directory, of so many bytes at most.
    Journalled(&'a Path, u64),
}

/// A component.
pub struct Alone(Kind);

enum Kind {
    Rings(Box<Rings>),
    Whole(Box<Machine>),
}

/// What answers at once.
struct Rings {
    guests: Guests,
    /// What was asked last.
    asked: Asked,
    buffers: Buffers,
    epoll: Epoll,
    clock: Option<Clock>,
    look_at: Time,
}

impl Alone {
    /// A component with a disk of 1 GiB at a socket.
    ///
    /// # Errors
    /// When there is no room for the socket or the journal.
    pub fn new(socket: &Path, extent: Extent<'_>) -> Result<Self, String> {
        let said = |error: std::io::Error| error.to_string();
        let export = Export {
            name: "v".into(),
            vdisk: VdiskId(0),
            component: 0,
            bytes: 1 << 30,
            block: 512,
            frees: 512,
            read_only: false,
            lends: Some(1),
            socket: None,
        };
        let device = Box::new(Device::bind(export, socket).map_err(said)?);
        let journal = match extent {
            Extent::Rings | Extent::Passes => {
                let has_clock = matches!(extent, Extent::Passes);
                let rings = Rings::new(device, has_clock).map_err(said)?;
                return Ok(Self(Kind::Rings(Box::new(rings))));
            }
            Extent::Whole => None,
            Extent::Journalled(directory, cap_bytes) => Some((directory, cap_bytes)),
        };
        whole(device, journal).map(|machine| Self(Kind::Whole(Box::new(machine))))
    }

    /// Does everything that can be done now.
    pub fn pass(&mut self) {
        match &mut self.0 {
            Kind::Rings(rings) => rings.pass(),
            Kind::Whole(machine) => drop(machine.pass()),
        }
    }
}

fn whole(device: Box<Device>, journal: Option<(&Path, u64)>) -> Result<Machine, String> {
    let mut none = |_: &str| Err(String::new());
    let scenario =
        Scenario::parse_served("alone", HOST, &mut none).map_err(|error| error.to_string())?;
    let config = &scenario.hosts[0].config;
    let mailbox = Arc::new(Mailbox::new().map_err(|error| error.to_string())?);
    let clock = Clock::start();
    let journal = journal.map(|(directory, cap_bytes)| {
        let epoch_ms = clock.epoch_ms.try_into().unwrap_or_default();
        let record = Record::create(directory, "h-0", epoch_ms, cap_bytes, |_| {});
        let record = record.map_err(|error| error.to_string())?;
        let limits = Limits { epoch_ms, segment_bytes: record.segment_bytes() };
        let journal = Journal::of_real_time(record, "h-0", [config], limits);
        journal.map_err(|error| error.to_string())
    });
    let disk = Disk { image: 0, array: None, vm: VmId(0) };
    let part =
        Part { disks: vec![(VdiskId(0), disk)], images: vec![Image::Null], arrays: Vec::new() };
    let parts = Parts {
        engine: Engine::new(config),
        journal: journal.transpose()?,
        first: Vec::new(),
        part,
        more: channel().1,
        executor: Executor::new(Arc::clone(&mailbox)),
        clock,
        mailbox: Arc::clone(&mailbox),
        tell: |_| {},
    };
    let machine = Machine::new(parts).map_err(|error| error.to_string())?;
    mailbox.send(Letter::Disk(device));
    Ok(machine)
}

impl Rings {
    fn new(device: Box<Device>, has_clock: bool) -> std::io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let (mut guests, clock) = (Guests::default(), has_clock.then(Clock::start));
        guests.seat_device(device, &epoll, |_| {});
        let (asked, buffers, look_at) = (Asked::NOTHING, Buffers::default(), Time::ZERO);
        Ok(Self { guests, asked, buffers, epoll, clock, look_at })
    }

    fn pass(&mut self) {
        let Self { guests, asked, buffers, epoll, clock, look_at } = self;
        let mut any = false;
        let Some((key, _)) = guests.at(0) else { return };
        while guests.pull(key, asked, buffers) {
            any = true;
            guests.answer(key, asked, Status::Good, buffers);
        }
        // Without a clock it is time to look when nobody asks for anything.
        let is_time = clock.as_ref().map_or(!any, |clock| {
            let now = clock.now();
            let is_time = now >= *look_at;
            if is_time {
                *look_at = now + LOOK_NS;
            }
            is_time
        });
        if is_time {
            let mut events = [EpollEvent::empty(); 64];
            let count = epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
            events[..count].iter().for_each(|event| guests.wake(event.data(), event.events()));
        }
        guests.push(buffers, epoll);
    }
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    #[test]
    fn every_extent_works() {
        let site = tempdir().expect("room for a directory");
        let journals = site.path().join("journals");
        let journalled = Extent::Journalled(&journals, 1 << 20);
        for extent in [Extent::Rings, Extent::Passes, Extent::Whole, journalled] {
            let mut alone = Alone::new(&site.path().join("disk"), extent).expect("it begins");
            alone.pass();
        }
    }
}
