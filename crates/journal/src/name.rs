//! What files of journals are called, for whoever writes segments into a directory and whoever finds them
//! there.

/// What the name of every segment ends with, behind a dot.
pub const EXTENSION: &str = "journal";

/// The name of a segment: the journal it is of, and its number.
#[must_use]
pub fn file_name(of: &str, number: u64) -> String {
    format!("{of}-{number:06}.{EXTENSION}")
}

/// The journal that a file is a segment of, and its number, by a name that [`file_name`] makes.
#[must_use]
pub fn of_file(name: &str) -> Option<(&str, u64)> {
    let (of, number) = name.strip_suffix(EXTENSION)?.strip_suffix('.')?.rsplit_once('-')?;
    let number = number.parse().ok()?;
    (name == file_name(of, number)).then_some((of, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_is_made_is_read() {
        for number in [0, 1, 1_234_567] {
            assert_eq!(of_file(&file_name("a-1", number)), Some(("a-1", number)));
        }
        for other in [
            "a-1.journal",
            "a-+00001.journal",
            "a-000001",
            "000001.journal",
            "",
            "a-000001xjournal",
        ] {
            assert_eq!(of_file(other), None, "{other}");
        }
    }
}
