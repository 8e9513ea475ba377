//! Detaching a session: one procedure for every cause.
//!
//! No fetch brings work of the session any more; `on_detach` is called; the managed state is dropped; the
//! lease is released, so that another process can claim the session at once.

use std::sync::Arc;

use steadfast_store::{ProviderError, ReleaseReason, SessionRef};

use super::local_session::DetachCause;
use super::table::Detachment;
use super::{Session, hooks};
use crate::dispatch::until_abandon_deadline;
use crate::runtime::RuntimeShared;

/// Detaches claims that this process holds, each on a task of its own. A claim that it does not hold is
/// passed over, and so is a busy session if the cause spares it.
pub(super) fn start(shared: &Arc<RuntimeShared>, claims: &[SessionRef], cause: DetachCause) {
    start_all(shared, claims.iter().filter_map(|claim| shared.sessions.detach(claim, cause)));
}

/// Runs the detach procedure for each session, on a task of its own.
pub(super) fn start_all(shared: &Arc<RuntimeShared>, detachments: impl IntoIterator<Item = Detachment>) {
    for detachment in detachments {
        let again = Arc::clone(shared);
        let cause = detachment.cause;
        shared.tasks.spawn(async move { detach(&again, vec![detachment], cause).await });
    }
}

/// Detaches every session that this process holds, all at the same time, and returns when their procedures
/// have ended.
pub(super) async fn detach_all(shared: &Arc<RuntimeShared>, cause: DetachCause) {
    let held = shared.sessions.held();
    let detachments = held.iter().filter_map(|claim| shared.sessions.detach(claim, cause)).collect();
    detach(shared, detachments, cause).await;
}

/// The detach procedure, for sessions that are detached for the same cause. The hooks of all of them run at
/// the same time.
async fn detach(shared: &Arc<RuntimeShared>, detachments: Vec<Detachment>, cause: DetachCause) {
    let calls: Vec<_> = detachments
        .iter()
        .map(|Detachment { session, was_attached, .. }| {
            let (shared, session, was_attached) = (Arc::clone(shared), session.clone(), *was_attached);
            let tasks = shared.tasks.clone();
            tasks.spawn(async move {
                // Attachments of one session end in the order in which they began.
                session.until_former_is_detached().await;
                if was_attached {
                    hooks::detach(&shared, &session, cause.reason()).await;
                }
            })
        })
        .collect();
    for call in calls {
        if let Err(error) = call.await {
            tracing::error!(target: "steadfast::runtime", %error, "a session hook could not be called");
        }
    }
    for detachment in &detachments {
        detachment.session.drop_state();
    }
    let mut is_released = false;
    if cause.releases(shared.plan.release_on_shutdown) {
        let claims: Vec<SessionRef> =
            detachments.iter().map(|detachment| detachment.session.reference()).collect();
        is_released = release(shared, &claims, cause.released_as()).await;
    }
    // An answer that was under way when a claim was released may bring it for as long as a lease lasts.
    let now = shared.plan.session_now();
    let until = now.saturating_add(shared.plan.session_lease.lasts);
    for detachment in &detachments {
        shared.sessions.detached(&detachment.session, now, until, is_released);
        log(shared, detachment);
    }
    shared.metrics().set_attached_sessions(shared.sessions.count());
}

/// Releases leases in the store, so that other processes need not wait for them to expire. Waits for the
/// store at most as long as a lease lasts: a store that hangs must not keep the process, and the leases
/// expire by themselves. Returns whether the store has confirmed it. If not, the leases may live on, and
/// fetches exclude the sessions until an answer to a renewal tells.
pub(super) async fn release(shared: &RuntimeShared, claims: &[SessionRef], reason: ReleaseReason) -> bool {
    if claims.is_empty() {
        return true;
    }
    let Some(owner) = shared.sessions.owner() else { return false };
    let lease = shared.plan.session_lease.lasts;
    let unanswered = || Err(ProviderError::retryable("release_sessions", "the store did not answer"));
    let released = tokio::select! {
        biased;
        released = shared.store.release_sessions_because(owner, claims, reason) => released.map(drop),
        () = shared.plan.clock.sleep(lease) => unanswered(),
        () = until_abandon_deadline(shared) => unanswered(),
    };
    let is_confirmed = released.is_ok();
    if let Err(error) = released {
        // A store without epochs does not name the claims that it renews. Its sessions are excluded until
        // their leases have expired.
        let until = shared.plan.session_now().saturating_add(lease);
        for claim in claims.iter().filter(|claim| claim.epoch == 0) {
            shared.sessions.exclude(&claim.key, until);
        }
        tracing::warn!(
            target: "steadfast::runtime",
            session_id = named(claims),
            owner = %owner.id,
            %error,
            "sessions could not be released; their leases will end"
        );
    }
    is_confirmed
}

/// Logs the end of an attachment.
fn log(shared: &RuntimeShared, detachment: &Detachment) {
    let Detachment { session, cause, used_at, .. } = detachment;
    let owner = shared.sessions.owner_id();
    match cause {
        DetachCause::Lost => shared.metrics().record_session_lost(),
        DetachCause::Untaken => shared.metrics().record_session_untaken(),
        DetachCause::Idle
        | DetachCause::Closed
        | DetachCause::OverTheLimit
        | DetachCause::UnregisteredHandler
        | DetachCause::Drain
        | DetachCause::Shutdown => {}
    }
    macro_rules! line {
        ($level:ident, $($field:ident = $value:expr,)? $text:literal) => {
            tracing::$level!(
                target: "steadfast::runtime",
                session_id = session.id(),
                instance = session.key().instance.as_deref(),
                owner,
                epoch = session.epoch(),
                $($field = $value,)?
                $text
            )
        };
    }
    match cause {
        DetachCause::Idle => {
            let idle_duration = shared.plan.session_now().saturating_sub(*used_at);
            let idle_duration = tracing::field::debug(idle_duration);
            line!(info, idle_duration = idle_duration, "idle session released");
        }
        DetachCause::Lost => line!(warn, "session lost"),
        DetachCause::Closed => line!(info, reason = cause.text(), "session detached"),
        DetachCause::Shutdown if !shared.plan.release_on_shutdown => {
            line!(info, "session kept for the next start of this node");
        }
        DetachCause::OverTheLimit
        | DetachCause::Untaken
        | DetachCause::UnregisteredHandler
        | DetachCause::Drain
        | DetachCause::Shutdown => line!(info, reason = cause.text(), "session released"),
    }
}

/// How many sessions one log line names.
const MAX_NAMED: usize = 10;

/// Names sessions in a log line: the first ones by their ids, and how many more there are.
pub(super) fn named(claims: &[SessionRef]) -> String {
    let ids: Vec<&str> = claims.iter().take(MAX_NAMED).map(|claim| claim.key.session_id.as_str()).collect();
    let named = ids.join(", ");
    match claims.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Detaches idle sessions beyond `max_attached_sessions`, and all idle sessions while the process drains.
pub(super) fn detach_excess(shared: &Arc<RuntimeShared>) {
    let sessions = &shared.sessions;
    let cause = if sessions.is_draining() { DetachCause::Drain } else { DetachCause::OverTheLimit };
    start(shared, &sessions.excess(shared.plan.max_attached_sessions), cause);
}

/// Takes no more session work, and returns when every session is detached.
pub(crate) async fn drain(shared: &Arc<RuntimeShared>) {
    shared.sessions.start_draining();
    detach_excess(shared);
    // A busy session is detached when its last activity ends.
    shared.sessions.until_no_activity_runs().await;
    detach_excess(shared);
    shared.sessions.until_all_detached().await;
}

/// Releases a session whose activity has no handler here, and excludes it from fetches for
/// `unregistered_backoff.max_delay`, so that a worker that has the handler can claim it.
pub(crate) fn release_unregistered(shared: &Arc<RuntimeShared>, session: &Session) {
    let until = shared.plan.session_now().saturating_add(shared.plan.unregistered.max_delay);
    shared.sessions.exclude(session.key(), until);
    start(shared, &[session.reference()], DetachCause::UnregisteredHandler);
}

/// Takes no more work at all, and detaches every session as lost: a newer process has started under this
/// node's name (G44). Turns and activities that run may complete; their leases do not depend on the node.
pub(crate) fn node_replaced(shared: &Arc<RuntimeShared>, error: &ProviderError) {
    shared.sessions.start_draining();
    if !shared.fenced.is_cancelled() {
        shared.fenced.cancel();
        let owner = shared.sessions.owner();
        tracing::error!(
            target: "steadfast::runtime",
            owner = shared.sessions.owner_id(),
            incarnation = owner.and_then(|owner| owner.incarnation),
            %error,
            "another process has started with the worker_node_id of this one; \
             this one takes no more work"
        );
    }
    start(shared, &shared.sessions.held(), DetachCause::Lost);
}
