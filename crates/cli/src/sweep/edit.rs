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
    /// The array gives the volumes of a VM this quality of service.
    Policy(String, Option<Qos>),
}

/// The scenario with all that is done to it: first come keys of the file, then the rest as it stands.
///
/// # Errors
/// One line, when something is refused.
pub(crate) fn edited(source: &Source, edits: &[Edit]) -> Result<Scenario, String> {
    let keys = edits.iter().filter_map(|edit| match edit {
        Edit::Key(over) => Some(over.clone()),
        _ => None,
    });
    let keys: Vec<_> = keys.collect();
    let mut scenario = source.scenario_over(&keys).map_err(|error| error.to_string())?;
    edits
        .iter()
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
            Self::Policy(vm, qos) => scenario.set_qos(vm, qos.as_ref()),
        }
        Ok(())
    }
}
