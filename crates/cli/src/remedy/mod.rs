//! What can be done for a VM that suffers from another: `kavg remedy`.
//!
//! ```text
//!   run as it is --------> case: window, good and bad VM --> candidates --> sweep's jobs --> ranking --> table
//!   recording --> find --'                                          '-- what does not apply ------'   '-> json
//! ```
//!
//! A remedy is a line of the table of candidates: what is done to the scenario, and what is typed. All
//! are run as a sweep runs its points. Of a recorded host what `kavg whatif` says of settings widens their ranges.

mod bounds;
mod candidate;
mod candidates;
mod case;
mod controllers;
mod find;
mod json;
mod original;
mod ranking;
mod table;

pub(crate) use candidates::candidates;
pub(crate) use case::Case;
pub(crate) use find::{Found, find};
pub(crate) use json::{render as render_json, render_nothing as render_nothing_json};
pub(crate) use ranking::Ranking;
pub(crate) use table::render;
