//! What is asked: settings, for which devices, over which stretch of the recording.

use diagnose::{Change, Effect};

/// A question to a recording.
#[derive(Clone, Debug)]
pub struct Question {
    /// Lines as esxcli takes them, or for a guest's PVSCSI driver with the VM's name in front
    /// (`sql01: RequestRingPages=32,MaxQueueDepth=254`). All of them are one change, in force
    /// after the reboots that it needs.
    pub settings: Vec<String>,
    /// Begin and end of the stretch that is simulated, in milliseconds since 1970-01-01 UTC: the
    /// intervals that end after the first and not after the second.
    pub window: (i64, i64),
    /// The device in question; without one, all that the settings name or act on.
    pub device: Option<String>,
    /// Commands that a run simulates, about: 100,000 answer in tens of milliseconds.
    pub commands: f64,
}

/// The settings of a change that was proposed for `at`, a device or virtual disk; nothing when it
/// sets nothing that a simulation knows. Of several lines of which one is to be typed, it is the
/// first; of those for Windows and Linux that for Windows.
#[must_use]
pub fn settings_of(change: &Change, at: &str) -> Vec<String> {
    let sets = |line: &&String| {
        let line = line.trim_start_matches("esxcli ");
        line.starts_with("storage core device set ")
            || line.starts_with("system module parameters set ")
            || line.starts_with("system settings advanced set ")
    };
    if let Some(line) = change.esxcli.iter().find(sets) {
        return vec![line.clone()];
    }
    if change.effect != Effect::GuestReboot {
        return Vec::new();
    }
    let vm = at.rsplitn(3, ':').last().unwrap_or(at);
    let windows = change.guest.iter().find(|line| line.contains("RequestRingPages="));
    let data = windows.and_then(|line| line.split('"').find(|part| part.contains('=')));
    data.map(|data| format!("{vm}: {data}")).into_iter().collect()
}
