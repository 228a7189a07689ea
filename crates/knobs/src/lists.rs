//! The commands of esxcli that show something: what each asks for.
//!
//! As with settings, one definition reads a line and prints it. Words and options are those of real
//! hosts (reference `esxi-host-stack.md` sections 6.1 and 6.4).

use alloc::{
    format,
    string::{String, ToString},
};
use core::fmt;

use crate::{
    Query, Refusal,
    command::{Call, Command, Does, driver, option},
    esxcli,
};

const OF_DEVICE: &[(char, &str)] = &[('d', "device")];

static DEVICES: Command =
    of_device("storage core device list", |call| Ok(Query::Devices { device: named(call, 'd') }));
static DEVICE_STATS: Command = of_device("storage core device stats get", |call| {
    Ok(Query::DeviceStats { device: named(call, 'd') })
});
static WORLDS: Command = of_device("storage core device world list", |call| {
    Ok(Query::Worlds { device: named(call, 'd') })
});
static ADAPTERS: Command = shows("storage core adapter list", &[], |_| Ok(Query::Adapters));
static ADAPTER_STATS: Command =
    shows("storage core adapter stats get", &[('A', "adapter")], |call| {
        Ok(Query::AdapterStats { adapter: named(call, 'A') })
    });
static PATHS: Command =
    shows("storage core path list", &[('d', "device"), ('p', "path")], |call| {
        Ok(Query::Paths { device: named(call, 'd'), path: named(call, 'p') })
    });
static NMP_DEVICES: Command =
    of_device("storage nmp device list", |call| Ok(Query::NmpDevices { device: named(call, 'd') }));
static ROUND_ROBIN: Command = of_device("storage nmp psp roundrobin deviceconfig get", |call| {
    Ok(Query::RoundRobin { device: call.need('d')?.into() })
});
pub(crate) static PARAMETERS: Command =
    shows("system module parameters list", &[('m', "module")], |call| {
        Ok(Query::Parameters { driver: driver(call)? })
    });
/// What virtual disks, storage policies and datastores are set to, which on a host vCenter tells.
static DISKS: Command = shows("kavg disk list", &[], |_| Ok(Query::Disks));
static OPTIONS: Command = Command {
    flag: Some('d'),
    ..shows("system settings advanced list", &[('o', "option"), ('d', "delta")], |call| {
        let option = call.get('o').map(option).transpose()?;
        Ok(Query::Options { option, changed: call.get('d').is_some() })
    })
};

/// The commands that show something.
pub(crate) static SHOWERS: [&Command; 11] = [
    &DEVICES,
    &DEVICE_STATS,
    &WORLDS,
    &ADAPTERS,
    &ADAPTER_STATS,
    &PATHS,
    &NMP_DEVICES,
    &ROUND_ROBIN,
    &PARAMETERS,
    &OPTIONS,
    &DISKS,
];

const fn shows(
    words: &'static str,
    options: &'static [(char, &'static str)],
    query: fn(&Call) -> Result<Query, Refusal>,
) -> Command {
    Command { words, options, flag: None, does: Does::Show(query) }
}

const fn of_device(words: &'static str, query: fn(&Call) -> Result<Query, Refusal>) -> Command {
    shows(words, OF_DEVICE, query)
}

fn named(call: &Call, short: char) -> Option<String> {
    call.get(short).map(String::from)
}

impl Query {
    fn call(&self) -> Call {
        let with = |command, options: &[(char, &Option<String>)]| {
            let given = options.iter().filter_map(|(short, value)| Some((*short, value.as_ref()?)));
            given.fold(Call::new(command), |call, (short, value)| call.with(short, value))
        };
        match self {
            Self::Devices { device } => with(&DEVICES, &[('d', device)]),
            Self::DeviceStats { device } => with(&DEVICE_STATS, &[('d', device)]),
            Self::Worlds { device } => with(&WORLDS, &[('d', device)]),
            Self::Adapters => Call::new(&ADAPTERS),
            Self::Disks => Call::new(&DISKS),
            Self::AdapterStats { adapter } => with(&ADAPTER_STATS, &[('A', adapter)]),
            Self::Paths { device, path } => with(&PATHS, &[('d', device), ('p', path)]),
            Self::NmpDevices { device } => with(&NMP_DEVICES, &[('d', device)]),
            Self::RoundRobin { device } => Call::new(&ROUND_ROBIN).with('d', device),
            Self::Parameters { driver } => Call::new(&PARAMETERS).with('m', driver.module),
            Self::Options { option, changed } => {
                let option = option.map(|option| option.info().path.to_string());
                let call = with(&OPTIONS, &[('o', &option)]);
                if *changed { call.with('d', "") } else { call }
            }
        }
    }

    /// The line for a host's shell.
    #[must_use]
    pub fn esxcli(&self) -> String {
        format!("esxcli {self}")
    }
}

impl fmt::Display for Query {
    /// The line that [`Order`](crate::Order) reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&esxcli::print(&self.call()))
    }
}
