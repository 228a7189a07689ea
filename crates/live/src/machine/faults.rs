//! What calls on images fail with: a line for each image and error, and not the same again at once, for a
//! guest asks for thousands a second.

use std::mem;

use counters::{SECOND, Time};
use nix::errno::Errno;

/// How long nothing is said of what was told.
const QUIET_NS: u64 = 10 * SECOND;

/// What was told.
#[derive(Default)]
pub(super) struct Faults(Vec<Told>);

/// An error of an image, by its place.
struct Told {
    of: (usize, Errno),
    at: Time,
    /// How often it was met since.
    more: u64,
}

impl Faults {
    /// A call on an image failed; what is to be told of that.
    #[cold]
    pub(super) fn meet(&mut self, now: Time, of: (usize, Errno), title: &str) -> Option<String> {
        let more = match self.0.iter_mut().find(|told| told.of == of) {
            Some(told) if now.since(told.at) < QUIET_NS => {
                told.more += 1;
                return None;
            }
            Some(told) => {
                told.at = now;
                mem::take(&mut told.more)
            }
            None => {
                self.0.push(Told { of, at: now, more: 0 });
                0
            }
        };
        let again = match more {
            0 => String::new(),
            more => format!("; {more} more since that was told"),
        };
        Some(format!("{title}: I/O fails: {}{again}", of.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_an_image_is_told_and_told_again_with_how_many_there_were() {
        let mut faults = Faults::default();
        let (full, bad) = (Errno::ENOSPC, Errno::EIO);
        let is_full = "I/O fails: ENOSPC: No space left on device";
        for (at, image, error, expected) in [
            (0, "a", full, Some(format!("a: {is_full}"))),
            (1, "a", full, None),
            (2, "b", full, Some(format!("b: {is_full}"))),
            (3, "a", bad, Some("a: I/O fails: EIO: I/O error".into())),
            (4, "a", full, None),
            (10, "a", full, Some(format!("a: {is_full}; 2 more since that was told"))),
            (20, "a", full, Some(format!("a: {is_full}"))),
        ] {
            let image_at = usize::from(image == "b");
            let told = faults.meet(Time::ZERO + at * SECOND, (image_at, error), image);
            assert_eq!(told, expected, "{at}");
        }
    }
}
