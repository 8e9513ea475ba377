//! The name under which this process owns sessions: its node with the number of this start.
//!
//! A store tells processes of one node id apart by that number. A process that has a node id and no number
//! yet would share the sessions, and the epochs, of an older process of the same name. So it takes no session
//! work until it is registered (G1).

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::Clock;
use steadfast_store::{Owner, ProviderError, ProviderErrorKind, Store};

use super::renew;
use crate::activity::builtin::simple_guid;
use crate::dispatch::backoff::Backoff;
use crate::dispatch::until_stopped;
use crate::runtime::RuntimeShared;

/// Bounds how long a start waits for the registration: a store that hangs must not keep it.
const START_PATIENCE: Duration = Duration::from_secs(5);

/// Bounds how long a later try waits. Longer, because only the work of sessions waits for it: a store that is
/// slow gets its time.
const LATER_PATIENCE: Duration = Duration::from_secs(30);

/// Returns the owner of this process's sessions: a random name for a process without a node id, else the node
/// with the number of this start. `None` if the node could not be registered; [`keep_node`] tries again.
pub(crate) async fn first_owner(
    store: &dyn Store,
    clock: &dyn Clock,
    node_id: Option<&str>,
    random: u128,
) -> Option<Owner> {
    let Some(node_id) = node_id else { return Some(Owner::unnamed(simple_guid(random))) };
    match register(store, clock, node_id, START_PATIENCE).await {
        Ok(owner) => Some(owner),
        Err(error) => {
            tracing::warn!(
                target: "steadfast::runtime",
                node_id,
                %error,
                "the node could not be registered; until it is, this process takes no session work"
            );
            None
        }
    }
}

/// Registers the node if that is still to be done, then renews the leases of sessions. A node that serves no
/// sessions is kept too, because the answers tell when a newer process replaces it (G44).
pub(crate) async fn keep_node(shared: Arc<RuntimeShared>) {
    if shared.sessions.owner().is_none() {
        until_stopped(&shared.stop, register_again(&shared)).await;
    }
    let Some(owner) = shared.sessions.owner() else { return };
    let serves_sessions = shared.plan.worker_slots > 0 && shared.plan.max_sessions > 0;
    if serves_sessions || owner.incarnation.is_some() {
        renew::keep_leases(Arc::clone(&shared)).await;
    }
}

/// Tries to register the node until the store takes it.
async fn register_again(shared: &RuntimeShared) {
    let Some(node_id) = shared.plan.node_id.as_deref() else { return };
    let mut backoff = Backoff::new(shared.seed);
    loop {
        let clock = &*shared.plan.clock;
        clock.sleep(backoff.next()).await;
        match register(&*shared.store, clock, node_id, LATER_PATIENCE).await {
            Ok(owner) => {
                tracing::info!(
                    target: "steadfast::runtime",
                    node_id,
                    incarnation = owner.incarnation,
                    "the node is registered; this process takes session work"
                );
                return shared.sessions.registered(owner);
            }
            Err(error) => {
                tracing::debug!(
                    target: "steadfast::runtime",
                    node_id,
                    %error,
                    "the node could not be registered; trying again"
                );
            }
        }
    }
}

/// Registers a node, and waits at most `patience` for the store. A store that does not number the starts of
/// nodes knows them by their names alone.
async fn register(
    store: &dyn Store,
    clock: &dyn Clock,
    node_id: &str,
    patience: Duration,
) -> Result<Owner, ProviderError> {
    let registered = tokio::select! {
        biased;
        registered = store.register_node(node_id) => registered,
        () = clock.sleep(patience) => {
            Err(ProviderError::retryable("register_node", "the store does not answer"))
        }
    };
    match registered {
        Ok(incarnation) => Ok(Owner { id: node_id.to_owned(), incarnation: Some(incarnation) }),
        Err(error) if error.kind == ProviderErrorKind::Unsupported => Ok(Owner::unnamed(node_id)),
        Err(error) => Err(error),
    }
}
