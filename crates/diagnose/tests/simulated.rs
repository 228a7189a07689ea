//! A simulated change, as every report shows it.

use counters::Recording;
use diagnose::{
    Cause, Change, Facts, Finding, Simulated, SimulatedRow, Step, Thresholds, Verdict, diagnose,
    render_markdown, render_text,
};
use knobs::Setting;
use levels::Measured;

fn row(
    object: &str,
    counter: &'static str,
    captured: Option<f64>,
    range: [f64; 3],
) -> SimulatedRow {
    let [today, low, high] = range;
    SimulatedRow { object: object.into(), counter, unit: "", captured, today, low, high }
}

fn verdict(rows: Vec<SimulatedRow>) -> Verdict {
    let recording = Measured::of(Recording::new("esx01".into()));
    let mut verdict = diagnose(&recording, &Thresholds::default(), &Facts::default());
    let simulated = Simulated {
        sentence: "GAVG of naa.1 falls from 4.8 to between 1.6 and 2.1 ms.".into(),
        identified: true,
        doubts: vec!["The array was never busier than in this capture.".into()],
        rows,
    };
    let dsnro = |value| Setting::SchedNumReqOutstanding { device: "naa.1".into(), value };
    let change = Change {
        what: "Raise DSNRO of naa.1 from 32 to 64.".into(),
        esxcli: vec!["esxcli storage core device set -d naa.1 -O 64".into()],
        powercli: Vec::new(),
        guest: Vec::new(),
        effect: knobs::Effect::AtOnce,
        risk: "Less fairness.".into(),
        undo: "Set what was".into(),
        simulated: Some(simulated),
        steps: vec![Step { host: None, set: dsnro(64), undo: Some(dsnro(32)) }],
    };
    verdict.findings.push(Finding {
        cause: Cause::Dsnro,
        at: diagnose::Object::row(counters::Kind::Device, "naa.1"),
        also: Vec::new(),
        datastore: None,
        sentence: "2 VMs compete on naa.1.".into(),
        window: verdict.window,
        standing: 31.0,
        limit: None,
        evidence: Vec::new(),
        confidence: 0.9,
        raise_confidence: Vec::new(),
        sufferers: Vec::new(),
        causers: Vec::new(),
        changes: vec![change],
        do_not: Vec::new(),
        caution: None,
    });
    verdict.headline = "2 VMs compete on naa.1.".into();
    verdict
}

#[test]
fn captured_today_and_after_stand_side_by_side() {
    let rows = vec![
        row(
            "naa.600000000000000000000000000000a1",
            "CMDS/s",
            Some(20_000.0),
            [19_500.0, 40_000.0, 31_000.0],
        ),
        row("sql01", "GAVG/cmd", Some(4.8), [4.9, 2.1, 1.6]),
        row("sql01", "QUED", None, [64.0, 0.0, 0.0]),
    ];
    let verdict = verdict(rows);
    insta::assert_snapshot!("text", render_text(&verdict));
    insta::assert_snapshot!("markdown", render_markdown(&verdict));
}

#[test]
fn a_change_without_numbers_has_no_table_and_many_numbers_are_bounded() {
    let text = render_text(&verdict(Vec::new()));
    assert!(text.contains("Simulated") && !text.contains("captured"), "{text}");
    let verdict =
        verdict((0..100).map(|i| row(&format!("vm|{i}"), "QUED", None, [1.0; 3])).collect());
    assert!(render_text(&verdict).contains("and 92 more counters"));
    assert!(render_markdown(&verdict).contains("and 75 more"));
}
