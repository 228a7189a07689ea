//! Whatever a recording holds, a verdict comes out: no panic, and confidences from 0 to 1.

use counters::{Controller, Counter, Entity, EntityId, Kind, Recording};
use diagnose::{Facts, Thresholds, diagnose, render_text};
use proptest::prelude::*;

const KINDS: [Kind; 8] = [
    Kind::Adapter,
    Kind::Path,
    Kind::Device,
    Kind::World,
    Kind::Partition,
    Kind::NfsVolume,
    Kind::Vm,
    Kind::VirtualDisk,
];

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
    (0..KINDS.len(), [0..14_u32, 0..14, 0..14], prop::collection::vec(value(), 40), 1..7_usize)
}

fn build(rows: &[Row], times: &[i64]) -> Recording {
    let mut recording = Recording::new("esx\u{1b}01".into());
    recording.times_ms = times.to_vec();
    for (kind, [device, adapter, vm], _, _) in rows {
        let mut entity = Entity::new(KINDS[*kind], format!("name'{device}:{vm}\n"));
        entity.device = Some(EntityId(*device));
        entity.adapter = Some(EntityId(*adapter));
        entity.vm = Some(EntityId(*vm));
        entity.controller = Some(Controller::Pvscsi);
        recording.add_entity(entity);
    }
    for (id, (kind, _, values, stride)) in (0..).map(EntityId).zip(rows) {
        for (index, counter) in KINDS[*kind].counters().enumerate().step_by(*stride) {
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
        let verdict = diagnose(&build(&rows, &times), &thresholds, &Facts::default());
        for finding in &verdict.findings {
            prop_assert!((0.0..=1.0).contains(&finding.confidence), "{finding:?}");
            prop_assert!(!finding.sentence.is_empty() && !finding.changes.is_empty());
        }
        let text = render_text(&verdict);
        prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
        prop_assert!(serde_json::to_string(&verdict).is_ok());
    }
}
