//! The limits beyond which a number is a finding: two named profiles, each figure with its
//! source, each to be overridden by its key.
//!
//! Published thresholds predate flash: 25 ms is a slow disk, and an array that answers in 0.3 ms
//! is in trouble long before. So a device is judged by the profile that fits its own quickest
//! latency, unless one is asked for.

use std::fmt;

use serde::Serialize;

/// A set of thresholds for a class of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Disks and hybrid arrays: milliseconds count.
    Classic,
    /// Flash: tenths of a millisecond count.
    Flash,
}

impl Profile {
    /// The name that [`Profile::from_name`] takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Flash => "flash",
        }
    }

    /// The profile of that name (`classic` or `flash`).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Classic, Self::Flash].into_iter().find(|profile| profile.name() == name)
    }
}

/// What is known of a threshold.
#[derive(Clone, Copy, Debug)]
pub struct ThresholdInfo {
    /// The key that [`Thresholds::set`] takes.
    pub key: &'static str,
    /// Its value in the profile `classic`.
    pub classic: f64,
    /// Its value in the profile `flash`.
    pub flash: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The most that it can be set to; the least is 0.
    pub most: f64,
    /// Where the two values come from.
    pub source: &'static str,
    /// What it decides.
    pub meaning: &'static str,
}

/// The most of a part of a whole, in percent.
const ALL_OF_IT: f64 = 100.0;
/// How much longer the next of the published steps of what is slow is: 5, 10, 20 ms [DRILL].
pub(crate) const NEXT_STEP: f64 = 2.0;
/// Of what has no most.
const ANY: f64 = f64::INFINITY;

macro_rules! thresholds {
    ($($name:ident $key:literal $classic:literal $flash:literal $unit:literal $most:ident $source:literal
        $meaning:literal;)*) => {
        /// A threshold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Threshold {$(
            #[doc = $meaning]
            $name,
        )*}

        impl Threshold {
            const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Every threshold, in the order of the enum.
            pub const TABLE: &'static [ThresholdInfo] = &[$(ThresholdInfo {
                key: $key,
                classic: $classic,
                flash: $flash,
                unit: $unit,
                most: $most,
                source: $source,
                meaning: $meaning,
            }),*];
        }
    };
}

thresholds! {
    DavgMs "davg_ms" 25.0 5.0 "ms" ANY "[ELA 2012-04] / [DRILL]" "DAVG from which the array counts as slow.";
    KavgMs "kavg_ms" 2.0 0.1 "ms" ANY "[ELA 2012-04] / [S0: anything but zero]" "Wait in a queue of the VMkernel from which it counts.";
    HeldMs "held_ms" 3.0 1.0 "ms" ANY "[ELA 6.4]: every source that gives a number calls more too long / the strictest of them" "KAVG beside free slots from which commands are held by something else than a queue.";
    QavgMs "qavg_ms" 0.5 0.1 "ms" ANY "[DRILL] / [S0: anything but zero]" "QAVG of a path or adapter from which it counts.";
    WaitPercent "wait_pct" 25.0 25.0 "%" ANY "ours" "Wait for a device's slots, or for an IOPS limit, as a part of DAVG, from which it counts even below kavg_ms.";
    QosMs "qos_ms" 2.0 1.0 "ms" ANY "ours / [S0: 1.4 ms is high on flash]" "DAVG from which a flat rate is taken for a limit of the array.";
    Waiting "waiting" 1.0 1.0 "commands" ANY "[S2: QUED above 0]" "Mean commands waiting in a queue from which it counts.";
    AbortsPerSecond "aborts_per_s" 1.0 1.0 "1/s" ANY "[ELA 6.4] / [DRILL]" "Aborts or resets per second from which they count.";
    ConflictsPerSecond "cons_per_s" 20.0 1.0 "1/s" ANY "ours: between the 1 and the 32 of [DRILL] / [DRILL]" "Reservation conflicts per second from which they count.";
    MinIops "min_iops" 1.0 1.0 "1/s" ANY "[CAP-A: a CD-ROM at 0.6/s]" "Rate below which latency is judged only where a command is outstanding all the time.";
    BusyIops "busy_iops" 10.0 10.0 "1/s" ANY "ours" "Rate from which a row is busy, however quick its I/Os are.";
    BusyOutstanding "busy_outstanding" 0.8 0.8 "commands" ANY "ours: one nearly all the time" "Mean outstanding commands from which a row is busy, however few they are.";
    MinCommands "min_commands" 50.0 50.0 "commands" ANY "ours: the mean of 50 is known to about 14 %" "Commands of an interval from which their mean latency is judged though fewer are outstanding.";
    StallMs "stall_ms" 1000.0 1000.0 "ms" ANY "[S4: 0.3 to 0.4 s was a complaint]" "Latency that is a stall, be it in one sample alone.";
    FlashMs "flash_ms" 2.0 2.0 "ms" ANY "ours; a 15k spindle turns once in 4 ms" "Quickest DAVG of a device below which it is judged as flash.";
    FlatPercent "flat_pct" 5.0 5.0 "%" ALL_OF_IT "ours" "Change from sample to sample up to which a series counts as flat.";
    SlotsPercent "slots_pct" 60.0 60.0 "%" ALL_OF_IT "ours" "Share of a device's slots from which one VM counts as the holder.";
    SplitPercent "split_pct" 10.0 10.0 "%" ALL_OF_IT "ours" "Share of commands that are split from which it counts.";
    TransferMib "transfer_mib_s" 40.0 40.0 "MiB/s" ANY "ours" "Speed at which a command may be moved on top of the latency that its device is allowed: large ones take longer.";
    ArrayPercent "array_pct" 80.0 80.0 "%" ALL_OF_IT "ours: what is left is a quarter more at most, and by M/M/1 a command takes 5 times as long" "Work of an array, where it is known, from which a deeper queue before it is not advised where commands wait for each other there.";
    CongestionMs "congestion_ms" 20.0 5.0 "ms" ANY "[src: SIOC 30 ms by default, API range 5 to 100]" "DAVG from which a moving depth is taken for SIOC.";
}

impl ThresholdInfo {
    /// What it can be set to, in words.
    #[must_use]
    pub fn range(&self) -> String {
        if self.most.is_finite() { format!("0 to {}", self.most) } else { "at least 0".into() }
    }
}

impl Threshold {
    /// What is known of this threshold.
    #[must_use]
    pub fn info(self) -> &'static ThresholdInfo {
        &Self::TABLE[self as usize]
    }

    /// What it is for a device whose quickest DAVG is `quickest_ms`, where nothing was asked for.
    #[must_use]
    pub fn beside(self, quickest_ms: f64) -> f64 {
        Thresholds::default().for_device(quickest_ms).get(self)
    }
}

/// A threshold that cannot be set, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdError(String);

impl fmt::Display for ThresholdError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for ThresholdError {}

/// Which profile to judge by, and what was overridden in it.
#[derive(Clone, Debug, Default)]
pub struct Thresholds {
    profile: Option<Profile>,
    overrides: Vec<(Threshold, f64)>,
}

impl Thresholds {
    /// The thresholds of one profile for every device. [`Thresholds::default`] lets each device's
    /// own latency choose.
    #[must_use]
    pub const fn of(profile: Profile) -> Self {
        Self { profile: Some(profile), overrides: Vec::new() }
    }

    /// Overrides one threshold in every profile.
    ///
    /// # Errors
    /// When there is no such key, or the value is not one that it can have.
    pub fn set(&mut self, key: &str, value: f64) -> Result<(), ThresholdError> {
        let found = Threshold::ALL.iter().find(|threshold| threshold.info().key == key);
        let Some(&threshold) = found else {
            let keys: Vec<_> = Threshold::TABLE.iter().map(|info| info.key).collect();
            let message = format!("no threshold {key:?}; there are: {}", keys.join(", "));
            return Err(ThresholdError(message));
        };
        let info = threshold.info();
        if !(value.is_finite() && (0.0..=info.most).contains(&value)) {
            let message = format!("threshold {key}: {value} is not allowed; {}", info.range());
            return Err(ThresholdError(message));
        }
        self.overrides.push((threshold, value));
        Ok(())
    }

    /// The limits for a device whose quickest DAVG is `quickest_ms`.
    pub(crate) fn for_device(&self, quickest_ms: f64) -> Limits<'_> {
        let (overrides, is_asked_for) = (&self.overrides[..], self.is_asked_for());
        let own = Limits { profile: Profile::Classic, is_asked_for, overrides };
        let quick = quickest_ms < own.get(Threshold::FlashMs);
        let chosen = if quick { Profile::Flash } else { Profile::Classic };
        Limits { profile: self.profile.unwrap_or(chosen), is_asked_for, overrides }
    }

    /// Whether the profile was asked for.
    pub(crate) const fn is_asked_for(&self) -> bool {
        self.profile.is_some()
    }
}

/// The thresholds in force for one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    pub(crate) profile: Profile,
    /// Whether that was asked for, and not chosen by the device's latency.
    is_asked_for: bool,
    overrides: &'a [(Threshold, f64)],
}

impl Limits<'_> {
    /// Whether a threshold was set by hand.
    pub(crate) fn is_set(&self, threshold: Threshold) -> bool {
        self.overrides.iter().any(|(of, _)| *of == threshold)
    }

    /// Whether somebody said that the device is flash.
    pub(crate) fn is_flash_by_word(&self) -> bool {
        self.is_asked_for && self.profile == Profile::Flash
    }

    pub(crate) fn get(&self, threshold: Threshold) -> f64 {
        let set = self.overrides.iter().rev().find(|(of, _)| *of == threshold);
        let info = threshold.info();
        set.map_or(if self.profile == Profile::Flash { info.flash } else { info.classic }, |s| s.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_devices_own_latency_chooses_the_profile() {
        let thresholds = Thresholds::default();
        assert_eq!(thresholds.for_device(0.3).profile, Profile::Flash);
        assert_eq!(thresholds.for_device(6.0).profile, Profile::Classic);
        assert_eq!(Thresholds::of(Profile::Classic).for_device(0.3).profile, Profile::Classic);
    }

    #[test]
    fn the_last_override_wins_in_every_profile() {
        let mut thresholds = Thresholds::default();
        thresholds.set("davg_ms", 7.0).unwrap();
        thresholds.set("davg_ms", 8.0).unwrap();
        assert_eq!(thresholds.for_device(0.3).get(Threshold::DavgMs), 8.0);
        assert_eq!(thresholds.for_device(9.0).get(Threshold::DavgMs), 8.0);
        assert_eq!(thresholds.for_device(9.0).get(Threshold::KavgMs), 2.0);
    }

    #[test]
    fn what_cannot_be_set_is_refused_with_what_can() {
        let mut thresholds = Thresholds::default();
        let error = thresholds.set("davg", 1.0).unwrap_err().to_string();
        assert!(
            error.starts_with("no threshold \"davg\"; there are: davg_ms, kavg_ms,"),
            "{error}"
        );
        for value in [-1.0, f64::NAN, f64::INFINITY] {
            let error = thresholds.set("kavg_ms", value).unwrap_err().to_string();
            assert!(error.starts_with("threshold kavg_ms: "), "{error}");
        }
        // A wait may be many times DAVG; no VM holds more than all slots.
        thresholds.set("wait_pct", 300.0).unwrap();
        thresholds.set("slots_pct", 100.0).unwrap();
        for key in ["flat_pct", "slots_pct", "split_pct", "array_pct"] {
            let error = thresholds.set(key, 100.5).unwrap_err().to_string();
            assert_eq!(error, format!("threshold {key}: 100.5 is not allowed; 0 to 100"));
        }
    }

    #[test]
    fn every_threshold_names_its_source() {
        for info in Threshold::TABLE {
            assert!(!info.source.is_empty() && info.meaning.ends_with('.'), "{}", info.key);
        }
    }
}
