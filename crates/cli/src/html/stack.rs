//! The stack of one device over the window of the worst finding, and which findings blame which of
//! its levels.

use counters::{EntityId, Kind};
use diagnose::{Cause, Finding, Verdict, Window};
use levels::{DeviceView, Level, LevelKind, Measured, Vdisk};

use super::{Host, rows};

/// The stack of one device over a window. Of an outage there is none: what does not complete has no
/// latency, and what completes after it has that of the outage.
pub(crate) struct Blamed {
    pub(crate) device: String,
    pub(crate) window: Window,
    pub(crate) levels: Vec<Level>,
    /// The level that the worst finding blames.
    pub(crate) guilty: Option<LevelKind>,
    /// The level that each finding on the device blames, by its number on the page.
    pub(crate) findings: Vec<(LevelKind, usize)>,
}

impl Blamed {
    /// The stack of the device that the worst finding is about, or else of the busiest one.
    pub(super) fn of(host: &Host<'_>) -> Option<Self> {
        Self::new(host.recording, host.verdict, &host.devices)
    }

    /// The same without a page.
    pub(crate) fn of_verdict(recording: &Measured, verdict: &Verdict) -> Option<Self> {
        Self::new(recording, verdict, &rows::devices(recording, verdict))
    }

    fn new(recording: &Measured, verdict: &Verdict, devices: &[EntityId]) -> Option<Self> {
        let worst = verdict.findings.first();
        if worst.is_some_and(|worst| worst.cause == Cause::Silence) {
            return None;
        }
        let device_of = |finding: &Finding| rows::device_of(recording, devices, &finding.at);
        let busiest = || devices.first().copied();
        let device = worst.and_then(device_of).or_else(busiest)?;
        let asked = worst.map_or(verdict.window, |finding| finding.window);
        let samples = rows::samples(recording, asked.from_ms, asked.to_ms);
        let of = samples.len();
        let view = DeviceView::new(recording, device, samples);
        let window = Window { samples: view.samples().len(), of, ..asked };
        let guilty = worst.map(|finding| finding.cause.level());
        let adapter = guilty.filter(|level| *level == LevelKind::VirtualAdapter);
        let above = adapter.unwrap_or(LevelKind::VirtualDisk);
        let limit = worst.filter(|worst| worst.cause.level() == above).and_then(|w| w.limit);
        let mut levels = Vec::from(view.above(&disks(recording, device, worst), above, limit));
        let held = worst.filter(|worst| worst.cause == Cause::IopsLimit);
        let held = held.and_then(|worst| worst.sufferers.first()).map(|vm| vm.name.as_str());
        levels.extend(view.levels(held));
        let here = verdict.findings.iter().zip(1..).filter(|f| device_of(f.0) == Some(device));
        let findings = here.map(|(finding, number)| (finding.cause.level(), number)).collect();
        let device = recording.entity(device).name.clone();
        Some(Self { device, window, levels, guilty, findings })
    }
}

/// The virtual disks on a device; those that the finding is about alone, if it is about such.
fn disks<'a>(recording: &'a Measured, device: EntityId, worst: Option<&Finding>) -> Vec<Vdisk<'a>> {
    let on = || recording.of_kind(Kind::VirtualDisk).filter(move |d| d.1.device == Some(device));
    let is_blamed = |disk: &(EntityId, &counters::Entity)| {
        worst.is_some_and(|worst| rows::is_about(&worst.at, disk.1))
    };
    let any = on().any(|disk| is_blamed(&disk));
    let asked = on().filter(|disk| !any || is_blamed(disk));
    asked.map(|(id, _)| Vdisk::of(recording, id)).collect()
}
