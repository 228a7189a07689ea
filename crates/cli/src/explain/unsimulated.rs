//! What ESXi has and kavg does not set: options and drivers that it does not simulate, and options that it
//! leaves at their defaults.

use counters::MILLISECOND;
use knobs::{
    DepthOf, ENABLE_PSP_LATENCY, Effect, FixedOption, NFS_OUTSTANDING, OtherDriver, OtherOption,
    Place, RESERVE_HOLD_NS, RESERVE_TIME_MAX_MS, STALLED_QUEUE_MS, show_parameters,
};

use super::{
    Article, UNKNOWN,
    settings::{N, as_typed},
};

/// Every one.
pub(super) fn articles() -> Vec<Article> {
    let options = OtherOption::ALL.iter().map(option);
    let drivers = OtherDriver::ALL.iter().map(driver);
    options.chain(drivers).chain(kept()).collect()
}

/// What is called so, also without the group in front, as people say it.
fn names(name: &str) -> Vec<String> {
    let short = name.rsplit_once('.').map(|(_, short)| short);
    [name].into_iter().chain(short).map(str::to_owned).collect()
}

/// What a table has as a sentence; an empty place is nobody's knowledge.
fn known(text: &str) -> String {
    match text {
        "" => UNKNOWN.into(),
        _ if text.ends_with('.') => text.into(),
        _ => format!("{text}."),
    }
}

/// What is asked of an option beside what kavg does with it.
struct Asked<'t> {
    name: &'t str,
    place: Place,
    what: &'t str,
    when: &'t str,
    default: &'t str,
    range: &'t str,
    /// What stands for its value in the line that sets it.
    value: &'t str,
}

fn article(asked: &Asked<'_>, title: &str, in_kavg: String) -> Article {
    let Asked { name, place, what, when, default, range, value } = *asked;
    let in_force = match place {
        Place::Advanced => "not known: no source says it, and none that it takes a reboot.",
        Place::Kernel => Effect::HostReboot.text(),
    };
    Article {
        names: names(name),
        title: format!("{name} ({title})"),
        sections: vec![
            ("What it is", what.into()),
            ("When it acts", known(when)),
            ("Default", known(default)),
            ("Range", known(range)),
            ("Read it", as_typed(&place.show(name))),
            ("Set it", as_typed(&place.set(name, value))),
            ("In force", in_force.into()),
            ("In kavg", in_kavg),
            ("Leave alone", "Unless the array's vendor or VMware's support asks for it.".into()),
        ],
    }
}

fn option(option: &OtherOption) -> Article {
    let OtherOption { name, place, default, range, meaning: what, when } = *option;
    let asked = Asked { name, place, what, when, default, range, value: "N" };
    let in_kavg =
        "kavg does not simulate it: no line sets it there, and no rule of the diagnosis knows it.";
    article(&asked, "kavg does not simulate it", in_kavg.into())
}

fn driver(driver: &OtherDriver) -> Article {
    let (module, parameter) = (driver.modules[0], driver.parameter);
    let called = parameter.map_or_else(|| driver.modules.to_vec(), |parameter| vec![parameter]);
    let of_its_own = knobs::Driver::from_module(module).is_none();
    let modules = driver.modules.iter().copied().filter(|_| of_its_own);
    let what = match (parameter, driver.of) {
        (None, _) => format!("The driver of {}.", driver.what),
        (Some(parameter), DepthOf::Device) => format!(
            "{parameter}, a parameter of {module}, the driver of {}: the depth of each device.",
            driver.what
        ),
        (Some(parameter), DepthOf::Adapter) => format!(
            "{parameter}, a parameter of {module}, the driver of {}: the depth of the whole adapter (AQLEN); another \
            is that of a device (kavg explain {module}).",
            driver.what
        ),
    };
    let device = "Always: a device has no more outstanding. While VMs compete DSNRO lowers it.";
    let adapter = "When the devices of an adapter have as many outstanding together.";
    let (when, default) = match (parameter, driver.of) {
        (None, _) => (
            format!("{device} The adapter's: {}{}", adapter[..1].to_lowercase(), &adapter[1..]),
            format!(
                "A device: {} The adapter as a whole (AQLEN): {}",
                known(driver.device),
                known(driver.adapter)
            ),
        ),
        (Some(_), DepthOf::Device) => (device.to_owned(), known(driver.device)),
        (Some(_), DepthOf::Adapter) => (adapter.to_owned(), known(driver.adapter)),
    };
    let reboot = Effect::HostReboot.text();
    let (set, in_force) = match driver.esxcli(N) {
        Some(line) => (
            format!(
                "{}\nThe line replaces all parameters of the module: repeat those that are set.",
                as_typed(&line)
            ),
            reboot.into(),
        ),
        None => (driver.set.to_owned(), format!("{reboot}, where a parameter sets it [S0]")),
    };
    Article {
        names: modules.chain(parameter).map(str::to_owned).collect(),
        title: format!("{}: {} (kavg does not simulate it)", called.join(", "), driver.what),
        sections: vec![
            ("What it is", what),
            ("When it acts", when),
            ("Default", default),
            ("Range", known(driver.range)),
            ("Read it", as_typed(&format!(
                "{}\n$ esxcli storage core adapter list\nThe second shows which driver an adapter has; DQLEN \
                and AQLEN in esxtop (screens u and d) are the depths in force.",
                show_parameters(module)
            ))),
            ("Set it", set),
            ("In force", in_force),
            ("In kavg", "kavg does not simulate it, and proposes no line for it. In a scenario take a driver of \
                kavg explain drivers with the same depth.".into()),
            ("Leave alone", "The array's ports see the sum of all devices and hosts. Raise a depth only where its \
                queue is full and DAVG is low [S0].".into()),
        ],
    }
}

/// An option that a run keeps to, at its default.
fn kept_to(asked: &Asked<'_>, in_kavg: &str) -> Article {
    let in_kavg = format!("{in_kavg} kavg does not simulate another value.");
    article(asked, "kavg keeps to its default", in_kavg)
}

/// One with a number, in the options of a host.
fn kept_number(option: &FixedOption, what: &str, when: &str, in_kavg: &str) -> Article {
    let range = format!("{} to {}", option.range.start(), option.range.end());
    let default = option.default.to_string();
    let (name, place) = (option.name, Place::Advanced);
    kept_to(
        &Asked { name, place, what, when, default: &default, range: &range, value: "N" },
        in_kavg,
    )
}

fn kept() -> [Article; 6] {
    [
        kept_number(
            &NFS_OUTSTANDING,
            "I/Os outstanding on all NFS mounts of the host together; from 7.0 on [LAMW].",
            "When all mounts together have as many outstanding.",
            "What is outstanding on NFS is no more than that.",
        ),
        kept_number(
            &STALLED_QUEUE_MS,
            "Milliseconds until a device's queue that got TASK SET FULL with nothing outstanding is started again \
             [LAMW].",
            "After TASK SET FULL with nothing outstanding.",
            "A queue that is refused so waits for that.",
        ),
        kept_number(
            &RESERVE_TIME_MAX_MS,
            "Milliseconds for which a reservation of the system is held at most [LAMW].",
            "While the host holds a device by a SCSI reservation, as for VMFS without ATS.",
            "Reservations of metadata are no longer than that.",
        ),
        kept_to(
            &Asked {
                name: "Disk.DiskReservationThreshold",
                place: Place::Advanced,
                what: "Milliseconds in which a reservation that is held may be used again [LAMW].",
                when: "After a use of a SCSI reservation, until it is given back.",
                default: &(RESERVE_HOLD_NS / MILLISECOND).to_string(),
                range: "",
                value: "N",
            },
            "Reservations of metadata are held so.",
        ),
        kept_to(
            &Asked {
                name: &ENABLE_PSP_LATENCY[1..].replace('/', "."),
                place: Place::Advanced,
                what: "1 permits the latency policy of round robin; a device uses it only where somebody sets it \
                    [KB-371368].",
                when: "When somebody sets that policy for a device.",
                default: "0 in 6.7, 1 from 6.7 U1 to 8.0; 9.0 has it no more [LAMW]",
                range: "0 or 1",
                value: "N",
            },
            "The version decides whether the policy can be set (kavg explain 'path policy').",
        ),
        kept_to(
            &Asked {
                name: "VMkernel.Boot.isPerFileSchedModelActive",
                place: Place::Kernel,
                what: "With it each file of a VM has a scheduling queue on a device, on VMFS and NFS 3; without it, \
                    as before 6.0, a VM has one for all its disks there [PFS].",
                when: "Wherever a VM has several disks on a device.",
                default: "TRUE in every version from 6.0 on [LAMW]",
                range: "TRUE or FALSE",
                value: "FALSE",
            },
            "The version decides: from 6.0 on each disk has its own limit, before it a VM's disks share one \
             (kavg explain 'IOPS limit').",
        ),
    ]
}
