//! `kavg settings`: many hosts side by side, and one plan for them.

use std::{io::Write, path::PathBuf, process::ExitCode};

use anstream::StripStream;
use clap::Args;

use crate::{
    Result, json,
    output::Outputs,
    settings::{
        self, Aim, Comparison, Fleet, Form, Model, advised, differences, plans, untold, wanted,
    },
    talk::say,
    text::clean,
};

/// Compare the settings of many hosts, and plan what makes them alike
///
/// From outputs of esxcli: which hosts and devices differ in the depth of their drivers, Device Max Queue
/// Depth, DSNRO, adaptive throttling, path policies and advanced options, and what the vendors of arrays say
/// of these; then one plan, every line in the
/// order in which its host takes it, reboots together, with the way back (`kavg help docs/settings`).
/// Nothing is changed on any host. Exit code: 0 when all are alike, 1 when something differs, is to be
/// set, is not as a vendor says, or is off its default on some hosts and told by no other, 2 when the input is bad.
#[derive(Args)]
pub(crate) struct Settings {
    /// Files or folders, each called as its host, or folders of these: outputs of `esxcli storage core
    /// device list`, `storage nmp device list`, `storage core adapter list`, `system module parameters
    /// list`, `system settings advanced list`, `system version get`, `iscsi adapter param get`, one behind the other or each in a
    /// file; or captures of `esxtop -b`
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Set this everywhere, as esxcli takes it, instead of what most hosts have; `*` in the name of a device
    /// is anything, `HOST: ` in front is for these hosts; can be given several times
    #[arg(long, value_name = "ESXCLI LINE")]
    set: Vec<String>,
    /// Set everything that differs as it is on this host
    #[arg(long, value_name = "HOST")]
    like: Option<String>,
    /// Print the whole plan and the way back instead
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "json")]
    plan: Option<Form>,
    /// Print everything as JSON (`kavg help reference/json`)
    #[arg(long)]
    json: bool,
    /// Write to a file what would be printed
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Settings {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let mut outputs = Outputs::beside(Fleet::files(&self.paths)?);
        let file = self.output.as_deref().map(|path| outputs.claim(path)).transpose()?;
        outputs.leaves_inputs()?;
        let fleet = Fleet::read(&self.paths)?;
        fleet.left_out.iter().for_each(|why| say(&format!("left out: {}", clean(why))));
        let (differences, uneven) = differences(&fleet);
        let model = self.like.as_deref().map_or(Model::Most, Model::Host);
        let wanted = wanted(&fleet, &differences, &model, &self.set)?;
        let aim = if self.set.is_empty() { Aim::Alike } else { Aim::Lines };
        let plans = plans(&fleet, &wanted, aim);
        let (advised, untold) = (advised(&fleet), untold(&fleet));
        let comparison = Comparison { fleet, differences, uneven, untold, advised, plans };
        match file {
            Some(file) => file.write(|file| {
                self.print(&comparison, &mut StripStream::new(file as &mut dyn Write))
            })?,
            None => self.print(&comparison, out)?,
        }
        if self.plan.is_some() {
            say_what_is_not_planned(&comparison);
        }
        Ok(ExitCode::from(u8::from(!comparison.is_well())))
    }

    fn print(&self, comparison: &Comparison, out: &mut dyn Write) -> Result<()> {
        match self.plan {
            Some(form) => settings::script(comparison, form, out),
            None if self.json => json::write(&settings::render_json(comparison), out),
            None => Ok(out.write_all(settings::render(comparison).as_bytes())?),
        }
    }
}

/// A plan alone does not show what is missing in it.
fn say_what_is_not_planned(comparison: &Comparison) {
    let refused = settings::not_planned(comparison, ": ");
    refused.iter().for_each(|one| say(&format!("not in the plan: {one}")));
    settings::without_way_back(comparison).iter().for_each(|hosts| say(hosts));
    if refused.is_empty() && comparison.plans.is_empty() && !comparison.is_well() {
        say(
            "nothing is planned: no value is that of most hosts (--like, --set), what differs has no line, hosts are \
             alike and not as vendors say, or some do not tell all; without --plan all of it is shown",
        );
    }
}
