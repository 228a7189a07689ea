//! The manual of lines: the form of each that sets something, when it acts and what it allows, out of
//! the tables.

use alloc::{format, string::String, vec, vec::Vec};
use core::ops::RangeInclusive;

use crate::{
    Advanced, Allocation, CONGESTION_MS, CONGESTION_MS_DEFAULT, DSNRO, Effect, LIMIT,
    PVSCSI_DEPTH_MAX, PVSCSI_RING_PAGES_MAX,
};

/// A form of line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manual {
    /// The line, with what is to be filled in in capitals.
    pub line: &'static str,
    /// When it acts; `None` is as the option says.
    pub effect: Option<Effect>,
    /// What it sets, what is allowed, and the source.
    pub what: String,
}

/// Every form.
#[must_use]
pub fn manual() -> Vec<Manual> {
    let mut all = of_hosts_and_guests();
    all.extend(of_disks());
    all
}

fn form(line: &'static str, effect: Option<Effect>, what: String) -> Manual {
    Manual { line, effect, what }
}

fn range(range: RangeInclusive<u32>) -> String {
    format!("{} to {}", range.start(), range.end())
}

/// What hosts and the drivers of guests are set to.
fn of_hosts_and_guests() -> Vec<Manual> {
    let of = |option: Advanced| range(option.info().range());
    let pvscsi = |system: &str| {
        let (pages, depth) = (range(1..=PVSCSI_RING_PAGES_MAX), range(1..=PVSCSI_DEPTH_MAX));
        format!("PVSCSI in a {system} guest: {pages} pages, {depth} commands a disk [KB-PV]")
    };
    let at_once = Some(Effect::AtOnce);
    vec![
        form(
            "storage core device set -d DEVICE -O N",
            at_once,
            format!(
                "DSNRO, {}; from ESXi 6.5 not above the device's depth [HP, S1]",
                range(DSNRO.range())
            ),
        ),
        form(
            "storage core device set -d DEVICE -m N",
            at_once,
            "Device Max Queue Depth, 1 to what the driver gives [QD254]".into(),
        ),
        form(
            "storage core device set -d DEVICE -s N -q N",
            at_once,
            format!(
                "adaptive throttling: results in a window, {} (0 is off); bad ones, {} [LAMW]",
                of(Advanced::QFullSampleSize),
                of(Advanced::QFullThreshold)
            ),
        ),
        form(
            "kavg device set -d DEVICE -l true",
            at_once,
            "kavg's own, which no ESXi has: the device's depth is found by latency, or (`false`) not"
                .into(),
        ),
        form(
            "system module parameters set -m MODULE -p PARAMETER=N",
            Some(Effect::HostReboot),
            "the depth of every device behind a driver, in the driver's range [S0]".into(),
        ),
        form(
            "system settings advanced set -o OPTION -i N",
            None,
            "an advanced option; `-d` instead of `-i N` is its default [LAMW]".into(),
        ),
        form(
            "storage nmp device set -d DEVICE -P VMW_PSP_RR",
            at_once,
            "VMW_PSP_FIXED, VMW_PSP_MRU or VMW_PSP_RR [ELA]".into(),
        ),
        form(
            "storage nmp psp roundrobin deviceconfig set -d DEVICE -t iops -I N",
            at_once,
            "I/Os down a path before the next one; `-t default` is as round robin starts [ELA, BB]"
                .into(),
        ),
        form(
            "storage nmp psp roundrobin deviceconfig set -d DEVICE -t bytes -B N",
            at_once,
            "bytes down a path before the next one [ELA, BB]".into(),
        ),
        form("RequestRingPages=N,MaxQueueDepth=N", Some(Effect::GuestReboot), pvscsi("Windows")),
        form(
            "vmw_pvscsi.cmd_per_lun=N vmw_pvscsi.ring_pages=N",
            Some(Effect::GuestReboot),
            pvscsi("Linux"),
        ),
    ]
}

/// What virtual disks may have, and datastores.
fn of_disks() -> [Manual; 6] {
    [
        form(
            "VM: DiskLimitIOPerSecond N",
            Some(Effect::AtOnce),
            format!(
                "`{LIMIT}`, the IOPS limit of each disk of a VM, or of one (`VM:scsi0:1: …`): {}, \
                 or -1 for none; also as `Set-VMResourceConfiguration` takes it [API]",
                range(Allocation::LIMITS)
            ),
        ),
        form(
            "VM: NumDiskShares N",
            Some(Effect::AtOnce),
            format!(
                "the shares of each disk of a VM, or of one: {}; also as `Set-VMResourceConfiguration` \
                 takes it, after `-DiskSharesLevel Custom` [LAMW]",
                range(Allocation::SHARES)
            ),
        ),
        form(
            "VM: StorageIOAllocationReservation N",
            Some(Effect::AtOnce),
            format!(
                "the reservation of each disk of a VM, or of one, in I/Os a second: 0 (none) to {}; \
                 the API sets it, PowerCLI does not [API]",
                Allocation::LIMITS.end()
            ),
        ),
        form(
            "VM: StoragePolicy POLICY",
            Some(Effect::AtOnce),
            "the storage policy of each disk of a VM, or of one, which says all three, or `none`: then it has \
             none of the three; also as `Set-SpbmEntityConfiguration` takes it; from ESXi 6.5 on [SPBM, DOC65]"
                .into(),
        ),
        form(
            "storage policy POLICY: DiskLimitIOPerSecond N",
            Some(Effect::AtOnce),
            "what a storage policy says, of every disk that has it or is given it later: its limit, or as \
             above its shares and its reservation; the API sets it, PowerCLI does not [SPBM]"
                .into(),
        ),
        form(
            "Get-Datastore NAME | Set-Datastore -StorageIOControlEnabled $true \
             -CongestionThresholdMillisecond N",
            Some(Effect::AtOnce),
            format!(
                "Storage I/O Control of a datastore on all of its hosts, {} milliseconds, \
                 {CONGESTION_MS_DEFAULT} where it is left out; `$false` is off, and with a threshold \
                 holds nobody back but tells of congestion [PCLI, API]",
                range(CONGESTION_MS)
            ),
        ),
    ]
}
