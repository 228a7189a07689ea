//! What holds of any array and any guests, whatever the readings say: it widens or narrows the range
//! that they span.
//!
//! It stands behind `answer`, which has simulated every reading. These are the laws that need no
//! model: a deeper queue serves no less, a shorter one loses no more than its part of what was in its
//! slots, what was seen at another depth may be so again, and by Little's law no command is under
//! way longer than the queues of the guests allow.

use counters::Counter;
use counters::sorted::sort;
use diagnose::SimulatedRow;
use knobs::GuestOs;
use levels::little;

use crate::{
    ArrayCalibration, DeviceCalibration, GuestCalibration, Habit, Seen, held,
    question::{Asked, Held, Limited, Paced},
    ranges::{LEVEL, at_least, at_most, place_in, place_of},
    run::Key,
    tried::{hold_to_tried, hold_to_what_was_seen},
};

/// Part of its slots that a device loses on average whose host throttles for an array that rejects
/// commands beyond those that it was seen to take: the depth is halved, and climbs back by one
/// (reference `esxi-host-stack.md`, section 4 [KB-QF]).
const REFUSED: f64 = 0.25;

/// All of them, for a question that is one of depths. Whether less than today is in the range because
/// the host may throttle for the array.
pub(crate) fn hold(
    keys: &[Key],
    (calibrated, arrays): (&[DeviceCalibration], &[ArrayCalibration]),
    (rounding, asked): (f64, &Asked<'_>),
    rows: &mut [SimulatedRow],
) -> bool {
    // What the array holds to a rate stays at it.
    let is_held = calibrated.first().is_some_and(DeviceCalibration::is_mostly_held);
    let slots = |index| -> f64 {
        let own = calibrated.iter().filter(|device| device.array == index);
        let depths = own.map(|device| place_of(keys, &device.device, Counter::DeviceQDepth));
        depths.map(|place| place.map_or(f64::INFINITY, |place| rows[place].high)).sum()
    };
    let mut each = arrays.iter().enumerate();
    let is_known =
        is_held || each.all(|(index, of)| of.is_known_above() || of.has_had(slots(index)));
    let may_refuse = asked.may_throttle && !is_known;
    let spanned = rows.to_vec();
    let is_refused = hold_to_laws(keys, (rounding, may_refuse), rows);
    // Who sends at a rate waits in the array with all others then, and in the host it had its turn among few.
    let comes = |of: &&DeviceCalibration| of.vms() > 1.0 && of.guests.iter().any(|g| g.may_come());
    let is_shifted = calibrated.iter().any(|of| comes(&of));
    for (row, own) in rows.iter_mut().zip(spanned) {
        // A deeper queue that lets dearer commands in may give fewer.
        if asked.is_mixed {
            (row.low, row.high) = (row.low.min(own.low), row.high.max(own.high));
        } else if is_shifted && row.unit == "ms" {
            row.high = row.high.max(own.high);
        }
    }
    // Of two depths in turn the mean is slower than an array that has as many all the time.
    if !is_known || (asked.flapping.is_some() && !is_held) {
        hold_to_unknown(keys, (calibrated, arrays), rows);
    }
    if is_held {
        hold_to_quickest(keys, calibrated, rows);
    }
    held::hold_to_freed(keys, calibrated, rows);
    hold_to_still(keys, (calibrated, arrays), rows);
    hold_to_hidden(keys, calibrated, rows);
    hold_to_fewer(keys, calibrated, rows);
    hold_to_slots(keys, calibrated, asked, rows);
    hold_to_what_was_seen(keys, rounding, rows);
    if !asked.is_hungry {
        hold_to_tried(keys, calibrated, rounding, rows);
    }
    is_refused
}

/// What holds of any array and any guests, whatever the readings say: a deeper queue makes the
/// commands of a device neither fewer nor longer under way between the virtual adapter and the
/// completion, a shorter one neither more nor shorter. It is said of the one device whose depth
/// moves, and not where several do.
fn hold_to_laws(
    keys: &[Key],
    (rounding, may_refuse): (f64, bool),
    rows: &mut [SimulatedRow],
) -> bool {
    /// Change of DQLEN that counts.
    const MOVES: f64 = 0.02;
    /// Part of GAVG that is a small wait.
    const SMALL: f64 = 0.1;
    let depths: Vec<(String, bool)> = keys
        .iter()
        .zip(rows.iter())
        .filter(|(key, _)| key.is(Counter::DeviceQDepth))
        .filter_map(|(key, row)| {
            let deeper = row.high > row.today * (1.0 + MOVES);
            let shorter = row.low < row.today * (1.0 - MOVES);
            (deeper != shorter).then(|| (key.object.clone(), deeper))
        })
        .collect();
    let [(device, is_deeper)] = depths.as_slice() else { return false };
    let captured = |counter| keys[place_of(keys, device, counter)?].captured;
    // A wait that is a small part of the whole may go altogether, bursts or not.
    let (gavg, kavg) = (captured(Counter::GuestLatency), captured(Counter::KernelLatency));
    let gone = match (gavg, kavg) {
        (Some(gavg), Some(kavg)) if *is_deeper && kavg <= SMALL * gavg => 1.0 - kavg / gavg,
        _ => 1.0,
    };
    let is_small = gavg.zip(kavg).is_some_and(|(gavg, kavg)| kavg <= SMALL * gavg);
    let is_refused = *is_deeper && !is_small && may_refuse;
    let rates_of_vms = keys.iter().filter(|key| !key.is_device() && key.is(Counter::Commands));
    let has_several = rates_of_vms.count() > 1;
    // What the array loses its VMs lose.
    let of_vms = keys.iter().zip(rows.iter_mut()).filter(|(key, _)| !key.is_device());
    for (_, row) in of_vms.filter(|(key, _)| is_refused && key.is(Counter::Commands)) {
        row.low *= 1.0 - REFUSED;
    }
    for (key, row) in keys.iter().zip(rows).filter(|(key, _)| key.object == *device) {
        let Some(captured) = key.captured else { continue };
        // Guests of which some pause have other parts of it then, and the mean of their latencies moves.
        let parts = if !key.is(Counter::Commands) && has_several { LEVEL } else { 0.0 };
        let chance = key.chance + rounding + LEVEL + parts;
        let kept = if is_refused { 1.0 - REFUSED } else { 1.0 };
        let (least, most) = (captured * (1.0 - chance) * kept, captured * (1.0 + chance) / kept);
        if key.is(Counter::Commands) == *is_deeper && key.is_total() {
            row.low = if is_refused { row.low.min(least) } else { row.low.max(least) };
            row.high = row.high.max(most / gone);
        } else if key.is_total() {
            row.high = if is_refused { row.high.max(most) } else { row.high.min(most) };
            row.low = row.low.min(least * gone);
        }
        // From a depth that was tried on the way the law holds as well.
        if let Some([low, high]) = key.between(chance).filter(|_| key.is_total()) {
            match key.is(Counter::Commands) == *is_deeper {
                true => at_least(row, low * kept),
                false => at_most(row, high / kept),
            }
        }
    }
    is_refused
}

/// What the array holds to a rate keeps slots and none of its time from the others: behind a deeper queue these
/// may be as quick as the array is for them now.
fn hold_to_quickest(keys: &[Key], calibrated: &[DeviceCalibration], rows: &mut [SimulatedRow]) {
    let deeper = calibrated.iter().filter(|device| {
        let depth = place_of(keys, &device.device, Counter::DeviceQDepth).map(|at| &rows[at]);
        depth.is_some_and(|depth| depth.high > depth.today)
    });
    let guests: Vec<_> = deeper.flat_map(|device| &device.guests).collect();
    for guest in guests.into_iter().filter(|guest| guest.throttled_at_iops.is_none()) {
        let place = place_in(keys, (false, &guest.vm), Counter::GuestLatency);
        if let (Some(place), Some(davg_ms)) = (place, guest.davg_ms) {
            let row = &mut rows[place];
            row.low = row.low.min(davg_ms * (1.0 - keys[place].chance)).max(0.0);
        }
    }
}

/// What holds of an array of which nothing shows how it answers to more or fewer than were outstanding,
/// whatever the readings come to: more may be answered as quickly as today, as far as guests that
/// wait go and the slots, and where the load never varied fewer may lose nothing.
fn hold_to_unknown(
    keys: &[Key],
    (calibrated, arrays): (&[DeviceCalibration], &[ArrayCalibration]),
    rows: &mut [SimulatedRow],
) {
    let [device] = calibrated else { return };
    let captured = |counter| keys[place_of(keys, &device.device, counter)?].captured;
    let counters = [Counter::GuestLatency, Counter::DriverLatency, Counter::DeviceQDepth];
    let ([Some(gavg_ms), Some(davg_ms), Some(before)], Some(depth)) = (
        counters.map(captured),
        place_of(keys, &device.device, Counter::DeviceQDepth).map(|place| &rows[place]),
    ) else {
        return;
    };
    let (waiting, more) = (device.guests.iter().filter(|g| g.habit != Habit::Open), depth.high);
    let pauses = waiting.map(|guest| guest.pause_ms.0);
    let Some(pause_ms) = pauses.reduce(f64::min) else { return };
    let quickest_ms = davg_ms.max(gavg_ms * before / more.max(before)).min(gavg_ms);
    let gain = (gavg_ms + pause_ms) / (quickest_ms + pause_ms).max(1e-9);
    let is_steady = arrays.iter().all(|array| array.seen == Seen::Steady);
    let is_shorter = depth.low < before;
    if is_shorter && !is_steady {
        return;
    }
    for (key, row) in keys.iter().zip(rows).filter(|(key, _)| key.is_total()) {
        let Some(captured) = key.captured else { continue };
        if key.is(Counter::Commands) {
            row.high = row.high.max(captured * gain);
        } else if !is_shorter {
            row.low = row.low.min(captured * quickest_ms / gavg_ms.max(1e-9));
        }
    }
}

/// What an array serves at least whose rate stood still while the commands outstanding differed: no more than
/// that, however much deeper a queue is, and each VM of it its part.
fn hold_to_still(
    keys: &[Key],
    (calibrated, arrays): (&[DeviceCalibration], &[ArrayCalibration]),
    rows: &mut [SimulatedRow],
) {
    for device in calibrated.iter().filter(|device| arrays[device.array].stands) {
        let place = |counter| place_of(keys, &device.device, counter);
        let ([Some(rate), Some(gavg), Some(depth)], chance) = (
            [Counter::Commands, Counter::GuestLatency, Counter::DeviceQDepth].map(place),
            |place: usize| keys[place].chance + LEVEL,
        ) else {
            continue;
        };
        let (Some(was), Some(took)) = (keys[rate].captured, keys[gavg].captured) else { continue };
        let least = was * (1.0 - chance(rate));
        if rows[depth].high <= rows[depth].today || rows[rate].low <= least {
            continue;
        }
        let part = least / rows[rate].low;
        rows[rate].low = least;
        rows[gavg].high = rows[gavg].high.max(took * (1.0 + chance(gavg)));
        for guest in &device.guests {
            let of = |counter| place_in(keys, (false, &guest.vm), counter);
            if let (Some(rate), Some(gavg)) = (of(Counter::Commands), of(Counter::GuestLatency)) {
                rows[rate].low *= part;
                rows[gavg].high /= part;
            }
        }
    }
}

/// What waits in a guest beyond its driver's depth may be sent at any rate, and one that just does not
/// fill a deeper queue waits nowhere.
fn hold_to_hidden(keys: &[Key], calibrated: &[DeviceCalibration], rows: &mut [SimulatedRow]) {
    for device in calibrated {
        let place = |counter| place_of(keys, &device.device, counter);
        let hidden = |guest: &GuestCalibration| guest.is_pinned && guest.capped_at.is_some();
        let ([Some(depth), Some(davg)], true) = (
            [Counter::DeviceQDepth, Counter::DriverLatency].map(place),
            device.guests.iter().any(hidden),
        ) else {
            continue;
        };
        if rows[depth].low <= rows[depth].today {
            continue;
        }
        // Then no more are at the array than today.
        let davg_ms = keys[davg].captured.unwrap_or(rows[davg].low) * (1.0 - keys[davg].chance);
        for (counter, least) in [
            (Counter::GuestLatency, davg_ms),
            (Counter::DriverLatency, davg_ms),
            (Counter::KernelLatency, 0.0),
            (Counter::MeanQueued, 0.0),
        ] {
            if let Some(place) = place(counter) {
                rows[place].low = rows[place].low.min(least);
            }
        }
    }
}

/// What a queue with fewer slots serves at least, where they were not full: so many times as fast as before are
/// all that there are now up to the slots, for latency at the array does not rise. How many there are chance
/// makes, as of a Poisson process at most; a model whose threads come evenly has the mean of them alone.
fn hold_to_fewer(keys: &[Key], calibrated: &[DeviceCalibration], rows: &mut [SimulatedRow]) {
    for device in calibrated {
        let place = |counter| place_of(keys, &device.device, counter);
        let captured = |counter| place(counter).and_then(|place| keys[place].captured);
        let counters = [Counter::Commands, Counter::DriverLatency, Counter::DeviceQDepth];
        let ([Some(rate), Some(davg_ms), Some(depth)], Some(slots)) =
            (counters.map(captured), place(Counter::DeviceQDepth).map(|place| rows[place].low))
        else {
            continue;
        };
        let in_use = little(rate, davg_ms);
        let is_full = device.guests.iter().any(|guest| guest.is_pinned);
        if slots >= depth || is_full || in_use <= 0.0 {
            continue;
        }
        let part = within(in_use, slots) / in_use;
        let is_own = |key: &Key| {
            key.object == device.device || device.guests.iter().any(|guest| guest.vm == key.object)
        };
        for (key, row) in keys.iter().zip(rows.iter_mut()).filter(|(key, _)| is_own(key)) {
            let Some(captured) = key.captured.filter(|_| key.is_total()) else { continue };
            if key.is(Counter::Commands) {
                row.low = row.low.min(captured * part * (1.0 - key.chance - LEVEL));
            } else {
                row.high = row.high.max(captured / part * (1.0 + key.chance + LEVEL));
            }
        }
    }
}

/// The mean of a Poisson number with the mean `inside`, where no more than `slots` count.
fn within(inside: f64, slots: f64) -> f64 {
    /// Numbers beyond which the mean alone is what counts.
    const MANY: f64 = 500.0;
    if inside > MANY {
        return inside.min(slots);
    }
    let (mut just, mut none) = ((-inside).exp(), 1.0);
    let mut mean = 0.0;
    for count in 0..slots.floor() as u32 {
        none -= just;
        mean += none.max(0.0);
        just *= inside / f64::from(count + 1);
    }
    mean.min(inside)
}

/// What a queue with fewer slots does at worst to commands that nobody holds back: it serves no
/// less than its part of what the slots in use served before (`array-and-control.md`, section 1: n
/// / R(n) rises with n, but no faster than n). If they come all the same, what it does not serve
/// waits until the load ends.
fn hold_to_slots(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    asked: &Asked<'_>,
    rows: &mut [SimulatedRow],
) {
    /// Part of the slots up to which chance does not fill them for long.
    const BRIM: f64 = 0.8;
    for device in calibrated {
        let comes = |guest: &GuestCalibration| guest.habit != Habit::Closed && !guest.is_pinned;
        let place = |counter| place_of(keys, &device.device, counter);
        let captured = |counter| place(counter).and_then(|place| keys[place].captured);
        let counters = [Counter::Commands, Counter::DriverLatency, Counter::DeviceQDepth];
        let ([Some(rate), Some(davg_ms), Some(depth)], Some(slots)) =
            (counters.map(captured), place(Counter::DeviceQDepth).map(|place| rows[place].low))
        else {
            continue;
        };
        let in_use = if asked.is_bursty { depth } else { little(rate, davg_ms) };
        if slots >= depth || !(asked.is_bursty || device.guests.iter().any(comes)) {
            continue;
        }
        let lost = (1.0 - BRIM * slots / in_use.max(1e-9)).max(0.0);
        let is_own = |key: &Key| {
            key.object == device.device || device.guests.iter().any(|guest| guest.vm == key.object)
        };
        // Who has more of the slots than others in a burst has as many as any then.
        let vms = device.vms();
        for (key, row) in keys.iter().zip(rows.iter_mut()).filter(|(key, _)| is_own(key)) {
            let Some(captured) = key.captured else { continue };
            if asked.is_bursty && key.is(Counter::Commands) {
                let part = if key.is_device() { 1.0 } else { 1.0 / vms };
                row.low = row.low.min(captured * (1.0 - key.chance) * slots / in_use * part);
            } else if key.is(Counter::GuestLatency) || key.is(Counter::KernelLatency) {
                row.high = row.high.max(captured + lost * asked.span_ms / 2.0);
            }
        }
    }
}

/// What an IOPS limit does whatever array and guests are: one that is lifted takes nothing from its
/// VM and gives the others nothing, one that is put on gives nothing to its VM and takes nothing from the others,
/// and one that is put on above all that is sent in a sample does so too, if anything: it cuts bursts, and what
/// comes by chance.
pub(crate) fn hold_to_limit(
    keys: &[Key],
    (calibrated, arrays): (&[DeviceCalibration], &[ArrayCalibration]),
    (limited, rounding, asked): (Limited<'_>, f64, &Asked<'_>),
    rows: &mut [SimulatedRow],
) {
    let of_vms = keys.iter().zip(rows.iter_mut()).filter(|(key, _)| !key.is_device());
    for (key, row) in of_vms {
        let Some(captured) = key.captured else { continue };
        let chance = key.chance + rounding + LEVEL;
        let [least, most] = [captured * (1.0 - chance), captured * (1.0 + chance)];
        if limited.is_unreached() {
            (row.low, row.high) = (row.low.min(least), row.high.max(most));
        }
        let is_its = key.object == limited.vm;
        let (gains, loses) = match is_its {
            true => (limited.gives(), limited.takes()),
            false => (limited.takes(), limited.gives()),
        };
        let (rises, falls) = match key.is(Counter::Commands) {
            true => (gains, loses),
            false => (loses, gains),
        };
        if rises {
            at_least(row, least);
        }
        if falls {
            at_most(row, most);
        }
    }
    if limited.is_lifted() && !limited.takes() {
        if limited.may_wait() {
            hold_to_unseen(keys, limited, rows);
        }
        hold_to_what_it_did(keys, (calibrated, arrays), limited.vm, rows);
        hold_to_outstanding(keys, calibrated, limited.vm, rows);
        hold_to_no_wait(keys, calibrated, limited.vm, rows);
    }
    if let Some(held) = limited.held.filter(|held| held.iops[1].is_finite()) {
        hold_to_held(keys, calibrated, (limited, held, asked), rows);
    }
    if !limited.gives() {
        hold_to_pace(keys, calibrated, limited, rows);
    }
    held::hold_to_policies(keys, calibrated, rows);
    if let Some(most_iops) = limited.most_iops {
        held::hold_to_credit(keys, calibrated, (limited.vm, most_iops), rows);
    }
    for (key, row) in keys.iter().zip(rows).filter(|_| limited.may_be_none) {
        let Some(captured) = key.captured else { continue };
        let chance = key.chance + rounding + LEVEL;
        row.low = row.low.min(captured * (1.0 - chance));
        row.high = row.high.max(captured * (1.0 + chance));
    }
}

/// What a VM loses at most by the pace of its limit, and its devices with it, where what the others do stays.
/// By Little's law it waits for its turn so long, and fewer are at the array meanwhile: latency there falls no
/// faster than their number.
fn hold_to_pace(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    limited: Limited<'_>,
    rows: &mut [SimulatedRow],
) {
    let Paced { iops, outstanding, longest, today } = limited.paced;
    let lost = today[0] - iops;
    if lost <= 0.0 || iops <= 0.0 {
        return;
    }
    let [gone, waiting] =
        [outstanding, longest].map(|all| (all - today[1] * iops / today[0]).max(0.0));
    let mut each = vec![((false, limited.vm), today[1])];
    for device in calibrated.iter().filter(|of| of.guests.iter().any(|g| g.vm == limited.vm)) {
        let stands = device.guests.iter().map(|guest| guest.outstanding).sum();
        each.push(((true, &*device.device), stands));
    }
    for (of, stands) in each {
        let place = |counter| place_in(keys, of, counter);
        let with = |counter| Some((place(counter)?, keys[place(counter)?].captured?));
        let Some((at, rate)) = with(Counter::Commands) else { continue };
        let chance = keys[at].chance + LEVEL;
        let least = (rate - lost).max(0.0) * (1.0 - chance);
        rows[at].low = rows[at].low.min(least);
        let longer = (stands + longest - today[1]) / stands.max(1e-9) * rate / least.max(1e-9);
        let at_array = (1.0 - gone / stands.max(1e-9)).max(0.0);
        let wait_ms = 1000.0 * waiting / least.max(1e-9);
        for (counter, least, most, more) in [
            (Counter::GuestLatency, 1.0, longer, 0.0),
            (Counter::DriverLatency, at_array, 1.0, 0.0),
            (Counter::MeanActive, at_array, 1.0, 0.0),
            (Counter::KernelLatency, 1.0, 1.0, wait_ms),
            (Counter::MeanQueued, 1.0, 1.0, waiting),
        ] {
            let Some((at, was)) = with(counter) else { continue };
            let (row, chance) = (&mut rows[at], keys[at].chance + LEVEL);
            // No instant of a sample need be one of a burst.
            if limited.is_bursty && counter == Counter::MeanQueued {
                row.low = 0.0;
            }
            if least < 1.0 {
                row.low = row.low.min(was * least * (1.0 - chance));
            }
            row.high = row.high.max((was * most + more) * (1.0 + chance));
        }
    }
    let unused = today[0].min(limited.most_iops.unwrap_or(f64::INFINITY)) - iops;
    for device in calibrated.iter().filter(|of| of.guests.iter().any(|g| g.vm == limited.vm)) {
        hold_to_left(keys, device, (limited.vm, unused, unused * today[1] / today[0]), rows);
    }
}

/// What the others gain at most of what a VM leaves `unused` of its limit, and has no longer outstanding then:
/// each is so much quicker as fewer are before it, and behind a full queue it may have all of that.
fn hold_to_left(
    keys: &[Key],
    device: &DeviceCalibration,
    (vm, unused, outstanding): (&str, f64, f64),
    rows: &mut [SimulatedRow],
) {
    let stands: f64 = device.guests.iter().map(|guest| guest.outstanding).sum();
    let is_full = device.guests.iter().any(|guest| guest.is_pinned);
    let quicker = 1.0 / (1.0 - outstanding.max(0.0) / stands.max(1e-9)).max(0.1);
    for guest in device.guests.iter().filter(|guest| guest.vm != vm) {
        let place = |counter| place_in(keys, (false, &guest.vm), counter);
        let Some(rate) = place(Counter::Commands) else { continue };
        let all = 1.0 + unused.max(0.0) / rows[rate].high.max(1e-9);
        let part = if is_full { all } else { quicker.min(all) };
        rows[rate].high *= part;
        if let Some(gavg) = place(Counter::GuestLatency) {
            rows[gavg].low /= part;
        }
    }
}

/// What a VM gains at most whose wait is one for a limit that nobody sees, and takes from the others
/// where the slots are full.
fn hold_to_unseen(keys: &[Key], limited: Limited<'_>, rows: &mut [SimulatedRow]) {
    /// What others keep at least.
    const KEPT: f64 = 0.1;
    let rate_of = |key: &Key| {
        let is_it = |other: &&Key| {
            other.is(Counter::Commands)
                && (other.is_device(), &other.object) == (key.is_device(), &key.object)
        };
        keys.iter().find(is_it)?.captured.filter(|rate| *rate > 0.0)
    };
    let own = keys.iter().find(|key| key.is_rate_of(limited.vm));
    let Some(own) = own.and_then(|key| key.captured) else { return };
    let most = limited.most_iops.map_or(f64::INFINITY, |most| (most - own).max(0.0));
    let gain = (own * limited.waits / (1.0 - limited.waits)).min(most);
    for (key, row) in keys.iter().zip(rows).filter(|(key, _)| key.is_total()) {
        let (Some(captured), Some(rate)) = (key.captured, rate_of(key)) else { continue };
        // It does more, and so may its device; the others do less.
        let is_other = !key.is_device() && key.object != limited.vm;
        let part = if is_other { (1.0 - gain / rate).max(KEPT) } else { 1.0 + gain / rate };
        let bound = if key.is(Counter::Commands) { captured * part } else { captured / part };
        let least = bound * (1.0 - key.chance);
        (row.low, row.high) = (row.low.min(least), row.high.max(bound * (1.0 + key.chance)));
    }
}

/// What a VM does at least whose limit is lifted, and its devices, where nothing shows that the array
/// has more to give than it was seen to.
fn hold_to_what_it_did(
    keys: &[Key],
    (calibrated, arrays): (&[DeviceCalibration], &[ArrayCalibration]),
    vm: &str,
    rows: &mut [SimulatedRow],
) {
    let is_on = |of: &&DeviceCalibration| of.guests.iter().any(|guest| guest.vm == vm);
    let is_known = |of: &DeviceCalibration| arrays[of.array].is_known_above();
    for device in calibrated.iter().filter(is_on).filter(|of| !is_known(of)) {
        let rates = [(true, &*device.device), (false, vm)];
        for place in rates.into_iter().filter_map(|of| place_in(keys, of, Counter::Commands)) {
            let least = keys[place].captured.map(|rate| rate * (1.0 - keys[place].chance));
            rows[place].low = rows[place].low.min(least.unwrap_or(0.0));
        }
    }
}

/// What a VM waits at least whose limit is lifted, and its devices: nothing in the host.
fn hold_to_no_wait(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    vm: &str,
    rows: &mut [SimulatedRow],
) {
    for device in calibrated.iter().filter(|of| of.guests.iter().any(|guest| guest.vm == vm)) {
        let place = |counter| place_of(keys, &device.device, counter);
        for counter in [Counter::KernelLatency, Counter::MeanQueued] {
            if let Some(place) = place(counter) {
                rows[place].low = 0.0;
            }
        }
        let Some(davg) = place(Counter::DriverLatency) else { continue };
        let davg_ms = rows[davg].low;
        let of_vm = place_in(keys, (false, vm), Counter::GuestLatency);
        for place in [place(Counter::GuestLatency), of_vm].into_iter().flatten() {
            rows[place].low = rows[place].low.min(davg_ms);
        }
    }
}

/// What the commands take that a VM and its devices had outstanding, and may have again, at any rate of
/// the range: by Little's law no wide range of the one goes with a narrow one of the other.
fn hold_to_outstanding(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    vm: &str,
    rows: &mut [SimulatedRow],
) {
    for device in calibrated.iter().filter(|of| of.guests.iter().any(|guest| guest.vm == vm)) {
        let stands = |is_meant: &dyn Fn(&GuestCalibration) -> bool| -> f64 {
            device.guests.iter().filter(|g| is_meant(g)).map(|guest| guest.outstanding).sum()
        };
        let [own, all] = [stands(&|guest| guest.vm == vm), stands(&|_| true)];
        for (is_device, object, stands) in [(false, vm, own), (true, &*device.device, all)] {
            let place = |counter| place_in(keys, (is_device, object), counter);
            let (Some(rate), Some(gavg)) = (place(Counter::Commands), place(Counter::GuestLatency))
            else {
                continue;
            };
            let [most, least] =
                [rows[rate].low, rows[rate].high].map(|rate| 1000.0 * stands / rate.max(1e-9));
            let row = &mut rows[gavg];
            (row.low, row.high) = (row.low.min(least), row.high.max(most));
        }
    }
}

/// What a VM does that is held to a limit, however few of its commands a run counts: by Little's
/// law they wait as long as those take that are outstanding, and its device has their wait.
fn hold_to_held(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    (limited, held, asked): (Limited<'_>, Held, &Asked<'_>),
    rows: &mut [SimulatedRow],
) {
    let vm = limited.vm;
    // A count is of whole commands: a limit lets one more through in a span than its rate says.
    let one = 1000.0 / asked.span_ms;
    let chance = LEVEL + one / held.iops[1].max(one);
    let [slowest, quickest] = [held.iops[0] * (1.0 - chance), held.iops[1] + one];
    let [fewest, most] = held.outstanding;
    let turns = held.turns * (1.0 - chance);
    let waits_ms = [1000.0 * fewest / quickest, 1000.0 * most / turns];
    // Guests that give up before their turn comes may get nothing.
    let least = if waits_ms[0] > timeout_ms() { 0.0 } else { slowest };
    let is_on = |device: &&DeviceCalibration| device.guests.iter().any(|guest| guest.vm == vm);
    let own: Vec<_> = calibrated.iter().filter(is_on).collect();
    let alone = match own.as_slice() {
        [device] if device.guests.iter().all(|guest| guest.vm == vm) => Some(&device.device),
        _ => None,
    };
    let is_its = |key: &Key| key.object == vm || Some(&key.object) == alone;
    for (key, row) in keys.iter().zip(rows.iter_mut()).filter(|(key, _)| key.is_total()) {
        if is_its(key) {
            let is_rate = key.is(Counter::Commands);
            let [low, high] = if is_rate { [least, quickest] } else { waits_ms };
            // Bursts leave a limit unused.
            let is_bursty = asked.is_bursty || limited.is_bursty;
            row.low = if is_bursty { row.low.min(low) } else { low };
            row.high = if limited.is_bursty && is_rate { row.high.min(high) } else { high };
        }
    }
    let ([device], None) = (own.as_slice(), alone) else { return };
    let place = |counter| place_of(keys, &device.device, counter);
    let captured = |place: Option<usize>| place.and_then(|place| keys[place].captured);
    let had = captured(keys.iter().position(|key| key.is_rate_of(vm)));
    let (Some(all), Some(davg)) = (place(Counter::Commands), place(Counter::DriverLatency)) else {
        return;
    };
    // Of what its device did, all but what the VM did stays.
    let stays = captured(Some(all)).zip(had).map_or(0.0, |(all, had)| (all - had).max(0.0));
    at_least(&mut rows[all], stays * (1.0 - chance) + least);
    let (rate, davg_ms) = ([rows[all].low, rows[all].high], [rows[davg].low, rows[davg].high]);
    let waiting = (fewest - little(quickest, davg_ms[1])).max(0.0);
    for counter in [Counter::GuestLatency, Counter::KernelLatency, Counter::MeanQueued] {
        let Some(place) = place(counter) else { continue };
        let part = if counter == Counter::MeanQueued { [1.0; 2] } else { rate.map(|n| 1000.0 / n) };
        let others = if counter == Counter::GuestLatency { davg_ms[0] } else { 0.0 };
        let row = &mut rows[place];
        row.low = row.low.clamp(waiting * part[1], waiting * part[1] + others);
        row.high = row.high.max(row.captured.unwrap_or_default() + most * part[0]);
    }
}

/// How long a guest waits for a command at most, as long as its model's does [KB-TO].
pub(crate) fn timeout_ms() -> f64 {
    GuestOs::Windows.disk_timeout_ns(true) as f64 / 1e6
}

/// What holds whatever is asked: of queues and of sums.
pub(crate) fn hold_to_whole(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    rows: &mut [SimulatedRow],
) {
    hold_to_queues(keys, calibrated, rows);
    hold_to_little(keys, calibrated, rows);
    hold_to_sums(keys, calibrated, rows);
}

/// What the array takes for a command and how many are there at such a rate are one by Little's law: a latency that no
/// rate and number of its device would have is one that they have.
fn hold_to_little(keys: &[Key], calibrated: &[DeviceCalibration], rows: &mut [SimulatedRow]) {
    let counters = [Counter::Commands, Counter::MeanActive, Counter::DriverLatency];
    for device in calibrated {
        let places = counters.map(|counter| place_of(keys, &device.device, counter));
        let [Some(rate), Some(active), Some(davg)] = places else { continue };
        let least_ms = 1000.0 * rows[active].low / rows[rate].high.max(f64::MIN_POSITIVE);
        let most_ms = 1000.0 * rows[active].high / rows[rate].low.max(f64::MIN_POSITIVE);
        let latency = &mut rows[davg];
        if latency.high < least_ms {
            latency.high = most_ms;
        } else if latency.low > most_ms {
            latency.low = least_ms;
        }
    }
}

/// What holds of sums: the rate of a device is that of its VMs together, and what a command takes beyond
/// the driver it takes in the VMkernel.
fn hold_to_sums(keys: &[Key], calibrated: &[DeviceCalibration], rows: &mut [SimulatedRow]) {
    for device in calibrated {
        let place = |counter| place_of(keys, &device.device, counter);
        let of_parts = |counter| place(counter).zip(places_of(keys, calibrated, device, counter));
        if let Some((whole, parts)) = of_parts(Counter::Commands) {
            hold_to_rates(whole, &parts, rows);
        }
        if let Some((whole, parts)) = of_parts(Counter::GuestLatency) {
            hold_to_means(whole, &parts, rows);
        }
        let parts = [Counter::GuestLatency, Counter::KernelLatency, Counter::DriverLatency];
        if let [Some(gavg), Some(kavg), Some(davg)] = parts.map(place) {
            let (low, high) = (rows[gavg].low - rows[davg].low, rows[gavg].high - rows[davg].high);
            let waits = &mut rows[kavg];
            (waits.low, waits.high) = (waits.low.min(low.max(0.0)), waits.high.max(high));
            rows[davg].low = rows[davg].low.min(rows[gavg].low - rows[kavg].low);
        }
    }
}

/// The places of a counter of all VMs of a device, where these are all that it has and all that they have.
fn places_of(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    device: &DeviceCalibration,
    counter: Counter,
) -> Option<Vec<usize>> {
    let is_own = |vm: &str| {
        let mut others = calibrated.iter().filter(|other| other.device != device.device);
        others.all(|other| other.guests.iter().all(|guest| guest.vm != vm))
    };
    let mut vms: Vec<&str> = device.guests.iter().map(|guest| guest.vm.as_str()).collect();
    sort(&mut vms);
    vms.dedup();
    let place = |vm: &&str| place_in(keys, (false, vm), counter).filter(|_| is_own(vm));
    vms.iter().map(place).collect()
}

/// The latency of a device is a mean of its VMs': where it goes as far as a bound says, one of them goes as far
/// at least, and which is not known.
fn hold_to_means(whole: usize, parts: &[usize], rows: &mut [SimulatedRow]) {
    let had = |row: &SimulatedRow| row.captured.unwrap_or(row.today).max(1e-9);
    let of_whole = had(&rows[whole]);
    let [quickest, slowest] = [rows[whole].low, rows[whole].high].map(|ms| ms / of_whole);
    let each = || parts.iter().map(|&part| &rows[part]);
    let least = each().map(|row| row.low / had(row)).fold(f64::INFINITY, f64::min);
    let most = each().map(|row| row.high / had(row)).fold(0.0, f64::max);
    for &part in parts {
        let row = &mut rows[part];
        if quickest < least {
            row.low *= quickest / least;
        }
        if slowest > most && most > 0.0 {
            row.high *= slowest / most;
        }
    }
}

/// Each of them is what the others leave of the whole.
fn hold_to_rates(whole: usize, parts: &[usize], rows: &mut [SimulatedRow]) {
    let had = |row: &SimulatedRow| row.captured.unwrap_or(row.today);
    let sum = |of: &dyn Fn(&SimulatedRow) -> f64, rows: &[SimulatedRow]| -> f64 {
        parts.iter().map(|&part| of(&rows[part])).sum()
    };
    // Counts of several samples do not add up to the last digit.
    let slack = (had(&rows[whole]) - sum(&had, rows)).abs();
    let [low, high] = [sum(&|row| row.low, rows) - slack, sum(&|row| row.high, rows) + slack];
    let row = &mut rows[whole];
    (row.low, row.high) = match low <= row.high && row.low <= high {
        true => (row.low.max(low), row.high.min(high)),
        false => (row.low.min(low), row.high.max(high)),
    };
    let (least, most) = (row.low - slack, row.high + slack);
    for &part in parts {
        let row = &rows[part];
        let [others_low, others_high] = [low - row.low, high - row.high];
        let row = &mut rows[part];
        let ends = (row.low.max(least - others_high), row.high.min(most - others_low));
        if ends.0 <= ends.1 {
            (row.low, row.high) = ends;
        }
    }
}

/// What holds of queues: no more commands are at a device than it has slots, and by Little's
/// law a command is under way no longer than all that guests can have outstanding take at the
/// rate.
fn hold_to_queues(keys: &[Key], calibrated: &[DeviceCalibration], rows: &mut [SimulatedRow]) {
    for index in 0..rows.len() {
        let key = &keys[index];
        let of = |counter| place_in(keys, (key.is_device(), &key.object), counter);
        let guests = calibrated.iter().flat_map(|of| of.guests.iter().map(move |g| (of, g)));
        let own = guests.filter(|(device, guest)| match key.is_device() {
            true => device.device == key.object,
            false => guest.vm == key.object,
        });
        let most = if key.is(Counter::MeanActive) {
            of(Counter::DeviceQDepth).map(|place| rows[place].high)
        } else if key.is(Counter::GuestLatency) || key.is(Counter::KernelLatency) {
            let stands: Option<f64> = own.map(|(_, guest)| guest.outstanding_max).sum();
            let rate = of(Counter::Commands).map(|place| rows[place].low);
            let was = rows[index].captured.unwrap_or(rows[index].today);
            stands.zip(rate).map(|(stands, rate)| (1000.0 * stands / rate).max(was))
        } else {
            None
        };
        if let Some(most) = most {
            at_most(&mut rows[index], most);
        }
    }
}
