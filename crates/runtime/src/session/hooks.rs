//! Telling the application when a session comes and goes.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::task::AbortOnDropHandle;

use super::Session;
use crate::runtime::Shared;

/// Is told when a session is attached to this process and when it is detached. Each call may take as long as
/// `session_hook_timeout` says, and is then dropped.
#[async_trait]
pub trait SessionHooks: Debug + Send + Sync + 'static {
    /// Is called once for each attachment, before its first activity begins.
    async fn on_attach(&self, session: &Session) {
        let _ = session;
    }

    /// Is called once for each attachment that [`on_attach`](Self::on_attach) was called for. State that is kept in the
    /// session is dropped when this returns, and the session can be claimed elsewhere: now is the time to save.
    async fn on_detach(&self, session: &Session, reason: DetachReason) {
        let _ = (session, reason);
    }
}

/// Says why a session is detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DetachReason {
    /// It had no work for as long as `session_idle_timeout` says.
    Idle,
    /// It is handed on: more are attached than may be, its work is not taken here, or a handler is missing.
    Released,
    /// It is somebody else's, or may be: the lease could not be renewed in time, or was ended by hand.
    Lost,
    /// The runtime stops, or is being drained.
    Shutdown,
    /// The orchestration that opened it has closed it.
    Closed,
}

/// Calls `on_attach`, unless it was called; activities that come meanwhile wait.
pub(crate) async fn greet(shared: &Shared, session: &Session) {
    let Some(hooks) = &shared.plan.session_hooks else { return };
    let mut greeted = session.greeted().lock().await;
    if *greeted || session.has_ended() {
        return;
    }
    // Before the call: one that is given up has begun, and what it began is ended by `on_detach`.
    *greeted = true;
    let (hooks, told) = (Arc::clone(hooks), session.clone());
    bounded(shared, session, "on_attach", async move { hooks.on_attach(&told).await }).await;
}

/// Calls `on_detach`, if `on_attach` was called.
pub(super) async fn dismiss(shared: &Shared, session: &Session, reason: DetachReason) {
    let Some(hooks) = &shared.plan.session_hooks else { return };
    let greeted = session.greeted().lock().await;
    if *greeted {
        let (hooks, told) = (Arc::clone(hooks), session.clone());
        bounded(shared, session, "on_detach", async move { hooks.on_detach(&told, reason).await }).await;
    }
}

/// Runs a hook on a task of its own: it may panic or not return.
async fn bounded(
    shared: &Shared,
    session: &Session,
    hook: &'static str,
    call: impl Future<Output = ()> + Send + 'static,
) {
    let mut call = AbortOnDropHandle::new(shared.tasks.spawn(call));
    let (session_id, epoch) = (session.id(), session.epoch());
    tokio::select! {
        biased;
        joined = &mut call => if let Err(error) = joined {
            tracing::error!(target: "steadfast::runtime", session_id, epoch, hook, %error, "a session hook panicked");
        },
        () = shared.plan.clock.sleep(shared.plan.session_hook_timeout) => {
            tracing::warn!(target: "steadfast::runtime", session_id, epoch, hook, "a session hook took too long and is dropped");
        }
    }
}
