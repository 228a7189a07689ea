//! What becomes of each of fio's options: a stream is made of some, some cannot change what I/O is
//! issued, and some are taken only at the value where they change nothing. All others are refused
//! by the reader in `fio.rs`. Meanings and defaults are those of fio's HOWTO.

/// Options that a stream is made of.
pub(crate) const USED: &[&str] = &[
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "bssplit",
    "startdelay",
    "size",
    "filesize",
    "numjobs",
    "iodepth",
    "rate",
    "rate_iops",
    "rate_process",
    "bsrange",
    "blocksize_range",
    "percentage_random",
    "thinktime",
    "ioengine",
    "rwmixread",
    "rwmixwrite",
    "runtime",
    "timeout",
    "ramp_time",
    "stonewall",
    "wait_for_previous",
    "direct",
    "time_based",
    "io_size",
    "io_limit",
    "loops",
];

/// Options that say where, how to report or what the data is, not what the I/O is.
pub(crate) const HARMLESS: &[&str] = &[
    "allow_file_create",
    "allow_mounted_write",
    "append-terse",
    "bandwidth-log",
    "ba",
    "blockalign",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "bwavgtime",
    "clat_percentiles",
    "clocksource",
    "continue_on_error",
    "cpumask",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_fsync",
    "create_on_open",
    "create_serialize",
    "debug",
    "dedupe_percentage",
    "description",
    "directory",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "error_dump",
    "eta",
    "eta-interval",
    "eta-newline",
    "exec_postrun",
    "exec_prerun",
    "exitall_on_error",
    "fallocate",
    "file_service_type",
    "filename",
    "filename_format",
    "fixedbufs",
    "gid",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "hipri",
    "ignore_error",
    "invalidate",
    "iodepth_batch_complete_max",
    "iopsavgtime",
    "iomem",
    "json-log",
    "lat_percentiles",
    "log_avg_msec",
    "log_hist_msec",
    "log_max_value",
    "log_offset",
    "log_unix_epoch",
    "mem",
    "minimal",
    "name",
    "new_group",
    "nice",
    "nonvectored",
    "norandommap",
    "nrfiles",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "offset",
    "offset_increment",
    "openfiles",
    "output",
    "output-format",
    "overwrite",
    "per_job_logs",
    "percentile_list",
    "prio",
    "prioclass",
    "randrepeat",
    "random_generator",
    "randseed",
    "rate_cycle",
    "refill_buffers",
    "registerfiles",
    "scramble_buffers",
    "significant_figures",
    "slat_percentiles",
    "softrandommap",
    "sqthread_poll",
    "stats",
    "status-interval",
    "terse-version",
    "thinktime_spin",
    "thread",
    "uid",
    "unified_rw_reporting",
    "unit_base",
    "unlink",
    "unlink_each_loop",
    "use_os_rand",
    "userspace_reap",
    "verify_dump",
    "verify_fatal",
    "write_bw_log",
    "write_hist_log",
    "write_iops_log",
    "write_lat_log",
    "zero_buffers",
];

/// Options that change what I/O is issued in a way that is not modelled, and the values at which
/// they do not.
pub(crate) const NEUTRAL: &[(&str, &[&str])] = &[
    ("bs_is_seq_rand", &["0"]),
    ("bs_unaligned", &["0"]),
    ("buffered", &["0"]),
    ("create_only", &["0"]),
    ("do_verify", &["0"]),
    ("end_fsync", &["0"]),
    ("exitall", &["0"]),
    ("fdatasync", &["0"]),
    ("fill_device", &["0"]),
    ("flow", &["0"]),
    ("fsync", &["0"]),
    ("fsync_on_close", &["0"]),
    ("io_submit_mode", &["inline"]),
    ("iodepth_batch", &["1"]),
    ("iodepth_batch_complete", &["0", "1"]),
    ("iodepth_batch_complete_min", &["0", "1"]),
    ("iodepth_batch_submit", &["1"]),
    ("kb_base", &["1024"]),
    ("latency_target", &["0"]),
    ("max_latency", &["0"]),
    ("pre_read", &["0"]),
    ("random_distribution", &["random"]),
    ("rate_ignore_thinktime", &["0"]),
    ("rate_iops_min", &["0"]),
    ("rate_min", &["0"]),
    ("serialize_overlap", &["0"]),
    ("sync", &["0", "none"]),
    ("thinktime_blocks", &["1"]),
    ("thinktime_blocks_type", &["complete"]),
    ("thinktime_iotime", &["0"]),
    ("trim_percentage", &["0"]),
    ("verify", &["0", "none"]),
    ("write_barrier", &["0"]),
    ("zonemode", &["none"]),
];

/// Those of them that the block layer of a guest takes at other values: I/Os of a system call.
pub(crate) const BATCH: &[&str] = &["iodepth_batch", "iodepth_batch_submit"];

/// What a workload of the scenario's own has instead of an option that is refused.
pub(crate) fn instead(option: &str) -> &'static str {
    match option {
        "fsync" | "fdatasync" | "end_fsync" | "fsync_on_close" => {
            "; a flush that reaches the disk is `flush_after` of a workload of the scenario"
        }
        "sync" => "; a write with FUA is `fua` of a workload of the scenario",
        "iodepth_batch" | "iodepth_batch_submit" => "; a disk with a `block` takes others",
        "trim_percentage" => "; a discard is `others` of a workload of the scenario",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_in_one_table() {
        let neutral = NEUTRAL.iter().map(|(name, _)| name);
        let mut all: Vec<_> = USED.iter().chain(HARMLESS).chain(neutral).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
