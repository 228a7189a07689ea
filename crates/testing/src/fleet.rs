//! Hosts as their outputs of esxcli show them, drawn from a seed, with settings that were changed on some
//! of them on purpose: what a comparison has to find, and nothing else.
//!
//! The outputs have the keys, headings and order of real ones [LIST8, ELA, QD254]. Nothing here knows what
//! kavg makes of them.

use std::fmt::Write;

/// What was changed on purpose, on one host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planted {
    /// What it is: `driver-depth`, `max-queue-depth`, `dsnro`, `queue-full`, `path-policy` or `option`.
    pub kind: &'static str,
    /// The device, where it is of one.
    pub device: Option<String>,
    /// The host.
    pub host: String,
    /// What it was changed to, as kavg prints it.
    pub value: String,
}

/// How many there are, and how often something is changed.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Hosts.
    pub hosts: usize,
    /// Shared devices.
    pub devices: usize,
    /// Of how many things of a host one was changed.
    pub one_in: u64,
}

/// A host as it was drawn.
#[derive(Clone, Debug)]
pub struct DrawnHost {
    /// Its name.
    pub name: String,
    /// Its driver: module, parameter and default.
    pub driver: (&'static str, &'static str, u32),
    /// The depth that its module was set to when it booted.
    pub depth: Option<u32>,
    /// The depth that its module has been set to since.
    pub staged: Option<u32>,
    /// Advanced options and their values.
    pub options: Vec<(&'static str, u32)>,
    /// Its devices.
    pub devices: Vec<DrawnDevice>,
}

/// A device as a host has it.
#[derive(Clone, Debug)]
pub struct DrawnDevice {
    /// Its name.
    pub name: String,
    /// Device Max Queue Depth.
    pub max_depth: u32,
    /// DSNRO.
    pub dsnro: u32,
    /// Queue Full Sample Size and Threshold.
    pub queue_full: (u32, u32),
    /// Of round robin, or `None` for a fixed path.
    pub iops: Option<u32>,
}

/// Random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, number: u64) -> u64 {
        self.next() % number
    }

    fn of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }
}

const DRIVERS: [(&str, &str, u32); 3] = [
    ("qlnativefc", "ql2xmaxqdepth", 64),
    ("nfnic", "lun_queue_depth_per_path", 32),
    ("iscsi_vmk", "iscsivmk_LunQDepth", 128),
];
const OPTIONS: [(&str, u32, &[u32]); 3] = [
    ("/Disk/DiskMaxIOSize", 32_767, &[1024, 4096]),
    ("/Disk/QFullSampleSize", 0, &[32]),
    ("/VMFS3/HardwareAcceleratedLocking", 1, &[0]),
];

/// Draws hosts that are alike, and changes some of them. Of each thing fewer than half of the hosts are
/// changed, so that it is clear which value most have.
#[must_use]
pub fn draw(seed: u64, size: Size) -> (Vec<DrawnHost>, Vec<Planted>) {
    let mut random = Random(seed);
    let driver = random.of(&DRIVERS);
    // In half of all fleets every host has a depth of its own choice.
    let depth = (random.below(2) == 0).then(|| random.of(&[48, 96, 192]));
    let in_force = depth.unwrap_or(driver.2);
    let device = |place: usize, random: &mut Random| DrawnDevice {
        name: format!("naa.624a93704bfab20d4b694df7{place:08x}"),
        max_depth: in_force,
        dsnro: random.of(&[32, 32, 32, 24]),
        queue_full: random.of(&[(0, 0), (0, 0), (32, 4)]),
        iops: random.of(&[None, Some(1000), Some(1000), Some(1)]),
    };
    let devices: Vec<_> = (0..size.devices).map(|place| device(place, &mut random)).collect();
    let options = OPTIONS.iter().map(|(path, default, _)| (*path, *default)).collect();
    let host = DrawnHost { name: String::new(), driver, depth, staged: None, options, devices };
    let mut hosts: Vec<_> = (0..size.hosts)
        .map(|place| DrawnHost { name: format!("esx{place:04}"), ..host.clone() })
        .collect();
    let mut planted = Vec::new();
    plant_modules(&mut random, size, &mut hosts, &mut planted);
    plant_drivers(&mut random, size, &mut hosts, &mut planted);
    for (option, (_, _, others)) in OPTIONS.iter().enumerate() {
        for host in few(&mut random, size) {
            let value = random.of(others);
            let (path, known) = &mut hosts[host].options[option];
            *known = value;
            let path = (*path).to_owned();
            planted.push(Planted {
                kind: "option",
                device: Some(path),
                host: hosts[host].name.clone(),
                value: value.to_string(),
            });
        }
    }
    for place in 0..size.devices {
        plant_device(&mut random, size, place, &mut hosts, &mut planted);
    }
    (hosts, planted)
}

/// Fewer than half of the hosts, each once; mostly none.
fn few(random: &mut Random, size: Size) -> Vec<usize> {
    let most = size.hosts.saturating_sub(1) / 2;
    let mut those = Vec::new();
    for _ in 0..most.min(3) {
        if random.below(size.one_in) == 0 {
            let host = random.below(size.hosts as u64) as usize;
            if !those.contains(&host) {
                those.push(host);
            }
        }
    }
    those
}

/// Another depth of the module, which its devices follow: both are different then.
fn plant_modules(
    random: &mut Random,
    size: Size,
    hosts: &mut [DrawnHost],
    planted: &mut Vec<Planted>,
) {
    for place in few(random, Size { one_in: 2, ..size }) {
        let depth = random.of(&[40, 80, 160]);
        let host = &mut hosts[place];
        host.depth = Some(depth);
        let mut is_now = |kind, device| {
            let value = depth.to_string();
            planted.push(Planted { kind, device, host: host.name.clone(), value });
        };
        is_now("driver-depth", None);
        for device in &mut host.devices {
            device.max_depth = depth;
            is_now("max-queue-depth", Some(device.name.clone()));
        }
    }
}

/// Another driver, with the depth that it comes with, or a depth of the module that no boot has brought yet.
fn plant_drivers(
    random: &mut Random,
    size: Size,
    hosts: &mut [DrawnHost],
    planted: &mut Vec<Planted>,
) {
    for place in few(random, size) {
        let (is_other, driver) = (random.below(2) == 0, random.of(&DRIVERS));
        let host = &mut hosts[place];
        if driver == host.driver || planted.iter().any(|known| known.host == host.name) {
            continue;
        }
        let mut is_now = |kind, device, value: u32| {
            let value = value.to_string();
            planted.push(Planted { kind, device, host: host.name.clone(), value });
        };
        if is_other {
            (host.driver, host.depth) = (driver, None);
            for device in &mut host.devices {
                device.max_depth = driver.2;
                is_now("max-queue-depth", Some(device.name.clone()), driver.2);
            }
        } else {
            host.staged = Some(200);
            is_now("driver-depth", None, 200);
        }
    }
}

fn plant_device(
    random: &mut Random,
    size: Size,
    place: usize,
    hosts: &mut [DrawnHost],
    planted: &mut Vec<Planted>,
) {
    let kinds = ["max-queue-depth", "dsnro", "queue-full", "path-policy"];
    for kind in kinds {
        for host in few(random, size) {
            let host = &mut hosts[host];
            let device = &mut host.devices[place];
            let name = device.name.clone();
            let value = match kind {
                "max-queue-depth" => {
                    // One that follows a changed driver stays as it is.
                    if planted.iter().any(|known| {
                        known.host == host.name
                            && (known.kind == "driver-depth"
                                || known.kind == kind && known.device.as_ref() == Some(&name))
                    }) {
                        continue;
                    }
                    device.max_depth -= 7;
                    device.max_depth.to_string()
                }
                "dsnro" => {
                    // As deep as the device, but for what is nearer to its vendor's 32 than any other has.
                    let deep = if device.max_depth > 40 { device.max_depth } else { 16 };
                    device.dsnro = random.of(&[8, 16, deep]);
                    device.dsnro.to_string()
                }
                "queue-full" => {
                    device.queue_full = random.of(&[(16, 2), (64, 8)]);
                    format!("{}/{}", device.queue_full.0, device.queue_full.1)
                }
                _ => {
                    device.iops = Some(random.of(&[10, 20]));
                    format!("VMW_PSP_RR iops={}", device.iops.unwrap_or_default())
                }
            };
            planted.push(Planted { kind, device: Some(name), host: host.name.clone(), value });
        }
    }
}

impl DrawnHost {
    /// What it prints, one command behind the other.
    #[must_use]
    pub fn outputs(&self) -> String {
        let mut out = String::new();
        out.push_str("   Product: VMware ESXi\n   Version: 7.0.3\n   Build: Releasebuild-1\n");
        let (module, parameter, default) = self.driver;
        let _ = write!(
            out,
            "HBA Name  Driver      Link State  UID   Capabilities  Description\n\
             --------  ----------  ----------  ----  ------------  -----------\n\
             vmhba0    vmw_ahci    link-n/a    sata                SATA\n\
             vmhba1    {module:<10}  link-up     fc.1                A port\n"
        );
        let depth = self.staged.or(self.depth);
        let depth = depth.map(|depth| depth.to_string()).unwrap_or_default();
        let _ = write!(
            out,
            "Name                      Type  Value  Description\n\
             ------------------------  ----  -----  -----------\n\
             {parameter:<24}  int   {depth:<5}  Depth: Default = {default}\n"
        );
        for (path, value) in &self.options {
            let _ = write!(
                out,
                "   Path: {path}\n   Type: integer\n   Int Value: {value}\n   Default Int Value: 1\n   \
                 Min Value: 0\n   Max Value: 9\n   String Value:\n   Description: An option\n\n"
            );
        }
        out.push_str("mpx.vmhba0:C0:T0:L0\n   Vendor: ATA\n   Model: Disk\n   Is Local: true\n");
        out.push_str(
            "   Device Max Queue Depth: 31\n   No of outstanding IOs with competing worlds: 31\n\n",
        );
        self.devices.iter().for_each(|device| device.list(&mut out));
        self.devices.iter().for_each(|device| device.nmp(&mut out));
        out
    }
}

impl DrawnDevice {
    /// `storage core device list` [LIST8]
    fn list(&self, out: &mut String) {
        let Self { name, max_depth, dsnro, queue_full: (sample, threshold), .. } = self;
        let _ = write!(
            out,
            "{name}\n   Display Name: PURE Fibre Channel Disk ({name})\n   Has Settable Display Name: \
             true\n   Size: 1048576\n   Device Type: Direct-Access\n   Multipath Plugin: NMP\n   Devfs \
             Path: /vmfs/devices/disks/{name}\n   Vendor: PURE    \n   Model: FlashArray      \n   \
             Revision: 8888\n   SCSI Level: 6\n   Is Pseudo: false\n   Status: on\n   Is RDM Capable: \
             true\n   Is Local: false\n   Is Removable: false\n   Is SSD: true\n   Is VVOL PE: false\n   \
             Is Offline: false\n   Is Perennially Reserved: false\n   Queue Full Sample Size: {sample}\n   \
             Queue Full Threshold: {threshold}\n   Thin Provisioning Status: yes\n   Attached Filters:\n   \
             VAAI Status: supported\n   Other UIDs: vml.02000000{name}\n   Is Shared Clusterwide: true\n   \
             Is SAS: false\n   Is USB: false\n   Is Boot Device: false\n   Device Max Queue Depth: \
             {max_depth}\n   No of outstanding IOs with competing worlds: {dsnro}\n   Drive Type: \
             unknown\n   RAID Level: unknown\n   Number of Physical Drives: unknown\n   Protection \
             Enabled: false\n   PI Activated: false\n   PI Type: 0\n   PI Protection Mask: NO \
             PROTECTION\n   Supported Guard Types: NO GUARD SUPPORT\n   DIX Enabled: false\n   DIX Guard \
             Type: NO GUARD SUPPORT\n   Emulated DIX/DIF Enabled: false\n\n"
        );
    }

    /// `storage nmp device list` [ELA]
    fn nmp(&self, out: &mut String) {
        let Self { name, iops, .. } = self;
        let (plug_in, config) = match iops {
            None => {
                ("VMW_PSP_FIXED", "{preferred=vmhba1:C0:T0:L1;current=vmhba1:C0:T0:L1}".to_owned())
            }
            Some(iops) => {
                let kind = if *iops == 1000 { "rr" } else { "iops" };
                let config = format!(
                    "{{policy={kind},iops={iops},bytes=10485760,useANO=0; lastPathIndex=1: \
                     NumIOsPending=0,numBytesPending=0}}"
                );
                ("VMW_PSP_RR", config)
            }
        };
        let _ = write!(
            out,
            "{name}\n   Device Display Name: PURE Fibre Channel Disk ({name})\n   Storage Array Type: \
             VMW_SATP_ALUA\n   Storage Array Type Device Config: {{implicit_support=on}}\n   Path \
             Selection Policy: {plug_in}\n   Path Selection Policy Device Config: {config}\n   Path \
             Selection Policy Device Custom Config:\n   Working Paths: vmhba1:C0:T0:L1, \
             vmhba1:C0:T1:L1\n   Is USB: false\n\n"
        );
    }
}
