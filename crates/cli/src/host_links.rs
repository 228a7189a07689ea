//! What a run knows of the links of a host's own ports over a window: how full each is, and what commands of a
//! device are on them.

use std::collections::BTreeMap;

use counters::{Counter, EntityId, Kind, PathId, sorted::Ordered};
use diagnose::HostLink;
use knobs::Transport;
use levels::{Measured, mean};
use scenario::Host;

/// The links of the ports of a host.
pub(crate) struct HostLinks<'a> {
    host: &'a Host,
    /// By link, the share in use in each sample.
    busy: Vec<Vec<f64>>,
    /// By path, whether commands went by it.
    used: Vec<bool>,
}

impl<'a> HostLinks<'a> {
    /// Those of a host of which `recording` has the samples.
    pub(crate) fn of(host: &'a Host, recording: &Measured) -> Self {
        let links = &host.initiator.links;
        let mut bytes = vec![vec![[0.0; 2]; recording.len()]; links.len()];
        let mut this = Self { host, busy: Vec::new(), used: vec![false; host.config.paths.len()] };
        let rows = PathRows::of(host, recording);
        for place in 0..host.config.paths.len() {
            let Some(link) = this.link(place) else { continue };
            let Some((id, part)) = rows.row(place) else { continue };
            for (sample, bytes) in bytes[link].iter_mut().enumerate() {
                let value = |counter| part * recording.value(id, counter, sample).unwrap_or(0.0);
                this.used[place] |= value(Counter::Commands) > 0.0;
                add_bytes(bytes, value);
            }
        }
        let busy = bytes.iter().zip(links).map(|(bytes, rate)| in_use(bytes, *rate as f64));
        this.busy = busy.collect();
        this
    }

    /// The link that a path crosses.
    fn link(&self, path: usize) -> Option<usize> {
        self.host.initiator.nexus(path)?.link
    }

    /// What is known of the fullest that commands of a device cross, where a command of so many KiB is on it for so
    /// many milliseconds; `paths` are the device's that work.
    pub(crate) fn before(
        &self,
        paths: impl Iterator<Item = PathId> + Clone,
        (size_kib, time_ms): (f64, f64),
    ) -> Option<HostLink> {
        let share = |link: usize| mean_use(&self.busy[link]);
        let used = paths.clone().filter(|path| self.used[path.index()]);
        let used = used.filter_map(|path| Some((self.link(path.index())?, path)));
        let (link, path) = used.max_by(|a, b| share(a.0).total_cmp(&share(b.0)))?;
        let others = paths.map(|path| self.link(path.index())).filter(|own| *own != Some(link));
        let is_beside = |is: &dyn Fn(usize) -> bool| others.clone().any(|own| own.is_none_or(is));
        let rates = &self.host.initiator.links;
        let config = &self.host.config;
        let adapter = &config.adapters[config.paths[path.index()].adapter.index()];
        Some(HostLink {
            adapter: adapter.name.clone(),
            is_vmkernel: adapter.driver.transport == Transport::Iscsi,
            busy: self.busy[link].clone(),
            time_ms,
            own_ms: moving_ms(size_kib, rates[link]),
            has_room_beside: is_beside(&|own| share(own) < ROOM),
            is_slower: is_beside(&|own| rates[own] > rates[link]),
        })
    }
}

/// The share in use up to which a link has room for more.
pub(crate) const ROOM: f64 = 0.8;

/// The share in use in each sample of a link of so many bytes a second each way, over which these went each way.
pub(crate) fn in_use(bytes: &[[f64; 2]], rate: f64) -> Vec<f64> {
    bytes.iter().map(|[read, written]| (read.max(*written) / rate).min(1.0)).collect()
}

/// What so many KiB take to move at so many bytes a second, in milliseconds.
pub(crate) fn moving_ms(size_kib: f64, rate: u64) -> f64 {
    1000.0 * size_kib * 1024.0 / rate as f64
}

/// The share in use over all samples.
pub(crate) fn mean_use(busy: &[f64]) -> f64 {
    mean(busy.iter().copied()).unwrap_or_default()
}

/// Where a recording has what goes by the paths of a host of whose ways something is known.
pub(crate) struct PathRows<'a> {
    host: &'a Host,
    rows: BTreeMap<&'a str, EntityId>,
    /// A mount of NFS has a row, and its connections none: each carries as much.
    mounts: BTreeMap<&'a str, EntityId>,
}

impl<'a> PathRows<'a> {
    pub(crate) fn of(host: &'a Host, recording: &'a Measured) -> Self {
        let of_kind = |kind| -> BTreeMap<&str, _> {
            let all = recording.of_kind(kind).filter(|_| !host.initiator.nexuses.is_empty());
            all.map(|(id, row)| (row.name.as_str(), id)).into_map()
        };
        Self { host, rows: of_kind(Kind::Path), mounts: of_kind(Kind::NfsVolume) }
    }

    /// The row of a path, and which part of what it says went by this path.
    pub(crate) fn row(&self, place: usize) -> Option<(EntityId, f64)> {
        let config = &self.host.config;
        let path = &config.paths[place];
        if let Some(id) = self.rows.get(&*path.name) {
            return Some((*id, 1.0));
        }
        let id = self.mounts.get(&*config.devices[path.device.index()].name)?;
        let like = config.paths.iter().filter(|other| other.device == path.device);
        Some((*id, 1.0 / like.count() as f64))
    }
}

/// Adds what a row says is read and written.
pub(crate) fn add_bytes(bytes: &mut [f64; 2], value: impl Fn(Counter) -> f64) {
    for (bytes, counter) in bytes.iter_mut().zip([Counter::MbRead, Counter::MbWritten]) {
        *bytes += value(counter) * f64::from(1 << 20);
    }
}
