//! Arrays, links and workloads as seeded state machines: what stands at both ends of the stack
//! in a simulation. Pure: time comes in as an argument, randomness from a seed.
#![no_std]

extern crate alloc;

mod config;

pub use config::{
    Access, ArrayConfig, Arrival, Burst, Cost, Mix, Qos, RESERVE_HOLD_MAX_NS, RESERVE_HOLD_NS,
    Service, SizeMix, Spread, VolumeConfig, WorkloadConfig, WriteProtocol,
};
