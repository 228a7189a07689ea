//! What is prescribed exists: on hosts of any driver and version, every line that a diagnosis
//! proposes is read, is accepted by that host and changes something, and the line that undoes it
//! restores what was.

use std::collections::BTreeMap;

use counters::Kind;
use diagnose::{Change, DeviceFacts, Facts, Step, Thresholds, VdiskFacts, diagnose};
use knobs::{Advanced, Driver, GuestOs, Knob, Line, Setting, Transport, Version};
use proptest::{prelude::*, sample::select};
use scenario::{Host, Scenario};

const DEVICE: &str = "naa.60000000000000000000000000000001";

/// What is drawn of a host.
#[derive(Clone, Debug)]
struct Drawn {
    version: Version,
    driver: &'static Driver,
    depth: u32,
    guest: &'static str,
    vms: u32,
    threads: u32,
    servers: u32,
    limit: Option<u32>,
    conflicts: bool,
    known: bool,
    seed: u64,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let hosts = select(Version::ALL.to_vec()).prop_flat_map(|version| {
        let fits = |d: &&Driver| d.transport != Transport::Network && d.versions.contains(&version);
        let drivers: Vec<&Driver> = Driver::ALL.iter().filter(fits).collect();
        (Just(version), select(drivers))
    });
    let depths = (0..4_u32, any::<prop::sample::Index>());
    let guests = select(vec!["windows", "linux", "linux_old"]);
    let limits = prop::option::weighted(0.3, select(vec![300, 500, 1000, 2000]));
    let load = (1..5_u32, select(vec![4, 24, 60, 100, 300]), select(vec![4, 8, 32]));
    let flags = (prop::bool::weighted(0.2), any::<bool>());
    (hosts, depths, guests, load, limits, flags, 1..1000_u64).prop_map(
        |(
            (version, driver),
            (which, index),
            guest,
            (vms, threads, servers),
            limit,
            flags,
            seed,
        )| {
            let depths = [16, 32, 64, 96, 128, 254, 256, 512, 1024];
            let fits: Vec<u32> =
                depths.into_iter().filter(|depth| driver.depths().contains(depth)).collect();
            let depth = match fits.is_empty() || which < 2 {
                true => driver.depth_default,
                false => *index.get(&fits),
            };
            // A host of which the version is not known is taken for one of today.
            let (conflicts, known) = (flags.0, flags.1 || version.has_global_dsnro());
            Drawn {
                version,
                driver,
                depth,
                guest,
                vms,
                threads,
                servers,
                limit,
                conflicts,
                known,
                seed,
            }
        },
    )
}

impl Drawn {
    fn scenario(&self) -> Scenario {
        let limit = self.limit.map_or(String::new(), |limit| format!("limit = {limit}"));
        let metadata = match self.conflicts {
            true => {
                "esxcli = \"system settings advanced set -o /VMFS3/HardwareAcceleratedLocking -i 0\"\n"
            }
            false => "",
        };
        let locks = match self.conflicts {
            true => "[datastore.ds.metadata]\nrate = 8\nlock = \"ats\"",
            false => "",
        };
        let text = format!(
            "title = \"a drawn host\"\nesxi = \"{}\"\nduration = \"40s\"\nsample = \"5s\"\n\
             seed = {}\n{metadata}\n[array.a]\nservers = {}\nservice = \"1ms\"\n\
             [host.esx]\ncount = 2\n[host.esx.adapter.vmhba1]\ndriver = \"{}\"\nlun_depth = {}\n\
             [datastore.ds]\ndevice = \"{DEVICE}\"\n{locks}\n\
             [vm.sql]\ncount = {}\nguest = \"{}\"\nhost = \"esx-1\"\n\
             [vm.sql.disk.\"scsi0:1\"]\ndatastore = \"ds\"\n\
             [vm.sql.workload]\nthreads = {}\nsize = \"8k\"\n\
             [vm.other]\nguest = \"{}\"\nhost = \"esx-1\"\n\
             [vm.other.disk.\"scsi0:1\"]\ndatastore = \"ds\"\n{limit}\n\
             [vm.other.workload]\nthreads = 16\nsize = \"8k\"\nthink = \"2ms\"\n",
            self.version.name(),
            self.seed,
            self.servers,
            self.driver.module,
            self.depth,
            self.vms,
            self.guest,
            self.threads,
            self.guest,
        );
        Scenario::parse("drawn.toml", &text, &mut |_| unreachable!())
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// What esxcli would say of the host.
    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        if self.known {
            facts.esxi_version = Some(self.version);
            facts.drivers.insert("vmhba1".into(), self.driver.module.into());
            let max_queue_depth = Some(self.depth);
            let device = DeviceFacts { max_queue_depth, dsnro: Some(32), ..Default::default() };
            facts.devices.insert(DEVICE.into(), device);
            let host = &self.scenario().hosts[0];
            for (disk, guest) in host.config.vdisks.iter().map(|d| (d, host.guests[d.vm.index()])) {
                let name = format!("{}:{}", host.config.vms[disk.vm.index()].name, disk.name);
                let limit_iops = disk.allocation.limit_iops;
                let (depth, adapter_depth, has_qos) = (None, None, false);
                let disk = VdiskFacts { depth, adapter_depth, guest, limit_iops, has_qos };
                facts.vdisks.insert(name, disk);
            }
        }
        facts
    }
}

/// All that can be set on a host, as it is.
fn state(host: &Host) -> BTreeMap<String, String> {
    let config = &host.config;
    let mut state = BTreeMap::new();
    for info in Advanced::TABLE {
        let value = info.option.default_in(config.version);
        state.insert(info.path.to_string(), value.to_string());
    }
    for knob in &host.settings {
        if let Knob::Advanced { option, value } = knob {
            state.insert(option.info().path.into(), value.to_string());
        }
    }
    for adapter in &config.adapters {
        state.insert(adapter.name.clone(), adapter.lun_depth.to_string());
    }
    for device in &config.devices {
        let dsnro = device.dsnro.unwrap_or(knobs::DSNRO.default);
        state.insert(device.name.clone(), format!("{dsnro} {:?}", device.path_policy));
    }
    for (index, vdisk) in config.vdisks.iter().enumerate() {
        let ring = config.vscsi[vdisk.vscsi.index()].depth;
        let value = format!("{} {ring} {:?}", vdisk.depth, vdisk.allocation);
        state.insert(format!("disk {index}"), value);
    }
    state
}

/// The lines of a step as they are typed on that host, in each syntax that has them; inside a guest
/// it is the VM that the line is typed in.
fn lines(step: &Setting, host: &Host) -> Vec<String> {
    let Setting::Pvscsi { vm, .. } = step else {
        return step.esxcli().into_iter().chain(step.powercli()).collect();
    };
    let name = vm.vm.as_deref().expect("a proposal names the VM");
    let vms = host.config.vms.iter().zip(&host.guests);
    let guest = vms.filter(|(vm, _)| vm.name == name).map(|(_, guest)| *guest).next();
    let place = usize::from(guest.expect("the VM is there") != GuestOs::Windows);
    let typed = step.guest();
    vec![format!("{name}: {}", typed[place.min(typed.len() - 1)])]
}

fn is_accepted(scenario: &Scenario, step: &Step) -> Result<(), TestCaseError> {
    let host = &scenario.hosts[0];
    let before = state(host);
    for line in lines(&step.set, host) {
        let mut changed = scenario.clone();
        let set = changed.set(&line).map_err(|error| error.to_string());
        prop_assert_eq!(set, Ok(()), "proposed");
        let after = state(&changed.hosts[0]);
        prop_assert_ne!(&after, &before, "`{}` changes nothing", line);
        for undo in step.undo.iter().flat_map(|undo| lines(undo, host)) {
            let mut undone = changed.clone();
            let set = undone.set(&undo).map_err(|error| error.to_string());
            prop_assert_eq!(set, Ok(()), "undo");
            prop_assert_eq!(&state(&undone.hosts[0]), &before, "`{}` undone by `{}`", line, undo);
        }
    }
    Ok(())
}

/// A change that names its premise is none for a host where that does not hold.
fn is_for(drawn: &Drawn, change: &Change) -> bool {
    const PREMISE: &str = "If Device Max Queue Depth is no more than DSNRO";
    !change.what.starts_with(PREMISE) || drawn.depth <= knobs::DSNRO.default
}

fn check(drawn: &Drawn, scenario: &Scenario, change: &Change) -> Result<(), TestCaseError> {
    let shown = [&change.esxcli, &change.powercli, &change.guest].into_iter().flatten();
    for line in shown.filter(|line| line.parse::<Line>().is_err()) {
        let sets = [" set ", ".set.", "Set-", "reg ", "vmw_pvscsi"];
        prop_assert!(!sets.iter().any(|word| line.contains(word)), "`{}` is not read", line);
    }
    let mut scenario = scenario.clone();
    for step in &change.steps {
        for setting in [Some(&step.set), step.undo.as_ref()].into_iter().flatten() {
            let line = setting.to_string();
            prop_assert!(line.parse::<Line>().is_ok(), "`{}` of the JSON is not read", line);
        }
        let is_limit = matches!(step.set, Setting::Allocation { .. });
        prop_assert!(step.undo.is_some() || is_limit && !drawn.known, "no way back");
        if let Setting::ModuleDepth { driver, value } = step.set {
            prop_assert!(driver.depths().contains(&value), "{}={value}", driver.module);
            prop_assert!(value > drawn.depth, "{} to {value} raises nothing", driver.module);
            if driver != drawn.driver {
                prop_assert!(!drawn.known, "{} is not there", driver.module);
                continue;
            }
        }
        // A step stands on those before it.
        is_accepted(&scenario, step)?;
        scenario.apply(&step.set).unwrap();
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 20, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_proposed_is_accepted_and_undone(drawn in drawn()) {
        let scenario = drawn.scenario();
        let recording = &sim::run(&scenario, 1, &()).recordings[0];
        prop_assert!(recording.of_kind(Kind::Device).next().is_some());
        let verdict = diagnose(recording, &Thresholds::default(), &drawn.facts());
        for finding in &verdict.findings {
            for change in finding.changes.iter().filter(|change| is_for(&drawn, change)) {
                check(&drawn, &scenario, change).map_err(|error| {
                    TestCaseError::fail(format!("{}: {}\n{error}", finding.sentence, change.what))
                })?;
            }
        }
    }
}
