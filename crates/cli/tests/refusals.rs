//! What is refused, and how: exit code 2, nothing on stdout, one line that says what is allowed.

mod common;

use common::kavg;

#[test]
fn bad_input_is_refused_in_one_line() {
    let cases: &[(&[&str], &str)] = &[
        (&["run", "nowhere"], "kavg: nowhere: there is no such file and no shipped scenario"),
        (&["run", "."], "kavg: .: "),
        (&["run", "bad.toml"], "kavg: bad.toml:2:"),
        (&["disk", "list"], "'disk'; did you mean `kavg esxcli kavg disk list`?; there are run, "),
        (&["run", "two-queues.toml", "--window", "no"], "there are run, 64, 96"),
        (&["run", "two-queues.toml", "--every", "0s"], "--every: it must give 1 to "),
        (&["run", "two-queues.toml", "--every", "1ns"], "--every: "),
        (&["run", "two-queues.toml", "--set", "reboot"], "`reboot`"),
        (
            &["run", "two-queues.toml", "--set", "storage core device set -d naa.9 -O 64"],
            "naa.60000000000000000000000000000001",
        ),
        (
            &["run", "two-queues.toml", "--set", "sql: vmw_pvscsi.cmd_per_lun=32"],
            "is no setting of PVSCSI in a Windows guest",
        ),
        (&["run", "two-queues.toml", "--compare", "nowhere"], "nowhere: there is no such file"),
        (&["run", "two-queues.toml", "--compare-set", "x"], "`x`"),
        (&["run", "two-queues.toml", "-q", "--csv", "no/such/dir.csv"], "no/such/dir.csv: "),
        (&["run", "two-queues.toml", "-q", "--journal", "no/such/dir"], "no/such/dir: "),
        (&["replay", "nowhere"], "nowhere: "),
        (&["replay", "two-queues.toml"], "two-queues.toml: this is no journal"),
        (&["run", "/dev/zero"], "/dev/zero: is larger than 16 MiB"),
        (&["diagnose", "x.csv", "--esxcli", "/dev/zero"], "/dev/zero: is larger than 16 MiB"),
        (&["capture", "histograms", "/dev/zero"], "/dev/zero: is larger than 16 MiB"),
        (&["diagnose", "nowhere.csv"], "nowhere.csv: cannot be read"),
        (&["diagnose", "two-queues.toml"], "two-queues.toml:1: this is no esxtop capture"),
        (&["diagnose", "x.csv", "--set-threshold", "davg_ms"], "expected KEY=VALUE"),
        (&["diagnose", "x.csv", "--set-threshold", "davg_ms=x"], "`x` is no number"),
        (&["diagnose", "x.csv", "--set-threshold", "davg_ms=-1"], "at least 0"),
        (
            &["diagnose", "x.csv", "--set-threshold", "slots_pct=101"],
            "101 is not allowed; 0 to 100",
        ),
        (&["diagnose", "x.csv", "--set-threshold", "davg=1"], "there are: davg_ms"),
        (&["diagnose", "x.csv", "--esxcli", "nowhere"], "nowhere: "),
        (&["diagnose", "x.csv", "--esxcli", "two-queues.toml"], "two-queues.toml: "),
        (&["capture", "info", "nowhere.csv"], "nowhere.csv: cannot be read"),
        (&["capture", "convert", "x.csv", "-o", "x.txt"], "x.txt: allowed are .csv and .parquet"),
        (&["capture", "histograms", "nowhere"], "nowhere: "),
        (&["capture", "histograms", "two-queues.toml"], "two-queues.toml"),
        (&["scenarios", "--show", "nowhere"], "nowhere: there is no such file"),
        (&["explain", "nothing"], "nothing: nothing is known of it"),
        (&["explain", "experiments"], "experiments: it is a page, not a term; `kavg help"),
        (&["explain", "dnsro"], "dnsro: nothing is known of it (did you mean DSNRO?)"),
        (&["diagnose", "x.csv", "--names", "two-queues.toml"], "two-queues.toml:"),
        (&["new", "two-queues.toml"], "two-queues.toml: "),
    ];
    for (arguments, expected) in cases {
        let said = kavg(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {said:?}");
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{arguments:?}: {}", said.err);
    }
}

#[test]
fn a_command_line_that_is_wrong_is_refused_in_one_line() {
    for (arguments, said) in [
        (
            ["run", "a", "--rows", "0"],
            "'--rows <N>': expected a whole number from 1 on; see `kavg run --help`",
        ),
        (
            ["run", "a", "--seed", "x"],
            "'--seed <N>': expected a whole number; see `kavg run --help`",
        ),
        (
            ["run", "a", "--seeed", "1"],
            "'--seeed' found; tip: a similar argument exists: '--seed'; see",
        ),
        (["capture", "fly", "a", "b"], "there are info, columns, cut, "),
        (["run", "a", "--pace", "a\nb\x1b[31m"], "allowed are `virtual`"),
        (["sweep", "a", "--over", "duration"], "expected KEY=VALUES; see `kavg sweep --help`"),
        (["sweep", "a", "--over", "vm..x=1"], "`vm..x` is no key"),
        (["sweep", "a", "--over", "a.b=1,,2"], "a value is missing"),
        (["sweep", "a", "--over", "a.b=4..1"], "`4..1`: its end is below its begin"),
        (["sweep", "a", "--over", "seed=1..9"], "seeds are --seed and --seeds"),
    ] {
        assert!(kavg(&arguments).err.contains(said), "{arguments:?}: {:?}", kavg(&arguments));
    }
    let cases: &[&[&str]] = &[
        &[],
        &["fly"],
        &["run"],
        &["run", "two-queues.toml", "--rows", "0"],
        &["run", "two-queues.toml", "--threads", "0"],
        &["run", "two-queues.toml", "--seed", "x"],
        &["run", "two-queues.toml", "--every", "x"],
        &["run", "two-queues.toml", "--pace", "slow"],
        &["run", "two-queues.toml", "--pace", "real", "--compare-set", "x"],
        &["run", "two-queues.toml", "--json", "--quiet"],
        &["run", "two-queues.toml", "--json", "--compare", "two-hosts.toml"],
        &["sweep", "two-queues.toml"],
        &["sweep", "two-queues.toml", "--over", "duration=1s", "--seed", "1", "--seeds", "2"],
        &["sweep", "two-queues.toml", "--over", "duration=1s", "--seeds", "0"],
        &["sweep", "two-queues.toml", "--over", "duration=1s", "--json", "--quiet"],
        &["diagnose"],
        &["diagnose", "x.csv", "--profile", "tape"],
        &["capture", "cut", "x.csv", "--from", "noon"],
        &["capture", "cut", "x.csv", "--kind", "tape"],
        &["capture", "command", "--every", "1s"],
        &["capture", "command", "--every", "2500ms"],
        &["capture", "command", "--samples", "0"],
        &["reference", "nothing"],
    ];
    for arguments in cases {
        let said = kavg(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {said:?}");
        let is_help = arguments.is_empty();
        assert!(is_help || said.err.lines().count() == 1, "{arguments:?}: {said:?}");
        assert!(is_help || said.err.ends_with(" --help`\n"), "{arguments:?}: {said:?}");
    }
}
