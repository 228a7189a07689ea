//! What of a recording was measured: every cell is judged here, once, and what is missing is missing
//! for whoever reads the rows.

use std::ops::Deref;

use counters::{Counter, EntityId, Recording};
use knobs::NFS_OUTSTANDING;

use crate::{
    beside::{Beside, Bound, fills_16_bits},
    support,
};

/// A recording of which every cell was measured or is missing.
///
/// Missing are negative values (esxtop's sentinels -1 and -3), what a counter never comes to, a time or
/// a rate of faults of all 16 bits, what cannot be beside the others of its row, and what no level bears
/// out.
#[derive(Clone, Debug)]
pub struct Measured(Recording);

impl Measured {
    /// A recording as a source gave it. It takes no memory beside it, but for columns of one value
    /// that was measured in some samples only.
    #[must_use]
    pub fn of(mut recording: Recording) -> Self {
        for id in (0..).map(EntityId).take(recording.entities().len()) {
            let beside = Beside::of(&recording, id);
            let columns = recording.columns_of(id);
            let judged = columns.filter_map(|(counter, values)| {
                Some((counter, without_impossible(&beside, counter, values)?))
            });
            for (counter, values) in judged.collect::<Vec<_>>() {
                recording.set_column(id, counter, values);
            }
        }
        for (id, counter, values) in support::without_lone(&recording) {
            recording.set_column(id, counter, values);
        }
        Self(recording)
    }
}

impl Deref for Measured {
    type Target = Recording;

    fn deref(&self) -> &Recording {
        &self.0
    }
}

/// A column without the cells that cannot be; `None` where all can.
fn without_impossible(beside: &Beside<'_>, counter: Counter, values: &[f64]) -> Option<Vec<f64>> {
    let (absurd, bound) = (absurd(counter), Bound::of(counter));
    // Commands a second may come to 65,535; no device is given up or refused so often.
    let is_rare = counter.info().unit == "ms" || bound.is_of_faults();
    let is_impossible = |(sample, &value): (usize, &f64)| {
        !((0.0..absurd).contains(&value)
            && !(is_rare && fills_16_bits(value))
            && beside.allows(bound, sample, value))
    };
    let cells = || values.iter().enumerate();
    let is_clean = cells().all(|cell| cell.1.is_nan() || !is_impossible(cell));
    let cleaned = |cell: (usize, &f64)| if is_impossible(cell) { f64::NAN } else { *cell.1 };
    (!is_clean).then(|| cells().map(cleaned).collect())
}

/// From where on a value was not measured: a counter of 32 or 64 bits that wrapped prints numbers
/// beside 2^32 or 2^64, divided by the interval or not. What kavg counts itself is what it is.
fn absurd(counter: Counter) -> f64 {
    const NONE: f64 = 1e15;
    let info = counter.info();
    match (counter, info.unit) {
        _ if !info.in_esxtop => NONE,
        // The most that are outstanding anywhere are those of NFS on all its volumes; one less is
        // 16 bits that are all set.
        (
            Counter::AdapterQDepth
            | Counter::DeviceQDepth
            | Counter::WorldQDepth
            | Counter::ActiveCommands
            | Counter::QueuedCommands,
            _,
        ) => f64::from(NFS_OUTSTANDING.default - 1),
        // More than any device completes, and than can be refused, aborted or split of it.
        (_, "1/s") => 4e6,
        (_, "MiB/s") => 1e6,
        // The most patient guest gives a command up after 3 minutes (reference, section 12), the
        // host before it (`Misc.APDTimeout`).
        (_, "ms") => 1.8e5,
        _ => NONE,
    }
}

#[cfg(test)]
mod tests {
    use counters::{Entity, Kind};

    use super::*;
    use crate::Column;

    #[test]
    fn sentinels_and_holes_are_no_values() {
        let column = alone(&[1.0, -3.0, f64::NAN, f64::INFINITY, 2.0], Counter::Resets);
        let column = Column::of(&column, EntityId(0), Counter::Resets);
        assert_eq!(column.over(&[0, 1, 2, 3, 4, 5]).collect::<Vec<_>>(), [1.0, 2.0]);
        assert_eq!(column.every().collect::<Vec<_>>(), [1.0, 2.0]);
    }

    /// An object of one counter, with nothing beside it.
    fn alone(values: &[f64], counter: Counter) -> Measured {
        let mut recording = Recording::new("esx".into());
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        recording.set_column(device, counter, values.to_vec());
        Measured::of(recording)
    }

    fn first(values: &[f64], counter: Counter) -> Option<f64> {
        Column::of(&alone(values, counter), EntityId(0), counter).at(0)
    }

    /// A device of 2,000 commands a second at 1 ms with the values of one sample replaced.
    fn with(replaced: &[(Counter, f64)]) -> Measured {
        let mut recording = Recording::new("esx".into());
        recording.times_ms = (0..6).map(|sample| 5_000 * sample).collect();
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        let row = [
            (Counter::Commands, 2_000.0),
            (Counter::Reads, 2_000.0),
            (Counter::Writes, 0.0),
            (Counter::MbRead, 15.6),
            (Counter::DriverLatency, 1.0),
            (Counter::KernelLatency, 0.01),
            (Counter::QueueLatency, 0.0),
            (Counter::GuestLatency, 1.01),
            (Counter::DeviceQDepth, 64.0),
            (Counter::ActiveCommands, 2.0),
            (Counter::QueuedCommands, 0.0),
            (Counter::Aborts, 0.0),
            (Counter::Resets, 0.0),
            (Counter::Conflicts, 0.0),
            (Counter::FailedCommands, 0.0),
        ];
        for (counter, value) in row {
            let mut values = vec![value; 6];
            for (_, other) in replaced.iter().filter(|(of, _)| *of == counter) {
                values[3] = *other;
            }
            recording.set_column(device, counter, values);
        }
        Measured::of(recording)
    }

    fn is_measured(recording: &Measured, counter: Counter) -> bool {
        Column::of(recording, EntityId(0), counter).at(3).is_some()
    }

    #[test]
    fn what_cannot_be_beside_its_row_was_not_measured() {
        let impossible = [
            (Counter::Aborts, 2_147_483.65),
            (Counter::Resets, 65_535.0),
            (Counter::Aborts, 1_900.0),
            (Counter::FailedCommands, 65_535.0),
            (Counter::Conflicts, 65_535.0),
            (Counter::DriverLatency, 65_535.0),
            (Counter::DriverLatency, 4_294.97),
            (Counter::KernelLatency, 65_535.0),
            (Counter::QueueLatency, 65_535.0),
            (Counter::GuestLatency, 65_535.0),
            (Counter::GuestLatency, 1e6),
            (Counter::Commands, 0.0),
            (Counter::Writes, 1e6),
        ];
        for (counter, value) in impossible {
            assert!(!is_measured(&with(&[(counter, value)]), counter), "{counter:?} {value}");
        }
        for (counter, value) in [
            (Counter::Aborts, 40.0),
            (Counter::Resets, 4.0),
            (Counter::FailedCommands, 1_990.0),
            (Counter::Conflicts, 91.0),
            (Counter::DriverLatency, 30.0),
            (Counter::KernelLatency, 137.0),
        ] {
            assert!(is_measured(&with(&[(counter, value)]), counter), "{counter:?} {value}");
        }
    }

    #[test]
    fn faults_that_no_device_has_were_not_measured_whatever_else_the_row_tells() {
        const FAULTS: [Counter; 4] =
            [Counter::Aborts, Counter::Resets, Counter::Conflicts, Counter::FailedCommands];
        let without_queue = |replaced: &[(Counter, f64)]| {
            let Measured(whole) = with(replaced);
            let mut cut = Recording::new(whole.host.clone());
            cut.times_ms.clone_from(&whole.times_ms);
            cut.add_entity(whole.entity(EntityId(0)).clone());
            let queue = [Counter::ActiveCommands, Counter::QueuedCommands];
            for (id, counter, values) in whole.columns().filter(|of| !queue.contains(&of.1)) {
                cut.set_column(id, counter, values.to_vec());
            }
            Measured::of(cut)
        };
        for counter in FAULTS {
            for value in [13_107.0, 32_767.5, 65_534.0, 65_535.0, 65_536.0, 858_993.0] {
                let row = without_queue(&[(counter, value)]);
                assert!(!is_measured(&row, counter), "{counter:?} {value}");
            }
            assert!(is_measured(&without_queue(&[(counter, 60.0)]), counter), "{counter:?}");
        }
        // So many commands could fail, be refused or given up in 5 s.
        let busy = [(Counter::Commands, 50_000.0), (Counter::Reads, 50_000.0)];
        for counter in FAULTS {
            for value in [65_534.0, 65_535.0, 65_536.0] {
                let row = with(&[&busy[..], &[(counter, value)]].concat());
                assert!(!is_measured(&row, counter), "{counter:?} {value}");
            }
        }
        // Of a host that is shut out nearly all that it has is held: it is in no queue, and few complete.
        let shut_out = [
            (Counter::Commands, 8.0),
            (Counter::Reads, 8.0),
            (Counter::MbRead, 0.06),
            (Counter::ActiveCommands, 0.0),
        ];
        let row = with(&[&shut_out[..], &[(Counter::Conflicts, 646.0)]].concat());
        assert!(is_measured(&row, Counter::Conflicts));
        // What is outstanding is of the same row: it bears nothing out that it cannot be itself.
        let row = [(Counter::ActiveCommands, 65_535.0), (Counter::FailedCommands, 9_000.0)];
        assert!(!is_measured(&with(&row), Counter::FailedCommands));
    }

    #[test]
    fn a_latency_of_a_virtual_disk_that_cannot_be_beside_its_rate_was_not_measured() {
        let disk = |latency: Counter, rate: f64, ms: f64| {
            let mut recording = Recording::new("esx".into());
            recording.times_ms = (0..6).map(|sample| 5_000 * sample).collect();
            let id = recording.add_entity(Entity::new(Kind::VirtualDisk, "sql01:scsi0:1".into()));
            for (counter, value) in [
                (Counter::Commands, 2.0 * rate),
                (Counter::Reads, rate),
                (Counter::Writes, rate),
                (Counter::VdiskReadLatency, 1.2),
                (Counter::VdiskWriteLatency, 0.8),
            ] {
                let mut values = vec![value; 6];
                values[3] = if counter == latency { ms } else { value };
                recording.set_column(id, counter, values);
            }
            is_measured(&Measured::of(recording), latency)
        };
        for latency in [Counter::VdiskReadLatency, Counter::VdiskWriteLatency] {
            // 32 bits of microseconds that wrapped, a minute of 1,000 commands a second.
            for ms in [4_294_967.3, 4_294.97, 60_000.0, 65_535.0, -1.0] {
                assert!(!disk(latency, 1_000.0, ms), "{latency:?} {ms}");
            }
            // A full virtual disk, and a stall of few commands.
            assert!(disk(latency, 1_000.0, 254.0), "{latency:?}");
            assert!(disk(latency, 12.0, 9_000.0), "{latency:?}");
        }
    }

    #[test]
    fn a_latency_of_nothing_beside_commands_outstanding_was_not_measured() {
        let times = [Counter::DriverLatency, Counter::KernelLatency, Counter::GuestLatency];
        let zeroed = |rest: &[(Counter, f64)]| {
            let zeros = times.map(|counter| (counter, 0.0));
            with(&[&zeros[..], rest].concat())
        };
        let are_measured = |recording: &Measured| times.map(|time| is_measured(recording, time));
        // 2 are active in every row, nobody waits.
        assert_eq!(are_measured(&zeroed(&[])), [false, true, false]);
        assert_eq!(are_measured(&zeroed(&[(Counter::ActiveCommands, 0.0)])), [true; 3]);
        let idle = [(Counter::Commands, 0.4), (Counter::Reads, 0.4), (Counter::MbRead, 0.0)];
        assert_eq!(are_measured(&zeroed(&idle)), [true; 3]);
    }

    #[test]
    fn one_number_in_every_cell_of_a_row_was_not_measured() {
        let all = |number| {
            let rates = [
                Counter::Commands,
                Counter::Reads,
                Counter::Writes,
                Counter::MbRead,
                Counter::Aborts,
            ];
            let times =
                [Counter::DriverLatency, Counter::KernelLatency, Counter::GuestLatency].into_iter();
            times.chain(rates).map(|counter| (counter, number)).collect::<Vec<_>>()
        };
        for number in [2.0, 7_000.0, 65_535.0, 1e6, 1.7e5] {
            let row = with(&all(number));
            for (counter, _) in all(number) {
                assert!(!is_measured(&row, counter), "{counter:?} {number}");
            }
        }
    }

    #[test]
    fn what_a_row_bounds_is_bounded_in_the_first_row_too() {
        let Measured(mut first) = with(&[]);
        first.set_column(EntityId(0), Counter::Aborts, vec![65_535.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(Column::of(&Measured::of(first), EntityId(0), Counter::Aborts).at(0), None);
    }

    #[test]
    fn a_stall_of_seconds_is_possible_for_those_that_were_outstanding() {
        for (rate, stall_ms) in [(5.0, 4_200.0), (0.2, 90_000.0), (12.0, 9_000.0)] {
            let moved = (Counter::MbRead, 0.0);
            let row = [(Counter::Commands, rate), (Counter::Reads, rate), moved];
            let stalled = with(&[&row[..], &[(Counter::DriverLatency, stall_ms)]].concat());
            assert!(is_measured(&stalled, Counter::DriverLatency), "{stall_ms}");
        }
    }

    #[test]
    fn wrapped_and_impossible_values_are_none_in_every_counter_of_esxtop() {
        let wrapped = [2_f64.powi(32), 2_f64.powi(64)];
        let garbage: Vec<f64> = wrapped
            .into_iter()
            .flat_map(|most| [most - 2.0, most - 1.0, most, most + 1.0, most / 5.0, most / 60.0])
            .chain([-1.0, -3.0, 1e9])
            .collect();
        let judged = [
            Counter::Commands,
            Counter::Resets,
            Counter::Aborts,
            Counter::Conflicts,
            Counter::SplitCopies,
            Counter::MbRead,
            Counter::DriverLatency,
            Counter::QueueLatency,
            Counter::VdiskReadLatency,
            Counter::DeviceQDepth,
            Counter::AdapterQDepth,
            Counter::QueuedCommands,
        ];
        for counter in judged {
            for value in &garbage {
                assert_eq!(first(&[*value], counter), None, "{counter:?} {value}");
            }
        }
        assert_eq!(first(&[4_096.0], Counter::DeviceQDepth), Some(4_096.0));
        assert_eq!(first(&[65_535.0, 65_534.0], Counter::VdiskReadLatency), None);
        assert_eq!(first(&[65_535.0], Counter::Commands), Some(65_535.0));
        assert_eq!(first(&[22_263.0], Counter::QueueLatency), Some(22_263.0));
        assert_eq!(first(&[2_000_000.0], Counter::Commands), Some(2_000_000.0));
    }
}
