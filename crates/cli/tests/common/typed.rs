//! Hosts that take the lines of a plan of `kavg settings` and refuse what a host refuses: engines.

use std::{collections::BTreeMap, fs, path::Path};

use counters::{AdapterId, DeviceId, DeviceKind, Time, VdiskId, VmId};
use engine::{
    AdapterConfig, CompetitionUnit, DepthMode, DeviceConfig, Engine, HostConfig, Input, PathAccess,
    PathConfig, ThrottleMode,
};
use knobs::{
    Allocation, Disks, Driver, GuestOs, IoControl, Knob, Line, PathPolicy, Refusal, Version,
};
use serde_json::Value;
use testing::fleet::DrawnHost;

use crate::common::{Said, kavg};

/// A folder of hosts.
pub(crate) fn folder(hosts: &[DrawnHost]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for host in hosts {
        fs::write(folder.path().join(format!("{}.txt", host.name)), host.outputs()).unwrap();
    }
    folder
}

pub(crate) fn settings(folder: &Path, more: &[&str]) -> Said {
    kavg(&[&["settings", folder.to_str().unwrap()], more].concat())
}

pub(crate) fn json(folder: &Path, more: &[&str]) -> Value {
    let said = settings(folder, &[more, &["--json"]].concat());
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"))
}

pub(crate) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap())
}

/// A host that takes lines and refuses them.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) driver: &'static Driver,
    pub(crate) devices: Vec<String>,
    /// What no snapshot of an engine tells: the last that was set of each thing.
    pub(crate) set: BTreeMap<String, Knob>,
    /// What its module is set to, whether a boot has brought it or not.
    pub(crate) staged: u32,
}

impl Host {
    pub(crate) fn of(drawn: &DrawnHost) -> Self {
        let driver = Driver::from_module(drawn.driver.0).unwrap();
        let adapter = AdapterConfig {
            name: "vmhba1".into(),
            driver,
            lun_depth: drawn.depth.unwrap_or(drawn.driver.2),
            depth: driver.adapter_depth,
            timeout_ns: None,
        };
        let config = HostConfig {
            name: drawn.name.clone(),
            version: Version::V7_0,
            competition_unit: CompetitionUnit::Vm,
            depth_mode: DepthMode::PathValue,
            throttle_mode: ThrottleMode::Kernel,
            weight_scale_percent: 100,
            adapters: vec![adapter],
            devices: drawn
                .devices
                .iter()
                .map(|device| DeviceConfig {
                    name: device.name.clone(),
                    kind: DeviceKind::Scsi,
                    dsnro: Some(device.dsnro),
                    policy: None,
                    path_policy: PathPolicy::Fixed,
                })
                .collect(),
            paths: (0..drawn.devices.len())
                .map(|place| PathConfig {
                    name: format!("vmhba1:C0:T0:L{place}"),
                    device: DeviceId::new(place),
                    adapter: AdapterId::new(0),
                    access: PathAccess::Optimized,
                })
                .collect(),
            vms: Vec::new(),
            vscsi: Vec::new(),
            vdisks: Vec::new(),
        };
        let devices = drawn.devices.iter().map(|device| device.name.clone()).collect();
        let (engine, staged) = (Engine::new(&config), drawn.depth.unwrap_or(drawn.driver.2));
        let mut host = Self { engine, driver, devices, set: BTreeMap::new(), staged };
        host.begin(drawn);
        host
    }

    /// Sets what the configuration of an engine has no place for.
    fn begin(&mut self, drawn: &DrawnHost) {
        for (device, drawn) in (0..).map(DeviceId).zip(&drawn.devices) {
            let (sample_size, threshold) = drawn.queue_full;
            self.set(Knob::QueueFull { device, sample_size, threshold }).unwrap();
            let policy = match drawn.iops {
                None => PathPolicy::Fixed,
                Some(1000) => PathPolicy::ROUND_ROBIN,
                Some(iops) => PathPolicy::RoundRobin { iops, bytes: u64::MAX },
            };
            self.set(Knob::PathPolicy { device, policy }).unwrap();
            let is = self.engine.device_limits(device).unwrap().max_queue_depth;
            if is != drawn.max_depth {
                self.set(Knob::MaxQueueDepth { device, value: drawn.max_depth }).unwrap();
            }
        }
        if let Some(value) = drawn.staged {
            self.set(Knob::ModuleDepth { driver: self.driver, value }).unwrap();
        }
        for (path, value) in &drawn.options {
            let option = knobs::Advanced::from_path(path).unwrap();
            self.set(Knob::Advanced { option, value: *value }).unwrap();
        }
    }

    fn set(&mut self, knob: Knob) -> Result<(), String> {
        let set = self.engine.handle_input(Time::ZERO, Input::Set(knob));
        set.map_err(|error| error.to_string())?;
        let what = match knob {
            Knob::QueueFull { device, .. } => format!("queue full of {device:?}"),
            Knob::PathPolicy { device, .. } => format!("policy of {device:?}"),
            Knob::Advanced { option, .. } => option.info().path.into(),
            Knob::ModuleDepth { value, .. } => {
                self.staged = value;
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.set.insert(what, knob);
        Ok(())
    }

    fn type_line(&mut self, line: &str) -> Result<(), String> {
        // No engine has a preferred path.
        if let Some(preferred) =
            line.strip_prefix("esxcli storage nmp psp fixed deviceconfig set -d ")
        {
            let (name, path) = preferred.split_once(" -p ").unwrap();
            assert_eq!(path, "vmhba1:C0:T0:L1", "that of the outputs");
            return self
                .devices
                .iter()
                .any(|own| own == name)
                .then_some(())
                .ok_or("no device".into());
        }
        let line: Line = line.parse().map_err(|refusal: Refusal| refusal.to_string())?;
        for setting in line.settings {
            let knobs = setting.on(self).map_err(|refusal| refusal.to_string())?;
            assert!(!knobs.is_empty(), "{setting} is for nothing that the host has");
            for knob in knobs {
                self.set(knob)?;
            }
        }
        Ok(())
    }

    /// Types a plan as it stands, with its reboot.
    pub(crate) fn follow(&mut self, plan: &Value) -> Result<(), String> {
        let said = |line: &str, why: String| format!("`{line}`: {why}");
        for line in texts(&plan["now"]).chain(texts(&plan["before_reboot"])) {
            self.type_line(line).map_err(|why| said(line, why))?;
        }
        if plan["reboot"] == true {
            self.engine.handle_input(Time::ZERO, Input::Reboot).unwrap();
        }
        for line in texts(&plan["after_reboot"]) {
            assert!(plan["reboot"] == true, "{line} is to be typed after no reboot");
            self.type_line(line).map_err(|why| said(line, why))?;
        }
        Ok(())
    }

    /// All that is set on it.
    pub(crate) fn state(&self) -> Vec<String> {
        let devices = (0..self.devices.len()).map(|place| {
            let limits = self.engine.device_limits(DeviceId::new(place)).unwrap();
            format!("{} {}", limits.max_queue_depth, limits.dsnro)
        });
        devices.chain(self.set.values().map(|knob| format!("{knob:?}"))).collect()
    }
}

impl knobs::Host for Host {
    fn version(&self) -> Version {
        Version::V7_0
    }

    fn device(&self, name: &str) -> Result<Option<DeviceId>, Refusal> {
        Ok(self.devices.iter().position(|known| known == name).map(DeviceId::new))
    }

    fn controlled(&self, _: &str) -> Result<Option<(DeviceId, IoControl)>, Refusal> {
        Ok(None)
    }

    fn has_driver(&self, driver: &'static Driver) -> bool {
        self.driver == driver
    }

    fn vms(&self, _: Option<&str>) -> Vec<(VmId, GuestOs)> {
        Vec::new()
    }

    fn has_pvscsi(&self, _: VmId) -> bool {
        false
    }

    fn disks(&self, _: &Disks) -> Vec<(VdiskId, Allocation)> {
        Vec::new()
    }

    fn policy(&self, _: &str) -> Result<Allocation, Refusal> {
        Err("none".into())
    }
}

/// Follows the plans of a report and the way back. Returns what hosts were set to between the two.
pub(crate) fn follow(hosts: &[DrawnHost], report: &Value) -> Vec<Vec<String>> {
    let mut typed: Vec<Host> = hosts.iter().map(Host::of).collect();
    let whole = |host: &Host| (host.staged, host.state());
    let before: Vec<_> = typed.iter().map(whole).collect();
    let plans = report["plans"].as_array().unwrap();
    let place = |plan: &Value| {
        hosts.iter().position(|host| host.name == plan["host"].as_str().unwrap()).unwrap()
    };
    let all = |which: &str, typed: &mut Vec<Host>| {
        for plan in plans {
            let host = &mut typed[place(plan)];
            if let Err(refusal) = host.follow(&plan[which]) {
                panic!("{which} of {}: {refusal}\n{plan:#}", plan["host"]);
            }
        }
        typed.iter().map(Host::state).collect::<Vec<_>>()
    };
    let between = all("plan", &mut typed);
    all("undo", &mut typed);
    let after: Vec<_> = typed.iter().map(whole).collect();
    for plan in plans {
        let place = place(plan);
        assert_eq!(plan["not_undone"], 0, "{plan:#}");
        assert_eq!(after[place], before[place], "the way back ends elsewhere: {plan:#}");
    }
    between
}
