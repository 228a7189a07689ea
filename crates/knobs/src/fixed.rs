//! What the VMkernel does by numbers that nobody sets.

use counters::MILLISECOND;

/// A reservation conflict is tried again after about 60 ms [ELA 2012-05-12; reference
/// `array-and-control.md` section 7.4].
pub const CONFLICT_RETRY_NS: u64 = 60 * MILLISECOND;
/// After so many tries the VMkernel gives up: "too many reservation conflicts" [ELA].
pub const CONFLICT_RETRIES: u32 = 80;
