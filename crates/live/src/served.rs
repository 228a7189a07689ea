//! From a host of the file to what its components are made of: images opened and locked, exports named.

use std::{fs, path::Path};

use counters::VdiskId;
use model::Array;
use scenario::{Backend, Components, Host, Image as Wanted, Scenario};

use crate::{
    backend::{FileImage, Image, Memory, file::Identity},
    export::Export,
    machine::Disk,
};

/// The sector of what is no file.
const SECTOR: u32 = 512;

/// The disks of a host.
pub(crate) struct Served {
    pub(crate) exports: Vec<Export>,
    /// By component.
    pub(crate) parts: Vec<Part>,
    /// What is worth a word: a line each.
    pub(crate) notes: Vec<String>,
}

/// What a component has of its own.
#[derive(Default)]
pub(crate) struct Part {
    /// By virtual disk; nothing where it is of another component.
    pub(crate) disks: Vec<Option<Disk>>,
    pub(crate) images: Vec<Image>,
    pub(crate) arrays: Vec<Array>,
    /// The array of the scenario that each of `arrays` is.
    array_of: Vec<usize>,
}

/// A file that is open already.
struct Opened {
    disk: usize,
    identity: Identity,
    component: usize,
    image: usize,
}

/// A host whose disks are being opened.
struct Opening<'a> {
    scenario: &'a Scenario,
    host: &'a Host,
    components: &'a Components,
    base: &'a Path,
    opened: Vec<Opened>,
    served: Served,
}

/// An image that a disk is: its place, its size and its block.
type Found = (usize, u64, u32);

/// Opens the disks of a host. Files are looked for from `base` on.
///
/// # Errors
/// What is wrong with a disk: a line that names `file`, its line and the disk.
pub(crate) fn open(
    scenario: &Scenario,
    host: &Host,
    components: &Components,
    (file, base): (&str, &Path),
) -> Result<Served, String> {
    let (exports, notes) = (Vec::new(), Vec::new());
    let part = || Part { disks: vec![None; host.images.len()], ..Part::default() };
    let parts = (0..components.count).map(|_| part()).collect();
    let served = Served { exports, parts, notes };
    let mut opening = Opening { scenario, host, components, base, opened: Vec::new(), served };
    for (disk, wanted) in host.images.iter().enumerate() {
        let Some(wanted) = wanted else { continue };
        let added = opening.add(disk, wanted);
        added.map_err(|what| {
            format!("{file}:{}: disk `{}`: {what}", wanted.line, opening.name(disk))
        })?;
    }
    Ok(opening.served)
}

impl Opening<'_> {
    fn name(&self, disk: usize) -> String {
        let config = &self.host.config.vdisks[disk];
        format!("{}:{}", self.host.config.vms[config.vm.index()].name, config.name)
    }

    fn add(&mut self, disk: usize, wanted: &Wanted) -> Result<(), String> {
        let component = self.components.vdisks[disk];
        if self.served.exports.iter().any(|export| export.name == wanted.export) {
            return Err(format!("another disk has the export `{}`", wanted.export));
        }
        let socket = wanted.vhost_user.as_ref().map(|socket| self.base.join(socket));
        if let Some(socket) = &socket {
            let is_it = |export: &Export| export.socket.as_ref() == Some(socket);
            if self.served.exports.iter().any(is_it) {
                return Err(format!("another disk has the socket `{}`", socket.display()));
            }
        }
        let array = wanted.emulated.then(|| self.array(disk));
        let vm = self.host.config.vdisks[disk].vm;
        let size = wanted.size.unwrap_or_default();
        let (image, bytes, block) = match &wanted.backend {
            Backend::Null => (self.keep(component, Image::Null), size, SECTOR),
            Backend::Memory => {
                (self.keep(component, Image::Memory(Memory::new(size))), size, SECTOR)
            }
            Backend::File(path) => {
                let path = self.base.join(path);
                let found = self.file(disk, wanted, &path);
                found.map_err(|what| format!("{}: {what}", path.display()))?
            }
        };
        self.served.parts[component].disks[disk] = Some(Disk { image, array, vm });
        let (name, vdisk, read_only) =
            (wanted.export.clone(), VdiskId::new(disk), wanted.read_only);
        let lends = self.lends(wanted, component, image);
        let export = Export { name, vdisk, component, bytes, block, read_only, lends, socket };
        self.served.exports.push(export);
        Ok(())
    }

    /// What a guest's memory has to be multiples of to be used as it is.
    fn lends(&self, wanted: &Wanted, component: usize, image: usize) -> Option<u32> {
        let block = match &self.served.parts[component].images[image] {
            Image::File(file) if file.is_direct => file.block,
            _ => 1,
        };
        (!wanted.bounces).then_some(block)
    }

    fn keep(&mut self, component: usize, image: Image) -> usize {
        let images = &mut self.served.parts[component].images;
        images.push(image);
        images.len() - 1
    }

    /// A file, which two disks have only if both say so.
    fn file(&mut self, disk: usize, wanted: &Wanted, path: &Path) -> Result<Found, String> {
        let component = self.components.vdisks[disk];
        if let Some(twin) = self.twin(path) {
            let other = self.host.images[twin.disk].as_ref();
            if !wanted.shared || !other.is_some_and(|other| other.shared) {
                let other = self.name(twin.disk);
                return Err(format!(
                    "disk `{other}` is the same; with `shared = true` both may be"
                ));
            }
            let image = self.served.parts[component].images.get(twin.image);
            return match image {
                Some(Image::File(file)) if twin.component == component => {
                    Ok((twin.image, file.bytes, file.block))
                }
                _ => Err("a shared image has one name throughout the file".into()),
            };
        }
        let file = FileImage::open(path, wanted.size, wanted.read_only)?;
        if !file.is_direct {
            let note = format!("{}: O_DIRECT is refused there: it is buffered", path.display());
            self.served.notes.push(note);
        }
        let (identity, bytes, block) = (file.identity, file.bytes, file.block);
        let image = self.keep(component, Image::File(file));
        self.opened.push(Opened { disk, identity, component, image });
        Ok((image, bytes, block))
    }

    /// What is open and the same file.
    fn twin(&self, path: &Path) -> Option<&Opened> {
        let identity = Identity::of(&fs::metadata(path).ok()?);
        self.opened.iter().find(|opened| opened.identity == identity)
    }

    /// The emulated array in front of a disk, and its volume there.
    fn array(&mut self, disk: usize) -> (usize, u32) {
        let target = self.host.targets[disk];
        let Part { arrays, array_of, .. } = &mut self.served.parts[self.components.vdisks[disk]];
        let known = array_of.iter().position(|array| *array == target.array);
        let place = known.unwrap_or_else(|| {
            let config = &self.scenario.arrays[target.array].config;
            arrays.push(Array::new(config, self.scenario.seed));
            array_of.push(target.array);
            arrays.len() - 1
        });
        (place, target.volume)
    }
}
