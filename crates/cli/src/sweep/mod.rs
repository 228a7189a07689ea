//! A scenario under many settings: `kavg sweep`.
//!
//! ```text
//!   --over --> axis --> edit --> job --> run --> figures --> store      one file of framed runs
//!                                 '-----------------------------+--> flow, results --> table, page
//!                                                               +--> json
//!                                                               '--> rows: CSV, Parquet
//! ```
//!
//! Whatever is shown is made of what the store has, also where nothing was killed and nothing goes on.

mod axis;
mod bytes;
mod edit;
mod figures;
mod flow;
mod job;
mod json;
mod results;
mod rows;
mod run;
mod store;
mod table;

pub(crate) use axis::Axis;
pub(crate) use edit::{Edit, edited};
pub(crate) use figures::{Figures, Window as Rows};
pub(crate) use flow::{Flow, flows};
pub(crate) use job::Job;
pub(crate) use json::Sweep;
pub(crate) use results::{By, Results, Window, half, mean};
pub(crate) use rows::write as write_rows;
pub(crate) use run::run;
pub(crate) use store::Store;
pub(crate) use table::{knees, render, table};
