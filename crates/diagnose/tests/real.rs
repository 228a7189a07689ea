//! Captures of real, quiet hosts raise no finding. They are looked for beside the repository and
//! the test is skipped where they are not.

use std::path::PathBuf;

use diagnose::{Facts, Profile, Thresholds, diagnose, render_text};
use levels::Measured;
use testing::{real_captures, skipped};

/// The captures of real hosts.
fn captures() -> Vec<PathBuf> {
    let directory = real_captures();
    let entries = directory.read_dir().into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("esxi") && name.ends_with(".csv")
    });
    if files.is_empty() {
        skipped(format_args!("no captures of real hosts in {}", directory.display()));
    }
    files
}

#[test]
fn quiet_hosts_raise_no_finding() {
    let thresholds =
        [Thresholds::default(), Thresholds::of(Profile::Classic), Thresholds::of(Profile::Flash)];
    for file in captures() {
        let name = file.display().to_string();
        let options = capture::ReadOptions::default();
        let read = capture::read(&[file], &options, &mut |_, _| {});
        let recordings = read.unwrap_or_else(|error| panic!("{error}")).recordings;
        let recordings: Vec<_> = recordings.into_iter().map(Measured::of).collect();
        for (recording, thresholds) in
            recordings.iter().flat_map(|recording| thresholds.iter().map(move |t| (recording, t)))
        {
            let verdict = diagnose(recording, thresholds, &Facts::default());
            let text = render_text(&verdict);
            assert!(verdict.findings.is_empty(), "{name}:\n{text}");
            // The default counters have neither aborts nor conflicts: what they hide is not known.
            let is_whole = !name.contains("default-counters");
            assert_eq!(
                text.contains("no storage problem in these samples"),
                is_whole,
                "{name}:\n{text}"
            );
            assert_eq!(text.starts_with("Not whole: No AQLEN"), !is_whole, "{name}:\n{text}");
        }
    }
}
