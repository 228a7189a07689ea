//! The stack as a picture: a box for each level, from the guest down to the array.
//!
//! ```text
//!                                    limit  in use             waiting       ms
//! ┌─▼ guest ────────────────────────────────────   33 % ████████─────────────────┐
//! │ win2012 scsi0:1                                                32.0    0.489 │
//! ├─▼ virtual disk ──────────────────────────────────────────────────────────────┤
//! │ win2012 scsi0:1 PVSCSI               64    64.0 ██████████                   │
//! ```
//!
//! A box names its queues, the busiest first: limit, mean use, who waits for a place and how
//! long an I/O spends there. In the lid of each box stands its share of an I/O's time, as far to
//! the right as the I/O has come by then: the bars are one stair from the first wait to the
//! array's answer.

use std::fmt::Write;

use anstyle::Style;
use levels::{Level, LevelKind, Queue, Stack};

use crate::{
    stack::top,
    text::{BAD, BOLD, DIM, bar, count, fit, millis, styled, whole},
};

/// Columns behind a name: limit, use, bar, waiting, time.
const FIGURES: usize = 10 + 8 + 1 + BAR + 9 + 9;
const BAR: usize = 10;
/// Columns of the stair in the lids.
const STAIR: usize = 24;
/// Columns of a lid besides the title, the note and the line between them.
const LID: usize = 3 + 2 + 1 + 8 + STAIR + 1;
/// The least share of the time that is seen in a lid.
const SHARE_MIN: f64 = 0.005;
/// The narrowest picture and the widest.
const WIDTHS: std::ops::RangeInclusive<usize> = 76..=112;

/// Draws the stack in at most `width` columns, at most `rows` queues a level.
pub(crate) fn render(stack: &Stack, rows: usize, width: usize) -> String {
    let levels: Vec<_> = stack.levels.iter().map(|level| (level, top(level, rows))).collect();
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
        before_ms += level.ms.unwrap_or_default();
        for queue in queues {
            out.push_str(&line(queue, level.kind, name_width));
        }
    }
    let foot = format!("└{}┘", "─".repeat(width - 2));
    let _ = writeln!(out, "{}", styled(DIM, &foot));
    out
}

/// The upper edge of a box: the level, its share of the time, its step of the stair.
fn lid(
    level: &Level,
    stack: &Stack,
    before_ms: f64,
    corners: (char, char),
    width: usize,
) -> String {
    let title = level.kind.title();
    let is_longest = stack.longest() == Some(level.kind);
    let is_below = matches!(level.kind, LevelKind::Fabric | LevelKind::Array);
    let style = if is_longest && !is_below { BAD } else { BOLD };
    let note = if is_longest { " most of the time " } else { "" };
    // The host's own commands are of no virtual disk: the levels may have more time than the disks.
    let levels_ms: f64 = stack.levels.iter().filter_map(|level| level.ms).sum();
    // Where nothing completes no time is a share of anything.
    let total_ms = stack.total_ms.filter(|total_ms| *total_ms > 0.0);
    let total_ms = total_ms.map(|total_ms| total_ms.max(levels_ms));
    let ms = level.ms.filter(|_| total_ms.is_some()).unwrap_or_default();
    let total_ms = total_ms.unwrap_or(1.0);
    let share = ms / total_ms;
    let percent = match share >= SHARE_MIN {
        true => format!(" {:>6} ", format!("{:.0} %", share * 100.0)),
        false => styled(DIM, &"─".repeat(8)),
    };
    let line = width.saturating_sub(LID + title.len() + note.len());
    format!(
        "{}▼ {} {}{}{percent}{}{}\n",
        styled(DIM, &format!("{}─", corners.0)),
        styled(BOLD, title),
        styled(DIM, &"─".repeat(line)),
        styled(style, note),
        stair(before_ms, ms, total_ms, style),
        styled(DIM, &format!("─{}", corners.1)),
    )
}

/// The step of a level: as wide as its share of the time, behind those before it.
fn stair(before_ms: f64, ms: f64, total_ms: f64, style: Style) -> String {
    let at = |ms: f64| ((ms / total_ms * STAIR as f64).round() as usize).min(STAIR);
    let is_seen = ms / total_ms >= SHARE_MIN;
    let from = at(before_ms).min(STAIR - usize::from(is_seen));
    let to = if is_seen { at(before_ms + ms).max(from + 1) } else { from };
    let flat = |columns: usize| styled(DIM, &"─".repeat(columns));
    format!("{}{}{}", flat(from), styled(style, &"█".repeat(to - from)), flat(STAIR - to))
}

/// One queue in a box.
fn line(queue: &Queue, kind: LevelKind, name_width: usize) -> String {
    let name = fit(&queue.name, name_width);
    let limit = queue.limit.map(whole).unwrap_or_default();
    let in_use = queue.in_use.map(count).unwrap_or_default();
    let fill = match queue.limit {
        Some(_) => bar(queue.share().unwrap_or_default(), BAR),
        None => " ".repeat(BAR),
    };
    let fill = if queue.is_full() { styled(BAD, &fill) } else { fill };
    let waits = |waiting: &f64| *waiting >= 0.05 || kind == LevelKind::Device;
    let waiting = queue.waiting.filter(waits).map(count).unwrap_or_default();
    let ms = queue.ms.map(millis).unwrap_or_default();
    let edge = styled(DIM, "│");
    format!("{edge} {name:name_width$}{limit:>10}{in_use:>8} {fill}{waiting:>9}{ms:>9} {edge}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    /// A stack of one queue a level, each with a time.
    fn stack(times: &[(LevelKind, f64)]) -> Stack {
        let level = |&(kind, ms): &(LevelKind, f64)| {
            let (waiting, ms) = (Some(1.0), Some(ms));
            Level::one(kind, Queue { name: "q".into(), waiting, ms, iops: 1.0, ..Queue::default() })
        };
        let levels: Vec<_> = times.iter().map(level).collect();
        let total_ms = Some(times.iter().map(|(_, ms)| ms).sum());
        Stack { total_ms, ..Stack::new(levels, Vec::new(), 0.0) }
    }

    #[test]
    fn every_line_is_as_wide_whatever_the_times_and_the_screen() {
        use LevelKind as L;
        let kinds = [L::Guest, L::VirtualAdapter, L::Device, L::Held, L::Adapter, L::Array];
        for longest in kinds {
            for width in [0, 76, 80, 500] {
                let times = kinds.map(|kind| (kind, if kind == longest { 1e6 } else { 1e4 }));
                let picture = render(&stack(&times), 5, width);
                let boxes: Vec<_> = picture.lines().skip(1).map(table::width).collect();
                assert!(boxes.iter().all(|wide| *wide == boxes[0]), "{picture}");
            }
        }
    }

    #[test]
    fn nothing_happened_is_a_picture_too() {
        assert_eq!(render(&stack(&[]), 5, 80).lines().count(), 2);
        assert_eq!(render(&stack(&[(LevelKind::Guest, 0.0)]), 5, 80).lines().count(), 4);
    }
}
