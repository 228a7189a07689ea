//! The driver against itself (seeds, threads, components) and against the laws of queueing.

mod common;

use common::{close, figure};
use counters::{Counter, HostSnapshot, Kind, Time};
use engine::{Engine, Error, Input};
use sim::{Outcome, Watch, WindowView, run, run_watched};

/// Everything in an outcome, as text.
fn all_of(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

#[test]
fn one_seed_gives_one_result_and_another_seed_another() {
    let mut scenario = common::scenario(common::EVERYTHING);
    let first = all_of(&run(&scenario, 1, &()));
    assert!(first == all_of(&run(&scenario, 1, &())));
    scenario.seed += 1;
    assert!(first != all_of(&run(&scenario, 1, &())));
}

/// Hosts that have nothing in common.
fn islands(hosts: usize) -> String {
    let mut text = String::from("title = \"Islands\"\nduration = \"300ms\"\nsample = \"100ms\"\n");
    for host in 1..=hosts {
        text += &format!(
            "[array.a{host}]\nservers = {host}\nservice = \"0.3ms\"\nspread = \"exponential\"\n\
             [host.h{host}.adapter.vmhba1]\ndriver = \"fnic\"\n\
             [datastore.d{host}]\narray = \"a{host}\"\nhosts = \"h{host}\"\ndevice = \"naa.{host}\"\n\
             [vm.v{host}]\nhost = \"h{host}\"\n\
             [vm.v{host}.disk.\"scsi0:0\"]\ndatastore = \"d{host}\"\n\
             [vm.v{host}.workload]\nthreads = 40\nread = \"50%\"\n"
        );
    }
    text
}

#[test]
fn threads_and_components_change_nothing() {
    let scenario = common::scenario(&islands(5));
    let apart = run(&scenario, 1, &());
    assert!(apart.ios > 1_000);
    assert!(all_of(&apart) == all_of(&run(&scenario, 2, &())));
    assert!(all_of(&apart) == all_of(&run_watched(&scenario, ()).0));
}

/// Keeps every input.
#[derive(Default)]
struct Inputs(Vec<(usize, Time, Input)>);

impl Watch for Inputs {
    fn input(&mut self, host: usize, at: Time, input: &Input) {
        self.0.push((host, at, *input));
    }
}

#[test]
fn every_invariant_holds_through_every_event() {
    let scenario = common::scenario(common::EVERYTHING);
    let (outcome, inputs) = run_watched(&scenario, Inputs::default());
    let mut engines: Vec<_> = scenario.hosts.iter().map(|host| Engine::new(&host.config)).collect();
    for (host, at, input) in &inputs.0 {
        let engine = &mut engines[*host];
        match engine.handle_input(*at, *input) {
            // The array answers what a reboot took back, too.
            Ok(_) | Err(Error::NotOutstanding(_)) => {}
            Err(error) => panic!("{error}: {input:?}"),
        }
        while engine.poll_output().is_some() {}
        engine.check().unwrap_or_else(|broken| panic!("{broken} after {input:?} at {at:?}"));
    }
    for (engine, view) in engines.iter().zip(&outcome.windows[0]) {
        let mut counters = HostSnapshot::default();
        engine.snapshot(view.counters.at, &mut counters);
        assert_eq!(counters, *view.counters);
    }
    for (host, recording) in scenario.hosts.iter().zip(&outcome.recordings) {
        let columns = recording.columns().count() as u64;
        assert!((1..=host.config.inventory().values_max()).contains(&columns), "{columns}");
    }
    let refused = outcome.log.iter().filter(|line| matches!(line.what, sim::Logged::Refused(_)));
    assert_eq!(refused.count(), 0);
}

/// With 32 of 32 servers chosen at random, n commands at the array take S (1 + (n - 1) / N) each
/// (the arrival theorem; every server sees what the others leave), so DAVG is 0.984 ms; the rest
/// is Little's law at each limit above it.
#[test]
fn the_base_model_is_within_half_a_percent_of_its_closed_form() {
    let scenario = common::scenario(common::BASE);
    let outcome = run(&scenario, 1, &());
    let WindowView { recording, .. } = &outcome.windows[0][0];
    let davg = 0.5 * (1.0 + 31.0 / 32.0);
    let iops = 32.0 / davg * 1e3;
    let device = |counter| figure(recording, Kind::Device, "naa.1", counter);
    let disk = |counter| figure(recording, Kind::VirtualDisk, "sql:scsi0:0", counter);
    close(device(Counter::DriverLatency), davg, 0.005);
    close(device(Counter::Commands), iops, 0.005);
    close(device(Counter::QueueLatency), 32.0 / iops * 1e3, 0.005);
    close(device(Counter::KernelLatency), 32.0 / iops * 1e3, 0.005);
    close(device(Counter::GuestLatency), 64.0 / iops * 1e3, 0.005);
    close(disk(Counter::GuestWait), 32.0 / iops * 1e3, 0.005);
    close(disk(Counter::TotalLatency), 96.0 / iops * 1e3, 0.005);
    close(device(Counter::ArrayLatency), davg, 0.005);
}

#[test]
fn littles_law_holds_at_every_level() {
    let scenario = common::scenario(common::BASE);
    let outcome = run(&scenario, 1, &());
    let HostSnapshot { vdisks, devices, .. } = &*outcome.windows[0][0].counters;
    let (disk, device, end) = (&vdisks[0], &devices[0], Time(scenario.duration_ns));
    let mut sum = disk.io[0];
    sum.add(&disk.io[1]);
    let mean = |level: &counters::Occupancy| level.mean_since(&Default::default(), Time::ZERO, end);
    let per_second = |nanos: u64| nanos as f64 / end.0 as f64;
    close(mean(&disk.guest_queued), per_second(sum.guest_ns), 0.005);
    let in_kernel = mean(&disk.queued) + mean(&disk.slots);
    close(in_kernel, per_second(sum.kernel_ns + sum.device_ns), 0.005);
    close(mean(&disk.queued), per_second(sum.queue_ns), 0.005);
    close(mean(&disk.slots), per_second(sum.device_ns), 0.005);
    close(mean(&device.queued), per_second(sum.queue_ns), 0.005);
    close(mean(&device.active), per_second(sum.device_ns), 0.005);
}

/// Two IOPS limits behind a protocol endpoint on an array that holds two commands.
const REFUSED: &str = r#"
title = "Limits and refusals"
duration = "60s"

[array.small]
servers = 2
service = "1ms"
queue_limit = 2

[host.esx.adapter.vmhba1]
driver = "fnic"

[datastore.vvols]
kind = "vvol"

[vm.a.disk."scsi0:0"]
datastore = "vvols"
limit = 100

[vm.a.workload]
threads = 32

[vm.b.disk."scsi0:0"]
datastore = "vvols"
limit = 107

[vm.b.workload]
threads = 32
"#;

/// A timer of the device and a wake-up of the driver that an earlier one had taken the place of
/// used to set the next one all the same, so that they grew in number.
#[test]
fn an_io_takes_a_bounded_number_of_inputs() {
    let scenario = common::scenario(REFUSED);
    let (outcome, inputs) = run_watched(&scenario, Inputs::default());
    let ticks = inputs.0.iter().filter(|(_, _, input)| *input == Input::Tick).count() as u64;
    let all = inputs.0.len() as u64;
    assert!(outcome.ios > 12_000, "{} I/Os", outcome.ios);
    assert!(ticks <= 2 * outcome.ios, "{ticks} wake-ups for {} I/Os", outcome.ios);
    assert!(all <= 6 * outcome.ios, "{all} inputs for {} I/Os", outcome.ios);
}

/// One command in 400 takes six times the mean: it is asked back, and the next attempt is quicker.
#[test]
fn a_command_that_takes_longer_than_its_adapter_allows_is_sent_again() {
    let text = "title = \"Timeout\"\nduration = \"2s\"\n\
         [array.a]\nservers = 64\nservice = \"1ms\"\nspread = \"exponential\"\n\
         [host.h.adapter.vmhba1]\ndriver = \"fnic\"\n\
         [datastore.d]\ndevice = \"naa.1\"\n[vm.v.disk.\"scsi0:0\"]\ndatastore = \"d\"\n\
         [vm.v.workload]\nthreads = 8\n";
    let timely = text.replace("\"fnic\"\n", "\"fnic\"\ntimeout = \"6ms\"\n");
    for seed in 1..=20 {
        let [free, timely] = [text, &timely].map(|text| {
            let mut scenario = common::scenario(text);
            scenario.seed = seed;
            run(&scenario, 1, &())
        });
        let overdue =
            |outcome: &Outcome| outcome.windows[0][0].counters.vdisks[0].rare.get().overdue;
        assert_eq!(overdue(&free), 0);
        let overdue = overdue(&timely);
        assert!((10..150).contains(&overdue), "{overdue} of {} for seed {seed}", timely.ios);
        let row = &timely.windows[0][0].recording;
        let aborts = figure(row, Kind::Device, "naa.1", Counter::Aborts);
        close(aborts, overdue as f64 / 2.0, 0.001);
    }
}
