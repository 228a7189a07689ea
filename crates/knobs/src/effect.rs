//! When a change of a setting takes effect.

/// When a change of a setting takes effect. A later one is worth waiting for an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// At once.
    AtOnce,
    /// When the guest has rebooted.
    GuestReboot,
    /// When the host has rebooted.
    HostReboot,
}

impl Effect {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::AtOnce => "at once, no reboot",
            Self::GuestReboot => "after a reboot of the guest",
            Self::HostReboot => "after a reboot of the host",
        }
    }

    /// Its key in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::AtOnce => "at-once",
            Self::GuestReboot => "guest-reboot",
            Self::HostReboot => "host-reboot",
        }
    }
}
