//! Guests with a block layer through all that can happen to a host.

mod common;

use common::{EVERYTHING, scenario};
use counters::{Counter, Kind};
use engine::Input;
use sim::{Watch, run, run_watched};

/// Counts what goes into the engines.
#[derive(Default)]
struct Submitted(u64);

impl Watch for Submitted {
    fn input(&mut self, _host: usize, _at: counters::Time, input: &Input) {
        self.0 += u64::from(matches!(input, Input::Submit(_)));
    }
}

/// The file of all events, with a block layer at each disk, `seed` and nothing expected; what comes in batches is closed.
fn with_blocks(block: &str, seed: u64) -> String {
    let text = EVERYTHING.replace("\"linux_old\"", "\"linux\"").replace("\"windows\"", "\"linux\"");
    let closed = text.replace("arrival = \"poisson\"\nrate = 5_000", "threads = 16");
    let text = if block.contains("batch") { closed } else { text };
    text.replace("seed = 7", &format!("seed = {seed}"))
        .replace("\"]\n", &format!("\"]\nblock = {block}\n"))
}

/// No I/O is lost or ends twice, which the workloads would not survive, and the same comes out of the same seed.
#[test]
fn guests_with_a_block_layer_live_through_everything() {
    for seed in 1..=20 {
        for block in [
            "{ nr_requests = 16 }",
            "{ scheduler = \"none\", batch = 8 }",
            "{ max_sectors_kb = 64, nomerges = 2 }",
        ] {
            let scenario = scenario(&with_blocks(block, seed));
            let (watched, Submitted(submitted)) = run_watched(&scenario, Submitted::default());
            assert!(submitted > 10_000, "{block}, seed {seed}: {submitted}");
            let again = run(&scenario, 2, &());
            assert_eq!(again.ios, watched.ios, "{block}, seed {seed}");
        }
    }
}

/// By Little's law what waits in the guest is what comes a second times what each of it waits.
#[test]
fn what_waits_in_the_guest_is_its_rate_times_its_wait() {
    let text = include_str!("../../../scenarios/guest-block-layer.toml");
    let outcome = run(&scenario(text), 2, &());
    let recording = &outcome.windows[0][0].recording;
    for vm in ["async", "plain", "shallow", "batched", "large", "fair", "reader"] {
        let name = format!("{vm}:scsi0:1");
        let figure = |counter| common::figure(recording, Kind::VirtualDisk, &name, counter);
        let by_law = figure(Counter::Commands) * figure(Counter::GuestWait) / 1_000.0;
        let queued = figure(Counter::MeanGuestQueued);
        assert!((by_law - queued).abs() <= 0.01 * queued + 0.01, "{vm}: {by_law} and {queued}");
    }
}

/// A run of 4 s over an array without an end, and what its guest offers a second: disk, then VM.
fn offered(block: &str, more: &str, workload: &str) -> [f64; 2] {
    let text = format!(
        r#"
title = "What applications ask for"
duration = "4s"
[array.a]
servers = 65536
queue = "shared"
service = "10ms"
spread = "constant"
[host.h.adapter.vmhba1]
driver = "qlnativefc"
[datastore]
ds = {{ array = "a" }}
flash = {{ array = "a" }}
[vm.v]
guest = "linux"
disk."scsi0:1" = {{ datastore = "ds", block = {block}{more} }}
workload = {workload}
[[window]]
name = "late"
from = "2s"
"#
    );
    let outcome = run(&scenario(&text), 1, &());
    let recording = &outcome.windows[1][0].recording;
    [(Kind::VirtualDisk, "v:scsi0:1"), (Kind::Vm, "v")]
        .map(|(kind, name)| common::figure(recording, kind, name, Counter::Offered))
}

/// What is offered are the application's I/Os: before they merge, are cut, or are found in flash.
#[test]
fn what_is_offered_are_ios_of_the_application_not_commands() {
    let flash = ", flash_cache = { datastore = \"flash\", size = \"8m\", block = \"4k\" }";
    for (block, more, workload, expected) in [
        (
            "{ scheduler = \"none\", batch = 8 }",
            "",
            "{ threads = 64, access = \"sequential\" }",
            6_400.0,
        ),
        (
            "{ max_sectors_kb = 4 }",
            "",
            "{ arrival = \"fixed\", rate = 10, size = \"1m\", working_set = \"1m\" }",
            10.0,
        ),
        ("{ nomerges = 2 }", flash, "{ threads = 64, working_set = \"4m\" }", 6_400.0),
        // It has stopped: nothing is offered, and nothing wraps.
        (
            "{ nr_requests = 4 }",
            flash,
            "{ threads = 64, working_set = \"4m\", stop = \"1s\" }",
            0.0,
        ),
    ] {
        for found in offered(block, more, workload) {
            assert!((found - expected).abs() <= 0.01 * expected, "{block} {workload}: {found}");
        }
    }
}
