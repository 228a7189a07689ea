//! Names of datastores for devices, as people keep them: a line each, the device, a tab or a
//! comma, the name.
//!
//! A spreadsheet's or PowerCLI's export is such a file: quotes around cells are taken off, and a
//! first line that names no device is a heading. Empty lines and those that begin with `#` are
//! left out.

use std::collections::BTreeMap;

use crate::{Error, header::text_of};

/// How the names of devices begin [CAP-A, LIST8].
const PREFIXES: [&str; 5] = ["naa.", "eui.", "t10.", "mpx.", "vml."];

/// The datastore of each device; `file` is its name in messages.
///
/// # Errors
/// A line without a device in front or without a name behind it, or a device with two names.
pub fn parse_names(file: &str, text: &str) -> Result<BTreeMap<String, String>, Error> {
    let mut names = BTreeMap::new();
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    for (place, (number, line)) in lines.enumerate() {
        let refused = |what: &str| Err(Error::at(file, number, what));
        let cells = line.split_once(['\t', ',']).map(|(device, name)| (cell(device), cell(name)));
        let (device, name) = match cells {
            Some((device, name)) if is_device(&device) && !name.is_empty() => (device, name),
            Some(_) if place == 0 => continue,
            _ => return refused("expected DEVICE,DATASTORE, as naa.600508b1001c4d41,gold-03"),
        };
        match names.get(&device) {
            Some(other) if *other != name => {
                return refused(&format!("{device} is '{other}' further up; expected one name"));
            }
            _ => names.insert(device, name),
        };
    }
    Ok(names)
}

fn cell(text: &str) -> String {
    text_of(text.trim().as_bytes()).trim().to_owned()
}

fn is_device(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_as_people_keep_them() {
        let text = "\"CanonicalName\",\"Name\"\r\n# the gold tier\n\n\
                    \"naa.1\",\"gold, 03\"\r\nnaa.2\tsilver 1\n\"naa.3\",\"the \"\"old\"\"\"\nmpx.vmhba0:C0:T0:L0, local\nnaa.1,gold, 03\n";
        let names = parse_names("names.csv", text).unwrap();
        let names: Vec<_> = names.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let expected = [
            ("mpx.vmhba0:C0:T0:L0", "local"),
            ("naa.1", "gold, 03"),
            ("naa.2", "silver 1"),
            ("naa.3", "the \"old\""),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let expected = "expected DEVICE,DATASTORE, as naa.600508b1001c4d41,gold-03";
        let table = [
            ("naa.1 gold", format!("f:1: {expected}")),
            ("device,name\ngold,naa.1", format!("f:2: {expected}")),
            ("naa.1,a\nnaa.2,", format!("f:2: {expected}")),
            ("naa.1,a\n\nnaa.1,b", "f:3: naa.1 is 'a' further up; expected one name".into()),
        ];
        for (text, expected) in table {
            assert_eq!(parse_names("f", text).expect_err(text).to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "([A-Za-z0-9.,\t\"# \u{fc}-]{0,20}\r?\n){0,8}") {
            let _ = parse_names("f", &text);
        }
    }
}
