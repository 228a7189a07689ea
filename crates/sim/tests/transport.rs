//! A host's own ways to what it reaches: the link of its NFS client, and the windows of mounts and iSCSI sessions.

mod common;

use common::{close, figure, scenario};
use counters::{Counter, Kind};
use sim::run;

/// Two mounts on one host share its link, with a window and without, and the time for it is GAVG.
#[test]
fn all_nfs_datastores_of_a_host_share_its_link() {
    for slots in ["", "rpc_slots = 64"] {
        let text = format!(
            r#"
title = "1 Gbit/s"
duration = "4s"
warmup = "1s"
[array.a]
servers = 65536
queue = "shared"
service = "1ms"
spread = "constant"
[host.h]
nfs_link = "1Gbit/s"
adapter.vmhba0.driver = "vmw_ahci"
[datastore.ds]
count = 2
kind = "nfs"
{slots}
[vm.v]
count = 2
disk."scsi0:0".datastore = "ds"
workload = {{ threads = 32, size = "64k" }}
"#
        );
        let outcome = run(&scenario(&text), 1, &());
        let recording = &outcome.windows[0][0].recording;
        // 1e9 / 8 / 65,536 a second, in equal parts, and Little's law.
        let all = 1e9 / 8.0 / 65_536.0;
        for at in 1..=2 {
            let vm = |counter| figure(recording, Kind::Vm, &format!("v-{at}"), counter);
            close(vm(Counter::Commands), all / 2.0, 0.02);
            let datastore = format!("ds-{at}");
            let latency = figure(recording, Kind::NfsVolume, &datastore, Counter::GuestLatency);
            close(latency, 64.0 / all * 1e3, 0.02);
        }
    }
}

/// Commands a second of each VM of a run of 4 s, after the first.
fn shares(way: &str, vms: &str) -> Vec<f64> {
    let text = format!(
        r#"
title = "Equal VMs"
duration = "4s"
warmup = "1s"
[array.a]
servers = 65536
queue = "shared"
service = "2ms"
spread = "constant"
{way}
{vms}
"#
    );
    let outcome = run(&scenario(&text), 1, &());
    let recording = &outcome.windows[0][0].recording;
    let vms = recording.of_kind(Kind::Vm);
    vms.map(|(_, vm)| figure(recording, Kind::Vm, &vm.name, Counter::Commands)).collect()
}

/// Where all commands take equally long, answers come in crowds: each VM has its turn all the same, for what waits
/// for a window goes in order. A host that has NFS alone needs no adapter.
#[test]
fn equal_guests_have_equal_parts_of_a_window() {
    let equal = |found: Vec<f64>, number: usize, all: f64| {
        assert_eq!(found.len(), number);
        found.iter().for_each(|share| close(*share, all / number as f64, 0.005));
    };
    let nfs = "[host.h]\n[datastore.ds]\nkind = \"nfs\"\nrpc_slots = 16";
    let nexus = |more: &str| {
        format!(
            "[host.h.adapter.vmhba64]\ndriver = \"iscsi_vmk\"\niscsi = {{ window = 32 }}\n[datastore.ds]\n{more}"
        )
    };
    let vms = |count: u32, threads: u32, disk: &str| {
        format!(
            "[vm.v]\ncount = {count}\nguest = \"linux\"\ndisk.\"scsi0:0\".datastore = \"{disk}\"\n\
             workload = {{ threads = {threads} }}"
        )
    };
    equal(shares(nfs, &vms(4, 10, "ds")), 4, 16.0 / 2e-3);
    equal(shares(&nexus("dsnro = 128"), &vms(3, 20, "ds")), 3, 32.0 / 2e-3);
    equal(shares(&nexus("count = 2"), &vms(2, 30, "ds")), 2, 32.0 / 2e-3);
}

/// An iSCSI session is between two ports: twice as many at the array are twice as many windows, whatever else is said of them.
#[test]
fn each_port_of_an_array_has_a_session_of_its_own() {
    for ports in 1..=3_u32 {
        let way = format!(
            "ports = {ports}\n[host.h.adapter.vmhba64]\ndriver = \"iscsi_vmk\"\nlun_depth = 250\n\
             iscsi = {{ window = 64 }}\n[datastore.ds]\npaths = {ports}\npath_policy = \"rr\"\n\
             device = \"naa.60000000000000000000000000000001\"\n[[event]]\nat = \"0s\"\nesxcli = \"storage nmp psp roundrobin \
             deviceconfig set -d naa.60000000000000000000000000000001 -t iops -I 1\"\n"
        );
        let vm = "[vm.v]\nguest = \"linux\"\ndisk.\"scsi0:0\".datastore = \"ds\"\nworkload = { threads = 200 }";
        let all: f64 = shares(&way, vm).iter().sum();
        close(all, f64::from(64 * ports) / 2e-3, 0.01);
    }
}
