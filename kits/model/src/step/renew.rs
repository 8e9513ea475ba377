//! Renewals: what the store says about the sessions of a process, and what the process does then.

use std::time::Duration;

use super::Transition;
use crate::local_session::{DetachCause, SessionEffect, SessionEvent, SessionState};
use crate::process::{RenewalMessage, RenewalStage};
use crate::store::{RenewalFate, RenewalRequest, Work};
use crate::world::SESSIONS;
use crate::{Invariant, Mutation, Occurrence};

impl Transition<'_> {
    pub(super) fn send_renewal(&mut self, process: usize) {
        let own = &mut self.world.processes[process];
        let held = own.sessions.map(|local| if local.belief.is_held() { local.belief.epoch } else { 0 });
        let is_full = own.serving() >= self.rules.limit;
        let request = RenewalRequest { incarnation: own.incarnation, held, is_full };
        let stage = RenewalStage::Asked(request);
        own.renewal.get_or_insert(RenewalMessage { age: 0, is_awaited: true, stage });
    }

    pub(super) fn renew(&mut self, process: usize, is_late: bool) {
        self.send_renewal(process);
        let Some(renewal) = self.world.processes[process].renewal else { return };
        let RenewalStage::Asked(request) = renewal.stage else { return };
        let is_old = self.world.store.refuses(process, request.incarnation);
        let stage = if is_old && !self.rules.has(Mutation::OldStartIsServed) {
            self.coverage.note(Occurrence::OldStartRefused);
            RenewalStage::Replaced
        } else {
            let before = self.world.store.clone();
            // Work waits for longer than it takes to begin an activity before it counts as untaken.
            let own = &self.world.processes[process];
            let is_untaken =
                std::array::from_fn(|session| is_late && request.is_full && !own.begins(session));
            let (fates, lost) = self.world.store.renew(process, request, is_late, is_untaken, self.rules);
            self.world.expect(!is_old || before == self.world.store, Invariant::A13);
            self.check_fates(fates);
            RenewalStage::Answered { fates, lost }
        };
        let own = &mut self.world.processes[process];
        own.renewal = renewal.is_awaited.then_some(RenewalMessage { stage, ..renewal });
    }

    fn check_fates(&mut self, fates: [RenewalFate; SESSIONS]) {
        for (session, fate) in fates.into_iter().enumerate() {
            let is_running = self.world.store.sessions[session].work == Work::Leased;
            match fate {
                RenewalFate::Absent | RenewalFate::Renewed(_) => {}
                RenewalFate::Idle(_) => self.world.expect(!is_running, Invariant::A11),
                RenewalFate::Untaken(_) => {
                    self.coverage.note(Occurrence::UntakenReleased);
                    self.world.expect(!is_running, Invariant::A11);
                }
            }
        }
    }

    /// Does as the answer to a renewal says.
    pub(super) fn receive_renewal(&mut self, process: usize) {
        let Some(renewal) = self.world.processes[process].renewal.take() else { return };
        let RenewalStage::Answered { fates, lost } = renewal.stage else { return self.replaced(process) };
        let proof = self.rules.proof.saturating_sub(renewal.age);
        let proof = if self.rules.has(Mutation::ProofFromReceipt) { self.rules.proof } else { proof };
        for session in 0..SESSIONS {
            match fates[session] {
                RenewalFate::Absent => {}
                RenewalFate::Renewed(epoch) => self.renewed(process, session, epoch, proof),
                RenewalFate::Idle(epoch) => self.detach(process, session, epoch, DetachCause::Idle),
                RenewalFate::Untaken(epoch) => self.detach(process, session, epoch, DetachCause::Untaken),
            }
            self.settle_unproven(process, session);
            if lost[session] > 0 {
                // The process asks the store why its claim is gone.
                let is_closed = lost[session] <= self.world.store.sessions[session].closed;
                let cause = if is_closed { DetachCause::Closed } else { DetachCause::Lost };
                self.detach(process, session, lost[session], cause);
            }
        }
    }

    fn renewed(&mut self, process: usize, session: usize, epoch: u8, proof: u8) {
        let local = &mut self.world.processes[process].sessions[session];
        let belief = &mut local.belief;
        if !belief.is_tracked() || belief.epoch != epoch {
            let was_released = local.released.epoch >= epoch && local.release.is_none();
            if was_released && self.rules.releases_again {
                self.ask_for_release(process, session, epoch);
            }
            return;
        }
        let proven_until = Duration::from_secs(u64::from(proof));
        if belief.on(SessionEvent::Renew { proven_until }).contains(&SessionEffect::Release) {
            self.coverage.note(Occurrence::UnprovenReleased);
            self.ask_for_release(process, session, epoch);
        }
    }

    /// Forgets a session that is not proven, unless its release is on its way: fetches exclude it until then.
    fn settle_unproven(&mut self, process: usize, session: usize) {
        let local = &mut self.world.processes[process].sessions[session];
        let epoch = local.belief.epoch;
        let is_released = local.release.is_some_and(|release| release.is_awaited && release.epoch == epoch);
        if local.belief.state == SessionState::Unproven && !is_released {
            local.belief.on(SessionEvent::Settle);
        }
    }

    /// Takes no more work, and detaches every session as lost: a newer process has the name of the node.
    pub(super) fn replaced(&mut self, process: usize) {
        self.world.processes[process].is_fenced = true;
        if self.rules.has(Mutation::ReplacedGoesOn) {
            return;
        }
        // A fetch that waits is dropped, and its answer with it.
        self.world.processes[process].fetch = None;
        for session in 0..SESSIONS {
            let epoch = self.world.processes[process].sessions[session].belief.epoch;
            self.detach(process, session, epoch, DetachCause::Lost);
        }
    }
}
