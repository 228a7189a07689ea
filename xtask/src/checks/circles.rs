//! Arrows between the files of a crate: they form no circles, so that a file can be read and
//! changed with those below it alone.
//!
//! A file uses another when it names something of it: in a `use`, or in a path that begins with
//! `crate`, `super` or `self`. A name that a `lib.rs` or `mod.rs` passes on counts for the file that
//! it comes from. Not counted are a module and what lies inside of it (a `mod.rs` gathers its
//! children and they lean on it), the root of the crate, and `mod tests`, which may look anywhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::{File, Finding, House};
use crate::rust::{self, Mention};

pub(crate) fn check(house: &House) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in house.rust() {
        if let Some((root, _)) = file.path.split_once("/src/") {
            crates.entry(root).or_default().push(file);
        }
    }
    crates.into_iter().flat_map(|(root, files)| of_crate(root, &files)).collect()
}

fn of_crate(root: &str, files: &[&File]) -> Vec<Finding> {
    let circles = Modules::of(root, files).circles();
    let found = circles.iter().map(|circle| format!("files use each other: {}", circle.join(", ")));
    found.map(|line| Finding::new(root, line)).collect()
}

/// The modules of a crate by their paths (`observe::queue`; the root has none), and what each
/// mentions.
struct Modules(BTreeMap<String, Vec<Mention>>);

impl Modules {
    fn of(root: &str, files: &[&File]) -> Self {
        let module = |file: &&File| {
            let path = file.path.strip_prefix(root)?.strip_prefix("/src/")?.strip_suffix(".rs")?;
            let parts = path.split('/').filter(|part| !matches!(*part, "lib" | "main" | "mod"));
            Some((parts.collect::<Vec<_>>().join("::"), rust::mentions(&file.text)))
        };
        Self(files.iter().filter_map(module).collect())
    }

    /// The path from the root of the crate of what a module mentions; nothing for other crates.
    fn path_from_root(&self, module: &str, words: &[String]) -> Option<Vec<String>> {
        let mut place: Vec<String> = split(module);
        let mut rest = words;
        match words.first()?.as_str() {
            "crate" => (place, rest) = (Vec::new(), &words[1..]),
            "self" => rest = &words[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    place.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                let child = [place.clone(), vec![child.into()]].concat().join("::");
                self.0.get(&child)?;
            }
        }
        place.extend_from_slice(rest);
        Some(place)
    }

    /// The module that a path from the root leads to, through names that are passed on.
    fn leads_to(&self, path: &[String], steps: usize) -> String {
        const STEPS_MAX: usize = 8;
        let known =
            (0..=path.len()).rev().find(|end| self.0.contains_key(&path[..*end].join("::")));
        let end = known.unwrap_or(0);
        let module = path[..end].join("::");
        let passed_on = path.get(end).and_then(|name| {
            let exported = |mention: &&Mention| mention.exported.as_ref() == Some(name);
            self.0.get(&module)?.iter().find(exported)
        });
        let next = passed_on.and_then(|mention| self.path_from_root(&module, &mention.words));
        match next.filter(|_| steps < STEPS_MAX) {
            Some(next) => self.leads_to(&[&next, &path[end + 1..]].concat(), steps + 1),
            None => module,
        }
    }

    /// The other modules that one uses.
    fn used_by(&self, module: &str) -> BTreeSet<String> {
        let mentions = self.0.get(module).into_iter().flatten();
        let paths = mentions.filter_map(|mention| self.path_from_root(module, &mention.words));
        let used = paths.map(|path| self.leads_to(&path, 0));
        used.filter(|used| !is_inside(used, module) && !is_inside(module, used)).collect()
    }

    /// The modules that reach each other, by name.
    fn circles(&self) -> Vec<Vec<String>> {
        let used: BTreeMap<&String, BTreeSet<String>> =
            self.0.keys().map(|module| (module, self.used_by(module))).collect();
        let reached = |from: &String| {
            let (mut reached, mut ahead) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = ahead.pop() {
                let fresh = used[&module].iter().filter(|next| reached.insert((*next).clone()));
                ahead.extend(fresh.cloned());
            }
            reached
        };
        let reached: BTreeMap<&String, BTreeSet<String>> =
            self.0.keys().map(|module| (module, reached(module))).collect();
        let circle = |module: &&String| -> Vec<String> {
            let back = reached[*module].iter().filter(|other| reached[*other].contains(*module));
            back.cloned().collect()
        };
        let circles: BTreeSet<Vec<String>> = self.0.keys().map(|module| circle(&module)).collect();
        circles.into_iter().filter(|circle| circle.len() > 1).collect()
    }
}

fn split(module: &str) -> Vec<String> {
    module.split("::").filter(|part| !part.is_empty()).map(Into::into).collect()
}

/// Whether a module is another one or lies inside of it; all lie inside of the root.
fn is_inside(module: &str, other: &str) -> bool {
    other.is_empty()
        || module == other
        || module.strip_prefix(other).is_some_and(|rest| rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings about a crate of these files.
    fn found(files: &[(&str, &str)]) -> usize {
        let path = |name: &str| format!("crates/a/src/{name}.rs");
        let files: Vec<_> = files.iter().map(|(name, text)| (path(name), *text)).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check(&House::of(&files)).len()
    }

    #[test]
    fn circles_of_files_are_found_however_they_are_named() {
        let up = ("up", "use crate::down::Down;\npub struct Up;");
        assert_eq!(found(&[up, ("down", "pub struct Down;")]), 0);
        for back in [
            "use crate::up::Up;",
            "use super::{up::{Up as High}, other};",
            "fn f(up: &crate::up::Up) {}",
            "m! { super::up::go() }",
        ] {
            assert_eq!(found(&[up, ("down", back)]), 1, "{back}");
        }
        let root = ("lib", "mod up;\nmod down;\npub use up::{self, Up};");
        assert_eq!(found(&[root, up, ("down", "use crate::Up;")]), 1, "passed on by the root");
    }

    #[test]
    fn parents_tests_strings_and_comments_do_not_count() {
        let up = ("up", "use crate::down::Down;");
        for fine in [
            "mod tests { use crate::up::Up; }",
            "// use crate::up::Up;\nconst UP: &str = \"crate::up\";",
            "use crate::Root;",
            "use std::up::Up;",
        ] {
            assert_eq!(found(&[up, ("down", fine)]), 0, "{fine}");
        }
        let parent = ("rules/mod", "mod one;\nuse one::find;\npub struct Case;");
        assert_eq!(found(&[parent, ("rules/one", "use super::Case;")]), 0);
        let nephew = ("rules/one", "use crate::up::Up;");
        assert_eq!(found(&[parent, nephew, ("up", "use crate::rules::Case;")]), 0);
        assert_eq!(found(&[nephew, ("up", "use crate::rules::one::find;")]), 1);
    }
}
