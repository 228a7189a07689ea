//! Many hosts, read from files: which file is whose, and what each output adds to its host.

use counters::sorted::sort;
use std::{
    collections::BTreeMap,
    fs,
    panic::resume_unwind,
    path::{Path, PathBuf},
    thread,
};

use capture::{CoreDevice, Esxcli, HostOption, NmpDevice, ReadOptions, parse_outputs, read_output};
use counters::{Counter, DeviceId, Kind};
use knobs::{Advanced, Driver, ENABLE_PSP_LATENCY, VendorAdvice, Version, is_active_passive};

use super::host::{DELAYED_ACK, Device, Host, Module};
use crate::{Result, captures};

/// Hosts side by side.
pub(crate) struct Fleet {
    /// By name.
    pub(crate) hosts: Vec<Host>,
    /// The devices of all of them, by id.
    pub(crate) devices: Vec<Known>,
    /// Files of folders that are left out, each with the reason.
    pub(crate) left_out: Vec<String>,
}

/// A device, whoever sees it.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) vendor: String,
    pub(crate) model: String,
    /// Whether its name is the same device on each host that has it.
    pub(crate) is_comparable: bool,
    /// Whether it is a protocol endpoint of vVols.
    is_endpoint: bool,
    /// What the vendor of its array says of such devices.
    pub(crate) advice: Option<&'static VendorAdvice>,
    /// How many hosts see it.
    pub(crate) hosts: u32,
}

impl Known {
    /// Whether hosts can be compared by it.
    pub(crate) const fn is_shared(&self) -> bool {
        self.is_comparable && self.hosts > 1
    }

    /// The array that it is on, as far as a device says it.
    pub(crate) fn array(&self) -> String {
        format!("{} {}", self.vendor, self.model).trim().to_owned()
    }
}

/// What the files of one host say.
#[derive(Default)]
struct Told {
    /// Each with whether a folder was named in which it was found.
    files: Vec<(PathBuf, bool)>,
    outputs: Vec<Output>,
    left_out: Vec<String>,
}

/// What an output, or a capture, says of a host.
enum Output {
    Esxcli(Esxcli),
    Captured(Captured),
}

/// What a capture says of a host.
struct Captured {
    /// The host, as it calls itself.
    host: String,
    /// The devices, and the most that DQLEN was.
    devices: Vec<(String, u32)>,
    /// What each of them may be set to: all are behind one driver.
    reach: u32,
}

/// Why a file is not read.
struct Unread {
    why: String,
    /// Nothing in it is an output or a capture.
    is_foreign: bool,
}

impl Fleet {
    /// The files of hosts: a file is called as its host, and so is a folder that has several of it; a
    /// folder that is named has either.
    pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let files = by_host(paths)?.into_values().flat_map(|told| told.files);
        Ok(files.map(|(file, _)| file).collect())
    }

    /// Reads hosts, on all CPUs. What is in a folder and no output of a host is left out.
    ///
    /// # Errors
    /// One line: a file that cannot be read or is no output, with its line; a folder without a file.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut told: Vec<(String, Told)> = by_host(paths)?.into_iter().collect();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let share = told.len().div_ceil(threads).max(1);
        thread::scope(|scope| {
            let parts = told.chunks_mut(share);
            let parts: Vec<_> = parts
                .map(|part| scope.spawn(|| part.iter_mut().try_for_each(|(_, told)| told.read())))
                .collect();
            let done = |part: thread::ScopedJoinHandle<'_, _>| {
                part.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            parts.into_iter().try_for_each(done)
        })?;
        let left_out: Vec<String> =
            told.iter_mut().flat_map(|(_, told)| std::mem::take(&mut told.left_out)).collect();
        let told = by_name(told);
        if let (true, Some(why)) = (told.is_empty(), left_out.first()) {
            return Err(why.as_str().into());
        }
        let mut ids = Ids::default();
        let hosts = told.into_iter().map(|(name, outputs)| Reading::of(name, outputs, &mut ids));
        let hosts: Vec<Host> = hosts.collect::<Result<_>>()?;
        let mut devices = ids.known;
        for seen in hosts.iter().flat_map(|host: &Host| &host.devices) {
            devices[seen.id.index()].hosts += 1;
        }
        for device in &mut devices {
            device.advice = VendorAdvice::of(&device.vendor, &device.model, device.is_endpoint);
        }
        Ok(Self { hosts, devices, left_out })
    }

    pub(crate) fn known(&self, id: DeviceId) -> &Known {
        &self.devices[id.index()]
    }

    pub(crate) fn name_of(&self, id: DeviceId) -> &str {
        &self.known(id).name
    }
}

impl Told {
    fn read(&mut self) -> std::result::Result<(), String> {
        for (file, is_found) in &self.files {
            match read_file(file) {
                Ok(outputs) => self.outputs.extend(outputs),
                Err(unread) if unread.is_foreign && *is_found => self.left_out.push(unread.why),
                Err(unread) => return Err(unread.why),
            }
        }
        Ok(())
    }

    /// What a capture calls its host, where nothing else tells of it.
    fn captured(&self) -> impl Iterator<Item = &str> {
        let names = self.outputs.iter().map_while(|output| match output {
            Output::Captured(captured) => Some(captured.host.as_str()),
            Output::Esxcli(_) => None,
        });
        let is_all = names.clone().count() == self.outputs.len();
        names.filter(move |name| is_all && !name.is_empty())
    }
}

/// Hosts by name: one of which there is a capture alone is called as it calls itself, unless others call
/// themselves so as well.
fn by_name(told: Vec<(String, Told)>) -> BTreeMap<String, Vec<Output>> {
    let mut own: BTreeMap<String, usize> = BTreeMap::new();
    for (_, told) in &told {
        let mut names: Vec<&str> = told.captured().collect();
        sort(&mut names);
        names.dedup();
        names.into_iter().for_each(|name| *own.entry(name.to_owned()).or_default() += 1);
    }
    let mut hosts: BTreeMap<String, Vec<Output>> = BTreeMap::new();
    for (file, told) in told {
        let is_captured = told.captured().next().is_some();
        for output in told.outputs {
            let name = match &output {
                Output::Captured(Captured { host, .. })
                    if is_captured && own.get(host) == Some(&1) =>
                {
                    host.clone()
                }
                _ => file.clone(),
            };
            hosts.entry(name).or_default().push(output);
        }
    }
    hosts
}

fn by_host(paths: &[PathBuf]) -> Result<BTreeMap<String, Told>> {
    let mut hosts: BTreeMap<String, Told> = BTreeMap::new();
    for path in paths {
        if !path.is_dir() {
            hosts.entry(host_of(path)).or_default().files.push((path.clone(), false));
            continue;
        }
        let mut any = false;
        for entry in entries(path)? {
            let files = if entry.is_dir() { entries(&entry)? } else { vec![entry.clone()] };
            let files = files.into_iter().filter(|file| file.is_file());
            let files: Vec<_> = files.map(|file| (file, true)).collect();
            any |= !files.is_empty();
            if !files.is_empty() {
                hosts.entry(host_of(&entry)).or_default().files.extend(files);
            }
        }
        if !any {
            let what = "holds no file; a host has a file, or a folder of files, of its name";
            return Err(format!("{}: {what}", path.display()).into());
        }
    }
    Ok(hosts)
}

/// What is in a folder and not hidden, in order.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| format!("{}: {error}", folder.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        entries.extend((!name.starts_with('.')).then_some(path));
    }
    sort(&mut entries);
    Ok(entries)
}

/// What is behind the name of a host where a file has it.
const ENDINGS: [&str; 7] = ["txt", "log", "out", "csv", "gz", "zst", "zip"];

/// The host of which a file or folder has the name: `esx01.site.example.txt` is of `esx01.site.example`.
pub(crate) fn host_of(path: &Path) -> String {
    let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    while let Some((front, ending)) = name.rsplit_once('.')
        && !path.is_dir()
        && !front.is_empty()
        && ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
    {
        name.truncate(front.len());
    }
    name
}

fn read_file(path: &Path) -> std::result::Result<Vec<Output>, Unread> {
    let unread = |error: String, is_foreign| Unread { why: error, is_foreign };
    if captures::is_named_so(path) {
        // Of what is no capture nothing but its first line is looked at.
        let is_foreign = |error: &(dyn std::error::Error + 'static)| {
            error.downcast_ref::<capture::Error>().is_some_and(|error| error.line == Some(1))
        };
        return captured(path).map_err(|error| unread(error.to_string(), is_foreign(&*error)));
    }
    let text = read_output(path).map_err(|error| unread(error.to_string(), false))?;
    let outputs = parse_outputs(&path.display().to_string(), &text);
    let outputs = outputs.map_err(|error| unread(error.to_string(), error.line.is_none()))?;
    // Of a number that was cut nobody sees what it was.
    if !text.ends_with(['\n', '}', ']']) && !text.is_empty() {
        let why = "it ends in the middle of a line, as what was cut does; collect it again, or end its last line";
        return Err(unread(format!("{}: {why}", path.display()), false));
    }
    Ok(outputs.into_iter().map(Output::Esxcli).collect())
}

fn captured(path: &Path) -> Result<Vec<Output>> {
    let options = ReadOptions {
        kinds: vec![Kind::Device, Kind::Adapter],
        counters: vec![Counter::DeviceQDepth],
        ..ReadOptions::default()
    };
    let capture = captures::read(&[path.to_owned()], &options)?;
    let outputs = capture.recordings.iter().map(|recording| {
        let devices = recording.of_kind(Kind::Device).filter_map(|(id, device)| {
            let depths = recording.series(id, Counter::DeviceQDepth);
            let most = depths.into_iter().flatten().copied().fold(0.0, f64::max);
            (most > 0.0).then(|| (device.name.clone(), most as u32))
        });
        let devices: Vec<_> = devices.collect();
        let is_one_driver = recording.of_kind(Kind::Adapter).count() == 1;
        let deepest = devices.iter().map(|(_, dqlen)| *dqlen).max().filter(|_| is_one_driver);
        let (host, reach) = (recording.host.clone(), deepest.unwrap_or_default());
        Output::Captured(Captured { host, devices, reach })
    });
    Ok(outputs.collect())
}

/// The devices of all hosts, each with its id.
#[derive(Default)]
struct Ids {
    of: BTreeMap<String, DeviceId>,
    known: Vec<Known>,
}

impl Ids {
    fn of(&mut self, name: &str) -> DeviceId {
        if let Some(id) = self.of.get(name) {
            return *id;
        }
        let id = DeviceId::new(self.known.len());
        // `mpx.vmhba0:C0:T0:L0` is a place, and each host has one.
        let is_comparable = !name.starts_with("mpx.");
        self.known.push(Known { name: name.to_owned(), is_comparable, ..Known::default() });
        self.of.insert(name.to_owned(), id);
        id
    }
}

/// `Vendor` of a namespace of NVMe, whatever its array is called [MPT].
const NVME: &str = "NVMe";

/// A host while its outputs are read.
struct Reading<'a> {
    host: Host,
    ids: &'a mut Ids,
    /// Adapters and their modules.
    adapters: Vec<(String, String)>,
    parameters: Vec<Parameter>,
    /// An adapter of each device.
    paths: Vec<(DeviceId, String)>,
    /// Devices of which no other host can see anything.
    local: Vec<DeviceId>,
    lacks_depths: bool,
}

/// A parameter of a module.
struct Parameter {
    name: String,
    /// As it is set, where it is.
    value: Option<String>,
    /// The parameter of the depth in the same output, which is of one module.
    of: Option<&'static str>,
}

impl<'a> Reading<'a> {
    fn of(name: String, outputs: Vec<Output>, ids: &'a mut Ids) -> Result<Host> {
        let mut reading = Self {
            host: Host::named(name),
            ids,
            adapters: Vec::new(),
            parameters: Vec::new(),
            paths: Vec::new(),
            local: Vec::new(),
            lacks_depths: false,
        };
        for output in outputs {
            reading.add(output)?;
        }
        Ok(reading.whole())
    }

    fn add(&mut self, output: Output) -> Result<()> {
        match output {
            Output::Esxcli(Esxcli::Devices(devices)) => {
                let told = |device: &CoreDevice| device.max_queue_depth.is_some();
                self.lacks_depths |= !devices.is_empty() && !devices.iter().any(told);
                return devices.into_iter().try_for_each(|device| self.device(device));
            }
            Output::Esxcli(Esxcli::Nmp(devices)) => {
                devices.into_iter().for_each(|device| self.nmp(device));
            }
            Output::Esxcli(Esxcli::Adapters(adapters)) => {
                let named = adapters.into_iter().map(|adapter| (adapter.name, adapter.driver));
                self.adapters.extend(named);
            }
            Output::Esxcli(Esxcli::Parameters(parameters)) => {
                // One output is of one module, and names it by the parameter of its depth.
                let of = |name: &str| Driver::of_parameter(name)?.parameter;
                let of = parameters.iter().find_map(|each| of(&each.name));
                let named = parameters.into_iter();
                let named = named.map(|each| Parameter { name: each.name, value: each.value, of });
                self.parameters.extend(named);
            }
            Output::Esxcli(Esxcli::Options(options)) => {
                for HostOption { path, value, default } in options {
                    self.host.forbids_latency |= path == ENABLE_PSP_LATENCY && value == 0;
                    let Some(option) = Advanced::from_path(&path) else { continue };
                    self.host.options.retain(|(own, _)| *own != option);
                    self.host.options.push((option, value));
                    self.host.defaults.extend(default.map(|default| (option, default)));
                }
            }
            Output::Esxcli(Esxcli::Version(release)) => {
                self.host.version = Version::of_release(&release);
                self.host.release = Some(release);
            }
            Output::Esxcli(Esxcli::Iscsi(parameters)) => {
                let delayed = parameters.iter().filter(|(name, _)| name == DELAYED_ACK);
                for (_, value) in delayed {
                    self.host.delayed_ack = self.host.delayed_ack.max(value.parse().ok());
                }
            }
            Output::Esxcli(Esxcli::Extents(_)) => {}
            Output::Captured(Captured { devices, reach, .. }) => {
                for (name, dqlen) in devices {
                    let device = self.named(&name);
                    device.dqlen = device.dqlen.max(Some(dqlen));
                    device.reach = device.reach.max(reach.max(dqlen));
                }
            }
        }
        Ok(())
    }

    fn named(&mut self, name: &str) -> &mut Device {
        let id = self.ids.of(name);
        let devices = &mut self.host.devices;
        let place = match devices.binary_search_by_key(&id, |device| device.id) {
            Ok(place) => place,
            Err(place) => {
                devices.insert(place, Device::new(id));
                place
            }
        };
        &mut devices[place]
    }

    fn device(&mut self, told: CoreDevice) -> Result<()> {
        let host = self.host.name.clone();
        let device = self.named(&told.name);
        let numbers = [
            (&mut device.max_depth, told.max_queue_depth, "Device Max Queue Depth"),
            (&mut device.dsnro, told.dsnro, "No of outstanding IOs with competing worlds"),
        ];
        for (known, says, key) in numbers {
            if let (Some(before), Some(now)) = (*known, says)
                && before != now
            {
                let name = &told.name;
                let what =
                    format!("'{key}' of {name} is {before} in one output and {now} in another");
                return Err(format!("{host}: {what}; keep the one that holds").into());
            }
            *known = known.or(says);
        }
        device.queue_full =
            told.queue_full_sample_size.zip(told.queue_full_threshold).or(device.queue_full);
        device.is_endpoint |= told.is_vvol_pe == Some(true);
        device.is_nmp &= told.plugin.is_none_or(|plugin| plugin == "NMP");
        let id = device.id;
        let known = &mut self.ids.known[id.index()];
        known.is_comparable &= told.is_local != Some(true);
        known.is_endpoint |= told.is_vvol_pe == Some(true);
        if known.vendor.is_empty() && known.model.is_empty() {
            known.vendor = told.vendor.unwrap_or_default();
            known.model = told.model.unwrap_or_default();
        }
        self.local.extend((told.is_local == Some(true)).then_some(id));
        Ok(())
    }

    fn nmp(&mut self, told: NmpDevice) {
        let device = self.named(&told.name);
        device.policy = told.policy.or(device.policy);
        device.use_ano = told.use_ano.or(device.use_ano);
        device.preferred = told.preferred.or_else(|| device.preferred.take());
        device.is_active_passive |= told.satp.is_some_and(|satp| is_active_passive(&satp));
        let id = device.id;
        let adapter = told.working_paths.first().and_then(|path| path.split(':').next());
        self.paths.extend(adapter.map(|adapter| (id, adapter.to_owned())));
    }

    /// The host, with what one output says of what another one tells.
    fn whole(mut self) -> Host {
        if self.lacks_depths && self.host.version.is_none() {
            // Later ones tell Device Max Queue Depth [LIST5].
            self.host.version = Some(Version::V5_5);
        }
        for (_, module) in &self.adapters {
            let Some(driver) = Driver::from_module(module) else { continue };
            if driver.parameter.is_some() && self.host.module(driver).is_none() {
                self.host.drivers.push(Module::of(driver));
            }
        }
        self.host.lists_adapters = !self.adapters.is_empty();
        if self.adapters.is_empty() {
            self.drivers_by_parameters();
        }
        self.host.unknown_drivers = self.unknown_drivers();
        self.depths_of_modules();
        self.modules_of_devices();
        self.depths_in_force();
        self.host
    }

    /// Modules that are in no table of kavg's: those that shared devices are behind, or any where no driver is known.
    fn unknown_drivers(&self) -> Vec<String> {
        let is_used = |name: &str| {
            let mut behind = self.paths.iter().filter(|(_, adapter)| adapter == name);
            behind.any(|(id, _)| !self.local.contains(id))
        };
        let unknown = self.adapters.iter().filter(|(name, module)| {
            let is_known = Driver::from_module(module).is_some();
            !is_known && (self.host.drivers.is_empty() || is_used(name))
        });
        let mut unknown: Vec<String> = unknown.map(|(_, module)| module.clone()).collect();
        sort(&mut unknown);
        unknown.dedup();
        unknown
    }

    /// Where no adapter is told, the drivers of which a parameter is.
    fn drivers_by_parameters(&mut self) {
        let version = self.host.version();
        for Parameter { name, .. } in &self.parameters {
            let is_it =
                |driver: &&Driver| driver.sets_depth(name) && driver.versions.contains(&version);
            let Some(driver) = Driver::ALL.iter().find(is_it) else { continue };
            self.host.drivers.push(Module::of(driver));
        }
    }

    fn depths_of_modules(&mut self) {
        let lone = self.host.drivers.len() == 1;
        for module in &mut self.host.drivers {
            let is_own = |name: &str| module.driver.sets_depth(name);
            let own = self.parameters.iter().find(|each| is_own(&each.name));
            let Some(Parameter { value, .. }) = own else { continue };
            let set = value.as_deref().and_then(|value| value.parse().ok());
            // What nobody has set is in force.
            module.in_force = value.is_none().then_some(module.driver.depth_default);
            module.depth = set.or(module.in_force);
            // Where nothing says of which module a parameter is, its name may, or that there is but one.
            let is_its = |each: &&Parameter| match each.of {
                Some(_) => each.of == module.driver.parameter,
                None => lone || each.name.starts_with(module.driver.module),
            };
            let others = self.parameters.iter().filter(|each| !is_own(&each.name)).filter(is_its);
            let others =
                others.filter_map(|each| Some(format!("{}={}", each.name, each.value.as_ref()?)));
            module.others = others.collect::<Vec<_>>().join(" ");
        }
    }

    fn modules_of_devices(&mut self) {
        let place =
            |module: &str| self.host.drivers.iter().position(|own| own.driver.module == module);
        let lone = (self.host.drivers.len() == 1).then_some(0);
        let of_adapter = |adapter: &str| {
            let found = self.adapters.iter().find(|(name, _)| name == adapter);
            found.map(|(_, module)| place(module))
        };
        let found: Vec<_> =
            self.paths.iter().map(|(id, adapter)| (*id, of_adapter(adapter))).collect();
        for device in &mut self.host.devices {
            let told = found.iter().find(|(id, _)| *id == device.id).and_then(|(_, of)| *of);
            let is_local = self.local.contains(&device.id);
            // Parameters are of LUNs: a namespace of NVMe has its depth of its controller [LIST8], and behind
            // which adapter a device of HPP is no output tells.
            let is_nvme = self.ids.known[device.id.index()].vendor == NVME;
            let is_lun = device.is_nmp && !is_nvme;
            let guessed = if is_local { None } else { lone };
            device.module = if is_lun { told.unwrap_or(guessed) } else { None };
        }
    }

    /// A driver gives what the deepest LUN behind it has at least, for one may have been lowered and none can be raised
    /// above it [QD254]. Where its parameter says more, either no boot has brought that, or all LUNs were lowered: no
    /// output tells which. A protocol endpoint that is as deep as that follows its driver, as those of [S4] did; any
    /// other has a depth of its own [LAMW].
    fn depths_in_force(&mut self) {
        let host = &mut self.host;
        for (place, module) in host.drivers.iter_mut().enumerate() {
            let (endpoints, luns): (Vec<_>, Vec<_>) = host
                .devices
                .iter_mut()
                .filter(|device| device.module == Some(place))
                .partition(|device| device.is_endpoint);
            let deepest = luns.iter().filter_map(|device| device.max_depth).max();
            let of_build = deepest.filter(|_| module.in_force.is_some());
            if of_build.is_some() && of_build == module.driver.depth_of_some_builds {
                // Its parameter is not set, and this build comes with another depth than most.
                (module.depth, module.in_force) = (of_build, of_build);
            }
            module.in_force = module.in_force.max(deepest).or(module.depth);
            let gives = module.in_force.unwrap_or(module.driver.depth_default);
            for endpoint in endpoints {
                endpoint.module = endpoint.module.filter(|_| endpoint.max_depth == Some(gives));
            }
        }
        for device in &mut host.devices {
            let module = device.module.map(|module| &host.drivers[module]);
            let gives = module.and_then(|module| module.in_force);
            let may_give = module.and_then(|module| module.in_force.max(module.depth));
            let lowered =
                device.max_depth.filter(|depth| may_give.is_some_and(|most| *depth < most));
            device.lowered_to = lowered.unwrap_or(u32::MAX);
            device.may_follow = lowered.is_some() && lowered == gives;
            device.is_captured = device.max_depth.is_none() && device.dqlen.is_some();
            device.max_depth = device.max_depth.or(device.dqlen);
        }
    }
}
