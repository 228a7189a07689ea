//! `[datastore.NAME.metadata]`: the locks of VMFS on a datastore, which a process of each host that
//! sees it takes: so many a second, or for what its virtual machines do. How many locks an operation
//! takes no source says, so that is the file's to say (reference `array-and-control.md` section 7.4).

use counters::{MILLISECOND, Time};
use knobs::RESERVE_TIME_MAX_MS;
use model::{Access, Arrival, Mix, Stuck, WAITING_MAX, WorkloadConfig};

use crate::{
    Error, Workload,
    reader::{Node, Table},
    stream::{RATE_MAX, RATE_MIN, THREADS_MAX, WORKING_SET_DEFAULT},
    vm::{NOT_VMFS, Site},
    workload::{Workloads, moment, stop},
};

/// Metadata operations that a host has under way at once on one datastore.
const OUTSTANDING: u32 = 32;
/// Locks of one operation at most.
const LOCKS_MAX: u32 = 10_000;

/// What virtual machines do that changes metadata [section 7.4].
const OPERATIONS: [&str; 4] = ["power_on", "snapshot_growth", "thin_growth", "clone"];
const OWN_KEYS: [&str; 6] = ["lock", "rate", "hold", "start", "stop", "stuck"];

/// When locks are taken.
#[derive(Clone, Copy)]
enum Pace {
    /// So many a second on each host.
    OfHost(f64),
    /// So many a second for each virtual machine.
    OfVm(f64),
    /// So many by each virtual machine, one after the other, all machines at once at a moment.
    Once(u32, Time),
}

/// Locks that are taken for one reason.
struct Reason<'t> {
    name: &'static str,
    node: Node<'t>,
    pace: Pace,
    /// The virtual machines that it is about, by their place; `None` is all.
    vms: Option<Vec<usize>>,
}

/// The table of one datastore or group of them, read.
struct Locks<'t> {
    mix: Mix,
    starts: Time,
    stops: Time,
    reasons: Vec<Reason<'t>>,
}

impl Workloads {
    /// Reads the metadata of every datastore.
    pub(crate) fn read_metadata(&mut self, root: &Table<'_>, site: &mut Site) -> Result<(), Error> {
        for (name, node) in root.named("datastore")? {
            let kind = node.child("kind").map(|kind| kind.string()).transpose()?;
            let Some(node) = node.child("metadata") else { continue };
            if kind.is_some_and(|kind| kind != "vmfs") {
                return Err(node.error(NOT_VMFS));
            }
            let table = node.table(&[&OWN_KEYS[..], &OPERATIONS].concat())?;
            let locks = locks(&table, site)?;
            let hold = hold(&table)?;
            let stuck = table.read("stuck", |node| stuck(node, &locks.mix, site))?;
            for datastore in site.datastores.names.get(&name).into_iter().flatten() {
                if let (Some(stuck), Some(node)) = (stuck, table.get("stuck"))
                    && !site.datastores.hosts_of(datastore).contains(&(stuck.host as usize))
                {
                    return Err(node.error("the host does not see the datastore"));
                }
                site.reserve(datastore, hold, stuck);
                for host in site.datastores.hosts_of(datastore) {
                    self.add_locks(&locks, host, datastore, &node, site)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the process of a host, and what it does.
    fn add_locks(
        &mut self,
        locks: &Locks<'_>,
        host: usize,
        datastore: usize,
        node: &Node<'_>,
        site: &mut Site,
    ) -> Result<(), Error> {
        let vdisk = site.add_system(host, datastore, node)?;
        let store = &site.datastores.datastores[datastore].name;
        for Reason { name, node, pace, vms } in &locks.reasons {
            let vms = site.vms_on(host, datastore, vms.as_deref());
            let (mut starts, mut stops, mut ios_max) = (locks.starts, locks.stops, None);
            let arrival = match *pace {
                Pace::OfVm(_) | Pace::Once(..) if vms == 0 => continue,
                Pace::OfHost(rate) => open(rate),
                Pace::OfVm(rate) if rate * f64::from(vms) > RATE_MAX => {
                    return Err(node.error(&format!("{vms} VMs take more than {RATE_MAX} locks/s")));
                }
                Pace::OfVm(rate) => open(rate * f64::from(vms)),
                Pace::Once(each, at) => {
                    (starts, stops) = (at, Time::NEVER);
                    ios_max = Some(u64::from(vms) * u64::from(each));
                    let think_ns = site.hold_of(datastore);
                    Arrival::Closed { threads: vms.min(THREADS_MAX), think_ns, rate: None }
                }
            };
            let config = WorkloadConfig {
                arrival,
                mix: locks.mix.clone(),
                access: Access::Random,
                working_set: WORKING_SET_DEFAULT,
                burst: None,
                ios_max,
                tape: None,
            };
            let label = format!("{store}/{name}");
            let name = format!("{}:{label}", site.hosts.hosts[host].config.name);
            let (from_ns, for_ns) = (0, None);
            self.push_own(
                label,
                Workload { name, host, vdisk, config, starts, from_ns, for_ns, stops },
            );
        }
        Ok(())
    }
}

/// Locks that come whether or not earlier ones are done.
const fn open(rate: f64) -> Arrival {
    let (outstanding_max, waiting_max) = (OUTSTANDING, WAITING_MAX);
    Arrival::Open { rate, poisson: true, outstanding_max, waiting_max }
}

fn locks<'t>(table: &Table<'t>, site: &Site) -> Result<Locks<'t>, Error> {
    let mix = table.need("lock")?.choice(&[("scsi2", Mix::Reserve), ("ats", Mix::Ats)])?;
    let starts = table.read("start", moment)?.unwrap_or(Time::ZERO);
    let stops = stop(table, starts)?;
    let mut reasons = Vec::new();
    if let Some(node) = table.get("rate") {
        let pace = Pace::OfHost(node.number(RATE_MIN..=RATE_MAX)?);
        reasons.push(Reason { name: "metadata", node, pace, vms: None });
    }
    for name in OPERATIONS {
        if let Some(node) = table.get(name) {
            reasons.push(operation(name, node, site)?);
        }
    }
    if reasons.is_empty() && table.get("stuck").is_none() {
        table.need("rate")?;
    }
    Ok(Locks { mix, starts, stops, reasons })
}

/// `{ locks = 4, rate = 0.1 }`, of each virtual machine; `{ locks = 4, at = "20s" }`, of all at once;
/// with `vm`, of some.
fn operation<'t>(name: &'static str, node: Node<'t>, site: &Site) -> Result<Reason<'t>, Error> {
    let table = node.table(&["locks", "rate", "at", "vm"])?;
    let locks = table.need("locks")?.integer32(1..=LOCKS_MAX)?;
    let when = table.exactly_one(&["rate", "at"])?;
    let pace = match when.name() {
        "at" => Pace::Once(locks, Time(when.duration()?)),
        _ => Pace::OfVm(f64::from(locks) * when.number(RATE_MIN..=RATE_MAX)?),
    };
    let vms = table.read("vm", |node| site.vms.names.find(node))?;
    Ok(Reason { name, node, pace, vms })
}

fn hold(table: &Table<'_>) -> Result<Option<u64>, Error> {
    let longest_ms = *RESERVE_TIME_MAX_MS.range.end();
    table.read("hold", |node| {
        let nanos = node.duration()?;
        if nanos > u64::from(longest_ms) * MILLISECOND {
            let message = format!("a reservation is held for {longest_ms}ms at most");
            return Err(node.error(&message));
        }
        Ok(nanos)
    })
}

/// `{ host = "esx-1", start = "20s", stop = "30s" }`.
fn stuck(node: &Node<'_>, mix: &Mix, site: &Site) -> Result<Stuck, Error> {
    if *mix == Mix::Ats {
        return Err(node.error("a lock by ATS reserves nothing; it goes with lock = \"scsi2\""));
    }
    let table = node.table(&["host", "start", "stop"])?;
    let host = site.hosts.names.find_one(&table.need("host")?)?;
    let from = Time(table.need("start")?.duration()?);
    Ok(Stuck { host: host as u32, from, until: stop(&table, from)? })
}
