//! Which devices are of one array, as far as their names say.

/// Digits of an NAA 6 name that are the same for all volumes of an array: 8 of the vendor and 12
/// of the array's serial number, before those of the volume [S0, S1: names of two vendors].
const DIGITS: usize = 20;

/// What the name of a device tells of its array; nothing where names tell nothing: NFS, local
/// disks, and a name without a vendor.
#[must_use]
pub fn array_of(device: &str) -> Option<&str> {
    serial_of(device).filter(|digits| !digits.starts_with("000000"))
}

/// The digits of a device's name that all volumes of its array have, be they of a vendor or, as in names that
/// somebody made up, of none; nothing where there are none such.
#[must_use]
pub fn serial_of(device: &str) -> Option<&str> {
    let digits = device.strip_prefix("naa.6")?;
    let is_long = digits.len() == 31 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_long { digits.get(..DIGITS - 1) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{array_of, serial_of};

    #[test]
    fn vendor_and_serial_in_the_name_tell_the_array() {
        let of = |name: &str| array_of(name).map(str::to_owned);
        let one = of("naa.624a93704bfab20d4b694df7000143ac");
        assert!(one.is_some());
        assert_eq!(one, of("naa.624a93704bfab20d4b694df700011fff"));
        assert_ne!(one, of("naa.624a93704bfab20d4b684df7000143ac"));
        for name in ["mpx.vmhba0:C0:T0:L0", "nfs-gold", "naa.1", "naa.6\u{e9}", "naa.60"] {
            assert_eq!(array_of(name), None, "{name}");
        }
        let made_up = ["1", "2"].map(|end| format!("naa.6000000000000000000000000000000{end}"));
        assert_eq!(array_of(&made_up[0]), None);
        assert_eq!(serial_of(&made_up[0]), serial_of(&made_up[1]));
        assert!(serial_of(&made_up[0]).is_some());
    }
}
