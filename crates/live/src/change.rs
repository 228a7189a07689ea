//! A host that becomes what a new reading of its file says, while its guests are at work. First all that can
//! be refused is tried, opened and bound, and nothing has changed; then it is carried out:
//!
//! ```text
//!   engines hear of what comes and is set -> what moves has its new place -> nobody new finds what goes
//!   -> its guests end what they have -> engines forget it -> components get disks -> clients find them
//! ```

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use counters::VdiskId;
use engine::{Input, Object};
use scenario::{Backend, Image, Scenario};

use crate::{
    backend::{Made, file::Identity},
    counted::Counted,
    export::Export,
    folders::parent,
    hosted::{Home, Hosted, tell},
    mailbox::Letter,
    reload::Changes,
    served::{Disk, OpenDisk, Opened, Part, Seen, Served},
    vhost::Device,
};

/// How long it may take until a disk is left: its component gives up what is under way before that.
const PATIENCE: Duration = Duration::from_secs(30);

/// A change of a host that can be made.
pub(crate) struct Plan {
    /// The host as it will be.
    pub(crate) hosted: Hosted,
    pub(crate) changes: Changes,
    /// What is worth a word.
    pub(crate) notes: Vec<String>,
    /// What is new for clients.
    pub(crate) exports: Vec<Export>,
    parts: Vec<Part>,
    /// Disks that have a socket of their own, by their component.
    devices: Vec<(usize, Box<Device>)>,
    moves: Vec<Move>,
    grown: Vec<Grown>,
    made: Vec<Made>,
}

/// A disk that moves to another device.
struct Move {
    from: VdiskId,
    to: VdiskId,
    component: usize,
    disk: Disk,
}

/// A disk that has become larger.
struct Grown {
    vdisk: VdiskId,
    component: usize,
    bytes: u64,
    /// What is to be made as large.
    file: Option<Arc<File>>,
}

/// A host that changes: as it is, and as the new reading says.
struct Planning<'a> {
    before: &'a Hosted,
    seen: Seen<'a>,
    changes: &'a Changes,
    notes: Vec<String>,
}

impl Plan {
    /// How many disks go to another device.
    pub(crate) const fn moved_disks(&self) -> usize {
        self.moves.len()
    }

    /// How many become larger.
    pub(crate) const fn grown_disks(&self) -> usize {
        self.grown.len()
    }

    /// What is to be done for changes that can be made.
    ///
    /// # Errors
    /// One line: what cannot; nothing has changed then.
    pub(crate) fn of(
        before: &Hosted,
        changes: Changes,
        new: &Scenario,
        home: &Home,
    ) -> Result<Self, String> {
        let ids = before.ids.next(&changes.same)?;
        let (host, components) = (&changes.host, &changes.components);
        let (file, base) = (home.file.as_str(), home.base.as_path());
        let seen = Seen { scenario: new, host, components, ids: &ids, file, base };
        let mut planning = Planning { before, seen, changes: &changes, notes: Vec::new() };
        let engine = planning.try_on_engine()?;
        let mut opened = before.opened.clone();
        let moves = planning.moves(&mut opened)?;
        let grown = planning.grown(&opened)?;
        let stay = planning.exports_that_stay(&grown);
        let new_disks = planning.new_disks();
        new_disks.iter().try_for_each(|disk| planning.check_folder(*disk, home))?;
        let Served { exports, parts, notes, made } =
            opened.open(seen, new_disks.into_iter(), &stay)?;
        let devices = bind(&exports, seen)?;
        planning.notes.extend(notes);
        let up = changes.same.paths.iter().map(|was| was.is_none_or(|was| before.up[was]));
        let up = up.collect();
        let counted = Arc::new(Counted {
            inventory: host.config.inventory(),
            components: components.clone(),
            ids: ids.clone(),
            mailboxes: before.counted.mailboxes.clone(),
            exports: stay.iter().chain(&exports).cloned().collect(),
            epoch_ms: before.counted.epoch_ms,
        });
        let notes = planning.notes;
        let (door, ways) = (before.door.clone(), before.ways.clone());
        let known = match changes.new.is_empty() {
            true => Arc::clone(&before.known),
            false => Arc::new(ids.known(&before.known, &host.config)),
        };
        let hosted = Hosted { counted, engine, up, ids, known, opened, door, ways };
        Ok(Self { hosted, changes, notes, exports, parts, devices, moves, grown, made })
    }

    /// Makes the last of what can fail.
    ///
    /// # Errors
    /// One line: an image that cannot be made larger.
    pub(crate) fn grow_files(&self, home: &Home) -> Result<(), String> {
        for Grown { file, bytes, .. } in &self.grown {
            let Some(file) = file else { continue };
            file.set_len(*bytes).map_err(|error| {
                format!("{}: an image cannot be made of {bytes} bytes: {error}", home.file)
            })?;
        }
        Ok(())
    }

    /// Makes the change; the host as it is then, and what is worth a word of how it went.
    pub(crate) fn carry_out(self, before: &Hosted) -> (Hosted, Vec<String>) {
        let Self { hosted, changes, mut notes, exports, parts, devices, moves, grown, made } = self;
        made.into_iter().for_each(Made::keep);
        let mailboxes = &hosted.counted.mailboxes;
        let tell_all = |input: Input| {
            mailboxes.iter().for_each(|mailbox| mailbox.send(Letter::Input(input)));
        };
        // What moves is in its new place before its old one is left.
        let new = changes.new.iter().map(|part| Input::Attach(*part));
        let set = changes.knobs.iter().map(|knob| Input::Set(*knob));
        new.chain(set).for_each(|input| tell_all(hosted.ids.input(input)));
        if !changes.new.is_empty() {
            let more = || Letter::More(Arc::clone(&hosted.known));
            mailboxes.iter().for_each(|mailbox| mailbox.send(more()));
        }
        let give = |component: usize, part: Part| {
            // The component is there as long as the daemon.
            let _ = hosted.ways[component].send(part);
            mailboxes[component].send(Letter::Open);
        };
        for Move { from, to, component, disk } in moves {
            give(component, Part { disks: vec![(to, disk)], ..Part::default() });
            mailboxes[component].send(Letter::Move(from, to));
        }
        let all = &hosted.counted.exports;
        let is_new = |export: &Export| exports.iter().any(|new| new.vdisk == export.vdisk);
        hosted.door.show(all.iter().filter(|export| !is_new(export)));
        let left = changes.gone.iter().filter_map(|object| before.leave(*object));
        for (vdisk, left) in left.collect::<Vec<_>>() {
            if left.recv_timeout(PATIENCE).is_err() {
                notes.push(format!("disk {} is not left yet", vdisk.index()));
            }
        }
        for object in &changes.gone {
            tell_all(before.ids.input(Input::Detach { object: *object, drain: true }));
        }
        parts.into_iter().enumerate().for_each(|(component, part)| give(component, part));
        for Grown { vdisk, component, bytes, .. } in grown {
            mailboxes[component].send(Letter::Resize(vdisk, bytes));
        }
        for (component, device) in devices {
            mailboxes[component].send(Letter::Disk(device));
        }
        hosted.door.show(all.iter());
        (hosted, notes)
    }
}

impl Hosted {
    /// Has a disk left, if it is one that is open; who is told when it is.
    fn leave(&self, object: Object) -> Option<(VdiskId, Receiver<()>)> {
        let Object::Vdisk(vdisk) = object else { return None };
        let component = self.counted.components.vdisks[vdisk.index()];
        let vdisk = self.ids.vdisk(vdisk);
        let (done, left) = channel();
        self.counted.mailboxes[component].send(Letter::Close(vdisk, done));
        Some((vdisk, left))
    }
}

impl Planning<'_> {
    /// The engine without I/O as it is then, where it refuses nothing.
    fn try_on_engine(&self) -> Result<engine::Engine, String> {
        let Self { before, seen, changes, .. } = self;
        let mut engine = before.engine.clone();
        let gone = changes.gone.iter().map(|object| Input::Detach { object: *object, drain: true });
        let gone = gone.map(|input| (&before.ids, input));
        // In the order in which components are told.
        let new = changes.new.iter().map(|part| Input::Attach(*part));
        let set = changes.knobs.iter().map(|knob| Input::Set(*knob));
        for (ids, input) in new.chain(set).map(|input| (seen.ids, input)).chain(gone) {
            tell(&mut engine, seen.host, ids, input)?;
        }
        Ok(engine)
    }

    /// The id that a disk had, by its place in the new reading.
    fn id_before(&self, disk: usize) -> Option<VdiskId> {
        let origin = self.changes.origins[disk]?;
        Some(self.before.ids.vdisk(VdiskId::new(origin)))
    }

    fn new_disks(&self) -> Vec<usize> {
        let origins = self.changes.origins.iter().enumerate();
        origins.filter(|(_, origin)| origin.is_none()).map(|(disk, _)| disk).collect()
    }

    /// What was opened at the start, or is in a directory that the file named then: the daemon has given
    /// up all others.
    fn check_folder(&self, disk: usize, home: &Home) -> Result<(), String> {
        let Some(image) = &self.seen.host.images[disk] else { return Ok(()) };
        let file = match &image.backend {
            Backend::File(path) => Some((path, &home.folders.images)),
            _ => None,
        };
        let socket = image.vhost_user.as_ref().map(|path| (path, &home.folders.sockets));
        let outside = file.into_iter().chain(socket).find(|(path, folders)| {
            let folder = parent(&self.seen.base.join(path));
            !folders.iter().any(|known| folder.starts_with(known))
        });
        outside.map_or(Ok(()), |(path, _)| {
            let what = format!(
                "{path} is in none of the directories in which there were disks when the daemon began, \
                 and it has given up all others: begin the daemon anew"
            );
            Err(self.seen.refusal(disk, &what))
        })
    }

    /// The disks that move, each with its image.
    fn moves(&mut self, opened: &mut Opened) -> Result<Vec<Move>, String> {
        let Seen { scenario, host, components, ids, .. } = self.seen;
        let mut moves = Vec::new();
        for disk in 0..self.changes.origins.len() {
            let Some(from) = self.id_before(disk) else { continue };
            let (Some(open), Some(image)) = (opened.find(from), &host.images[disk]) else {
                continue;
            };
            self.check_image(disk, image, open)?;
            let to = ids.vdisk(VdiskId::new(disk));
            if from == to {
                continue;
            }
            let (component, place) = (components.vdisks[disk], open.image);
            let target = host.targets[disk];
            let array = &scenario.arrays[target.array];
            let volume = || {
                let known = opened.volume(component, array, target.volume)?;
                let name = &array.name;
                known.ok_or_else(|| {
                    format!("it cannot move at work to array `{name}`, which is new to it")
                })
            };
            let array = image.emulated.then(volume).transpose();
            let array = array.map_err(|what| self.seen.refusal(disk, &what))?;
            let vm = ids.vm(host.config.vdisks[disk].vm);
            moves.push(Move { from, to, component, disk: Disk { image: place, array, vm } });
            opened.renumber(from, to);
        }
        opened.retain(|vdisk| {
            (0..self.changes.origins.len()).any(|disk| {
                self.id_before(disk).is_some() && ids.vdisk(VdiskId::new(disk)) == vdisk
            })
        });
        Ok(moves)
    }

    /// A disk keeps the file that it has, by whatever name.
    fn check_image(&mut self, disk: usize, image: &Image, open: &OpenDisk) -> Result<(), String> {
        let (Backend::File(name), Some((known, identity, _))) = (&image.backend, &open.file) else {
            return Ok(());
        };
        let path = self.seen.base.join(name);
        if fs::metadata(&path).is_ok_and(|found| Identity::of(&found) == *identity) {
            return Ok(());
        }
        if path == *known {
            let what = format!("{name} was deleted or replaced; the file that it was is served on");
            self.notes.push(self.seen.refusal(disk, &what));
            return Ok(());
        }
        let what = format!(
            "`image`: {name} is not the file that is served, and a disk keeps its file at work: it has \
             to be copied while no guest has it"
        );
        Err(self.seen.refusal(disk, &what))
    }

    /// The disks that have become larger, or are to.
    fn grown(&self, opened: &Opened) -> Result<Vec<Grown>, String> {
        let mut grown = Vec::new();
        for disk in 0..self.changes.origins.len() {
            let Some(was) = self.id_before(disk) else { continue };
            let export = self.before.counted.exports.iter().find(|export| export.vdisk == was);
            let (Some(export), Some(image)) = (export, &self.seen.host.images[disk]) else {
                continue;
            };
            let vdisk = self.seen.ids.vdisk(VdiskId::new(disk));
            let file = opened.find(vdisk).and_then(|open| open.file.as_ref()).map(|file| &file.2);
            let (bytes, is_to_grow) = measured(image.size, file.map(|file| &**file), export)
                .map_err(|what| self.seen.refusal(disk, &what))?;
            if bytes > export.bytes {
                let component = self.seen.components.vdisks[disk];
                let file = file.filter(|_| is_to_grow).cloned();
                grown.push(Grown { vdisk, component, bytes, file });
            }
        }
        Ok(grown)
    }

    /// What clients find of what was there.
    fn exports_that_stay(&mut self, grown: &[Grown]) -> Vec<Export> {
        let mut stay = Vec::new();
        for disk in 0..self.changes.origins.len() {
            let Some(was) = self.id_before(disk) else { continue };
            let export = self.before.counted.exports.iter().find(|export| export.vdisk == was);
            let Some(mut export) = export.cloned() else { continue };
            export.vdisk = self.seen.ids.vdisk(VdiskId::new(disk));
            if export.vdisk != was {
                self.notes.push(format!("disk `{}` is on another device", self.seen.name(disk)));
            }
            if let Some(grown) = grown.iter().find(|grown| grown.vdisk == export.vdisk) {
                let name = self.seen.name(disk);
                let note =
                    format!("disk `{name}` has {} bytes, before {}", grown.bytes, export.bytes);
                let by_nbd = "; clients of NBD see it when they connect anew";
                let by_nbd = if export.socket.is_none() { by_nbd } else { "" };
                self.notes.push(note + by_nbd);
                export.bytes = grown.bytes;
            }
            stay.push(export);
        }
        stay
    }
}

/// The size that a disk is to have, and whether its file has to be made as large.
fn measured(
    wanted: Option<u64>,
    file: Option<&File>,
    export: &Export,
) -> Result<(u64, bool), String> {
    let Some(mut file) = file else {
        let bytes = wanted.unwrap_or(export.bytes);
        return if bytes < export.bytes {
            Err(shrunk(export.bytes, bytes))
        } else {
            Ok((bytes, false))
        };
    };
    let found = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let bytes = wanted.unwrap_or(found);
    if found.min(bytes) < export.bytes {
        return Err(shrunk(export.bytes, found.min(bytes)));
    }
    if found > bytes {
        return Err(format!("it has {found} bytes, and `size` says {bytes}"));
    }
    if !bytes.is_multiple_of(export.block.into()) {
        return Err(format!("it has {bytes} bytes, which are no whole blocks of {}", export.block));
    }
    Ok((bytes, found < bytes))
}

fn shrunk(served: u64, found: u64) -> String {
    format!(
        "`size`: {served} bytes are served, and {found} are fewer: a disk shrinks only while no guest has it"
    )
}

/// Binds the sockets of disks that have their own.
pub(crate) fn bind(
    exports: &[Export],
    seen: Seen<'_>,
) -> Result<Vec<(usize, Box<Device>)>, String> {
    let bind_one = |export: &Export| {
        let path = export.socket.as_ref()?;
        let disk = seen.ids.vdisks.place(export.vdisk.index()).unwrap_or_default();
        let bound = Device::bind(export.clone(), path).map_err(|error| {
            seen.refusal(disk, &format!("key `vhost_user`: {}: {error}", path.display()))
        });
        let sockets = &seen.host.sockets;
        let shared = bound.and_then(|device| {
            let shared = crate::socket::share(path, sockets);
            shared.map_err(|what| format!("{}:{}: {what}", seen.file, sockets.line))?;
            Ok(device)
        });
        Some(shared.map(|device| (export.component, Box::new(device))))
    };
    exports.iter().filter_map(bind_one).collect()
}
