//! Every dependency may be used under a licence of the list in `deny.toml`, the list that
//! `cargo deny check` reads too.

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
}

pub(crate) fn check(house: &House) -> Vec<Finding> {
    match policy(house) {
        Ok(allow) => house.packages.iter().filter_map(|package| refused(package, &allow)).collect(),
        Err(error) => vec![Finding::new(POLICY, error)],
    }
}

fn policy(house: &House) -> Result<Vec<String>, String> {
    let file = house.file(POLICY).ok_or("is missing")?;
    let policy: Policy = toml::from_str(&file.text).map_err(|error| error.to_string())?;
    Ok(policy.licenses.allow)
}

fn refused(package: &Package, allow: &[String]) -> Option<Finding> {
    let Some(license) = &package.license else {
        return Some(Finding::new(&package.name, "names no licence"));
    };
    let allowed = |requirement: &spdx::LicenseReq| allow.contains(&requirement.to_string());
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
        let allow = ["MIT".to_owned(), "Apache-2.0".to_owned()];
        for (license, is_refused) in [
            (Some("MIT"), false),
            (Some("MIT/Apache-2.0"), false),
            (Some("GPL-3.0-only OR MIT"), false),
            (Some("MIT AND GPL-3.0-only"), true),
            (Some("Apache-2.0 WITH LLVM-exception"), true),
            (Some("of my own"), true),
            (None, true),
        ] {
            let package = Package {
                name: "a".into(),
                license: license.map(Into::into),
                source: None,
                dependencies: Vec::new(),
            };
            assert_eq!(refused(&package, &allow).is_some(), is_refused, "{license:?}");
        }
    }
}
