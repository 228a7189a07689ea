//! The host's own link, where a datastore is no SCSI device.

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
