//! Whatever a recording holds, a verdict comes out: no panic, and confidences from 0 to 1.

use counters::{Controller, Counter, Entity, EntityId, Kind, Recording};
use diagnose::{
    Facts, Judged, Thresholds, compare, diagnose, render_comparison, render_comparison_markdown,
    render_markdown, render_text,
};
use levels::Measured;
use proptest::prelude::*;

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..200.0_f64,
        2 => Just(0.0),
        2 => Just(32.0),
        1 => 0.0..1e12_f64,
        1 => prop_oneof![
            Just(f64::NAN), Just(f64::INFINITY), Just(-3.0), Just(f64::MAX), Just(f64::MIN_POSITIVE)
        ],
    ]
}

/// An object: its kind, what it belongs to, and whether columns are left out or too short.
type Row = (usize, [u32; 3], Vec<f64>, usize);

fn row() -> impl Strategy<Value = Row> {
    (0..Kind::ALL.len(), [0..14_u32, 0..14, 0..14], prop::collection::vec(value(), 40), 1..7_usize)
}

fn build(rows: &[Row], times: &[i64]) -> Recording {
    let mut recording = Recording::new("esx\u{1b}01".into());
    recording.times_ms = times.to_vec();
    for (kind, [device, adapter, vm], _, _) in rows {
        let mut entity =
            Entity::new(Kind::ALL[*kind], format!("name'{device}:{vm}\n|`<b>\u{202e}"));
        entity.device = Some(EntityId(*device));
        entity.adapter = Some(EntityId(*adapter));
        entity.vm = Some(EntityId(*vm));
        entity.controller = Some(Controller::Pvscsi);
        recording.add_entity(entity);
    }
    for (id, (kind, _, values, stride)) in (0..).map(EntityId).zip(rows) {
        for (index, counter) in Kind::ALL[*kind].counters().enumerate().step_by(*stride) {
            let column: Vec<f64> =
                values.iter().cycle().skip(index).take(times.len()).copied().collect();
            recording.set_column(id, counter, column);
        }
        recording.set_column(id, Counter::Commands, values.clone());
    }
    recording
}

proptest! {
    #[test]
    fn every_recording_has_a_verdict(
        rows in prop::collection::vec(row(), 0..12),
        times in prop_oneof![
            Just((0..20).map(|second| second * 5_000).collect::<Vec<i64>>()),
            prop::collection::vec(any::<i64>(), 0..20),
        ],
        zero in prop::sample::select(vec!["", "davg_ms", "kavg_ms", "waiting", "min_iops"]),
    ) {
        let mut thresholds = Thresholds::default();
        if !zero.is_empty() {
            thresholds.set(zero, 0.0).unwrap();
        }
        let verdict = diagnose(&Measured::of(build(&rows, &times)), &thresholds, &Facts::default());
        for finding in &verdict.findings {
            prop_assert!((0.0..=1.0).contains(&finding.confidence), "{finding:?}");
            prop_assert!(!finding.sentence.is_empty());
            // What to do, or what not to do before something else is done.
            prop_assert!(!finding.changes.is_empty() || !finding.do_not.is_empty());
        }
        let text = render_text(&verdict);
        prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
        prop_assert!(text.lines().all(is_narrow), "{text}");
        prop_assert!(is_whole_markdown(&render_markdown(&verdict)));
        prop_assert!(serde_json::to_string(&verdict).is_ok());
    }

    #[test]
    fn any_two_recordings_can_be_compared(
        before in prop::collection::vec(row(), 0..12),
        after in prop::collection::vec(row(), 0..12),
        times in prop::collection::vec(-100_000..100_000_i64, 0..20),
        is_one_host in any::<bool>(),
    ) {
        let regular: Vec<i64> = (0..20).map(|second| second * 5_000).collect();
        let mut recordings = [build(&before, &regular), build(&after, &times)];
        if !is_one_host {
            recordings[1].host = "esx02".into();
        }
        let judge = |recording| diagnose(recording, &Thresholds::default(), &Facts::default());
        let recordings = recordings.map(Measured::of);
        let verdicts = recordings.each_ref().map(judge);
        let [before, after] =
            [0, 1].map(|i| Judged { recording: &recordings[i], verdict: &verdicts[i] });
        for comparison in [compare(&[before], &[after]), compare(&[before, after], &[])] {
            let text = render_comparison(&comparison);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
            prop_assert!(text.lines().all(is_narrow), "{text}");
            prop_assert!(is_whole_markdown(&render_comparison_markdown(&comparison)));
            let json = serde_json::to_string(&comparison).unwrap();
            prop_assert!(!json.contains("Infinity") && !json.contains("NaN"));
        }
    }
}

/// Whether a line fits a terminal of 80 columns, or is one to type.
fn is_narrow(line: &str) -> bool {
    line.chars().count() <= 80 || line.contains("> ")
}

/// Whether every row of a table has as many cells as its head, and every fence ends.
fn is_whole_markdown(text: &str) -> bool {
    let (mut cells, mut fence) = (None, None);
    for line in text.lines() {
        let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
        match fence {
            Some(open) if line.len() == ticks && ticks >= open => fence = None,
            Some(_) => {}
            None if ticks >= 3 => fence = Some(ticks),
            None if line.starts_with('|') => {
                let row = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
                if cells.is_some_and(|cells| row > cells) {
                    return false;
                }
                cells = cells.or(Some(row));
            }
            None => cells = None,
        }
    }
    fence.is_none()
}
