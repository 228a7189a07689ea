//! How a back end's errors are said in SCSI's words: sense key, code and qualifier [SPC].

use counters::{Sense, Status};
use nix::errno::Errno;

/// Medium error, unrecovered read error.
const READ_FAILED: Sense = Sense { key: 3, code: 0x11, qualifier: 0 };
/// Medium error, write error.
const WRITE_FAILED: Sense = Sense { key: 3, code: 0x0c, qualifier: 0 };
/// Data protect, space allocation failed: what a thin volume says that has no room.
pub(crate) const NO_SPACE: Sense = Sense { key: 7, code: 0x27, qualifier: 7 };

/// A read that failed, or that met the end of an image which has become shorter.
pub(crate) const fn read_failed() -> Status {
    Status::CheckCondition(READ_FAILED)
}

/// What was to be stored is not, or not known to be.
pub(crate) const fn write_failed(error: Errno) -> Status {
    match error {
        Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG => Status::CheckCondition(NO_SPACE),
        _ => Status::CheckCondition(WRITE_FAILED),
    }
}
