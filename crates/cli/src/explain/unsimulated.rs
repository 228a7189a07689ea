//! What ESXi has and kavg does not set: options and drivers that it does not simulate, and options that it
//! leaves at their defaults.

use counters::MILLISECOND;
use knobs::{
    ENABLE_PSP_LATENCY, FixedOption, NFS_OUTSTANDING, OtherDriver, OtherOption, Place,
    RESERVE_HOLD_NS, RESERVE_TIME_MAX_MS, STALLED_QUEUE_MS, show_option, show_parameters,
};

use super::{Article, settings::as_typed};

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

/// The line that shows an option.
fn shown(name: &str) -> String {
    as_typed(&show_option(&format!("/{}", name.replace('.', "/"))))
}

fn option(option: &OtherOption) -> Article {
    let told = |range: &str| {
        if range.is_empty() { "No source says it.".into() } else { format!("{range}.") }
    };
    let read = match option.place {
        Place::Advanced => shown(option.name),
        Place::Kernel => {
            "$ esxcli system settings kernel list\nWhat is set there acts from the next boot on."
                .into()
        }
    };
    Article {
        names: names(option.name),
        title: format!("{} (kavg does not simulate it)", option.name),
        sections: vec![
            ("What it is", option.meaning.into()),
            ("Default", format!("{}.", option.default)),
            ("Range", told(option.range)),
            ("Read it", read),
            ("In kavg", "kavg does not simulate it: no line sets it there, and no rule of the diagnosis knows \
            it.".into()),
            ("Leave alone", "Unless the array's vendor or VMware's support asks for it.".into()),
        ],
    }
}

fn driver(driver: &OtherDriver) -> Article {
    let (module, parameter) = (driver.modules[0], driver.parameter);
    let called = parameter.map_or_else(|| driver.modules.to_vec(), |parameter| vec![parameter]);
    let of_its_own = knobs::Driver::from_module(module).is_none();
    let modules = driver.modules.iter().copied().filter(|_| of_its_own);
    let what = match parameter {
        Some(parameter) => {
            format!("{parameter}, a parameter of {module}, the driver of {}.", driver.what)
        }
        None => format!("The driver of {}.", driver.what),
    };
    Article {
        names: modules.chain(parameter).map(str::to_owned).collect(),
        title: format!("{}: {} (kavg does not simulate it)", called.join(", "), driver.what),
        sections: vec![
            ("What it is", what),
            ("Depth", driver.depths.into()),
            ("Read it", as_typed(&format!(
                "{}\n$ esxcli storage core adapter list\nThe second shows which driver an adapter has; DQLEN \
                and AQLEN in esxtop (screens u and d) are the depths in force.",
                show_parameters(module)
            ))),
            ("In kavg", "kavg does not simulate it, and proposes no line for it. In a scenario take a driver of \
                kavg explain drivers with the same depth.".into()),
        ],
    }
}

/// An option that a run keeps to, at its default.
fn option_kept(name: &str, default: &str, range: &str, what: &str, in_kavg: &str) -> Article {
    Article {
        names: names(name),
        title: format!("{name} (kavg keeps to its default)"),
        sections: vec![
            ("What it is", what.into()),
            ("Default", default.into()),
            ("Range", range.into()),
            ("Read it", shown(name)),
            ("In kavg", format!("{in_kavg} kavg does not simulate another value.")),
        ],
    }
}

fn kept() -> [Article; 6] {
    let fixed = |option: &FixedOption, what: &str, in_kavg: &str| {
        let range = format!("{} to {}.", option.range.start(), option.range.end());
        option_kept(option.name, &format!("{}.", option.default), &range, what, in_kavg)
    };
    [
        fixed(
            &NFS_OUTSTANDING,
            "I/Os outstanding on all NFS mounts of the host together; from 7.0 on [LAMW].",
            "What is outstanding on NFS is no more than that.",
        ),
        fixed(
            &STALLED_QUEUE_MS,
            "Milliseconds until a device's queue that got TASK SET FULL with nothing outstanding is started again \
             [LAMW].",
            "A queue that is refused so waits for that.",
        ),
        fixed(
            &RESERVE_TIME_MAX_MS,
            "Milliseconds for which a reservation of the system is held at most [LAMW].",
            "Reservations of metadata are no longer than that.",
        ),
        option_kept(
            "Disk.DiskReservationThreshold",
            &format!("{}.", RESERVE_HOLD_NS / MILLISECOND),
            "No source says it.",
            "Milliseconds in which a reservation that is held may be used again [LAMW].",
            "Reservations of metadata are held so.",
        ),
        option_kept(
            &ENABLE_PSP_LATENCY[1..].replace('/', "."),
            "0 in 6.7, 1 from 6.7 U1 to 8.0; 9.0 has it no more [LAMW].",
            "0 or 1.",
            "1 permits the latency policy of round robin; a device uses it only where somebody sets it [KB-371368].",
            "The version decides whether the policy can be set (kavg explain 'path policy').",
        ),
        option_kept(
            "VMkernel.Boot.isPerFileSchedModelActive",
            "TRUE in every version from 6.0 on [LAMW].",
            "TRUE or FALSE, from the next boot on.",
            "With it each file of a VM has a scheduling queue on a device, on VMFS and NFS 3; without it, as before \
             6.0, a VM has one for all its disks there [PFS].",
            "The version decides: from 6.0 on each disk has its own limit, before it a VM's disks share one \
             (kavg explain 'IOPS limit').",
        ),
    ]
}
