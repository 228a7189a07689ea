//! The nexuses by which a host reaches its arrays, where the scenario says what they are: below the engine, so
//! what waits here counts as the device's time, as it does for a driver that has taken a command.
//!
//! ```text
//!   Dispatch --> nexus's window has room? --> rounds, link, lost segments --> array
//!                 no: kept in order, until an answer makes room
//! ```

use std::collections::{BTreeMap, VecDeque};

use counters::{IoId, Time};
use engine::Dispatch;
use model::{Carried, Initiator, InitiatorConfig, PolicyWait};

/// The nexuses of a host.
pub(crate) struct Nexuses {
    initiator: Initiator,
    /// By path.
    of_path: Vec<Option<u32>>,
    windows: Vec<Option<Window>>,
    /// The nexus of each command that is under way by one with a window, and how many went before it: also of those
    /// that the host has taken back, for the array goes on with them.
    under_way: BTreeMap<IoId, (u32, u64)>,
    /// Commands that went by a window.
    sent: u64,
    /// Commands of each virtual disk that went by a window, and what they waited for it; and of all that went,
    /// what they were on the link of a port, and what they waited for acknowledgements of lost segments.
    waits: [Vec<PolicyWait>; 3],
}

/// A nexus that has so many commands under way at most.
struct Window {
    room: u32,
    /// Commands that it has no room for, and since when.
    kept: VecDeque<(Time, Dispatch)>,
}

impl Nexuses {
    /// Those of a host with so many virtual disks, idle; `None` where nothing is said of any.
    pub(crate) fn new(config: &InitiatorConfig, disks: usize, seed: u64) -> Option<Box<Self>> {
        let windows = config
            .nexuses
            .iter()
            .map(|nexus| nexus.window.map(|window| Window { room: window, kept: VecDeque::new() }));
        let nexuses = Self {
            initiator: Initiator::new(config, seed),
            of_path: config.of_path.clone(),
            windows: windows.collect(),
            under_way: BTreeMap::new(),
            sent: 0,
            waits: [(); 3].map(|()| vec![PolicyWait::default(); disks]),
        };
        (!config.nexuses.is_empty()).then(|| Box::new(nexuses))
    }

    /// A command of the host: how it goes, or nothing where it is kept.
    pub(crate) fn send(&mut self, at: Time, sent: Dispatch) -> Option<Carried> {
        let Some(nexus) = self.of_path.get(sent.path.index()).copied().flatten() else {
            return Some(Carried::default());
        };
        if let Some(window) = &mut self.windows[nexus as usize] {
            if window.room == 0 {
                window.kept.push_back((at, sent));
                return None;
            }
            window.room -= 1;
            self.under_way.insert(sent.io, (nexus, self.sent));
            self.sent += 1;
            self.waits[0][sent.vdisk.index()].commands += 1;
        }
        let carried = self.initiator.carry(at, nexus as usize, sent.op, sent.bytes);
        let on_link = &mut self.waits[1][sent.vdisk.index()];
        on_link.commands += 1;
        on_link.wait_ns += carried.link_ns;
        let on_losses = &mut self.waits[2][sent.vdisk.index()];
        on_losses.commands += 1;
        on_losses.wait_ns += u64::from(carried.lost).saturating_mul(carried.ack_ns);
        Some(carried)
    }

    /// What orders answers that come at one instant: whose command went first. Any other order would make room for the
    /// same guests first again and again, where all commands take equally long.
    pub(crate) fn turn_of(&self, io: IoId) -> Option<u64> {
        self.under_way.get(&io).map(|(_, turn)| *turn)
    }

    /// An answer has come: the command that has its room now, if one was kept that `is_wanted` still.
    pub(crate) fn answered(
        &mut self,
        at: Time,
        io: IoId,
        is_wanted: impl Fn(IoId) -> bool,
    ) -> Option<Dispatch> {
        let (nexus, _) = self.under_way.remove(&io)?;
        let window = self.windows[nexus as usize].as_mut()?;
        window.room += 1;
        let (since, sent) = loop {
            let (since, sent) = window.kept.pop_front()?;
            if is_wanted(sent.io) {
                break (since, sent);
            }
        };
        self.waits[0][sent.vdisk.index()].wait_ns += at.since(since);
        Some(sent)
    }

    /// Commands of each virtual disk that went by a window so far, and what they waited for it; and of all that
    /// went, what they were on the link of a port, and what they waited for acknowledgements of lost segments.
    pub(crate) fn waits(&self) -> [&[PolicyWait]; 3] {
        self.waits.each_ref().map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::{Op, PathId, VdiskId};
    use model::NexusConfig;

    fn sent(slot: u32) -> Dispatch {
        Dispatch {
            io: IoId::new(slot, 0),
            request: IoId::new(slot, 0),
            vdisk: VdiskId(0),
            path: PathId(0),
            tag: 0,
            op: Op::Read,
            block: 0,
            offset: 0,
            bytes: 4096,
        }
    }

    #[test]
    fn what_was_taken_back_while_it_was_kept_is_left_out() {
        let nexus = NexusConfig { window: Some(2), ..NexusConfig::default() };
        let config =
            InitiatorConfig { links: Vec::new(), nexuses: vec![nexus], of_path: vec![Some(0)] };
        let mut nexuses = Nexuses::new(&config, 1, 1).unwrap();
        let goes: Vec<_> = (0..5).map(|slot| nexuses.send(Time(0), sent(slot)).is_some()).collect();
        assert_eq!(goes, [true, true, false, false, false]);
        // The host has taken the first and two that are kept back; the array answers the first all the same.
        let is_wanted = |io: IoId| ![0, 2, 3].contains(&io.slot());
        let next = nexuses.answered(Time(7), IoId::new(0, 0), is_wanted).unwrap();
        assert_eq!(next.io.slot(), 4);
        assert!(nexuses.send(Time(7), next).is_some());
        assert_eq!(nexuses.answered(Time(7), IoId::new(0, 0), is_wanted).map(|_| ()), None);
        assert!(nexuses.send(Time(8), sent(5)).is_none());
        let waited = |commands, wait_ns| [PolicyWait { commands, wait_ns }];
        assert_eq!(nexuses.waits(), [&waited(3, 7), &waited(3, 0), &waited(3, 0)]);
    }

    #[test]
    fn a_host_of_which_nothing_is_said_has_none() {
        assert!(Nexuses::new(&InitiatorConfig::default(), 1, 1).is_none());
    }
}
