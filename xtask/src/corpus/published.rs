//! What the sources call a trouble, as the corpus states its truth: esxi-host-stack.md section 7 and
//! array-and-control.md of the reference. The diagnosis has thresholds of its own and is not asked.

/// From where a figure counts, where discs answer and where flash does.
#[derive(Clone, Copy)]
pub(super) struct Published {
    pub(super) discs: f64,
    pub(super) flash: f64,
}

/// DAVG, ms: [ELA 2012-04]; above 5 is no longer in order for [DRILL].
pub(super) const DAVG_MS: Published = Published { discs: 25.0, flash: 5.0 };

/// DAVG at which [DRILL] warns, as a multiple of where it stops to be in order.
pub(super) const DRILL_WARNS: f64 = 2.0;

/// KAVG, ms: [ELA 2012-04]; "anything but zero" [S0], beyond the 0.02 of a host at rest [CAP-A].
pub(super) const KAVG_MS: Published = Published { discs: 2.0, flash: 0.1 };

/// A wait that is that part of the time below the host is one, however short: [S0] names 0.45 ms
/// beside 0.49.
pub(super) const WAIT_PART: f64 = 0.25;

/// QAVG of a path or adapter, ms: [DRILL]; as KAVG.
pub(super) const QAVG_MS: Published = Published { discs: 0.5, flash: 0.1 };

/// Delay by a policy of the array, ms: 1.4 "is high for an AFA" [S0].
pub(super) const QOS_MS: Published = Published { discs: 1.4, flash: 1.4 };

/// Aborts per second: [ELA 6.4], [DRILL].
pub(super) const ABORTS_PER_S: Published = Published { discs: 1.0, flash: 1.0 };

/// Reservation conflicts per second: Yellow-Bricks; [DRILL].
pub(super) const CONFLICTS_PER_S: Published = Published { discs: 20.0, flash: 1.0 };

/// Parts of the commands that are split: no source has a threshold; most of them surely counts,
/// and a few may.
pub(super) const SPLIT: [f64; 2] = [0.5, 0.02];

/// What no disc answers in, ms: a 15k one turns half a turn in 2.0 ms (array-and-control.md 7.2).
pub(super) const DISC_MS: f64 = 2.0;

/// What an array moves to one host, MiB/s: the geometric middle of PARDA's 8 to 177 (2.4).
pub(super) const TRANSFER_MIB_S: f64 = 38.0;
