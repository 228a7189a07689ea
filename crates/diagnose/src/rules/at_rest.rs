//! What a device does that has little to do, for the rules on the array: against it a slow spell is held.

use super::Case;
use crate::{Device, Flow};

/// Commands that a device must have completed for its latency to mean anything.
pub(super) const ENOUGH_COMMANDS: f64 = 30.0;

/// How soon a device answers that has little to do: in its quick samples, or in a few in a row that
/// have commands enough. A load that fills the recording but for its first rows leaves no more.
pub(super) fn at_rest_ms(case: &Case<'_>, device: &Device<'_>) -> f64 {
    let davg = |few: &[usize]| device.flow.per_command(few, Flow::davg);
    least_of_few(case, device, davg).into_iter().fold(device.quickest_ms, f64::min)
}

/// How soon a device moves a KiB at most, in milliseconds: a command takes no longer to move than it takes
/// in all where there is little to do.
pub(super) fn moves_kib_ms(case: &Case<'_>, device: &Device<'_>) -> f64 {
    let flow = &device.flow;
    let of = |few: &[usize]| Some(flow.per_command(few, Flow::davg)? / flow.size_kib(few)?);
    least_of_few(case, device, of).unwrap_or(f64::INFINITY)
}

/// The least value of a few samples in a row that have commands enough.
fn least_of_few(
    case: &Case<'_>,
    device: &Device<'_>,
    value: impl Fn(&[usize]) -> Option<f64>,
) -> Option<f64> {
    let flow = &device.flow;
    let answers = |s: &usize| flow.is_measured(*s) && flow.rate(*s) > Some(0.0);
    let answered: Vec<usize> = (0..case.host.times_ms.len()).filter(answers).collect();
    let commands = |few: &[usize]| -> Option<f64> {
        few.iter().map(|&s| Some(flow.rate(s)? * case.host.interval_s(s))).sum()
    };
    let few = (2..=4).flat_map(|length| answered.windows(length));
    let few = few.filter(|few| commands(few) >= Some(ENOUGH_COMMANDS));
    few.filter_map(value).reduce(f64::min)
}
