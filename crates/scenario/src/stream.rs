//! A stretch of I/O of one kind, before it is on a virtual disk: what a workload of the file, a
//! fio job and a Vdbench run have in common, and the limits that hold for all of them.

use counters::SECTOR;
use knobs::OTHER_MAX_TRANSFER;
use model::WorkloadConfig;

/// Outstanding I/Os of one workload at most.
pub(crate) const THREADS_MAX: u32 = 65_536;
/// The largest I/O: LSI Logic passes 32 MB [VMB14], and a guest's own limit is of that order.
pub(crate) const IO_BYTES_MAX: u64 = OTHER_MAX_TRANSFER as u64;
pub(crate) const WORKING_SET_DEFAULT: u64 = 1 << 30;
/// Sizes of I/Os that a range stands for at most.
pub(crate) const SIZES_MAX: u32 = 1_024;
/// The most I/Os a second that a file may ask for.
pub(crate) const RATE_MAX: f64 = 1e9;
/// The fewest.
pub(crate) const RATE_MIN: f64 = 0.001;

/// A stretch of I/O of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stream {
    /// Which of the chosen disks; `None` is each of them.
    pub(crate) disk: Option<usize>,
    pub(crate) config: WorkloadConfig,
    /// Nanoseconds from the workload's start to its own.
    pub(crate) from_ns: u64,
    /// Nanoseconds that it lasts; `None` for as long as the workload.
    pub(crate) for_ns: Option<u64>,
}

/// Shares of sizes are all, unless `is_open`: then others take what is left.
pub(crate) fn check_shares(sum: f64, is_open: bool) -> Result<(), String> {
    const ROUNDING: f64 = 1e-9;
    let over = sum - 1.0;
    if over > ROUNDING || !is_open && over < -ROUNDING {
        let sum = (sum * 10_000.0).round() / 100.0;
        return Err(format!("the shares add up to {sum} %, not to 100"));
    }
    Ok(())
}

/// An I/O is whole sectors, and not larger than an adapter passes.
pub(crate) fn check_io_size(bytes: u64) -> Result<u32, String> {
    if bytes == 0 || !bytes.is_multiple_of(SECTOR) || bytes > IO_BYTES_MAX {
        return Err(format!(
            "{bytes} bytes is no size of an I/O; it is a multiple of {SECTOR} up to {}m",
            IO_BYTES_MAX >> 20
        ));
    }
    Ok(bytes as u32)
}

/// `threads`, `iodepth` or `numjobs` of a parameter file.
pub(crate) fn threads(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|threads| (1..=THREADS_MAX).contains(threads));
    number.ok_or_else(|| format!("`{text}` is not allowed; it is 1 to {THREADS_MAX}"))
}
