//! What the fuzzer begins with: small sound inputs of every target, made here or taken from the
//! scenarios of the project. They stand beside the recordings, below the targets.

use std::{
    io::{self, Write},
    path::Path,
};

use counters::{MILLISECOND, Op, Recording, Time, VdiskId};
use engine::{Engine, HostConfig, Input, Request};
use journal::{Files, Journal, Limits};
use scenario::Scenario;

use super::{gzip, recording::Host, written};

/// Lines of a control socket, from either side.
const CONTROL: [&str; 4] = [
    "{\"version\":1,\"ask\":{\"set\":\"storage core device set -d naa.1 -O 64\"},\"host\":\"h\"}\n",
    "{\"version\":1,\"layout\":{\"host\":\"h\",\"objects\":[{\"kind\":\"device\",\"name\":\"naa.1\",\
     \"device\":null,\"adapter\":null,\"vm\":null,\"controller\":null,\"process\":null}],\
     \"columns\":[[0,\"dqlen\"]]}}\n",
    "{\"version\":1,\"row\":{\"at_ms\":1795370000000,\"values\":[2048.0,null]}}\n",
    "{\"version\":1,\"error\":\"no\"}\n",
];

/// Outputs of esxcli, shortened.
const ESXCLI: [&str; 4] = [
    "naa.600a0b80001111550000f35b93e19350\n   Display Name: Disk\n   Device Max Queue Depth: 64\n   \
     No of outstanding IOs with competing worlds: 32\n   Queue Full Sample Size: 0\n   \
     Queue Full Threshold: 0\n   Devfs Path: /vmfs/devices/disks/naa.600\n",
    "naa.600a0b80001111550000f35b93e19350\n   Device Display Name: Disk\n   \
     Path Selection Policy: VMW_PSP_RR\n   Path Selection Policy Device Config: \
     {policy=rr,iops=1000,bytes=10485760}\n   Working Paths: vmhba1:C0:T0:L1, vmhba2:C0:T0:L1\n",
    "HBA Name  Driver  Link State  UID               Capabilities  Description\n\
     --------  ------  ----------  ----------------  ------------  -----------\n\
     vmhba1    nfnic   link-up     fc.20:21          Second Level  Cisco UCS\n",
    "Name             Type  Value  Description\n---------------  ----  -----  -----------\n\
     lpfc_lun_queue_depth  int   64  Max number of commands to a LUN, 1 to 512\n",
];

const VSCSISTATS: &str = "\
Histogram: latency of IOs in Microseconds (us),virtual machine worldGroupID,2099979,virtual disk \
handleID,8194 (scsi0:1)
min,120
max,9000
mean,400
count,100
Frequency,Histogram Bucket Limit
10,100
86,500
4,1000
0,1000
";

const KNOB_LINES: [&str; 7] = [
    "storage core device set -d naa.600a0b80001111550000f35b93e19350 -O 64",
    "esx-1: system module parameters set -m fnic -p fnic_max_qdepth=64",
    "storage nmp psp roundrobin deviceconfig set -d naa.600a0b80001111550000f35b93e19350 -t iops -I 1",
    "system settings advanced set -o /Disk/SchedQuantum -i 16",
    "v: vmw_pvscsi.cmd_per_lun=254 vmw_pvscsi.ring_pages=32",
    "Get-VM v | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk -VM v) -DiskSharesLevel High",
    "Get-AdvancedSetting -Entity (Get-VMHost esx-1) -Name Disk.SchedQuantum | Set-AdvancedSetting -Value 16",
];

const PARAMETER_FILES: [&str; 2] = [
    "[global]\nbs=4k\nrw=randrw\nrwmixread=70\niodepth=32\nruntime=60\n[job]\nrate_iops=1000\n",
    "sd=sd1,lun=/dev/sdb,threads=32\nwd=wd1,sd=sd*,xfersize=4k,rdpct=70,seekpct=100\n\
     rd=run1,wd=wd1,iorate=max,elapsed=60,interval=1\n",
];

/// Seeds of every target: target, number, bytes. `root` is the root of the project.
#[must_use]
pub fn seeds(root: &Path) -> Vec<(&'static str, usize, Vec<u8>)> {
    let captures: Vec<Vec<u8>> = [0, 90].map(|fill| written(&host(fill))).into();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(captures[0].as_slice(), level);
    let formed = |form: u8, bytes: &[u8]| [&[form], bytes].concat();
    let compressed = [
        formed(0, &gzip(&captures[0])),
        formed(0, &zstd),
        formed(1, &captures[0]),
        formed(2, &captures[1]),
        formed(3, &super::zip(&captures[0])),
        formed(3, &captures[1]),
    ];
    let bytes = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let shapes = || (1..8_u8).map(|number| noise(number, 400)).collect();
    let all: [(_, Vec<Vec<u8>>); 15] = [
        ("reader", captures),
        ("compressed", compressed.into()),
        ("esxcli", bytes(&ESXCLI)),
        ("vscsistats", bytes(&[VSCSISTATS])),
        ("writer", shapes()),
        ("anonymize", shapes()),
        ("diagnose", shapes()),
        ("scenario", scenarios(root)),
        ("knob_line", bytes(&KNOB_LINES)),
        ("parameter_file", bytes(&PARAMETER_FILES)),
        ("journal", journals(root)),
        ("nbd", vec![client()]),
        ("virtio", vec![ring()]),
        ("vhost_user", vec![front_end()]),
        ("control", bytes(&CONTROL)),
    ];
    let numbered = |(target, seeds): (&'static str, Vec<Vec<u8>>)| {
        seeds.into_iter().enumerate().map(move |(number, bytes)| (target, number, bytes))
    };
    all.into_iter().flat_map(numbered).collect()
}

/// A client of NBD that agrees on an export, writes, reads it and goes.
fn client() -> Vec<u8> {
    const FLAGS: &[u8] = &[0, 0, 0, 3];
    const STRUCTURED: &[u8] = b"IHAVEOPT\0\0\0\x08\0\0\0\0";
    const GO: &[u8] = b"IHAVEOPT\0\0\0\x07\0\0\0\x09\0\0\0\x01a\0\x01\0\x03";
    let request = |kind: u8, length: u16| {
        let head = [0x25, 0x60, 0x95, 0x13, 0, 0, 0, kind, 0, 0, 0, 0, 0, 0, 0, kind];
        let [high, low] = length.to_be_bytes();
        [head.as_slice(), &[0; 10], &[high, low]].concat()
    };
    let requests = [request(1, 512), vec![7; 512], request(0, 512), request(3, 0), request(2, 0)];
    [FLAGS, STRUCTURED, GO, &requests.concat()].concat()
}

/// A guest's memory: a chain for a read, the ring that makes it available, and the head of the request.
fn ring() -> Vec<u8> {
    let chain = [(1024_u64, 16_u32, 1_u16, 1_u16), (4096, 512, 3, 2), (8192, 1, 2, 0)];
    let descriptor = |(at, bytes, flags, next): &(u64, u32, u16, u16)| {
        let ends = [*flags, *next].into_iter().flat_map(u16::to_le_bytes);
        at.to_le_bytes().into_iter().chain(bytes.to_le_bytes()).chain(ends).collect::<Vec<u8>>()
    };
    let mut memory: Vec<u8> = chain.iter().flat_map(descriptor).collect();
    memory.resize(1040, 0);
    memory[258] = 1;
    memory
}

/// What a front end says that sets a ring up.
fn front_end() -> Vec<u8> {
    let message = |(kind, words): (u32, &[u32])| {
        let head = [kind, 1, 4 * words.len() as u32];
        head.into_iter().chain(words.iter().copied()).flat_map(u32::to_ne_bytes).collect()
    };
    let talk: [(u32, &[u32]); 8] = [
        (1, &[]),
        (2, &[1 << 30, 1]),
        (5, &[1, 0, 0, 0, 65_536, 0, 65_536, 0, 0, 0]),
        (8, &[0, 16]),
        (10, &[0, 0]),
        (12, &[0, 0]),
        (9, &[0, 0, 65_536, 0, 66_048, 0, 65_792, 0, 0, 0]),
        (18, &[0, 1]),
    ];
    let messages: Vec<Vec<u8>> = talk.into_iter().map(message).collect();
    messages.concat()
}

/// A small host with two VMs.
fn host(fill: u32) -> Recording {
    let set = |names: [&str; 2]| names.map(String::from).into();
    let values = (fill..fill + 17).collect();
    Host::new("esx01", [set(["web (old)", "sql, main"]), set(["aa.1-2", "eui.3"])], values)
        .recording()
}

/// Bytes without a pattern, for targets that build a shape of them.
fn noise(number: u8, length: usize) -> Vec<u8> {
    let mut state = u32::from(number);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// What stands in the frames of the journal of a short run, and in those of a segment that begins with an
/// engine full of I/Os, after the length of the first.
fn journals(root: &Path) -> Vec<Vec<u8>> {
    let path = root.join("crates/sim/tests/common/small.toml");
    let text = std::fs::read_to_string(path).expect("a file of the project");
    let scenario = Scenario::parse("small.toml", &text, &mut |_| Err("there is none".into()));
    let scenario = scenario.expect("a sound scenario");
    let hosts = scenario.hosts.iter().map(|host| &host.config);
    let journal = Journal::new(Vec::new(), "small", hosts).expect("memory");
    let (_, journal) = sim::run_watched(&scenario, journal);
    let journal = journal.finish().expect("memory");
    vec![payload(&journal), payload(&segment(&scenario.hosts[0].config))]
}

/// Segments in memory.
struct Segments(Vec<Vec<u8>>);

impl Write for Segments {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.last_mut().map_or(Ok(0), |segment| segment.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Files for Segments {
    fn go_on(&mut self, _number: u64) -> io::Result<()> {
        self.0.push(Vec::new());
        Ok(())
    }
}

/// The second segment of a journal whose commands are never answered.
fn segment(config: &HostConfig) -> Vec<u8> {
    let mut engine = Engine::new(config);
    let limits = Limits { epoch_ms: 0, segment_bytes: 0 };
    let journal = Journal::of_real_time(Segments(vec![Vec::new()]), "small", [config], limits);
    let mut journal = journal.expect("memory");
    for step in 0..60_u32 {
        let vdisk = VdiskId::new(step as usize % config.vdisks.len());
        let (op, bytes) = (Op::Write, 4096 << (step % 12));
        let request = Request { vdisk, op, lba: 0, bytes, waited_ns: 0, tag: step };
        let (now, input) = (Time(u64::from(step) * 50 * MILLISECOND), Input::Submit(request));
        journal.go_on([&engine]);
        journal.input(0, now, &input);
        engine.handle_input(now, input).expect("it is taken");
        while let Some(output) = engine.poll_output() {
            journal.output(0, &output);
        }
    }
    journal.finish().expect("memory").0.swap_remove(1)
}

fn payload(journal: &[u8]) -> Vec<u8> {
    let mut rest = &journal[super::BEFORE_FRAMES.len()..];
    let mut payload = rest[..4].to_vec();
    while let Some((length, _)) = rest.split_first_chunk() {
        let (frame, after) = rest.split_at(super::FRAME + u32::from_le_bytes(*length) as usize);
        payload.extend(&frame[super::FRAME..]);
        rest = after;
    }
    let again = super::framed(&payload).and_then(|journal| journal::replay(&*journal).ok());
    assert!(again.is_some(), "what the fuzzer begins with is no journal");
    payload
}

/// The scenarios that ship and the one that has most keys.
fn scenarios(root: &Path) -> Vec<Vec<u8>> {
    let folder = |path: &str| std::fs::read_dir(root.join(path)).expect("a folder of the project");
    let files = folder("scenarios").chain(folder("crates/scenario/tests"));
    let mut paths: Vec<_> = files.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a file of the project")).collect()
}
