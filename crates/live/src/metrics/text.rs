//! The text of OpenMetrics: families, each with all of its samples together, and the end.
//!
//! Names and units follow its rules: a family of seconds ends in `_seconds`, a total is `…_total`. Each
//! is what esxtop shows as a rate or an average: `rate(kavg_disk_kernel_seconds_total[1m]) /
//! rate(kavg_disk_commands_total[1m])` is KAVG.

use std::fmt::Write;

use counters::{Histogram, IoTotals, VdiskCounters};
use engine::VdiskConfig;
use scenario::Host;

use crate::{counted::Counted, hosts::Shared, mailbox::Reading};

/// The least bound of a histogram's buckets, in nanoseconds; each further one is twice the one before,
/// where the counters' own buckets have a bound too. 2^16 ns are 66 us, 2^34 are 17 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 16..=34;

/// What a sample is of, by the names of its labels.
const OPS: [&str; 3] = ["read", "write", "other"];

/// A family: its name, what it is, and where its samples come from.
struct Family {
    name: &'static str,
    help: &'static str,
    samples: Samples,
}

/// Samples of one family, for each object of a kind.
enum Samples {
    /// Of a disk and a direction: a total.
    DiskIo(fn(&IoTotals) -> u64),
    /// The same in nanoseconds, written in seconds.
    DiskNanos(fn(&IoTotals) -> u64),
    /// Of a disk: a total.
    DiskTotal(fn(&VdiskCounters) -> u64),
    /// Of a disk: what it is now.
    DiskNow(fn(&VdiskCounters) -> u32),
    /// Of a disk: what it is set to, where it is.
    DiskSet(fn(&VdiskConfig) -> Option<u32>),
    /// Of a disk: latencies.
    DiskHistogram,
    /// Of a device: a total.
    DeviceTotal(fn(&counters::DeviceCounters) -> u64),
    /// Of a device: what it is now.
    DeviceNow(fn(&counters::DeviceCounters) -> u32),
    /// Of a device and a direction: latencies.
    DeviceHistogram,
    /// Of an adapter: what it is now.
    AdapterNow(fn(&counters::GateCounters) -> u32),
    /// Of a path: whether it is usable.
    PathUp,
}

const fn family(name: &'static str, help: &'static str, samples: Samples) -> Family {
    Family { name, help, samples }
}

/// Every family.
const FAMILIES: [Family; 27] = [
    family(
        "kavg_disk_commands",
        "Commands that a disk completed (CMDS/s).",
        Samples::DiskIo(|io| io.commands),
    ),
    family("kavg_disk_bytes", "Bytes that a disk moved.", Samples::DiskIo(|io| io.bytes)),
    family(
        "kavg_disk_guest_seconds",
        "Time that commands waited in the guest (GWAIT).",
        Samples::DiskNanos(|io| io.guest_ns),
    ),
    family(
        "kavg_disk_kernel_seconds",
        "Time that commands spent in the VMkernel (KAVG).",
        Samples::DiskNanos(|io| io.kernel_ns),
    ),
    family(
        "kavg_disk_queue_seconds",
        "The part of it in queues (QAVG).",
        Samples::DiskNanos(|io| io.queue_ns),
    ),
    family(
        "kavg_disk_device_seconds",
        "Time that commands spent at the device (DAVG).",
        Samples::DiskNanos(|io| io.device_ns),
    ),
    family(
        "kavg_disk_latency_seconds",
        "Latency of commands, the wait in the guest included.",
        Samples::DiskHistogram,
    ),
    family(
        "kavg_disk_guest_queued",
        "Commands that wait in the guest now.",
        Samples::DiskNow(|disk| disk.guest_queued.now()),
    ),
    family(
        "kavg_disk_queued",
        "Commands of a disk that wait for a slot of the device now.",
        Samples::DiskNow(|disk| disk.queued.now()),
    ),
    family(
        "kavg_disk_active",
        "Commands of a disk that hold a slot now.",
        Samples::DiskNow(|disk| disk.slots.now()),
    ),
    family("kavg_disk_shares", "Shares of a disk.", Samples::DiskNow(|disk| disk.shares)),
    family(
        "kavg_disk_limit_iops",
        "The IOPS limit of a disk that has one.",
        Samples::DiskSet(|disk| disk.allocation.limit_iops),
    ),
    family(
        "kavg_disk_failed",
        "Commands that failed (FCMDS/s).",
        Samples::DiskTotal(|disk| disk.rare.get().failed.iter().sum()),
    ),
    family(
        "kavg_disk_aborts",
        "Commands that were aborted (ABRTS/s).",
        Samples::DiskTotal(|disk| disk.rare.get().aborts),
    ),
    family(
        "kavg_disk_overdue",
        "Commands that the host asked back because they took too long.",
        Samples::DiskTotal(|disk| disk.rare.get().overdue),
    ),
    family(
        "kavg_disk_resets",
        "Resets that a guest issued (RESETS/s).",
        Samples::DiskTotal(|disk| disk.rare.get().resets),
    ),
    family(
        "kavg_disk_flushes",
        "Flushes that completed.",
        Samples::DiskTotal(|disk| disk.rare.get().flushes),
    ),
    family(
        "kavg_device_queue_depth",
        "The limit on a device's outstanding commands (DQLEN).",
        Samples::DeviceNow(|device| device.depth),
    ),
    family(
        "kavg_device_active",
        "Commands that hold a slot of a device now (ACTV).",
        Samples::DeviceNow(|device| device.active.now()),
    ),
    family(
        "kavg_device_queued",
        "Commands that wait for a slot of a device now (QUED).",
        Samples::DeviceNow(|device| device.queued.now()),
    ),
    family(
        "kavg_device_engagements",
        "Times that the limit fell to DSNRO because VMs competed.",
        Samples::DeviceTotal(|device| device.engagements),
    ),
    family(
        "kavg_device_queue_full",
        "Results TASK SET FULL or BUSY.",
        Samples::DeviceTotal(|device| device.queue_full),
    ),
    family(
        "kavg_device_resets",
        "LUN resets by the host.",
        Samples::DeviceTotal(|device| device.resets),
    ),
    family(
        "kavg_device_latency_seconds",
        "Latency of a device's commands, from the driver on (DAVG).",
        Samples::DeviceHistogram,
    ),
    family(
        "kavg_adapter_queue_depth",
        "The limit on an adapter's outstanding commands (AQLEN).",
        Samples::AdapterNow(|adapter| adapter.depth),
    ),
    family(
        "kavg_adapter_active",
        "Commands that an adapter has under way now.",
        Samples::AdapterNow(|adapter| adapter.active.now()),
    ),
    family("kavg_path_up", "Whether a path is usable: 0 where it is off or dead.", Samples::PathUp),
];

/// A host as it is read.
struct Read {
    host: Host,
    reading: Reading,
}

/// The text of all hosts.
pub(super) fn all(hosts: &Shared) -> Result<String, String> {
    let known: Vec<_> = crate::hosts::lock(hosts).all().collect();
    let read = |(host, counted): (Host, std::sync::Arc<Counted>)| {
        Ok(Read { host, reading: counted.read()? })
    };
    let read: Vec<Read> = known.into_iter().map(read).collect::<Result<_, String>>()?;
    Ok(write(&read))
}

fn write(hosts: &[Read]) -> String {
    let mut out = Text(String::new());
    for family in &FAMILIES {
        out.head(family);
        for read in hosts {
            out.family(family, read);
        }
    }
    out.0.push_str("# EOF\n");
    out.0
}

struct Text(String);

impl Text {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // A text takes all that is written.
        let _ = writeln!(self.0, "{line}");
    }

    fn head(&mut self, Family { name, help, samples }: &Family) {
        let kind = match samples {
            Samples::DiskIo(_) | Samples::DiskNanos(_) | Samples::DiskTotal(_) => "counter",
            Samples::DeviceTotal(_) => "counter",
            Samples::DiskNow(_) | Samples::DeviceNow(_) | Samples::AdapterNow(_) => "gauge",
            Samples::DiskSet(_) | Samples::PathUp => "gauge",
            Samples::DiskHistogram | Samples::DeviceHistogram => "histogram",
        };
        self.line(format_args!("# TYPE {name} {kind}"));
        for unit in ["seconds", "bytes"].iter().filter(|unit| name.ends_with(**unit)) {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
        self.line(format_args!("# HELP {name} {help}"));
    }

    fn family(&mut self, Family { name, samples, .. }: &Family, read: &Read) {
        match samples {
            Samples::DiskIo(of) => read.disks(|labels, disk| {
                for (op, io) in OPS.iter().zip(&disk.io) {
                    self.line(format_args!("{name}_total{{{labels},op=\"{op}\"}} {}", of(io)));
                }
            }),
            Samples::DiskNanos(of) => read.disks(|labels, disk| {
                for (op, io) in OPS.iter().zip(&disk.io) {
                    let seconds = seconds(of(io));
                    self.line(format_args!("{name}_total{{{labels},op=\"{op}\"}} {seconds}"));
                }
            }),
            Samples::DiskTotal(of) => read.disks(|labels, disk| {
                self.line(format_args!("{name}_total{{{labels}}} {}", of(disk)));
            }),
            Samples::DiskNow(of) => read.disks(|labels, disk| {
                self.line(format_args!("{name}{{{labels}}} {}", of(disk)));
            }),
            Samples::DiskSet(of) => {
                for disk in &read.host.config.vdisks {
                    if let Some(value) = of(disk) {
                        self.line(format_args!("{name}{{{}}} {value}", read.labels(disk)));
                    }
                }
            }
            Samples::DiskHistogram => read.disks(|labels, disk| {
                self.histogram(name, labels, &disk.total, Some(disk.total_ns));
            }),
            Samples::DeviceTotal(of) => read.devices(|labels, device| {
                self.line(format_args!("{name}_total{{{labels}}} {}", of(device)));
            }),
            Samples::DeviceNow(of) => read.devices(|labels, device| {
                self.line(format_args!("{name}{{{labels}}} {}", of(device)));
            }),
            Samples::DeviceHistogram => read.devices(|labels, device| {
                for (op, levels) in OPS.iter().zip(&device.levels) {
                    let labels = format!("{labels},op=\"{op}\"");
                    self.histogram(name, &labels, &levels.device, None);
                }
            }),
            Samples::PathUp => read.paths(|labels, usable| {
                self.line(format_args!("{name}{{{labels}}} {}", u32::from(usable)));
            }),
            Samples::AdapterNow(of) => {
                for (adapter, counters) in
                    read.host.config.adapters.iter().zip(&read.reading.counters.adapters)
                {
                    let (host, name_of) = (escaped(&read.host.config.name), escaped(&adapter.name));
                    let value = of(counters);
                    self.line(format_args!(
                        "{name}{{host=\"{host}\",adapter=\"{name_of}\"}} {value}"
                    ));
                }
            }
        }
    }

    /// A histogram; its sum, and with it its count, where that is known.
    fn histogram(&mut self, name: &str, labels: &str, of: &Histogram, sum_ns: Option<u64>) {
        for bound in BOUNDS {
            let bound = 1 << bound;
            let below: u64 = of
                .filled()
                .filter(|(_, high, _)| *high <= bound)
                .map(|(_, _, entries)| u64::from(entries))
                .sum();
            let le = seconds(bound);
            self.line(format_args!("{name}_bucket{{{labels},le=\"{le}\"}} {below}"));
        }
        let count = of.count();
        self.line(format_args!("{name}_bucket{{{labels},le=\"+Inf\"}} {count}"));
        if let Some(sum_ns) = sum_ns {
            self.line(format_args!("{name}_count{{{labels}}} {count}"));
            self.line(format_args!("{name}_sum{{{labels}}} {}", seconds(sum_ns)));
        }
    }
}

impl Read {
    fn disks(&self, mut each: impl FnMut(&str, &VdiskCounters)) {
        let disks = self.host.config.vdisks.iter().zip(&self.reading.counters.vdisks);
        disks.for_each(|(disk, counters)| each(&self.labels(disk), counters));
    }

    /// The labels of a disk.
    fn labels(&self, disk: &VdiskConfig) -> String {
        let config = &self.host.config;
        format!(
            "host=\"{}\",vm=\"{}\",disk=\"{}\",device=\"{}\"",
            escaped(&config.name),
            escaped(&config.vms[disk.vm.index()].name),
            escaped(&disk.name),
            escaped(&config.devices[disk.device.index()].name)
        )
    }

    fn paths(&self, mut each: impl FnMut(&str, bool)) {
        let config = &self.host.config;
        for (path, usable) in config.paths.iter().zip(&self.reading.usable) {
            let labels = format!(
                "host=\"{}\",device=\"{}\",adapter=\"{}\",path=\"{}\"",
                escaped(&config.name),
                escaped(&config.devices[path.device.index()].name),
                escaped(&config.adapters[path.adapter.index()].name),
                escaped(&path.name)
            );
            each(&labels, *usable);
        }
    }

    fn devices(&self, mut each: impl FnMut(&str, &counters::DeviceCounters)) {
        let devices = self.host.config.devices.iter().zip(&self.host.datastores);
        for ((device, datastores), counters) in devices.zip(&self.reading.counters.devices) {
            let labels = format!(
                "host=\"{}\",device=\"{}\",datastore=\"{}\"",
                escaped(&self.host.config.name),
                escaped(&device.name),
                escaped(&datastores.join(","))
            );
            each(&labels, counters);
        }
    }
}

/// Nanoseconds in seconds, as a decimal number of all their digits.
fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / counters::SECOND, nanos % counters::SECOND);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_all_their_digits() {
        let table =
            [(0, "0.0"), (1, "0.000000001"), (1 << 16, "0.000065536"), (2_500_000_000, "2.5")];
        for (nanos, expected) in table {
            assert_eq!(seconds(nanos), expected);
        }
    }

    #[test]
    fn labels_cannot_be_broken_out_of() {
        assert_eq!(escaped("a\"} 1\n# \\"), "a\\\"} 1\\n# \\\\");
    }

    #[test]
    fn names_follow_the_rules_and_are_told_once() {
        let mut names: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
        names.sort_unstable();
        names.windows(2).for_each(|pair| assert_ne!(pair[0], pair[1]));
        for name in names {
            assert!(name.starts_with("kavg_"), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            let reserved = ["_total", "_count", "_sum", "_bucket", "_created", "_info"];
            assert!(!reserved.iter().any(|end| name.ends_with(end)), "{name}");
        }
    }

    #[test]
    fn buckets_grow_and_end_with_all() {
        let mut of = Histogram::default();
        [10_000, 100_000, 1_000_000, 100_000_000_000].iter().for_each(|nanos| of.record(*nanos));
        let mut out = Text(String::new());
        out.histogram("x_seconds", "a=\"b\"", &of, Some(7));
        let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        let buckets: Vec<f64> =
            out.0.lines().filter(|line| line.contains("_bucket")).map(value).collect();
        assert!(buckets.is_sorted());
        assert_eq!((buckets[0], buckets.last()), (1.0, Some(&4.0)));
        assert!(out.0.contains("x_seconds_bucket{a=\"b\",le=\"0.000131072\"} 2\n"), "{}", out.0);
        assert!(
            out.0.ends_with("x_seconds_count{a=\"b\"} 4\nx_seconds_sum{a=\"b\"} 0.000000007\n")
        );
    }
}
