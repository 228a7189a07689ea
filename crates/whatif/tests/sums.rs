//! A table that can be true as a whole: a device does what its VMs do together, and a command takes
//! what it takes in the VMkernel and below.

#[path = "common/asked.rs"]
mod asked;

use asked::{question, recorded};
use diagnose::{Facts, SimulatedRow};
use whatif::{Answer, Model};

const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";

/// Four VMs behind a DSNRO of 32, of which one is like no other; `begin` is when three of them begin.
fn host(begin: &str) -> String {
    let vm = |name: &str, load: &str| {
        format!(
            "[vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"ds\"\n\
             [[workload]]\nvm = \"{name}\"\n{load}\n"
        )
    };
    let three: String = ["a", "b", "c"]
        .map(|name| vm(name, &format!("threads = 20\nread = \"70%\"\nstart = \"{begin}\"")))
        .concat();
    format!(
        "title = \"a test\"\nesxi = \"7.0\"\nduration = \"40s\"\nsample = \"2s\"\n\
         [array.flash]\nservers = 48\nservice = \"2ms\"\n\
         [host.esx.adapter.vmhba1]\ndriver = \"nfnic\"\nlun_depth = 128\n\
         [datastore.ds]\ndevice = \"{DEVICE}\"\ndsnro = 32\n\
         {three}{}",
        vm("d", "arrival = \"poisson\"\nrate = 500")
    )
}

fn ask(text: &str, line: &str) -> Answer {
    let recording = recorded(text);
    let question = question(line, (recording.times_ms[10], i64::MAX), 30_000.0);
    let facts = Facts::default();
    Model::calibrate(&recording, &facts, &question).expect("a model").answer().expect("an answer")
}

#[test]
fn the_rows_of_an_answer_can_be_true_together() {
    for begin in ["0s", "14s"] {
        for line in [
            format!("storage core device set -d {DEVICE} -O 64"),
            format!("storage core device set -d {DEVICE} -O 8"),
            "a: DiskLimitIOPerSecond 400".to_owned(),
        ] {
            let answer = ask(&host(begin), &line);
            let rows = &answer.simulated.rows;
            let of = |object: &str, counter: &str| -> &SimulatedRow {
                let mut own = rows.iter().filter(|row| row.object == object);
                own.find(|row| row.counter == counter).expect("a row")
            };
            let whole = of(DEVICE, "CMDS/s");
            let parts: Vec<_> = ["a", "b", "c", "d"].map(|vm| of(vm, "CMDS/s")).to_vec();
            let (low, high) =
                parts.iter().fold((0.0, 0.0), |sum, row| (sum.0 + row.low, sum.1 + row.high));
            // Counts of several samples do not add up to the last digit.
            let near = 0.001 * whole.today;
            assert!(low <= whole.low + near && whole.high <= high + near, "{line}: {rows:?}");
            for part in parts {
                let rest = (high - part.high, low - part.low);
                assert!(part.low + rest.0 >= whole.low - near, "{line}: {part:?} {rows:?}");
                assert!(part.high + rest.1 <= whole.high + near, "{line}: {part:?} {rows:?}");
            }
            let [gavg, kavg, davg] =
                ["GAVG/cmd", "KAVG/cmd", "DAVG/cmd"].map(|counter| of(DEVICE, counter));
            assert!(kavg.low + davg.low <= gavg.low + 0.01, "{line}: {rows:?}");
            assert!(gavg.high <= kavg.high + davg.high + 0.01, "{line}: {rows:?}");
        }
    }
}
