//! Every dependency may be used under a licence of the list in `deny.toml`, the list that
//! `cargo deny check` reads too; an exception there is for one package.

use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::house::{Finding, House, Package};

const POLICY: &str = "deny.toml";

#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

impl Licenses {
    fn is_allowed(&self, package: &str, license: &str) -> bool {
        let of_package = self.exceptions.iter().filter(|exception| exception.name == package);
        let extra = of_package.flat_map(|exception| &exception.allow);
        self.allow.iter().chain(extra).any(|allowed| allowed == license)
    }
}

pub(crate) fn check(house: &House) -> Vec<Finding> {
    match policy(house) {
        Ok(policy) => {
            house.packages.iter().filter_map(|package| refused(package, &policy)).collect()
        }
        Err(error) => vec![Finding::new(POLICY, error)],
    }
}

fn policy(house: &House) -> Result<Licenses, String> {
    let file = house.file(POLICY).ok_or("is missing")?;
    let policy: Policy = toml::from_str(&file.text).map_err(|error| error.to_string())?;
    Ok(policy.licenses)
}

fn refused(package: &Package, policy: &Licenses) -> Option<Finding> {
    let Some(license) = &package.license else {
        return Some(Finding::new(&package.name, "names no licence"));
    };
    let allowed =
        |requirement: &spdx::LicenseReq| policy.is_allowed(&package.name, &requirement.to_string());
    match Expression::parse_mode(license, ParseMode::LAX) {
        Ok(expression) if expression.evaluate(allowed) => None,
        Ok(_) => Some(Finding::new(&package.name, format!("`{license}` is not in {POLICY}"))),
        Err(error) => Some(Finding::new(&package.name, error.reason.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_outside_of_the_list_are_found() {
        let exception = Exception { name: "b".into(), allow: vec!["CC0-1.0".into()] };
        let allow = vec!["MIT".into(), "Apache-2.0".into()];
        let policy = Licenses { allow, exceptions: vec![exception] };
        for (name, license, is_refused) in [
            ("a", Some("MIT"), false),
            ("a", Some("MIT/Apache-2.0"), false),
            ("a", Some("GPL-3.0-only OR MIT"), false),
            ("a", Some("MIT AND GPL-3.0-only"), true),
            ("a", Some("Apache-2.0 WITH LLVM-exception"), true),
            ("a", Some("CC0-1.0"), true),
            ("b", Some("CC0-1.0"), false),
            ("a", Some("of my own"), true),
            ("a", None, true),
        ] {
            let package = Package {
                name: name.into(),
                license: license.map(Into::into),
                source: None,
                dependencies: Vec::new(),
            };
            assert_eq!(refused(&package, &policy).is_some(), is_refused, "{name}: {license:?}");
        }
    }
}
