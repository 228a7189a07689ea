//! `kavg sweep`: its figures are those of single runs, whoever simulates them and however often it is
//! killed; and of every option the effect.

mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{Said, data, every_key, json, kavg};
use serde_json::Value;
use tempfile::TempDir;

const THREADS: &str = "vm.sql.workload.threads=16,32,96";

/// A sweep of `two-queues.toml`.
fn sweep(arguments: &[&str]) -> Said {
    kavg(&[&["sweep", "two-queues.toml"], arguments].concat())
}

/// A file in a folder.
fn at(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// The rows of a table, each by the names of its columns. No name in it has a comma.
fn rows(csv: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = csv.lines();
    let head: Vec<_> = lines.next().unwrap().split(',').collect();
    lines.map(|line| head.iter().copied().zip(line.split(',')).collect()).collect()
}

#[test]
fn a_table_has_a_line_for_each_point_and_marks_the_knee() {
    let said = sweep(&["--over", "device.depth=8..64x2", "--window", "64"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(said.out);
    let said = sweep(&["--over", THREADS, "--over", "device.depth=32,64", "--seeds", "3"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(said.out);
    assert_eq!(sweep(&["--over", THREADS, "--quiet"]).out, "");
    let limit = "sql: DiskLimitIOPerSecond {}=500,1000";
    let said = sweep(&["--over", limit, "--window", "64", "--vm", "sql"]);
    let row = said.out.lines().find(|line| line.trim_start().starts_with("500")).unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    let (iops, ms) = (cells[1], cells[3]);
    assert!(said.out.contains("sql IOPS  sql ms"), "{}", said.out);
    assert_eq!(cells[cells.len() - 2..], [iops, ms], "{}", said.out);
    // All of a group, where its number is what is turned: as the whole stack, for there are no others.
    let over = ["--over", "vm.db.count=2,32", "--window", "one", "--vm", "db", "--vm", "db-1"];
    let said = kavg(&[&["sweep", "s3-vms-per-datastore"][..], &over].concat());
    let row = said.out.lines().find(|line| line.trim_start().starts_with("32  ")).unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    let [.., iops, ms, _, _] = cells[..] else { panic!("{row}") };
    assert_eq!([iops, ms], [cells[1], cells[3]], "{}", said.out);
}

/// A figure of a row. Reading JSON may move the last bit of a number.
#[track_caller]
fn compare(row: &BTreeMap<&str, &str>, key: &str, expected: &Value) {
    match (row[key].parse::<f64>().ok(), expected.as_f64()) {
        (Some(own), Some(other)) if (own - other).abs() <= 1e-14 * own.abs() => {}
        (own, other) => assert_eq!(own, other, "{key}: {row:?}"),
    }
}

/// Against runs of files that say themselves what is turned.
#[test]
fn every_figure_is_that_of_a_run_of_a_file_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(data().join("two-queues.toml")).unwrap();
    let csv = sweep(&["--over", THREADS, "--seed", "5", "--csv", "-"]).out;
    let rows = rows(&csv);
    let mut compared = 0;
    for threads in ["16", "32", "96"] {
        let file = at(&folder, "turned.toml");
        fs::write(&file, text.replace("threads = 96", &format!("threads = {threads}"))).unwrap();
        let run = json(&["run", &file, "--seed", "5", "--json"]);
        for window in run["windows"].as_array().unwrap() {
            let own = rows.iter().filter(|row| {
                row["vm.sql.workload.threads"] == threads && row["window"] == window["name"]
            });
            let own: Vec<_> = own.collect();
            assert_eq!((own[0]["kind"], own[0]["seed"], own[0]["version"]), ("stack", "5", "1"));
            compare(own[0], "cmds", &window["stack"]["iops"]);
            compare(own[0], "mib_per_s", &window["stack"]["mib_per_s"]);
            compare(own[0], "total", &window["stack"]["total_ms"]);
            let objects = window["hosts"][0]["objects"].as_array().unwrap();
            assert_eq!(own.len(), 1 + objects.len());
            for (row, object) in own[1..].iter().zip(objects) {
                assert_eq!((row["host"], row["kind"]), ("esx01", object["kind"].as_str().unwrap()));
                assert_eq!(row["object"], object["name"]);
                for (key, value) in object["counters"].as_object().unwrap() {
                    compare(row, key, value);
                    compared += 1;
                }
                for (part, all) in object["percentiles"].as_object().into_iter().flatten() {
                    for (share, value) in all.as_object().unwrap() {
                        compare(row, &format!("{part}_{share}"), value);
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn means_and_intervals_are_those_of_a_run_with_seeds() {
    let sweep = json(&["sweep", "two-queues.toml", "--over", THREADS, "--seeds", "3", "--json"]);
    let run = json(&["run", "two-queues.toml", "--seeds", "3", "--json"]);
    let point = &sweep["points"][2];
    assert_eq!(point["over"]["vm.sql.workload.threads"], "96");
    for (own, window) in
        point["windows"].as_array().unwrap().iter().zip(run["windows"].as_array().unwrap())
    {
        assert_eq!((&own["name"], &own["from_s"]), (&window["name"], &window["from_s"]));
        assert_eq!(own["stack"]["cmds"], window["stack"]["iops"]);
        assert!(own["stack"]["cmds"]["ci95"].as_f64() > Some(0.0));
        let [objects, expected] =
            [own, window].map(|all| all["hosts"][0]["objects"].as_array().unwrap());
        assert_eq!(objects.len(), expected.len());
        for (object, expected) in objects.iter().zip(expected) {
            assert_eq!(
                (&object["name"], &object["percentiles"]),
                (&expected["name"], &expected["percentiles"])
            );
            for (key, figure) in object["counters"].as_object().unwrap() {
                assert_eq!(figure, &expected["counters"][key], "{key}");
            }
        }
    }
}

#[test]
fn every_key_of_the_json_and_every_column_is_documented() {
    let page = include_str!("../../../docs/reference/json.md");
    let (_, page) = page.split_once("# The JSON of a sweep").unwrap();
    let value = json(&["sweep", "two-queues.toml", "--over", THREADS, "--json"]);
    assert_eq!(value["version"], 1);
    let known = |key: &str| page.contains(&format!("`{key}`"));
    every_key(&value, &["counters", "percentiles", "over"], &mut |key| {
        assert!(known(key), "docs/reference/json.md lacks `{key}`");
    });
    let page = include_str!("../../../docs/reference/sweep.md");
    let counters = kavg(&["reference", "counters"]).out;
    let csv = sweep(&["--over", THREADS, "--csv", "-"]).out;
    for column in csv.lines().next().unwrap().split(',').filter(|name| !name.starts_with("vm.")) {
        let name = format!("`{column}`");
        assert!(
            page.contains(&name) || counters.contains(&name),
            "docs/reference/sweep.md lacks {name}"
        );
    }
}

#[test]
fn one_job_has_one_result_however_many_threads_there_are() {
    let with = |threads: &str| {
        let over = ["--over", THREADS, "--seeds", "2", "--threads", threads];
        [["--csv", "-"].as_slice(), &["--json"], &["--html", "-"], &[]]
            .map(|output| sweep(&[over.as_slice(), output].concat()).out)
    };
    assert!(with("1") == with("4"));
}

/// Cut anywhere, as by a kill, or damaged anywhere: what comes out in the end is the same.
#[test]
fn a_sweep_goes_on_with_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let state = at(&folder, "a.state");
    let line = ["--over", THREADS, "--seeds", "2", "--state", &state, "--csv", "-"];
    let expected = sweep(&["--over", THREADS, "--seeds", "2", "--csv", "-"]).out;
    assert_eq!(sweep(&line).out, expected);
    let whole = fs::read(&state).unwrap();
    let again = sweep(&line);
    assert_eq!(
        (again.out == expected, again.err.as_str()),
        (true, "6 of 6 runs are done already\n")
    );
    assert!(fs::read(&state).unwrap() == whole, "nothing was left to do");
    // The first are inside of what says which sweep it is.
    for place in [1, 8, 15, 100] {
        fs::write(&state, &whole[..place]).unwrap();
        let said = sweep(&line);
        assert!(said.out == expected, "cut at {place}: {}", said.err);
        assert_eq!(fs::read(&state).unwrap().len(), whole.len());
    }
    for part in 1..8 {
        let place = whole.len() * part / 8;
        fs::write(&state, &whole[..place]).unwrap();
        let said = sweep(&line);
        assert!(said.out == expected, "cut at {place}: {}", said.err);
        assert_eq!(fs::read(&state).unwrap().len(), whole.len());
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        fs::write(&state, &damaged).unwrap();
        let said = sweep(&line);
        assert!(said.out == expected, "damaged at {place}: {}", said.err);
        // Those behind it are kept.
        assert!(
            said.err.ends_with(
                "no run that is whole; what they held is run again\n5 of 6 runs are done already\n"
            ),
            "damaged at {place}: {}",
            said.err
        );
        let again = sweep(&line);
        assert!(again.err.ends_with("6 of 6 runs are done already\n"), "{}", again.err);
    }
}

/// As from a disk that may only be read.
#[test]
fn the_state_of_a_finished_sweep_is_only_read() {
    let folder = tempfile::tempdir().unwrap();
    let state = at(&folder, "a.state");
    let line = ["--over", THREADS, "--state", &state];
    let expected = sweep(&line).out;
    let before = fs::metadata(&state).unwrap();
    let mut permissions = before.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&state, permissions).unwrap();
    let said = sweep(&line);
    assert_eq!((said.code, said.out), (0, expected));
    let after = fs::metadata(&state).unwrap();
    assert_eq!(
        (after.len(), after.modified().unwrap()),
        (before.len(), before.modified().unwrap())
    );
}

/// Removed, or replaced, while it works.
#[test]
#[cfg(unix)]
fn a_state_that_is_gone_in_the_end_is_missed() {
    for is_replaced in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let [state, csv] = ["a.state", "a.csv"].map(|name| at(&folder, name));
        let line = ["sweep", "two-queues.toml", "--over", THREADS, "--seeds", "60", "-q"];
        let line = [line.as_slice(), &["--state", &state, "--csv", &csv]].concat();
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kavg"));
        let child = child.args(&line).current_dir(data()).stderr(std::process::Stdio::piped());
        let mut child = child.spawn().unwrap();
        while !Path::new(&state).exists() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        fs::remove_file(&state).unwrap();
        if is_replaced {
            fs::write(&state, "another").unwrap();
        }
        let said = child.wait_with_output().unwrap();
        let text = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(2), "{text}");
        assert!(
            text.ends_with(
                "a.state: it was removed or replaced meanwhile; no run of this sweep is kept\n"
            ),
            "{text}"
        );
        assert!(Path::new(&csv).exists());
    }
}

/// A parameter file is looked for beside the scenario, also where that names another.
#[test]
fn a_parameter_file_is_a_value_as_any() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(data().join("two-queues.toml")).unwrap();
    let (before, after) = text.split_once("[vm.sql.workload]\n").unwrap();
    let (_, after) = after.split_once("\n\n").unwrap();
    let file = at(&folder, "a.toml");
    fs::write(&file, format!("{before}[vm.sql.workload]\nfio = \"1.fio\"\n\n{after}")).unwrap();
    for depth in [1, 8] {
        let job = format!("[a]\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\niodepth={depth}\n");
        fs::write(at(&folder, &format!("{depth}.fio")), job).unwrap();
    }
    let over = "vm.sql.workload.fio=\"1.fio\",\"8.fio\"";
    let state = at(&folder, "a.state");
    let said = kavg(&["sweep", &file, "--over", over, "--json", "--state", &state]);
    assert_eq!(said.code, 0, "{said:?}");
    let value: Value = serde_json::from_str(&said.out).unwrap();
    let windows = |point: usize| &value["points"][point]["windows"];
    assert!(windows(0) != windows(1), "{value}");
    let said = kavg(&["sweep", &file, "--over", over, "--csv", &at(&folder, "8.fio")]);
    assert!(said.err.contains("8.fio: is read from"), "{said:?}");
    let said = kavg(&["sweep", &file, "--over", "vm.sql.workload.fio=\"2.fio\""]);
    assert!(said.err.contains("file `2.fio` is missing") && said.code == 2, "{said:?}");
}

/// Killed while it works, as soon as some runs are kept.
#[test]
#[cfg(unix)]
fn a_killed_sweep_leaves_its_runs_and_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let [state, csv] = ["a.state", "a.csv"].map(|name| at(&folder, name));
    let line = ["sweep", "two-queues.toml", "--over", THREADS, "--seeds", "60", "--threads", "1"];
    let line = [line.as_slice(), &["--state", &state, "--csv", &csv]].concat();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kavg"));
    let mut child = child.args(&line).current_dir(data()).spawn().unwrap();
    let kept = || fs::metadata(&state).map_or(0, |file| file.len());
    while kept() < 20_000 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!Path::new(&csv).exists());
    let said = kavg(&line);
    assert!(said.err.ends_with(" of 180 runs are done already\n"), "{said:?}");
    let fresh = [&line[..8], &["--csv", "-"]].concat();
    assert!(fs::read_to_string(&csv).unwrap() == kavg(&fresh).out);
}

#[test]
fn the_state_of_another_job_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let [state, file] = ["a.state", "a.toml"].map(|name| at(&folder, name));
    let text = fs::read_to_string(data().join("two-queues.toml")).unwrap();
    fs::write(&file, &text).unwrap();
    let with = |over: &str, more: &[&str]| {
        kavg(&[&["sweep", &file, "--over", over, "--state", &state, "-q"], more].concat())
    };
    assert_eq!(with(THREADS, &[]).code, 0);
    let before = fs::read(&state).unwrap();
    let set = "storage core device set -d naa.60000000000000000000000000000001 -O 16";
    let cases: [(&str, &[&str], &str); 4] = [
        (THREADS, &["--seed", "2"], "`seeds 1` there, `seeds 2` here"),
        (THREADS, &["--seeds", "2"], "`seeds 1` there, `seeds 1,2` here"),
        ("vm.sql.workload.threads=16", &[], "=16,32,96` there, `--over"),
        (THREADS, &["--set", set], "there, `--set storage"),
    ];
    for (over, more, why) in cases {
        let said = with(over, more);
        assert_eq!((said.code, said.err.lines().count()), (2, 1), "{said:?}");
        assert!(said.err.contains("a.state: it is of another sweep: "), "{}", said.err);
        assert!(said.err.contains(why), "{}", said.err);
        assert!(fs::read(&state).unwrap() == before, "{why}");
    }
    fs::write(&file, text.replace("40", "41")).unwrap();
    let said = with(THREADS, &[]);
    assert!(said.err.contains("`scenario ") && said.err.contains("SHA-256"), "{}", said.err);
    assert!(fs::read(&state).unwrap() == before);
}

#[test]
fn outputs_keep_to_the_rules_of_all_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let [state, csv, parquet, page] =
        ["a.state", "a.csv", "a.parquet", "a.html"].map(|name| at(&folder, name));
    let said = sweep(&["--over", THREADS, "--state", &state, "--csv", &parquet, "--html", &page]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fs::read(&parquet).unwrap().starts_with(b"PAR1"));
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(
        html.matches("<figure class=\"sweep\">").count(),
        6,
        "three for each of two windows"
    );
    assert!(html.contains("circle class=\"knee\"") && !html.contains("<script"), "{html}");
    let before = fs::read(&state).unwrap();
    for output in ["--csv", "--html"] {
        let said = sweep(&["--over", THREADS, "--state", &state, output, &state]);
        assert!(said.err.contains("a.state: is written already"), "{said:?}");
    }
    let used = fs::File::open(&state).unwrap();
    used.lock().unwrap();
    for output in ["--csv", "--html", "--state"] {
        let said = sweep(&["--over", THREADS, output, &state]);
        assert!(said.err.contains("a.state: another program uses it"), "{said:?}");
    }
    let said = sweep(&["--over", THREADS, "--csv", &csv, "--html", &csv]);
    assert!(said.err.contains("is written already"), "{said:?}");
    assert!(!Path::new(&csv).exists() && fs::read(&state).unwrap() == before);
}

/// A name from a file is text on the page, and nothing steers what reads the JSON.
#[test]
fn names_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let file = at(&folder, "evil.toml");
    let text = fs::read_to_string(data().join("two-queues.toml")).unwrap();
    let evil = "<script>alert(1)</script>\\u202e";
    fs::write(&file, text.replace("A guest that wants", evil).replace("made up", evil)).unwrap();
    let line = ["sweep", &file, "--over", "vm.sql.workload.read=\"<b>%\",10%", "--html", "-"];
    assert_eq!(kavg(&line).code, 2);
    let line = ["sweep", &file, "--over", "title=\"<b>1\",\"<b>2\"", "--html", "-"];
    let page = kavg(&line).out;
    assert!(page.contains("&lt;script&gt;") && page.contains("&lt;b&gt;1"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<b>1") && !page.contains('\u{202e}'));
    let text = kavg(&["sweep", &file, "--over", "title=x", "--json"]).out;
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(value["title"].as_str().unwrap().contains('\u{202e}') && !text.contains('\u{202e}'));
}

#[test]
fn bad_input_is_refused_in_one_line_before_anything_is_run() {
    let cases: &[(&[&str], &str)] = &[
        (&["sweep", "nowhere", "--over", "duration=1s"], "nowhere: there is no such file"),
        (&["sweep", "bad.toml", "--over", "duration=1s"], "kavg: bad.toml:2:"),
        (
            &["sweep", "two-queues.toml", "--over", "vm.sql.workload.threads=8,0"],
            "--over vm.sql.workload.threads=0: two-queues.toml:26:1: key `vm.sql.workload.threads`: `0`",
        ),
        (
            &["sweep", "two-queues.toml", "--over", "vm.sqr.workload.threads=8"],
            "key `vm`: there is no key `sqr`",
        ),
        (
            &["sweep", "two-queues.toml", "--over", "device.depth=64,1000"],
            "--over device.depth=1000: `system module parameters set -m fnic -p fnic_max_qdepth=1000`",
        ),
        (&["sweep", "two-queues.toml", "--over", "device.depth=deep"], "`deep` is no whole number"),
        (&["sweep", "two-queues.toml", "--over", "Disk.SchedQuantum=65"], "allowed is 1 to 64"),
        (&["sweep", "two-queues.toml", "--over", "storage x {}=1"], "`storage x 1`"),
        (
            &["sweep", "two-queues.toml", "--over", "duration=1s", "--over", "duration=2s"],
            "--over duration: it is there twice",
        ),
        (
            &["sweep", "two-queues.toml", "--over", THREADS, "--vm", "sqr"],
            "--vm: there is no VM `sqr`",
        ),
        (
            &["sweep", "two-queues.toml", "--over", "duration=1..9000s", "--seeds", "1000"],
            "--over: that makes more than 1000000 runs",
        ),
        (
            &["sweep", "two-queues.toml", "--over", "duration=1s", "--window", "no"],
            "are run, 64, 96",
        ),
        (&["sweep", "two-queues.toml", "--over", "duration=1s", "--csv", "x.gz"], "x.gz: this is"),
        (
            &["sweep", "two-queues.toml", "--over", "duration=1s", "--state", "bad.toml"],
            "bad.toml: it is no state of a sweep; name another file",
        ),
        (
            &["sweep", "two-queues.toml", "--over", "duration=1s", "--state", "/dev/null"],
            "/dev/null: is no file; name one",
        ),
        (
            &["sweep", "two-queues.toml", "--over", "duration=1s", "--state", "two-queues.toml"],
            "two-queues.toml: is read from",
        ),
        (
            &["sweep", "two-queues.toml", "--over", "duration=1s", "--json", "--csv", "-"],
            "--json: standard output takes one output",
        ),
    ];
    for (arguments, expected) in cases {
        let said = kavg(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {said:?}");
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{arguments:?}: {}", said.err);
    }
}

#[test]
fn two_axes_that_turn_the_same_thing_are_refused() {
    let dsnro = "storage core device set -d naa.60000000000000000000000000000001 -O {}=8,4";
    let cases = [
        ("vm.*.workload.threads=8,17", THREADS),
        (THREADS, "vm.*.workload.threads=8,17"),
        ("Disk.SchedQuantum=8,64", "/Disk/SchedQuantum=1,2"),
        ("device.depth=16,32", dsnro),
        ("device.depth=16,32", "host.*.adapter.*.lun_depth=24,48"),
        ("host.*.adapter.*.lun_depth=24", "device.depth=16"),
    ];
    for (one, other) in cases {
        let said = sweep(&["--over", one, "--over", other]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{one} {other}: {said:?}");
        assert!(said.err.contains("both turn the same thing"), "{one} {other}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}
