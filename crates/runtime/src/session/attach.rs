//! From a fetch that claimed a session to an activity that may begin on it.

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{Claim, ClaimedSession, SessionRef, WorkLease};

use super::ask::SessionAsk;
use super::table::{NewClaim, OnSession};
use super::{Session, detach, hooks};
use crate::runtime::RuntimeShared;

/// Whether fetched work runs on a session, and whether that can be served here.
pub(crate) enum WorkSession {
    /// The work names no session.
    None,
    /// The work runs on a session that this process holds.
    Here(OnSession),
    /// The work must be abandoned, uncounted: its session is being detached, this claim of it was released
    /// already, or the process serves as many sessions as it may.
    Refused,
    /// The work must be abandoned, uncounted: the answer came so late that the lease of the session may have
    /// expired. The next fetch tells.
    Late,
}

/// Enters leased work and its session into the table. `session_id` is the id that the orchestration wrote.
pub(crate) fn claim(
    shared: &Arc<RuntimeShared>,
    lease: &WorkLease,
    session_id: Option<&str>,
    ask: SessionAsk,
) -> WorkSession {
    let claimed = lease.session.as_ref().map(|claimed| NewClaim {
        of: SessionRef { key: claimed.key.clone(), epoch: claimed.epoch },
        is_first: claimed.claim == Claim::New,
    });
    // A store that counts no epochs knows the session by its id alone.
    let named = || {
        let of = SessionRef { key: SessionKey::shared(session_id?), epoch: 0 };
        Some(NewClaim { of, is_first: false })
    };
    let Some(claimed) = claimed.or_else(named) else { return WorkSession::None };
    let now = shared.plan.session_now();
    // The lease is granted at some moment between the request and the answer, and this process knows only
    // these two. So it counts from the request.
    let proven_until = ask.sent.saturating_add(shared.plan.session_proof());
    if proven_until <= now {
        // The store counts this process as the owner already. The next fetch reports the session as held, and
        // such a claim is not logged.
        log_claim(shared, lease);
        return WorkSession::Late;
    }
    let Some((on_session, replaced)) = shared.sessions.claim(claimed, ask, now, proven_until) else {
        return WorkSession::Refused;
    };
    shared.renew_early(proven_until, now);
    log_claim(shared, lease);
    detach::start_all(shared, replaced);
    detach::detach_excess(shared);
    WorkSession::Here(on_session)
}

/// Waits until the former attachment of the session to this process is detached (G41), calls `on_attach`
/// before the first activity of a claim, and returns whether the activity may begin: the process can prove
/// that it still holds the session, and the time of a shutdown is not up.
pub(crate) async fn attach(shared: &RuntimeShared, session: &Session) -> bool {
    let attach = async {
        session.until_former_is_detached().await;
        hooks::attach(shared, session).await;
    };
    tokio::select! {
        biased;
        () = attach => {}
        () = shared.abort.cancelled() => return false,
    }
    may_serve(shared, session)
}

/// Tells whether an activity of this attachment may begin here now.
pub(crate) fn may_serve(shared: &RuntimeShared, session: &Session) -> bool {
    shared.sessions.may_serve(session, shared.plan.session_now())
}

impl OnSession {
    /// Notes that the activity has ended, and detaches sessions that are too many now.
    pub(crate) fn end(self, shared: &Arc<RuntimeShared>) {
        shared.sessions.used(&self.session, shared.plan.session_now());
        drop(self.in_flight);
        detach::detach_excess(shared);
    }
}

/// Logs and counts how this process came to own the session: it is the first to claim it (`is_new_claim`), or
/// claims it after an earlier claim has ended (`is_reclaim`, `from` names who had it). A store without epochs
/// does not say.
fn log_claim(shared: &RuntimeShared, lease: &WorkLease) {
    let Some(ClaimedSession { key, epoch, claim }) = &lease.session else {
        return shared.metrics().set_attached_sessions(shared.sessions.count());
    };
    let (session_id, epoch, owner) = (key.session_id.as_str(), *epoch, shared.sessions.owner_id());
    let from = match claim {
        Claim::Held => return,
        Claim::New => None,
        Claim::Taken { from } => Some(from.as_str()),
    };
    let instance = key.instance.as_deref();
    tracing::info!(
        target: "steadfast::runtime",
        session_id,
        instance,
        owner,
        epoch,
        from,
        is_new_claim = from.is_none(),
        is_reclaim = from.is_some(),
        "session claimed"
    );
    shared.metrics().record_session_claim();
    if let Some(since) = lease.waiting_since_ms {
        let waited = Duration::from_millis(lease.now_ms.saturating_sub(since));
        shared.metrics().record_session_claim_wait(waited.as_secs_f64());
    }
    if let Some(from) = from.filter(|from| *from != owner) {
        tracing::info!(
            target: "steadfast::runtime",
            session_id,
            instance,
            owner,
            epoch,
            from,
            "session migrated"
        );
        shared.metrics().record_session_migration();
    }
    shared.metrics().set_attached_sessions(shared.sessions.count());
}
