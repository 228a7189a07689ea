//! From the text of a scenario file to a [`Scenario`], and settings given beside the file.

use std::{ops::Range, path::Path, slice};

use counters::{Controller, DEFAULT_INTERVAL_S, DeviceKind, SECOND, Time, VmId};
use engine::{HostConfig, VscsiConfig};
use knobs::{Advanced, Driver, Knob, Line, PVSCSI_COMMANDS_PER_PAGE, Setting, Version};

use crate::{
    Action, Error, Host, Over, Scenario,
    datastore::is_network,
    event, expect,
    expect::Windows,
    flash_cache,
    host::HOST_KEYS,
    reader::{self, File, Node, Table},
    rehearsal::Rehearsal,
    resolve::{self, Knobs},
    serving::{self, Purpose},
    vm::Site,
    workload::{Include, Workloads},
};

/// Samples that a run has at least when the file does not say how often to sample.
const SAMPLES_MIN: u64 = 10;
/// No sample is longer unless the file asks for it.
const SAMPLE_DEFAULT_NS: u64 = (DEFAULT_INTERVAL_S * SECOND as f64) as u64;
/// Values that the samples of a run have at most: they are kept in memory, where these take a GiB.
const VALUES_MAX: u64 = 1 << 27;

const KEYS: &[&str] = &[
    "title",
    "about",
    "source",
    "esxi",
    "seed",
    "duration",
    "warmup",
    "sample",
    "esxcli",
    "array",
    "volume",
    "switch",
    "host",
    "datastore",
    "storage_policy",
    "vm",
    "workload",
    "event",
    "window",
    "expect",
];

/// What is given beside a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// Other values of some of its keys, one after the other.
    pub overs: &'a [Over],
    /// Settings that come after its own, as [`Scenario::set`] takes them.
    pub lines: &'a [String],
}

impl Scenario {
    /// Parses the text of a scenario. `file` is its name in refusals; `include` hands over the
    /// text of the parameter files that it names.
    ///
    /// # Errors
    /// One line that names file, line and key, says what is wrong and what is allowed.
    pub fn parse(
        file: &str,
        text: &str,
        include: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, Error> {
        Self::parse_with(file, text, &Beside::default(), include)
    }

    /// The same with what is given beside the file. Its lines are in force before the run begins, as by
    /// [`Scenario::set`], but events go on from what they leave: a disk that is given another storage policy has
    /// nothing to do with what an event makes of the one that the file gave it.
    ///
    /// # Errors
    /// As [`Scenario::parse`]; where a key leads nowhere, or to a table; and as [`Scenario::set`].
    pub fn parse_with(
        file: &str,
        text: &str,
        beside: &Beside<'_>,
        include: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, Error> {
        parse(File { name: file, text }, Purpose::Run, beside, include)
    }

    /// The same of a file that is served in real time: every datastore has a back end and every host
    /// says where its disks are found; `duration` may be left out, and arrays where none is emulated.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_served(
        file: &str,
        text: &str,
        include: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, Error> {
        parse(File { name: file, text }, Purpose::Serve, &Beside::default(), include)
    }

    /// The same of a file on which another load is played in virtual time: `duration` may be left out, for it is that
    /// of the load.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_played(
        file: &str,
        text: &str,
        include: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, Error> {
        parse(File { name: file, text }, Purpose::Play, &Beside::default(), include)
    }

    /// Samples every so many nanoseconds instead.
    ///
    /// # Errors
    /// No sample in the run, or more than are kept: how many are allowed.
    pub fn set_sample(&mut self, sample_ns: u64) -> Result<(), String> {
        check_sample(sample_ns, self.duration_ns, &self.hosts)?;
        self.sample_ns = sample_ns;
        Ok(())
    }

    /// Puts a setting in force before the run begins, module and guest parameters included, as if
    /// host and guest had been rebooted since. The line is esxcli's own or one for a guest's
    /// PVSCSI driver, with a host's or VM's name in front of it (`esx-1: storage core …`) when it
    /// is not for all.
    ///
    /// # Errors
    /// One line as esxcli prints it. Nothing is changed then.
    pub fn set(&mut self, line: &str) -> Result<(), Error> {
        set_beside(&mut self.hosts, line)
    }

    /// The same for a line that is no text any more, for the whole run: no event sets it to something else.
    ///
    /// # Errors
    /// One line as esxcli prints it. Nothing is changed then.
    pub fn set_line(&mut self, Line { host, settings }: &Line) -> Result<(), Error> {
        let knobs = self.set_on(0..self.hosts.len(), host.as_deref(), settings)?;
        for own in knobs.chunk_by(|a, b| a.0 == b.0) {
            self.hold(own, settings);
        }
        Ok(())
    }

    /// Has the events of the host of `knobs`, which `settings` are there, set what else they do: of a knob of several parts
    /// the others, and a DSNRO that would be above the depth of its device to that.
    fn hold(&mut self, knobs: &[(usize, Knob)], settings: &[Setting]) {
        let index = knobs[0].0;
        let mut host = self.hosts[index].clone();
        let Ok(mut rehearsal) = Rehearsal::whole(&host) else { return };
        for event in self.events.iter_mut().filter(|event| event.host == index) {
            let Action::Set(knob) = &mut event.action else { continue };
            host.apply(*knob);
            if knobs.iter().any(|(_, asked)| knob.is_turned_by(asked)) {
                let again = resolve::on_hosts(None, settings, &[(index, &host)]);
                let again = again.into_iter().flatten().map(|(_, again)| again);
                *knob = again.rev().find(|again| knob.is_turned_by(again)).unwrap_or(*knob);
                host.apply(*knob);
            }
            if let Knob::SchedNumReqOutstanding { device, value } = knob {
                *value = rehearsal.depth(*device).map_or(*value, |depth| depth.min(*value));
            }
            // What the host of the events took, with what is asked for it may not take.
            _ = rehearsal.set(event.at, *knob);
        }
    }

    /// The same for a setting, on every host that has what it is about.
    ///
    /// # Errors
    /// One line as esxcli prints it. Nothing is changed then.
    pub fn apply(&mut self, setting: &Setting) -> Result<(), Error> {
        self.set_on(0..self.hosts.len(), None, slice::from_ref(setting)).map(drop)
    }

    /// Makes every device queue of every host so deep: the driver's depth per device and DSNRO, as
    /// if the hosts had been rebooted since. NFS volumes have no such queue.
    ///
    /// # Errors
    /// One line as esxcli prints it, where a driver or a version refuses the depth.
    pub fn set_device_depth(&mut self, depth: u32) -> Result<(), Error> {
        for index in 0..self.hosts.len() {
            for setting in depth_settings(&self.hosts[index].config, depth) {
                self.set_on(index..index + 1, None, slice::from_ref(&setting))?;
            }
        }
        Ok(())
    }

    /// Sets on those of some hosts that `prefix` names, or on each that has what is set: what that is on them.
    fn set_on(
        &mut self,
        hosts: Range<usize>,
        prefix: Option<&str>,
        settings: &[Setting],
    ) -> Result<Knobs, Error> {
        let known: Vec<_> = hosts.map(|index| (index, &self.hosts[index])).collect();
        let knobs = resolve::on_hosts(prefix, settings, &known);
        let put = knobs.and_then(|knobs| put(&mut self.hosts, settings, &knobs).map(|()| knobs));
        put.map_err(|message| {
            let lines: Vec<_> = settings.iter().map(Setting::to_string).collect();
            Error::new(format!("`{}`: {message}", lines.join("`, `")))
        })
    }
}

/// Reads a setting for any of a scenario's hosts: each knob with the index of its host.
///
/// # Errors
/// One line as esxcli prints it: the option, and what is allowed.
pub fn parse_knob(line: &str, scenario: &Scenario) -> Result<Vec<(usize, Knob)>, Error> {
    let hosts: Vec<_> = scenario.hosts.iter().enumerate().collect();
    resolve::settings(line, &hosts).map(|(_, knobs)| knobs).map_err(Error::new)
}

/// What makes the device queues of a host so deep.
fn depth_settings(host: &HostConfig, depth: u32) -> Vec<Setting> {
    let mut drivers: Vec<&'static Driver> = Vec::new();
    for adapter in host.adapters.iter().filter(|adapter| !is_network(adapter)) {
        if !drivers.contains(&adapter.driver) {
            drivers.push(adapter.driver);
        }
    }
    let module =
        |driver: &'static Driver| Setting::ModuleDepth { driver: driver.into(), value: depth };
    let mut settings: Vec<_> = drivers.into_iter().map(module).collect();
    if host.version.has_global_dsnro() {
        let option = Advanced::SchedNumReqOutstanding;
        settings.push(Setting::Advanced { option, value: Some(depth) });
    } else {
        let queues = host.devices.iter().filter(|device| device.kind != DeviceKind::Nfs);
        let dsnro =
            |name: &str| Setting::SchedNumReqOutstanding { device: name.into(), value: depth };
        settings.extend(queues.map(|device| dsnro(&device.name)));
    }
    settings
}

fn parse(
    source: File<'_>,
    purpose: Purpose,
    beside: &Beside<'_>,
    include: Include<'_>,
) -> Result<Scenario, Error> {
    let mut document = source.parse()?;
    beside.overs.iter().try_for_each(|over| over.put(source, &mut document))?;
    let root = reader::root(source, &document, KEYS)?;
    if purpose == Purpose::Serve {
        serving::check(&root, HOST_KEYS)?;
    }
    let name = Path::new(source.name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    build(name.unwrap_or_default(), &root, purpose, beside, include)
}

fn build(
    name: String,
    root: &Table<'_>,
    purpose: Purpose,
    beside: &Beside<'_>,
    include: Include<'_>,
) -> Result<Scenario, Error> {
    let text = |key| Ok::<_, Error>(root.read(key, Node::string)?.unwrap_or("").to_string());
    let duration_ns = match root.get("duration") {
        None if purpose != Purpose::Run => serving::DURATION_NS,
        _ => root.need("duration")?.positive_duration()?,
    };
    let warmup_ns = root.read("warmup", Node::duration)?.unwrap_or(0);
    if let (true, Some(node)) = (warmup_ns >= duration_ns, root.get("warmup")) {
        return Err(node.error("it must be shorter than `duration`"));
    }
    let mut site = Site::read(root, purpose, beside.overs)?;
    let workloads = Workloads::read(root, &mut site, include)?;
    flash_cache::read(root, &mut site)?;
    event::place_migrants(root, &mut site)?;
    flash_cache::connect(&mut site);
    for node in root.list("esxcli") {
        node.parsed(|line| set(&mut site.hosts.hosts, line))?;
    }
    beside.lines.iter().try_for_each(|line| set_beside(&mut site.hosts.hosts, line))?;
    let (events, given) = event::read(root, &mut site, &workloads, duration_ns)?;
    let windows = Windows::read(root, warmup_ns, duration_ns)?;
    let expectations = expect::read(root, &windows, &site)?;
    let foreign = foreign_drivers(&site.hosts.hosts);
    Ok(Scenario {
        name,
        title: root.need("title")?.string()?.to_string(),
        about: text("about")?,
        source: text("source")?,
        seed: root.read("seed", |node| node.integer(0..=u64::MAX))?.unwrap_or(1),
        duration_ns,
        warmup_ns,
        sample_ns: sample(root, duration_ns, &site.hosts.hosts)?,
        hosts: site.hosts.hosts,
        arrays: site.arrays.arrays,
        switches: site.switches.all,
        workloads: workloads.workloads,
        events,
        given,
        windows: windows.windows,
        expectations,
        thresholds: site.datastores.thresholds,
        warnings: foreign.into_iter().chain(workloads.warnings).collect(),
    })
}

/// Drivers that hosts of their version do not have, each told once: an inventory may be wrong in it, and what it asks
/// is answered.
fn foreign_drivers(hosts: &[Host]) -> Vec<String> {
    let mut told: Vec<(Version, &'static Driver)> = Vec::new();
    let mut warnings = Vec::new();
    for Host { config, .. } in hosts {
        let version = config.version;
        for adapter in &config.adapters {
            let driver = adapter.driver;
            let is_told = told.contains(&(version, driver));
            if is_told || driver.versions.contains(&version) {
                continue;
            }
            told.push((version, driver));
            warnings.push(format!(
                "host `{}`: driver `{}` of {} is one of {}, and the host has ESXi {}",
                config.name,
                driver.module,
                adapter.name,
                driver.versions_named(),
                version.name()
            ));
        }
    }
    warnings
}

fn sample(root: &Table<'_>, duration_ns: u64, hosts: &[Host]) -> Result<u64, Error> {
    let Some(node) = root.get("sample") else {
        let usual = (duration_ns / SAMPLES_MIN).clamp(1, SAMPLE_DEFAULT_NS);
        let fits = duration_ns.div_ceil(samples_max(hosts));
        let longer = || fits.next_multiple_of(SAMPLE_DEFAULT_NS).min(duration_ns);
        return Ok(if fits <= usual { usual } else { longer() });
    };
    let sample_ns = node.positive_duration()?;
    check_sample(sample_ns, duration_ns, hosts).map_err(|what| node.error(&what))?;
    Ok(sample_ns)
}

fn check_sample(sample_ns: u64, duration_ns: u64, hosts: &[Host]) -> Result<(), String> {
    let most = samples_max(hosts);
    match duration_ns.checked_div(sample_ns) {
        Some(samples) if (1..=most).contains(&samples) => Ok(()),
        _ => Err(format!("it must give 1 to {most} samples in the `duration` of the run")),
    }
}

/// Samples of which the values of all hosts are no more than a run may have.
fn samples_max(hosts: &[Host]) -> u64 {
    let values: u64 = hosts.iter().map(|host| host.config.inventory().values_max()).sum();
    (VALUES_MAX / values.max(1)).max(1)
}

/// Puts a setting in force on hosts that have not started yet. Nothing is changed when it is
/// refused.
fn set(hosts: &mut [Host], line: &str) -> Result<(), String> {
    let known: Vec<_> = hosts.iter().enumerate().collect();
    let (settings, knobs) = resolve::settings(line, &known)?;
    put(hosts, &settings, &knobs)
}

/// The same of a line that is not the file's, which the refusal names.
fn set_beside(hosts: &mut [Host], line: &str) -> Result<(), Error> {
    set(hosts, line).map_err(|message| Error::new(format!("`{line}`: {message}")))
}

/// Puts settings in force by what they are on each host, when no host refuses it.
fn put(hosts: &mut [Host], settings: &[Setting], knobs: &Knobs) -> Result<(), String> {
    for own in knobs.chunk_by(|a, b| a.0 == b.0) {
        let mut rehearsal = Rehearsal::whole(&hosts[own[0].0])?;
        own.iter().try_for_each(|(_, knob)| rehearsal.set(Time::ZERO, *knob))?;
    }
    for (host, knob) in knobs {
        hosts[*host].apply(*knob);
    }
    for host in hosts {
        settings.iter().for_each(|setting| host.note(setting));
    }
    Ok(())
}

impl Host {
    /// Puts a setting that an engine has taken where the next one is built from, or beside it.
    pub fn apply(&mut self, knob: Knob) {
        let config = &mut self.config;
        match knob {
            Knob::SchedNumReqOutstanding { device, value } => {
                config.devices[device.index()].dsnro = Some(value);
            }
            Knob::ModuleDepth { driver, value } => {
                let own = config.adapters.iter_mut().filter(|adapter| adapter.driver == driver);
                own.for_each(|adapter| adapter.lun_depth = value);
            }
            Knob::PathPolicy { device, policy } => {
                config.devices[device.index()].path_policy = policy;
            }
            Knob::Allocation { vdisk, allocation } => {
                config.vdisks[vdisk.index()].allocation = allocation;
            }
            Knob::Pvscsi { vm, depth, ring_pages } => {
                set_pvscsi(config, vm, depth, ring_pages);
            }
            // The engine takes the others when it starts.
            _ => {
                self.settings.retain(|known| !known.is_turned_by(&knob));
                self.settings.push(knob);
            }
        }
    }
}

fn set_pvscsi(config: &mut HostConfig, vm: VmId, depth: u32, ring_pages: u32) {
    for vscsi in config.vscsi.iter_mut().filter(|vscsi| is_pvscsi(vscsi, vm)) {
        vscsi.depth = ring_pages * PVSCSI_COMMANDS_PER_PAGE;
    }
    for vdisk in &mut config.vdisks {
        if is_pvscsi(&config.vscsi[vdisk.vscsi.index()], vm) {
            vdisk.depth = depth;
        }
    }
}

fn is_pvscsi(vscsi: &VscsiConfig, vm: VmId) -> bool {
    vscsi.vm == vm && vscsi.controller == Controller::Pvscsi
}
