//! Which devices are of one array: by what their names say, or by what the user says.

use levels::{array_of, serial_of};

/// Whether two devices are of one array. What is said of either of them counts, else their names: where these
/// are made up, one array spans more of what may be than two that cannot touch each other.
pub(crate) fn are_together(said: &[Vec<String>], one: &str, other: &str) -> bool {
    let is_in = |group: &Vec<String>, name: &str| group.iter().any(|known| known == name);
    if said.iter().any(|group| is_in(group, one) || is_in(group, other)) {
        return said.iter().any(|group| is_in(group, one) && is_in(group, other));
    }
    serial_of(one).is_some() && serial_of(one) == serial_of(other)
}

/// What is taken of devices of several arrays that only their names or their latencies tell.
pub(crate) fn doubts(said: &[Vec<String>], arrays: &[&[String]]) -> Vec<String> {
    let mut doubts: Vec<String> =
        arrays.iter().filter_map(|devices| doubt(said, devices)).collect();
    for (index, devices) in arrays.iter().enumerate() {
        let others =
            arrays[index + 1..].iter().filter_map(|other| Some((devices.first()?, other.first()?)));
        doubts.extend(others.filter(|(one, other)| are_together(said, one, other)).map(|(one, other)| {
            format!(
                "{one} and {other} are of one array by their names, but one is more than half as quick again, and no                  row shows it slower for the load of the other: each is taken to have disks of its own, which the                  other's load does not touch. `--array {one},{other}` says that they share them."
            )
        }));
    }
    doubts
}

/// That devices are taken for those of one array by names without a vendor, which tell nothing.
fn doubt(said: &[Vec<String>], devices: &[String]) -> Option<String> {
    let [first, _, ..] = devices else { return None };
    let is_said = said.iter().flatten().any(|known| known == first);
    (!is_said && array_of(first).is_none()).then(|| {
        format!(
            "{} bear no vendor in their names, which so tell nothing of their array: they are taken to share one, as \
             far as they are about as quick. `--array NAME` of each says that they do not.",
            devices.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{are_together, doubt, doubts};

    const PURE: [&str; 2] =
        ["naa.624a93704bfab20d4b694df7000143ac", "naa.624a93704bfab20d4b694df700011fff"];
    const OTHER: &str = "naa.624a93704bfab20d4b684df7000143ac";
    const SYMMETRIX: [&str; 2] =
        ["naa.60000970000197800380533030303445", "naa.60000970000197800381533030303445"];

    #[test]
    fn vendor_and_serial_in_the_name_tell_the_array() {
        assert!(are_together(&[], PURE[0], PURE[1]));
        assert!(!are_together(&[], SYMMETRIX[0], SYMMETRIX[1]), "two serials of one vendor");
        assert!(!are_together(&[], "mpx.vmhba0:C0:T0:L0", "mpx.vmhba0:C0:T0:L0"));
        assert!(!are_together(&[], "naa.1", "naa.1é"));
        let made_up = ["1", "2"].map(|end| format!("naa.6000000000000000000000000000000{end}"));
        assert!(are_together(&[], &made_up[0], &made_up[1]), "the range holds both ways");
        assert!(doubt(&[], &made_up).is_some() && doubt(&[], &PURE.map(String::from)).is_none());
    }

    #[test]
    fn devices_of_one_name_that_are_held_apart_are_told() {
        let names = PURE.map(String::from);
        let apart = [&names[..1], &names[1..]];
        assert_eq!(doubts(&[], &apart).len(), 1);
        assert!(doubts(&[], &[&names]).is_empty());
        assert!(doubts(&[vec![names[0].clone()]], &apart).is_empty(), "it is said");
    }

    #[test]
    fn what_is_said_counts_more_than_names() {
        let said = |group: &[&str]| vec![group.iter().map(ToString::to_string).collect()];
        assert!(are_together(&said(&[PURE[0], OTHER]), PURE[0], OTHER));
        assert!(!are_together(&said(&[PURE[0]]), PURE[0], PURE[1]));
    }
}
