//! The tables of facts that the other crates hold, as text and as Markdown: counters, settings,
//! advanced options, drivers, thresholds, findings.

use std::fmt::Write;

use counters::Counter;
use diagnose::{Cause, Threshold};
use knobs::{Advanced, AdvancedInfo, Driver, Effect, MEMORY, Manual};

use crate::table::Table;

/// One table of facts.
pub(crate) struct Section {
    /// Its name, as it is typed.
    pub(crate) name: &'static str,
    /// A sentence about it.
    pub(crate) about: &'static str,
    heads: &'static [&'static str],
    /// How many of the first columns name the row.
    keys: usize,
    rows: Vec<Vec<String>>,
}

/// Every section.
pub(crate) fn sections() -> [Section; 6] {
    [counters(), settings(), options(), drivers(), thresholds(), findings()]
}

impl Section {
    /// The table for a terminal.
    pub(crate) fn text(&self) -> String {
        let columns: Vec<usize> = (0..self.heads.len()).collect();
        let mut table = Table::new(self.heads).left(&columns);
        self.rows.iter().for_each(|row| table.row(row.clone()));
        table.render()
    }

    /// The table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut out = format!("| {} |\n", self.heads.join(" | "));
        let _ = writeln!(out, "|{}", "---|".repeat(self.heads.len()));
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        out
    }

    /// The rows of that name in lower case, a line for each column.
    pub(crate) fn explain(&self, wanted: &str) -> impl Iterator<Item = String> {
        let is_it = move |name: &String| {
            let name = name.to_lowercase();
            let parts = [name.rsplit('/').next(), name.split('/').next()];
            name == wanted || (!wanted.contains('/') && parts.contains(&Some(wanted)))
        };
        let rows = self.rows.iter().filter(move |row| row.iter().take(self.keys).any(is_it));
        rows.map(|row| {
            let lines = self.heads.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            lines.map(|(head, cell)| format!("{head:<12} {cell}\n")).collect()
        })
    }
}

fn counters() -> Section {
    let row = |info: &counters::CounterInfo| {
        let batch = if info.in_esxtop { info.batch_name } else { "" };
        [info.column, info.key, batch, info.unit, info.meaning].map(String::from).to_vec()
    };
    Section {
        name: "counters",
        about: "Counters by esxtop's column, by the key in scenario files and JSON, and by the \
                name in `esxtop -b`; those without such a name are kavg's own.",
        heads: &["column", "key", "esxtop -b", "unit", "meaning"],
        keys: 3,
        rows: Counter::TABLE.iter().map(row).collect(),
    }
}

fn settings() -> Section {
    let row = |manual: Manual| {
        let acts = manual.effect.map_or("as the option says", Effect::text);
        vec![manual.line.to_owned(), acts.to_owned(), manual.what]
    };
    Section {
        name: "settings",
        about: "Lines for `esxcli` and for guests, as scenario files, `--set` and `--compare-set` \
                take them. `HOST: ` or `VM: ` in front is for that one only. What PowerCLI takes \
                (`$esxcli.storage.core.device.set.Invoke(@{…})`) is read as well, and its cmdlets \
                `Set-VMResourceConfiguration`, `Set-SpbmEntityConfiguration`, `Set-Datastore` and \
                `Set-AdvancedSetting` behind those that get what they set, in any case and order. \
                Names of VMs, datastores, storage policies and hosts are taken in any case.",
        heads: &["line", "acts", "what"],
        keys: 0,
        rows: knobs::manual().into_iter().map(row).collect(),
    }
}

fn options() -> Section {
    let row = |info: &AdvancedInfo| {
        vec![
            info.path.to_owned(),
            info.later.map_or(info.default.to_string(), |(version, later)| {
                format!("{}, {later} from {}", info.default, version.name())
            }),
            format!("{} to {}", info.min, info.max),
            info.effect.text().to_owned(),
            info.meaning.to_owned(),
        ]
    };
    Section {
        name: "options",
        about: "Advanced options: `esxcli system settings advanced set -o OPTION -i VALUE`.",
        heads: &["option", "default", "range", "acts", "meaning"],
        keys: 1,
        rows: Advanced::TABLE.iter().map(row).collect(),
    }
}

fn drivers() -> Section {
    let limit = |depth: u32| if depth == u32::MAX { "none".into() } else { depth.to_string() };
    // Columns are narrow: other sources are in the driver's own article.
    let marked = |number: String, source: &str| match source {
        MEMORY => format!("{number} {MEMORY}"),
        _ => number,
    };
    let row = |driver: &Driver| {
        let sources = driver.sources;
        let range = match driver.parameter {
            Some(_) => format!("{} to {}", driver.depth_min, driver.depth_max),
            None => "fixed".to_owned(),
        };
        vec![
            driver.module.to_owned(),
            driver.parameter.unwrap_or_default().to_owned(),
            marked(limit(driver.depth_default), sources.depth),
            marked(range, sources.range),
            marked(limit(driver.adapter_depth), sources.adapter),
        ]
    };
    Section {
        name: "drivers",
        about: "Drivers of host adapters: `esxcli system module parameters set -m MODULE -p \
                PARAMETER=VALUE`, in force after a reboot of the host. What is from memory is not \
                verified; `kavg explain MODULE` has the sources of the others.",
        heads: &["module", "parameter", "depth", "range", "AQLEN"],
        keys: 2,
        rows: Driver::ALL.iter().map(row).collect(),
    }
}

fn thresholds() -> Section {
    let row = |info: &diagnose::ThresholdInfo| {
        vec![
            info.key.to_owned(),
            info.classic.to_string(),
            info.flash.to_string(),
            info.unit.to_owned(),
            info.range(),
            info.source.to_owned(),
            info.meaning.to_owned(),
        ]
    };
    Section {
        name: "thresholds",
        about: "Thresholds of the two profiles: `kavg diagnose --set-threshold KEY=VALUE`.",
        heads: &["key", "classic", "flash", "unit", "range", "source", "meaning"],
        keys: 1,
        rows: Threshold::TABLE.iter().map(row).collect(),
    }
}

fn findings() -> Section {
    let row = |cause: &Cause| vec![cause.key().to_owned(), cause.title().to_owned()];
    Section {
        name: "findings",
        about: "What a diagnosis can find.",
        heads: &["key", "finding"],
        keys: 2,
        rows: Cause::ALL.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use scenario::Scenario;

    #[test]
    fn every_setting_is_understood() {
        let text = include_str!("command/new.toml");
        for system in ["windows", "linux"] {
            let text = text.replace("\"windows\"", &format!("{system:?}"));
            let scenario = Scenario::parse("new.toml", &text, &mut |_| unreachable!()).unwrap();
            for manual in knobs::manual() {
                let line = manual
                    .line
                    .replace("VM: ", "sql: ")
                    .replace("DEVICE", "naa.60000000000000000000000000000001")
                    .replace("MODULE", "qlnativefc")
                    .replace("PARAMETER", "ql2xmaxqdepth")
                    .replace("POLICY", "low")
                    .replace("NAME", "prod")
                    .replace("OPTION", "/Disk/SchedQuantum")
                    .replace("NumDiskShares N", "NumDiskShares 1000")
                    .replace("=N", "=16");
                let words = line.split(' ').map(|word| if word == "N" { "16" } else { word });
                let line = words.collect::<Vec<_>>().join(" ");
                let of_guest = line.contains("RequestRing") || line.contains("vmw_pvscsi");
                let fits = !of_guest || line.contains("vmw") == (system == "linux");
                let knobs = scenario::parse_knob(&line, &scenario);
                assert_eq!(knobs.is_ok(), fits, "{line} {system}: {knobs:?}");
            }
        }
    }
}
