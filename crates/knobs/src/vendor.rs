//! What the vendors of arrays say of DSNRO. An array is known by the vendor that its devices tell; of one
//! that is not here nobody says anything.

use crate::DSNRO;

/// What is said of the devices of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VendorAdvice {
    /// The array, as people call it.
    pub array: &'static str,
    /// `Vendor` of its devices, in `storage core device list`.
    pub vendor: &'static str,
    /// The DSNRO that is recommended.
    pub dsnro: u32,
    /// The source of that.
    pub source: &'static str,
}

/// Reference `esxi-host-stack.md` section 3; what devices tell is from the table of multipath-tools [MPT].
pub const VENDOR_ADVICE: [VendorAdvice; 2] = [
    VendorAdvice { array: "SolidFire", vendor: "SolidFir", dsnro: 256, source: "S4" },
    // "I recommend not to": it stays at its default [S0].
    VendorAdvice { array: "Pure FlashArray", vendor: "PURE", dsnro: DSNRO.default, source: "S0" },
];
