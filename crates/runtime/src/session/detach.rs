//! Detaching a session: one procedure for every reason.

use std::sync::Arc;
use std::time::Duration;

use steadfast_store::{ProviderError, SessionRef};

use super::Session;
use super::hooks::{self, DetachReason};
use super::table::Busy;
use crate::dispatch::given_up;
use crate::runtime::Shared;

/// Why a session is detached, as the log says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Idle,
    OverTheLimit,
    Untaken,
    UnregisteredHandler,
    Drain,
    Shutdown,
    Lost,
    Closed,
}

impl Why {
    fn reason(self) -> DetachReason {
        match self {
            Self::Idle => DetachReason::Idle,
            Self::OverTheLimit | Self::Untaken | Self::UnregisteredHandler => DetachReason::Released,
            Self::Drain | Self::Shutdown => DetachReason::Shutdown,
            Self::Lost => DetachReason::Lost,
            Self::Closed => DetachReason::Closed,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::OverTheLimit => "over the limit",
            Self::Untaken => "untaken",
            Self::UnregisteredHandler => "unregistered handler",
            Self::Drain => "drain",
            Self::Shutdown => "shutdown",
            Self::Lost => "lost",
            Self::Closed => "closed",
        }
    }

    /// What is lost or closed is not ours to release.
    fn releases(self, shared: &Shared) -> bool {
        match self {
            Self::Lost | Self::Closed => false,
            Self::Shutdown => shared.plan.release_on_shutdown,
            Self::Idle | Self::OverTheLimit | Self::Untaken | Self::UnregisteredHandler | Self::Drain => true,
        }
    }
}

/// Detaches held sessions, each on a task of its own. What is not held any more, or is busy and may stay, is passed over.
pub(super) fn start(shared: &Arc<Shared>, attachments: &[SessionRef], busy: Busy, why: Why) {
    for attachment in attachments {
        if let Some((session, used_at)) = shared.sessions.leave(attachment, busy) {
            run(shared, session, used_at, why);
        }
    }
}

/// Runs the procedure for sessions that were lost.
pub(crate) fn lost(shared: &Arc<Shared>, sessions: Vec<Session>) {
    let now = shared.plan.clock.monotonic();
    for session in sessions {
        run(shared, session, now, Why::Lost);
    }
}

fn run(shared: &Arc<Shared>, session: Session, used_at: Duration, why: Why) {
    let again = Arc::clone(shared);
    shared.tasks.spawn(async move { detach(&again, vec![(session, used_at)], why).await });
}

/// Detaches every session, together.
pub(super) async fn all(shared: &Arc<Shared>, why: Why) {
    let sessions = &shared.sessions;
    let held = sessions.held();
    let left = held.iter().filter_map(|held| sessions.leave(held, Busy::Goes)).collect();
    detach(shared, left, why).await;
}

/// No fetch brings work of these any more. The application is told, what was kept is dropped, and others may claim.
async fn detach(shared: &Arc<Shared>, sessions: Vec<(Session, Duration)>, why: Why) {
    let told: Vec<_> = sessions
        .iter()
        .map(|(session, _)| {
            let (shared, session) = (Arc::clone(shared), session.clone());
            let tasks = shared.tasks.clone();
            tasks.spawn(async move { hooks::dismiss(&shared, &session, why.reason()).await })
        })
        .collect();
    for told in told {
        if let Err(error) = told.await {
            tracing::error!(target: "steadfast::runtime", %error, "a session hook could not be called");
        }
    }
    for (session, _) in &sessions {
        session.forget();
    }
    if why.releases(shared) {
        let attachments: Vec<SessionRef> = sessions.iter().map(|(session, _)| session.reference()).collect();
        release(shared, &attachments).await;
    }
    for (session, used_at) in &sessions {
        shared.sessions.left(session);
        tell(shared, session, *used_at, why);
    }
    shared.metrics().set_attached_sessions(shared.sessions.count());
}

/// Ends leases, so that others need not wait. A store that does not answer must not keep the process: the leases end.
pub(super) async fn release(shared: &Shared, attachments: &[SessionRef]) {
    if attachments.is_empty() {
        return;
    }
    let released = tokio::select! {
        biased;
        released = shared.store.release_sessions(&shared.sessions.owner, attachments) => released.map(drop),
        () = shared.plan.clock.sleep(shared.plan.session_lease.lasts) => Ok(()),
        () = given_up(shared) => Ok(()),
    };
    if let Err(error) = released {
        tracing::warn!(target: "steadfast::runtime", owner = %shared.sessions.owner.id, %error, "sessions could not be released; their leases will end");
    }
}

fn tell(shared: &Shared, session: &Session, used_at: Duration, why: Why) {
    let (session_id, epoch, owner) = (session.id(), session.epoch(), shared.sessions.owner.id.as_str());
    let reason = why.text();
    match why {
        Why::Idle => {
            let idle_duration = shared.plan.clock.monotonic().saturating_sub(used_at);
            tracing::info!(target: "steadfast::runtime", session_id, owner, epoch, ?idle_duration, "idle session released");
        }
        Why::Lost => {
            shared.metrics().record_session_lost();
            tracing::warn!(target: "steadfast::runtime", session_id, owner, epoch, "session lost");
        }
        Why::Closed => {
            tracing::info!(target: "steadfast::runtime", session_id, owner, epoch, "session closed");
        }
        Why::Shutdown if !shared.plan.release_on_shutdown => {
            tracing::info!(target: "steadfast::runtime", session_id, owner, epoch, "session kept for the next start of this node");
        }
        Why::OverTheLimit | Why::Untaken | Why::UnregisteredHandler | Why::Drain | Why::Shutdown => {
            if why == Why::Untaken {
                shared.metrics().record_session_untaken();
            }
            tracing::info!(target: "steadfast::runtime", session_id, owner, epoch, reason, "session released");
        }
    }
}

/// Lets go of free sessions that are too many, and of all free ones while the runtime is being drained.
pub(crate) fn tidy(shared: &Arc<Shared>) {
    let sessions = &shared.sessions;
    let why = if sessions.is_draining() { Why::Drain } else { Why::OverTheLimit };
    start(shared, &sessions.too_many(shared.plan.max_attached_sessions), Busy::Stays, why);
}

/// Takes no more session work, and returns when every session is detached.
pub(crate) async fn drain(shared: &Arc<Shared>) {
    shared.sessions.close();
    tidy(shared);
    // Those that are busy go one by one, each when its last activity ends.
    shared.sessions.are_at_rest().await;
    tidy(shared);
    shared.sessions.are_gone().await;
}

/// Hands a session on whose activity has no handler here, so that a worker that has it can take both.
pub(crate) fn release_for_want_of_handler(shared: &Arc<Shared>, session: &Session) {
    let until = shared.plan.clock.monotonic().saturating_add(shared.plan.unregistered.max_delay);
    shared.sessions.leave_out(session.key(), until);
    start(shared, &[session.reference()], Busy::Goes, Why::UnregisteredHandler);
}

/// Takes no more session work because another process has started under the name of this one.
pub(crate) fn give_up_node(shared: &Arc<Shared>, error: &ProviderError) {
    if shared.sessions.close() {
        tracing::error!(
            target: "steadfast::runtime",
            owner = %shared.sessions.owner.id,
            incarnation = shared.sessions.owner.incarnation,
            %error,
            "another process has started with the worker_node_id of this one; this one takes no more session work"
        );
    }
    start(shared, &shared.sessions.held(), Busy::Goes, Why::Lost);
}
