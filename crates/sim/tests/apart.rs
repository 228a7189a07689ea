//! Hosts of one array run apart from each other, on any number of threads, and all is as if one list had
//! held their events: [`sim::run_watched`] has one.

mod common;

use std::fmt::Write;

use scenario::Scenario;
use sim::{Outcome, run, run_watched};

/// Numbers that depend on a seed: 64 bits of SplitMix.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) % n
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A cluster of 20 to 40 hosts on two arrays a round trip away, with whatever couples hosts through
/// them: full queues, curves, reservations, policies, links, controllers, nexuses, switches. Constant services and even arrivals make ties.
fn cluster(seed: u64) -> String {
    let mut draw = Draw(seed);
    let mut text =
        format!("title = \"Cluster\"\nseed = {seed}\nduration = \"40ms\"\nsample = \"20ms\"\n");
    text += "[switch.edge]\nlink = \"1GB/s\"\n[switch.core]\nlink = \"2GB/s\"\n";
    for array in ["fast", "slow"] {
        let service = draw.one(&[
            "servers = 64\nservice = \"0.2ms\"\nspread = \"constant\"",
            "servers = 300\nservice = \"0.3ms\"",
            "spindles = 40\nservice = \"1ms\"\nraid = \"5\"\nwrite_cache = \"0.1ms\"",
            "spindles = 400\ndisk = { rpm = 15000, size = \"136g\", elevator = 4 }\nraid = \"5\"\nwrite_cache = \"0.1ms\"",
            "curve = [[1, \"0.2ms\"], [64, \"0.4ms\"], [512, \"1ms\"]]",
        ]);
        let round_trip = draw.one(&["0.02ms", "0.1ms", "0.1001ms", "3ms"]);
        let more = draw.one(&[
            "",
            "queue_limit = 200\n",
            "ports = 3\nqueue_limit = 70\n",
            "link = \"2GB/s\"\n",
            "lun_queue_limit = 150\nfull = \"busy\"\n",
            "controllers = { iops = 90000, active_passive = true, takeover = \"0.1ms\" }\n",
        ]);
        let _ = write!(text, "[array.{array}]\n{service}\nround_trip = \"{round_trip}\"\n{more}");
        text += draw.one(&["", "switch = \"core\"\n", "switch = \"edge\"\n"]);
        let policy = draw.one(&["fixed", "mru", "rr"]);
        let _ =
            write!(text, "[datastore.{array}]\narray = \"{array}\"\npath_policy = \"{policy}\"\n");
    }
    if draw.below(2) == 0 {
        text += "[datastore.slow.metadata]\nrate = 400\nlock = \"scsi2\"\n";
    }
    let hosts = 20 + draw.below(21);
    let adapter = draw.one(&[
        "driver = \"fnic\"",
        "driver = \"fnic\"\nlink = \"8Gbit/s\"",
        "driver = \"fnic\"\nswitch = \"edge\"\ndead_after = \"1ms\"",
        "driver = \"fnic\"\nlink = \"2Gbit/s\"\nswitch = \"edge\"",
        "driver = \"iscsi_vmk\"\niscsi = { window = 24, loss = \"1%\", ack_timer = \"1ms\" }",
    ]);
    let _ = write!(
        text,
        "[host.esx]\ncount = {hosts}\nboot = \"3ms\"\n[host.esx.adapter.vmhba1]\n{adapter}\n"
    );
    if adapter.contains("switch") && draw.below(2) == 0 {
        for (at, state) in [(15, "down"), (25, "up")] {
            let _ = write!(
                text,
                "[[event]]\nat = \"{at}ms\"\nswitch = \"edge\"\nstate = \"{state}\"\n"
            );
        }
    }
    for host in 1..=hosts {
        for (vm, datastore) in ["fast", "slow"].into_iter().enumerate() {
            let workload = draw.one(&[
                "threads = 64",
                "threads = 8\nread = \"50%\"\nsize = \"64k\"",
                "arrival = \"fixed\"\nrate = 10000",
                "arrival = \"poisson\"\nrate = 5000\nread = \"30%\"",
            ]);
            let _ = write!(
                text,
                "[vm.v{vm}-{host}]\nhost = \"esx-{host}\"\n[vm.v{vm}-{host}.disk.\"scsi0:0\"]\n\
                 datastore = \"{datastore}\"\n[vm.v{vm}-{host}.workload]\n{workload}\n"
            );
        }
    }
    text += &events(&mut draw, hosts);
    text + "[[window]]\nname = \"late\"\nfrom = \"10.3ms\"\n"
}

/// What happens to a cluster of so many hosts.
fn events(draw: &mut Draw, hosts: u64) -> String {
    let mut text = String::new();
    for _ in 0..draw.below(7) {
        let (at, host) = (1 + draw.below(38), 1 + draw.below(hosts));
        let other = 1 + host % hosts;
        let deed = match draw.below(6) {
            0 => format!("vm = \"v0-{host}\"\nmigrate = \"esx-{other}\""),
            1 => format!("vm = \"v1-{host}\"\npower = \"off\""),
            2 => "datastore = \"fast\"\nstate = \"silent\"".to_owned(),
            3 => "datastore = \"fast\"\nstate = \"up\"".to_owned(),
            4 => format!("host = \"esx-{host}\"\nreboot = true"),
            _ => format!("remove = {{ vm = \"v0-{host}\" }}"),
        };
        let _ = write!(text, "[[event]]\nat = \"{at}ms\"\n{deed}\n");
    }
    text
}

/// Everything that a run yields.
fn told(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

fn together(scenario: &Scenario) -> String {
    told(&run_watched(scenario, ()).0)
}

#[test]
fn hosts_that_run_apart_do_what_they_do_together() {
    for seed in 1..=20 {
        let scenario = common::scenario(&cluster(seed));
        let expected = together(&scenario);
        for threads in [1, 2, 3, 8] {
            let found = told(&run(&scenario, threads, &()));
            assert!(found == expected, "seed {seed} on {threads} threads");
        }
    }
}

/// A round trip of 3 ms, 30 hosts with 128 outstanding each: windows with so many commands go to threads.
#[test]
fn windows_with_many_commands_are_the_same_on_several_threads() {
    let mut text = String::from(
        "title = \"Many\"\nduration = \"30ms\"\n[array.a]\nservers = 4000\nservice = \"0.2ms\"\n\
         round_trip = \"3ms\"\nqueue_limit = 3900\n[datastore.a]\n[host.esx]\ncount = 30\n\
         [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\nlun_depth = 128\n",
    );
    for host in 1..=30 {
        let _ = write!(
            text,
            "[vm.v{host}]\nhost = \"esx-{host}\"\n[vm.v{host}.disk.\"scsi0:0\"]\ndatastore = \"a\"\n\
             [vm.v{host}.workload]\nthreads = 160\n"
        );
    }
    let scenario = common::scenario(&text);
    let expected = together(&scenario);
    for threads in [2, 3, 8] {
        assert!(told(&run(&scenario, threads, &())) == expected, "{threads} threads");
    }
}

/// Thirty hosts on arrays of their own, a round trip of 3 ms away, have the link of a switch in common and nothing else.
#[test]
fn hosts_that_share_a_link_of_a_switch_alone_are_the_same_on_several_threads() {
    let mut text =
        String::from("title = \"Link\"\nduration = \"60ms\"\n[switch.edge]\nlink = \"20GB/s\"\n");
    for host in 1..=30 {
        let _ = write!(
            text,
            "[array.a{host}]\nservers = 4000\nservice = \"0.2ms\"\nround_trip = \"3ms\"\n\
             [datastore.a{host}]\narray = \"a{host}\"\nhosts = \"h{host}\"\n\
             [host.h{host}.adapter.vmhba1]\ndriver = \"qlnativefc\"\nlun_depth = 128\nswitch = \"edge\"\n\
             [vm.v{host}]\nhost = \"h{host}\"\n[vm.v{host}.disk.\"scsi0:0\"]\ndatastore = \"a{host}\"\n\
             [vm.v{host}.workload]\nthreads = 160\nsize = \"64k\"\nread = \"50%\"\n"
        );
    }
    let scenario = common::scenario(&text);
    assert_eq!(scenario.parts().len(), 1);
    let expected = together(&scenario);
    for threads in [1, 2, 8] {
        assert!(told(&run(&scenario, threads, &())) == expected, "{threads} threads");
    }
    // A switch without a limit is nothing that they share.
    let apart = common::scenario(&text.replace("link = \"20GB/s\"\n", ""));
    assert_eq!(apart.parts().len(), 30);
}
