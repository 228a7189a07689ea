//! `kavg vscsiStats`: histograms of what guests of a daemon at work ask their disks for.

use std::{io::Write, process::ExitCode};

use capture::{Bin, VscsiHistogram, print_vscsistats, print_vscsistats_text};
use clap::{Args, ValueEnum};
use control::{VscsiAct, VscsiDisk, VscsiOrder};
use counters::{Metric, SECOND, VSCSI, VscsiStats};

use crate::{Result, live::Live, talk::say, text::clean};

/// Count what the guests of a daemon at work ask for, with the options of vscsiStats
///
/// `-s` begins to count, `-p all -c` prints the histograms in the file format of a real host, which `kavg
/// capture histograms` shows and `kavg whatif --vscsistats` takes. Reads and writes are counted, at the
/// virtual adapter, for 30 minutes; `-s` once more prolongs that.
///
/// Exit code: 0 when it is done, 2 when it is refused.
#[derive(Args)]
pub(crate) struct Vscsistats {
    #[command(flatten)]
    act: Act,
    /// Only the disks of the virtual machine with this leader world (`-l` lists them)
    #[arg(short, long, value_name = "WORLD")]
    worldgroupid: Option<u32>,
    /// Only the disk with this handle
    #[arg(short = 'i', long, value_name = "HANDLE", requires = "worldgroupid")]
    handleid: Option<u64>,
    /// With commas, as kavg reads it
    #[arg(short, long, requires = "printhistos")]
    csv: bool,
    #[command(flatten)]
    live: Live,
}

/// What is to be done.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Act {
    /// List virtual machines and their disks
    #[arg(short, long)]
    list: bool,
    /// Begin to count
    #[arg(short, long)]
    start: bool,
    /// Count no more; what was counted stays
    #[arg(short = 'x', long)]
    stop: bool,
    /// Begin anew with nothing
    #[arg(short, long)]
    reset: bool,
    /// Print the histograms of a kind
    #[arg(short, long, value_name = "KIND")]
    printhistos: Option<Histograms>,
}

/// Which histograms, in vscsiStats' words [ELA].
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Histograms {
    #[value(name = "all")]
    All,
    #[value(name = "ioLength")]
    IoLength,
    #[value(name = "seekDistance")]
    SeekDistance,
    #[value(name = "outstandingIOs")]
    OutstandingIos,
    #[value(name = "latency")]
    Latency,
    #[value(name = "interarrival")]
    Interarrival,
}

impl Histograms {
    const fn has(self, metric: Metric) -> bool {
        match self {
            Self::All => true,
            Self::IoLength => matches!(metric, Metric::IoLength),
            Self::SeekDistance => {
                matches!(metric, Metric::SeekDistance | Metric::SeekDistanceWindowed)
            }
            Self::OutstandingIos => matches!(metric, Metric::Outstanding),
            Self::Latency => matches!(metric, Metric::Latency),
            Self::Interarrival => matches!(metric, Metric::Interarrival),
        }
    }
}

impl Vscsistats {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let act = match &self.act {
            Act { start: true, .. } => VscsiAct::Start,
            Act { stop: true, .. } => VscsiAct::Stop,
            Act { reset: true, .. } => VscsiAct::Reset,
            Act { .. } => VscsiAct::Read,
        };
        let order = VscsiOrder { act, world: self.worldgroupid, handle: self.handleid };
        let disks = self.live.connect()?.vscsi(order)?;
        if let Some(kind) = self.act.printhistos {
            let histograms = of_kind(&disks, kind);
            if histograms.is_empty() {
                return Err("nothing was counted; kavg vscsiStats -s begins to".into());
            }
            let print = if self.csv { print_vscsistats } else { print_vscsistats_text };
            out.write_all(print(&histograms).as_bytes())?;
        } else if self.act.list {
            out.write_all(list(&disks).as_bytes())?;
        } else if act == VscsiAct::Start {
            let minutes = VscsiStats::TIME_NS / (60 * SECOND);
            say(&format!("it is counted for {minutes} minutes; -s once more prolongs that"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `vscsiStats -l`; its layout is from memory, as that of its histograms without `-c`.
fn list(disks: &[VscsiDisk]) -> String {
    disks.chunk_by(|one, next| one.world == next.world).map(of_machine).collect()
}

fn of_machine(disks: &[VscsiDisk]) -> String {
    let VscsiDisk { world, vm, .. } = &disks[0];
    let head = format!(
        "Virtual Machine worldGroupID: {world}, Virtual Machine Display Name: {}, Virtual Machine Config \
         File: , {{\n",
        clean(vm)
    );
    let each = |disk: &VscsiDisk| {
        format!("   Virtual SCSI Disk handleID: {} ({})\n", disk.handle, clean(&disk.name))
    };
    head + &disks.iter().map(each).collect::<String>() + "}\n"
}

/// The histograms of a kind, disk by disk.
fn of_kind(disks: &[VscsiDisk], kind: Histograms) -> Vec<VscsiHistogram> {
    let mut all = Vec::new();
    for disk in disks {
        for ((metric, direction, _), counts) in VSCSI.iter().zip(&disk.histograms) {
            if !kind.has(*metric) {
                continue;
            }
            let limits = metric.limits().iter().copied().map(Some).chain([None]);
            let bins = limits.zip(&counts.commands);
            all.push(VscsiHistogram {
                metric: *metric,
                direction: *direction,
                world: disk.world.into(),
                handle: disk.handle,
                disk: clean(&disk.name),
                min: counts.min,
                max: counts.max,
                mean: counts.mean,
                count: counts.count,
                bins: bins.map(|(limit, commands)| Bin { limit, commands: *commands }).collect(),
            });
        }
    }
    all
}
