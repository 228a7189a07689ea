//! Whatever a recording holds, there is an answer or one line that says why not: no panic, no run
//! without end.

use counters::{Controller, Counter, Entity, EntityId, Kind, Recording};
use diagnose::Facts;
use knobs::Line;
use levels::Measured;
use proptest::prelude::*;
use whatif::{Model, Question};

const KINDS: [Kind; 7] = [
    Kind::Adapter,
    Kind::Path,
    Kind::Device,
    Kind::World,
    Kind::NfsVolume,
    Kind::Vm,
    Kind::VirtualDisk,
];
const SAMPLES: usize = 16;

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => 0.0..400.0_f64,
        2 => Just(0.0),
        2 => Just(32.0),
        2 => 0.0..1e6_f64,
        1 => 0.0..1e12_f64,
        1 => prop_oneof![
            Just(f64::NAN), Just(f64::INFINITY), Just(-3.0), Just(f64::MAX), Just(1e300),
            Just(f64::MIN_POSITIVE)
        ],
    ]
}

/// An object: its kind, what it belongs to, its values, and which of its columns are left out.
type Row = (usize, [u32; 3], Vec<f64>, usize);

fn row() -> impl Strategy<Value = Row> {
    let values = prop::collection::vec(value(), SAMPLES + 5);
    (0..KINDS.len(), [0..10_u32, 0..10, 0..10], values, 1..4_usize)
}

/// A device with a VM and its disk first, then whatever was drawn.
fn build(rows: &[Row], times: Vec<i64>) -> Recording {
    let mut recording = Recording::new("esx\u{1b}01.site".into());
    recording.times_ms = times;
    let first = [(2, [0; 3]), (5, [0; 3]), (3, [0, 0, 1]), (6, [0, 0, 1])];
    let kinds = first.into_iter().chain(rows.iter().map(|row| (row.0, row.1)));
    for (index, (kind, [device, adapter, vm])) in kinds.enumerate() {
        let name = match KINDS[kind] {
            Kind::Device => format!("naa.6{index}"),
            Kind::VirtualDisk => format!("a vm\n{vm}:scsi0:{index}"),
            _ => format!("a vm\n{index}"),
        };
        let mut entity = Entity::new(KINDS[kind], name);
        entity.device = Some(EntityId(device));
        entity.adapter = Some(EntityId(adapter));
        entity.vm = Some(EntityId(vm));
        entity.controller = [None, Some(Controller::Pvscsi), Some(Controller::LsiSas)][index % 3];
        recording.add_entity(entity);
    }
    for (id, (_, _, values, stride)) in (0..).map(EntityId).zip(rows.iter().cycle()).take(14) {
        let Some(entity) = recording.entities().get(id.0 as usize) else { break };
        let counters: Vec<Counter> = entity.kind.counters().step_by(*stride).collect();
        for (index, counter) in counters.into_iter().enumerate() {
            let column = values.iter().cycle().skip(index).take(recording.len()).copied();
            recording.set_column(id, counter, column.collect());
        }
        recording.set_column(id, Counter::Commands, values.clone());
    }
    recording
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_recording_has_an_answer_or_a_line(
        rows in prop::collection::vec(row(), 1..8),
        times in prop_oneof![
            4 => Just((1..=SAMPLES as i64).map(|second| second * 5_000).collect::<Vec<i64>>()),
            1 => prop::collection::vec(any::<i64>(), 0..SAMPLES),
        ],
        window in prop_oneof![Just((i64::MIN, i64::MAX)), any::<(i64, i64)>()],
        line in prop::sample::select(vec![
            "storage core device set -d naa.60 -O 64",
            "system module parameters set -m nfnic -p lun_queue_depth_per_path=256",
            "a vm\n1: RequestRingPages=32,MaxQueueDepth=254",
            "a vm\n1: DiskLimitIOPerSecond 500",
            "storage nmp device set -d '' -P VMW_PSP_RR",
        ]),
    ) {
        let recording = Measured::of(build(&rows, times));
        let question = Question {
            settings: line.parse::<Line>().expect("a line").settings,
            window,
            device: None,
            vms: Vec::new(),
            arrays: Vec::new(),
            vscsistats: Vec::new(),
            commands: 500.0,
        };
        let facts = Facts::default();
        let answer = Model::calibrate(&recording, &facts, &question).and_then(|m| m.answer());
        match answer {
            Ok(answer) => {
                prop_assert!(!answer.simulated.sentence.is_empty());
                for row in &answer.simulated.rows {
                    prop_assert!(row.low <= row.high && row.low >= 0.0, "{row:?}");
                    prop_assert!(row.high.is_finite() && row.today.is_finite(), "{row:?}");
                }
            }
            Err(error) => prop_assert!(!error.to_string().trim().contains('\n'), "{error}"),
        }
    }
}
