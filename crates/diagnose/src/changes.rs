//! The things an administrator can do, as settings; their lines for esxcli, PowerCLI and the guest
//! are renderings of those.

use knobs::{
    Advanced, AdvancedInfo, AllocationChange, DSNRO, DiskName, Driver, Effect, GuestName,
    GuestSystem, PVSCSI_COMMANDS_PER_PAGE, PVSCSI_DEPTH_MAX, PVSCSI_RING_PAGES_MAX, Setting,
    Version, default_cost_unit_kib, get_esxcli, powershell_name, show_option, show_parameters,
};
pub(crate) use knobs::{shell, show_device};

use crate::{
    Change, Device, Facts, Host, LimitFacts, ROUNDED, Step, VdiskFacts,
    driver_depth::{self, Hba},
};

/// The warning that goes with every deeper queue: the conclusion of [S0] in our words.
pub(crate) const CAUTION: &str = "Most environments should leave queue depths alone. The defaults \
    keep one VM from crowding out the others of its datastore, one datastore the others of its \
    adapter, and one host the others of its array; a deeper queue gives some of that fairness \
    away. Change it only where this workload is known to need it, on every host of the cluster \
    alike, and think of IOPS limits for the noisy ones. More virtual disks, more virtual adapters \
    or more datastores often do the same without any knob.";

/// How a limit that no source tells is restored.
pub(crate) const UNDO_AS_SHOWN: &str =
    "Set the limit again that the first line shows (-1 is none).";

/// What is to be done before a host is rebooted.
pub const EVACUATE: &str = " Evacuate the host before the reboot.";

/// A depth above `from` for a queue that sees `demand` commands: a power of two with room, as far as
/// others let through `most`.
pub(crate) fn depth_for(from: f64, demand: f64, most: f64) -> u32 {
    const ROOM: f64 = 1.25;
    let wanted = (demand * ROOM).min(most);
    let fits = |depth: &u32| f64::from(*depth) > from && f64::from(*depth) >= wanted;
    let most = Driver::ANY.depth_max;
    let powers = (6..).map(|power| 1 << power).take_while(|depth| *depth < most);
    powers.into_iter().find(fits).unwrap_or(most)
}

/// A change that sets something: each step is undone by its own, which
/// [`Change::undo_lines`] renders; the words tell what else belongs to it.
pub(crate) fn setting(what: String, host: Option<&Host<'_>>, steps: Vec<Step>) -> Change {
    let sets = || steps.iter().map(|step| &step.set);
    let esxcli: Vec<_> = sets().filter_map(Setting::esxcli).collect();
    let on_host = host.filter(|_| !esxcli.is_empty()).map(|host| get_esxcli(host.name));
    let effect = sets().map(Setting::effect).max().unwrap_or(Effect::AtOnce);
    Change {
        what,
        esxcli,
        powercli: on_host.into_iter().chain(sets().filter_map(Setting::powercli)).collect(),
        guest: sets().flat_map(Setting::guest).collect(),
        effect,
        risk: String::new(),
        undo: format!("Set what was{}", and_reboot(effect)),
        simulated: None,
        steps,
    }
}

const fn and_reboot(effect: Effect) -> &'static str {
    match effect {
        Effect::AtOnce => "",
        Effect::GuestReboot => ", and reboot the guest",
        Effect::HostReboot => ", and reboot the host",
    }
}

/// As much of a DSNRO as the host takes, of a device [HP] or of its protocol endpoints [LAMW].
pub(crate) fn dsnro_within(name: &str, to: u32, facts: &Facts) -> u32 {
    to.min(if goes_by_option(name, facts) { Advanced::VvolPesnro.info().max } else { DSNRO.max })
}

/// Whether DSNRO of a device is the host's option for protocol endpoints; no output of a host tells which of them
/// have their own.
fn goes_by_option(name: &str, facts: &Facts) -> bool {
    let known = facts.device(name);
    known.is_protocol_endpoint && known.has_own_dsnro != Some(true)
}

/// What is said of a protocol endpoint on a host that is older than vVols [LAMW].
fn has_no_option(name: &str, version: Version) -> String {
    let AdvancedInfo { path, since, .. } = Advanced::VvolPesnro.info();
    format!(
        "Update the host to ESXi {} to raise DSNRO of {name}: ESXi {} has no {path} for protocol endpoints.",
        since.name(),
        version.name()
    )
}

/// Sets DSNRO of a device where it is in force: by the option of the host, unless the device has its
/// own.
pub(crate) fn set_dsnro(name: &str, (from, to): (u32, u32), facts: &Facts) -> (String, Vec<Step>) {
    if goes_by_option(name, facts) {
        let option = Advanced::VvolPesnro;
        return match facts.esxi_version.filter(|version| !option.exists_in(*version)) {
            Some(version) => (has_no_option(name, version), Vec::new()),
            None if facts.device(name).has_own_dsnro.is_none() => unknown_option(option.info(), to),
            None => advanced(option.info(), (from, to)),
        };
    }
    if facts.has_global_dsnro() {
        return advanced(DSNRO, (from, to));
    }
    let set = |value| Setting::SchedNumReqOutstanding { device: name.to_string(), value };
    let what = format!("{}, on every host that uses it.", raises_dsnro(name, (from, to)));
    (what, vec![Step::new(set(to), Some(set(from)))])
}

/// The same of an option of which it is not known what it is: DQLEN and what esxcli prints of a protocol endpoint may be
/// its own DSNRO.
fn unknown_option(info: &AdvancedInfo, to: u32) -> (String, Vec<Step>) {
    let set = Setting::Advanced { option: info.option, value: Some(to.clamp(info.min, info.max)) };
    let what = format!(
        "Raise {} to {to}, if `{}` shows less: note what it is before, to take it back.",
        info.path,
        show_option(info.path)
    );
    (what, vec![Step::new(set, None)])
}

fn raises_dsnro(name: &str, (from, to): (u32, u32)) -> String {
    format!("Raise DSNRO of {name} from {from} to {to}")
}

/// Two changes of the same kind, of the devices of those names, as one that is for both: the same line,
/// a line for each device, or a driver's for both. `None` where there is none.
pub(crate) fn of_both(host: &Host<'_>, both: [&Change; 2], names: [&str; 2]) -> Option<Change> {
    let [one, other] = both;
    if one == other {
        return Some(one.clone());
    }
    if one.steps.is_empty() && one.what == other.what.replace(names[1], names[0]) {
        let lines = other.esxcli.iter().filter(|line| !one.esxcli.contains(line));
        let esxcli = one.esxcli.iter().chain(lines).cloned().collect();
        return Some(Change { esxcli, ..one.clone() });
    }
    let steps: Vec<Step> = one.steps.iter().chain(&other.steps).cloned().collect();
    let is_of_device = |step: &Step| matches!(step.set, Setting::SchedNumReqOutstanding { .. });
    let first = steps.first().filter(|_| steps.iter().all(is_of_device));
    let Some(Step {
        set: Setting::SchedNumReqOutstanding { device, value: to },
        undo: Some(Setting::SchedNumReqOutstanding { value: from, .. }),
        ..
    }) = first
    else {
        return of_one_driver(host, both);
    };
    let others = match one.steps.len() {
        1 => "that of another device by its line".to_owned(),
        more => format!("those of {more} other devices by theirs"),
    };
    let raises = raises_dsnro(device, (*from, *to));
    if !one.what.starts_with(&raises) {
        return None;
    }
    let what = format!("{raises}, and {others}, on every host that uses them.");
    let Change { risk, undo, .. } = one.clone();
    Some(Change { risk, undo, ..setting(what, Some(host), steps) })
}

/// Sets an advanced option to more, within its range.
fn advanced(info: &AdvancedInfo, (from, to): (u32, u32)) -> (String, Vec<Step>) {
    let to = to.clamp(info.min, info.max);
    let set = |value| Setting::Advanced { option: info.option, value: Some(value) };
    let what = format!("Raise {} from {from} to {to}.", info.path);
    (what, vec![Step::new(set(to), Some(set(from)))])
}

/// Raises the depth of a device beyond competition: up to that of its driver where it was lowered
/// below that, and else the driver's. Where a `dsnro` holds the device besides, that is raised with
/// it: the lower of both is the limit while VMs compete.
pub(crate) fn raise_depth(
    host: &Host<'_>,
    device: &Device<'_>,
    depths: (u32, u32),
    dsnro: Option<u32>,
    facts: &Facts,
) -> Change {
    let (name, (from, to)) = (device.flow.name, depths);
    if let Some(own) = driver_depth::of(host, device, facts).filter(|own| *own > from) {
        if facts.device(name).max_queue_depth_at_end.is_some() {
            return leave_max_depth(name, from, own);
        }
        let why = format!("It was lowered: {}.", driver_depth::gives(own, host, device, facts));
        return raise_max_depth(host, name, (from, to.min(own)), dsnro, facts, &why);
    }
    let of_path = facts.device(name).depth_of_path;
    let hba = Hba::of(host, device, of_path.unwrap_or(from), facts);
    if hba.candidates.is_empty() {
        return spread_devices(&hba, of_path.unwrap_or(from));
    }
    if let Some((driver, staged)) = hba.staged(from, facts).filter(|_| of_path.is_none()) {
        let parameter = driver.parameter.unwrap_or_default();
        let why = format!(
            "{parameter} is {staged}, so it was lowered; or the host was not rebooted since: then it \
             refuses the line, and a reboot is what it takes."
        );
        return raise_max_depth(host, name, (from, to.min(staged)), dsnro, facts, &why);
    }
    if driver_depth::of(host, device, facts).is_none() && hba.may_have_more(from, facts) {
        return find_driver_depth(name, from, &hba);
    }
    raise_driver_depth(host, device, depths, dsnro, facts, &hba)
}

/// Raises Device Max Queue Depth, at once, and DSNRO with it.
fn raise_max_depth(
    host: &Host<'_>,
    name: &str,
    (from, to): (u32, u32),
    dsnro: Option<u32>,
    facts: &Facts,
    why: &str,
) -> Change {
    let set = |value| Setting::MaxQueueDepth { device: name.to_string(), value };
    let mut steps = vec![Step::new(set(to), Some(set(from)))];
    let follows = add_dsnro(&mut steps, name, dsnro, to, facts, "then");
    let what =
        format!("Raise Device Max Queue Depth of {name} from {from} to {to}{follows}. {why}");
    let mut change = setting(what, Some(host), steps);
    change.risk =
        "The VMs on this device take more of the adapter and of the array from others. The \
                   host refuses more than its driver gives."
            .into();
    change
}

/// What is left where the depth was lowered while it was looked at: no line, for what lowers it would
/// do so again.
fn leave_max_depth(name: &str, from: u32, own: u32) -> Change {
    let what = format!(
        "Leave Device Max Queue Depth of {name} at the {own} that the HBA's driver gives: it was set \
         meanwhile, to {from} in the end."
    );
    look(what, Vec::new()).risking("VMs take more of the array from others.", "Set it again")
}

/// What is left where a device has less than any driver gives it that nobody changed.
fn find_driver_depth(name: &str, from: u32, hba: &Hba<'_>) -> Change {
    let module = if let [one] = hba.candidates[..] { one.module } else { "MODULE" };
    let list = show_parameters(module);
    let fixed = fixed_at(from).map(|driver| {
        format!(" but {} ({}), whose depth cannot be set", driver.module, driver.what)
    });
    let what = format!(
        "See whether {name} has only {from} by its driver's parameter, or was lowered (-m). No such \
         driver gives so few by default{}: with the outputs of both lines as --esxcli FILE the line \
         to type is told.",
        fixed.unwrap_or_default()
    );
    look(what, vec!["esxcli storage core adapter list".into(), list])
}

/// Adds what raises DSNRO to a depth that is raised, where it would hold the device below that; in
/// words what follows `when`.
fn add_dsnro(
    steps: &mut Vec<Step>,
    name: &str,
    dsnro: Option<u32>,
    depth: u32,
    facts: &Facts,
    when: &str,
) -> String {
    let with = dsnro_within(name, depth, facts);
    let Some(dsnro) = dsnro.filter(|dsnro| *dsnro < with) else { return String::new() };
    let (_, set) = set_dsnro(name, (dsnro, with), facts);
    if set.is_empty() {
        return String::new();
    }
    steps.extend(set);
    format!(", and {when} DSNRO of {name} from {dsnro} to {with}")
}

/// What to do of a module's other parameters where nothing tells them.
const UNTOLD: &str = "list them first (esxcli system module parameters list -m MODULE) and repeat those that are set";

/// Raises the depth that the HBA's driver gives each device: a module parameter, and a reboot.
/// The driver is known from `facts`, or one of several candidates. Where the depths of paths are
/// added, each gets its part.
fn raise_driver_depth(
    host: &Host<'_>,
    device: &Device<'_>,
    depths: (u32, u32),
    dsnro: Option<u32>,
    facts: &Facts,
    hba: &Hba<'_>,
) -> Change {
    let of_path = facts.device(device.flow.name).depth_of_path;
    let (from, to) = of_path
        .map_or(depths, |depth| (depth, depth.saturating_mul(depths.1.div_ceil(depths.0.max(1)))));
    let Hba { names, module, candidates } = hba;
    let to = driver_depth::at_least(candidates, to, facts);
    let step = |driver: &&'static Driver| {
        let set = |value| Setting::ModuleDepth { driver: facts.module(driver), value };
        let was = driver_depth::as_set(driver, from, facts);
        Step::new(set(to.min(driver.depth_max)), was.map(set))
    };
    let mut steps: Vec<Step> = candidates.iter().map(step).collect();
    let most = candidates.iter().map(|driver| driver.depth_max).max().unwrap_or(to);
    let least = candidates.iter().map(|driver| driver.depth_max.min(to)).min().unwrap_or(to);
    let name = device.flow.name;
    let follows = add_dsnro(&mut steps, name, dsnro, least, facts, "after the reboot");
    let what = format!(
        "Raise the driver's depth per device ({names}) from {from} to {}{follows}.{}",
        to.min(most),
        which_line(candidates, to.min(most), module.is_some(), facts)
    );
    let mut change = setting(what, Some(host), steps);
    let is_told = candidates.iter().any(|driver| !facts.module(driver).others.is_empty());
    let repeat =
        if is_told { "it repeats those that were set when they were listed" } else { UNTOLD };
    change.risk = format!(
        "It deepens every device of that driver, and the line replaces all parameters of the module: \
         {repeat}.{EVACUATE}"
    );
    if candidates.len() > 1 {
        change.undo = format!("The same line with {from} instead{}", and_reboot(change.effect));
    } else if let ([driver], None) = (&candidates[..], &change.steps[0].undo) {
        change.undo = driver_depth::has_no_undo(driver, facts);
    }
    change
}

/// The two changes of the depth that one driver gives two devices as one, since its parameter deepens
/// both: as deep as the deeper of them, and all that each needs besides. `None` where they are no such
/// changes.
pub(crate) fn of_one_driver(host: &Host<'_>, both: [&Change; 2]) -> Option<Change> {
    let depth = |step: &Step| match &step.set {
        Setting::ModuleDepth { driver, value } => Some((driver.driver, *value)),
        _ => None,
    };
    let depths = |change: &Change| -> Vec<_> { change.steps.iter().filter_map(depth).collect() };
    let drivers = |change: &Change| -> Vec<_> {
        depths(change).into_iter().map(|(driver, _)| driver.module).collect()
    };
    let [one, other] = both;
    if drivers(one).is_empty() || drivers(one) != drivers(other) {
        return None;
    }
    let is_deeper =
        depths(other).iter().map(|of| of.1).max() > depths(one).iter().map(|of| of.1).max();
    let (most, least) = if is_deeper { (other, one) } else { (one, other) };
    // An option of the host is one for both.
    let is_there =
        |step: &Step| step.undo.is_some() && most.steps.iter().any(|own| own.undo == step.undo);
    let rest = || least.steps.iter().filter(|step| depth(step).is_none() && !is_there(step));
    let steps: Vec<Step> = most.steps.iter().chain(rest()).cloned().collect();
    let Change { what, risk, undo, .. } = most.clone();
    Some(Change { risk, undo, ..setting(what, Some(host), steps) })
}

/// Says of a driver's depth that is raised which `others` that deepens besides the device that it is asked
/// for, and of whom DSNRO is raised with it, where that is not said yet.
pub(crate) fn tell_of_one_driver(change: &mut Change, others: &[&str]) {
    let is_of_driver = |step: &Step| matches!(step.set, Setting::ModuleDepth { .. });
    if others.is_empty() || !change.steps.iter().any(is_of_driver) {
        return;
    }
    let listed = |names: &[&str]| match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    let with = change.steps.iter().filter_map(|step| match &step.set {
        Setting::SchedNumReqOutstanding { device, .. } if !change.what.contains(&**device) => {
            Some(device.as_str())
        }
        _ => None,
    });
    let with = match listed(&with.collect::<Vec<_>>()) {
        none if none.is_empty() => none,
        names => format!(", and DSNRO of {names} is raised with it"),
    };
    change.what += &format!(" The line deepens {} as well{with}.", listed(others));
    change.risk +=
        " Where the devices share an array that has nothing left, one takes from the other.";
}

/// Which of the lines to type, unless there is one only; which driver takes less than the others;
/// and that a depth which is set and not in force waits for a reboot.
fn which_line(candidates: &[&Driver], to: u32, is_known: bool, facts: &Facts) -> String {
    let set = candidates.iter().find_map(|driver| {
        Some(format!(" {} is set to {} now.", driver.parameter?, facts.depth_set(driver)?))
    });
    if is_known {
        return set.unwrap_or_default();
    }
    let name = |driver: &&Driver| {
        let most = driver.depth_max;
        let less = if most < to { format!(" ({most} at most)") } else { String::new() };
        format!("{} is {}{less}", driver.module, driver.what)
    };
    let names: Vec<_> = candidates.iter().map(name).collect();
    format!(
        " Type one line only, that of the driver which `esxcli storage core adapter list` shows: \
         {}; another has a parameter of its own.{}",
        names.join(", "),
        set.unwrap_or_default()
    )
}

/// The driver that gives a device this depth, and whose depth cannot be set.
fn fixed_at(depth: u32) -> Option<&'static Driver> {
    let is_fixed = |driver: &&Driver| driver.parameter.is_none() && driver.depth_default == depth;
    Driver::ALL.iter().find(is_fixed)
}

/// Why a device cannot be given more: only what the table of drivers says of them is said.
fn why_no_deeper(adapters: &str, module: Option<&str>, depth: u32) -> String {
    match (module, module.and_then(Driver::from_module)) {
        (Some(module), Some(Driver { parameter: Some(parameter), .. })) => {
            format!(
                "{depth} is the most that {parameter} of {module} ({adapters}) is known to take"
            )
        }
        (Some(module), Some(driver)) if driver.depth_default == depth => format!(
            "The depth of {depth} that {module} of {adapters} gives a device is none that can be set"
        ),
        (Some(module), _) => format!(
            "No parameter of {module} ({adapters}) for a depth is known; `esxcli system module \
             parameters list -m {module}` shows what it has. Until then"
        ),
        (None, _) => match fixed_at(depth) {
            Some(driver) => format!(
                "A depth of {depth} is that of {} ({}), and none that can be set",
                driver.module, driver.what
            ),
            None => format!("No driver is known that gives a device more than {depth}"),
        },
    }
}

/// What is left where no driver that is known can give more.
fn spread_devices(hba: &Hba<'_>, depth: u32) -> Change {
    look(
        format!(
            "{}: spread the VMs over more devices, or move them to faster ones.",
            why_no_deeper(&hba.names, hba.module, depth)
        ),
        vec!["esxcli storage core adapter list".into()],
    )
    .risking("Moving disks loads both devices.", "Move them back")
}

/// Raises the depth of PVSCSI disks and their ring inside the guest from what it is, or from the depth that is `seen`,
/// in the words of its system where that is known [KB-PV]; `None` where both are the most already. What is set stands in
/// no counter: where it is not known it is to be noted first. Where it is the ring that is full, no depth is seen.
pub(crate) fn raise_pvscsi(
    vm: &str,
    seen: Option<u32>,
    known: Option<&VdiskFacts>,
) -> Option<Change> {
    let system = known.map(|facts| facts.guest.system());
    let set = |depth, ring_pages| {
        let vm = GuestName { vm: Some(vm.into()), system };
        Setting::Pvscsi { vm, depth: Some(depth), ring_pages }
    };
    let which = match system {
        Some(GuestSystem::Windows) => "",
        Some(GuestSystem::Linux) => " Rebuild its initramfs before the reboot.",
        None => {
            " The lines with reg are for a Windows guest, the others for a Linux guest, of which the \
             initramfs is to be rebuilt."
        }
    };
    let ring = PVSCSI_RING_PAGES_MAX * PVSCSI_COMMANDS_PER_PAGE;
    let ring = match seen {
        Some(_) => String::new(),
        None => format!(" and {} an adapter", crate::number(ring.into())),
    };
    let what = format!(
        "Let the PVSCSI driver of {vm} send up to {PVSCSI_DEPTH_MAX} commands a disk{ring}.{which}"
    );
    let undo = known
        .and_then(|is| Some(set(is.depth?, Some(is.adapter_depth? / PVSCSI_COMMANDS_PER_PAGE))));
    let is_known = undo.is_some();
    let most = set(PVSCSI_DEPTH_MAX, Some(PVSCSI_RING_PAGES_MAX));
    // The depth that is seen is what it was, and a ring that nobody told of is the driver's own.
    let undo = undo.or_else(|| Some(set(seen?, None)));
    if undo.as_ref() == Some(&most) {
        return None;
    }
    let shown = most.show();
    let mut change = setting(what, None, vec![Step::new(most, undo)]);
    if !is_known {
        change.guest.splice(0..0, shown);
        let reboot = and_reboot(change.effect);
        change.undo = format!("The same line with the values that are shown, if any{reboot}");
    }
    change.risk = "One VM can then fill a device queue alone.".into();
    Some(change)
}

/// Spreads a VM over more virtual disks or adapters, without any knob.
#[must_use]
pub fn spread(vm: &str) -> Change {
    Change {
        what: format!(
            "Give {vm} more virtual disks, on more PVSCSI adapters (up to 4): each disk has a \
             queue of its own."
        ),
        esxcli: Vec::new(),
        powercli: vec![format!(
            "New-HardDisk -VM {} -CapacityGB 100 | New-ScsiController -Type ParaVirtual",
            powershell_name(vm)
        )],
        guest: vec!["Spread the data over the disks (stripe, or more files)".into()],
        effect: Effect::AtOnce,
        risk: "The load has to be spread in the guest for it to help.".into(),
        undo: "Remove the disks once their data is moved back".into(),
        simulated: None,
        steps: Vec::new(),
    }
}

/// Something to look into, with the lines that show it.
pub(crate) fn look(what: impl Into<String>, esxcli: Vec<String>) -> Change {
    Change {
        what: what.into(),
        esxcli,
        powercli: Vec::new(),
        guest: Vec::new(),
        effect: Effect::AtOnce,
        risk: "None, it only looks.".into(),
        undo: "Nothing to undo".into(),
        simulated: None,
        steps: Vec::new(),
    }
}

impl Change {
    /// The host whose lines these are, where it is one of several.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| step.host.as_deref())
    }

    /// The lines that take it back, the last step first: for a host's shell where it has one, else
    /// for PowerCLI or the guest. There is none for what no source tells, nor for the depths of
    /// several drivers, of which one is typed and undone: `undo` tells how.
    #[must_use]
    pub fn undo_lines(&self) -> Vec<String> {
        let is_depth = |step: &&Step| matches!(step.set, Setting::ModuleDepth { .. });
        let are_alternatives = self.steps.iter().filter(is_depth).count() > 1;
        let steps = self.steps.iter().rev().filter(|step| !(are_alternatives && is_depth(step)));
        let lines = |setting: &Setting| {
            let line = setting.esxcli().or_else(|| setting.powercli());
            line.map_or_else(|| setting.guest(), |line| vec![line])
        };
        steps.filter_map(|step| step.undo.as_ref()).flat_map(lines).collect()
    }

    /// The same as something to do, with its risk and how to take it back.
    pub(crate) fn risking(mut self, risk: &str, undo: &str) -> Self {
        (self.risk, self.undo) = (risk.into(), undo.into());
        self
    }
}

/// Says of a change that sets a limit which storage policy disks lose by it.
pub(crate) fn tell_of_policy(change: &mut Change, had: &AllocationChange) {
    let AllocationChange::Policy(Some(policy)) = had else { return };
    let told = format!(
        " A limit of its own takes a disk from its storage policy, {policy}: until the undo gives that \
         back, what it says is not for the disk."
    );
    if !change.risk.contains(&told) {
        change.risk += &told;
    }
}

/// A rate of commands as an IOPS limit counts it: by the default of `Disk.SchedCostUnit`, and each
/// once where their size is not known. A size that is a number of units as far as two decimals of
/// commands, of MB read and of MB written tell is that number, and not one unit more.
pub(crate) fn in_cost_units(iops: f64, size_kib: Option<f64>) -> f64 {
    let units = |size_kib: f64| {
        let rounding_kib = ROUNDED / 2.0 * (2.0 * 1024.0 + size_kib) / iops;
        ((size_kib - rounding_kib) / default_cost_unit_kib()).ceil().max(1.0)
    };
    iops * size_kib.map_or(1.0, units)
}

/// Takes the limit of `at` off, a disk of a VM, where a source tells it in force; else shows those of the VM,
/// for it may be of another of its disks, or there is none.
pub(crate) fn lift_limit(vm: &str, at: &str, known: Option<&LimitFacts>) -> Change {
    let undo = known.filter(|limit| limit.at_end.is_some()).map(LimitFacts::undo);
    let policy = match &undo {
        Some(AllocationChange::Policy(Some(policy))) => format!(", {policy},"),
        _ => String::new(),
    };
    let what = format!(
        "See what limits {vm} has and raise or remove them (-1 is none), if they are not meant. A \
         limit of its storage policy{policy} is changed there."
    );
    let mut change = match &undo {
        Some(_) => setting(what, None, vec![limits(at, None, undo.clone())]),
        None => look(what, Vec::new()).risking("", UNDO_AS_SHOWN),
    };
    change.powercli.splice(0..0, limits(vm, None, None).set.show());
    change.risk = "The VM takes more of the device from the others.".into();
    undo.iter().for_each(|had| tell_of_policy(&mut change, had));
    change
}

/// Shows the limits of some VMs, of which one may hold their disks; `None` without a VM.
pub(crate) fn show_limits(vms: &[&str]) -> Option<Change> {
    const SHOWN: usize = 3;
    let (first, others) = vms.split_first()?;
    let whose = match others.len() {
        0 => (*first).into(),
        more => format!("{first} and {more} more"),
    };
    let what = format!(
        "See the IOPS limits and storage policies of {whose}, and raise or remove what is not meant."
    );
    let shown = vms.iter().take(SHOWN).flat_map(|vm| limits(vm, None, None).set.show());
    Some(Change { powercli: shown.collect(), ..look(what, Vec::new()) })
}

/// The limit of the disks of that name, and what gives them again what they had as far as it is known.
pub(crate) fn limits(name: &str, set: Option<u32>, undo: Option<AllocationChange>) -> Step {
    let to = |allocation| Setting::Allocation { vdisk: DiskName::from(name).into(), allocation };
    Step::new(to(AllocationChange::Limit(set)), undo.map(to))
}

/// Locks metadata by ATS where the array has it: hosts do unless it is switched off, and a datastore
/// does without reservations unless it was made by an upgrade (reference `array-and-control.md`
/// section 7.4).
pub(crate) fn lock_by_ats(host: &Host<'_>, device: &str, facts: &Facts) -> Change {
    let by_scsi2 = facts.device(device).locks_by_scsi2;
    let vaai = format!("esxcli storage core device vaai status get -d {}", shell(device));
    let info = Advanced::HardwareAcceleratedLocking.info();
    let shown = show_option(info.path);
    match by_scsi2 {
        Some(false) => {}
        Some(true) => {
            let what = "Move the VMs to a new datastore that is ATS-only, on an array with ATS. This \
                        one is locked by SCSI-2 reservations itself, as one that was upgraded may \
                        be, and no setting of the hosts changes that.";
            return look(what, vec![vaai])
                .risking("Moving disks loads both devices.", "Move them back");
        }
        None => {
            let what = format!(
                "See whether metadata is locked by ATS. Where the array has it and {} is 0, set it \
                 to 1 on every host of the datastore; where it is 1, the datastore itself is locked \
                 by reservations, and a new one that is ATS-only is not.",
                info.path
            );
            return look(what, vec![vaai, shown]).risking(
                "All hosts of the datastore must be set alike, and the array must have ATS; moving \
                 disks to a new datastore loads both devices.",
                "Set it to 0 again on every host; move the disks back",
            );
        }
    }
    let set = |value| Setting::Advanced { option: info.option, value: Some(value) };
    let what = "Let metadata be locked by ATS instead of reservations, on every host of the datastore where it is \
                switched off, if the array has it.";
    let mut change = setting(what.into(), Some(host), vec![Step::new(set(1), Some(set(0)))]);
    change.esxcli.splice(0..0, [vaai, shown]);
    change.risk =
        "All hosts of the datastore must be set alike, and the array must have ATS.".into();
    change
}

/// Puts `/Disk/DiskMaxIOSize` back to where a host cuts none of its own accord.
pub(crate) fn cut_no_more(host: &Host<'_>, from: u32) -> Change {
    let info = Advanced::DiskMaxIoSize.info();
    let (what, steps) = advanced(info, (from, info.default));
    let mut change = setting(what, Some(host), steps);
    change.risk = "Larger commands; the array must take them.".into();
    change
}

/// Lets iSCSI send larger I/Os in one piece [LAMW].
pub(crate) fn raise_iscsi_io_size(host: &Host<'_>, is_known: bool) -> Change {
    let info = Advanced::IscsiMaxIoSizeKb.info();
    let (_, steps) = advanced(info, (info.default, info.max));
    let whose = match is_known {
        true => "Raise the largest I/O of software iSCSI",
        false => "If the device is on software iSCSI: raise its largest I/O",
    };
    let what = format!("{whose} from {} to {} KB.", info.default, info.max);
    let mut change = setting(what, Some(host), steps);
    change.risk = "Fewer and larger pieces on the wire; the array must take them.".into();
    change
}

#[cfg(test)]
mod tests {
    use knobs::Seen;

    use super::*;

    #[test]
    fn none_that_can_be_set_is_said_of_hardware_that_the_table_knows() {
        let cases = [
            (Some("vmw_ahci"), 31, "none that can be set"),
            (Some("vmw_ahci"), 64, "No parameter of vmw_ahci (vmhba1) for a depth is known"),
            (None, 31, "none that can be set"),
            (Some("qlnativefc"), 254, "254 is the most that ql2xmaxqdepth of qlnativefc"),
            (Some("qedf"), 64, "parameters list -m qedf` shows what it has"),
            (None, 5_000, "No driver is known that gives a device more than 5000"),
        ];
        for (module, depth, expected) in cases {
            let why = why_no_deeper("vmhba1", module, depth);
            assert!(why.contains(expected), "{why}");
            assert_eq!(why.contains("none that can be set"), depth == 31, "{why}");
        }
    }

    #[test]
    fn what_is_known_decides_between_drivers() {
        let modules = |depth, module, facts: &Facts| -> Vec<&str> {
            driver_depth::candidates(depth, module, &Seen::default(), facts)
                .iter()
                .map(|driver| driver.module)
                .collect()
        };
        let mut facts = Facts::default();
        assert_eq!(modules(64, Some("fnic"), &facts), ["fnic"]);
        assert!(modules(64, Some("vmw_ahci"), &facts).is_empty());
        assert_eq!(
            modules(254, None, &facts),
            ["nfnic", "fnic", "lpfc", "bfa", "brcmfcoe", "iscsi_vmk"]
        );
        facts.parameters.insert("lpfc_lun_queue_depth".into(), "64".into());
        assert_eq!(modules(64, None, &facts), ["lpfc"]);
    }

    #[test]
    fn a_size_within_rounding_of_a_number_of_units_is_that_number() {
        let sizes = [(31.9999, 1.0), (32.0001, 1.0), (64.0001, 2.0), (64.3, 3.0), (4.0, 1.0)];
        for (size_kib, units) in sizes {
            assert_eq!(in_cost_units(43_584.0, Some(size_kib)), units * 43_584.0, "{size_kib}");
        }
        // Ten a second of 64 KiB are 0.63 MB, which the columns may show as 0.64.
        assert_eq!(in_cost_units(10.0, Some(64.5)), 20.0);
        assert_eq!(in_cost_units(10.0, None), 10.0);
    }

    #[test]
    fn a_depth_has_room_for_the_demand() {
        let depths = [(32.0, 30.0), (32.0, 61.0), (64.0, 96.0), (128.0, 90.0), (512.0, 900.0)];
        let depth_for = |(from, n)| depth_for(from, n, f64::INFINITY);
        assert_eq!(depths.map(depth_for), [64, 128, 128, 256, 1024]);
    }

    #[test]
    fn a_depth_is_no_deeper_than_what_can_come() {
        // One disk on PVSCSI lets out 254, whatever its guest has waiting.
        assert_eq!([254.0, 512.0].map(|n| depth_for(32.0, n, 254.0)), [256, 256]);
        assert_eq!(depth_for(32.0, 61.0, 254.0), 128);
    }
}
