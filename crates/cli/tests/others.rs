//! The small commands, and the pages of the reference that come out of the program.

mod common;

use std::path::Path;

use common::kavg;

#[test]
fn a_new_scenario_runs_and_shows_what_its_comments_say() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new.toml");
    let name = file.to_str().unwrap();
    let said = kavg(&["new", name]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.ends_with(&format!("`kavg run {name}` runs it\n")), "{}", said.out);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kavg(&["new"]).out);
    let said = kavg(&["run", name]);
    assert_eq!(said.code, 0, "{}", said.out);
    assert!(said.out.contains("Expectations: all 2 met"), "{}", said.out);
}

#[test]
fn scenarios_are_listed_and_shown() {
    let said = kavg(&["scenarios"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains("s0-flasharray\n    Two short queues"), "{}", said.out);
    let text = kavg(&["scenarios", "--show", "s0-flasharray"]).out;
    assert!(text.contains("driver = \"fnic\""), "{text}");
}

#[test]
fn several_words_need_no_quotes() {
    for words in ["path loss", "queue full", "noisy neighbour"] {
        let apart: Vec<&str> = std::iter::once("explain").chain(words.split(' ')).collect();
        let (apart, together) = (kavg(&apart), kavg(&["explain", words]));
        assert_eq!((apart.code, apart.err.as_str()), (0, ""), "{words}");
        assert_eq!(apart.out, together.out);
    }
}

#[test]
fn names_of_every_kind_are_explained() {
    let cases = [
        ("QUED", "Commands waiting in the VMkernel for a slot"),
        ("qued_mean", "QUED averaged over the interval"),
        ("davg/cmd", "davg_ms"),
        ("kavg", "Time in the VMkernel: GAVG - DAVG"),
        ("Average Kernel MilliSec/Command", "Time in the VMkernel: GAVG - DAVG"),
        ("/Disk/SchedQuantum", "1 to 64"),
        ("schedquantum", "1 to 64"),
        ("fnic_max_qdepth", "esxcli system module parameters set -m fnic -p fnic_max_qdepth=N"),
        ("davg_ms", "classic      25"),
        ("dsnro", "Device queue full, limited by DSNRO"),
        ("dsnro", "$ esxcli storage core device set -d DEVICE -O N"),
        ("-O", "DSNRO: No of outstanding IOs with competing worlds"),
        ("Disk.SchedNumReqOutstanding", "1 to 256; from 6.5 on at most the device's own depth"),
        ("drivers", "iscsivmk_LunQDepth"),
        ("nfsclient", "no adapter, no path, no device"),
        ("NFS.MaxQueueDepth", "4294967295, which is no limit"),
        ("lsilogic", "LSI Logic SAS: 32 a disk, 128 in all."),
        ("ide", "IDE: 1 a disk"),
        ("pesnro", "128, 256 from 7.0 on. From 6.0 on."),
        ("pesnro", "U2, and 7.0 is its U3 here"),
        ("qlfxmaxqdepth", "as S0's table prints it, is a misprint"),
        ("fnic", "ESXi 6.7 and earlier"),
        ("nvme_pcie", "ESXi 7.0 and later"),
        ("settings", "storage core device set -d DEVICE -O N"),
        ("lpfc", "in some builds 30 (memory)"),
        ("lpfc", "1 to 512 (memory)"),
        ("brcmfcoe", "32 (memory); the adapter as a whole"),
        ("nfnic", "1 to 1024 [QD254]"),
        ("lpfc0_lun_queue_depth", "that of port 0"),
        ("drivers", "1 to 512 (memory)"),
        ("Disk.SharesHigh", "$ esxcli system settings advanced set -o /Disk/SharesHigh -i N"),
        ("storageMaxPaths", "$ esxcli system settings kernel set -s storageMaxPaths -v N"),
        ("storageMaxPaths", "after a reboot of the host"),
        ("Disk.VSCSIPollPeriod", "Range        not known: no source says it."),
        ("iser_LunQDepth", "$ esxcli system module parameters set -m iser -p iser_LunQDepth=N"),
        ("iser_LunQDepth", "Default      not known: no source says it."),
        ("lpfc_hba_queue_depth", "It cannot be set after ESX 3.5"),
        ("slots_pct", "range        0 to 100"),
    ];
    for (name, expected) in cases {
        let said = kavg(&["explain", name]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{name}");
        assert!(said.out.contains(expected), "{name}: {}", said.out);
    }
}

/// Options and limits, and what is said of each.
const OPTIONS: &[(&str, &str)] = &[
    ("Disk.SchedQPriorityPercentage", "80."),
    ("/Disk/DiskRetryPeriod", "500 to 50000."),
    ("DiskRetryPeriod", "2000."),
    ("Disk.SchedQCleanupInterval", "300."),
    ("Disk.SharesHigh", "2000."),
    ("Disk.SharesNormal", "1000."),
    ("Disk.SharesLow", "500."),
    ("Disk.BandwidthCap", "4294967294."),
    ("Disk.ThroughputCap", "4294967294."),
    ("Disk.SllThrottleTime", "25 to 3000."),
    ("Disk.FastPathRestoreInterval", "10 to 1000."),
    ("Disk.UseIoPool", "0 to 7."),
    ("Disk.NmpMaxCmdExtension", "0 to 4070 in 6.0"),
    ("Disk.ReqCallThreshold", "1 to 129."),
    ("Disk.VSCSIPollPeriod", "1000."),
    ("Disk.VSCSICoalesceCount", "1000."),
    ("Disk.VSCSIHaltPollInterval", "5."),
    ("Disk.VSCSIMaxTransLen", "0 to 16384."),
    ("Disk.VSCSIOptimalTransLen", "0 to 16384."),
    ("Disk.DiskReservationThreshold", "45."),
    ("Scsi.ScsiRestartStalledQueueLatency", "1 to 60000."),
    ("Scsi.NvmeAdjustLocalNSQDepth", "0 to 1."),
    ("Scsi.PcpusPerCompletionWorld", "1 to 64."),
    ("Scsi.SCSITimeout_ScanTime", "1000."),
    ("Scsi.SCSITimeout_ReabortTime", "5000."),
    ("Scsi.SCSIEnableDeviceLatencyHistogram", "7.0"),
    ("Scsi.MaxReserveTime", "50 to 500."),
    ("Scsi.MaxReserveTotalTime", "250."),
    ("NFS.NFSMaxOutstandingIOs", "65536."),
    ("NFS.SendBufferSize", "264, 1024"),
    ("NFS.ReceiveBufferSize", "256, 1024"),
    ("Misc.EnablePSPLatencyPolicy", "9.0 has it no more"),
    ("VMFS3.UseATSForHBOnVMFS5", "heartbeats"),
    ("VMkernel.Boot.isPerFileSchedModelActive", "TRUE"),
    ("storageMaxDevices", "512 in 6.5"),
    ("storageMaxPaths", "2048 in 6.5"),
    ("storageMaxVMsPerDevice", "32."),
];

/// Drivers and their parameters.
const DRIVERS: &[(&str, &str)] = &[
    ("iser", "iSCSI over RDMA"),
    ("iser_LunQDepth", "512"),
    ("smartpqi", "1,014"),
    ("lsi_mr3", "256"),
    ("megaraid_sas", "895"),
    ("lsi_msgpt3", "600"),
    ("mpt3sas", "600"),
    ("hpsa", "28"),
    ("nvme", "1,023"),
    ("lpfc_740", "128"),
    ("iscsivmk_HostQDepth", "1,024"),
    ("lpfc_hba_queue_depth", "8,192"),
    ("brcmfcoe_hba_queue_depth", "whole adapter"),
];

/// Words of esxtop, SCSI and the array's plugins.
const WORDS: &[(&str, &str)] = &[
    ("BLKSZ", "bytes of its block"),
    ("NPATHS", "how many paths"),
    ("VSAN", "x [ELA]"),
    ("LQLEN", "DQLEN"),
    ("siocActiveTimePercentage", "at work"),
    ("disk.queueLatency", "QAVG"),
    ("CHECK CONDITION", "sense code"),
    ("5h/25h/00h", "for good"),
    ("HPP", "LIST8"),
    ("RDM", "pointer"),
];

/// Names of the reference that a storage administrator meets, in each form in which they are written.
#[test]
fn what_kavg_does_not_simulate_is_explained_too() {
    const SAYS_SO: &str = "not simulate";
    for (name, expected) in OPTIONS.iter().chain(DRIVERS).chain(WORDS) {
        let said = kavg(&["explain", name]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{name}");
        assert!(said.out.contains(expected), "{name}: {}", said.out);
        // Lines are wrapped between words.
        let text: Vec<&str> = said.out.split_whitespace().collect();
        assert!(text.join(" ").contains(SAYS_SO), "{name}: {}", said.out);
    }
    for name in ["QSTATS", "LATSTATS/rd", "Physical Disk Per-Device-Per-World", "BUSY", "MaxBurst"]
    {
        assert_eq!(kavg(&["explain", name]).code, 0, "{name}");
    }
    for (near, name) in [
        ("Disk.SchedQPriorityPercent", "Disk.SchedQPriorityPercentage"),
        ("iscsivmk_HostQueueDepth", "iscsivmk_HostQDepth"),
        ("smartpq", "smartpqi"),
    ] {
        let said = kavg(&["explain", near]);
        assert!(said.code == 2 && said.err.contains(name), "{near}: {}", said.err);
    }
}

/// `UPDATE_REFERENCE=1 cargo test -p kavg` writes the pages.
#[test]
fn the_reference_is_up_to_date() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for page in ["command-line", "counters", "knobs", "findings", "topics"] {
        let said = kavg(&["reference", page]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{page}");
        let path = directory.join(page).with_extension("md");
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            std::fs::write(&path, &said.out).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(written, said.out, "docs/reference/{page}.md is out of date");
    }
}

#[test]
fn help_reaches_every_command_and_page() {
    let index = kavg(&["help"]).out;
    assert!(index.contains("guides/read-a-capture") && index.contains("diagnose"), "{index}");
    assert_eq!(kavg(&["help", "capture", "cut"]).out, kavg(&["capture", "cut", "--help"]).out);
    let page = include_str!("../../../docs/guides/read-a-capture.md");
    for name in ["read-a-capture", "guides/read-a-capture", "docs/guides/read-a-capture.md"] {
        assert_eq!(kavg(&["help", name]).out, page, "{name}");
    }
    assert_eq!(kavg(&["help", "reference/knobs"]).out, kavg(&["reference", "knobs"]).out);
    let page = "\n`kavg help docs/whatif`: ";
    assert!(kavg(&["help", "whatif"]).out.contains(page), "the command has the name of the page");
    for (name, line) in [
        ("counters", "kavg: counters: which of concepts/counters, reference/counters?\n"),
        ("nothing", "kavg: nothing: no command and no page; `kavg help` lists both\n"),
        (
            "sceanrio",
            "kavg: sceanrio: no command and no page (did you mean scenario?); `kavg help` lists both\n",
        ),
        ("dsnro", "kavg: dsnro: no command and no page; `kavg explain dsnro` explains it\n"),
    ] {
        let said = kavg(&["help", name]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (2, "", line));
    }
}

/// The blocks of guides that begin with the run, sweep or remedies of a shipped scenario: what they show is in the output of
/// their last command, line for line and in that order.
#[test]
#[cfg(unix)]
fn guides_show_what_is_printed() {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    let mut shown = 0;
    for page in std::fs::read_dir(guides).unwrap() {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        let blocks =
            text.split("```text\n").skip(1).filter_map(|block| block.split("\n```").next());
        for block in blocks.filter(|block| is_of_a_shipped_scenario(block)) {
            let (commands, lines): (Vec<_>, Vec<_>) =
                block.lines().partition(|line| line.starts_with("$ "));
            let mut out = output_of(&commands);
            for line in lines.into_iter().filter(|line| *line != "...") {
                let at = out.iter().position(|printed| printed == line);
                let at = at.unwrap_or_else(|| panic!("`{line}` is not printed by {commands:?}"));
                out.drain(..=at);
            }
            shown += 1;
        }
    }
    assert!(shown >= 6, "{shown}");
}

#[cfg(unix)]
fn is_of_a_shipped_scenario(block: &str) -> bool {
    let commands = ["$ kavg run ", "$ kavg sweep ", "$ kavg remedy "];
    let rest = commands.iter().find_map(|start| block.strip_prefix(start));
    let name = rest.and_then(|rest| rest.split_whitespace().next());
    let is_shipped = |name| kavg(&["scenarios", "--show", name]).code == 0;
    // What runs in real time is killed there.
    let is_whole = block.starts_with("$ kavg plan ") || name.is_some_and(is_shipped);
    is_whole && !block.contains("--pace")
}

/// What the last of some lines prints, one after the other in an empty folder.
#[cfg(unix)]
fn output_of(commands: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut printed = Vec::new();
    for command in commands {
        let kavg = Path::new(env!("CARGO_BIN_EXE_kavg"));
        let line = command.replacen("$ kavg", &kavg.display().to_string(), 1);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line]).current_dir(folder.path());
        printed = shell.output().unwrap().stdout;
    }
    String::from_utf8(printed).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_version_says_for_which_target() {
    let said = kavg(&["--version"]).out;
    assert!(said.starts_with(concat!("kavg ", env!("CARGO_PKG_VERSION"), " (")), "{said}");
    assert!(said.contains(std::env::consts::ARCH), "{said}");
}

#[test]
fn shells_complete_and_the_manual_has_a_page_for_each_command() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = kavg(&["completions", shell]).out;
        assert!(script.contains("diagnose") && script.contains("compare-set"), "{shell}");
        let hidden = ["kavg__reference", "kavg;reference"];
        assert!(!hidden.iter().any(|name| script.contains(name)), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    assert_eq!(kavg(&["man", "--to", to]).code, 0);
    for page in ["kavg.1", "kavg-diagnose.1", "kavg-capture-cut.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
}
