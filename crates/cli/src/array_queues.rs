//! What a run knows of the queues of its arrays over a window, of ports and of volumes: how full each is,
//! who has its places, and whom it refuses.

use std::iter::once;

use counters::{DeviceId, Time};
use diagnose::ArrayQueue;
use knobs::{Advanced, Knob};
use model::{ArrayConfig, Queues};
use scenario::{Action, Host, Scenario};
use sim::WindowView;

/// The queues with a limit of all arrays, array by array.
pub(crate) struct ArrayQueues<'a> {
    scenario: &'a Scenario,
    views: &'a [WindowView],
    /// The end of the window.
    to: Time,
    /// What an advanced option of a host is when a run begins.
    advanced: fn(&Host, Advanced) -> u32,
    of: Vec<Vec<Queue>>,
}

/// One of them.
struct Queue {
    of_port: bool,
    limit: u32,
    users: Vec<User>,
}

/// A device whose commands go there.
struct User {
    host: usize,
    device: DeviceId,
    /// Its mean commands there and on the way.
    inside: f64,
}

impl<'a> ArrayQueues<'a> {
    pub(crate) fn of(
        scenario: &'a Scenario,
        to: Time,
        views: &'a [WindowView],
        advanced: fn(&Host, Advanced) -> u32,
    ) -> Self {
        let all = scenario.arrays.iter().map(|array| empty(&array.config));
        let mut this = Self { scenario, views, to, advanced, of: all.collect() };
        for (index, (host, view)) in scenario.hosts.iter().zip(views).enumerate() {
            this.add(index, host, view);
        }
        this
    }

    fn add(&mut self, index: usize, host: &Host, view: &WindowView) {
        let (before, after) = (&view.counters_before, &view.counters);
        let gates = before.paths.iter().zip(&after.paths);
        for ((path, (was, is)), id) in host.config.paths.iter().zip(gates).zip(0..) {
            let inside = is.active.mean_since(&was.active, before.at, after.at);
            if inside == 0.0 && waiting(view, path.device) == 0.0 {
                continue;
            }
            let Some((array, queues)) = self.places(index, path.device, id) else { continue };
            for queue in queues {
                let users = &mut self.of[array][queue].users;
                let is_same = |user: &&mut User| (user.host, user.device) == (index, path.device);
                match users.last_mut().filter(is_same) {
                    Some(user) => user.inside += inside,
                    None => users.push(User { host: index, device: path.device, inside }),
                }
            }
        }
    }

    /// The array of a device, and where its queues stand to which a path leads: the volume's and the port's.
    fn places(
        &self,
        host: usize,
        device: DeviceId,
        path: usize,
    ) -> Option<(usize, impl Iterator<Item = usize> + use<>)> {
        let its = &self.scenario.hosts[host];
        let disks = its.config.vdisks.iter().zip(&its.targets);
        let target =
            disks.filter(|(disk, _)| disk.device == device).map(|(_, target)| target).next()?;
        let config = &self.scenario.arrays[target.array].config;
        let queues = &config.queues;
        let volume = queues.lun_limit.map(|_| target.volume as usize);
        let before = queues.lun_limit.map_or(0, |_| config.volumes.len());
        let port = Queues::port_of(host, path, queues.ports as usize);
        let port = queues.port_limit.map(|_| before + port);
        Some((target.array, volume.into_iter().chain(port)))
    }

    /// What is known of that queue before a device which has fewest places free; `None` where none has a limit.
    pub(crate) fn before(&self, host: usize, device: DeviceId) -> Option<ArrayQueue> {
        let paths = self.scenario.hosts[host].config.paths.iter().zip(0..);
        let mine = paths.filter(|(path, _)| path.device == device);
        let places = mine.filter_map(|(_, path)| self.places(host, device, path));
        let places = places.flat_map(|(array, queues)| queues.map(move |queue| (array, queue)));
        let full = |place: &(usize, usize)| {
            let queue = &self.of[place.0][place.1];
            queue.inside() / f64::from(queue.limit)
        };
        let (array, place) = places.max_by(|a, b| full(a).total_cmp(&full(b)))?;
        let (queue, config) = (&self.of[array][place], &self.scenario.arrays[array].config);
        let others = || queue.users.iter().filter(|user| user.host != host);
        let most = others().max_by(|a, b| a.inside.total_cmp(&b.inside));
        let named = |user: &User| self.scenario.hosts[user.host].config.name.clone();
        let refused = others().filter(|user| self.refusals(user.host, user.device) > 0.0);
        let refused = refused.map(|user| (user, waiting(&self.views[user.host], user.device)));
        let shut_out = refused.max_by(|a, b| a.1.total_cmp(&b.1));
        let mine = queue.users.iter().filter(|user| user.host == host);
        let delay = |host: usize| self.delay_ms(host);
        Some(ArrayQueue {
            array: self.scenario.arrays[array].name.clone(),
            of_port: queue.of_port,
            takes: queue.limit,
            inside: queue.inside(),
            own: mine.map(|user| user.inside).sum(),
            most: most.map(|user| (named(user), user.inside)),
            shut_out: shut_out.map(|(user, waiting)| (named(user), waiting, user.inside)),
            part: (!queue.of_port || config.queues.ports == 1)
                .then(|| (queue.limit / (queue.users.len() as u32).max(1)).max(1)),
            answer: config.queues.full,
            refusals: self.refusals(host, device),
            waiting: waiting(&self.views[host], device),
            delay_ms: delay(host),
            least_delay_ms: others().map(|user| user.host).chain(once(host)).map(delay).min()?,
        })
    }

    /// How often a device is told that a queue of its array is full, a second.
    fn refusals(&self, host: usize, device: DeviceId) -> f64 {
        let view = &self.views[host];
        let seconds = (view.counters.at - view.counters_before.at) as f64 / 1e9;
        let [was, is] = [&view.counters_before, &view.counters]
            .map(|counted| counted.devices[device.index()].queue_full);
        (is - was) as f64 / seconds
    }

    /// `Disk.DelayOnBusy` of a host at the end of the window.
    fn delay_ms(&self, host: usize) -> u32 {
        let events = self.scenario.events.iter();
        let set = events.filter(|event| event.host == host && event.at < self.to);
        let mut set = set.filter_map(|event| match event.action {
            Action::Set(Knob::Advanced { option: Advanced::DelayOnBusy, value }) => Some(value),
            _ => None,
        });
        let first = || (self.advanced)(&self.scenario.hosts[host], Advanced::DelayOnBusy);
        set.next_back().unwrap_or_else(first)
    }
}

impl Queue {
    fn inside(&self) -> f64 {
        self.users.iter().map(|user| user.inside).sum()
    }
}

/// The queues of an array: those of its volumes, then those of its ports.
fn empty(config: &ArrayConfig) -> Vec<Queue> {
    let queues = &config.queues;
    let of = |limit: Option<u32>, count, of_port| {
        let limits = limit.into_iter().flat_map(move |limit| vec![limit; count]);
        limits.map(move |limit| Queue { of_port, limit, users: Vec::new() })
    };
    let volumes = of(queues.lun_limit, config.volumes.len(), false);
    volumes.chain(of(queues.port_limit, queues.ports as usize, true)).collect()
}

/// The mean commands to a device that wait in the host: for a slot, and to be sent again.
fn waiting(view: &WindowView, device: DeviceId) -> f64 {
    let (before, after) = (&view.counters_before, &view.counters);
    let [was, is] = [before, after].map(|counted| &counted.devices[device.index()]);
    is.queued.mean_since(&was.queued, before.at, after.at)
        + is.held.mean_since(&was.held, before.at, after.at)
}
