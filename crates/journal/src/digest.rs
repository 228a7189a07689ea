//! What came out of an engine, in 64 bits: equal for equal outputs and counters.

use std::{
    fmt::{self, Write},
    hash::Hasher,
};

use counters::{HostSnapshot, IoId, Status};
use engine::{
    Dispatch, Event, Output,
    codec::{Bytes, Damage, Field, Put},
};
use twox_hash::XxHash3_64;

/// A running digest of outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outputs {
    /// Outputs so far.
    pub(crate) count: u64,
    pub(crate) digest: u64,
}

impl Outputs {
    #[inline(always)]
    pub(crate) fn add(&mut self, output: &Output) {
        self.count = self.count.wrapping_add(1);
        match *output {
            // Where it begins follows from the input and its offset.
            Output::Dispatch(Dispatch {
                io,
                request,
                vdisk,
                tag,
                path,
                op,
                block: _,
                offset,
                bytes,
            }) => {
                let place = join(vdisk.0.into(), path.0.into()) << 8 | op as u64;
                self.all(
                    1 | place << 8,
                    [word(io), word(request), join(offset, bytes), tag.into()],
                );
            }
            Output::Complete { request, vdisk, tag, status } => {
                self.all(2 | of_status(status) << 8, [word(request), join(vdisk.0.into(), tag)]);
            }
            Output::Cancel { io, path } => self.all(3, [word(io), path.0.into()]),
            Output::Event(Event::DepthChanged { device, depth }) => {
                self.all(4, [device.0.into(), depth.into()]);
            }
            Output::Event(Event::AllPathsDown { device }) => self.all(5, [device.0.into()]),
            Output::Event(Event::ApdTimedOut { device }) => self.all(6, [device.0.into()]),
            Output::Event(Event::PermanentLoss { device }) => self.all(7, [device.0.into()]),
            Output::Event(Event::PathsBack { device }) => self.all(8, [device.0.into()]),
            Output::Reset { device } => self.all(9, [device.0.into()]),
            Output::Event(Event::ExternalWorkload { device }) => {
                self.all(10, [device.0.into()]);
            }
            Output::Event(Event::Congestion { device, latency_ns, is_congested }) => {
                self.all(11, [device.0.into(), latency_ns, is_congested.into()]);
            }
        }
    }

    /// Each step can be undone for any word, so outputs that differ in one word differ from there
    /// on. A hash of a library may change with its version; this one stands in files.
    #[inline]
    fn all<const N: usize>(&mut self, code: u64, words: [u64; N]) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let step = |digest: u64, word: u64| (digest.rotate_left(29) ^ word).wrapping_mul(ODD);
        self.digest = words.into_iter().fold(step(self.digest, code), step);
    }

    /// What a journal keeps with each input: enough to tell where the first difference is.
    #[inline]
    pub(crate) const fn mark(&self) -> u16 {
        (self.digest >> (u64::BITS - u16::BITS)) as u16
    }
}

impl Field for Outputs {
    fn put(&self, to: &mut impl Put) {
        self.count.put(to);
        to.extend(&self.digest.to_le_bytes());
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        Ok(Self { count: from.number()?, digest: u64::from_le_bytes(from.fixed()?) })
    }
}

const fn join(high: u32, low: u32) -> u64 {
    (high as u64) << u32::BITS | low as u64
}

const fn word(id: IoId) -> u64 {
    join(id.slot(), id.generation())
}

fn of_status(status: Status) -> u64 {
    let sense = match status {
        Status::CheckCondition(sense) => [sense.key, sense.code, sense.qualifier],
        _ => [0; 3],
    };
    let [key, code, qualifier] = sense;
    u32::from_le_bytes([status.code(), key, code, qualifier]).into()
}

/// The digest of each object's counters: virtual disks, devices, paths, adapters.
pub(crate) fn of_counters(counters: &HostSnapshot) -> [Vec<u64>; 4] {
    [
        counters.vdisks.iter().map(of).collect(),
        counters.devices.iter().map(of).collect(),
        counters.paths.iter().map(of).collect(),
        counters.adapters.iter().map(of).collect(),
    ]
}

/// What the four are, for whoever reports a difference.
pub(crate) const OBJECTS: [&str; 4] = ["virtual disk", "device", "path", "adapter"];

/// The derived text form names every field, so a counter that is added is in the digest.
fn of(counters: &impl fmt::Debug) -> u64 {
    let mut text = Hashed(XxHash3_64::new());
    write!(text, "{counters:?}").expect("hashing does not fail");
    text.0.finish()
}

struct Hashed(XxHash3_64);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
