//! Counters: where each is found, how to read it, and what to mind.

use ::counters::{Counter, CounterInfo, Format, Kind};
use diagnose::Threshold;

use super::{Article, UNKNOWN};

/// What counters of a family have in common: how to read them, and what to mind.
struct Words {
    keys: &'static [&'static str],
    read: &'static str,
    mind: &'static str,
    /// Of what time it tells, where it is no rate and no latency: those are of the interval.
    time: &'static str,
    /// The settings that it shows.
    set: &'static str,
    /// The threshold from which the diagnosis counts it.
    from: Option<Threshold>,
}

const INTERVAL: &str =
    "The interval before the sample; the first sample of esxtop -b has none, and 0.00 [CAP-A].";
const INSTANT: &str = "The instant of the sample.";
const BOOT: &str = "All since boot.";
const OF_RUN: &str = "The interval before the sample.";
const MEASURED: &str = "Nothing sets it: it is measured.";

const fn words(keys: &'static [&'static str], read: &'static str, mind: &'static str) -> Words {
    Words { keys, read, mind, time: OF_RUN, set: MEASURED, from: None }
}

impl Words {
    const fn at(mut self, time: &'static str) -> Self {
        self.time = time;
        self
    }

    const fn set(mut self, settings: &'static str) -> Self {
        self.set = settings;
        self
    }

    const fn from(mut self, threshold: Threshold) -> Self {
        self.from = Some(threshold);
        self
    }
}

/// The words of every counter, by its key.
const COUNTERS: &[Words] = &[
    words(&["aqlen"], "The room of the adapter for all its devices together. It is rarely the limit.",
        "It stands in the group \"Physical Disk\", not \"Physical Disk Adapter\", and only in captures of \
        esxtop -b -a [CAP-A].").at(INSTANT)
        .set("By the driver, where it has a parameter for it: kavg explain drivers."),
    words(&["shares"], "The weight of a VM's world on the device while VMs compete.",
        "0 in the first sample; real files show values that no preset explains [CAP-A].").at(INSTANT)
        .set("By the shares of the VM's disks: kavg explain 'IOPS limit'."),
    words(&["dqlen"], "ACTV at it and QUED above 0: the queue is full. One that falls while several VMs \
        are active is DSNRO; one that halves and climbs adaptive throttling; one that slides Storage I/O \
        Control.", "It is the limit in force, not the one that is set: Device Max Queue Depth is in no \
        column.").at(INSTANT)
        .set("By the least of what is in force: kavg explain dsnro, 'Device Max Queue Depth', drivers, 'adaptive \
        throttling' and sioc."),
    words(&["wqlen"], "Nothing since ESXi 5.5: it is 0 or a dash.", "Do not take the 0 for a limit of 0.").at(INSTANT),
    words(&["actv"], "At DQLEN the device has no free slot. Below it commands that wait are held by \
        something else: an IOPS limit, reservation conflicts, a path.", "The state of one instant: it \
        misses bursts. The mean over the interval is CMDS/s times DAVG (Little's law) [CAP-A].").at(INSTANT),
    words(&["qued"], "Above 0 the host is the bottleneck, nearly always: ACTV is at DQLEN [S2].",
        "The state of one instant. Commands that wait inside a guest are not in it: what KAVG says of \
        the interval counts more.").from(Threshold::Waiting).at(INSTANT),
    words(&["used_pct"], "100 % with QUED above 0 is a full queue.", "Made of ACTV, so of one instant.").at(INSTANT),
    words(&["load"], "Above 1 commands wait: 1.97 on a queue is almost as many outside as inside [S2].",
        "Made of ACTV and QUED, so of one instant.").at(INSTANT),
    words(&["cmds", "reads", "writes"], "The load. Times the latency, over 1,000, it is the mean number \
        inside (Little's law).", "Commands are counted as they complete: what stalls shows as a falling \
        rate. CMDS/s also counts what is neither read nor write.").from(Threshold::BusyIops),
    words(&["mbread", "mbwrtn"], "Over CMDS/s it is the size of a command; a flat sum may be a link that is \
        full.", "Mebibytes, of data alone."),
    words(&["resv"], "How often this host takes the device for its metadata.", "With ATS there are next to \
        none; many beside CONS/s on other hosts are the cause there."),
    words(&["cons"], "Commands refused because another host holds the device; they wait in KAVG though the \
        queue has free slots.", "The host that causes it is another one.")
        .from(Threshold::ConflictsPerSecond),
    words(&["davg", "davg_rd", "davg_wr"], "High: the fabric or the array takes the time, or holds the \
        volume to a rate. Deeper queues do not help.", "It begins where the driver takes the command, so a \
        wait in a deep adapter or iSCSI window counts as the array's. NFS has no DAVG [ELA]. Large commands \
        take longer to move.").from(Threshold::DavgMs),
    words(&["kavg", "kavg_rd", "kavg_wr"], "High: the host takes the time, as a rule in front of a full \
        device queue. On flash anything but 0 counts [S0].", "On path and adapter rows it already contains \
        the device queue's wait [CAP-A]. NFS has no KAVG [ELA].").from(Threshold::KavgMs),
    words(&["gavg", "gavg_rd", "gavg_wr"], "What the guest sees of the host and all below it. Beside DAVG \
        and KAVG it says nothing new; on NFS it is all that there is [ELA].", "The wait inside the guest is \
        not in it: an application may see far more."),
    words(&["qavg", "qavg_rd", "qavg_wr"], "The part of KAVG that is a queue's; the two are nearly always \
        equal [QAVG].", "On path and adapter rows it covers the queues there alone [CAP-A]. One above KAVG \
        is no measurement.").from(Threshold::QavgMs),
    words(&["fcmds", "fread", "fwrite", "fmbrd", "fmbwr", "fresv", "nfs_fmbrd", "nfs_fmbwr"],
        "Above 0 commands end in an error: look into vmkernel.log for the sense codes.", "Some fail as a \
        matter of course: a probe of an empty CD-ROM, a command that an array does not know."),
    words(&["abrts"], "A guest gave up: it waited for its whole timeout, 60 s on Windows with VMware Tools \
        [ELA 6.4].", "Aborts also end the commands of a VM that is reset. Only in captures of esxtop -b \
        -a.").from(Threshold::AbortsPerSecond),
    words(&["resets"], "A device or a bus was reset, by a guest whose aborts did not help or by the host.",
        "All that was outstanding there is lost and sent again.").from(Threshold::AbortsPerSecond),
    words(&["paecmd", "paecp"], "Commands whose data had to be copied below 4 GB for the adapter.",
        "Only old adapters do it."),
    words(&["spltcmd", "spltcp"], "How many commands are cut, and into how many pieces: each completes with \
        its last piece [VMB14].", "iSCSI cuts below the point where these are counted [S4].")
        .from(Threshold::SplitPercent),
    words(&["clone_rd", "clone_wr", "clone_f", "mbc_rd", "mbc_wr", "cavg_suc", "cavg_f"],
        "Copies that the array makes by itself (VAAI).", "The numbers without a /s are totals since boot: \
        take the difference of two samples. They load the array without a slot of a guest.").at(BOOT),
    words(&["ats", "atsf", "aavg_suc", "aavg_f"], "Locks of VMFS by atomic test and set; failures are hosts \
        that want the same sector at once.", "The counts are totals since boot.").at(BOOT),
    words(&["zero", "zero_f", "mbzero", "zavg_suc", "zavg_f"], "Blocks that the array writes with zeros by \
        itself: the first write to a thin or lazily zeroed disk.", "The counts are totals since boot.").at(BOOT),
    words(&["delete", "delete_f", "mbdel"], "Space that is given back (UNMAP).", "The counts are totals \
        since boot; arrays may be slow while they free space.").at(BOOT),
    words(&["failed_ios", "total_ios"], "I/Os of a virtual disk, failed and all.", "Only in captures of \
        esxtop -b -a.").at(UNKNOWN),
    words(&["lat"], "Not to be relied on: LAT/rd and LAT/wr say what they are.", "Its unit is documented \
        nowhere.").at(UNKNOWN),
    words(&["lat_rd", "lat_wr"], "What the guest's virtual adapter sees. More than GAVG of the VM's world is \
        a wait above the device: an IOPS limit of a storage policy, a snapshot, a filter.", "The wait in \
        front of the virtual adapter is not in it."),
    words(&["guest_wait", "gqued_mean"], "Commands that found the virtual disk or adapter at its depth; a \
        deeper PVSCSI or more disks moves them down.", "kavg's own: no esxtop has it, and no capture of a \
        real host."),
    words(&["total", "p50", "p95", "p99"], "What the application sees.", "kavg's own: no esxtop has it, and \
        no capture of a real host. The mean hides what P99 shows."),
    words(&["array", "array_rd", "array_wr"], "Near DAVG the time is the array's; far below it the fabric's. \
        What a command waits in the array, for its volume's limit too, is in it: FlashArray has service, queue, SAN and \
        limit apart (qos_rate_limit_usec). FlashArray's clock runs from a command's arrival to its answer: what a write \
        waits until its data are sent is in ARRAY/wr [S0].", "kavg's own: on a real host ask the array."),
    words(&["dqlen_mean"], "DQLEN over the interval: between DSNRO and the full depth the limit went to and \
        fro, and esxtop's own DQLEN shows only where it ended.", "kavg's own: on a real host sample more \
        often."),
    words(&["merged"], "A Linux guest merges I/Os that lie side by side while its disk is full, or while they \
        come in one system call: fio counts these, CMDS/s and every latency are of what is left.", "kavg's \
        own: on a real host compare CMDS/s with what fio says, and see rrqm/s and wrqm/s of iostat in the guest."),
    words(&["offered", "lost"], "More offered than served: the application waits, and what it loses at its \
        own bound never reaches the host.", "kavg's own: no esxtop has it, and no capture of a real host."),
    words(&["actv_mean", "qued_mean"], "What ACTV and QUED sample, averaged over the interval.", "kavg's \
        own: on a real host Little's law gives it."),
];

/// Every counter.
pub(crate) fn articles() -> Vec<Article> {
    let known = |info: &CounterInfo| {
        let words = COUNTERS.iter().find(|words| words.keys.contains(&info.key))?;
        Some(article(info, words))
    };
    Counter::TABLE.iter().filter_map(known).collect()
}

fn article(info: &CounterInfo, words: &Words) -> Article {
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.counters().any(|c| c == info.counter));
    let kinds: Vec<&str> = kinds.map(Kind::name).collect();
    let batch = match info.in_esxtop {
        true => format!("{} on its screens, \"{}\" in esxtop -b", info.column, info.batch_name),
        false => "in no esxtop: kavg's own, from a simulation".into(),
    };
    let printed = match info.format {
        Format::Integer => "a whole number",
        Format::Decimal2 => "two decimals",
    };
    let time = match info.unit {
        "1/s" | "MiB/s" | "ms" if info.in_esxtop => INTERVAL,
        "1/s" | "MiB/s" | "ms" => OF_RUN,
        _ => words.time,
    };
    let counts_from = words.from.map(Threshold::info).map_or_else(
        || "No threshold of the diagnosis is of it.".into(),
        |threshold| {
            format!(
                "{} {} on disks, {} on flash ({}) {}.",
                threshold.classic, threshold.unit, threshold.flash, threshold.key, threshold.source
            )
        },
    );
    let unit = if info.unit.is_empty() { "a plain number" } else { info.unit };
    let sections = vec![
        ("What it is", info.meaning.to_owned()),
        ("Where", format!("{batch}; rows of: {}.", kinds.join(", "))),
        ("When", time.to_owned()),
        ("Unit", format!("{unit}, {printed}; `{}` in JSON and in expectations.", info.key)),
        ("Read it", words.read.to_owned()),
        ("Set it", words.set.to_owned()),
        ("Counts from", counts_from),
        ("Mind", words.mind.to_owned()),
    ];
    let names = [info.column, info.key, info.batch_name].map(String::from).to_vec();
    Article { names, title: info.column.into(), sections }
}
