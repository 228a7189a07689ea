//! What a journal holds, field by field: hosts as they were built, inputs, and (by the tables beside
//! each type, gathered in `state.rs`) an engine at work. These tables are all that there is to say
//! about any of them: a variant or a field that is added is one more entry, which the compiler asks
//! for. Codes are for good; a change of fields is a new version of the format.
//!
//! A number is put as in `bytes.rs`, what has a name of its own elsewhere (a driver, an option) by
//! that, a list after the number of its entries. What may be missing is a 0, or a 1 and it. Where
//! there is a choice its code comes first.

use alloc::{boxed::Box, collections::VecDeque, string::String, vec::Vec};

use counters::{
    AdapterId, Controller, DeviceId, DeviceKind, IoId, Op, PathId, Sense, Status, Time, VdiskId,
    VmId, VscsiId, WorldId,
};
use knobs::{Advanced, Allocation, Driver, IoControl, Knob, PathPolicy, Version};

pub use crate::bytes::{Bytes, Damage, Payload, Put, Record};
use crate::{
    AdapterConfig, CompetitionUnit, DepthMode, DeviceConfig, HostConfig, Input, Object, Part,
    PathAccess, PathConfig, Request, SchedPolicy, ThrottleMode, VdiskConfig, VmConfig, VscsiConfig,
};

/// What can be put into bytes and taken out of them.
pub trait Field: Sized {
    /// Appends it.
    fn put(&self, to: &mut impl Put);

    /// Takes it from the front. Memory grows with the bytes that there are, whatever they say.
    ///
    /// # Errors
    /// When it is not there.
    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage>;
}

/// What is one of several: its code, and then the fields of that one.
pub trait Choice: Sized {
    /// Puts it, with a number above its code: mostly the two take one byte.
    fn put_below(&self, above: u64, to: &mut impl Put);
    /// The one of that code.
    ///
    /// # Errors
    /// When there is none, or its fields are not there.
    fn take_coded(code: u8, from: &mut Bytes<'_>) -> Result<Self, Damage>;
}

/// Puts a code, which is less than 32, and a number above it.
#[inline(always)]
pub fn put_code(code: u8, above: u64, to: &mut impl Put) {
    match above {
        0..4 => to.put_small((above as u8) << 5 | code),
        4.. => to.put_number(above << 5 | u64::from(code)),
    }
}

/// A code and the number above it.
///
/// # Errors
/// When there is no number.
pub fn take_code(from: &mut Bytes<'_>) -> Result<(u8, u64), Damage> {
    let number: u64 = from.number()?;
    Ok((number as u8 & 31, number >> 5))
}

macro_rules! choices {
    ($($type:ident {
        $($code:literal $name:ident $(($($inner:ident),*))? $({$($field:ident),*})?,)*
    })*) => {$(
        impl $crate::codec::Choice for $type {
            #[inline(always)]
            fn put_below(&self, above: u64, to: &mut impl $crate::codec::Put) {
                match self {$(
                    Self::$name $(($($inner),*))? $({$($field),*})? => {
                        $crate::codec::put_code($code, above, to);
                        $($($crate::codec::Field::put($inner, to);)*)?
                        $($($crate::codec::Field::put($field, to);)*)?
                    }
                )*}
            }

            #[allow(unused_variables, reason = "not every choice has fields")]
            fn take_coded(code: u8, from: &mut $crate::codec::Bytes<'_>) -> Result<Self, $crate::codec::Damage> {
                Ok(match code {
                    $($code => {
                        $($(let $inner = $crate::codec::Field::take(from)?;)*)?
                        $($(let $field = $crate::codec::Field::take(from)?;)*)?
                        Self::$name $(($($inner),*))? $({$($field),*})?
                    })*
                    _ => return Err($crate::codec::Damage(concat!("a code that no ", stringify!($type), " has"))),
                })
            }
        }

        impl $crate::codec::Field for $type {
            #[inline]
            fn put(&self, to: &mut impl $crate::codec::Put) {
                $crate::codec::Choice::put_below(self, 0, to);
            }

            fn take(from: &mut $crate::codec::Bytes<'_>) -> Result<Self, $crate::codec::Damage> {
                let (code, _) = $crate::codec::take_code(from)?;
                <Self as $crate::codec::Choice>::take_coded(code, from)
            }
        }
    )*};
}

macro_rules! records {
    ($($type:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::codec::Field for $type {
            #[inline]
            fn put(&self, to: &mut impl $crate::codec::Put) {
                let Self { $($field),* } = self;
                $($crate::codec::Field::put($field, to);)*
            }

            fn take(from: &mut $crate::codec::Bytes<'_>) -> Result<Self, $crate::codec::Damage> {
                $(let $field = $crate::codec::Field::take(from)?;)*
                Ok(Self { $($field),* })
            }
        }
    )*};
}

choices! {
    Input {
        1 Submit(request),
        2 Done { io, status, array_ns },
        3 Abort { vdisk, tag },
        4 Set(knob),
        5 Path { path, up },
        6 Power { vm, on },
        7 RebootGuest(vm),
        8 Reboot,
        9 Tick,
        11 Cancelled { io },
        12 Reset(vdisk),
        13 Attach(part),
        14 Detach { object, drain },
        15 Congestion { device, latency_ns },
    }
    Part {
        1 Adapter { id, driver, lun_depth, depth, timeout_ns },
        2 Device { id, kind, dsnro, policy, path_policy },
        3 Path { id, device, adapter, access, up },
        4 Vscsi { id, vm, controller, depth, max_transfer },
        5 Vdisk {
            id, vscsi, device, depth, max_transfer, allocation, powered_on, system, timeout_ns
        },
    }
    Object {
        1 Adapter(id),
        2 Device(id),
        3 Path(id),
        4 Vm(id),
        5 Vdisk(id),
    }
    Knob {
        1 SchedNumReqOutstanding { device, value },
        2 MaxQueueDepth { device, value },
        3 QueueFull { device, sample_size, threshold },
        4 Advanced { option, value },
        5 ModuleDepth { driver, value },
        6 Pvscsi { vm, depth, ring_pages },
        7 PathPolicy { device, policy },
        8 Allocation { vdisk, allocation },
        9 DepthByLatency { device, on },
        10 StorageIoControl { device, control },
    }
    IoControl {
        0 Off,
        1 Stats { threshold_us },
        2 On { threshold_us },
    }
    PathPolicy {
        0 Fixed,
        1 MostRecentlyUsed,
        2 RoundRobin { iops, bytes },
        3 Latency { sampling_ios, eval_ns },
    }
    DeviceKind {
        0 Scsi,
        1 ProtocolEndpoint,
        2 Nfs,
    }
    SchedPolicy {
        0 Fifo,
        1 Sfq,
        2 Mclock,
    }
    CompetitionUnit {
        0 Vm,
        1 File,
    }
    DepthMode {
        0 PathValue,
        1 SumOfActivePaths,
    }
    ThrottleMode {
        0 Kernel,
        1 Kb,
    }
}

records! {
    Request { vdisk, op, lba, bytes, waited_ns, tag }
    Sense { key, code, qualifier }
    HostConfig {
        name, version, competition_unit, depth_mode, throttle_mode, weight_scale_percent, adapters,
        devices, paths, vms, vscsi, vdisks,
    }
    AdapterConfig { name, driver, lun_depth, depth, timeout_ns }
    DeviceConfig { name, kind, dsnro, policy, path_policy }
    PathConfig { name, device, adapter, access }
    VmConfig { name, world, system, powered_on, timeout_ns }
    VscsiConfig { vm, controller, depth, max_transfer }
    VdiskConfig { name, vm, vscsi, device, depth, allocation }
    Allocation { shares, limit_iops, reservation_iops }
}

/// What has a table of all there are: the place there.
macro_rules! places {
    ($($type:ident),*) => {$(
        impl Field for $type {
            #[inline]
            fn put(&self, to: &mut impl Put) {
                to.put_small(*self as u8);
            }

            fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
                place(from, &Self::ALL)
            }
        }
    )*};
}

places!(Op, Version, Controller, PathAccess);

fn place<T: Copy>(from: &mut Bytes<'_>, all: &[T]) -> Result<T, Damage> {
    let place: usize = from.number()?;
    all.get(place).copied().ok_or(Damage("a code that there is not"))
}

impl Field for Status {
    #[inline]
    fn put(&self, to: &mut impl Put) {
        to.put_small(self.code());
        if let Self::CheckCondition(sense) = self {
            sense.put(to);
        }
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Ok(match place(from, &Self::ALL)? {
            Self::CheckCondition(_) => Self::CheckCondition(Field::take(from)?),
            other => other,
        })
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Field for $type {
            #[inline]
            fn put(&self, to: &mut impl Put) {
                to.put_number(u64::from(*self));
            }

            fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
                from.number()
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

macro_rules! ids {
    ($($type:ident),*) => {$(
        impl Field for $type {
            #[inline]
            fn put(&self, to: &mut impl Put) {
                self.0.put(to);
            }

            fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
                Field::take(from).map(Self)
            }
        }
    )*};
}

ids!(VmId, VscsiId, VdiskId, DeviceId, PathId, AdapterId, WorldId, Time);

impl Field for IoId {
    #[inline]
    fn put(&self, to: &mut impl Put) {
        self.slot().put(to);
        self.generation().put(to);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Ok(Self::new(from.number()?, from.number()?))
    }
}

impl Field for usize {
    fn put(&self, to: &mut impl Put) {
        to.put_number(*self as u64);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        from.number()
    }
}

impl Field for bool {
    #[inline]
    fn put(&self, to: &mut impl Put) {
        to.put_small((*self).into());
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        match from.number()? {
            0 => Ok(false),
            1 => Ok(true),
            2..=u8::MAX => Err(Damage("neither yes nor no")),
        }
    }
}

impl Field for String {
    fn put(&self, to: &mut impl Put) {
        to.put_text(self);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        from.text()
    }
}

impl Field for Advanced {
    fn put(&self, to: &mut impl Put) {
        to.put_text(self.info().path);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Self::from_path(&from.text()?).ok_or(Damage("an option that there is not"))
    }
}

impl Field for &'static Driver {
    fn put(&self, to: &mut impl Put) {
        to.put_text(self.module);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Driver::from_module(&from.text()?).ok_or(Damage("a driver that there is not"))
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, to: &mut impl Put) {
        self.is_some().put(to);
        if let Some(there) = self {
            there.put(to);
        }
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Ok(if Field::take(from)? { Some(Field::take(from)?) } else { None })
    }
}

impl<T: Field> Field for Vec<T> {
    fn put(&self, to: &mut impl Put) {
        (self.len() as u64).put(to);
        self.iter().for_each(|entry| entry.put(to));
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        let entries: u64 = from.number()?;
        // One at a time: the number promises nothing about how much there is.
        (0..entries).map(|_| T::take(from)).collect()
    }
}

impl<T: Field> Field for VecDeque<T> {
    fn put(&self, to: &mut impl Put) {
        (self.len() as u64).put(to);
        self.iter().for_each(|entry| entry.put(to));
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Vec::take(from).map(Self::from)
    }
}

impl<T: Field, const N: usize> Field for [T; N] {
    fn put(&self, to: &mut impl Put) {
        self.iter().for_each(|entry| entry.put(to));
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        let all: Vec<T> = (0..N).map(|_| T::take(from)).collect::<Result<_, _>>()?;
        all.try_into().map_err(|_| Damage("a row that is too short"))
    }
}

impl<T: Field> Field for Box<T> {
    fn put(&self, to: &mut impl Put) {
        self.as_ref().put(to);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        T::take(from).map(Self::new)
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn put(&self, to: &mut impl Put) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

pub(crate) use {choices, records};

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    /// One of everything.
    fn host() -> HostConfig {
        HostConfig {
            name: "esx".into(),
            version: Version::V7_0,
            competition_unit: CompetitionUnit::Vm,
            depth_mode: DepthMode::PathValue,
            throttle_mode: ThrottleMode::Kernel,
            weight_scale_percent: 100,
            adapters: vec![AdapterConfig {
                name: "vmhba1".into(),
                driver: Driver::ANY,
                lun_depth: 6,
                depth: 5,
                timeout_ns: Some(1 << 30),
            }],
            devices: vec![DeviceConfig {
                name: "naa.1".into(),
                kind: DeviceKind::Scsi,
                dsnro: None,
                policy: Some(SchedPolicy::Mclock),
                path_policy: PathPolicy::RoundRobin { iops: 3, bytes: u64::MAX },
            }],
            paths: vec![PathConfig {
                name: "vmhba1:C0:T0:L0".into(),
                device: DeviceId(0),
                adapter: AdapterId(0),
                access: PathAccess::Optimized,
            }],
            vms: vec![VmConfig {
                name: "vm0".into(),
                world: 2_100_000,
                system: false,
                powered_on: true,
                timeout_ns: None,
            }],
            vscsi: vec![VscsiConfig {
                vm: VmId(0),
                controller: Controller::Pvscsi,
                depth: 8,
                max_transfer: 1 << 19,
            }],
            vdisks: vec![VdiskConfig {
                name: "scsi0:0".into(),
                vm: VmId(0),
                vscsi: VscsiId(0),
                device: DeviceId(0),
                depth: 4,
                allocation: Allocation::default(),
            }],
        }
    }

    fn round_trip<T: Field + PartialEq + core::fmt::Debug>(what: &T) {
        let mut payload = Payload::with_capacity(0);
        what.put(&mut payload);
        let bytes = payload.bytes();
        let mut from = Bytes(bytes);
        assert_eq!(T::take(&mut from).as_ref(), Ok(what));
        assert!(from.is_empty());
        for short in 0..bytes.len() {
            assert!(T::take(&mut Bytes(&bytes[..short])).is_err(), "{what:?}");
        }
    }

    fn knobs(number: u32) -> impl Iterator<Item = Knob> {
        let (device, vdisk, vm, value) = (DeviceId(7), VdiskId(300), VmId(u16::MAX), number);
        let policies = [
            PathPolicy::Fixed,
            PathPolicy::MostRecentlyUsed,
            PathPolicy::RoundRobin { iops: number, bytes: u64::MAX },
            PathPolicy::Latency { sampling_ios: number, eval_ns: 1 << 35 },
        ];
        let allocations = [None, Some(number)].map(|limit_iops| Allocation {
            shares: number,
            limit_iops,
            reservation_iops: number,
        });
        let options = Advanced::TABLE.iter();
        [
            Knob::SchedNumReqOutstanding { device, value },
            Knob::MaxQueueDepth { device, value },
            Knob::QueueFull { device, sample_size: number, threshold: 3 },
            Knob::DepthByLatency { device, on: number > 1 },
            Knob::StorageIoControl { device, control: IoControl::On { threshold_us: number } },
            Knob::StorageIoControl { device, control: IoControl::Stats { threshold_us: number } },
            Knob::StorageIoControl { device, control: IoControl::Off },
            Knob::Pvscsi { vm, depth: number, ring_pages: 32 },
        ]
        .into_iter()
        .chain(options.map(move |info| Knob::Advanced { option: info.option, value }))
        .chain(Driver::ALL.iter().map(move |driver| Knob::ModuleDepth { driver, value }))
        .chain(policies.map(|policy| Knob::PathPolicy { device, policy }))
        .chain(allocations.map(|allocation| Knob::Allocation { vdisk, allocation }))
    }

    #[test]
    fn every_input_comes_back() {
        for number in [0, 1, 127, 128, 65_536, u32::MAX] {
            knobs(number).for_each(|knob| round_trip(&Input::Set(knob)));
            let io = IoId::new(number, number / 3);
            let sense = Sense { key: 5, code: 0x25, qualifier: 255 };
            for status in Status::ALL.into_iter().chain([Status::CheckCondition(sense)]) {
                round_trip(&Input::Done { io, status, array_ns: u64::from(number) << 20 });
            }
            round_trip(&Input::Cancelled { io });
            round_trip(&Input::Abort { vdisk: VdiskId(1), tag: number });
        }
        for flag in [false, true] {
            round_trip(&Input::Path { path: PathId(3), up: flag });
            round_trip(&Input::Power { vm: VmId(4), on: flag });
        }
        round_trip(&Input::Congestion { device: DeviceId(3), latency_ns: 1 << 35 });
        round_trip(&Input::RebootGuest(VmId(128)));
        round_trip(&Input::Reset(VdiskId(300)));
        round_trip(&Input::Reboot);
        round_trip(&Input::Tick);
    }

    #[test]
    fn every_input_is_a_record_with_room_to_spare() {
        let longest = |input: Input| {
            let mut payload = Payload::with_capacity(0);
            input.put_below(u64::MAX >> 5, &mut payload);
            payload.len()
        };
        // Behind it stand its time and a mark.
        let rest = 9 + size_of::<u16>();
        for knob in knobs(u32::MAX) {
            assert!(longest(Input::Set(knob)) + rest < 256, "{knob:?}");
        }
    }

    #[test]
    fn every_host_comes_back() {
        for version in Version::ALL {
            for (index, controller) in Controller::ALL.into_iter().enumerate() {
                let mut host = host();
                host.version = version;
                host.vscsi[0].controller = controller;
                let kinds = [DeviceKind::Scsi, DeviceKind::ProtocolEndpoint, DeviceKind::Nfs];
                let policies = [SchedPolicy::Fifo, SchedPolicy::Sfq, SchedPolicy::Mclock];
                host.devices[0].kind = kinds[index % 3];
                host.devices[0].policy = Some(policies[index % 3]);
                if index % 2 == 0 {
                    host.competition_unit = CompetitionUnit::File;
                    host.depth_mode = DepthMode::SumOfActivePaths;
                    host.throttle_mode = ThrottleMode::Kb;
                    host.weight_scale_percent = 1;
                }
                round_trip(&host);
            }
        }
    }

    proptest! {
        #[test]
        fn every_submission_comes_back(
            (vdisk, op, lba) in (any::<u16>(), select(&Op::ALL[..]), any::<u64>()),
            (bytes, waited_ns, tag) in any::<(u32, u64, u32)>(),
        ) {
            let vdisk = VdiskId(vdisk);
            round_trip(&Input::Submit(Request { vdisk, op, lba, bytes, waited_ns, tag }));
        }

        #[test]
        fn any_bytes_are_something_or_refused(bytes in vec(any::<u8>(), 1..40)) {
            let _ = HostConfig::take(&mut Bytes(&bytes));
            let mut from = Bytes(&bytes);
            while Input::take(&mut from).is_ok() {}
        }
    }
}
