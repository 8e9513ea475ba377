//! Time, orchestrations, clean-up, and the lives of processes.

use std::time::Duration;

use super::Transition;
use crate::local_session::SessionEvent;
use crate::process::{FetchStage, RenewalStage};
use crate::store::{
    FetchScope, RenewalFate, RenewalRequest, Service, StoreSide, Work, node_of, registers_at_once,
};
use crate::world::{OWNED, PROCESSES, SESSIONS, SHARED};
use crate::{Invariant, Occurrence};

impl Transition<'_> {
    pub(super) fn tick(&mut self) {
        let longest = self.rules.proof;
        for stored in &mut self.world.store.sessions {
            for row in stored.row.iter_mut().chain(&mut stored.former) {
                row.lease = row.lease.saturating_sub(1);
            }
            stored.former = stored.former.filter(|former| former.lease > 0);
        }
        for process in &mut self.world.processes {
            for local in &mut process.sessions {
                local.belief.proof = local.belief.proof.saturating_sub(1);
                local.released.ticks = local.released.ticks.saturating_sub(1);
                local.is_excluded &= local.released.ticks > 0;
            }
            if let Some(fetch) = &mut process.fetch {
                fetch.age = longest.min(fetch.age + 1);
            }
            if let Some(renewal) = &mut process.renewal {
                renewal.age = longest.min(renewal.age + 1);
            }
        }
        for process in 0..PROCESSES {
            if !self.world.processes[process].is_paused {
                self.expire(process);
            }
        }
    }

    pub(super) fn schedule(&mut self, session: usize) {
        self.world.store.sessions[session].work = Work::Waiting;
    }

    pub(super) fn close(&mut self) {
        let was_leased = self.world.store.sessions[OWNED].work == Work::Leased;
        self.world.store.close(self.rules);
        if was_leased {
            self.end_work_lease(OWNED);
        }
    }

    pub(super) fn work_expires(&mut self, session: usize) {
        self.world.store.sessions[session].work = Work::Waiting;
        self.end_work_lease(session);
    }

    /// Ends the lease of a session's work, which one activity or one answer may have.
    fn end_work_lease(&mut self, session: usize) {
        for process in &mut self.world.processes {
            if let Some(activity) = &mut process.sessions[session].activity {
                activity.has_lease = false;
            }
            if let Some(FetchStage::Given { session: given, has_lease, .. }) =
                process.fetch.as_mut().map(|fetch| &mut fetch.stage)
                && *given == session
            {
                *has_lease = false;
            }
        }
    }

    pub(super) fn clean_up(&mut self) {
        self.coverage.note(Occurrence::CleanedUp);
        let before = self.answers();
        self.world.store.clean_up();
        self.world.expect(before == self.answers(), Invariant::A14);
    }

    /// Checks that a row without a live lease decides nothing: the store answers as if it were cleaned up
    /// (A14).
    pub(super) fn check_rows(&mut self) {
        let Some(row) = self.world.store.sessions[SHARED].row else { return };
        if row.lease > 0 || row.holder.is_none() {
            return;
        }
        let before = self.answers();
        self.world.store.clean_up();
        let after = self.answers();
        self.world.store.sessions[SHARED].row = Some(row);
        self.world.expect(before == after, Invariant::A14);
    }

    /// Lists what the store would answer to each process about the shared session.
    fn answers(&self) -> Vec<(Service, Service, RenewalFate, bool)> {
        let may_claim = FetchScope { may_claim: true, only: [true; SESSIONS], leave_out: [false; SESSIONS] };
        let held_only = FetchScope { may_claim: false, ..may_claim };
        let answer = |process: usize, incarnation: Option<u8>| {
            let store = &self.world.store;
            let serve = |scope| store.service(process, incarnation, scope, SHARED, self.rules);
            let request = RenewalRequest { incarnation, held: [0; SESSIONS], is_full: false };
            let (fates, _) =
                StoreSide::clone(store).renew(process, request, false, [false; SESSIONS], self.rules);
            let releases = (1..=store.sessions[SHARED].given).any(|epoch| {
                StoreSide::clone(store).release(process, incarnation, SHARED, epoch, self.rules)
            });
            (serve(may_claim), serve(held_only), fates[SHARED], releases)
        };
        let processes = self.world.processes.iter().enumerate();
        processes.map(|(process, own)| answer(process, own.incarnation)).collect()
    }

    /// Ends a process, and starts one under the same node id. Requests that it sent may still reach the
    /// store.
    pub(super) fn restart(&mut self, process: usize) {
        self.world.processes[process] = self.world.processes[process].restarted();
        if registers_at_once(process) {
            self.world.register(process);
        }
    }

    /// Registers a start of the process's node. The process does not learn of it.
    pub(super) fn register_unanswered(&mut self, process: usize) {
        self.world.store.newest[node_of(process)] += 1;
    }

    /// Detaches the sessions whose lease the process cannot prove any more. A renewal whose answer it waits
    /// for is given up with the first of them.
    pub(super) fn expire(&mut self, process: usize) {
        let mut has_expired = false;
        for session in 0..SESSIONS {
            let local = &mut self.world.processes[process].sessions[session];
            let epoch = local.belief.epoch;
            if !local.belief.on(SessionEvent::Tick { now: Duration::ZERO }).is_empty() {
                has_expired = true;
                self.remember(process, session, epoch);
            }
        }
        if !has_expired {
            return;
        }
        let own = &mut self.world.processes[process];
        if let Some(renewal) = &mut own.renewal {
            renewal.is_awaited = false;
            if !matches!(renewal.stage, RenewalStage::Asked(_)) {
                own.renewal = None;
            }
        }
    }

    /// Remembers for the length of a lease that this epoch was released.
    pub(super) fn remember(&mut self, process: usize, session: usize, epoch: u8) {
        let released = &mut self.world.processes[process].sessions[session].released;
        released.epoch = released.epoch.max(epoch);
        released.ticks = self.rules.lease;
    }
}
