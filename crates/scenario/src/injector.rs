//! The automatic congestion threshold: what the injector of Storage I/O Control finds on an idle datastore.
//!
//! It keeps more and more random reads outstanding, and the threshold is the latency at which throughput
//! reaches a share of its peak [API; section 3 of `array-and-control.md`]. Here it tries the model of the array
//! before the run begins, when nobody else is at it; policies of the array are left out. ESXi's injector does so
//! once a day.

use std::{cmp::Reverse, collections::BinaryHeap};

use counters::{MILLISECOND, Op, SECOND, Status, Time};
use knobs::CONGESTION_MS;
use model::{Array, ArrayConfig, Command, VolumeConfig};

/// Reads that are waited for at each depth, of which the first half are not looked at.
const READS: u32 = 8192;
/// Bytes of one; no source says how many.
const BYTES: u32 = 4096;
/// The most that it keeps outstanding.
const DEPTH_MAX: u32 = 256;
/// The same threshold whatever is drawn in the run.
const SEED: u64 = 1;

/// The latency in milliseconds at which an array does `share` of what it does at most when one host, whose
/// device takes `depth` commands, reads at random; in the range of [`CONGESTION_MS`].
pub(crate) fn threshold_ms(array: &ArrayConfig, depth: u32, share: f64) -> u32 {
    let limits = [array.queues.port_limit, array.queues.lun_limit].into_iter().flatten();
    let depth = limits.fold(depth, u32::min).clamp(1, DEPTH_MAX);
    let doubled = (0..).map(|power| 1 << power).take_while(|outstanding| *outstanding < depth);
    let tried: Vec<_> =
        doubled.chain([depth]).map(|outstanding| attempt(array, outstanding)).collect();
    let peak = tried.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    let wanted = share * peak;
    let reached = tried.iter().position(|(rate, _)| *rate >= wanted).unwrap_or(0);
    let (rate, latency_ns) = tried[reached];
    let (rate_below, below_ns) = tried[reached.saturating_sub(1)];
    let latency_ns = match rate - rate_below {
        0.0 => latency_ns,
        more => below_ns + (latency_ns - below_ns) * (wanted - rate_below) / more,
    };
    let (least, most) = CONGESTION_MS.into_inner();
    ((latency_ns / MILLISECOND as f64).round() as u32).clamp(least, most)
}

/// So many reads outstanding all the time: reads a second, and the mean of their latency in nanoseconds.
fn attempt(array: &ArrayConfig, outstanding: u32) -> (f64, f64) {
    let volumes = vec![VolumeConfig::default()];
    let mut array = Array::new(&ArrayConfig { volumes, ..array.clone() }, SEED);
    let command = Command { volume: 0, host: 0, path: 0, op: Op::Read, bytes: BYTES };
    let begun =
        (0..outstanding).map(|_| Reverse((array.dispatch(Time::ZERO, command).at, Time::ZERO)));
    let mut open: BinaryHeap<_> = begun.collect();
    let (mut begin, mut end, mut nanos) = (Time::ZERO, Time::ZERO, 0);
    for count in 1..=READS {
        let Some(Reverse((at, from))) = open.pop() else { break };
        if count <= READS / 2 {
            begin = at;
        } else {
            nanos += at.since(from);
        }
        end = at;
        array.done(Status::Good);
        open.push(Reverse((array.dispatch(at, command).at, at)));
    }
    let half = f64::from(READS - READS / 2);
    (half * SECOND as f64 / end.since(begin).max(1) as f64, nanos as f64 / half)
}

#[cfg(test)]
mod tests {
    use model::{Queues, Service, Spread, WriteProtocol};

    use super::*;

    fn of(service: Service, depth: u32, share: f64) -> u32 {
        let array = ArrayConfig {
            service,
            round_trip_ns: 0,
            link_bytes_per_sec: None,
            write_protocol: WriteProtocol::TransferReady,
            queues: Queues::default(),
            volumes: Vec::new(),
        };
        threshold_ms(&array, depth, share)
    }

    fn servers(servers: u32, mean_ms: u64) -> Service {
        let spread = Spread::Exponential;
        Service::Servers { servers, mean_ns: mean_ms * MILLISECOND, spread }
    }

    /// Section 1 of array-and-control.md: X(n) = N / S n / (N + n - 1), R(n) = n / X(n).
    #[test]
    fn equal_servers_give_what_the_closed_form_does() {
        // X(64) = 701.4; nine tenths of it at n = 33.7, R = 53.4 ms; half of it at n = 7.0, R = 20 ms.
        for (share, expected) in [(0.9, 53), (0.5, 20)] {
            let found = of(servers(10, 12), 64, share) * 125 / 120;
            assert!(found.abs_diff(expected) <= 3, "{share}: {found}");
        }
        // 12.5 ms for 3.125: it goes with the time of a server.
        let quarter = of(servers(10, 3), 64, 0.9);
        assert!(quarter.abs_diff(13) <= 1, "{quarter}");
    }

    #[test]
    fn a_measured_curve_is_read_between_its_points() {
        // 1,000 a second with 10 outstanding, 2,000 with 40 and not more with 80: 1,800 at 17 ms.
        let points = [(1, 10), (10, 10), (20, 14), (40, 20)];
        let points = points.map(|(n, ms)| (n, ms * MILLISECOND)).to_vec();
        let found = of(Service::Curve(points), 80, 0.9);
        assert!((16..=18).contains(&found), "{found}");
    }

    #[test]
    fn it_stays_in_the_range_of_a_threshold() {
        assert_eq!(of(servers(64, 1), 64, 0.9), 5);
        assert_eq!(of(servers(8, 100), 64, 1.0), 100);
    }
}
