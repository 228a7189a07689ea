//! The words for an I/O: what it does and how it was answered.

/// The direction of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the array to the guest.
    Read = 0,
    /// From the guest to the array.
    Write = 1,
    /// Neither: reservations, atomic test and set.
    Other = 2,
}

/// What an I/O does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// WRITE with FUA: it is durable when it completes.
    WriteFua,
    /// SYNCHRONIZE CACHE: what had completed before it was submitted is durable when it completes.
    Flush,
    /// UNMAP.
    Discard,
    /// WRITE SAME of zeroes.
    WriteZeroes,
    /// COMPARE AND WRITE; an atomic test and set (ATS) of one sector where it is VMFS's lock [S3].
    Ats,
    /// RESERVE of the whole LUN; where it is VMFS's lock, a metadata operation under it [S3].
    Reserve,
    /// RELEASE of it.
    Release,
    /// EXTENDED COPY (XCOPY): the array copies to here from another place of its own.
    Copy,
}

impl Op {
    /// Every one.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Write,
        Self::WriteFua,
        Self::Flush,
        Self::Discard,
        Self::WriteZeroes,
        Self::Ats,
        Self::Reserve,
        Self::Release,
        Self::Copy,
    ];

    /// The direction under which the I/O is counted.
    #[inline]
    #[must_use]
    pub const fn direction(self) -> Direction {
        // A table, because which way the next one goes cannot be predicted.
        const DIRECTIONS: [Direction; Op::ALL.len()] = {
            let mut all = [Direction::Other; Op::ALL.len()];
            all[Op::Read as usize] = Direction::Read;
            all[Op::Write as usize] = Direction::Write;
            all[Op::WriteFua as usize] = Direction::Write;
            all
        };
        DIRECTIONS[self as usize]
    }

    /// Whether its bytes go over the wire; those of a flush, a discard, zeroes or a copy only say where.
    #[inline]
    #[must_use]
    pub const fn moves_data(self) -> bool {
        const STILL: u16 = bits(&[Op::Flush, Op::Discard, Op::WriteZeroes, Op::Copy]);
        STILL & 1 << self as u16 == 0
    }

    /// Whether it is nothing without a byte.
    #[must_use]
    pub const fn needs_bytes(self) -> bool {
        !matches!(self, Self::Flush | Self::Reserve | Self::Release)
    }
}

/// A bit for each of them: to ask for one takes half the instructions of a `match`.
const fn bits(ops: &[Op]) -> u16 {
    let (mut all, mut place) = (0, 0);
    while place < ops.len() {
        all |= 1 << ops[place] as u16;
        place += 1;
    }
    all
}

/// Why a command failed, as the array says it (SCSI sense data).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sense {
    /// The sense key.
    pub key: u8,
    /// The additional sense code.
    pub code: u8,
    /// Its qualifier.
    pub qualifier: u8,
}

impl Sense {
    /// By these the array says that a device is gone for good: logical unit not supported, logical
    /// unit failure, self-test failed, failed self-configuration [KB-PDL].
    pub const PERMANENT_LOSS: [Self; 4] = [
        Self { key: 5, code: 0x25, qualifier: 0 },
        Self { key: 4, code: 0x3e, qualifier: 1 },
        Self { key: 4, code: 0x3e, qualifier: 3 },
        Self { key: 4, code: 0x4c, qualifier: 0 },
    ];

    /// Logical unit not accessible, target port in standby state: the other controller has the device [SPC].
    pub const STANDBY: Self = Self { key: 2, code: 4, qualifier: 0x0b };

    /// Whether it says that the device is gone for good.
    #[must_use]
    pub fn is_permanent_loss(self) -> bool {
        Self::PERMANENT_LOSS.contains(&self)
    }
}

/// How the array answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// GOOD.
    Good,
    /// BUSY 0x08: held for `Disk.DelayOnBusy`, then sent again [LAMW].
    Busy,
    /// TASK SET FULL 0x28: sent again once a command of the device completes [KB-QF].
    TaskSetFull,
    /// RESERVATION CONFLICT 0x18: sent again after 60 ms, 80 times at most [ELA].
    ReservationConflict,
    /// CHECK CONDITION: goes back to the guest as it is; of a device that is permanently lost
    /// once every path has said so.
    CheckCondition(Sense),
    /// The path was lost under the command: it is sent again on another one.
    PathLost,
    /// The command was aborted, by the guest or because its VM or host went down.
    Aborted,
    /// The host has no way to the device and does not wait for one any longer.
    NoConnect,
}

impl Status {
    /// Every one, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self::Good,
        Self::Busy,
        Self::TaskSetFull,
        Self::ReservationConflict,
        Self::CheckCondition(Sense { key: 0, code: 0, qualifier: 0 }),
        Self::PathLost,
        Self::Aborted,
        Self::NoConnect,
    ];

    /// Its place in [`Status::ALL`].
    #[inline]
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Busy => 1,
            Self::TaskSetFull => 2,
            Self::ReservationConflict => 3,
            Self::CheckCondition(_) => 4,
            Self::PathLost => 5,
            Self::Aborted => 6,
            Self::NoConnect => 7,
        }
    }

    /// Whether the array is done with the command: it goes back to the guest, and what it took at
    /// the array is free. After any other answer the VMkernel sends it again.
    #[inline]
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Good | Self::CheckCondition(_) | Self::Aborted | Self::NoConnect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_code_is_found_by_it() {
        for (code, status) in (0..).zip(Status::ALL) {
            assert_eq!(status.code(), code);
        }
        for (code, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, code);
        }
    }
}
