//! Inputs and outputs of the engine as bytes.
//!
//! `n` is a number in seven bits a byte, lowest first; `b` a byte; `t` a text: `n` bytes of UTF-8.
//!
//! | input | code | fields |
//! |---|---|---|
//! | Submit | 1 | virtual disk `n`, operation `b`, sector `n`, bytes `n`, tag `n` |
//! | Done | 2 | I/O `n` `n`, status `b`, latency at the array `n` |
//! | Abort | 3 | virtual disk `n`, tag `n` |
//! | Set | 4 | a knob |
//! | Path | 5 | path `n`, up `b` |
//! | Power | 6 | VM `n`, on `b` |
//! | RebootGuest | 7 | VM `n` |
//! | Reboot | 8 | |
//! | Tick | 9 | |
//! | Submit after a wait in the application | 10 | as Submit, nanoseconds waited `n` |
//! | Cancelled | 11 | I/O `n` `n` |
//! | Reset | 12 | virtual disk `n` |
//!
//! An I/O is its place and which use of it it is. The fields of a knob are those of [`Knob::write`], its numbers as `n` and its names as `t`.
//!
//! Operations and statuses are numbered from 0 in the order of their tables, [`Op::ALL`] and
//! [`Status::ALL`]; after CHECK CONDITION come sense key, code and qualifier, `b` each.
//! Outputs are never read back: they only go into a digest.

use std::io::Read;

use counters::{IoId, Op, PathId, Sense, Status, VdiskId, VmId};
use engine::{Dispatch, Event, Input, Output, Request};
use knobs::{FieldReader, FieldWriter, Knob};

use crate::{
    Error,
    blocks::{Reader, put, put_text},
};

fn put_all<const N: usize>(bytes: &mut Vec<u8>, numbers: [u64; N]) {
    numbers.into_iter().for_each(|number| put(bytes, number));
}

fn put_status(bytes: &mut Vec<u8>, status: Status) {
    bytes.push(status.code());
    if let Status::CheckCondition(Sense { key, code, qualifier }) = status {
        bytes.extend([key, code, qualifier]);
    }
}

fn status<R: Read>(from: &mut Reader<R>) -> Result<Status, Error> {
    Ok(match choice(from, &Status::ALL)? {
        Status::CheckCondition(_) => Status::CheckCondition(Sense {
            key: from.byte()?,
            code: from.byte()?,
            qualifier: from.byte()?,
        }),
        other => other,
    })
}

fn put_io(bytes: &mut Vec<u8>, io: IoId) {
    put_all(bytes, [io.slot().into(), io.generation().into()]);
}

fn io<R: Read>(from: &mut Reader<R>) -> Result<IoId, Error> {
    Ok(IoId::new(from.number()?, from.number()?))
}

/// Appends the code of an input and its fields.
pub(crate) fn put_input(bytes: &mut Vec<u8>, input: &Input) {
    match *input {
        Input::Submit(Request { vdisk, op, lba, bytes: size, waited_ns, tag }) => {
            put(bytes, if waited_ns == 0 { 1 } else { 10 });
            put_all(bytes, [vdisk.0.into(), op as u64, lba, size.into(), tag.into()]);
            if waited_ns > 0 {
                put(bytes, waited_ns);
            }
        }
        Input::Done { io, status, array_ns } => {
            put(bytes, 2);
            put_io(bytes, io);
            put_status(bytes, status);
            put(bytes, array_ns);
        }
        Input::Abort { vdisk, tag } => put_all(bytes, [3, vdisk.0.into(), tag.into()]),
        Input::Set(knob) => {
            put(bytes, 4);
            knob.write(&mut Fields(bytes));
        }
        Input::Path { path, up } => put_all(bytes, [5, path.0.into(), up.into()]),
        Input::Power { vm, on } => put_all(bytes, [6, vm.0.into(), on.into()]),
        Input::RebootGuest(vm) => put_all(bytes, [7, vm.0.into()]),
        Input::Reboot => put(bytes, 8),
        Input::Cancelled { io } => {
            put(bytes, 11);
            put_io(bytes, io);
        }
        Input::Reset(vdisk) => put_all(bytes, [12, vdisk.0.into()]),
        Input::Tick => put(bytes, 9),
    }
}

/// The fields of the input of that code; `None` when no input has it.
pub(crate) fn input<R: Read>(code: u8, from: &mut Reader<R>) -> Result<Option<Input>, Error> {
    Ok(Some(match code {
        1 | 10 => Input::Submit(Request {
            vdisk: VdiskId(from.number()?),
            op: choice(from, &Op::ALL)?,
            lba: from.number()?,
            bytes: from.number()?,
            tag: from.number()?,
            waited_ns: if code == 1 { 0 } else { from.number()? },
        }),
        2 => Input::Done { io: io(from)?, status: status(from)?, array_ns: from.number()? },
        3 => Input::Abort { vdisk: VdiskId(from.number()?), tag: from.number()? },
        4 => Input::Set(Knob::read(from)?),
        5 => Input::Path { path: PathId(from.number()?), up: from.flag()? },
        6 => Input::Power { vm: VmId(from.number()?), on: from.flag()? },
        7 => Input::RebootGuest(VmId(from.number()?)),
        8 => Input::Reboot,
        9 => Input::Tick,
        11 => Input::Cancelled { io: io(from)? },
        12 => Input::Reset(VdiskId(from.number()?)),
        _ => return Ok(None),
    }))
}

/// Bytes as what takes the fields of a knob.
struct Fields<'a>(&'a mut Vec<u8>);

impl FieldWriter for Fields<'_> {
    fn number(&mut self, number: u64) {
        put(self.0, number);
    }

    fn text(&mut self, text: &str) {
        put_text(self.0, text);
    }
}

impl<R: Read> FieldReader for Reader<R> {
    type Error = Error;

    fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Error> {
        Self::number(self)
    }

    fn text(&mut self) -> Result<String, Error> {
        Self::text(self)
    }

    fn refusal(&self, what: &'static str) -> Error {
        self.damaged(what)
    }
}

fn choice<R: Read, T: Copy>(from: &mut Reader<R>, table: &[T]) -> Result<T, Error> {
    let position = usize::from(from.byte()?);
    table.get(position).copied().ok_or_else(|| from.damaged("a code that there is not"))
}

/// Appends an output, for its digest.
pub(crate) fn put_output(bytes: &mut Vec<u8>, output: &Output) {
    match *output {
        Output::Dispatch(Dispatch { io, request, vdisk, tag, path, op, offset, bytes: size }) => {
            put(bytes, 1);
            put_io(bytes, io);
            put_io(bytes, request);
            put_all(bytes, [vdisk.0.into(), tag.into(), path.0.into()]);
            put_all(bytes, [op as u64, offset.into(), size.into()]);
        }
        Output::Complete { request, vdisk, tag, status } => {
            put(bytes, 2);
            put_io(bytes, request);
            put_all(bytes, [vdisk.0.into(), tag.into()]);
            put_status(bytes, status);
        }
        Output::Cancel { io, path } => {
            put(bytes, 3);
            put_io(bytes, io);
            put(bytes, path.0.into());
        }
        Output::Event(Event::DepthChanged { device, depth }) => {
            put_all(bytes, [4, device.0.into(), depth.into()]);
        }
        Output::Event(Event::AllPathsDown { device }) => put_all(bytes, [5, device.0.into()]),
        Output::Event(Event::ApdTimedOut { device }) => put_all(bytes, [6, device.0.into()]),
        Output::Event(Event::PermanentLoss { device }) => put_all(bytes, [7, device.0.into()]),
        Output::Event(Event::PathsBack { device }) => put_all(bytes, [8, device.0.into()]),
        Output::Reset { device } => put_all(bytes, [9, device.0.into()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Writer;
    use counters::DeviceId;
    use knobs::{Advanced, Allocation, Driver, PathPolicy};
    use proptest::{collection::vec, prelude::*, sample::select};

    fn written(bytes: &[u8]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        writer.pending.extend(bytes);
        writer.finish().unwrap()
    }

    fn round_trip(input: Input) {
        let mut bytes = Vec::new();
        put_input(&mut bytes, &input);
        let blocks = written(&bytes);
        let mut reader = Reader::new(&blocks[..], 0);
        let code = reader.byte().unwrap();
        assert_eq!(super::input(code, &mut reader).unwrap(), Some(input));
        reader.end().unwrap();
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
            knobs(number).for_each(|knob| round_trip(Input::Set(knob)));
            for status in Status::ALL {
                let array_ns = u64::from(number) << 20;
                let io = IoId::new(number, number / 3);
                round_trip(Input::Done { io, status, array_ns });
                round_trip(Input::Cancelled { io });
                let sense = Sense { key: 5, code: 0x25, qualifier: 255 };
                let status = Status::CheckCondition(sense);
                round_trip(Input::Done { io, status, array_ns });
            }
            round_trip(Input::Abort { vdisk: VdiskId(1), tag: number });
        }
        for flag in [false, true] {
            round_trip(Input::Path { path: PathId(3), up: flag });
            round_trip(Input::Power { vm: VmId(4), on: flag });
        }
        round_trip(Input::RebootGuest(VmId(128)));
        round_trip(Input::Reset(VdiskId(300)));
        round_trip(Input::Reboot);
        round_trip(Input::Tick);
    }

    proptest! {
        #[test]
        fn every_submission_comes_back(
            (vdisk, op, lba) in (any::<u16>(), select(&Op::ALL[..]), any::<u64>()),
            (bytes, waited_ns, tag) in any::<(u32, u64, u32)>(),
        ) {
            let vdisk = VdiskId(vdisk);
            round_trip(Input::Submit(Request { vdisk, op, lba, bytes, waited_ns, tag }));
        }

        #[test]
        fn any_bytes_are_inputs_or_refused(bytes in vec(any::<u8>(), 1..40)) {
            let blocks = written(&bytes);
            let mut reader = Reader::new(&blocks[..], 0);
            while let Ok(code) = reader.byte() {
                if !matches!(super::input(code, &mut reader), Ok(Some(_))) {
                    break;
                }
            }
        }
    }
}
