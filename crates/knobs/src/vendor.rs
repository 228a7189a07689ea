//! What the vendors of arrays say of depths, DSNRO and adaptive throttling. An array is known by the vendor
//! and the model that its devices tell; of one that is not here nobody says anything.

use counters::DeviceId;

use crate::{DSNRO, Knob};

/// What is said of the devices of an array. What is `None` nobody says anything of.
#[derive(Debug, PartialEq, Eq)]
pub struct VendorAdvice {
    /// The array, as people call it.
    pub array: &'static str,
    /// `Vendor` of its devices, in `storage core device list`, in any case.
    vendor: &'static str,
    /// What `Model` begins with.
    model: &'static str,
    /// Device Max Queue Depth.
    depth: Option<u32>,
    /// DSNRO.
    dsnro: Option<u32>,
    /// Queue Full Sample Size and Threshold.
    queue_full: Option<(u32, u32)>,
    /// How many hosts may share a device for it to be meant.
    hosts: u32,
    /// Whether it is said of the array's protocol endpoints of vVols as well as of its LUNs.
    endpoints: bool,
    /// The source of that.
    pub source: &'static str,
}

impl VendorAdvice {
    /// Reference `esxi-host-stack.md` sections 3 and 4; what devices tell is from the table of multipath-tools
    /// [MPT], of Blockbridge and Datera from their own pages.
    pub const ALL: &'static [Self] = &[
        // Said of a protocol endpoint, "for each device".
        Self {
            depth: Some(256),
            dsnro: Some(256),
            endpoints: true,
            ..of("SolidFire", "SolidFir", "", "S4")
        },
        // "I recommend not to": it stays at its default [S0].
        Self { dsnro: Some(DSNRO.default), ..of("Pure FlashArray", "PURE", "", "S0") },
        Self {
            dsnro: Some(DSNRO.default),
            ..of("Pure FlashArray", "NVMe", "Pure Storage Fl", "S0")
        },
        // For a small population of hosts, "<= 4"; more of them keep the defaults.
        Self {
            depth: Some(192),
            dsnro: Some(64),
            hosts: 4,
            ..of("Blockbridge", "B*BRIDGE", "", "BB")
        },
        // Of adapters, "as not to gate the driver module"; of DSNRO it names no value.
        Self { depth: Some(255), ..of("Dell SC", "COMPELNT", "Compellent", "DELL") },
        // The depth of software iSCSI; another script of theirs has 32.
        Self { depth: Some(16), ..of("Datera", "DATERA", "", "DATERA") },
        Self { queue_full: Some((32, 8)), ..of("NetApp ONTAP", "NETAPP", "LUN", "KB-QF35") },
        // The threshold from memory.
        Self { queue_full: Some((32, 4)), ..of("HP 3PAR", "3PARdata", "VV", "3PAR") },
    ];

    /// What is said of an array's LUNs, or of its protocol endpoints.
    #[must_use]
    pub fn of(vendor: &str, model: &str, is_endpoint: bool) -> Option<&'static Self> {
        let is_it = |known: &&Self| {
            known.vendor.eq_ignore_ascii_case(vendor) && model.starts_with(known.model)
        };
        Self::ALL.iter().find(is_it).filter(|known| known.endpoints || !is_endpoint)
    }

    /// The same of a device that so many hosts share, as what sets it.
    pub fn of_device(&self, device: DeviceId, hosts: u32) -> impl Iterator<Item = Knob> + use<> {
        let depth = self.depth.map(|value| Knob::MaxQueueDepth { device, value });
        let dsnro = self.dsnro.map(|value| Knob::SchedNumReqOutstanding { device, value });
        let queue_full = self.queue_full.map(|(sample_size, threshold)| Knob::QueueFull {
            device,
            sample_size,
            threshold,
        });
        let is_meant = hosts <= self.hosts;
        [depth, dsnro, queue_full].into_iter().flatten().filter(move |_| is_meant)
    }
}

const fn of(
    array: &'static str,
    vendor: &'static str,
    model: &'static str,
    source: &'static str,
) -> VendorAdvice {
    VendorAdvice {
        array,
        vendor,
        model,
        depth: None,
        dsnro: None,
        queue_full: None,
        hosts: u32::MAX,
        endpoints: false,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;
    use alloc::vec::Vec;

    #[test]
    fn what_is_said_is_taken_by_every_host_of_today() {
        for advice in VendorAdvice::ALL {
            let knobs: Vec<Knob> = advice.of_device(DeviceId(0), 1).collect();
            assert!(!knobs.is_empty(), "{}", advice.array);
            for knob in knobs {
                assert_eq!(knob.check(Version::NEWEST), Ok(()), "{}", advice.array);
            }
        }
    }

    #[test]
    fn an_array_is_known_by_what_its_devices_tell() {
        let table = [
            ("SolidFir", "SSD SAN", Some("SolidFire"), true),
            ("PURE", "FlashArray", Some("Pure FlashArray"), false),
            ("NVMe", "Pure Storage FlashA", Some("Pure FlashArray"), false),
            ("NVMe", "Samsung SSD", None, false),
            ("NETAPP", "LUN C-Mode", Some("NetApp ONTAP"), false),
            ("NETAPP", "INF-01-00", None, false),
            ("DGC", "VRAID", None, false),
        ];
        for (vendor, model, array, endpoints) in table {
            let of = |is_endpoint| VendorAdvice::of(vendor, model, is_endpoint);
            assert_eq!(of(false).map(|advice| advice.array), array, "{vendor} {model}");
            assert_eq!(of(true).is_some(), endpoints, "{vendor} {model}");
        }
    }

    #[test]
    fn what_is_for_few_hosts_is_not_said_to_many() {
        let advice = VendorAdvice::of("B*BRIDGE", "", false)
            .map(|advice| [4, 5].map(|hosts| advice.of_device(DeviceId(0), hosts).count()));
        assert_eq!(advice, Some([2, 0]));
    }
}
