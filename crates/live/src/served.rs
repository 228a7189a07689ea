//! From a host of the file to what its components are made of: images opened and locked, exports named.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use counters::{VdiskId, VmId};
use model::{Array, ArrayConfig, VolumeConfig};
use scenario::{Backend, Components, Host, Image as Wanted, Scenario};

use crate::{
    backend::{
        FileImage, Image, Made, Memory,
        file::{Identity, SECTOR},
    },
    export::Export,
    ids::Ids,
};

/// What is open of a host's, and where its components have it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened {
    disks: Vec<OpenDisk>,
    /// By component how many images it has been given.
    images: Vec<usize>,
    /// By component the arrays that it has been given, as the file had them then.
    arrays: Vec<Vec<scenario::Array>>,
}

/// A disk that is open.
#[derive(Clone, Debug)]
pub(crate) struct OpenDisk {
    /// Its id in engines.
    pub(crate) vdisk: VdiskId,
    name: String,
    shared: bool,
    pub(crate) component: usize,
    pub(crate) image: usize,
    /// Its file, by its name when it was opened.
    pub(crate) file: Option<(PathBuf, Identity, Arc<File>)>,
}

/// Where a virtual disk is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    /// Its image, by its place.
    pub(crate) image: usize,
    /// The array that is emulated in front of it, by its place, and its volume there.
    pub(crate) array: Option<(usize, u32)>,
    /// Whose it is.
    pub(crate) vm: VmId,
}

/// Disks of a host that were opened.
pub(crate) struct Served {
    pub(crate) exports: Vec<Export>,
    /// By component.
    pub(crate) parts: Vec<Part>,
    /// What is worth a word: a line each.
    pub(crate) notes: Vec<String>,
    /// Images that were made for them.
    pub(crate) made: Vec<Made>,
}

/// What a component is given.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) disks: Vec<(VdiskId, Disk)>,
    pub(crate) images: Vec<Image>,
    pub(crate) arrays: Vec<Array>,
}

/// A host as its file says it, and where its parts are.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) host: &'a Host,
    pub(crate) components: &'a Components,
    pub(crate) ids: &'a Ids,
    /// The name of the file, for refusals, and where names of files begin.
    pub(crate) file: &'a str,
    pub(crate) base: &'a Path,
}

/// Disks that are being opened.
struct Opening<'a> {
    seen: Seen<'a>,
    opened: &'a mut Opened,
    /// Exports that there are beside.
    others: &'a [Export],
    served: Served,
}

/// An image that a disk is.
struct Found {
    /// Its place.
    image: usize,
    bytes: u64,
    /// As of an [`Export`].
    block: u32,
    frees: u32,
    file: Option<(PathBuf, Identity, Arc<File>)>,
}

impl Opened {
    /// A disk, by its id in engines.
    pub(crate) fn find(&self, vdisk: VdiskId) -> Option<&OpenDisk> {
        self.disks.iter().find(|disk| disk.vdisk == vdisk)
    }

    /// What does not stay is not open any more.
    pub(crate) fn retain(&mut self, stays: impl Fn(VdiskId) -> bool) {
        self.disks.retain(|disk| stays(disk.vdisk));
    }

    /// Opens disks of a host, by their places in its file.
    ///
    /// # Errors
    /// What is wrong with a disk: a line that names the file, its line and the disk. What has been opened
    /// by then is open here, so that this is a copy where it is to be gone on with.
    pub(crate) fn open(
        &mut self,
        seen: Seen<'_>,
        disks: impl Iterator<Item = usize>,
        others: &[Export],
    ) -> Result<Served, String> {
        let count = seen.components.count;
        self.images.resize(count, 0);
        self.arrays.resize(count, Vec::new());
        let parts = (0..count).map(|_| Part::default()).collect();
        let served = Served { exports: Vec::new(), parts, notes: Vec::new(), made: Vec::new() };
        let mut opening = Opening { seen, opened: self, others, served };
        for disk in disks {
            let Some(wanted) = &seen.host.images[disk] else { continue };
            let added = opening.add(disk, wanted);
            added.map_err(|what| seen.refusal(disk, &what))?;
        }
        Ok(opening.served)
    }

    /// Where a component has a volume of an array: the place of the array, and its volume there. Nothing where it has
    /// none of that name.
    ///
    /// # Errors
    /// The array is not as it was when the component was given it.
    pub(crate) fn volume(
        &self,
        component: usize,
        now: &scenario::Array,
        volume: u32,
    ) -> Result<Option<(usize, u32)>, String> {
        let mut given = self.arrays.get(component).into_iter().flatten().enumerate();
        let known = given.find(|(_, known)| known.name == now.name);
        let Some((place, known)) = known else { return Ok(None) };
        let volume = same_volume(known, now, volume).ok_or_else(|| {
            format!(
                "array `{}`, which is emulated, is another one at work: begin the daemon anew",
                now.name
            )
        })?;
        Ok(Some((place, volume)))
    }

    /// A disk has another id in engines, and the same image.
    pub(crate) fn renumber(&mut self, from: VdiskId, to: VdiskId) {
        for disk in self.disks.iter_mut().filter(|disk| disk.vdisk == from) {
            disk.vdisk = to;
        }
    }
}

impl Seen<'_> {
    /// The name of a disk.
    pub(crate) fn name(&self, disk: usize) -> String {
        self.host.config.disk_name(VdiskId::new(disk))
    }

    /// A line that says what is wrong with a disk.
    pub(crate) fn refusal(&self, disk: usize, what: &str) -> String {
        let line = self.host.images[disk].as_ref().map_or(0, |image| image.line);
        format!("{}:{line}: disk `{}`: {what}", self.file, self.name(disk))
    }
}

impl Opening<'_> {
    fn add(&mut self, disk: usize, wanted: &Wanted) -> Result<(), String> {
        let component = self.seen.components.vdisks[disk];
        let mut others = self.others.iter().chain(&self.served.exports);
        if others.clone().any(|export| export.name == wanted.export) {
            return Err(format!("another disk has the export `{}`", wanted.export));
        }
        let socket = wanted.vhost_user.as_ref().map(|socket| self.seen.base.join(socket));
        if let Some(socket) = &socket
            && others.any(|export| export.socket.as_ref() == Some(socket))
        {
            return Err(format!("another disk has the socket `{}`", socket.display()));
        }
        let array = wanted.emulated.then(|| self.array(disk)).transpose()?;
        let vdisk = self.seen.ids.vdisk(VdiskId::new(disk));
        let vm = self.seen.ids.vm(self.seen.host.config.vdisks[disk].vm);
        let size = wanted.size.unwrap_or_default();
        let no_file =
            |image| Found { image, bytes: size, block: SECTOR, frees: SECTOR, file: None };
        let Found { image, bytes, block, frees, file } = match &wanted.backend {
            Backend::Null => no_file(self.keep(component, Image::Null)),
            Backend::Memory => no_file(self.keep(component, Image::Memory(Memory::new(size)))),
            Backend::File(path) => {
                let path = self.seen.base.join(path);
                let found = self.file((component, disk), wanted, &path);
                found.map_err(|what| format!("`image`: {}: {what}", path.display()))?
            }
        };
        self.served.parts[component].disks.push((vdisk, Disk { image, array, vm }));
        let (name, shared) = (self.seen.name(disk), wanted.shared);
        self.opened.disks.push(OpenDisk { vdisk, name, shared, component, image, file });
        let (name, read_only) = (wanted.export.clone(), wanted.read_only);
        let align = if matches!(wanted.backend, Backend::File(_)) { block } else { 1 };
        let lends = (!wanted.bounces).then_some(align);
        let export =
            Export { name, vdisk, component, bytes, block, frees, read_only, lends, socket };
        self.served.exports.push(export);
        Ok(())
    }

    fn keep(&mut self, component: usize, image: Image) -> usize {
        self.served.parts[component].images.push(image);
        self.opened.images[component] += 1;
        self.opened.images[component] - 1
    }

    /// A file, which two disks have only if both say so.
    fn file(
        &mut self,
        (component, disk): (usize, usize),
        wanted: &Wanted,
        path: &Path,
    ) -> Result<Found, String> {
        if let Some(twin) = self.twin(path) {
            if !wanted.shared || !twin.shared {
                return Err(format!(
                    "disk `{}` is the same; with `shared = true` both may be",
                    twin.name
                ));
            }
            let mut exports = self.others.iter().chain(&self.served.exports);
            let export = exports.find(|export| export.vdisk == twin.vdisk);
            return match export {
                Some(&Export { bytes, block, frees, .. }) if twin.component == component => {
                    Ok(Found { image: twin.image, bytes, block, frees, file: twin.file.clone() })
                }
                _ => Err("a shared image has one name throughout the file".into()),
            };
        }
        if identity(path).is_some_and(|image| Some(image) == identity(self.seen.file.as_ref())) {
            return Err("it is the file that describes this host".into());
        }
        let (mut file, made) = FileImage::open(path, wanted.size, wanted.read_only, wanted.is_raw)?;
        self.served.made.extend(made);
        if !file.is_direct {
            let note = format!("{}: O_DIRECT is refused there: it is buffered", path.display());
            self.served.notes.push(note);
        }
        let FileImage { identity, bytes, block, frees, .. } = file;
        let open = Some((path.to_path_buf(), identity, file.file()));
        file.title = format!("disk `{}`: {}", self.seen.name(disk), file.title);
        let image = self.keep(component, Image::File(file));
        Ok(Found { image, bytes, block, frees, file: open })
    }

    /// What is open and the same file.
    fn twin(&self, path: &Path) -> Option<&OpenDisk> {
        let identity = identity(path)?;
        let is_it = |disk: &&OpenDisk| disk.file.as_ref().is_some_and(|file| file.1 == identity);
        self.opened.disks.iter().find(is_it)
    }

    /// The emulated array in front of a disk, and its volume there.
    fn array(&mut self, disk: usize) -> Result<(usize, u32), String> {
        let Seen { scenario, host, components, .. } = self.seen;
        let (target, component) = (host.targets[disk], components.vdisks[disk]);
        let array = &scenario.arrays[target.array];
        if let Some(known) = self.opened.volume(component, array, target.volume)? {
            return Ok(known);
        }
        let given = &mut self.opened.arrays[component];
        self.served.parts[component].arrays.push(Array::new(&array.config, scenario.seed));
        given.push(array.clone());
        Ok((given.len() - 1, target.volume))
    }
}

/// Where an array has a volume that it has in another reading of the file too; nothing where either has become another
/// one. Volumes may have come and gone beside it.
pub(crate) fn same_volume(
    was: &scenario::Array,
    now: &scenario::Array,
    volume: u32,
) -> Option<u32> {
    let bare = |array: &scenario::Array| scenario::Array {
        config: ArrayConfig { volumes: Vec::new(), ..array.config.clone() },
        volumes: Vec::new(),
        line: 0,
        ..array.clone()
    };
    let place = was.volumes.iter().position(|name| *name == now.volumes[volume as usize])?;
    // Controllers have volumes in turn, which is nothing where there are none.
    let with_owner = |array: &scenario::Array, volume: usize| {
        let own = array.config.volumes[volume].clone();
        let owner = if array.config.queues.controllers.is_some() { own.owner } else { 0 };
        VolumeConfig { owner, ..own }
    };
    let is_same = with_owner(was, place) == with_owner(now, volume as usize);
    (is_same && bare(was) == bare(now)).then_some(place as u32)
}

/// What a path leads to.
fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|found| Identity::of(&found))
}

/// Looks at an image that is there as whoever serves it will, and leaves it as it is. `size` is that of its disk,
/// in bytes, where the file says it; `is_raw` says that it is raw whatever it begins with.
///
/// # Errors
/// Why it would be refused, without its name: it cannot be opened, another process has it, it is of another
/// format, or its size is another one and cannot grow.
pub fn look_at_image(
    path: &Path,
    size: Option<u64>,
    read_only: bool,
    is_raw: bool,
) -> Result<(), String> {
    FileImage::look(path, size, read_only, is_raw)
}
