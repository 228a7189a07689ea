//! How long the I/Os of a window took, as percentiles: a mean hides the slow ones. They come from the
//! engine's histograms; the JSON of a run shows them.

use std::collections::BTreeMap;

use counters::{DeviceKind, Histogram, Kind, Levels, percentiles_ms, sorted::Ordered};
use scenario::Host;
use serde_json::{Map, Value, json};
use sim::WindowView;

/// The objects of a host that have histograms, by kind and name, each with its percentiles over a
/// window: of virtual disks and VMs those of the whole time, of devices and NFS volumes those of
/// its parts.
pub(crate) fn of(host: &Host, view: &WindowView) -> BTreeMap<(Kind, String), Value> {
    let parts = devices(host, view).into_iter();
    parts
        .chain(
            disks(host, view)
                .into_iter()
                .map(|(object, total)| (object, json!({ "total_ms": percentiles(&total) }))),
        )
        .into_map()
}

/// The whole time of the I/Os of virtual disks, and of the VMs that they belong to.
fn disks(host: &Host, view: &WindowView) -> BTreeMap<(Kind, String), Histogram> {
    let mut totals: BTreeMap<_, Histogram> = BTreeMap::new();
    let counters = view.counters.vdisks.iter().zip(&view.counters_before.vdisks);
    for (disk, (now, then)) in host.config.vdisks.iter().zip(counters) {
        let vm = &host.config.vms[disk.vm.index()].name;
        let total = now.total.since(&then.total);
        totals.entry((Kind::Vm, vm.clone())).or_default().merge(&total);
        totals.insert((Kind::VirtualDisk, format!("{vm}:{}", disk.name)), total);
    }
    totals
}

/// The parts of the time of the I/Os of devices, reads and writes together.
fn devices(host: &Host, view: &WindowView) -> BTreeMap<(Kind, String), Value> {
    let counters = view.counters.devices.iter().zip(&view.counters_before.devices);
    let devices = host.config.devices.iter().zip(counters);
    devices
        .map(|(device, (now, then))| {
            let part = |part: fn(&Levels) -> &Histogram| {
                let mut both = Histogram::default();
                for (now, then) in now.levels.iter().zip(&then.levels) {
                    both.merge(&part(now).since(part(then)));
                }
                percentiles(&both)
            };
            let parts = json!({
                "guest_ms": part(|levels| &levels.guest),
                "kernel_ms": part(|levels| &levels.kernel),
                "device_ms": part(|levels| &levels.device),
            });
            let is_nfs = device.kind == DeviceKind::Nfs;
            let kind = if is_nfs { Kind::NfsVolume } else { Kind::Device };
            ((kind, device.name.clone()), parts)
        })
        .into_map()
}

/// Null where there was no I/O.
fn percentiles(latency: &Histogram) -> Map<String, Value> {
    let named = |(counter, ms): (counters::Counter, _)| (counter.info().key.into(), json!(ms));
    let mut all = Map::new();
    all.extend(percentiles_ms(latency).map(named));
    all
}
