//! The checks, one file each; `ALL` is the list that runs.

mod arrows;
mod bare;
mod circles;
mod documents;
mod files;
pub(crate) mod functions;
mod kinds;
mod leftovers;
mod licences;
mod links;
mod purity;
mod settings;
mod sources;
mod words;

use crate::house::{Finding, House};

/// A check and its name.
type Check = (&'static str, fn(&House) -> Vec<Finding>);

/// Every check, in the order in which it reports.
pub(crate) const ALL: &[Check] = &[
    ("arrows", arrows::check),
    ("circles", circles::check),
    ("functions", functions::check),
    ("files", files::check),
    ("purity", purity::check),
    ("bare", bare::check),
    ("settings", settings::check),
    ("kinds", kinds::check),
    ("leftovers", leftovers::check),
    ("words", words::check),
    ("sources", sources::check),
    ("documents", documents::check),
    ("links", links::check),
    ("licences", licences::check),
];
