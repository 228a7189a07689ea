//! From findings to a verdict: the worst first, and the proof when there are none.

use crate::{
    Cause, Device, Evidence, Facts, Finding, Flow, Host, Lack, LevelKind, Outcome, Profile,
    ProfileChoice, Thresholds, Verdict, Window, above, disagreement,
    headline::{advice, headline, name, names, slowest},
    lacks, largest, number,
    rules::{self, Case},
    unexplained, unserved,
};
use levels::{Measured, array_of};

/// Judges a recording: what is wrong, or that nothing is.
///
/// `thresholds` decide from when on a number counts; `facts` are optional figures of esxcli that
/// raise the confidence. Whether the recording came from a simulation or from a real host makes
/// no difference.
#[must_use]
pub fn diagnose(recording: &Measured, thresholds: &Thresholds, facts: &Facts) -> Verdict {
    let host = Host::observe(recording, thresholds, facts);
    judge(recording, &host, &[], thresholds, facts)
}

/// Judges recordings of one time, each with a verdict of its own: what several hosts show of an array
/// that they share counts for each. `facts` are those of each.
#[must_use]
pub fn diagnose_together(
    recordings: &[Measured],
    thresholds: &Thresholds,
    facts: &[Facts],
) -> Vec<Verdict> {
    let each = recordings.iter().zip(facts);
    let observe = |(recording, facts)| Host::observe(recording, thresholds, facts);
    let hosts: Vec<Host<'_>> = each.clone().map(observe).collect();
    let verdicts = each.zip(&hosts).map(|((recording, facts), host)| {
        let mut verdict = judge(recording, host, &hosts, thresholds, facts);
        if hosts.len() > 1 {
            verdict.name_host();
        }
        verdict
    });
    let mut verdicts: Vec<Verdict> = verdicts.collect();
    tell_others(&mut verdicts, &hosts);
    verdicts
}

/// Says of a host where nothing counts that a device is slow below it all the same, where another host has a finding on
/// that device or on another of its array: else their verdicts on one array would contradict each other.
fn tell_others(verdicts: &mut [Verdict], hosts: &[Host<'_>]) {
    let mut slow = Vec::new();
    for (verdict, host) in verdicts.iter().zip(hosts) {
        let is_below =
            |cause: Cause| cause.level() == LevelKind::Array || cause == Cause::SwitchLink;
        for finding in verdict.findings.iter().filter(|finding| is_below(finding.cause)) {
            let device = host.busy_devices().find(|device| device.flow.name == finding.at.name);
            let (name, cause) = (finding.at.name.clone(), finding.cause);
            slow.extend(device.and_then(davg_ms).map(|ms| (name, cause, host.name, ms)));
        }
    }
    let well = verdicts.iter_mut().zip(hosts);
    for (verdict, host) in well.filter(|(verdict, _)| verdict.outcome == Outcome::Healthy) {
        let told = slow.iter().find_map(|(there, cause, other, there_ms)| {
            let mut same = host.busy_devices().filter(|device| {
                let here = device.flow.name;
                here == there || array_of(here).is_some_and(|array| array_of(there) == Some(array))
            });
            let is_alike = |ms: &f64| 2.0 * ms >= *there_ms;
            let (name, ms) = same.find_map(|device| {
                Some((device.flow.name, davg_ms(device).filter(is_alike)?))
            })?;
            Some(format!(
                "Nothing is wrong in the host, but {} takes {} ms a command below it (DAVG), and {other} finds: {}.",
                verdict.names.get(name).map_or(name, String::as_str),
                number(ms),
                cause.title()
            ))
        });
        verdict.headline = told.unwrap_or_else(|| std::mem::take(&mut verdict.headline));
    }
}

/// What a command of a device takes below the host in the mean of its load.
fn davg_ms(device: &Device<'_>) -> Option<f64> {
    device.flow.per_command(&device.busy, Flow::davg)
}

fn judge(
    recording: &Measured,
    host: &Host<'_>,
    hosts: &[Host<'_>],
    thresholds: &Thresholds,
    facts: &Facts,
) -> Verdict {
    let mut facts = facts.clone();
    let disagreements = disagreement::take_out(host, &mut facts);
    let case = Case::new(host, hosts, &facts);
    let mut findings = rules::find_all(&case);
    findings.iter_mut().for_each(|finding| disagreement::tell(&disagreements, finding));
    let names = names(host, &facts);
    let objects = host.objects();
    findings.iter_mut().for_each(|finding| name(finding, &objects, &names));
    let missing = lacks::counters_of_faults(host);
    let mut lacks = lacks::of(recording, host);
    lacks.extend(missing.clone());
    let unserved = unserved::of(host, &facts);
    lacks.extend(unserved::lacks(&unserved, &findings));
    lacks.extend(above::of(host, &findings));
    lacks.extend(lacks::unanswered(host).filter(|_| findings.is_empty()));
    lacks.extend(unexplained::of(host, &facts, &findings));
    let outcome = outcome(host, &findings, &lacks);
    let mut headline = headline(host, outcome, &findings, &lacks, &facts);
    if let Some(first) = findings.first() {
        headline = unserved::tell(headline, first, &unserved);
    }
    Verdict {
        host: host.name.into(),
        outcome,
        headline,
        lacks,
        advice: advice(&findings),
        window: window(host),
        findings,
        evidence: evidence(host),
        profiles: host.busy_devices().map(|device| choice(device, thresholds, &facts)).collect(),
        disagreements: disagreements.into_iter().map(|each| each.sentence).collect(),
        missing: missing.into_iter().map(|lack| lack.sentence).collect(),
        names,
    }
}

fn outcome(host: &Host<'_>, findings: &[Finding], lacks: &[Lack]) -> Outcome {
    if !findings.is_empty() {
        Outcome::Problem
    } else if !lacks.is_empty() {
        Outcome::CannotTell
    } else if host.busy_devices().next().is_some() {
        Outcome::Healthy
    } else {
        Outcome::Idle
    }
}

/// The whole recording, and its samples with load.
fn window(host: &Host<'_>) -> Window {
    let mut busy: Vec<usize> = host.busy_devices().flat_map(|d| d.busy.iter().copied()).collect();
    busy.sort_unstable();
    busy.dedup();
    Window {
        from_ms: host.begin_ms(0),
        to_ms: host.times_ms.last().copied().unwrap_or(0),
        samples: busy.len(),
        of: host.times_ms.len(),
    }
}

/// The numbers that prove health: the load, and the worst of everything that would be a finding.
fn evidence<'a>(host: &Host<'a>) -> Vec<Evidence> {
    // For NFS esxtop has GAVG alone [ELA].
    let highest = |label, is_nfs: bool, latency: fn(&Flow<'a>, usize) -> Option<f64>| {
        let devices = host.busy_devices().filter(|device| device.is_nfs == is_nfs);
        let values = devices.map(|d| d.flow.per_command(&d.busy, latency));
        Some(Evidence::new(label, largest(values)?, "ms"))
    };
    let latencies = [
        slowest(host, false).map(|(_, ms)| Evidence::new("highest mean DAVG", ms, "ms")),
        highest("highest mean KAVG", false, Flow::kavg),
        highest("highest mean GAVG of NFS", true, Flow::gavg),
    ];
    let rates = host.busy_devices().filter_map(|device| device.flow.mean_rate(&device.busy));
    let devices = host.devices.len() as f64;
    let mut evidence = vec![
        Evidence::new("devices", devices, ""),
        Evidence::new("devices with load", host.busy_devices().count() as f64, ""),
        // The sum of no numbers is -0.
        Evidence::new("their commands per second", rates.sum::<f64>() + 0.0, "1/s"),
    ];
    evidence.extend(latencies.into_iter().flatten());
    let highest_use = largest(host.busy_devices().filter_map(Device::mean_use));
    let queued = host.busy_devices().flat_map(|device| device.queue.qued.over(&device.busy));
    evidence.extend(Evidence::of([
        ("highest use of a device queue, mean", highest_use.map(|part| 100.0 * part), "%"),
        ("highest QUED, sampled", largest(queued), ""),
    ]));
    evidence
}

fn choice(device: &Device<'_>, thresholds: &Thresholds, facts: &Facts) -> ProfileChoice {
    let profile = device.limits.profile;
    let why = if thresholds.is_asked_for() {
        "asked for".into()
    } else if facts.device(device.flow.name).is_flash {
        "esxcli says \"Is SSD: true\"".into()
    } else if device.quickest_ms.is_infinite() {
        "none of its latencies was measured".into()
    } else {
        let side = if profile == Profile::Flash { "below" } else { "not below" };
        let latency = if device.is_nfs { "GAVG" } else { "DAVG" };
        let quickest = number(device.quickest_ms);
        // A sample alone makes no flash.
        let is_passed = device.busy.iter().any(|&s| {
            device.flow.davg(s).is_some_and(|ms| ms > 0.0 && 2.0 * ms <= device.quickest_ms)
        });
        match is_passed {
            true => format!(
                "its {latency} but for a few samples, {quickest} ms, is {side} that of a disk"
            ),
            false => format!("its quickest {latency}, {quickest} ms, is {side} that of a disk"),
        }
    };
    ProfileChoice { device: device.flow.name.into(), profile, why }
}

#[cfg(test)]
mod tests {
    use levels::Measured;

    use crate::{Facts, Thresholds, diagnose_together, fixture::Bench};

    const SLOW: &str = "naa.602000002a8a6553fc83abafc747b54f";

    #[test]
    fn a_device_that_is_slow_for_another_host_is_not_called_well_here() {
        let headline = |there_ms: f64, (name, here_ms): (&str, f64)| {
            let recordings = [(SLOW, there_ms), (name, here_ms)].map(|(name, ms)| {
                let mut bench = Bench::new(8);
                bench.device(name, 64).vm("a").iops(400.0).davg(ms);
                Measured::of(bench.recording())
            });
            let facts = [Facts::default(), Facts::default()];
            let verdicts = diagnose_together(&recordings, &Thresholds::default(), &facts);
            verdicts[1].headline.clone()
        };
        let expected = |name: &str| {
            format!(
                "Nothing is wrong in the host, but {name} takes 23 ms a command below it (DAVG), and esx01 finds: Array slow \
                 or at its knee."
            )
        };
        for name in [SLOW, "naa.602000002a8a6553fc83abafc747b44f"] {
            assert_eq!(headline(30.0, (name, 23.0)), expected(name));
            assert!(!headline(30.0, (name, 12.0)).contains("finds"));
        }
        assert!(!headline(30.0, ("naa.624a93704bfab20d4b694df7000143ac", 23.0)).contains("finds"));
        assert!(!headline(20.0, (SLOW, 23.0)).contains("finds"));
    }
}
