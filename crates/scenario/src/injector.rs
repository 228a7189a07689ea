//! The automatic congestion threshold: what the injector of Storage I/O Control finds on an idle datastore.
//!
//! It keeps more and more random reads outstanding, and the threshold is the latency at which throughput
//! reaches a share of its peak [API; section 3 of `array-and-control.md`]. Here it tries the model of the array
//! before the run begins, when nobody else is at it; policies of the array are left out, and what it does in the
//! background, which may be more than it can. ESXi's injector does so once a day.

use std::{cmp::Reverse, collections::BinaryHeap};

use counters::{MICROSECOND, Op, SECOND, Status, Time};
use knobs::CONGESTION_MS;
use model::{Array, ArrayConfig, Command, Front, VolumeConfig};

/// Reads that are waited for at each depth, of which the first half are not looked at.
const READS: u32 = 131_072;
/// Bytes of one; no source says how many.
const BYTES: u32 = 4096;
/// The most that it keeps outstanding.
const DEPTH_MAX: u32 = 256;
/// The same threshold whatever is drawn in the run.
const SEED: u64 = 1;

/// The latency in microseconds at which an array does `share` of what it does at most when one host, whose
/// device takes `depth` commands, reads at random; in the range of [`CONGESTION_MS`].
pub(crate) fn threshold_us(array: &ArrayConfig, depth: u32, share: f64) -> u32 {
    let limits = [array.queues.port_limit, array.queues.lun_limit].into_iter().flatten();
    let depth = limits.fold(depth, u32::min).clamp(1, DEPTH_MAX);
    let doubled = (0..).map(|power| 1 << power).take_while(|outstanding| *outstanding < depth);
    let tried: Vec<_> = doubled.chain([depth]).map(|n| (f64::from(n), rate(array, n))).collect();
    let peak = tried.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let wanted = share * peak;
    let reached = tried.iter().position(|(_, rate)| *rate >= wanted).unwrap_or(0);
    // Little's law; between two depths latency goes by depth, as R = a + b n, and X = n / R.
    let latency = |(n, rate): (f64, f64)| n / rate;
    let (to, from) = (tried[reached], tried[reached.saturating_sub(1)]);
    let latency_s = match to.0 - from.0 {
        0.0 => latency(to),
        more => {
            let b = (latency(to) - latency(from)) / more;
            (latency(from) - b * from.0) / (1.0 - b * wanted)
        }
    };
    let (least, most) = CONGESTION_MS.into_inner();
    let micros = latency_s * SECOND as f64 / MICROSECOND as f64;
    (micros.round() as u32).clamp(1000 * least, 1000 * most)
}

/// Reads a second with so many outstanding all the time.
fn rate(array: &ArrayConfig, outstanding: u32) -> f64 {
    let volumes = vec![VolumeConfig::default()];
    let front = Front { background: None, ..array.front };
    let mut array = Array::new(&ArrayConfig { volumes, front, ..array.clone() }, SEED);
    let mut place = SEED;
    let mut read = |array: &mut Array, at| {
        // Anywhere on disks of any size: Knuth's generator of 64 bits, whose high ones are good.
        place = place.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let block = place >> 24;
        let command = Command { volume: 0, host: 0, path: 0, op: Op::Read, block, bytes: BYTES };
        array.dispatch(at, command).at
    };
    let begun = (0..outstanding).map(|_| Reverse(read(&mut array, Time::ZERO)));
    let mut open: BinaryHeap<_> = begun.collect();
    let (mut begin, mut end) = (Time::ZERO, Time::ZERO);
    for count in 1..=READS {
        let Some(Reverse(at)) = open.pop() else { break };
        if count <= READS / 2 {
            begin = at;
        }
        end = at;
        array.done(Status::Good);
        open.push(Reverse(read(&mut array, at)));
    }
    f64::from(READS - READS / 2) * SECOND as f64 / end.since(begin).max(1) as f64
}

#[cfg(test)]
mod tests {
    use counters::MILLISECOND;
    use model::{ByCommand, Queues, ServerQueue, Service, Spread, WriteProtocol};

    use super::*;
    use crate::Scenario;

    fn of(service: Service, depth: u32, share: f64) -> u32 {
        let array = ArrayConfig {
            service,
            round_trip_ns: 0,
            link_bytes_per_sec: None,
            write_protocol: WriteProtocol::TransferReady,
            queues: Queues::default(),
            capacity: None,
            front: Front::default(),
            volumes: Vec::new(),
        };
        threshold_us(&array, depth, share)
    }

    fn servers(servers: u32, mean_us: u64) -> Service {
        let spread = Spread::Exponential;
        Service::Servers {
            servers,
            mean_ns: mean_us * MICROSECOND,
            spread,
            queue: ServerQueue::Random,
            by: ByCommand::default(),
            write_cache: None,
        }
    }

    /// Section 1 of array-and-control.md: X(n) = N / S n / (N + n - 1), R(n) = n / X(n).
    #[test]
    fn equal_servers_give_what_the_closed_form_does() {
        // X(64) = 701.4; nine tenths of it at n = 33.7, R = 53.4 ms; half of it at n = 7.03, R = 20.0 ms; six
        // tenths at n = 9.99, R = 23.7 ms, and with a server four times as fast 5.93 ms.
        for (mean_us, share, expected) in [
            (12_500, 0.9, 53_356),
            (12_500, 0.5, 20_031),
            (12_500, 0.6, 23_731),
            (3_125, 0.6, 5_933),
        ] {
            let found = of(servers(10, mean_us), 64, share);
            assert!(found.abs_diff(expected) <= expected / 25, "{share}: {found}");
        }
    }

    #[test]
    fn a_measured_curve_is_read_between_its_points() {
        // 2,000 a second with 40 outstanding and not more with 80; 8 ms + 0.3 ms n below it: 1,800 at n = 31.3.
        let points = [(1, 10), (10, 10), (20, 14), (40, 20)];
        let points = points.map(|(n, ms)| (n, ms * MILLISECOND)).to_vec();
        let found = of(Service::Curve(points, Spread::Constant, ByCommand::default()), 80, 0.9);
        assert!(found.abs_diff(17_391) <= 170, "{found}");
    }

    #[test]
    fn what_an_array_does_in_the_background_is_none_of_it() {
        let host = |background: &str| {
            let text = format!(
                "title = \"x\"\nduration = \"1s\"\n[array.a]\nservers = 2\nservice = \"5ms\"\n{background}\n\
                 [host.h.adapter.vmhba1]\ndriver = \"fnic\"\n[datastore.d]\ncongestion_threshold = \"90%\"\n\
                 [vm.v]\ndisk.\"scsi0:0\".datastore = \"d\"\nworkload = {{ threads = 1 }}\n"
            );
            let scenario = Scenario::parse("x.toml", &text, &mut |_| Err(String::new())).unwrap();
            format!("{:?}", scenario.hosts[0].config)
        };
        // More than twelve times what it can do.
        assert_eq!(host("background = { rate = 5_000 }"), host(""));
    }

    #[test]
    fn it_stays_in_the_range_of_a_threshold() {
        assert_eq!(of(servers(64, 1_000), 64, 0.9), 5_000);
        assert_eq!(of(servers(8, 100_000), 64, 1.0), 100_000);
    }
}
