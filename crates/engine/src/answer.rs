//! An answer of the driver that does not simply end a command: to a piece, to what was asked back, with
//! sense data, or that it let go.

use counters::{IoId, Status};

use crate::{Error, Sink, slab::State, stack::Stack};

impl Stack {
    /// It answered one that is cut or was asked back, or with sense data.
    #[cold]
    pub(crate) fn done_rarely(
        &mut self,
        id: IoId,
        status: Status,
        array_ns: u64,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        let mut status = status;
        if let Status::CheckCondition(sense) = status {
            status = self.sensed(id, sense, out);
        }
        match self.ios.state_of(id) {
            Some(State::Piece) => self.piece_done(id.slot(), status, array_ns, out),
            Some(
                State::Active
                | State::Recalled
                | State::Overdue
                | State::WrittenOff
                | State::Orphan,
            ) if !self.is_in_pieces(id.slot()) => {
                self.answered_at_last(id.slot(), status, array_ns, out);
            }
            _ => return Err(Error::NotOutstanding(id)),
        }
        Ok(())
    }

    /// The driver let go of a command that it was asked to cancel.
    pub(crate) fn cancelled(&mut self, id: IoId, out: &mut impl Sink) -> Result<(), Error> {
        let io = match self.ios.state_of(id) {
            None | Some(State::Free | State::Left) => return Err(Error::NotOutstanding(id)),
            Some(State::Piece) => self.extras[self.ios[id.slot()].extra].io,
            Some(_) => id.slot(),
        };
        let status = match self.ios[io].state {
            State::Recalled | State::Orphan => Status::Aborted,
            // It may be sent again now.
            State::Overdue | State::WrittenOff => Status::PathLost,
            _ => return Err(Error::NotCancelled(id)),
        };
        self.done(id, status, 0, out)
    }
}
