//! What is drawn over time, as data for the script of the page.
//!
//! Which object is charted is decided here: those that findings are about, then those with most
//! load, within a bound of numbers on the page. The script draws whatever charts it is given.

use counters::{Counter as C, EntityId, Kind};
use diagnose::{Finding, ObjectKind};
use levels::{Column, Flow, Measured, Tenant, Vdisk, tenants};
use maud::{Markup, html};

use super::{
    Host, Page,
    reduce::{bucket, instants, pack, pack_instants, percentiles, reduce, short},
    rows,
    words::{number, safe},
};

/// Numbers on a page, about: of four characters each that is two megabytes.
const NUMBERS_MAX: usize = 500_000;
/// Points of a series; the range is for pages of many hosts.
const POINTS: std::ops::RangeInclusive<usize> = 200..=2_000;
/// Objects of a host.
const OBJECTS_MAX: usize = 12;
/// VMs of a device; the load of the others is drawn as one.
const VMS_MAX: usize = 8;
/// Series of a device, at most.
const SERIES: usize = 10 + 2 * (VMS_MAX + 1);

/// The charts of a page, host by host.
pub(super) struct Charts {
    hosts: Vec<HostCharts>,
}

struct HostCharts {
    /// Samples in the recording, and those that share a bucket.
    samples: usize,
    bucket: usize,
    times: String,
    objects: Vec<Object>,
    /// Devices with load that are not charted.
    left_out: usize,
    /// Where a finding is, and the object that shows it.
    places: Vec<(String, usize)>,
}

/// A device, an adapter or a virtual disk with its charts.
struct Object {
    kind: &'static str,
    name: String,
    charts: Vec<Chart>,
    /// Begin, end and number of each finding about it.
    windows: Vec<(i64, i64, usize)>,
}

struct Chart {
    title: &'static str,
    unit: &'static str,
    series: Vec<Series>,
}

struct Series {
    name: String,
    /// The colour's name in the style sheet.
    role: String,
    /// The unit of a scale of its own, at the right.
    right: &'static str,
    is_limit: bool,
    values: String,
    percentiles: Option<[f64; 4]>,
}

impl Charts {
    /// Chooses what to chart and reduces it.
    pub(super) fn of(page: &Page<'_>) -> Self {
        let numbers = NUMBERS_MAX / page.hosts.len().max(1);
        let points = (numbers / SERIES).clamp(*POINTS.start(), *POINTS.end());
        Self {
            hosts: page.hosts.iter().map(|host| HostCharts::of(host, numbers, points)).collect(),
        }
    }

    /// The data for the script. It stands in a script element: nothing in it can end that.
    pub(super) fn json(&self) -> String {
        let hosts = joined(self.hosts.iter().map(HostCharts::json));
        format!("{{\"hosts\":{hosts}}}").replace('<', "\\u003c").replace('>', "\\u003e")
    }

    /// The place of a host's charts, and for readers without script the percentiles.
    pub(super) fn render(&self, host: usize, id: &str) -> Markup {
        let Some(charts) = self.hosts.get(host).filter(|host| !host.objects.is_empty()) else {
            return html! {};
        };
        html! {
            section aria-labelledby=(id) {
                h2 #(id) { "Over time" }
                div.charts data-host=(host) {}
                noscript {
                    p { "The charts need JavaScript; everything else on this page does not. These "
                        "are their percentiles over the whole capture." }
                    @for object in &charts.objects { (object.percentiles()) }
                }
                p.note { (charts.note()) }
            }
        }
    }
}

impl HostCharts {
    fn of(host: &Host<'_>, numbers: usize, points: usize) -> Self {
        let Host { recording, verdict, devices, .. } = host;
        let bucket = bucket(recording.len(), points);
        let times = instants(&recording.times_ms, bucket);
        let fit = numbers / (SERIES * times.len().max(1));
        let mut chosen: Vec<EntityId> = Vec::new();
        let mut places = Vec::new();
        for finding in &verdict.findings {
            let objects = objects_of(host, finding);
            let new = objects.iter().filter(|id| !chosen.contains(id));
            chosen.extend(new.copied().collect::<Vec<_>>());
            if let Some(first) = objects.first() {
                places.push((rows::key(&finding.at), *first));
            }
        }
        let rest = devices.iter().filter(|id| !chosen.contains(id));
        chosen.extend(rest.copied().collect::<Vec<_>>());
        chosen.truncate(fit.clamp(1, OBJECTS_MAX));
        let place = |(at, id): &(String, EntityId)| {
            Some((at.clone(), chosen.iter().position(|chosen| chosen == id)?))
        };
        Self {
            samples: recording.len(),
            bucket,
            times: pack_instants(&times),
            objects: chosen.iter().map(|&id| Object::of(host, id, bucket)).collect(),
            left_out: devices.iter().filter(|device| !chosen.contains(device)).count(),
            places: places.iter().filter_map(place).collect(),
        }
    }

    fn json(&self) -> String {
        let objects = joined(self.objects.iter().map(Object::json));
        let places = self.places.iter().map(|(at, object)| format!("[{},{object}]", quoted(at)));
        format!(
            "{{\"bucket\":{},\"times\":{},\"objects\":{objects},\"places\":{}}}",
            self.bucket,
            self.times,
            joined(places)
        )
    }

    /// What the charts rest on, and what they leave out.
    fn note(&self) -> String {
        let mut note = String::from(
            "Each sample is a mean over its interval, so single commands were slower; percentiles \
             are those of the samples. Latency is drawn where there were commands.",
        );
        if self.bucket > 1 {
            note += &format!(
                " Of each {} of the {} samples the least and the largest value are drawn, so that \
                 peaks stay. Percentiles over the whole capture are those of all samples; over a \
                 part of it, of the values that are drawn, which puts P95 and P99 too high rather \
                 than too low.",
                self.bucket,
                number(Some(self.samples as f64))
            );
        }
        match self.left_out {
            0 => {}
            1 => note += " One device with less load is not charted.",
            more => note += &format!(" {more} devices with less load are not charted."),
        }
        note
    }
}

/// What shows a finding: its virtual disk or adapter, and the device.
fn objects_of(host: &Host<'_>, finding: &Finding) -> Vec<EntityId> {
    let Host { recording, devices, .. } = host;
    let own = match finding.at.kind {
        ObjectKind::Row(kind @ (Kind::VirtualDisk | Kind::Adapter)) => {
            recording.find(kind, &finding.at.name)
        }
        _ => None,
    };
    own.into_iter().chain(rows::device_of(recording, devices, &finding.at)).collect()
}

impl Object {
    fn of(host: &Host<'_>, id: EntityId, bucket: usize) -> Self {
        let entity = host.recording.entity(id);
        let drawn = Drawing { recording: host.recording, id, bucket };
        let findings = host.verdict.findings.iter().enumerate();
        let about = findings.filter(|(_, finding)| objects_of(host, finding).contains(&id));
        let mut charts = match entity.kind {
            Kind::VirtualDisk => drawn.disk(),
            Kind::Adapter => drawn.adapter(),
            _ => drawn.device(entity.kind == Kind::NfsVolume),
        };
        for chart in &mut charts {
            chart.series.retain(|series| series.percentiles.is_some());
        }
        charts.retain(|chart| !chart.series.is_empty());
        Self {
            kind: entity.kind.name(),
            name: entity.name.clone(),
            charts,
            windows: about.map(|(i, f)| (f.window.from_ms, f.window.to_ms, i + 1)).collect(),
        }
    }

    fn json(&self) -> String {
        let windows = self.windows.iter().map(|(from, to, n)| format!("[{from},{to},{n}]"));
        format!(
            "{{\"kind\":{},\"name\":{},\"windows\":{},\"charts\":{}}}",
            quoted(self.kind),
            quoted(&self.name),
            joined(windows),
            joined(self.charts.iter().map(Chart::json))
        )
    }

    fn percentiles(&self) -> Markup {
        html! {
            table {
                caption { (self.kind) " " (self.name) }
                thead {
                    tr {
                        th scope="col" { "series" }
                        @for head in ["P50", "P95", "P99", "max"] { th.n scope="col" { (head) } }
                    }
                }
                tbody {
                    @for chart in &self.charts { @for series in &chart.series {
                        tr {
                            th scope="row" { (chart.title) ": " (series.name) }
                            @for value in series.percentiles.map_or([None; 4], |p| p.map(Some)) {
                                td.n { (number(value)) }
                            }
                        }
                    } }
                }
            }
        }
    }
}

impl Chart {
    fn json(&self) -> String {
        format!(
            "{{\"title\":{},\"unit\":{},\"series\":{}}}",
            quoted(self.title),
            quoted(self.unit),
            joined(self.series.iter().map(Series::json))
        )
    }
}

impl Series {
    fn json(&self) -> String {
        let percentiles = self.percentiles.map(|values| joined(values.into_iter().map(short)));
        format!(
            "{{\"name\":{},\"role\":{},\"right\":{},\"limit\":{},\"percentiles\":{},\
             \"values\":{}}}",
            quoted(&self.name),
            quoted(&self.role),
            quoted(self.right),
            self.is_limit,
            percentiles.as_deref().unwrap_or("null"),
            self.values
        )
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    format!("[{}]", parts.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(safe(text)).to_string()
}

/// One object of a recording, drawn.
struct Drawing<'a> {
    recording: &'a Measured,
    id: EntityId,
    bucket: usize,
}

impl<'a> Drawing<'a> {
    fn device(&self, is_nfs: bool) -> Vec<Chart> {
        let flow = Flow::of(self.recording, self.id);
        let tenants = tenants(self.recording, self.id);
        let layers: &[_] = if is_nfs { &LAYERS[..1] } else { &LAYERS };
        let mut charts = vec![self.latency(&flow, layers), self.queue(), self.load(&flow)];
        if !tenants.is_empty() {
            charts.push(self.vms("Commands per second by VM", "1/s", &tenants, true, Tenant::rate));
            charts.push(self.vms("Latency by VM (GAVG)", "ms", &tenants, false, Tenant::gavg));
        }
        charts
    }

    fn adapter(&self) -> Vec<Chart> {
        let flow = Flow::of(self.recording, self.id);
        vec![self.latency(&flow, &LAYERS), self.load(&flow)]
    }

    fn disk(&self) -> Vec<Chart> {
        let disk = Vdisk::of(self.recording, self.id);
        let latency = |name: &str, role: &str, counter, rate| {
            let (ms, rate) = (self.column(counter), self.column(rate));
            let value = |sample| ms.at(sample).filter(|_| rate.at(sample) > Some(0.0));
            self.series(name, role, value)
        };
        let mut latencies = vec![
            latency("reads", "reads", C::VdiskReadLatency, C::Reads),
            latency("writes", "writes", C::VdiskWriteLatency, C::Writes),
        ];
        if disk.guest_wait.is_there() {
            latencies.push(self.series("wait in the guest", "qavg", |s| disk.guest_wait.at(s)));
        }
        let outstanding =
            self.series("outstanding, by Little's law", "actv", |s| disk.outstanding(s));
        let flow = Flow::of(self.recording, self.id);
        vec![
            Chart { title: "Latency at the virtual adapter", unit: "ms", series: latencies },
            Chart { title: "Outstanding", unit: "commands", series: vec![outstanding] },
            self.load(&flow),
        ]
    }

    /// Latencies where there were commands.
    fn latency(&self, flow: &Flow<'_>, layers: &[Layer]) -> Chart {
        let one = |(name, role, of): &Layer| {
            self.series(name, role, |sample| {
                of(flow, sample).filter(|_| flow.rate(sample) > Some(0.0))
            })
        };
        Chart { title: "Latency by layer", unit: "ms", series: layers.iter().map(one).collect() }
    }

    fn queue(&self) -> Chart {
        let columns = [
            ("ACTV", "actv", C::ActiveCommands),
            ("QUED", "qued", C::QueuedCommands),
            ("DQLEN", "limit", C::DeviceQDepth),
        ];
        let one = |(name, role, counter): (&str, &str, C)| {
            let column = self.column(counter);
            let is_limit = counter == C::DeviceQDepth;
            Series { is_limit, ..self.series(name, role, |sample| column.at(sample)) }
        };
        let series = columns.map(one).into();
        Chart { title: "Queue, at the instant of each sample", unit: "commands", series }
    }

    fn load(&self, flow: &Flow<'_>) -> Chart {
        let commands = self.series("commands", "commands", |sample| flow.commands.at(sample));
        let bytes = self.series("MiB/s", "bytes", |sample| flow.mib_per_s(sample));
        let bytes = Series { right: "MiB/s", ..bytes };
        Chart {
            title: "Load",
            unit: "commands/s, MiB/s at the right",
            series: vec![commands, bytes],
        }
    }

    /// The VMs with most load, and what the others add up to where it does.
    fn vms(
        &self,
        title: &'static str,
        unit: &'static str,
        tenants: &[Tenant<'a>],
        adds_up: bool,
        of: fn(&Tenant<'a>, usize) -> Option<f64>,
    ) -> Chart {
        let (top, rest) = tenants.split_at(tenants.len().min(VMS_MAX));
        let vms = top.iter().enumerate();
        let one = |(index, vm): (usize, &Tenant<'a>)| {
            self.series(vm.name, &format!("vm{}", index + 1), |sample| of(vm, sample))
        };
        let mut series: Vec<_> = vms.map(one).collect();
        if adds_up && !rest.is_empty() {
            let name = format!("{} more", rest.len());
            series.push(self.series(&name, "limit", |s| rest.iter().map(|vm| of(vm, s)).sum()));
        }
        Chart { title, unit, series }
    }

    fn column(&self, counter: C) -> Column<'_> {
        Column::of(self.recording, self.id, counter)
    }

    fn series(&self, name: &str, role: &str, value: impl Fn(usize) -> Option<f64>) -> Series {
        let values = (0..self.recording.len()).map(|sample| value(sample).unwrap_or(f64::NAN));
        let values: Vec<f64> = values.collect();
        Series {
            name: name.into(),
            role: role.into(),
            right: "",
            is_limit: false,
            percentiles: percentiles(&values),
            values: pack(&reduce(&values, self.bucket)),
        }
    }
}

/// A latency: its name, its colour, and how a row has it.
type Layer = (&'static str, &'static str, fn(&Flow<'_>, usize) -> Option<f64>);

/// GAVG first: it is all that an NFS volume has [ELA].
const LAYERS: [Layer; 4] = [
    ("GAVG", "gavg", |flow, sample| flow.gavg(sample)),
    ("DAVG", "davg", |flow, sample| flow.davg(sample)),
    ("KAVG", "kavg", |flow, sample| flow.kavg(sample)),
    ("QAVG", "qavg", |flow, sample| flow.qavg(sample)),
];
