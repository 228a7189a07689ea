//! What hosts at work are set to, beside the threads that work: who asks is answered from here, and who
//! sets something is refused here, before any component hears of it.
//!
//! ```text
//!   a line --knobs--> settings --scenario--> knobs of hosts
//!          --> tried on an engine of the host that has no I/O
//!          --> kept in the file --> told to each component, and what is tried next
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counters::{PathId, Time};
use engine::{DeviceLimits, Engine, Input};
use knobs::{Effect, Knob, Line};
use scenario::{Host, Scenario, parse_knob};

use crate::{
    counted::Counted,
    mailbox::Letter,
    reload::changes,
    settings::{Kept, Settings},
};

/// Hosts at work.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// As it would be begun anew.
    scenario: Scenario,
    hosts: Vec<Hosted>,
    kept: Option<Settings>,
}

/// A host at work.
#[derive(Clone, Debug)]
struct Hosted {
    counted: Arc<Counted>,
    /// What each component's is, as far as settings and paths go.
    engine: Engine,
    /// By path.
    up: Vec<bool>,
}

/// Hosts, for all who answer.
pub(crate) type Shared = Arc<Mutex<Hosts>>;

/// Hosts, for as long as nobody else needs them.
pub(crate) fn lock(hosts: &Shared) -> MutexGuard<'_, Hosts> {
    hosts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is told to a host.
type Told = (usize, Input);

impl Hosts {
    /// Hosts as they begin: each with what its components are told first.
    pub(crate) fn new(
        scenario: Scenario,
        hosts: Vec<(Counted, Vec<Input>)>,
        kept: Option<Settings>,
    ) -> Self {
        let hosts = hosts.into_iter().zip(&scenario.hosts).map(|((counted, first), host)| {
            let mut engine = Engine::new(&host.config);
            for input in first {
                // The components took it.
                let _ = tell(&mut engine, host, input);
            }
            Hosted { counted: Arc::new(counted), engine, up: vec![true; host.config.paths.len()] }
        });
        let hosts = hosts.collect();
        let kept = kept.map(|mut kept| {
            let on = |kept: &Kept| parse_knob(&kept.text(), &scenario).map(|knobs| targets(&knobs));
            kept.find(|each| on(each).unwrap_or_default());
            kept
        });
        Self { scenario, hosts, kept }
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
        let Hosted { engine, .. } = &self.hosts[place];
        let ids = 0..self.scenario.hosts[place].config.devices.len();
        ids.filter_map(|id| engine.device_limits(counters::DeviceId::new(id)))
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
        self.tell(&told);
        let notes = new.iter().filter_map(|(kept, _)| later(kept.setting.effect()));
        Ok(notes.map(String::from).collect())
    }

    /// Makes the changes from one reading of the file to the next. What was set at work and stands
    /// otherwise in the file now is no longer kept.
    ///
    /// # Errors
    /// One line: what cannot change at work, or is refused; nothing is changed then.
    pub(crate) fn reload(&mut self, was: &Scenario, new: &Scenario) -> Result<Vec<String>, String> {
        let changes = changes(was, new)?;
        let told: Vec<Told> =
            changes.iter().map(|(host, knob)| (*host, Input::Set(*knob))).collect();
        let tried = self.try_on(&told)?;
        if let Some(settings) = &self.kept {
            let mut settings = settings.clone();
            let count = settings.count();
            settings.retain(|kept| {
                let knobs = parse_knob(&kept.text(), &self.scenario).unwrap_or_default();
                !knobs.iter().any(|(host, knob)| {
                    changes.iter().any(|(on, new)| on == host && knob.is_turned_by(new))
                })
            });
            if settings.count() < count {
                settings.write()?;
            }
            self.kept = Some(settings);
        }
        self.hosts = tried;
        for (host, knob) in &changes {
            self.scenario.hosts[*host].apply(*knob);
        }
        self.tell(&told);
        let mut notes = vec![match changes.len() {
            0 => "nothing has changed in the file".to_owned(),
            1 => "1 setting is as the file says now".to_owned(),
            more => format!("{more} settings are as the file says now"),
        }];
        notes.extend(changes.iter().filter_map(|(_, knob)| later(knob.effect())).map(String::from));
        Ok(notes)
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
            tell(&mut hosts[*place].engine, &self.scenario.hosts[*place], *input)?;
        }
        Ok(hosts)
    }

    /// Each component of a host is told, also of what is not its own: their engines are of the whole
    /// host.
    fn tell(&self, told: &[Told]) {
        for (place, input) in told {
            let mailboxes = self.hosts[*place].counted.mailboxes.iter();
            mailboxes.for_each(|mailbox| mailbox.send(Letter::Input(*input)));
        }
    }
}

fn targets(knobs: &[(usize, Knob)]) -> Vec<(usize, knobs::Target)> {
    knobs.iter().map(|(host, knob)| (*host, knob.target())).collect()
}

/// Tells an engine without I/O.
fn tell(engine: &mut Engine, host: &Host, input: Input) -> Result<(), String> {
    engine.handle_input(Time::ZERO, input).map_err(|error| host.refusal(&error))?;
    while engine.poll_output().is_some() {}
    Ok(())
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
