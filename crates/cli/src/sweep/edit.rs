//! What is done to a scenario before it is run.

use engine::SchedPolicy;
use knobs::Setting;
use model::Qos;
use scenario::{Over, Scenario};
use sim::Source;

/// One thing that is done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edit {
    /// A key of the file has another value.
    Key(Over),
    /// A line as `--set` takes it is in force from the beginning.
    Line(String),
    /// A setting is.
    Set(Setting),
    /// Every device queue is so deep: the driver's depth per device and DSNRO.
    DeviceDepth(u32),
    /// The device queues of that name have this order, or with `None` that of the hosts' options.
    Order(String, Option<SchedPolicy>),
    /// A VM has its devices to itself.
    OwnDevice(String),
    /// A VM is alone on a host.
    OwnHost(String),
    /// A VM has twice the disks.
    DoubleDisks(String),
    /// The workloads of a VM have so many I/Os outstanding together.
    Outstanding(String, u32),
    /// The metadata of a datastore is locked by ATS, and nobody has it reserved.
    AtsOnly(String),
    /// The other controller of the array has the volumes behind the device of that name.
    OtherController(String),
    /// The array gives the volumes of a VM this quality of service.
    Policy(String, Option<Qos>),
}

/// The scenario with all that is done to it: first come keys of the file, then lines, from which events go on
/// as from those of `--set`, then the rest as it stands, with the lines that come after it and may need it.
///
/// # Errors
/// One line, when something is refused.
pub(crate) fn edited(source: &Source, edits: &[Edit]) -> Result<Scenario, String> {
    let is_before = |edit: &Edit| matches!(edit, Edit::Key(_) | Edit::Line(_));
    let (mut keys, mut lines) = (Vec::new(), Vec::new());
    let (first, rest) = edits.split_at(edits.iter().take_while(|edit| is_before(edit)).count());
    for edit in edits {
        if let Edit::Key(over) = edit {
            keys.push(over.clone());
        }
    }
    for edit in first {
        if let Edit::Line(line) = edit {
            lines.push(line.clone());
        }
    }
    let mut scenario = source.scenario_over(&keys, &lines).map_err(|error| error.to_string())?;
    rest.iter()
        .try_for_each(|edit| edit.apply(&mut scenario))
        .map_err(|error| error.to_string())?;
    Ok(scenario)
}

impl Edit {
    fn apply(&self, scenario: &mut Scenario) -> Result<(), scenario::Error> {
        match self {
            Self::Key(_) => {}
            Self::Line(line) => scenario.set(line)?,
            Self::Set(setting) => scenario.apply(setting)?,
            Self::DeviceDepth(depth) => scenario.set_device_depth(*depth)?,
            Self::Order(device, policy) => {
                let hosts = scenario.hosts.iter_mut();
                let devices = hosts.flat_map(|host| &mut host.config.devices);
                devices.filter(|own| own.name == *device).for_each(|own| own.policy = *policy);
            }
            Self::OwnDevice(vm) => scenario.give_own_device(vm)?,
            Self::OwnHost(vm) => scenario.give_own_host(vm)?,
            Self::DoubleDisks(vm) => scenario.double_disks(vm)?,
            Self::Outstanding(vm, most) => scenario.set_outstanding(vm, *most),
            Self::AtsOnly(datastore) => scenario.lock_by_ats(datastore),
            Self::OtherController(device) => scenario.give_to_other_controller(device),
            Self::Policy(vm, qos) => scenario.set_qos(vm, qos.as_ref()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event goes on from a line that is swept as from one of `--set`.
    #[test]
    fn a_line_is_what_it_is_beside_the_file() {
        let text = "title = 't'\nduration = '9s'\narray.a = { servers = 1, service = '1ms' }\n\
            host.esx.adapter.vmhba1 = { driver = 'fnic' }\ndatastore.ds = {}\n\
            vm.web = { disk.'scsi0:0' = { datastore = 'ds' } }\n\
            [[event]]\nat = '1s'\nvm = 'web'\nallocation = { disk = 'scsi0:0', shares = 700 }\n";
        let line = || vec!["web: DiskLimitIOPerSecond 50".to_owned()];
        let source = |settings| Source {
            file: "site.toml".into(),
            text: text.into(),
            settings,
            ..Source::default()
        };
        let beside = source(line()).scenario().unwrap();
        let swept = edited(&source(Vec::new()), &[Edit::Line(line().remove(0))]).unwrap();
        assert_eq!(swept, beside);
        let scenario::Action::Set(knobs::Knob::Allocation { allocation, .. }) =
            swept.events[0].action
        else {
            panic!("{:?}", swept.events)
        };
        assert_eq!((allocation.limit_iops, allocation.shares), (Some(50), 700));
    }
}
