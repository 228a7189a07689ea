//! Recordings read as the stack: what the columns of a device, a world, a path or a virtual disk
//! say of how many commands are inside, who waits and for how long.
//!
//! It stands on `counters` and below everybody who looks at rows: the diagnosis, what-if, the
//! pictures on terminal and page. What a number is worth is decided here and once: which values
//! are none (`measured`), and what Little's law makes of rates and latencies (`flow`, `vdisk`).

mod array;
mod beside;
mod device;
mod flow;
mod level;
mod measured;
mod numbers;
mod series;
mod stack;
mod support;
mod tenant;
mod vdisk;

pub use array::{array_of, serial_of};
pub use device::{DeviceView, path_wait_ms, slot_wait_ms};
pub use flow::{Flow, inside, little};
pub use level::LevelKind;
pub use measured::Measured;
pub use numbers::{
    is_round, is_round_within, largest, latency_percentiles, mean, median, most_first,
    most_frequent, quantile, sum, unrest_percent, usual_interval_s, weighted_mean,
    weighted_quantiles,
};
pub use series::{Column, usual};
pub use stack::{Application, Level, Queue, Stack};
pub use tenant::{Tenant, owner, tenants};
pub use vdisk::Vdisk;
