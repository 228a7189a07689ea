//! Settings of many hosts side by side: what differs, and one plan that makes it alike.
//!
//! What a host is set to, and what it is to be set to, are [`knobs::Knob`]s, whose devices are numbered
//! over all hosts: ranges, versions, lines and effects are those of `knobs`, and this says only whose
//! setting differs from whose, and in which order a host takes the lines.
//!
//! ```text
//!   files -> Host, Fleet -> Difference -> wanted knobs of each host -> Plan (and the way back)
//!                                            '- depths, of drivers before those of devices
//! ```

mod depths;
mod difference;
mod fleet;
mod goals;
mod host;
mod json;
mod plan;
mod scripts;
mod table;
mod vendors;
mod wanted;

pub(crate) use difference::{Difference, Uneven, Untold, differences, untold};
pub(crate) use fleet::{Fleet, host_of};
pub(crate) use json::render as render_json;
pub(crate) use plan::{Aim, HostPlan, plans};
pub(crate) use scripts::{Form, script};
pub(crate) use table::{not_planned, render, without_way_back};
pub(crate) use vendors::{Advised, advised};
pub(crate) use wanted::{Model, wanted};

/// All that is found of some hosts.
pub(crate) struct Comparison {
    pub(crate) fleet: Fleet,
    pub(crate) differences: Vec<Difference>,
    pub(crate) uneven: Vec<Uneven>,
    pub(crate) untold: Vec<Untold>,
    pub(crate) advised: Vec<Advised>,
    pub(crate) plans: Vec<HostPlan>,
}

impl Comparison {
    /// Whether hosts do not differ, and nothing is to be done.
    pub(crate) fn is_alike(&self) -> bool {
        self.differences.is_empty() && self.plans.iter().all(HostPlan::is_empty)
    }

    /// Whether that is so, as vendors say, and told of all hosts where it is off its default.
    pub(crate) fn is_well(&self) -> bool {
        self.is_alike() && self.advised.is_empty() && self.untold.is_empty()
    }
}
