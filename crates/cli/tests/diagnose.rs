//! `kavg diagnose` as a user types it: before and after, several hosts, Markdown, JSON.

mod common;

use std::sync::OnceLock;

use common::{Said, every_key, kavg};
use serde_json::Value;
use tempfile::TempDir;

/// Captures that shipped scenarios wrote, made once for all tests.
struct Captures(TempDir);

impl Captures {
    fn get() -> &'static Self {
        static CAPTURES: OnceLock<Captures> = OnceLock::new();
        CAPTURES.get_or_init(|| {
            let captures = Self(tempfile::tempdir().unwrap());
            let scenarios =
                ["s1-competing-worlds", "s1-dsnro-128", "s3-depths", "two-hosts.toml", "s4-fix"];
            for scenario in scenarios {
                let file = captures.path(scenario.trim_end_matches(".toml"));
                let said = kavg(&["run", scenario, "-q", "--csv", &file]);
                assert_eq!((said.code, said.err.as_str()), (0, ""), "{scenario}");
            }
            captures
        })
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(format!("{name}.csv")).to_str().unwrap().to_owned()
    }

    /// Tests run side by side and share files: a file appears whole or not at all.
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        let part = tempfile::NamedTempFile::new_in(self.0.path()).unwrap();
        std::fs::write(part.path(), text).unwrap();
        part.persist(&path).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A copy one day later.
    fn later(&self, name: &str) -> String {
        let text = self.read(name).replace("01/01/2020", "01/02/2020");
        self.write(&format!("{name}-later"), &text)
    }
}

/// `kavg diagnose` without simulated changes, which have tests of their own.
fn diagnose(arguments: &[&str]) -> Said {
    kavg(&[&["diagnose", "--no-simulate"], arguments].concat())
}

fn json(arguments: &[&str]) -> Value {
    let said = diagnose(&[arguments, &["--json"]].concat());
    assert_eq!(said.err, "");
    serde_json::from_str(&said.out).unwrap()
}

fn headline(arguments: &[&str]) -> String {
    json(arguments)["comparison"]["headline"].as_str().unwrap().to_owned()
}

#[test]
fn before_and_after_a_change() {
    let captures = Captures::get();
    let (before, after) = (captures.path("s1-competing-worlds"), captures.later("s1-dsnro-128"));
    let said = diagnose(&[&before, "--compare", &after]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(said.out);
    // The other way round there is something wrong after.
    let said = diagnose(&[
        &captures.path("s1-dsnro-128"),
        "--compare",
        &captures.later("s1-competing-worlds"),
    ]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert!(said.out.starts_with("New is \"Device queue full, limited by DSNRO\""), "{}", said.out);
}

#[test]
fn a_ticket_in_markdown() {
    let captures = Captures::get();
    let said = diagnose(&[&captures.path("s1-competing-worlds"), "--markdown"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    insta::assert_snapshot!(said.out);
}

#[test]
fn a_ticket_with_before_and_after() {
    let captures = Captures::get();
    let (before, after) = (captures.path("s1-competing-worlds"), captures.later("s1-dsnro-128"));
    let said = diagnose(&[&before, "--compare", &after, "--markdown"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(said.out);
}

#[test]
fn a_verdict_for_a_hurried_reader() {
    let captures = Captures::get();
    let said = diagnose(&[&captures.path("two-hosts.esx-1")]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    insta::assert_snapshot!(said.out);
}

#[test]
fn json_has_the_shape_of_its_page() {
    let captures = Captures::get();
    let (before, after) = (captures.path("s1-competing-worlds"), captures.later("s1-dsnro-128"));
    let alone = json(&[&before]);
    assert_eq!(keys(&alone), ["verdicts", "version"]);
    assert_eq!(alone["version"], 2);
    let both = json(&[&before, "--compare", &after]);
    assert_eq!(keys(&both), ["after", "comparison", "verdicts", "version"]);
    assert_eq!(both["verdicts"], alone["verdicts"]);
    assert_eq!(both["after"], json(&[&after])["verdicts"]);
    // Every key of the page is there, and every key that is there is on the page.
    let page = include_str!("../../../docs/reference/json.md");
    let hosts = json(&[&captures.path("s3-depths.esx-1"), &captures.path("s3-depths.esx-2")]);
    for value in [&both, &hosts] {
        every_key(value, &[], &mut |key| {
            assert!(page.contains(&format!("`{key}`")), "docs/reference/json.md lacks `{key}`");
        });
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn hosts_that_share_a_device_are_shown_side_by_side() {
    let captures = Captures::get();
    let hosts = ["s3-depths.esx-1", "s3-depths.esx-2"].map(|name| captures.path(name));
    let together = json(&[&hosts[0], &hosts[1]]);
    let shared = &together["comparison"]["shared"];
    assert!(!shared.as_array().unwrap().is_empty());
    assert_eq!(shared[0]["hosts"].as_array().unwrap().len(), 2);
    // As two sides the hosts are the same, and the second side decides.
    let sides = json(&[&hosts[0], "--compare", &hosts[1]]);
    assert_eq!(&sides["comparison"]["shared"], shared);
    assert_eq!(sides["comparison"]["only_before"][0], "esx-1");
    let said = diagnose(&[&hosts[0], &hosts[1]]);
    assert!(said.out.contains(" on 2 hosts\n"), "{}", said.out);
}

/// By the commands that wait: 39.7 behind a policy, 32.5 for slots, none.
#[test]
fn of_several_hosts_the_worst_stands_first_whatever_the_order_of_the_files() {
    let captures = Captures::get();
    let calm = captures.read("s1-dsnro-128").replace(r"\\esx01\", r"\\calm\");
    let calm = captures.write("calm", &calm);
    let [held, full] = ["s4-fix", "s1-competing-worlds"].map(|name| captures.path(name));
    for files in [[&calm, &full, &held], [&full, &held, &calm], [&held, &calm, &full]] {
        let files = files.map(String::as_str);
        let (text, ticket) = (diagnose(&files), diagnose(&[&files[..], &["--markdown"]].concat()));
        for said in [text, ticket] {
            let place = |host: &str| said.out.find(&format!("{host}: ")).expect("it is named");
            let places = ["esx", "esx01", "calm"].map(place);
            assert!(places.is_sorted(), "{places:?} of {files:?}: {}", said.out);
        }
    }
}

/// `vmhba64` with an AQLEN of 1,024 is software iSCSI, though its device is as deep as one of FC.
#[test]
fn drivers_of_other_adapters_are_not_proposed() {
    let captures = Captures::get();
    let file = captures.path("s4-solidfire");
    kavg(&["run", "s4-solidfire", "-q", "--csv", &file]);
    let depth = captures.path("depth.txt");
    let text = "naa.6f47acc100000000736f6c6964000001\n   Device Max Queue Depth: 32\n";
    std::fs::write(&depth, text).unwrap();
    let parameters = captures.path("parameters.txt");
    let text = "Name                Type  Value  Description\n\
                ------------------  ----  -----  -----------\n\
                iscsivmk_LunQDepth  int   32     Maximum LUN queue depth\n";
    std::fs::write(&parameters, text).unwrap();
    // 32 is less than its default of 128: its parameter says so, or the device was lowered.
    let asked = diagnose(&[&file, "--esxcli", &depth]).out;
    assert!(asked.contains("esxcli system module parameters list -m iscsi_vmk"), "{asked}");
    let said = diagnose(&[&file, "--esxcli", &depth, "--esxcli", &parameters]).out;
    assert!(said.contains("esxcli system module parameters set -m iscsi_vmk"), "{said}");
    for other in ["nfnic", "fnic", "lpfc", "bfa", "brcmfcoe", "qlnativefc"] {
        assert!(!said.contains(other) && !asked.contains(other), "{other}: {said}");
    }
}

/// A line for a module replaces all of its parameters: it repeats those that the output shows, and so does its undo.
#[test]
fn a_line_for_a_module_repeats_what_is_set_beside_the_depth() {
    let captures = Captures::get();
    let file = captures.path("s4-solidfire-set");
    kavg(&["run", "s4-solidfire", "-q", "--csv", &file]);
    let told = captures.path("told.txt");
    let text = "HBA Name  Driver     Link State  UID  Capabilities  Description\n\
                --------  ---------  ----------  ---  ------------  -----------\n\
                vmhba64   iscsi_vmk  link-up     x                  x\n\n\
                Name                Type  Value  Description\n\
                ------------------  ----  -----  -----------\n\
                iscsivmk_LunQDepth  int   32     Maximum LUN queue depth\n\
                iscsivmk_Debug      int   1      Log\n\
                iscsivmk_Unset      int          Not set\n\n\
                naa.6f47acc100000000736f6c6964000001\n\
                \x20  Device Max Queue Depth: 32\n";
    std::fs::write(&told, text).unwrap();
    let said = diagnose(&[&file, "--esxcli", &told]).out;
    let lines = said.lines().filter(|line| line.contains("esxcli system module parameters set"));
    let lines: Vec<&str> = lines.map(str::trim).collect();
    assert!(lines.len() > 1, "{said}");
    for line in lines {
        let depth = "-m iscsi_vmk -p 'iscsivmk_LunQDepth=";
        assert!(line.contains(depth) && line.ends_with(" iscsivmk_Debug=1'"), "{line}");
    }
}

/// The option of the host sets DSNRO of a protocol endpoint; 0 is no DSNRO of a host.
#[test]
fn dsnro_of_endpoints_is_an_option_and_0_is_not_told() {
    let captures = Captures::get();
    let file = captures.path("s1-competing-worlds");
    let row = captures.read("s1-competing-worlds");
    let name = row.split("Physical Disk SCSI Device(").nth(1).unwrap().split(')').next().unwrap();
    let told = |name_of_file: &str, rest: &str| {
        let path = captures.path(name_of_file);
        std::fs::write(&path, format!("{name}\n   Device Max Queue Depth: 64\n   {rest}\n"))
            .unwrap();
        diagnose(&[&file, "--esxcli", &path]).out
    };
    const DSNRO: &str = "No of outstanding IOs with competing worlds";
    let said = told("pe.txt", &format!("{DSNRO}: 32\n   Is VVOL PE: true"));
    assert!(said.contains("-o /Scsi/ScsiVVolPESNRO -i "), "{said}");
    let said = told("zero.txt", &format!("{DSNRO}: 0"));
    assert!(!said.contains("-O 0"), "{said}");
}

#[test]
fn strange_pairs_are_told_as_what_they_are() {
    let captures = Captures::get();
    let one = captures.path("s1-dsnro-128");
    let twice = json(&[&one, "--compare", &one]);
    assert_eq!(twice["comparison"]["cautions"][0], "Both sides of esx01 are the same samples.");
    let other = captures.path("s4-fix");
    let nothing = "There is nothing to compare: no host is on both sides, and no device with load \
                   is used by two hosts.";
    assert_eq!(headline(&[&one, "--compare", &other]), nothing);
    let mixed = json(&[&one, &other, "--compare", &captures.later("s1-dsnro-128")]);
    assert_eq!(mixed["comparison"]["only_before"][0], "esx");
    assert_eq!(mixed["comparison"]["hosts"][0]["host"], "esx01");
}

#[test]
fn bad_sides_are_refused_in_a_line() {
    let captures = Captures::get();
    let one = captures.path("s1-dsnro-128");
    let text = captures.read("s1-dsnro-128");
    let header = captures.write("header", &format!("{}\n", text.lines().next().unwrap()));
    let rows: Vec<&str> = text.lines().take(2).collect();
    let first = captures.write("first", &rows.join("\n"));
    let longer: Vec<String> =
        text.lines().take(9).map(|row| format!("{row}\"1\",\"2\",")).collect();
    let longer = [rows[0], &longer[1..].join("\n")].join("\n");
    let longer = captures.write("longer", &longer);
    let cases: [(&[&str], &str); 7] = [
        (&[&one, "--compare", "nowhere.csv"], "kavg: nowhere.csv: "),
        (
            &[&one, "--compare", &header],
            &format!("kavg: {header}: holds a header and no row; record some minutes: esxtop -b"),
        ),
        (&[&header], &format!("kavg: {header}: holds a header and no row; record some")),
        (&[&longer], &format!("kavg: {longer}: holds no whole row; of line 2: ")),
        (&[&first], &format!("kavg: {first}: holds one row, and esxtop's first one has no rates")),
        (&[&one, "--compare"], "kavg: a value is required for '--compare <FILE>...'"),
        (&[&one, "--json", "--markdown"], "kavg: the argument '--json' cannot be used with"),
    ];
    for (arguments, expected) in cases {
        let said = diagnose(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {}", said.err);
        assert!(said.err.starts_with(expected), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn hostile_names_break_neither_the_terminal_nor_a_ticket() {
    let captures = Captures::get();
    let hostile = "<b>`|x\u{1b}[2J\u{202e}@all";
    let text = captures.read("s1-competing-worlds").replace("(big", &format!("({hostile}"));
    let file = captures.write("hostile", &text);
    let after = captures.write("hostile-later", &text.replace("01/01/2020", "01/02/2020"));
    for arguments in [&[file.as_str()][..], &[&file, "--compare", &after]] {
        for format in [&[][..], &["--markdown"]] {
            let said = diagnose(&[arguments, format].concat());
            assert_eq!(said.err, "");
            let steers = |c: char| c.is_control() && c != '\n';
            assert!(!said.out.contains(steers), "{}", said.out);
            if !format.is_empty() {
                assert!(!said.out.replace("\n```", "").contains("<b>`|x\n"), "{}", said.out);
                let tables = said.out.lines().filter(|line| line.starts_with('|'));
                assert!(tables.clone().any(|line| line.contains("&lt;b&gt;\\`\\|x")));
                assert!(!tables.clone().any(|line| line.contains("<b>")));
            }
        }
    }
}

#[test]
fn no_line_but_one_to_type_is_wider_than_the_screen() {
    let captures = Captures::get();
    let files = ["s1-competing-worlds", "s3-depths.esx-1", "two-hosts.esx-1", "s4-fix"];
    let files = files.map(|name| captures.path(name));
    let mut calls: Vec<Vec<&str>> = files.iter().map(|file| vec![file.as_str()]).collect();
    let later = captures.later("s1-dsnro-128");
    calls.push(vec![&files[0], "--compare", &later]);
    for call in calls {
        let said = diagnose(&call);
        let wide =
            said.out.lines().filter(|line| line.chars().count() > 80 && !line.contains("> "));
        assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}

/// A host with a disk behind a limit, which is set to another one half-way.
const LIMITED: &str = r#"
title = "t"
duration = "12s"
sample = "2s"
[array.a]
servers = 16
service = "1ms"
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.d]
array = "a"
device = "naa.1"
[vm.a.disk."scsi0:0"]
datastore = "d"
limit = 2_000
[vm.a.workload]
threads = 4
"#;

#[test]
fn a_journal_is_judged_as_a_capture_and_knows_what_the_host_was_set_to() {
    let site = Captures(tempfile::tempdir().unwrap());
    let file = |name: &str| site.0.path().join(name).to_str().unwrap().to_owned();
    let run = |name: &str, text: &str| {
        std::fs::write(file("h.toml"), text).unwrap();
        assert_eq!(kavg(&["run", &file("h.toml"), "-q", "--journal", &file(name)]).code, 0);
        file(name)
    };
    let limited = run("limited.kj", LIMITED);
    let said = diagnose(&[&limited]);
    assert!(said.code == 1 && said.err.starts_with("replayed to the same"), "{said:?}");
    assert!(said.out.contains("by its IOPS limit of 2,000"), "{}", said.out);
    let event =
        "[[event]]\nat = \"6s\"\nhost = \"esx\"\nesxcli = \"a: DiskLimitIOPerSecond 3000\"\n";
    let raised = run("raised.kj", &format!("{LIMITED}{event}"));
    assert!(diagnose(&[&raised]).out.contains("by its IOPS limit of 2,000"));
    let free = run("free.kj", &LIMITED.replace("limit = 2_000", ""));
    let compared = diagnose(&[&limited, "--compare", &free]);
    assert!(
        compared.code == 0 && compared.out.contains("IOPS limit on a virtual disk"),
        "{compared:?}"
    );
    let capture = Captures::get().path("two-hosts");
    let refused = diagnose(&[&limited, &capture]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.ends_with("captures and journals in one question: ask about one of them\n"),
        "{refused:?}"
    );
}
