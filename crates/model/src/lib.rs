//! Arrays, links and workloads as seeded state machines: what stands at both ends of the stack
//! in a simulation. Pure: time comes in as an argument, randomness from a seed.
#![no_std]

extern crate alloc;

mod array;
mod arrival;
mod block;
mod cluster;
mod command;
mod config;
mod controllers;
mod curve;
mod disks;
mod fabric;
mod flash_cache;
mod holes;
mod initiator;
mod normal;
mod pace;
mod percentiles;
mod qos;
mod queue;
mod random;
mod request;
mod service;
mod spread;
mod switch;
mod tags;
mod tape;
mod workload;
mod write_cache;

pub use array::{Answer, Array, PolicyWait};
pub use arrival::Aside;
pub use block::{Block, BlockConfig, BlockRequest, IoScheduler};
pub use command::{Carried, Command};
pub use config::{
    Access, ArrayConfig, Arrival, Background, Burst, ByCommand, Capacity, Ceiling, Controllers,
    Cost, Disks, Front, InitiatorConfig, Loss, Mix, NexusConfig, Others, Outage, Qos, Queues,
    ReadCache, ServerQueue, Service, SizeMix, Spread, Stuck, Tape, Taped, Tier, VolumeConfig,
    WAITING_MAX, WorkloadConfig, WriteCache, WriteProtocol,
};
pub use curve::ArrayUse;
pub use flash_cache::{FlashCache, FlashCacheConfig};
pub use initiator::Initiator;
pub use percentiles::Percentiles;
pub use request::Io;
pub use switch::Switches;
pub use workload::Workload;
