//! What hosts at work are set to, beside the threads that work: who asks is answered from here, and who
//! sets something is refused here, before any component hears of it.
//!
//! ```text
//!   a line --knobs--> settings --scenario--> knobs of hosts
//!          --> tried on an engine of the host that has no I/O
//!          --> kept in the file --> told to each component, and what is tried next
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counters::{DeviceId, PathId};
use engine::{DeviceLimits, Input};
use knobs::{Disks, Effect, Host as _, Knob, Line, Setting};
use scenario::{Host, Scenario, parse_knob};

use crate::{
    change::Plan,
    counted::Counted,
    export::Export,
    hosted::{Home, Hosted, tell},
    mailbox::Letter,
    reload::{Changes, Readings, same_hosts, turned},
    settings::{Kept, Settings},
    socket,
};

/// Hosts at work.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// As it would be begun anew.
    scenario: Scenario,
    hosts: Vec<Hosted>,
    kept: Option<Settings>,
    home: Home,
}

/// What has changed.
pub(crate) struct Changed {
    /// A line each.
    pub(crate) notes: Vec<String>,
    /// What is new for clients, by the place of its host.
    pub(crate) exports: Vec<(usize, Export)>,
}

/// Hosts, for all who answer.
pub(crate) type Shared = Arc<Mutex<Hosts>>;

/// Hosts, for as long as nobody else needs them.
pub(crate) fn lock(hosts: &Shared) -> MutexGuard<'_, Hosts> {
    hosts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a daemon begins: a reading of the file with what was set at work in force, and a line for each setting
/// that is left out.
pub type Begin<'a> = &'a dyn Fn(&Scenario, &Settings) -> Result<(Scenario, Vec<String>), String>;

/// What is told to a host.
type Told = (usize, Input);

impl Hosts {
    /// Hosts as they begin: each with what its components are told first.
    pub(crate) fn new(
        scenario: Scenario,
        hosts: Vec<(Hosted, Vec<Input>)>,
        kept: Option<Settings>,
        home: Home,
    ) -> Self {
        let hosts = hosts.into_iter().zip(&scenario.hosts).map(|((mut hosted, first), host)| {
            for input in first {
                // The components took it.
                let _ = tell(&mut hosted.engine, host, &hosted.ids, input);
            }
            hosted
        });
        let hosts = hosts.collect();
        let kept = kept.map(|mut kept| {
            find_targets(&mut kept, &scenario);
            kept
        });
        Self { scenario, hosts, kept, home }
    }

    /// The place of the host of that name; where there is one host it needs no name.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<usize, String> {
        let names = || self.scenario.hosts.iter().map(|host| host.config.name.as_str());
        let place = match name {
            Some(name) => names().position(|known| known == name),
            None => (self.hosts.len() == 1).then_some(0),
        };
        place.ok_or_else(|| {
            let names: Vec<_> = names().collect();
            format!("`host` is one of {}", names.join(", "))
        })
    }

    /// A host whose counters can be read.
    pub(crate) fn counted(&self, place: usize) -> Arc<Counted> {
        Arc::clone(&self.hosts[place].counted)
    }

    /// A host as it would be begun anew.
    pub(crate) fn host(&self, place: usize) -> &Host {
        &self.scenario.hosts[place]
    }

    /// All hosts, each as it would be begun anew.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Host, Arc<Counted>)> + '_ {
        let counted = self.hosts.iter().map(|host| Arc::clone(&host.counted));
        self.scenario.hosts.iter().cloned().zip(counted)
    }

    /// The limits of a host's devices, by id.
    pub(crate) fn limits(&self, place: usize) -> impl Iterator<Item = DeviceLimits> + '_ {
        let Hosted { engine, ids, .. } = &self.hosts[place];
        let devices = (0..self.scenario.hosts[place].config.devices.len()).map(DeviceId::new);
        devices.filter_map(|id| engine.device_limits(ids.device(id)))
    }

    /// Whether each of a host's paths is used, by id.
    pub(crate) fn paths_up(&self, place: usize) -> &[bool] {
        &self.hosts[place].up
    }

    /// Whether a setting was made at work, and on which host.
    pub(crate) fn is_kept(&self, is_it: impl Fn(&Kept) -> bool) -> bool {
        self.kept.as_ref().is_some_and(|settings| settings.kept().iter().any(is_it))
    }

    /// Changes a setting: on all hosts that have what it names, or on one of them.
    ///
    /// # Errors
    /// One line, as the host refuses it; nothing is changed then.
    pub(crate) fn set(&mut self, line: &str, host: Option<&str>) -> Result<Vec<String>, String> {
        let of_host = host.map(|host| format!("{host}: {line}"));
        let parsed = of_host.as_deref().filter(|line| line.parse::<Line>().is_ok());
        let line = parsed.unwrap_or(line);
        let Line { host: prefix, settings } = line.parse().map_err(String::from)?;
        let (mut told, mut new) = (Vec::new(), Vec::new());
        for setting in settings {
            let mut kept = Kept::new(prefix.clone(), setting);
            let knobs = parse_knob(&kept.text(), &self.scenario).map_err(|e| e.to_string())?;
            told.extend(knobs.iter().map(|(host, knob)| (*host, Input::Set(*knob))));
            kept.on = targets(&knobs);
            new.push((kept, knobs));
        }
        let tried = self.try_on(&told)?;
        if let Some(settings) = &self.kept {
            let mut settings = settings.clone();
            new.iter().for_each(|(kept, _)| settings.add(kept.clone()));
            settings.write()?;
            self.kept = Some(settings);
        }
        self.hosts = tried;
        for (host, knob) in new.iter().flat_map(|(_, knobs)| knobs) {
            self.scenario.hosts[*host].apply(*knob);
        }
        for host in &mut self.scenario.hosts {
            new.iter().for_each(|(kept, _)| host.note(&kept.setting));
        }
        self.tell(&told);
        let notes = new.iter().filter_map(|(kept, _)| later(kept.setting.effect()));
        Ok(notes.map(String::from).collect())
    }

    /// Makes the changes from one reading of the file to the next. What was set at work and stands
    /// otherwise in the file now is no longer kept.
    ///
    /// # Errors
    /// One line: what cannot change at work, or is refused; nothing is changed then.
    pub(crate) fn reload(
        &mut self,
        was: &Scenario,
        new: &Scenario,
        begin: Begin<'_>,
    ) -> Result<Changed, String> {
        same_hosts(was, new)?;
        let kept = self.kept.clone().unwrap_or_default();
        let stands = what_stands(kept.clone(), was, new)?;
        let (before, known) = begin(was, &kept)?;
        let (after, left_out) = begin(new, &stands)?;
        let plans = (0..self.hosts.len()).map(|place| {
            let hosted = &self.hosts[place];
            let changes = Changes::of(&Readings {
                file: &self.home.file,
                was: (was, &was.hosts[place]),
                now: &self.scenario.hosts[place],
                new: (new, &new.hosts[place]),
                begun: (&before.hosts[place], &after.hosts[place]),
                components: &hosted.counted.components,
            })?;
            Plan::of(hosted, changes, new, &self.home)
        });
        let plans: Vec<_> = plans.collect::<Result<_, String>>()?;
        plans.iter().try_for_each(|plan| plan.grow_files(&self.home))?;
        let mut scenario = new.clone();
        for (host, plan) in scenario.hosts.iter_mut().zip(&plans) {
            host.clone_from(&plan.changes.host);
        }
        self.keep(stands, &scenario)?;
        self.scenario = scenario;
        let mut changed = Changed { notes: vec![summary(&plans)], exports: Vec::new() };
        changed.notes.extend(left_out.into_iter().filter(|note| !known.contains(note)));
        for (place, plan) in plans.into_iter().enumerate() {
            let later = plan.changes.knobs.iter().filter_map(|knob| later(knob.effect()));
            changed.notes.extend(later.map(String::from));
            changed.exports.extend(plan.exports.iter().map(|export| (place, export.clone())));
            let (hosted, notes) = plan.carry_out(&self.hosts[place]);
            changed.notes.extend(notes);
            self.hosts[place] = hosted;
        }
        Ok(changed)
    }

    /// Makes the sockets of disks anew that have one of their own and whose files somebody has removed; a line each.
    pub(crate) fn renew_sockets(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (Hosted { counted, .. }, host) in self.hosts.iter().zip(&self.scenario.hosts) {
            for export in &counted.exports {
                let Some(path) =
                    export.socket.as_ref().filter(|path| path.symlink_metadata().is_err())
                else {
                    continue;
                };
                let mailbox = &counted.mailboxes[export.component];
                notes.push(socket::renew(path, &host.sockets, |file, listener| {
                    mailbox.send(Letter::Socket(export.vdisk, file, listener));
                    Ok(())
                }));
            }
        }
        notes
    }

    /// Keeps what stands of what was set at work.
    fn keep(&mut self, mut stands: Settings, scenario: &Scenario) -> Result<(), String> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        if stands.count() < kept.count() {
            stands.write()?;
        }
        find_targets(&mut stands, scenario);
        *kept = stands;
        Ok(())
    }

    /// Takes a path of a host into use or out of it. It is not kept.
    ///
    /// # Errors
    /// One line; nothing is changed then.
    pub(crate) fn set_path(&mut self, name: &str, up: bool, place: usize) -> Result<(), String> {
        let paths =
            || self.scenario.hosts[place].config.paths.iter().map(|path| path.name.as_str());
        let path = paths().position(|known| known == name);
        let path = path.ok_or_else(|| knobs::unknown("path", name, paths()))?;
        let told = [(place, Input::Path { path: PathId::new(path), up })];
        self.hosts = self.try_on(&told)?;
        self.hosts[place].up[path] = up;
        self.tell(&told);
        Ok(())
    }

    /// The hosts as they are after that, where none refuses it.
    fn try_on(&self, told: &[Told]) -> Result<Vec<Hosted>, String> {
        let mut hosts = self.hosts.clone();
        for (place, input) in told {
            let Hosted { engine, ids, .. } = &mut hosts[*place];
            tell(engine, &self.scenario.hosts[*place], ids, *input)?;
        }
        Ok(hosts)
    }

    /// Each component of a host is told, also of what is not its own: their engines are of the whole
    /// host.
    fn tell(&self, told: &[Told]) {
        for (place, input) in told {
            let Hosted { counted, ids, .. } = &self.hosts[*place];
            let input = ids.input(*input);
            counted.mailboxes.iter().for_each(|mailbox| mailbox.send(Letter::Input(input)));
        }
    }
}

/// What was set at work without what the file sets otherwise in a new reading.
fn what_stands(mut kept: Settings, was: &Scenario, new: &Scenario) -> Result<Settings, String> {
    let hosts = was.hosts.iter().zip(&new.hosts);
    let turned: Vec<_> = hosts.map(|(was, new)| turned(was, new)).collect::<Result<_, _>>()?;
    let says_otherwise = |setting: &Setting| {
        let Setting::Allocation { vdisk: Disks::With(policy), .. } = setting else { return false };
        let of = |scenario: &Scenario| scenario.hosts[0].policy(policy).ok();
        of(was).zip(of(new)).is_some_and(|(was, new)| was != new)
    };
    let mut scenario = new.clone();
    kept.retain(|kept| {
        let text = kept.text();
        let knobs = parse_knob(&text, &scenario).unwrap_or_default();
        let is_otherwise = knobs.iter().any(|(host, knob)| {
            turned[*host].iter().any(|new| knob.is_turned_by(new) && knob != new)
        });
        let stands = !is_otherwise && !says_otherwise(&kept.setting);
        if stands {
            // Where no host has what it names it is kept for when one has it again.
            let _ = scenario.set(&text);
        }
        stands
    });
    Ok(kept)
}

fn targets(knobs: &[(usize, Knob)]) -> Vec<(usize, knobs::Target)> {
    knobs.iter().map(|(host, knob)| (*host, knob.target())).collect()
}

/// Finds out what each setting is on.
fn find_targets(kept: &mut Settings, scenario: &Scenario) {
    let on = |kept: &Kept| parse_knob(&kept.text(), scenario).map(|knobs| targets(&knobs));
    kept.find(|each| on(each).unwrap_or_default());
}

/// What changes, in a line.
fn summary(plans: &[Plan]) -> String {
    let count = |of: fn(&Plan) -> usize| plans.iter().map(of).sum();
    let counted = |count: usize, noun: &str| match count {
        0 => None,
        1 => Some(format!("1 {noun}")),
        more => Some(format!("{more} {noun}s")),
    };
    let new = counted(count(|plan| plan.changes.new_disks()), "disk").map(|it| it + " more");
    let gone = counted(count(|plan| plan.changes.gone_disks()), "disk").map(|it| it + " fewer");
    let moved = counted(count(Plan::moved_disks), "disk");
    let moved = moved.map(|it| it + " on another device");
    let grown = counted(count(Plan::grown_disks), "disk").map(|it| it + " larger");
    let [come, left] = [Changes::new_devices, Changes::gone_devices].map(|of| {
        let devices = plans.iter().map(|plan| of(&plan.changes)).sum();
        counted(devices, "device")
    });
    let (come, left) = (come.map(|it| it + " more"), left.map(|it| it + " fewer"));
    let set = counted(count(|plan| plan.changes.knobs.len()), "setting");
    let set = set.map(|it| it + " as the file says now");
    let all: Vec<_> = [new, gone, moved, grown, come, left, set].into_iter().flatten().collect();
    if all.is_empty() {
        "no disk, no device and no setting has changed in the file".into()
    } else {
        all.join(", ")
    }
}

/// When a setting acts that does not act at once.
const fn later(effect: Effect) -> Option<&'static str> {
    match effect {
        Effect::AtOnce => None,
        Effect::GuestReboot => {
            Some("it acts when the guest has let go of all its disks, as in a reboot of the guest")
        }
        Effect::HostReboot => {
            Some("it acts when the daemon is begun anew, as after a reboot of the host")
        }
    }
}
