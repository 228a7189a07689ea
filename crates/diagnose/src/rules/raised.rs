//! A queue that somebody deepened in the recording: what waited for its slots before is over.

use super::{Case, LASTING, number};
use crate::{Device, Finding, FullQueue, Party, Threshold, span};

/// Tells so in a finding about the full queue, for which nothing is to be done then.
pub(super) fn tell(case: &Case<'_>, device: &Device<'_>, full: &FullQueue, finding: &mut Finding) {
    let Some((since, slots)) = since(device, full) else { return };
    let end_ms = case.host.times_ms.last().copied().unwrap_or_default();
    let when = span(case.host.begin_ms(since), end_ms);
    let told = format!("it has {} slots in the rest of the recording, {when}", number(slots));
    finding.sentence += &format!(" That is over: {told}, while the same VMs compete.");
    finding.changes.clear();
    finding.caution = None;
    finding.do_not = vec![format!("Do not raise DSNRO for it again: {told}.")];
}

/// Since when a queue has more slots than it was full at, and how many, where it does to the end and nobody waits, while
/// those who shared it go on as they did: somebody raised it.
fn since(device: &Device<'_>, full: &FullQueue) -> Option<(usize, f64)> {
    const GOES_ON: f64 = 0.5;
    let last = full.spell.samples.last()?;
    let later: Vec<usize> = device.busy.iter().copied().filter(|sample| sample > last).collect();
    let least = device.limits.get(Threshold::Waiting);
    let is_more = |&sample: &usize| {
        let waits_no_more = device.flow.waiting(sample).is_some_and(|waiting| waiting < least);
        device.queue.depth_at(sample) > Some(full.depth) && waits_no_more
    };
    let then = device.tenants(&later);
    let goes_on =
        |vm: &&Party| then.iter().any(|now| now.name == vm.name && now.iops >= GOES_ON * vm.iops);
    let tenants = device.tenants(&full.spell.samples);
    let competes = tenants.iter().filter(goes_on).count() > 1;
    let is_raised = competes && later.len() >= LASTING && later.iter().all(is_more);
    let since = *later.first().filter(|_| is_raised)?;
    Some((since, device.queue.depth_at(since)?))
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn what_was_raised_meanwhile_is_over_where_nobody_waits_since() {
        let found = |later: f64| {
            let mut bench = Bench::new(20);
            let device = bench.device("naa.1", 32).depth(|s| if s < 10 { 32 } else { 64 });
            for (vm, later) in [("a", 28_000.0), ("b", later)] {
                let rate = move |s| if s < 10 { 28_000.0 } else { later };
                let kavg = |s| if s < 10 { 0.36 } else { 0.0 };
                device.vm(vm).iops_when(rate).davg(0.57).kavg_when(kavg);
            }
            bench.first(Cause::Dsnro, &Facts::default())
        };
        let over = found(28_000.0);
        assert!(over.sentence.contains("That is over: it has 64 slots"), "{}", over.sentence);
        assert!(over.changes.is_empty());
        // Who is alone has the slots that competition took.
        assert!(found(0.0).changes[0].what.starts_with("Raise DSNRO"));
    }
}
