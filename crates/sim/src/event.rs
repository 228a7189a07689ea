//! What a scenario makes happen: settings, power, reboots, paths, migrations.

use counters::{Time, VmId};
use engine::Input;
use scenario::Action;

use crate::{
    key::{Class, Key},
    machine::{Machine, Watch},
};

impl<W: Watch> Machine<'_, W> {
    /// A timed event of the scenario, on its host.
    pub(crate) fn event(&mut self, at: Time, host: usize, index: usize) {
        let scenario = self.scenario;
        match &scenario.events[index].action {
            Action::Set(knob) => self.input(host, at, Input::Set(*knob)),
            Action::Path { path, up } => {
                self.input(host, at, Input::Path { path: *path, up: *up });
            }
            Action::Power { vm, on } => self.power(at, host, *vm, *on),
            Action::RebootGuest(vm) => {
                let stopped = self.pause(host, Some(*vm));
                self.input(host, at, Input::RebootGuest(*vm));
                self.resume(&stopped, at);
            }
            Action::Reboot => self.go_down(at, host),
            Action::StartWorkload(workload) => {
                if let Some(player) = self.player_of[*workload] {
                    self.start(player, at);
                }
            }
            Action::StopWorkload(workload) => {
                if let Some(player) = self.player_of[*workload] {
                    self.stop(player);
                }
            }
            Action::Migrate { vm: _, to_host, to_vm, disks } => {
                if let Some(to) = self.local[*to_host] {
                    self.migrate(at, host, to, *to_vm, disks);
                }
            }
        }
    }

    pub(crate) fn start(&mut self, player: usize, at: Time) {
        let seat = &mut self.players[player];
        seat.is_running = true;
        let host = &self.hosts[seat.host];
        let vm = self.scenario.hosts[host.index].config.vdisks[seat.vdisk.index()].vm;
        if !host.is_down && host.is_on[vm.index()] {
            seat.workload.start(at);
            self.play(player, at);
        }
    }

    pub(crate) fn stop(&mut self, player: usize) {
        self.players[player].is_running = false;
        self.players[player].workload.stop();
    }

    fn power(&mut self, at: Time, host: usize, vm: VmId, on: bool) {
        let stopped = self.pause(host, Some(vm));
        self.hosts[host].is_on[vm.index()] = on;
        self.input(host, at, Input::Power { vm, on });
        self.resume(&stopped, at);
    }

    /// The host goes down: its guests are gone until it is up again.
    fn go_down(&mut self, at: Time, host: usize) {
        self.pause(host, None);
        self.hosts[host].is_down = true;
        self.input(host, at, Input::Reboot);
        let boot_ns = self.scenario.hosts[self.hosts[host].index].boot_ns;
        self.push(at + boot_ns, Key::new(Class::Boot, host, 0));
    }

    /// The host is up again, and so are the guests that were on.
    pub(crate) fn boot(&mut self, at: Time, host: usize) {
        self.hosts[host].is_down = false;
        let running: Vec<_> = self.running_on(host, None).collect();
        self.resume(&running, at);
    }

    /// The VM's workloads go on elsewhere; what they have outstanding here comes back to them.
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
            let on_disk = |id: &usize| {
                let player = &self.players[*id];
                player.host == from && player.vdisk == here
            };
            let moving: Vec<_> = (0..self.players.len()).filter(on_disk).collect();
            for player in moving {
                self.players[player].workload.stop();
                self.seat(player, to, there);
                if self.players[player].is_running {
                    self.start(player, at);
                }
            }
        }
    }

    /// Stops the workloads of a VM, or of the whole host, that are running, and says which.
    fn pause(&mut self, host: usize, vm: Option<VmId>) -> Vec<usize> {
        let running: Vec<_> = self.running_on(host, vm).collect();
        for &player in &running {
            self.players[player].workload.stop();
        }
        running
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
