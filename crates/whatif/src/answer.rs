//! Runs held against the recording, and what is said of them.

use counters::Counter;
use diagnose::{Simulated, SimulatedRow};
use knobs::{Setting, default_cost_unit_kib};

use crate::{
    ArrayCalibration, DeviceCalibration, Error, Habit, apart, closed, cut, flaps, found, freed,
    held, laws, lowered,
    number::number,
    pieces,
    question::{Asked, Limited, depth_asked},
    raised, roomy,
    rows::ROUNDING_MS,
    run::{Figure, Figures, Key},
    said::{Verdict, apart_from, before, falls, losses, main_rows, sentence, verdict, vms_stay},
    unmoved::{RUN, Still, none, unmoved},
};

/// The figures of one reading, by key.
pub(crate) struct Run {
    pub(crate) today: Vec<Figure>,
    pub(crate) after: Vec<Figure>,
}

/// The runs of each reading without the counters that one of them has none of: a latency where no
/// command came.
pub(crate) fn comparable(
    keys: Vec<Key>,
    today: Vec<Figures>,
    after: Vec<Figures>,
) -> (Vec<Key>, Vec<Run>) {
    let is_there = |index: usize| today.iter().chain(&after).all(|of| of[index].is_some());
    let there: Vec<bool> = (0..keys.len()).map(is_there).collect();
    let figures = |of: Figures| -> Vec<Figure> {
        of.into_iter().zip(&there).filter_map(|(figure, is)| figure.filter(|_| *is)).collect()
    };
    let each = today.into_iter().zip(after);
    let runs = each.map(|(today, after)| Run { today: figures(today), after: figures(after) });
    let runs = runs.collect();
    let keys = keys.into_iter().zip(&there).filter(|(_, is)| **is).map(|(key, _)| key);
    (keys.collect(), runs)
}

/// Of a change of depth without the VMs, where no reading gives what each of them had and one gives what
/// their devices had, and a doubt that says so; and whether that is so.
pub(crate) fn of_devices(
    (keys, runs): (Vec<Key>, Vec<Run>),
    is_of_depth: bool,
    doubts: &mut Vec<String>,
) -> (Vec<Key>, Vec<Run>, bool) {
    let matches = |keys: &[Key], figures: &[Figure]| worst(keys, figures).0 <= MATCHES;
    // Devices come first.
    let devices = keys.iter().take_while(|key| key.is_device()).count();
    let of_run = |run: &Run| matches(&keys[..devices], &run.today[..devices]);
    let is_matched = runs.iter().any(|run| matches(&keys, &run.today));
    if !is_of_depth || is_matched || !runs.iter().any(of_run) {
        return (keys, runs, false);
    }
    let first = |mut figures: Vec<Figure>| {
        figures.truncate(devices);
        figures
    };
    let runs = runs.into_iter().map(|run| Run { today: first(run.today), after: first(run.after) });
    const WHY: &str = "No model of this host divides the commands among its VMs as they were recorded: \
                       nothing is said of each of them.";
    doubts.push(WHY.into());
    (keys[..devices].to_vec(), runs.collect(), true)
}

/// The readings that give what the recording shows, by their places: the likeliest first.
///
/// # Errors
/// One line, when none does.
pub(crate) fn likely(keys: Vec<Key>, today: Vec<Figures>) -> Result<(Vec<usize>, f64), Error> {
    let (keys, runs) = comparable(keys, today.clone(), today);
    let miss = |run: &Run| worst(&keys, &run.today);
    let gives = |run: &Run| miss(run).0 <= MATCHES && answers_today(&keys, run);
    let all: Vec<usize> = (0..runs.len()).filter(|index| gives(&runs[*index])).collect();
    let closest = || runs.iter().min_by(|a, b| miss(a).0.total_cmp(&miss(b).0));
    match (all.is_empty(), closest()) {
        (true, Some(run)) => Err(Error::new(no_model(&keys, &run.today, miss(run).1))),
        _ => {
            let furthest = levels::largest(all.iter().map(|index| miss(&runs[*index]).0));
            Ok((all, furthest.unwrap_or_default()))
        }
    }
}

/// How far today may be from the recording in any counter [the field's habit: a model that misses
/// today by more than a tenth is not asked for tomorrow].
pub(crate) const MATCHES: f64 = 0.1;
/// What is said where no command comes to its end.
const UNANSWERED: &str = "There is no prediction: the recording fits a load of which no command \
                   would be answered within the simulated time after the change, so nothing \
                   can be said of latency. A recording of a longer stretch, or of a busier \
                   one, would tell.";
/// What is said where a VM is seen to wait for a limit, and no reading with one gives what is recorded.
const NO_LIMIT: &str = "There is no prediction: the VM waits as for a limit, and rests within the \
                        samples, so that nothing shows the rate of it. Its limit itself would tell, \
                        or samples that are shorter than its load lasts.";
/// By how much a change by a factor of e may be missed between intervals that were seen.
const CURVE: f64 = 0.02;

/// The answer. The first run is the reading that is likeliest; of those that give what the
/// recording shows the closest is shown as today, and all of them span the range.
pub(crate) fn answer(
    keys: &[Key],
    runs: &[Run],
    (calibrated, arrays): (&[DeviceCalibration], &[ArrayCalibration]),
    asked: Asked<'_>,
    mut doubts: Vec<String>,
) -> (Simulated, Verdict, f64) {
    let worst = |run: &Run| worst(keys, &run.today);
    let closest = runs.iter().map(|run| (worst(run), run)).min_by(|a, b| a.0.0.total_cmp(&b.0.0));
    let Some(((miss, at), best)) = closest else {
        return (none("The recording has no device to simulate.", doubts), Verdict::NoModel, 1.0);
    };
    doubts.splice(0..0, doubts_of(calibrated, arrays, asked.limited.map(|limited| limited.vm)));
    doubts.extend(asked.flapping.map(flaps::doubt));
    let mut kept: Vec<&Run> = runs.iter().collect();
    if kept.iter().any(|run| answers_today(keys, run)) {
        kept.retain(|run| answers_today(keys, run));
    }
    if asked.is_tried && kept.iter().any(|run| gives_what_was_seen(keys, run)) {
        kept.retain(|run| gives_what_was_seen(keys, run));
    }
    let quickest_ms = arrays.iter().map(|array| array.davg_ms[0]).fold(f64::INFINITY, f64::min);
    let rounding = (ROUNDING_MS / quickest_ms).min(0.1);
    if let Some(waits) = asked.untouched {
        return untouched(keys, (best, &kept), ((miss, at), waits), doubts);
    }
    if miss > MATCHES {
        let (simulated, verdict) = without_model(keys, (best, at), (rounding, &asked), doubts);
        return (simulated, verdict, miss);
    }
    let lifts = asked.limited.is_some_and(|limited| limited.is_lifted() && limited.is_held);
    if lifts && kept.len() == 1 && runs.len() > 1 {
        return (none(NO_LIMIT, doubts), Verdict::NoModel, miss);
    }
    // More that a guest sends makes the queue go to and fro at another rate.
    let sends_more = asked.settings.iter().any(|set| matches!(set, Setting::Pvscsi { .. }));
    let is_lost = |device: &&str| {
        let is_asked = depth_asked(asked.settings, device).is_some();
        sends_more || is_asked && !is_deeper(keys, runs)
    };
    if let Some(device) = asked.flapping.filter(is_lost) {
        return (none(&flaps::refusal(device), doubts), Verdict::NoModel, miss);
    }
    // Who is limited gets what it is given: the answer is about its device then.
    let lifted = asked.limited.filter(Limited::is_asked_about).map(|limited| limited.vm);
    // A wait may be that for a limit which nothing tells from a full queue.
    let is_free = asked.limited.is_some_and(|limited| limited.is_free(RUN));
    let is_noticed = lowered::asked(&asked).is_some()
        || cut::cuts(calibrated, asked.settings)
        || runs.iter().any(|run| run.today != run.after);
    if (asked.is_of_depth || is_free) && !is_noticed {
        let (simulated, verdict) = unnoticed(keys, &best.today, &asked, doubts);
        return (simulated, verdict, miss);
    }
    let mut rows: Vec<SimulatedRow> = keys
        .iter()
        .enumerate()
        .map(|(index, key)| row(key, index, (rounding, asked), best, &kept))
        .collect();
    hold(keys, (calibrated, arrays), (rounding, &asked), (&mut rows, &mut doubts));
    let main = main_rows(keys, lifted, &rows);
    if main.len() < 2 {
        return (none(UNANSWERED, doubts), Verdict::NoModel, miss);
    }
    let held = asked.limited.filter(|limited| limited.held.is_some()).map(|limited| limited.vm);
    let (mut simulated, verdict) = told(keys, (lifted, held, asked.is_undivided), rows, doubts);
    leave_out_what_is_missed(keys, &mut simulated);
    simulated.sentence += &asked.limited.map_or(String::new(), |limited| cost(calibrated, limited));
    (simulated, verdict, miss)
}

/// The answer where slots are never short, with today as it is simulated where a model gives it.
fn untouched(
    keys: &[Key],
    (best, kept): (&Run, &[&Run]),
    ((miss, at), waits): ((f64, usize), f64),
    doubts: Vec<String>,
) -> (Simulated, Verdict, f64) {
    let all = |at: usize| kept.iter().flat_map(move |run| run.after[at].ends);
    let ends = |at| [all(at).fold(f64::INFINITY, f64::min), all(at).fold(0.0, f64::max)];
    let (mut simulated, verdict) = roomy::answer(keys, &ends, waits, doubts);
    if miss <= MATCHES {
        return (held_against(keys, &best.today, simulated), verdict, miss);
    }
    simulated.doubts.insert(0, not_simulated(&no_model(keys, &best.today, at), roomy::REASON));
    (simulated, verdict, 0.0)
}

/// The answer where no model gives today: that a limit is not reached, or what was seen at the depth that is asked for.
fn without_model(
    keys: &[Key],
    (best, at): (&Run, usize),
    (rounding, asked): (f64, &Asked<'_>),
    doubts: Vec<String>,
) -> (Simulated, Verdict) {
    let why = no_model(keys, &best.today, at);
    match asked.is_of_depth {
        _ if asked.limited.as_ref().is_some_and(Limited::is_unreached) => {
            unnoticed(keys, &best.today, asked, doubts)
        }
        true => as_seen(keys, rounding, why, doubts),
        false => (none(&why, doubts), Verdict::NoModel),
    }
}

/// Takes out the rows of counters that today's simulation misses by more than a tenth, and says which: what becomes of
/// them is not known. A figure's last decimals do not count, nor a hundredth of all that a command takes.
pub(crate) fn leave_out_what_is_missed(keys: &[Key], simulated: &mut Simulated) {
    const LAST: f64 = 0.1;
    const LITTLE: f64 = 0.01;
    let is_missed = |key: &Key, row: &SimulatedRow| {
        let gavg = |other: &&Key| other.object == key.object && other.is(Counter::GuestLatency);
        let whole = keys.iter().find(gavg).and_then(|key| key.captured).unwrap_or_default();
        let least = if key.unit == "ms" { 2.0 * ROUNDING_MS + LITTLE * whole } else { LAST };
        let missed = row.captured.map_or(0.0, |was| (row.today - was).abs() - MATCHES * was);
        !key.is_total() && missed > least
    };
    let (mut missed, mut kept) = (Vec::new(), Vec::new());
    for (key, row) in keys.iter().zip(std::mem::take(&mut simulated.rows)) {
        if is_missed(key, &row) { missed.push(row) } else { kept.push(row) }
    }
    simulated.rows = kept;
    simulated.doubts.extend(missed.iter().map(|row| {
        let [today, was] = [row.today, before(row)].map(number);
        format!(
            "{} of {} would be {today} today and is {was}: what becomes of it is not known.",
            row.counter, row.object
        )
    }));
}

/// What holds whatever the readings say, and why.
fn hold(
    keys: &[Key],
    (calibrated, arrays): (&[DeviceCalibration], &[ArrayCalibration]),
    (rounding, asked): (f64, &Asked<'_>),
    (rows, doubts): (&mut [SimulatedRow], &mut Vec<String>),
) {
    if asked.is_of_depth
        && laws::hold(keys, (calibrated, arrays), (rounding, asked), rows)
        && let Some(device) = calibrated.first()
    {
        doubts.push(refused(&device.device));
    }
    if let Some(limited) = asked.limited {
        let model = (calibrated, arrays);
        laws::hold_to_limit(keys, model, (limited, rounding, asked), rows);
        freed::hold(keys, calibrated, (limited, asked), rows);
        if limited.held.is_some() {
            closed::hold(keys, calibrated, limited.vm, rows);
        } else if let Some(limit) = limited.most_iops {
            raised::hold(keys, calibrated, (limited.vm, limit), rows);
        }
        doubts.extend(held::doubt(calibrated));
    }
    lowered::hold(keys, calibrated, asked, rows);
    doubts.extend(lowered::asked(asked).map(|(device, _)| lowered::doubt(device)));
    found::hold(keys, (calibrated, arrays), asked, rows);
    doubts.extend(found::doubt((calibrated, arrays), asked));
    pieces::hold(keys, calibrated, asked.settings, rows);
    doubts.extend(pieces::doubt(calibrated, asked.settings));
    apart::hold(keys, calibrated, asked, rows);
    cut::hold(keys, calibrated, asked.settings, rows);
    doubts.extend(cut::doubts(calibrated, asked.settings));
    laws::hold_to_whole(keys, calibrated, rows);
    doubts.extend(asked.limited.iter().flat_map(Limited::doubts));
    doubts.extend(asked.limited.and_then(|limited| gives_up(keys, limited.vm, rows)));
}

/// The answer where no simulated command notices the change, of a model of today: of its counters those that it gives.
fn unnoticed(
    keys: &[Key],
    today: &[Figure],
    asked: &Asked<'_>,
    doubts: Vec<String>,
) -> (Simulated, Verdict) {
    const SPLIT: &str = "There is no prediction: the change cuts commands into other pieces, and \
                         what a piece costs the initiator and the array is not modelled. Nothing \
                         else of it comes to bear.";
    const WHY: &str = " No simulated command notices the change: it is set so already, or it \
                       never comes to bear.";
    const LITTLE: &str = " Next to nothing of it waits in the VMkernel today: a limit that is there \
                          hardly comes to bear.";
    let totals = keys.iter().zip(today).filter(|(key, _)| key.is_total());
    let (keys_of, figures): (Vec<Key>, Vec<Figure>) =
        totals.map(|(key, figure)| (key.clone(), *figure)).unzip();
    let (miss, at) = worst(&keys_of, &figures);
    match asked.unseen {
        _ if asked.is_split => (none(SPLIT, doubts), Verdict::NoModel),
        Some(why) => (none(why, doubts), Verdict::NoModel),
        None if miss > MATCHES => {
            (none(&no_model(&keys_of, &figures, at), doubts), Verdict::NoModel)
        }
        None => {
            let lifted = asked.limited.filter(Limited::is_lifted);
            // A wait too short for a limit that is seen may be one all the same.
            let waits = asked.limited.map_or(0.0, |limited| limited.waits);
            let why = if lifted.is_some() && waits > 0.0 { LITTLE } else { WHY };
            let vm = lifted.map(|limited| limited.vm);
            let still = Still { vm, waits, is_of_limit: waits > 0.0, depth: &|_| None };
            let (simulated, verdict) = unmoved(keys, &still, why, doubts);
            (held_against(keys, today, simulated), verdict)
        }
    }
}

/// The answer with today as it is simulated, and without the counters that this misses. A wait that is a small part of
/// its latency comes of a few instants, so that another run of the same load may have as little as the simulated one.
fn held_against(keys: &[Key], today: &[Figure], mut simulated: Simulated) -> Simulated {
    for ((row, figure), key) in simulated.rows.iter_mut().zip(today).zip(keys) {
        row.today = figure.mean;
        if key.is(Counter::KernelLatency) || key.is(Counter::MeanQueued) {
            row.low = row.low.min(row.today);
            row.high = row.high.max(row.today);
        }
    }
    leave_out_what_is_missed(keys, &mut simulated);
    simulated
}

/// Rows with what is to be said of them. Where the VMs are undivided, what stays as it is for their device may be
/// much for one of them.
pub(crate) fn told(
    keys: &[Key],
    (lifted, held, is_undivided): (Option<&str>, Option<&str>, bool),
    rows: Vec<SimulatedRow>,
    doubts: Vec<String>,
) -> (Simulated, Verdict) {
    let main = main_rows(keys, lifted, &rows);
    let verdict = match verdict(&main) {
        // The commands of a VM that sends few are lost in the mean of its device.
        Verdict::GainsNothing if is_undivided => Verdict::CannotTell,
        Verdict::GainsNothing if !vms_stay(keys, &rows) => Verdict::Identified,
        other => other,
    };
    let falls = held.map_or(String::new(), |vm| falls(keys, vm, &main, &rows));
    let untold = if is_undivided { " What each of its VMs has of that is not known." } else { "" };
    let sentence = sentence(&main, verdict)
        + &falls
        + untold
        + &apart_from(keys, &main, &rows)
        + &losses(keys, &rows);
    let identified = matches!(verdict, Verdict::GainsNothing | Verdict::Identified);
    (Simulated { sentence, identified, doubts, rows }, verdict)
}

/// What was seen at the depth that is asked for, where no model gives what is recorded; that there
/// is no model (`why`) where nothing was.
fn as_seen(
    keys: &[Key],
    rounding: f64,
    why: String,
    mut doubts: Vec<String>,
) -> (Simulated, Verdict) {
    let seen = |key: &Key| {
        let [low, high] = key.seen_between(rounding)?;
        let captured = key.captured?;
        let row = SimulatedRow {
            object: key.object.clone(),
            counter: key.name,
            unit: key.unit,
            captured: Some(captured),
            today: captured,
            low: low * (1.0 - key.chance),
            high: high * (1.0 + key.chance),
        };
        Some((key.clone(), row))
    };
    let (keys, rows): (Vec<Key>, Vec<SimulatedRow>) = keys.iter().filter_map(seen).unzip();
    if main_rows(&keys, None, &rows).len() < 2 {
        return (none(&why, doubts), Verdict::NoModel);
    }
    const SEEN: &str = "it is what the recording itself shows at the depth that is asked for, of a load that may be \
                        the same";
    doubts.insert(0, not_simulated(&why, SEEN));
    told(&keys, (None, None, false), rows, doubts)
}

/// That an answer stands without a model, of which `why` says that there is none.
fn not_simulated(why: &str, reason: &str) -> String {
    let why = why.replace(", so there is no prediction", "");
    format!("{why} The answer is not simulated: {reason}.")
}

/// Why a deeper queue may give less.
fn refused(device: &str) -> String {
    format!(
        "The range begins below today because the array may reject what is beyond the commands that \
         it was seen to take (TASK SET FULL): a host that throttles for that halves its queue and \
         lets it grow back, three quarters of it on average. `esxcli storage core device list -d \
         {device}` says whether it does (Queue Full Sample Size above 0; --esxcli FILE)."
    )
}

/// Why a VM of large commands does fewer than the limit that is put on it says.
fn cost(calibrated: &[DeviceCalibration], limited: Limited<'_>) -> String {
    let mut guests = calibrated.iter().flat_map(|device| &device.guests);
    let large = guests.find(|guest| guest.vm == limited.vm && guest.units[0] > 1.0);
    let (Some(held), Some(guest)) = (limited.held, large) else { return String::new() };
    // To a tenth, and whole numbers as such.
    let [least, most] = guest.units.map(|units| (10.0 * units).round() / 10.0);
    let units = if least < most { format!("{least} to {most}") } else { least.to_string() };
    format!(
        " Each begun {:.0} KiB of a command count as one to an IOPS limit: a command of {} counts as \
         {units}, and the limit lets no more than {} a second through.",
        default_cost_unit_kib(),
        guest.vm,
        number(held.iops[1])
    )
}

/// That a VM may not wait for its turn, if that may take longer than guests wait.
fn gives_up(keys: &[Key], vm: &str, rows: &[SimulatedRow]) -> Option<String> {
    let is_its = |key: &Key| !key.is_device() && key.object == vm;
    let of_vm = keys.iter().zip(rows).filter(|(key, _)| is_its(key) && key.unit == "ms");
    let longest_ms = of_vm.map(|(_, row)| row.high).fold(0.0, f64::max);
    (longest_ms > laws::timeout_ms()).then(|| {
        format!(
            "{vm} may give up before its turn comes: a command may take {} s, and Windows waits \
             for {:.0} s.",
            number(longest_ms / 1000.0),
            laws::timeout_ms() / 1000.0
        )
    })
}

/// A counter before and after: all readings, and on both sides what chance does.
fn row(
    key: &Key,
    index: usize,
    (rounding, asked): (f64, Asked<'_>),
    best: &Run,
    runs: &[&Run],
) -> SimulatedRow {
    let chance = key.chance + RUN + rounding;
    // The further from what was seen, the more.
    let margin = |figure: f64| match key.captured {
        Some(captured) if captured > 0.0 && figure > 0.0 => {
            chance + CURVE * (figure / captured).ln().abs().min(1.0)
        }
        _ => chance,
    };
    let is_unreached = asked.limited.is_some_and(|limited| limited.is_unreached());
    // A reading that gives today as it was recorded is asked for the change, not for the level; of a limit that
    // is not reached that is all there is to ask.
    let of = |run: &Run| match (key.captured, run.today[index].mean) {
        (Some(captured), today)
            if today > 0.0
                && (is_unreached || (today / captured.max(1e-12) - 1.0).abs() <= MATCHES) =>
        {
            captured * run.after[index].mean / today
        }
        _ => run.after[index].mean,
    };
    // What a limit or a guest's own queue gives a VM does not follow what it had; nor does what a depth gives, where
    // the one of today is in turn another one.
    let is_of_guests = !asked.is_of_depth && !key.is_device() && !is_unreached;
    let is_set = is_of_guests || asked.flapping.is_some();
    let after = |run: &Run| match run.after[index] {
        Figure { ends, .. } if key.is(Counter::DeviceQDepth) => ends,
        Figure { mean, .. } => [of(run), if is_set { mean } else { of(run) }],
    };
    let after = || runs.iter().flat_map(|run| after(run));
    let low = after().fold(f64::INFINITY, f64::min);
    let high = after().fold(f64::NEG_INFINITY, f64::max);
    // A depth is what it is set to.
    let is_exact = key.is(Counter::DeviceQDepth);
    let margin = |figure: f64| if is_exact { 0.0 } else { margin(figure) };
    SimulatedRow {
        object: key.object.clone(),
        counter: key.name,
        unit: key.unit,
        captured: key.captured,
        today: best.today[index].mean,
        low: low * (1.0 - margin(low)).max(0.0),
        high: high * (1.0 + margin(high)),
    }
}

/// Whether no depth is less after the change than today, and one is more.
fn is_deeper(keys: &[Key], runs: &[Run]) -> bool {
    let mut depths: Vec<[f64; 2]> = Vec::new();
    for run in runs {
        let both = keys.iter().zip(run.today.iter().zip(&run.after));
        for (_, (today, after)) in both.filter(|(key, _)| key.is(Counter::DeviceQDepth)) {
            depths.extend([0, 1].map(|end| [today.ends[end], after.ends[end]]));
        }
    }
    depths.iter().all(|[today, after]| after >= today)
        && depths.iter().any(|[today, after]| after > today)
}

/// Whether its devices do as many commands today as they did, and its arrays are as quick: where no
/// factor makes them so, the load would be at the brink of what they can do, and nobody records
/// that for long.
fn answers_today(keys: &[Key], run: &Run) -> bool {
    let is_judged =
        |key: &Key| key.is(Counter::DriverLatency) || key.is_device() && key.is(Counter::Commands);
    keys.iter().zip(&run.today).filter(|(key, _)| is_judged(key)).all(|(key, today)| {
        key.captured.is_none_or(|captured| {
            (today.mean - captured).abs() <= (MATCHES + key.chance) * captured
        })
    })
}

/// Whether its devices do as many commands after the change, and as quickly, as they did where it was
/// tried.
fn gives_what_was_seen(keys: &[Key], run: &Run) -> bool {
    let both = keys.iter().zip(run.today.iter().zip(&run.after));
    both.filter(|(key, _)| key.is_device() && key.is_total()).all(|(key, (today, after))| {
        let Some(([low, high], captured)) = key.seen_between(MATCHES).zip(key.captured) else {
            return true;
        };
        let after = captured * after.mean / today.mean.max(1e-12);
        (low..=high).contains(&after)
    })
}

/// The counter that is furthest from the recording, and how far: 0.1 is 10 %. Latencies are held
/// against GAVG, of which each is a part; ACTV and QUED follow from them and from the rate.
pub(crate) fn worst(keys: &[Key], figures: &[Figure]) -> (f64, usize) {
    const JUDGED: [Counter; 5] = [
        Counter::Commands,
        Counter::GuestLatency,
        Counter::KernelLatency,
        Counter::DriverLatency,
        Counter::DeviceQDepth,
    ];
    let mut worst = (0.0, 0);
    for (index, (key, figure)) in keys.iter().zip(figures).enumerate() {
        let gavg = |other: &&Key| other.object == key.object && other.is(Counter::GuestLatency);
        let is_part = key.is(Counter::KernelLatency) || key.is(Counter::DriverLatency);
        let whole = if is_part { keys.iter().find(gavg) } else { Some(key) };
        let whole = whole.and_then(|key| key.captured).filter(|whole| *whole > 0.0);
        let (Some(captured), Some(whole)) = (key.captured, whole) else { continue };
        let rounding = match () {
            () if key.is(Counter::DeviceQDepth) => key.chance * captured,
            () if key.unit != "ms" => 0.0,
            () if key.is(Counter::DriverLatency) => ROUNDING_MS,
            // The array is brought to one that is printed, and held against another.
            () => 2.0 * ROUNDING_MS,
        };
        let apart = ((figure.mean - captured).abs() - rounding).max(0.0);
        let miss = apart / whole;
        if JUDGED.iter().any(|counter| key.is(*counter)) && miss > worst.0 {
            worst = (miss, index);
        }
    }
    worst
}

pub(crate) fn no_model(keys: &[Key], today: &[Figure], at: usize) -> String {
    let Some(key) = keys.get(at) else { return "There is nothing to simulate.".into() };
    format!(
        "No model of this host gives what was recorded, so there is no prediction: {} of {} would \
         be {} today, and is {}.",
        key.name,
        key.object,
        number(today[at].mean),
        number(key.captured.unwrap_or(0.0))
    )
}

pub(crate) fn doubts_of(
    calibrated: &[DeviceCalibration],
    arrays: &[ArrayCalibration],
    limited: Option<&str>,
) -> Vec<String> {
    let mut doubts: Vec<String> = arrays.iter().filter_map(ArrayCalibration::doubt).collect();
    for device in calibrated {
        let unknown = device.guests.iter().filter(|guest| guest.habit == Habit::Unknown).count();
        if unknown > 0 {
            doubts.push(format!(
                "{unknown} of {} guests on {} may wait for their answers, or send at a rate of \
                 their own, or something between: the range covers all of it. A recording that \
                 begins before this load{} would tell.",
                device.guests.len(),
                device.device,
                match device.guests.iter().any(|guest| guest.vscsistats.is_some()) {
                    true => " or one change tried and recorded",
                    false => ", one change tried and recorded, or `vscsiStats`",
                }
            ));
        }
        for guest in &device.guests {
            if let Some(depth) = guest.capped_at {
                doubts.push(format!(
                    "{} stands at the {depth} commands of its driver: what more it would send \
                     waits in the guest, where no counter of the host sees it.",
                    guest.vm
                ));
            }
            if let [least, most] = guest.units
                && least < most
                && limited == Some(guest.vm.as_str())
            {
                doubts.push(format!(
                    "Each begun {:.0} KiB of a command count as one to an IOPS limit, and the mean size \
                     of the commands of {} leaves open what that comes to: {} to {} a command. \
                     `vscsiStats` tells.",
                    default_cost_unit_kib(),
                    guest.vm,
                    number(least),
                    number(most)
                ));
            }
            if let Some(rate) = guest.throttled_at_iops {
                doubts.push(format!(
                    "The array seems to hold a disk of {} to {rate} commands a second (QoS): that \
                     rate is taken to stay.",
                    guest.vm
                ));
            }
        }
    }
    doubts
}
