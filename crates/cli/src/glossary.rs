//! The tables of facts that the other crates hold, as text and as Markdown: counters, settings,
//! advanced options, drivers, thresholds, findings.

use std::fmt::Write;

use counters::Counter;
use diagnose::{Cause, Threshold};
use knobs::{Advanced, AdvancedInfo, Driver};

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

/// Lines that set a knob, when it acts, and what is allowed.
const SETTINGS: [[&str; 3]; 10] = [
    [
        "storage core device set -d DEVICE -O N",
        "at once",
        "DSNRO, 1 to 256; from ESXi 6.5 not above the device's depth [HP, S1]",
    ],
    [
        "storage core device set -d DEVICE -m N",
        "at once",
        "Device Max Queue Depth, 1 to what the driver gives [QD254]",
    ],
    [
        "storage core device set -d DEVICE -s N -q N",
        "at once",
        "adaptive throttling: results in a window, 0 (off) to 64; bad ones, 1 to 16 [LAMW]",
    ],
    [
        "system module parameters set -m MODULE -p PARAMETER=N",
        "after a reboot of the host",
        "the depth of every device behind a driver, in the driver's range [S0]",
    ],
    [
        "system settings advanced set -o OPTION -i N",
        "as the option says",
        "an advanced option [LAMW]",
    ],
    [
        "storage nmp device set -d DEVICE -P VMW_PSP_RR",
        "at once",
        "VMW_PSP_FIXED, VMW_PSP_MRU or VMW_PSP_RR [ELA]",
    ],
    [
        "storage nmp psp roundrobin deviceconfig set -d DEVICE -t iops -I N",
        "at once",
        "I/Os down a path before the next one [ELA, BB]",
    ],
    [
        "storage nmp psp roundrobin deviceconfig set -d DEVICE -t bytes -B N",
        "at once",
        "bytes down a path before the next one [ELA, BB]",
    ],
    [
        "RequestRingPages=N,MaxQueueDepth=N",
        "after a reboot of the guest",
        "PVSCSI in a Windows guest: 1 to 32 pages, 1 to 254 commands a disk [KB-PV]",
    ],
    [
        "vmw_pvscsi.cmd_per_lun=N vmw_pvscsi.ring_pages=N",
        "after a reboot of the guest",
        "PVSCSI in a Linux guest: 1 to 254 commands a disk, 1 to 32 pages [KB-PV]",
    ],
];

fn settings() -> Section {
    Section {
        name: "settings",
        about: "Lines for `esxcli` and for guests, as scenario files, `--set` and `--compare-set` \
                take them. `HOST: ` or `VM: ` in front is for that one only.",
        heads: &["line", "acts", "what"],
        keys: 0,
        rows: SETTINGS.iter().map(|row| row.map(String::from).to_vec()).collect(),
    }
}

fn options() -> Section {
    let row = |info: &AdvancedInfo| {
        vec![
            info.path.to_owned(),
            info.default.to_string(),
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
    let row = |driver: &Driver| {
        let range = match driver.parameter {
            Some(_) => format!("{} to {}", driver.depth_min, driver.depth_max),
            None => "fixed".to_owned(),
        };
        vec![
            driver.module.to_owned(),
            driver.parameter.unwrap_or_default().to_owned(),
            limit(driver.depth_default),
            range,
            limit(driver.adapter_depth),
        ]
    };
    Section {
        name: "drivers",
        about: "Drivers of host adapters: `esxcli system module parameters set -m MODULE -p \
                PARAMETER=VALUE`, in force after a reboot of the host.",
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
            info.source.to_owned(),
            info.meaning.to_owned(),
        ]
    };
    Section {
        name: "thresholds",
        about: "Thresholds of the two profiles: `kavg diagnose --set-threshold KEY=VALUE`.",
        heads: &["key", "classic", "flash", "unit", "source", "meaning"],
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
    use super::*;
    use scenario::Scenario;

    #[test]
    fn every_setting_is_understood() {
        let text = include_str!("command/new.toml");
        for system in ["windows", "linux"] {
            let text = text.replace("\"windows\"", &format!("{system:?}"));
            let scenario = Scenario::parse("new.toml", &text, &mut |_| unreachable!()).unwrap();
            for [line, ..] in SETTINGS {
                let line = line
                    .replace("DEVICE", "naa.60000000000000000000000000000001")
                    .replace("MODULE", "qlnativefc")
                    .replace("PARAMETER", "ql2xmaxqdepth")
                    .replace("OPTION", "/Disk/SchedQuantum")
                    .replace("-O N", "-O 16")
                    .replace(" N", " 16")
                    .replace("=N", "=16");
                let of_guest = line.contains("RequestRing") || line.contains("vmw_pvscsi");
                let fits = !of_guest || line.contains("vmw") == (system == "linux");
                let knobs = scenario::parse_knob(&line, &scenario);
                assert_eq!(knobs.is_ok(), fits, "{line} {system}: {knobs:?}");
            }
        }
    }
}
