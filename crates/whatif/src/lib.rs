//! What a change would do to a host of which there is only a recording.
//!
//! ```text
//!   recording -> observe -> calibrate (array, guests) -> scenario as TOML -> simulate: today, changed
//!                                       |                                        |
//!                                       +-- several readings that fit it --------+--> a range
//! ```
//!
//! It stands on the simulator and beside nobody: `observe` reads the rows that matter, `array` and
//! `demand` turn them into the two numbers of an array and the load of each guest, `build` writes
//! a scenario that anybody can read and run, and `answer` holds what came out against the
//! recording. What the recording leaves open is simulated both ways, and the answer is the range.

mod answer;
mod array;
mod build;
mod demand;
mod error;
mod observe;
mod question;
mod rows;
mod run;
mod shared;
mod whatif;

pub use answer::Verdict;
pub use array::{ArrayCalibration, Curve, Seen};
pub use demand::{GuestCalibration, Habit};
pub use error::Error;
pub use question::{Question, settings_of};
pub use whatif::{Answer, Calibration, DeviceCalibration, Model};
