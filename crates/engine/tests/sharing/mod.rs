//! What the orders of a device queue promise, over random loads: the invariants of mClock [reference
//! `array-and-control.md` section 4.4], and those of them that fair queueing has.
//!
//! A device works on some commands at a time, each as long as it costs, so what it does in all is known. Disks
//! have a history first: each alone, some, none, with other allocations. Then all want more than there is, and
//! what each gets is what a calculation of its own says, whatever was before.

use std::{cmp::Reverse, collections::BinaryHeap};

use counters::{IoId, Op, SECOND, Status, Time, VdiskId};
use engine::{Engine, HostConfig, Input, Output, Request, SchedPolicy};
use knobs::{Advanced, Allocation, Knob};
use proptest::{collection::vec, option, prelude::*, sample::select};

use crate::common::disks;

/// `Disk.SchedCostUnit`.
const COST_UNIT: u32 = 32_768;

/// Sectors beyond `Disk.SectorMaxDiff`.
const FAR: u64 = 1 << 20;

/// A disk and what it wants.
#[derive(Clone, Copy, Debug)]
struct Demand {
    allocation: Allocation,
    /// What a command of it costs.
    cost: u32,
    /// Commands that it keeps under way while it is busy.
    threads: u32,
}

/// Who is busy for how long, under which allocations.
#[derive(Clone, Debug)]
struct Phase {
    busy: Vec<bool>,
    allocations: Vec<Option<Allocation>>,
    millis: u64,
}

fn allocation() -> impl Strategy<Value = Allocation> {
    let limit = option::weighted(0.3, 50..=5_000_u32);
    let reservation = prop_oneof![2 => Just(0), 1 => 1..=3_000_u32];
    (100..=2_000_u32, limit, reservation).prop_map(|(shares, limit_iops, reserved)| Allocation {
        shares,
        limit_iops,
        reservation_iops: limit_iops.map_or(reserved, |limit| reserved.min(limit)),
    })
}

fn demands() -> impl Strategy<Value = Vec<Demand>> {
    let demand = (allocation(), 1..=4_u32, 48..=64_u32);
    let demand =
        demand.prop_map(|(allocation, cost, threads)| Demand { allocation, cost, threads });
    vec(demand, 2..=4)
}

fn history() -> impl Strategy<Value = Vec<Phase>> {
    let alone = (0..4_usize).prop_map(|one| (0..4).map(|disk| disk == one).collect());
    let busy = prop_oneof![2 => Just(vec![false; 4]), 3 => alone, 1 => vec(any::<bool>(), 4)];
    let allocations = vec(option::weighted(0.2, allocation()), 4);
    let phase = (busy, allocations, 1..=500_u64);
    let phase = phase.prop_map(|(busy, allocations, millis)| Phase { busy, allocations, millis });
    vec(phase, 0..=6)
}

/// Disks on a device of `slots` that does `rate` units of cost a second.
struct Lab {
    engine: Engine,
    demands: Vec<Demand>,
    unit_ns: u64,
    now: Time,
    out: BinaryHeap<Reverse<(u64, IoId)>>,
    busy: Vec<bool>,
    under_way: Vec<u32>,
    /// Where the next command is: far from the one before it, so none is sequential.
    lba: u64,
    /// Units sent to the device so far, and when each disk's last ones were.
    sent: Vec<u64>,
    last_sent: Vec<Time>,
}

impl Lab {
    fn new(policy: SchedPolicy, slots: u32, rate: u64, demands: &[Demand]) -> Self {
        Self::scaled(100, policy, slots, rate, demands)
    }

    /// The same where a share is so many hundredths of an I/O a second.
    fn scaled(scale: u32, policy: SchedPolicy, slots: u32, rate: u64, demands: &[Demand]) -> Self {
        let allocations: Vec<_> = demands.iter().map(|demand| demand.allocation).collect();
        Self {
            engine: Engine::new(&HostConfig {
                weight_scale_percent: scale,
                ..disks(policy, slots, &allocations)
            }),
            unit_ns: SECOND * u64::from(slots) / rate,
            now: Time::ZERO,
            out: BinaryHeap::new(),
            busy: vec![false; demands.len()],
            under_way: vec![0; demands.len()],
            lba: 0,
            sent: vec![0; demands.len()],
            last_sent: vec![Time::ZERO; demands.len()],
            demands: demands.to_vec(),
        }
    }

    fn input(&mut self, input: Input) {
        self.engine.handle_input(self.now, input).expect("it is taken");
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Dispatch(sent) => {
                    let disk = sent.vdisk.index();
                    let cost = u64::from(self.demands[disk].cost);
                    self.out.push(Reverse((self.now.0 + cost * self.unit_ns, sent.io)));
                    self.sent[disk] += cost;
                    self.last_sent[disk] = self.now;
                }
                Output::Complete { vdisk, .. } => self.under_way[vdisk.index()] -= 1,
                _ => {}
            }
        }
    }

    /// Who is busy has as many under way as it wants.
    fn submit(&mut self) {
        for disk in 0..self.demands.len() {
            let Demand { cost, threads, .. } = self.demands[disk];
            while self.busy[disk] && self.under_way[disk] < threads {
                self.under_way[disk] += 1;
                self.lba = (self.lba + FAR) % (1 << 30);
                let (vdisk, lba, bytes) = (VdiskId::new(disk), self.lba, cost * COST_UNIT);
                let request = Request { vdisk, op: Op::Read, lba, bytes, waited_ns: 0, tag: 0 };
                self.input(Input::Submit(request));
            }
        }
    }

    fn run(&mut self, nanos: u64) {
        let end = self.now + nanos;
        loop {
            self.submit();
            let done = self.out.peek().map(|Reverse((at, _))| Time(*at));
            let wake = self.engine.next_wakeup().map(|wakeup| wakeup.at.max(self.now));
            match (done, wake) {
                (Some(done), wake) if done < end && wake.is_none_or(|wake| done <= wake) => {
                    self.now = done;
                    let Some(Reverse((_, io))) = self.out.pop() else { return };
                    self.input(Input::Done { io, status: Status::Good, array_ns: 0 });
                }
                (_, Some(wake)) if wake < end => {
                    self.now = wake;
                    self.input(Input::Tick);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    fn allocate(&mut self, disk: usize, allocation: Allocation) {
        self.input(Input::Set(Knob::Allocation { vdisk: VdiskId::new(disk), allocation }));
    }

    /// Lives through a history, and comes to the allocations of its demands.
    fn live(&mut self, history: &[Phase]) {
        for phase in history {
            for disk in 0..self.demands.len() {
                if let Some(allocation) = phase.allocations[disk] {
                    self.allocate(disk, allocation);
                }
                self.busy[disk] = phase.busy[disk];
            }
            self.run(phase.millis * 1_000_000);
        }
        for disk in 0..self.demands.len() {
            self.allocate(disk, self.demands[disk].allocation);
        }
    }

    /// What each disk is sent in that time, in units a second.
    fn rates(&mut self, nanos: u64) -> Vec<f64> {
        let before = self.sent.clone();
        self.run(nanos);
        let sent = self.sent.iter().zip(before).map(|(sent, before)| sent - before);
        sent.map(|sent| sent as f64 * SECOND as f64 / nanos as f64).collect()
    }
}

/// What each has when `rate` is divided by shares, but for nobody below its reservation or above its limit; and
/// units a second for one share. The level is found by halving.
fn fair(rate: f64, demands: &[Demand]) -> (f64, Vec<f64>) {
    let at = |level: f64| -> Vec<f64> {
        let of = |Demand { allocation, .. }: &Demand| {
            let limit = allocation.limit_iops.map_or(f64::INFINITY, f64::from);
            let share = level * f64::from(allocation.shares);
            share.max(f64::from(allocation.reservation_iops)).min(limit)
        };
        demands.iter().map(of).collect()
    };
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        let sum: f64 = at(middle).iter().sum();
        if sum < rate { low = middle } else { high = middle }
    }
    (low, at(low))
}

/// Fair queueing has no reservations: who asks for it gets the scheduler of before them.
fn as_ordered(
    policy: SchedPolicy,
    demands: &[Demand],
    history: &[Phase],
) -> (Vec<Demand>, Vec<Phase>) {
    let (mut demands, mut history) = (demands.to_vec(), history.to_vec());
    if policy == SchedPolicy::Sfq {
        demands.iter_mut().for_each(|demand| demand.allocation.reservation_iops = 0);
        let set = history.iter_mut().flat_map(|phase| phase.allocations.iter_mut().flatten());
        set.for_each(|allocation| allocation.reservation_iops = 0);
    }
    (demands, history)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// (b), (c): long-run shares within 3 %, and no reservation missed by more than 2 %.
    #[test]
    fn shares_divide_what_reservations_and_limits_leave(
        policy in select(vec![SchedPolicy::Sfq, SchedPolicy::Mclock]),
        demands in demands(),
        history in history(),
        slots in 1..=16_u32,
        scale in 25..=100_u32,
        plenty in 1.3..4.0_f64,
    ) {
        let plenty = plenty * f64::from(scale) / 100.0;
        let (demands, history) = as_ordered(policy, &demands, &history);
        let sum: u32 = demands.iter().map(|demand| demand.allocation.shares).sum();
        let rate = f64::from(sum) * plenty;
        let (level, expected) = fair(rate, &demands);
        // Tags of mClock are ahead of time, and so in the ratio of the shares, where shares are below the rates.
        prop_assume!(policy == SchedPolicy::Sfq || level > 0.011 * f64::from(scale));
        prop_assume!(level < 1e5);
        let mut lab = Lab::scaled(scale, policy, slots, rate as u64, &demands);
        lab.live(&history);
        lab.busy.fill(true);
        lab.run(SECOND / 2);
        let got = lab.rates(8 * SECOND);
        // A limit is met but for what its commands wait for a slot, and the others have that.
        let mut left = demands.clone();
        for (demand, (got, expected)) in left.iter_mut().zip(got.iter().zip(&expected)) {
            let limit = demand.allocation.limit_iops.map_or(f64::INFINITY, f64::from);
            // Its tags are from the arrivals, so what it has waiting may be a burst.
            let burst = f64::from(demand.threads * demand.cost) / 8.0;
            prop_assert!(*got < limit + burst + 1.0, "{got} is above the limit of {limit}");
            if *expected > limit * 0.97 {
                prop_assert!(*got > limit * 0.97 - 1.0, "{got} of a limit of {limit}");
                demand.allocation.limit_iops = Some(got.round() as u32);
            }
        }
        let (_, expected) = fair(got.iter().sum(), &left);
        for (disk, (got, expected)) in got.iter().zip(&expected).enumerate() {
            let reserved = f64::from(demands[disk].allocation.reservation_iops);
            prop_assert!(*got > reserved * 0.98 - 1.0, "disk {disk} has {got}, reserved {reserved}");
            prop_assert!(
                (got - expected).abs() < expected * 0.03 + 2.0,
                "disk {disk} has {got}, fair is {expected}, of {rate} at {level} a share"
            );
        }
    }

    /// (b), and at any pace: also where shares say nothing, because the device is slower than they are.
    #[test]
    fn no_reservation_is_missed_while_their_sum_fits(
        demands in demands(),
        history in history(),
        slots in 1..=16_u32,
        spare in 1.05..30.0_f64,
    ) {
        let reserved = |demand: &Demand| f64::from(demand.allocation.reservation_iops);
        let sum: f64 = demands.iter().map(reserved).sum();
        let rate = (sum * spare).max(100.0);
        let mut lab = Lab::new(SchedPolicy::Mclock, slots, rate as u64, &demands);
        lab.live(&history);
        lab.busy.fill(true);
        lab.run(SECOND);
        for (got, demand) in lab.rates(8 * SECOND).iter().zip(&demands) {
            let (reserved, cost) = (reserved(demand), f64::from(demand.cost));
            prop_assert!(*got > reserved * 0.98 - cost, "{got} of a reservation of {reserved}");
        }
    }

    /// (a): a limit that comes at any moment, or after another one, holds from that moment on, and one that goes is gone.
    #[test]
    fn a_limit_holds_from_when_it_is_set(
        policy in select(vec![SchedPolicy::Fifo, SchedPolicy::Sfq, SchedPolicy::Mclock]),
        demands in demands(),
        history in history(),
        slots in 1..=16_u32,
        limit in 1..=2_000_u32,
        was in proptest::option::of(1..=100_000_u32),
        millis in vec(1..=1_000_u64, 1..4),
    ) {
        let was = was.filter(|was| *was != limit);
        let mut lab = Lab::new(policy, slots, 10_000, &demands);
        lab.live(&history);
        lab.busy.fill(true);
        let (none, cost) = (Allocation::default(), u64::from(demands[0].cost));
        for millis in millis {
            lab.allocate(0, Allocation { limit_iops: was, ..none });
            lab.run(SECOND / 10);
            let before = lab.sent[0];
            lab.allocate(0, Allocation { limit_iops: Some(limit), ..none });
            lab.run(millis * 1_000_000);
            let (sent, allowed) = (lab.sent[0] - before, u64::from(limit) * millis / 1_000 + cost);
            prop_assert!(sent <= allowed, "{sent} units in {millis} ms are above {allowed}");
        }
    }

    /// (d): whatever it did before and however long it was idle.
    #[test]
    fn who_was_idle_waits_for_one_cycle_of_shares(
        policy in select(vec![SchedPolicy::Sfq, SchedPolicy::Mclock]),
        demands in demands(),
        history in history(),
        slots in 1..=16_u32,
        plenty in 1.3..4.0_f64,
        idle_ms in 0..1_000_u64,
    ) {
        let (mut demands, history) = as_ordered(policy, &demands, &history);
        let shares = demands[0].allocation.shares;
        demands[0].allocation = Allocation { shares, ..Allocation::default() };
        let sum: u32 = demands.iter().map(|demand| demand.allocation.shares).sum();
        let rate = f64::from(sum) * plenty;
        let (level, fair) = fair(rate, &demands);
        prop_assume!(level > 1.1);
        let mut lab = Lab::new(policy, slots, rate as u64, &demands);
        lab.live(&history);
        lab.busy.fill(true);
        lab.run(SECOND / 2);
        lab.busy[0] = false;
        while lab.under_way[0] > 0 {
            lab.run(SECOND / 100);
        }
        lab.run(idle_ms * 1_000_000);
        let before = lab.sent[0];
        lab.busy[0] = true;
        let longest = 4 * lab.unit_ns;
        let cycle = (SECOND as f64 * f64::from(demands[0].cost) / fair[0]) as u64;
        // What each of the others may have banked.
        let banked = 32 * (demands.len() as u64 - 1) * lab.unit_ns / u64::from(slots);
        lab.run(cycle + 2 * longest + banked);
        prop_assert!(lab.sent[0] > before, "nothing in {cycle} ns at {level} a share");
    }
}

/// Of the commands that go after a second in which the first disk was idle and the second was not, those of the
/// first: what it has banked, and half of the rest.
#[test]
fn who_was_idle_spends_what_it_banked() {
    let cases: [(&[(Advanced, u32)], u64); 4] = [
        (&[], 32 + 48),
        (&[(Advanced::IdleCredit, 8)], 8 + 60),
        (&[(Advanced::SchedReservationBurst, 0)], 64),
        (&[(Advanced::SchedReservationBurst, 0), (Advanced::IdleCredit, 512)], 64),
    ];
    for (options, expected) in cases {
        let demand = Demand { allocation: Allocation::default(), cost: 1, threads: 64 };
        let mut lab = Lab::new(SchedPolicy::Mclock, 1, 10_000, &[demand; 2]);
        for &(option, value) in options {
            lab.input(Input::Set(Knob::Advanced { option, value }));
        }
        lab.busy = vec![false, true];
        lab.run(SECOND);
        lab.busy[0] = true;
        let before = lab.sent[0];
        lab.run(128 * lab.unit_ns);
        let sent = lab.sent[0] - before;
        assert!(sent.abs_diff(expected) <= 2, "{sent} of 128, not {expected}, with {options:?}");
    }
}
