//! `block` of a virtual disk: the block layer of its Linux guest, by the names of `/sys/block/DISK/queue`.

use knobs::VscsiLimits;
use model::{BlockConfig, IoScheduler};

use crate::{Error, reader::Node, stream::THREADS_MAX};

/// The schedulers that are modelled, by their own names.
const SCHEDULERS: [(&str, IoScheduler); 2] =
    [("none", IoScheduler::None), ("mq-deadline", IoScheduler::MqDeadline)];
/// The fewest requests that Linux lets be set [BLK: `BLKDEV_MIN_RQ`], and more than any queue has.
const REQUESTS: std::ops::RangeInclusive<u32> = 4..=65_536;
/// Requests beside which more at the adapter give no more to the scheduler [BLK: `BLKDEV_DEFAULT_RQ`].
const REQUESTS_DEFAULT: u32 = 128;
/// A page, and the 65,535 sectors that PVSCSI takes [PVL].
const SECTORS_KB: std::ops::RangeInclusive<u32> = 4..=32_767;
/// PVSCSI takes 128 segments [PVL], of a page each where memory is not in one piece; Linux' own 1,280
/// is more than that [BLK].
const SECTORS_KB_DEFAULT: u32 = 512;

/// Reads the table, at an adapter of so many commands.
pub(crate) fn block(node: &Node<'_>, limits: &VscsiLimits) -> Result<BlockConfig, Error> {
    let table = node.table(&["scheduler", "nr_requests", "max_sectors_kb", "nomerges", "batch"])?;
    // One queue of the hardware has `mq-deadline` [BLK: `elevator_get_default`], and PVSCSI has one [PVL].
    let scheduler = table.read("scheduler", |node| node.choice(&SCHEDULERS))?;
    let scheduler = scheduler.unwrap_or(IoScheduler::MqDeadline);
    let requests_max = match scheduler {
        IoScheduler::None => limits.adapter_depth,
        IoScheduler::MqDeadline => 2 * limits.adapter_depth.min(REQUESTS_DEFAULT),
    };
    let sectors_kb = table.read("max_sectors_kb", |node| node.integer32(SECTORS_KB))?;
    let merges = table.read("nomerges", |node| match node.integer32(0..=2)? {
        0 => Ok(true),
        2 => Ok(false),
        _ => Err(node.error("1 is not modelled; 0 merges, and 2 does not")),
    })?;
    Ok(BlockConfig {
        scheduler,
        requests_max: table
            .read("nr_requests", |node| node.integer32(REQUESTS))?
            .unwrap_or(requests_max),
        bytes_max: sectors_kb.unwrap_or(SECTORS_KB_DEFAULT) << 10,
        merges: merges.unwrap_or(true),
        batch: table.read("batch", |node| node.integer32(1..=THREADS_MAX))?.unwrap_or(1),
    })
}
