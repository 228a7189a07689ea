//! The plan as it is typed: for the shells of hosts, for PowerCLI, or as variables of hosts for Ansible.

use std::io::Write;

use clap::ValueEnum;
use knobs::get_esxcli;
use serde_json::{Map, Value, json as value};

use super::{
    Comparison,
    plan::{HostPlan, Plan, Step},
};
use crate::{Result, json, text::clean};

/// What the plan is written for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Lines for the shell of each host
    Esxcli,
    /// Lines for PowerCLI
    Powercli,
    /// An inventory for Ansible: the lines as variables of each host
    Ansible,
}

/// The whole plan, with its way back.
pub(crate) fn script(comparison: &Comparison, form: Form, out: &mut dyn Write) -> Result<()> {
    match form {
        Form::Ansible => json::write(&ansible(comparison), out),
        Form::Esxcli | Form::Powercli => Ok(out.write_all(lines(comparison, form).as_bytes())?),
    }
}

/// What is done when, of one host.
type Part = fn(&Plan) -> &[Step];
/// The way there, or back.
type Half = fn(&HostPlan) -> &Plan;

fn lines(comparison: &Comparison, form: Form) -> String {
    let mut out = String::new();
    let (forth, back): (Half, Half) = (|plan| &plan.plan, |plan| &plan.undo);
    for (title, before, of) in [("The plan", "", forth), ("The way back", "# ", back)] {
        let mut text = part(comparison, form, of, |plan| &plan.now, false);
        if !text.is_empty() {
            text = format!("# At once\n{text}");
        }
        let reboots = part(comparison, form, of, |plan| &plan.before_reboot, true);
        if !reboots.is_empty() {
            text += "# One host after the other: maintenance mode, its lines, its reboot, its lines. A script ends at \
                 each reboot; begin anew below it.\n";
            text += &reboots;
        }
        if !text.is_empty() {
            out.push_str(&format!("# {title}\n"));
            text.lines().for_each(|line| out.push_str(&format!("{before}{line}\n")));
        }
    }
    out
}

/// The lines of a part for each host; with those around its reboot.
fn part(comparison: &Comparison, form: Form, of: Half, steps: Part, reboots: bool) -> String {
    let mut out = String::new();
    for host in &comparison.plans {
        let plan = of(host);
        let is_meant = if reboots { plan.reboots } else { !steps(plan).is_empty() };
        if !is_meant {
            continue;
        }
        let name = &comparison.fleet.hosts[host.host as usize].name;
        out.push_str(&format!("# {}\n", clean(name)));
        let begins = match form {
            Form::Powercli => clean(&get_esxcli(name)) + "\n",
            Form::Esxcli | Form::Ansible => String::new(),
        };
        out.push_str(&begins);
        out.push_str(&typed(steps(plan), form));
        if reboots {
            // Both shells end a script there: what is below it is refused before the reboot.
            out.push_str(&format!("exit # reboot {}\n", clean(name)));
        }
        if reboots && !plan.after_reboot.is_empty() {
            out.push_str(&format!("# {}, after its reboot\n{begins}", clean(name)));
            out.push_str(&typed(&plan.after_reboot, form));
        }
    }
    out
}

fn typed(steps: &[Step], form: Form) -> String {
    let lines = |step: &Step| -> Vec<String> {
        match form {
            Form::Powercli => step.powercli().collect(),
            Form::Esxcli | Form::Ansible => step.esxcli().collect(),
        }
    };
    steps.iter().flat_map(lines).map(|line| clean(&line) + "\n").collect()
}

/// The lines of a plan, by when they are typed.
pub(super) fn by_time(plan: &Plan) -> Value {
    let lines = |steps: &[Step]| -> Vec<String> { steps.iter().flat_map(Step::esxcli).collect() };
    value!({
        "now": lines(&plan.now),
        "before_reboot": lines(&plan.before_reboot),
        "reboot": plan.reboots,
        "after_reboot": lines(&plan.after_reboot),
    })
}

/// An inventory: every host with `kavg_plan` and `kavg_undo`.
fn ansible(comparison: &Comparison) -> Value {
    let mut hosts = Map::new();
    for host in &comparison.plans {
        let name = &comparison.fleet.hosts[host.host as usize].name;
        let (plan, undo) = (by_time(&host.plan), by_time(&host.undo));
        hosts.insert(name.clone(), value!({ "kavg_plan": plan, "kavg_undo": undo }));
    }
    value!({ "all": { "hosts": hosts } })
}
