//! A device behind the same adapters that answers sooner meanwhile, for the rules on the array: against it
//! a device that is slow all the time is held.

use levels::array_of;

use super::{Case, at_rest::ENOUGH_COMMANDS};
use crate::{Device, Flow, Spell};

/// How many times faster the others must be.
pub(crate) const CONTRAST: f64 = 5.0;

/// Whether a device is a disk of the host's own, by the form of its name: that of a SATA or NVMe disk, or one
/// that is no more than its path. Other names of T10 and EUI-64 are those of arrays too (memory).
fn is_local(name: &str) -> bool {
    ["t10.ATA", "t10.NVMe", "mpx."].iter().any(|local| name.starts_with(local))
}

/// Another device behind the same adapters that is answered fast in the same samples, and that is
/// of the same array, as far as the names tell.
pub(super) fn faster_peer(
    case: &Case<'_>,
    device: &Device<'_>,
    spell: &Spell,
    davg: f64,
) -> Option<(String, f64)> {
    let array = array_of(device.flow.name);
    let is_of_array = |peer: &Device<'_>| array == array_of(peer.flow.name);
    quickest(case, device, spell, is_of_array).filter(|(_, peer_ms)| peer_ms * CONTRAST <= davg)
}

/// The device behind the same adapters that is answered fastest in the same samples, of those of a kind.
pub(super) fn quickest(
    case: &Case<'_>,
    device: &Device<'_>,
    spell: &Spell,
    is_kind: impl Fn(&Device<'_>) -> bool,
) -> Option<(String, f64)> {
    let seconds: f64 = spell.samples.iter().map(|s| case.host.interval_s(*s)).sum();
    let peers = case.host.devices.iter().filter(|peer| {
        peer.id != device.id
            && is_kind(peer)
            && !is_local(device.flow.name)
            && !is_local(peer.flow.name)
            && case.host.share_an_adapter(device, peer)
            && peer.flow.mean_rate(&spell.samples) >= Some(ENOUGH_COMMANDS / seconds)
    });
    let davg_of = |peer: &Device<'_>| peer.flow.per_command(&spell.samples, Flow::davg);
    let latencies = peers.filter_map(|peer| Some((peer.flow.name.to_owned(), davg_of(peer)?)));
    latencies.filter(|(_, peer_ms)| *peer_ms > 0.0).min_by(|a, b| a.1.total_cmp(&b.1))
}
