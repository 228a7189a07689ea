//! `[vm.NAME.workload]` and `[[workload]]`: who issues I/O, and when.

use std::collections::{BTreeMap, BTreeSet};

use counters::{Op, SECOND, SECTOR, Time, VdiskId};
use model::{
    Access, Arrival, BlockConfig, Burst, Ceiling, Mix, Others, SizeMix, WAITING_MAX, WorkloadConfig,
};

use crate::{
    Error, Workload, fio, names,
    reader::{Node, Table},
    stream::{
        IO_BYTES_MAX, RATE_MAX, RATE_MIN, Stream, THREADS_MAX, WORKING_SET_DEFAULT, check_io_size,
        check_shares,
    },
    units, vdbench,
    vm::{Site, Vm},
};

const WORKLOADS_MAX: usize = 1_000_000;
/// Threads of all workloads together: each is an outstanding I/O, and a small file cannot ask for all
/// memory. It is a GiB of I/Os.
const THREADS_TOTAL_MAX: u64 = 16_777_216;
/// Workloads of one virtual disk at most: an I/O's tag says in 16 bits which of them issued it.
pub const WORKLOADS_OF_DISK_MAX: u32 = 1 << 16;
/// Why a workload does not go with a disk whose I/Os come in batches.
const NO_BATCH: &str =
    "its disk has a `batch`, for which I/Os come together: it must be closed, without `rate`";
/// The largest disk: 62 TB, in whole TiB.
const WORKING_SET_MAX: u64 = 62 << 40;
/// Writes between two flushes at most.
const FLUSH_AFTER_MAX: u32 = 1_000_000;

const STREAM_KEYS: &[&str] = &[
    "threads",
    "rate",
    "think",
    "arrival",
    "outstanding",
    "backlog",
    "read",
    "fua",
    "flush_after",
    "others",
    "size",
    "access",
    "working_set",
    "on",
    "off",
];
/// Operations beside reads and writes, by the keys of their shares.
const OTHER_OPS: [(&str, Op); 3] =
    [("discard", Op::Discard), ("write_zeroes", Op::WriteZeroes), ("compare_and_write", Op::Ats)];
const OTHER_KEYS: &[&str] =
    &["vm", "disk", "name", "start", "stop", "phases", "vdbench", "fio", "ioping"];

/// Reads parameter files that a scenario names.
pub(crate) type Include<'i> = &'i mut dyn FnMut(&str) -> Result<String, String>;

/// Workloads, with the labels by which events start and stop them.
pub(crate) struct Workloads {
    pub(crate) workloads: Vec<Workload>,
    pub(crate) warnings: Vec<String>,
    labels: Vec<String>,
    names: BTreeSet<String>,
    /// How many each virtual disk of a host has.
    of_disk: BTreeMap<(usize, VdiskId), u32>,
    threads_total: u64,
    /// I/Os of a system call as the file that was read last has them, and the refusal without a block layer.
    batch: Option<(u32, Error)>,
}

/// The table of a workload, read.
struct Plan<'a> {
    table: Table<'a>,
    label: String,
    name: Option<String>,
    streams: Vec<Stream>,
    batch: Option<(u32, Error)>,
    starts: Time,
    /// Nanoseconds from the start of one copy to that of the next.
    every_ns: u64,
    stops: Time,
}

impl Workloads {
    /// Reads every workload of the file.
    pub(crate) fn read(
        root: &Table<'_>,
        site: &mut Site,
        include: Include<'_>,
    ) -> Result<Self, Error> {
        let mut all = Self {
            workloads: Vec::new(),
            warnings: Vec::new(),
            labels: Vec::new(),
            names: BTreeSet::new(),
            of_disk: BTreeMap::new(),
            threads_total: 0,
            batch: None,
        };
        for (name, node) in root.named("vm")? {
            for node in node.child("workload").into_iter().flat_map(|node| node.list()) {
                let plan = all.plan(&node, &name, include)?;
                if let Some(vm) = plan.table.get("vm") {
                    return Err(vm.error("the workload stands in its VM already"));
                }
                let vms = site.vms.names.get(&name).into_iter().flatten().collect();
                all.add(&plan, vms, site)?;
            }
        }
        for node in root.list("workload") {
            let plan = all.plan(&node, "", include)?;
            all.add(&plan, site.vms.names.find(&plan.table.need("vm")?)?, site)?;
        }
        all.read_metadata(root, site)?;
        Ok(all)
    }

    /// The workloads that an event's `start` or `stop` names.
    pub(crate) fn find(&self, node: &Node<'_>) -> Result<Vec<usize>, Error> {
        let name = node.string()?;
        let named =
            |(label, workload): (&String, &Workload)| label == name || workload.name == name;
        let all = self.labels.iter().zip(&self.workloads);
        let found: Vec<_> = all.enumerate().filter(|(_, w)| named(*w)).map(|(i, _)| i).collect();
        if found.is_empty() {
            let labels = self.labels.iter().map(String::as_str);
            return Err(node.error(&names::unknown("workload", name, labels)));
        }
        Ok(found)
    }

    fn plan<'a>(
        &mut self,
        node: &Node<'a>,
        vm: &str,
        include: Include<'_>,
    ) -> Result<Plan<'a>, Error> {
        let table = node.table(&[STREAM_KEYS, OTHER_KEYS].concat())?;
        let name = table.read("name", |node| node.string().map(str::to_string))?;
        let streams = self.streams(&table, include)?;
        let (starts, every_ns) = table.read("start", start)?.unwrap_or((Time::ZERO, 0));
        let stops = stop(&table, starts)?;
        let of_vm = || table.get("vm").and_then(|node| node.string().ok()).unwrap_or(vm);
        let label = name.clone().unwrap_or_else(|| of_vm().to_string());
        let batch = self.batch.take();
        Ok(Plan { table, label, name, streams, batch, starts, every_ns, stops })
    }

    /// Puts the streams of a workload on the disks of VMs.
    fn add(&mut self, plan: &Plan<'_>, vms: Vec<usize>, site: &mut Site) -> Result<(), Error> {
        for (copy, vm) in vms.into_iter().enumerate() {
            let vm = &site.vms.vms[vm];
            let disks = plan.disks(vm)?;
            let starts = plan.starts + plan.every_ns.saturating_mul(copy as u64);
            stop(&plan.table, starts)?;
            for (number, stream) in plan.streams.iter().enumerate() {
                let own = stream.disk.map(|disk| &disks[disk..=disk]);
                for &disk in own.unwrap_or(&disks) {
                    for (host, place) in plan.batch.iter().flat_map(|_| &vm.places) {
                        let blocks = &mut site.hosts.hosts[*host].blocks;
                        hand_over(&mut blocks[place.vdisks[disk].index()], plan)?;
                    }
                    let workload = plan.workload(vm, disk, stream, number);
                    let batches = vm.disks[disk].block.is_some_and(|block| block.batch > 1);
                    if batches
                        && !matches!(workload.config.arrival, Arrival::Closed { rate: None, .. })
                    {
                        return Err(plan.table.node().error(NO_BATCH));
                    }
                    self.push(Workload { starts, ..workload }, plan)?;
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, workload: Workload, plan: &Plan<'_>) -> Result<(), Error> {
        let node = plan.table.node();
        if self.workloads.len() >= WORKLOADS_MAX {
            let message = format!("there are too many workloads; at most {WORKLOADS_MAX}");
            return Err(node.error(&message));
        }
        if !self.names.insert(workload.name.clone()) {
            let message =
                format!("there are two workloads `{}`; give each a `name`", workload.name);
            return Err(node.error(&message));
        }
        let of_disk = self.of_disk.entry((workload.host, workload.vdisk)).or_default();
        if *of_disk >= WORKLOADS_OF_DISK_MAX {
            let message =
                format!("a disk has too many workloads; at most {WORKLOADS_OF_DISK_MAX} of each");
            return Err(node.error(&message));
        }
        *of_disk += 1;
        if let Arrival::Closed { threads, .. } = workload.config.arrival {
            self.threads_total += u64::from(threads);
        }
        if self.threads_total > THREADS_TOTAL_MAX {
            let message = format!("there are too many threads; at most {THREADS_TOTAL_MAX} in all");
            return Err(node.error(&message));
        }
        self.labels.push(plan.label.clone());
        self.workloads.push(workload);
        Ok(())
    }

    fn streams(&mut self, table: &Table<'_>, include: Include<'_>) -> Result<Vec<Stream>, Error> {
        let foreign = ["vdbench", "fio", "ioping"].iter().find_map(|key| table.get(key));
        let Some(node) = foreign else { return own_streams(table) };
        let own = STREAM_KEYS.iter().filter(|key| !["working_set", "on", "off"].contains(key));
        if let Some(other) = own.chain(&["phases"]).find_map(|key| table.get(key)) {
            return Err(other.error(&format!("it does not go with `{}`", node.name())));
        }
        let mut streams = match node.name() {
            "ioping" => vec![ioping(&node)?],
            "vdbench" => {
                let (file, text) = parameters(&node, include)?;
                vdbench::read(&file, &text)?
            }
            _ => {
                let (file, text) = parameters(&node, include)?;
                let (streams, warnings, batch) = fio::read(&file, &text)?;
                self.warnings.extend(warnings);
                self.batch = batch;
                streams
            }
        };
        let burst = burst(&Keys { own: table, base: table })?;
        let working_set = table.read("working_set", working_set)?;
        for stream in &mut streams {
            stream.config.burst = burst;
            stream.config.working_set = working_set.unwrap_or(stream.config.working_set);
            fits(table.node(), &stream.config)?;
        }
        Ok(streams)
    }

    /// Adds a workload of the host itself.
    pub(crate) fn push_own(&mut self, label: String, workload: Workload) {
        self.labels.push(label);
        self.workloads.push(workload);
    }
}

impl Plan<'_> {
    /// The disks of a VM that the workload is on.
    fn disks(&self, vm: &Vm) -> Result<Vec<usize>, Error> {
        let wanted =
            self.streams.iter().filter_map(|stream| stream.disk).max().map_or(1, |d| d + 1);
        let nodes = self.table.list("disk");
        let mut disks = Vec::new();
        for node in &nodes {
            match node.string()? {
                "all" => disks.extend(0..vm.disks.len()),
                _ => disks.push(vm.disk(node)?),
            }
        }
        if nodes.is_empty() {
            disks.extend(0..vm.disks.len());
        }
        let several = self.streams.iter().any(|stream| stream.disk.is_some());
        if (nodes.is_empty() && !several && disks.len() > 1) || (several && disks.len() != wanted) {
            return Err(self.table.node().error(&format!(
                "`disk` must say which {wanted} of the disks of `{}` it uses; they are {}",
                vm.name,
                names::list(vm.disks.iter().map(|disk| disk.name.as_str()))
            )));
        }
        Ok(disks)
    }

    fn workload(&self, vm: &Vm, disk: usize, stream: &Stream, number: usize) -> Workload {
        let mut name = format!("{}:{}", vm.name, vm.disks[disk].name);
        if let Some(own) = &self.name {
            name = format!("{name}/{own}");
        }
        if self.streams.len() > 1 {
            name = format!("{name}#{}", number + 1);
        }
        Workload {
            name,
            host: vm.home,
            vdisk: vm.places[&vm.home].vdisks[disk],
            config: stream.config.clone(),
            starts: self.starts,
            from_ns: stream.from_ns,
            for_ns: stream.for_ns,
            stops: self.stops,
        }
    }
}

/// Lets a disk's block layer have so many I/Os of a system call as the jobs say.
fn hand_over(block: &mut Option<BlockConfig>, plan: &Plan<'_>) -> Result<(), Error> {
    match (block, &plan.batch) {
        (Some(block), Some((batch, _))) => block.batch = *batch,
        (None, Some((_, refusal))) => return Err(refusal.clone()),
        _ => {}
    }
    Ok(())
}

/// When it starts, or the first of its copies, and the nanoseconds from one copy to the next.
fn start(node: &Node<'_>) -> Result<(Time, u64), Error> {
    if node.is_table() {
        let table = node.table(&["first", "every"])?;
        let first = table.read("first", Node::duration)?.unwrap_or(0);
        return Ok((Time(first), table.need("every")?.positive_duration()?));
    }
    Ok((moment(node)?, 0))
}

/// A moment, or never.
pub(crate) fn moment(node: &Node<'_>) -> Result<Time, Error> {
    if node.string()? == "never" { Ok(Time::NEVER) } else { node.duration().map(Time) }
}

/// `stop`, after the start.
pub(crate) fn stop(table: &Table<'_>, starts: Time) -> Result<Time, Error> {
    let stops = table.read("stop", Node::duration)?.map_or(Time::NEVER, Time);
    match table.get("stop") {
        Some(node) if starts != Time::NEVER && stops <= starts => {
            Err(node.error("it must be after `start`"))
        }
        _ => Ok(stops),
    }
}

/// A stage's own keys, and those of the workload for what it leaves out.
struct Keys<'t, 'a> {
    own: &'t Table<'a>,
    base: &'t Table<'a>,
}

impl<'a> Keys<'_, 'a> {
    fn get(&self, key: &str) -> Option<Node<'a>> {
        self.own.get(key).or_else(|| self.base.get(key))
    }

    fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Node<'a>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.get(key).map(|node| read(&node)).transpose()
    }

    fn need(&self, key: &str) -> Result<Node<'a>, Error> {
        self.get(key).map_or_else(|| self.own.need(key), Ok)
    }
}

/// The streams of a workload that the file itself describes: one, or one a phase.
fn own_streams(table: &Table<'_>) -> Result<Vec<Stream>, Error> {
    let Some(phases) = table.get("phases") else {
        let config = config(&Keys { own: table, base: table })?;
        return Ok(vec![Stream { disk: None, config, from_ns: 0, for_ns: None }]);
    };
    let mut streams = Vec::new();
    let mut from_ns = 0_u64;
    for node in phases.list() {
        let phase = node.table(&[STREAM_KEYS, &["for"]].concat())?;
        let nanos = phase.need("for")?.positive_duration()?;
        let config = config(&Keys { own: &phase, base: table })?;
        streams.push(Stream { disk: None, config, from_ns, for_ns: Some(nanos) });
        from_ns = from_ns.saturating_add(nanos);
    }
    if streams.is_empty() {
        return Err(phases.error("it must have a phase, as { for = \"10s\", rate = 100 }"));
    }
    Ok(streams)
}

fn config(keys: &Keys<'_, '_>) -> Result<WorkloadConfig, Error> {
    let access = keys.read("access", access)?;
    let read_share = keys.read("read", |node| node.parsed(units::percent))?.unwrap_or(1.0);
    let sizes = keys.read("size", sizes)?.unwrap_or_else(|| SizeMix(vec![(4096, 1)]));
    let config = WorkloadConfig {
        arrival: arrival(keys)?,
        mix: Mix::ReadWrite { read_share, sizes, others: others(keys, read_share)? },
        access: access.unwrap_or(Access::Random),
        working_set: keys.read("working_set", working_set)?.unwrap_or(WORKING_SET_DEFAULT),
        burst: burst(keys)?,
        ios_max: None,
        tape: None,
    };
    fits(keys.own.node(), &config)?;
    Ok(config)
}

/// What is neither read nor written: `fua` is a share of the writes, `others` has shares of all I/Os.
fn others(keys: &Keys<'_, '_>, read_share: f64) -> Result<Others, Error> {
    let of_writes = ["fua", "flush_after"].iter().find_map(|key| keys.get(key));
    if let (Some(node), true) = (of_writes, read_share >= 1.0) {
        return Err(node.error("there are no writes: `read` is 100%"));
    }
    let mut shares = keys.read("others", other_shares)?.unwrap_or_default();
    let left: f64 = 1.0 - shares.iter().map(|(_, share)| share).sum::<f64>();
    if let Some(fua) = keys.read("fua", |node| node.parsed(units::percent))? {
        shares.push((Op::WriteFua, left * (1.0 - read_share) * fua));
    }
    let flush_after = keys.read("flush_after", |node| node.integer32(1..=FLUSH_AFTER_MAX))?;
    Ok(Others { shares, flush_after })
}

/// `others = { discard = "5%", write_zeroes = "1%" }`.
fn other_shares(node: &Node<'_>) -> Result<Vec<(Op, f64)>, Error> {
    let table = node.table(&OTHER_OPS.map(|(key, _)| key))?;
    let mut shares = Vec::new();
    for (key, op) in OTHER_OPS {
        let share = table.read(key, |node| node.parsed(units::percent))?;
        shares.extend(share.map(|share| (op, share)));
    }
    let sum = shares.iter().map(|(_, share)| share).sum();
    check_shares(sum, true).map_err(|message| node.error(&message))?;
    Ok(shares)
}

fn arrival(keys: &Keys<'_, '_>) -> Result<Arrival, Error> {
    let kinds = [("closed", None), ("poisson", Some(true)), ("fixed", Some(false))];
    let open = keys.read("arrival", |node| node.choice(&kinds))?.flatten();
    let foreign: &[&str] =
        if open.is_some() { &["threads", "think"] } else { &["outstanding", "backlog"] };
    if let Some(node) = foreign.iter().find_map(|key| keys.get(key)) {
        let closed = "with arrival = \"closed\", which is the default";
        let allowed =
            if open.is_some() { closed } else { "with arrival = \"poisson\" or \"fixed\"" };
        return Err(node.error(&format!("it goes {allowed}")));
    }
    let rate = |node: &Node<'_>| node.number(RATE_MIN..=RATE_MAX);
    if let Some(poisson) = open {
        let outstanding = keys.read("outstanding", |node| node.integer32(1..=THREADS_MAX))?;
        let rate = rate(&keys.need("rate")?)?;
        let outstanding_max = outstanding.unwrap_or(THREADS_MAX);
        let waiting_max = keys.read("backlog", |node| node.integer32(0..=WAITING_MAX))?;
        let waiting_max = waiting_max.unwrap_or(WAITING_MAX);
        return Ok(Arrival::Open { rate, poisson, outstanding_max, waiting_max });
    }
    Ok(Arrival::Closed {
        threads: keys.need("threads")?.integer32(1..=THREADS_MAX)?,
        think_ns: keys.read("think", Node::duration)?.unwrap_or(0),
        rate: keys.read("rate", rate)?.map(|per_sec| Ceiling { per_sec, makes_up: false }),
    })
}

/// A word, or the share that is random.
fn access(node: &Node<'_>) -> Result<Access, Error> {
    if node.string().is_ok_and(|text| text.ends_with('%')) {
        return node.parsed(units::percent).map(Access::of);
    }
    node.choice(&[("random", Access::Random), ("sequential", Access::Sequential)])
}

fn working_set(node: &Node<'_>) -> Result<u64, Error> {
    node.size(SECTOR..=WORKING_SET_MAX)
}

fn burst(keys: &Keys<'_, '_>) -> Result<Option<Burst>, Error> {
    let (Some(on), Some(off)) = (keys.get("on"), keys.get("off")) else {
        return match keys.get("on").or_else(|| keys.get("off")) {
            Some(node) => Err(node.error("`on` and `off` go together")),
            None => Ok(None),
        };
    };
    Ok(Some(Burst { on_ns: on.positive_duration()?, off_ns: off.positive_duration()? }))
}

/// `size = "4k"`, or sizes with their weights: `size = { "4k" = 70, "64k" = 30 }`.
fn sizes(node: &Node<'_>) -> Result<SizeMix, Error> {
    if !node.is_table() {
        return Ok(SizeMix(vec![(io_size(node.size(SECTOR..=IO_BYTES_MAX)?, node)?, 1)]));
    }
    let mut mix = Vec::new();
    for (name, weight) in node.named()? {
        let bytes = units::size(&name).map_err(|message| weight.error(&message))?;
        mix.push((io_size(bytes, &weight)?, weight.integer32(1..=1_000_000)?));
    }
    if mix.is_empty() {
        return Err(node.error("it has at least one size, as { \"4k\" = 70, \"64k\" = 30 }"));
    }
    Ok(SizeMix(mix))
}

fn io_size(bytes: u64, node: &Node<'_>) -> Result<u32, Error> {
    check_io_size(bytes).map_err(|message| node.error(&message))
}

/// The largest I/O fits into the working set.
fn fits(node: &Node<'_>, config: &WorkloadConfig) -> Result<(), Error> {
    let Mix::ReadWrite { sizes, .. } = &config.mix else { return Ok(()) };
    let largest = sizes.0.iter().map(|(bytes, _)| u64::from(*bytes)).max().unwrap_or(0);
    if largest > config.working_set {
        let working_set = config.working_set;
        return Err(node.error(&format!(
            "an I/O of {largest} bytes does not fit into a working set of {working_set} bytes"
        )));
    }
    Ok(())
}

/// The name and the text of a parameter file; a value of several lines, or one with options in
/// it, is the text itself.
fn parameters(node: &Node<'_>, include: Include<'_>) -> Result<(String, String), Error> {
    let value = node.string()?;
    if value.contains('\n') || value.contains('=') {
        return Ok((node.place(), value.to_string()));
    }
    let text = include(value).map_err(|message| node.error(&message))?;
    Ok((value.to_string(), text))
}

/// One read of 4 KiB a second, as ioping does [S4].
fn ioping(node: &Node<'_>) -> Result<Stream, Error> {
    if !node.boolean()? {
        return Err(node.error("leave it out instead of false"));
    }
    let config = WorkloadConfig {
        arrival: Arrival::Closed { threads: 1, think_ns: SECOND, rate: None },
        mix: Mix::ReadWrite {
            read_share: 1.0,
            sizes: SizeMix(vec![(4096, 1)]),
            others: Others::default(),
        },
        access: Access::Random,
        working_set: WORKING_SET_DEFAULT,
        burst: None,
        ios_max: None,
        tape: None,
    };
    Ok(Stream { disk: None, config, from_ns: 0, for_ns: None })
}
