//! Keeping the leases of sessions, and giving up what cannot be kept.

use std::sync::Arc;
use std::time::Duration;

use steadfast_store::{ProviderErrorKind, RenewSessions, SessionRef, SessionsRenewed};

use super::detach::{self, Why};
use super::table::Busy;
use crate::dispatch::given_up;
use crate::dispatch::keeper::RETRY;
use crate::runtime::Shared;

/// Renews the leases of this process's sessions, and now and then removes what ended, until the runtime stops and no
/// activity of a session runs any more. Then every session is released.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let clock = &shared.plan.clock;
    let mut clean_at = clock.monotonic().saturating_add(shared.plan.session_cleanup);
    let mut due = clock.monotonic().saturating_add(shared.plan.session_lease.renew_every);
    loop {
        let proven = shared.sessions.first_deadline();
        let wake = proven.map_or(due, |proven| proven.min(due));
        tokio::select! {
            biased;
            () = is_over(&shared) => break,
            () = clock.sleep_until(wake) => {}
        }
        detach::lost(&shared, shared.sessions.give_up_unproven(clock.monotonic()));
        if clock.monotonic() < due {
            continue;
        }
        let wait = tokio::select! {
            biased;
            // A store that hangs must not keep the process.
            () = is_over(&shared) => break,
            wait = renew(&shared) => wait,
            () = unproven(&shared) => continue,
        };
        due = clock.monotonic().saturating_add(wait);
        if clock.monotonic() >= clean_at {
            clean_at = clock.monotonic().saturating_add(shared.plan.session_cleanup);
            tokio::select! {
                biased;
                () = is_over(&shared) => break,
                () = clean_up(&shared) => {}
            }
        }
    }
    // What still comes in now is detached when it ends.
    shared.sessions.close();
    detach::all(&shared, Why::Shutdown).await;
}

/// Waits until the runtime stops and no activity of a session runs any more.
async fn is_over(shared: &Shared) {
    shared.stop.cancelled().await;
    tokio::select! {
        () = shared.sessions.are_at_rest() => {}
        () = given_up(shared) => {}
    }
}

/// Waits until an attachment can no longer be proven.
async fn unproven(shared: &Shared) {
    match shared.sessions.first_deadline() {
        Some(deadline) => shared.plan.clock.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Renews once, and says when to renew again.
async fn renew(shared: &Arc<Shared>) -> Duration {
    let (plan, sessions) = (&shared.plan, &shared.sessions);
    if sessions.are_handed_on() {
        // A store that releases nothing renews by owner: what was handed on would never be anybody else's.
        return plan.session_lease.renew_every;
    }
    let asked = plan.clock.monotonic();
    let held = sessions.held();
    let request = RenewSessions {
        owner: sessions.owner.clone(),
        extend_for: plan.session_lease.lasts,
        idle_timeout: plan.session_idle,
        untaken_after: plan.session_untaken,
        tags: plan.tags.clone(),
        appetite: sessions.appetite(),
        held: held.clone(),
    };
    match shared.store.renew_sessions(request).await {
        Ok(renewed) => {
            follow(shared, renewed, &held, asked).await;
            plan.session_lease.renew_every
        }
        Err(error) => {
            shared.metrics().record_session_renewal_failure();
            if error.kind == ProviderErrorKind::LeaseLost {
                detach::give_up_node(shared, &error);
                return plan.session_lease.renew_every;
            }
            tracing::warn!(target: "steadfast::runtime", owner = %sessions.owner.id, %error, "sessions could not be renewed; trying again");
            // Soon, because every lease ends at its own time (F7).
            plan.session_lease.renew_every.min(RETRY)
        }
    }
}

/// Does as the store answers.
async fn follow(shared: &Arc<Shared>, answer: SessionsRenewed, held: &[SessionRef], asked: Duration) {
    let (plan, sessions) = (&shared.plan, &shared.sessions);
    let SessionsRenewed { renewed, idle, untaken, lost } = answer;
    tracing::debug!(target: "steadfast::runtime", owner = %sessions.owner.id, renewed = renewed.len(), idle = idle.len(), untaken = untaken.len(), lost = lost.len(), "sessions renewed");
    shared.metrics().record_session_renewals(renewed.len() as u64);
    // A store without epochs names none; that it answered says that live leases were extended.
    let nameless = held.iter().filter(|held| held.epoch == 0);
    for attachment in renewed.iter().chain(nameless) {
        sessions.proven(attachment, asked.saturating_add(plan.session_proof()));
    }
    detach::start(shared, &idle, Busy::Stays, Why::Idle);
    let nameless = sessions.idle_without_epoch(plan.session_idle, asked);
    detach::start(shared, &nameless, Busy::Stays, Why::Idle);
    detach::start(shared, &untaken, Busy::Goes, Why::Untaken);
    // From here on the store is asked, and the call may be dropped: the next answer tells what is left then.
    // What was given up and lives on in the store would wait for nobody. No fetch brings it before it is released.
    let mut revived = sessions.unproven();
    revived.retain(|gone| renewed.contains(gone));
    detach::release(shared, &revived).await;
    sessions.settle_unproven();
    for attachment in lost {
        let why = if is_closed(shared, &attachment).await { Why::Closed } else { Why::Lost };
        detach::start(shared, &[attachment], Busy::Goes, why);
    }
    detach::tidy(shared);
}

/// An owned session that is gone from the store was closed.
async fn is_closed(shared: &Shared, attachment: &SessionRef) -> bool {
    attachment.key.instance.is_some() && matches!(shared.store.session(&attachment.key).await, Ok(None))
}

async fn clean_up(shared: &Shared) {
    match shared.store.cleanup_sessions().await {
        Ok(0) => {}
        Ok(count) => {
            tracing::debug!(target: "steadfast::runtime", owner = %shared.sessions.owner.id, count, "ended sessions cleaned up");
        }
        Err(error) => {
            tracing::warn!(target: "steadfast::runtime", %error, "ended sessions could not be cleaned up; trying again later");
        }
    }
}
