//! How deep drivers and devices are to be. The drivers come first, and devices are compared as they are behind those:
//! else what is planned for the one undoes what is planned for the other, and no look is the last.
//!
//! ```text
//!   drivers, as most hosts have them -> devices, as deep as they are then -> as most hosts have them then
//!                                                                                  |
//!   devices that were right behind it are held <- a driver deeper, if its hosts stay alike
//! ```

use counters::sorted::sort;
use knobs::{Driver, Effect, Knob};

use super::{
    difference::{Difference, Value, depths, most},
    fleet::Fleet,
    goals::{Goal, Wanted, goals},
    host::Host,
};

/// Adds what drivers and devices of all hosts are to be set to: as most of them are, or as one is.
pub(super) fn add(
    fleet: &Fleet,
    differences: &[Difference],
    like: Option<usize>,
    wanted: &mut [Wanted],
) {
    let is_driver =
        |one: &&Difference| matches!(one.values[0].0, Value::Set(Knob::ModuleDepth { .. }));
    for goal in differences.iter().filter(is_driver).flat_map(|one| goals(fleet, one, like)) {
        wanted[goal.host].add(goal);
    }
    let settle = |wanted: &[Wanted], is_booted| -> Vec<Host> {
        let both = fleet.hosts.iter().zip(wanted);
        both.map(|(host, wanted)| settled(host, &wanted.knobs, is_booted)).collect()
    };
    // What a parameter takes from devices as soon as their host boots they do not have.
    let then = settle(wanted, true);
    for goal in of_devices(fleet, &then, like) {
        wanted[goal.host].add(goal);
    }
    for driver in Driver::ALL {
        raise(fleet, driver, &then, like, wanted);
    }
    let last = settle(wanted, false);
    for ((then, last), wanted) in then.iter().zip(&last).zip(wanted) {
        hold(fleet, then, last, wanted);
    }
}

/// A host after the lines for its drivers, and after the reboot where these take one; where `is_booted` also where its
/// drivers give less then.
fn settled(host: &Host, wanted: &[Knob], is_booted: bool) -> Host {
    let mut after = host.clone();
    let is_option = |knob: &&Knob| matches!(knob, Knob::Advanced { .. });
    let mut options = wanted.iter().filter(is_option);
    let mut reboots = options.any(|knob| knob.effect() == Effect::HostReboot);
    for (place, module) in host.drivers.iter().enumerate() {
        let set = Host::wanted_of(module, wanted).filter(|depth| host.takes(module, *depth));
        let Some(depth) = set.or(module.depth).or(module.in_force) else { continue };
        let is_new = module.depth.or(module.in_force) != Some(depth);
        reboots |= is_new && module.in_force != Some(depth)
            || is_booted && module.in_force > Some(depth)
            || host.is_boot_due(place, depth, wanted);
        after.drivers[place].depth = set.or(module.depth);
    }
    if reboots {
        after.boot();
    }
    after
}

/// How deep devices are to be that are not alike behind those drivers. One that is alike now stays so.
fn of_devices(fleet: &Fleet, then: &[Host], like: Option<usize>) -> Vec<Goal> {
    let now = depths(&fleet.hosts, &fleet.devices);
    let after = depths(then, &fleet.devices);
    let both = now.iter().zip(&after).filter(|(_, after)| after.values.len() > 1);
    both.flat_map(|(now, after)| match now.values[..] {
        [(Value::Set(knob), _)] if is_given(knob, after, then) => {
            let others = after.values.iter().filter(|(value, _)| *value != Value::Set(knob));
            let hosts = others.flat_map(|(_, hosts)| hosts);
            hosts.map(|host| Goal { host: *host as usize, knob, left: None }).collect()
        }
        _ => goals(fleet, after, like),
    })
    .collect()
}

/// Whether the drivers of all hosts that have a device give it that depth.
fn is_given(knob: Knob, of: &Difference, hosts: &[Host]) -> bool {
    let Knob::MaxQueueDepth { device, value } = knob else { return false };
    let mut places = of.values.iter().flat_map(|(_, hosts)| hosts);
    places.all(|place| {
        let host = &hosts[*place as usize];
        let module = host.device(device).and_then(|device| device.module);
        module.and_then(|module| host.drivers[module].in_force).is_none_or(|gives| value <= gives)
    })
}

/// Makes a driver as deep as devices behind it need it, where its hosts are alike then, or no more of one value than of
/// another, as before: what most of them have would be set back by the next look.
fn raise(
    fleet: &Fleet,
    driver: &'static Driver,
    then: &[Host],
    like: Option<usize>,
    wanted: &mut [Wanted],
) {
    let mut depths: Vec<(u32, bool)> = Vec::new();
    let mut raised: Vec<(usize, u32)> = Vec::new();
    for (place, host) in then.iter().enumerate() {
        let Some(module) = host.drivers.iter().position(|own| own.driver == driver) else {
            continue;
        };
        let (own, wanted) = (&host.drivers[module], &wanted[place]);
        let Some(is) = own.depth.or(own.in_force) else { continue };
        let needs = host.wanted_behind(module, &wanted.knobs).max();
        let needs = needs.filter(|needs| *needs > is && host.takes(own, *needs));
        raised.extend(needs.map(|needs| (place, needs)));
        // What no output tells, and what is left as it is, is not planned by the next look either.
        let is_left = wanted.left.iter().any(|(knob, _)| is_of(driver, knob));
        depths.extend(own.depth.map(|_| (needs.unwrap_or(is), !is_left)));
    }
    let is_alike = match like {
        Some(place) => fleet.hosts[place].module(driver).is_none(),
        None => most_frequent(&depths)
            .is_none_or(|most| depths.iter().all(|(depth, is_free)| *depth == most || !is_free)),
    };
    for (place, value) in raised.into_iter().filter(|_| is_alike) {
        let wanted = &mut wanted[place].knobs;
        wanted.retain(|knob| !is_of(driver, knob));
        wanted.push(Knob::ModuleDepth { driver, value });
    }
}

fn is_of(driver: &Driver, knob: &Knob) -> bool {
    matches!(knob, Knob::ModuleDepth { driver: own, .. } if *own == driver)
}

/// The depth that more hosts have than any other; `None` where two are as frequent.
fn most_frequent(depths: &[(u32, bool)]) -> Option<u32> {
    let mut all: Vec<u32> = depths.iter().map(|(depth, _)| *depth).collect();
    sort(&mut all);
    let mut values: Vec<_> = all.chunk_by(|one, next| one == next).collect();
    levels::most_first(&mut values, |same| same.len() as f64);
    most(&values, |same| same.len()).map(|same| same[0])
}

/// Holds shared devices of a host at what they are to be, where its lines for drivers and its reboot bring something
/// else.
fn hold(fleet: &Fleet, then: &Host, last: &Host, wanted: &mut Wanted) {
    for (then, device) in then.devices.iter().zip(&last.devices) {
        let is_moved = then.max_depth != device.max_depth || last.is_unsure(device);
        let is_driven = device.module.is_some() && !device.is_captured;
        if !(is_moved && is_driven && fleet.known(device.id).is_shared()) {
            continue;
        }
        let is_wanted = |knob: &Knob| matches!(knob, Knob::MaxQueueDepth { device: own, .. } if *own == device.id);
        let held = then.max_depth.filter(|_| !wanted.knobs.iter().any(is_wanted));
        wanted.knobs.extend(held.map(|value| Knob::MaxQueueDepth { device: device.id, value }));
    }
}
