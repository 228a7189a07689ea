//! The virtual-time driver: hosts, arrays and workloads of a scenario, from one event to the
//! next, as fast as the machine allows; and the same by the wall clock.
//!
//! It stands between the pure engine and whoever asks for a run. Nothing here decides how an I/O
//! is queued: it carries inputs to the engines and does what they say.

mod ahead;
pub mod bench;
mod component;
mod copy;
mod error;
mod event;
mod events;
mod expect;
mod extents;
mod fault;
mod guest;
mod host;
mod key;
mod machine;
mod nexuses;
mod pace;
mod post;
mod run;
mod sharing;
mod source;
mod step;
mod watch;
mod windows;

pub use copy::CopyEnd;
pub use error::Error;
pub use expect::{Checked, check, figure};
pub use machine::{LogLine, Logged, PolicyWaits, Span};
pub use pace::{Clock, Pace, Paced, WallClock};
pub use run::{EPOCH_MS, Limits, Outcome, Progress, Waits, WindowView, run, run_watched};
pub use source::Source;
pub use step::{Step, in_words};
pub use watch::Watch;
