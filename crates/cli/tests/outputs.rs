//! No command destroys a file: not its input, not what was there, not another of its outputs.

mod common;

use std::{fs, path::Path, process::Command};

use common::{Said, kavg};
use tempfile::TempDir;

/// A capture of one host, and a folder of its own for each test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let scenario = common::data().join("two-queues.toml");
        fs::copy(scenario, folder.0.path().join("a.toml")).unwrap();
        let said = folder.kavg("run a.toml -q --csv a.csv");
        assert_eq!(said.code, 0, "{said:?}");
        folder
    }

    /// Runs a line of words in which every `*.toml`, `*.csv`, … is in the folder.
    fn kavg(&self, line: &str) -> Said {
        let place = |word: &str| match Path::new(word).extension() {
            Some(_) if !word.contains(' ') => self.0.path().join(word).to_str().unwrap().to_owned(),
            _ => word.to_owned(),
        };
        let words: Vec<String> = line.split(' ').map(place).collect();
        kavg(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs a line of the shell, `kavg` in it, in the folder.
    #[cfg(unix)]
    fn shell(&self, line: &str) -> (i32, String) {
        let said = self.typed(line).output().unwrap();
        (said.status.code().unwrap(), String::from_utf8(said.stderr).unwrap())
    }

    /// The same where the reader of what it prints has gone already.
    #[cfg(target_os = "linux")]
    fn shell_unread(&self, line: &str) -> (i32, String) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = self.typed(line).stdout(writer).output().unwrap();
        (said.status.code().unwrap(), String::from_utf8(said.stderr).unwrap())
    }

    #[cfg(unix)]
    fn typed(&self, line: &str) -> Command {
        let line = line.replace("kavg ", &format!("{} ", env!("CARGO_BIN_EXE_kavg")));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(self.0.path());
        shell
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).unwrap()
    }

    /// Name and bytes of everything in the folder.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        files
    }
}

#[test]
fn an_output_that_is_an_input_or_another_output_is_refused_and_changes_nothing() {
    let folder = Folder::new();
    let link = folder.0.path().join("link.csv");
    fs::hard_link(folder.0.path().join("a.csv"), link).unwrap();
    let before = folder.files();
    for (line, why) in [
        ("run a.toml --csv a.toml", "is read from"),
        ("run a.toml --journal a.toml", "is read from"),
        ("run a.toml --csv new.csv --journal new.csv", "is written already"),
        ("run a.toml --html a.toml", "is read from"),
        ("run a.toml --csv new.csv --html new.csv", "is written already"),
        ("diagnose a.csv --html a.csv", "is read from"),
        ("whatif a.csv --scenario link.csv", "is read from"),
        ("capture cut a.csv -o link.csv", "is read from"),
        ("capture merge a.csv -o a.csv", "is read from"),
        ("capture convert a.csv -o link.csv", "is read from"),
        ("capture anonymize a.csv -o new.csv --mapping new.csv", "is written already"),
        ("capture anonymize a.csv -o new.csv --mapping a.csv", "is read from"),
    ] {
        let said = folder.kavg(line);
        assert_eq!(said.code, 2, "{line}: {said:?}");
        assert!(said.err.contains(why), "{line}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{line}: {}", said.err);
        assert!(folder.files() == before, "{line} changed a file");
    }
}

#[test]
fn what_is_written_as_csv_is_called_nothing_else() {
    let folder = Folder::new();
    let before = folder.files();
    for line in [
        "capture cut a.csv -o new.parquet",
        "capture merge a.csv -o new.PARQUET",
        "capture merge a.csv -o new.pq",
        "capture anonymize a.csv -o new.parquet",
        "capture anonymize a.csv -o new.csv --mapping names.parquet",
        "capture cut a.csv -o new.csv.gz",
        "capture merge a.csv -o new.csv.ZST",
        "capture anonymize a.csv -o new.csv --mapping names.csv.gz",
        "run a.toml --csv new.csv.gz",
    ] {
        let said = folder.kavg(line);
        assert_eq!(said.code, 2, "{line}: {said:?}");
        assert!(said.err.contains("this is written as CSV; name a .csv"), "{line}: {}", said.err);
        assert!(folder.files() == before, "{line} wrote a file");
    }
}

#[test]
fn a_name_ends_in_any_case() {
    let folder = Folder::new();
    for (name, start) in
        [("T.CSV", "time,"), ("T.Parquet", "PAR1"), ("T.parq", "PAR1"), ("T.pq", "PAR1")]
    {
        let said = folder.kavg(&format!("capture convert a.csv -o {name}"));
        assert_eq!(said.code, 0, "{name}: {said:?}");
        assert!(folder.read(name).starts_with(start.as_bytes()), "{name}");
    }
}

#[test]
fn no_name_in_a_mapping_is_run_as_a_formula() {
    let folder = Folder::new();
    let evil =
        String::from_utf8(folder.read("a.csv")).unwrap().replace("(sql:", "(=1+1, \"\"x\"\":");
    fs::write(folder.0.path().join("evil.csv"), evil).unwrap();
    let said = folder.kavg("capture anonymize evil.csv -o new.csv --mapping map.csv");
    assert_eq!(said.code, 0, "{said:?}");
    let mapping = String::from_utf8(folder.read("map.csv")).unwrap();
    assert!(mapping.contains("\nvm,\"'=1+1, \"\"x\"\"\",vm"), "{mapping}");
}

#[test]
fn a_refused_window_leaves_what_was_there() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("old.csv"), "precious").unwrap();
    let before = folder.files();
    let path = |name: &str| folder.0.path().join(name).to_str().unwrap().to_owned();
    let late = "01/01/2099 00:00:00";
    let said = kavg(&["capture", "cut", &path("a.csv"), "--from", late, "-o", &path("old.csv")]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("nothing was recorded between --from and --to"), "{}", said.err);
    assert!(folder.files() == before);
}

#[test]
fn a_file_with_the_name_of_a_part_is_no_part_of_ours() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("x.csv.part"), "unrelated").unwrap();
    let said = folder.kavg("capture cut a.csv -o x.csv");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fs::read(folder.0.path().join("x.csv.part")).unwrap(), b"unrelated");
}

#[test]
fn hosts_of_alike_names_have_a_file_each() {
    let folder = Folder::new();
    let text = fs::read_to_string(folder.0.path().join("a.csv")).unwrap();
    let host = text.split("\\\\").nth(1).and_then(|rest| rest.split('\\').next()).unwrap();
    for (file, name) in [("one.csv", "a/b"), ("two.csv", "a_b")] {
        let renamed = text.replace(&format!("\\\\{host}\\"), &format!("\\\\{name}\\"));
        fs::write(folder.0.path().join(file), renamed).unwrap();
    }
    let said = folder.kavg("capture merge one.csv two.csv -o all.csv");
    assert_eq!(said.code, 0, "{said:?}");
    for name in ["all.a%2fb.csv", "all.a_b.csv"] {
        assert!(folder.0.path().join(name).exists(), "{name}");
    }
}

#[test]
#[cfg(unix)]
fn standard_output_that_appends_to_what_is_read_is_refused() {
    let folder = Folder::new();
    let text = String::from_utf8(folder.read("a.toml")).unwrap();
    let played = text.split("[vm.sql.workload]").next().unwrap();
    let played = format!("{played}[vm.sql.workload]\nfio = \"job.fio\"\n");
    fs::write(folder.0.path().join("f.toml"), played).unwrap();
    let job = "[a]\ndirect=1\nrw=randread\nbs=4k\niodepth=4\nruntime=1\ntime_based=1\nsize=1g\n";
    fs::write(folder.0.path().join("job.fio"), job).unwrap();
    assert_eq!(folder.shell("kavg run f.toml --seeds 2 > said").0, 0);
    let before = folder.files();
    for line in [
        "kavg run f.toml >> job.fio",
        "kavg run f.toml --seeds 2 >> job.fio",
        "kavg run f.toml --compare a.toml >> job.fio",
        "kavg run a.toml --compare f.toml >> job.fio",
        "kavg capture cut a.csv >> a.csv",
        "kavg capture cut a.csv -o /dev/stdout >> a.csv",
        "kavg run a.toml >> a.toml",
        "kavg diagnose a.csv >> a.csv",
        "kavg run b.toml --compare a.toml >> a.toml",
        "kavg run a.toml --seeds 2 >> a.toml",
        "kavg run - < a.toml >> a.toml",
        "kavg capture anonymize - < a.csv >> a.csv",
        "kavg diagnose - < a.csv >> a.csv",
        "kavg capture info a.csv >> a.csv",
        "kavg capture columns a.csv >> a.csv",
        "kavg capture command a.csv >> a.csv",
    ] {
        let (code, err) = folder.shell(line);
        assert_eq!(code, 2, "{line}: {err}");
        assert!(err.contains("is read from, and is standard output"), "{line}: {err}");
    }
    assert!(folder.files() == before);
}

#[test]
fn a_folder_is_no_output_of_several_hosts() {
    let folder = Folder::new();
    let text = fs::read_to_string(folder.0.path().join("a.csv")).unwrap();
    let host = text.split('\\').nth(2).unwrap().to_owned();
    let renamed = text.replace(&format!("\\\\{host}\\"), "\\\\another\\");
    fs::write(folder.0.path().join("b.csv"), renamed).unwrap();
    for name in ["..", ".", "/", "new/", "a.csv/"] {
        let said = folder.kavg(&format!("capture merge a.csv b.csv -o {name}"));
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains("is a directory; name a file"), "{said:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_what_was_there() {
    let folder = Folder::new();
    let said = folder.kavg("run a.toml -q --csv /dev/full");
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("/dev/full"), "{}", said.err);
}

#[test]
fn a_new_file_in_a_folder_below_is_written_there() {
    let folder = Folder::new();
    fs::create_dir(folder.0.path().join("below")).unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_kavg"))
        .args(["run", "a.toml", "-q", "--csv", "below/new.csv"])
        .current_dir(folder.0.path())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(folder.read("below/new.csv"), folder.read("a.csv"));
}

/// As a program that runs is, or for others than root a file that is not to be written.
#[test]
#[cfg(target_os = "linux")]
fn what_is_protected_is_not_replaced() {
    let folder = Folder::new();
    let program = folder.0.path().join("program");
    // By another process: what this one has open for writing, the children of tests beside this one have too.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_kavg")).arg(&program).status();
    assert!(copied.unwrap().success());
    let said = Command::new(&program)
        .args(["run", "a.toml", "-q", "--csv", "program"])
        .current_dir(folder.0.path())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.code() == Some(2) && err.contains("program: Text file busy"), "{err}");
    assert!(folder.read("program").starts_with(b"\x7fELF"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_device_takes_all_of_several() {
    let folder = Folder::new();
    let said = folder.shell("kavg capture cut a.csv a.csv -o /dev/null");
    assert_eq!(said.0, 0, "{said:?}");
    assert!(!Path::new("/dev/null.1").exists());
}

/// What a disk is that has room for 4 KiB.
#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_gets_full_leaves_what_was_there_and_nothing_else() {
    let folder = Folder::new();
    for name in ["old.csv", "old.kj", "old.html", "old.parquet", "map.csv"] {
        fs::write(folder.0.path().join(name), "precious").unwrap();
    }
    let before = folder.files();
    for line in [
        "run a.toml -q --csv old.csv",
        "run a.toml -q --journal old.kj",
        "diagnose a.csv --no-simulate --html old.html",
        "capture cut a.csv -o old.csv",
        "capture merge a.csv -o old.csv",
        "capture anonymize a.csv -o old.csv --mapping map.csv",
        "capture convert a.csv -o old.csv",
        "capture convert a.csv -o old.parquet",
    ] {
        let limited = format!("ulimit -f 4; exec {} {line}", env!("CARGO_BIN_EXE_kavg"));
        let said = std::process::Command::new("sh")
            .args(["-c", &limited])
            .current_dir(folder.0.path())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{line}: {err}");
        let last = err.lines().last().unwrap();
        assert!(last.contains("old.") && last.contains("File too large"), "{line}: {err}");
        assert!(!last.contains("External"), "{line}: {err}");
        assert!(folder.files() == before, "{line} changed a file");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn of_several_hosts_all_have_their_file_or_none() {
    let folder = Folder::new();
    let two = fs::read_to_string(common::data().join("two-hosts.toml")).unwrap();
    let two = two.replace("[vm.calm]\n", "[vm.calm]\nhost = \"esx-2\"\n");
    fs::write(folder.0.path().join("two.toml"), two).unwrap();
    let (code, err) = folder.shell("kavg run two.toml --csv all.csv > said");
    assert_eq!((code, err.as_str()), (0, "written: all.esx-1.csv, all.esx-2.csv\n"));
    let sizes = ["all.esx-1.csv", "all.esx-2.csv"].map(|name| folder.read(name).len());
    let between = (sizes[0] / 512 + 1)..(sizes[1] / 512);
    assert!(!between.is_empty(), "{sizes:?}");
    for name in ["all.esx-1.csv", "all.esx-2.csv"] {
        fs::write(folder.0.path().join(name), "precious").unwrap();
    }
    let before = folder.files();
    let limit = between.start;
    let line = format!("ulimit -f {limit}; kavg run two.toml -q --csv all.csv 2>/dev/null");
    assert_eq!(folder.shell(&line).0, 2);
    assert!(folder.files() == before, "the first fits, the second does not");
}

#[test]
#[cfg(unix)]
fn of_the_manual_all_pages_are_written_or_none() {
    let folder = Folder::new();
    let pages = folder.0.path().join("pages");
    fs::create_dir_all(pages.join("kavg-whatif.1")).unwrap();
    let (code, said) = folder.shell("kavg man --to pages");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("kavg-whatif.1"), "{said}");
    assert_eq!(fs::read_dir(pages).unwrap().count(), 1, "the pages before it are not written");
}

#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_written_is_named() {
    let folder = Folder::new();
    let said = folder.kavg("run a.toml -q --journal /dev/full");
    assert!(said.err.contains("the journal: /dev/full: No space left"), "{said:?}");
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_kavg"))
        .arg("new")
        .stdout(fs::File::options().write(true).open("/dev/full").unwrap())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(err.contains("standard output: No space left"), "{err}");
}

#[test]
#[cfg(unix)]
fn what_standard_input_or_a_pipe_is_read_from_is_no_output() {
    let folder = Folder::new();
    assert_eq!(folder.shell("mkfifo fifo").0, 0);
    for line in [
        "kavg run - -q --csv a.toml < a.toml",
        "kavg run - -q --html a.toml < a.toml",
        "kavg run - -q --journal a.toml < a.toml",
        "kavg diagnose - --html a.csv < a.csv",
        "kavg capture cut -o a.csv - < a.csv",
        "kavg capture anonymize -o a.csv - < a.csv",
        "kavg capture anonymize -o new.csv --mapping a.csv - < a.csv",
        "kavg capture cut fifo -o fifo",
    ] {
        let before = (folder.read("a.toml"), folder.read("a.csv"));
        let (code, err) = folder.shell(line);
        assert_eq!((code, err.lines().count()), (2, 1), "{line}: {err}");
        assert!(err.contains("is read from"), "{line}: {err}");
        assert!((folder.read("a.toml"), folder.read("a.csv")) == before, "{line} changed a file");
    }
}

/// Nobody ever writes to the pipe: what opens it waits.
#[test]
#[cfg(unix)]
fn outputs_are_claimed_before_anything_is_read() {
    let folder = Folder::new();
    let (code, err) = folder.shell(
        "mkfifo never; timeout 20 kavg capture anonymize never -o new.csv --mapping ./new.csv",
    );
    assert_eq!((code, err.lines().count()), (2, 1), "{err}");
    assert!(err.contains("new.csv: is written already"), "{err}");
}

/// Every command that prints, and words that make it talk as well.
#[cfg(target_os = "linux")]
const PRINTING: [&str; 26] = [
    "kavg --help",
    "kavg --version",
    "kavg run --help",
    "kavg run a.toml",
    "kavg run a.toml --json",
    "kavg run a.toml --seeds 2",
    "kavg run a.toml --compare a.toml",
    "kavg run a.toml --csv -",
    "kavg run a.toml --html -",
    "kavg run a.toml --pace step < /dev/null",
    "kavg diagnose damaged.csv --no-simulate",
    "kavg diagnose a.csv --no-simulate --json",
    "kavg diagnose a.csv --no-simulate --markdown",
    "kavg whatif damaged.csv --set 'storage core device set -d naa.60000000000000000000000000000001 -O 16'",
    "kavg diagnose a.csv --no-simulate --html -",
    "kavg diagnose a.csv --no-simulate --compare damaged.csv",
    "kavg capture info damaged.csv",
    "kavg capture columns damaged.csv",
    "kavg capture cut damaged.csv",
    "kavg capture merge damaged.csv",
    "kavg capture anonymize damaged.csv",
    "kavg capture command",
    "kavg new",
    "kavg scenarios",
    "kavg explain dqlen",
    "kavg help",
];

#[test]
#[cfg(target_os = "linux")]
fn where_nothing_can_be_said_nothing_panics() {
    let folder = Folder::new();
    let text = String::from_utf8(folder.read("a.csv")).unwrap();
    fs::write(folder.0.path().join("damaged.csv"), text + "\"x\"\n").unwrap();
    for line in PRINTING {
        let (code, _) = folder.shell(&format!("{line} > out 2> err"));
        assert!(code < 2, "{line}: {:?}", String::from_utf8(folder.read("err")));
        for to in ["> out 2> /dev/full", "> out 2>&-"] {
            assert_eq!(folder.shell(&format!("{line} {to}")).0, code, "{line} {to}");
        }
        let (code, err) = folder.shell_unread(line);
        assert!(code == 0 && !err.contains("standard output"), "{line}: {code}, {err}");
        let (code, err) = folder.shell(&format!("{line} > /dev/full"));
        let last = err.lines().last().unwrap_or_default();
        assert_eq!(code, 2, "{line}: {err}");
        assert!(last.starts_with("kavg: ") && last.contains("No space left"), "{line}: {err}");
        assert!(last.contains("standard output"), "{line}: {err}");
    }
}

#[test]
fn a_file_with_the_name_of_a_temporary_is_left_alone() {
    let folder = Folder::new();
    fs::copy(folder.0.path().join("a.csv"), folder.0.path().join(".kavg-mine.part")).unwrap();
    let said = folder.kavg("diagnose --no-simulate .kavg-mine.part --html r.html");
    assert!(said.code < 2, "{said:?}");
    assert_eq!(folder.read(".kavg-mine.part"), folder.read("a.csv"));
    assert!(!folder.read("r.html").is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn standard_output_by_any_name_takes_one_output_and_is_never_truncated() {
    let folder = Folder::new();
    let csv = folder.read("a.csv");
    let kept = |log: &[u8]| [b"before\n".as_slice(), log].concat();
    for (line, log) in [
        ("kavg run a.toml --csv /dev/stdout >> log", &csv),
        ("kavg run a.toml --csv - >> log", &csv),
        ("kavg run a.toml --csv log >> log", &csv),
        ("kavg capture cut a.csv -o /dev/stdout >> log", &csv),
        ("kavg capture merge a.csv -o - >> log", &csv),
        ("kavg capture cut a.csv | cat >> log", &csv),
        ("kavg run a.toml --csv /dev/stdout | cat >> log", &csv),
    ] {
        fs::write(folder.0.path().join("log"), "before\n").unwrap();
        let (code, err) = folder.shell(line);
        assert_eq!(code, 0, "{line}: {err}");
        assert!(folder.read("log") == kept(log), "{line}");
    }
    for line in [
        "kavg run a.toml --html /dev/stdout --json >> log",
        "kavg run a.toml --csv /dev/stdout --json >> log",
        "kavg run a.toml --csv - --html - >> log",
        "kavg run a.toml --csv - --html /dev/stdout >> log",
        "kavg run a.toml --csv - --html log >> log",
        "kavg run a.toml --csv - --pace step >> log",
        "kavg run a.toml --journal - >> log",
        "kavg run a.toml --journal log >> log",
        "kavg run a.toml --csv log 2>> log",
        "kavg diagnose a.csv --html - --json >> log",
        "kavg diagnose a.csv --html - --markdown >> log",
        "kavg whatif a.csv --scenario - --json >> log",
        "kavg capture anonymize a.csv --mapping log >> log",
        "kavg capture anonymize a.csv -o - --mapping - >> log",
        "kavg capture convert a.csv -o - >> log",
    ] {
        fs::write(folder.0.path().join("log"), "before\n").unwrap();
        let (code, _) = folder.shell(line);
        assert_eq!(code, 2, "{line}");
        let log = String::from_utf8(folder.read("log")).unwrap();
        assert!(log.starts_with("before\n") && log.lines().count() <= 2, "{line}: {log}");
    }
    let (code, err) =
        folder.shell("kavg run a.toml --csv - | true; kavg run a.toml --csv - >/dev/full");
    assert_eq!((code, err.lines().count()), (2, 1), "{err}");
    assert!(err.contains("standard output: "), "{err}");
    assert!(!folder.0.path().join("-").exists());
}

#[test]
fn a_dash_is_standard_output_for_every_output_of_text() {
    let folder = Folder::new();
    for (line, start) in [
        ("run a.toml --html -", "<!DOCTYPE html>"),
        ("diagnose a.csv --no-simulate --html -", "<!DOCTYPE html>"),
        ("capture anonymize a.csv -o new.csv --mapping -", "kind,name,substitute\n"),
        ("new -", "#"),
    ] {
        let said = folder.kavg(line);
        assert!(said.code < 2 && said.out.starts_with(start), "{line}: {said:?}");
    }
    assert!(!common::data().join("-").exists());
}
