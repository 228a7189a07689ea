//! Recordings read as the stack: what the columns of a device, a world, a path or a virtual disk
//! say of how many commands are inside, who waits and for how long.
//!
//! It stands on `counters` and below everybody who looks at rows: the diagnosis, what-if, the
//! pictures on terminal and page. What a number is worth is decided here and once: which values
//! are none (`series`), and what Little's law makes of rates and latencies (`flow`, `vdisk`).

mod flow;
mod level;
mod series;
mod vdisk;

pub use flow::{Flow, little};
pub use level::LevelKind;
pub use series::{
    Column, is_round, is_round_within, largest, mean, most_frequent, quantile, unrest_percent,
};
pub use vdisk::Vdisk;
