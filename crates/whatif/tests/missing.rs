//! What was not measured is not nothing: cells and columns that are emptied make no answer surer,
//! and where a column is needed the answer names it.

#[path = "common/asked.rs"]
mod asked;

use asked::question;
use counters::{Counter, Kind, Recording};
use diagnose::Facts;
use levels::Measured;
use whatif::{Answer, Error, Model, Verdict};

const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";

/// Two VMs behind one device queue, whose load rises in three steps.
fn recorded() -> Measured {
    let load = |vm: &str, name: &str, threads: u32, from: u32, to: u32| {
        format!(
            "[[workload]]\nvm = \"{vm}\"\nname = \"{name}\"\nthreads = {threads}\n\
             start = \"{from}s\"\nstop = \"{to}s\"\n"
        )
    };
    let vm = |vm: &str| {
        format!(
            "[vm.{vm}]\nguest_driver = \"RequestRingPages=32,MaxQueueDepth=254\"\n\
             [vm.{vm}.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n"
        )
    };
    let text = format!(
        "title = \"a test\"\nduration = \"80s\"\nsample = \"2s\"\n\
         [array.flash]\nservers = 64\nservice = \"2ms\"\n\
         [host.esx.adapter.vmhba1]\ndriver = \"nfnic\"\nlun_depth = 64\n\
         [datastore.ds]\ndevice = \"{DEVICE}\"\ndsnro = 32\n{}{}{}{}{}{}",
        vm("sql"),
        vm("web"),
        load("sql", "few", 6, 0, 24),
        load("sql", "some", 20, 24, 48),
        load("sql", "many", 44, 48, 80),
        load("web", "all", 12, 0, 80)
    );
    asked::recorded(&text)
}

fn ask(recording: &Measured) -> Result<Answer, Error> {
    let line = format!("storage core device set -d {DEVICE} -O 48");
    let question = question(&line, (recording.times_ms[24], i64::MAX), 5_000.0);
    let facts = Facts::default();
    Model::calibrate(recording, &facts, &question)?.answer()
}

/// Low and high of the rate of the device.
fn range(answer: &Answer) -> [f64; 2] {
    let row = &answer.simulated.rows[0];
    assert_eq!((row.object.as_str(), row.counter), (DEVICE, "CMDS/s"));
    [row.low, row.high]
}

fn is_sure(answer: &Answer) -> bool {
    matches!(answer.verdict, Verdict::Identified | Verdict::GainsNothing)
}

/// Numbers by splitmix.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % most
    }
}

/// Every column of a recording, emptied where told.
fn emptied(recording: &Recording, mut is_empty: impl FnMut(usize) -> bool) -> Measured {
    let mut holed = recording.clone();
    let columns: Vec<_> = recording.columns().map(|(id, c, v)| (id, c, v.to_vec())).collect();
    for (place, (id, counter, values)) in columns.into_iter().enumerate() {
        let hole = |value| if is_empty(place) { f64::NAN } else { value };
        holed.set_column(id, counter, values.into_iter().map(hole).collect());
    }
    Measured::of(holed)
}

#[test]
fn cells_that_are_empty_make_no_answer_surer_or_another() {
    let whole = recorded();
    let full = ask(&whole).unwrap();
    let [low, high] = range(&full);
    assert_eq!(full.verdict, Verdict::Identified);
    for seed in 1..=20 {
        let mut random = Random(seed);
        let holed = emptied(&whole, |_| random.below(100) < 5);
        let Ok(answer) = ask(&holed) else { continue };
        if answer.verdict == Verdict::NoModel {
            continue;
        }
        assert!(is_sure(&full) || !is_sure(&answer), "{seed}: {:?}", answer.simulated);
        let [least, most] = range(&answer);
        // Other samples are other chance: a hundredth of the rate on each side.
        let chance = 0.01 * high;
        assert!(least <= low + chance && most >= high - chance, "{seed}: {least} to {most}");
        assert!(least >= 0.5 * low && most <= 2.0 * high, "{seed}: {least} to {most}");
    }
}

#[test]
fn a_column_that_is_empty_is_stood_in_for_or_named() {
    let whole = recorded();
    let full = ask(&whole).unwrap();
    let [low, high] = range(&full);
    let names: Vec<_> = whole.columns().map(|(id, counter, _)| (id, counter)).collect();
    for (place, (id, counter)) in names.into_iter().enumerate() {
        let entity = whole.entity(id);
        let what = format!("{counter:?} of {}", entity.name);
        match ask(&emptied(&whole, |column| column == place)) {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("was not recorded"), "{what}: {error}");
                assert!(
                    error.contains(&entity.name) || entity.kind == Kind::World,
                    "{what}: {error}"
                );
            }
            Ok(answer) if answer.verdict == Verdict::NoModel => {
                let doubts = answer.simulated.doubts.join(" ");
                assert!(doubts.contains("Not recorded"), "{what}: {answer:?}");
            }
            Ok(answer) => {
                assert!(is_sure(&full) || !is_sure(&answer), "{what}: {:?}", answer.simulated);
                let [least, most] = range(&answer);
                assert!(least <= 1.01 * low && most >= 0.99 * high, "{what}: {least} to {most}");
            }
        }
    }
}

#[test]
fn what_is_needed_is_named_in_one_line() {
    let whole = recorded();
    for (kind, counters, expected) in [
        (Kind::Device, &[Counter::Commands][..], "CMDS/s of naa."),
        (Kind::Device, &[Counter::DriverLatency, Counter::KernelLatency], "DAVG of naa."),
        (Kind::Device, &[Counter::DeviceQDepth], "DQLEN of naa."),
        (Kind::World, &[Counter::GuestLatency, Counter::KernelLatency], "GAVG of"),
    ] {
        let is_meant = |place: usize| {
            let (id, counter, _) = whole.columns().nth(place).unwrap();
            whole.entity(id).kind == kind && counters.contains(&counter)
        };
        let error = ask(&emptied(&whole, is_meant)).unwrap_err().to_string();
        assert!(error.starts_with(expected) && !error.contains('\n'), "{expected}: {error}");
        assert!(error.contains("`esxtop -b -a`"), "{error}");
    }
}
