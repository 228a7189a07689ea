//! What a scenario makes happen: settings, power, reboots, paths, migrations.

use counters::{MILLISECOND, Time, VdiskId, VmId};
use engine::{Input, Object, Part, VdiskConfig};
use knobs::Knob;
use model::FlashCache;
use scenario::{Action, CopyConfig};

use crate::{
    Watch,
    copy::{Copy, CopyEnd},
    guest::Blocks,
    host::Host,
    key::{Class, Key},
    machine::{LogLine, Logged, Machine, Player},
};

/// When it is tried again to add what was removed and still has commands under way.
const AGAIN_NS: u64 = 10 * MILLISECOND;

impl<W: Watch> Machine<'_, W> {
    /// A timed event of the scenario, on its host.
    pub(crate) fn event(&mut self, at: Time, host: usize, index: usize) {
        let scenario = self.scenario;
        match &scenario.events[index].action {
            Action::Set(knob) => self.set(at, host, *knob),
            Action::Path { path, up, by } => {
                self.hosts[host].down.set(*path, *up, *by);
                self.turn_path(at, host, (*path, *by), *up);
            }
            Action::Cut { path, by } => {
                let devices = scenario.hosts[self.hosts[host].index].config.devices.len();
                self.hosts[host].faults(devices).cut.push((*path, *by));
            }
            // What was asked back of it when it went is with the array for a while.
            Action::Attach(object) if !self.hosts[host].engine.is_idle(*object) => {
                self.push(at + AGAIN_NS, Key::new(Class::Event, host, index as u64));
            }
            Action::Attach(object) => {
                self.attach(at, host, *object);
            }
            Action::Detach { object, drain } => {
                self.detach(at, host, self.where_it_is(host, *object), *drain);
            }
            Action::Relocate { from, to } => self.relocate(at, host, *from, *to),
            Action::Copy { from, to, mover, config } => {
                self.copy(at, host, [*from, *to], *mover, *config);
            }
            Action::Face { device, face } => self.set_face(at, host, *device, *face),
            Action::Power { vm, on } => self.power(at, host, *vm, *on),
            Action::RebootGuest(vm) => {
                let stopped = self.pause(host, Some(*vm), at);
                self.input(host, at, Input::RebootGuest(*vm));
                self.resume(&stopped, at);
            }
            Action::Reboot => self.go_down(at, host),
            Action::StartWorkload(workload) => {
                if let Some(player) = self.player_of(*workload) {
                    self.start(player, at);
                }
            }
            Action::StopWorkload(workload) => {
                if let Some(player) = self.player_of(*workload) {
                    self.stop(player, at);
                }
            }
            Action::Migrate { vm: _, to_host, to_vm, disks } => {
                if let Some(to) = self.host_of(*to_host) {
                    self.migrate(at, host, to, *to_vm, disks);
                }
            }
        }
    }

    /// A workload is wanted. Its clock runs from the moment that its VM is on as well; its stage
    /// begins and ends by that clock.
    pub(crate) fn start(&mut self, id: usize, at: Time) {
        self.players[id].is_running = true;
        if !self.is_up(id) {
            return;
        }
        let player = &mut self.players[id];
        let host = player.host;
        if player.clock == Time::NEVER {
            player.clock = at;
            let stage = player.stage(self.scenario);
            for (due, class) in [(stage.0, Class::Stage), (stage.1, Class::Stop)] {
                if due > at && due != Time::NEVER {
                    self.push(due, Key::new(class, host, id as u64));
                }
            }
        }
        self.stage(id, at);
    }

    /// Lets a workload play that is wanted, whose VM is on and whose stage has begun.
    pub(crate) fn stage(&mut self, id: usize, at: Time) {
        let player = &self.players[id];
        let begins = player.stage(self.scenario).0;
        let is_due = player.is_running && player.since == Time::NEVER && at >= begins;
        if is_due && self.is_up(id) {
            let player = &mut self.players[id];
            player.since = at;
            player.workload.start(at);
            self.play(id, at);
        }
    }

    /// Stops a workload for good; when it is started again, its clock begins anew.
    pub(crate) fn stop(&mut self, id: usize, at: Time) {
        self.quiet(id, at);
        let player = &mut self.players[id];
        player.is_running = false;
        player.clock = Time::NEVER;
    }

    /// The same when its time has come by the clock that it has now.
    pub(crate) fn stop_in_time(&mut self, id: usize, at: Time) {
        if at >= self.players[id].stage(self.scenario).1 {
            self.stop(id, at);
        }
    }

    /// Makes a workload issue nothing more for the time being.
    pub(crate) fn quiet(&mut self, id: usize, at: Time) {
        let player = &mut self.players[id];
        player.workload.stop(at);
        self.spans.extend(player.rest(at));
    }

    /// The run is over for those who still play.
    pub(crate) fn end(&mut self, at: Time) {
        self.spans.extend(self.players.iter_mut().filter_map(|player| player.rest(at)));
    }

    /// The run is over for a host: its copies that are not.
    pub(crate) fn leave(&mut self, at: Time, host: &Host) {
        let copies = host.blocks.iter().flat_map(|blocks| &blocks.copies);
        let left = copies.filter(|copy| copy.end().is_none()).map(|copy| {
            let end = CopyEnd::Unfinished(copy.left());
            let what = Logged::Copied { from: copy.from, to: copy.to, end };
            LogLine { at, host: host.index, what }
        });
        self.log.extend(left);
    }

    /// Whether the VM of a workload is on, on a host that is up.
    fn is_up(&self, id: usize) -> bool {
        let player = &self.players[id];
        let host = &self.hosts[player.host];
        let vm = self.scenario.hosts[host.index].config.vdisks[player.vdisk.index()].vm;
        !host.is_down && host.is_on[vm.index()] && !host.gone.contains(&player.vdisk)
    }

    /// A part of a host goes, and with a virtual disk its workloads.
    pub(crate) fn detach(&mut self, at: Time, host: usize, object: Object, drain: bool) {
        let disks = self.disks_of(host, object);
        self.hosts[host].gone.extend(&disks);
        for player in self.on_disks(host, &disks) {
            self.quiet(player, at);
        }
        self.hosts[host].give_up_copies(at, &disks);
        self.hosts[host].give_up(at, &disks, &mut self.outside);
        self.hosts[host].look_at_answers();
        self.input(host, at, Input::Detach { object, drain });
    }

    /// It comes, and they go on, if the host takes it.
    fn attach(&mut self, at: Time, host: usize, object: Object) -> bool {
        let disks = self.disks_of(host, object);
        let config = &self.scenario.hosts[self.hosts[host].index].config;
        let mut is_there = true;
        for mut part in config.parts(object) {
            match &mut part {
                Part::Vdisk { id, powered_on, .. } => {
                    *powered_on = self.hosts[host].is_on[config.vdisks[id.index()].vm.index()];
                }
                Part::Path { id, up, .. } => *up = !self.hosts[host].is_down_path(*id),
                _ => {}
            }
            is_there &= self.input(host, at, Input::Attach(part));
        }
        if !is_there {
            return false;
        }
        self.hosts[host].gone.retain(|disk| !disks.contains(disk));
        let playing = self.on_disks(host, &disks);
        let running: Vec<_> =
            playing.into_iter().filter(|player| self.players[*player].is_running).collect();
        self.resume(&running, at);
        true
    }

    /// A setting; that of a disk which is being copied is its setting in both places.
    fn set(&mut self, at: Time, host: usize, knob: Knob) {
        if let Knob::Allocation { vdisk, allocation } = knob
            && let Object::Vdisk(from) = self.where_it_is(host, Object::Vdisk(vdisk))
            && from != vdisk
        {
            self.input(host, at, Input::Set(Knob::Allocation { vdisk: from, allocation }));
        }
        self.input(host, at, Input::Set(knob));
    }

    /// A part of a host; of a virtual disk that is being copied, where it still is.
    fn where_it_is(&self, host: usize, object: Object) -> Object {
        let Object::Vdisk(vdisk) = object else { return object };
        let source = self.hosts[host].blocks.as_ref().and_then(|blocks| blocks.source_of(vdisk));
        Object::Vdisk(source.unwrap_or(vdisk))
    }

    /// A virtual disk goes on on another device, and with it its workloads; what they have outstanding
    /// where it was comes back to them.
    fn relocate(&mut self, at: Time, host: usize, from: VdiskId, to: VdiskId) {
        if self.may_go(at, host, from) && self.attach(at, host, Object::Vdisk(to)) {
            self.go_over(at, host, from, to);
        }
    }

    fn go_over(&mut self, at: Time, host: usize, from: VdiskId, to: VdiskId) {
        for player in self.on_disks(host, &[from]) {
            self.reseat(player, host, to, at);
        }
        self.detach(at, host, Object::Vdisk(from), true);
    }

    /// Whether a virtual disk is there, and not being copied; if not, that is logged.
    fn may_go(&mut self, at: Time, host: usize, disk: VdiskId) -> bool {
        let here = &self.hosts[host];
        let is_there = !here.gone.contains(&disk);
        let mut copies = here.blocks.iter().flat_map(|blocks| &blocks.copies);
        let is_copied = copies.any(|copy| copy.is_of(&[disk]) && !copy.is_gone());
        if is_there && !is_copied {
            return true;
        }
        let name = self.scenario.hosts[here.index].config.disk_name(disk);
        let state = if is_there { "is being copied" } else { "is not there" };
        self.log(host, at, Logged::Refused(format!("virtual disk `{name}` {state}")));
        false
    }

    /// A virtual disk begins to be copied.
    fn copy(
        &mut self,
        at: Time,
        host: usize,
        disks: [VdiskId; 2],
        mover: [VdiskId; 2],
        config: CopyConfig,
    ) {
        let [from, to] = disks;
        let parts = [to, mover[0], mover[1]].map(Object::Vdisk);
        if !self.may_go(at, host, from) || !parts.iter().all(|part| self.attach(at, host, *part)) {
            return;
        }
        let config = self.hosts[host].copying(config);
        if let Some(Blocks { copies, requests, .. }) = self.hosts[host].blocks.as_deref_mut() {
            copies.push(Copy::begin(at, disks, mover, config, requests));
        }
        self.drain(host, at);
    }

    /// A copy has ended: the disk goes on there, or what there is of it there goes.
    pub(crate) fn copied(&mut self, at: Time, host: usize, vdisk: VdiskId) {
        let Some(blocks) = &self.hosts[host].blocks else { return };
        let ended = blocks.copies.iter().rfind(|copy| copy.from == vdisk);
        let ended = ended.and_then(|copy| Some((copy.to, copy.mover, copy.end()?)));
        let Some((to, mover, end)) = ended else { return };
        self.log(host, at, Logged::Copied { from: vdisk, to, end });
        let is_copied = matches!(end, CopyEnd::Copied(_));
        if is_copied {
            self.go_over(at, host, vdisk, to);
        }
        for disk in [to, mover[0], mover[1]].into_iter().skip(usize::from(is_copied)) {
            if !self.hosts[host].gone.contains(&disk) {
                self.detach(at, host, Object::Vdisk(disk), is_copied);
            }
        }
    }

    /// The virtual disks of a host of the scenario that events copy.
    pub(crate) fn copied_on(&self, index: usize) -> Vec<VdiskId> {
        let own = self.scenario.events.iter().filter(|event| event.host == index);
        let disks = own.map(|event| match event.action {
            Action::Copy { from, to, .. } => Some([from, to]),
            _ => None,
        });
        disks.flatten().flatten().collect()
    }

    fn disks_of(&self, host: usize, object: Object) -> Vec<VdiskId> {
        let config = &self.scenario.hosts[self.hosts[host].index].config;
        let disks = (0..).map(VdiskId).zip(&config.vdisks);
        let is_meant = |(id, disk): &(VdiskId, &VdiskConfig)| match object {
            Object::Vdisk(vdisk) => *id == vdisk,
            Object::Vm(vm) => disk.vm == vm,
            Object::Adapter(_) | Object::Device(_) | Object::Path(_) => false,
        };
        disks.filter(is_meant).map(|(id, _)| id).collect()
    }

    fn on_disks(&self, host: usize, disks: &[VdiskId]) -> Vec<usize> {
        let is_on = |player: &Player| player.host == host && disks.contains(&player.vdisk);
        (0..self.players.len()).filter(|player| is_on(&self.players[*player])).collect()
    }

    fn power(&mut self, at: Time, host: usize, vm: VmId, on: bool) {
        let stopped = self.pause(host, Some(vm), at);
        self.hosts[host].is_on[vm.index()] = on;
        self.end_with_power(at, host, Some(vm));
        self.input(host, at, Input::Power { vm, on });
        self.resume(&stopped, at);
    }

    /// The host goes down: its guests are gone until it is up again.
    fn go_down(&mut self, at: Time, host: usize) {
        self.pause(host, None, at);
        self.hosts[host].is_down = true;
        self.end_with_power(at, host, None);
        self.input(host, at, Input::Reboot);
        self.hosts[host].reset(at, None, &mut self.outside);
        self.drain(host, at);
        let boot_ns = self.scenario.hosts[self.hosts[host].index].boot_ns;
        self.push(at + boot_ns, Key::new(Class::Boot, host, 0));
    }

    /// The host is up again, and so are the guests that were on.
    pub(crate) fn boot(&mut self, at: Time, host: usize) {
        self.hosts[host].is_down = false;
        let running: Vec<_> = self.running_on(host, None).collect();
        self.resume(&running, at);
    }

    /// The VM's workloads go on elsewhere, with what waits in their applications; what they have
    /// outstanding here comes back to them.
    fn migrate(
        &mut self,
        at: Time,
        from: usize,
        to: usize,
        to_vm: VmId,
        disks: &[(counters::VdiskId, counters::VdiskId)],
    ) {
        self.hosts[to].is_on[to_vm.index()] = true;
        self.input(to, at, Input::Power { vm: to_vm, on: true });
        for &(here, there) in disks {
            // The cache goes with its disk where the other host has one too [VFRC].
            let cache = self.hosts[from].cache(here).map(FlashCache::take);
            if let Some((was, cache)) = self.hosts[to].cache(there).zip(cache) {
                *was = cache;
            }
            let on_disk = |id: &usize| {
                let player = &self.players[*id];
                player.host == from && player.vdisk == here
            };
            let moving: Vec<_> = (0..self.players.len()).filter(on_disk).collect();
            for player in moving {
                self.reseat(player, to, there, at);
                if !self.is_up(player) {
                    self.quiet(player, at);
                } else if self.players[player].is_running {
                    self.start(player, at);
                }
            }
        }
    }

    /// Stops the workloads of a VM, or of the whole host, that are running, and says which.
    fn pause(&mut self, host: usize, vm: Option<VmId>, at: Time) -> Vec<usize> {
        let running: Vec<_> = self.running_on(host, vm).collect();
        running.iter().for_each(|player| self.quiet(*player, at));
        let disks = self.vdisks_of(host, vm);
        self.hosts[host].give_up(at, &disks, &mut self.outside);
        running
    }

    /// When a VM, or the whole host, is powered off, what is in its caches is discarded [VFRC], and copies of its disks are
    /// given up.
    fn end_with_power(&mut self, at: Time, host: usize, vm: Option<VmId>) {
        let disks = self.vdisks_of(host, vm);
        for disk in &disks {
            self.hosts[host].cache(*disk).map(FlashCache::take);
        }
        self.hosts[host].give_up_copies(at, &disks);
    }

    /// The virtual disks of a VM, or of the whole host.
    fn vdisks_of(&self, host: usize, vm: Option<VmId>) -> Vec<VdiskId> {
        let config = &self.scenario.hosts[self.hosts[host].index].config;
        let disks = (0..).map(VdiskId).zip(&config.vdisks);
        disks.filter(|(_, disk)| vm.is_none_or(|vm| disk.vm == vm)).map(|(id, _)| id).collect()
    }

    fn resume(&mut self, players: &[usize], at: Time) {
        for &player in players {
            self.start(player, at);
        }
    }

    fn running_on(&self, host: usize, vm: Option<VmId>) -> impl Iterator<Item = usize> {
        let config = &self.scenario.hosts[self.hosts[host].index].config;
        let of_vm =
            move |id: counters::VdiskId| vm.is_none_or(|vm| config.vdisks[id.index()].vm == vm);
        let players = self.players.iter().enumerate();
        players
            .filter(move |(_, p)| p.host == host && p.is_running && of_vm(p.vdisk))
            .map(|(id, _)| id)
    }
}
