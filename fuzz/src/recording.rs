//! Recordings made of the fuzzer's bytes: a host that a real esxtop could have seen, and one of
//! any shape. They stand below the targets, beside the seeds.

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use counters::{Controller, Counter, Entity, EntityId, Format, Kind, Recording};

/// Samples and objects of a kind at most: each run must stay short.
const MOST: usize = 6;

/// 2026-03-02 10:00:00 UTC.
const START_MS: i64 = 1_772_445_600_000;

/// What stands in every name of a host that is to become anonymous.
pub(crate) const SECRET: &str = "zqx";

/// Virtual disks of every VM, and what their names or worlds say of the adapter.
const DISKS: [(&str, Option<Controller>); 6] = [
    ("scsi0:0", Some(Controller::Pvscsi)),
    ("scsi1:0", Some(Controller::LsiSas)),
    ("scsi2:3", None),
    ("nvme0:0", Some(Controller::Nvme)),
    ("sata0:1", Some(Controller::Ahci)),
    ("ide1:0", Some(Controller::Ide)),
];

/// The parts of a host that are free to choose.
#[derive(Arbitrary, Debug)]
pub(crate) struct Host {
    name: String,
    vms: BTreeSet<String>,
    devices: BTreeSet<String>,
    volumes: BTreeSet<String>,
    gaps_s: Vec<u8>,
    /// How many counters are passed over for each that is there.
    stride: u8,
    values: Vec<u32>,
}

impl Host {
    /// A host of that name with VMs and devices of these.
    pub(crate) fn new(name: &str, [vms, devices]: [BTreeSet<String>; 2], values: Vec<u32>) -> Self {
        let volumes = BTreeSet::from(["backup".into()]);
        let name = name.into();
        Self { name, vms, devices, volumes, gaps_s: vec![4; 3], stride: 4, values }
    }

    /// The host with its columns; every value is as exact as esxtop prints it.
    pub(crate) fn recording(&self) -> Recording {
        self.filled(self.objects(name))
    }

    /// The same host with a secret in every name that somebody gave.
    pub(crate) fn secret(&self) -> Recording {
        self.filled(self.objects(|text| format!("{}{SECRET}", name(text))))
    }

    fn filled(&self, mut host: Recording) -> Recording {
        let samples = self.gaps_s.len().clamp(1, MOST);
        let gaps = self.gaps_s.iter().copied().chain([0; MOST]);
        let mut time_ms = START_MS;
        for gap in gaps.take(samples) {
            host.times_ms.push(time_ms);
            time_ms += 1_000 * (i64::from(gap) + 1);
        }
        let mut values = self.values.iter().copied().chain([7]).cycle();
        for id in ids(&host) {
            let counters = host.entity(id).kind.counters().filter(|c| c.info().in_esxtop);
            let stride = usize::from(self.stride % 5) + 1;
            let chosen = counters
                .enumerate()
                .filter(|(place, counter)| place % stride == 0 || *counter == Counter::Commands);
            for (_, counter) in chosen.collect::<Vec<_>>() {
                let scale = if counter.info().format == Format::Integer { 1.0 } else { 100.0 };
                let value = |_| values.next().map_or(f64::NAN, |value| f64::from(value) / scale);
                host.set_column(id, counter, (0..samples).map(value).collect());
            }
        }
        host
    }

    fn objects(&self, name: impl Fn(&str) -> String) -> Recording {
        let named = |names: &BTreeSet<String>| -> BTreeSet<String> {
            names.iter().take(MOST).map(|text| name(text)).collect()
        };
        let mut host = Recording::new(name(&self.name));
        let adapter = host.add_entity(Entity::new(Kind::Adapter, "vmhba64".into()));
        let vms: Vec<(String, EntityId)> = named(&self.vms)
            .into_iter()
            .map(|vm| (vm.clone(), host.add_entity(Entity::new(Kind::Vm, vm))))
            .collect();
        let mut devices = named(&self.devices);
        devices.insert("naa.1".into());
        for (lun, device) in devices.iter().enumerate() {
            add_device(&mut host, adapter, (lun, device), &vms);
        }
        for volume in named(&self.volumes) {
            host.add_entity(Entity::new(Kind::NfsVolume, volume));
        }
        for (vm, id) in &vms {
            for (bus, controller) in DISKS {
                let mut disk = Entity::new(Kind::VirtualDisk, format!("{vm}:{bus}"));
                (disk.vm, disk.controller) = (Some(*id), controller);
                host.add_entity(disk);
            }
        }
        host
    }
}

/// Columns that no esxtop wrote, with secrets in their names.
#[derive(Arbitrary, Debug)]
pub(crate) struct Strange {
    columns: Vec<(u8, String, String, bool)>,
}

impl Strange {
    /// A file with these columns at its end.
    pub(crate) fn beside(&self, file: &[u8]) -> Vec<u8> {
        const GROUPS: [&str; 10] = [
            "Vcpu",
            "Group Cpu",
            "Network Port",
            "Physical Disk",
            "Physical Disk Path",
            "Physical Disk Partition",
            "Interrupt Vector",
            "Memory",
            "Virtual Disk",
            "zqx",
        ];
        let plain = |text: &str| text.replace(|c: char| c.is_control() || c == '"', "");
        let mut header = String::new();
        for (group, before, after, known) in self.columns.iter().take(MOST) {
            let group = GROUPS[usize::from(*group) % GROUPS.len()];
            let instance = format!("{}{SECRET}{}", plain(before), plain(after));
            let counter = if *known { "% Used" } else { SECRET };
            header += &format!("\"\\\\{SECRET}\\{group}({instance})\\{counter}\",");
        }
        let cells = "\"1\",".repeat(self.columns.len().min(MOST));
        let mut lines = file.split(|byte| *byte == b'\n');
        let mut out = [lines.next().unwrap_or_default(), header.as_bytes(), b"\n"].concat();
        for line in lines.filter(|line| !line.is_empty()) {
            out.extend([line, cells.as_bytes(), b"\n"].concat());
        }
        out
    }
}

/// A name as one of vSphere can be: without what would end a cell.
fn name(text: &str) -> String {
    let plain = |c: &char| !c.is_control() && !matches!(c, '"' | '\\' | ':');
    let name: String = text.chars().filter(plain).take(24).collect();
    // Blanks around a name are not kept, and one without a letter may be a number.
    format!("n{}", name.trim())
}

fn add_device(
    host: &mut Recording,
    adapter: EntityId,
    (lun, name): (usize, &str),
    vms: &[(String, EntityId)],
) {
    let device = host.add_entity(Entity::new(Kind::Device, name.into()));
    let mut add = |kind, name: String, change: &dyn Fn(&mut Entity)| {
        let mut entity = Entity { device: Some(device), ..Entity::new(kind, name) };
        change(&mut entity);
        host.add_entity(entity);
    };
    add(Kind::Path, format!("vmhba64:C0:T0:L{lun}"), &|path| path.adapter = Some(adapter));
    for (leader, (_, vm)) in (1_000..).step_by(10).zip(vms) {
        add(Kind::World, format!("{name}-{leader}"), &|world| world.vm = Some(*vm));
    }
    add(Kind::World, format!("{name}-77"), &|world| world.process = Some("vobd".into()));
    add(Kind::Partition, format!("{name}-1"), &|_| ());
}

fn ids(recording: &Recording) -> Vec<EntityId> {
    (0..recording.entities().len() as u32).map(EntityId).collect()
}

/// Lines that are no rows: a capture has more than one cell in a row.
pub(crate) fn nonsense(lines: Vec<String>) -> Vec<String> {
    let plain = |line: &String| line.replace(['\n', '\r', ',', '('], "");
    let lines = lines.iter().take(MOST).map(plain);
    lines.filter(|line| !line.trim_ascii().is_empty()).collect()
}

/// A file with lines between its own.
pub(crate) fn spoilt(file: &[u8], between: &[String]) -> Vec<u8> {
    let mut between = between.iter();
    let mut spoilt = Vec::new();
    let mut lines = file.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        spoilt.extend_from_slice(line);
        let rest = if lines.peek().is_some() { 1 } else { between.len() };
        for nonsense in between.by_ref().take(rest) {
            spoilt.extend_from_slice(nonsense.as_bytes());
            spoilt.push(b'\n');
        }
    }
    spoilt
}

/// Objects, links and values of a recording as lines, in no order. Which device holds a virtual
/// disk is guessed from the values, and they may refute what the order of columns says of a path, so
/// both are left out.
pub(crate) fn described(recording: &Recording) -> BTreeSet<String> {
    let name = |id: Option<EntityId>| id.map(|id| &recording.entity(id).name);
    let object = |e: &Entity| {
        let device = name(e.device).filter(|_| !matches!(e.kind, Kind::VirtualDisk | Kind::Path));
        let links = (device, name(e.adapter), name(e.vm));
        format!("{:?} {:?} {links:?} {:?} {:?}", e.kind, e.name, e.controller, e.process)
    };
    let column = |(id, counter, values): (EntityId, Counter, &[f64])| {
        let entity = recording.entity(id);
        format!("{:?} {:?} {counter:?} {values:?}", entity.kind, entity.name)
    };
    let times = [format!("{} {:?}", recording.host, recording.times_ms)];
    let objects = recording.entities().iter().map(object);
    objects.chain(recording.columns().map(column)).chain(times).collect()
}

/// A recording of any shape.
#[derive(Arbitrary, Debug)]
pub(crate) struct Loose {
    host: String,
    regular: bool,
    times_ms: Vec<i64>,
    objects: Vec<LooseObject>,
}

#[derive(Arbitrary, Debug)]
struct LooseObject {
    kind: u8,
    name: String,
    links: [Option<u8>; 3],
    controller: bool,
    stride: u8,
    values: Vec<f64>,
}

impl Loose {
    pub(crate) fn recording(&self) -> Recording {
        const KINDS: [Kind; 8] = [
            Kind::Device,
            Kind::World,
            Kind::Vm,
            Kind::VirtualDisk,
            Kind::Path,
            Kind::Adapter,
            Kind::Partition,
            Kind::NfsVolume,
        ];
        let mut recording = Recording::new(self.host.clone());
        let samples = self.times_ms.len().min(10 * MOST);
        recording.times_ms = match self.regular {
            true => (0..samples as i64).map(|sample| sample * 5_000).collect(),
            false => self.times_ms[..samples].to_vec(),
        };
        for object in self.objects.iter().take(4 * MOST) {
            let kind = KINDS[usize::from(object.kind) % KINDS.len()];
            let mut entity = Entity::new(kind, object.name.clone());
            let link = |place: usize| object.links[place].map(|id| EntityId(u32::from(id)));
            (entity.device, entity.adapter, entity.vm) = (link(0), link(1), link(2));
            entity.controller = object.controller.then_some(Controller::Pvscsi);
            let id = recording.add_entity(entity);
            let stride = usize::from(object.stride % 7) + 1;
            for (place, counter) in kind.counters().enumerate().step_by(stride) {
                let values = object.values.iter().copied().chain([32.0]).cycle().skip(place);
                recording.set_column(id, counter, values.take(samples).collect());
            }
        }
        recording
    }
}
