//! Every file in `invalid/` is refused with the line that its first comment gives.

use std::{fs, path::Path};

use proptest::prelude::*;
use scenario::Scenario;

/// A file that uses most of the format; mutations of it must be refused or taken, never panic.
const WHOLE: &str = include_str!("whole.toml");

fn parse(name: &str, text: &str) -> Result<Scenario, scenario::Error> {
    let include = |file: &str| Err(format!("file `{file}` cannot be read: there is none"));
    Scenario::parse(name, text, &mut { include })
}

#[test]
fn bad_files_are_refused_with_place_key_and_what_is_allowed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/invalid");
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let expected = text.lines().next().unwrap().trim_start_matches("# ");
        let actual = match parse(&name, &text) {
            Ok(_) => "it is taken".to_string(),
            Err(error) => error.to_string(),
        };
        if actual != format!("{name}:{expected}") {
            wrong.push(format!("expected {name}:{expected}\n  actual {actual}"));
        }
    }
    assert!(files.len() > 50);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_whole_format_is_read() {
    let scenario = parse("whole.toml", WHOLE).unwrap_or_else(|error| panic!("{error}"));
    insta::assert_snapshot!(summary(&scenario));
}

/// A line for each thing.
fn summary(scenario: &Scenario) -> String {
    let mut lines = Vec::new();
    for array in &scenario.arrays {
        lines.push(format!("{}: {:?}", array.name, array.config));
        lines.push(format!("  volumes {:?}", array.volumes));
    }
    for host in &scenario.hosts {
        let config = &host.config;
        let (unit, depth) = (config.competition_unit, config.depth_mode);
        let (name, version) = (&config.name, config.version);
        let (throttle, scale) = (config.throttle_mode, config.weight_scale_percent);
        lines.push(format!("{name}: {version:?} {unit:?} {depth:?} {throttle:?} {scale} %"));
        lines.push(format!("  boot {} settings {:?}", host.boot_ns, host.settings));
        for adapter in &config.adapters {
            let (module, depths) = (adapter.driver.module, (adapter.lun_depth, adapter.depth));
            lines.push(format!("  adapter {} {module} {depths:?}", adapter.name));
        }
        lines.push(format!("  {:?}", host.initiator));
        lines.extend(config.devices.iter().map(|device| format!("  {device:?}")));
        lines.extend(config.paths.iter().map(|path| format!("  {path:?}")));
        lines.extend(config.vms.iter().zip(&host.guests).map(|vm| format!("  {vm:?}")));
        lines.extend(config.vscsi.iter().map(|vscsi| format!("  {vscsi:?}")));
        lines.extend(config.vdisks.iter().zip(&host.targets).map(|disk| format!("  {disk:?}")));
    }
    lines.extend(scenario.workloads.iter().map(|workload| format!("{workload:?}")));
    lines.extend(scenario.events.iter().map(|event| format!("{event:?}")));
    lines.extend(scenario.windows.iter().map(|window| format!("{window:?}")));
    lines.extend(scenario.expectations.iter().map(|expected| format!("{expected:?}")));
    lines.join("\n")
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,400}") {
        let _ = parse("x.toml", &text);
    }

    #[test]
    fn a_mutilated_scenario_never_panics(
        at in 0..WHOLE.len(),
        length in 0_usize..40,
        text in "[-a-z0-9\"=.,:\\[\\]{}#% \n]{0,12}",
    ) {
        let end = (at + length).min(WHOLE.len());
        if WHOLE.is_char_boundary(at) && WHOLE.is_char_boundary(end) {
            let _ = parse("x.toml", &format!("{}{text}{}", &WHOLE[..at], &WHOLE[end..]));
        }
    }

    #[test]
    fn a_mutilated_value_never_panics(
        line in 0..WHOLE.lines().count(),
        value in prop_oneof![
            Just("0".to_string()), Just("-1".into()), Just("18446744073709551616".into()),
            Just("1e308".into()), Just("nan".into()), Just("\"\"".into()), Just("[]".into()),
            Just("{}".into()), Just("\"99999d\"".into()), Just("[[1, 2], [3]]".into()),
            Just("\"a: b=c\"".into()), Just("1979-05-27".into()), "[0-9]{1,20}", "\"[ -~]{0,20}\"",
        ],
    ) {
        let changed: Vec<String> = WHOLE
            .lines()
            .enumerate()
            .map(|(index, text)| match text.split_once(" = ") {
                Some((key, _)) if index == line => format!("{key} = {value}"),
                _ => text.to_string(),
            })
            .collect();
        let _ = parse("x.toml", &changed.join("\n"));
    }

    #[test]
    fn arbitrary_parameter_files_never_panic(
        vdbench in "((sd|wd|rd|\\*)=?[a-z0-9*=,()]{0,30}(threads|xfersize|iorate|elapsed)?=?[0-9(),kmh]{0,12}\n){0,6}",
        fio in "((\\[[a-z]{0,6}\\]|[a-z_]{0,10}|bs|bssplit|iodepth|runtime|rate_iops)=?[-0-9a-z:/,]{0,16}\n){0,8}",
        line in "[ -~]{0,80}",
    ) {
        let quoted = |text: &str| text.replace(['\\', '"'], "");
        for (tool, text) in [("vdbench", &vdbench), ("fio", &fio)] {
            let workload = format!("{tool} = \"\"\"\n{}\n\"\"\"", quoted(text));
            let _ = parse("x.toml", &WHOLE.replace("ioping = true", &workload));
        }
        if let Ok(mut scenario) = parse("x.toml", WHOLE) {
            let _ = scenario.set(&line);
            let _ = scenario.set(&format!("storage core device set {line}"));
            let _ = scenario.set(&format!("system module parameters set {line}"));
            let _ = scenario.set(&format!("storage nmp psp roundrobin deviceconfig set {line}"));
        }
    }
}
