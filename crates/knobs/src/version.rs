//! What differs between ESXi versions, as far as queueing is concerned.

/// An ESXi version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// ESXi 5.1.
    V5_1,
    /// ESXi 5.5.
    V5_5,
    /// ESXi 6.0.
    V6_0,
    /// ESXi 6.5.
    V6_5,
    /// ESXi 6.7.
    V6_7,
    /// ESXi 7.0 U3.
    V7_0,
    /// ESXi 8.0.
    V8_0,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Self; 7] =
        [Self::V5_1, Self::V5_5, Self::V6_0, Self::V6_5, Self::V6_7, Self::V7_0, Self::V8_0];

    /// The oldest.
    pub const OLDEST: Self = Self::V5_1;
    /// The newest.
    pub const NEWEST: Self = Self::V8_0;

    /// Its name (`6.5`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V5_1 => "5.1",
            Self::V5_5 => "5.5",
            Self::V6_0 => "6.0",
            Self::V6_5 => "6.5",
            Self::V6_7 => "6.7",
            Self::V7_0 => "7.0",
            Self::V8_0 => "8.0",
        }
    }

    /// The version of that name; `None` when there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// The version of a release as a host tells it (`7.0.3`): the newest that is not newer; `None` for what
    /// is no release.
    #[must_use]
    pub fn of_release(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let mut parts = text.trim().split('.').map(str::parse::<u32>);
            Some((parts.next()?.ok()?, parts.next()?.ok()?))
        };
        let told = number(text)?;
        let is_newer = |version: &Self| number(version.name()).is_some_and(|own| own > told);
        Some(Self::ALL.into_iter().rev().find(|own| !is_newer(own)).unwrap_or(Self::OLDEST))
    }

    /// Whether DSNRO is one global option instead of a setting of each device [S1, VMB12].
    #[must_use]
    pub fn has_global_dsnro(self) -> bool {
        self <= Self::V5_1
    }

    /// Whether a DSNRO above the device's depth is refused instead of ignored [S1].
    #[must_use]
    pub fn refuses_dsnro_above_depth(self) -> bool {
        self >= Self::V6_5
    }

    /// Whether each file of a VM has a scheduling queue of its own [PFS].
    #[must_use]
    pub fn schedules_per_file(self) -> bool {
        self >= Self::V6_0
    }

    /// Whether the latency policy of path selection exists: 6.7 U1 on [DOC67, LAMW].
    #[must_use]
    pub fn has_latency_policy(self) -> bool {
        self >= Self::V6_7
    }

    /// Whether storage policies say limits, reservations and shares: 6.5 on [DOC65].
    #[must_use]
    pub fn has_storage_policies(self) -> bool {
        self >= Self::V6_5
    }

    /// Whether virtual NVMe adapters exist: 6.5 on.
    #[must_use]
    pub fn has_vnvme(self) -> bool {
        self >= Self::V6_5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_of_the_newest_version_that_is_not_newer() {
        let table = [
            ("7.0.3", Some(Version::V7_0)),
            ("6.7.0", Some(Version::V6_7)),
            ("5.0.0", Some(Version::V5_1)),
            ("9.0.1", Some(Version::V8_0)),
            ("7", None),
            ("ESXi", None),
        ];
        for (text, version) in table {
            assert_eq!(Version::of_release(text), version, "{text}");
        }
    }
}
