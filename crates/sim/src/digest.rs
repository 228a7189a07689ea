//! What came out of a host, in 64 bits: equal for equal outputs and counters.

use std::fmt::{self, Write};

use counters::HostSnapshot;
use engine::Output;
use twox_hash::XxHash3_64;

use crate::codec;

/// A running digest of the outputs of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outputs {
    /// Outputs so far.
    pub(crate) count: u64,
    /// Their digest: XXH3-64 of the last one, seeded with the digest of those before it.
    pub(crate) digest: u64,
    encoded: Vec<u8>,
}

impl Outputs {
    pub(crate) fn add(&mut self, output: &Output) {
        self.encoded.clear();
        codec::put_output(&mut self.encoded, output);
        self.count += 1;
        self.digest = XxHash3_64::oneshot_with_seed(self.digest, &self.encoded);
    }

    /// What a journal keeps for each output: enough to tell the first one that differs.
    pub(crate) fn mark(&self) -> [u8; 2] {
        let [low, high, ..] = self.digest.to_le_bytes();
        [low, high]
    }
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
    std::hash::Hasher::finish(&text.0)
}

struct Hashed(XxHash3_64);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        std::hash::Hasher::write(&mut self.0, text.as_bytes());
        Ok(())
    }
}
