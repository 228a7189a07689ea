//! A file that is read again while guests are at work: what changed in it, as far as that may change at
//! work, as knobs; what may not is refused by its name.

use counters::{DeviceId, VdiskId};
use engine::HostConfig;
use knobs::{Advanced, DSNRO, Knob, PVSCSI_COMMANDS_PER_PAGE};
use scenario::{Host, Scenario};

/// What changed from one reading of a file to the next: knobs, each with the place of its host.
///
/// # Errors
/// One line: what changed and cannot at work.
pub(crate) fn changes(was: &Scenario, new: &Scenario) -> Result<Vec<(usize, Knob)>, String> {
    let names = |scenario: &Scenario| -> Vec<String> {
        scenario.hosts.iter().map(|host| host.config.name.clone()).collect()
    };
    same_names("host", &names(was), &names(new))?;
    if was.arrays != new.arrays {
        return Err(refusal("arrays"));
    }
    let mut changes = Vec::new();
    for (place, (was, new)) in was.hosts.iter().zip(&new.hosts).enumerate() {
        same_parts(&was.config, &new.config)?;
        let knobs = knobs(was, new)?;
        let mut patched = was.clone();
        knobs.iter().for_each(|knob| patched.apply(*knob));
        check_rest(patched, new)?;
        changes.extend(knobs.into_iter().map(|knob| (place, knob)));
    }
    Ok(changes)
}

fn refusal(what: &str) -> String {
    format!("{what} cannot be changed at work: begin the daemon anew")
}

fn same_names(noun: &str, was: &[String], new: &[String]) -> Result<(), String> {
    let gone = was.iter().find(|name| !new.contains(name));
    let came = new.iter().find(|name| !was.contains(name));
    match (gone, came) {
        (Some(name), _) => Err(refusal(&format!("{noun} `{name}` is gone from the file, which"))),
        (_, Some(name)) => Err(refusal(&format!("{noun} `{name}` is new in the file, which"))),
        _ if was != new => Err(refusal(&format!("the order of each {noun}"))),
        _ => Ok(()),
    }
}

/// The parts of a host by their names.
fn same_parts(was: &HostConfig, new: &HostConfig) -> Result<(), String> {
    type Names = fn(&HostConfig) -> Vec<String>;
    let parts: [(&str, Names); 5] = [
        ("adapter", |host| host.adapters.iter().map(|it| it.name.clone()).collect()),
        ("device", |host| host.devices.iter().map(|it| it.name.clone()).collect()),
        ("path", |host| host.paths.iter().map(|it| it.name.clone()).collect()),
        ("VM", |host| host.vms.iter().map(|it| it.name.clone()).collect()),
        ("disk", |host| {
            let name =
                |it: &engine::VdiskConfig| format!("{}:{}", host.vms[it.vm.index()].name, it.name);
            host.vdisks.iter().map(name).collect()
        }),
    ];
    parts.iter().try_for_each(|(noun, names)| same_names(noun, &names(was), &names(new)))
}

/// What may change, of two hosts with the same parts.
fn knobs(was: &Host, new: &Host) -> Result<Vec<Knob>, String> {
    let mut knobs = Vec::new();
    let adapters = was.config.adapters.iter().zip(&new.config.adapters);
    for (_, adapter) in adapters.filter(|(was, new)| was.lun_depth != new.lun_depth) {
        knobs.push(Knob::ModuleDepth { driver: adapter.driver, value: adapter.lun_depth });
    }
    let devices = was.config.devices.iter().zip(&new.config.devices).enumerate();
    for (id, (was, new)) in devices {
        let device = DeviceId::new(id);
        if was.dsnro != new.dsnro {
            let value = new.dsnro.unwrap_or(DSNRO.default);
            knobs.push(Knob::SchedNumReqOutstanding { device, value });
        }
        if was.path_policy != new.path_policy {
            knobs.push(Knob::PathPolicy { device, policy: new.path_policy });
        }
    }
    let disks = was.config.vdisks.iter().zip(&new.config.vdisks).enumerate();
    for (id, (was, disk)) in disks {
        if was.allocation != disk.allocation {
            let (vdisk, allocation) = (VdiskId::new(id), disk.allocation);
            knobs.push(Knob::Allocation { vdisk, allocation });
        }
        if was.depth != disk.depth {
            let ring_pages = new.config.vscsi[disk.vscsi.index()].depth / PVSCSI_COMMANDS_PER_PAGE;
            knobs.push(Knob::Pvscsi { vm: disk.vm, depth: disk.depth, ring_pages });
        }
    }
    knobs.extend(settings(was, new)?);
    Ok(knobs)
}

/// The lines for esxcli: what is gone is as it starts.
fn settings(was: &Host, new: &Host) -> Result<Vec<Knob>, String> {
    let mut knobs = Vec::new();
    let turned = |knob: &Knob| new.settings.iter().any(|known| known.is_turned_by(knob));
    for gone in was.settings.iter().filter(|knob| !turned(knob)) {
        knobs.push(match *gone {
            Knob::Advanced { option, .. } => {
                Knob::Advanced { option, value: option.default_in(new.config.version) }
            }
            Knob::QueueFull { device, .. } => {
                let threshold = Advanced::QFullThreshold.info().default;
                Knob::QueueFull { device, sample_size: 0, threshold }
            }
            _ => return Err(refusal("a line for esxcli that is gone from the file, which")),
        });
    }
    knobs.extend(new.settings.iter().filter(|knob| !was.settings.contains(knob)));
    Ok(knobs)
}

/// What is left must be as it was, but for the lines at which it stands.
fn check_rest(mut patched: Host, new: &Host) -> Result<(), String> {
    let disk = |id: usize| {
        let disk = &new.config.vdisks[id];
        format!("disk `{}:{}`", new.config.vms[disk.vm.index()].name, disk.name)
    };
    for (id, (was, image)) in patched.images.iter_mut().zip(&new.images).enumerate() {
        if let (Some(was), Some(new)) = (was.as_mut(), image) {
            was.line = new.line;
        }
        let (was_on, is_on) = (&patched.config.vdisks[id], &new.config.vdisks[id]);
        if was != image || was_on.device != is_on.device {
            return Err(refusal(&format!("where {} is", disk(id))));
        }
    }
    if let (Some(was), Some(new)) = (&mut patched.nbd, &new.nbd) {
        was.line = new.line;
    }
    patched.sockets.line = new.sockets.line;
    // A setting that is gone is one at its default.
    patched.settings.clone_from(&new.settings);
    for (was, new) in patched.config.devices.iter_mut().zip(&new.config.devices) {
        was.dsnro = new.dsnro;
    }
    let name = &new.config.name;
    if patched.nbd != new.nbd || patched.sockets != new.sockets || patched.cpus != new.cpus {
        return Err(refusal(&format!("where host `{name}` is found and its CPUs")));
    }
    if patched.config.adapters != new.config.adapters {
        return Err(refusal(&format!("adapters of host `{name}`")));
    }
    if patched != *new {
        return Err(refusal(&format!("what host `{name}` is made of")));
    }
    Ok(())
}
