//! The day of an instant, for whoever prints one.

/// Year, month and day of a day counted from 1970-01-01.
#[must_use]
pub const fn date(days: i64) -> (i64, i64, i64) {
    // Days are counted from 0000-03-01 in eras of 400 years, so that a leap day ends its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + (month <= 2) as i64, month, day)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn a_leap_day_ends_its_year() {
        assert_eq!([-1, 0].map(date), [(1969, 12, 31), (1970, 1, 1)]);
        assert_eq!([11_016, 11_017].map(date), [(2000, 2, 29), (2000, 3, 1)]);
        assert_eq!([-25_509, -25_508].map(date), [(1900, 2, 28), (1900, 3, 1)]);
    }
}
