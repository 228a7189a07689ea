//! The stack as a picture: a box for each level, from the guest down to the array.
//!
//! ```text
//!                                  limit  in use             waiting       ms
//! ┌─▼ guest ──────────────────────────────────────── 34 % █████──────────────┐
//! │ win2012 scsi0:1                                             32.0    0.50 │
//! ├─▼ virtual disk ──────────────────────────────────────────────────────────┤
//! │ win2012 scsi0:1 PVSCSI            64    64.0 ██████████                  │
//! ```
//!
//! A box names its queues, the busiest first: limit, mean use, who waits for a place and how
//! long an I/O spends there. In the lid of each box stands its share of an I/O's time, as far to
//! the right as the I/O has come by then: the bars are one stair from the first wait to the
//! array's answer.

use std::fmt::Write;

use crate::{
    stack::{Level, LevelKind, Queue, Stack},
    text::{BAD, BOLD, DIM, bar, count, fit, millis, styled, whole},
};

/// Columns behind a name: limit, use, bar, waiting, time.
const FIGURES: usize = 10 + 8 + 1 + BAR + 9 + 9;
const BAR: usize = 10;
/// Columns of the stair in the lids.
const STAIR: usize = 24;
/// The narrowest picture and the widest.
const WIDTHS: std::ops::RangeInclusive<usize> = 72..=110;

/// Draws the stack in at most `width` columns, at most `rows` queues a level.
pub(crate) fn render(stack: &Stack, rows: usize, width: usize) -> String {
    let levels: Vec<_> = stack.levels.iter().map(|level| (level, level.top(rows))).collect();
    let names = levels.iter().flat_map(|(_, queues)| queues);
    let longest = names.map(|queue| queue.name.chars().count()).max().unwrap_or(0);
    let width = (longest + FIGURES + 4)
        .max(*WIDTHS.start())
        .min(width.clamp(*WIDTHS.start(), *WIDTHS.end()));
    let name_width = width - FIGURES - 4;
    let mut out = String::new();
    let head = format!(
        "  {:name_width$}{:>10}{:>8} {:BAR$}{:>9}{:>9}",
        "", "limit", "in use", "", "waiting", "ms"
    );
    let _ = writeln!(out, "{}", styled(DIM, &head));
    let mut before_ms = 0.0;
    for (index, (level, queues)) in levels.iter().enumerate() {
        let corners = if index == 0 { ('┌', '┐') } else { ('├', '┤') };
        out.push_str(&lid(level, stack, before_ms, corners, width));
        before_ms += level.ms;
        for queue in queues {
            out.push_str(&line(queue, level.kind, name_width));
        }
    }
    let foot = format!("└{}┘", "─".repeat(width - 2));
    let _ = writeln!(out, "{}", styled(DIM, &foot));
    out
}

/// The upper edge of a box.
fn lid(
    level: &Level,
    stack: &Stack,
    before_ms: f64,
    corners: (char, char),
    width: usize,
) -> String {
    let title = level.kind.title();
    let share = if stack.total_ms > 0.0 { level.ms / stack.total_ms } else { 0.0 };
    let percent = if share >= 0.005 { format!("{:.0} %", share * 100.0) } else { String::new() };
    let is_longest = stack.longest() == Some(level.kind);
    let note = if is_longest { "most of the time" } else { "" };
    let at = |ms: f64| {
        let column = ms / stack.total_ms.max(f64::MIN_POSITIVE) * STAIR as f64;
        (column.round() as usize).min(STAIR)
    };
    let (from, to) = (at(before_ms), at(before_ms + level.ms));
    let to = if share >= 0.005 { to.max(from + 1).min(STAIR) } else { from };
    let rest = width - 2 - 3 - title.chars().count() - 1 - 1 - 6 - 1 - STAIR - 1;
    let line = rest - if note.is_empty() { 0 } else { note.len() + 2 };
    let above_array = is_longest && !matches!(level.kind, LevelKind::Fabric | LevelKind::Array);
    let style = if above_array { BAD } else { BOLD };
    let mut out = styled(DIM, &format!("{}─", corners.0));
    let _ = write!(out, "▼ {} {}", styled(BOLD, title), styled(DIM, &"─".repeat(line)));
    if is_longest {
        let _ = write!(out, " {} ", styled(style, note));
    }
    let gap = if percent.is_empty() { "─".repeat(8) } else { format!(" {percent:>6} ") };
    let gap = if percent.is_empty() { styled(DIM, &gap) } else { gap };
    let _ = write!(out, "{gap}{}", styled(DIM, &"─".repeat(from)));
    let _ = write!(out, "{}", styled(style, &"█".repeat(to.saturating_sub(from))));
    let edge = format!("{}─{}", "─".repeat(STAIR - to.max(from)), corners.1);
    let _ = writeln!(out, "{}", styled(DIM, &edge));
    out
}

/// One queue in a box.
fn line(queue: &Queue, kind: LevelKind, name_width: usize) -> String {
    let name = fit(&queue.name, name_width);
    let limit = queue.limit.map(whole).unwrap_or_default();
    let in_use = queue.in_use.map(count).unwrap_or_default();
    let fill = match queue.limit {
        Some(_) => bar(queue.share(), BAR),
        None => " ".repeat(BAR),
    };
    let fill = if queue.is_full() { styled(BAD, &fill) } else { fill };
    let waits = queue.waiting >= 0.05 || kind == LevelKind::Device;
    let waiting = if waits { count(queue.waiting) } else { String::new() };
    let ms = if has_time(kind) { millis(queue.ms) } else { String::new() };
    let edge = styled(DIM, "│");
    format!("{edge} {name:name_width$}{limit:>10}{in_use:>8} {fill}{waiting:>9}{ms:>9} {edge}\n")
}

/// Whether an I/O spends time of its own on a level: in the virtual disk it only holds a place
/// while it is further down.
const fn has_time(kind: LevelKind) -> bool {
    !matches!(kind, LevelKind::VirtualDisk | LevelKind::VirtualAdapter)
}
