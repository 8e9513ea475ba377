//! Detaching a session, and its release at the store.

use super::Transition;
use crate::local_session::{DetachCause, SessionEvent};
use crate::process::ReleaseMessage;
use crate::{Invariant, Mutation, Occurrence};

impl Transition<'_> {
    /// Detaches one claim, if the process holds it, and asks the store for its release, if the cause does so.
    pub(super) fn detach(&mut self, process: usize, session: usize, epoch: u8, cause: DetachCause) {
        let local = &mut self.world.processes[process].sessions[session];
        if !local.belief.is_tracked() || local.belief.epoch != epoch {
            return;
        }
        let is_running = local.activity.is_some_and(|activity| activity.epoch == epoch);
        let busy = local.activity.is_some() && !self.rules.has(Mutation::IdleWhileRunning);
        if local.belief.on(SessionEvent::Detach { cause, busy }).is_empty() {
            let is_spared = busy && cause == DetachCause::Idle;
            return self.coverage.note_if(is_spared, Occurrence::BusySessionSpared);
        }
        self.world.expect(!is_running || cause != DetachCause::Idle, Invariant::A11);
        if cause.releases(true) {
            self.ask_for_release(process, session, epoch);
        } else {
            self.detached(process, session, epoch);
        }
    }

    pub(super) fn ask_for_release(&mut self, process: usize, session: usize, epoch: u8) {
        let own = &mut self.world.processes[process];
        let incarnation = own.incarnation;
        own.sessions[session].release =
            Some(ReleaseMessage { incarnation, epoch, is_awaited: true, is_answered: false });
    }

    pub(super) fn send_release(&mut self, process: usize, session: usize) {
        let epoch = self.world.processes[process].sessions[session].belief.epoch;
        self.detach(process, session, epoch, DetachCause::OverTheLimit);
    }

    pub(super) fn release(&mut self, process: usize, session: usize) {
        let own = &self.world.processes[process];
        let Some(release) = own.sessions[session].release else { return };
        let is_awaited = release.is_awaited && own.incarnation == release.incarnation;
        let stored = self.world.store.sessions[session];
        let current = stored.row.map(|row| row.epoch);
        let is_former = stored.former.is_some_and(|former| former.epoch == release.epoch);
        let is_old = self.world.store.refuses(process, release.incarnation);
        if !is_old || self.rules.has(Mutation::OldStartIsServed) {
            let store = &mut self.world.store;
            let has_released =
                store.release(process, release.incarnation, session, release.epoch, self.rules);
            self.world.expect(!has_released || is_former || current == Some(release.epoch), Invariant::A3);
            self.coverage.note_if(has_released && is_former, Occurrence::FormerOwnerDetached);
            self.world.expect(!has_released || !is_old, Invariant::A13);
            let is_outdated = current.is_some_and(|current| current > release.epoch);
            self.coverage.note_if(!has_released && is_outdated, Occurrence::LateReleaseIgnored);
        }
        let own = &mut self.world.processes[process];
        let is_paused = own.is_paused;
        own.sessions[session].release = is_awaited.then_some(ReleaseMessage { is_answered: true, ..release });
        if is_awaited && !is_paused {
            self.receive_release(process, session);
        }
    }

    pub(super) fn receive_release(&mut self, process: usize, session: usize) {
        let Some(release) = self.world.processes[process].sessions[session].release.take() else { return };
        self.detached(process, session, release.epoch);
    }

    /// Ends the wait for the store. The lease may live on, so fetches exclude the session for its length.
    pub(super) fn give_up_release(&mut self, process: usize, session: usize) {
        let local = &mut self.world.processes[process].sessions[session];
        let Some(release) = local.release else { return };
        local.is_excluded = true;
        let remains = ReleaseMessage { is_awaited: false, ..release };
        local.release = (!release.is_answered).then_some(remains);
        self.detached(process, session, release.epoch);
    }

    /// Forgets a session whose detach procedure has ended, and remembers the epoch.
    fn detached(&mut self, process: usize, session: usize, epoch: u8) {
        let belief = &mut self.world.processes[process].sessions[session].belief;
        if belief.epoch == epoch {
            belief.on(SessionEvent::Detached);
            belief.on(SessionEvent::Settle);
        }
        self.remember(process, session, epoch);
    }
}
