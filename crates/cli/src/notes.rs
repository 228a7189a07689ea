//! What has to be known of a window beside its figures: demand that was not met, workloads that
//! ran for a part of it only or were over before it, limits that changed inside it, arrays driven
//! beyond what was measured of them, VMs that came or went. Terminal and JSON show the same lines.

use std::collections::{BTreeMap, BTreeSet};

use counters::{Counter, DeviceKind, Kind, Recording, SECOND, Time, VmId};
use engine::{DeviceConfig, Event, ThrottleMode};
use knobs::{Advanced, Allocation, CONGESTION_MS, Knob, MAX_CMDS, Transport};
use model::Service;
use scenario::{Action, AutomaticThreshold, Window};
use sim::{Logged, WindowView};

use crate::{
    demand::{self, MET, Unmet},
    known::{self, advanced_by, allocations, has_mclock},
    report::Report,
    text::{clean, counted, rate, seconds},
};

/// Lines that the terminal shows of all windows together; the JSON has them all.
const LINES: usize = 12;
/// Objects that are named of one kind of note.
const NAMED: usize = 3;

/// What the terminal shows: the notes of every window that has a line in the report.
pub(crate) fn render(report: &Report) -> String {
    let windows = report.named();
    let several = windows.len() > 1;
    let of_window = |index: usize| {
        let name = clean(&report.scenario.windows[index].name);
        let place = if several { format!("Window {name}: ") } else { String::new() };
        of(report, index).into_iter().map(move |note| format!("{place}{note}\n"))
    };
    let notes: Vec<_> = found(report).chain(windows.flat_map(of_window)).collect();
    let more = notes.len().saturating_sub(LINES);
    let mut out: String = notes.into_iter().take(LINES).collect();
    if more > 0 {
        out.push_str(&format!("and {more} more (--json)\n"));
    }
    out
}

/// The congestion thresholds that were found before the run, a line each.
fn found(report: &Report) -> impl Iterator<Item = String> {
    report.scenario.thresholds.iter().map(|AutomaticThreshold { datastore, share, threshold_us }| {
        let percent = 100.0 * share;
        let does = match *threshold_us / 1000 {
            least if least == *CONGESTION_MS.start() => format!(
                "the least that it can be; the model of its array does {percent} % of its peak at that or less"
            ),
            most if most == *CONGESTION_MS.end() => format!(
                "the most that it can be; the model of its array does {percent} % of its peak at that or more"
            ),
            _ => format!("the latency at which the model of its array does {percent} % of its peak"),
        };
        let millis = f64::from(*threshold_us) / 1000.0;
        format!("congestion threshold of {}: {millis} ms, {does}\n", clean(datastore))
    })
}

/// Everything that has to be known of a window.
pub(crate) fn of(report: &Report, index: usize) -> Vec<String> {
    [
        external,
        demand,
        merged,
        unheard,
        unthrottled,
        in_step,
        over,
        spans,
        depths,
        curves,
        kept,
        thrash,
        unwindowed,
        vms,
        unreserved,
        overbooked,
    ]
    .map(|kind| kind(report, index))
    .concat()
}

/// Workloads from outside that Storage I/O Control told of, by device: hosts that share one tell alike.
fn external(report: &Report, index: usize) -> Vec<String> {
    let window = &report.scenario.windows[index];
    let mut told: Vec<(&str, Time, usize)> = Vec::new();
    for line in report.outcome.log.iter().filter(|line| line.is_in(window)) {
        let Logged::Event(Event::ExternalWorkload { device }) = line.what else { continue };
        let name = report.scenario.hosts[line.host].config.devices[device.index()].name.as_str();
        match told.iter_mut().find(|(known, ..)| *known == name) {
            Some((.., times)) => *times += 1,
            None => told.push((name, line.at, 1)),
        }
    }
    let lines = told.into_iter().map(|(device, first, times)| {
        format!(
            "device {}: an external workload is told of {}, first at {}: its hosts held back and its \
             latency stayed",
            clean(device),
            counted(times, "time"),
            seconds(first)
        )
    });
    few(lines, "devices with an external workload")
}

/// A virtual disk whose open workload is not served what it asks for.
fn line(unmet: &Unmet) -> String {
    let Unmet { name, demand, aborted, .. } = unmet;
    let aborted = aborted.filter(|aborted| *aborted > 0.0);
    let aborted = aborted.map_or(String::new(), |aborted| format!(", {} aborted", rate(aborted)));
    let served = demand.served.map_or(String::new(), |served| format!(" {} served,", rate(served)));
    format!(
        "{}: {} I/Os a second offered,{served} {} lost{aborted}; {} wait in guest and application",
        clean(name),
        rate(demand.offered),
        rate(demand.lost),
        rate(demand.waiting)
    )
}

/// The disks whose open workloads are not served what they ask for, the worst first.
fn demand(report: &Report, index: usize) -> Vec<String> {
    let unmet = demand::unmet(&report.scenario, &report.outcome, index);
    few(unmet.iter().map(line), "disks that are not served what they ask for")
}

/// Virtual disks whose guests merge I/Os: an application counts others than esxtop does.
fn merged(report: &Report, index: usize) -> Vec<String> {
    let views = report.outcome.windows[index].iter();
    let lines = views.flat_map(|WindowView { recording, .. }| {
        recording.of_kind(Kind::VirtualDisk).filter_map(|(id, disk)| {
            let merged = recording.value(id, Counter::Merged, 0).filter(|merged| *merged > 0.0)?;
            let commands = recording.value(id, Counter::Commands, 0)?;
            Some(format!(
                "{}: its guest merges {} I/Os a second into other commands; the VMkernel sees {}",
                clean(&disk.name),
                rate(merged),
                rate(commands)
            ))
        })
    });
    few(lines, "disks whose guests merge I/Os")
}

/// Adapters of software iSCSI that have more under way than an iSCSI session takes, and none: nothing is said of theirs.
fn unwindowed(report: &Report, index: usize) -> Vec<String> {
    let views = report.scenario.hosts.iter().zip(&report.outcome.windows[index]);
    let lines = views.flat_map(|(host, WindowView { counters_before, counters, .. })| {
        let has_window =
            |path| host.initiator.nexus(path).is_some_and(|nexus| nexus.window.is_some());
        let most = MAX_CMDS.default;
        host.config.adapters.iter().enumerate().filter_map(move |(id, adapter)| {
            let mut paths = host.config.paths.iter().enumerate();
            let is_free = adapter.driver.transport == Transport::Iscsi
                && !paths.any(|(path, config)| config.adapter.index() == id && has_window(path));
            let (then, now) = (&counters_before.adapters[id].active, &counters.adapters[id].active);
            let under_way = now.mean_since(then, counters_before.at, counters.at);
            (is_free && under_way > f64::from(most)).then(|| {
                format!(
                    "{} of {}: {} commands are under way by it, and nothing holds them: with `iscsi = {{}}` an iSCSI session \
                     takes {most} (MaxCmds)",
                    clean(&adapter.name),
                    clean(&host.config.name),
                    rate(under_way)
                )
            })
        })
    });
    few(lines, "adapters of software iSCSI without a command window")
}

/// Settings for protocol endpoints on hosts where they govern no device: each has a DSNRO of its own, or
/// is no endpoint.
fn unheard(report: &Report, _: usize) -> Vec<String> {
    let info = Advanced::VvolPesnro.info();
    let is_it =
        |knob: &Knob| matches!(knob, Knob::Advanced { option, .. } if *option == info.option);
    let hosts = report.scenario.hosts.iter().enumerate().filter(|(index, host)| {
        let mut events = report.scenario.events.iter().filter(|event| event.host == *index);
        let governs = |device: &DeviceConfig| {
            device.kind == DeviceKind::ProtocolEndpoint && device.dsnro.is_none()
        };
        let is_set = host.settings.iter().any(is_it)
            || events.any(|event| matches!(event.action, Action::Set(knob) if is_it(&knob)));
        is_set && !host.config.devices.iter().any(governs)
    });
    let lines = hosts.map(|(_, host)| {
        format!(
            "host {}: {} is set and governs none of its devices; it is the DSNRO of vVol protocol \
             endpoints that have none of their own",
            clean(&host.config.name),
            info.path
        )
    });
    few(lines, "hosts on which it governs nothing")
}

/// Hosts whose numbers for adaptive throttling never throttle: no sample has so many bad results. ESXi takes them, as
/// its own threshold is above its own sample size [LAMW].
fn unthrottled(report: &Report, index: usize) -> Vec<String> {
    let Report { scenario, .. } = report;
    let lines = scenario.hosts.iter().enumerate().filter_map(|(at, host)| {
        let options = [Advanced::QFullSampleSize, Advanced::QFullThreshold];
        let [size, threshold] =
            options.map(|option| advanced_by(scenario, at, &scenario.windows[index], option));
        let never = host.config.throttle_mode == ThrottleMode::Kernel
            && (1..threshold).contains(&size);
        let [size_path, threshold_path] = options.map(|option| option.info().path);
        never.then(|| {
            format!(
                "host {}: adaptive throttling never acts by {threshold_path} of {threshold}, above {size_path} of \
                 {size}: no {size} results have {threshold} that are bad",
                clean(&host.config.name)
            )
        })
    });
    few(lines, "hosts that never throttle")
}

/// Arrays without a round trip that refuse more than one device: all ask again at one instant, in one order.
fn in_step(report: &Report, index: usize) -> Vec<String> {
    let Report { scenario, outcome, .. } = report;
    let without =
        scenario.arrays.iter().enumerate().filter(|(_, array)| array.config.round_trip_ns == 0);
    let lines = without.filter_map(|(at, array)| {
        let refused = scenario.hosts.iter().zip(&outcome.windows[index]).map(|(host, view)| {
            let counted = view.counters_before.devices.iter().zip(&view.counters.devices);
            let refused = |place: usize| {
                let mut disks = host.config.vdisks.iter().zip(&host.targets);
                disks.any(|(disk, target)| disk.device.index() == place && target.array == at)
            };
            let refusing = counted.enumerate().filter(|(place, (before, after))| {
                after.queue_full > before.queue_full && refused(*place)
            });
            refusing.count()
        });
        (refused.sum::<usize>() > 1).then(|| {
            format!(
                "array {}: it refuses commands and has no `round_trip`: those whom it refuses ask again at one \
                 instant and in one order, and the first may have every place",
                clean(&array.name)
            )
        })
    });
    few(lines, "arrays without a `round_trip`")
}

/// Workloads that were over before the window began: nothing of them is in its figures.
fn over(report: &Report, index: usize) -> Vec<String> {
    let from = report.scenario.windows[index].from;
    let mut last: BTreeMap<usize, Time> = BTreeMap::new();
    for span in &report.outcome.spans {
        let to = last.entry(span.workload).or_default();
        *to = span.to.max(*to);
    }
    let over = last.iter().filter(|(_, to)| **to <= from);
    let lines = over.map(|(workload, to)| {
        format!(
            "workload {} ended at {}, before the window begins at {}: it is not in its figures",
            clean(&report.scenario.workloads[*workload].name),
            seconds(*to),
            seconds(from)
        )
    });
    few(lines, "workloads that ended before the window begins")
}

/// Workloads that ran for a part of the window: its figures are means over all of it.
fn spans(report: &Report, index: usize) -> Vec<String> {
    let Window { from, to, .. } = report.scenario.windows[index];
    let inside = |at: Time| from < at && at < to;
    let spans = report.outcome.spans.iter().filter(|span| span.from < to && span.to > from);
    let lines = spans.filter_map(|span| {
        let what = match (inside(span.from), inside(span.to)) {
            (true, true) => format!("ran from {} to {}", seconds(span.from), seconds(span.to)),
            (true, false) => format!("began at {}", seconds(span.from)),
            (false, true) => format!("ended at {}", seconds(span.to)),
            (false, false) => return None,
        };
        let name = clean(&report.scenario.workloads[span.workload].name);
        Some(format!("workload {name} {what}; the window's figures are means over all of it"))
    });
    few(lines, "workloads that ran for a part of the window")
}

/// Devices whose limit changed inside the window.
fn depths(report: &Report, index: usize) -> Vec<String> {
    /// Less than half a command is no change.
    const CHANGED: f64 = 0.5;
    let views = report.outcome.windows[index].iter();
    let lines = views.flat_map(|WindowView { recording, .. }| {
        recording.of_kind(Kind::Device).filter_map(|(id, device)| {
            let last = recording.value(id, Counter::DeviceQDepth, 0)?;
            let mean = recording.value(id, Counter::MeanDeviceQDepth, 0)?;
            let name = clean(&device.name);
            let line =
                || format!("device {name}: DQLEN is {last} at its end, {mean:.1} on average");
            ((mean - last).abs() > CHANGED).then(line)
        })
    });
    few(lines, "devices whose DQLEN changed")
}

/// Arrays that had more outstanding than was measured.
fn curves(report: &Report, index: usize) -> Vec<String> {
    let arrays = report.scenario.arrays.iter().zip(&report.outcome.used[index]);
    let lines = arrays.filter_map(|(array, read)| {
        let Service::Curve(points, ..) = &array.config.service else { return None };
        let (last, _) = points.last()?;
        let share = 100.0 * read.beyond as f64 / read.served.max(1) as f64;
        (read.beyond > 0).then(|| {
            format!(
                "array {}: {share:.1} % of its commands came beyond the measured curve, which ends \
                 at {last} outstanding; there it is taken as saturated",
                clean(&array.name)
            )
        })
    });
    few(lines, "arrays beyond their measured curves")
}

/// Arrays that go on with what hosts have taken back, where that is a hundredth of what they do or more.
fn kept(report: &Report, index: usize) -> Vec<String> {
    let arrays = report.scenario.arrays.iter().zip(&report.outcome.used[index]);
    let window = &report.scenario.windows[index];
    let ios = report.outcome.windows[index].iter().map(|view| commands(&view.recording));
    let ios = ios.sum::<f64>() * window.to.since(window.from) as f64 / SECOND as f64;
    let kept = arrays.filter(|(_, used)| used.kept as f64 > 0.01 * ios);
    let lines = kept.map(|(array, used)| {
        format!(
            "array {}: {} that hosts gave up took its time all the same; it gives back what none of its \
             `servers` has begun, and nothing else",
            clean(&array.name),
            counted(used.kept as usize, "command"),
        )
    });
    few(lines, "arrays that do what was given up")
}

/// Commands a second of all VMs.
fn commands(recording: &Recording) -> f64 {
    let vms = recording.of_kind(Kind::Vm);
    vms.filter_map(|(id, _)| recording.value(id, Counter::Commands, 0)).sum()
}

/// Arrays whose volumes go from one controller to the other again and again.
fn thrash(report: &Report, index: usize) -> Vec<String> {
    let arrays = report.scenario.arrays.iter().zip(&report.outcome.used[index]);
    let lines = arrays.filter_map(|(array, used)| known::thrash(array, *used)).map(|thrash| {
        format!(
            "array {}: path thrash, volumes went from one controller to the other {} times; hosts come to \
             both, as with VMW_PSP_FIXED; with VMW_PSP_MRU all stay with one that all reach",
            clean(&thrash.array),
            thrash.times
        )
    });
    few(lines, "arrays with path thrash")
}

/// VMs that are on at the end of the window, when they are not as many as those of the beginning. One that
/// went to another host is one.
fn vms(report: &Report, index: usize) -> Vec<String> {
    let views = report.scenario.hosts.iter().zip(&report.outcome.windows[index]);
    let (mut first, mut now) = (BTreeSet::new(), BTreeSet::new());
    for (host, view) in views {
        let name = |vm: VmId| host.config.vms[vm.index()].name.as_str();
        let vms = host.config.vms.iter();
        first.extend(vms.filter(|vm| vm.powered_on && !vm.system).map(|vm| vm.name.as_str()));
        let disks = host.config.vdisks.iter().zip(&view.counters.vdisks);
        let disks = disks.filter(|(disk, _)| !host.config.vms[disk.vm.index()].system);
        now.extend(disks.filter(|(_, disk)| disk.shares > 0).map(|(disk, _)| name(disk.vm)));
    }
    let (first, now) = (first.len(), now.len());
    if first == now {
        return Vec::new();
    }
    vec![format!("{} on at its end, {first} when the run began", counted(now, "VM"))]
}

/// Reservations that nobody keeps: only mClock knows them, and a lower limit goes before them.
fn unreserved(report: &Report, index: usize) -> Vec<String> {
    let Report { scenario, .. } = report;
    let disks = scenario.hosts.iter().enumerate().flat_map(|(at, host)| {
        let window = &scenario.windows[index];
        let allocations = allocations(scenario, at, window);
        host.config.vdisks.iter().zip(allocations).filter_map(move |(disk, (allocation, _))| {
            let device = &host.config.devices[disk.device.index()];
            let vm = &host.config.vms[disk.vm.index()].name;
            let Allocation { limit_iops, reservation_iops, .. } = allocation;
            let why = match limit_iops.filter(|limit| *limit < reservation_iops) {
                Some(limit) => format!(" of {reservation_iops}, above its IOPS limit of {limit}"),
                None if reservation_iops == 0 || has_mclock(scenario, at, window, device) => {
                    return None;
                }
                None => ", which only mClock keeps".into(),
            };
            Some(clean(&format!("{vm}:{} has a reservation{why}", disk.name)))
        })
    });
    few(disks, "disks with a reservation")
}

/// Devices of which more is reserved, from the beginning of the window to its end, than they do with all
/// their slots taken.
fn overbooked(report: &Report, index: usize) -> Vec<String> {
    const FULL: f64 = 0.95;
    const BY_SHARES: &str =
        " in the DQLEN that Storage I/O Control leaves it, which goes by shares and no reservation";
    let Report { scenario, .. } = report;
    let window = &scenario.windows[index];
    let views = scenario.hosts.iter().zip(&report.outcome.windows[index]).enumerate();
    let lines = views.flat_map(|(at, (host, view))| {
        let recording = &view.recording;
        let mut reserved = vec![0.0; host.config.devices.len()];
        let disks = host.config.vdisks.iter().zip(&view.counters.vdisks);
        for ((disk, counted), (_, least)) in disks.zip(allocations(scenario, at, window)) {
            if counted.shares > 0 {
                reserved[disk.device.index()] += f64::from(least);
            }
        }
        recording.of_kind(Kind::Device).filter_map(move |(id, device)| {
            let devices = &host.config.devices;
            let place = devices.iter().position(|known| known.name == device.name)?;
            let [before, after] = [&view.counters_before, &view.counters]
                .map(|counters| counters.devices.get(place).map_or(0, |device| device.units));
            let units = after.saturating_sub(before) as f64
                / (view.counters.at - view.counters_before.at) as f64
                * SECOND as f64;
            let value = |counter| recording.value(id, counter, 0);
            let is_full = value(Counter::MeanActive)? >= FULL * value(Counter::MeanDeviceQDepth)?;
            let ends = [&view.limits_before, &view.limits];
            let is_shared = ends.iter().any(|end| end.devices[place].congestion_us.is_some());
            let why = if is_shared { BY_SHARES } else { "" };
            (is_full && MET * reserved[place] > units).then(|| {
                format!(
                    "device {}: {} I/Os a second are reserved, more than the {} that it does{why}",
                    clean(&device.name),
                    rate(reserved[place]),
                    rate(units)
                )
            })
        })
    });
    few(lines, "devices of which more is reserved than they do")
}

/// The first of many lines, and how many there are.
fn few(lines: impl Iterator<Item = String>, what: &str) -> Vec<String> {
    let mut lines: Vec<_> = lines.collect();
    let more = lines.len().saturating_sub(NAMED);
    lines.truncate(NAMED);
    if more > 0 {
        lines.push(format!("and {more} more {what}"));
    }
    lines
}
