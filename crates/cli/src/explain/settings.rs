//! Settings of a host: those of a device, of a datastore, of a driver, and the advanced options. Those of
//! virtual disks stand in `disks`.

use knobs::{
    Advanced, AdvancedInfo, CONGESTION_MS, CONGESTION_MS_DEFAULT, DSNRO, Driver, Effect, IoControl,
    MEMORY, PathPolicy, PolicyChange, Setting, THRESHOLD, Transport, Version,
};

use super::Article;

/// Every setting of a host.
pub(crate) fn articles() -> Vec<Article> {
    let own =
        [dsnro(), max_queue_depth(), queue_full(), depth_by_latency(), congestion(), path_policy()];
    own.into_iter().chain(OPTIONS.iter().map(option)).collect()
}

/// Those of drivers.
pub(crate) fn drivers() -> Vec<Article> {
    let drivers = Driver::ALL.iter().map(|known| match known.transport {
        Transport::Network => nfs(known),
        _ => driver(known),
    });
    drivers.collect()
}

/// What something may be asked by.
pub(crate) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A number that stands for any in the lines that a setting is printed as.
pub(crate) const N: u32 = 77_777;

/// The line that sets something as it is typed, with N for its numbers.
pub(crate) fn line(setting: &Setting) -> String {
    as_typed(&setting.esxcli().or_else(|| setting.powercli()).unwrap_or_default())
}

/// A line as it is typed.
pub(crate) fn as_typed(line: &str) -> String {
    format!("$ {}", line.replace(&N.to_string(), "N"))
}

fn device() -> String {
    "DEVICE".into()
}

/// The lines that show what is set, as they are typed.
pub(crate) fn shown(setting: &Setting) -> String {
    setting.show().iter().map(|line| as_typed(line)).collect::<Vec<_>>().join("\n")
}

fn dsnro() -> Article {
    let (min, max) = (DSNRO.min, DSNRO.max);
    let switches = Advanced::SchedQControlVmSwitches.info();
    let run = Advanced::SchedQControlSeqReqs.info();
    let per_device = first_version(|version| !version.has_global_dsnro());
    let refusing = first_version(Version::refuses_dsnro_above_depth);
    let set = Setting::SchedNumReqOutstanding { device: device(), value: N };
    Article {
        names: names(&[
            "DSNRO",
            "sched-num-req-outstanding",
            "SchedNumReqOutstanding",
            "Disk.SchedNumReqOutstanding",
            "No of outstanding IOs with competing worlds",
            "-O",
        ]),
        title: "DSNRO: No of outstanding IOs with competing worlds".into(),
        sections: vec![
            ("What it is", "The limit on a device's outstanding commands on this host while several \
                VMs compete for it, all of them together: DQLEN falls to it and comes back. It keeps \
                one VM from crowding out the others of its datastore [S0, S1].".into()),
            ("When it acts", format!(
                "After {} switches between commands of different VMs ({}), until {} commands in a \
                 row come from one VM ({}) [LAMW]. With one VM on the device it never does. With \
                 Storage I/O Control on, that moves DQLEN instead [ELA 2012-07]. A value above \
                 Device Max Queue Depth raises nothing [S1].",
                switches.default, switches.path, run.default, run.path
            )),
            ("Default", format!(
                "{} in every version from {} on. Up to {} one option for the host, {}; from {per_device} on a \
                 setting of each device. Protocol endpoints of vVols have {} instead.",
                DSNRO.default,
                DSNRO.since.name(),
                DSNRO.until.name(),
                DSNRO.path,
                Advanced::VvolPesnro.info().path
            )),
            ("Range", format!(
                "{min} to {max}; from {refusing} on at most the device's own depth, and more is \
                 refused [S1, HP]."
            )),
            ("Read it", format!("{}\nand look for \"No of outstanding IOs with competing worlds\". In \
                esxtop it shows as DQLEN (screen u) that falls while VMs compete.", shown(&set))),
            ("Set it", format!("{}\nIt is set for each device, on every host that uses it.", line(&set))),
            ("In force", DSNRO.effect.text().into()),
            ("Leave alone", "Most environments should leave it: more for one VM is less for its \
                neighbours, and for other hosts on the array. Do not raise it where one VM alone fills \
                the queue (it has no say there), where DAVG is what is high, or above the device's \
                depth [S0].".into()),
        ],
    }
}

fn first_version(has: impl Fn(Version) -> bool) -> &'static str {
    Version::ALL.into_iter().find(|version| has(*version)).map_or("", Version::name)
}

fn max_queue_depth() -> Article {
    let set = Setting::MaxQueueDepth { device: device(), value: N };
    Article {
        names: names(&[
            "Device Max Queue Depth",
            "max-queue-depth",
            "MaxQueueDepth",
            "queue depth",
            "LUN queue depth",
            "LUN depth",
            "-m",
        ]),
        title: "Device Max Queue Depth".into(),
        sections: vec![
            ("What it is", "The most commands that a device may have outstanding on this host: what \
                its driver gives, or less where somebody set less. DQLEN is this while one VM has the \
                device to itself [S1, QD254].".into()),
            ("When it acts", "Always; DSNRO, adaptive throttling and Storage I/O Control only lower \
                what it allows.".into()),
            ("Default", "The depth of the driver: kavg explain drivers.".into()),
            ("Range", "1 to what the driver advertises; more is refused [QD254].".into()),
            ("Read it", format!("{}\nand look for \"Device Max Queue Depth\"; outputs of 5.5 do not have \
                the line [LIST5].", shown(&set))),
            ("Set it", format!("{}\nTo get more than the driver gives, its module's parameter has to be \
                raised first.", line(&set))),
            ("In force", Effect::AtOnce.text().into()),
            ("Leave alone", "A deeper queue helps only where commands wait for it (QUED above 0, KAVG \
                beside a low DAVG). On an array that is slow it moves the wait there [S0].".into()),
        ],
    }
}

fn queue_full() -> Article {
    let (size, threshold) = (Advanced::QFullSampleSize.info(), Advanced::QFullThreshold.info());
    let set = Setting::QueueFull { device: device(), sample_size: N, threshold: N };
    Article {
        names: names(&[
            "adaptive throttling",
            "throttling",
            "queue full",
            "TASK SET FULL",
            "QFULL",
            "queue-full-sample-size",
            "queue-full-threshold",
            "Queue Full Sample Size",
            "Queue Full Threshold",
            "-s",
            "-q",
        ]),
        title: "Adaptive queue depth throttling of a device".into(),
        sections: vec![
            (
                "What it is",
                "The host halves a device's depth when the array says that it is full, and \
                lets it climb back one by one [KB-QF]."
                    .into(),
            ),
            (
                "When it acts",
                "When as many of the last results as the threshold says, out of the \
                sample size, are TASK SET FULL or BUSY; so the array must send them."
                    .into(),
            ),
            (
                "Default",
                format!(
                    "Off: a sample size of {}; the threshold is {}. What a device has set \
                goes before {} and {}.",
                    size.default, threshold.default, size.path, threshold.path
                ),
            ),
            (
                "Range",
                format!(
                    "Sample size {} to {} (0: nothing of its own), threshold {} to {} and at most the \
                sample size [LAMW].",
                    size.min, size.max, threshold.min, threshold.max
                ),
            ),
            (
                "Read it",
                format!(
                    "{}\nand look for \"Queue Full Sample Size\" and \"Queue Full Threshold\". In \
                    esxtop DQLEN halves and climbs.",
                    shown(&set)
                ),
            ),
            ("Set it", line(&set)),
            ("In force", size.effect.text().into()),
            (
                "Leave alone",
                "Unless the array's vendor asks for it, and then on every host of its \
                ports: the others eat the slots that one gives up [KB-QF]."
                    .into(),
            ),
        ],
    }
}

fn depth_by_latency() -> Article {
    let set = Setting::DepthByLatency { device: device(), on: true };
    Article {
        names: names(&["depth by latency", "knee", "noisy neighbour", "noisy neighbor", "-l"]),
        title: "Device depth found by latency (kavg's own: no ESXi has it)".into(),
        sections: vec![
            (
                "What it is",
                "A limit of a device's depth that nobody has to set: DQLEN goes to where a command \
                takes twice what it takes alone. That is the knee: more commands wait inside the \
                device, where no share counts, and hardly more are done."
                    .into(),
            ),
            (
                "When it acts",
                "While more than one command is out. Each tenth of a second DQLEN \
                follows the latency by PARDA's law, with a threshold that is measured [PARDA]: now \
                and then the device gets one command at a time, 64 of them or for a second, and \
                for a fiftieth of the time at most [ENVOY, BBR]."
                    .into(),
            ),
            ("Default", "Off; in a scenario or a HOST.toml: depth_by_latency of a datastore.".into()),
            ("Range", "1 to what DSNRO, adaptive throttling and the device's depth allow.".into()),
            (
                "Read it",
                "DQLEN in esxtop (screen u) is the depth that was found; QUED waits where shares \
                count."
                    .into(),
            ),
            ("Set it", line(&set).replace("$ ", "$ kavg ")),
            ("In force", set.effect().text().into()),
            (
                "Leave alone",
                "A device that this host does not have to itself: what other hosts send to it makes a \
                command alone look slow."
                    .into(),
            ),
            (
                "Mind",
                "An array whose commands wait for one another from \
                the second on loses throughput at twice the time of one: of so many equal \
                servers with random work it keeps about half of what they can do at most."
                    .into(),
            ),
        ],
    }
}

fn congestion() -> Article {
    let of = |control| Setting::StorageIoControl { device: "DATASTORE".into(), control };
    let set = of(IoControl::DEFAULT.into());
    let counts = of(IoControl::Stats { threshold_us: 1000 * CONGESTION_MS_DEFAULT }.into());
    Article {
        names: names(&[
            "congestion threshold",
            "StorageIOControlEnabled",
            "Set-Datastore",
            "stats-only",
            "PARDA",
        ]),
        title: "Congestion threshold of Storage I/O Control".into(),
        sections: vec![
            (
                "What it is",
                "The latency of a datastore, over all of its hosts, from which on they share what its \
                array can do: the DQLEN of each goes to where the latency stays a little above the \
                threshold, and is as much of all as its disks' shares are of all shares [PARDA]."
                    .into(),
            ),
            (
                "When it acts",
                "Every 4 seconds: a window becomes a fifth of itself and four fifths of threshold / \
                latency of itself and the shares, 1,000 for 1. A disk that does not use its part counts \
                for as much less. DSNRO is ignored meanwhile [ELA]. Where latency stays although hosts hold \
                back, an external workload is told of in the log, and they begin anew [LUCD, YB-SIOC]. The sum of \
                the windows follows a step within three periods, their ratio within some minutes."
                    .into(),
            ),
            (
                "Default",
                format!(
                    "Off; {CONGESTION_MS_DEFAULT} ms where it is switched on and had none. In a \
                    scenario or a HOST.toml: congestion_threshold of a datastore, and stats_only. A share as 90% there is the \
                    automatic threshold, where throughput is so much of its peak; no line sets it [API]."
                ),
            ),
            (
                "Range",
                format!(
                    "{} to {} ms [API]; a host keeps 4 slots, and has no more than its device's depth.",
                    CONGESTION_MS.start(),
                    CONGESTION_MS.end()
                ),
            ),
            ("Read it", [set.show(), vec!["DQLEN in esxtop (screen u)".into()]].concat().join("\n")),
            (
                "Set it",
                format!(
                    "{}\n{}\nWhat a line leaves out stays: -{THRESHOLD} alone changes the threshold [API]. The second is the mode \
                    of statistics alone, as ESXi has it where nobody switched control on: nobody is held back, DSNRO \
                    is in force, and the log tells when the datastore is congested and when no longer [SC-SIOC].",
                    line(&set),
                    line(&counts)
                ),
            ),
            ("In force", set.effect().text().into()),
            (
                "Leave alone",
                "Below 20 ms disks lose throughput; above 50 ms it buys latency and no throughput. An \
                array of flash hardly ever gets there [S0]."
                    .into(),
            ),
            (
                "Mind",
                "A window goes by shares alone: reservations are each host's own [API], which its mClock keeps as \
                far as the window has slots for them, by Little's law IOPS x latency. The automatic threshold is \
                tried on the model of the array before a run; ESXi does so once a day. In real time this host \
                is the only one in the record."
                    .into(),
            ),
        ],
    }
}

/// An NFS mount, which has no SCSI device and so no device queue [ELA, LAMW].
fn nfs(client: &Driver) -> Article {
    let info = Advanced::NfsMaxQueueDepth.info();
    let set = Setting::Advanced { option: info.option, value: Some(N) };
    Article {
        names: names(&[client.module, "NFS", &dotted(info), "NFS41.MaxQueueDepth"]),
        title: "NFS: a datastore without a SCSI queue".into(),
        sections: vec![
            (
                "What it is",
                "A mount over the network: no adapter, no path, no device. DQLEN, DSNRO and a \
                driver's depth have no say in it [ELA]."
                    .into(),
            ),
            (
                "It shows",
                "In esxtop -b as \"Physical Disk NFS Volume\" with GAVG alone: there is no DAVG, KAVG \
                or QAVG, and VMs have no worlds there [ELA, CAP-B]."
                    .into(),
            ),
            (
                "When it acts",
                format!("{} always, on each mount of the host.", dotted(info)),
            ),
            (
                "Default",
                format!("{} is {}, which is no limit [LAMW].", dotted(info), info.default),
            ),
            ("Range", format!("{} to {} [LAMW].", info.min, info.max)),
            ("Read it", shown(&set)),
            ("Set it", line(&set)),
            ("In force", format!("{}; no source says it: as other options.", info.effect.text())),
            (
                "Leave alone",
                "A limit there holds all VMs of a mount back alike. Where GAVG is high, look at the \
                filer and the network first."
                    .into(),
            ),
        ],
    }
}

fn path_policy() -> Article {
    let round_robin = match PathPolicy::ROUND_ROBIN {
        PathPolicy::RoundRobin { iops, bytes } => format!("{iops} I/Os or {bytes} bytes"),
        _ => String::new(),
    };
    let latency = match PathPolicy::LATENCY {
        PathPolicy::Latency { sampling_ios, eval_ns } => {
            format!("{sampling_ios} I/Os on each path every {} s", eval_ns / ::counters::SECOND)
        }
        _ => String::new(),
    };
    let since = first_version(Version::has_latency_policy);
    let by_iops = PathPolicy::RoundRobin { iops: N, bytes: u64::MAX };
    let set = [PolicyChange::PlugIn(PathPolicy::ROUND_ROBIN), PolicyChange::RoundRobin(by_iops)];
    let set = set.map(|policy| Setting::PathPolicy { device: device(), policy });
    Article {
        names: names(&[
            "path policy",
            "multipath",
            "multipathing",
            "round robin",
            "RR",
            "iops=1",
            "PSP",
            "VMW_PSP_RR",
            "VMW_PSP_FIXED",
            "VMW_PSP_MRU",
            "latency policy",
            "IOOperation Limit",
            "Byte Limit",
            "Limit Type",
            "Latency Evaluation Interval",
            "Number Of Sampling IOs Per Path",
        ]),
        title: "Path policy: VMW_PSP_FIXED, VMW_PSP_MRU, VMW_PSP_RR".into(),
        sections: vec![
            (
                "What it is",
                "Which path the next command of a device takes: always the same, the one \
                used last, or in turns."
                    .into(),
            ),
            (
                "When it acts",
                "On devices with several paths that work. Round robin takes the next path \
                after so many commands or bytes, or by latency."
                    .into(),
            ),
            (
                "Default",
                format!(
                    "What the rule for the array says (SATP): fixed, most recently used or \
                round robin; round robin turns after {round_robin} [ELA]. By latency: {latency}, from \
                {since} on, where somebody sets it [DOC67, KB-LAT]."
                ),
            ),
            ("Range", "At least 1 command or 1 byte.".into()),
            ("Read it", shown(&set[0])),
            ("Set it", set.each_ref().map(line).join("\n")),
            ("In force", Effect::AtOnce.text().into()),
            (
                "Leave alone",
                "Do what the array's vendor says. Paths that are not optimized must not be \
                among the active ones; more paths do not make DQLEN deeper."
                    .into(),
            ),
        ],
    }
}

/// What the table of options has no column for.
struct Words {
    option: Advanced,
    when: &'static str,
    leave: &'static str,
}

/// An option's words.
const fn words(option: Advanced, when: &'static str, leave: &'static str) -> Words {
    Words { option, when, leave }
}

/// The words of each option [LAMW, VMB12, KB-QF, S4].
const OPTIONS: &[Words] = &[
    words(
        Advanced::SchedQuantum,
        "While worlds take turns on a device: a world whose commands are near \
        to each other on the disk goes on for so many; the older scheduler only.",
        "More favours \
        whoever reads in sequence, and makes the others wait.",
    ),
    words(
        Advanced::SectorMaxDiff,
        "When the scheduler decides whether a world goes on where it was.",
        "Less takes from whoever has much within a small place.",
    ),
    words(
        Advanced::SchedQControlSeqReqs,
        "While DSNRO is in force: so many commands in a row from one VM \
        end the competition.",
        "A small value lets DQLEN flap between its two limits.",
    ),
    words(
        Advanced::SchedQControlVmSwitches,
        "While DSNRO is not in force: so many switches between VMs \
        bring it.",
        "Switching it off takes fairness from every device of the host.",
    ),
    words(
        Advanced::SchedulerWithReservation,
        "For every command that waits for a slot.",
        "The older \
        scheduler has no reservations and no IOPS limits of its own.",
    ),
    words(
        Advanced::SchedCostUnit,
        "Wherever I/Os are counted for limits, reservations and shares: larger \
        ones count several times.",
        "Another unit gives every limit on the host another meaning.",
    ),
    words(
        Advanced::IdleCredit,
        "Under mClock, when a world that was idle or below its limit has commands again while \
        shares decide: so many of them go before those of the others.",
        "More lets a burst delay everybody else for longer.",
    ),
    words(
        Advanced::SchedReservationBurst,
        "Under mClock, together with Disk.IdleCredit, which says how large a burst is.",
        "Without it who comes back from idle is one among all from the first command on.",
    ),
    words(
        Advanced::DiskMaxIoSize,
        "When a guest sends a larger command: it is cut into pieces.",
        "Lower it \
        only for arrays that refuse large commands; pieces cost time.",
    ),
    words(
        Advanced::IscsiMaxIoSizeKb,
        "On software iSCSI: larger commands are cut into pieces, below the point \
        where esxtop counts them.",
        "The array has to take the larger commands.",
    ),
    words(
        Advanced::QFullSampleSize,
        "On every device without a value of its own, when the array answers \
        TASK SET FULL or BUSY.",
        "Unless the array's vendor asks for it, and then on all hosts of its \
        ports.",
    ),
    words(
        Advanced::QFullThreshold,
        "Together with the sample size, which has to be above 0.",
        "It is at \
        most the sample size.",
    ),
    words(
        Advanced::DelayOnBusy,
        "When the array answers BUSY: the command is held before it is tried again. The source says \
        it of hosts without adaptive throttling; here it is so with it too.",
        "Less makes an array that is full fuller.",
    ),
    words(
        Advanced::VvolPesnro,
        "While VMs compete on a protocol endpoint of vVols, which is one device \
        for all that are bound to it.",
        "As DSNRO: more for one is less for the others.",
    ),
    words(
        Advanced::HardwareAcceleratedLocking,
        "When VMFS locks its metadata: with it by atomic test and \
        set on a sector, without it by a SCSI reservation of the whole device, which refuses every \
        command of other hosts meanwhile.",
        "Switched off it brings reservation conflicts; off only \
        where the array's vendor asks for it, and on all hosts alike.",
    ),
    words(
        Advanced::HardwareAcceleratedMove,
        "When a disk is copied (Storage vMotion, clones): with it the array copies by itself, by XCOPY, between VMFS datastores of \
        one array that can do it; without it, or between arrays, the data mover of the host reads and writes all of it.",
        "Off only where the array's vendor asks for it: the host's queues and links then carry every byte twice.",
    ),
    words(
        Advanced::MaxHwTransferSize,
        "While the array copies by itself: a transfer of 32 MiB goes to it in commands of so much, eight at the default [DM].",
        "No other I/O knows it, so it moves no latency but that of copies (S4 saw none move). Arrays say how much they take \
        in a command: more than that brings poor copies with some.",
    ),
    words(
        Advanced::ApdHandlingEnable,
        "When a device has lost its last path. Switched on during an outage it begins to count at \
        once [DOC-APD].",
        "Switched off, management of the host waits for the device as its VMs do.",
    ),
    words(
        Advanced::ApdTimeout,
        "From the loss of the last path; what is set during an outage is for the next one. I/O of \
        VMs waits longer, until their guests give it up [DOC-APD].",
        "Less ends the host's own I/O in outages that would have passed.",
    ),
    words(
        Advanced::NfsMaxQueueDepth,
        "On every NFS mount of the host: what is beyond waits in the host, where no counter of NFS shows it but \
        GAVG. Storage I/O Control goes below it.",
        "It holds all VMs of a mount back alike. Where GAVG is high, look at the filer and the network first.",
    ),
];

/// What else people call an option.
const ALSO: &[(Advanced, &[&str])] = &[
    (
        Advanced::VvolPesnro,
        &["vVol", "vVols", "virtual volumes", "protocol endpoint", "PE", "PESNRO"],
    ),
    (Advanced::HardwareAcceleratedLocking, &["ATS", "atomic test and set"]),
    (Advanced::HardwareAcceleratedMove, &["full copy"]),
    (Advanced::SchedulerWithReservation, &["mClock", "dmClock", "scheduler"]),
];

fn option(words: &Words) -> Article {
    let info = words.option.info();
    let name = dotted(info);
    let set = Setting::Advanced { option: words.option, value: Some(N) };
    let sections = vec![
        ("What it is", info.meaning.into()),
        ("When it acts", words.when.into()),
        ("Default", default(info)),
        ("Range", format!("{} to {}", info.min, info.max)),
        ("Read it", shown(&set)),
        ("Set it", line(&set)),
        ("In force", info.effect.text().into()),
        ("Leave alone", words.leave.into()),
    ];
    let short = name.rsplit('.').next().unwrap_or_default().to_owned();
    let also = ALSO.iter().filter(|(option, _)| *option == words.option);
    let also = also.flat_map(|(_, names)| *names).map(|&name| name.to_owned());
    let own = [info.path.to_owned(), name.clone(), short];
    Article { names: own.into_iter().chain(also).collect(), title: name, sections }
}

/// The name of an option, as articles and vCenter have it.
fn dotted(info: &AdvancedInfo) -> String {
    info.path.trim_start_matches('/').replace('/', ".")
}

/// The default of an option, and the versions that have it.
fn default(info: &AdvancedInfo) -> String {
    let later = info.later.map(|(version, value)| format!(", {value} from {} on", version.name()));
    let (since, until) = (info.since, info.until);
    let versions = match (since == Version::OLDEST, until == Version::NEWEST) {
        (true, true) => String::new(),
        (false, true) => format!(" From {} on.", since.name()),
        _ => format!(" Up to {}.", until.name()),
    };
    format!("{}{}.{versions}", info.default, later.unwrap_or_default())
}

fn driver(driver: &'static Driver) -> Article {
    let limit = |depth: u32| if depth == u32::MAX { "none".into() } else { depth.to_string() };
    let module = driver.module;
    let sources = driver.sources;
    let of_builds = driver.depth_of_some_builds;
    let of_builds = of_builds.map(|depth| format!(", in some builds {depth} {MEMORY}"));
    let of_port = driver.parameter_of_port.map(|name| format!(" {name} is that of port 0 [S0]."));
    let of_port = of_port.unwrap_or_default();
    let of_driver = Setting::ModuleDepth { driver: driver.into(), value: N };
    let (range, set, effect) = match driver.parameter {
        Some(_) => (
            format!("{} to {} {}", driver.depth_min, driver.depth_max, sources.range),
            format!(
                "{}\nThe line replaces all parameters of the module: repeat those that are set.{of_port}",
                line(&of_driver)
            ),
            Effect::HostReboot.text(),
        ),
        None => (
            "fixed".into(),
            "kavg knows no parameter of it that sets the depth.".into(),
            "as it is",
        ),
    };
    let versions = driver.versions_named();
    let misprint = Driver::MISPRINTS.iter().find(|(_, of)| *of == module).map(|(text, _)| *text);
    let own = driver.parameter.into_iter().chain(driver.parameter_of_port);
    let own = own.chain(misprint).chain([module]);
    let mind = misprint.zip(driver.parameter).map(|(misprint, parameter)| {
        let text = "as S0's table prints it, is a misprint of";
        ("Mind", format!("{misprint}, {text} {parameter} [KB-PV, QD254]."))
    });
    let mut article = Article {
        names: own.map(str::to_owned).collect(),
        title: format!("{module}: the depth that the driver gives a device ({})", driver.what),
        sections: vec![
            ("What it is", format!("How many commands each device behind an adapter of {module} may \
                have outstanding: Device Max Queue Depth, and DQLEN where nothing lowers it. For {versions}.")),
            ("When it acts", "Always. While VMs compete DSNRO lowers it.".into()),
            (
                "Default",
                format!(
                    "{} {}{}; the adapter as a whole (AQLEN) {} {}.",
                    limit(driver.depth_default),
                    sources.depth,
                    of_builds.unwrap_or_default(),
                    limit(driver.adapter_depth),
                    sources.adapter
                ),
            ),
            ("Range", range),
            ("Read it", format!("{}\n$ esxcli storage core adapter list\nThe second shows which driver \
                an adapter has.", shown(&of_driver))),
            ("Set it", set),
            ("In force", effect.into()),
            ("Leave alone", "It deepens every device of the driver at once, and the array's ports see \
                the sum of all hosts. Raise it only where a device queue is full and DAVG is low [S0]."
                .into()),
        ],
    };
    article.sections.extend(mind);
    article
}
