//! What applications want and what they get: offered, served and lost, clocks that run with a VM,
//! limits and shares as they are at the time, and Little's law where commands are held.

mod common;

use common::close;
use counters::{Counter, Kind, SECOND, Time};
use sim::{Outcome, Span, run};

/// An array that does one command in 0.515 ms, 1,941.7 a second, and one disk on it.
const ONE: &str = r#"
title = "One disk"
duration = "4s"
sample = "500ms"

[array.slow]
servers = 1
service = "0.515ms"
spread = "constant"

[host.esx.adapter.vmhba1]
driver = "qlnativefc"

[datastore.ds]
device = "naa.1"

[vm.sql]
guest = "linux_old"

[vm.sql.disk."scsi0:0"]
datastore = "ds"

[[window]]
name = "late"
from = "2s"
"#;

fn outcome(text: &str) -> Outcome {
    run(&common::scenario(text), 1, &())
}

/// A figure over a window.
#[track_caller]
fn figure(outcome: &Outcome, window: usize, kind: Kind, name: &str, counter: Counter) -> f64 {
    common::figure(&outcome.windows[window][0].recording, kind, name, counter)
}

/// 4,000 a second are offered and 1,941 served: the others wait, and the wait counts.
#[test]
fn what_is_not_served_waits_and_is_seen_to_wait() {
    let open = "arrival = \"fixed\"\nrate = 4_000\noutstanding = 64\n";
    let outcome = outcome(&format!("{ONE}[[workload]]\nvm = \"sql\"\n{open}"));
    let disk =
        |window, counter| figure(&outcome, window, Kind::VirtualDisk, "sql:scsi0:0", counter);
    close(disk(0, Counter::Offered), 4_000.0, 0.001);
    close(disk(0, Counter::Commands), 1e3 / 0.515, 0.001);
    assert_eq!(disk(0, Counter::Lost), 0.0);
    // The backlog grows by 2,058 a second: 4,117 after 2 s, 8,233 after 4 s. 64 are under way.
    let backlog = (4_000.0 - 1e3 / 0.515) * 3.0 - 64.0;
    close(disk(1, Counter::MeanGuestQueued), backlog, 0.01);
    // What is served at 3 s came at 1.456 s.
    close(disk(1, Counter::TotalLatency), 1e3 * 3.0 * (1.0 - 1e3 / 0.515 / 4_000.0), 0.01);
    let vm = figure(&outcome, 0, Kind::Vm, "sql", Counter::Offered);
    close(vm, 4_000.0, 0.001);
}

/// PVSCSI takes 512 KiB at a time [VMB14]: 1 MiB is two commands that one server does one after the other, and one I/O
/// of the application, which has it with the second. LSI Logic takes it as it is.
#[test]
fn an_io_that_the_driver_cuts_is_one_and_ends_with_its_last_part() {
    let array = ONE.replace("0.515ms", "10ms");
    for (controller, commands) in [("pvscsi", 2.0), ("lsilogic", 1.0)] {
        let disk = format!("datastore = \"ds\"\nadapter = \"{controller}\"");
        let array = array.replace("datastore = \"ds\"", &disk);
        let each_ms = 10.0 * commands;
        for (issues, rate) in
            [("arrival = \"fixed\"\nrate = 20", 20.0), ("threads = 1", 1e3 / each_ms)]
        {
            let text = format!("{array}[[workload]]\nvm = \"sql\"\nsize = \"1m\"\n{issues}\n");
            let outcome = outcome(&text);
            let disk = |counter| figure(&outcome, 1, Kind::VirtualDisk, "sql:scsi0:0", counter);
            close(disk(Counter::Offered), rate, 0.03);
            close(disk(Counter::Commands), commands * rate, 0.03);
            close(disk(Counter::TotalLatency), each_ms, 0.001);
            close(disk(Counter::P50), each_ms, 0.07);
            // The command that is second waits for the first.
            close(disk(Counter::VdiskReadLatency), (10.0 + each_ms) / 2.0, 0.001);
        }
    }
}

#[test]
fn what_no_longer_fits_is_lost_and_littles_law_holds_for_what_waits() {
    let open = "arrival = \"fixed\"\nrate = 4_000\noutstanding = 64\nbacklog = 500\n";
    let outcome = outcome(&format!("{ONE}[[workload]]\nvm = \"sql\"\n{open}"));
    let disk = |counter| figure(&outcome, 1, Kind::VirtualDisk, "sql:scsi0:0", counter);
    let served = disk(Counter::Commands);
    close(disk(Counter::Offered), 4_000.0, 0.001);
    close(disk(Counter::Lost), 4_000.0 - served, 0.001);
    close(disk(Counter::MeanGuestQueued), served * disk(Counter::GuestWait) / 1e3, 0.005);
    close(disk(Counter::TotalLatency), 564.0 * 0.515, 0.005);
    close(disk(Counter::P50), 564.0 * 0.515, 0.05);
}

#[test]
fn what_waits_when_a_workload_stops_is_lost() {
    let open = "arrival = \"fixed\"\nrate = 4_000\noutstanding = 64\nstop = \"1s\"\n";
    let outcome = outcome(&format!("{ONE}[[workload]]\nvm = \"sql\"\n{open}"));
    let disk =
        |window, counter| figure(&outcome, window, Kind::VirtualDisk, "sql:scsi0:0", counter);
    close(4.0 * disk(0, Counter::Offered), 4_000.0, 0.001);
    let served = 4.0 * disk(0, Counter::Commands);
    close(4.0 * disk(0, Counter::Lost), 4_000.0 - served, 0.001);
    assert_eq!(disk(1, Counter::Offered), 0.0);
    assert_eq!(outcome.spans, [Span { workload: 0, from: Time::ZERO, to: Time(SECOND) }]);
}

#[test]
fn what_waits_goes_with_its_vm() {
    let two = ONE.replace("[host.esx.adapter", "[host.esx]\ncount = 2\n[host.esx.adapter");
    let text = format!(
        "{two}[[workload]]\nvm = \"sql\"\narrival = \"fixed\"\nrate = 4_000\noutstanding = 64\n\
         [[event]]\nat = \"2s\"\nvm = \"sql\"\nmigrate = \"esx-2\"\n"
    );
    let outcome = outcome(&text.replace("[vm.sql]", "[vm.sql]\nhost = \"esx-1\""));
    let there = &outcome.windows[1][1].counters.vdisks[0];
    let here = &outcome.windows[1][0].counters.vdisks[0];
    assert_eq!((here.lost, there.lost), (0, 0));
    // The longest waits were 2 s in the application of the first host.
    close(there.guest_queued.now().into(), (4_000.0 - 1e3 / 0.515) * 4.0, 0.01);
    assert_eq!(here.guest_queued.now(), 0);
    assert_eq!(outcome.spans, [Span { workload: 0, from: Time::ZERO, to: Time(4 * SECOND) }]);
}

#[test]
fn beyond_its_last_point_a_measured_curve_does_as_many_as_there() {
    let curve = "curve = [[1, \"0.3ms\"], [64, \"0.8ms\"]]\n";
    let service = "servers = 1\nservice = \"0.515ms\"\nspread = \"constant\"\n";
    let text = ONE.replace(service, curve).replace("guest = \"linux_old\"", "guest = \"linux\"");
    let driver = "driver = \"qlnativefc\"\n";
    let text = text.replace(driver, "driver = \"qlnativefc\"\nlun_depth = 250\n");
    let of = |threads: u32| {
        let outcome = outcome(&format!("{text}[[workload]]\nvm = \"sql\"\nthreads = {threads}\n"));
        let iops = figure(&outcome, 1, Kind::VirtualDisk, "sql:scsi0:0", Counter::Commands);
        (iops, outcome.used[1][0])
    };
    let (iops, read) = of(64);
    close(iops, 80_000.0, 0.001);
    assert!(read.served > 150_000 && read.beyond == 0, "{read:?}");
    let (iops, read) = of(250);
    close(iops, 80_000.0, 0.001);
    assert_eq!(read.beyond, read.served);
}

#[test]
fn a_window_has_the_mean_of_dqlen_and_its_last() {
    let text = format!(
        "{ONE}[[workload]]\nvm = \"sql\"\nthreads = 64\n\
         [[event]]\nat = \"3s\"\nesxcli = \"storage core device set -d naa.1 -m 16\"\n"
    );
    let outcome = outcome(&text);
    let device = |window, counter| figure(&outcome, window, Kind::Device, "naa.1", counter);
    assert_eq!(device(0, Counter::DeviceQDepth), 16.0);
    close(device(0, Counter::MeanDeviceQDepth), (3.0 * 64.0 + 16.0) / 4.0, 1e-9);
    close(device(1, Counter::MeanDeviceQDepth), (64.0 + 16.0) / 2.0, 1e-9);
}

#[test]
fn shares_are_those_of_the_moment() {
    let text = format!(
        "{ONE}[[workload]]\nvm = \"sql\"\nthreads = 4\n\
         [[event]]\nat = \"1s\"\nvm = \"sql\"\nallocation = {{ disk = \"scsi0:0\", shares = 2000 }}\n\
         [[event]]\nat = \"3s\"\nvm = \"sql\"\npower = \"off\"\n"
    );
    let outcome = outcome(&text);
    let recording = &outcome.recordings[0];
    let world = recording.find(Kind::World, "naa.1-68001").expect("the VM's world");
    let shares = |sample| recording.value(world, Counter::Shares, sample);
    let seen: Vec<_> = (0..8).filter_map(shares).collect();
    assert_eq!(seen, [1000.0, 1000.0, 2000.0, 2000.0, 2000.0, 2000.0, 0.0, 0.0]);
}

/// Reservations of another host hold commands for 60 ms each: what is held counts as waiting.
#[test]
fn littles_law_holds_where_commands_are_held() {
    let two = ONE.replace("[host.esx.adapter", "[host.esx]\ncount = 2\n[host.esx.adapter");
    let locks = "[datastore.ds.metadata]\nrate = 5\nlock = \"scsi2\"\n";
    let text = format!("{two}{locks}[[workload]]\nvm = \"sql\"\nthreads = 8\n");
    let text = text.replace("duration = \"4s\"", "duration = \"60s\"");
    let outcome = outcome(&text.replace("[vm.sql]", "[vm.sql]\nhost = \"esx-1\""));
    let device = |counter| figure(&outcome, 0, Kind::Device, "naa.1", counter);
    assert!(device(Counter::Conflicts) > 1.0);
    let inside = device(Counter::MeanActive) + device(Counter::MeanQueued);
    let per_ms = device(Counter::Commands) / 1e3;
    close(inside, per_ms * device(Counter::GuestLatency), 0.005);
    close(device(Counter::MeanQueued), per_ms * device(Counter::KernelLatency), 0.005);
    close(device(Counter::MeanActive), per_ms * device(Counter::DriverLatency), 0.005);
}

#[test]
fn phases_begin_when_their_vm_is_on() {
    let text = ONE.replace("[vm.sql]", "[vm.sql]\npower = \"off\"").replace(
        "[[window]]",
        "[[workload]]\nvm = \"sql\"\nphases = [\n  { for = \"500ms\", threads = 1 },\n  \
         { for = \"500ms\", threads = 1, read = \"0%\" },\n]\n\
         [[event]]\nat = \"2500ms\"\nvm = \"sql\"\npower = \"on\"\n[[window]]",
    );
    let outcome = outcome(&text);
    let half = SECOND / 2;
    let spans = [(0, 5, 6), (1, 6, 7)];
    let spans = spans.map(|(workload, from, to)| Span {
        workload,
        from: Time(from * half),
        to: Time(to * half),
    });
    assert_eq!(outcome.spans, spans);
    let disk = |counter| figure(&outcome, 1, Kind::VirtualDisk, "sql:scsi0:0", counter);
    close(disk(Counter::Reads), 1e3 / 0.515 / 4.0, 0.01);
    close(disk(Counter::Writes), 1e3 / 0.515 / 4.0, 0.01);
}

#[test]
fn an_event_starts_a_workload_with_stages_and_stops_all_of_them() {
    let text = format!(
        "{ONE}[[workload]]\nvm = \"sql\"\nstart = \"never\"\nthreads = 1\n\
         phases = [{{ for = \"500ms\" }}, {{ for = \"1s\" }}]\n\
         [[event]]\nat = \"500ms\"\nstart = \"sql\"\n\
         [[event]]\nat = \"1500ms\"\nstop = \"sql\"\n\
         [[event]]\nat = \"2s\"\nstart = \"sql\"\n"
    );
    let half = SECOND / 2;
    let spans = [(0, 1, 2), (1, 2, 3), (0, 4, 5), (1, 5, 7)];
    let spans = spans.map(|(workload, from, to)| Span {
        workload,
        from: Time(from * half),
        to: Time(to * half),
    });
    assert_eq!(outcome(&text).spans, spans);
}

#[test]
fn copies_start_one_after_the_other() {
    let text = ONE.replace("[vm.sql]", "[vm.sql]\ncount = 3").replace(
        "[[window]]",
        "[[workload]]\nvm = \"sql\"\nthreads = 1\nstart = { first = \"1s\", every = \"500ms\" }\n\
         [[window]]",
    );
    let outcome = outcome(&text);
    let froms: Vec<_> = outcome.spans.iter().map(|span| span.from.0 * 10 / SECOND).collect();
    assert_eq!(froms, [10, 15, 20]);
}

/// Before ESXi 6.0 the disks of a VM share a world: a new limit of one leaves the other its own.
#[test]
fn a_world_of_two_disks_has_what_both_are_given() {
    let two = "[vm.sql.disk.\"scsi0:1\"]\ndatastore = \"ds\"\nlimit = 100\n\n[[window]]";
    let text = ONE
        .replacen("[[window]]", two, 1)
        .replace("[vm.sql.disk.\"scsi0:0\"]\n", "[vm.sql.disk.\"scsi0:0\"]\nlimit = 100\n");
    let text = format!(
        "esxi = \"5.1\"\n{text}[[workload]]\nvm = \"sql\"\ndisk = \"all\"\nthreads = 4\n\
         [[event]]\nat = \"2s\"\nvm = \"sql\"\nallocation = {{ disk = \"scsi0:0\", limit = 300 }}\n\
         [[window]]\nname = \"early\"\nto = \"2s\"\n"
    );
    let outcome = outcome(&text);
    let iops = |window| figure(&outcome, window, Kind::Device, "naa.1", Counter::Commands);
    close(iops(2), 200.0, 0.02);
    close(iops(1), 400.0, 0.02);
}

/// A run of Vdbench at 4,000 a second and a fio job held to as many, on a disk that does 1,941.
#[test]
fn parameter_files_offer_what_they_ask_for() {
    let vdbench = "sd=s,threads=64\nwd=w,sd=s\nrd=r,wd=w,iorate=4000,elapsed=4\n";
    let fio = "[a]\nioengine=libaio\niodepth=64\ndirect=1\ntime_based\nruntime=4\nrw=randread\n\
               rate_iops=4000\nrate_process=poisson\n";
    for (tool, file) in [("vdbench", vdbench), ("fio", fio)] {
        let workload = format!("[[workload]]\nvm = \"sql\"\n{tool} = '''\n{file}'''\n");
        let outcome = outcome(&format!("{ONE}{workload}"));
        let disk = |counter| figure(&outcome, 1, Kind::VirtualDisk, "sql:scsi0:0", counter);
        close(disk(Counter::Offered), 4_000.0, 0.03);
        close(disk(Counter::Commands), 1e3 / 0.515, 0.005);
        assert!(disk(Counter::TotalLatency) > 1_000.0, "{tool}");
    }
}

#[test]
fn a_fio_job_without_time_based_ends_with_its_size() {
    let fio = "[a]\ndirect=1\nrw=randread\nbs=4k\nsize=4000k\nrate_iops=500\n";
    let outcome = outcome(&format!("{ONE}[[workload]]\nvm = \"sql\"\nfio = '''\n{fio}'''\n"));
    // 1,000 I/Os at 500 a second.
    assert_eq!(outcome.ios, 1_000);
    let [span] = outcome.spans.as_slice() else { panic!("{:?}", outcome.spans) };
    close(span.to.0 as f64 / SECOND as f64, 2.0, 0.002);
}

/// Two equal VMs of 24 threads before an array that takes 20 commands: whoever it refuses keeps
/// its turn. Of equals each gets half, in every order and with every number of VMs.
#[test]
fn who_is_refused_by_a_full_array_keeps_its_turn() {
    for (scheduler, vms) in
        ["mclock", "sfq", "fifo"].into_iter().flat_map(|order| [2, 3, 5].map(|vms| (order, vms)))
    {
        let text = format!(
            r#"
title = "A full array"
duration = "2s"
warmup = "500ms"
sample = "500ms"

[array.a]
servers = 32
service = "600us"
queue_limit = 20

[host.esx.adapter.vmhba1]
driver = "qlnativefc"

[datastore.d]
scheduler = "{scheduler}"

[vm.v]
count = {vms}

[vm.v.disk."scsi0:1"]
datastore = "d"

[vm.v.workload]
threads = 24
"#
        );
        let outcome = outcome(&text);
        let rate = |vm| figure(&outcome, 0, Kind::Vm, &format!("v-{vm}"), Counter::Commands);
        let all: f64 = (1..=vms).map(rate).sum();
        for vm in 1..=vms {
            assert!((rate(vm) * f64::from(vms) / all - 1.0).abs() < 0.03, "{scheduler} v-{vm}");
        }
    }
}
