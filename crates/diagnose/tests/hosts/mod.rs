//! Random hosts for tests: drivers, versions, depths, path policies, guests and several troubles at
//! once, each host from its seed; and what outputs of esxcli or a simulation would say of it.

use std::{env, fmt::Write, sync::Arc};

use counters::{DeviceId, DeviceKind};
use diagnose::{DeviceFacts, Facts, LimitFacts, PathFacts, VdiskFacts};
use engine::{DeviceLimits, Engine, Input, PathAccess};
use knobs::{Advanced, DSNRO, Driver, Knob, PathPolicy, Transport, Version};
use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use scenario::{Host, Scenario};

/// A module that the table of drivers does not have.
pub(crate) const UNKNOWN_MODULE: &str = "qedf";
const BY_ATS: &str = "\nrate = 8\nlock = \"ats\"\n";
const BY_SCSI2: &str = "\nrate = 8\nlock = \"scsi2\"\n";

/// The seeds of a run: 1 to `default`, or to `PROPTEST_CASES`.
pub(crate) fn seeds(default: u64) -> std::ops::RangeInclusive<u64> {
    let asked = env::var("PROPTEST_CASES").ok();
    1..=asked.map_or(default, |cases| cases.parse().expect("PROPTEST_CASES is a number"))
}

/// Checks the host of each seed, and says for each that fails its seed, why and its scenario.
pub(crate) fn check_each(
    seeds: impl Iterator<Item = u64>,
    check: impl Fn(&Drawn) -> Result<(), String>,
) {
    let mut failed = Vec::new();
    for seed in seeds {
        let drawn = Drawn::of(seed);
        if let Err(error) = check(&drawn) {
            failed.push(format!("seed {seed}: {error}\n{}\n{:?}", drawn.text, drawn.facts));
        }
    }
    assert!(failed.is_empty(), "{} hosts fail:\n{}", failed.len(), failed.join("\n\n"));
}

/// A host of a seed.
pub(crate) struct Drawn {
    /// Its scenario file.
    pub(crate) text: String,
    pub(crate) scenario: Scenario,
    /// What is known of it: by a simulation all there is, else what some files of esxcli say.
    pub(crate) facts: Facts,
}

impl Drawn {
    pub(crate) fn of(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let text = draw.text(seed);
        let scenario = Scenario::parse("drawn.toml", &text, &mut |_| unreachable!())
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let facts = draw.facts(&scenario.hosts[0], &text);
        Self { text, scenario, facts }
    }

    /// The host that is judged.
    pub(crate) fn host(&self) -> &Host {
        &self.scenario.hosts[0]
    }
}

/// The limits of each device of a host as they are in force.
pub(crate) fn device_limits(host: &Host) -> Vec<DeviceLimits> {
    let mut engine = Engine::new(&host.config);
    for knob in &host.settings {
        engine.handle_input(counters::Time::ZERO, Input::Set(*knob)).unwrap();
    }
    let ids = (0..host.config.devices.len()).map(DeviceId::new);
    ids.map(|id| engine.device_limits(id).unwrap()).collect()
}

/// Draws from the seed of one host.
struct Draw(TestRunner);

/// What the parts of a scenario have to know of each other.
struct Frame {
    version: Version,
    /// Driver and depth of each adapter.
    adapters: Vec<(String, &'static Driver, u32)>,
}

impl Draw {
    fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        Self(TestRunner::new_with_rng(ProptestConfig::default(), rng))
    }

    fn of<S: Strategy>(&mut self, strategy: S) -> S::Value {
        strategy.new_tree(&mut self.0).expect("a strategy without a filter").current()
    }

    fn one<T: Clone + std::fmt::Debug + 'static>(&mut self, of: &[T]) -> T {
        self.of(select(of.to_vec()))
    }

    fn is(&mut self, probability: f64) -> bool {
        self.of(prop::bool::weighted(probability))
    }

    fn text(&mut self, seed: u64) -> String {
        let version = self.one(&Version::ALL);
        let frame = Frame { version, adapters: self.adapters(version) };
        let mut settings = self.settings(version);
        let mut text = String::new();
        self.array(&mut text);
        text += "[host.esx]\ncount = 2\n";
        for (name, driver, depth) in &frame.adapters {
            let module = driver.module;
            let _ = writeln!(text, "[host.esx.adapter.{name}]\ndriver = \"{module}\"");
            // A path that is down is told from the beginning: hosts are drawn here, no failovers.
            text += "dead_after = \"0s\"\n";
            if driver.parameter.is_some() {
                let _ = writeln!(text, "lun_depth = {depth}");
            }
            if self.is(0.15) {
                let _ = writeln!(text, "depth = {}", self.one(&[31, 64, 200]));
            }
        }
        let datastores = self.of(1..=3_usize);
        for index in 0..datastores {
            self.datastore(&mut text, index, &frame);
        }
        for index in 0..self.of(1..=4_usize) {
            self.vm(&mut text, index, datastores);
        }
        if self.is(0.1) {
            let path = &frame.adapters[0].0;
            let _ = write!(
                text,
                "[[event]]\nat = \"0s\"\nhost = \"esx-1\"\npath = \"{path}\"\nstate = \"down\"\n"
            );
        }
        settings.extend(self.lowered(&text, &frame));
        format!(
            "title = \"a drawn host\"\nesxi = \"{}\"\nduration = \"40s\"\nsample = \"5s\"\n\
             seed = {seed}\nesxcli = [{}]\n{text}",
            version.name(),
            settings.join(", ")
        )
    }

    /// A line that lowers a device below the depth of its driver, and mostly below DSNRO's default.
    fn lowered(&mut self, text: &str, frame: &Frame) -> Option<String> {
        let (_, rest) = text.split_once("device = \"").filter(|_| self.is(0.3))?;
        let (device, _) = rest.split_once('"')?;
        let least = frame.adapters.iter().map(|adapter| adapter.2).min()?;
        let depth = Some(self.one(&[8, 16, 24, 33, 40, 63])).filter(|depth| *depth < least)?;
        Some(format!("\"storage core device set -d {device} -m {depth}\""))
    }

    /// One adapter or two, of one driver or of two.
    fn adapters(&mut self, version: Version) -> Vec<(String, &'static Driver, u32)> {
        const DEPTHS: [u32; 9] = [16, 32, 64, 96, 128, 254, 256, 512, 1024];
        let fits = |d: &&Driver| d.transport != Transport::Network && d.versions.contains(&version);
        let drivers: Vec<&'static Driver> = Driver::ALL.iter().filter(fits).collect();
        let of_driver = |draw: &mut Self| {
            let driver = draw.one(&drivers);
            let fits = |depth: &u32| driver.depths().contains(depth);
            let depths: Vec<u32> = DEPTHS.into_iter().filter(fits).collect();
            let is_untouched = depths.is_empty() || draw.is(0.5);
            (driver, if is_untouched { driver.depth_default } else { draw.one(&depths) })
        };
        let first = of_driver(self);
        let mut drawn = vec![first];
        if self.is(0.5) {
            let second = if self.is(0.7) { first } else { of_driver(self) };
            // The parameter of a module is one for all its adapters.
            drawn.push(if second.0 == first.0 { first } else { second });
        }
        let name = |(index, (driver, depth)): (usize, (&'static Driver, u32))| {
            let first = if driver.transport == Transport::Iscsi { 64 } else { 1 };
            (format!("vmhba{}", first + index), driver, depth)
        };
        drawn.into_iter().enumerate().map(name).collect()
    }

    /// Lines in force from the beginning.
    fn settings(&mut self, version: Version) -> Vec<String> {
        let table: [(Advanced, f64, &[u32]); 4] = [
            (Advanced::SchedNumReqOutstanding, 0.4, &[8, 64, 128, 256]),
            (Advanced::HardwareAcceleratedLocking, 0.2, &[0]),
            (Advanced::QFullSampleSize, 0.15, &[32]),
            (Advanced::VvolPesnro, 0.3, &[32, 64, 256]),
        ];
        let mut lines = Vec::new();
        for (option, probability, values) in table {
            if option.exists_in(version) && self.is(probability) {
                let (path, value) = (option.info().path, self.one(values));
                lines.push(format!("\"system settings advanced set -o {path} -i {value}\""));
            }
        }
        lines
    }

    fn array(&mut self, text: &mut String) {
        let servers = self.one(&[2, 4, 8, 32, 128]);
        let service = self.one(&["0.3ms", "1ms", "4ms"]);
        let _ = writeln!(text, "[array.a]\nservers = {servers}\nservice = \"{service}\"");
        if self.is(0.1) {
            let _ = writeln!(text, "queue_limit = {}", self.one(&[16, 40, 100]));
        }
        let _ = writeln!(text, "[array.a.qos.slow]\nmax = {}", self.one(&[300, 2000]));
    }

    fn datastore(&mut self, text: &mut String, index: usize, frame: &Frame) {
        let _ = writeln!(text, "[datastore.ds{index}]");
        let has_vvols = Advanced::VvolPesnro.exists_in(frame.version);
        let kind = match self.of(0..10_u32) {
            0 if index > 0 => "nfs",
            1 | 2 if has_vvols => "vvol",
            _ => "vmfs",
        };
        if kind == "nfs" {
            *text += "kind = \"nfs\"\n";
            return;
        }
        if kind == "vvol" {
            let _ = writeln!(text, "kind = \"vvol\"\nendpoint = \"pe{index}\"");
        } else {
            let _ = writeln!(text, "device = \"naa.6000000000000000000000000000000{index}\"");
        }
        let (first, second) = (&frame.adapters[0], frame.adapters.last().unwrap());
        let is_alike = first.1 == second.1;
        if !is_alike || self.is(0.2) {
            let one = if index == 0 || self.is(0.5) { first } else { second };
            let _ = writeln!(text, "adapters = [\"{}\"]", one.0);
        }
        let policies: &[&str] = match frame.version.has_latency_policy() {
            true => &["fixed", "mru", "rr", "latency"],
            false => &["fixed", "mru", "rr"],
        };
        let _ = writeln!(text, "path_policy = \"{}\"", self.one(policies));
        let _ = writeln!(text, "paths = {}", self.of(1..=2_u32));
        if self.is(0.2) {
            *text += "unoptimized_paths = 1\n";
        }
        let most = frame.adapters.iter().map(|adapter| adapter.2).min().unwrap();
        let most = if frame.version.refuses_dsnro_above_depth() { most } else { DSNRO.max };
        if !frame.version.has_global_dsnro() && self.is(0.4) {
            let fits: Vec<u32> = [8, 32, 64, 128].into_iter().filter(|d| *d <= most).collect();
            if !fits.is_empty() {
                let _ = writeln!(text, "dsnro = {}", self.one(&fits));
            }
        }
        if self.is(0.1) {
            *text += "qos = \"slow\"\n";
        }
        if kind == "vmfs" && self.is(0.25) {
            let lock = self.one(&[BY_ATS, BY_SCSI2]);
            let _ = write!(text, "[datastore.ds{index}.metadata]{lock}");
        }
    }

    fn vm(&mut self, text: &mut String, index: usize, datastores: usize) {
        let guest = self.one(&["windows", "linux", "linux_old"]);
        let (count, host) = (self.of(1..=3_u32), if self.is(0.85) { 1 } else { 2 });
        let _ = writeln!(text, "[vm.vm{index}]\ncount = {count}\nhost = \"esx-{host}\"");
        let _ = writeln!(text, "guest = \"{guest}\"");
        let slots = ["scsi0:1", "scsi0:2", "scsi1:0"];
        let disks = self.of(1..=2_usize);
        let adapter = self.one(&["pvscsi", "pvscsi", "pvscsi", "lsisas"]);
        if adapter == "pvscsi" && self.is(0.2) {
            let line = match guest {
                "windows" => "RequestRingPages=32,MaxQueueDepth=128",
                _ => "vmw_pvscsi.cmd_per_lun=128 vmw_pvscsi.ring_pages=32",
            };
            let _ = writeln!(text, "guest_driver = \"{line}\"");
        }
        for slot in &slots[..disks] {
            let datastore = self.of(0..datastores);
            let _ = writeln!(text, "[vm.vm{index}.disk.\"{slot}\"]\ndatastore = \"ds{datastore}\"");
            let _ = writeln!(text, "adapter = \"{adapter}\"");
            if self.is(0.2) {
                let _ = writeln!(text, "limit = {}", self.one(&[300, 500, 1000, 2000]));
            }
        }
        for slot in &slots[..disks] {
            let (threads, size) =
                (self.one(&[1, 4, 24, 60, 100, 300]), self.one(&["4k", "8k", "512k"]));
            let _ = writeln!(
                text,
                "[[vm.vm{index}.workload]]\nname = \"w{index}-{}\"\ndisk = \"{slot}\"\n\
                 threads = {threads}\nsize = \"{size}\"",
                slot.replace(':', "-")
            );
            if self.is(0.3) {
                let _ = writeln!(text, "think = \"{}\"", self.one(&["2ms", "50ms"]));
            }
        }
    }

    /// What is known of a host: all of it, as a simulation does, or what some of the outputs of
    /// esxcli say, none of which tells the version, limits of disks or the systems of guests.
    fn facts(&mut self, host: &Host, text: &str) -> Facts {
        let mut facts = Facts::default();
        let is_simulation = self.is(0.4);
        let [adapters, devices, paths, parameters, names] =
            [(); 5].map(|()| is_simulation || self.is(0.5));
        let config = &host.config;
        if is_simulation {
            facts.esxi_version = Some(config.version);
            add_vdisks(&mut facts, host);
        }
        if adapters {
            let unknown = !is_simulation && self.is(0.1);
            for adapter in &config.adapters {
                let module = if unknown { UNKNOWN_MODULE } else { adapter.driver.module };
                facts.drivers.insert(adapter.name.clone(), module.into());
            }
        }
        if parameters && !is_simulation {
            for adapter in &config.adapters {
                let is_set = adapter.lun_depth != adapter.driver.depth_default;
                let value = if is_set { adapter.lun_depth.to_string() } else { String::new() };
                if let Some(parameter) = adapter.driver.parameter {
                    facts.parameters.insert(parameter.into(), value);
                }
            }
        }
        let limits = device_limits(host);
        for (index, (device, limits)) in config.devices.iter().zip(&limits).enumerate() {
            if names {
                facts.datastores.insert(device.name.clone(), host.datastores[index].join(", "));
            }
            if device.kind == DeviceKind::Nfs {
                continue;
            }
            let known = facts.devices.entry(device.name.clone()).or_default();
            if devices {
                known.max_queue_depth = Some(limits.max_queue_depth);
                known.dsnro = Some(limits.dsnro);
                known.is_protocol_endpoint = device.kind == DeviceKind::ProtocolEndpoint;
                known.queue_full_sample_size = Some(sample_size(host));
                known.has_own_dsnro = is_simulation.then_some(device.dsnro.is_some());
                known.driver_depth = is_simulation.then_some(limits.driver_depth);
            }
            if is_simulation {
                let metadata = |name: &String| format!("[datastore.{name}.metadata]{BY_SCSI2}");
                let by_scsi2 = |name: &String| text.contains(&metadata(name));
                known.locks_by_scsi2 = Some(host.datastores[index].iter().any(by_scsi2));
            }
            if paths {
                add_paths(known, host, DeviceId::new(index));
            }
        }
        facts
    }
}

fn sample_size(host: &Host) -> u32 {
    let size = |knob: &Knob| match *knob {
        Knob::Advanced { option: Advanced::QFullSampleSize, value } => Some(value),
        _ => None,
    };
    host.settings.iter().rev().find_map(size).unwrap_or(0)
}

fn add_vdisks(facts: &mut Facts, host: &Host) {
    for disk in &host.config.vdisks {
        let vm = &host.config.vms[disk.vm.index()].name;
        let known = VdiskFacts {
            depth: Some(disk.depth),
            adapter_depth: Some(host.config.vscsi[disk.vscsi.index()].depth),
            guest: host.guests[disk.vm.index()],
            policy_wait_ms: None,
            short_of_units: None,
            asks_iops: None,
            outstanding_most: None,
        };
        let name = format!("{vm}:{}", disk.name);
        Arc::make_mut(&mut facts.vdisks).insert(name.clone(), known);
        let iops = disk.allocation.limit_iops;
        let limit = LimitFacts { iops, at_end: iops, ..LimitFacts::default() };
        Arc::make_mut(&mut facts.limits).insert(name, limit);
    }
}

fn add_paths(known: &mut DeviceFacts, host: &Host, id: DeviceId) {
    let mine: Vec<_> = host.config.paths.iter().filter(|path| path.device == id).collect();
    let optimized = mine.iter().filter(|path| path.access == PathAccess::Optimized).count();
    let (policy, round_robin_iops, working) = match host.config.devices[id.index()].path_policy {
        PathPolicy::Fixed => ("VMW_PSP_FIXED", None, 1),
        PathPolicy::MostRecentlyUsed => ("VMW_PSP_MRU", None, 1),
        PathPolicy::RoundRobin { iops, .. } => ("VMW_PSP_RR", Some(iops), optimized),
        PathPolicy::Latency { .. } => ("VMW_PSP_RR", None, optimized),
    };
    known.paths = Some(PathFacts { policy: policy.into(), round_robin_iops, working, dead: None });
}
