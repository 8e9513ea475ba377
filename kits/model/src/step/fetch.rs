//! Fetches: from the request to the activity that begins and ends.

use std::time::Duration;

use super::Transition;
use crate::local_session::{SessionEffect, SessionEvent};
use crate::process::{Activity, FetchMessage, FetchStage};
use crate::store::{Service, Work};
use crate::world::SHARED;
use crate::{Invariant, Mutation, Occurrence};

impl Transition<'_> {
    pub(super) fn send_fetch(&mut self, process: usize) {
        let own = &mut self.world.processes[process];
        let (incarnation, stage) = (own.incarnation, FetchStage::Asked(own.scope(self.rules)));
        own.fetch.get_or_insert(FetchMessage { incarnation, age: 0, stage });
    }

    /// Leases the work of a session to a fetch, and the session with it.
    pub(super) fn give(&mut self, process: usize, session: usize) {
        self.send_fetch(process);
        let own = &self.world.processes[process];
        let Some(fetch @ FetchMessage { stage: FetchStage::Asked(scope), incarnation, .. }) = own.fetch
        else {
            return;
        };
        let is_awaited = own.incarnation == incarnation;
        let before = self.world.store.sessions[session];
        self.check_gift(process, session, fetch);
        let service = self.world.store.service(process, incarnation, scope, session, self.rules);
        let epoch = self.world.store.claim(process, incarnation, session, self.rules);
        if service == Service::Claimable {
            self.world.expect(epoch > before.given, Invariant::A2);
            self.world.expect(epoch > before.closed, Invariant::A9);
            let was_cleaned_up = session == SHARED && before.row.is_none() && before.given > 0;
            self.coverage.note_if(was_cleaned_up, Occurrence::ClaimedAfterCleanUp);
            self.coverage.note_if(before.closed > 0, Occurrence::ClaimedAfterReopening);
            self.coverage
                .note_if(before.row.is_some_and(|row| row.lease > 0), Occurrence::TakenFromPredecessor);
        }
        self.coverage.note_if(!scope.may_claim, Occurrence::FullProcessServed);
        let own = &mut self.world.processes[process];
        // The answer to a process that has ended is lost.
        let stage = FetchStage::Given { session, epoch, has_lease: true };
        own.fetch = is_awaited.then_some(FetchMessage { stage, ..fetch });
    }

    /// Checks that the process may be given work of the session at all, whatever the store decided.
    fn check_gift(&mut self, process: usize, session: usize, fetch: FetchMessage) {
        let stored = self.world.store.sessions[session];
        let is_taken = stored.row.is_some_and(|row| {
            let is_own = row.is_held_by(process, fetch.incarnation);
            row.lease > 0 && !is_own && !row.is_held_by_predecessor(process, fetch.incarnation)
        });
        self.world.expect(!is_taken, Invariant::A5);
        self.world.expect(stored.is_open || session == SHARED, Invariant::A9);
        let is_kept = self.world.store.is_kept_from(process, fetch.incarnation, session);
        self.world.expect(!is_kept, Invariant::A9);
        let is_old = self.world.store.refuses(process, fetch.incarnation);
        self.world.expect(!is_old, Invariant::A13);
    }

    pub(super) fn refuse_fetch(&mut self, process: usize) {
        self.coverage.note(Occurrence::OldStartRefused);
        self.send_fetch(process);
        let own = &mut self.world.processes[process];
        let is_awaited = own.fetch.is_some_and(|fetch| fetch.incarnation == own.incarnation);
        own.fetch = own
            .fetch
            .filter(|_| is_awaited)
            .map(|fetch| FetchMessage { stage: FetchStage::Replaced, ..fetch });
    }

    pub(super) fn receive_fetch(&mut self, process: usize) {
        let Some(fetch) = self.world.processes[process].fetch.take() else { return };
        match fetch.stage {
            FetchStage::Asked(_) => {}
            FetchStage::Replaced => self.replaced(process),
            FetchStage::Given { session, epoch, has_lease } => {
                let activity = Activity { epoch, is_running: false, has_lease };
                if !self.enter(process, session, activity, fetch.age) && has_lease {
                    self.world.store.sessions[session].work = Work::Waiting;
                }
            }
        }
    }

    /// Enters leased work and its session into the table of the process. Returns whether it is served there.
    fn enter(&mut self, process: usize, session: usize, activity: Activity, age: u8) -> bool {
        let counts_from_receipt = self.rules.has(Mutation::ProofFromReceipt);
        let proof = if counts_from_receipt { self.rules.proof } else { self.rules.proof.saturating_sub(age) };
        if proof == 0 {
            self.coverage.note(Occurrence::LateAnswerRefused);
            return false;
        }
        let serving = self.world.processes[process].in_flight();
        let others = serving.into_iter().enumerate().filter(|(other, serves)| *serves && *other != session);
        if others.count() >= self.rules.limit && !serving[session] && !self.rules.has(Mutation::NoLimit) {
            return false;
        }
        let epoch = activity.epoch;
        let local = &mut self.world.processes[process].sessions[session];
        let released = local.released;
        let is_remembered = (released.ticks > 0 || self.rules.releases_again)
            && !self.rules.has(Mutation::ReleasedIsForgotten);
        if is_remembered && released.epoch >= epoch {
            self.coverage.note(Occurrence::ReleasedEpochRefused);
            return false;
        }
        let older = local.belief;
        let proven_until = Duration::from_secs(u64::from(proof));
        // Why an older claim ended is no part of the model.
        let is_reopened = false;
        let claim = SessionEvent::Claim { epoch: u64::from(epoch), proven_until, is_reopened };
        let effects = local.belief.on(claim);
        if !effects.contains(&SessionEffect::Serve) {
            return false;
        }
        local.activity = Some(activity);
        let begins = !older.is_held() || older.epoch != epoch;
        if begins && released.epoch >= epoch {
            // An attachment that begins has an epoch of its own (G10).
            self.world.expect(released.ticks == 0, Invariant::A2);
            self.world.expect(!self.rules.is_strict, Invariant::D23);
        }
        if older.is_held() && older.epoch < epoch {
            self.coverage.note(Occurrence::OlderClaimReplaced);
            self.remember(process, session, older.epoch);
        }
        true
    }

    /// Lets an activity begin, if the process can prove that it still holds the session; else abandons it.
    pub(super) fn begin(&mut self, process: usize, session: usize) {
        let local = &mut self.world.processes[process].sessions[session];
        let Some(activity) = &mut local.activity else { return };
        let (epoch, has_lease) = (activity.epoch, activity.has_lease);
        let is_current = local.belief.is_tracked() && local.belief.epoch == epoch;
        if is_current {
            local.belief.on(SessionEvent::Begin);
        }
        let is_proven = local.belief.may_serve() || self.rules.has(Mutation::StartWithoutProof);
        if is_current && is_proven {
            activity.is_running = true;
            self.check_beginning(process, session, epoch);
            return;
        }
        self.coverage.note(Occurrence::UnprovenActivityAbandoned);
        local.activity = None;
        if has_lease {
            self.world.store.sessions[session].work = Work::Waiting;
        }
    }

    /// Checks what must hold when an activity begins, by what the store knows.
    fn check_beginning(&mut self, process: usize, session: usize, epoch: u8) {
        let stored = self.world.store.sessions[session];
        let others = self.world.processes.iter().enumerate().filter(|(other, _)| *other != process);
        let mut beliefs = others.map(|(_, other)| other.sessions[session].belief);
        let is_shared = beliefs.any(|belief| belief.is_held() && belief.epoch == epoch);
        // Two causes end an attachment that its process learns of later: a newer process of its node, and a
        // close.
        let is_excused = self.world.is_superseded(process) || epoch <= stored.closed;
        let row = stored.row.filter(|row| row.lease > 0);
        let is_outdated = row.is_some_and(|row| row.epoch > epoch);
        self.world.expect(!is_shared && (!is_outdated || is_excused), Invariant::A1);
        let own = self.world.processes[process];
        let is_proven = own.sessions[session].belief.proof > 0;
        self.world.expect(!own.is_fenced, Invariant::A13);
        self.world.expect(is_proven && (row.is_some() || is_excused), Invariant::A4);
    }

    /// Ends an activity. The store takes its result if the lease of the work is still this one.
    pub(super) fn finish(&mut self, process: usize, session: usize) {
        let Some(activity) = self.world.processes[process].sessions[session].activity.take() else { return };
        if activity.has_lease {
            self.world.store.sessions[session].work = Work::Nothing;
        } else {
            self.coverage.note(Occurrence::LateResultRefused);
        }
    }
}
