//! A scenario: what is simulated, what happens meanwhile and what is expected of it, parsed once
//! from a TOML file into types that cannot be wrong.

mod types;

pub use types::{
    Action, Array, Bound, Expectation, Host, Scenario, Subject, Target, TimedEvent, Window,
    Workload,
};
