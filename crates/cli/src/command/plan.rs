//! `kavg plan`: how many VMs a datastore holds, by the closed formulas and checked by simulation.

use std::{io::Write, process::ExitCode};

use clap::Args;
use counters::MILLISECOND;
use knobs::{Driver, PVSCSI_DEPTH_MAX};

use crate::{
    Result, json,
    plan::{Asked, Checked, Plan},
};

/// Say how many VMs a datastore holds before they wait in the host
///
/// A LUN takes so many commands at a time; each host gets its part of them as its depth; a VM has so many
/// active on average; what fits is VMs [YB-VMFS]. The plan prints the lines that give each host its part,
/// and simulates hosts of so many VMs, some fewer and some more: what they wait when each always has as many
/// commands active, and when its commands come at random (`kavg help docs/vms-per-datastore`).
///
/// Exit code: 0, and 2 when the input is bad.
#[derive(Args)]
pub(crate) struct PlanArguments {
    /// Hosts that share the datastore
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    hosts: u32,
    /// Commands that a VM has active on average, 0.1 to 254: its CMDS/s times DAVG in seconds
    #[arg(long, value_name = "N", value_parser = active)]
    active: f64,
    /// Commands that the array takes for the LUN at a time; without this and the port's, the array is no
    /// limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    lun_depth: Option<u32>,
    /// Commands that a target port of the array takes at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536), requires = "luns")]
    port_depth: Option<u32>,
    /// LUNs that share the port
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536), requires = "port_depth")]
    luns: Option<u32>,
    /// The module of the hosts' HBA driver (`kavg help reference/knobs`), for its depths and the line of its
    /// parameter
    #[arg(long, value_name = "MODULE", value_parser = driver)]
    driver: Option<&'static Driver>,
    /// VMs that there are: how many such datastores they need
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    vms: Option<u32>,
    /// What the array takes for a command while it is within its depth (DAVG)
    #[arg(long, value_name = "MS", default_value = "1", value_parser = latency)]
    davg: u64,
    /// The seed of every run
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Print everything as JSON (`kavg help reference/json`)
    #[arg(long)]
    json: bool,
}

impl PlanArguments {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let asked = Asked {
            hosts: self.hosts,
            active: self.active,
            lun_depth: self.lun_depth,
            port: self.port_depth.zip(self.luns),
            driver: self.driver,
            vms: self.vms,
            davg_ns: self.davg,
            seed: self.seed,
        };
        let plan = Plan::of(&asked)?;
        let checked = Checked::of(&asked, &plan)?;
        if self.json {
            json::write(&checked.to_json(&asked, &plan), out)?;
        } else {
            out.write_all(checked.render(&asked, &plan).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn active(text: &str) -> std::result::Result<f64, String> {
    number(text, 0.1..=f64::from(PVSCSI_DEPTH_MAX))
}

fn latency(text: &str) -> std::result::Result<u64, String> {
    number(text, 0.01..=1000.0).map(|ms| (ms * MILLISECOND as f64) as u64)
}

fn number(text: &str, range: std::ops::RangeInclusive<f64>) -> std::result::Result<f64, String> {
    let value = text.parse().ok().filter(|value| range.contains(value));
    value.ok_or_else(|| format!("it is a number from {} to {}", range.start(), range.end()))
}

fn driver(module: &str) -> std::result::Result<&'static Driver, String> {
    let sets = |driver: &&Driver| driver.parameter.is_some();
    Driver::from_module(module).filter(sets).ok_or_else(|| {
        let known = Driver::ALL.iter().filter(sets).map(|driver| driver.module);
        format!("there are {}", known.collect::<Vec<_>>().join(", "))
    })
}
