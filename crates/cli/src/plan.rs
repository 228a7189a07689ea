//! VMs per datastore: the closed formulas [YB-VMFS], and what hosts of so many VMs wait when they are
//! simulated. The formulas share out the array's depth: so much for a host, and of that so much for a VM.

use counters::MILLISECOND;
use diagnose::Threshold;
use knobs::{DSNRO, Driver, Effect, MAX_CMDS, Setting, Transport};
use serde_json::{Value, json};
use sim::Source;

use crate::{
    Result,
    report::Report,
    table::Table,
    text::{counted, millis, rate, whole},
};

/// VMs of a simulation, at most: of more hosts than have so many, some are simulated, for they are equal.
const VMS_MAX: u32 = 2048;
/// Commands of a simulation.
const COMMANDS: u64 = 100_000;
/// The device, in the lines that are printed.
const DEVICE: &str = "DEVICE";

/// What is asked.
pub(crate) struct Asked {
    pub(crate) hosts: u32,
    /// Commands that a VM has active, a.
    pub(crate) active: f64,
    /// Commands that the array takes for the LUN, n.
    pub(crate) lun_depth: Option<u32>,
    /// Commands that a target port takes, and the LUNs behind it.
    pub(crate) port: Option<(u32, u32)>,
    pub(crate) driver: Option<&'static Driver>,
    pub(crate) vms: Option<u32>,
    pub(crate) davg_ns: u64,
    pub(crate) seed: u64,
}

/// What the formulas say.
pub(crate) struct Plan {
    /// The depth of a host, d.
    depth: u32,
    /// What bounds it.
    bound: String,
    /// The depth that hosts have which nobody has set, with so many VMs on the device.
    default: u32,
    /// Whether VMs of a host share the device: with one on it DSNRO never holds.
    is_shared: bool,
    /// What gives a host its depth.
    settings: Vec<Setting>,
}

impl Plan {
    pub(crate) fn of(asked: &Asked) -> Result<Self> {
        let driver = asked.driver.unwrap_or(Driver::ANY);
        let hosts = asked.hosts;
        let of_lun =
            asked.lun_depth.map(|lun| (lun / hosts, format!("{lun} of the LUN / {hosts} hosts")));
        let of_port = asked.port.map(|(port, luns)| {
            let part = u64::from(port) / (u64::from(luns) * u64::from(hosts));
            (part as u32, format!("{port} of the port / {luns} LUNs / {hosts} hosts"))
        });
        let of_array = of_lun.into_iter().chain(of_port).min_by_key(|(depth, _)| *depth);
        let given = || (driver.depth_default, format!("what {} gives a device", driver.module));
        let untouched = || (DSNRO.default, "DSNRO, as it is where nobody has set it".to_owned());
        let wanted = of_array.unwrap_or_else(|| asked.driver.map_or_else(untouched, |_| given()));
        let most = [
            (driver.depth_max, format!("the most that {} gives a device", driver.module)),
            (DSNRO.max, "the most that DSNRO leaves to VMs that share a device".to_owned()),
        ];
        let of_nexus = is_iscsi(driver).then(|| {
            let what = "of an iSCSI session, which no line sets";
            (MAX_CMDS.default, format!("{} {what}", MAX_CMDS.name))
        });
        let (depth, bound) = most
            .into_iter()
            .chain(of_nexus)
            .fold(wanted, |best, most| if most.0 < best.0 { most } else { best });
        if depth == 0 {
            return Err(format!("a host's part is less than one command: {bound}").into());
        }
        let is_shared = fits(depth, asked) != 1;
        let of_dsnro = if is_shared { DSNRO.default } else { u32::MAX };
        let default = driver.depth_default.min(of_dsnro);
        let settings = settings(driver, DEVICE, depth, is_shared);
        Ok(Self { depth, bound, default, is_shared, settings })
    }

    /// VMs that fit on a host, m.
    fn on_host(&self, asked: &Asked) -> u32 {
        fits(self.depth, asked)
    }

    /// Of the lines: without `--driver` that of no driver.
    fn steps<'a>(&'a self, asked: &Asked) -> impl Iterator<Item = &'a Setting> {
        let is_known = asked.driver.is_some();
        let of_driver = |set: &Setting| matches!(set, Setting::ModuleDepth { .. });
        self.settings.iter().filter(move |set| is_known || !of_driver(set))
    }
}

/// Whether commands go by a nexus with a window: what is above that waits unseen, as DAVG.
fn is_iscsi(driver: &Driver) -> bool {
    driver.transport == Transport::Iscsi
}

/// VMs that fit into a depth.
fn fits(depth: u32, asked: &Asked) -> u32 {
    (f64::from(depth) / asked.active) as u32
}

/// What gives VMs on hosts with that driver a depth, be they several that share a device, and a VM alone no more.
fn settings(driver: &'static Driver, device: &str, depth: u32, is_shared: bool) -> Vec<Setting> {
    let device = || device.to_owned();
    let module = Setting::ModuleDepth { driver: driver.into(), value: depth };
    let dsnro = Setting::SchedNumReqOutstanding { device: device(), value: depth };
    let most = Setting::MaxQueueDepth { device: device(), value: depth };
    let is_needed = [
        (depth > driver.depth_default, module),
        (is_shared && depth != DSNRO.default, dsnro),
        (depth < driver.depth_default, most),
    ];
    is_needed.into_iter().filter(|(is_needed, _)| *is_needed).map(|(_, set)| set).collect()
}

/// What VMs wait.
struct Waits {
    kavg_ms: f64,
    gavg_ms: f64,
    iops: f64,
}

/// Hosts of so many VMs.
struct Point {
    vms: u32,
    /// Each VM always has as many commands active.
    steady: Waits,
    /// Commands come at random; `None` where more come than go.
    random: Option<Waits>,
}

/// The formulas, simulated.
pub(crate) struct Checked {
    points: Vec<Point>,
    /// The same VMs with the depth that nobody has set, where it is another.
    default: Option<Waits>,
    /// VMs of a host whose commands come at random, before their KAVG counts.
    at_random: u32,
    counts_ms: f64,
}

impl Checked {
    pub(crate) fn of(asked: &Asked, plan: &Plan) -> Result<Self> {
        let on_host = plan.on_host(asked);
        let simulate = |vms, depth, is_random| {
            Simulated { asked, vms, depth, is_shared: plan.is_shared, is_random }.run()
        };
        let at_random = |vms: u32| {
            let is_stable = f64::from(vms) * asked.active < f64::from(plan.depth);
            is_stable.then(|| simulate(vms, plan.depth, true)).transpose()
        };
        let mut counts: Vec<u32> =
            [on_host / 2, on_host * 3 / 4, on_host * 9 / 10, on_host, on_host + 1, 2 * on_host]
                .into();
        counts.retain(|vms| *vms > 0);
        counts.dedup();
        let points = counts.into_iter().map(|vms| {
            let steady = simulate(vms, plan.depth, false)?;
            Ok(Point { vms, steady, random: at_random(vms)? })
        });
        let points = points.collect::<Result<Vec<_>>>()?;
        let other = (plan.default != plan.depth && on_host > 0).then_some(plan.default);
        let default = other.map(|depth| simulate(on_host, depth, false)).transpose()?;
        let counts_ms = Threshold::KavgMs.beside(asked.davg_ns as f64 / MILLISECOND as f64);
        // More VMs wait longer.
        let (mut fits, mut waits) = (0, on_host + 1);
        while waits - fits > 1 {
            let vms = fits.midpoint(waits);
            let is_short = at_random(vms)?.is_some_and(|waits| waits.kavg_ms < counts_ms);
            *(if is_short { &mut fits } else { &mut waits }) = vms;
        }
        Ok(Self { points, default, at_random: fits, counts_ms })
    }
}

/// A simulation of hosts.
struct Simulated<'a> {
    asked: &'a Asked,
    /// VMs of each host.
    vms: u32,
    depth: u32,
    is_shared: bool,
    is_random: bool,
}

impl Simulated<'_> {
    const DEVICE: &'static str = "naa.600000000000000000000000000000aa";

    fn run(&self) -> Result<Waits> {
        let driver = self.asked.driver.unwrap_or(Driver::ANY);
        let sets = settings(driver, Self::DEVICE, self.depth, self.is_shared);
        let source = Source {
            file: "plan.toml".into(),
            text: self.text(driver),
            includes: Vec::new(),
            settings: sets.iter().map(Setting::to_string).collect(),
        };
        let scenario = source.scenario().map_err(|error| error.to_string())?;
        let outcome = sim::run(&scenario, 1, &());
        let report = Report::new(scenario, outcome);
        let stack = &report.stacks[0];
        let (kavg_ms, davg_ms) = (stack.kernel_ms(), stack.device_ms());
        let kavg_ms = kavg_ms.unwrap_or_default();
        let iops = stack.iops * f64::from(self.asked.hosts) / f64::from(self.hosts());
        Ok(Waits { kavg_ms, gavg_ms: kavg_ms + davg_ms.unwrap_or_default(), iops })
    }

    /// Hosts that are simulated.
    fn hosts(&self) -> u32 {
        self.asked.hosts.min((VMS_MAX / self.vms).max(1))
    }

    /// The scenario: a LUN that takes the hosts' commands side by side, and VMs that are all alike. A thread of
    /// a VM pauses where it has a part of a command active on average.
    fn text(&self, driver: &Driver) -> String {
        let Self { asked, vms, depth, is_random, .. } = self;
        let hosts = self.hosts();
        let (taken, service) = ((hosts * depth).max(2), asked.davg_ns);
        let active = f64::from(*vms) * asked.active;
        let at_once = u64::from(hosts) * (active.ceil() as u64).min(u64::from(*depth));
        let span = COMMANDS * service / at_once.max(1);
        let warmup = span / 4;
        let threads = asked.active.ceil();
        let think = ((threads / asked.active - 1.0) * service as f64) as u64;
        let rate = asked.active / service as f64 * 1e9;
        let nexus = if is_iscsi(driver) { "iscsi = {}\n" } else { "" };
        let load = match is_random {
            false => format!("threads = {threads}\nthink = \"{think}ns\""),
            true => format!("arrival = \"poisson\"\nrate = {rate}"),
        };
        format!(
            "title = \"VMs per datastore\"\nseed = {seed}\nduration = \"{duration}ns\"\nwarmup = \"{warmup}ns\"\n\
             sample = \"{span}ns\"\n\
             [array.a]\ncurve = [[1, \"{service}ns\"], [{taken}, \"{service}ns\"]]\n\
             lun_queue_limit = {taken}\n\
             [host.esx]\ncount = {hosts}\n[host.esx.adapter.vmhba1]\ndriver = \"{module}\"\n{nexus}\
             [datastore.shared]\ndevice = \"{device}\"\n\
             [vm.vm]\ncount = {all}\nguest = \"linux\"\n[vm.vm.disk.\"scsi0:1\"]\ndatastore = \"shared\"\n\
             [vm.vm.workload]\n{load}\n",
            seed = asked.seed,
            duration = span + warmup,
            module = driver.module,
            device = Self::DEVICE,
            all = hosts * vms,
        )
    }
}

impl Checked {
    /// The plan as text.
    pub(crate) fn render(&self, asked: &Asked, plan: &Plan) -> String {
        let (on_host, hosts) = (plan.on_host(asked), counted(asked.hosts as usize, "host"));
        let mut out = match on_host {
            0 => format!(
                "Not one VM: it has {} commands active, and a host takes {}.\n",
                asked.active, plan.depth
            ),
            _ => format!(
                "{} on the datastore, {} on each of {hosts}, with a depth of {}.\n",
                counted((on_host * asked.hosts) as usize, "VM"),
                whole(on_host.into()),
                plan.depth
            ),
        };
        if let (Some(vms), 1..) = (asked.vms, on_host) {
            let stores = vms.div_ceil(on_host * asked.hosts);
            out += &format!(
                "{} need {}.\n",
                counted(vms as usize, "VM"),
                counted(stores as usize, "such datastore")
            );
        }
        let formulas = formulas(asked, plan);
        out += &format!("\n{}{}", formulas.render(), self.as_it_is(asked, plan));
        let mut lines = plan.steps(asked).peekable();
        if lines.peek().is_some() {
            out += "\nOn each host:\n";
        }
        for line in lines {
            let reboot =
                if line.effect() == Effect::HostReboot { "   (acts after a reboot)" } else { "" };
            out += &format!("  esxcli {line}{reboot}\n");
        }
        if plan.settings.len() > plan.steps(asked).count() {
            out += &format!(
                "  the HBA's driver has to give {} (--driver MODULE prints its line)\n",
                plan.depth
            );
        }
        out += &format!(
            "\nSimulated, with {} ms at the array for each command:\n{}",
            millis(asked.davg_ns as f64 / MILLISECOND as f64),
            self.table().render()
        );
        out + &self.at_random(on_host)
    }

    /// What is without the lines.
    fn as_it_is(&self, asked: &Asked, plan: &Plan) -> String {
        let Some(waits) = &self.default else { return String::new() };
        let (default, fit) = (plan.default, fits(plan.default, asked));
        let whose = if plan.is_shared { "VMs that share the device" } else { "a VM alone on it" };
        let then = match default > plan.depth {
            true => format!(
                "{} hosts may send {}, more than their part",
                asked.hosts,
                whole(f64::from(default) * f64::from(asked.hosts))
            ),
            false => format!(
                "{} fit on a host, and of {} each command waits {} ms (KAVG)",
                whole(fit.into()),
                whole(plan.on_host(asked).into()),
                millis(waits.kavg_ms)
            ),
        };
        format!("\nWhere nobody has set anything a host takes {default} of {whose}:\n{then}.\n")
    }

    fn table(&self) -> Table {
        let head = ["VMs on a host", "IOPS", "KAVG", "GAVG", "KAVG at random", "GAVG at random"];
        let mut table = Table::new(&head);
        for point in &self.points {
            let (steady, without_end) = (&point.steady, || "without end".to_owned());
            let random = point.random.as_ref();
            table.row(vec![
                whole(point.vms.into()),
                rate(steady.iops),
                millis(steady.kavg_ms),
                millis(steady.gavg_ms),
                random.map_or_else(without_end, |waits| millis(waits.kavg_ms)),
                random.map_or_else(without_end, |waits| millis(waits.gavg_ms)),
            ]);
        }
        table
    }

    /// What the formulas leave out.
    fn at_random(&self, on_host: u32) -> String {
        if on_host == 0 {
            return String::new();
        }
        format!(
            "\nThe formulas count the mean. Where each VM always has as many active, {} fit; where commands come at random,\n\
             KAVG is below {} ms, from where on it counts, with up to {} on a host.\n",
            whole(on_host.into()),
            self.counts_ms,
            counted(self.at_random as usize, "VM"),
        )
    }

    /// The plan as `docs/reference/json.md` describes it.
    pub(crate) fn to_json(&self, asked: &Asked, plan: &Plan) -> Value {
        let waits = |waits: &Waits| json!({ "kavg_ms": waits.kavg_ms, "gavg_ms": waits.gavg_ms, "iops": waits.iops });
        let points = self.points.iter().map(|point| {
            let random = point.random.as_ref().map(waits);
            json!({ "vms_on_host": point.vms, "steady": waits(&point.steady), "random": random })
        });
        let on_host = plan.on_host(asked);
        let all = on_host * asked.hosts;
        json!({
            "version": 1,
            "hosts": asked.hosts,
            "active": asked.active,
            "depth": plan.depth,
            "bound": plan.bound,
            "depth_default": plan.default,
            "vms_on_host": on_host,
            "vms": all,
            "datastores": asked.vms.filter(|_| all > 0).map(|vms| vms.div_ceil(all)),
            "commands": plan.steps(asked).map(|line| format!("esxcli {line}")).collect::<Vec<_>>(),
            "simulated": points.collect::<Vec<_>>(),
            "default": self.default.as_ref().map(waits),
            "kavg_counts_ms": self.counts_ms,
            "vms_on_host_at_random": self.at_random,
        })
    }
}

/// The formulas with their numbers.
fn formulas(asked: &Asked, plan: &Plan) -> Table {
    let mut table = Table::new(&["", "", "", "[YB-VMFS]"]).left(&[0, 2, 3]);
    let mut row = |name: &str, value: String, what: &str, how: String| {
        table.row(vec![name.into(), value, what.into(), how]);
    };
    if let Some(lun) = asked.lun_depth {
        row(
            "n",
            whole(lun.into()),
            "commands that the array takes for the LUN",
            "--lun-depth".into(),
        );
    }
    let on_host = plan.on_host(asked);
    row("d", whole(plan.depth.into()), "commands for a host", plan.bound.clone());
    row(
        "a",
        asked.active.to_string(),
        "commands that a VM has active on average",
        "--active".into(),
    );
    row("m", whole(on_host.into()), "VMs on a host", "d / a".into());
    row(
        "mv",
        whole((on_host * asked.hosts).into()),
        "VMs on the datastore",
        format!("m x {} hosts", asked.hosts),
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(hosts: u32, active: f64, lun_depth: u32) -> Asked {
        let lun_depth = Some(lun_depth);
        let driver = Driver::from_module("nfnic");
        Asked {
            hosts,
            active,
            lun_depth,
            port: None,
            driver,
            vms: None,
            davg_ns: MILLISECOND,
            seed: 1,
        }
    }

    /// DSNRO never holds a VM alone on the device: 200 commands in the driver's 64 slots wait for 200 / 64 - 1 services.
    #[test]
    fn a_vm_alone_on_a_host_is_held_by_the_driver_alone() {
        let driver = Driver::from_module("qlnativefc");
        let asked = Asked { driver, ..asked(1, 200.0, 254) };
        let plan = Plan::of(&asked).unwrap();
        assert_eq!((plan.on_host(&asked), plan.default), (1, 64));
        let lines: Vec<_> = plan.steps(&asked).map(ToString::to_string).collect();
        assert_eq!(lines, ["system module parameters set -m qlnativefc -p ql2xmaxqdepth=254"]);
        let waits = Checked::of(&asked, &plan).unwrap().default.unwrap();
        assert!((waits.kavg_ms / 2.125 - 1.0).abs() < 0.01, "{}", waits.kavg_ms);
    }

    /// The table of the article: n, a and d give m and mv.
    #[test]
    fn the_rows_of_the_article() {
        let rows = [
            (256, 4.0, 64, 16, 64),
            (256, 4.0, 32, 8, 64),
            (1024, 4.0, 64, 16, 256),
            (1024, 1.0, 64, 64, 1024),
        ];
        for (lun, active, depth, on_host, all) in rows {
            let asked = asked(lun / depth, active, lun);
            let plan = Plan::of(&asked).unwrap();
            let m = plan.on_host(&asked);
            assert_eq!((plan.depth, m, m * asked.hosts), (depth, on_host, all), "{lun} {active}");
        }
    }

    /// MaxCmds of an iSCSI session is less than what the driver may give, and what is sent beyond it waits unseen: 256 at a
    /// time, of 1 ms each, take 2.
    #[test]
    fn a_nexus_of_software_iscsi_takes_no_more_than_max_cmds() {
        let driver = Driver::from_module("iscsi_vmk");
        let asked = Asked { driver, ..asked(2, 4.0, 512) };
        let plan = Plan::of(&asked).unwrap();
        assert_eq!((plan.depth, plan.on_host(&asked)), (128, 32));
        assert!(plan.bound.starts_with("MaxCmds of an iSCSI session"), "{}", plan.bound);
        for (vms, depth, ms) in [(32, 128, 1.0), (64, 256, 2.0)] {
            let waits = Simulated { asked: &asked, vms, depth, is_shared: true, is_random: false }
                .run()
                .unwrap();
            let davg_ms = waits.gavg_ms - waits.kavg_ms;
            assert!((davg_ms / ms - 1.0).abs() < 0.01, "{vms}: {davg_ms}");
        }
        let narrow = Plan::of(&Asked { lun_depth: Some(128), ..asked }).unwrap();
        assert_eq!(narrow.depth, 64);
    }

    /// Where VMs always have as many active, what does not fit waits: I/Os of all take as much longer.
    #[test]
    fn what_does_not_fit_waits() {
        for (vms, ms) in [(8, 1.0), (9, 1.125), (16, 2.0), (24, 3.0)] {
            let asked = asked(2, 4.0, 64);
            let waits =
                Simulated { asked: &asked, vms, depth: 32, is_shared: true, is_random: false }
                    .run()
                    .unwrap();
            assert!((waits.gavg_ms / ms - 1.0).abs() < 0.01, "{vms}: {}", waits.gavg_ms);
            assert!(
                (waits.gavg_ms - waits.kavg_ms - 1.0).abs() < 0.001,
                "{vms}: {}",
                waits.kavg_ms
            );
        }
    }

    /// Commands that come at random to one slot wait as Pollaczek and Khinchine say: rho / (2 (1 - rho)) times
    /// their service, on the mean of seeds.
    #[test]
    fn what_comes_at_random_waits_as_in_the_closed_form() {
        for (active, ms) in [(0.5, 0.5), (0.75, 1.5)] {
            let wait = |seed| {
                let asked = Asked { seed, ..asked(2, active, 2) };
                Simulated { asked: &asked, vms: 1, depth: 1, is_shared: true, is_random: true }
                    .run()
                    .unwrap()
                    .kavg_ms
            };
            let mean = (1..=20).map(wait).sum::<f64>() / 20.0;
            assert!((mean / ms - 1.0).abs() < 0.03, "{active}: {mean} of {ms}");
        }
    }
}
