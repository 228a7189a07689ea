//! What can be done for a VM that suffers from another: `kavg remedy`.
//!
//! ```text
//!   run as it is --> case: window, good and bad VM --> candidates --> sweep's job --> ranking --> table
//!                                                          '-- what does not apply -----'    '-> json
//! ```
//!
//! A remedy is a line of the table of candidates: what is done to the scenario, and what is typed. All
//! are run as a sweep runs its points.

mod candidates;
mod case;
mod jain;
mod json;
mod ranking;
mod table;

pub(crate) use candidates::candidates;
pub(crate) use case::Case;
pub(crate) use json::render as render_json;
pub(crate) use ranking::Ranking;
pub(crate) use table::render;
