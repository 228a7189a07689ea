//! `kavg explain`: what a counter, a setting, a driver or a threshold is.

use std::{io::Write, process::ExitCode};

use clap::Args;

use crate::{Result, glossary};

/// Explain a counter, an advanced option, a driver, a threshold or a finding
#[derive(Args)]
pub(crate) struct Explain {
    /// Its name (`KAVG/cmd`, `/Disk/SchedQuantum`, `fnic`, `davg_ms`), or `counters`, `options`,
    /// `drivers`, `thresholds`, `findings` for all of them
    #[arg(value_name = "NAME")]
    name: String,
}

impl Explain {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let wanted = self.name.to_lowercase();
        for section in glossary::sections() {
            if section.name == wanted {
                out.write_all(section.text().as_bytes())?;
                return Ok(ExitCode::SUCCESS);
            }
        }
        let sections = glossary::sections();
        let found = sections.iter().flat_map(|section| section.explain(&wanted));
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return Err(format!(
                "{}: unknown; `kavg explain counters`, options, drivers, thresholds and findings \
                 list what there is",
                self.name
            )
            .into());
        }
        out.write_all(found.join("\n").as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
