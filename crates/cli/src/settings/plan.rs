//! The lines that bring a host from what it is set to, to what it is to be set to, in an order in which it
//! takes each: what acts at once, what the host boots with, one boot, and what it takes only then.
//!
//! ```text
//!   deeper:     parameter of the module -> reboot -> -m, -O
//!   shallower:  -O -> -m
//! ```
//!
//! DSNRO above a device's depth is refused from 6.5 on [S1], a depth above that which the driver gives
//! always [QD254]: a line that would be is put off until it is not, or refused here with its reason.
//! The way back is a plan like any other, from what the host is then to what it was. Where a boot has brought a
//! parameter that waited for it, and devices less with that, it takes both: parameter as it was in force -> reboot ->
//! as it waited.

use counters::DeviceId;
use counters::sorted::sort;
use knobs::{
    Advanced, ENABLE_PSP_LATENCY, Effect, Knob, Module, PathPolicy, PolicyChange, Setting,
    preferred_path,
};

use super::{fleet::Fleet, goals::Wanted, host::Host};

/// The lines for a host, in order.
#[derive(Default)]
pub(crate) struct Plan {
    /// Those that act at once.
    pub(crate) now: Vec<Step>,
    /// Those that act after a reboot.
    pub(crate) before_reboot: Vec<Step>,
    /// Whether one is needed.
    pub(crate) reboots: bool,
    /// Those that are taken only then.
    pub(crate) after_reboot: Vec<Step>,
}

/// A line, and what it changes.
pub(crate) struct Step {
    pub(crate) setting: Setting,
    /// What was set before; `None` where no output tells it.
    pub(crate) was: Option<Knob>,
    /// A line more where Fixed preferred a path before, which its plug-in forgets with another policy: for a
    /// shell, and for PowerCLI.
    pub(crate) preferred: Option<[String; 2]>,
}

impl Step {
    /// For the shell of the host.
    pub(crate) fn esxcli(&self) -> impl Iterator<Item = String> {
        let preferred = self.preferred.as_ref().map(|[esxcli, _]| esxcli.clone());
        self.setting.esxcli().into_iter().chain(preferred)
    }

    /// For PowerCLI.
    pub(crate) fn powercli(&self) -> impl Iterator<Item = String> {
        let preferred = self.preferred.as_ref().map(|[_, powercli]| powercli.clone());
        self.setting.powercli().into_iter().chain(preferred)
    }
}

/// What a host is not set to, and why.
pub(crate) struct Refused {
    pub(crate) line: String,
    pub(crate) why: String,
    /// The device, where the same is so for others.
    pub(crate) device: Option<DeviceId>,
}

/// What is to be done on a host.
pub(crate) struct HostPlan {
    /// Its place among the hosts.
    pub(crate) host: u32,
    pub(crate) plan: Plan,
    /// The way back, without what nobody knows how it was.
    pub(crate) undo: Plan,
    /// How many lines of the plan it leaves as they are: nobody knows what was there, or the host would not
    /// take it again.
    pub(crate) not_undone: usize,
    pub(crate) refused: Vec<Refused>,
}

impl HostPlan {
    /// Whether nothing is said of the host.
    pub(crate) fn is_empty(&self) -> bool {
        self.plan.is_empty() && self.refused.is_empty()
    }
}

impl Plan {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps().next().is_none() && !self.reboots
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.now.iter().chain(&self.before_reboot).chain(&self.after_reboot)
    }
}

/// What a plan is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// To do what lines say, and no more.
    Lines,
    /// To be as other hosts are: a host reboots where that brings a device what it is to have.
    Alike,
}

/// The plans of those hosts that have one.
pub(crate) fn plans(fleet: &Fleet, wanted: &[Wanted], aim: Aim) -> Vec<HostPlan> {
    let plans = (0..).zip(fleet.hosts.iter().zip(wanted)).map(|(place, (host, wanted))| {
        let mut forth = Planning::of(fleet, host, &wanted.knobs, aim, None);
        wanted.left.iter().for_each(|(knob, why)| forth.refuse(knob, why.clone()));
        let before = forth.changed();
        let back = Planning::of(fleet, &forth.after, &before, Aim::Alike, Some(host));
        let unknown = forth.plan.steps().filter(|step| step.was.is_none()).count();
        HostPlan {
            host: place,
            undo: back.plan,
            not_undone: unknown + back.refused.len(),
            plan: forth.plan,
            refused: forth.refused,
        }
    });
    plans.filter(|plan| !plan.is_empty()).collect()
}

/// A plan while it is made.
struct Planning<'a> {
    fleet: &'a Fleet,
    host: &'a Host,
    wanted: &'a [Knob],
    aim: Aim,
    /// The host as it was, where this is the way back to that, whatever it takes.
    target: Option<&'a Host>,
    /// The host as it is after the lines so far.
    after: Host,
    /// What drivers are set to again behind the reboot, without another one.
    staged: Vec<Knob>,
    plan: Plan,
    refused: Vec<Refused>,
}

impl<'a> Planning<'a> {
    fn of(
        fleet: &'a Fleet,
        host: &'a Host,
        wanted: &'a [Knob],
        aim: Aim,
        target: Option<&'a Host>,
    ) -> Self {
        let (plan, refused, staged) = (Plan::default(), Vec::new(), Vec::new());
        let after = host.clone();
        let mut planning = Self { fleet, host, wanted, aim, target, after, staged, plan, refused };
        planning.host_wide();
        let depths: Vec<Option<u32>> =
            (0..host.drivers.len()).map(|module| planning.module(module)).collect();
        let mut devices: Vec<DeviceId> = wanted.iter().filter_map(device_of).collect();
        sort(&mut devices);
        devices.dedup();
        for device in &devices {
            let module = host.device(*device).and_then(|device| device.module);
            let later = module.and_then(|module| depths[module]).filter(|_| planning.plan.reboots);
            planning.at_once(*device, later.unwrap_or(u32::MAX));
        }
        if planning.plan.reboots {
            planning.after.boot();
        }
        devices.into_iter().for_each(|device| planning.at_last(device));
        for knob in std::mem::take(&mut planning.staged) {
            planning.add(knob, When::After);
        }
        planning
    }

    /// What it changes, as it was before: what its lines set, and depths that its reboot brings.
    fn changed(&self) -> Vec<Knob> {
        let booted = self.host.devices.iter().filter(|_| self.plan.reboots);
        let booted = booted.filter_map(|device| {
            let after = self.after.device(device.id)?;
            let is_other = after.max_depth != device.max_depth || self.after.is_unsure(after);
            let was = Knob::MaxQueueDepth { device: device.id, value: device.max_depth? };
            is_other.then_some(was)
        });
        self.plan.steps().filter_map(|step| step.was).chain(booted).collect()
    }

    /// Policies, throttling and options, which wait for nothing.
    fn host_wide(&mut self) {
        for knob in self.wanted {
            let is_meant = matches!(
                knob,
                Knob::PathPolicy { .. } | Knob::QueueFull { .. } | Knob::Advanced { .. }
            );
            let reboots = knob.effect() == Effect::HostReboot;
            if is_meant {
                self.try_add(*knob, if reboots { When::Before } else { When::Now });
            }
        }
    }

    /// The depth that is wanted of a driver. Returns what it gives after a boot.
    fn module(&mut self, place: usize) -> Option<u32> {
        let module = &self.host.drivers[place];
        let (driver, in_force) = (module.driver, module.in_force);
        let set = Host::wanted_of(module, self.wanted);
        if let Some((gave, staged)) = self.gave_more(place) {
            self.add(Knob::ModuleDepth { driver, value: gave }, When::Before);
            self.plan.reboots = true;
            self.staged.push(Knob::ModuleDepth { driver, value: staged });
            return Some(gave);
        }
        let reaches = module.depth.or(in_force);
        let depth = set.or(reaches)?;
        let knob = Knob::ModuleDepth { driver, value: depth };
        if reaches == Some(depth) {
            // Set already; where it is not in force yet, a boot brings it to the devices that need it.
            let is_meant = self.aim == Aim::Alike || set.is_some();
            self.plan.reboots |= is_meant && self.host.is_boot_due(place, depth, self.wanted);
            return Some(depth);
        }
        if !self.is_taken(&knob) {
            return reaches;
        }
        // On the way back what was not in force does not come into force either.
        let is_in_force = match self.target {
            Some(target) => target.drivers[place].in_force == in_force,
            None => in_force == Some(depth),
        };
        self.add(knob, if is_in_force { When::Now } else { When::Before });
        Some(depth)
    }

    /// On the way back: what a driver gave devices until a boot brought less, or more than that since, and the less that it
    /// was set to.
    fn gave_more(&self, place: usize) -> Option<(u32, u32)> {
        let (was, is) = (&self.target?.drivers[place], &self.host.drivers[place]);
        let (gave, staged) = (was.in_force?, was.depth?);
        let mut behind = self.host.wanted_behind(place, self.wanted);
        let is_due = is.in_force != Some(gave) && behind.any(|depth| depth > staged);
        (staged < gave && is_due && self.host.takes(is, gave)).then_some((gave, staged))
    }

    /// Depth and DSNRO of a device, as far as the host takes them before a boot, behind which the driver
    /// gives it `later`.
    fn at_once(&mut self, id: DeviceId, later: u32) {
        let (depth, dsnro) = self.wanted_of(id);
        let Some(now) = self.after.device(id).and_then(|device| device.max_depth) else {
            return;
        };
        // What the driver does not give later is refused, and what it brings anyway takes no line.
        let depth = depth.filter(|depth| *depth <= later);
        let is_unsure = self.is_unsure(id);
        let lower =
            depth.filter(|depth| *depth < now && *depth != later || *depth == now && is_unsure);
        // What it had before, behind a driver that nothing tells, that driver may give it again with the boot alone.
        let is_later = self.plan.reboots && self.target.is_some() && !self.is_driven(id);
        let reach = self.reach(id).filter(|_| !is_later);
        let is_reached = |depth: &u32| reach.is_some_and(|reach| *depth <= reach);
        let raise = depth.filter(|depth| *depth > now && is_reached(depth));
        if let Some(value) = raise {
            self.try_add(Knob::MaxQueueDepth { device: id, value }, When::Now);
        }
        // What is lower later takes DSNRO now, and has what it had without a plan: DSNRO above its depth.
        if let Some(value) = dsnro.filter(|dsnro| *dsnro <= raise.unwrap_or(now)) {
            self.try_add(Knob::SchedNumReqOutstanding { device: id, value }, When::Now);
        }
        if let Some(value) = lower {
            self.try_add(Knob::MaxQueueDepth { device: id, value }, When::Now);
        }
    }

    /// The rest of it, after the boot where there is one.
    fn at_last(&mut self, id: DeviceId) {
        let (depth, dsnro) = self.wanted_of(id);
        let when = if self.plan.reboots { When::After } else { When::Now };
        let is = self.after.device(id).and_then(|device| device.max_depth);
        if let (Some(value), true) = (depth, depth != is || self.is_unsure(id)) {
            let knob = Knob::MaxQueueDepth { device: id, value };
            match self.reach(id) {
                _ if is.is_some_and(|is| value < is) => self.try_add(knob, when),
                Some(reach) if value <= reach => self.try_add(knob, when),
                Some(reach) if self.is_driven(id) => {
                    let why = self.why_no_deeper(id, value, reach);
                    self.refuse(&knob, why);
                }
                _ if self.host.device(id).is_some_and(|device| device.is_endpoint) => {
                    self.refuse(&knob, format!("it {ENDPOINT}"));
                }
                _ if !self.host.device(id).is_some_and(|device| device.is_nmp) => self.refuse(
                    &knob,
                    "HPP or another plug-in has its paths, and nothing tells what their adapters give".into(),
                ),
                _ => match &self.host.unknown_drivers[..] {
                    [] => self.refuse(
                        &knob,
                        "nothing tells which driver it is behind (`storage core adapter list`, `storage \
                         nmp device list`)"
                            .into(),
                    ),
                    unknown => {
                        let why = format!("driver {} is not known, and what it gives", unknown.join(", "));
                        self.refuse(&knob, why);
                    }
                },
            }
        }
        if let Some(value) = dsnro {
            self.dsnro_at_last(id, value, when);
        }
    }

    fn dsnro_at_last(&mut self, id: DeviceId, value: u32, when: When) {
        let knob = Knob::SchedNumReqOutstanding { device: id, value };
        if self.after.is_set_to(&knob) == Some(knob) || !self.is_taken(&knob) {
            return;
        }
        let is = self.after.device(id).and_then(|device| device.max_depth);
        let refuses = self.host.version().refuses_dsnro_above_depth();
        match is {
            Some(is) if refuses && value > is => {
                let reach = self.reach(id);
                if self.target.is_none() || reach.is_none_or(|reach| value > reach) {
                    let sets = match self.host.device(id) {
                        Some(device) if self.host.follows_pesnro(device) => format!(
                            "{} sets DSNRO of a protocol endpoint",
                            Advanced::VvolPesnro.info().path
                        ),
                        Some(device) if device.is_endpoint && device.module.is_none() => {
                            format!("it {ENDPOINT}")
                        }
                        _ if reach.is_some_and(|reach| value <= reach) => {
                            format!("set that to {value} (`-m`) as well")
                        }
                        _ => "set the depth of its driver as well".to_owned(),
                    };
                    self.refuse(&knob, format!("its Device Max Queue Depth is {is}; {sets}"));
                    return;
                }
                // It was lowered after DSNRO had been set.
                for value in [value, is] {
                    self.try_add(Knob::MaxQueueDepth { device: id, value }, when);
                    self.try_add(knob, when);
                }
            }
            _ => self.try_add(knob, when),
        }
    }

    /// The depth that its driver gives a device, or at least, where a capture alone tells that; where nothing
    /// tells the driver, on the way back what it had before.
    fn reach(&self, id: DeviceId) -> Option<u32> {
        let device = self.after.device(id)?;
        let captured = device.is_captured.then_some(device.reach);
        let had = || self.target?.device(id)?.max_depth;
        let gives = device.module.and_then(|module| self.after.drivers[module].in_force);
        gives.or(captured).or_else(had)
    }

    /// Why a driver does not give a device what is wanted of that.
    fn why_no_deeper(&self, id: DeviceId, value: u32, reach: u32) -> String {
        let module = self.after.device(id).and_then(|device| device.module);
        let module = module.map(|module| &self.after.drivers[module]);
        let set =
            module.and_then(|module| module.depth).filter(|set| value <= *set && *set > reach);
        let is_free = module.is_some_and(|module| self.host.takes(module, value));
        let gives = format!("its driver gives {reach} at most");
        match set {
            Some(set) => format!(
                "{gives} as far as devices show, and is set to {set}: with --set of that as well the line follows a \
                 reboot; where its devices were lowered, it is taken without"
            ),
            None if self.aim == Aim::Alike && is_free => {
                format!(
                    "{gives}, and more would set it apart from that of other hosts; set the depth of all of them"
                )
            }
            None => format!("{gives}; set the depth of that as well"),
        }
    }

    fn is_unsure(&self, id: DeviceId) -> bool {
        self.after.device(id).is_some_and(|device| self.after.is_unsure(device))
    }

    /// Whether a knob is turned so already, for sure.
    fn is_so(&self, knob: &Knob) -> bool {
        let is_unsure =
            |device| matches!(knob, Knob::MaxQueueDepth { .. }) && self.is_unsure(device);
        self.after.is_set_to(knob) == Some(*knob) && !device_of(knob).is_some_and(is_unsure)
    }

    fn is_driven(&self, id: DeviceId) -> bool {
        self.after.device(id).is_some_and(|device| device.module.is_some())
    }

    fn wanted_of(&self, id: DeviceId) -> (Option<u32>, Option<u32>) {
        let mut wanted = (None, None);
        for knob in self.wanted {
            match *knob {
                Knob::MaxQueueDepth { device, value } if device == id => wanted.0 = Some(value),
                Knob::SchedNumReqOutstanding { device, value } if device == id => {
                    wanted.1 = Some(value);
                }
                _ => {}
            }
        }
        wanted
    }

    /// Whether a host of its version takes it, and its array with it; if not, that is told.
    fn is_taken(&mut self, knob: &Knob) -> bool {
        if let Knob::PathPolicy { device, policy: PathPolicy::Fixed } = *knob
            && self.host.device(device).is_some_and(|device| device.is_active_passive)
        {
            let why = "one controller of its array at a time has it (SATP), and by Fixed hosts take it from each other";
            self.refuse(knob, why.into());
            return false;
        }
        if let Knob::PathPolicy { device, .. } = *knob
            && self.host.device(device).is_some_and(|device| !device.is_nmp)
        {
            let why = "NMP does not have its paths (Multipath Plugin), and its lines are not for it; what HPP sets by \
                       `storage hpp device set` is not read";
            self.refuse(knob, why.into());
            return false;
        }
        if let Knob::PathPolicy { policy: PathPolicy::Latency { .. }, .. } = *knob
            && self.host.forbids_latency
        {
            let why = format!(
                "its {ENABLE_PSP_LATENCY} is 0, as it is in 6.7 before U1: set it to 1 first (`esxcli system settings \
                 advanced set -o {ENABLE_PSP_LATENCY} -i 1`), and look again"
            );
            self.refuse(knob, why);
            return false;
        }
        match knob.check(self.host.version()) {
            Ok(()) => true,
            Err(refusal) => {
                self.refuse(knob, refusal.to_string());
                false
            }
        }
    }

    fn try_add(&mut self, knob: Knob, when: When) {
        if !self.is_so(&knob) && self.is_taken(&knob) {
            self.add(knob, when);
        }
    }

    fn add(&mut self, knob: Knob, when: When) {
        if self.is_so(&knob) {
            return;
        }
        let was = self.was(&knob);
        let steps = self.named(&knob, was.as_ref());
        let preferred = self.preferred(&knob);
        let step = |setting| Step { setting, was, preferred: preferred.clone() };
        let steps = steps.into_iter().map(step);
        match when {
            When::Now => self.plan.now.extend(steps),
            When::Before => {
                self.plan.reboots = true;
                self.plan.before_reboot.extend(steps);
            }
            When::After => self.plan.after_reboot.extend(steps),
        }
        self.after.set(&knob);
    }

    /// The line of the path that Fixed is to prefer again, on the way back to it.
    fn preferred(&self, knob: &Knob) -> Option<[String; 2]> {
        let Knob::PathPolicy { device, policy: PathPolicy::Fixed } = *knob else { return None };
        let path = self.target?.device(device)?.preferred.as_ref()?;
        Some(preferred_path(self.fleet.name_of(device), path))
    }

    /// What it was set to; a driver of which no parameter is told gave what its devices had.
    fn was(&self, knob: &Knob) -> Option<Knob> {
        let in_force = || match *knob {
            Knob::ModuleDepth { driver, .. } => {
                let place = self.host.drivers.iter().position(|module| module.driver == driver)?;
                let value = self.host.drivers[place].in_force?;
                Some(Knob::ModuleDepth { driver, value })
            }
            _ => None,
        };
        self.host.is_set_to(knob).or_else(in_force)
    }

    /// A knob as lines name it; a path policy may take two: the plug-in, and what it goes by.
    fn named(&self, knob: &Knob, was: Option<&Knob>) -> Vec<Setting> {
        let name = |device: DeviceId| self.fleet.name_of(device).to_owned();
        vec![match *knob {
            Knob::SchedNumReqOutstanding { device, value } => {
                Setting::SchedNumReqOutstanding { device: name(device), value }
            }
            Knob::MaxQueueDepth { device, value } => {
                Setting::MaxQueueDepth { device: name(device), value }
            }
            Knob::QueueFull { device, sample_size, threshold } => {
                Setting::QueueFull { device: name(device), sample_size, threshold }
            }
            Knob::Advanced { option, value } => Setting::Advanced { option, value: Some(value) },
            Knob::ModuleDepth { driver, value } => {
                let others = self.host.module(driver).map(|module| module.others.clone());
                let driver = Module { driver, others: others.unwrap_or_default() };
                Setting::ModuleDepth { driver, value }
            }
            Knob::PathPolicy { device, policy } => {
                let before = match was {
                    Some(Knob::PathPolicy { policy, .. }) => Some(policy.plug_in()),
                    _ => None,
                };
                return policy_lines(before, policy)
                    .into_iter()
                    .map(|policy| Setting::PathPolicy { device: name(device), policy })
                    .collect();
            }
            _ => return Vec::new(),
        }]
    }

    fn refuse(&mut self, knob: &Knob, why: String) {
        let setting = self.named(knob, None).into_iter().last();
        let line = setting.map(|setting| setting.to_string()).unwrap_or_default();
        if !self.refused.iter().any(|known| known.line == line) {
            self.refused.push(Refused { line, why, device: device_of(knob) });
        }
    }
}

/// Of one that is not as deep as its driver lets LUNs be.
const ENDPOINT: &str = "is a protocol endpoint of vVols, and nothing tells how deep it may be";

/// When a line is typed.
#[derive(Clone, Copy)]
enum When {
    Now,
    Before,
    After,
}

fn device_of(knob: &Knob) -> Option<DeviceId> {
    match knob.target() {
        knobs::Target::Device(device) => Some(device),
        _ => None,
    }
}

/// How a policy is set where paths are chosen by a plug-in.
fn policy_lines(before: Option<&str>, policy: PathPolicy) -> Vec<PolicyChange> {
    let plug_in = PolicyChange::plug_in(policy.plug_in());
    let starts = plug_in.map(PolicyChange::policy);
    let change = plug_in.filter(|_| before != Some(policy.plug_in()));
    let goes_by = PolicyChange::RoundRobin(policy);
    let is_more = change.is_none() || starts != Some(policy);
    change.into_iter().chain(is_more.then_some(goes_by)).collect()
}
