//! From counters to an answer: which queue hurts, what proves it, what to type.
//!
//! It stands on `counters` and `levels`. A [`Recording`](counters::Recording) goes in, be it of a
//! simulation, of the daemon or of a real host; a [`Verdict`] comes out. On the way, the numbers
//! are put together as they belong (`observe`), each rule looks for its one cause (`rules`), and
//! what they found is put in order (`verdict`).
//!
//! Nobody here knows what was simulated: limits that no column shows (DSNRO, a PVSCSI depth, an
//! IOPS limit, QoS) are inferred from plateaus and from Little's law.

mod above;
mod blips;
mod changes;
mod compare;
mod comparison;
mod disagreement;
mod driver_depth;
mod dsnro_advice;
mod facts;
mod finding;
#[cfg(test)]
mod fixture;
mod headline;
#[cfg(test)]
mod holes;
mod lacks;
mod limit_advice;
mod markdown;
mod needed;
mod number;
mod observe;
mod page;
mod path_changes;
#[cfg(test)]
mod published;
mod render;
mod render_comparison;
mod rules;
mod simulated;
mod thresholds;
mod unexplained;
mod unserved;
mod verdict;

pub use changes::{EVACUATE, spread};
pub use compare::{Judged, compare, remember};
pub use comparison::{
    BeforeAfter, Comparison, Figure, FindingChange, HostShare, ObjectChange, ObjectName,
    SharedDevice, SharedKind, SharedNote, Span, Trend,
};
pub use facts::{
    ArrayFacts, ArrayQueue, ArrayUser, CommandWindow, CutPath, Demand, Detour, DeviceFacts, Facts,
    HostLink, LimitFacts, LostOnTheWay, PathFacts, SwitchLink, Thrash, VdiskFacts,
};
pub use finding::{
    Cause, Change, Evidence, Finding, Lack, Lacking, Object, ObjectKind, Outcome, Party,
    ProfileChoice, Step, Verdict, Window,
};
pub use headline::TICKET_LINE;
pub use lacks::RECORD_LINE;
pub use markdown::{render_comparison_markdown, render_markdown};
pub use needed::needed;
pub use number::number;
pub use page::{clean, fit, steers};
pub use render::{render_styled, render_text, span};
pub use render_comparison::{render_comparison, render_comparison_styled};
pub use simulated::{Simulated, SimulatedRow};
pub use thresholds::{Profile, Threshold, ThresholdError, ThresholdInfo, Thresholds};
pub use verdict::{diagnose, diagnose_together};

pub(crate) use observe::{
    Adapter, Column, Device, Flow, FullQueue, Host, LevelKind, Motion, Path, Queue, ROUNDED, Spell,
    Stall, Vdisk, World, halves_and_climbs, is_round, largest, little, mean, median, most_frequent,
    quantile, reaches, unrest_percent,
};
