//! A capture in the making: a host drawn at random and healthy, to which a family adds its trouble.

use std::ops::Range;

use super::host::{
    Adapter, Controller, Demand, Device, Flow, FlowNow, Host, Media, Moment, Path, Vm,
};
use super::random::Random;
use super::recording::Effect;
use super::truth::Claim;

/// A capture in the making.
pub(super) struct Plan {
    pub(super) random: Random,
    pub(super) host: Host,
    pub(super) effects: Vec<Effect>,
    pub(super) claims: Vec<Claim>,
}

/// Depths per LUN by driver: qlnativefc 64, lpfc, bfa, fnic and nfnic 32, iscsi_vmk 128 (section 3),
/// and the 254 that the field sets.
const DEPTHS: [u32; 7] = [32, 64, 64, 128, 128, 254, 256];

/// AQLEN (section 3): FC ports, the live 1,014 of QLogic, software iSCSI's 1,024.
const ADAPTER_DEPTHS: [u32; 4] = [1014, 1024, 2048, 4096];

/// What the names of an array's volumes begin with: [S4]'s, and those of section 5.
const ARRAYS: [&str; 3] = [
    "naa.6f47acc100000000736f6c696400",
    "naa.6006016094602800e07ff528b73a",
    "naa.600144f009d4d236000056918f92",
];

/// Names that administrators give, those that readers stumble on among them (sections 1.6 and 5.10).
const VM_NAMES: [&str; 12] = [
    "sql01",
    "web-front-2",
    "Ubuntu 14.04-LTS Server (20160602)_10.62.59.186",
    "exch_mbx_04",
    "backup, nightly",
    "dc01.corp.example",
    "SQL02 (df09cdf2-1e74-45fb-9ccc-90d1c402fc6b)",
    "oracle-rac-node1",
    "vdi-pool-0113",
    "jenkins",
    "file%2fserver",
    "test:scsi",
];

/// Rows of which a twentieth is one.
pub(super) const MANY_ROWS: usize = 20;

impl Plan {
    /// A host with some healthy load, of so many rows at most, of so many devices together.
    pub(super) fn draw(name: &str, most_rows: usize, most_devices: usize) -> Self {
        let mut random = Random::of(name);
        let rows = random.log_between(4.0, most_rows as f64) as usize;
        let host = Host {
            name: random
                .pick(&["localhost.localdomain", "esx01.lab.local", "ESX-PROD-07", "localhost"])
                .to_owned(),
            old: random.chance(0.2),
            all: random.chance(0.75),
            trailing_comma: random.chance(0.5),
            interval_s: random.pick(&[2, 4, 5, 5, 5, 10, 20]),
            rows,
            garbage: random.chance(0.15) && rows >= MANY_ROWS,
            adapters: Vec::new(),
            devices: Vec::new(),
            vms: Vec::new(),
            flows: Vec::new(),
        };
        let mut plan = Self { random, host, effects: Vec::new(), claims: Vec::new() };
        plan.adapters();
        plan.background(most_devices);
        let depth = plan.random.pick(&DEPTHS);
        plan.driver_depth(depth);
        plan
    }

    fn adapters(&mut self) {
        let depth = self.random.pick(&ADAPTER_DEPTHS);
        let first = self.random.pick(&[0, 1, 2, 32, 64]);
        for number in 0..self.random.pick(&[1, 2, 2, 2, 4]) {
            self.host.adapters.push(Adapter { name: format!("vmhba{}", first + number), depth });
        }
    }

    /// Devices that do their work and no more: a tenth of what they can.
    fn background(&mut self, most_devices: usize) {
        let most = (most_devices / self.host.rows).clamp(1, 40);
        let devices = self.random.log_between(1.0, 1.0 + most as f64) as usize;
        let media = self.media();
        for _ in 0..devices {
            let device = self.device(media);
            for _ in 0..self.random.pick(&[0, 1, 1, 2, 3]) {
                let vm = self.vm();
                let Device { service_ms, servers, .. } = self.host.devices[device];
                let room = 0.1 * servers.min(20.0) / service_ms * 1e3 / 3.0;
                let iops = self.random.log_between(0.2, room.min(3000.0));
                let flow = self.flow(vm, device, Demand::Open(iops));
                self.host.flows[flow].varies = self.random.between(0.05, 0.5);
            }
        }
    }

    pub(super) fn media(&mut self) -> Media {
        if self.random.chance(0.6) { Media::Flash } else { Media::Spindle }
    }

    /// A device on the host's adapters, with nothing on it.
    pub(super) fn device(&mut self, media: Media) -> usize {
        let number = self.host.devices.len();
        let random = &mut self.random;
        // The two-parameter fits of array-and-control.md section 1 span 0.36 ms and 83 servers
        // (flash) to 3 ms and 10 servers (ten spindles); 15k to 7.2k discs answer in 5 to 12 ms (7.2).
        let (service_ms, servers) = match media {
            Media::Flash => (random.between(0.15, 0.6), random.between(60.0, 130.0)),
            Media::Spindle => (random.between(2.5, 6.0), random.between(12.0, 90.0)),
        };
        let depth = random.pick(&DEPTHS);
        let target = random.within(0..4);
        let count = random.pick(&[1, 1, 2]);
        let mut paths = Vec::new();
        for adapter in 0..self.host.adapters.len() {
            for target in target..target + count {
                let name = format!("{}:C0:T{target}:L{number}", self.host.adapters[adapter].name);
                paths.push(Path { name, adapter });
            }
        }
        let prefix = random.pick(&[
            "naa.600508b1001c87660c0bd32f",
            "naa.60000970000197800380533030",
            "eui.0025385b71b0",
            "t10.ATA_____ST2000DM006__",
        ]);
        self.host.devices.push(Device {
            name: format!("{prefix}{number:04x}"),
            nfs: false,
            media,
            depth,
            dsnro: 32,
            service_ms,
            servers,
            paths,
            round_robin: random.chance(0.6),
        });
        number
    }

    /// What the driver allows each LUN, unless a trouble stands on it already.
    pub(super) fn driver_depth(&mut self, depth: u32) {
        if self.claims.is_empty() {
            self.host.devices.iter_mut().for_each(|device| device.depth = depth);
        }
    }

    /// A device without trouble of its own, deep enough for `commands`.
    pub(super) fn deep_device(&mut self, media: Media, commands: u32) -> usize {
        let device = self.device(media);
        self.host.devices[device].depth = self.random.pick(&[128, 254, 256, 1023]).max(commands);
        self.host.devices[device].dsnro = self.host.devices[device].depth;
        device
    }

    /// The same, a volume of an array by its name: a trouble of the array's is on no disk of the host's own.
    pub(super) fn volume(&mut self, media: Media, commands: u32) -> usize {
        let device = self.deep_device(media, commands);
        let array = self.random.pick(&ARRAYS);
        self.host.devices[device].name = format!("{array}{device:04x}");
        device
    }

    pub(super) fn vm(&mut self) -> usize {
        let number = self.host.vms.len();
        let base = self.random.pick(&VM_NAMES);
        let name =
            if number < 3 { format!("{base}-{number}") } else { format!("vm{number:03}-{base}") };
        let controller = self.random.pick(&[
            Controller::Pvscsi,
            Controller::Pvscsi,
            Controller::Lsi,
            Controller::Nvme,
        ]);
        let world = 440_000 + 37 * number as u32;
        self.host.vms.push(Vm { name, group: 1_300_000 + 11 * number as u32, world, controller });
        number
    }

    pub(super) fn vm_with(&mut self, controller: Controller) -> usize {
        let vm = self.vm();
        self.host.vms[vm].controller = controller;
        vm
    }

    /// A virtual disk with the depth of its virtual adapter (section 1.2).
    pub(super) fn flow(&mut self, vm: usize, device: usize, demand: Demand) -> usize {
        let target = self.host.flows.iter().filter(|flow| flow.vm == vm).count() as u32;
        let limit = match self.host.vms[vm].controller {
            Controller::Pvscsi => 64.0,
            Controller::Lsi => 32.0,
            Controller::Nvme => 256.0,
        };
        let now = FlowNow {
            demand,
            limit,
            reads: self.random.between(0.0, 1.0),
            kib: self.random.pick(&[4.0, 8.0, 8.0, 16.0, 32.0, 64.0]),
            limit_iops: None,
            qos_iops: None,
        };
        let varies = self.random.between(0.0, 0.1);
        // Target 7 is the virtual adapter itself.
        let target = if target >= 7 { target + 1 } else { target };
        self.host.flows.push(Flow { vm, target, device, now, varies });
        self.host.flows.len() - 1
    }

    /// `vms` VMs with one virtual disk each on a device.
    pub(super) fn flows(
        &mut self,
        device: usize,
        controller: Controller,
        demands: &[Demand],
    ) -> Vec<usize> {
        demands
            .iter()
            .map(|demand| {
                let vm = self.vm_with(controller);
                self.flow(vm, device, *demand)
            })
            .collect()
    }

    /// The rows of a trouble: all that count, or some of them.
    pub(super) fn window(&mut self, least: usize) -> Range<usize> {
        self.host.rows = self.host.rows.max(least + 1);
        let rows = self.host.rows;
        if self.random.chance(0.4) || rows <= least + 2 {
            return 1..rows;
        }
        let length = self.random.within(least..rows - 1);
        let start = self.random.within(1..rows - length + 1);
        start..(start + length).min(rows)
    }

    /// In these rows alone the host is changed.
    pub(super) fn during(
        &mut self,
        rows: Range<usize>,
        change: impl Fn(usize, &mut Moment) + 'static,
    ) {
        self.effects.push(Box::new(move |row, moment| {
            if rows.contains(&row) {
                change(row, moment);
            }
        }));
    }

    /// A load that comes in these rows, and is light outside of them.
    pub(super) fn load(&mut self, rows: Range<usize>, flow: usize, demand: Demand) {
        self.host.flows[flow].now.demand = Demand::Open(self.random.between(5.0, 30.0));
        self.during(rows, move |_, moment| moment.flows[flow].demand = demand);
    }

    /// Recorded with all counters.
    pub(super) fn all_counters(&mut self) {
        self.host.all = true;
    }

    pub(super) fn claim(&mut self, claim: Claim) {
        self.claims.push(claim);
    }
}
