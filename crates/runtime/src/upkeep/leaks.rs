//! Sessions that an orchestration opened and neither uses nor closes: they are named and counted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use steadfast_client::{ClientError, LeakedSessions};
use steadfast_core::SessionKey;
use steadfast_store::{ProviderError, ProviderErrorKind, SessionInfo};

use crate::dispatch::{STORE_PATIENCE, until_stopped};
use crate::runtime::RuntimeShared;

/// How many leaked sessions are remembered as named. Beyond it the oldest keys are named again.
const MAX_NAMED: usize = 10_000;

/// Looks for leaked sessions, again and again, until the runtime stops or the store turns out to be unable to
/// list sessions.
pub(crate) async fn watch(shared: Arc<RuntimeShared>, leak: Duration) {
    let every = (leak / 4).clamp(Duration::from_secs(1), Duration::from_secs(3_600));
    let mut named = BTreeSet::new();
    loop {
        until_stopped(&shared.stop, shared.plan.clock.sleep(every)).await;
        let looked = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            looked = look(&shared, leak, &mut named) => looked,
        };
        match looked {
            Ok(count) => shared.metrics().set_leaked_sessions(count),
            Err(ClientError::Provider(error)) if error.kind == ProviderErrorKind::Unsupported => return,
            Err(error) => {
                tracing::debug!(target: "steadfast::runtime", %error, "open sessions could not be listed");
            }
        }
    }
}

/// Looks through the open sessions once, names those that leaked since, and returns how many are leaked.
async fn look(
    shared: &RuntimeShared,
    leak: Duration,
    named: &mut BTreeSet<SessionKey>,
) -> Result<usize, ClientError> {
    let (mut leaked, mut after) = (BTreeSet::new(), None);
    loop {
        let page = in_time(shared, leak, after.as_ref()).await?;
        for session in &page.sessions {
            if !named.contains(&session.key) {
                name(session);
            }
            leaked.insert(session.key.clone());
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let count = leaked.len();
    *named = leaked.into_iter().take(MAX_NAMED).collect();
    Ok(count)
}

/// Lists a page of leaked sessions. A store that does not answer is asked again at the next look.
async fn in_time(
    shared: &RuntimeShared,
    leak: Duration,
    after: Option<&SessionKey>,
) -> Result<LeakedSessions, ClientError> {
    tokio::select! {
        biased;
        page = shared.client.list_leaked_sessions(leak, after) => page,
        () = shared.plan.clock.sleep(STORE_PATIENCE) => {
            let text = "the store did not answer";
            Err(ProviderError::retryable("list_leaked_sessions", text).into())
        }
    }
}

fn name(session: &SessionInfo) {
    tracing::warn!(
        target: "steadfast::runtime",
        session_id = session.key.session_id,
        instance = session.key.instance,
        owner = session.owner.as_ref().map(|owner| owner.id.as_str()),
        epoch = session.epoch,
        last_activity_at_ms = session.last_activity_at_ms,
        "a session was opened, and is neither used nor closed"
    );
}
