//! Sessions that a turn opens and closes, or that the end of their instance closes: they are logged when the
//! turn is committed, and those that this process holds are detached at once (G24).

use std::collections::BTreeSet;
use std::sync::Arc;

use steadfast_core::replay::{CloseCause, SessionChange};
use steadfast_core::{AppErrorKind, ErrorDetails, SessionKey};
use steadfast_store::rules::SessionEffect;
use steadfast_store::{SessionRef, TurnCommit};

use super::detach;
use super::local_session::DetachCause;
use crate::dispatch::in_time;
use crate::runtime::RuntimeShared;

/// What a commit changes about the sessions of its instance.
pub(crate) struct SessionsOfTurn {
    instance: String,
    /// The sessions that the code closed.
    closed: BTreeSet<String>,
    /// How the instance ends, which closes all its sessions.
    end: Option<&'static str>,
    /// The claims of the instance's sessions that this process held before the commit.
    held: Vec<SessionRef>,
}

impl SessionsOfTurn {
    /// Looks at a commit before it is handed to the store. `None` if it changes no session.
    pub(crate) fn of(shared: &RuntimeShared, commit: &TurnCommit) -> Option<Self> {
        let instance = commit.events.first()?.instance_id.clone();
        let (mut is_any_opened, mut closed, mut end) = (false, BTreeSet::new(), None);
        for effect in SessionEffect::of(&commit.events) {
            match effect {
                SessionEffect::Open { .. } => is_any_opened = true,
                SessionEffect::Close { session_id } => {
                    closed.insert(session_id.to_owned());
                }
                SessionEffect::CloseAll => end = Some(end_of(commit)),
            }
        }
        if !is_any_opened && closed.is_empty() && end.is_none() {
            return None;
        }
        let held = shared.sessions.held_of(&instance);
        Some(Self { instance, closed, end, held })
    }

    /// Logs what the store has committed, and detaches the sessions that it closed from this process.
    /// `changes` lists what the turn changed, as far as that is known.
    pub(crate) fn committed(self, shared: &Arc<RuntimeShared>, changes: &[SessionChange]) {
        self.log(changes);
        let closed = changes.iter().filter_map(|change| match change {
            SessionChange::Close { session_id, .. } => Some(session_id),
            SessionChange::Open { .. } | SessionChange::Watch { .. } => None,
        });
        let keys = self.closed.iter().chain(closed).map(|id| SessionKey::owned(&self.instance, id));
        shared.sessions.note_closed(keys, shared.plan.session_now());
        let is_closed = |key: &SessionKey| self.end.is_some() || self.closed.contains(&key.session_id);
        let of_commit: Vec<SessionRef> =
            self.held.iter().filter(|claim| is_closed(&claim.key)).cloned().collect();
        detach::start(shared, &of_commit, DetachCause::Closed);
        // A claim that a fetch brought meanwhile is of the closed session, or of one that was opened since.
        for claim in shared.sessions.held_of(&self.instance) {
            if is_closed(&claim.key) && !of_commit.contains(&claim) {
                let again = Arc::clone(shared);
                shared.tasks.spawn(async move {
                    detach_if_closed(&again, claim).await;
                });
            }
        }
    }

    fn log(&self, changes: &[SessionChange]) {
        let instance = self.instance.as_str();
        for change in changes {
            match change {
                SessionChange::Open { session_id, .. } => {
                    tracing::info!(target: "steadfast::runtime", session_id, instance, "session opened");
                }
                SessionChange::Close { session_id, cause } => {
                    let reason = match cause {
                        CloseCause::Call => "close_session",
                        CloseCause::End => self.end.unwrap_or("instance ended"),
                    };
                    tracing::info!(
                        target: "steadfast::runtime",
                        session_id,
                        instance,
                        reason,
                        "session closed"
                    );
                }
                SessionChange::Watch { .. } => {}
            }
        }
    }
}

/// Says how an instance ends.
fn end_of(commit: &TurnCommit) -> &'static str {
    match commit.failure() {
        None => "instance completed",
        Some(ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. }) => "instance cancelled",
        Some(_) => "instance failed",
    }
}

/// Detaches a claim if its session was closed. Returns whether it was.
pub(crate) async fn detach_if_closed(shared: &Arc<RuntimeShared>, claim: SessionRef) -> bool {
    let is_closed = is_closed(shared, &claim).await;
    if is_closed {
        detach::start(shared, &[claim], DetachCause::Closed);
    }
    is_closed
}

/// Tells whether a claim that this process holds ended because its session was closed: an orchestration had
/// opened it, and the store has no such session any more, or has one that was opened since (G25). Such a
/// session is given to no other process before this one has detached it (G41), so its epoch is lower.
pub(super) async fn is_closed(shared: &RuntimeShared, claim: &SessionRef) -> bool {
    if claim.key.instance.is_none() {
        return false;
    }
    match in_time(shared, "session", shared.store.session(&claim.key)).await {
        Ok(None) => true,
        Ok(Some(row)) => row.epoch < claim.epoch,
        Err(_) => false,
    }
}
