//! esxtop's own tables of a window or of a sample: adapters (`d`), devices with their worlds (`u`), virtual
//! machines with their disks (`v`), under esxtop's column heads and in its order [ELA, BB].
//!
//! As in esxtop, ACTV, QUED, %USD and LOAD are those of one instant, the last of the window;
//! the picture has their means.

use counters::{Counter as C, Entity, EntityId, Format, Kind, Recording};
use levels::most_first;

use crate::{
    table::Table,
    text::{BOLD, clean, fit, styled, whole},
};

/// One of esxtop's screens.
struct Screen {
    title: &'static str,
    /// Heads of the columns that name an object.
    names: [&'static str; 2],
    /// The kinds of objects, and the kind of those that are listed under each.
    kinds: &'static [Kind],
    under: Option<Kind>,
    counters: Vec<C>,
}

/// An object of a host.
#[derive(Clone, Copy)]
struct Row<'a> {
    recording: &'a Recording,
    id: EntityId,
    entity: &'a Entity,
}

/// The three screens; of each the busiest objects of all hosts.
pub(crate) fn render(recordings: &[&Recording], rows: usize, width: Option<usize>) -> String {
    let tables = screens().into_iter().map(|screen| screen.render(recordings, rows, width));
    tables.filter(|table| !table.is_empty()).collect::<Vec<_>>().join("\n")
}

fn screens() -> [Screen; 3] {
    [
        Screen {
            title: "esxtop d, adapters",
            names: ["ADAPTER", "NPATHS"],
            kinds: &[Kind::Adapter],
            under: None,
            counters: [&[C::AdapterQDepth], &C::IO[..], &C::LATENCY].concat(),
        },
        Screen {
            title: "esxtop u, devices and the worlds on them",
            names: ["DEVICE", "PATH/WORLD/PARTITION"],
            kinds: &[Kind::Device, Kind::NfsVolume],
            under: Some(Kind::World),
            counters: [&C::QUEUE[..], &C::IO, &C::LATENCY].concat(),
        },
        Screen {
            title: "esxtop v, virtual machines and their disks",
            names: ["VMNAME", "VDEVNAME"],
            kinds: &[Kind::Vm],
            under: Some(Kind::VirtualDisk),
            counters: [&C::IO[..], &C::VDISK_LATENCY].concat(),
        },
    ]
}

impl Screen {
    fn render(&self, recordings: &[&Recording], rows: usize, width: Option<usize>) -> String {
        let all = self.kinds.iter().flat_map(|kind| of_kind(recordings, *kind));
        let (named, left_out) = busiest(all.collect(), rows);
        if named.is_empty() {
            return String::new();
        }
        let several = recordings.len() > 1;
        let heads = self.counters.iter().map(|counter| counter.info().column.to_owned());
        let heads: Vec<_> = cut(self.names.map(str::to_owned), width).chain(heads).collect();
        let mut table = Table::new(&heads).left(&[0, 1]);
        let mut add = |row: Row<'_>| {
            let figures = self.counters.iter().map(|counter| row.figure(*counter));
            table.row(cut(row.names(several), width).chain(figures).collect());
        };
        for row in named {
            add(row);
            let under = self.under.into_iter().flat_map(|kind| of_kind(&[row.recording], kind));
            let (under, _) = busiest(under.filter(|part| part.is_of(row.id)).collect(), rows);
            under.into_iter().for_each(&mut add);
        }
        let mut out = format!("{}\n{}", styled(BOLD, self.title), table.render_within(width, 2));
        if left_out > 0 {
            out.push_str(&format!("and {} more (--rows)\n", whole(left_out as f64)));
        }
        out
    }
}

/// Names with room for figures beside them on a narrow screen.
fn cut(names: [String; 2], width: Option<usize>) -> impl Iterator<Item = String> {
    let widths = width.map_or([usize::MAX; 2], |width| [width / 4, width / 5]);
    names.into_iter().zip(widths).map(|(name, width)| fit(&name, width))
}

fn of_kind<'a>(recordings: &[&'a Recording], kind: Kind) -> Vec<Row<'a>> {
    let of_host = |recording: &&'a Recording| {
        let recording = *recording;
        recording.of_kind(kind).map(move |(id, entity)| Row { recording, id, entity })
    };
    recordings.iter().flat_map(of_host).collect()
}

/// The busiest rows, and how many are left out.
fn busiest(mut all: Vec<Row<'_>>, rows: usize) -> (Vec<Row<'_>>, usize) {
    most_first(&mut all, |row| row.rate());
    let left_out = all.len().saturating_sub(rows);
    all.truncate(rows);
    (all, left_out)
}

impl Row<'_> {
    fn rate(&self) -> f64 {
        self.recording.value(self.id, C::Commands, 0).unwrap_or(0.0)
    }

    /// Whether it is listed under that object.
    fn is_of(&self, parent: EntityId) -> bool {
        match self.entity.kind {
            Kind::World => self.entity.device == Some(parent),
            _ => self.entity.vm == Some(parent),
        }
    }

    /// What stands in the two columns of names. Worlds and disks stand under what they belong to.
    fn names(&self, several: bool) -> [String; 2] {
        let name = self.entity.name.as_str();
        let own = |id: Option<EntityId>| id.map(|id| self.recording.entity(id).name.as_str());
        match self.entity.kind {
            Kind::Adapter => {
                let paths = self.recording.of_kind(Kind::Path);
                let own = paths.filter(|(_, path)| path.adapter == Some(self.id)).count();
                [self.on_host(name, several), own.to_string()]
            }
            Kind::World => {
                let world = name.rsplit('-').next().unwrap_or(name);
                let of = own(self.entity.vm).or(self.entity.process.as_deref());
                ["", &format!("{world} {}", of.unwrap_or_default())].map(clean)
            }
            Kind::VirtualDisk => {
                let vm = own(self.entity.vm).unwrap_or_default();
                let disk = name.strip_prefix(vm).unwrap_or(name);
                ["", disk.trim_start_matches(':')].map(clean)
            }
            _ => [self.on_host(name, several), "-".into()],
        }
    }

    fn on_host(&self, name: &str, several: bool) -> String {
        let host = &self.recording.host;
        clean(&if several { format!("{host} {name}") } else { name.to_owned() })
    }

    /// A figure as esxtop prints it.
    fn figure(&self, counter: C) -> String {
        match (self.recording.value(self.id, counter, 0), counter.info().format) {
            (None, _) => "-".into(),
            (Some(value), Format::Integer) => format!("{value:.0}"),
            (Some(value), Format::Decimal2) => format!("{value:.2}"),
        }
    }
}
