//! A state of the model: the store, the processes, and the messages between them.
//!
//! No time is absolute: a lease, a proof, a memory have ticks left, and a message has an age. No number is
//! absolute either: epochs of a session, and starts of a node, are ranks among those that occur somewhere in
//! the state. So runs without end lead through finitely many states.

use crate::process::{Local, Process, ReleasedEpoch, RenewalStage};
use crate::store::{RenewalFate, SessionRow, StoreSide, Work, node_of, registers_at_once};
use crate::{Invariant, Rules};

/// The processes of a state. A model may use fewer.
pub(crate) const PROCESSES: usize = 3;

/// The sessions of a state: the first is shared, the second belongs to an instance. A model may use fewer.
pub(crate) const SESSIONS: usize = 2;

/// The shared session, which clean-up may remove.
pub(crate) const SHARED: usize = 0;

/// The session of an instance, which is opened and closed.
pub(crate) const OWNED: usize = 1;

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub(crate) store: StoreSide,
    pub(crate) processes: [Process; PROCESSES],
    pub(crate) broken: BrokenSet,
    /// The faults of the run so far.
    pub(crate) faults: u8,
}

/// The invariants that a step has broken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct BrokenSet(u16);

impl BrokenSet {
    pub(crate) fn insert(&mut self, invariant: Invariant) {
        self.0 |= 1 << invariant as u16;
    }

    pub(crate) fn contains(self, invariant: Invariant) -> bool {
        self.0 & 1 << invariant as u16 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl World {
    pub(crate) fn new(rules: Rules) -> Self {
        let mut world = Self {
            store: StoreSide::default(),
            processes: [Process::default(); PROCESSES],
            broken: BrokenSet::default(),
            faults: 0,
        };
        // Every session had an owner before, and the shared one was not cleaned up since.
        world.store.sessions[SHARED].row = Some(SessionRow::default());
        for stored in &mut world.store.sessions {
            stored.given = 1;
        }
        for process in (0..rules.processes).filter(|process| registers_at_once(*process)) {
            world.register(process);
        }
        world
    }

    /// Registers a start of the process's node, and tells the process.
    pub(crate) fn register(&mut self, process: usize) {
        let newest = &mut self.store.newest[node_of(process)];
        *newest += 1;
        self.processes[process].incarnation = Some(*newest);
    }

    /// Notes that the invariant is broken, unless `holds`.
    pub(crate) fn expect(&mut self, holds: bool, invariant: Invariant) {
        if !holds {
            self.broken.insert(invariant);
        }
    }

    /// Tells whether a newer start of the process's node is registered.
    pub(crate) fn is_superseded(&self, process: usize) -> bool {
        self.store.refuses(process, self.processes[process].incarnation)
    }

    /// Counts the messages on their way.
    pub(crate) fn messages(&self) -> usize {
        self.processes.iter().map(Process::messages).sum()
    }

    /// Returns the one state that stands for all that differ only in names and numbers.
    pub(crate) fn normalised(mut self, rules: Rules) -> Self {
        for session in 0..SESSIONS {
            self.forget_unused(session);
            self.rank_epochs(session);
        }
        for node in 0..self.store.newest.len() {
            self.rank_starts(node);
        }
        // The first two processes have one node and are interchangeable.
        if rules.processes > 1 {
            self.processes[..2].sort_unstable();
        }
        self
    }

    /// Counts what is under way at the same time.
    pub(crate) fn under_way(&self) -> usize {
        let locals = self.processes.iter().flat_map(|process| &process.sessions);
        let weight =
            |local: &Local| usize::from(local.belief.is_tracked()) + usize::from(local.activity.is_some());
        let paused = self.processes.iter().filter(|process| process.is_paused).count();
        locals.map(weight).sum::<usize>() + self.messages() + paused
    }

    /// Abandons activities that have not begun and cannot begin any more, because the attachment ended.
    pub(crate) fn abandon_ended(&mut self, session: usize) {
        for process in &mut self.processes {
            let local = &mut process.sessions[session];
            let Some(activity) = &mut local.activity else { continue };
            if local.belief.is_held() && local.belief.epoch == activity.epoch {
                continue;
            }
            activity.epoch = 0;
            // The runtime cancels an activity that has lost its lease.
            if !activity.is_running || !activity.has_lease {
                if activity.has_lease {
                    self.store.sessions[session].work = Work::Waiting;
                }
                local.activity = None;
            }
        }
    }

    /// Forgets what no step can tell apart any more.
    fn forget_unused(&mut self, session: usize) {
        let stored = &mut self.store.sessions[session];
        if let Some(row) = &mut stored.row
            && row.lease == 0
        {
            // A row without a live lease decides nothing; each step checks that before.
            (row.holder, row.epoch) = (None, 0);
        }
        let row = stored.row;
        for (index, process) in self.processes.iter_mut().enumerate() {
            let answer = process.answer(session);
            let leased = row.filter(|row| row.is_held_by(index, process.incarnation)).map(|row| row.epoch);
            let local = &mut process.sessions[session];
            // A released epoch comes again in an answer that is on its way, or if its lease lives on.
            let comes_again = |epoch: Option<u8>| epoch.is_some_and(|epoch| epoch <= local.released.epoch);
            if !comes_again(leased) && !comes_again(answer) {
                (local.released, local.is_excluded) = (ReleasedEpoch::default(), false);
            }
            let belief = local.belief;
            let released = local.released.epoch;
            let is_known = |epoch: u8| {
                let is_held = belief.is_tracked() && belief.epoch == epoch;
                is_held || answer == Some(epoch) || epoch > 0 && released == epoch
            };
            if let Some(RenewalStage::Answered { fates, lost }) =
                process.renewal.as_mut().map(|renewal| &mut renewal.stage)
            {
                if !is_known(fates[session].epoch()) {
                    fates[session] = RenewalFate::Absent;
                }
                if !is_known(lost[session]) {
                    lost[session] = 0;
                }
            }
        }
    }

    /// Gives the epochs of a session the numbers 1, 2, 3 … in their order.
    fn rank_epochs(&mut self, session: usize) {
        let mut used = 0_u64;
        self.each_epoch(session, |epoch| used |= 1 << *epoch);
        let stored = &mut self.store.sessions[session];
        let at_most = |epoch: u8| used & ((2 << epoch) - 1) & !1;
        let highest = |epochs: u64| if epochs == 0 { 0 } else { 63 - epochs.leading_zeros() as u8 };
        // The last epoch that was given stays above all others, and that of the last close where it is
        // among them.
        stored.given = highest(at_most(stored.given)).max(stored.given.min(1));
        stored.closed = highest(at_most(stored.closed));
        used |= 1 << stored.given;
        let rank = |epoch: u8| {
            if epoch == 0 { 0 } else { (used & ((1 << epoch) - 1) & !1).count_ones() as u8 + 1 }
        };
        stored.given = rank(stored.given);
        stored.closed = rank(stored.closed);
        self.each_epoch(session, |epoch| *epoch = rank(*epoch));
    }

    /// Visits the epochs of a session wherever a step may look at one.
    fn each_epoch(&mut self, session: usize, mut look: impl FnMut(&mut u8)) {
        let stored = &mut self.store.sessions[session];
        for row in stored.row.iter_mut().chain(&mut stored.former) {
            look(&mut row.epoch);
        }
        for process in &mut self.processes {
            process.each_epoch(session, &mut look);
        }
    }

    /// Numbers the newest start of a node 2, and all older ones 1: calls by any of these are refused alike.
    fn rank_starts(&mut self, node: usize) {
        let newest = self.store.newest[node];
        let rank = |start: u8| if start == newest { 2 } else { 1 };
        if newest > 0 {
            self.store.newest[node] = 2;
            self.each_start(node, |start| *start = rank(*start));
        }
    }

    fn each_start(&mut self, node: usize, mut look: impl FnMut(&mut u8)) {
        for stored in &mut self.store.sessions {
            let rows = stored.row.iter_mut().chain(&mut stored.former);
            let holders = rows.filter_map(|row| row.holder.as_mut()).filter(|holder| holder.node == node);
            holders.filter_map(|holder| holder.incarnation.as_mut()).for_each(&mut look);
        }
        for (index, process) in self.processes.iter_mut().enumerate() {
            if node_of(index) == node {
                process.each_start(&mut look);
            }
        }
    }
}
