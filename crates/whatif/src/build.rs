//! The calibrated host as the text of a scenario: whoever distrusts an answer can read what was
//! simulated, change it and run it.

use std::{collections::BTreeSet, fmt::Write};

use counters::Controller;
use diagnose::Facts;
use knobs::{
    Advanced, Allocation, DSNRO, DiskName, Driver, GuestName, GuestOs, GuestSystem,
    PVSCSI_DEPTH_MAX, PVSCSI_RING_PAGES_MAX, Setting, Transport, Version, disk_depths, limits_of,
};

use crate::{
    array::{ArrayCalibration, LATENCY_MIN_MS, latency_at},
    cost::{pieces_of, size_kib, sizes_of, units_of},
    demand::{DeviceCalibration, GuestCalibration, Habit, stands_at},
    load::load,
    names::{array_name, plain, policy, quoted, store, vm_names, volume_policy},
    observe::{Depths, Device, Tenant},
    question::iscsi_kib,
    reading::{Demand, Knee, Order, Reading},
    rows::{OUTSTANDING_MAX, Row},
    slot::{DISKS_OF_VM, fits, free_slot},
};

/// Commands that one virtual disk is given at most, as PVSCSI [KB-PV]; a guest with more gets more
/// disks.
const PER_DISK: f64 = PVSCSI_DEPTH_MAX as f64 * 1.02;
/// Part of what is outstanding on a device below which a guest is not what fills its queue.
const MINOR: f64 = 0.2;
/// The longest run, in seconds of virtual time.
const RUN_MAX_S: f64 = 3600.0;

/// What a scenario is made of.
pub(crate) struct Plan<'a> {
    pub(crate) host: &'a str,
    pub(crate) facts: &'a Facts,
    pub(crate) devices: &'a [Device<'a>],
    pub(crate) calibrated: &'a [DeviceCalibration],
    pub(crate) arrays: &'a [ArrayCalibration],
    /// Samples of like load.
    pub(crate) levels: &'a [Vec<usize>],
    pub(crate) settings: &'a [Setting],
    /// IOPS limits that are not those of the recording; `None` is none.
    pub(crate) limits: &'a [(&'a DiskName, Option<u32>)],
    /// What the software initiator cuts commands into, in KiB.
    pub(crate) iscsi_kib: u32,
    pub(crate) commands: f64,
}

impl Plan<'_> {
    /// The scenario of one reading, with the latency of each array scaled by a factor. It begins
    /// with `warmup`, and its window `run` is what is held against the recording.
    pub(crate) fn scenario(&self, reading: Reading, scales: &[f64]) -> String {
        let mut out = String::new();
        let times = self.times(reading);
        let version = self.version();
        let _ = writeln!(
            out,
            "# A model of a recorded host: every number is from the recording unless its line says\n\
             # otherwise. `kavg run` runs it, `--compare-set` changes it.\n\
             title = {}\nesxi = \"{}\"{}\nseed = 1\nduration = \"{:.6}s\"\nwarmup = \"{:.6}s\"",
            quoted(&format!("{} as it was recorded", plain(self.host))),
            version.name(),
            if self.facts.esxi_version.is_some() { "" } else { "  # assumed" },
            times.warmup_s + times.spans_s.iter().sum::<f64>(),
            times.warmup_s,
        );
        self.settings_before(version, &mut out);
        for (index, array) in self.arrays.iter().enumerate() {
            let scale = scales.get(index).copied().unwrap_or(1.0);
            self.array(index, array, (reading.knee, scale), &mut out);
        }
        self.adapters(&mut out);
        for (index, device) in self.devices.iter().enumerate() {
            self.datastore((index, device), reading, version, &mut out);
        }
        let disks = self.disks(reading);
        self.vms(&disks, reading, &mut out);
        for disk in &disks {
            self.workloads(disk, &times, reading, &mut out);
        }
        out
    }

    fn version(&self) -> Version {
        self.facts.esxi_version.unwrap_or(Version::V7_0)
    }

    /// The samples of all levels of load.
    pub(crate) fn window(&self) -> Vec<usize> {
        self.levels.iter().flatten().copied().collect()
    }

    /// How long each level of load is simulated: in proportion to its samples, and long enough
    /// for the commands that were asked for, but not for many more, however quick this array is.
    fn times(&self, reading: Reading) -> Times {
        /// The most commands that are simulated, as a multiple of those that were asked for.
        const MOST: f64 = 5.0;
        let samples: usize = self.levels.iter().map(Vec::len).sum();
        let all = self.window();
        let rate: f64 = self.devices.iter().filter_map(|device| device.row.mean_rate(&all)).sum();
        let beyond = |guest: &GuestCalibration| {
            self.limit_asked(guest).map_or(0.0, |limit| (guest.iops - limit).max(0.0))
        };
        let guests = self.calibrated.iter().flat_map(|device| &device.guests);
        let rate = rate - guests.map(beyond).sum::<f64>();
        let first = self.levels.first().map_or(&[][..], Vec::as_slice);
        let latency = |device: &Device<'_>| device.row.per_command(first, Row::gavg);
        let slowest_s = self.devices.iter().filter_map(latency).fold(0.0, f64::max) / 1000.0;
        let whole_s = (self.commands / rate.max(1e-3)).clamp(1e-3, RUN_MAX_S);
        let warmup_s = (10.0 * slowest_s).clamp(0.05 * whole_s, 600.0);
        let most_s = MOST * self.commands / self.rate_max(reading).max(1e-3);
        let scale = (most_s / (whole_s + warmup_s)).min(1.0);
        let part = |level: &Vec<usize>| level.len() as f64 / samples.max(1) as f64;
        let span = |level| (scale * whole_s * part(level)).max(1e-5);
        Times {
            warmup_s: (scale * warmup_s).max(1e-5),
            spans_s: self.levels.iter().map(span).collect(),
        }
    }

    /// Commands a second that are never exceeded: what the arrays serve at most of what guests
    /// keep outstanding, and what these send at rates of their own.
    fn rate_max(&self, reading: Reading) -> f64 {
        const HUNGRY: f64 = 1024.0;
        let beyond = if reading.demand == Demand::Hungry { HUNGRY } else { 0.0 };
        let of = |(index, array): (usize, &ArrayCalibration)| {
            if reading.knee == Knee::Held(index) {
                let own = self.devices.iter().zip(self.calibrated);
                let own = own.filter(|(_, calibrated)| calibrated.array == index);
                return own.flat_map(|(_, of)| &of.guests).map(|guest| guest.iops).sum();
            }
            let devices = self.devices.iter().zip(self.calibrated);
            let own = devices.filter(|(_, calibrated)| calibrated.array == index);
            let each = own.flat_map(|(device, of)| device.tenants.iter().zip(&of.guests));
            let (limited, free): (Vec<_>, Vec<_>) =
                each.partition(|(_, guest)| self.limit_asked(guest).is_some());
            let all = self.window();
            type Part<'p> = [(&'p Tenant<'p>, &'p GuestCalibration)];
            let most = |part: &Part<'_>, of: &dyn Fn(&Row<'_>) -> Option<f64>| -> f64 {
                part.iter().filter_map(|(tenant, _)| of(&tenant.row)).sum()
            };
            let stands = |part: &Part<'_>| most(part, &|row| row.largest(&all, Row::outstanding));
            let rates = |part: &Part<'_>| most(part, &|row| row.largest(&all, Row::rate));
            // What the array holds to a rate is no more than that, however much is outstanding.
            let is_held = |(_, own): (&Device<'_>, &DeviceCalibration)| {
                own.array == index && own.is_throttled()
            };
            let is_held = self.devices.iter().zip(self.calibrated).any(is_held);
            let served = |stands: f64| {
                let most = if is_held { 1.0 } else { (stands + beyond).max(1.0) };
                1000.0 * most / latency_at(array.curve(reading.knee), most)
            };
            let limits: f64 = limited.iter().filter_map(|(_, g)| self.limit_asked(g)).sum();
            // A limit may be far above what anybody does.
            let own = served(stands(&free) + stands(&limited)) + rates(&limited);
            let limits = limits.min(own);
            if free.is_empty() {
                return limits;
            }
            served(stands(&free)) + rates(&free) + limits
        };
        self.arrays.iter().enumerate().map(of).sum()
    }

    /// What only a command line sets.
    fn settings_before(&self, version: Version, out: &mut String) {
        let mut lines = Vec::new();
        let scsi = || self.devices.iter().filter(|device| !device.is_nfs);
        let shared = || scsi().filter(|device| device.vms() > 1);
        // Where VMs share a queue that is deeper than any DSNRO, their switches do not count.
        if shared().next().is_some() && shared().all(|device| self.queue(device).dsnro.is_none()) {
            let option = Advanced::SchedQControlVmSwitches;
            let never: Setting = Setting::Advanced { option, value: Some(0) };
            lines.push(never.to_string());
        }
        for device in scsi() {
            let queue = self.queue(device);
            let shared = self.adapter_depth(device);
            if queue.base < shared {
                let (device, value) = (device.name.clone(), queue.base);
                let lowered: Setting = Setting::MaxQueueDepth { device, value };
                lines.push(lowered.to_string());
            }
            if let (true, Some(dsnro)) = (version.has_global_dsnro(), queue.dsnro) {
                let value = Some(dsnro.min(DSNRO.max));
                let global: Setting = Setting::Advanced { option: DSNRO.option, value };
                lines.push(global.to_string());
            }
        }
        if !lines.is_empty() {
            let lines: Vec<_> = lines.iter().map(|line| quoted(line)).collect();
            let _ = writeln!(out, "esxcli = [{}]", lines.join(", "));
        }
    }

    fn array(
        &self,
        index: usize,
        array: &ArrayCalibration,
        (knee, scale): (Knee, f64),
        out: &mut String,
    ) {
        let mut points: Vec<(u32, f64)> = Vec::new();
        let curve = match knee == Knee::Held(index) {
            true => &vec![(1.0, LATENCY_MIN_MS)],
            false => array.curve(knee),
        };
        for &(outstanding, ms) in curve {
            let outstanding = outstanding.round().clamp(1.0, 65_536.0) as u32;
            points.retain(|(other, _)| *other != outstanding);
            points.push((outstanding, ms * scale));
        }
        let points: Vec<String> =
            points.iter().map(|(n, ms)| format!("[{n}, \"{ms:.6}ms\"]")).collect();
        let _ = writeln!(
            out,
            "\n# {}\n[array.{}]\ncurve = [{}]",
            array.sentence(),
            array_name(index),
            points.join(", ")
        );
        for (device, calibrated) in self.calibrated.iter().enumerate() {
            if calibrated.array == index && knee == Knee::Held(index) {
                let pieces = |guest: &GuestCalibration| {
                    let pieces =
                        self.pieces(&self.devices[device], (guest.size_kib, self.iscsi_kib));
                    guest.iops * f64::from(pieces)
                };
                let rate = calibrated.guests.iter().map(pieces).sum::<f64>().max(1.0);
                let _ = writeln!(
                    out,
                    "[array.{}.qos.{}]  # assumed: the array is not full, and holds the volume to its rate\n\
                     max = {rate:.0}",
                    array_name(index),
                    volume_policy(device)
                );
            }
            for (tenant, guest) in calibrated.guests.iter().enumerate() {
                let is_there = calibrated.array == index;
                let most = guest.throttled.iter().copied().fold(0.0, f64::max);
                // Who sends less keeps its credit for bursts.
                let has_credit = knee == Knee::Most && self.limit_asked(guest).is_some();
                for (level, rate) in guest.policies().filter(|_| is_there) {
                    let rate = if has_credit { most } else { rate };
                    // The array sees pieces. One that counts bytes keeps the rate of whole commands,
                    // one that counts commands that of the pieces as they are cut today.
                    let cut_kib = if knee == Knee::Most { iscsi_kib(&[]) } else { self.iscsi_kib };
                    let pieces = self.pieces(&self.devices[device], (guest.size_kib, cut_kib));
                    let _ = writeln!(
                        out,
                        "[array.{}.qos.{}]  # {} waits at the array where others do not\nmax = {:.0}",
                        array_name(index),
                        policy(device, tenant, level),
                        plain(&guest.vm),
                        rate * f64::from(pieces)
                    );
                }
            }
        }
    }

    /// Every adapter once, with the deepest queue that a device behind it has.
    fn adapters(&self, out: &mut String) {
        let mut done = BTreeSet::new();
        for device in self.devices.iter().filter(|device| !device.is_nfs) {
            for (name, aqlen) in &adapters_of(device) {
                if !done.insert(name.clone()) {
                    continue;
                }
                let (driver, why) = self.driver(name);
                let depth = self.adapter_depth(device).clamp(driver.depth_min, driver.depth_max);
                let _ = writeln!(
                    out,
                    "\n[host.{}.adapter.{}]\ndriver = \"{}\"{why}\nlun_depth = {depth}",
                    quoted(&plain(self.host)),
                    quoted(&plain(name)),
                    driver.module
                );
                if let Some(aqlen) = aqlen.filter(|aqlen| *aqlen >= 1.0) {
                    let _ = writeln!(out, "depth = {:.0}", aqlen.min(OUTSTANDING_MAX));
                }
            }
        }
        if done.is_empty() {
            let _ = writeln!(
                out,
                "\n[host.{}.adapter.vmhba0]\ndriver = \"{}\"",
                quoted(&plain(self.host)),
                Driver::ANY.module
            );
        }
    }

    /// The driver of an adapter: esxcli's word, or that of the setting, or one that fits all.
    fn driver(&self, adapter: &str) -> (&'static Driver, &'static str) {
        let known = self.facts.drivers.get(adapter).and_then(|name| Driver::from_module(name));
        if let Some(driver) = known {
            return (driver, "");
        }
        let named = self.settings.iter().find_map(|setting| match setting {
            Setting::ModuleDepth { driver, .. } => Some(driver.driver),
            _ => None,
        });
        (named.unwrap_or(Driver::ANY), "  # assumed: the recording does not say")
    }

    /// How many commands of the array one of the host is [S4].
    fn pieces(&self, device: &Device<'_>, (size_kib, cut_kib): (Option<f64>, u32)) -> u32 {
        let is_iscsi = |(name, _): &(String, Option<f64>)| {
            matches!(self.driver(name).0.transport, Transport::Iscsi)
        };
        match adapters_of(device).iter().any(is_iscsi) {
            true => pieces_of(size_kib, cut_kib.into()) as u32,
            false => 1,
        }
    }

    /// Whether commands are cut into other pieces than today, by an adapter that may be one of iSCSI.
    pub(crate) fn is_split(&self) -> bool {
        let is_cut = |guest: &GuestCalibration| {
            let [now, then] = [iscsi_kib(&[]), self.iscsi_kib].map(f64::from);
            pieces_of(guest.size_kib, now) != pieces_of(guest.size_kib, then)
        };
        let mut each = self.devices.iter().zip(self.calibrated);
        each.any(|(device, of)| self.may_cut_of(device) && of.guests.iter().any(is_cut))
    }

    /// Whether an adapter may be one of iSCSI, which cuts large commands.
    pub(crate) fn may_cut(&self) -> bool {
        self.devices.iter().any(|device| self.may_cut_of(device))
    }

    fn may_cut_of(&self, device: &Device<'_>) -> bool {
        adapters_of(device).iter().any(|(name, _)| {
            let known = self.facts.drivers.get(name).and_then(|name| Driver::from_module(name));
            known.is_none_or(|driver| matches!(driver.transport, Transport::Iscsi))
        })
    }

    /// The deepest queue of the devices that share an adapter with this one.
    fn adapter_depth(&self, device: &Device<'_>) -> u32 {
        let own = adapters_of(device);
        let shares = |other: &&Device<'_>| {
            let theirs = adapters_of(other);
            own.iter().any(|(name, _)| theirs.iter().any(|(other, _)| other == name))
        };
        let scsi = self.devices.iter().filter(|other| !other.is_nfs);
        scsi.filter(shares).map(|other| self.queue(other).path).max().unwrap_or(1)
    }

    /// The limits of a device's queue before the change.
    pub(crate) fn queue(&self, device: &Device<'_>) -> QueueModel {
        let facts = self.facts.devices.get(&device.name);
        let window = self.window();
        let shown = device.depths(&window);
        let known = facts.and_then(|f| f.max_queue_depth);
        let most = Driver::ANY.depth_max;
        let base = known.or(shown.map(|depths| depths.base)).unwrap_or(most).clamp(1, most);
        let path = self.asked(device, |setting| match setting {
            Setting::MaxQueueDepth { value, .. } => Some(*value),
            _ => None,
        });
        let path = path.unwrap_or(base);
        let path = path.clamp(base, most);
        let model = |base: u32, dsnro: Option<u32>, assumed| QueueModel {
            path: path.max(base),
            base,
            dsnro: dsnro.filter(|&dsnro| dsnro <= DSNRO.max),
            assumed,
        };
        if let Some(Depths { restless: true, .. }) = shown {
            let depth = device.mean_depth(&window).unwrap_or_default();
            let depth = (depth.round() as u32).clamp(1, base);
            return model(depth, Some(depth), Assumed::Restless);
        }
        let lowered = shown.and_then(|depths| depths.lowered);
        let asked = self.asked(device, |setting| match setting {
            Setting::SchedNumReqOutstanding { value, .. } => Some(*value),
            Setting::Advanced { option: Advanced::SchedNumReqOutstanding, value } => {
                Some(value.unwrap_or(DSNRO.default))
            }
            _ => None,
        });
        if let Some(dsnro) = facts.and_then(|facts| facts.dsnro).or(lowered) {
            let dsnro = Some(dsnro.min(base));
            // The deepest that was seen may be another DSNRO.
            return match asked.filter(|&asked| asked > base && known.is_none()) {
                Some(asked) if !device.is_alone_at(base) => {
                    model(asked.clamp(base, DSNRO.max.max(base)), dsnro, Assumed::Dsnro)
                }
                _ => model(base, dsnro, Assumed::Nothing),
            };
        }
        if device.vms() < 2 {
            return model(base, None, Assumed::Nothing);
        }
        let asked = asked.filter(|_| known.is_none());
        match asked.filter(|asked| *asked > base || base == DSNRO.default) {
            // As deep as it is asked for, up to the most that DSNRO was ever set to.
            Some(asked) => {
                model(asked.clamp(base, DSNRO.max.max(base)), Some(base), Assumed::Dsnro)
            }
            None if base == DSNRO.default => model(base, Some(base), Assumed::Dsnro),
            None => model(base, Some(base), Assumed::Nothing),
        }
    }

    /// What is known of the host, with each device of which only DSNRO was seen as deep as its driver may make it;
    /// none where there is no such device.
    pub(crate) fn deepest(&self) -> Option<Facts> {
        let mut facts = self.facts.clone();
        for device in self.devices.iter().filter(|device| !device.is_nfs) {
            let queue = self.queue(device);
            if queue.assumed == Assumed::Dsnro {
                let drivers = adapters_of(device).into_iter().map(|(name, _)| self.driver(&name).0);
                let known = facts.devices.entry(device.name.clone()).or_default();
                known.max_queue_depth = drivers.map(|driver| driver.depth_max).min();
                known.dsnro = queue.dsnro;
            }
        }
        (facts != *self.facts).then_some(facts)
    }

    /// The IOPS limit that is asked for a guest's disk, if one is.
    pub(crate) fn limit_asked(&self, guest: &GuestCalibration) -> Option<f64> {
        self.most_asked(guest).filter(|most| most.is_finite())
    }

    /// The same, infinite where it is that there be none.
    pub(crate) fn most_asked(&self, guest: &GuestCalibration) -> Option<f64> {
        let (_, limit) = self.limits.iter().rfind(|(name, _)| is_meant(name, guest))?;
        Some(limit.map_or(f64::INFINITY, f64::from))
    }

    /// What a setting asks for a device.
    fn asked(&self, device: &Device<'_>, depth: fn(&Setting) -> Option<u32>) -> Option<u32> {
        // An option of the host is one of each device.
        let own = |setting: &&Setting| match setting {
            Setting::Advanced { .. } => true,
            other => other.device() == Some(device.name.as_str()),
        };
        self.settings.iter().filter(own).find_map(depth)
    }

    fn datastore(
        &self,
        (index, device): (usize, &Device<'_>),
        Reading { knee, order, .. }: Reading,
        version: Version,
        out: &mut String,
    ) {
        let name = quoted(&store(index, device));
        let array = array_name(self.calibrated[index].array);
        let _ = writeln!(out, "\n[datastore.{name}]\narray = \"{array}\"");
        if device.is_nfs {
            let _ = writeln!(out, "kind = \"nfs\"");
            return;
        }
        if self.calibrated[index].is_throttled() {
            let _ = writeln!(out, "kind = \"vvol\"  # a policy for each disk");
        }
        if knee == Knee::Held(self.calibrated[index].array) {
            let _ = writeln!(out, "qos = {}", quoted(&volume_policy(index)));
        }
        if let Order::Other(order) = order {
            let _ = writeln!(
                out,
                "scheduler = \"{order}\"  # assumed: that of the version gives something else"
            );
        }
        let adapters = adapters_of(device);
        let names: Vec<_> = adapters.iter().map(|(name, _)| quoted(&plain(name))).collect();
        let _ =
            writeln!(out, "device = {}\nadapters = [{}]", quoted(&device.name), names.join(", "));
        if names.len() > 1 {
            let _ = writeln!(out, "path_policy = \"rr\"");
        }
        let queue = self.queue(device);
        if let (false, Some(dsnro)) = (version.has_global_dsnro(), queue.dsnro) {
            let why = match queue.assumed {
                Assumed::Dsnro => "  # assumed: DQLEN never left the default",
                Assumed::Restless => "  # DQLEN moved; this is its mean",
                Assumed::Nothing => "",
            };
            let _ = writeln!(out, "dsnro = {dsnro}{why}");
        }
    }

    /// The virtual disks of the scenario.
    fn disks(&self, reading: Reading) -> Vec<Disk<'_>> {
        let names = vm_names(self.calibrated);
        let mut taken = BTreeSet::new();
        let mut disks = Vec::new();
        for (device, calibrated) in self.calibrated.iter().enumerate() {
            for (tenant, guest) in calibrated.guests.iter().enumerate() {
                let vm = names.iter().find(|(vm, _)| *vm == guest.vm);
                let vm = vm.map_or_else(|| plain(&guest.vm), |(_, name)| name.clone());
                let loads = self.levels.iter().map(|level| {
                    let (_, outstanding) = self.load(device, tenant, level);
                    outstanding / self.part_of_time(device, level, reading)
                });
                let most = loads.fold(0.0, f64::max);
                let parts = (most / PER_DISK).ceil().clamp(1.0, f64::from(DISKS_OF_VM));
                // A disk has one policy for ever: one that the array holds to several rates is several.
                let policies: Vec<_> = guest.policies().map(|(level, _)| Some(level)).collect();
                let policies = if policies.is_empty() { vec![None] } else { policies };
                for policy in policies.into_iter().flat_map(|of| vec![of; parts as usize]) {
                    let wanted = guest.disk.clone().filter(|slot| fits(slot, most));
                    let slot = free_slot(&mut taken, &vm, wanted);
                    disks.push(Disk {
                        vm: vm.clone(),
                        slot,
                        device,
                        tenant,
                        guest,
                        policy,
                        most: most / parts,
                        parts,
                    });
                }
            }
        }
        disks
    }

    fn vms(&self, disks: &[Disk<'_>], reading: Reading, out: &mut String) {
        const ABOVE: f64 = 1.03;
        let undriven = limits_of(Controller::Pvscsi, GuestOs::Windows).disk_depth;
        let mut done = BTreeSet::new();
        for disk in disks {
            if !done.insert(&disk.vm) {
                continue;
            }
            let own: Vec<_> = disks.iter().filter(|other| other.vm == disk.vm).collect();
            let pvscsi = |disk: &&&Disk<'_>| disk.slot.starts_with("scsi");
            let most = own.iter().filter(pvscsi).map(|disk| disk.most).fold(0.0, f64::max);
            let is_linux = self.settings.iter().any(|setting| match setting {
                Setting::Pvscsi { vm, .. } => {
                    vm.vm.as_deref().is_none_or(|vm| vm == disk.guest.vm)
                        && vm.system == Some(GuestSystem::Linux)
                }
                _ => false,
            });
            // What cannot be sent waits in the guest: how much of it is below is not known.
            let is_deep = most > ABOVE * f64::from(undriven)
                || reading.demand == Demand::Rates && disk.guest.capped_at.is_none();
            let system = if is_linux { GuestSystem::Linux } else { GuestSystem::Windows };
            let (guest, driver) = match (is_linux, is_deep) {
                (false, false) => ("windows", String::new()),
                (false, true) => ("windows", deepest(system)),
                (true, false) => ("linux_old", String::new()),
                (true, true) => ("linux", deepest(system)),
            };
            let _ = write!(
                out,
                "\n[vm.{}]\nguest = \"{guest}\"  # assumed\n{driver}",
                quoted(&disk.vm)
            );
            if plain(&disk.guest.vm) != disk.guest.vm {
                let _ = writeln!(out, "# recorded as {}", quoted(&disk.guest.vm));
            }
            for disk in &own {
                self.disk(disk, &own, reading, out);
            }
        }
    }

    fn disk(&self, disk: &Disk<'_>, own: &[&Disk<'_>], reading: Reading, out: &mut String) {
        let device = &self.devices[disk.device];
        let store = store(disk.device, device);
        let _ = writeln!(
            out,
            "[vm.{}.disk.{}]\ndatastore = {}",
            quoted(&disk.vm),
            quoted(&disk.slot),
            quoted(&store)
        );
        if let Some(adapter) = adapter_type(disk, own) {
            let _ = writeln!(out, "adapter = \"{adapter}\"");
        }
        if let Some(level) = disk.policy {
            let _ = writeln!(out, "qos = \"{}\"", policy(disk.device, disk.tenant, level));
        }
        // Those of a VM on a device are the sum of its disks' there.
        let shares = |world: &Row<'_>| {
            let count = own.iter().filter(|other| other.device == disk.device).count();
            let shares = (world.shares(&self.window())? / count as f64).round() as u32;
            Allocation::SHARES.contains(&shares).then_some(shares)
        };
        if let Some(shares) = device.tenants[disk.tenant].world.as_ref().and_then(shares) {
            let _ = writeln!(out, "shares = {shares}");
        }
        let asked = self.limits.iter().rfind(|(name, _)| is_meant(name, disk.guest));
        let (limit, why) = match asked {
            // Commands of one size stand for those that may be of many.
            Some((_, limit)) => {
                let [least, most] = disk.guest.units;
                let units = if reading.knee == Knee::Least { most } else { least };
                let part = units_of(size_kib(disk.guest.size_kib)) / units;
                (limit.map(|limit| f64::from(limit) * part), "")
            }
            None if reading.demand == Demand::Bursts => (None, ""),
            None => (disk.guest.held_at_iops.map(f64::from), "  # it waits where others do not"),
        };
        if let Some(limit) = limit {
            let limit = (limit / disk.parts).max(1.0);
            let _ = writeln!(out, "limit = {limit:.0}{why}");
        }
    }

    /// One workload for each level of load.
    fn workloads(&self, disk: &Disk<'_>, times: &Times, reading: Reading, out: &mut String) {
        let row = &self.devices[disk.device].tenants[disk.tenant].row;
        let mut from_s = 0.0;
        for (index, (level, span_s)) in self.levels.iter().zip(&times.spans_s).enumerate() {
            let to_s = from_s + span_s + if index == 0 { times.warmup_s } else { 0.0 };
            let (rate, outstanding) = self.load(disk.device, disk.tenant, level);
            let [rate, outstanding] = [rate, outstanding].map(|whole| whole / disk.parts);
            let cap = disk.guest.capped_at.filter(|&d| stands_at(d, outstanding * disk.parts));
            let duty = self.duty(disk.device, level);
            if rate >= 0.01 && disk.policy == disk.guest.policy_of(index) {
                let read = row.read_share(level).or(disk.guest.read_share).unwrap_or(1.0) * 100.0;
                let size = match reading.sizes.is_apart(&self.calibrated[disk.device], disk.tenant)
                {
                    true => sizes_of(disk.guest.units[1]),
                    false => format!(
                        "\"{}\"",
                        1024.0 * size_kib(row.size_kib(level).or(disk.guest.size_kib))
                    ),
                };
                let guests = &self.calibrated[disk.device].guests;
                let all: f64 = guests.iter().map(|guest| guest.outstanding).sum();
                let is_minor = disk.guest.outstanding < MINOR * all;
                let is_one = self.busiest() == Some((disk.device, disk.tenant));
                let demand = reading.demand.of(is_one, is_minor);
                let load = load(disk.guest, cap, (rate, outstanding, duty), (demand, is_minor));
                let _ = writeln!(
                    out,
                    "\n[[workload]]\nvm = {}\ndisk = {}\nname = \"level{}\"\n{load}\n\
                     read = \"{read:.0}%\"\nsize = {size}\nstart = \"{from_s:.6}s\"\n\
                     stop = \"{to_s:.6}s\"",
                    quoted(&disk.vm),
                    quoted(&disk.slot),
                    index + 1
                );
            }
            from_s = to_s;
        }
    }
}

impl Plan<'_> {
    /// Commands a second and outstanding of a guest in samples of like load; where it was not
    /// measured in any of them they are those of the whole window.
    fn load(&self, device: usize, tenant: usize, level: &[usize]) -> (f64, f64) {
        let guest = &self.calibrated[device].guests[tenant];
        let load = self.devices[device].tenants[tenant].row.load(level);
        load.unwrap_or((guest.iops, guest.outstanding))
    }

    /// The guest of unknown habit with most commands, by device and tenant.
    fn busiest(&self) -> Option<(usize, usize)> {
        let guests = self.calibrated.iter().enumerate().flat_map(|(device, calibrated)| {
            let guests = calibrated.guests.iter().enumerate();
            guests.map(move |(tenant, guest)| ((device, tenant), guest))
        });
        let unknown = guests.filter(|(_, guest)| guest.habit == Habit::Unknown);
        unknown.max_by(|a, b| a.1.iops.total_cmp(&b.1.iops)).map(|(place, _)| place)
    }

    /// The part of the time in which the guests of a device send, as they are read.
    fn part_of_time(&self, device: usize, level: &[usize], reading: Reading) -> f64 {
        let is_read_so = reading.demand == Demand::Bursts;
        self.duty(device, level).filter(|_| is_read_so).unwrap_or(1.0)
    }

    /// The part of the time in which the queue of a device is full, where it is so in bursts.
    fn duty(&self, device: usize, level: &[usize]) -> Option<f64> {
        let device = &self.devices[device];
        let duty = device.row.mean(level, Row::in_flight)? / device.mean_depth(level)?;
        device.is_mostly_bursty(level).then_some(duty.clamp(0.02, 1.0))
    }
}

impl GuestCalibration {
    /// The rates at which the array holds its disk, each with the first level of load that has it.
    fn policies(&self) -> impl Iterator<Item = (usize, f64)> {
        let all = self.throttled.iter().copied().enumerate();
        all.filter(|&(level, _)| self.policy_of(level) == Some(level))
    }

    /// The first level of load with the same rate, where the array holds its disk.
    fn policy_of(&self, level: usize) -> Option<usize> {
        let own = self.throttled.get(level)?;
        self.throttled.iter().position(|rate| rate == own)
    }
}

/// How long what is simulated, in seconds.
struct Times {
    warmup_s: f64,
    /// By level of load.
    spans_s: Vec<f64>,
}

/// A virtual disk of the scenario.
struct Disk<'a> {
    vm: String,
    slot: String,
    device: usize,
    tenant: usize,
    guest: &'a GuestCalibration,
    /// The first of the levels of load with its policy, where the array holds it to a rate.
    policy: Option<usize>,
    /// Commands outstanding in the heaviest level.
    most: f64,
    /// Disks that stand for the same guest.
    parts: f64,
}

/// The limits of a device's queue before the change, and what of them is a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueModel {
    /// What the driver gives the path: Device Max Queue Depth at most.
    pub(crate) path: u32,
    pub(crate) base: u32,
    pub(crate) dsnro: Option<u32>,
    pub(crate) assumed: Assumed,
}

/// What was guessed of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assumed {
    Nothing,
    /// DQLEN was DSNRO's default all the time while VMs competed: the depth above it is unknown.
    Dsnro,
    /// Something moved DQLEN that is not modelled.
    Restless,
}

/// Whether a limit is for a guest's disk; one of which the place is not known is any.
fn is_meant(name: &DiskName, guest: &GuestCalibration) -> bool {
    let is_it = |place: &str| name.disk.is_none_or(|disk| disk.to_string() == place);
    name.vm == guest.vm && guest.disk.as_deref().is_none_or(is_it)
}

/// The adapter of a disk of those of a VM; one that takes fewer commands than were seen on one of its
/// disks was not the one.
fn adapter_type(disk: &Disk<'_>, own: &[&Disk<'_>]) -> Option<&'static str> {
    const ROOM: f64 = 1.1;
    let at = disk.slot.split_once(':').filter(|(at, _)| at.starts_with("scsi"))?.0;
    let beside =
        || own.iter().filter(|other| other.slot.split_once(':').is_some_and(|o| o.0 == at));
    let most = beside().map(|other| other.most).fold(0.0, f64::max);
    let fits = |kind| disk_depths(kind).into_iter().any(|depth| most <= f64::from(depth) * ROOM);
    match beside().find_map(|other| other.guest.controller) {
        Some(lsi @ Controller::LsiSas) if fits(lsi) => Some("lsisas"),
        Some(lsi @ Controller::LsiParallel) if fits(lsi) => Some("lsilogic"),
        _ => Some("pvscsi"),
    }
}

fn adapters_of(device: &Device<'_>) -> Vec<(String, Option<f64>)> {
    if device.adapters.is_empty() { vec![("vmhba0".into(), None)] } else { device.adapters.clone() }
}

/// The line that lets PVSCSI of a guest send all that it can.
fn deepest(system: GuestSystem) -> String {
    let vm = GuestName { vm: None, system: Some(system) };
    let (depth, ring_pages) = (Some(PVSCSI_DEPTH_MAX), Some(PVSCSI_RING_PAGES_MAX));
    format!("guest_driver = \"{}\"\n", Setting::Pvscsi { vm, depth, ring_pages })
}
