//! What a host writes to arrays that are a round trip away, and what they answer: it is carried when the
//! host has run through a window.

use counters::{IoId, Status, Time};
use model::{Array, Carried, Command, Switches};

use crate::{events::Pending, key::Key};

/// What hosts that run apart say to an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    /// When it was sent, and the event because of which: the order in which arrays read.
    pub(crate) sent: (Time, Key),
    array: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A command, as which of the hosts that run together knows it.
    Command { host: u32, io: IoId, command: Command, carried: u32 },
    /// An answer has reached its host.
    Done(Status),
    /// A host takes back what it called so.
    TakenBack { host: u32, io: IoId },
}

/// The place of what the host's end of the way adds to a command, where it adds nothing.
const NOTHING: u32 = u32::MAX;

/// The mailbox of hosts that run together.
pub(crate) struct Post {
    /// The event that is happening: or the one before it at the same instant whose key is higher, for then
    /// it happens because of that, and after all whose key is lower.
    pub(crate) turn: (Time, Key),
    /// In order of being sent.
    pub(crate) letters: Vec<Letter>,
    /// What the hosts' ends of the way add to commands among them; few have any.
    pub(crate) carried: Vec<Carried>,
    /// Answers that are not on the event list yet.
    pub(crate) answers: Vec<(Time, Pending)>,
    /// Whether an array minds how many commands are outstanding.
    pub(crate) tells_ends: bool,
}

impl Default for Post {
    fn default() -> Self {
        let turn = (Time::ZERO, Key::FIRST);
        let (letters, carried, answers) = (Vec::new(), Vec::new(), Vec::new());
        Self { turn, letters, carried, answers, tells_ends: false }
    }
}

impl Post {
    /// A command to an array, by a host as it is known among those that run together.
    pub(crate) fn command(&mut self, array: u32, host: usize, io: IoId, command: Command) {
        let what = What::Command { host: host as u32, io, command, carried: NOTHING };
        self.letters.push(Letter { sent: self.turn, array, what });
    }

    /// What its host's end of the way adds to the last command.
    pub(crate) fn carry_last(&mut self, with: Carried) {
        if let Some(Letter { what: What::Command { carried, .. }, .. }) = self.letters.last_mut() {
            *carried = self.carried.len() as u32;
            self.carried.push(with);
        }
    }

    /// A host, by its number in the scenario, takes a command back.
    pub(crate) fn take_back(&mut self, array: u32, host: u32, io: IoId) {
        self.letters.push(Letter { sent: self.turn, array, what: What::TakenBack { host, io } });
    }

    /// A window is over, and all letters are read.
    pub(crate) fn clear(&mut self) {
        self.letters.clear();
        self.carried.clear();
    }

    /// Lets switches pass on and its array read the letter in that place: its answer to a command, and when the host sees it.
    pub(crate) fn read(
        &self,
        place: usize,
        (arrays, switches): (&mut [Array], &mut Switches),
    ) -> Option<(Time, Pending)> {
        self.letters[place].read((arrays, switches), self)
    }

    /// The answer to a command has arrived, where its array minds.
    pub(crate) fn done(&mut self, array: u32, status: Status) {
        self.letters.push(Letter { sent: self.turn, array, what: What::Done(status) });
    }
}

impl Letter {
    fn read(
        &self,
        (arrays, switches): (&mut [Array], &mut Switches),
        post: &Post,
    ) -> Option<(Time, Pending)> {
        let array = &mut arrays[self.array as usize];
        match self.what {
            What::Command { host, io, command, carried } => {
                let answer = match post.carried.get(carried as usize) {
                    None => array.dispatch(self.sent.0, command),
                    Some(carried) => {
                        let carried = switches.cross(self.sent.0, &command, *carried);
                        array.dispatch_carried(self.sent.0, command, &carried)
                    }
                };
                Some((answer.at, Pending::answer(Key::done(host as usize), io, self.array, answer)))
            }
            What::Done(status) => {
                array.done(status);
                None
            }
            What::TakenBack { host, io } => {
                array.take_back(self.sent.0, host, io);
                None
            }
        }
    }
}
