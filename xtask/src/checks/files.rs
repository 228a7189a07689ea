//! A source file has 800 lines at most and opens with what it is for.

use crate::house::{File, Finding, House};

const LINES_MAX: usize = 800;

/// Tables that are longer, each with its reason.
const LONG: &[(&str, &str)] = &[];

pub(crate) fn check(house: &House) -> Vec<Finding> {
    house.rust().flat_map(|file| length(file).into_iter().chain(story(file))).collect()
}

fn length(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    let listed = LONG.iter().any(|(path, _)| *path == file.path);
    (lines > LINES_MAX && !listed)
        .then(|| file.at(lines, format!("{lines} lines; {LINES_MAX} are allowed")))
}

fn story(file: &File) -> Option<Finding> {
    (!file.text.starts_with("//!")).then(|| file.at(1, "opens without `//!`: what is it for?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_files_without_a_story_are_found() {
        let long = format!("//! A story.\n{}", "\n".repeat(LINES_MAX));
        let house = House::of(&[("long.rs", &long), ("bare.rs", "mod a;\n"), ("table.md", &long)]);
        let found: Vec<_> = check(&house).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
