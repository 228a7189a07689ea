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
    /// A metadata operation of VMFS under a SCSI-2 reservation of the whole LUN [S3].
    Reserve,
    /// The same under an atomic test and set (COMPARE AND WRITE) of one sector [S3].
    Ats,
}

impl Op {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Reserve, Self::Ats];

    /// The direction under which the I/O is counted.
    #[must_use]
    pub const fn direction(self) -> Direction {
        // A table, because which way the next one goes cannot be predicted.
        [Direction::Read, Direction::Write, Direction::Other, Direction::Other][self as usize]
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
    /// CHECK CONDITION: goes back to the guest as it is.
    CheckCondition,
    /// The path was lost under the command: it is sent again on another one.
    PathLost,
    /// The command was aborted, by the guest or because its VM or host went down.
    Aborted,
}

impl Status {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Good,
        Self::Busy,
        Self::TaskSetFull,
        Self::ReservationConflict,
        Self::CheckCondition,
        Self::PathLost,
        Self::Aborted,
    ];

    /// Whether the array is done with the command: it goes back to the guest, and what it took at
    /// the array is free. After any other answer the VMkernel sends it again.
    #[inline]
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Good | Self::CheckCondition | Self::Aborted)
    }
}
