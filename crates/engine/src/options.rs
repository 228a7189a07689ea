//! The advanced options of a host: what is in force, and what waits for a reboot.

use knobs::{Advanced, Effect, Version};

/// The values of every [`Advanced`] option.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    current: [u32; Advanced::TABLE.len()],
    staged: [u32; Advanced::TABLE.len()],
}

impl Options {
    /// The defaults of a version.
    pub(crate) fn new(version: Version) -> Self {
        let mut current = [0; Advanced::TABLE.len()];
        for (value, info) in current.iter_mut().zip(Advanced::TABLE) {
            *value = info.option.default_in(version);
        }
        Self { current, staged: current }
    }

    pub(crate) const fn get(&self, option: Advanced) -> u32 {
        self.current[option as usize]
    }

    /// Sets an option to a value in its range, now or for the next reboot.
    pub(crate) fn set(&mut self, option: Advanced, value: u32) {
        self.staged[option as usize] = value;
        if option.info().effect == Effect::AtOnce {
            self.current[option as usize] = value;
        }
    }

    /// Puts in force what waited for a reboot.
    pub(crate) const fn reboot(&mut self) {
        self.current = self.staged;
    }
}
