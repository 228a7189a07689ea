//! What came out of a sweep, as tables and charts show it: of each point and window the stack over
//! the seeds, and where the knee is.
//!
//! The knee of a line is its point of the most power, throughput over latency, as of the depth found by
//! latency (`engine/src/knee.rs`): beyond it latency grows faster than throughput.

use std::ops::Range;

use counters::Time;

use crate::{Result, compare::FIGURES, spread::Spread};

use super::{
    axis::Axis,
    figures::figure,
    flow::{Flow, flow_of},
    job::Job,
    store::Store,
};

/// Powers that differ by less are alike; of those the least value is the knee.
const ALIKE: f64 = 0.98;
/// A line of fewer points has no knee.
const POINTS_MIN: usize = 3;

/// What came out.
pub(crate) struct Results<'a> {
    pub(crate) job: &'a Job,
    /// The windows that are shown.
    pub(crate) windows: Vec<Window>,
    /// The VMs that are shown beside the stack, by their names.
    pub(crate) vms: Vec<String>,
}

/// A window over all points.
pub(crate) struct Window {
    pub(crate) name: String,
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// By point; a point may have no such window.
    pub(crate) stacks: Vec<Option<Stack>>,
    /// By point: the I/Os per second of each VM that is shown, and the milliseconds that one takes as
    /// its guest sees it.
    pub(crate) vms: Vec<Vec<[Option<Spread>; 2]>>,
}

/// The stack at a point, as [`FIGURES`].
pub(crate) type Stack = [Option<Spread>; FIGURES.len()];

/// What the power is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The latency of the device: what others on the array feel.
    Davg,
    /// What the guest sees.
    Total,
}

impl By {
    pub(crate) const ALL: [Self; 2] = [Self::Davg, Self::Total];

    /// The key of the latency.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Davg => "davg",
            Self::Total => "total",
        }
    }

    /// The same in words.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Davg => "DAVG",
            Self::Total => "what the guest sees",
        }
    }
}

impl<'a> Results<'a> {
    /// Reads all runs; of the windows that of one name, or those that the file names.
    pub(crate) fn of(
        job: &'a Job,
        store: &mut Store,
        window: Option<&str>,
        vms: &[String],
    ) -> Result<Self> {
        let mut windows: Vec<Window> = Vec::new();
        for point in 0..job.points() {
            let runs = job.runs_of(point).map(|run| store.get(run));
            let runs: Vec<_> = runs.collect::<Result<_>>()?;
            for (index, own) in runs[0].windows.iter().enumerate() {
                let own_of_all: Vec<_> =
                    runs.iter().filter_map(|run| run.windows.get(index)).collect();
                let stacks: Vec<_> = own_of_all.iter().map(|window| window.stack()).collect();
                let of = |place: usize| Spread::of(stacks.iter().map(|stack| stack[place]));
                let both_of = |vm: &String| {
                    let flows: Vec<Option<Flow>> =
                        own_of_all.iter().map(|window| flow_of(window, vm)).collect();
                    let over = |figure: fn(Flow) -> Option<f64>| {
                        Spread::of(flows.iter().map(|flow| flow.and_then(figure)))
                    };
                    [over(|flow| Some(flow.iops)), over(Flow::total_ms)]
                };
                let place = windows.iter().position(|known| known.name == own.name);
                let place = place.unwrap_or_else(|| {
                    let (stacks, flows) =
                        (vec![None; job.points()], vec![Vec::new(); job.points()]);
                    let (name, from, to) = (own.name.clone(), own.from, own.to);
                    windows.push(Window { name, from, to, stacks, vms: flows });
                    windows.len() - 1
                });
                windows[place].stacks[point] = Some(std::array::from_fn(of));
                windows[place].vms[point] = vms.iter().map(both_of).collect();
            }
        }
        match window {
            Some(name) => windows.retain(|window| window.name == name),
            // The whole run stands for its windows only where there are none.
            None if windows.len() > 1 => drop(windows.remove(0)),
            None => {}
        }
        Ok(Self { job, windows, vms: vms.to_vec() })
    }

    /// The axis along which a line goes.
    pub(crate) fn along(&self) -> &Axis {
        &self.job.axes[0]
    }

    /// The points of each line: all values of the first axis, with one of each other.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Range<usize>> {
        let length = self.along().values.len();
        (0..self.job.points()).step_by(length).map(move |first| first..first + length)
    }

    /// What the other axes are on a line.
    pub(crate) fn others(&self, first: usize) -> String {
        let others = self.job.values(first).skip(1);
        let others: Vec<_> = others.map(|(axis, value)| format!("{}={value}", axis.name)).collect();
        others.join(", ")
    }

    /// The point of a line at the knee; `None` where values have no order, all points are alike, or
    /// a figure is missing.
    pub(crate) fn knee(&self, window: &Window, line: &Range<usize>, by: By) -> Option<usize> {
        self.along().numbers().filter(|_| line.len() >= POINTS_MIN)?;
        let power = |point: usize| {
            let stack = window.stacks[point].as_ref()?;
            let ms = mean(stack, by.key()).filter(|ms| *ms > 0.0)?;
            Some(mean(stack, "cmds")? / ms)
        };
        let powers: Vec<_> = line.clone().map(power).collect::<Option<_>>()?;
        let most = powers.iter().copied().fold(0.0, f64::max);
        let is_knee = |power: &f64| *power >= ALIKE * most;
        let place = powers.iter().position(is_knee).filter(|_| !powers.iter().all(is_knee))?;
        Some(line.start + place)
    }
}

/// The mean of a figure of the stack, by its key.
pub(crate) fn mean(stack: &Stack, key: &str) -> Option<f64> {
    Some(stack[figure(key)?.0]?.mean)
}

/// Half of its confidence interval, where there are several seeds.
pub(crate) fn half(stack: &Stack, key: &str) -> Option<f64> {
    stack[figure(key)?.0]?.half
}
