//! The application's hooks, which run when a session is attached and when it is detached.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use super::Session;
use crate::runtime::RuntimeShared;

/// Runs code of the application when a session is attached to this process and when it is detached.
///
/// Each call may take as long as `session_hook_timeout` (5 s by default); then its future is dropped, the
/// runtime logs a warning and goes on. A hook that panics is logged too. Set the hooks with
/// `RuntimeOptions::session_hooks`.
///
/// # Cancel safety
/// The runtime drops the future of a hook that takes too long, and of an `on_attach` that still runs when the
/// time of a shutdown is up. `on_detach` is still called after such an `on_attach`.
#[async_trait]
pub trait SessionHooks: Debug + Send + Sync + 'static {
    /// Is called once for each attachment, before its first activity begins. Activities of the session wait
    /// for it.
    async fn on_attach(&self, session: &Session) {
        let _ = session;
    }

    /// Is called once for each attachment that [`on_attach`](Self::on_attach) was called for. When it
    /// returns, the runtime drops the state that activities kept in the session and releases it, so that
    /// another worker can claim it: this is the time to save state, unless `reason` is
    /// [`DetachReason::Lost`].
    async fn on_detach(&self, session: &Session, reason: DetachReason) {
        let _ = (session, reason);
    }
}

/// Tells why a session is detached from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DetachReason {
    /// The session had no work for as long as `session_idle_timeout` says.
    Idle,
    /// The session is released to other workers: more sessions are attached than `max_attached_sessions`
    /// allows, its work is not taken here, or this process has no handler for one of its activities.
    Released,
    /// The session may already belong to another worker: its lease was not renewed in time, or an operator
    /// released it. Do not write state.
    Lost,
    /// The runtime shuts down or drains.
    Shutdown,
    /// The orchestration that opened the session has closed it, or has ended.
    Closed,
}

/// Calls `on_attach` for the first activity of a claim. Activities that come while it runs wait until it has
/// returned.
pub(super) async fn attach(shared: &RuntimeShared, session: &Session) {
    let Some(hooks) = &shared.plan.session_hooks else {
        shared.sessions.begin(session);
        return;
    };
    let _one_hook_at_a_time = session.hook_lock().lock().await;
    // The session counts as attached when the call begins, so that `on_detach` is called even if `on_attach`
    // is dropped halfway.
    if shared.sessions.begin(session) {
        let (hooks, attached) = (Arc::clone(hooks), session.clone());
        bounded(shared, session, "on_attach", async move { hooks.on_attach(&attached).await }).await;
    }
}

/// Calls `on_detach`, after an `on_attach` that still runs has returned.
pub(super) async fn detach(shared: &RuntimeShared, session: &Session, reason: DetachReason) {
    let Some(hooks) = &shared.plan.session_hooks else { return };
    let _one_hook_at_a_time = session.hook_lock().lock().await;
    let (hooks, detached) = (Arc::clone(hooks), session.clone());
    bounded(shared, session, "on_detach", async move { hooks.on_detach(&detached, reason).await }).await;
}

/// Runs a hook on a task of its own, because it may panic, and for at most `session_hook_timeout`.
async fn bounded(
    shared: &RuntimeShared,
    session: &Session,
    hook: &'static str,
    call: impl Future<Output = ()> + Send + 'static,
) {
    let name = format!("{hook} ({})", session.id());
    let mut call = shared.invocations.spawn(name, call);
    let (session_id, epoch) = (session.id(), session.epoch());
    tokio::select! {
        biased;
        joined = &mut call => if let Err(error) = joined {
            tracing::error!(
                target: "steadfast::runtime",
                session_id,
                epoch,
                hook,
                %error,
                "a session hook panicked"
            );
        },
        () = shared.plan.clock.sleep(shared.plan.session_hook_timeout) => {
            tracing::warn!(
                target: "steadfast::runtime",
                session_id,
                epoch,
                hook,
                "a session hook took too long and is dropped"
            );
        }
    }
}
