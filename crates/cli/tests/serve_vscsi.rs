//! `kavg vscsiStats` on a daemon at work: what guests ask for is counted between the limits of a real host,
//! and read back as a file of one.

#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;
#[path = "common/nbd.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod nbd;

use std::process::{Command, Output};

use capture::{VscsiHistogram, parse_vscsistats};
use counters::{Direction, Metric};
use daemon::{Site, TWO_DISKS};
use nbd::Client;

fn kavg(site: &Site, words: &str) -> Output {
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    kavg.args(["vscsiStats", "--live", "c"]).args(words.split_whitespace());
    kavg.current_dir(site.directory.path()).output().expect("the binary starts")
}

fn says(site: &Site, words: &str) -> String {
    let output = kavg(site, words);
    assert!(output.status.success(), "{words}: {output:?}");
    String::from_utf8(output.stdout).expect("it writes UTF-8")
}

fn refusal(site: &Site, words: &str) -> String {
    let output = kavg(site, words);
    assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
    String::from_utf8(output.stderr).expect("it writes UTF-8")
}

fn histograms(site: &Site) -> Vec<VscsiHistogram> {
    let text = says(site, "-p all -c");
    parse_vscsistats("v.csv", &text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Commands by the limit of their bins, without empty ones.
fn of(
    histograms: &[VscsiHistogram],
    metric: Metric,
    direction: Option<Direction>,
) -> Vec<(Option<i64>, u64)> {
    let is_it = |one: &&VscsiHistogram| (one.metric, one.direction) == (metric, direction);
    let one = histograms.iter().find(is_it).expect("a histogram");
    let filled = one.bins.iter().filter(|bin| bin.commands > 0);
    filled.map(|bin| (bin.limit, bin.commands)).collect()
}

#[test]
fn what_guests_ask_for_is_counted_while_somebody_wants_it() {
    let site = Site::new(TWO_DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let list = says(&site, "-l");
    let [first, second] = [0, 1].map(|n| list.lines().nth(3 * n).expect("a machine").to_owned());
    assert!(second.contains("Display Name: b, "), "{list}");
    let world = first.split([' ', ',']).nth(3).expect("its world").to_owned();
    assert_eq!(list.lines().nth(1), Some("   Virtual SCSI Disk handleID: 8192 (scsi0:0)"));
    assert!(refusal(&site, "-p all -c").contains("nothing was counted"));
    let mut client = Client::on(&site.socket(), "a:scsi0:0", false);
    assert_eq!(client.write(0, 0, &[1; 4096]), 0);
    says(&site, &format!("-s -w {world} -i 8192"));
    (1..5).for_each(|block| assert_eq!(client.write(0, block * 4096, &[1; 4096]), 0));
    assert_eq!(client.write(0, 4 << 20, &[1; 65536]), 0);
    assert_eq!(client.read(0, 4096), vec![1; 4096]);
    let counted = histograms(&site);
    assert_eq!(counted.len(), 16, "those of one disk");
    assert!(counted.iter().all(|one| one.world.to_string() == world && one.handle == 8192));
    let (write, read) = (Some(Direction::Write), Some(Direction::Read));
    assert_eq!(of(&counted, Metric::IoLength, write), [(Some(4096), 4), (Some(65536), 1)]);
    assert_eq!(of(&counted, Metric::IoLength, read), [(Some(4096), 1)]);
    assert_eq!(of(&counted, Metric::SeekDistance, write), [(Some(1), 3), (Some(10_000), 1)]);
    assert_eq!(of(&counted, Metric::Outstanding, None), [(Some(1), 6)]);
    let latencies = |counted: &[VscsiHistogram]| -> u64 {
        of(counted, Metric::Latency, None).iter().map(|bin| bin.1).sum()
    };
    assert_eq!(latencies(&counted), 6);
    says(&site, "-x");
    assert_eq!(client.write(0, 0, &[1; 4096]), 0);
    assert_eq!(latencies(&histograms(&site)), 6, "it was stopped");
    says(&site, "-s");
    assert_eq!(client.write(0, 0, &[1; 4096]), 0);
    assert_eq!(latencies(&histograms(&site)), 7, "and goes on");
    let text = says(&site, "-p outstandingIOs");
    assert!(
        text.contains("Histogram: number of outstanding IOs when a new IO is issued for virtual")
    );
    says(&site, "-r");
    assert_eq!(latencies(&histograms(&site)), 0);
    let refused = [
        ("-s -w 5", "no disk is of that world group and handle; there are "),
        ("-s -i 8192", "--worldgroupid"),
        ("-s -x", "cannot be used with"),
        ("-p sizes", "ioLength, seekDistance, outstandingIOs, latency, interarrival"),
    ];
    for (words, expected) in refused {
        let said = refusal(&site, words);
        assert!(said.contains(expected), "{words}: {said}");
    }
    drop(client);
    daemon.stop();
}
