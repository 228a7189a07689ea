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

/// The file of all events, with a block layer at each disk, `seed` and nothing expected.
fn with_blocks(block: &str, seed: u64) -> String {
    let text = EVERYTHING.replace("\"linux_old\"", "\"linux\"").replace("\"windows\"", "\"linux\"");
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
