//! The families: each plants one thing, in the numbers that the reference gives it.

use counters::{Controller, Counter, Entity, Kind};
use diagnose::Cause;

use super::{Io, Plant};

/// PVSCSI, the usual one.
const PVSCSI: Option<Controller> = Some(Controller::Pvscsi);

impl Plant {
    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.draw.unit()
    }

    /// DQLEN falls to DSNRO whenever a second VM comes, and is full both ways [S1].
    pub(super) fn dsnro_two_levels(&mut self) {
        let (davg, total) = (self.between(0.3, 0.9), self.between(140.0, 200.0));
        let period = 2 * self.draw.whole(2, 5) as usize;
        let competes = move |sample: usize| sample % period >= period / 2;
        let depth = move |sample: usize| if competes(sample) { 32.0 } else { 128.0 };
        let (row, name) = self.device(&|_, sample| depth(sample));
        let split = move |sample, part: f64, io: Io| {
            let rate = if competes(sample) { io.rate * part } else { io.rate * part.round() };
            Io { rate, ..io }
        };
        let part = self.between(0.8, 0.95);
        let all = self.each(|d, s| Io::closed(depth(s), total, davg * (0.97 + 0.06 * d.unit())));
        let share = |part: f64| all.iter().enumerate().map(|(s, io)| split(s, part, *io)).collect();
        self.load(row, PVSCSI, &[("first", share(part)), ("second", share(1.0 - part))]);
        self.is(Cause::Dsnro, &name);
        self.may_be(Cause::DeviceDepth, &name);
        self.may_be(Cause::NoisyNeighbour, &name);
    }

    /// One VM on a queue that is too short for it [S0].
    pub(super) fn device_depth(&mut self) {
        let depth = *self.draw.one(&[32.0, 64.0, 128.0, 254.0]);
        let (total, davg) = (depth * self.between(1.4, 2.4), self.between(0.3, 2.0));
        let (row, name) = self.device(&|_, _| depth);
        let load = self.each(|d, _| Io::closed(depth, total, davg * (0.95 + 0.1 * d.unit())));
        self.load(row, PVSCSI, &[("vdbench", load)]);
        self.is(Cause::DeviceDepth, &name);
        self.may_be(Cause::VirtualDiskCap, "vdbench:scsi0:0");
    }

    /// The same for an eighth of the time.
    pub(super) fn device_depth_window(&mut self) {
        let davg = self.between(0.3, 1.0);
        let (from, lasts) = (self.samples / 3, (self.samples / 8).max(3));
        let (row, name) = self.device(&|_, _| 32.0);
        let load = self.each(|d, s| {
            let total = if (from..from + lasts).contains(&s) { 70.0 } else { 4.0 };
            Io::closed(32.0, total, davg * (0.95 + 0.1 * d.unit()))
        });
        self.load(row, PVSCSI, &[("batch", load)]);
        self.is(Cause::DeviceDepth, &name);
    }

    /// A virtual disk that stays at the depth of its driver while latency moves.
    pub(super) fn disk_cap(&mut self, controller: Option<Controller>, cap: f64) {
        let davg = self.between(0.4, 1.5);
        let (row, _) = self.device(&|_, _| 1_024.0);
        let load = self.each(|d, _| {
            let (inside, davg) = (cap * (0.96 + 0.04 * d.unit()), davg * (0.7 + 0.6 * d.unit()));
            let caught = Some([cap - d.whole(0, 2) as f64, 0.0]);
            Io { caught, ..Io::of(inside * 1_000.0 / davg, davg) }
        });
        self.load(row, controller, &[("db", load)]);
        self.is(Cause::VirtualDiskCap, "db:scsi0:0");
    }

    /// A virtual disk held to a rate, by its queue in the VMkernel or by a filter above it.
    pub(super) fn iops_limit(&mut self, above: bool) {
        let rate = *self.draw.one(&[100.0, 250.0, 500.0, 1_000.0, 777.0, 333.0]);
        let (davg, total) = (self.between(0.4, 4.0), self.between(10.0, 40.0));
        let (row, _) = self.device(&|_, _| 64.0);
        let held = self.each(|d, _| {
            let wait =
                (total * (0.8 + 0.4 * d.unit()) * 1_000.0 / rate - davg).max(3.0 * davg + 2.0);
            let io = Io::of(rate * (0.997 + 0.006 * d.unit()), davg);
            if above { Io { above: wait, ..io } } else { Io { wait, ..io } }
        });
        let free = self.each(|d, _| Io::of(300.0 + 900.0 * d.unit(), davg));
        self.load(row, PVSCSI, &[("held", held), ("free", free)]);
        self.is(Cause::IopsLimit, "held:scsi0:0");
        self.may_be(Cause::VirtualDiskCap, "held:scsi0:0");
    }

    /// A volume at a flat rate whose latency follows what is outstanding; before that it was fast.
    pub(super) fn qos_follows(&mut self) {
        let (rate, davg) = (self.between(200.0, 3_000.0), self.between(0.3, 0.8));
        let (row, name) = self.device(&|_, _| 128.0);
        let free = self.samples / 3;
        let load = self.each(|d, s| {
            let inside = 8.0 + 32.0 * d.unit();
            match s < free {
                true => Io::of(rate * (0.3 + 0.2 * d.unit()), davg * (0.9 + 0.2 * d.unit())),
                false => Io::of(
                    rate * (0.996 + 0.008 * d.unit()),
                    (inside * 1_000.0 / rate).max(6.0 * davg),
                ),
            }
        });
        self.load(row, PVSCSI, &[("bronze", load)]);
        self.is(Cause::ArrayQos, &name);
        self.may_be(Cause::VirtualDiskCap, "bronze:scsi0:0");
    }

    /// 30 to 60 ms below the host, with few commands outstanding or many.
    pub(super) fn array_slow(&mut self) {
        let (davg, inside) = (self.between(32.0, 60.0), self.between(2.0, 40.0));
        let (row, name) = self.device(&|_, _| 64.0);
        let load = self.each(|d, _| {
            let davg = davg * (0.9 + 0.2 * d.unit());
            Io::of(inside * (0.7 + 0.6 * d.unit()) * 1_000.0 / davg, davg)
        });
        self.load(row, PVSCSI, &[("a", load)]);
        self.is(Cause::ArraySlow, &name);
    }

    fn nfs(&mut self, name: &str, load: &[Io]) {
        let row = self.recording.add_entity(Entity::new(Kind::NfsVolume, name.into()));
        let mut put = |counter, value: &dyn Fn(&Io) -> f64| {
            self.recording.set_column(row, counter, load.iter().map(value).collect());
        };
        put(Counter::Commands, &|io| io.rate);
        put(Counter::Reads, &|io| io.rate);
        put(Counter::MbRead, &|io| io.rate * io.kib / 1_024.0);
        put(Counter::GuestLatency, &|io| io.davg);
        put(Counter::ActiveCommands, &|io| (io.rate * io.davg / 1_000.0).round());
    }

    /// An NFS volume has GAVG alone.
    pub(super) fn nfs_slow(&mut self) {
        let gavg = self.between(32.0, 80.0);
        let load =
            self.each(|d, _| Io::of(100.0 + 400.0 * d.unit(), gavg * (0.9 + 0.2 * d.unit())));
        self.nfs("nfs-gold", &load);
        self.is(Cause::ArraySlow, "nfs-gold");
    }

    /// Each host's depth follows the common latency of the datastore by PARDA's law.
    pub(super) fn sioc(&mut self) {
        const THRESHOLD_MS: f64 = 30.0;
        const GAIN: f64 = 0.8;
        let (base, pull) = (*self.draw.one(&[64.0_f64, 128.0]), self.between(1.0, 3.0));
        let load: Vec<f64> =
            self.each(|d, _| Io::of(36.0 + 9.0 * d.unit(), 0.0)).iter().map(|io| io.rate).collect();
        let mut depth = base;
        let depths: Vec<f64> = load
            .iter()
            .map(|davg| {
                let shown = depth.round();
                let aim = THRESHOLD_MS / davg * depth + pull;
                depth = ((1.0 - GAIN) * depth + GAIN * aim).clamp(4.0, base);
                shown
            })
            .collect();
        let (row, name) = self.device(&|_, sample| depths[sample]);
        let half = |io: Io| Io { rate: io.rate / 2.0, ..io };
        let of_vm = self.each(|_, s| half(Io::closed(depths[s], 1.5 * base, load[s])));
        self.load(row, PVSCSI, &[("a", of_vm.clone()), ("b", of_vm)]);
        self.is(Cause::Sioc, &name);
        for cause in [Cause::ArraySlow, Cause::Dsnro, Cause::DeviceDepth] {
            self.may_be(cause, &name);
        }
        for disk in ["a:scsi0:0", "b:scsi0:0"] {
            self.may_be(Cause::VirtualDiskCap, disk);
        }
    }

    /// Halved at TASK SET FULL, then one more at a time [KB-QF].
    pub(super) fn throttling(&mut self) {
        let (base, davg) = (*self.draw.one(&[32.0_f64, 64.0, 128.0]), self.between(0.4, 2.0));
        let step = self.draw.whole(2, 6) as f64;
        let mut depth = base;
        let depths: Vec<f64> = (0..self.samples)
            .map(|sample| {
                let full = depth >= base && sample > 1;
                depth = if full { (base / 2.0).floor() } else { (depth + step).min(base) };
                depth
            })
            .collect();
        let (row, name) = self.device(&|_, sample| depths[sample]);
        let load =
            self.each(|d, s| Io::closed(depths[s], 1.3 * base, davg * (0.95 + 0.1 * d.unit())));
        self.load(row, PVSCSI, &[("a", load)]);
        self.is(Cause::AdaptiveThrottling, &name);
        self.may_be(Cause::DeviceDepth, &name);
        self.may_be(Cause::VirtualDiskCap, "a:scsi0:0");
    }

    /// The device hangs; guests give up after their 60 s, again and again [ELA 6.4].
    pub(super) fn timeouts(&mut self) {
        let from = self.samples / 2;
        let (row, name) = self.device(&|_, _| 64.0);
        let load = self.each(|d, s| match s < from {
            true => Io::of(400.0 + 200.0 * d.unit(), 1.0),
            false => Io { caught: Some([24.0, 0.0]), ..Io::default() },
        });
        self.load(row, PVSCSI, &[("a", load)]);
        self.put(row, Counter::Aborts, &|_, s| if s > from && s % 4 == 0 { 4.8 } else { 0.0 });
        self.put(row, Counter::Resets, &|_, s| if s > from && s % 8 == 0 { 0.2 } else { 0.0 });
        self.is(Cause::Silence, &name);
        self.is(Cause::Aborts, &name);
    }

    /// It hung before the recording began.
    pub(super) fn silence_throughout(&mut self) {
        let inside = self.draw.whole(3, 40) as f64;
        let (row, name) = self.device(&|_, _| 64.0);
        let load = self.each(|_, _| Io { caught: Some([inside, 0.0]), ..Io::default() });
        self.load(row, PVSCSI, &[("a", load)]);
        self.is(Cause::Silence, &name);
    }

    /// Another host holds reservations.
    pub(super) fn conflicts(&mut self) {
        let each = self.between(30.0, 200.0);
        let (row, name) = self.device(&|_, _| 64.0);
        let load = self.each(|d, _| Io::of(150.0 + 250.0 * d.unit(), 5.0 + 3.0 * d.unit()));
        self.load(row, PVSCSI, &[("a", load)]);
        self.put(row, Counter::Conflicts, &|d, _| each * (0.7 + 0.6 * d.unit()));
        self.is(Cause::ReservationConflicts, &name);
    }

    /// A backup beside small commands: large ones take longer, and nothing is wrong.
    pub(super) fn backup(&mut self) {
        let (kib, inside) = (*self.draw.one(&[256.0, 512.0, 1_024.0]), self.between(3.0, 12.0));
        let (mib, from) = (self.between(500.0, 1_200.0), self.samples / 3);
        let (row, _) = self.device(&|_, _| 64.0);
        let backup = self.each(|d, s| {
            let rate = mib * 1_024.0 / kib * (0.9 + 0.2 * d.unit());
            let io = Io { kib, ..Io::of(rate, inside * 1_000.0 / rate) };
            if s < from { Io::default() } else { io }
        });
        let small = self.each(|d, _| Io::of(300.0 + 500.0 * d.unit(), 0.5 + 0.3 * d.unit()));
        self.load(row, PVSCSI, &[("backup", backup), ("web", small)]);
    }

    /// One sample in twenty is slow, at random.
    pub(super) fn tail(&mut self) {
        let (row, _) = self.device(&|_, _| 64.0);
        let mut was_slow = false;
        let short = self.samples < 100;
        let slow: Vec<bool> = (0..self.samples)
            .map(|_| {
                was_slow = self.draw.unit() < 0.05 && !(short && was_slow);
                was_slow
            })
            .collect();
        let load = self.each(|d, s| {
            Io::of(300.0 + 300.0 * d.unit(), if slow[s] { 20.0 + 30.0 * d.unit() } else { 0.8 })
        });
        self.load(row, PVSCSI, &[("a", load)]);
    }

    /// A hybrid array: its cache answers at night, its disks by day.
    pub(super) fn day(&mut self) {
        let (row, _) = self.device(&|_, _| 64.0);
        let night = self.samples / 3;
        let load = self.each(|d, s| {
            let davg = if s < night { 1.4 } else { 8.5 };
            Io::of(300.0 + 500.0 * d.unit(), davg * (0.85 + 0.3 * d.unit()))
        });
        self.load(row, PVSCSI, &[("a", load)]);
    }

    /// An NFS volume of 1 to 7 ms.
    pub(super) fn nfs_fine(&mut self) {
        let load = self.each(|d, _| Io::of(100.0 + 700.0 * d.unit(), 1.0 + 6.0 * d.unit()));
        self.nfs("nfs-silver", &load);
    }

    /// An application that paces itself on disks, beside flash.
    pub(super) fn paced(&mut self) {
        let rate = *self.draw.one(&[200.0, 500.0, 640.0]);
        let (disks, _) = self.device(&|_, _| 64.0);
        let load =
            self.each(|d, _| Io::of(rate * (0.997 + 0.006 * d.unit()), 6.0 + 2.0 * d.unit()));
        self.load(disks, PVSCSI, &[("paced", load)]);
        let (flash, _) = self.device(&|_, _| 64.0);
        let load = self.each(|d, _| Io::of(1_500.0 + 1_000.0 * d.unit(), 0.5));
        self.load(flash, PVSCSI, &[("quick", load)]);
    }

    /// One sample with everything at once: LOAD above 1, DAVG and KAVG high.
    pub(super) fn one_sample(&mut self) {
        let at = self.draw.whole(0, self.samples as u64 - 1) as usize;
        let (row, _) = self.device(&|_, _| 32.0);
        let load = self.each(|d, s| match s == at {
            true => Io { wait: 15.0, caught: Some([32.0, 40.0]), ..Io::of(900.0, 30.0) },
            false => Io::of(500.0 + 200.0 * d.unit(), 1.0),
        });
        self.load(row, PVSCSI, &[("a", load)]);
    }

    /// Two VMs on a hybrid device: one hits the cache, one paces itself on the disks.
    pub(super) fn cache_and_disks(&mut self) {
        let (row, _) = self.device(&|_, _| 64.0);
        let hits = self.each(|d, _| Io::of(800.0 + 400.0 * d.unit(), 0.6 + 0.2 * d.unit()));
        let misses = self.each(|d, _| Io::of(450.0 + 40.0 * d.unit(), 6.0 + 2.0 * d.unit()));
        self.load(row, PVSCSI, &[("hits", hits), ("misses", misses)]);
    }

    /// DQLEN goes up and down with the competition, and nobody waits.
    pub(super) fn two_limits(&mut self) {
        let (row, _) = self.device(&|_, sample| if sample % 6 < 3 { 64.0 } else { 32.0 });
        let load = self.each(|d, _| Io::of(3_000.0 + 2_000.0 * d.unit(), 0.6));
        let small = self.each(|d, _| Io::of(200.0 + 200.0 * d.unit(), 0.6));
        self.load(row, PVSCSI, &[("a", load), ("b", small)]);
    }
}
