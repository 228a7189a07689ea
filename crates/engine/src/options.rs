//! The advanced options of a host: what is in force, and what waits for a reboot.

use alloc::format;

use crate::{Advanced, Effect, Error, Version};

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

    /// Sets an option, now or for the next reboot.
    pub(crate) fn set(&mut self, option: Advanced, value: u32) -> Result<(), Error> {
        let info = option.info();
        if !(info.min..=info.max).contains(&value) {
            return Err(Error::Refused(format!(
                "Unable to set {}: {value} is not in the range {} to {}",
                info.path, info.min, info.max
            )));
        }
        self.staged[option as usize] = value;
        if info.effect == Effect::AtOnce {
            self.current[option as usize] = value;
        }
        Ok(())
    }

    /// Puts in force what waited for a reboot.
    pub(crate) const fn reboot(&mut self) {
        self.current = self.staged;
    }
}
