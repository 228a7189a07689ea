//! What an administrator asks about one setting, one counter or one finding, answered in full: what
//! it is, when it acts, its default and range, how to read and set it, what to leave alone.
//!
//! The words are data, one table per noun (`settings`, `disks`, `unsimulated`, `counters`, `causes`, `topics`, `screens`). A number
//! that the tables of `knobs`, `counters` or `diagnose` have comes from there.

pub(crate) mod causes;
pub(crate) mod counters;
mod disks;
mod screens;
mod settings;
pub(crate) mod topics;
mod unsimulated;

use std::fmt::Write;

use levels::most_first;

use crate::text::{BOLD, styled};

/// Of what the reference does not have.
const UNKNOWN: &str = "not known: no source says it.";

/// Columns of a heading.
const HEAD: usize = 13;
/// Columns of a line.
const WIDTH: usize = 78;

/// The words of a topic.
struct Topic {
    names: &'static [&'static str],
    title: &'static str,
    /// Heading and text.
    sections: &'static [(&'static str, &'static str)],
}

/// One thing explained.
pub(crate) struct Article {
    /// What it may be asked by.
    pub(crate) names: Vec<String>,
    title: String,
    /// Heading and text, in the order in which they are read.
    sections: Vec<(&'static str, String)>,
}

/// Every article: settings first, then counters, then findings, then topics.
pub(crate) fn articles() -> Vec<Article> {
    let nouns = [of_settings(), counters::articles(), causes::articles(), topics::articles()];
    nouns.into_iter().flatten().collect()
}

/// Those of settings; PVSCSI is a guest's before it is a nested host's driver.
pub(crate) fn of_settings() -> Vec<Article> {
    let nouns =
        [settings::articles(), disks::articles(), settings::drivers(), unsimulated::articles()];
    nouns.into_iter().flatten().collect()
}

impl Article {
    /// Whether it is meant by a name as people type it: case, dots, dashes and slashes aside. A flag
    /// (`-O`) is meant as it is.
    pub(crate) fn is_named(&self, wanted: &str) -> bool {
        let is_it = |name: &str| match is_flag(wanted) || is_flag(name) {
            true => name == wanted,
            false => plain(name) == plain(wanted),
        };
        let names = self.names.iter().map(String::as_str);
        names.chain(self.listed()).any(is_it)
    }

    /// Whether its title is that name.
    fn is_titled(&self, wanted: &str) -> bool {
        self.listed().any(|title| plain(title) == plain(wanted))
    }

    /// What of the title, as it is listed, people may type: all of it, and what stands before its words.
    fn listed(&self) -> impl Iterator<Item = &str> {
        [&*self.title].into_iter().chain(self.title.split_once([':', '(']).map(|parts| parts.0))
    }

    /// What it is called.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// For a terminal of 80 columns.
    pub(crate) fn text(&self) -> String {
        let mut out = format!("{}\n", styled(BOLD, &self.title));
        for (head, text) in &self.sections {
            for (place, paragraph) in text.lines().enumerate() {
                let first = if place == 0 { *head } else { "" };
                out += &wrapped(first, paragraph);
            }
        }
        out
    }

    /// For a page of the reference.
    pub(crate) fn markdown(&self) -> String {
        let mut out = format!("\n### {}\n\n", self.title);
        for (head, text) in &self.sections {
            let text = text.replace('\n', "<br>").replace('|', "\\|");
            let _ = writeln!(out, "* **{head}**: {text}");
        }
        out
    }
}

/// Those that a name means, first those of which it is the title. A name of parts, such as that of a module and its
/// parameter (`vmw_pvscsi.cmd_per_lun`), means what each of them does, where the whole means nothing.
pub(crate) fn named<'a>(articles: &'a [Article], wanted: &str) -> Vec<&'a Article> {
    let parts = || wanted.split(['.', ' ']).filter(|part| !part.is_empty());
    let of_parts =
        |article: &Article| parts().count() > 1 && parts().all(|part| article.is_named(part));
    let is_one = articles.iter().any(|article| article.is_named(wanted));
    let is_meant =
        |article: &Article| if is_one { article.is_named(wanted) } else { of_parts(article) };
    let named = articles.iter().filter(|article| is_meant(article));
    let (first, others): (Vec<_>, Vec<_>) = named.partition(|article| article.is_titled(wanted));
    [first, others].concat()
}

/// The names nearest to one that nobody has, nearest first.
pub(crate) fn near_misses<'a>(names: impl Iterator<Item = &'a str>, wanted: &str) -> Vec<&'a str> {
    /// Likeness from which a name may have been meant, and how many are told.
    const LIKE: f64 = 0.8;
    const TOLD: usize = 3;
    let likeness = |name: &str| strsim::jaro_winkler(&plain(name), &plain(wanted));
    let mut near: Vec<(f64, &str)> = names.map(|name| (likeness(name), name)).collect();
    near.retain(|(like, _)| *like >= LIKE);
    most_first(&mut near, |topic| topic.0);
    let mut told: Vec<&str> = Vec::new();
    for (_, name) in near {
        if told.len() < TOLD && !told.iter().any(|other| plain(other) == plain(name)) {
            told.push(name);
        }
    }
    told
}

fn is_flag(name: &str) -> bool {
    name.len() == 2 && name.starts_with('-')
}

/// A name by its letters and digits.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// A paragraph behind a heading. A line to type, which begins with `$`, is never broken.
fn wrapped(head: &str, paragraph: &str) -> String {
    let mut out = String::new();
    let mut line = format!("{head:<HEAD$}");
    let is_command = paragraph.starts_with("$ ");
    for word in paragraph.split_whitespace() {
        if !is_command && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(HEAD);
        } else if line.chars().count() > HEAD {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{}", line.trim_end());
    out
}

#[cfg(test)]
mod tests {
    use ::counters::Counter;
    use diagnose::Cause;
    use knobs::{Advanced, Driver};

    use super::*;

    fn found(wanted: &str) -> Vec<String> {
        let articles = articles();
        named(&articles, wanted).iter().map(|article| article.title.clone()).collect()
    }

    #[test]
    fn every_setting_counter_and_cause_explains_itself() {
        let options = Advanced::TABLE.iter().map(|info| info.path);
        let drivers = Driver::ALL.iter().map(|driver| driver.module);
        let parameters = Driver::ALL.iter().filter_map(|driver| driver.parameter);
        let columns =
            Counter::TABLE.iter().flat_map(|info| [info.key, info.column, info.batch_name]);
        let causes = Cause::ALL.iter().flat_map(|cause| [cause.key(), cause.title()]);
        for name in options.chain(drivers).chain(parameters).chain(columns).chain(causes) {
            assert!(!found(name).is_empty(), "{name}");
        }
        for article in articles() {
            for name in article.listed() {
                assert!(found(name).contains(&article.title), "{name}");
            }
            assert!(article.sections.len() >= 4, "{}", article.title);
            for (head, text) in &article.sections {
                assert!(!text.trim().is_empty(), "{}: {head}", article.title);
            }
        }
    }

    #[test]
    fn what_bears_a_name_as_its_title_is_told_first() {
        for (name, title) in [("noisy-neighbour", "Noisy neighbour"), ("shares", "SHARES")] {
            assert!(found(name)[0].starts_with(title), "{name}: {:?}", found(name));
        }
    }

    /// What an administrator asks of a setting, whether kavg simulates it or not.
    #[test]
    fn every_setting_is_told_in_the_same_depth() {
        let asked = [
            "What it is",
            "When it acts",
            "Default",
            "Range",
            "Read it",
            "Set it",
            "In force",
            "Leave alone",
        ];
        for article in of_settings() {
            let heads = article.sections.iter().map(|(head, _)| *head);
            let answered: Vec<&str> = heads.filter(|head| asked.contains(head)).collect();
            assert_eq!(answered, asked, "{}", article.title);
        }
    }

    #[test]
    fn every_counter_is_told_in_the_same_depth() {
        let asked =
            ["What it is", "Where", "When", "Unit", "Read it", "Set it", "Counts from", "Mind"];
        let articles = counters::articles();
        assert_eq!(articles.len(), Counter::TABLE.len());
        for article in articles {
            let heads: Vec<&str> = article.sections.iter().map(|(head, _)| *head).collect();
            assert_eq!(heads, asked, "{}", article.title);
        }
    }

    #[test]
    fn names_are_found_as_people_type_them() {
        let dsnro = ["dsnro", "DSNRO", "Disk.SchedNumReqOutstanding", "sched-num-req-outstanding"];
        let same = ["-O", "--sched-num-req-outstanding", "/Disk/SchedNumReqOutstanding"];
        let long = "No of outstanding IOs with competing worlds";
        for name in dsnro.iter().chain(&same).chain([&long]) {
            assert!(found(name)[0].starts_with("DSNRO"), "{name}: {:?}", found(name));
        }
        let cases = [
            ("-m", "Device Max Queue Depth"),
            ("davg/cmd", "DAVG/cmd"),
            ("DAVG", "DAVG/cmd"),
            ("QUED", "QUED"),
            ("%USD", "%USD"),
            ("Queued Commands", "QUED"),
            ("iscsivmk_LunQDepth", "iscsi_vmk"),
            ("PVSCSI", "PVSCSI"),
            ("cmd_per_lun", "PVSCSI"),
            ("throttling", "Adaptive queue depth throttling"),
            ("MaxQueueDepth", "Device Max Queue Depth"),
            ("MaxQueueDepth", "PVSCSI"),
            ("VMFS3.HardwareAcceleratedLocking", "VMFS3.HardwareAcceleratedLocking"),
            ("device-depth", "Device queue full, limited by its own depth"),
            ("VMW_PSP_RR", "Path policy"),
            ("DiskLimitIOPerSecond", "IOPS limit"),
            ("storage policy", "Storage policy"),
            ("SPBM", "Storage policy"),
            ("nfs", "NFS"),
            ("NFS.MaxQueueDepth", "NFS"),
            ("nfsclient", "NFS"),
            ("weight_scale", "Weight scale"),
            ("shares", "Weight scale"),
            ("shares", "IOPS limit, reservation and shares"),
            ("/NFS/MaxQueueDepth", "NFS.MaxQueueDepth"),
            ("qos", "Held to a rate below the host (QoS or saturation)"),
            ("QFULL", "Adaptive queue depth throttling"),
            ("queue full", "Adaptive queue depth throttling"),
            ("TASK SET FULL", "Adaptive queue depth throttling"),
            ("vaai", "VAAI"),
            ("vvol", "Scsi.ScsiVVolPESNRO"),
            ("protocol endpoint", "Scsi.ScsiVVolPESNRO"),
            ("PESNRO", "Scsi.ScsiVVolPESNRO"),
            ("apd", "APD and PDL"),
            ("pdl", "APD and PDL"),
            ("lsilogic", "Virtual adapters"),
            ("lsi", "Virtual adapters"),
            ("nvme", "Virtual adapters"),
            ("ahci", "Virtual adapters"),
            ("ide", "Virtual adapters"),
            ("storage io control", "Depth moved by Storage I/O Control"),
            ("Storage I/O Control", "Depth moved by Storage I/O Control"),
            ("sioc", "Depth moved by Storage I/O Control"),
            ("guest latency", "Guest latency"),
            ("Little's law", "Little's law"),
            ("vscsiStats", "vscsiStats"),
            ("qlfxmaxqdepth", "qlnativefc"),
            ("path loss", "Path lost"),
            ("mclock", "Disk.SchedulerWithReservation"),
            ("device queue full", "Device queue full, limited by DSNRO"),
            ("pvscsi", "PVSCSI: the depth of a virtual disk"),
            ("noisy neighbor", "Noisy neighbour"),
            ("noisy neighbor", "Device depth found by latency"),
            ("RR", "Path policy"),
            ("iops=1", "Path policy"),
            ("multipath", "Path policy"),
            ("multipath", "PSA"),
            ("vmhba", "vmhba"),
        ];
        for (name, title) in cases {
            let found = found(name);
            assert!(found.iter().any(|found| found.starts_with(title)), "{name}: {found:?}");
        }
        assert!(["-o", "nothing", "", "."].iter().all(|name| found(name).is_empty()));
    }

    #[test]
    fn a_parameter_is_found_with_its_module() {
        assert!(found("vmw_pvscsi.cmd_per_lun")[0].starts_with("PVSCSI"));
        assert!(found("iscsi_vmk  iscsivmk_LunQDepth")[0].starts_with("iscsi_vmk"));
        assert!(found("lpfc.ql2xmaxqdepth").is_empty());
    }

    #[test]
    fn the_guests_pvscsi_comes_first() {
        assert!(found("pvscsi")[0].starts_with("PVSCSI: the depth of a virtual disk"));
    }

    #[test]
    fn a_near_miss_is_offered() {
        let articles = articles();
        let names = || articles.iter().flat_map(|article| &article.names).map(String::as_str);
        for (wanted, meant) in [("dnsro", "DSNRO"), ("qavgg", "QAVG"), ("pvscsy", "PVSCSI")] {
            let near = near_misses(names(), wanted);
            assert!(near.iter().any(|name| plain(name) == plain(meant)), "{wanted}: {near:?}");
        }
        assert!(near_misses(names(), "zzzz").is_empty());
    }
}
