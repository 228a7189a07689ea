//! Simulates what is not done yet, a run on each thread.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use crate::{
    Result,
    report::Report,
    talk::progress,
    text::{roughly, whole},
};

use super::{figures::Figures, job::Job, store::Store};

/// Does what is left of a job. A terminal is told how far it is and how long the rest takes.
pub(crate) fn run(job: &Job, store: &mut Store, threads: usize) -> Result<()> {
    let left: Vec<_> = (0..job.runs()).filter(|run| !store.has(*run)).collect();
    let next = AtomicUsize::new(0);
    let told = Told { begun: Instant::now(), before: store.done(), all: job.runs() };
    let state = Mutex::new((store, Ok(())));
    let work = || {
        while let Some(run) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
            let done = simulate(job, *run);
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let (store, result) = &mut *state;
            let kept = done
                .and_then(|figures| store.put(*run, &figures).map_err(|error| error.to_string()));
            if let Err(error) = kept {
                *result = Err(error);
                next.store(left.len(), Ordering::Relaxed);
                return;
            }
            told.tell(store.done());
        }
    };
    thread::scope(|scope| (0..threads.min(left.len())).for_each(|_| drop(scope.spawn(work))));
    if !left.is_empty() {
        progress("");
    }
    state.into_inner().unwrap_or_else(PoisonError::into_inner).1.map_err(Into::into)
}

fn simulate(job: &Job, run: usize) -> std::result::Result<Figures, String> {
    let scenario = job.scenario_of(run)?;
    let outcome = sim::run(&scenario, 1, &());
    Ok(Figures::of(&Report::new(scenario, outcome)))
}

/// What a terminal is told.
struct Told {
    begun: Instant,
    /// Runs that were done before.
    before: usize,
    all: usize,
}

impl Told {
    fn tell(&self, done: usize) {
        let (own, left) = (done - self.before, self.all - done);
        let rest = self.begun.elapsed().mul_f64(left as f64 / own.max(1) as f64);
        let [done, all] = [done, self.all].map(|runs| whole(runs as f64));
        progress(&format!("{done} of {all} runs, {} left", roughly(rest)));
    }
}
