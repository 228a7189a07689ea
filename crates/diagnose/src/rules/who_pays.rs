//! Who gets slower by a deeper queue: with all that waits let through, each command takes as long at an array of which
//! it is known what it has left, and whoever waits less than that today pays for those who wait longer.

use super::{Case, changes, number};
use crate::{Device, Finding, FullQueue, Party, limit_advice};

/// The part of the time then from which a VM that takes so long today is none that pays.
const PAYS: f64 = 0.9;
/// How many times as long a VM must take then for nobody to deepen the queue for one other alone, whatever that gains.
const FAR_LONGER: f64 = 2.0;
/// The part of all that waits that is next to all of it.
const NEXT_TO_ALL: f64 = 0.9;
/// VMs that are named.
const NAMED: usize = 3;

/// Tells in a finding whose change deepens the queue who pays, and takes those from who suffers; where one VM alone
/// gains, it is to ask for less instead.
pub(super) fn tell(case: &Case<'_>, device: &Device<'_>, full: &FullQueue, finding: &mut Finding) {
    let samples = &full.spell.samples;
    let deepens = finding.changes.iter().any(|change| !change.steps.is_empty());
    let (Some(array), Some(rate), true) =
        (case.array(device), device.flow.mean_rate(samples), deepens)
    else {
        return;
    };
    // A queue that has its whole depth between times holds more than the one that is full.
    let outstanding = full.spell.mean(|sample| device.flow.outstanding(sample)).unwrap_or_default();
    let demand = full.demand.max(outstanding);
    let inside = demand.min(case.deeper(device, full, demand).into());
    // Where none waits there for another the rate grows to what the array does; else to half way there, for the more
    // wait the more often one of its parts has nothing to do while another has a queue.
    let same_rate_ms = 1000.0 * inside / rate;
    let most_rate_ms = same_rate_ms * array.work(samples);
    let is_crowded = case.array_ms(device, samples).is_some_and(|ms| array.is_crowded(samples, ms));
    let then_ms = if is_crowded { f64::midpoint(same_rate_ms, most_rate_ms) } else { most_rate_ms };
    let pays = |vm: &Party| vm.gavg_ms.is_some_and(|ms| ms <= PAYS * then_ms);
    let (payers, gainers): (Vec<Party>, Vec<Party>) =
        device.tenants(samples).into_iter().partition(pays);
    if payers.is_empty() || gainers.is_empty() {
        return;
    }
    let gain = 1000.0 * inside / (then_ms * rate) - 1.0;
    let names: Vec<&str> = payers.iter().take(NAMED).map(|vm| vm.name.as_str()).collect();
    let more = payers.len() - names.len();
    let who =
        names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() };
    let least_ms = payers.iter().filter_map(|vm| vm.gavg_ms).fold(f64::INFINITY, f64::min);
    let told = format!(
        "with what waits let through a command takes {} ms at array {}, also of {who}: {} ms today",
        number(then_ms),
        array.name,
        number(least_ms)
    );
    match waits_alone(&gainers) {
        Some(own) if then_ms >= FAR_LONGER.min(1.0 + gain) * least_ms => {
            let what = format!(
                "Leave the depth as it is, and let {} ask for less, or move it: what waits is its own.",
                own.name
            );
            finding.changes = vec![changes::look(what, Vec::new())];
            let limit = limit_advice::hold_on((case.host, device), &[own], samples, case.facts);
            finding.changes.extend(limit);
            finding.caution = None;
            finding.do_not =
                vec![format!("Do not raise the depth for {} alone: {told}.", own.name)];
        }
        _ => {
            let deeper = finding.changes.iter_mut().filter(|change| !change.steps.is_empty());
            deeper.for_each(|change| change.risk += &format!(" Who waits less pays: {told}."));
        }
    }
    if finding.sufferers.iter().any(|vm| !pays(vm)) {
        finding.sufferers.retain(|vm| !pays(vm));
    }
}

/// The VM that has next to all that waits.
pub(super) fn waits_alone(gainers: &[Party]) -> Option<&Party> {
    let waiting = |vm: &Party| vm.waiting.unwrap_or(0.0);
    let all: f64 = gainers.iter().map(waiting).sum();
    match gainers {
        [own] => Some(own),
        _ => gainers.iter().find(|vm| waiting(vm) > NEXT_TO_ALL * all),
    }
}

#[cfg(test)]
mod tests {
    use crate::{ArrayFacts, Cause, DeviceFacts, Facts, Finding, fixture::Bench};

    /// 64 commands of one VM before 32 slots of a device that has 64 without competition, beside a VM that does not wait.
    fn found(work: f64) -> Finding {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 32);
        device.vm("big").iops_when(|s| 10_700.0 + 9.0 * (s % 3) as f64).davg(2.9).kavg(3.0);
        device.vm("sql").iops_when(|s| 300.0 + 7.0 * (s % 4) as f64).davg(2.9).kavg(0.2);
        let array = ArrayFacts {
            name: "box".into(),
            service_ms: Some(1.0),
            busy: vec![work; 12],
            ..ArrayFacts::default()
        };
        let known = DeviceFacts {
            array: Some(array.into()),
            dsnro: Some(32),
            max_queue_depth: Some(64),
            ..DeviceFacts::default()
        };
        let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
        bench.first(Cause::Dsnro, &facts)
    }

    #[test]
    fn no_queue_is_deepened_for_one_vm_where_the_others_lose_more() {
        let busy = found(0.69);
        assert!(busy.changes[0].what.starts_with("Leave the depth as it is"), "{:?}", busy.changes);
        assert!(busy.do_not[0].contains("also of sql"), "{:?}", busy.do_not);
        // With room there all gain.
        let idle = found(0.2);
        assert!(idle.changes[0].what.starts_with("Raise DSNRO"), "{:?}", idle.changes);
    }
}
