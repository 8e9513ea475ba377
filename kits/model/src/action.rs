//! The steps that a state allows.

use crate::process::{FetchStage, Local, Process, RenewalStage};
use crate::store::{FetchScope, Service, Work, node_of};
use crate::world::{OWNED, SHARED, World};
use crate::{Mutation, Rules};

/// One step of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelAction {
    /// A tick of time passes, for the store and for every process. Processes that are not paused detach what
    /// they cannot prove any more.
    Tick,
    /// An orchestration schedules an activity on a session.
    Schedule(usize),
    /// An orchestration closes its session.
    Close,
    /// An orchestration opens its session, for the first time or again.
    Open,
    /// A worker lets the store clean up.
    CleanUp,
    /// The lease of an activity expires.
    WorkExpires(usize),
    /// A process ends and starts again under its node id.
    Restart(usize),
    /// A process registers its node.
    Register(usize),
    /// The store registers the node of a process, and the answer is lost.
    RegisterUnanswered(usize),
    /// A process stops.
    Pause(usize),
    /// A paused process goes on.
    Resume(usize),
    /// A process detaches the sessions that it cannot prove any more.
    Expire(usize),
    /// A process sends a fetch.
    SendFetch(usize),
    /// The store gives the work of a session to a waiting fetch.
    Give(usize, usize),
    /// The store refuses a fetch of an older start of its node.
    RefuseFetch(usize),
    /// A process receives the answer to its fetch.
    ReceiveFetch(usize),
    /// A fetch, or the answer to it, is lost.
    LoseFetch(usize),
    /// The activity that a fetch brought begins, if it may.
    Begin(usize, usize),
    /// An activity ends, and its process hands in the result.
    Finish(usize, usize),
    /// A process sends a renewal of all its sessions.
    SendRenewal(usize),
    /// The store renews. With `true`, the time of idle sessions and of untaken work is up.
    Renew(usize, bool),
    /// A process receives the answer to its renewal.
    ReceiveRenewal(usize),
    /// A renewal, or the answer to it, is lost.
    LoseRenewal(usize),
    /// A process detaches a session that it does not use, and sends the release.
    SendRelease(usize, usize),
    /// The store releases.
    Release(usize, usize),
    /// A process receives the answer to its release.
    ReceiveRelease(usize, usize),
    /// A process waits for the answer to its release no longer. The release may still reach the store.
    GiveUpRelease(usize, usize),
    /// A release that no process waits for is lost.
    LoseRelease(usize, usize),
}

impl World {
    /// Lists the steps that this state allows.
    pub(crate) fn actions(&self, rules: Rules, actions: &mut Vec<ModelAction>) {
        // A counterexample ends where it breaks the property.
        if !self.broken.is_empty() {
            return;
        }
        actions.push(ModelAction::Tick);
        if self.store.may_clean_up(rules) {
            actions.push(ModelAction::CleanUp);
        }
        if rules.sessions > OWNED {
            let is_open = self.store.sessions[OWNED].is_open;
            actions.push(if is_open { ModelAction::Close } else { ModelAction::Open });
        }
        for session in 0..rules.sessions {
            let stored = &self.store.sessions[session];
            if stored.work == Work::Nothing && (stored.is_open || session == SHARED) {
                actions.push(ModelAction::Schedule(session));
            }
            if stored.work == Work::Leased && self.work_may_expire(session) {
                actions.push(ModelAction::WorkExpires(session));
            }
        }
        for process in 0..rules.processes {
            self.life(process, rules, actions);
            self.fetches(process, rules, actions);
            self.renewals(process, rules, actions);
            self.releases(process, rules, actions);
        }
    }

    /// Tells whether the lease of a session's work is not renewed: its process is paused or has ended, or the
    /// answer that brings it is on its way.
    fn work_may_expire(&self, session: usize) -> bool {
        let has_lease = |process: &Process| {
            let is_new = process.fetch.is_some_and(|fetch| fetch.age == 0 && fetch.stage.leases(session));
            let activity = process.sessions[session].activity;
            is_new || activity.is_some_and(|activity| activity.has_lease)
        };
        !self.processes.iter().any(|process| !process.is_paused && has_lease(process))
    }

    fn life(&self, process: usize, rules: Rules, actions: &mut Vec<ModelAction>) {
        let own = &self.processes[process];
        actions.push(ModelAction::Restart(process));
        if own.is_paused {
            return actions.push(ModelAction::Resume(process));
        }
        if self.processes.iter().filter(|process| process.is_paused).count() < rules.paused {
            actions.push(ModelAction::Pause(process));
        }
        if own.incarnation.is_none() {
            actions.push(ModelAction::Register(process));
            actions.push(ModelAction::RegisterUnanswered(process));
        }
        if own.sessions.iter().any(|local| local.belief.is_held() && local.belief.proof == 0) {
            actions.push(ModelAction::Expire(process));
        }
    }

    fn fetches(&self, process: usize, rules: Rules, actions: &mut Vec<ModelAction>) {
        let own = &self.processes[process];
        match own.fetch.map(|fetch| (fetch.stage, fetch.incarnation)) {
            None if !self.may_send(process, rules) => {}
            None if rules.late_requests => actions.push(ModelAction::SendFetch(process)),
            None => self.gifts(process, own.incarnation, own.scope(rules), rules, actions),
            Some((FetchStage::Asked(scope), incarnation)) => {
                actions.push(ModelAction::LoseFetch(process));
                self.gifts(process, incarnation, scope, rules, actions);
            }
            Some((FetchStage::Given { .. } | FetchStage::Replaced, _)) => {
                actions.push(ModelAction::LoseFetch(process));
                if !own.is_paused {
                    actions.push(ModelAction::ReceiveFetch(process));
                }
            }
        }
        for (session, local) in own.sessions.iter().enumerate().filter(|_| !own.is_paused) {
            match local.activity.map(|activity| activity.is_running) {
                Some(false) => actions.push(ModelAction::Begin(process, session)),
                Some(true) => actions.push(ModelAction::Finish(process, session)),
                None => {}
            }
        }
    }

    /// Lists what the store may do with a fetch.
    fn gifts(
        &self,
        process: usize,
        incarnation: Option<u8>,
        scope: FetchScope,
        rules: Rules,
        actions: &mut Vec<ModelAction>,
    ) {
        if self.store.refuses(process, incarnation) && !rules.has(Mutation::OldStartIsServed) {
            return actions.push(ModelAction::RefuseFetch(process));
        }
        let may_give = |session: &usize| {
            self.store.sessions[*session].work == Work::Waiting
                && self.store.service(process, incarnation, scope, *session, rules) != Service::Refused
        };
        let given = (0..rules.sessions).filter(may_give);
        actions.extend(given.map(|session| ModelAction::Give(process, session)));
    }

    /// Tells whether a process may send a fetch or a renewal: it takes session work, and its messages are
    /// not too many for the model.
    fn may_send(&self, process: usize, rules: Rules) -> bool {
        let own = &self.processes[process];
        let is_registered = own.incarnation.is_some() || rules.has(Mutation::UnregisteredTakesSessions);
        is_registered && !own.is_paused && !own.is_fenced && self.messages() < rules.messages
    }

    fn renewals(&self, process: usize, rules: Rules, actions: &mut Vec<ModelAction>) {
        let own = &self.processes[process];
        match own.renewal.map(|renewal| renewal.stage) {
            None if !self.may_send(process, rules) => {}
            None if rules.late_requests => actions.push(ModelAction::SendRenewal(process)),
            None => actions.extend([ModelAction::Renew(process, false), ModelAction::Renew(process, true)]),
            Some(RenewalStage::Asked(_)) => {
                let choices = [ModelAction::Renew(process, false), ModelAction::Renew(process, true)];
                actions.extend(choices);
                actions.push(ModelAction::LoseRenewal(process));
            }
            Some(RenewalStage::Answered { .. } | RenewalStage::Replaced) => {
                actions.push(ModelAction::LoseRenewal(process));
                if !own.is_paused {
                    actions.push(ModelAction::ReceiveRenewal(process));
                }
            }
        }
    }

    fn releases(&self, process: usize, rules: Rules, actions: &mut Vec<ModelAction>) {
        let own = &self.processes[process];
        for session in 0..rules.sessions {
            let local = &own.sessions[session];
            let is_unused = local.belief.is_held() && local.activity.is_none();
            if is_unused && !own.is_paused {
                actions.push(ModelAction::SendRelease(process, session));
            }
            let Some(release) = local.release else { continue };
            if !release.is_answered {
                actions.push(ModelAction::Release(process, session));
            } else if !own.is_paused {
                actions.push(ModelAction::ReceiveRelease(process, session));
            }
            if !release.is_awaited {
                actions.push(ModelAction::LoseRelease(process, session));
            } else if !own.is_paused {
                actions.push(ModelAction::GiveUpRelease(process, session));
            }
        }
    }
}

impl World {
    /// Counts the faults that a step adds to its run.
    pub(crate) fn faults_of(&self, action: ModelAction) -> u8 {
        match action {
            ModelAction::Pause(_)
            | ModelAction::Restart(_)
            | ModelAction::RegisterUnanswered(_)
            | ModelAction::LoseFetch(_)
            | ModelAction::LoseRenewal(_)
            | ModelAction::GiveUpRelease(..) => 1,
            ModelAction::Tick => self.delays(),
            ModelAction::Register(process) => u8::from(self.has_twin(process)),
            _ => 0,
        }
    }

    /// Tells whether another process is registered under the node of this one.
    fn has_twin(&self, process: usize) -> bool {
        let is_twin = |other: usize| other != process && node_of(other) == node_of(process);
        let mut others = self.processes.iter().enumerate().filter(|(other, _)| is_twin(*other));
        others.any(|(other, own)| own.incarnation.is_some() && !self.is_superseded(other))
    }

    /// Counts what a tick makes late: messages of processes that are not paused, and renewals that such a
    /// process owes.
    fn delays(&self) -> u8 {
        let running = self.processes.iter().filter(|process| !process.is_paused);
        let delays = |process: &Process| {
            let owes = |local: &Local| local.belief.is_held() && local.belief.proof == 1;
            process.messages() + usize::from(process.sessions.iter().any(owes))
        };
        running.map(delays).sum::<usize>() as u8
    }
}
