//! `kavg explain`: what a counter, a setting, a driver or a threshold is.

use std::{io::Write, process::ExitCode};

use clap::Args;

use crate::{Result, glossary};

/// Explain a counter, a setting, a driver, a threshold or a finding
#[derive(Args)]
pub(crate) struct Explain {
    /// Its name (`KAVG/cmd`, `/Disk/SchedQuantum`, `fnic`, `davg_ms`), or all of
    /// `counters`, `settings`, `options`, `drivers`, `thresholds`, `findings`
    #[arg(value_name = "NAME")]
    name: String,
}

impl Explain {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let wanted = self.name.to_lowercase();
        let sections = glossary::sections();
        let whole = sections.iter().find(|section| section.name == wanted);
        let text = match whole {
            Some(section) => section.text(),
            None => sections
                .iter()
                .flat_map(|section| section.explain(&wanted))
                .collect::<Vec<_>>()
                .join("\n"),
        };
        if text.is_empty() {
            let names = sections.map(|section| section.name).join(", ");
            return Err(format!(
                "{}: nothing is known of it; `kavg explain` lists all of {names}",
                self.name
            )
            .into());
        }
        out.write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
