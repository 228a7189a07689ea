//! The clock of a capture: the time zone in the first cell of its header.
//!
//! PDH-CSV's first cell is `(PDH-CSV 4.0) (NAME)(MINUTES)`, the minutes by which the clock lies west of
//! UTC; esxtop prints `(UTC)(0)` [CAP-A]. Instants are UTC everywhere above, so that captures of hosts in
//! several zones stand side by side.

use crate::Stamps;

/// More than any zone is from UTC, in minutes.
const FARTHEST: i64 = 24 * 60;
const MINUTE_MS: i64 = 60_000;

/// What the header says of the clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Zone {
    /// It is that of UTC.
    #[default]
    Utc,
    /// Another one.
    Other {
        /// What it is called.
        name: String,
        /// Minutes by which it lies west of UTC.
        west: i64,
    },
    /// Nothing is said of it: the times are taken as they stand.
    Unknown,
}

impl Zone {
    /// That of a first cell, without its quotes.
    pub(crate) fn of(cell: &str) -> Self {
        let zone = || {
            let text = cell.trim_end().strip_suffix(')')?;
            let (before, west) = text.rsplit_once('(')?;
            let (_, name) = before.split_once(')')?;
            let west: i64 = west.trim().parse().ok()?;
            let name = name.trim().strip_prefix('(')?.strip_suffix(')')?.trim().to_owned();
            (-FARTHEST..=FARTHEST).contains(&west).then_some((name, west))
        };
        match zone() {
            Some((_, 0)) => Self::Utc,
            Some((name, west)) => Self::Other { name, west },
            None => Self::Unknown,
        }
    }

    /// What is added to a time of this clock to get UTC. A time without a date is left as it stands.
    pub(crate) const fn to_utc_ms(&self, stamps: Stamps) -> i64 {
        match (self, stamps) {
            (Self::Other { west, .. }, Stamps::Seconds | Stamps::Minutes) => *west * MINUTE_MS,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cell_says_how_far_west_the_clock_is() {
        let other = |name: &str, west| Zone::Other { name: name.into(), west };
        let cases = [
            ("(PDH-CSV 4.0) (UTC)(0)", Zone::Utc),
            ("(PDH-CSV 4.0) (GMT Standard Time)(0)", Zone::Utc),
            ("(PDH-CSV 4.0) (Eastern Daylight Time)(240)", other("Eastern Daylight Time", 240)),
            ("(PDH-CSV 4.0) (W. Europe (Berlin))(-60)", other("W. Europe (Berlin)", -60)),
            ("(PDH-CSV 4.0) ()(330)", other("", 330)),
            ("(PDH-CSV 4.0)", Zone::Unknown),
            ("(PDH-CSV 4.0) (UTC)", Zone::Unknown),
            ("(PDH-CSV 4.0) (UTC)(x)", Zone::Unknown),
            ("(PDH-CSV 4.0) (UTC)(99999999999999999999)", Zone::Unknown),
            ("(PDH-CSV 4.0) (UTC)(100000)", Zone::Unknown),
            ("", Zone::Unknown),
        ];
        for (cell, zone) in cases {
            assert_eq!(Zone::of(cell), zone, "{cell}");
        }
    }

    #[test]
    fn a_time_without_a_date_is_left_as_it_stands() {
        let east = Zone::of("(PDH-CSV 4.0) (CET)(-60)");
        let all = [Stamps::Seconds, Stamps::Minutes, Stamps::TimeOnly, Stamps::MinuteOfHour];
        assert_eq!(all.map(|stamps| east.to_utc_ms(stamps)), [-3_600_000, -3_600_000, 0, 0]);
    }
}
