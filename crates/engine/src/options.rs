//! The advanced options of a host: what is in force, and what waits for a reboot.

use alloc::vec::Vec;

use knobs::{Advanced, AdvancedInfo, Effect, Version};

use crate::codec::{Bytes, Damage, Field, Put};

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

    /// Whether each has a value in its range.
    pub(crate) fn are_in_range(&self) -> bool {
        let in_range = |(value, info): (&u32, &AdvancedInfo)| info.range().contains(value);
        [&self.current, &self.staged]
            .into_iter()
            .all(|values| values.iter().zip(Advanced::TABLE).all(in_range))
    }

    /// Puts in force what waited for a reboot.
    pub(crate) const fn reboot(&mut self) {
        self.current = self.staged;
    }
}

/// By their names: a table that has grown is another one.
impl Field for Options {
    fn put(&self, to: &mut impl Put) {
        to.put_number(Advanced::TABLE.len() as u64);
        for (info, values) in Advanced::TABLE.iter().zip(self.current.iter().zip(&self.staged)) {
            info.option.put(to);
            (*values.0, *values.1).put(to);
        }
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        let all: Vec<(Advanced, (u32, u32))> = Field::take(from)?;
        let known = Advanced::TABLE.iter().map(|info| info.option);
        if !known.eq(all.iter().map(|(option, _)| *option)) {
            return Err(Damage("options of another version"));
        }
        let mut options =
            Self { current: [0; Advanced::TABLE.len()], staged: [0; Advanced::TABLE.len()] };
        for (at, (_, values)) in all.into_iter().enumerate() {
            (options.current[at], options.staged[at]) = values;
        }
        Ok(options)
    }
}
