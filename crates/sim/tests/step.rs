//! What a run tells step by step.

mod common;

use std::io::{self, BufReader};

use sim::{Step, run_watched};

#[test]
fn each_line_lets_one_event_happen_and_the_rest_happens_unseen() {
    let scenario = common::scenario(common::SMALL);
    let step = Step::new(&scenario, &b"\n\nanything\n"[..], Vec::new());
    let (outcome, step) = run_watched(&scenario, step);
    insta::assert_snapshot!(String::from_utf8(step.finish().unwrap()).unwrap());
    assert!(outcome.ios > 10);
}

#[test]
fn a_line_without_an_end_is_refused() {
    let scenario = common::scenario(common::SMALL);
    let step = Step::new(&scenario, BufReader::new(io::repeat(b'y')), Vec::new());
    let (_, step) = run_watched(&scenario, step);
    assert!(step.finish().unwrap_err().to_string().ends_with("has no end"));
}
