//! What a change would do to a host of which there is only a recording.
//!
//! ```text
//!   recording -> observe -> calibrate (array, guests) -> scenario as TOML -> simulate: today, changed
//!                                       |                                        |
//!                                       +-- several readings that fit it --------+--> a range
//! ```
//!
//! It stands on the simulator and beside nobody: `observe` reads the rows that matter, `shared`
//! says which devices are of one array, `array` and `demand` say how it answers and what each
//! guest asks for, as far as the recording tells, and with bounds beyond; `build` writes a scenario
//! that anybody can read and run, and `answer` holds what came out against the recording and the
//! `laws`. What the recording leaves open is simulated at its bounds, and the answer is the range
//! between them.

mod answer;
mod apart;
mod array;
mod beyond;
mod build;
mod bursts;
mod closed;
mod cost;
mod cut;
mod demand;
mod error;
mod far;
mod fit;
mod flaps;
mod found;
mod freed;
mod held;
mod lacks;
mod laws;
mod light;
mod limited;
mod load;
mod lowered;
mod mix;
mod names;
mod number;
mod observe;
mod order;
mod pace;
mod phases;
mod pieces;
mod played;
mod points;
mod question;
mod raised;
mod ranges;
mod reading;
mod roomy;
mod rows;
mod run;
mod said;
mod scope;
mod shared;
mod slot;
mod tried;
mod unmodelled;
mod unmoved;
mod unseen;
mod vscsi;
mod whatif;

pub use array::{ArrayCalibration, Curve, Seen};
pub use demand::{DeviceCalibration, GuestCalibration, Habit};
pub use error::Error;
pub use played::{Played, played};
pub use question::{Question, by_numbers};
pub use said::Verdict;
pub use whatif::{Answer, Calibration, Model, STORE_UNKNOWN, Scenarios};
